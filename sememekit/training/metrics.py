"""The lines of ``metrics.jsonl``: written so that a power cut loses none that a checkpoint needs, and checked on reading."""

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final

from sememekit.errors import CheckpointError
from sememekit.files import RunWarning, is_there, naming, read_bytes, replace_file
from sememekit.training.reports import ChangeReport, EpochReport, StepReport

CLUSTER_UPDATE: Final = "ClusterUpdate"
"""The kind of the line that ``cluster-update`` adds."""

_KINDS: Final = {kind.__name__: kind for kind in (StepReport, EpochReport, ChangeReport)}
_TYPES: Final[dict[Any, type | tuple[type, ...]]] = {
    int: int,
    float: (int, float),
    bool: bool,
    str: str,
    dict[str, float]: dict,
}
"""Annotation of a field of a report -> the types that JSON gives for it."""


def append(path: Path, record: Mapping[str, Any]) -> None:
    """Add one line. The line of an epoch, a change or a stop is on the disk before this returns."""
    with naming(path), path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(record, ensure_ascii=False) + "\n")
        stream.flush()
        if record.get("kind") != StepReport.__name__:
            os.fsync(stream.fileno())


def read(path: Path) -> list[dict[str, Any]]:
    """All records, without a last line cut short by a kill and NUL bytes of a power cut. Raises CheckpointError: a line that is
    no report; it is named."""
    if not is_there(path, CheckpointError):
        return []
    raw = read_bytes(path, CheckpointError)
    if b"\0" in raw:
        message = f"{path} holds NUL bytes, as a power cut leaves them; they are passed over, and a report may be missing"
        warnings.warn(message, RunWarning, stacklevel=3)
    records = []
    for number, line in enumerate(raw.split(b"\n")[:-1], start=1):
        if line := line.strip(b"\0"):
            records.append(_record(path, number, line))
    return records


def digest(path: Path) -> dict[str, Any]:
    """The size and the SHA-256 of the lines so far."""
    raw = read_bytes(path, CheckpointError) if path.exists() else b""
    return {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}


def begins_with(path: Path, stated: Mapping[str, Any]) -> bool:
    """Whether the file begins with the lines whose ``digest`` is given; lines that came later are not compared."""
    raw = read_bytes(path, CheckpointError) if path.exists() else b""
    size = int(stated["bytes"])
    return len(raw) >= size and hashlib.sha256(raw[:size]).hexdigest() == stated["sha256"]


def epochs(path: Path) -> list[dict[str, Any]]:
    """The records of finished epochs alone. Raises CheckpointError: as ``read``."""
    return [record for record in read(path) if record["kind"] == EpochReport.__name__]


def measured_at(records: Iterable[Mapping[str, Any]], step: int) -> Mapping[str, Any] | None:
    """The line of the weights after ``step`` steps: of the end of their epoch, or of ``cluster-update``, which changes weights
    without a step. None where nobody measured them, or the line is lost."""
    found = [
        record for record in records if record["step"] == step and record["kind"] in (EpochReport.__name__, CLUSTER_UPDATE)
    ]
    return found[-1] if found else None


def tokens_per_second(epochs: Iterable[Mapping[str, Any]]) -> float:
    """The mean speed of finished epochs; 0 without any."""
    timed = [(float(record["seconds"]), float(record["tokens_per_second"])) for record in epochs]
    seconds = sum(spent for spent, _ in timed)
    return sum(spent * speed for spent, speed in timed) / seconds if seconds else 0.0


def write(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Replace all records."""
    replace_file(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode())


def warn_of_lost_epochs(path: Path, records: Iterable[Mapping[str, Any]], done: int) -> None:
    """Warn where the checkpoint of a run is after ``done`` epochs and the report of one is missing."""
    there = {record["epoch"] for record in records if record["kind"] == EpochReport.__name__}
    lost = [number for number in range(1, done + 1) if number not in there]
    if lost:
        named = ", ".join(map(str, lost[:10])) + (" and more" if len(lost) > 10 else "")
        warnings.warn(
            f"{path} has lost its line of epoch {named}, though the checkpoint is after epoch {done}; training goes on as if "
            "nothing had happened, and the report lacks them",
            RunWarning,
            stacklevel=3,
        )


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line.decode())
        if not isinstance(record, dict):
            raise ValueError("no JSON object")
        kind = record.get("kind")
        if not isinstance(kind, str) or type(record.get("step")) is not int:
            raise ValueError("no kind or no step")
        for field in fields(_KINDS[kind]) if kind in _KINDS else ():
            if field.name not in record and field.default is not MISSING:
                continue
            value = record.get(field.name)
            good = isinstance(value, _TYPES[field.type]) and isinstance(value, bool) == (field.type is bool)
            numbers = value.values() if isinstance(value, dict) else () if isinstance(value, str) else (value,)
            good = good and all(isinstance(one, float) or (isinstance(one, int) and abs(one) < 1e300) for one in numbers)
            if not good:
                raise ValueError(f"key {field.name!r} of {kind} is {value!r:.60}")
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{path}:{number}: not a report as sememekit wrote it ({error!s:.200}); take the line out, or put the file "
            f"aside (mv {path} {path}.damaged): training and evaluation do not need it, and the report then begins later"
        ) from None
    return record
