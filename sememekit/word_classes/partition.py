"""Classes, orders and binary trees of words from counts or sememes; deterministic.

Shapes: V words, K sememes, C classes, nnz (word, sememe) pairs."""

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import final

import numpy as np
from numpy.typing import NDArray

from sememekit.sememes.graph import SememeGraph

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def classes_by_frequency(counts: NDArray[np.integer], num_classes: int) -> Integers:
    """Return classes of equal total frequency, (V,): the cumulative frequency of a word, by falling count, decides its class.

    A word with more than 1 / C of all tokens fills a class alone, so there may be fewer than ``num_classes``. Every word counts
    at least once."""
    mass = np.maximum(counts, 1).astype(np.float64)
    order = np.argsort(-mass, kind="stable")
    before = np.concatenate([[0.0], np.cumsum(mass[order])[:-1]]) / mass.sum()
    classes = np.empty(len(counts), dtype=np.int64)
    classes[order] = np.minimum((before * num_classes).astype(np.int64), num_classes - 1)
    return np.unique(classes, return_inverse=True)[1].astype(np.int64)


def classes_by_sememes(graph: SememeGraph, num_classes: int) -> Integers:
    """Return C <= V classes of words that share sememes, (V,): the vocabulary is divided, always the largest part next."""
    line, bounds = _divide(graph, num_classes, smallest=1)
    classes = np.empty(graph.num_words, dtype=np.int64)
    classes[line] = np.repeat(np.arange(num_classes), np.diff(bounds))
    return classes


def sememe_order(graph: SememeGraph, smallest: int = 8) -> Integers:
    """Return (V,) word ids in an order in which neighbours share sememes; parts of ``smallest`` words are not divided."""
    return _divide(graph, graph.num_words, smallest)[0]


def _divide(graph: SememeGraph, num_parts: int, smallest: int) -> tuple[Integers, list[int]]:
    """Principal direction divisive partitioning (Boley 1998): words in order, and the bounds of the parts.

    Each word is a vector over sememes. The words of a part are sorted by projection on the direction of largest variance, and
    divided at the widest gap of the middle half (without variance: in the middle). Ties, such as words with equal sememes, stay
    sorted by id, that is by falling count."""
    vectors = _SememeVectors(graph)
    line = np.arange(graph.num_words, dtype=np.int64)
    parts = [(-graph.num_words, 0, graph.num_words)]
    while len(parts) < num_parts and -parts[0][0] > smallest:
        _, begin, end = heappop(parts)
        projection = vectors.principal_projection(line[begin:end])
        order = np.argsort(projection, kind="stable")
        line[begin:end] = line[begin:end][order]
        middle = begin + _widest_gap(projection[order])
        heappush(parts, (begin - middle, begin, middle))
        heappush(parts, (middle - end, middle, end))
    return line, [0, *sorted(end for _, _, end in parts)]


def _widest_gap(rising: Floats) -> int:
    """Return the cut of n >= 2 rising numbers at the widest gap of the middle half; ties: nearest to the middle."""
    quarter = max(1, len(rising) // 4)
    cuts = np.arange(quarter, len(rising) - quarter + 1)
    gaps = rising[cuts] - rising[cuts - 1]
    widest = cuts[gaps == gaps.max()]
    return int(widest[np.argmin(np.abs(widest - len(rising) / 2))])


class _SememeVectors:
    """A unit vector over sememes for each word, stored sparsely.

    The weight of sememe k for word w is the mean over senses s of w of 1 / |E(s)| for k in E(s), times log(S / |D(k)|), since
    rare sememes say more. Sememes of a single sense are left out, so a word may have the zero vector."""

    def __init__(self, graph: SememeGraph) -> None:
        sense, sememe = graph.edges()
        word = graph.word_of_sense[sense]
        rarity = np.where(graph.senses_per_sememe > 1, np.log(graph.num_senses / graph.senses_per_sememe), 0.0)
        share = rarity[sememe] / (np.diff(graph.sense_offsets)[word] * np.bincount(sense)[sense])
        keys, position = np.unique(word * graph.num_sememes + sememe, return_inverse=True)
        weight = np.bincount(position, weights=share)
        word_of_pair = keys // graph.num_sememes
        norm = np.sqrt(np.bincount(word_of_pair, weights=weight**2, minlength=graph.num_words))
        self.num_sememes = graph.num_sememes
        self.sememe = keys % graph.num_sememes
        self.weight: Floats = weight / np.maximum(norm, 1e-9)[word_of_pair]
        self.offsets = np.concatenate([[0], np.cumsum(np.bincount(word_of_pair, minlength=graph.num_words))])

    def principal_projection(self, words: Integers) -> Floats:
        """Return projections of ``words`` (n,) on the leading direction of their covariance; zeros without variance.

        Power iteration starts from the word farthest from the mean, whose projection is made positive."""
        sizes = self.offsets[words + 1] - self.offsets[words]
        row = np.repeat(np.arange(len(words)), sizes)
        pair = np.arange(len(row)) + np.repeat(self.offsets[words] - (np.cumsum(sizes) - sizes), sizes)
        names, column = np.unique(self.sememe[pair], return_inverse=True)
        weight = self.weight[pair]

        def times(direction: Floats) -> Floats:
            return np.bincount(row, weights=weight * direction[column], minlength=len(words)).astype(np.float64)

        def transposed(x: Floats) -> Floats:
            return np.bincount(column, weights=weight * x[row], minlength=len(names)).astype(np.float64)

        mean = transposed(np.ones(len(words))) / len(words)
        square = np.bincount(row, weights=weight**2, minlength=len(words))
        distance = np.round(square - 2.0 * times(mean) + mean @ mean, 9)
        farthest = int(np.argmax(distance))
        if distance[farthest] <= 0.0:
            return np.zeros(len(words))
        direction = np.bincount(column[row == farthest], weights=weight[row == farthest], minlength=len(names)) - mean
        for _ in range(30):  # power iteration
            projection = times(direction) - mean @ direction
            direction = transposed(projection) - mean * projection.sum()
            direction /= np.sqrt(direction @ direction)
        return np.round(times(direction) - mean @ direction, 9)


@final
@dataclass(frozen=True)
class WordTree:
    """A full binary tree over V words: V - 1 inner nodes, numbered level by level from the root 0, and V leaves.

    Positions are numbers 0 .. 2V - 2: inner node j is j, word w is V - 1 + w."""

    parent: Integers  # (2V - 1,) the parent of each position; 0 for the root
    side: Integers  # (2V - 1,) 0 for a left child, 1 for a right one; 0 for the root
    depth: Integers  # (2V - 1,) steps from the root

    @property
    def num_words(self) -> int:
        return (len(self.parent) + 1) // 2

    def paths(self) -> tuple[Integers, Integers, Integers]:
        """Return the path from each word to the root: offsets (V + 1,), inner nodes and sides (offsets[V],), root last."""
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
    """Return the tree with the shortest mean path under ``counts`` (V,), each at least 1 (Huffman 1952).

    Among equal weights, words come before inner nodes, and words with larger ids first, which keeps the longest path short."""
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
    """Return a tree whose leaves keep the order of ``line`` (V,); nodes divide where ``counts`` (V,) are closest to half."""
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
