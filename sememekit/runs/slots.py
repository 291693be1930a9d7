"""The tables of settings that ``--set`` changes: their variants, and every setting with its meaning, values and default."""

from typing import Any, Final

from sememekit.attack.candidates import Candidates
from sememekit.attack.constraints import CONSTRAINTS, Constraint
from sememekit.attack.goals import Goal
from sememekit.attack.plan import PARTS, RunningSettings
from sememekit.attack.searches import Search
from sememekit.config import COMMAND_SLOTS, Record, Settings, installed_variants, load_variant, nearest
from sememekit.config.described import Setting, describe_settings, summary_of
from sememekit.errors import ConfigError
from sememekit.protocols.adaptation import CacheChoice, DynamicChoice, TuneChoice
from sememekit.runs.plan import PLAIN, VARIANTS, variant

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
    """The settings of a slot, or of one variant of it.

    Attributes:
        slot, name: such as ``decoder`` and ``sdlm``; the name is empty where the slot has no variants.
    """

    slot: str
    name: str
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
    """All slots."""

    slots: tuple[SlotInfo, ...]


def settings_slots() -> tuple[SlotInfo, ...]:
    """Return all slots, the slots of ``train`` first. Every variant is imported."""
    return tuple(_slot_info(slot, command) for command, slots in COMMAND_SLOTS.items() for slot in slots)


def settings_table(slot: str, name: str = "") -> SettingsTable:
    """The settings of a slot, or of one of its variants: one of ours, of an installed package, or ``package.module:Class``.

    >>> table = settings_table("decoder", "adaptive")
    >>> [setting.key for setting in table.settings]
    ['cutoffs', 'shrink', 'head_bias']

    Raises ConfigError: there is no such slot or variant, or a name is missing or of no use.
    """
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
    """Whether a slot chooses a variant, as ``decoder`` does and ``schedule`` does not. Raises ConfigError: no such slot."""
    if slot not in _SINGLE:
        _variants(slot)
    return slot not in _SINGLE


def slot_info(slot: str) -> SlotInfo:
    """One slot. Raises ConfigError: there is none of this name."""
    has_variants(slot)
    return _slot_info(slot, next(command for command, slots in COMMAND_SLOTS.items() if slot in slots))


def _slot_info(slot: str, command: str) -> SlotInfo:
    if slot in _SINGLE:
        return SlotInfo(slot=slot, command=command, summary=summary_of(_SINGLE[slot]), usual="", variants={})
    _, base, usual = _WITH_VARIANTS[slot]
    found = {name: summary_of(_class_of(slot, name)) for name in _variants(slot)}
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
