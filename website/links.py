"""Files of the project that stand outside of docs/ become pages of the site, and links to them become links to those pages."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "resources/lexicon/README.md": "reference/open-lexicon.md",
}
"""A file of the project, and the page of the site that shows it."""
PLAIN: Final = {"LICENSE": "LICENSE", "CITATION.cff": "CITATION.cff", "resources/lexicon/LICENSE": "reference/LICENSE"}
"""Files that the site has as they are."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and files."""
    for source, target in {**PAGES, **PLAIN}.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links between files of the project into links between pages of the site."""
    target = page.file.src_uri
    source = next((path for path, uri in PAGES.items() if uri == target), f"docs/{target}")
    markdown = re.sub(r"\[[\w./-]+\.md\](?=\(([^)#\s]+\.md))", lambda found: f"[{_title(source, found[1])}]", markdown)
    return re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", lambda found: _shown(found[1], found[2], source, target), markdown)


def _shown(text: str, goal: str, source: str, uri: str) -> str:
    """A link, or the text with the name of a file that the site has not."""
    leads, file = link(goal, source, uri), _file(goal, source)
    return f"[{text}]({leads})" if leads else f"`{file}`" if text == file else f"{text} (`{file}`)"


def _file(goal: str, source: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), goal.partition("#")[0]))


def _title(source: str, link_of_page: str) -> str:
    """The title of a page: what a reader of the site is shown in the place of its file name."""
    text = (ROOT / posixpath.dirname(source) / link_of_page).read_text(encoding="utf-8")
    return re.search(r"^# (.*)$", text, re.MULTILINE)[1]


def link(target: str, source: str, uri: str) -> str:
    """Return the address on the page ``uri`` of a link in the file ``source``; empty if the site lacks the file."""
    path, mark, anchor = target.partition("#")
    if not path or "://" in path:
        return target
    file = _file(path, source)
    if not file.startswith("docs/") and file not in PAGES | PLAIN and (ROOT / file).exists():
        return ""
    shown = {**PAGES, **PLAIN}.get(file) or file.removeprefix("docs/").replace(".ipynb", ".md")
    return posixpath.relpath(shown, posixpath.dirname(uri) or ".") + mark + anchor
