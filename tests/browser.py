"""Headless Chromium, where there is one: what a page looks like and what it measures."""

from __future__ import annotations

import html
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next((found for name in NAMES if (found := shutil.which(name))), None)
MISSING = f"no Chromium here ({', '.join(NAMES)}); on Debian: apt install chromium"


def browse(page: Path, profile: Path, *options: str) -> str:
    """Return Chromium's output for a local page."""
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
    done = subprocess.run(
        [*command, *options, page.resolve().as_uri()], capture_output=True, text=True, check=False, timeout=180
    )
    assert done.returncode == 0, done.stderr[-1000:]
    return done.stdout


def frames(pages: Mapping[str, str], width: int, height: int = 900) -> str:
    """Pages as frames of a page: a frame can be narrower than a window, and style sheets go by its width."""
    style = f"width:{width}px;height:{height}px;border:0"
    inside = (f'<iframe name="{name}" style="{style}" srcdoc="{html.escape(page)}"></iframe>' for name, page in pages.items())
    return f'<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">{"".join(inside)}'
