"""The interface of all engines."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from typing import Any, ClassVar, Final, Self, TypeVar

from sememekit.config import load_variant, trusted_code, trusting_code
from sememekit.engines import ENGINES
from sememekit.errors import ConfigError

Item = TypeVar("Item")
Result = TypeVar("Result")
LOOK_EVERY: Final = 0.2  # seconds between checks of work in other processes


class Engine(ABC):
    """Runs functions in processes elsewhere; functions, arguments and results are pickled.

        with opening.open_engine("local", 2, Path("work")) as engine:
            for index, result in engine.map(len, ["a", "bc"]):
                ...

    Files are passed by path, so every machine must see the folders under the same names. ``starts_slowly``: each call waits for
    a machine, so ``map`` groups items, one group for each worker. ``fresh``: each call has a separate process."""

    starts_slowly: ClassVar[bool] = False
    fresh: ClassVar[bool] = False

    def __init__(self, options: str, num_workers: int, folder: Path) -> None:
        """``options``: the text behind the colon; ``folder``: for its files. ConfigError: unknown options, or no package."""
        self.options, self.num_workers, self.folder = options, num_workers, folder

    @abstractmethod
    def submit(self, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Begin a call and return a future, which raises the exception of the call, or ``EngineError`` if the process was lost.
        Its ``cancel`` drops a call that has not begun."""

    @abstractmethod
    def close(self) -> None:
        """Drop calls that have not begun, end running ones, and release the processes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def map(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        look: Callable[[], None] | None = None,
        submit: Callable[..., Future[Any]] | None = None,
    ) -> Iterator[tuple[int, Result]]:
        """Yield (index, result) of every item as soon as it is known. Raises the exception of the first failed call; calls that
        have not begun are dropped. ``look`` is called a few times a second; ``submit`` begins calls (default: the method)."""
        size = -(-len(items) // self.num_workers) if self.starts_slowly and items else 1
        groups = [list(range(first, min(first + size, len(items)))) for first in range(0, len(items), size)]
        begin = submit or self.submit
        futures = {begin(call_each, work, [items[index] for index in group], trusted_code()): group for group in groups}
        waiting = set(futures)
        try:
            while waiting:
                done, waiting = wait(waiting, LOOK_EVERY if look is not None else None, FIRST_COMPLETED)
                for future in done:
                    yield from zip(futures[future], future.result(), strict=True)
                if look is not None:
                    look()
        finally:
            for future in futures:
                future.cancel()

    def in_order(
        self, work: Callable[[Item], Result], items: Sequence[Item], report: Callable[[int], None] = lambda known: None
    ) -> Iterator[Result]:
        """Return the results in the order of the items; ``report`` gets the number of known results. Raises as ``map``."""
        waiting: dict[int, Result] = {}
        following = 0
        for known, (index, result) in enumerate(self.map(work, items), start=1):
            report(known)
            waiting[index] = result
            while following in waiting:
                yield waiting.pop(following)
                following += 1


def call_each(work: Callable[[Item], Result], items: Sequence[Item], trust: Any) -> list[Result]:
    """Return the results of some items, in another process with the same trusted code."""
    with trusting_code(True if trust is None else trust):
        return [work(item) for item in items]


def engine_of(spec: str) -> tuple[type[Engine], str]:
    """Return class and options of ``--engine NAME``, ``NAME:OPTIONS`` or ``package.module:Class``, without starting it.

    Raises ConfigError: an unknown name."""
    name, _, options = spec.partition(":")
    if name not in ENGINES and options:
        name, options = spec, ""
    return load_variant("engine", name, ENGINES, lambda found: isinstance(found, type) and issubclass(found, Engine)), options


def open_engine(spec: str, num_workers: int, folder: Path) -> Engine:
    """The engine of ``--engine``; ``folder`` is for its files.

    Raises ConfigError: an unknown name, options that do not fit, or a package that is not installed."""
    if num_workers < 1:
        raise ConfigError(f"--workers {num_workers}: 1 or more is needed")
    kind, options = engine_of(spec)
    return kind(options, num_workers, folder)
