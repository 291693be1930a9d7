"""Writes the pictures of pages in docs/pictures: ``python -m tests.screenshots FOLDER``.

FOLDER is where docs/tutorials/raw-text.md was followed; the attack is that of docs/notebooks/attack-your-classifier.ipynb.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from PIL import Image

from tests.browser import BROWSER, MISSING, browse, frames

DOCS = Path(__file__).resolve().parents[1] / "docs"
SIZES = {"explain": (900, 600), "explain-phone": (400, 600), "report": (780, 560), "attack": (900, 760)}
"""Name of a picture -> width and height."""


def attack_page() -> str:
    """The page of the attack that the notebook makes."""
    cells = json.loads((DOCS / "notebooks" / "attack-your-classifier.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)  # our own notebook
    return str(names["result"].html)  # type: ignore[attr-defined]


def main(folder: Path) -> None:
    """Write all pictures."""
    if BROWSER is None:
        sys.exit(MISSING)
    why = (folder / "why.html").read_text(encoding="utf-8")
    report = (folder / "runs" / "sdlm" / "report.html").read_text(encoding="utf-8")
    pages = {"explain": why, "explain-phone": why, "report": report, "attack": attack_page()}
    for name, (width, height) in SIZES.items():
        with tempfile.TemporaryDirectory() as place:
            page, picture = Path(place) / "page.html", Path(place) / "picture.png"
            page.write_text(frames({name: pages[name]}, width, height), encoding="utf-8")
            browse(page, Path(place) / "profile", f"--window-size={width},{height}", f"--screenshot={picture}")
            with Image.open(picture) as shot:
                shot.convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(
                    DOCS / "pictures" / f"{name}.png", optimize=True
                )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
