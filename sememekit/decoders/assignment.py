"""Words into clusters by falling frequency: Algorithm 1 of Shen et al. 2017."""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_BLOCK: Final = 2048
"""Words whose scores are looked at together."""


class Assignment(NamedTuple):
    """The assignment that ``assign_greedily`` found.

    Attributes:
        cluster_of: (V,) int64.
        orphaned: how many words found no open cluster and went to the least loaded one.
    """

    cluster_of: NDArray[np.int64]
    orphaned: int


def assign_greedily(
    scores: NDArray[Any],
    frequencies: NDArray[np.float64],
    *,
    largest: float,
    budget: float,
    present: NDArray[np.int64] | None = None,
) -> Assignment:
    """Each word, by falling frequency, goes to the open cluster that scores best for it.

    A cluster is open while it has fewer than ``largest`` words and they have less than ``budget`` of the frequency; both are
    tested before a word is added, as printed, so a very frequent word still enters an empty cluster, and a cluster can pass
    the budget by its last word. Open in the paper, and decided here:

    - words of equal frequency go by their id;
    - among clusters of equal score a word stays in its present one, otherwise it takes the first;
    - when no cluster is open any more, which small vocabularies and tight budgets bring about, a word goes to the cluster with
      the fewest words, among equals to the one with the least frequency, then to the first.

    Args:
        scores: (V, C) q(w, c); finite.
        frequencies: (V,) share of the text of each word, not negative.
        largest: gamma sqrt(V).
        budget: f_b, in the unit of ``frequencies``.
        present: (V,) clusters of the words until now, or None.
    """
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
