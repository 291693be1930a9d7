"""The rules of single searches, one by one: what pulls a swarm, who mutates, in which order, how many changes are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sememekit.attack import Document
from sememekit.attack.searches import Beam, Greedy, ParticleSwarm, RandomSearch, Search
from sememekit.attack.space import Rows, Space
from tests.attack.toys import TABLE


def space_of(text: str, most: int | None = None) -> Space:
    space = Space.open(Document.read((text,)), TABLE)
    return space if most is None else space.narrowed(max_changes=most)


def swarm(**settings: Any) -> ParticleSwarm:
    return ParticleSwarm(ParticleSwarm.Settings(**settings))


def test_a_word_that_agrees_is_slowed_and_one_that_differs_is_hurried() -> None:
    """a = -3 where the word agrees with the best and 3 where it does not (Zang et al. 2020, Eq. 3)."""
    search = swarm(speed=3.0)
    rows = np.array([[1, 0, 2], [0, 0, 2]], dtype=np.int16)
    assert search._pull(rows, rows[:1]).tolist() == [[-3.0, -3.0, -3.0], [3.0, -3.0, -3.0]]


def test_a_swarm_gathers_round_what_is_best() -> None:
    """Without inertia and mutation, words that differ from both bests are taken with sigmoid(6): all but surely."""
    space = space_of("good bad", most=1)
    search = swarm(population=40, iterations=4, inertia=(0.0, 0.0), moves=(1.0, 1.0))
    run = search.run(space, 0.0, np.random.default_rng(0))
    asked, gathered = next(run), []
    favourite = np.array([2, 0], dtype=np.int16)

    def score(rows: Rows) -> np.ndarray:
        return np.where((rows == favourite).all(axis=1), 1.0, 0.1 * (rows > 0).sum(axis=1))

    while True:
        if len(asked) == 40:
            gathered.append(float((asked == favourite).all(axis=1).mean()))
        try:
            asked = run.send(score(asked))
        except StopIteration:
            break
    assert gathered[-1] > 0.9


def test_the_swarm_follows_itself_first_and_its_leader_later() -> None:
    """P1 falls from 1 to 0 and P2 rises from 0 to 1. A word that agrees with the particle's best alone is taken with 1/2."""
    space = space_of("good bad", most=1)
    run = swarm(population=600, iterations=2, inertia=(0.0, 0.0), moves=(1.0, 0.0)).run(space, 0.0, np.random.default_rng(0))
    favourite = np.array([2, 0], dtype=np.int16)

    def score(rows: Rows) -> np.ndarray:
        return np.where((rows == favourite).all(axis=1), 1.0, 0.1 * (rows > 0).sum(axis=1))

    first = run.send(score(next(run)))
    others = ~(first == favourite).all(axis=1)
    assert 200 < others.sum() < 400, "P2 = 0: nobody has joined the leader"
    later = run.send(score(first))
    # P2 = 1/2; of four equal ways to take two words one is to keep both, and one is taken back in half of the cases.
    assert (later[others] != first[others]).any(axis=1).mean() == pytest.approx(0.5 * 0.625, abs=0.06)
    assert (later[~others] == favourite).all()


@pytest.mark.parametrize(
    ("text", "expected"), [("good bad", 0.0), ("good bad slow end", 0.5), ("good bad slow end . . . .", 0.75)]
)
def test_the_more_is_changed_the_fewer_mutate(text: str, expected: float) -> None:
    """After one best replacement each, a share r = 1 / words is changed; 1 - 2 r of the particles mutate."""
    space, population = space_of(text), 400
    search = swarm(population=population, iterations=1, moves=(0.0, 0.0))
    run = search.run(space, 0.0, np.random.default_rng(0))
    trials = next(run)
    moved = run.send(np.arange(len(trials), dtype=float) + 1.0)  # any replacement beats the text as it is
    assert moved.shape == (population, len(space.positions))
    assert ((moved > 0).sum(axis=1) == 1).all()
    try:
        mutants = run.send(np.zeros(population))
    except StopIteration:
        mutants = np.zeros((0, moved.shape[1]), dtype=np.int16)
    sizes = np.array([len(TABLE[word]) for word in text.split() if word in TABLE])
    assert len(mutants) / sizes.mean() / population == pytest.approx(expected, abs=0.12)


def test_without_rescan_words_are_changed_by_falling_gain() -> None:
    space = space_of("slow film good end")
    gain = {0: 0.2, 1: 0.1, 2: 0.7, 3: 0.4}

    def score(rows: Rows) -> np.ndarray:
        return np.array([sum(gain[place] for place in np.flatnonzero(row)) for row in rows])

    changed = []
    run = Greedy(Greedy.Settings(rescan=False)).run(space, 0.0, np.random.default_rng(0))
    asked = run.send(score(next(run)))
    while True:
        changed.append(set(np.flatnonzero(asked[0]).tolist()))
        try:
            asked = run.send(score(asked))
        except StopIteration:
            break
    assert changed == [{2}, {2, 3}, {0, 2, 3}, {0, 1, 2, 3}]


def asked_by(search: Search, space: Space, score: Any) -> list[Rows]:
    run = search.run(space, 0.0, np.random.default_rng(0))
    rows = [next(run)]
    while True:
        try:
            rows.append(run.send(score(rows[-1])))
        except StopIteration:
            return rows


def test_a_wide_beam_asks_every_text_once() -> None:
    space = space_of("slow film good", most=2)
    asked = asked_by(Beam(Beam.Settings(width=1000)), space, lambda rows: np.zeros(len(rows)))
    assert [len(rows) for rows in asked] == [2 + 2 + 3, 2 * 2 + 2 * 3 + 2 * 3]
    assert len(np.unique(np.concatenate(asked), axis=0)) == space.num_points()


def test_a_beam_takes_scores_that_differ_by_rounding_for_equal() -> None:
    """The first of equals stays, whatever the last bits of a probability say."""
    space = space_of("slow film", most=2)
    kept = asked_by(Beam(Beam.Settings(width=1)), space, lambda rows: 0.5 + 3e-6 * np.arange(len(rows)) / len(rows))
    assert [row.tolist() for row in kept[1]] == [[1, 1], [1, 2]]
    kept = asked_by(Beam(Beam.Settings(width=1)), space, lambda rows: 0.5 + 3e-3 * np.arange(len(rows)))
    assert [row.tolist() for row in kept[1]] == [[1, 2], [2, 2]]


def test_as_many_texts_are_drawn_as_are_asked_for() -> None:
    search = RandomSearch(RandomSearch.Settings(draws=5, at_once=2))
    asked = asked_by(search, space_of("slow film good end"), lambda rows: np.zeros(len(rows)))
    assert [len(rows) for rows in asked] == [2, 2, 1]


def test_random_texts_have_every_number_of_changes_alike() -> None:
    space = space_of("slow film good end", most=3)
    run = RandomSearch(RandomSearch.Settings(draws=3000, at_once=1000)).run(space, 0.0, np.random.default_rng(0))
    drawn = [asked := next(run)]
    while len(drawn) < 3:
        drawn.append(asked := run.send(np.zeros(len(asked))))
    rows = np.concatenate(drawn)
    shares = np.bincount((rows > 0).sum(axis=1), minlength=5) / len(rows)
    assert shares == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3, 0], abs=0.05)
    for place, size in enumerate(space.sizes.tolist()):
        here = np.bincount(rows[:, place], minlength=size + 1)[1:] / (rows[:, place] > 0).sum()
        assert here == pytest.approx([1 / size] * size, abs=0.07)
        assert (rows[:, place] > 0).mean() == pytest.approx(0.5, abs=0.05), "two places of four on average"
