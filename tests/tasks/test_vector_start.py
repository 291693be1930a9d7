"""The start of word vectors: by the optimiser, kept in the plan, and as the plan states."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from sememekit.runs.build import build_task
from sememekit.runs.plan import read_plan
from sememekit.tasks.base import Task
from sememekit.tasks.language_model import LanguageModel
from sememekit.tasks.vectors import spread_of
from sememekit.text.vocabulary import Vocabulary
from tests.small import COUNTS

VOCABULARY = Vocabulary.from_counts({**COUNTS, **{f"w{number}": 1 for number in range(200)}, "<eos>": 9}, ("<s>", "</s>"))
SIZE = 16


def table(name: str = "language_model", optimizer: str = "sgd", **task: Any) -> dict[str, Any]:
    sizes = {"embedding_size": SIZE} | ({} if name == "language_model" else {"hidden_size": SIZE})
    return {"task": {"name": name, **sizes, **task}, "encoder": {"hidden_size": SIZE}, "optimizer": {"name": optimizer}}


def spread(plan: dict[str, Any]) -> float:
    return float(read_plan(plan, "case").table()["task"]["spread"])


def built(plan: dict[str, Any]) -> Task:
    return build_task(read_plan(plan, "case"), VOCABULARY, None)


@pytest.mark.parametrize("name", ["language_model", "headline", "dialogue"])
def test_a_plan_holds_where_vectors_start(name: str) -> None:
    """Vectors start at 0.1 with SGD and Adagrad, or as the plan states."""
    assert spread(table(name)) == spread(table(name, "adagrad")) == 0.1
    assert spread(table(name, "adam", spread=0.25)) == 0.25
    stored = read_plan(table(name, "adam"), "case").table()
    assert read_plan(stored, "case").table() == stored


@pytest.mark.parametrize("name", ["language_model", "headline", "dialogue"])
def test_vectors_start_there(name: str) -> None:
    for plan, wanted in ((table(name), 0.1), (table(name, spread=0.7), 0.7)):
        largest = float(built(plan).embedding.weight.detach().abs().max())
        assert 0.97 * wanted < largest <= wanted


def test_vectors_of_the_source_start_there_too() -> None:
    largest = float(built(table("headline", spread=0.7, share_embedding=False)).source_embedding.weight.detach().abs().max())
    assert 0.65 < largest <= 0.7


def test_one_length_whatever_the_size() -> None:
    for size in (8, 500):
        vectors = torch.empty(4000, size).uniform_(-1, 1) * spread_of(2.0, size)
        assert float(vectors.square().sum(1).mean().sqrt()) == pytest.approx(2.0, rel=0.02)


def test_by_length_with_an_optimiser_that_gains_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LanguageModel.Settings, "start_lengths", {"adam": 2.0})
    assert spread(table(optimizer="adam")) == pytest.approx(2.0 * (3 / SIZE) ** 0.5)
    assert spread(table()) == 0.1


def test_shorter_where_the_encoder_normalises_its_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers that read the encoder's contexts start shorter; headlines have a decoder of their own between."""
    transformer = {"name": "transformer", "hidden_size": SIZE}
    monkeypatch.setattr(LanguageModel.Settings, "unit_lengths", {"adam": 0.5})
    assert spread({**table(optimizer="adam"), "encoder": transformer}) == pytest.approx(0.5 * (3 / SIZE) ** 0.5)
    assert spread({**table(), "encoder": transformer}) == 0.1
    assert spread({**table("headline", "adam"), "encoder": transformer}) == spread(table("headline", "adam"))


@pytest.mark.parametrize("encoder", ["lstm", "transformer", "mogrifier"])
def test_the_first_logits_of_a_model_are_small(encoder: str) -> None:
    """Logits start far below one with Adam, whatever the encoder, so that no model has to unlearn its start."""
    plan = {**table(optimizer="adam", embedding_size=128), "encoder": {"name": encoder, "hidden_size": 128, "num_layers": 2}}
    torch.manual_seed(3)
    model = built(plan)
    assert isinstance(model, LanguageModel)
    with torch.no_grad():
        hidden_TBH, _ = model.contexts(torch.randint(0, len(VOCABULARY), (30, 8)), model.encoder.start(8))
        deviation = float((hidden_TBH.flatten(0, 1) @ model.embedding.weight.T).std())
    assert 0.02 < deviation < 0.5


def test_a_classifier_draws_vectors_as_wide_as_it_is_told() -> None:
    for wanted in (0.1, 0.6):
        plan = {"task": {"name": "classification", "embedding_size": SIZE, "spread": wanted}, "encoder": {"hidden_size": 4}}
        made = build_task(read_plan(plan, "case"), VOCABULARY, None, labels=("no", "yes"))
        assert float(made.embedding.weight.detach().std()) == pytest.approx(wanted, rel=0.05)
