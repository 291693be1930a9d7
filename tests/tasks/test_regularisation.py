"""Random lengths, dropout of words, locked masks, penalties, small batches: the mechanics of AWD-LSTM in the task."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from sememekit.data.batching import random_segments
from sememekit.measure.perplexity import tallies
from sememekit.protocols.dynamic import DynamicSettings, score_dynamically
from sememekit.protocols.gradient_statistics import gather_statistics
from sememekit.runs.build import build_task
from sememekit.runs.plan import read_plan
from sememekit.tasks.language_model import LanguageModel
from sememekit.training import RunFolder, Trainer
from tests.small_run import Place

AWD = {"encoder__name": "awd_lstm", "encoder__dropout": 0.0, "encoder__weight_drop": 0.0}


def model(place: Place, decoder: str = "softmax", **changes: object) -> LanguageModel:
    task = build_task(read_plan(place.table(decoder, **{**AWD, **changes}), "test"), place.data.vocabulary, None).double()
    assert isinstance(task, LanguageModel)
    return task.train()


def batch(time: int = 9, columns: int = 4) -> Tensor:
    return torch.randint(0, 8, (time, columns), generator=torch.Generator().manual_seed(2))


def input_of(task: LanguageModel, tokens: Tensor) -> Tensor:
    """Return the input of the encoder."""
    seen: list[Tensor] = []
    handle = task.encoder.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    task.contexts(tokens, task.encoder.start(tokens.shape[1]))
    handle.remove()
    return seen[0].detach()


def test_a_dropped_word_is_missing_from_the_whole_chunk(place: Place) -> None:
    task, tokens = model(place, task__word_dropout=0.4), batch(40)
    torch.manual_seed(4)
    x, raw = input_of(task, tokens), task.embedding.weight.detach()
    dropped = {int(word) for word in tokens.unique() if not x[tokens == word].any()}
    assert 0 < len(dropped) < len(tokens.unique())
    for word in set(tokens.unique().tolist()) - dropped:
        rows = x[tokens == word]
        torch.testing.assert_close(rows, (raw[word] / 0.6).expand_as(rows))
    assert {int(word) for word in tokens.unique() if not input_of(task, tokens)[tokens == word].any()} != dropped
    assert torch.equal(input_of(task.eval(), tokens), raw[tokens])


def test_the_last_word_learns_from_the_input_side_too(place: Place) -> None:
    """The ports hand the look-up -1 for "no padding", which is the last word."""
    task = model(place, task__word_dropout=0.1, decoder__tied=False)
    last = len(task.vocabulary) - 1
    torch.manual_seed(1)
    task.loss(torch.full((6, 4), last), task.encoder.start(4)).nats.backward()
    assert task.embedding.padding_idx is None
    assert (task.embedding.weight.grad[last] != 0).any()


@pytest.mark.parametrize("locked", [True, False])
def test_masks_are_locked_over_time_when_asked(place: Place, locked: bool) -> None:
    task = model(place, task__input_dropout=0.5, task__output_dropout=0.5, task__locked_dropout=locked)
    with torch.no_grad():
        task.embedding.weight.fill_(1.0)
    tokens = batch(12)
    x = input_of(task, tokens)
    assert set(x.unique().tolist()) == {0.0, 2.0}
    assert all(torch.equal(x[0], row) for row in x) == locked
    assert not torch.equal(x[:, 0], x[:, 1]), "each sequence has its own mask"
    contexts, _ = task.contexts(tokens, task.encoder.start(4))
    zeros = contexts == 0
    assert zeros.any()
    assert all(torch.equal(zeros[0], row) for row in zeros) == locked


def test_one_penalty_is_on_the_dropped_outputs_and_one_on_the_undropped(place: Place) -> None:
    task = model(place, task__activation_penalty=2.0, task__temporal_penalty=3.0, task__output_dropout=0.5)
    tokens, start = batch(), task.encoder.start(4)
    torch.manual_seed(7)
    loss = task.loss(tokens, start)
    torch.manual_seed(7)
    dropped, _ = task.contexts(tokens[:-1], start)
    raw = task.encoder(task.embedding(tokens[:-1]), tokens[:-1], start).layers[-1]
    assert (dropped == 0).any()
    assert not (raw == 0).any()
    expected = 2.0 * (dropped**2).mean() + 3.0 * ((raw[1:] - raw[:-1]) ** 2).mean()
    assert loss.penalty is not None
    torch.testing.assert_close(loss.penalty.double(), expected, rtol=1e-6, atol=0)


def test_no_reported_loss_holds_a_penalty(place: Place) -> None:
    tokens = batch()
    losses = [
        task.loss(tokens, task.encoder.start(4))
        for task in (model(place), model(place, task__activation_penalty=9.0, task__temporal_penalty=9.0))
    ]
    assert losses[0].penalty is None
    assert losses[1].penalty.detach() > 0
    assert float(losses[0].nats.detach()) == float(losses[1].nats.detach())


def test_a_chunk_of_one_word_has_no_change_to_penalise(place: Place) -> None:
    task = model(place, task__temporal_penalty=1.0, task__activation_penalty=1.0)
    loss = task.loss(batch(2), task.encoder.start(4))
    assert loss.penalty is not None
    assert torch.isfinite(loss.penalty)
    assert model(place, task__temporal_penalty=1.0).loss(batch(2), task.encoder.start(4)).penalty is None


def lengths(rows: int, length: int, seed: int = 1, **settings: Any) -> np.ndarray:
    return np.diff(random_segments(rows, length, np.random.default_rng(seed), **settings))


def test_lengths_are_as_published() -> None:
    drawn = lengths(2_000_000, 70)
    assert drawn.sum() == 2_000_000
    assert drawn[:-1].min() >= 5
    near_half = drawn < 52.5
    assert near_half.mean() == pytest.approx(0.05, abs=0.005)
    # int() cuts towards zero, which takes half a token off the mean.
    assert (drawn[~near_half].mean(), drawn[near_half].mean()) == (pytest.approx(69.5, abs=0.2), pytest.approx(34.5, abs=0.5))
    assert drawn[~near_half].std() == pytest.approx(5.0, abs=0.2)
    assert drawn.max() > 80
    assert lengths(2_000_000, 70, excess=10).max() == 80
    assert lengths(100_000, 6, shortest=5)[:-1].min() == 5
    assert lengths(3, 70).tolist() == [3]
    assert set(lengths(100, 7, spread=0.0, halving=0.0, shortest=1)[:-1].tolist()) == {7}


def test_an_epoch_is_cut_anew_and_can_be_taken_up_anywhere(place: Place) -> None:
    task = model(place, task__random_lengths=True, task__chunk_length=12, task__shortest_chunk=2)
    one, again, other = (list(task.batches(place.data, order, 0)) for order in (1, 1, 2))
    assert len(one) == task.num_batches(place.data, 1)
    assert all(torch.equal(left, right) for left, right in zip(one, again, strict=True))
    assert [len(part) for part in one] != [len(part) for part in other]
    stream = torch.cat([one[0], *(part[1:] for part in one[1:])])
    rows = len(place.data.tokens("train")) // 4
    assert stream.T.flatten().tolist() == place.data.tokens("train")[: rows * 4].tolist()
    assert all(torch.equal(left, right) for left, right in zip(task.batches(place.data, 1, 3), one[3:], strict=True))
    scales = [task.loss(part, task.start(place.data)).rate_scale for part in one]
    assert scales == [(len(part) - 1) / 12 for part in one]
    assert model(place).loss(one[0], task.start(place.data)).rate_scale == 1.0


def test_the_rate_is_scaled_in_the_step_of_the_chunk_itself(place: Place, tmp_path: Any) -> None:
    """Three averaged steps of different lengths agree by hand: torch's ASGD would take each with the rate of the one before."""
    own = {"task__random_lengths": True, "task__chunk_length": 12, "task__shortest_chunk": 2, "run__seed": 4}
    plan = read_plan(place.table(**AWD, **own, optimizer__averaging="from_start"), "test")
    task, twin = (build_task(plan, place.data.vocabulary, None).double() for _ in range(2))
    trainer = Trainer(task, place.data, RunFolder.create(tmp_path / "run", {}, {}, {}), plan.optimizer, plan.schedule, plan.run)
    trainer.carry = carry = task.start(place.data)
    sizes = []
    from sememekit.training.trainer import _Window

    for part, _ in zip(twin.batches(place.data, 3, 0), range(3), strict=False):
        trainer._step(part, _Window())
        loss = twin.loss(part, carry)
        twin.zero_grad()
        (loss.nats / loss.count).backward()
        torch.nn.utils.clip_grad_norm_(twin.parameters(), plan.optimizer.clip)
        sizes.append(len(part) - 1)
        with torch.no_grad():
            for parameter in twin.parameters():
                parameter -= plan.optimizer.learning_rate * sizes[-1] / 12 * parameter.grad
        carry = loss.carry
        for ours, theirs in zip(task.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-9)
    assert len(set(sizes)) > 1
    assert trainer.progress.rate == plan.optimizer.learning_rate, "the scale does not outlive its step"


def test_small_batches_add_up_to_the_whole(place: Place) -> None:
    own = {"task__activation_penalty": 1.0}
    whole, parts = model(place, **own), model(place, **own, task__small_batch_size=3)
    tokens = batch(9, 4)
    start = tuple(torch.randn_like(part) for part in whole.encoder.start(4))
    (one,) = whole.losses(tokens, start)
    several = list(parts.losses(tokens, start))
    assert [loss.share for loss in several] == [0.75, 0.25]
    assert sum(loss.count for loss in several) == one.count
    torch.testing.assert_close(sum(loss.nats for loss in several), one.nats)
    for ours, theirs in zip(several[-1].carry, one.carry, strict=True):
        torch.testing.assert_close(ours, theirs)
    (one.nats / one.count + one.penalty).backward()
    for loss in several:
        ((loss.nats / loss.count + loss.penalty) * loss.share).backward()
    for ours, theirs in zip(parts.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-5, atol=1e-8)


def test_nothing_is_left_of_all_this_in_evaluation(place: Place) -> None:
    noisy = {"task__word_dropout": 0.3, "task__input_dropout": 0.3, "task__output_dropout": 0.3, "task__random_lengths": True}
    noisy |= {"task__activation_penalty": 2.0, "encoder__dropout": 0.3, "encoder__weight_drop": 0.5}
    tokens = place.data.tokens("valid")
    plain, loud = model(place), model(place, **noisy)
    assert tallies(loud.score(tokens))[0] == tallies(plain.score(tokens))[0]
    assert loud.training


def test_dynamic_evaluation_drops_no_recurrent_weights(place: Place) -> None:
    """The port of the public code does: there, two identical calls differ."""
    task = model(place, encoder__weight_drop=0.5, encoder__dropout=0.3, task__word_dropout=0.3, task__output_dropout=0.3)
    text = place.data.tokens("valid")[:60]
    statistics = gather_statistics(task, place.data.tokens("train"), segment=5, batch_size=4)
    settings = DynamicSettings(rate=1e-3)
    one, two = (torch.cat([chunk.nats for chunk in score_dynamically(task, text, settings, statistics)]) for _ in range(2))
    assert torch.equal(one, two)
    static = torch.cat([chunk.nats for chunk in task.score(text, batch_size=1)])
    torch.testing.assert_close(one[: settings.segment], static[: settings.segment])
    assert not torch.equal(one, static)
