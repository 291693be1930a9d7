"""Clipped steps with sparse gradients are the steps with dense ones; where they would not be, gradients are dense."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import nn

from sememekit.decoders.base import rate_was_cut
from sememekit.ranks import ALONE
from sememekit.training import trainer as trainer_module
from sememekit.training.optimizers import clip_gradients
from tests.distributed.cases import go_on, outcome, trainer_of
from tests.golden import Places

SAMPLED = ("softmax", "sdlm", "moc", "mos", "mos_sdlm", "differentiated")
UNTIED = {"tied": False}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return Places(tmp_path_factory.mktemp("clipping"))


def trained(places: Places, decoder: str, of_decoder: dict[str, Any], **changes: Any) -> tuple[dict[str, Any], set[str]]:
    """Return the outcome of ten steps, and the parameters with a sparse gradient in the last step."""
    changes = {"optimizer__learning_rate": 1.0, "optimizer__clip": 0.05, **changes}
    table = places.words.table(decoder, **changes)
    table["decoder"] |= {"samples": 5, **of_decoder}
    trainer = trainer_of(table, ALONE)
    losses = go_on(trainer, 10)
    sparse = {name for name, p in trainer.task.named_parameters() if p.grad is not None and p.grad.is_sparse}
    assert not any(part.sparse for part in trainer.task.modules() if isinstance(part, nn.Embedding)), "only inside a step"
    return outcome(trainer, losses), sparse


@pytest.mark.parametrize("of_decoder", [{}, UNTIED], ids=["tied", "untied"])
@pytest.mark.parametrize("decoder", SAMPLED)
def test_steps_are_the_same_with_sparse_gradients(
    places: Places, monkeypatch: pytest.MonkeyPatch, decoder: str, of_decoder: dict[str, Any]
) -> None:
    changes = {"task__small_batch_size": 2 if decoder == "mos" else None}
    found, sparse = trained(places, decoder, of_decoder, **changes)
    monkeypatch.setattr(trainer_module, "sparse_lookups", lambda *_: nullcontext())
    wanted, none = trained(places, decoder, of_decoder, **changes)
    tables = {"mos_sdlm": "decoder.senses.words.weight"}.get(decoder, "decoder.words.weight")
    assert sparse == (set() if decoder == "differentiated" else {tables if of_decoder else "embedding.weight"})
    assert not none
    assert found["losses"] == pytest.approx(wanted["losses"], rel=1e-10)
    for name, tensor in wanted["weights"].items():
        torch.testing.assert_close(found["weights"][name], tensor, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("of_decoder", "changes"),
    [
        ({}, {"optimizer__name": "adam"}),
        ({}, {"optimizer__name": "adagrad"}),
        ({}, {"optimizer__weight_decay": 0.01}),
        ({"samples": 0}, {}),
    ],
    ids=["moments of Adam", "squares of Adagrad", "weight decay", "exact"],
)
def test_gradients_are_dense_where_every_row_changes(
    places: Places, of_decoder: dict[str, Any], changes: dict[str, Any]
) -> None:
    assert not trained(places, "softmax", of_decoder, **changes)[1]


def test_gradients_are_dense_from_the_first_cut_on(places: Places) -> None:
    table = places.words.table("softmax", optimizer__learning_rate=1.0)
    table["decoder"] |= {"samples": 5, "samples_until": "first-cut"}
    trainer = trainer_of(table, ALONE)
    go_on(trainer, 2)
    (embedding,) = (p for name, p in trainer.task.named_parameters() if name == "embedding.weight")
    assert embedding.grad is not None
    assert embedding.grad.is_sparse
    rate_was_cut(trainer.task)
    go_on(trainer, 4)
    assert not embedding.grad.is_sparse


def test_sparse_and_dense_gradients_are_clipped_together() -> None:
    torch.manual_seed(1)
    table, bias, unused = (nn.Parameter(torch.randn(shape, dtype=torch.float64)) for shape in [(6, 3), (4,), (2,)])
    twins = [nn.Parameter(tensor.detach().clone()) for tensor in (table, bias, unused)]
    rows, seen = torch.tensor([4, 1, 4, 4]), torch.randn(4, 3, dtype=torch.float64)
    for parameters, sparse in (([table, bias, unused], True), (twins, False)):
        vectors = nn.functional.embedding(rows, parameters[0], sparse=sparse)
        ((vectors * seen).sum() + 3.0 * parameters[1].sum()).backward()  # type: ignore[no-untyped-call]
    norm = clip_gradients([table, bias, unused], 0.5)
    assert norm == pytest.approx(float(torch.nn.utils.clip_grad_norm_(twins, 0.5)), rel=1e-12)
    assert unused.grad is None
    for parameter, twin in ((table, twins[0]), (bias, twins[1])):
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad.to_dense(), twin.grad)
    assert clip_gradients([table], 100.0) == pytest.approx(float(table.grad.to_dense().norm())), "and less is left alone"


def test_nothing_to_clip() -> None:
    assert clip_gradients([nn.Parameter(torch.ones(2))], 1.0) == 0.0
