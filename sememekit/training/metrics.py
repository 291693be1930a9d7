"""Reports of the trainer, stored as lines of ``metrics.jsonl``.

A power cut loses no line that a checkpoint needs; lines are checked on reading."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from sememekit.config import first_problem
from sememekit.errors import CheckpointError
from sememekit.files import is_there, naming, read_bytes, warn


@dataclass(frozen=True)
class StepReport:
    """Progress inside an epoch."""

    # epoch, batch, num_batches: the epoch, from 1; finished and total batches of it
    epoch: int
    batch: int
    num_batches: int
    step: int
    nats: float  # mean training loss in nats a token since the last report
    rate: float
    tokens_per_second: float  # predicted tokens a second since the last report
    estimated: bool = False  # whether the loss is an estimate from sampled words, which is too low on average


@dataclass(frozen=True)
class EpochReport:
    """The end of an epoch."""

    # epoch, step: from 1; optimiser steps of the whole run
    epoch: int
    step: int
    train_nats: float  # mean training loss of the epoch in nats a token, with dropout
    valid: dict[str, float]  # metrics on the validation split
    rate: float
    best: bool  # whether these are the best weights so far
    rate_cut: bool  # whether the rate was cut after this epoch
    finished: str  # why the run ends here, or an empty string
    # seconds, tokens_per_second: wall time of the training part of the epoch, and predicted tokens a second
    seconds: float
    tokens_per_second: float
    averaged: bool = False  # whether the validated weights are means over steps
    averaging_begins: bool = False  # whether averaging begins after this epoch
    cpu_seconds: float = 0.0  # CPU time of the training part, over all threads
    metric: str = ""  # name of the metric that the schedule watches
    estimated: bool = False  # whether ``train_nats`` is an estimate from sampled words, which is too low on average
    augmented: int = 0  # training examples that ``--augment`` added


@dataclass(frozen=True)
class ChangeReport:
    """A change of the model without gradients, such as of its word clusters; ``values`` are from ``Scheduled.after_step``."""

    epoch: int
    step: int
    values: dict[str, float]


@dataclass(frozen=True)
class StopReport:
    """The run was stopped and wrote a checkpoint to resume from."""

    epoch: int
    step: int
    checkpoint: str


Report = StepReport | EpochReport | ChangeReport | StopReport

CLUSTER_UPDATE: Final = "ClusterUpdate"  # the kind of the line that ``cluster-update`` adds
MEASURED: Final = (EpochReport.__name__, CLUSTER_UPDATE)  # kinds of the lines with validation figures
REPEATED: Final = (*MEASURED, StepReport.__name__, ChangeReport.__name__)  # kinds that a resumed run writes again

WHAT_TO_DO: Final = (
    "copy the file again from where it was trained; evaluation does not need it, and train --from RUN --out OTHER trains the "
    "weights further in a new run"
)

_KINDS: Final = {kind.__name__: TypeAdapter(kind) for kind in (StepReport, EpochReport, ChangeReport)}


def append(path: Path, record: Mapping[str, Any]) -> None:
    """Append one line; lines of epochs, changes and stops are flushed to disk."""
    with naming(path), path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(record, ensure_ascii=False) + "\n")
        stream.flush()
        if record.get("kind") != StepReport.__name__:
            os.fsync(stream.fileno())


def content(path: Path) -> bytes:
    """The bytes of the file; none if it is absent. Raises CheckpointError: it cannot be read."""
    return read_bytes(path, CheckpointError) if is_there(path, CheckpointError) else b""


def parse(raw: bytes, path: Path, before: int = 0) -> list[dict[str, Any]]:
    """Return the records in bytes of ``path``, without a torn last line and NUL bytes of a power cut; ``before`` is the number
    of the lines before them. CheckpointError: a line is no report."""
    if b"\0" in raw:
        warn(f"{path} holds NUL bytes, as a power cut leaves them; they are passed over, and a report may be missing")
    records = []
    for number, line in enumerate(raw.split(b"\n")[:-1], start=before + 1):
        if line := line.strip(b"\0"):
            records.append(_record(path, number, line))
    return records


def measured_at(records: Iterable[Mapping[str, Any]], step: int) -> Mapping[str, Any] | None:
    """Return the line about the weights after ``step`` steps, written at the end of an epoch or by ``cluster-update``, which
    changes weights without a step. None if there is no such line."""
    found = [record for record in records if record["step"] == step and record["kind"] in MEASURED]
    return found[-1] if found else None


def tokens_per_second(epochs: Iterable[Mapping[str, Any]]) -> float:
    """The mean speed of finished epochs; 0 without any."""
    timed = [(float(record["seconds"]), float(record["tokens_per_second"])) for record in epochs]
    seconds = sum(spent for spent, _ in timed)
    return sum(spent * speed for spent, speed in timed) / seconds if seconds else 0.0


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line.decode())
        if not isinstance(record, dict):
            raise ValueError("no JSON object")
        kind = record.get("kind")
        if not isinstance(kind, str) or type(record.get("step")) is not int:
            raise ValueError("no kind or no step")
        if kind in _KINDS:
            _KINDS[kind].validate_json(line, strict=True)
    except (ValueError, RecursionError) as error:
        why = f"{kind}, {first_problem(error)}" if isinstance(error, ValidationError) else str(error)
        raise CheckpointError(f"{path}:{number}: not a report as sememekit wrote it ({why:.200}); {WHAT_TO_DO}") from None
    return record
