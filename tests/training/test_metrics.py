"""The lines of metrics.jsonl: what is read, what is passed over with a warning, and what is refused by its number."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from sememekit.errors import CheckpointError
from sememekit.files import RunWarning
from sememekit.training import EpochReport, StepReport, metrics

STEP = asdict(StepReport(epoch=1, batch=2, num_batches=5, step=3, nats=1.5, rate=0.1, tokens_per_second=9.0))
EPOCH = {"epoch": 1, "step": 3, "train_nats": 1, "valid": {"perplexity": 2.0}, "rate": 0.1, "best": True, "rate_cut": False}
EPOCH |= {"finished": "", "seconds": 1.0, "tokens_per_second": 9.0}


def example(kind: type[Any], /, **changes: Any) -> dict[str, Any]:
    return {"kind": kind.__name__, **(STEP if kind is StepReport else EPOCH), **changes}


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


def read(path: Path) -> list[dict[str, Any]]:
    return metrics.parse(metrics.content(path), path)


@pytest.mark.parametrize("kind", [StepReport, EpochReport])
def test_whole_lines_are_read_and_a_torn_one_is_not(tmp_path: Path, kind: type[Any]) -> None:
    path = tmp_path / "metrics.jsonl"
    assert read(path) == []
    record = example(kind)
    lines(path, record, record)
    with path.open("ab") as stream:
        stream.write(b'{"kind": "StepRep')
    assert read(path) == [record, record]
    metrics.append(lines(path), record)
    assert read(path) == [record]


def test_what_a_power_cut_leaves_is_passed_over_and_said(tmp_path: Path) -> None:
    path = lines(tmp_path / "metrics.jsonl", example(StepReport))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(path)
    with path.open("ab") as stream:
        stream.write(b"\0" * 20 + b"\n" + json.dumps(example(StepReport, step=9)).encode() + b"\n")
    with pytest.warns(RunWarning, match="holds NUL bytes"):
        assert [record["step"] for record in read(path)] == [3, 9]


@pytest.mark.parametrize(
    "changes",
    [
        {"step": 1.0},
        {"step": True},
        {"step": None},
        {"kind": 3},
        {"epoch": "1"},
        {"epoch": True},
        {"best": 1},
        {"valid": {"a": "b"}},
    ],
)
def test_a_value_of_another_kind_is_refused_by_its_line(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = lines(tmp_path / "metrics.jsonl", example(EpochReport), example(EpochReport, **changes))
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl:2: not a report"):
        read(path)
