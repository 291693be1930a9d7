"""Nats by target word, and the perplexity of kinds of words: by senses, sememes (Tables 2 and 3, Gu et al. 2018) or count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from sememekit.config import Record
from sememekit.errors import GraphError
from sememekit.measure import Tally
from sememekit.measure.scored import Scored
from sememekit.sememes import SememeGraph

Grouping = Literal["senses", "sememes", "frequency", "sememes-at-frequency"]

SEMEME_BINS: Final = ((1, 2), (2, 4), (4, 7), (7, 14))
"""[from, to) of Table 3, Gu et al. 2018, in sememes a sense."""

COUNT_BANDS: Final = (1, 10, 100, 1000, 10000)
"""Bounds of the bands of counts in the training text."""

Mask = npt.NDArray[np.bool_]


class GroupPerplexity(Record):
    """Perplexity of the target words of one kind: exp of the mean nats over those targets alone.

    Attributes:
        perplexity: None where no target is of this kind.
        share: tokens of all predicted tokens, 0 to 1.
        of_which: whether these targets are counted in another row, too; the other rows together are the whole text.
    """

    name: str
    perplexity: float | None
    nats: float
    tokens: int
    share: float
    of_which: bool = False


class WordNats:
    """What predictions of each word cost together: nats (V,) and how many they were (V,), and nats of each term of the loss."""

    def __init__(self, num_words: int) -> None:
        self.nats = np.zeros(num_words)
        self.counts = np.zeros(num_words, dtype=np.int64)
        self._parts: dict[str, float] = {}

    def add(self, scored: Scored) -> None:
        """Count a chunk of scored text."""
        targets = scored.targets[scored.mask].cpu().numpy()
        self.nats += np.bincount(targets, scored.nats[scored.mask].double().cpu().numpy(), minlength=len(self.nats))
        self.counts += np.bincount(targets, minlength=len(self.nats))
        for name, part in scored.parts.items():
            self._parts[name] = self._parts.get(name, 0.0) + float(part[scored.mask].double().sum())

    @property
    def total(self) -> Tally:
        return Tally(float(self.nats.sum()), int(self.counts.sum()))

    def parts(self) -> dict[str, float] | None:
        """The perplexity of each term of the loss, or None where it has none."""
        return {name: Tally(nats, self.total.count).perplexity for name, nats in self._parts.items()} or None

    def groups(
        self, by: Sequence[Grouping], trained: npt.NDArray[np.int64], graph: SememeGraph | None
    ) -> dict[Grouping, tuple[GroupPerplexity, ...]] | None:
        """The table of each grouping that was asked for, in that order; arguments as ``word_kinds`` has them."""
        return {one: tuple(self._table(one, trained, graph)) for one in by} or None

    def _table(self, by: Grouping, trained: npt.NDArray[np.int64], graph: SememeGraph | None) -> Iterator[GroupPerplexity]:
        total = int(self.counts.sum())
        for name, chosen, of_which in word_kinds(by, trained, graph):
            tally = Tally(float(self.nats[chosen].sum()), int(self.counts[chosen].sum()))
            yield GroupPerplexity(
                name=name,
                perplexity=tally.perplexity if tally.count else None,
                nats=tally.nats,
                tokens=tally.count,
                share=tally.count / total,
                of_which=of_which,
            )


def band_names() -> tuple[str, ...]:
    """Name the bands of counts, from the rarest: "never", "1 to 9", "10 to 99", ..., "10,000 or more"."""
    middle = [f"{low:,} to {high - 1:,}" for low, high in pairwise(COUNT_BANDS)]
    return ("never", *middle, f"{COUNT_BANDS[-1]:,} or more")


def reads_graph(by: Grouping) -> bool:
    """Whether a sememe graph is needed to sort words like this."""
    return by != "frequency"


def reads_counts(by: Grouping) -> bool:
    """Whether words are sorted by their training counts."""
    return by in ("frequency", "sememes-at-frequency")


def word_kinds(by: Grouping, trained: npt.NDArray[np.int64], graph: SememeGraph | None) -> Iterator[tuple[str, Mask, bool]]:
    """The kinds of words of a grouping, none of them empty by ``frequency`` and ``sememes-at-frequency``.

    By ``senses`` and ``sememes``: annotated words by bin (Tables 2 and 3), those without annotation, and which of the bins
    rules gave. By ``frequency``: words whose counts are alike. By ``sememes-at-frequency``: Table 3 within each of these
    bands, since words with more sememes are rarer, and a model may help them for that.

    Args:
        by: the grouping.
        trained: (V,) counts of the words in the training text.
        graph: the sememes of the words; None is enough where ``reads_graph`` says so.

    Yields:
        the name of a kind, (V,) which words are of it, and whether other kinds hold them, too.

    Raises:
        GraphError: no graph where one is needed.
    """
    if not reads_graph(by):
        yield from ((name, words, False) for name, words in _bands(trained))
        return
    if graph is None:
        raise GraphError(f"words cannot be sorted by {by} without a sememe graph; give one with --graph FILE")
    if by == "sememes-at-frequency":
        kinds = [(name, words) for name, words, of_which in _annotated(graph, "sememes") if not of_which]
        for band, like in _bands(trained):
            yield from ((f"{band}: {name}", words & like, False) for name, words in kinds if (words & like).any())
        return
    yield from _annotated(graph, by)


def _bands(trained: npt.NDArray[np.int64]) -> Iterator[tuple[str, Mask]]:
    band = np.digitize(trained, COUNT_BANDS)
    yield from ((name, band == number) for number, name in enumerate(band_names()) if (band == number).any())


def _annotated(graph: SememeGraph, by: Grouping) -> Iterator[tuple[str, Mask, bool]]:
    annotated, num_senses = graph.annotated, np.diff(graph.sense_offsets)
    if by == "senses":
        yield "one sense", annotated & (num_senses == 1), False
        yield "several senses", annotated & (num_senses > 1), False
    else:
        sizes = np.diff(graph.set_offsets)[graph.sense_set]
        mean_sememes = np.add.reduceat(sizes, graph.sense_offsets[:-1]) / num_senses
        for low, high in SEMEME_BINS:
            yield f"[{low}, {high}) sememes", annotated & (mean_sememes >= low) & (mean_sememes < high), False
        beyond = annotated & (mean_sememes >= SEMEME_BINS[-1][1])
        if beyond.any():
            yield f"{SEMEME_BINS[-1][1]} sememes or more", beyond, False
    yield "no annotation", ~annotated, False
    by_rule = np.array([entry.is_annotated and not entry.is_from_lexicon for entry in graph.entries()], dtype=np.bool_)
    yield "special tokens and punctuation by rule (counted above)", by_rule, True
