"""Frozen, typed settings: an unknown key is refused with the nearest spelling."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Self, TypeVar, Union, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from sememekit.errors import ConfigError

LARGEST_WHOLE: Final = 2**31 - 1  # largest whole number of a setting without an explicit bound

LARGEST_SEED: Final = 2**43 - 1  # a seed is multiplied by a million for the order of epochs, and the result is a 64-bit number

Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED)]  # a random seed; the same seed gives the same result

LARGEST_REAL: Final = 3.4028234663852886e38  # the largest number of single precision

_LONGEST_SHOWN: Final = 200


@dataclass(frozen=True)
class OnlyWith:
    """The condition for reading a setting: ``key`` of the same table has a value in ``values``, or not in ``other_than``."""

    key: str
    values: tuple[Any, ...] = ()
    other_than: tuple[Any, ...] = ()

    def holds(self, value: Any) -> bool:
        return value in self.values if self.values else value not in self.other_than

    def describe(self) -> str:
        """The condition in words, such as "num_layers other than 1"."""
        if self.values:
            return f"{self.key}={' or '.join(str(value) for value in self.values)}"
        if self.other_than == ("",):
            return f"{self.key} given"
        return f"{self.key} other than {' and '.join(str(value) for value in self.other_than)}"


class Record(BaseModel):
    """Base of results, reports and summaries: frozen, unknown keys are refused. Inputs are ``Settings``."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)


RecordType = TypeVar("RecordType", bound=Record)


def record_of(kind: type[RecordType], found: Mapping[str, Any], path: Path, refuse: Callable[[str], Exception]) -> RecordType:
    """Return the record that a file holds as JSON; ``refuse`` makes the error that names the first field of a wrong type."""
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        raise refuse(f"{path} is not what sememekit wrote ({first_problem(error)})") from None


def first_problem(error: ValidationError) -> str:
    """Return the first problem of a stored record, with its key unless the record as a whole is wrong."""
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"]))
    return f"key {key!r}: {first['msg']}" if key else first["msg"]


class Settings(BaseModel):
    """Base of every settings class. Defaults are defined once, in the class that the settings configure."""

    model_config = ConfigDict(**Record.model_config, use_attribute_docstrings=True)

    only_with: ClassVar[Mapping[str, OnlyWith]] = {}
    """key -> condition for reading it (default: always). Entries of base classes hold, too."""

    def settled(self, optimizer: str, unit_contexts: bool) -> Self:
        """Return the settings with defaults that depend on other slots; ``unit_contexts``: of the encoder of the plan."""
        return self


def conditions_of(kind: type[Settings]) -> dict[str, OnlyWith]:
    """``only_with`` of a class and all its bases, its own on top."""
    conditions: dict[str, OnlyWith] = {}
    for base in reversed(kind.__mro__):
        conditions |= vars(base).get("only_with", {})
    return conditions


def unread(settings: Settings, where: str) -> list[str]:
    """Return a remark for each setting of the slot ``where`` that was changed but has no effect, given the other settings."""
    sentences = []
    for key, condition in conditions_of(type(settings)).items():
        value, other = getattr(settings, key), getattr(settings, condition.key)
        given = key in settings.model_fields_set and value != type(settings).model_fields[key].get_default()
        if given and not condition.holds(other):
            sentences.append(
                f"{where}.{key}={value} changes nothing: it is read with {condition.describe()} only, and {where}."
                f"{condition.key} is {other if other != '' else 'empty'}"
            )
    return sentences


SettingsType = TypeVar("SettingsType", bound=Settings)

NAMES_ELSEWHERE: Final[Mapping[str, tuple[str, ...]]] = {
    "bptt": ("chunk_length",),
    "bsz": ("batch_size",),
    "emsize": ("embedding_size",),
    "eta": ("rate",),
    "lambda": ("weight", "decay"),
    "lr": ("learning_rate", "rate"),
    "n_experts": ("num_components",),
    "nhid": ("hidden_size",),
    "nlayers": ("num_layers",),
    "seq_len": ("chunk_length",),
    "wd": ("weight_decay",),
    "wdecay": ("weight_decay",),
}
"""Name of a setting in papers and other codes -> our names."""


def names_here(name: str) -> tuple[str, ...]:
    """Return the possible names of a setting here: the given name, then our names for it if other codes use it."""
    return (name, *NAMES_ELSEWHERE.get(name, ()))


def nearest(name: str, allowed: Iterable[str]) -> str:
    """A hint such as ``did you mean 'dropout'?``, or an empty string.

    A key that other codes call by this name is nearest; then a key with this name as one of its words (``rate`` of
    ``learning_rate``); then a similar spelling."""
    keys = list(allowed)
    holding = [key for key in names_here(name)[1:] if key in keys][:1]
    holding = holding or [key for key in keys if name in key.split("_")]
    close = holding if len(holding) == 1 else get_close_matches(name, keys, n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def read_settings(
    kind: type[SettingsType],
    table: Mapping[str, Any],
    where: str,
    slot: str = "",
    *,
    beside: Iterable[str] = (),
    taken: Iterable[str] = (),
    homes: Mapping[str, str] | None = None,
) -> SettingsType:
    """Turn a plain table, as TOML gives it, into settings; ``where`` opens the message of an error, such as ``[decoder]``.
    ``slot``: name of the table in ``--set``, such as ``decoder``. For the message: further names of the caller (``beside``),
    keys that the caller sets (``taken``), keys of other tables -> their table (``homes``). ConfigError names every bad key."""
    try:
        settings = kind.model_validate(dict(table))
    except ValidationError as error:
        problems = []
        for item in error.errors():
            path = ".".join(str(part) for part in item["loc"])
            if item["type"] == "extra_forbidden":
                allowed = sorted({*kind.model_fields, *beside}.difference(taken))
                hint = _home(path, homes or {}) or nearest(path, allowed)
                problems.append(f"unknown key {path!r}{hint}; allowed: {', '.join(allowed)}")
            elif item["type"] == "missing":
                typed = f"; give it with --set {slot}.{path}=VALUE" if slot else ""
                problems.append(f"key {path!r} is required and was not given{typed}")
            else:
                a_list = 'Input should be a list, such as [1,2] or ["a","b"]'
                problems.append(_problem(path, a_list if item["type"] == "tuple_type" else item["msg"], item["input"]))
        raise ConfigError(f"{where}: {'; '.join(problems)}") from None
    if problems := list(_too_large(settings)):
        raise ConfigError(f"{where}: {'; '.join(problems)}")
    return settings


def _problem(path: str, why: str, given: object) -> str:
    """Return the problem with a key, or with keys that contradict each other."""
    own = why.removeprefix("Value error, ")
    if own != why and isinstance(given, Mapping):
        return f"key {path!r}: {own}" if path else own
    return f"key {path!r}: {own[0].lower()}{own[1:]}, given {_short(given)}"


def _home(key: str, homes: Mapping[str, str]) -> str:
    """Return a hint if a key, by our or another name, belongs to another table."""
    for name in names_here(key):
        if name in homes:
            return f" (it belongs to {homes[name]}: --set {homes[name]}.{name}=VALUE)"
    return ""


def _too_large(settings: Settings, path: str = "") -> Iterator[str]:
    """Yield an error for each number above the default bounds."""
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if isinstance(value, Settings):
            yield from _too_large(value, f"{path}{name}.")
        elif isinstance(value, int | float) and not any(hasattr(rule, "le") or hasattr(rule, "lt") for rule in field.metadata):
            largest, shown = (LARGEST_WHOLE, f"{LARGEST_WHOLE:,}") if isinstance(value, int) else (LARGEST_REAL, "3.4e38")
            if abs(value) > largest:
                yield f"key {path + name!r}: input should be {shown} at most, given {_short(value)}"


def _short(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:
        return f"a number of more than {sys.get_int_max_str_digits():,} digits"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN // 2]}...{text[-_LONGEST_SHOWN // 4 :]}"


class _Arguments(Settings):
    """Base of the models made from signatures of functions, which may have types that settings do not allow."""

    model_config = ConfigDict(arbitrary_types_allowed=True)


def checked_arguments(where: str, options: Mapping[str, Any], *functions: Callable[..., Any]) -> dict[str, Any]:
    """Return the options converted for the functions, such as strings to paths. An option must be a keyword-only argument of a
    function, with a value of the annotated type. ``where`` opens the message of an error, such as ``run.explain``. Raises
    ConfigError: a name that no function takes, or a value of another type, with what is allowed."""
    checked = read_settings(_arguments_of(functions), options, where)
    return {name: getattr(checked, name) for name in options}


@lru_cache(maxsize=64)
def _arguments_of(functions: tuple[Callable[..., Any], ...]) -> type[_Arguments]:
    """Return the model of the functions' keyword-only arguments (cached, since building takes as long as a prediction)."""
    fields: dict[str, Any] = {}
    for function in functions:
        types = get_type_hints(function, include_extras=True)
        for name, parameter in signature(function).parameters.items():
            if parameter.kind is Parameter.KEYWORD_ONLY:
                fields[name] = (_of_one_kind(types.get(name, Any)), None)
    return create_model("Arguments", __base__=_Arguments, **fields)


def _of_one_kind(annotation: Any) -> Any:
    """Drop ``str`` from a type that also allows paths, so that messages name one type; strings convert to paths."""
    types = get_args(annotation)
    return Union[tuple(one for one in types if one is not str)] if Path in types else annotation  # noqa: UP007
