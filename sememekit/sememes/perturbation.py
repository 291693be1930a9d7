"""Removing annotations at random: how much does a model lean on a complete lexicon? (Sec. 4.1, Gu et al. 2018: 10 %)"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sememekit.sememes.special_tokens import UNKNOWN
from sememekit.sememes.word_entry import SenseEntry, Source, WordEntry


def drop_annotation_edges(entries: Sequence[WordEntry], rate: float, seed: int) -> tuple[list[WordEntry], str]:
    """Remove ``round(rate * edges)`` annotations, chosen without replacement, every one alike.

    An edge is a pair of a sense and a sememe, of a word that a lexicon knows. What rules give to special tokens and
    punctuation is kept whole, and so is the sense of words without annotation. A sense that loses all its sememes goes if
    its word keeps another; otherwise the word counts as not annotated, with the one sense {``<unk>``}. Senses of a word
    that have become equal are merged, so the edges of the new graph can fall by more than the edges removed. Labels stay.

    Args:
        rate: between 0 and 1.
        seed: the same seed and graph drop the same edges.

    Returns:
        The entries and a line that says what happened, for the history of the graph.
    """
    edges = [
        (word, sense, sememe)
        for word, entry in enumerate(entries)
        if entry.is_from_lexicon
        for sense, kept in enumerate(entry.senses)
        for sememe in kept.sememes
    ]
    num_dropped = round(rate * len(edges))
    chosen = np.random.default_rng(seed).permutation(len(edges))[:num_dropped]
    dropped = {edges[index] for index in chosen.tolist()}
    result: list[WordEntry] = []
    lost_senses = merged_senses = lost_words = 0
    for word, entry in enumerate(entries):
        if not entry.is_from_lexicon:
            result.append(entry)
            continue
        remaining: dict[tuple[str, ...], SenseEntry] = {}
        for sense, old in enumerate(entry.senses):
            sememes = tuple(name for name in old.sememes if (word, sense, name) not in dropped)
            if not sememes:
                lost_senses += 1
            elif sememes in remaining:
                merged_senses += 1
            else:
                remaining[sememes] = SenseEntry(sememes, old.label)
        if remaining:
            result.append(WordEntry(entry.word, entry.source, tuple(remaining.values())))
        else:
            lost_words += 1
            result.append(WordEntry(entry.word, Source.NONE, (SenseEntry((UNKNOWN,), UNKNOWN),)))
    record = (
        f"drop_edges(rate={rate}, seed={seed}): {num_dropped} of {len(edges)} annotations removed; {lost_senses} senses "
        f"without any left, {merged_senses} merged with an equal one, {lost_words} words left without annotation"
    )
    return result, record
