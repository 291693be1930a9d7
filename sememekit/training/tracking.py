"""Learning curves for experiment trackers: TensorBoard, Weights & Biases, MLflow.

``metrics.jsonl`` always has the same numbers."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from sememekit.errors import CheckpointError, ConfigError, TrainingError
from sememekit.files import read_object, replace_file, to_json, typed
from sememekit.training.metrics import ChangeReport, EpochReport, Report, StepReport

PROJECT: Final = "sememekit"
"""Default project of Weights & Biases (WANDB_PROJECT names another), and default experiment of MLflow."""
IDS: Final = "tracking.json"  # file in the run folder with the run's id in each tracker, with which a resumed run continues


def values_of(report: Report) -> dict[str, float]:
    """Return the numbers of a report by tracked name; empty for reports without any.

    Validation is ``valid/NAME``; nats are natural logarithms, the mean over predicted tokens. Losses estimated from sampled
    words have a separate name, so that curves never mix them with exact losses."""
    if isinstance(report, StepReport):
        return {
            _named("train/nats", report): report.nats,
            "train/rate": report.rate,
            "train/tokens_per_second": report.tokens_per_second,
        }
    if isinstance(report, EpochReport):
        valid = {f"valid/{name}": value for name, value in report.valid.items()}
        return valid | {_named("epoch/train_nats", report): report.train_nats}
    if isinstance(report, ChangeReport):
        return {f"change/{name}": value for name, value in report.values.items()}
    return {}


def _named(loss: str, report: StepReport | EpochReport) -> str:
    return f"{loss}_estimated" if report.estimated else loss


class Followed(NamedTuple):
    """A run in one tracker."""

    number: str  # id of the run in the tracker; empty if not needed
    add: Callable[[Mapping[str, float], int], None]  # takes numbers by name, and the step of the optimiser
    end: Callable[[], None]  # closes it; nothing is lost


def tensorboard(run: Path, plan: Mapping[str, Any], number: str) -> Followed:
    """Events in the folder ``tensorboard`` of the run."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(run / "tensorboard"))

    def add(values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    return Followed("", add, writer.close)


def wandb(run: Path, plan: Mapping[str, Any], number: str) -> Followed:
    """A run of Weights & Biases; WANDB_MODE=offline sends nothing, and WANDB_PROJECT names another project."""
    import wandb as program

    project = os.environ.get("WANDB_PROJECT", PROJECT)
    known = {"id": number, "resume": "allow"} if number else {}
    begun = program.init(project=project, name=run.name, dir=str(run), config=dict(plan), **known)
    return Followed(str(begun.id), lambda values, step: begun.log(dict(values), step=step), begun.finish)


def mlflow(run: Path, plan: Mapping[str, Any], number: str) -> Followed:
    """A run of MLflow at MLFLOW_TRACKING_URI; MLFLOW_EXPERIMENT_NAME names another experiment."""
    import mlflow as program

    client = program.MlflowClient()
    if not number:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        found = client.get_experiment_by_name(name)
        experiment = found.experiment_id if found is not None else client.create_experiment(name)
        number = str(client.create_run(experiment, run_name=run.name).info.run_id)
        for key, value in _flat(plan):
            client.log_param(number, key, value)

    def add(values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            client.log_metric(number, name, value, step=step)

    return Followed(number, add, lambda: client.set_terminated(number))


TRACKERS: Final = {"tensorboard": (tensorboard, "track"), "wandb": (wandb, "wandb"), "mlflow": (mlflow, "mlflow")}
"""Name of ``--track`` and of the package -> a function of a run folder, its plan and its previous id; the extra to install."""


def check_trackers(names: Iterable[object]) -> None:
    """Raise ConfigError for the first of the trackers whose package is not installed; nothing is imported."""
    for name in names:
        if str(name) in TRACKERS and find_spec(str(name)) is None:
            raise ConfigError(
                f"--track {name}: the package {name} is not installed; type: "
                f'pip install "sememekit[{TRACKERS[str(name)][1]}]", or leave --track out'
            )


@contextmanager
def tracking(names: Iterable[str], run: Path, plan: Mapping[str, Any]) -> Iterator[Callable[[Report], None]]:
    """Yield a function that sends a report to these trackers, and to TensorBoard if installed.

    >>> with tracking([], folder, {}) as tell:
    ...     tell(report)

    A resumed run keeps its id (``tracking.json`` in its folder). Raises ConfigError as ``check_trackers``. Raises
    TrainingError: a tracker refuses the run or its numbers. Raises CheckpointError: ``tracking.json`` was damaged."""
    check_trackers(names)
    wanted = dict.fromkeys([*(["tensorboard"] if find_spec("tensorboard") is not None else []), *names])
    kept = run / IDS
    numbers: dict[str, str] = {}
    if kept.exists():
        numbers = read_object(kept, lambda why: CheckpointError(f"{why}; delete it, and the run has a new number there"))
    with ExitStack() as held:
        followed: dict[str, Followed] = {}
        for name in wanted:
            with _failures_of(name, run):
                followed[name] = TRACKERS[name][0](run, plan, numbers.get(name, ""))
            held.callback(followed[name].end)
            if followed[name].number:
                numbers[name] = followed[name].number
        if numbers:
            replace_file(kept, to_json(numbers))

        def tell(report: Report) -> None:
            if values := values_of(report):
                for name, one in followed.items():
                    with _failures_of(name, run):
                        one.add(values, report.step)

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
