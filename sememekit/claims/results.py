"""The result of a trial as a JSON file, sufficient to compare and repeat the trial."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from sememekit.config import Record, record_of
from sememekit.errors import DataError
from sememekit.files import is_there, read_sealed


class Point(Record):
    """One epoch of a learning curve."""

    epoch: int
    """The epoch from 1."""
    step: int
    """Updates so far."""
    cpu_seconds: float
    """CPU time of training so far; the total is divided among epochs in proportion to wall time."""
    valid: float
    """The metric on validation that the schedule watches."""
    rate: float | None = None
    """The learning rate of the epoch; None in results of earlier versions."""


class RunResult(Record):
    """One trained and measured model."""

    trial: str
    arm: str
    seed: int
    tiny: bool
    """trial, arm, seed, tiny: identify the trial."""
    commands: tuple[str, ...]
    """The commands of the trial, as typed."""
    plan: Mapping[str, Any]
    """Every setting of the training, resolved."""
    signature: str
    """The signature of data and measurement; only results with equal signatures can be compared."""
    measured: Mapping[str, Any]
    """The output of the evaluating command."""
    curve: tuple[Point, ...]
    """Validation by epoch."""
    finished: str
    """Reason why training ended."""
    versions: Mapping[str, Any]
    """The versions of software, machine and commit, from the run folder."""

    def value(self, path: str) -> float:
        """Return a number in ``measured`` by keys with dots, in lists by ``name`` or index. Raises DataError: no number."""
        found: Any = self.measured
        for key in path.split("."):
            if isinstance(found, list | tuple):
                named = (entry for entry in found if entry.get("name") == key)
                found = next(named, found[int(key)] if key.isdecimal() and int(key) < len(found) else None)
            else:
                found = found.get(key) if isinstance(found, Mapping) else None
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise DataError(
                f"result {self.trial}: the measurement has no number {path!r}; it has {', '.join(self.measured)}; correct "
                f"'value' of the claim, or delete {self.trial}.json and make it again: sememekit reproduce run"
            )
        return float(found)


class UpdateTimes(Record):
    """The cost of an update of a claim's two models, measured interleaved on one machine."""

    arms: tuple[str, str]
    """Names of (baseline, other), as they are trained."""
    baseline: tuple[float, ...]
    other: tuple[float, ...]
    """baseline, other: CPU seconds per update, one value for each turn."""
    versions: Mapping[str, Any]
    """The versions of the software, the machine and the commit."""

    @property
    def ratio(self) -> float:
        """The cost of an update of ``other`` / ``baseline``, by the fastest turn of each."""
        return min(self.other) / min(self.baseline)


def read_times(path: Path) -> UpdateTimes | None:
    """Read the times of a file; None if it is absent. Raises DataError: it cannot be read, or holds no times."""
    return _record(UpdateTimes, path) if is_there(path, DataError) else None


def read_results(paths: Iterable[Path]) -> dict[str, RunResult]:
    """Return the existing results by trial names. Raises DataError: a file that cannot be read, or is not a result."""
    return {path.stem: _record(RunResult, path) for path in paths if is_there(path, DataError)}


_Kind = TypeVar("_Kind", bound=Record)


def _record(kind: type[_Kind], path: Path) -> _Kind:
    def refuse(why: str) -> DataError:
        return DataError(f"{why}; delete it and make it again: sememekit reproduce run")

    return record_of(kind, read_sealed(path, refuse), path, refuse)
