"""A training step never waits for its device: every task with every output layer takes one on the meta device.

Tensors there have shapes and no numbers. So whatever would read a number back (``item``, ``tolist``, ``nonzero``, a boolean
index, a copy to the CPU) raises, and code takes the ways that it takes on a GPU. Those that do wait are listed with the reason.
"""

from __future__ import annotations

import copy
import traceback
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import sememekit
from sememekit.decoders import DECODERS
from sememekit.decoders.sense_structure import SenseStructure
from sememekit.layers import Incidence
from sememekit.runs.build import build_task, data_of, graph_of, labels_of
from sememekit.runs.plan import read_plan
from sememekit.tasks.base import Planned
from sememekit.training import Trainer
from sememekit.training.trainer import _Window
from tests.golden import Places, cases

PACKAGE = Path(sememekit.__file__).parent
WAITING = {
    "adaptive": ("self.layer(", "torch's own adaptive softmax looks for the targets of each cluster"),
    "sampled": (".unique(", "the distinct words among draws and targets are found once a batch"),
    "tree_hsm": (".repeat_interleave(", "paths have as many nodes as the words of the batch decide"),
}
"""Output layer -> where its loss waits, and why. Lattices ask for the probabilities of all words, and wait for none."""
ADDED = ("language_model lstm-sememes", "language_model gru-sememes", "language_model awd_lstm", "headline bigru")


def table_of(places: Places, case: str) -> dict[str, Any]:
    """The plan of a case of ``tests.golden``, or of one that is added here."""
    if case not in ADDED:
        return places.table(case)
    task, encoder = case.split()
    table = places.words.table() if task == "language_model" else places.table("headline softmax")
    own: dict[str, Any] = {"name": encoder.removesuffix("-sememes"), "hidden_size": 6}
    if encoder.endswith("sememes"):
        own["injection"] = "cell"
        table["graph"] = {"path": str(places.words.graph)}
    return {**table, "encoder": own}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return Places(tmp_path_factory.mktemp("waiting"))


@pytest.fixture(autouse=True)
def _no_autocast(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch has no autocast for the meta device."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda *_: False)


def without_numbers(value: Any) -> Any:
    """The same value with its tensors on the meta device."""
    if isinstance(value, Tensor):
        return value.to("meta")
    if isinstance(value, Incidence):
        moved = copy.copy(value)
        moved.__dict__.update({name: without_numbers(part) for name, part in vars(value).items()})
        return moved
    if isinstance(value, tuple):
        parts = [without_numbers(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def take_a_step(table: dict[str, Any]) -> None:
    """One step of a trainer whose task is on the meta device, and what the task does after it."""
    plan = read_plan(table, "a test")
    data = data_of(plan)
    task = build_task(plan, data.vocabulary, graph_of(plan), None, labels_of(data.signature), data.chunks(), None)
    read_as = task._read_as() if hasattr(task, "_read_as") else None
    blocks = {part: part.blocks(torch.float32) for part in task.modules() if isinstance(part, SenseStructure)}
    task.to("meta")
    if read_as is not None:  # made once for a run
        task._read_as_copy = task.read_as._version, read_as  # type: ignore[assignment, union-attr]
    for part, made in blocks.items():  # made once for a device
        part._blocks = {(torch.device("meta"), torch.float32): without_numbers(made)}
    folder: Any = None
    trainer = Trainer(task, data, folder, plan.optimizer, plan.schedule, plan.run)
    trainer.optimizer = torch.optim.SGD(trainer.parameters)  # the fused Adam knows no meta device
    trainer.carry, trainer.progress.averaging = task.start(data), True
    task.train()
    if isinstance(task, Planned):
        task.expect_updates(10)
    for step, batch in enumerate(task.batches(data, 1, 0)):
        trainer._step(batch, _Window())
        task.after_step(step + 2)
        if step == 1:
            return


def waits_at(table: dict[str, Any]) -> str:
    """The innermost line of sememekit that reads a number in a step, and what torch says; empty for none."""
    try:
        take_a_step(table)
    except (RuntimeError, NotImplementedError) as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(PACKAGE)]
        return f"{frames[-1].filename}:{frames[-1].lineno}: {frames[-1].line}; {str(error).splitlines()[0]}"
    return ""


REPEATED = [f"headline {decoder}" for decoder in sorted(DECODERS) if decoder not in ("softmax", "sdlm", "self_organized")]
"""Cases that ask their output layer for the same as the language model, which is tried with every layer."""


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow) if case in REPEATED else case for case in [*cases(), *ADDED]]
)
def test_a_step_waits_for_nothing_but_what_is_listed(places: Places, case: str) -> None:
    task, part = case.split()
    known, _ = WAITING.get(part, ("", "")) if task != "lattice" else ("", "")
    where = waits_at(table_of(places, case))
    assert bool(where) == bool(known), where or f"{case} does not wait any more; take it out of WAITING"
    assert known in where


def test_what_reads_a_number_is_noticed() -> None:
    values = torch.ones(3, device="meta")
    for read in (lambda: values.sum().item(), values.tolist, values.nonzero, lambda: values[values > 0], values.cpu):
        with pytest.raises((RuntimeError, NotImplementedError)):
            read()
