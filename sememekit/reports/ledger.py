"""The ledger: every claim of the five papers with its verdict, as Markdown and as a page."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from sememekit.claims.verdict import STANDINGS, VERDICTS, ClaimResult
from sememekit.config import Record
from sememekit.errors import DataError
from sememekit.figures import percent_interval
from sememekit.files import Kind
from sememekit.reports import pages

Row = tuple[str, ...]

COLUMNS: Final = ("claim", "verdict", "effect (95 %)", "paper")  # of results; effect and paper are relative differences
DETAILS: Final = (
    *("name", "place in the paper; metric", "baseline", "other", "seeds"),
    *("at equal CPU time", "time of an update", "CPU minutes", "also differs in"),
)
"""Columns of details."""
MARKDOWN: Final = Kind("a ledger of claims", lambda head: head.startswith(b"# Claims\n"))
OWN: Final = "Claims of none of the five papers"  # heading of controls and of questions of our own
_LARGE: Final = 9.0  # relative difference from which an effect is written as a multiple, not in per cent


class Ledger(Record):
    """All claims with their verdicts."""

    claims: tuple[ClaimResult, ...]
    counts: dict[str, int]


def ledger(claims: Sequence[ClaimResult]) -> Ledger:
    """Return the claims, with the number of claims by verdict."""
    counts = Counter(claim.verdict for claim in claims)
    return Ledger(claims=tuple(claims), counts={verdict: counts[verdict] for verdict in VERDICTS})


def by_paper(claims: Sequence[ClaimResult]) -> Iterator[tuple[str, list[ClaimResult]]]:
    """Yield each paper, by name, with its claims in their order; last the claims of none of the five papers."""
    ordered = sorted(claims, key=lambda claim: (not claim.paper, claim.paper))
    return ((paper or OWN, list(found)) for paper, found in groupby(ordered, lambda claim: claim.paper))


def row(claim: ClaimResult) -> Row:
    """Return the cells of ``COLUMNS``; a claim that was not run has the reason in place of its effect."""
    published = "" if claim.published is None else effect_text(claim.published)
    if claim.effect is None:
        return claim.statement, claim.verdict, claim.why, published
    verdict = f"{claim.verdict} (tiny: shows nothing)" if claim.tiny else claim.verdict
    verdict += " (no control)" if claim.control is not None and claim.control.standing == "none" else ""
    return claim.statement, verdict, effect_text(*claim.effect), published


def effect_text(value: float, low: float | None = None, high: float | None = None) -> str:
    """Format a relative difference with its interval, as a multiple if large; an interval of zero width is left out.

    >>> effect_text(-0.043, -0.06, -0.02), effect_text(29.612, 29.612, 29.612)
    ('-4.3 % (-6.0 to -2.0)', '30.6 times')"""
    if low is not None and high is not None and abs(high - low) < 1e-9:
        low = high = None
    if value < _LARGE:
        return percent_interval(value, low, high, sign="+")
    return f"{value + 1:.1f} times" + ("" if low is None or high is None else f" ({low + 1:.1f} to {high + 1:.1f})")


def remarks(claim: ClaimResult) -> list[str]:
    """Return the sentences below the table of a claim: its note, and what its control does alone."""
    found, control = [claim.note] if claim.note else [], claim.control
    if control is not None:
        alone, other = effect_text(*control.effect), effect_text(*control.effect_of_other)
        found.append(f"{STANDINGS[control.standing]}, {alone} against `{control.without}`; `other` has {other} against it.")
    return found


def differing_text(also: Mapping[str, tuple[str, str]]) -> str:
    """Name the further settings in which two models differ, the value of ``other`` first.

    >>> differing_text({"decoder.samples": ("0", "1000")})
    'decoder.samples 1000 against 0'"""
    return ", ".join(f"{key} {other} against {baseline}" for key, (baseline, other) in also.items())


def details(claim: ClaimResult) -> Row:
    """Return the cells of ``DETAILS``; without results the cells after the metric are empty."""
    place = f"{claim.source}; {claim.metric}"
    if claim.means is None:
        return claim.name, place, *[""] * (len(DETAILS) - 2)
    means = (f"{mean:.2f}" if mean >= 1 else f"{mean:.4f}" for mean in claim.means)
    seeds = str(claim.seeds[0]) if claim.seeds[0] == claim.seeds[1] else f"{claim.seeds[0]} and {claim.seeds[1]}"
    timed = f"{claim.verdict_at_equal_time}, {effect_text(*claim.at_equal_time)}" if claim.at_equal_time else ""
    cost = f"{claim.cost:.2f}" if claim.cost else "" if claim.untrained else "not measured"
    cost += f", then {claim.cost_after_cut:.2f}" if claim.cost_after_cut else ""
    return claim.name, place, *means, seeds, timed, cost, f"{claim.cpu_minutes:.1f}", differing_text(claim.also)


def markdown(found: Ledger) -> str:
    """Return the ledger as a page of docs, rendered only from results."""
    return "# Claims\n\n" + pages.markdown("ledger", heading="##", **_shown(found))


def into_page(page: str, found: Ledger, where: str) -> str:
    """Return a page of Markdown with the ledger between its marks ``BEGIN`` and ``END``, otherwise unchanged. Raises DataError:
    the page ``where`` lacks one of the marks, or has it twice."""
    before, begin, rest = page.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(f"{END}\n")
    if not begin or not end or BEGIN in rest or END in after:
        raise DataError(f"{where} has no place for the ledger; put these two lines into it: {BEGIN} and {END}")
    return f"{before}{begin}\n{pages.markdown('ledger', heading='###', **_shown(found))}\n{end}{after}"


BEGIN: Final = "<!-- ledger: written by 'sememekit reproduce report --into', from the results of trials -->"
END: Final = "<!-- end of the ledger -->"


def _shown(found: Ledger) -> dict[str, Any]:
    counts = [(verdict, str(found.counts[verdict]), meaning) for verdict, meaning in VERDICTS.items()]
    papers = [
        (paper, [(claim, row(claim), remarks(claim)) for claim in claims], [details(claim) for claim in claims])
        for paper, claims in by_paper(found.claims)
    ]
    of = Counter(found.counts)
    told = (
        f"{of['holds'] + of['holds in direction'] + of['equal']} of the {of.total() - of['not run']} claims that were run hold "
        f"({of['holds in direction']} in direction only), {of['contradicted'] + of['differs']} are contradicted, and "
        f"{of['inconclusive'] + of['undecided']} are inconclusive."
    )
    return {"columns": COLUMNS, "details": DETAILS, "counts": counts, "papers": papers, "told": told}


def ledger_page(found: Ledger) -> str:
    """Return the ledger as one HTML page."""
    return pages.render("ledger", **_shown(found))
