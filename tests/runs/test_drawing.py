"""Words drawn from known probabilities, the loss of a drawn text, and the text of a report."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from sememekit.runs.generation import Drawing, _drawer, _report, generate, stream_words
from sememekit.runs.run import Run
from sememekit.runs.stream_nats import stream_nats
from sememekit.tasks.base import WordPredictor, require
from sememekit.text.vocabulary import Vocabulary

PROBABILITIES = [0.125, 0.5, 0.125, 0.25]


def drawn(times: int = 2000, probabilities: list[float] = PROBABILITIES, banned: int | None = None, **how: Any) -> Counter[int]:
    """Return the number of draws of each word."""
    draw, log_probs = _drawer(Drawing(**how), banned), torch.tensor(probabilities, dtype=torch.float64).log()
    return Counter(draw(log_probs) for _ in range(times))


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, [0.125, 0.5, 0.125, 0.25]),
        ({"temperature": 0.0}, [0, 1, 0, 0]),
        ({"temperature": 1e-300}, [0, 1, 0, 0]),
        ({"temperature": 0.5}, [1 / 22, 16 / 22, 1 / 22, 4 / 22]),
        ({"top_k": 1}, [0, 1, 0, 0]),
        ({"top_k": 2}, [0, 2 / 3, 0, 1 / 3]),
        ({"top_k": 9}, [0.125, 0.5, 0.125, 0.25]),
        ({"top_p": 0.5}, [0, 1, 0, 0]),
        ({"top_p": 0.6}, [0, 2 / 3, 0, 1 / 3]),
        ({"top_p": 0.8}, [1 / 7, 4 / 7, 0, 2 / 7]),
        ({"top_p": 0.99}, [0.125, 0.5, 0.125, 0.25]),
        ({"top_k": 3, "top_p": 0.6}, [0, 2 / 3, 0, 1 / 3]),
        ({"banned": 1}, [0.25, 0, 0.25, 0.5]),
        ({"banned": 1, "temperature": 0.0}, [0, 0, 0, 1]),
        ({"banned": 1, "top_k": 1}, [0, 0, 0, 1]),
        ({"banned": 0}, [0, 4 / 7, 1 / 7, 2 / 7]),
    ],
)
def test_words_are_drawn_from_the_kept_probabilities(how: dict[str, Any], expected: list[float]) -> None:
    found = drawn(**how)
    assert set(found) == {word for word, share in enumerate(expected) if share}
    assert [found[word] / 2000 for word in range(4)] == pytest.approx(expected, abs=0.04)


def test_a_banned_word_is_drawn_where_there_is_no_other() -> None:
    assert drawn(20, [1.0], banned=0) == {0: 20}
    assert drawn(20, [0.9, 0.1], banned=0) == {1: 20}


def test_a_seed_gives_the_same_words() -> None:
    log_probs = torch.tensor(PROBABILITIES).log()
    one, same, other = (_drawer(Drawing(seed=seed), None) for seed in (5, 5, 6))
    words = [[draw(log_probs) for _ in range(40)] for draw in (one, same, other)]
    assert words[0] == words[1] != words[2]


def surprisal(run: Run, words: list[str]) -> list[float]:
    """The loss of each word but the first."""
    return stream_nats(require(run.task, WordPredictor, "test"), [run.vocabulary.encode(words).tolist()])[0][0]


@pytest.mark.parametrize(("fixture", "prompt"), [("softmax", "我 吃"), ("softmax", "我"), ("softmax", ""), ("ending", "我")])
def test_the_loss_of_a_drawn_text_is_its_surprisal(fixture: str, prompt: str, request: pytest.FixtureRequest) -> None:
    """Without a prompt the first word has its share of the counts, and temperature changes no loss."""
    run = Run.open(request.getfixturevalue(fixture), device="cpu")
    *streamed, report = stream_words(run, prompt, num_tokens=7, temperature=1.5, seed=3)
    assert report == generate(run, prompt, num_tokens=7, temperature=1.5, seed=3)
    assert not isinstance(report, str)
    assert tuple(streamed) == report.tokens
    assert (len(report.tokens), report.prompt, report.seed) == (7, tuple(prompt.split()), 3)
    nats = surprisal(run, [*(["<eos>"] if fixture == "ending" else []), *report.prompt, *report.tokens])
    shares = dict(zip(run.vocabulary.tokens, run.vocabulary.counts / run.vocabulary.counts.sum(), strict=True))
    first = 0.0 if prompt else -math.log(shares[report.tokens[0]])
    assert report.nats == pytest.approx(first + sum(nats[-7:]), abs=1e-4)


@pytest.mark.parametrize("prompt", ["我", "我 吃"])
def test_a_beam_of_one_is_greedy_and_ends_with_a_stop(softmax: Path, prompt: str) -> None:
    run = Run.open(softmax, device="cpu")
    greedy = generate(run, prompt, num_tokens=6, temperature=0.0)
    beam = generate(run, prompt, num_tokens=6, beam=1, seed=4)
    assert (beam.prompt, beam.tokens, beam.text, beam.seed) == (greedy.prompt, greedy.tokens, greedy.text, 4)
    assert beam.nats == pytest.approx(greedy.nats, abs=1e-4)
    short = generate(run, prompt, num_tokens=6, beam=1, stop=["。"])
    assert (short.tokens[-1], short.tokens.count("。")) == ("。", 1)
    assert short.nats == pytest.approx(sum(surprisal(run, [*short.prompt, *short.tokens])[-len(short.tokens) :]), abs=1e-4)


def test_an_end_mark_begins_a_line_of_the_text() -> None:
    words = Vocabulary.from_counts({"a": 3, "b": 2, "<eos>": 1})
    report = _report(words, [0, 2], [1, 0, 2], 1.5, 7)
    assert report.model_dump() == {
        "prompt": ("a", "<eos>"), "tokens": ("b", "a", "<eos>"), "text": "a\nb a", "nats": 1.5, "seed": 7,
    }  # fmt: skip
    pairs = Vocabulary.from_counts({"a": 3, "b": 2, "</s>": 1})
    assert _report(pairs, [2], [1, 2, 0, 2], 0.0, 1).text == "b\na"
