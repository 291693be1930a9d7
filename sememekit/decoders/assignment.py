"""Assign words to clusters by falling frequency: Algorithm 1 of Shen et al. 2017."""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_BLOCK: Final = 2048  # words whose scores are processed together


class Assignment(NamedTuple):
    """The assignment that ``assign_greedily`` found."""

    cluster_of: NDArray[np.int64]  # (V,) int64
    orphaned: int  # number of words that went to the least loaded cluster, since no cluster was open


def assign_greedily(
    scores: NDArray[Any],
    frequencies: NDArray[np.float64],
    *,
    largest: float,
    budget: float,
    present: NDArray[np.int64] | None = None,
) -> Assignment:
    """Assign each word, by falling frequency, to the open cluster with its best score.

    A cluster is open while it has fewer than ``largest`` words, and their total frequency is below ``budget``. Both are tested
    before a word is added, as printed; so a very frequent word can enter an empty cluster, and the last word can exceed the
    budget. The paper leaves open, and we decided:

    - words of equal frequency are taken in order of their ids;
    - among clusters of equal score a word stays in its present cluster, or else takes the first;
    - if no cluster is open (with small vocabularies and tight budgets), a word goes to the cluster with the fewest words, then
      with the least frequency, then to the first.

    Args:
        scores: (V, C) q(w, c); finite.
        frequencies: (V,) share of the text of each word, not negative.
        largest: gamma sqrt(V).
        budget: f_b, in the unit of ``frequencies``.
        present: (V,) present clusters of the words, or None."""
    num_words, num_clusters = scores.shape
    cluster_of = np.empty(num_words, dtype=np.int64)
    sizes, loads = [0] * num_clusters, [0.0] * num_clusters
    penalty = np.zeros(num_clusters)  # 0 for an open cluster, -inf for a closed one
    num_open, orphaned = num_clusters, 0
    order = np.argsort(-frequencies, kind="stable")
    for begin in range(0, num_words, _BLOCK):
        block = order[begin : begin + _BLOCK]
        rows = scores[block]
        choices = _best(rows + penalty, None if present is None else present[block]).tolist()
        for number, word in enumerate(block.tolist()):
            choice = choices[number]
            if num_open and penalty[choice]:
                stay = None if present is None else present[block[number : number + 1]]
                choice = int(_best(rows[number : number + 1] + penalty, stay)[0])
            elif not num_open:
                choice = min(range(num_clusters), key=lambda c: (sizes[c], loads[c], c))
                orphaned += 1
            cluster_of[word] = choice
            sizes[choice] += 1
            loads[choice] += float(frequencies[word])
            if not penalty[choice] and not (sizes[choice] < largest and loads[choice] < budget):
                penalty[choice] = -np.inf
                num_open -= 1
    return Assignment(cluster_of, orphaned)


def _best(scores: NDArray[Any], present: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """(n,) the best column of each row; among equals ``present`` (n,), then the first."""
    best = scores.argmax(axis=1)
    if present is None:
        return best
    rows = np.arange(len(scores))
    return np.where(scores[rows, present] == scores[rows, best], present, best)
