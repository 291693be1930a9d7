"""The verdicts on the claims of a paper, where its page says ``<!-- verdicts: NAME -->``, from the results of trials."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

from sememekit.claims.claims import claims_folder
from sememekit.commands.reproduce import judged
from sememekit.reports.ledger import COLUMNS, rows

RESULTS: Final = Path(__file__).resolve().parents[1] / "docs" / "results" / "claims"
MARK: Final = re.compile(r"<!-- verdicts: ([\w-]+) -->")
SHOWN: Final = ("verdict", "difference", "published")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the tables into a page."""
    return MARK.sub(lambda found: table(found[1]), markdown)


def table(paper: str) -> str:
    """The claims of ``resources/claims/PAPER.toml``, each with the verdict that the ledger has, as Markdown."""
    names = list(tomllib.loads((claims_folder() / f"{paper}.toml").read_text(encoding="utf-8"))["claim"])
    claims = judged(Path("nowhere"), names, False, RESULTS)
    cells = [dict(zip(COLUMNS, row, strict=True)) for row in rows(claims)]
    lines = [[claim.statement, claim.source, *(row[name] for name in SHOWN)] for claim, row in zip(claims, cells, strict=True)]
    head = (("claim", "where", *SHOWN), ("---",) * (2 + len(SHOWN)))
    return "\n".join(f"| {' | '.join(line)} |" for line in (*head, *lines))
