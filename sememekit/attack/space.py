"""The space of texts of a search: the words that may change, their substitutes, and the limit of changes.

A point of the space is a row of P small integers, one for each changeable word: 0 for the word itself, k for substitute k."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray

from sememekit.attack.documents import Document, Fields, Word, match_case
from sememekit.measure.attack_rates import SpaceSize

Rows = NDArray[np.int16]  # (N, P) points of a space

BLOCK = 1 << 28
"""Most numbers of the rows of one step: 512 MB."""

_CLOSE = 1e-6  # scores that differ by less count as equal, since rounding depends on the other rows of the batch


@dataclass(frozen=True)
class Space:
    """All texts that an attack may try on one example.

    >>> space = Space.open(Document.read(("a good film",)), {"good": ("fine", "great")})
    >>> [space.text(row) for rows in space.single_changes(space.origin()[0]) for row in rows]
    [('a fine film',), ('a great film',)]"""

    document: Document
    # for each word of the document its substitutes, best first; empty if it may not change
    substitutes: tuple[tuple[str, ...], ...]
    scope: tuple[int, ...]  # numbers of the words that count for length and for the share of changes
    max_changes: int  # words that may differ from the example at once
    refusal: str = ""  # why the example is not attacked at all, or an empty string

    @classmethod
    def open(cls, document: Document, table: Mapping[str, tuple[str, ...]]) -> Space:
        """Return the space with the substitutes of ``table`` for every word, and no limit.

        A missing word is looked up in lower case, and its substitutes get the case of the word."""
        found = tuple(_substitutes(word.text, table) for word in document.words)
        everything = tuple(range(len(found)))
        return cls(document, found, everything, len(found))

    def narrowed(self, **changes: object) -> Space:
        return replace(self, **changes)  # type: ignore[arg-type]

    def filtered(self, may_stand: Callable[[str, str], bool]) -> Space:
        """Return the space with the substitutes that may stand in place of their word."""
        pairs = zip(self.document.words, self.substitutes, strict=True)
        left = (tuple(other for other in found if may_stand(word.text, other)) for word, found in pairs)
        return self.narrowed(substitutes=tuple(left))

    def inside(self, stays: Callable[[Word], bool]) -> Space:
        """Return the space of these words only; other words may not change or count for length and share."""
        kept = [stays(word) for word in self.document.words]
        return self.narrowed(
            substitutes=tuple(found if keep else () for found, keep in zip(self.substitutes, kept, strict=True)),
            scope=tuple(number for number in self.scope if kept[number]),
        )

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """The P words of the document that have substitutes."""
        return tuple(number for number, found in enumerate(self.substitutes) if found)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """(P,) numbers of substitutes of the changeable words."""
        return np.array([len(self.substitutes[number]) for number in self.positions], dtype=np.int64)

    @property
    def num_words(self) -> int:
        """Number of words for the share of changes."""
        return len(self.scope)

    @property
    def most(self) -> int:
        """Most words that can differ at once: the limit, or P if P is smaller."""
        return min(self.max_changes, len(self.positions))

    def origin(self, num: int = 1) -> Rows:
        """Return (num, P) rows of the original text."""
        return np.zeros((num, len(self.positions)), dtype=np.int16)

    def changes(self, row: Rows) -> dict[int, str]:
        """Number of a word -> its substitute, of one row (P,)."""
        changed = np.flatnonzero(row)  # few of the many places of a long text
        pairs = zip((self.positions[place] for place in changed.tolist()), row[changed].tolist(), strict=True)
        return {number: self.substitutes[number][choice - 1] for number, choice in pairs}

    def text(self, row: Rows) -> Fields:
        """The text of one row (P,)."""
        return self.document.replace(self.changes(row))

    def num_points(self) -> int:
        """Rows that differ from the example in 1 to ``max_changes`` words: the elementary symmetric sums of the sizes."""
        sums = [1] + [0] * self.most
        for size in self.sizes.tolist():
            for changed in range(self.most, 0, -1):
                sums[changed] += sums[changed - 1] * size
        return sum(sums[1:])

    def texts_log10(self) -> float | None:
        """log10 of ``num_points``, without its long integers; None for an empty space."""
        if self.most < 1:
            return None
        logs = np.full(self.most + 1, -np.inf)
        logs[0] = 0.0
        for size in self.sizes.tolist():
            logs[1:] = np.logaddexp(logs[1:], logs[:-1] + np.log(size))
        return round(float(np.logaddexp.reduce(logs[1:]) / np.log(10.0)), 4)

    def within_limit(self, rows: Rows, generator: np.random.Generator) -> Rows:
        """Undo random changes of rows that have more than ``max_changes``; one draw for each such row."""
        rows = rows.copy()
        for index in np.flatnonzero((rows > 0).sum(axis=1) > self.max_changes):
            changed = np.flatnonzero(rows[index])
            surplus = generator.permutation(changed)[self.max_changes :]
            rows[index, surplus] = 0
        return rows

    def single_changes(self, row: Rows) -> Iterator[Rows]:
        """Yield the rows that change one more word of ``row`` (P,), by word, then by substitute; none at the limit.

        They come at once, or in blocks of ``BLOCK`` numbers where a long text has more: with N substitutes they are N P."""
        if int((row > 0).sum()) >= self.most:
            return
        free = np.flatnonzero(row == 0)
        where = np.repeat(free, self.sizes[free])
        choices = np.concatenate([np.arange(1, self.sizes[position] + 1) for position in free]) if len(free) else np.zeros(0)
        at_once = max(1, BLOCK // len(row))
        for begin in range(0, len(where), at_once):
            places = where[begin : begin + at_once]
            rows = np.repeat(row[None], len(places), axis=0)
            rows[np.arange(len(places)), places] = choices[begin : begin + at_once]
            yield rows


class Texts(Sequence[Fields]):
    """The texts of the chosen rows, built only when read, since all variants of a long text would fill the memory."""

    def __init__(self, space: Space, rows: Rows, chosen: Sequence[int]) -> None:
        self._space, self._rows, self._chosen = space, rows, chosen

    def __len__(self) -> int:
        return len(self._chosen)

    @overload
    def __getitem__(self, index: int) -> Fields: ...
    @overload
    def __getitem__(self, index: slice) -> list[Fields]: ...
    def __getitem__(self, index: int | slice) -> Fields | list[Fields]:
        if isinstance(index, slice):
            return [self._space.text(self._rows[place]) for place in self._chosen[index]]
        return self._space.text(self._rows[self._chosen[index]])


def size_of(spaces: Sequence[Space]) -> SpaceSize:
    """Return the size of the space: before, and after each of the constraints."""
    whole, space, left = spaces[0], spaces[-1], [sum(map(len, each.substitutes)) for each in spaces]
    words = [number for number in space.scope if any(map(str.isalnum, whole.document.words[number].text))]
    kept = [number for number in words if space.substitutes[number]]
    return SpaceSize(
        words=len(words),
        with_candidates=sum(bool(whole.substitutes[number]) for number in words),
        changeable=len(kept),
        substitutes=sum(len(space.substitutes[number]) for number in kept),
        texts_log10=space.texts_log10(),
        refused=tuple(one - two for one, two in pairwise(left)),
    )


def best_index(scores: NDArray[np.float64]) -> int:
    """Return the first row with the best score, ignoring rounding."""
    return int(np.argmax(scores >= scores.max() - _CLOSE))


def is_better(new: float, old: float) -> bool:
    """Return whether a score beats another by more than rounding."""
    return new > old + _CLOSE


def draw_places(
    rows: Rows, weights: NDArray[np.float64], space: Space, generator: np.random.Generator, *, revisit: bool
) -> NDArray[np.int64]:
    """Draw a place for each row (N,) in proportion to ``weights`` (P,); without ``revisit``, unchanged places come first.

    A row at the limit of changes can only replace a changed word. One uniform number is drawn for each row."""
    changed = rows > 0
    open_places = np.ones_like(changed) if revisit else ~changed
    full = changed.sum(axis=1) >= space.most
    allowed = np.where(full[:, None], changed, open_places)
    mass = np.where(allowed, weights[None], 0.0).cumsum(axis=1)
    points = generator.random(len(rows)) * mass[:, -1]
    return np.minimum((mass <= points[:, None]).sum(axis=1), mass.shape[1] - 1)


def _substitutes(word: str, table: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    exact = table.get(word, ())
    found = exact or tuple(match_case(other, word) for other in table.get(word.lower(), ()))
    return tuple(other for other in dict.fromkeys(found) if other != word)
