"""A task with one number as its model, so that a test can say by hand what each step of a training does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import torch
from torch import Tensor, nn

from sememekit.config import Settings
from sememekit.decoders.base import Scheduled
from sememekit.tasks.base import BatchLoss, Carry, Planned, PrimaryMetric
from sememekit.training import Report, RunFolder, Trainer
from sememekit.training.settings import OptimizerSettings, RunSettings, ScheduleSettings

PARTS = BatchLoss(torch.zeros(()), 2, None, ())


class Notified(Scheduled):
    """An output layer of two words with equal probabilities, which notes cuts of the rate."""

    def __init__(self, seen: list[tuple[str, Any]]) -> None:
        nn.Module.__init__(self)
        self.seen = seen

    def log_probs(self, hidden: Tensor) -> Tensor:
        return hidden.new_full((*hidden.shape[:-1], 2), -math.log(2.0))

    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        return -self.log_probs(hidden).gather(-1, target.unsqueeze(-1)).squeeze(-1)

    def after_rate_cut(self) -> None:
        self.seen.append(("cut", None))


class Toy(Planned):
    """A task that learns a number w: the loss of a batch b is b * w in nats, of two predictions.

    Attributes:
        valid: what validation gives, one an epoch; the last again and again.
        parts: what a batch's losses have beside their nats.
    """

    class Settings(Settings):
        """No settings."""

    def __init__(self, batches: tuple[float, ...] = (1.0, 2.0, 3.0), valid: tuple[float, ...] = (50.0,)) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.0]))
        self.epoch_batches, self.valid, self.parts = batches, list(valid), [PARTS]
        self.seen: list[tuple[str, Any]] = []
        self.layer = Notified(self.seen)

    @classmethod
    def build(cls, settings: Any, resources: Any) -> Self:
        return cls()

    @property
    def metric(self) -> PrimaryMetric:
        return PrimaryMetric("figure", lower_is_better=True)

    def expect_updates(self, total: int) -> None:
        self.seen.append(("updates", total))

    def num_batches(self, data: object, epoch_seed: int) -> int:
        return len(self.epoch_batches)

    def batches(self, data: object, epoch_seed: int, first: int) -> Iterator[float]:
        self.seen.append(("epoch", (epoch_seed, first)))
        yield from self.epoch_batches[first:]

    def start(self, data: object) -> Carry:
        return (torch.zeros(1),)

    def loss(self, batch: float, carry: Carry) -> BatchLoss:
        return next(self.losses(batch, carry))

    def losses(self, batch: float, carry: Carry) -> Iterator[BatchLoss]:
        self.seen.append(("batch", (batch, float(carry[0]), self.training)))
        for part in self.parts:
            penalty = None if part.penalty is None else part.penalty * self.w.sum()
            yield replace(part, nats=(batch * self.w).sum(), penalty=penalty, carry=(carry[0] + 1,))

    def evaluate(self, data: object, split: str) -> dict[str, float]:
        return {"figure": self.valid.pop(0) if len(self.valid) > 1 else self.valid[0]}

    def unigram_baseline(self, data: object, split: str) -> dict[str, float]:
        return {"figure": 100.0}


def trainer_of(task: Toy, folder: Path, **changes: Any) -> Trainer:
    """A trainer by plain SGD with rate 1 and no clip that is felt; ``schedule__epochs=3`` changes a key."""
    tables: dict[str, dict[str, Any]] = {"optimizer": {"learning_rate": 1.0, "clip": 1e9}, "schedule": {"epochs": 1}, "run": {}}
    for path, value in changes.items():
        slot, _, key = path.partition("__")
        tables[slot][key] = value
    run = RunFolder.create(folder, {}, {}, {})
    data: Any = SimpleNamespace(num_added=lambda split: 0)
    schedule, settings = ScheduleSettings(**tables["schedule"]), RunSettings(**{"stall_epochs": 0, **tables["run"]})
    return Trainer(task, data, run, OptimizerSettings(**tables["optimizer"]), schedule, settings)


def reports_of(trainer: Trainer, kind: Any, should_stop: Callable[[], bool] = lambda: False) -> list[Any]:
    """The reports of one kind of the whole training."""
    reports: list[Report] = list(trainer.run(should_stop))
    return [report for report in reports if isinstance(report, kind)]


def seen(task: Toy, what: str) -> list[Any]:
    """Return the values with which the task was called."""
    return [value for name, value in task.seen if name == what]


def number(tensor: Tensor) -> float:
    return float(tensor.detach())
