"""The ledger: every claim of the five papers with its verdict, as Markdown and as a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from sememekit.claims.verdict import VERDICTS, ClaimResult
from sememekit.config import Record
from sememekit.errors import DataError
from sememekit.figures import percent, percent_interval
from sememekit.reports import pages

Row = tuple[str, ...]

COLUMNS: Final = (
    "claim",
    "verdict",
    "at equal CPU time",
    "time of an update",
    "seeds",
    "baseline",
    "other",
    "difference",
    "published",
    "CPU minutes",
)


class Ledger(Record):
    """All claims with what is known of them.

    Attributes:
        counts: how many have each verdict.
    """

    claims: tuple[ClaimResult, ...]
    counts: dict[str, int]


def ledger(claims: Sequence[ClaimResult]) -> Ledger:
    """The claims with how many have each verdict."""
    counts = Counter(claim.verdict for claim in claims)
    return Ledger(claims=tuple(claims), counts={verdict: counts[verdict] for verdict in VERDICTS})


def rows(claims: Sequence[ClaimResult]) -> list[Row]:
    """One row a claim; a claim that was not run says why in the place of its figures."""
    return [_row(claim) for claim in claims]


def _row(claim: ClaimResult) -> Row:
    if claim.means is None or claim.effect is None:
        return (claim.name, claim.verdict, "", "", "", "", "", claim.why, _published(claim), "")
    verdict = f"{claim.verdict} (tiny: shows nothing)" if claim.tiny else claim.verdict
    timed = f"{claim.verdict_at_equal_time}, {percent_interval(*claim.at_equal_time, sign='+')}" if claim.at_equal_time else ""
    cost = f"{claim.cost:.2f}" if claim.cost else "" if claim.untrained else "not measured"
    cost += f", then {claim.cost_after_cut:.2f}" if claim.cost_after_cut else ""
    seeds = str(claim.seeds[0]) if claim.seeds[0] == claim.seeds[1] else f"{claim.seeds[0]} and {claim.seeds[1]}"
    means = (f"{mean:.2f}" if mean >= 1 else f"{mean:.4f}" for mean in claim.means)
    return (
        claim.name,
        verdict,
        timed,
        cost,
        seeds,
        *means,
        percent_interval(*claim.effect, sign="+"),
        _published(claim),
        f"{claim.cpu_minutes:.1f}",
    )


def _published(claim: ClaimResult) -> str:
    return "" if claim.published is None else percent(claim.published, sign="+")


def markdown(found: Ledger) -> str:
    """The ledger as a page of docs; rendered from results alone."""
    return "# Claims\n\n" + _body(found, "##")


def into_page(page: str, found: Ledger, where: str) -> str:
    """A page of Markdown with the ledger between its marks ``BEGIN`` and ``END``, and all else as it was.

    Raises:
        DataError: the page, ``where`` in the message, has not each mark once, in this order.
    """
    before, begin, rest = page.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(f"{END}\n")
    if not begin or not end or BEGIN in rest or END in after:
        raise DataError(f"{where} has no place for the ledger; put these two lines into it: {BEGIN} and {END}")
    return f"{before}{begin}\n{_body(found, '###')}\n{end}{after}"


BEGIN: Final = "<!-- ledger: written by 'sememekit reproduce report --into', from the results of trials -->"
END: Final = "<!-- end of the ledger -->"


def _body(found: Ledger, heading: str) -> str:
    lines = [_SUMMARY, ""]
    lines += [f"- **{verdict}** ({found.counts[verdict]}): {VERDICTS[verdict]}." for verdict in VERDICTS]
    lines += ["", "| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows(found.claims)]
    lines += ["", f"{heading} What each claim says", ""]
    lines += [f"- `{claim.name}`: {claim.statement} ({claim.source}; {claim.metric}){_note(claim)}" for claim in found.claims]
    return "\n".join(lines) + "\n"


def _note(claim: ClaimResult) -> str:
    return f" **Note:** {claim.note}" if claim.note else ""


_SUMMARY: Final = """\
Written by `sememekit reproduce report` from the results of trials; do not edit. Each row compares two models at a size that a
CPU affords.

- `baseline` and `other` are the metric on test, as geometric means over the seeds. `difference` is that of `other`, relative to
  `baseline`, with its 95 % interval (Student, pooled variance, of logarithms).
- `at equal CPU time` compares the best validation values of both models within the CPU time of the model whose training took
  less. CPU time is the number of updates times the time of one. It is empty where no epoch is validated by the metric.
- `time of an update` is the CPU time of an update of `other`, divided by that of `baseline`; the two were timed in turns. Where
  the baseline needs no training, this column and the one before are empty.

A verdict means:"""


def ledger_page(found: Ledger) -> str:
    """The ledger as one HTML page."""
    said = [(claim.name, claim.statement, f"{claim.source}; {claim.metric}", claim.note) for claim in found.claims]
    counts = [(verdict, str(found.counts[verdict]), meaning) for verdict, meaning in VERDICTS.items()]
    return pages.render("ledger", columns=COLUMNS, rows=rows(found.claims), counts=counts, said=said)
