"""Descriptions of settings: meaning, values and default, read from the classes of settings.

The meaning of a setting is the docstring below its field, in the class or its nearest base.
"""

import inspect
import json
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from sememekit.config.settings import Record, Settings, conditions_of

_WORDS: Final = {bool: "true or false", int: "whole number", float: "number", str: "text"}
_LIMITS: Final = {"gt": "above {}", "ge": "{} or more", "lt": "below {}", "le": "{} or less", "multiple_of": "a multiple of {}"}


class Setting(Record):
    """One setting, as ``--set`` takes it.

    Attributes:
        key: as in ``--set SLOT.KEY=VALUE``; keys of inner tables have a dot, such as ``search.beam_size``.
        type: ``true or false``, ``whole number``, ``number``, ``text``, ``one of``, ``list of ...`` or ``table``.
        choices: the values of ``one of``.
        range: the limits of a number, such as ``0 or more, below 1``; empty for none.
        required: whether it has no default.
        default: a JSON value; None also for a setting that may be unset.
        meaning: what it does.
        read_with: condition for reading it, such as ``num_layers other than 1``; empty for always.
    """

    key: str
    type: str
    choices: tuple[str, ...] = ()
    range: str = ""
    required: bool = False
    default: Any = None
    meaning: str
    read_with: str = ""

    @property
    def values(self) -> str:
        """Type and range in a few words, such as ``number, 0 or more, below 1`` or ``none | depth | role``."""
        return ", ".join(part for part in (" | ".join(self.choices) or self.type, self.range) if part)

    @property
    def told(self) -> str:
        """Its meaning, and the condition for reading it."""
        return f"{self.meaning} Read with {self.read_with} only." if self.read_with else self.meaning

    @property
    def default_text(self) -> str:
        """The default as ``--set`` takes it, ``required``, or ``unset``."""
        if self.required:
            return "required"
        if self.default is None:
            return "unset"
        return str(self.default) if isinstance(self.default, str) and self.default else json.dumps(self.default)


def describe_settings(kind: type[Settings]) -> tuple[Setting, ...]:
    """Return every setting of a class in its order; a table's settings stand in its place.

    >>> from sememekit.encoders.lstm import LSTM
    >>> dropout = next(setting for setting in describe_settings(LSTM.Settings) if setting.key == "dropout")
    >>> dropout.values, dropout.default
    ('number, 0 or more, below 1', 0.0)
    """
    conditions, bases = conditions_of(kind), [base for base in kind.__mro__ if issubclass(base, Settings)]
    found: list[Setting] = []
    for name, field in kind.model_fields.items():
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        if isinstance(default, Settings):
            given = default.model_dump(mode="json")
            for inner in describe_settings(type(default)):
                found.append(inner.model_copy(update={"key": f"{name}.{inner.key}", "default": given[inner.key]}))
            continue
        word, choices = _type(field.annotation)
        told = (base.model_fields[name].description for base in bases if name in base.model_fields)
        setting = Setting(
            key=name,
            type=word,
            choices=choices,
            range=", ".join(filter(None, map(_limit, field.metadata))),
            required=field.is_required(),
            default=default,
            meaning=_plain(next(filter(None, told), "")),
            read_with=conditions[name].describe() if name in conditions else "",
        )
        found.append(setting)
    return tuple(found)


def summary_of(kind: type) -> str:
    """The first paragraph of the docstring of a class; empty where it has none."""
    return _plain(inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0])


def _plain(docstring: str) -> str:
    return " ".join(docstring.replace("``", "").split())


def _type(annotation: Any) -> tuple[str, tuple[str, ...]]:
    """Return the word for a type, and its values if they are few."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        kinds = [_type(part) for part in parts if part is not NoneType]
        return " or ".join(word for word, _ in kinds), tuple(value for _, values in kinds for value in values)
    if origin is Annotated:  # an item of a list, with its limits
        return _type(parts[0])
    if origin is Literal:
        return "one of", tuple(str(value) for value in parts)
    if origin in (tuple, list):
        kinds = [_type(part) for part in parts if part is not Ellipsis]
        words = dict.fromkeys(" | ".join(values) or f"{word}s" for word, values in kinds)
        return f"list of {' and '.join(words)}", ()
    if origin is dict:
        return "table", ()
    return _WORDS.get(annotation, getattr(annotation, "__name__", str(annotation)).lower()), ()


def _limit(rule: object) -> str:
    limits = [(text, getattr(rule, name)) for name, text in _LIMITS.items() if hasattr(rule, name)]
    return ", ".join(text.format(limit if isinstance(limit, int) else f"{limit:.17g}") for text, limit in limits)
