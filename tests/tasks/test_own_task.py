"""A task of somebody's own: built, trained, loaded again and judged from its class alone; and what tasks declare."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest
import torch
from pydantic import Field
from torch import Tensor, nn

from sememekit import config
from sememekit.analysis.evaluate import evaluate
from sememekit.analysis.evaluate_ppl import evaluate_ppl
from sememekit.config import trusting_code
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError
from sememekit.jobs.train import train
from sememekit.runs.build import build_task
from sememekit.runs.plan import read_plan, variant
from sememekit.runs.run import Run
from sememekit.tasks import TASKS
from sememekit.tasks.base import BatchLoss, Carry, LabelPredictor, PrimaryMetric, Task, WordPredictor
from sememekit.tasks.classifier import TextClassifier
from sememekit.tasks.lattice.model import Lattice
from sememekit.tasks.resources import TaskResources
from sememekit.tasks.writing import TextWriter
from tests.small import small_vocabulary
from tests.small_run import Place

HERE = "tests.tasks.test_own_task"


class WordAfterNext(Task):
    """A task that predicts, from a window of words, the word after the next one. Windows are read apart from each other."""

    metric: ClassVar[PrimaryMetric] = PrimaryMetric("perplexity", lower_is_better=True)

    class Settings(config.Settings):
        embedding_size: int = Field(default=6, ge=1)
        window: int = Field(default=4, ge=1)

    def __init__(self, settings: Settings, embedding: nn.Embedding, encoder: Any, decoder: Any) -> None:
        super().__init__()
        self.settings, self.embedding, self.encoder, self.decoder = settings, embedding, encoder, decoder

    @classmethod
    def build(cls, settings: Settings, resources: TaskResources) -> Self:
        embedding = nn.Embedding(len(resources.vocabulary), settings.embedding_size)
        encoder = resources.make_encoder(settings.embedding_size)
        return cls(settings, embedding, encoder, resources.make_decoder(encoder.output_size, embedding))

    def _windows(self, tokens: np.ndarray) -> np.ndarray:
        size = self.settings.window + 2
        count = len(tokens) // size
        return np.asarray(tokens[: count * size], dtype=np.int64).reshape(count, size).T

    def num_batches(self, data: PreparedData, epoch_seed: int) -> int:
        return 1

    def batches(self, data: PreparedData, epoch_seed: int, first: int) -> Iterator[Tensor]:
        if first == 0:
            yield torch.from_numpy(self._windows(data.tokens("train")).copy())

    def start(self, data: PreparedData) -> Carry:
        return ()

    def loss(self, batch: Tensor, carry: Carry) -> BatchLoss:
        tokens = batch[:-2]
        contexts = self.encoder(self.embedding(tokens), tokens, self.encoder.start(tokens.shape[1])).hidden
        nats = self.decoder.nll(contexts, batch[2:])
        return BatchLoss(nats.sum(), nats.numel(), None, ())

    def evaluate(self, data: PreparedData, split: str) -> dict[str, float]:
        with torch.no_grad():
            loss = self.loss(torch.from_numpy(self._windows(data.tokens(split)).copy()), ())
        return {"perplexity": float(torch.exp(loss.nats / loss.count))}

    def unigram_baseline(self, data: PreparedData, split: str) -> dict[str, float]:
        return {"perplexity": float(len(data.vocabulary))}


class Mean(WordAfterNext):
    """A task that declares no output layer, and asks for one all the same."""

    takes_decoder: ClassVar[bool] = False


class Unfinished(Task):
    """A task that lacks all but its settings."""

    class Settings(config.Settings):
        pass


def table(place: Place, name: str = f"{HERE}:WordAfterNext", **task: Any) -> dict[str, Any]:
    return {**place.table(), "task": {"name": name, "embedding_size": 6, **task}, "schedule": {"epochs": 3}}


def test_an_own_task_is_trained_loaded_and_judged(place: Place, tmp_path: Path) -> None:
    report = train(table(place, window=3), tmp_path / "run")
    assert report.epochs == 3
    with pytest.raises(ConfigError, match=rf"names code to be run, task\.name = '{HERE}:WordAfterNext'.*--trust-code"):
        Run.open(tmp_path / "run").load()
    loaded = Run.open(tmp_path / "run", device="cpu", trust_code=True)
    assert isinstance(loaded.task, WordAfterNext)
    assert loaded.task.settings.window == 3
    with trusting_code():
        judged = evaluate(tmp_path / "run", split="valid", device="cpu").model_dump()
        with pytest.raises(ConfigError, match=rf"needs a model that predicts words, and this run has the task {HERE}:Word"):
            evaluate_ppl(tmp_path / "run", split="valid", device="cpu")
    assert judged["perplexity"] == pytest.approx(report.best_valid, rel=1e-6)
    assert judged["perplexity"] < len(place.data.vocabulary)


def test_settings_and_parts_of_an_own_task_come_from_the_plan(place: Place) -> None:
    plan = table(place)
    plan["decoder"] = {"name": "mos", "num_components": 2}
    plan["encoder"] = {"name": "bilstm", "hidden_size": 3}
    task = build_task(read_plan(plan, "test"), place.data.vocabulary, None)
    assert isinstance(task, WordAfterNext)
    assert (type(task.decoder).__name__, type(task.encoder).__name__) == ("MoS", "BiLSTM"), "it does not say left_to_right"
    with pytest.raises(ConfigError, match=r"unknown key 'windows'.*window"):
        read_plan(table(place, windows=3), "test")


def test_what_an_own_task_lacks_is_named(place: Place) -> None:
    with pytest.raises(
        ConfigError, match=rf"task '{HERE}:Unfinished': the class lacks .*: batches, build, evaluate, loss, metric"
    ):
        read_plan({"task": {"name": f"{HERE}:Unfinished"}}, "test")


def test_a_task_without_output_layer_is_given_none(place: Place) -> None:
    own = table(place, f"{HERE}:Mean")
    with pytest.raises(ConfigError, match=rf"task '{HERE}:Mean' predicts no words; leave the decoder out"):
        read_plan(own, "test")
    plan = read_plan({**own, "decoder": {}}, "test")
    assert plan.decoder is None
    with pytest.raises(ConfigError, match=rf"task '{HERE}:Mean' takes no output layer .* asks for one when it is built"):
        build_task(plan, place.data.vocabulary, None)


def test_kinds_are_declared_by_the_classes_that_promise_them() -> None:
    promises = {
        "words": WordPredictor,
        "labels": LabelPredictor,
        "texts": TextWriter,
        "influence": TextClassifier,
        "lattices": Lattice,
    }
    for name in TASKS:
        kind = variant("task", name)
        assert kind.kinds == {key for key, promise in promises.items() if issubclass(kind, promise)}, name
        assert kind.kinds, name
        assert kind.takes_decoder == (not issubclass(kind, LabelPredictor))
        assert kind.left_to_right == issubclass(kind, WordPredictor | Lattice)
    assert read_plan({"task": {"name": f"{HERE}:WordAfterNext"}}, "test").task_class.kinds == frozenset()
    assert read_plan({}, "test").task_class.kinds == {"words"}


def test_one_seed_gives_one_model() -> None:
    plan = read_plan({"task": {"embedding_size": 6}, "encoder": {"hidden_size": 6}}, "test")
    first, second = (build_task(plan, small_vocabulary(), None).state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)
