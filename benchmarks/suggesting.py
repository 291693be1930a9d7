"""Sememes of held-out words of a lexicon, suggested and compared with their annotation: MAP and F1.

    python benchmarks/suggesting.py [--source FORMAT:PATH] [--words 500] [--vectors RUN|FILE] [--seed 1]

Words of Chinese characters are drawn; with --vectors only words with a vector. The sememes of all senses of a word count;
sememes of fewer than five words are left out, as in Jin et al. 2018. MAP is the mean average precision of the ranking of all
sememes, F1 is over the suggested sememes. Prints one JSON object: scores over all words, by the number of characters, and
with vectors by the place of the word in their order, which is by falling frequency in runs and in most files."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sememekit.analysis.suggestions import vectors_at
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
    ways = {"characters (SPWCF)": suggester.by_characters, "parts": suggester.by_parts}
    if vectors is not None:
        ways |= {"neighbours (SPWE)": suggester.by_neighbours, "ensemble": suggester.scores}
    number = {name: place for place, name in enumerate(suggester.names)}
    values = {
        name: np.array([precision_and_f1(way(word), [number[one] for one in kept[word]]) for word in held])
        for name, way in ways.items()
    }

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


def precision_and_f1(scores: Scores, gold: Sequence[int]) -> tuple[float, float]:
    """Average precision of the ranking of all sememes, and F1 of those that are suggested."""
    order = np.argsort(-scores, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    places = np.sort(rank[list(gold)])
    precision = float((np.arange(1, len(places) + 1) / places).mean())
    chosen = np.flatnonzero(scores >= KEPT * scores.max()) if scores.max() > 0.0 else np.zeros(0, dtype=np.int64)
    right = len(set(chosen.tolist()) & set(gold))
    return precision, 2.0 * right / (len(chosen) + len(gold)) if right else 0.0


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
