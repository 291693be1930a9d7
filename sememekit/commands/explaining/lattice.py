"""What ``explain`` prints of a lattice model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sememekit.commands._printing import print_table, result_console
from sememekit.commands.explaining.words import share_bar
from sememekit.figures import percent

if TYPE_CHECKING:
    from sememekit.analysis.explanations.lattice import EmbeddingsReport, LatticeExplanation


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
