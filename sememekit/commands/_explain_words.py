"""What ``explain`` prints of a model that predicts words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sememekit.commands._render import result_console

if TYPE_CHECKING:
    from rich.table import Table

    from sememekit.analysis.explain import Explanation, SememeGate

BAR_WIDTH = 12


def print_words(explanation: Explanation) -> None:
    """The context as it was read, the next words with senses and sememes, and the largest gates, on stdout."""
    from rich.markup import escape

    from sememekit.reports.explanation import remarks

    console = result_console()
    context = " ".join(escape(word.word) if word.known else f"[red]{escape(word.word)}[/]" for word in explanation.context)
    console.print(f"{context} …", soft_wrap=True)
    for line in remarks(explanation):
        console.print(escape(line), style="dim", soft_wrap=True)
    if explanation.no_senses is not None:
        console.print(_words(explanation))
        return
    console.print(_senses(explanation))
    for title, items in (
        ("largest gates", explanation.sememes),
        ("largest change from an empty context", explanation.raised),
    ):
        table = _table(title, ("sememe", "gate", "", "empty"), right={1, 3})
        for item in items:
            table.add_row(escape(item.name), f"{item.gate:.2f}", _bar(item.gate), f"{item.at_rest:.2f}")
        console.print(table)


def _words(explanation: Explanation) -> Table:
    from rich.markup import escape

    table = _table("", ("next word", "probability", ""), right={1})
    for word in explanation.words:
        table.add_row(escape(word.word), f"{word.probability:.1%}", _bar(word.probability))
    return table


def _senses(explanation: Explanation) -> Table:
    from rich.markup import escape

    table = _table("", ("next word", "probability", "", "share", "sense", "sememes with their gates"), right={1, 3})
    for word in explanation.words:
        cells = [escape(word.word), f"{word.probability:.1%}", _bar(word.probability)]
        for sense in word.senses:
            label = sense.title if word.annotated else "no annotation"
            table.add_row(*cells, f"{sense.share:.0%}", escape(label), escape(_gates(sense.sememes)))
            cells = ["", "", ""]
    return table


def _gates(sememes: tuple[SememeGate, ...]) -> str:
    return "  ".join(f"{item.name} {item.gate:.2f}" for item in sememes)


def _bar(share: float) -> str:
    return "█" * round(share * BAR_WIDTH) or "▏"


def _table(title: str, columns: tuple[str, ...], right: set[int]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index in right else "left", overflow="fold")
    return table
