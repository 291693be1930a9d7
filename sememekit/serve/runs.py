"""The served runs: each is opened once for many questions, also with changed annotations."""

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from copy import deepcopy
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir
from time import monotonic, sleep
from typing import Any, Final, Self, cast

from torch import nn

from sememekit.config.settings import checked_arguments
from sememekit.errors import ConfigError, SememekitError
from sememekit.files import sole_writer
from sememekit.notebook.run import Run
from sememekit.runs.attacks.victims import NamedVictim, run_victim
from sememekit.runs.plan import KIND_NAMES
from sememekit.sememes.overlay import Change, apply_changes, overlay_text
from sememekit.sememes.statistics import counts_of_added
from sememekit.serve.questions import GivenChange
from sememekit.serve.worker import BusyError, check_wanted
from sememekit.tasks.base import Kind, Task

QUICKSTART: Final = ("sdlm", "softmax", "lattice", "more")  # folders of the quickstart that have runs
_MOST_CHANGED: Final = 3  # number of cached models with changed annotations
_LONGEST_LOCK: Final = 5.0  # seconds for which a server waits for another one that saves


ANSWERING: Final[dict[str, frozenset[Kind]]] = {
    "next-words": frozenset({"words"}),
    "score": frozenset({"words", "texts"}),
    "tag": frozenset({"words"}),
    "explain": frozenset({"words", "texts", "lattices", "labels"}),
    "segment": frozenset({"lattices"}),
    "predict": frozenset({"labels"}),
    "generate": frozenset({"words", "texts"}),
    "attack": frozenset({"labels"}),
}
"""Path below /v1 -> the kinds of runs that answer it; paths about the sememe graph need a graph instead."""


class UnknownRunError(Exception):
    """A request names a run that is not served."""


class ServedRun(Run):
    """A run that caches the means of its sememes, and its models with changed annotations.

    ``load`` reads all that an answer needs, so that a run that is trained on meanwhile is answered from one state."""

    name: str = ""  # its name for clients, also in reports in place of the folder
    overlay: Path | None = None  # the name of its changes, None without changes; no such file exists
    content: bytes = b""  # its changes as an overlay file

    def __str__(self) -> str:
        return self.name

    def _checked(self, method: str, kind: Kind, options: Mapping[str, Any], *functions: Callable[..., Any]) -> dict[str, Any]:
        return checked_arguments(f"{method} of {self}, {KIND_NAMES[kind]}", options, *functions)

    def load(self) -> Self:
        _ = self.train_counts
        with suppress(SememekitError):  # a package is absent; questions about raw text say so
            self.segmenter()
        super().load()
        return self

    @cached_property
    def _loaded(self) -> tuple[Task, str, str]:
        loaded = super()._loaded
        for module in loaded[0].modules():
            if isinstance(module, nn.Embedding):  # a model looks words up at each step
                module.register_forward_pre_hook(lambda *_: check_wanted())
        return loaded

    @cached_property
    def _made(self) -> dict[Hashable, Any]:
        return {}

    def once(self, name: Hashable, make: Callable[[], Any]) -> Any:
        """Return the result of ``make``, computed once for each name."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def with_overlay(self, overlay: Path | str) -> Self:
        """Return the run with the changes of that name; see ``change``."""
        return cast(Self, self._changed[str(overlay)])

    @cached_property
    def _changed(self) -> dict[str, "ServedRun"]:
        return {}

    def change(self, changes: Sequence[Change]) -> "ServedRun":
        """Return the run with changes of its annotation and the same weights; the last three are kept, and ``with_overlay``
        finds them by the name of their ``overlay``. Raises ConfigError, GraphError: a change does not fit the annotation."""
        if self.stored_graph is None:
            raise ConfigError(f"{self} has no sememe graph whose annotation could be changed")
        graph, senses, spelled = apply_changes(self.stored_graph, changes)
        content = overlay_text(spelled)
        name = f"changes-{sha256(content).hexdigest()[:32]}"
        counts_of_added(self.stored_graph, self.vocabulary.counts, senses, Path(name), self.path)
        if (made := self._changed.pop(name, None)) is None:
            made = super().with_overlay(name)
            made.overlay, made.content = Path(name), content
            made.__dict__.update(_overlaid=(graph, senses), _made={}, _changed={})
        self._changed[name] = made
        for oldest in list(self._changed)[:-_MOST_CHANGED]:
            del self._changed[oldest]
        return made

    @cached_property
    def victim(self) -> NamedVictim:
        """Return the classifier, with these weights, as a victim of attacks; errors as ``open_victim``."""
        copied = self.with_more_words(self.vocabulary, self.graph, deepcopy(self.task))  # a victim computes in float64
        return run_victim(self.name, lambda: copied)


class Bench:
    """The served runs by name, the lexicons of substitutes, and the folder for saving.

    Runs of the same name in ``folders`` get numbers. ``sources`` are lexicons (``FORMAT:PATH``) of substitutes in attacks;
    ``save`` None disables saving. Raises CheckpointError: a folder is no run. Raises ConfigError: ``save`` lies in a run."""

    def __init__(
        self, folders: Sequence[Path], sources: Sequence[str] = ("open",), save: Path | None = None, device: str = "auto"
    ) -> None:
        self.sources, self.save = tuple(sources), save
        if save is not None:
            inside = next((one for one in (save.resolve(), *save.resolve().parents) if (one / "plan.json").is_file()), None)
            if inside is not None:
                raise ConfigError(f"--save {save}: lies in the run {inside}, which is never changed; give another folder")
        self.runs: dict[str, ServedRun] = {}
        for folder in folders:
            run, name = ServedRun.open(folder, device=device), folder.resolve().name
            names = (name, *(f"{name}-{number}" for number in range(2, len(folders) + 1)))
            run.name = next(one for one in names if one not in self.runs)
            self.runs[run.name] = run.load()

    def run(self, name: str, path: str = "") -> ServedRun:
        """A served run. Raises UnknownRunError: none has the name. Raises ConfigError: its kind does not answer the path."""
        if name not in self.runs:
            raise UnknownRunError(f"no run {name!r} is served; there are {', '.join(self.runs)}")
        run = self.runs[name]
        if path in ANSWERING and not ANSWERING[path] & run.kinds:
            wanted = " or ".join(name for kind, name in KIND_NAMES.items() if kind in ANSWERING[path])
            able = ", ".join(path for path, kinds in ANSWERING.items() if kinds & run.kinds)
            raise ConfigError(f"{path} needs {wanted}, and {run} is another model; it answers: {able}")
        return run

    def changed(self, name: str, changes: Sequence[GivenChange], path: str = "") -> ServedRun:
        """A served run with changes of its annotation; errors as ``run`` and ``ServedRun.change``."""
        run = self.run(name, path)
        given = [Change(one.sense, (*one.add,), (*one.remove,), "", f"change {at}") for at, one in enumerate(changes, start=1)]
        return run.change(given) if given else run

    @contextmanager
    def saving(self) -> Iterator[Path]:
        """Hold the folder for saving, made if missing; wait for another server. Raises ConfigError: saving is disabled. Raises
        BusyError: another server holds it for long."""
        if self.save is None:
            raise ConfigError("nothing is saved here; start the server with: sememekit serve --save FOLDER")
        self.save.mkdir(parents=True, exist_ok=True)
        until, folder = monotonic() + _LONGEST_LOCK, self.save
        with ExitStack() as held:
            while True:
                try:
                    busy = lambda holder: BusyError(f"{folder} is being written by {holder}; try again")  # noqa: E731
                    held.enter_context(sole_writer(folder / ".lock", busy))
                    break
                except BusyError:
                    if monotonic() > until:
                        raise
                    sleep(0.02)
            yield folder

    def public(self, message: str) -> str:
        """Return a message for a client, without the folders of this machine."""
        message = re.sub(r"--overlay changes-\w+", "the changes", message)
        names = dict(self._folders)
        return re.sub("|".join(rf"{re.escape(one)}(?=\W|$)" for one in names), lambda found: names[found[0]], message)

    @cached_property
    def _folders(self) -> list[tuple[str, str]]:
        """Absolute folders that a message may name, the longest first, and what a client reads in their place."""
        lexicons = [Path(source.partition(":")[2]).parent for source in self.sources if ":" in source]
        data = [Path(run.plan.data.path) for run in self.runs.values()]
        found = {folder.absolute(): "..." for folder in (Path(gettempdir()), Path.home(), Path.cwd(), *lexicons, *data)}
        named = {run.path: run.name for run in self.runs.values()} | ({self.save: "--save"} if self.save is not None else {})
        for folder, name in named.items():
            found |= {folder.absolute(): name, folder.resolve(): name}
        return sorted(((str(folder), name) for folder, name in found.items() if folder.name), key=lambda one: -len(one[0]))


def quickstart_runs(folder: Path = Path("quickstart")) -> list[Path]:
    """Return the runs of the quickstart. Raises ConfigError: no runs; the message has the command that makes them."""
    found = [folder / name for name in QUICKSTART if (folder / name / "plan.json").is_file()]
    if not found:
        raise ConfigError(
            f"no RUN is given, and there is none in {folder}; name the folder of a trained model, or train some in three "
            "minutes with: sememekit quickstart"
        )
    return found
