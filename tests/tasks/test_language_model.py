"""The evaluation protocol of docs/perplexity.md, and the batches of training."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from sememekit.config import load_variant
from sememekit.data.batching import evaluation_columns, training_columns
from sememekit.decoders import DECODERS
from sememekit.errors import DataError
from sememekit.runs.build import build_task, graph_of
from sememekit.runs.plan import read_plan
from sememekit.tasks import TASKS
from sememekit.tasks.base import PrimaryMetric, Task, WordPredictor
from sememekit.tasks.language_model import LanguageModel, evaluating
from tests.small_examples import ExamplePlace
from tests.small_pairs import PairPlace
from tests.small_run import Place


def model(place: Place, decoder: str = "softmax", **changes: object) -> LanguageModel:
    """Return a model in float64, moved away from the start so that its predictions differ."""
    plan = read_plan(place.table(decoder, **changes), "test")
    task = build_task(plan, place.data.vocabulary, graph_of(plan)).double()
    assert isinstance(task, LanguageModel)
    with torch.no_grad():
        for parameter in task.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return task


def scan(task: LanguageModel, tokens: np.ndarray) -> list[float]:
    """The definition: one token after the other, from a state of zeros."""
    nats = []
    with evaluating(task), torch.no_grad():
        state = task.encoder.start(1)
        for before, after in zip(tokens[:-1].tolist(), tokens[1:].tolist(), strict=True):
            hidden, state = task.encoder.step(task.embedding(torch.tensor([before])), torch.tensor([before]), state)
            nats.append(-float(task.decoder.log_probs(hidden)[0, after]))
    return nats


def test_examples_in_the_place_of_a_text_are_told(place: Place, tmp_path: Path) -> None:
    assert model(place).remarks(place.data) == []
    labelled = ExamplePlace(tmp_path / "labelled")
    for data, texts, task in (
        (labelled.pairs, "premise and hypothesis", "nli"),
        (labelled.reviews, "text", "classification"),
        (PairPlace(tmp_path / "pairs").pairs, "source and target", "headline or dialogue"),
    ):
        (told,) = model(place).remarks(data)
        assert told == (
            f"these data are examples of {texts}, and a language model reads the texts of all as one; "
            f"what was meant may be --task {task}"
        )


@pytest.mark.parametrize("decoder", ["softmax", "sdlm"])
@pytest.mark.parametrize("chunk_length", [1, 7, 1000])
def test_one_column_equals_a_sequential_scan(place: Place, decoder: str, chunk_length: int) -> None:
    dropout = {"task__input_dropout": 0.5, "task__output_dropout": 0.5, "encoder__dropout": 0.5}
    task = model(place, decoder, task__evaluation_chunk_length=chunk_length, **dropout)
    tokens = place.data.tokens("test")[:60]
    chunks = list(task.train().score(tokens, batch_size=1))
    ours = torch.cat([chunk.nats[:, 0] for chunk in chunks])
    assert ours.tolist() == pytest.approx(scan(task, tokens), abs=1e-9)
    assert torch.cat([chunk.targets[:, 0] for chunk in chunks]).tolist() == tokens[1:].tolist()
    assert all(chunk.mask.all() for chunk in chunks)
    assert task.training, "training goes on afterwards"


@pytest.mark.parametrize("batch_size", [1, 2, 3, 10, 1000])
def test_the_value_is_the_same_for_any_chunk_length(place: Place, batch_size: int) -> None:
    values = []
    for length in (1, 5, 70, 100_000):
        task = model(place, task__evaluation_chunk_length=length, task__evaluation_batch_size=batch_size)
        values.append(task.evaluate(place.data, "test"))
    predicted = len(place.data.tokens("test")) - 1
    assert [value["tokens"] for value in values] == [predicted] * 4
    assert [value["nats"] for value in values] == pytest.approx([values[0]["nats"]] * 4, rel=1e-12)
    assert values[0]["perplexity"] == pytest.approx(math.exp(values[0]["nats"] / predicted))


@pytest.mark.parametrize("length", [2, 3, 11, 12, 60])
@pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 100])
def test_every_token_but_the_first_is_predicted_once_from_the_one_before(length: int, batch_size: int) -> None:
    tokens = np.arange(100, 100 + length)
    inputs, targets, mask = evaluation_columns(tokens, batch_size)
    assert sorted(targets[mask].tolist()) == tokens[1:].tolist()
    assert (inputs[mask] == targets[mask] - 1).all()
    assert inputs.shape[1] <= batch_size
    if inputs.shape[1] > 1:
        continued = mask[:, 1:].any(axis=0)
        assert (inputs[0, 1:][continued] == targets[-1, :-1][continued]).all(), "a column begins where the one before ended"


def test_a_column_is_scored_as_its_stretch_of_text_from_a_cold_state(place: Place) -> None:
    task = model(place, task__evaluation_chunk_length=100)
    tokens = place.data.tokens("test")[:31]
    (chunk,) = task.score(tokens, batch_size=3)
    for column in range(3):
        expected = scan(task, tokens[10 * column : 10 * column + 11])
        assert chunk.nats[:, column].tolist() == pytest.approx(expected, abs=1e-9)


def test_progress_ends_at_the_number_of_predictions(place: Place) -> None:
    seen: list[tuple[int, int]] = []
    tokens = place.data.tokens("test")[:50]
    task = model(place, task__evaluation_chunk_length=4)
    list(task.score(tokens, batch_size=3, progress=lambda done, total: seen.append((done, total))))
    assert seen[-1] == (49, 49)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_too_little_text_is_an_error(place: Place) -> None:
    for length in (0, 1):
        with pytest.raises(DataError, match="nothing to predict"):
            list(model(place).score(place.data.tokens("test")[:length]))
    with pytest.raises(DataError, match=r"two words each.*task\.batch_size=2"):
        training_columns(np.arange(5), 4)


def test_training_batches_are_the_stream_in_columns(place: Place) -> None:
    task, tokens = model(place), place.data.tokens("train")
    batches = list(task.batches(place.data, 1, 0))
    assert len(batches) == task.num_batches(place.data, 1)
    rows = len(tokens) // 4
    stream = torch.cat([batches[0], *(batch[1:] for batch in batches[1:])])
    assert stream.T.flatten().tolist() == tokens[: rows * 4].tolist()
    assert all(batch.shape == (6, 4) for batch in batches[:-1])
    for first in (1, 17, len(batches)):
        assert all(
            torch.equal(one, other) for one, other in zip(task.batches(place.data, 1, first), batches[first:], strict=True)
        )


def test_the_loss_is_a_sum_over_predictions_and_the_state_is_detached(place: Place) -> None:
    task = model(place)
    batch = next(task.batches(place.data, 1, 0))
    loss = task.loss(batch, task.start(place.data))
    assert loss.count == 5 * 4
    hidden, _ = task.contexts(batch[:-1], task.start(place.data))
    expected = task.decoder.nll(hidden, batch[1:]).sum()
    torch.testing.assert_close(loss.nats.double(), expected, rtol=1e-5, atol=1e-5)
    assert not any(part.requires_grad for part in loss.carry)


def test_ignorance_is_better_than_all_words_alike(place: Place) -> None:
    value = model(place).unigram_baseline(place.data, "valid")["perplexity"]
    assert 1 < value <= len(place.data.vocabulary)


def test_improvement_respects_direction_threshold_and_nan() -> None:
    lower, higher = PrimaryMetric("perplexity", lower_is_better=True), PrimaryMetric("accuracy", lower_is_better=False)
    assert lower.improves(9.0, None)
    assert lower.improves(8.9, 9.0)
    assert not lower.improves(9.0, 9.0)
    assert not lower.improves(8.95, 9.0, 0.01)
    assert lower.improves(8.9, 9.0, 0.01)
    assert higher.improves(0.6, 0.5)
    assert not higher.improves(0.502, 0.5, 0.01)
    for best in (None, 1.0):
        assert not lower.improves(math.nan, best)


@pytest.mark.parametrize("name", TASKS)
def test_tasks_are_what_the_table_says(name: str) -> None:
    kind = load_variant("task", name, TASKS)
    assert issubclass(kind, Task)
    assert issubclass(kind, WordPredictor) == (name == "language_model")


@pytest.mark.parametrize("decoder", sorted(DECODERS))
def test_the_loss_of_a_model_in_double_precision_has_double_precision(place: Place, decoder: str) -> None:
    """Sum and penalties, against the gathered log-probabilities; nothing on the way is rounded to single precision."""
    task = model(place, decoder, task__activation_penalty=1.0, task__temporal_penalty=0.5).eval()
    batch = next(iter(task.batches(place.data, 1, 0)))
    with torch.no_grad():
        found = task.loss(batch, task.start(place.data))
        hidden, _ = task.contexts(batch[:-1], task.start(place.data))
        exact = -task.decoder.log_probs(hidden).gather(-1, batch[1:, :, None]).sum()
        penalty = hidden.square().mean() + 0.5 * hidden.diff(dim=0).square().mean()
    assert found.penalty is not None
    assert found.nats.dtype == found.penalty.dtype == torch.float64
    torch.testing.assert_close(found.nats, exact, rtol=1e-12, atol=0)
    torch.testing.assert_close(found.penalty, penalty, rtol=1e-12, atol=0)
