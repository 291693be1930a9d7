"""Writes the pictures of pages in docs/pictures: ``python -m tests.screenshots FOLDER QUICKSTART``.

FOLDER is where docs/tutorials/raw-text.md was followed; the attack comes from docs/notebooks/attack-your-classifier.ipynb.
QUICKSTART is the folder that ``sememekit quickstart`` wrote, which the workbench shows. A font with Chinese is needed.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image

from tests.browser import BROWSER, MISSING, browse, frames

DOCS = Path(__file__).resolve().parents[1] / "docs"
SIZES = {"explain": (900, 600), "explain-phone": (400, 600), "report": (780, 560), "attack": (900, 760)}
"""Name of a picture -> width and height."""
WORKBENCH: dict[str, tuple[int, int, dict[str, str]]] = {
    "workbench": (1240, 800, {"view": "context", "context": "去年 美国 贸易"}),
    "workbench-phone": (390, 830, {"view": "text", "text": "去年 美国 贸易 增长 。\n中国 政府 代表团 访问 北京 。"}),
    "workbench-annotation": (
        1180,
        860,
        {"view": "annotation", "word": "增长", "context": "去年 美国 贸易", "text": "去年 美国 贸易 增长 。"},
    ),
    "workbench-lattice": (1000, 640, {"view": "lattice", "raw": "去年美国贸易逆差增长"}),
}
"""Name of a picture of the workbench -> width, height, and the state in its link."""


def attack_page() -> str:
    """The page of the attack that the notebook makes."""
    cells = json.loads((DOCS / "notebooks" / "attack-your-classifier.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)  # our own notebook
    return str(names["result"].html)  # type: ignore[attr-defined]


def keep(picture: Path, name: str) -> None:
    """Write a picture into the documentation, with few colours."""
    with Image.open(picture) as shot:
        shot.convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(DOCS / "pictures" / f"{name}.png", optimize=True)


def workbench(quickstart: Path) -> None:
    """Write the pictures of the workbench."""
    from playwright.sync_api import sync_playwright

    from tests.served import server

    with server(*(quickstart / name for name in ("sdlm", "softmax", "lattice"))) as (address, _), sync_playwright() as started:
        browser = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        for name, (width, height, state) in WORKBENCH.items():
            page = browser.new_page(viewport={"width": width, "height": height}, locale="en-GB")
            page.goto(f"{address}#{urlencode(state)}")
            page.locator("section.card").first.wait_for(timeout=60_000)
            if state["view"] == "annotation":
                page.locator(".chip").first.click()
                page.locator(".figures").wait_for(timeout=60_000)
                page.wait_for_timeout(3000)
            elif state["view"] == "lattice":
                page.get_by_role("button", name="Cut after 逆").click()
            elif state["view"] == "text":
                page.locator(".token").nth(2).click()
                page.get_by_role("heading", name="Expected instead").wait_for(timeout=60_000)
            with tempfile.TemporaryDirectory() as place:
                picture = Path(place) / "picture.png"
                page.screenshot(path=picture)
                keep(picture, name)
        browser.close()


def main(folder: Path, quickstart: Path) -> None:
    """Write all pictures."""
    if BROWSER is None:
        sys.exit(MISSING)
    workbench(quickstart)
    why = (folder / "why.html").read_text(encoding="utf-8")
    report = (folder / "runs" / "sdlm" / "report.html").read_text(encoding="utf-8")
    pages = {"explain": why, "explain-phone": why, "report": report, "attack": attack_page()}
    for name, (width, height) in SIZES.items():
        with tempfile.TemporaryDirectory() as place:
            page, picture = Path(place) / "page.html", Path(place) / "picture.png"
            page.write_text(frames({name: pages[name]}, width, height), encoding="utf-8")
            browse(page, Path(place) / "profile", f"--window-size={width},{height}", f"--screenshot={picture}")
            keep(picture, name)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
