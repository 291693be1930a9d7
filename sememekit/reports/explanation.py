"""An explanation of ``sememekit explain`` as a page."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sememekit.analysis.explanations.sememes import ContextSememe
from sememekit.analysis.explanations.words import BLANKS, ChangedSememe, ChangedWord, Explanation, OverlayExplanation
from sememekit.figures import percent
from sememekit.reports import pages

SHOWN: Final = 12
"""Rows of what an overlay changes that are shown; --json has all."""


def explanation_page(explanation: Explanation) -> str:
    """A whole page for one explanation."""
    tables = compared(explanation) if isinstance(explanation, OverlayExplanation) else asked_tables(explanation)
    return pages.render("explanation", explanation=explanation, remarks=remarks(explanation), tables=tables)


class Compared(NamedTuple):
    """A table of what an overlay changes: the last ``numbers`` columns are numbers, and ``left`` rows are not in it."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    numbers: int
    left: int


def compared(explanation: OverlayExplanation) -> list[Compared]:
    """Words, senses and sememes whose annotation an overlay changes, as trained and with it; the largest changes first."""
    words = [
        (one.after.word, probability(one.before.probability), probability(one.after.probability), *_ranks(one))
        for one in explanation.changed_words
    ]
    order = {one.after.word: number for number, one in enumerate(explanation.changed_words)}
    senses = [
        (
            f"{one.word}#{one.sense}",
            " ".join(one.before),
            " ".join(one.after),
            percent(one.share_before),
            percent(one.share_after),
        )
        for one in sorted(explanation.changes, key=lambda one: order[one.word])
        if one.share_before is not None
    ]
    sememes = [(one.after.name, _level(one.before), _level(one.after), *_ranks(one)) for one in explanation.changed_sememes]
    by = "rise" if any(one.after.mass is not None for one in explanation.changed_sememes) else "gate"
    sides = ("as trained", "with overlay", "rank as trained", "rank with overlay")
    found = [
        ("Probability of changed words", ("next word", *sides), words, 4),
        (
            "Their changed senses",
            ("sense", "sememes as trained", "sememes with overlay", "share as trained", "share with overlay"),
            senses,
            2,
        ),
        (f"Sememes of these senses, ranked by {by}", ("sememe", *sides), sememes, 4),
    ]
    return [
        Compared(title, columns, rows[:SHOWN], numbers, max(0, len(rows) - SHOWN))
        for title, columns, rows, numbers in found
        if rows
    ]


def asked_tables(explanation: Explanation) -> list[Compared]:
    """The senses of the word that was named, in the whole sentence and before it; none where no word was."""
    asked = explanation.asked
    if asked is None:
        return []
    shares = {frozenset(item.name for item in sense.sememes): sense.share for sense in asked.word.senses}
    rows = [
        (str(one.number), " ".join(one.sememes), percent(one.probability), percent(shares[frozenset(one.sememes)]))
        for one in asked.tags
    ]
    place = f"rank {asked.rank:,} of the next words, {probability(asked.word.probability)}"
    title = "; ".join((f"Senses of {asked.word.word}, {place}", *asked.accuracy))
    return [Compared(title, ("sense", "sememes", "whole sentence", "share before it"), rows, 2, 0)]


def probability(value: float) -> str:
    """With three digits, however small: that of one word seldom is a tenth of a per cent."""
    return f"{100 * value:.3g} %"


def _ranks(one: ChangedWord | ChangedSememe) -> tuple[str, str]:
    return f"{one.rank_before:,}", f"{one.rank_after:,}"


def _level(item: ContextSememe) -> str:
    return f"{item.gate:.2f}" if item.mass is None else probability(item.mass)


def remarks(explanation: Explanation) -> list[str]:
    """What a reader must know about how the context was read, a sentence each."""
    lines = []
    if explanation.segmentation != BLANKS:
        lines.append(f"Cut into words by {explanation.segmentation}.")
    changed = [f"{word.word} as {word.read_as}" for word in explanation.context if word.known and word.word != word.read_as]
    if changed:
        lines.append(f"Read {', '.join(dict.fromkeys(changed))}.")
    if explanation.unknown:
        unknown = next(word.read_as for word in explanation.context if not word.known)
        lines.append(f"The model does not know {', '.join(explanation.unknown)} and read {unknown} instead.")
    if explanation.no_senses is not None:
        lines.append(f"No senses: {explanation.no_senses}.")
        return lines
    lines.append("The stroke on the bar of a sense is the even share of the senses of its word.")
    if not all(word.is_told_apart for word in explanation.words):
        lines.append("Grey senses: the context does not tell them apart from what they are without any context.")
    return lines
