"""What ``explain`` prints of a classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sememekit.commands._printing import print_table, result_console
from sememekit.figures import percent

if TYPE_CHECKING:
    from sememekit.analysis.explanations.label import LabelExplanation


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
