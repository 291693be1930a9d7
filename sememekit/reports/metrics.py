"""The reports of ``sememekit eval``: lines and tables; for ``--explanations`` a chart and a page, too."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sememekit.analysis.evaluate import LabelMetrics, MetricsReport, SeedsReport, WrittenMetrics
from sememekit.analysis.explanations.evaluation import ExplanationScores
from sememekit.analysis.explanations.scores import FREQUENCY, RANDOM
from sememekit.analysis.segmentation import SegmentationReport
from sememekit.analysis.senses.evaluation import SenseScores
from sememekit.analysis.written_texts import BaselineReport, ComparisonReport, Scores
from sememekit.figures import percent
from sememekit.measure.intervals import Interval
from sememekit.reports import pages
from sememekit.reports.analysis import confusion
from sememekit.reports.charts import Curves, Line, chart
from sememekit.reports.table import Parts, Table, Views, fields, shown_rate
from sememekit.runs.published import is_published


def parts(report: Any) -> Parts:
    """Yield the parts for a terminal of a report of ``eval``, or of ``compare`` on texts."""
    return next(view for kind, view in _VIEWS.items() if isinstance(report, kind))(report)


def _title(report: MetricsReport | SeedsReport) -> str:
    return f"Metrics of {report.run} on {report.split}"


def _labels(report: LabelMetrics) -> Parts:
    named = {name: getattr(report, name) for name in ("checkpoint", "accuracy", "examples", "macro_f1")}
    yield fields(_title(report), named | {"nats an example": report.nats / report.examples})
    yield f"signature: {report.signature}\n"
    if report.vectors is not None:
        yield f"vectors: {report.vectors.sentence()}"
    between = f"between {percent(report.accuracy_low, 2)} and {percent(report.accuracy_high, 2)} ({report.interval})"
    usual = "" if report.majority is None else f"; the most frequent label of train: {percent(report.majority, 2)}"
    yield f"accuracy {percent(report.accuracy, 2)}, {between}{usual}\n"
    rows = [(one.label, one.precision, one.recall, one.f1, one.support) for one in report.classes]
    yield Table(("label", "precision", "recall", "F1", "examples"), rows, "By label", numbers=1)
    yield confusion(report.labels, report)


def _written(report: WrittenMetrics) -> Parts:
    names = ("perplexity", "unigram", "nats", "tokens", "examples", "checkpoint_by", "words")
    replaced = "unknown:replace" in report.search.split("|")
    unknown = {"unknown, replaced by words of the source" if replaced else "unknown": report.unknown}
    terms = {f"{name} perplexity": value for name, value in report.parts.items()}
    yield fields(_title(report), {name: getattr(report, name) for name in names} | unknown | terms)
    yield f"signature: {report.perplexity_signature}\n"
    for place, scores in enumerate(report.scores):
        yield _scores(scores, f"{scores.preset}, in per cent", *report.baseline_scores[place : place + 1])
        yield f"signature: {scores.signature}\n"
    if report.baseline_scores:
        yield f"baseline: {report.baseline}"


def _scores(scores: Scores, title: str, *baseline: Scores) -> Table:
    sides = zip(*(one.values for one in (scores, *baseline)), strict=True)
    rows = ((own[0].name, *(x for one in own for x in _per_cent(one.value, one.low, one.high))) for own in sides)
    columns = ("", "score", "95 % from", "to", *(("baseline", "95 % from", "to") if baseline else ()))
    return Table(columns, rows, title, numbers=1)


def _per_cent(*shares: float | None) -> list[str]:
    return [percent(share, 2, unit=False) for share in shares]


def _baseline(report: BaselineReport) -> Parts:
    lead = report.lead.replace("-", " ")
    title = f"The first {lead} of {report.examples:,} sources ({report.data}, {report.split}), in per cent"
    for scores in report.scores:
        yield _scores(scores, f"{title}: {scores.preset}")
        yield scores.signature


def _texts(report: ComparisonReport) -> Parts:
    rows = [(row.name, *_per_cent(row.first, row.second, *row.difference.model_dump().values())) for row in report.differences]
    title = f"{report.first} minus {report.second}, {report.examples:,} texts, in per cent"
    yield Table(("", "first", "second", "difference", "95 % from", "to"), rows, title, numbers=1)
    yield report.signature


def _seeds(report: SeedsReport) -> Parts:
    rows: list[tuple[object, ...]] = [
        (str(seed), *(one.values[place] for one in report.figures.values()), found.checkpoint)
        for place, (seed, found) in enumerate(zip(report.seeds, report.reports, strict=True))
    ]
    rows += [(name, *(getattr(one, name) for one in report.figures.values()), "") for name in ("mean", "sd")]
    columns = ("seed", *(name.replace("_", " ") for name in report.figures), "checkpoint")
    yield Table(columns, rows, _title(report), numbers=1)
    if report.signature is not None:
        yield f"signature: {report.signature}"


def _segmentation(report: SegmentationReport) -> Parts:
    columns = ["segmentation", "precision", "recall", "F1", "95 %", "words", "F1 of the model minus this", "95 %"]
    with_new, first = report.rows[0].new_recall is not None, report.rows[0]
    rows = []
    for row in report.rows:
        figures = [f"{value:.4f}" for value in (row.precision, row.recall, row.f1)]
        interval = None if row.f1_low is None else f"{row.f1_low:.4f} to {row.f1_high:.4f}"
        limits = None if row.difference_low is None else f"{row.difference_low:+.4f} to {row.difference_high:+.4f}"
        apart = None if row.difference is None else f"{row.difference:+.4f}"
        recall = None if row.new_recall is None else f"{row.new_recall:.4f}"
        rows.append([row.name, *figures, interval, row.words, apart, limits, *([recall] if with_new else [])])
    known = "" if report.marks == "found" else ", marks given"
    title = f"Words of {report.gold} found by {report.run} ({report.decoding}, {report.marginal}{known})"
    columns += ["recall of new words"] if with_new else []
    yield Table(columns, rows, title, numbers=1)
    few = "no intervals of fewer than ten sentences"
    intervals = few if first.f1_low is None else "intervals: bootstrap over sentences"
    yield f"{first.sentences:,} sentences, {first.gold_words:,} gold words; {intervals}"


def _senses(report: SenseScores) -> Parts:
    rows = [(row.name, *map(shown_rate, (row.micro, row.macro)), shown_rate(row.above_random, "+")) for row in report.rows]
    title = f"Senses of {report.gold} tagged by {report.run}"
    yield Table(("method", "micro", "macro over words", "micro minus at random"), rows, title, numbers=1)
    cells = [(one.word, one.senses, one.targets, *(percent(x, 0) for x in one.accuracy.values())) for one in report.words]
    yield Table(("word", "senses", "targets", *report.words[0].accuracy), cells, "By word", numbers=1)
    yield f"{report.targets:,} targets; intervals: 95 %, bootstrap over targets, of macro over words"
    for one in report.left_out:
        yield f"left out: {one.count:,} {one.cause}; the first: {one.first}"
    if not report.stored:
        hf = "nothing is stored beside a model of Hugging Face"
        why = hf if is_published(report.run) else "the folder of the run cannot be written"
        yield f"{why}, so tag will not know this measurement"


_VIEWS: Final[Mapping[type[Any], Callable[[Any], Parts]]] = {
    LabelMetrics: _labels,
    WrittenMetrics: _written,
    MetricsReport: lambda report: iter([fields(_title(report), report, skip=("run", "split"))]),
    SeedsReport: _seeds,
    SegmentationReport: _segmentation,
    SenseScores: _senses,
    BaselineReport: _baseline,
    ComparisonReport: _texts,
}

NAMES: Final = {
    "rise": "gain (probability minus mean)",
    "mass": "probability",
    "information": "probability x log lift",
    "gates": "gates (Table 5)",
    FREQUENCY: "training frequency",
    RANDOM: "at random",
}
"""Ranking -> displayed name, if they differ."""

DRAWN: Final = ("rise", "mass", "gates", FREQUENCY)
SHOWN_TOP: Final = 5


def scores_page(report: ExplanationScores) -> str:
    """Return a whole page: the measurement, the tables, a chart."""
    return pages.render(
        "explanation_scores",
        report=report,
        remarks=pages.remarks("scores", report),
        tables=tables(report),
        charts=[chart(one) for one in charts(report)],
        lead=pages.remarks("next_words", report, {"gates": "gates", RANDOM: "chance"})[0],
    )


def tables(report: ExplanationScores, top: int | None = None) -> list[Table]:
    """Return scores of every k over all positions, and of ``top`` (default: 5, or the least k) by band of word and sememe."""
    tops = sorted({score.top for score in report.rankings})
    top = top or (SHOWN_TOP if SHOWN_TOP in tops else tops[0])
    rankings = list(dict.fromkeys(score.ranking for score in report.rankings))
    columns = ("ranking", "k", "any", "recall", "information", "above frequency", "overlap")
    whole = []
    for one in report.rankings:
        rates = (shown_rate(rate, unit=False) for rate in (one.any, one.recall, one.information, one.above_frequency))
        whole.append((shown_name(one.ranking), str(one.top), *rates, percent(one.overlap, unit=False)))
    words = [(band.name, band.positions, {s.ranking: s.recall for s in band.scores if s.top == top}) for band in report.words]
    sememes = [(band.name, band.pairs, {s.ranking: s.found for s in band.scores if s.top == top}) for band in report.sememes]
    return [
        Table(columns, whole, "All positions, per cent", numbers=1),
        _by_band(f"Recall of the first {top} by the count of the gold word in the training text, per cent", rankings, words),
        _by_band(f"Gold sememes among the first {top} by the counted tokens that have them, per cent", rankings, sememes),
    ]


def charts(report: ExplanationScores) -> list[Curves]:
    """Return the chart of information over k; none for a single k."""
    found = {name: [(float(s.top), s.information.value or 0.0) for s in report.rankings if s.ranking == name] for name in DRAWN}
    if len(found[DRAWN[0]]) < 2:
        return []
    lines = tuple(Line(shown_name(name), tuple(points)) for name, points in found.items())
    told = "; ".join(f"{line.name} {percent(line.points[-1][1])}" for line in lines)
    title = f"Information on the gold sememes among the first k of a ranking: {told}"
    return [Curves(title, "k, sememes shown", "information found", lines, scale="percent", show=".1%")]


def shown_name(ranking: str) -> str:
    """Return the displayed name of a ranking."""
    return NAMES.get(ranking, ranking)


def _by_band(title: str, rankings: Sequence[str], bands: Sequence[tuple[str, int, dict[str, Interval]]]) -> Table:
    columns = ("ranking", *(f"{name} ({count:,})" for name, count, _ in bands))
    rows = ((shown_name(ranking), *(shown_rate(rates[ranking], unit=False) for _, _, rates in bands)) for ranking in rankings)
    return Table(columns, rows, title, numbers=1)


VIEWS: Final = Views(scores_page, lambda report: (*tables(report), *pages.remarks("scores", report)), charts)
