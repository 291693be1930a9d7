"""The page of all settings, from the classes that have them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mkdocs.structure.files import File, Files

from sememekit.runs.slots import settings_slots, settings_table


def on_files(files: Files, config: Any) -> Files:
    """Add the page."""
    files.append(File.generated(config, "reference/settings.md", content=page()))
    return files


def page() -> str:
    """Every slot and variant with its settings, as ``sememekit settings`` knows them."""
    lines = [
        "---\nsearch:\n  boost: 0.4\n---\n",
        "# Settings",
        "",
        "What `--set SLOT.KEY=VALUE` takes, written by `sememekit settings`.",
        "",
    ]
    for slot in settings_slots():
        lines += [f"## {slot.slot}", "", f"{_text(slot.summary)} Used by `{slot.command}`.", ""]
        for name in slot.variants or {"": ""}:
            usual = " (default)" if name and name == slot.usual else ""
            lines += [f"### {slot.slot} {name}{usual}", ""] if name else []
            lines += _table(slot.slot, name)
    return "\n".join(lines)


def _table(slot: str, name: str) -> Iterator[str]:
    table = settings_table(slot, name)
    if name:
        yield from (_text(table.summary), "")
    if not table.settings:
        yield from ("No settings.", "")
        return
    yield from ("| setting | values | default | meaning |", "|---|---|---|---|")
    for one in table.settings:
        cells = (f"<code>{_text(table.prefix + one.key)}</code>", _text(one.values), _text(one.default_text), _text(one.told))
        yield f"| {' | '.join(cells)} |"
    yield ""


def _text(text: str) -> str:
    """Text of the program with what Markdown would read as its own escaped."""
    return re.sub(r"[<>&|*_\[\]]", lambda found: f"&#{ord(found[0])};", " ".join(text.split()))
