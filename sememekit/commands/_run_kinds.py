"""Options of commands that depend on the kind of run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Final

from sememekit.errors import ConfigError

if TYPE_CHECKING:
    from sememekit.runs.run import Run
    from sememekit.tasks.base import Kind

_SPELLED: Final = {"overrides": "--set", "other": "TEXT2", "input_file": "--input", "sources": "--source"}
"""Parameter -> option, if their names differ."""


def choose(
    command: str, run: Run, takers: Mapping[Any, Sequence[Any]], options: Mapping[str, Any], instead: str = "leave it out"
) -> tuple[Kind, dict[str, Any]]:
    """Return the kind of a run for a command, and the options of that kind, without reading weights.

    Args:
        takers: for each kind its functions, whose keyword-only arguments are its options, and names of further options. The
            first kind of the run is taken, or else the last kind, for its error message.
        options: typed options by name; None and False mean not typed. ``progress`` is dropped if no function takes it.
        instead: what to type in place of an option that does not fit.

    Raises:
        ConfigError: an option was typed that this kind does not take.
    """
    from sememekit.runs.plan import KIND_NAMES

    names = {kind: {name for one in taken for name in _options_of(one)} for kind, taken in takers.items()}
    own = next((kind for kind in takers if kind in run.kinds), [*takers][-1])
    special = set[str]().union(*names.values())
    typed = {name: value for name, value in options.items() if name in special and value is not None and value is not False}
    for name in typed.keys() - names[own] - {"progress"}:
        takes = " or ".join(KIND_NAMES[kind] for kind in takers if name in names[kind])
        flag = _SPELLED.get(name, f"--{name.replace('_', '-')}")
        advice = "put the whole text into quotes" if name == "other" else instead
        raise ConfigError(f"{flag}: {command} takes it with {takes}, and {run} is {KIND_NAMES[own]}; {advice}")
    return own, {name: value for name, value in typed.items() if name in names[own]}


def _options_of(taker: str | Callable[..., Any]) -> list[str]:
    if isinstance(taker, str):
        return [taker]
    return [one.name for one in signature(taker).parameters.values() if one.kind is Parameter.KEYWORD_ONLY]
