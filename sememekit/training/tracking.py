"""Learning curves for the programs that follow experiments: TensorBoard, Weights & Biases, MLflow.

``metrics.jsonl`` has the same numbers, whatever follows a run.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final, final

from sememekit.errors import CheckpointError, ConfigError, TrainingError
from sememekit.files import read_object, replace_file, to_json, typed
from sememekit.training.metrics import ChangeReport, EpochReport, Report, StepReport

PROJECT: Final = "sememekit"
"""The project of Weights & Biases, unless WANDB_PROJECT names one; and the experiment of MLflow, unless one is chosen."""
IDS: Final = "tracking.json"
"""In the run folder: the number of the run in each program, so that a resumed run goes on there."""


def values_of(report: Report) -> dict[str, float]:
    """The numbers of a report under the names that are tracked; empty for reports without any.

    Validation is ``valid/NAME``; nats are natural logarithms, the mean over predicted tokens. A loss that is estimated from
    sampled words has a name of its own, so that no curve joins it with exact losses.
    """
    if isinstance(report, StepReport):
        return {
            _named("train/nats", report): report.nats,
            "train/rate": report.rate,
            "train/tokens_per_second": report.tokens_per_second,
        }
    if isinstance(report, EpochReport):
        return {f"valid/{name}": value for name, value in report.valid.items()} | {
            _named("epoch/train_nats", report): report.train_nats
        }
    if isinstance(report, ChangeReport):
        return {f"change/{name}": value for name, value in report.values.items()}
    return {}


def _named(loss: str, report: StepReport | EpochReport) -> str:
    return f"{loss}_estimated" if report.estimated else loss


class Tracker(ABC):
    """Tells one program of one run."""

    module: ClassVar[str]
    """What is imported."""
    extra: ClassVar[str]
    """What installs it: ``sememekit[EXTRA]``."""

    @abstractmethod
    def begin(self, run: Path, plan: Mapping[str, Any], number: str) -> str:
        """Open the run of a folder with its plan; ``number`` is what this returned before, empty for a fresh run."""

    @abstractmethod
    def add(self, values: Mapping[str, float], step: int) -> None:
        """Numbers by name at a step of the optimiser."""

    @abstractmethod
    def end(self) -> None:
        """Close it; nothing is lost."""


@final
class TensorBoard(Tracker):
    """Events in the folder ``tensorboard`` of the run."""

    module, extra = "tensorboard", "track"

    def begin(self, run: Path, plan: Mapping[str, Any], number: str) -> str:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(run / "tensorboard"))
        return ""

    def add(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def end(self) -> None:
        self._writer.close()


@final
class WandB(Tracker):
    """A run of Weights & Biases; WANDB_MODE=offline sends nothing, and WANDB_PROJECT names another project."""

    module, extra = "wandb", "wandb"

    def begin(self, run: Path, plan: Mapping[str, Any], number: str) -> str:
        import wandb

        project = os.environ.get("WANDB_PROJECT", PROJECT)
        known = {"id": number, "resume": "allow"} if number else {}
        self._run = wandb.init(project=project, name=run.name, dir=str(run), config=dict(plan), **known)
        return str(self._run.id)

    def add(self, values: Mapping[str, float], step: int) -> None:
        self._run.log(dict(values), step=step)

    def end(self) -> None:
        self._run.finish()


@final
class MLflow(Tracker):
    """A run of MLflow, where MLFLOW_TRACKING_URI says; MLFLOW_EXPERIMENT_NAME names another experiment."""

    module, extra = "mlflow", "mlflow"

    def begin(self, run: Path, plan: Mapping[str, Any], number: str) -> str:
        import mlflow

        self._client = mlflow.MlflowClient()
        if number:
            self._number = number
            return number
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        found = self._client.get_experiment_by_name(name)
        experiment = found.experiment_id if found is not None else self._client.create_experiment(name)
        self._number = self._client.create_run(experiment, run_name=run.name).info.run_id
        for key, value in _flat(plan):
            self._client.log_param(self._number, key, value)
        return str(self._number)

    def add(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self._client.log_metric(self._number, name, value, step=step)

    def end(self) -> None:
        self._client.set_terminated(self._number)


TRACKERS: Final[dict[str, type[Tracker]]] = {"tensorboard": TensorBoard, "wandb": WandB, "mlflow": MLflow}
"""Name of ``--track`` -> the class."""


def check_trackers(names: Iterable[object]) -> None:
    """Raise ConfigError for the first of the trackers whose package is not installed; nothing is imported."""
    for name in names:
        tracker = TRACKERS.get(str(name))
        if tracker is not None and find_spec(tracker.module) is None:
            raise ConfigError(
                f"--track {name}: the package {tracker.module} is not installed; type: "
                f'pip install "sememekit[{tracker.extra}]", or leave --track out'
            )


@contextmanager
def tracking(names: Iterable[str], run: Path, plan: Mapping[str, Any]) -> Iterator[Callable[[Report], None]]:
    """Inside, a function that tells the programs of these names a report, and TensorBoard wherever it is installed.

    >>> with tracking([], folder, {}) as tell:
    ...     tell(report)

    A resumed run goes on under its number (``tracking.json`` in its folder). Raises ConfigError as ``check_trackers``. Raises
    TrainingError: a program does not take the run or its numbers. Raises CheckpointError: ``tracking.json`` was damaged.
    """
    check_trackers(names)
    wanted = dict.fromkeys([*(["tensorboard"] if find_spec("tensorboard") is not None else []), *names])
    kept = run / IDS
    numbers: dict[str, str] = {}
    if kept.exists():
        numbers = read_object(kept, lambda why: CheckpointError(f"{why}; delete it, and the run has a new number there"))
    with ExitStack() as held:
        trackers = {name: TRACKERS[name]() for name in wanted}
        for name, tracker in trackers.items():
            with _failures_of(name, run):
                number = tracker.begin(run, plan, numbers.get(name, ""))
            held.callback(tracker.end)
            if number:
                numbers[name] = number
        if numbers:
            replace_file(kept, to_json(numbers))

        def tell(report: Report) -> None:
            if values := values_of(report):
                for name, tracker in trackers.items():
                    with _failures_of(name, run):
                        tracker.add(values, report.step)

        yield tell


@contextmanager
def _failures_of(name: str, run: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise TrainingError(
            f"--track {name}: {type(error).__name__}: {error}; what is trained is in {run}; go on with: "
            f"{typed('sememekit', 'train', '--out', run, '--resume', '--set', 'run.track=[]')}"
        ) from error


def _flat(plan: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in plan.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
