"""Small trainings that one process and several must go through alike, without a run folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sememekit.decoders import DECODERS
from sememekit.encoders.base import FromFiles
from sememekit.ranks import Ranks
from sememekit.runs.build import build_task, clusters_of, data_of, graph_of, labels_of
from sememekit.runs.plan import read_plan
from sememekit.training import StepReport, Trainer
from sememekit.training.snapshots import write_snapshot
from tests.golden import SMALL_ENCODERS, Places

STEPS = 8
EVERY_TERM: dict[str, Any] = {
    "task__random_lengths": True,
    "task__activation_penalty": 2.0,
    "task__temporal_penalty": 1.0,
    "task__batch_size": 5,
    "task__length_spread": 2.0,
    "task__shortest_chunk": 2,
    "optimizer__learning_rate": 1.0,
}
"""Settings of a language model: segments of random length, penalties, columns that no two or four processes can share
evenly."""


class NoFolder:
    """A stand-in for a run folder: nothing that is written stays."""

    def save(self, step: int, model: Any, trainer: Any, *, best: bool) -> str:
        with tempfile.TemporaryDirectory() as folder:
            write_snapshot(Path(folder) / "snapshot", model, trainer)
        return f"step-{step:08d}"

    def pointer(self) -> dict[str, str]:
        return {}


def _words(decoder: str = "softmax", encoder: dict[str, Any] | None = None, /, **changes: Any) -> Callable[[Places], Any]:
    """A language model with every term; the settings ``of_decoder`` go to its output layer."""
    of_decoder = changes.pop("of_decoder", {})

    def table(places: Places) -> dict[str, Any]:
        made = places.words.table(decoder, **{**EVERY_TERM, **changes})
        made["decoder"] |= of_decoder
        return {**made, "encoder": encoder or made["encoder"]}

    return table


def _golden(case: str, **of_task: Any) -> Callable[[Places], Any]:
    def table(places: Places) -> dict[str, Any]:
        made = places.table(case)
        return {**made, "task": {**made["task"], **of_task}}

    return table


ADAM = {"optimizer__name": "adam", "optimizer__learning_rate": 0.02}
CASES: dict[str, Callable[[Places], dict[str, Any]]] = {
    **{decoder: _words(decoder) for decoder in sorted(DECODERS)},
    "sdlm with sampled words": _words("sdlm", of_decoder={"samples": 3}),
    "columns in parts": _words("sdlm", task__small_batch_size=2),
    "clusters in parts": _words("self_organized", task__small_batch_size=2),
    "averaged Adam": _words(**ADAM, optimizer__averaging="from_start"),
    "sememe cell": _words("sdlm", {"name": "lstm", "hidden_size": 6, "num_layers": 2, "injection": "cell"}),
    "awd_lstm": _words("softmax", {"name": "awd_lstm", "hidden_size": 6, "num_layers": 2}, **ADAM),
    "transformer": _words("softmax", {"name": "transformer", **SMALL_ENCODERS["transformer"]}, **ADAM),
    "headline softmax": _golden("headline softmax"),
    "headline sdlm": _golden("headline sdlm"),
    "headline self_organized": _golden("headline self_organized"),
    "lattice": _golden("lattice softmax"),
    "lattice, a loss per sentence": _golden("lattice mos", loss_per="sentence", batch_size=7),
    "nli": _golden("nli bilstm"),
    "fewer examples than ranks": _golden("classification lstm", batch_size=39),
    "sampled words, fewer examples than ranks": _golden("headline sampled", batch_size=59),  # of 60
}
"""Name -> the plan."""


def trainer_of(table: dict[str, Any], ranks: Ranks, dtype: torch.dtype = torch.float64, **run: Any) -> Trainer:
    """A trainer of a plan without dropout but the plan's own, on the CPU."""
    plan = read_plan({**table, "run": {**table["run"], "report_every": 1, **run}}, "a test")
    data = data_of(plan)
    clusters = clusters_of(plan, data.vocabulary)
    task = build_task(plan, data.vocabulary, graph_of(plan), clusters, labels_of(data.signature), data.chunks(), None)
    for part in task.modules():
        if isinstance(part, FromFiles):
            part.read_weights()
    task.begin_training(data)
    folder: Any = NoFolder()
    return Trainer(task.to(dtype), data, folder, plan.optimizer, plan.schedule, plan.run, ranks)


def go_on(trainer: Trainer, until: int) -> list[float]:
    """Train to a step; the loss of each step taken."""
    reports = trainer.run(lambda: trainer.progress.step >= until)
    return [report.nats for report in reports if isinstance(report, StepReport)]


def weights_of(trainer: Trainer) -> dict[str, Tensor]:
    """A copy of the weights."""
    return {name: tensor.clone() for name, tensor in trainer.task.state_dict().items()}


def outcome(trainer: Trainer, losses: list[float]) -> dict[str, Any]:
    """Return the values to compare: losses, weights, averages, and the results of validation."""
    weights = weights_of(trainer)
    with trainer.average.averaged_weights():
        weights |= {f"mean {name}": tensor for name, tensor in weights_of(trainer).items()}
    return {"losses": losses, "weights": weights, "history": list(trainer.progress.history), "rate": trainer.progress.rate}
