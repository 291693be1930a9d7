"""The tables, the chart and the page of ``sememekit eval --explanations``."""

from collections.abc import Sequence
from typing import Final

from sememekit.analysis.explanations.evaluation import ExplanationScores
from sememekit.analysis.explanations.scores import FREQUENCY, RANDOM
from sememekit.figures import percent, percent_interval
from sememekit.measure.intervals import Interval
from sememekit.reports import pages
from sememekit.reports.charts import Curves, Line, chart
from sememekit.reports.table import Table, Views

NAMES: Final = {
    "rise": "rise (mass minus mean)",
    "information": "mass x log lift",
    "gates": "gates (Table 5)",
    FREQUENCY: "training frequency",
    RANDOM: "at random",
}
"""Rankings that are shown by another name."""

DRAWN: Final = ("rise", "mass", "gates", FREQUENCY)
SHOWN_TOP: Final = 5


def scores_page(report: ExplanationScores) -> str:
    """A whole page: what was measured, the tables, a chart."""
    drawn = [chart(one) for one in charts(report)]
    return pages.render("explanation_scores", report=report, remarks=remarks(report), tables=tables(report), charts=drawn)


def tables(report: ExplanationScores, top: int | None = None) -> list[Table]:
    """All positions with every k; by band of the gold word and of the gold sememe with one k.

    Args:
        top: the k of the bands; None for 5, or the smallest where 5 was not asked for.
    """
    tops = sorted({score.top for score in report.rankings})
    top = top or (SHOWN_TOP if SHOWN_TOP in tops else tops[0])
    rankings = list(dict.fromkeys(score.ranking for score in report.rankings))
    columns = ("ranking", "k", "any", "recall", "information", "above frequency", "overlap")
    whole = [
        (
            shown_name(score.ranking),
            str(score.top),
            *(_with_interval(rate) for rate in (score.any, score.recall, score.information, score.above_frequency)),
            percent(score.overlap, unit=False),
        )
        for score in report.rankings
    ]
    words = [(band.name, band.positions, {s.ranking: s.recall for s in band.scores if s.top == top}) for band in report.words]
    sememes = [(band.name, band.pairs, {s.ranking: s.found for s in band.scores if s.top == top}) for band in report.sememes]
    return [
        Table(columns, whole, "All positions, per cent", numbers=range(1, len(columns))),
        _by_band(f"Recall of the first {top} by the count of the gold word in the training text, per cent", rankings, words),
        _by_band(f"Gold sememes among the first {top} by the counted tokens that have them, per cent", rankings, sememes),
    ]


def charts(report: ExplanationScores) -> list[Curves]:
    """Information found over k; none for a single k."""
    found = {name: [(float(s.top), s.information.value or 0.0) for s in report.rankings if s.ranking == name] for name in DRAWN}
    if len(found[DRAWN[0]]) < 2:
        return []
    lines = tuple(Line(shown_name(name), tuple(points)) for name, points in found.items())
    title = "Information on the gold sememes among the first k of a ranking: " + "; ".join(
        f"{line.name} {percent(line.points[-1][1])}" for line in lines
    )
    return [Curves(title, "k, sememes shown", "information found", lines, scale="percent", show=".1%")]


def remarks(report: ExplanationScores) -> list[str]:
    """What was counted, a sentence each."""
    left = report.left_out
    return [
        f"{report.positions:,} positions of {report.split} in {report.sentences:,} {report.unit}"
        + (f"; sentences drawn: {report.sampled}" if report.sampled else "")
        + f"; {report.num_sememes:,} sememes ranked.",
        f"Left out: {left.by_rule:,} special tokens and marks with sememes by rule, {left.not_annotated:,} words without "
        "annotation.",
        f"Mean of the probability of a sememe: {report.mean}.",
        "any: a sememe of the word that came is among the k; recall: how many of them are; information: the same with rare "
        "sememes weighing more; above frequency: information minus that of the ranking by training frequency; overlap: what "
        "two unrelated contexts have in common. In brackets: 95 % intervals.",
    ]


def shown_name(ranking: str) -> str:
    """A ranking as it is shown."""
    return NAMES.get(ranking, ranking)


def _by_band(title: str, rankings: Sequence[str], bands: Sequence[tuple[str, int, dict[str, Interval]]]) -> Table:
    columns = ("ranking", *(f"{name} ({count:,})" for name, count, _ in bands))
    rows = ((shown_name(ranking), *(_with_interval(rates[ranking]) for _, _, rates in bands)) for ranking in rankings)
    return Table(columns, rows, title, numbers=range(1, len(columns)))


def _with_interval(rate: Interval | None) -> str:
    return "–" if rate is None else percent_interval(rate.value, rate.low, rate.high, unit=False)


VIEWS: Final = Views(scores_page, lambda report: (*tables(report), *remarks(report)), charts)
