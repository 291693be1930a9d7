"""Classifiers: the tables of ``sememekit analyze`` and their page, and the page of an explanation of a label."""

from collections.abc import Iterable

from sememekit.analysis.analyze_labels import Group, LabelAnalysis, LabelRun, Moved
from sememekit.analysis.explanations.label import HOW, LabelExplanation
from sememekit.analysis.explanations.label import remarks as explanation_remarks
from sememekit.figures import percent, percent_limits
from sememekit.reports import pages
from sememekit.reports.pages import Table


def overview(analysis: LabelAnalysis) -> Table:
    """Accuracy of each run."""
    rows = []
    for run in analysis.runs:
        found = run.accuracy
        between = percent_limits(found.accuracy_low, found.accuracy_high, 2)
        rows.append((run.run, run.encoder, percent(found.accuracy, 2), between, f"{found.macro_f1:.4f}"))
    title = f"{analysis.split}: {analysis.examples:,} examples"
    return Table(title, ("run", "encoder", "accuracy", "95 % (Wilson)", "macro F1"), tuple(rows), 2)


def tables(analysis: LabelAnalysis, run: LabelRun) -> list[Table]:
    """Confusion, groups of examples, words and sememes of one run."""
    confusion = tuple(
        (label, *(f"{n:,}" for n in row)) for label, row in zip(analysis.labels, run.accuracy.confusion, strict=True)
    )
    found = [
        Table("What an example is (row), and what it was called (column)", ("", *analysis.labels), confusion),
        *([_groups("By words that have sememes", run.by_sememes)] if run.by_sememes else []),
        _groups("By length of the example", run.by_length),
        _moved("Words that move decisions most", "word", run.words, run.rare_words, analysis.at_least),
    ]
    if run.no_sememes is None:
        found.append(_moved("Sememes that move decisions most", "sememe", run.sememes, run.rare_sememes, analysis.at_least))
    return found


def _groups(title: str, groups: Iterable[Group]) -> Table:
    rows = tuple(
        (one.name, f"{one.examples:,}", percent(one.accuracy, 2), percent_limits(one.low, one.high, 2)) for one in groups
    )
    return Table(title, ("examples", "number", "accuracy", "95 % (Wilson)"), rows)


def _moved(title: str, kind: str, items: Iterable[Moved], rare: int, at_least: int) -> Table:
    rows = tuple((one.name, f"{one.times:,}", f"{one.size:.3f}", f"{one.effect:+.3f}") for one in items)
    rarer = f" ({rare:,} that stand there less than {at_least} times are left out)" if rare else ""
    return Table(title + rarer, (kind, "times", "mean size of the effect", "mean effect"), rows)


def remarks(analysis: LabelAnalysis) -> list[str]:
    """What a reader must know, a sentence each."""
    lines = [
        f"Words and sememes were taken away one at a time in {analysis.looked_into:,} of {analysis.examples:,} examples (seed "
        f"{analysis.seed}). An effect is the nats that the log-probability of the chosen label falls by without the word or "
        "the sememe; above 0 it speaks for that label, whether or not the label is right."
    ]
    lines += [f"{run.run}: no sememes: {run.no_sememes}." for run in analysis.runs if run.no_sememes is not None]
    found = analysis.comparison
    if found is not None:
        lines.append(
            f"Both runs label {found.both:,} examples correctly, the first alone {found.first:,}, the second alone "
            f"{found.second:,}, neither {found.neither:,}; McNemar's exact test: p = {found.p:.2g}."
        )
    return lines


def label_page(analysis: LabelAnalysis) -> str:
    """A whole page for one analysis."""
    runs = [(run, tables(analysis, run)) for run in analysis.runs]
    return pages.render("labels", overview=overview(analysis), remarks=remarks(analysis), runs=runs)


def explanation_page(explanation: LabelExplanation) -> str:
    """A whole page: the labels, each text with its words, and the largest gates."""
    effects = [abs(word.effect) for text in explanation.texts for word in text.words if word.effect is not None]
    top = max((abs(item.effect) for item in explanation.sememes), default=0.0)
    shown = {"remarks": explanation_remarks(explanation), "largest": max(effects, default=0.0), "top": top, "how": HOW}
    return pages.render("label_explanation", explanation=explanation, **shown)
