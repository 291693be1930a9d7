"""The tables of settings that ``--set`` changes: their variants, and every setting with its meaning, values and default.

The meaning of a setting is the docstring below its field, in the class or its nearest base."""

import inspect
import json
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from sememekit.attack.candidates import Candidates
from sememekit.attack.constraints import CONSTRAINTS, Constraint
from sememekit.attack.goals import Goal
from sememekit.attack.plan import PARTS, RunningSettings
from sememekit.attack.searches import Search
from sememekit.config import COMMAND_SLOTS, Record, Settings, installed_variants, load_variant, nearest
from sememekit.config.settings import conditions_of
from sememekit.errors import ConfigError
from sememekit.protocols.adaptation import CacheChoice, DynamicChoice, TuneChoice
from sememekit.runs.plan import PLAIN, VARIANTS, variant

_WORDS: Final = {bool: "true or false", int: "whole number", float: "number", str: "text"}
_LIMITS: Final = {"gt": "above {}", "ge": "{} or more", "lt": "below {}", "le": "{} or less", "multiple_of": "a multiple of {}"}


class Setting(Record):
    """One setting, as ``--set`` takes it."""

    key: str
    """As in ``--set SLOT.KEY=VALUE``; keys of inner tables have a dot, such as ``search.beam_size``."""
    type: str
    """``true or false``, ``whole number``, ``number``, ``text``, ``one of``, ``list of ...`` or ``table``."""
    choices: tuple[str, ...] = ()
    """The values of ``one of``."""
    range: str = ""
    """The limits of a number, such as ``0 or more, below 1``; empty for none."""
    required: bool = False
    """True if it has no default."""
    default: Any = None
    """A JSON value; None also for a setting that may be unset."""
    meaning: str
    """The effect of the setting."""
    read_with: str = ""
    """Condition for reading it, such as ``num_layers other than 1``; empty for always."""

    @property
    def values(self) -> str:
        """Type and range in a few words, such as ``number, 0 or more, below 1`` or ``none | depth | role``."""
        return ", ".join(part for part in (" | ".join(self.choices) or self.type, self.range) if part)

    @property
    def told(self) -> str:
        """The meaning, and the condition for reading the setting."""
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
    ('number, 0 or more, below 1', 0.0)"""
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
    """Return the name of a type, and its values if they are few."""
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


_BASES: Final[dict[str, type]] = {"goal": Goal, "search": Search, "candidates": Candidates, "constraints": Constraint}
_WITH_VARIANTS: Final[dict[str, tuple[dict[str, str], type, str]]] = {
    **VARIANTS,
    **{slot: (table, _BASES[slot], usual) for slot, (table, usual) in PARTS.items()},
    "constraints": (CONSTRAINTS, Constraint, ""),
}
"""Slot -> its variants, their base class, and the default variant."""
_SINGLE: Final[dict[str, type[Settings]]] = {
    **{slot: kind for slot, kind in PLAIN.items() if slot != "claim"},
    "attack": RunningSettings,
    "cache": CacheChoice,
    "dynamic": DynamicChoice,
    "tune": TuneChoice,
}
"""Slot -> its settings, where it has no variants."""


class SettingsTable(Record):
    """The settings of a slot, or of one variant of it."""

    slot: str
    name: str
    """slot, name: such as ``decoder`` and ``sdlm``; the name is empty where the slot has no variants."""
    summary: str
    settings: tuple[Setting, ...]

    @property
    def prefix(self) -> str:
        """The prefix of a key in ``--set``."""
        return f"{self.slot}.{self.name}." if self.slot == "constraints" else f"{self.slot}."


class SlotInfo(Record):
    """A slot: the command whose ``--set`` takes it, its meaning, and one sentence for each variant."""

    slot: str
    command: str
    summary: str
    usual: str
    variants: dict[str, str]


class SettingsList(Record):
    """All slots with their settings."""

    slots: tuple[SlotInfo, ...]


def settings_slots() -> tuple[SlotInfo, ...]:
    """Return all slots, the slots of ``train`` first. Every variant is imported."""
    return tuple(slot_info(slot) for slots in COMMAND_SLOTS.values() for slot in slots)


def settings_table(slot: str, name: str = "") -> SettingsTable:
    """The settings of a slot, or of one of its variants: one of ours, of an installed package, or ``package.module:Class``.

    >>> table = settings_table("decoder", "adaptive")
    >>> [setting.key for setting in table.settings]
    ['cutoffs', 'shrink', 'head_bias']

    Raises ConfigError: there is no such slot or variant, or a name is missing or superfluous."""
    if slot in _SINGLE:
        if name:
            raise ConfigError(f"settings {slot} {name}: [{slot}] has no variants; type: sememekit settings {slot}")
        return SettingsTable(slot=slot, name="", summary=summary_of(_SINGLE[slot]), settings=describe_settings(_SINGLE[slot]))
    names = ", ".join(_variants(slot))
    if not name:
        raise ConfigError(f"settings {slot}: name one of its variants: {names}")
    kind = _class_of(slot, name)
    return SettingsTable(slot=slot, name=name, summary=summary_of(kind), settings=describe_settings(kind.Settings))


def has_variants(slot: str) -> bool:
    """Return whether a slot has variants: ``decoder`` has, ``schedule`` has not. Raises ConfigError: no such slot."""
    return slot not in _SINGLE and bool(_variants(slot))


def slot_info(slot: str) -> SlotInfo:
    """Return a slot with its settings. Raises ConfigError: an unknown name."""
    names = _variants(slot) if has_variants(slot) else []
    found = {name: summary_of(_class_of(slot, name)) for name in names}
    _, base, usual = _WITH_VARIANTS[slot] if names else ({}, _SINGLE[slot], "")
    command = next(command for command, slots in COMMAND_SLOTS.items() if slot in slots)
    return SlotInfo(slot=slot, command=command, summary=summary_of(base), usual=usual, variants=found)


def _variants(slot: str) -> list[str]:
    if slot not in _WITH_VARIANTS:
        allowed = [slot for slots in COMMAND_SLOTS.values() for slot in slots]
        if of := [kind for kind, (names, _, _) in _WITH_VARIANTS.items() if slot in names]:
            typed = " or ".join(f"sememekit settings {kind} {slot}" for kind in of)
            raise ConfigError(f"unknown slot {slot!r}; it is a name in {' and '.join(of)}: {typed}")
        raise ConfigError(f"unknown slot {slot!r}{nearest(slot, allowed)}; allowed: {', '.join(allowed)}")
    return [*_WITH_VARIANTS[slot][0], *sorted(installed_variants(_kind(slot)))]


def _class_of(slot: str, name: str) -> Any:
    return variant(slot, name) if slot in VARIANTS else load_variant(_kind(slot), name, _WITH_VARIANTS[slot][0])


def _kind(slot: str) -> str:
    return "constraint" if slot == "constraints" else slot
