"""Binary trees of words: whole, in order, and short."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sememekit.word_classes.partition import WordTree, balanced_tree, huffman_tree

COUNTS = st.lists(st.integers(0, 200), min_size=2, max_size=40).map(np.array)


def ways(tree: WordTree) -> list[tuple[tuple[int, int], ...]]:
    """(node, side) from the root down to each word."""
    offsets, nodes, sides = tree.paths()
    both = list(zip(nodes.tolist(), sides.tolist(), strict=True))
    return [tuple(reversed(both[offsets[word] : offsets[word + 1]])) for word in range(tree.num_words)]


def check_whole(tree: WordTree, size: int) -> None:
    """Each inner node has one child on either side, each word its own way, and nodes are numbered level by level."""
    assert tree.num_words == size
    children = [(int(above), int(side)) for above, side in zip(tree.parent[1:], tree.side[1:], strict=True)]
    assert sorted(children) == [(node, side) for node in range(size - 1) for side in (0, 1)]
    assert (np.diff(tree.depth[: size - 1]) >= 0).all()
    turns = [tuple(side for _, side in way) for way in ways(tree)]
    assert sum(2.0 ** -len(way) for way in turns) == pytest.approx(1.0)
    assert len(set(turns)) == size
    assert all(way[0][0] == 0 for way in ways(tree))


def least_cost(counts: np.ndarray) -> int:
    """The cost of Huffman's tree, by the heap of the textbook."""
    heap, cost = np.maximum(counts, 1).tolist(), 0
    heapq.heapify(heap)
    while len(heap) > 1:
        total = heapq.heappop(heap) + heapq.heappop(heap)
        cost += total
        heapq.heappush(heap, total)
    return cost


@given(COUNTS)
def test_huffmans_tree_is_whole_and_the_shortest(counts: np.ndarray) -> None:
    tree = huffman_tree(counts)
    check_whole(tree, len(counts))
    lengths = tree.depth[len(counts) - 1 :]
    assert int((lengths * np.maximum(counts, 1)).sum()) == least_cost(counts)


@given(COUNTS, st.integers(0, 1000))
def test_a_balanced_tree_keeps_the_line(counts: np.ndarray, seed: int) -> None:
    line = np.random.default_rng(seed).permutation(len(counts))
    tree = balanced_tree(line, counts)
    check_whole(tree, len(counts))
    turns = [tuple(side for _, side in way) for way in ways(tree)]
    assert sorted(range(len(counts)), key=lambda word: turns[word]) == line.tolist()


def test_a_balanced_tree_cuts_nearest_to_half() -> None:
    tree = balanced_tree(np.array([2, 0, 1, 3]), np.array([1, 1, 8, 1]))
    assert tree.depth[3:].tolist() == [2, 3, 1, 3]
    even = balanced_tree(np.arange(8), np.ones(8, dtype=np.int64))
    assert even.depth[7:].tolist() == [3] * 8


def test_one_word_has_no_way() -> None:
    for tree in (huffman_tree(np.array([5])), balanced_tree(np.array([0]), np.array([5]))):
        assert (tree.num_words, tree.parent.tolist(), tree.paths()[0].tolist()) == (1, [0], [0, 0])
