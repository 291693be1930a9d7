"""Binary trees whose leaves are words, from counts or from an order of words; deterministic, without torch."""

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import final

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


@final
@dataclass(frozen=True)
class WordTree:
    """A full binary tree over V words: V - 1 inner nodes, numbered level by level from the root 0, and V leaves.

    Positions are numbers 0 .. 2V - 2: inner node j is j, word w is V - 1 + w.

    Attributes:
        parent: (2V - 1,) the inner node above each position; 0 for the root, which has none.
        side: (2V - 1,) 0 for a left child, 1 for a right one; 0 for the root.
        depth: (2V - 1,) steps from the root.
    """

    parent: Integers
    side: Integers
    depth: Integers

    @property
    def num_words(self) -> int:
        return (len(self.parent) + 1) // 2

    def paths(self) -> tuple[Integers, Integers, Integers]:
        """The path from each word up to the root: offsets (V + 1,), inner nodes and sides (offsets[V],), root last."""
        lengths = self.depth[self.num_words - 1 :]
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        nodes, sides = np.empty(offsets[-1], dtype=np.int64), np.empty(offsets[-1], dtype=np.int64)
        words, place = np.arange(self.num_words), np.arange(self.num_words) + self.num_words - 1
        for step in range(int(lengths.max(initial=0))):
            going = lengths[words] > step
            words, place = words[going], place[going]
            nodes[offsets[words] + step], sides[offsets[words] + step] = self.parent[place], self.side[place]
            place = self.parent[place]
        return offsets, nodes, sides


def huffman_tree(counts: NDArray[np.integer]) -> WordTree:
    """The tree of the shortest mean path under ``counts`` (V,), each taken as 1 at least (Huffman 1952).

    Of equal weights the words come before the nodes made of them, and words by falling id, which keeps the longest path as
    short as possible.
    """
    # (weight, whether it is a node that was made, order among its like, number as in ``_numbered``)
    heap = [(weight, False, -word, -1 - word) for word, weight in enumerate(np.maximum(counts, 1).tolist())]
    heapify(heap)
    made: list[tuple[int, int]] = []
    for number in range(len(counts) - 1):
        (first, *_, left), (second, *_, right) = heappop(heap), heappop(heap)
        made.append((left, right))
        heappush(heap, (first + second, True, number, number))
    return _numbered(made, root=len(counts) - 2, num_words=len(counts))


def balanced_tree(line: NDArray[np.integer], counts: NDArray[np.integer]) -> WordTree:
    """A tree whose leaves keep the order of ``line`` (V,), cut where the mass of ``counts`` (V,) is nearest to half."""
    mass = np.concatenate([[0], np.cumsum(np.maximum(counts, 1)[line])])
    made: list[tuple[int, int]] = []
    waiting = [(0, len(line), -1, 0)]
    while waiting:
        begin, end, above, side = waiting.pop()
        number = len(made) if end - begin > 1 else -1 - int(line[begin])
        if above >= 0:
            made[above] = (number, made[above][1]) if side == 0 else (made[above][0], number)
        if end - begin > 1:
            half = (mass[begin] + mass[end]) / 2
            after = begin + 1 + int(np.searchsorted(mass[begin + 1 : end - 1], half))
            nearer_before = after - 1 > begin and half - mass[after - 1] <= mass[after] - half
            middle = after - 1 if nearer_before else after
            made.append((0, 0))
            waiting += [(begin, middle, number, 0), (middle, end, number, 1)]
    return _numbered(made, root=0, num_words=len(line))


def _numbered(made: list[tuple[int, int]], root: int, num_words: int) -> WordTree:
    """Number the nodes level by level. ``made``: children of each node, a node as its index, word w as -1 - w."""
    places = 2 * num_words - 1
    parent, side, depth = (np.zeros(places, dtype=np.int64) for _ in range(3))
    level, found = [root] if num_words > 1 else [], 0
    next_number = min(1, len(level))
    while level:
        below = []
        for index in level:
            for which, child in enumerate(made[index]):
                if child >= 0:
                    place, next_number = next_number, next_number + 1
                    below.append(child)
                else:
                    place = num_words - 1 + (-1 - child)
                parent[place], side[place], depth[place] = found, which, depth[found] + 1
            found += 1
        level = below
    return WordTree(parent, side, depth)
