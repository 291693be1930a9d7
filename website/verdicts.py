"""The verdicts on the claims of a paper, where its page says ``<!-- verdicts: NAME -->``, from the results of trials."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

from sememekit.claims.claims import claims_folder
from sememekit.jobs.reproduce import judged
from sememekit.reports.ledger import COLUMNS, row

RESULTS: Final = Path(__file__).resolve().parents[1] / "docs" / "results" / "claims"
MARK: Final = re.compile(r"<!-- verdicts: ([\w-]+) -->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the tables into a page."""
    return MARK.sub(lambda found: table(found[1]), markdown)


def table(paper: str) -> str:
    """The claims of ``resources/claims/PAPER.toml``, each with the verdict that the ledger has, as Markdown."""
    names = list(tomllib.loads((claims_folder() / f"{paper}.toml").read_text(encoding="utf-8"))["claim"])
    claims = judged(Path("nowhere"), names, False, RESULTS)
    rows = [(statement, claim.source, *rest) for claim in claims for statement, *rest in [row(claim)]]
    columns = (COLUMNS[0], "where", *COLUMNS[1:])
    lines = [" | ".join(cell.replace("|", "/") for cell in cells) for cells in (columns, ["---"] * len(columns), *rows)]
    return "\n".join(f"| {line} |" for line in lines)
