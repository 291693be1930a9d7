"""Look-up of a variant by name: a table of ``name -> "module:Class"``, an installed package's, or any importable class.

A package declares a variant as an entry point of the group ``sememekit.KIND`` (``sememekit.decoder``, ...); its name then works
like a built-in one. A name with a colon is code. Code that the user typed is loaded. Code named by a file of a run, of prepared
data or a recipe is refused by :func:`check_code`, unless all code is trusted (``--trust-code``) or the name was typed, too."""

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from importlib.metadata import entry_points
from inspect import isclass
from typing import Any

from sememekit.config.settings import nearest
from sememekit.errors import CheckpointError, ConfigError

_trusted: ContextVar[frozenset[str] | None] = ContextVar("sememekit_trusted_code", default=frozenset())
"""Names of code in folders that may be loaded; None for all."""

_MEMBERS = {"segmenter": "segment", **dict.fromkeys(("goal", "search", "candidates", "constraint"), "Settings")}
"""Kind -> the member that its variants must have, by default."""


def load_variant(kind: str, name: str, table: Mapping[str, str], is_one: Callable[[Any], bool] | None = None) -> Any:
    """The class behind ``name``: a key of ``table``, an entry point, or ``package.module:Class`` (working folder included).

    ``kind`` is "decoder", "encoder", "task", ...; ``is_one`` checks whether a custom class is of this kind (default: checks a
    member). Raises ConfigError for an unknown name and for code of another kind."""
    if not isinstance(name, str):  # a file may hold anything there
        raise ConfigError(f"the name of a {kind} is a text, given {name!r:.60}; allowed: {', '.join(sorted(table))}")
    target = table.get(name, name)
    if ":" not in target:
        installed = installed_variants(kind)
        if name not in installed:
            allowed = sorted({*table, *installed})
            raise ConfigError(
                f"unknown {kind} {name!r}{nearest(name, allowed)}; allowed: {', '.join(allowed)}, "
                f"or package.module:Class for one of your own"
            )
        target = installed[name]
    module_name, _, class_name = target.partition(":")
    if not all(part.isidentifier() for part in [*module_name.split("."), class_name]):
        raise ConfigError(f"{kind} {name!r}: expected package.module:Class, such as my_lab.layers:Mine")
    variant = imported(f"{kind} {name!r}", target, "class", typed=target == name)
    if name in table:
        return variant
    member = _MEMBERS.get(kind, "")
    fits = isclass(variant) and (not member or hasattr(variant, member))
    if not (fits if is_one is None else is_one(variant)):
        described = f"the class {variant.__name__}" if isclass(variant) else f"a {type(variant).__name__}"
        raise ConfigError(
            f"{kind} {name!r}: this is {described}, and no {kind}; it must be a class"
            + (f" with {member}" if member else f" of a {kind}")
        )
    return variant


def imported(what: str, target: str, sort: str, *, typed: bool = True) -> Any:
    """Import ``package.module:NAME``, if ``typed`` also from the working folder. ``what`` opens the message of an error, and
    ``sort`` says what NAME is. Raises ConfigError: it cannot be imported."""
    module_name, _, name = target.partition(":")
    if typed and (here := os.getcwd()) not in sys.path and "" not in sys.path:
        # Behind everything that is installed, and for good: what it imports later, and worker processes, need it too.
        sys.path.append(here)
    try:
        found = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise ConfigError(f"{what}: its module needs {error.name!r}, which cannot be imported here") from error
        meant = f"; write {module_name.removesuffix('.py').replace('/', '.')}:{name}" if module_name.endswith(".py") else ""
        raise ConfigError(
            f"{what}: no module named {module_name!r} can be imported from here; it may lie in the working folder or be "
            f"installed{meant}"
        ) from None
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"{what}: importing {module_name!r} failed with {type(error).__name__}: {error}; --debug shows where"
        ) from error
    if name not in vars(found):
        where = getattr(found, "__file__", None) or "a part of Python"
        raise ConfigError(f"{what}: module {module_name!r} ({where}) has no {sort} {name!r}")
    return getattr(found, name)


def installed_variants(kind: str) -> dict[str, str]:
    """name -> "module:Class" of the entry points of the group ``sememekit.KIND``, a blank in the kind as ``_``.

    Nothing is imported. Raises ConfigError: two packages declare one name."""
    group = f"sememekit.{kind.replace(' ', '_')}"
    found: dict[str, str] = {}
    for point in entry_points(group=group):
        if found.setdefault(point.name, point.value) != point.value:
            raise ConfigError(
                f"two installed packages declare the {kind} {point.name!r} (entry points of {group}): {found[point.name]} and "
                f"{point.value}; give the one that you mean as package.module:Class, or uninstall the other"
            )
    return found


def name_of(variant: type, table: Mapping[str, str]) -> str:
    """Return the name of a class on the command line: its key in ``table``, or ``package.module:Class``."""
    path = f"{variant.__module__}:{variant.__name__}"
    return next((name for name, target in table.items() if target == path), path)


def is_own(kind: str, name: str) -> bool:
    """Return whether a name is an external variant: ``package.module:Class``, or from an installed package."""
    return ":" in name or name in installed_variants(kind)


@contextmanager
def trusting_code(trust: bool | Collection[str] = True) -> Iterator[None]:
    """Inside the block, allow code that folders name (all names, or some); use it for folders that you trust like a program."""
    outer = _trusted.get()
    more = frozenset() if isinstance(trust, bool) else frozenset(trust)
    before = _trusted.set(None if trust is True or outer is None else outer | more)
    try:
        yield
    finally:
        _trusted.reset(before)


def trusted_code() -> frozenset[str] | None:
    """Return the trusted names of code (None: all), for ``trusting_code`` in another process."""
    return _trusted.get()


def check_code(names: Mapping[str, object], where: str) -> None:
    """Refuse code that the file ``where`` names, such as ``{"decoder.name": "softmax"}``; names without a colon are our own.
    Raises ConfigError for code that was neither allowed by :func:`trusting_code` nor typed on the command line."""
    trusted = _trusted.get()
    for key, name in names.items():
        if trusted is not None and isinstance(name, str) and ":" in name and name not in trusted:
            raise ConfigError(
                f"{where} names code to be run, {key} = {name!r:.100}; it may come from a stranger: look at that code, "
                "and if you trust it add --trust-code (in Python: load_run(..., trust_code=True))"
            )


def named_in(table: Mapping[str, Any]) -> dict[str, str]:
    """Return key -> name for all variants, constraints and segmenters in the table of a recipe, a run or an attack."""
    slots = [(slot, keys) for slot, keys in table.items() if isinstance(keys, Mapping)]
    named = {f"{slot}.{key}": keys.get(key) for slot, keys in slots for key in ("name", "segmenter")}
    named |= {f"constraints.{name}": name for slot, keys in slots if slot == "constraints" for name in keys}
    return {key: name for key, name in named.items() if isinstance(name, str)}


def check_table(table: Mapping[str, Any], where: str) -> None:
    """Refuse a table of the file ``where`` that names code, as :func:`check_code`. CheckpointError: a slot is no table."""
    for slot, keys in table.items():
        if not isinstance(keys, Mapping):
            raise CheckpointError(
                f"{where} is no plan ([{slot}] is {keys!r:.60}); it was changed by hand, or written with another version of "
                "sememekit; copy it again from where it came from"
            )
    check_code(named_in(table), where)
