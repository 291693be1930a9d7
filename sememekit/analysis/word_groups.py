"""Nats by target word, and the perplexity of kinds of words: Tables 2 and 3 of Gu et al. 2018."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from sememekit.config import Record
from sememekit.measure import Tally
from sememekit.measure.scored import Scored
from sememekit.sememes import SememeGraph

Grouping = Literal["senses", "sememes"]

SEMEME_BINS = ((1, 2), (2, 4), (4, 7), (7, 14))
"""[from, to) of Table 3, Gu et al. 2018, in sememes a sense."""


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

    def groups(self, graph: SememeGraph | None, by: Sequence[Grouping]) -> dict[Grouping, tuple[GroupPerplexity, ...]] | None:
        """The table of each grouping that was asked for, in that order."""
        if graph is None or not by:
            return None
        return {one: tuple(word_groups(graph, one, self.nats, self.counts)) for one in by}


def word_groups(
    graph: SememeGraph, by: Grouping, nats_of: npt.NDArray[np.float64], count_of: npt.NDArray[np.int64]
) -> Iterator[GroupPerplexity]:
    """The rows of Table 2 or 3: see ``word_kinds``."""
    total = int(count_of.sum())
    for name, chosen, of_which in word_kinds(graph, by):
        tally = Tally(float(nats_of[chosen].sum()), int(count_of[chosen].sum()))
        yield GroupPerplexity(
            name=name,
            perplexity=tally.perplexity if tally.count else None,
            nats=tally.nats,
            tokens=tally.count,
            share=tally.count / total,
            of_which=of_which,
        )


def word_kinds(graph: SememeGraph, by: Grouping) -> Iterator[tuple[str, npt.NDArray[np.bool_], bool]]:
    """The kinds of words of Table 2 or 3: annotated words by bin, those without annotation, and which of the bins rules gave.

    Yields:
        the name of a kind, (V,) which words are of it, and whether other kinds hold them, too.
    """
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
