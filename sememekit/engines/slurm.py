"""Jobs of Slurm, by submitit."""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar, Final, final

from sememekit.engines.base import Engine, Result
from sememekit.errors import ConfigError, EngineError
from sememekit.files import needed

_LOOK_EVERY: Final = 0.5  # seconds between checks of the jobs; submitit queries Slurm less often
_PATIENCE: Final = 5.0  # seconds for cancelled jobs to end


@final
class Slurm(Engine):
    """``--engine slurm:slurm_partition=cpu,timeout_min=600``: each call is a job, with the options of submitit's
    ``AutoExecutor``; ``cluster=local`` runs the jobs as processes of this machine.

    Files of the jobs are in ``folder/.jobs``. A job that Slurm preempts or that reaches its time limit is put back into the
    queue and continues from its folder; a killed job raises ``EngineError``."""

    starts_slowly: ClassVar[bool] = True

    def __init__(self, options: str, num_workers: int, folder: Path) -> None:
        super().__init__(options, num_workers, folder)
        submitit = needed("submitit", "--engine slurm", "sememekit[slurm]")
        table = _options_in(options)
        cluster = table.pop("cluster", "slurm")
        self._killed = submitit.core.utils.UncompletedJobError
        try:
            self._executor: Any = submitit.AutoExecutor(folder / ".jobs" / "%j", cluster=cluster)
            self._executor.update_parameters(**{"timeout_min": 60, **{key: _value(text) for key, text in table.items()}})
        except (RuntimeError, ValueError, TypeError, NameError, AssertionError) as error:
            raise ConfigError(f"--engine slurm:{options}: {str(error).splitlines()[0]}") from None
        self._jobs: dict[Any, Future[Any]] = {}
        self._held = threading.Lock()
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def submit(self, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
        future = Future[Result]()
        future.set_running_or_notify_cancel()
        with self._held:  # threads of a command share an engine
            self._jobs[self._executor.submit(Call(work), *arguments)] = future
        return future

    def close(self) -> None:
        self._ended.set()
        self._watcher.join()
        for job in self._jobs:
            job.cancel()
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end and not all(job.done() for job in self._jobs):
            time.sleep(_LOOK_EVERY)
        self._jobs.clear()

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_EVERY):
            for job in [job for job in list(self._jobs) if job.done()]:
                future = self._jobs.pop(job)
                try:
                    result, error = job.result()
                except self._killed:
                    error = EngineError(f"job {job.job_id} ended before it was done; what it said: {job.paths.stderr}")
                except Exception as failure:
                    error = EngineError(f"job {job.job_id} failed: {failure}")
                future.set_result(result) if error is None else future.set_exception(error)


class Call:
    """A call as a job: it returns (result, None) or (None, exception), and starts again if Slurm requeues it."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self._work = work

    def __call__(self, *arguments: Any) -> tuple[Any, BaseException | None]:
        try:
            return self._work(*arguments), None
        except Exception as error:
            return None, error

    def checkpoint(self, *arguments: Any) -> Any:
        """Return the job that submitit submits when the present job must leave its machine."""
        import submitit

        return submitit.helpers.DelayedSubmission(self, *arguments)

    __submitit_checkpoint__ = checkpoint


def _options_in(text: str) -> dict[str, str]:
    """Read ``key=value,...`` into a table. Raises ConfigError for another form."""
    table = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise ConfigError(f"--engine slurm:{text}: expected KEY=VALUE with commas between, given {part!r}")
        table[key] = value
    return table


def _value(text: str) -> Any:
    values: Mapping[str, Any] = {"true": True, "false": False}
    return int(text) if text.isdecimal() else values.get(text, text)
