"""Beam search against exhaustive search, greedy search and itself one example at a time, on a table of probabilities."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from sememekit.search import BeamSettings, Hypothesis, beam_search
from sememekit.search.beam import repetitions

BEGIN, END, WORDS = 0, 1, 5


class Toy:
    """log p(next | the last two words, the example): a table, so that states matter and must be reordered."""

    def __init__(self, examples: int, seed: int = 0, sharpness: float = 1.5) -> None:
        generator = torch.Generator().manual_seed(seed)
        logits = sharpness * torch.randn(examples, WORDS, WORDS, WORDS, generator=generator, dtype=torch.float64)
        self.table = logits.log_softmax(dim=-1)
        self.asked = 0

    def step(
        self, words: Tensor, state: tuple[Tensor, ...], memory: tuple[Tensor, ...], count: int
    ) -> tuple[Tensor, Tensor, tuple[Tensor, ...], Tensor]:
        assert len(state[0]) == words.numel()
        assert len(memory[0]) == len(words)
        self.asked += words.numel()
        example = memory[0].repeat_interleave(words.shape[1])
        before, last = state[0], words.flatten()
        log_probs, ids = self.table[example, before, last].topk(min(count, WORDS))
        return log_probs, ids, (last,), last

    def search(self, examples: list[int] | None = None, **options: object) -> list[list[Hypothesis]]:
        chosen = torch.tensor(list(range(len(self.table))) if examples is None else examples)
        return beam_search(
            self.step,
            (torch.full((len(chosen),), BEGIN),),
            (chosen,),
            begin=BEGIN,
            end=END,
            settings=BeamSettings(**options),  # type: ignore[arg-type]
        )

    def nats(self, example: int, words: tuple[int, ...]) -> float:
        path = (BEGIN, BEGIN, *words)
        return -sum(float(self.table[example, a, b, c]) for a, b, c in zip(path, path[1:], path[2:], strict=False))


def exhaustive(toy: Toy, example: int, settings: BeamSettings) -> list[tuple[float, tuple[int, ...]]]:
    """Every text that the settings allow, by falling score."""
    found = []
    for length in range(settings.min_length, settings.max_length + 1):
        for words in product([word for word in range(WORDS) if word not in (BEGIN, END)], repeat=length):
            grams = (
                [words[i : i + settings.no_repeat] for i in range(length - settings.no_repeat + 1)]
                if settings.no_repeat
                else []
            )
            if len(set(grams)) < len(grams):
                continue
            whole = (*words, END) if length < settings.max_length else words
            if whole:
                found.append((-toy.nats(example, whole) / len(whole) ** settings.length_penalty, words))
    return sorted(found, key=lambda item: (-item[0], item[1]))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"min_length": 0},
        {"length_penalty": 0.0},
        {"min_length": 2, "length_penalty": 0.6},
        {"min_length": 4},
        {"no_repeat": 1},
        {"no_repeat": 2, "length_penalty": 0.3},
        {"min_length": 4, "no_repeat": 2},
    ],
    ids=str,
)
def test_a_wide_beam_is_exhaustive(options: dict[str, object]) -> None:
    toy = Toy(6)
    full = {"beam_size": 200, "num_best": 4, "max_length": 4, **options}
    for example, found in enumerate(toy.search(**full)):
        best = exhaustive(toy, example, BeamSettings(**full))[:4]  # type: ignore[arg-type]
        assert [item.words for item in found] == [words for _, words in best]
        assert [item.score for item in found] == pytest.approx([score for score, _ in best], abs=1e-12)
        for item in found:
            assert item.ended == (len(item.words) < 4)
            assert item.nats == pytest.approx(toy.nats(example, (*item.words, END) if item.ended else item.words), abs=1e-12)


@pytest.mark.parametrize("min_length", [0, 1, 3])
def test_a_beam_of_one_is_greedy(min_length: int) -> None:
    toy = Toy(30, seed=3)
    for example, (found,) in enumerate(toy.search(beam_size=1, max_length=6, min_length=min_length)):
        before, last, words = BEGIN, BEGIN, []
        while len(words) < 6:
            row = toy.table[example, before, last].clone()
            row[BEGIN] = -torch.inf
            if len(words) < min_length:
                row[END] = -torch.inf
            before, last = last, int(row.argmax())
            if last == END:
                break
            words.append(last)
        assert found.words == tuple(words)


def test_company_and_order_change_nothing() -> None:
    toy = Toy(12, seed=5)
    together = toy.search(beam_size=3, num_best=2, max_length=8)
    assert together == [toy.search([example], beam_size=3, num_best=2, max_length=8)[0] for example in range(12)]
    assert together[::-1] == toy.search(list(range(12))[::-1], beam_size=3, num_best=2, max_length=8)


def test_a_wider_beam_finds_what_a_narrow_one_misses() -> None:
    toy = Toy(60, seed=7)
    narrow, wide = (toy.search(beam_size=size, max_length=5, length_penalty=0.0) for size in (1, 4))
    gains = [b[0].score - a[0].score for a, b in zip(narrow, wide, strict=True)]
    assert sum(gain > 1e-9 for gain in gains) > 5
    assert sum(gains) > 0


def test_a_sure_long_text_is_waited_for() -> None:
    """The end comes second at each word, so that K texts have ended long before the sure one does."""
    toy, sure = Toy(1, sharpness=0.0), (2, 3, 4, 4, 3, 2, END)
    toy.table[..., END] = 2.0
    for before, last, word in zip((BEGIN, BEGIN, *sure), (BEGIN, *sure), sure, strict=False):
        toy.table[0, before, last, word] = 6.0
    toy.table = toy.table.log_softmax(dim=-1)
    for options in ({}, {"num_best": 3}, {"length_penalty": 0.0}, {"max_length": 6}):
        found = toy.search(beam_size=3, **options)[0]
        assert found[0].words == sure[:-1], options
    assert toy.search(beam_size=3, max_length=5)[0][0].words == sure[:5], "a text that is cut competes, too"
    toy.asked = 0
    toy.search(beam_size=3)
    assert toy.asked == 1 + 6 * 3, "and no longer than until it ends"


def test_what_was_attended_follows_its_hypothesis() -> None:
    """The toy says that it looked at the word that it was given."""
    for found in Toy(20, seed=9).search(beam_size=4, num_best=4, max_length=6):
        for item in found:
            assert item.attended == (BEGIN, *item.words)[: len(item.words)]


def test_a_fixed_length_never_asks_for_the_end() -> None:
    for (found,) in Toy(5).search(min_length=7, max_length=7):
        assert (len(found.words), found.ended, END in found.words) == (7, False, False)


def test_examples_that_are_done_are_not_asked_again() -> None:
    toy = Toy(2, sharpness=0.0)
    toy.table[0, :, :, END] = 5.0  # ends at once; the other example runs to its cut
    toy.table[1, :, :, END] = -50.0
    toy.table = toy.table.log_softmax(dim=-1)
    toy.search(beam_size=1, max_length=10, min_length=0)
    assert toy.asked == 2 + 9


def test_banned_words_and_forbidden_texts() -> None:
    toy = Toy(3)
    settings = BeamSettings(max_length=3)
    state, memory = (torch.zeros(3, dtype=torch.long),), (torch.arange(3),)
    for (found,) in beam_search(toy.step, state, memory, begin=BEGIN, end=END, settings=settings, banned=(2, 3)):
        assert set(found.words) <= {4}
    tight = BeamSettings(min_length=3, max_length=3, no_repeat=1)
    assert beam_search(toy.step, state, memory, begin=BEGIN, end=END, settings=tight, banned=(2, 3)) == [[], [], []]


def test_finished_texts_of_equal_scores_come_by_their_ids() -> None:
    """Every text has the same score, and the beam holds all."""
    toy = Toy(1)
    toy.table.fill_(-1.0)
    (found,) = toy.search(beam_size=100, num_best=100, min_length=2, max_length=2)
    others = [word for word in range(WORDS) if word not in (BEGIN, END)]
    assert [item.words for item in found] == list(product(others, repeat=2))


def test_repetitions_are_found() -> None:
    rows, words = repetitions(torch.tensor([[2, 3, 2, 3, 2], [4, 4, 4, 4, 4], [2, 3, 4, 2, 2]]), 2)
    assert sorted(zip(rows.tolist(), words.tolist(), strict=True)) == [
        (0, 3),
        (0, 3),
        (1, 4),
        (1, 4),
        (1, 4),
        (1, 4),
        (2, 2),
        (2, 3),
    ]
    assert len(repetitions(torch.zeros((2, 1), dtype=torch.long), 3)[0]) == 0


@pytest.mark.parametrize("wrong", [{"min_length": 9, "max_length": 8}, {"num_best": 3, "beam_size": 2}, {"beam_size": 0}])
def test_settings_that_contradict_each_other(wrong: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        BeamSettings(**wrong)  # type: ignore[arg-type]
