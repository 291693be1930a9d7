"""What ``explain`` prints of a model that predicts words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sememekit.commands._printing import result_console
from sememekit.figures import percent

if TYPE_CHECKING:
    from rich.table import Table

    from sememekit.analysis.explanations.sememes import ContextSememe
    from sememekit.analysis.explanations.words import Explanation
    from sememekit.reports.explanation import Compared

BAR_WIDTH = 12


def print_words(explanation: Explanation) -> None:
    """The context as it was read, what an overlay changes, the next words with senses and sememes, and the largest gates, on
    stdout."""
    from rich.markup import escape

    from sememekit.analysis.explanations.words import OverlayExplanation
    from sememekit.reports.explanation import compared, remarks

    console = result_console()
    context = " ".join(escape(word.word) if word.known else f"[red]{escape(word.word)}[/]" for word in explanation.context)
    console.print(f"{context} …", soft_wrap=True)
    for line in remarks(explanation):
        console.print(escape(line), style="dim", soft_wrap=True)
    if isinstance(explanation, OverlayExplanation):
        print_compared(compared(explanation))
        console.print(f"with {escape(explanation.overlay)}:", soft_wrap=True)
    _print_asked(explanation)
    if explanation.no_senses is not None:
        console.print(_words(explanation))
        return
    console.print(_senses(explanation))
    if explanation.expected:
        console.print(_expected(explanation))
        said = "probability: that the next word has the sememe; mean:"
        grey = f"grey: fewer than {explanation.min_count} running words have the sememe"
        console.print(f"{said} {explanation.mean}; {grey}", style="dim", soft_wrap=True)
    for title, items in (
        ("largest gates (Table 5 of Gu et al. 2018)", explanation.sememes),
        ("largest change of a gate from an empty context", explanation.raised),
    ):
        table = _table(title, ("sememe", "gate", "", "empty", "running words"), right={1, 3, 4})
        for item in items:
            cells = (escape(item.name), f"{item.gate:.2f}", share_bar(item.gate), f"{item.at_rest:.2f}", _count(item))
            table.add_row(*cells, style=_style(item, explanation.min_count))
        console.print(table)


def print_compared(tables: Sequence[Compared]) -> None:
    """What an overlay changes, a table each."""
    from rich.markup import escape

    console = result_console()
    for title, columns, rows, numbers, left in tables:
        table = _table(title, columns, right=set(range(len(columns) - numbers, len(columns))))
        for row in rows:
            table.add_row(*map(escape, row))
        console.print(table)
        if left:
            console.print(f"{left:,} more have smaller changes: --json has them all", style="dim", soft_wrap=True)


def _expected(explanation: Explanation) -> Table:
    from rich.markup import escape

    columns = ("sememe", "probability", "", "mean", "rise", "lift", "running words")
    table = _table("sememes that this context makes more probable, by their rise", columns, right={1, 3, 4, 5, 6})
    for item in explanation.expected:
        assert item.mass is not None
        assert item.mean is not None
        assert item.rise is not None
        cells = (
            percent(item.mass),
            share_bar(item.mass),
            percent(item.mean, 2),
            percent(item.rise, sign="+"),
            "–" if item.lift is None else f"{item.lift:,.1f}",
            _count(item),
        )
        table.add_row(escape(item.name), *cells, style=_style(item, explanation.min_count))
    return table


def _style(item: ContextSememe, min_count: int) -> str:
    from sememekit.analysis.explanations.sememes import is_rare

    return "bright_black" if is_rare(item, min_count) else ""


def _count(item: ContextSememe) -> str:
    return "–" if item.count is None else f"{item.count:,}"


def _words(explanation: Explanation) -> Table:
    from rich.markup import escape

    table = _table("", ("next word", "probability", ""), right={1})
    for word in explanation.words:
        table.add_row(escape(word.word), percent(word.probability), share_bar(word.probability))
    return table


def _senses(explanation: Explanation) -> Table:
    from rich.markup import escape

    columns = ("next word", "probability", "", "share", "", "sense", "sememes with their probability here")
    table = _table("", columns, right={1, 3})
    for word in explanation.words:
        cells = [escape(word.word), percent(word.probability), share_bar(word.probability)]
        for sense in word.senses:
            label = sense.title if word.annotated else "no annotation"
            own = (share_bar(sense.share, 1 / len(word.senses)), escape(label), escape(sememe_shares(sense.sememes)))
            table.add_row(*cells, percent(sense.share, 0), *own, style="" if word.is_told_apart else "bright_black")
            cells = ["", "", ""]
    return table


def sememe_shares(sememes: tuple[ContextSememe, ...]) -> str:
    """Names with their masses, or with their gates where there are none."""
    return "  ".join(
        f"{item.name} {item.gate:.2f}" if item.mass is None else f"{item.name} {percent(item.mass)}" for item in sememes
    )


def _print_asked(explanation: Explanation) -> None:
    """The word that was named, with its senses in the whole sentence."""
    from sememekit.commands._printing import print_table, say

    asked = explanation.asked
    if asked is None:
        return
    rank = f"{asked.rank:,} of the words that may come next, {percent(asked.word.probability, 2)}"
    say(f"{asked.word.word} {' '.join(asked.right)}: rank {rank}")
    if asked.tags:
        shares = {frozenset(item.name for item in sense.sememes): sense.share for sense in asked.word.senses}
        rows = [
            (one.number, " ".join(one.sememes), percent(one.probability), percent(shares[frozenset(one.sememes)]))
            for one in asked.tags
        ]
        print_table(f"Senses of {asked.word.word} here", ("sense", "sememes", "whole sentence", "share before it"), rows)
        for line in asked.accuracy:
            say(line)


def share_bar(share: float, tick: float | None = None) -> str:
    """A share as a bar of at most ``BAR_WIDTH`` signs, one at least, with a stroke at ``tick`` where one is given."""
    bar = "█" * round(share * BAR_WIDTH) or "▏"
    if tick is None:
        return bar
    place = min(round(tick * BAR_WIDTH), BAR_WIDTH - 1)
    return f"{bar[:place].ljust(place)}│{bar[place + 1 :]}"


def _table(title: str, columns: tuple[str, ...], right: set[int]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index in right else "left", overflow="fold")
    return table
