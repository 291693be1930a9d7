"""Learning curves for TensorBoard, where it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, final

from sememekit.training.reports import ChangeReport, EpochReport, Report, StepReport


@final
class TensorBoardLog:
    """A context in which reports become TensorBoard events; without the package it does nothing. metrics.jsonl has the same
    numbers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writer: Any = None

    def __enter__(self) -> TensorBoardLog:
        if find_spec("tensorboard") is not None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self.folder))
        return self

    def add(self, report: Report) -> None:
        if self._writer is None:
            return
        values: dict[str, float] = {}
        if isinstance(report, StepReport):
            values = {"train/nats": report.nats, "train/rate": report.rate, "train/tokens_per_second": report.tokens_per_second}
        elif isinstance(report, EpochReport):
            values = {f"valid/{name}": value for name, value in report.valid.items()} | {"epoch/train_nats": report.train_nats}
        elif isinstance(report, ChangeReport):
            values = {f"change/{name}": value for name, value in report.values.items()}
        for name, value in values.items():
            self._writer.add_scalar(name, value, report.step)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._writer is not None:
            self._writer.close()
