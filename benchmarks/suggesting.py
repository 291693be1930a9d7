"""Sememes of held-out words of a lexicon, suggested and compared with their annotation: MAP and F1.

    python benchmarks/suggesting.py [--source FORMAT:PATH] [--words 500] [--vectors RUN|FILE] [--seed 1]

Words of Chinese characters are drawn; with --vectors only words with a vector. The sememes of all senses of a word count;
sememes of fewer than five words are left out, as in Jin et al. 2018. MAP is the mean average precision of the ranking of all
sememes, F1 is over the suggested sememes. Equal scores count as their expectation over all orders. Two baselines: the most
frequent sememes of words of this length, and the sememes of the words with the largest share of common characters (Jaccard).
"then frequency": frequency orders equal scores, as in `lookup --suggest`. Prints one JSON object: scores over all words, by the
number of characters, and with vectors by the place of the word in their order, which is by falling frequency in runs and in
most files."""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sememekit.analysis.suggestions import vectors_at
from sememekit.measure.ties import average_precision
from sememekit.sememes.suggesting import KEPT, Scores, Suggester, sememes_by_word
from sememekit.text.vectors import WordVectors


def measure(num_words: int, source: str, vectors: WordVectors | None, seed: int) -> dict[str, Any]:
    every = sememes_by_word([source], "chinese")
    times = Counter(name for names in every.values() for name in names)
    kept = {word: {name for name in names if times[name] >= 5} for word, names in every.items()}
    kept = {word: names for word, names in kept.items() if names}
    pool = sorted(word for word in kept if all("\u4e00" <= character <= "\u9fff" for character in word))
    pool = [word for word in pool if vectors is None or word in vectors.row_of]
    if len(pool) < num_words:
        raise SystemExit(f"--words {num_words:,}: the lexicon has {len(pool):,} such words; give fewer")
    held = [pool[place] for place in np.random.default_rng(seed).choice(len(pool), num_words, replace=False).tolist()]
    suggester = Suggester(kept, held, vectors)
    number = {name: place for place, name in enumerate(suggester.names)}
    nearest = nearest_words({word: [number[one] for one in names] for word, names in kept.items() if word not in {*held}})
    ways: dict[str, Callable[[str], Scores]] = {
        "frequency": suggester.by_frequency,
        "nearest words, then frequency": lambda word: nearest(word, len(number)),
        "characters (SPWCF)": suggester.by_characters,
        "characters (SPWCF), then frequency": suggester.by_characters,
        "parts": suggester.by_parts,
        "parts, then frequency": suggester.by_parts,
    }
    if vectors is not None:
        ways |= {"neighbours (SPWE)": suggester.by_neighbours, "neighbours (SPWE), then frequency": suggester.by_neighbours}
        ways |= {"ensemble": suggester.ensemble, "ensemble, then frequency": suggester.ensemble}
    values = {}
    for name, way in ways.items():
        rows_of_way = []
        for word in held:
            scores, gold = way(word), [number[one] for one in kept[word]]
            ranking, suggested = scores, scores
            if name.endswith("then frequency"):
                ranking = suggester.ranking(word, scores)
                suggested = scores if scores.any() else suggester.by_frequency(word)
            rows_of_way.append((average_precision(ranking, gold), f1(suggested, gold)))
        values[name] = np.array(rows_of_way)

    def rows(some: NDArray[np.bool_]) -> list[dict[str, Any]]:
        means = ((name, value[some].mean(axis=0)) for name, value in values.items())
        return [{"method": name, "words": int(some.sum()), "map": float(mean[0]), "f1": float(mean[1])} for name, mean in means]

    lengths = np.array([min(4, len(word)) for word in held])
    places = np.array([0 if vectors is None else vectors.row_of[word] for word in held])
    bands = [] if vectors is None else [(0, 1000), (1000, 3000), (3000, len(vectors.words))]
    chosen = {f"{first + 1:,} to {last:,}": (places >= first) & (places < last) for first, last in bands}
    return {
        "sources": [source],
        "num_words": len(kept),
        "num_sememes": len(suggester.names),
        "seed": seed,
        "scores": rows(np.ones(len(held), dtype=np.bool_)),
        "by_length": {f"{size}{'+' if size == 4 else ''}": rows(lengths == size) for size in sorted(set(lengths.tolist()))},
        "by_rank": {name: rows(some) for name, some in chosen.items() if some.any()},
    }


def f1(scores: Scores, gold: Sequence[int]) -> float:
    """F1 of the sememes that are suggested."""
    chosen = np.flatnonzero(scores >= KEPT * scores.max()) if scores.max() > 0.0 else np.zeros(0, dtype=np.int64)
    return 2.0 * len(set(chosen.tolist()) & set(gold)) / (len(chosen) + len(gold))


def nearest_words(sememes_of: Mapping[str, Sequence[int]]) -> Callable[[str, int], Scores]:
    """A function of a word and K: how many of the words with the largest Jaccard index of characters have each sememe."""
    words, holding = [*sememes_of], defaultdict[str, list[int]](list)
    for place, word in enumerate(words):
        for character in {*word}:
            holding[character].append(place)
    sizes = np.array([len({*word}) for word in words])

    def scores(word: str, num_sememes: int) -> Scores:
        own = {*word}
        shared = np.bincount([place for character in own for place in holding[character]], minlength=len(words))
        alike = shared / (sizes + len(own) - shared)
        nearest = np.flatnonzero((alike == alike.max()) & (alike > 0.0)).tolist()
        return np.bincount([one for place in nearest for one in sememes_of[words[place]]], minlength=num_sememes) / 1.0

    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default="open")
    parser.add_argument("--words", type=int, default=500)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    vectors = None if given.vectors is None else vectors_at(given.vectors)
    print(json.dumps(measure(given.words, given.source, vectors, given.seed), ensure_ascii=False))


if __name__ == "__main__":
    main()
