"""Defaults of the functions and records of jobs, and the numbers of their modules: who never set them gets something else when
they change.

After a change on purpose: ``python -m tests.commands.test_job_defaults``
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

import pytest

from sememekit import jobs
from sememekit.config import Record

FROZEN = Path(__file__).with_name("job_defaults.txt")
MODULES = sorted(path.stem for path in Path(jobs.__path__[0]).glob("[a-z]*.py"))


def described(name: str) -> list[str]:
    """Return a line for each default and each number, as a new import of the file has them."""
    spec = import_module(f"sememekit.jobs.{name}").__spec__
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return sorted(f"{name}.{key} = {value!r}" for key, value in _defaults(module))


def _defaults(module: Any) -> Iterator[tuple[str, object]]:
    for name, value in vars(module).items():
        if name.isupper() and type(value) in (int, float):
            yield name, value
        elif getattr(value, "__module__", None) == module.__name__:
            if inspect.isclass(value):
                yield from ((f"{name}.{key}", one) for key, one in _fields(value) if isinstance(one, int | float | str))
            elif inspect.isfunction(value):
                found = inspect.signature(value).parameters.values()
                yield from ((f"{name}({one.name})", one.default) for one in found if isinstance(one.default, int | float | str))


def _fields(kind: type) -> Iterator[tuple[str, object]]:
    """Yield the defaults of a record, a named tuple or a data class, and values that its objects share."""
    if issubclass(kind, Record):
        yield "allow_inf_nan", kind.model_config.get("allow_inf_nan", False)
        yield from ((key, field.default) for key, field in kind.model_fields.items())
    elif issubclass(kind, tuple):
        yield from getattr(kind, "_field_defaults", {}).items()
    else:
        yield from ((key, value) for key, value in vars(kind).items() if not key.startswith("__"))


@pytest.mark.parametrize("module", MODULES)
def test_defaults_and_numbers_change_on_purpose_alone(module: str) -> None:
    frozen = [line for line in FROZEN.read_text(encoding="utf-8").splitlines() if line.startswith(f"{module}.")]
    assert described(module) == frozen, f"on purpose? then: python -m {__spec__.name}"


if __name__ == "__main__":
    FROZEN.write_text("".join(f"{line}\n" for name in MODULES for line in described(name)), encoding="utf-8")
