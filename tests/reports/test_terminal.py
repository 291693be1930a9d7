"""Every line of every report as a terminal shows it, with tables for papers and for spreadsheets: ``terminal.txt`` has them.

The records come from ``samples``, once with every field and once without what may be lacking. After a change of a report,
write the file anew and read the difference before it is accepted:

    python -m tests.reports.test_terminal
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sememekit.analysis.analyze import Analysis
from sememekit.analysis.analyze_labels import LabelAnalysis
from sememekit.analysis.compare_runs import RunsComparison, Side, SideDifference, SideMeasure
from sememekit.analysis.evaluate import LabelMetrics, MetricsReport, SeedsReport, WrittenMetrics
from sememekit.analysis.evaluate_ppl import OverlayComparison, PerplexityComparison, PerplexityReport
from sememekit.analysis.explanations.label import LabelExplanation
from sememekit.analysis.explanations.lattice import EmbeddingsReport, LatticeExplanation
from sememekit.analysis.explanations.words import Explanation, OverlayExplanation
from sememekit.analysis.explanations.written_text import OverlayWriting, WritingExplanation
from sememekit.analysis.segmentation import SegmentationReport
from sememekit.analysis.senses.evaluation import SenseScores
from sememekit.analysis.written_texts import BaselineReport, ComparisonReport
from sememekit.attack.report import AttackComparison, AttackReport
from sememekit.claims.verdict import ClaimResult
from sememekit.measure.intervals import Interval
from sememekit.reports import analysis, attack, explanation, ledger, lexicons, metrics, perplexity, quickstart
from sememekit.reports.table import Table
from sememekit.sememes.lookup import AnnotationReport, ChangeReport, CheckReport, DefinitionTree, LookupReport, LookupSense
from sememekit.sememes.searching import DiffReport, DumpReport, PairsReport, SearchReport
from sememekit.sememes.suggesting import SuggestReport
from sememekit.tasks.vectors import VectorCoverage
from tests.pinned import pin, pinned
from tests.reports.samples import drawn, filled, fresh

EXPECTED = Path(__file__).with_name("terminal.txt")


def shown(parts: Iterable[str | Table]) -> Iterator[str]:
    """The lines of a report; a table says which columns are flush right and which rows are grey."""
    for part in parts:
        if isinstance(part, Table):
            faint = [number for number in range(len(part)) if number in part.faint]
            yield f"[right {sorted(part.numbers)}, grey {faint}, left out {part.left_out}]"
        yield from str(part).split("\n")


def compared(figure: str, bare: bool, *, singles: bool = False) -> RunsComparison:
    """Three models, the second with all intervals and the third with as few as there may be, or all of single runs."""
    limits = partial(filled, Interval)
    measures = [
        (None, None),
        (None, filled(SideDifference, sentences=limits(), seeds=limits(), both=limits())),
        (None, SideDifference(sentences=limits() if singles else None, seeds=limits(bare=True), both=None)),
    ]
    sides = []
    for number, (budget, difference) in enumerate(measures):
        runs = ("a/first", "a/other")[: 1 if bare or singles else 2]
        one = filled(
            SideMeasure, many=len(runs), budget=budget, difference=difference, mean=0.5 + number, sd=None if bare else 0.25
        )
        later = one.model_copy(update={"budget": 9.5 * (number + 1), "mean": None if bare else 2e9, "measure": "by then"})
        last = later.model_copy(update={"budget": 10.0})
        sides.append(
            filled(Side, many=2, name=f"folder/model-{number}-of-a-long-name,b", runs=runs, seeds=tuple(range(len(runs))),
                   measures=(one, later, later, last), curves=(((1.0, 2.0, 300.0), (2.0, 4.0, 250.0)),))
        )  # fmt: skip
    return filled(RunsComparison, many=2, figure=figure, sides=tuple(sides), bare=bare)


def overlaid(bare: bool) -> OverlayExplanation:
    """An explanation with more changed sememes than are shown."""
    found = filled(
        OverlayExplanation, many=2, bare=bare, asked=None, changed_sememes=filled(OverlayExplanation, many=13).changed_sememes
    )
    words = [one.after.word for one in found.changed_words]
    changes = (one.model_copy(update={"word": word}) for one, word in zip(found.changes, reversed(words), strict=True))
    return found.model_copy(update={"changes": tuple(changes)})


def paper(report: RunsComparison) -> Iterator[str]:
    yield from shown(perplexity.runs_parts(report))
    yield from (perplexity.csv_text(report) + perplexity.latex_text(report)).splitlines()
    yield from (one.title for one in perplexity.curves(report))


def claims(bare: bool) -> str:
    found = [filled(ClaimResult, many=2, bare=bare, name=f"claim-{number}", verdict="holds") for number in range(2)]
    changed = {"effect": (29.6, 28.0, 31.0), "seeds": (3, 3), "cost": None, "tiny": True, "cost_after_cut": None, "paper": ""}
    even = {"effect": (-0.043, -0.043, -0.043), "means": (0.5, 2.0), "untrained": True, "cost": None}
    more = [found[0].model_copy(update={"name": "changed", **changed}), found[0].model_copy(update={"name": "even", **even})]
    return ledger.markdown(ledger.ledger([*found, *more]))


def seeds(kind: type[Any], bare: bool) -> SeedsReport:
    first = filled(kind, many=2, bare=bare)
    reports = (first, first.model_copy(update={"perplexity": 3.5, "checkpoint": "other"}))
    report = filled(SeedsReport, many=2, bare=bare, reports=reports)
    return report.model_copy(update={"figures": {"perplexity": next(iter(report.figures.values()))}})


def looked_up() -> dict[str, Any]:
    leaf = DefinitionTree(relation="", sememe="fruit")
    tree = (DefinitionTree(relation="agent", sememe="eat", children=(leaf, leaf)), leaf)
    sense = {"source": "open", "word": "w", "gloss": "g", "definition": "", "definition_fault": ""}
    senses = (
        LookupSense(**sense, part_of_speech="N", sememes=("a", "b"), tree=()),
        LookupSense(**sense, part_of_speech="", sememes=("a",), tree=tree),
    )
    return {"senses": senses}


GIVEN: dict[str, Callable[[], dict[str, Any]]] = {
    "Explanation": lambda: {"asked": None},
    "LabelMetrics": lambda: {"vectors": filled(VectorCoverage, outside="random")},
    "LookupReport": looked_up,
}
"""Fields that must fit to others."""
PARTS: dict[str, tuple[type[Any], Callable[[Any], Iterable[str | Table]]]] = {
    **{
        kind.__name__: (kind, metrics.parts)
        for kind in (
            LabelMetrics,
            WrittenMetrics,
            MetricsReport,
            SegmentationReport,
            SenseScores,
            BaselineReport,
            ComparisonReport,
        )
    },
    **{
        kind.__name__: (kind, partial(lexicons.parts, top=1))
        for kind in (
            *(PairsReport, AnnotationReport, SearchReport, DumpReport, ChangeReport, CheckReport, SuggestReport, DiffReport),
            LookupReport,
        )
    },
    **{
        kind.__name__: (kind, lambda report: explanation.shown(report).views.parts(report))
        for kind in (Explanation, WritingExplanation, LabelExplanation, LatticeExplanation, EmbeddingsReport)
    },
    "OverlayWriting": (OverlayWriting, explanation.text_parts),
    "Analysis": (Analysis, analysis.analysis_parts),
    "LabelAnalysis": (LabelAnalysis, analysis.label_parts),
    "AttackComparison": (AttackComparison, attack.comparison_parts),
    "AttackReport": (AttackReport, lambda report: (f"{name}: {value}" for name, value in attack.rate_rows(report))),
    "PerplexityReport": (PerplexityReport, perplexity.parts),
    "PerplexityComparison": (PerplexityComparison, perplexity.parts),
    "OverlayComparison": (OverlayComparison, lambda report: perplexity.parts(report, ("old", "new"))),
}


DRAWN = {"explanation_scores": metrics.VIEWS, "quickstart": quickstart.VIEWS}
"""Reports that are the records of a page."""


def reports(name: str) -> list[str]:
    """The lines of one report."""
    fresh()
    name, _, how = name.partition(" ")
    bare = how == "bare"
    if name in PARTS:
        kind, parts = PARTS[name]
        given = GIVEN[name]() if name in GIVEN and (not bare or name == "LookupReport") else {}
        return [*shown(parts(filled(kind, many=2, bare=bare, **given)))]
    if name in ("perplexity", "accuracy"):
        return [*paper(compared(name, bare))]
    if name == "singles":
        return [*paper(compared("perplexity", bare, singles=True))]
    if name == "overlaid":
        return [*shown(explanation.words_parts(overlaid(bare)))]
    if name == "claims":
        return claims(bare).splitlines()
    if name in DRAWN:
        return [*shown(DRAWN[name].parts(drawn(name)[0]))]
    return [
        *shown(perplexity.parts(seeds(PerplexityReport, bare)) if name == "seeds" else metrics.parts(seeds(LabelMetrics, bare)))
    ]


NAMES = [
    f"{name} {how}"
    for name in (*PARTS, "perplexity", "accuracy", "singles", "overlaid", "claims", "seeds", "labels")
    for how in ("full", "bare")
]
NAMES.remove("AttackReport bare")  # nothing of its rates may be lacking
NAMES += DRAWN


@pytest.mark.parametrize("name", NAMES)
def test_a_report_is_shown_as_before(name: str) -> None:
    assert reports(name) == pinned(EXPECTED)[name], f"on purpose? then: python -m {__spec__.name}, and read the difference"


if __name__ == "__main__":
    pin(EXPECTED, NAMES, reports)
