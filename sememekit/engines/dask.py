"""Several machines with a scheduler of Dask (``distributed``)."""

from collections.abc import Callable
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, final

from sememekit.engines.base import Engine, Result
from sememekit.errors import ConfigError, EngineError
from sememekit.files import needed

_PATIENCE: Final = "10s"  # timeout of a scheduler


@final
class Dask(Engine):
    """``--engine dask:tcp://HOST:8786`` uses a running scheduler; ``--engine dask`` starts one on this machine.

    Each worker has one thread (``dask worker --nthreads 1``), because torch's threads and CPU time belong to a process. A call
    of a lost worker goes to another worker; after three losses the call is given up (Dask's ``allowed-failures``)."""

    def __init__(self, options: str, num_workers: int, folder: Path) -> None:
        super().__init__(options, num_workers, folder)
        distributed = needed("distributed", "--engine dask", "sememekit[dask]")
        self._cluster: Any = None
        if not options:
            self._cluster = distributed.LocalCluster(
                n_workers=num_workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                # Without TLS every user of this machine could run code by the scheduler.
                **({"security": True, "protocol": "tls://"} if find_spec("cryptography") is not None else {}),
            )
        try:
            self._client = distributed.Client(self._cluster or options, set_as_default=False, timeout=_PATIENCE)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"--engine dask:{options}: no scheduler answers there ({error}); begin one with: dask scheduler"
            ) from None
        self._lost = distributed.scheduler.KilledWorker
        self._pool = self._client.get_executor(pure=False)

    def submit(self, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
        inner, outer = self._pool.submit(work, *arguments), Future[Result]()
        outer.set_running_or_notify_cancel()

        def tell(done: Future[Result]) -> None:
            error = done.exception() if not done.cancelled() else EngineError("given up")
            if isinstance(error, self._lost):
                error = EngineError(f"a call was given up after it lost {error.allowed_failures + 1} workers: {error}")
            outer.set_result(done.result()) if error is None else outer.set_exception(error)

        inner.add_done_callback(tell)
        return outer

    def close(self) -> None:
        self._pool.shutdown(wait=False)
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()
