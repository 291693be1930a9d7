"""Commands that do another thing with each kind of run: which one, and which options fit it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sememekit.errors import ConfigError

if TYPE_CHECKING:
    from sememekit.runs.run import Run
    from sememekit.tasks.base import Kind

_SPELLED: Final = {"overrides": "--set", "other": "TEXT2", "input_file": "--input", "sources": "--source"}
"""How options are typed whose parameter has another name."""


class Way(NamedTuple):
    """What a command does with one kind of run (of ``Task.kinds``).

    Attributes:
        model: such a run in words, such as "a classifier".
        options: names of the options that this kind takes and another kind may not.
        call: takes the run and everything that was typed.
        instead: what to type in place of an option that does not fit.
    """

    kind: Kind
    model: str
    options: frozenset[str]
    call: Callable[..., Any]
    instead: str = ""


def open_run(run: Path) -> Run:
    """The run of a folder, for ``choose`` and then for what is called, so that the folder is read once."""
    from sememekit.runs.run import Run

    return Run.open(run)


def choose(command: str, run: Run, ways: Sequence[Way], options: Mapping[str, Any]) -> tuple[Way, dict[str, Any]]:
    """The way for a run, and those options that were typed; no weights are read.

    Args:
        command: its name.
        run: as ``open_run`` gave it.
        ways: the first whose kind the run has; of a run that has none, the last, which says what it needs.
        options: the ``locals()`` of the command; of those options that not all ways take, None and False were not typed.

    Raises:
        ConfigError: an option was typed that this kind does not take.
    """
    way = next((way for way in ways if way.kind in run.kinds), ways[-1])
    special = frozenset[str]().union(*(way.options for way in ways))
    typed = {name: value for name, value in options.items() if name in special and value is not None and value is not False}
    for name in typed:
        if name not in way.options:
            takers = " or ".join(other.model for other in ways if name in other.options)
            flag = _SPELLED.get(name, f"--{name.replace('_', '-')}")
            advice = "put the whole text into quotes" if name == "other" else way.instead or "leave it out"
            raise ConfigError(f"{flag}: {command} takes it with {takers}, and {run} is {way.model}; {advice}")
    return way, typed
