"""Tables of ``explain`` for word models, lattice models, classifiers, and headlines or dialogue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from sememekit.commands._options import option
from sememekit.commands._page_and_figure import Result, check_outputs, give_out
from sememekit.commands._printing import print_table, result_console, say
from sememekit.commands._progress import progress_bars
from sememekit.figures import percent

if TYPE_CHECKING:
    from sememekit.analysis.explanations.evaluation import ExplanationScores
    from sememekit.analysis.explanations.label import LabelExplanation
    from sememekit.analysis.explanations.lattice import EmbeddingsReport, LatticeExplanation
    from sememekit.analysis.explanations.sememes import ContextSememe
    from sememekit.analysis.explanations.words import Explanation
    from sememekit.analysis.explanations.written_text import WritingExplanation
    from sememekit.reports.explanation import Compared

BAR_WIDTH = 12

Tops = Annotated[
    list[int] | None,
    option("--top", "k: score the top k sememes of each ranking; may be repeated.", min=1, show_default="1, 5 and 10"),
]
Contexts = Annotated[int | None, option("--contexts", "Sample whole sentences up to N positions. Default: all.", min=1)]


def print_words(explanation: Explanation) -> None:
    """The context as it was read, what an overlay changes, the next words with senses and sememes, and the largest gates, on
    stdout."""
    from rich.markup import escape

    from sememekit.analysis.explanations.words import OverlayExplanation
    from sememekit.reports.explanation import asked_tables, compared, remarks

    console = result_console()
    context = " ".join(escape(word.word) if word.known else f"[red]{escape(word.word)}[/]" for word in explanation.context)
    console.print(f"{context} …", soft_wrap=True)
    for line in remarks(explanation):
        console.print(escape(line), style="dim", soft_wrap=True)
    if isinstance(explanation, OverlayExplanation):
        print_compared(compared(explanation))
        console.print(f"with {escape(explanation.overlay)}:", soft_wrap=True)
    print_compared(asked_tables(explanation))
    if explanation.no_senses is not None:
        words = [(word.word, percent(word.probability), share_bar(word.probability)) for word in explanation.words]
        print_table("", ("next word", "probability", ""), words, numeric={1})
        return
    with_senses = ("next word", "probability", "", "share", "", "sense", "sememes with their probability here")
    apart = [word.is_told_apart for word in explanation.words for _ in word.senses]
    faint = {number for number, told in enumerate(apart) if not told}
    print_table("", with_senses, _senses(explanation), {1, 3}, faint)
    if explanation.expected:
        columns = ("sememe", "probability", "", "mean", "rise", "lift", "running words")
        rows = [_expected(item) for item in explanation.expected]
        faint = _rare(explanation.expected, explanation.min_count)
        print_table("sememes that this context makes more probable, by their rise", columns, rows, {1, 3, 4, 5, 6}, faint)
        said = "probability: that the next word has the sememe; mean:"
        grey = f"grey: fewer than {explanation.min_count} running words have the sememe"
        console.print(f"{said} {explanation.mean}; {grey}", style="dim", soft_wrap=True)
    for title, items in (
        ("largest gates (Table 5 of Gu et al. 2018)", explanation.sememes),
        ("largest change of a gate from an empty context", explanation.raised),
    ):
        gates = [(item.name, f"{item.gate:.2f}", share_bar(item.gate), f"{item.at_rest:.2f}", item.count) for item in items]
        faint = _rare(items, explanation.min_count)
        print_table(title, ("sememe", "gate", "", "empty", "running words"), gates, {1, 3, 4}, faint)


def print_compared(tables: Sequence[Compared]) -> None:
    """Print the changes of an overlay, one table each."""
    for title, columns, rows, numbers, left in tables:
        print_table(title, columns, rows, numeric=len(columns) - numbers)
        if left:
            more = f"{left:,} more have smaller changes: --json has them all"
            result_console().print(more, style="dim", soft_wrap=True)


def _expected(item: ContextSememe) -> tuple[object, ...]:
    assert item.mass is not None
    lift = None if item.lift is None else f"{item.lift:,.1f}"
    told = (percent(item.mass), share_bar(item.mass), percent(item.mean, 2), percent(item.rise, sign="+"))
    return item.name, *told, lift, item.count


def _rare(items: Sequence[ContextSememe], min_count: int) -> set[int]:
    from sememekit.analysis.explanations.sememes import is_rare

    return {number for number, item in enumerate(items) if is_rare(item, min_count)}


def _senses(explanation: Explanation) -> Iterator[tuple[str, ...]]:
    for word in explanation.words:
        cells = (word.word, percent(word.probability), share_bar(word.probability))
        for sense in word.senses:
            label = sense.title if word.annotated else "no annotation"
            bar = share_bar(sense.share, 1 / len(word.senses))
            yield (*cells, percent(sense.share, 0), bar, label, sememe_shares(sense.sememes))
            cells = ("", "", "")


def sememe_shares(sememes: tuple[ContextSememe, ...]) -> str:
    """Names with their masses, or with their gates where there are none."""
    return "  ".join(
        f"{item.name} {item.gate:.2f}" if item.mass is None else f"{item.name} {percent(item.mass)}" for item in sememes
    )


def share_bar(share: float, tick: float | None = None) -> str:
    """A share as a bar of at most ``BAR_WIDTH`` signs, one at least, with a stroke at ``tick`` where one is given."""
    bar = "█" * round(share * BAR_WIDTH) or "▏"
    if tick is None:
        return bar
    place = min(round(tick * BAR_WIDTH), BAR_WIDTH - 1)
    return f"{bar[:place].ljust(place)}│{bar[place + 1 :]}"


def print_text(explanation: WritingExplanation) -> None:
    """The source, what an overlay changes, what was written for the source, and why, on stdout."""
    from rich.markup import escape

    from sememekit.analysis.explanations.written_text import OverlayWriting, remarks
    from sememekit.reports.written_explanation import compared

    console = result_console()
    source = " ".join(f"[red]{escape(word)}[/]" if word in explanation.unknown else escape(word) for word in explanation.source)
    console.print(source, soft_wrap=True)
    if isinstance(explanation, OverlayWriting):
        console.print(f"as trained → {escape(' '.join(word.word for word in explanation.before.words))}", soft_wrap=True)
        print_compared(compared(explanation))
        console.print(f"with {escape(explanation.overlay)}:", soft_wrap=True)
    console.print(f"→ {escape(' '.join(word.word for word in explanation.words))}", soft_wrap=True)
    for line in remarks(explanation):
        console.print(escape(line), style="dim", soft_wrap=True)
    has_sememes, rows = explanation.no_senses is None, []
    for word in explanation.words:
        place = word.attention.index(max(word.attention))
        cells = [word.word, f"{explanation.source[place]} {word.attention[place]:.2f}"]
        if has_sememes:
            cells += [sememe_shares(word.expected), "  ".join(f"{item.name} {item.gate:.2f}" for item in word.sememes)]
        rows.append((*cells, percent(word.probability)))
    sememes = ["sememes made more probable", "largest gates"] if has_sememes else []
    columns = ["word", "most attended", *sememes, "probability"]
    print_table("", columns, rows, numeric=len(columns) - 1)
    if explanation.mean is not None:
        console.print(
            f"sememes by the rise of their probability above its mean ({explanation.mean})", style="dim", soft_wrap=True
        )


def print_label(explanation: LabelExplanation) -> None:
    """Labels, words and sememes of an example, on stdout."""
    from rich.markup import escape

    from sememekit.analysis.explanations.label import HOW, remarks

    console = result_console()
    for line in remarks(explanation):
        console.print(escape(line), style="dim", soft_wrap=True)
    print_table("", ("label", "probability"), [(name, percent(value)) for name, value in explanation.labels.items()])
    for text in explanation.texts:
        reads = explanation.no_sememes is None
        rows: list[tuple[str, ...]] = []
        for word in text.words:
            if word.effect is None or word.gradient is None:
                rows.append((word.word, *(("", "") if reads else ()), "left out", ""))
                continue
            without = "" if word.without_sememes is None else f"{word.without_sememes:+.3f}"
            sememes = "  ".join(f"{item.name} {item.effect:+.3f}" for item in word.sememes)
            rows.append((word.word, *((sememes, without) if reads else ()), f"{word.effect:+.3f}", f"{word.gradient:+.3f}"))
        columns = ("word", *(("sememes with their effects", "without them") if reads else ()), "effect", "gradient")
        print_table(f"{text.name}, effects on {explanation.label}", columns, rows, numeric=2 if reads else 1)
    if explanation.sememes:
        strong = [
            (item.name, item.word, f"{item.text} {item.place}", f"{item.effect:+.3f}", f"{item.gradient:+.3f}")
            for item in explanation.sememes
        ]
        print_table("sememes that moved it most", ("sememe", "of", "word of", "effect", "gradient"), strong, numeric=3)
    console.print(escape(HOW), style="dim", soft_wrap=True)


def print_lattice(explanation: LatticeExplanation) -> None:
    """Words of each sentence, and its edges with their posteriors."""
    from rich.markup import escape

    console = result_console()
    for sentence in explanation.sentences:
        console.print(f"most probable path:  {escape(' '.join(sentence.viterbi))}", soft_wrap=True)
        console.print(f"each place by itself: {escape(' '.join(sentence.posterior))}", soft_wrap=True)
        unknown = list(dict.fromkeys(token.text for token in sentence.tokens if not token.known))
        if unknown:
            console.print(f"not in the vocabulary: {escape(' '.join(unknown))}", style="dim", soft_wrap=True)
        columns = ("tokens", "chunk", *(("embedding",) if explanation.copies > 1 else ()), "posterior", "", "")
        rows = []
        for edge in sentence.edges:
            marks = [*(["best"] if edge.best else []), *([] if edge.listed else ["unlisted"])]
            number = (edge.copy_number,) if explanation.copies > 1 else ()
            tokens, bar = f"{edge.begin + 1}-{edge.end}", share_bar(edge.probability)
            rows.append((tokens, edge.text, *number, percent(edge.probability), bar, ", ".join(marks)))
        print_table(f"{sentence.nats:.2f} nats, {explanation.marginal}", columns, rows, numeric=len(columns))


def print_embeddings(report: EmbeddingsReport) -> None:
    """The contexts in which each embedding of a word wins."""
    for word in report.words:
        rows = []
        for use in word.embeddings:
            sense = f", {use.sense}" if use.sense else ""
            name = f"{word.word} {use.number}: wins {use.wins:,}, mean {percent(use.mean, 0)}{sense}"
            for context in use.contexts or (None,):
                line = "nowhere" if context is None else f"… {context.before} [{word.word}] {context.after} …"
                rows.append((name, line, "" if context is None else percent(context.probability, 0)))
                name = ""
        title = f"{word.word}: {word.occurrences:,} times in {report.split}"
        print_table(title, ("embedding", "context", "posterior"), rows, numeric=2)


def score_explanations(
    run: Path,
    split: str,
    data: Path | None,
    html: Path | None,
    figure: Path | None,
    tops: list[int] | None,
    mean: str,
    contexts: int | None,
    seed: int,
    which: Any,
    device: str,
    json: bool,
    quiet: bool,
) -> None:
    """``eval RUN --explanations``; the plain function is in ``sememekit.analysis.explanations.evaluation``."""
    from sememekit.analysis.explanations.evaluation import TOPS, evaluate_explanations
    from sememekit.reports.explanation_scores import charts, scores_page

    check_outputs(html, figure)
    options: dict[str, Any] = {"split": split, "mean": mean, "data": data, "contexts": contexts, "seed": seed}
    with progress_bars(quiet) as show:
        report = evaluate_explanations(run, tops=tops or TOPS, device=device, which=which, progress=show, **options)
    give_out(Result(report, scores_page, _print_scores, charts), html, figure, json=json, quiet=quiet)


def _print_scores(report: ExplanationScores) -> None:
    from sememekit.reports.explanation_scores import remarks, tables

    for table in tables(report):
        print_table(table.title, table.columns, table.rows)
    for line in remarks(report):
        say(line)
