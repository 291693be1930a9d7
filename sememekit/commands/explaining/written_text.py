"""What ``explain`` prints of a model of headlines or dialogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sememekit.commands._printing import print_table, result_console
from sememekit.commands.explaining.words import print_compared, sememe_shares
from sememekit.figures import percent

if TYPE_CHECKING:
    from sememekit.analysis.explanations.written_text import WritingExplanation


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
