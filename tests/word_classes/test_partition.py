"""Words in classes and in a line, from counts or from sememes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sememekit.sememes import SememeGraph
from sememekit.sememes.word_entry import SenseEntry, Source, WordEntry
from sememekit.word_classes.partition import classes_by_frequency, classes_by_sememes, sememe_order
from tests.small import small_graph

TOPICS = {
    "animal": ("cat", "dog", "cow"),
    "fruit": ("pear", "plum", "fig"),
    "metal": ("iron", "gold", "tin"),
    "verb": ("eat", "go", "run"),
}


def graph() -> SememeGraph:
    """Twelve words of four topics, the topics mixed up in the order of ids; a word has its topic's sememe and its own."""
    words = [(topic, names[i]) for i in range(3) for topic, names in TOPICS.items()]
    entries = [WordEntry(word, "test", (SenseEntry(tuple(sorted((topic, word))), word),)) for topic, word in words]
    return SememeGraph(entries, "0" * 16)


def test_words_of_one_topic_are_one_class() -> None:
    classes, words = classes_by_sememes(graph(), 4), graph().words
    found = {tuple(sorted(words[i] for i in np.flatnonzero(classes == number))) for number in range(4)}
    assert found == {tuple(sorted(names)) for names in TOPICS.values()}


def test_words_of_one_topic_are_neighbours() -> None:
    line = [graph().words[i] for i in sememe_order(graph(), smallest=1)]
    for names in TOPICS.values():
        places = sorted(line.index(name) for name in names)
        assert places[-1] - places[0] == 2


@pytest.mark.parametrize("smallest", [1, 3, 8, 100])
def test_the_line_holds_every_word_once_whatever_the_graph(smallest: int) -> None:
    for given_graph in (graph(), small_graph(), small_graph().drop_edges(0.9, seed=2)):
        line = sememe_order(given_graph, smallest)
        assert sorted(line.tolist()) == list(range(given_graph.num_words))
        assert line.tolist() == sememe_order(given_graph, smallest).tolist()


def test_words_with_the_same_sememes_keep_their_order() -> None:
    same = SememeGraph([WordEntry(f"w{i}", Source.NONE, (SenseEntry(("<unk>",), ""),)) for i in range(20)], "0" * 16)
    assert sememe_order(same, smallest=1).tolist() == list(range(20))
    assert classes_by_sememes(same, 4).tolist() == sorted([0, 1, 2, 3] * 5)


def test_equal_mass_by_hand() -> None:
    assert classes_by_frequency(np.array([50, 20, 10, 10, 5, 5]), 2).tolist() == [0, 1, 1, 1, 1, 1]
    assert classes_by_frequency(np.array([50, 20, 10, 10, 5, 5]), 10).tolist() == [0, 1, 2, 3, 4, 4]
    assert classes_by_frequency(np.array([0, 0, 9]), 3).tolist() == [1, 1, 0]


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=60), st.integers(1, 60))
def test_no_class_has_more_than_its_share_but_for_its_last_word(counts: list[int], number: int) -> None:
    mass = np.maximum(counts, 1)
    classes = classes_by_frequency(np.array(counts), number)
    assert sorted(set(classes.tolist())) == list(range(int(classes.max()) + 1))
    assert classes.max() < number
    for one in range(int(classes.max()) + 1):
        members = np.sort(mass[classes == one])
        assert members[1:].sum() <= mass.sum() / number + 1e-6
