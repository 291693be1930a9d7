"""Every setting with its default and its limits: who never set it gets something else when they change.

After a change on purpose: ``python -m tests.config.test_defaults``
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sememekit.config import Settings

FROZEN = Path(__file__).with_name("defaults.txt")
ROOMS = ("attack", "decoders", "encoders", "measure", "protocols", "tasks", "training")


def describe(room: str) -> list[str]:
    """``file.key: kind = default, limits`` of every class of settings that a room defines."""
    package = importlib.import_module(f"sememekit.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
    own = [kind for kind in _below(Settings) if kind.__module__.startswith(f"sememekit.{room}.")]
    lines = {
        f"{kind.__module__.partition('.')[2]}{_inside(kind)}.{key}{_described(kind, key)}"
        for kind in own
        for key in kind.__annotations__.keys() & kind.model_fields.keys()
    }
    return sorted(lines)


def _inside(kind: type[Settings]) -> str:
    """Settings are named after their file; where they are no class's own, there may be several."""
    return "" if "." in kind.__qualname__ else f".{kind.__qualname__}"


def _below(kind: type[Settings]) -> Iterator[type[Settings]]:
    for other in kind.__subclasses__():
        yield other
        yield from _below(other)


def _described(kind: type[Settings], key: str) -> str:
    field = kind.model_fields[key]
    value = "" if field.is_required() else f" = {field.get_default(call_default_factory=True)!r}"
    annotation = field.annotation
    named = annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
    return ", ".join([f": {named}{value}", *map(repr, field.metadata)])


@pytest.mark.parametrize("room", ROOMS)
def test_defaults_and_limits_change_on_purpose_alone(room: str) -> None:
    frozen = [line for line in FROZEN.read_text(encoding="utf-8").splitlines() if line.startswith(f"{room}.")]
    assert describe(room) == frozen, f"on purpose? then: python -m {__spec__.name}"


if __name__ == "__main__":
    FROZEN.write_text("".join(f"{line}\n" for room in ROOMS for line in describe(room)), encoding="utf-8")
