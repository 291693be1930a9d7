"""The served runs: each is opened once for many questions, also with changed annotations."""

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from sememekit.errors import ConfigError
from sememekit.notebook.run import Run
from sememekit.runs.attacks.victims import NamedVictim, open_victim
from sememekit.sememes.overlay import Change, apply_changes, write_overlay
from sememekit.serve.questions import GivenChange

QUICKSTART: Final = ("sdlm", "softmax", "lattice", "more")  # folders of the quickstart that have runs
_MOST_OVERLAID: Final = 3  # number of cached models with changed annotations


class UnknownRunError(Exception):
    """A request names a run that is not served."""


class ServedRun(Run):
    """A run that caches the means of its sememes, and its models with changed annotations."""

    name: str = ""  # its name for clients, also in reports in place of the folder

    def __str__(self) -> str:
        return self.name

    @cached_property
    def _made(self) -> dict[Hashable, Any]:
        return {}

    def once(self, name: Hashable, make: Callable[[], Any]) -> Any:
        """Return the result of ``make``, computed once for each name."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def with_overlay(self, overlay: Path | str) -> "ServedRun":
        """Return the run with the changes of an overlay; the last three are cached with their models."""
        return self.once("overlays", lambda: lru_cache(_MOST_OVERLAID)(self._changed))(Path(overlay))

    def _changed(self, overlay: Path) -> "ServedRun":
        made = type(self)(self.folder, self.plan, self.vocabulary, self._which, self.settings, self._trust_code, overlay)
        made.name, made.__dict__["_segmenter"] = self.name, self.segmenter()
        return made

    @cached_property
    def victim(self) -> NamedVictim:
        """Return the classifier as a victim of attacks; errors as ``open_victim``."""
        return open_victim(str(self.path), which=self._which, device=self.settings.device)


class Bench:
    """The served runs by name, the lexicons of substitutes, and the folder for saving.

    Runs of the same name in ``folders`` get numbers. ``overlays`` is a folder of this process for requested changes;
    ``sources`` are lexicons (``FORMAT:PATH``) of substitutes in attacks; ``save`` None disables saving. Raises
    CheckpointError: a folder is no run. Raises ConfigError: ``save`` lies in a run."""

    def __init__(
        self,
        folders: Sequence[Path],
        overlays: Path,
        sources: Sequence[str] = ("open",),
        save: Path | None = None,
        device: str = "auto",
    ) -> None:
        self.sources, self.save, self._overlays = tuple(sources), save, overlays
        if save is not None:
            inside = next((one for one in (save.resolve(), *save.resolve().parents) if (one / "plan.json").is_file()), None)
            if inside is not None:
                raise ConfigError(f"--save {save}: lies in the run {inside}, which is never changed; give another folder")
        self.runs: dict[str, ServedRun] = {}
        for folder in folders:
            run, name = ServedRun.open(folder, device=device), folder.resolve().name
            names = (name, *(f"{name}-{number}" for number in range(2, len(folders) + 1)))
            run.name = next(one for one in names if one not in self.runs)
            self.runs[run.name] = run

    def run(self, name: str) -> ServedRun:
        """A served run. Raises UnknownRunError: none has the name."""
        if name not in self.runs:
            raise UnknownRunError(f"no run {name!r} is served; there are {', '.join(self.runs)}")
        return self.runs[name]

    def overlay(self, run: ServedRun, changes: Sequence[GivenChange]) -> Path | None:
        """A file with the changes, or None. Raises ConfigError, DataError, GraphError: a change does not fit the annotation."""
        if not changes:
            return None
        graph = run.stored_graph
        if graph is None:
            raise ConfigError(f"{run} has no sememe graph whose annotation could be changed")
        given = [
            Change(one.sense, tuple(one.add), tuple(one.remove), "", f"change {place}")
            for place, one in enumerate(changes, start=1)
        ]
        _, _, spelled = apply_changes(graph, given)
        digest = sha256(repr([(one.sense, one.add, one.remove) for one in spelled]).encode()).hexdigest()[:32]
        path = self._overlays / f"{digest}.overlay"
        if not path.exists():
            write_overlay(path, spelled)
        return path

    def changed(self, name: str, changes: Sequence[GivenChange]) -> ServedRun:
        """A served run with changes of its annotation; errors as ``run`` and ``overlay``."""
        run = self.run(name)
        path = self.overlay(run, changes)
        return run if path is None else run.with_overlay(path)

    def folder(self) -> Path:
        """Return the folder for saving; made if missing. Raises ConfigError: saving is disabled."""
        if self.save is None:
            raise ConfigError("nothing is saved here; start the server with: sememekit serve --save FOLDER")
        self.save.mkdir(parents=True, exist_ok=True)
        return self.save


def quickstart_runs(folder: Path = Path("quickstart")) -> list[Path]:
    """Return the runs of the quickstart. Raises ConfigError: no runs; the message has the command that makes them."""
    found = [folder / name for name in QUICKSTART if (folder / name / "plan.json").is_file()]
    if not found:
        raise ConfigError(
            f"no RUN is given, and there is none in {folder}; name the folder of a trained model, or train some in three "
            "minutes with: sememekit quickstart"
        )
    return found
