"""The pages of ``sememekit analyze``, and its tables for terminals: of language models, then of classifiers."""

from collections.abc import Iterable, Sequence
from typing import Final

from sememekit.analysis.analyze import Analysis, RunAnalysis
from sememekit.analysis.analyze_labels import Group, LabelAnalysis, LabelRun, Moved
from sememekit.figures import percent, percent_limits
from sememekit.measure.classes import Accuracy
from sememekit.reports import pages
from sememekit.reports.charts import Curves, Line, chart
from sememekit.reports.table import Parts, Table, Views


def analysis_page(analysis: Analysis) -> str:
    """Return a whole page: a table, the singular values as a chart, and the predictions that differ most."""
    names = [_name(analysis.runs, number) for number in range(len(analysis.runs))]
    found = () if analysis.comparison is None else analysis.comparison.better
    better = [(names[winner], names[1 - winner], cases) for winner, cases in enumerate(found)]
    drawn = [chart(one) for one in charts(analysis)]
    return pages.render("analysis", analysis=analysis, charts=drawn, table=analysis_table(analysis), better=better)


def analysis_parts(analysis: Analysis) -> Parts:
    """Yield the table of the runs, and the predictions in which each of two runs did better."""
    yield analysis_table(analysis)
    if analysis.comparison is not None:
        names = [run.run for run in analysis.runs]
        yield f"{names[0]} gives {percent(analysis.comparison.wins)} of the words more probability than {names[1]}"
        for winner, found in enumerate(analysis.comparison.better):
            yield f"\nwhere {names[winner]} did better:" + ("" if found else " no such word is among its most probable ones")
            for case in found:
                yield f"\n  {' '.join(case.context)} __{case.reference}__"
                for name, prediction in ((names[winner], case.better), (names[1 - winner], case.worse)):
                    words = "  ".join(f"{word} {probability:.2f}" for word, probability in prediction.words)
                    yield f"    {name}: {words}  (of the word: {prediction.reference:.4f})"
    yield f"\nsignature: {analysis.signature}"


def charts(analysis: Analysis) -> list[Curves]:
    """Return the cumulative share of normalised singular values on a logarithmic axis, a line for each run."""
    lines = [Line(f"{_name(analysis.runs, number)}, rank {run.rank:,}", run.curve) for number, run in enumerate(analysis.runs)]
    title = f"Cumulative share of normalised singular values: {'; '.join(line.name for line in lines)}"
    x, y = "singular value, the largest = 1", "share that is at most as large"
    return [Curves(title, x, y, tuple(lines), scale="percent", x_scale="log", show=".1%", show_x=".1e", end_values=False)]


def analysis_table(analysis: Analysis) -> Table:
    """Return a row for each run; the title names the text and how much of it was read."""
    rows = []
    for run in analysis.runs:
        figures = (f"{run.perplexity:,.2f}", f"{run.rank:,} of {run.full_rank:,}", f"{run.divergence:.3f}")
        values = (f"{run.smallest / run.largest:.1e}", f"{run.round_off / run.largest:.1e}")
        rows.append((run.run, run.decoder, *figures, *values))
    title = f"All {analysis.contexts:,} contexts of the split {analysis.split}."
    if analysis.why_sampled is not None:
        title = f"A sample of the split {analysis.split} (seed {analysis.seed}): {analysis.why_sampled}."
    columns = ("run", "output layer", "perplexity", "rank", "pairwise KL (nats)")
    return Table((*columns, "smallest / largest singular value", "round-off / largest"), rows, title, numbers=2)


def _name(runs: tuple[RunAnalysis, ...], number: int) -> str:
    names = [run.decoder for run in runs]
    return names[number] if names.count(names[number]) == 1 else runs[number].run


def overview(analysis: LabelAnalysis) -> Table:
    """Accuracy of each run."""
    rows = []
    for run in analysis.runs:
        found = run.accuracy
        between = percent_limits(found.accuracy_low, found.accuracy_high, 2)
        rows.append((run.run, run.encoder, percent(found.accuracy, 2), between, f"{found.macro_f1:.4f}"))
    title = f"{analysis.split}: {analysis.examples:,} examples"
    return Table(("run", "encoder", "accuracy", "95 % (Wilson)", "macro F1"), rows, title, numbers=2)


def tables(analysis: LabelAnalysis, run: LabelRun) -> list[Table]:
    """Confusion, groups of examples, words and sememes of one run."""
    found = [
        confusion(analysis.labels, run.accuracy),
        *([_groups("By words that have sememes", run.by_sememes)] if run.by_sememes else []),
        _groups("By length of the example", run.by_length),
        _moved("Words that move decisions most", "word", run.words, run.rare_words, analysis.at_least),
    ]
    if run.no_sememes is None:
        found.append(_moved("Sememes that move decisions most", "sememe", run.sememes, run.rare_sememes, analysis.at_least))
    return found


def confusion(labels: Sequence[str], accuracy: Accuracy) -> Table:
    """Return the confusion matrix as a table."""
    rows = [(label, *(f"{n:,}" for n in row)) for label, row in zip(labels, accuracy.confusion, strict=True)]
    return Table(("", *labels), rows, "True label (row) and predicted label (column)", numbers=1)


def _groups(title: str, groups: Iterable[Group]) -> Table:
    rows = ((one.name, f"{one.examples:,}", percent(one.accuracy, 2), percent_limits(one.low, one.high, 2)) for one in groups)
    return Table(("examples", "number", "accuracy", "95 % (Wilson)"), rows, title, numbers=1)


def _moved(title: str, kind: str, items: Iterable[Moved], rare: int, at_least: int) -> Table:
    rows = ((one.name, f"{one.times:,}", f"{one.size:.3f}", f"{one.effect:+.3f}") for one in items)
    rarer = f" ({rare:,} with fewer than {at_least} occurrences are left out)" if rare else ""
    return Table((kind, "times", "mean size of the effect", "mean effect"), rows, title + rarer, numbers=1)


def label_page(analysis: LabelAnalysis) -> str:
    """Return a whole page for one analysis."""
    runs = [(run, tables(analysis, run)) for run in analysis.runs]
    return pages.render("labels", overview=overview(analysis), remarks=pages.remarks("labels", analysis), runs=runs)


def label_parts(analysis: LabelAnalysis) -> Parts:
    """Yield the tables of all runs, and remarks."""
    yield overview(analysis)
    for run in analysis.runs:
        if len(analysis.runs) > 1:
            yield f"\n{run.run}\n"
        yield from tables(analysis, run)
    yield from pages.remarks("labels", analysis)


WORDS: Final = Views(analysis_page, analysis_parts, charts)
LABELS: Final = Views(label_page, label_parts)
