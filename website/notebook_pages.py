"""The notebooks as pages: their text, their code and what it printed or showed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "notebooks"


def on_files(files: Files, config: Any) -> Files:
    """Add a page for each notebook; the notebook itself stays there to be downloaded."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=page(path)))
    return files


def page(path: Path) -> str:
    """A notebook as Markdown."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = [part for cell in cells for part in _cell(cell)]
    parts.insert(1, f'<a href="{path.name}" download>{path.name}</a>')
    return "\n\n".join(parts) + "\n"


def _cell(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    return [f"```python\n{source}\n```", *(_output(output) for output in cell["outputs"])]


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        html = "".join(data["text/html"])
        return '<div class="shown">' + "".join(line.strip() + " " for line in html.splitlines()) + "</div>"
    text = "".join(output["text"] if "text" in output else data["text/plain"])
    return f"```text\n{text.rstrip()}\n```"
