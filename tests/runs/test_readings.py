"""Readings of a lattice model with known edges, and how long texts and streams of pieces are divided."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from sememekit.errors import ConfigError
from sememekit.runs import lattices
from sememekit.runs.lattices import Reading, Token, _cut
from sememekit.runs.published import LEAST, PiecesSoFar, PieceTree, PieceWords, pieces_of
from sememekit.tasks.lattice.scoring import Segment


def reading(ends: list[float], after_blank: tuple[int, ...] = (), best: tuple[int, ...] = ()) -> Reading:
    """A sentence of tokens, each the end of a chunk with a probability, half of it in each of two copies, and an end mark."""
    tokens = tuple("abcdefgh"[: len(ends)])
    posteriors = np.zeros((len(ends) + 1, 2, 2))
    posteriors[: len(ends), 0, 0] = posteriors[: len(ends), 1, 1] = np.array(ends) / 2
    posteriors[-1, 0, 0] = 1.0
    segments = [Segment(begin, end, 0) for begin, end in pairwise([0, *best])]
    blanks = tuple(place in after_blank for place in range(len(ends)))
    listed = np.zeros((len(ends) + 1, 2), dtype=np.bool_)
    return Reading(tokens, tokens, blanks, posteriors, listed, tuple(segments), 0.0)


def test_a_boundary_has_the_probability_that_a_chunk_ends_there() -> None:
    np.testing.assert_allclose(reading([0.25, 0.5, 0.75]).boundaries, [0.25, 0.5, 1.0])


@pytest.mark.parametrize(
    ("ends", "blanks", "chunks"),
    [
        ([0.25, 0.5, 0.4, 0.1], (), [(0, 2), (2, 4)]),
        ([0.25, 0.49, 0.4, 0.1], (), [(0, 4)]),
        ([0.25, 0.49, 0.4, 0.1], (3,), [(0, 3), (3, 4)]),
        ([0.5, 0.1, 0.4, 0.1], (0, 1), [(0, 1), (1, 4)]),
        ([], (), []),
    ],
)
def test_the_posterior_rule_cuts_from_one_half_and_at_blanks(
    ends: list[float], blanks: tuple[int, ...], chunks: list[tuple[int, int]]
) -> None:
    assert reading(ends, blanks).chunks("posterior") == chunks


def test_the_best_path_is_cut_at_blanks_and_has_no_end_mark() -> None:
    found = reading([0.9, 0.9, 0.9, 0.9], best=(2, 3, 5))
    assert found.chunks("viterbi") == [(0, 2), (2, 3), (3, 4)]
    assert reading([0.9] * 4, after_blank=(0, 1), best=(2, 3, 5)).chunks("viterbi") == [(0, 1), (1, 2), (2, 3), (3, 4)]
    wrong: Any = "best"
    with pytest.raises(ConfigError, match="decoding 'best': allowed are viterbi and posterior"):
        found.chunks(wrong)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("aaaa", ["aaaa"]),
        ("aaaaaaaaaa", ["aaaaaaaaaa"]),
        ("aaaaaaaaaaa", ["aaaaaaaaaa", "a"]),
        ("a" * 25, ["a" * 10, "a" * 10, "a" * 5]),
        ("aaaa。aaaaaaaa", ["aaaa。aaaaa", "aaa"]),
        ("aaaaa。aaaaaaa", ["aaaaa。", "aaaaaaa"]),
        ("aaaaa。a，aaaaaa", ["aaaaa。a，", "aaaaaa"]),
        ("aaaaaaaaa。aaaa", ["aaaaaaaaa。", "aaaa"]),
        ("a" * 10 + "aaaa。aaaaaaaa", ["a" * 10, "aaaa。aaaaa", "aaa"]),
        ("a" * 10 + "aaaaa。aaaaaaaa", ["a" * 10, "aaaaa。", "aaaaaaaa"]),
        ("", []),
    ],
)
def test_a_long_text_is_cut_after_the_last_mark_of_the_second_half(
    text: str, parts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lattices, "LONGEST", 10)
    cut = _cut([Token(letter, "x", False) for letter in text])
    assert ["".join(token.written for token in part) for part in cut] == parts


WORDS = ((1,), (2,), (3,), (4,), (1, 2, 3), (2, 3), (1, 2, 3, 4, 1))


@pytest.mark.parametrize(
    ("pieces", "found"),
    [
        ([1, 2, 3], [4]),
        ([1, 2, 4], [0, 1, 3]),
        ([2, 3, 3], [5, 2]),
        ([1, 2, 3, 4], [4, 3]),
        ([1, 2, 3, 4, 1], [6]),
        ([1, 1, 2], [0, 0, 1]),
        ([], []),
    ],
)
def test_pieces_are_cut_into_the_longest_words(pieces: list[int], found: list[int]) -> None:
    assert PieceTree(WORDS).longest(pieces) == found


def test_contexts_hold_the_last_pieces() -> None:
    encoder = PiecesSoFar(WORDS, 4)
    tokens = torch.tensor([[4, 0], [1, 5]])  # (T, B)
    first = encoder(torch.zeros(2, 2, 1), tokens, encoder.start(2))
    rows = [[[2, 3, 4, 0], [2, 0, 0, 0]], [[2, 3, 4, 3], [2, 3, 4, 0]]]  # each piece plus one
    assert first.hidden.tolist() == rows
    then = encoder(torch.zeros(1, 2, 1), torch.tensor([[4, 3]]), first.state)
    assert then.hidden.tolist() == [[[3, 4, 0, 0], [2, 3, 4, 5]]], "a context that is too long keeps its last half"
    assert pieces_of(then.hidden[0, 1]) == [1, 2, 3, 4]
    assert pieces_of(first.hidden[0, 1]) == [1]


class NextPieces:
    """Probabilities of the pieces 1 to 4 that depend on the last piece alone; the first row is for no piece before."""

    rows = ((4, 3, 2, 1), (1, 5, 2, 2), (2, 3, 3, 2), (1, 1, 1, 7), (7, 1, 1, 1))

    def after(self, contexts: list[list[int]]) -> Iterator[tuple[Any, ...]]:
        table = torch.tensor([(0, *row) for row in self.rows], dtype=torch.float64) / 10

        def log_probs(read: list[list[int]]) -> torch.Tensor:
            return table[[context[-1] if context else 0 for context in read]].log()

        yield range(len(contexts)), log_probs(contexts), lambda rows: log_probs([[*contexts[at], *begun] for at, begun in rows])


def test_a_word_has_the_probability_that_it_is_the_longest() -> None:
    """p(1 2 3) = 0.4 * 0.5 * 0.3, of which 0.7 * 0.7 goes on to the word of five pieces."""
    model: Any = NextPieces()
    decoder, hidden = PieceWords(model, WORDS), torch.zeros(2, 1, 4)
    hidden[1, 0, :2] = torch.tensor([4.0, 2.0])  # after the pieces 3 and 1
    found = decoder.log_probs(hidden.double()).exp()
    three, two = 0.4 * 0.5 * 0.3, 0.3 * 0.3
    five = three * 0.7 * 0.7
    expected = [0.4 - three, 0.3 - two, 0.2, 0.1, three - five, two, five]
    assert found[0, 0].tolist() == pytest.approx(expected)
    three, two = 0.1 * 0.5 * 0.3, 0.5 * 0.3
    five = three * 0.7 * 0.7  # its beginning is above the bound
    assert three * 0.7 >= LEAST
    assert found[1, 0].tolist() == pytest.approx([0.1 - three, 0.5 - two, 0.2, 0.2, three - five, two, five])
    nats = decoder.nll(hidden.double(), torch.tensor([[0], [6]]))
    assert nats.tolist() == [[pytest.approx(-float(found[0, 0, 0].log()))], [pytest.approx(-float(found[1, 0, 6].log()))]]


def test_rare_beginnings_keep_the_probability_of_longer_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sememekit.runs.published.LEAST", 0.25)
    model: Any = NextPieces()
    found = PieceWords(model, WORDS).log_probs(torch.zeros(1, 4, dtype=torch.float64)).exp()[0]
    assert found.tolist() == pytest.approx([0.4, 0.3 - 0.09, 0.2, 0.1, 0, 0.09, 0], abs=1e-6)
    assert float(found.sum()) == pytest.approx(1.0)
