"""The plan of an attack, from a recipe and flags: goal, search, candidates, constraints, and running settings."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import Field, SerializeAsAny

from sememekit.attack.candidates import CANDIDATES
from sememekit.attack.constraints import CONSTRAINTS, PRESETS, Constraint
from sememekit.attack.resources import AttackResources
from sememekit.attack.searches import SEARCHES
from sememekit.config import USUAL_VARIANTS, Claim, Seed, Settings, load_variant, nearest, read_settings
from sememekit.config.tables import ATTACK_SLOTS
from sememekit.errors import ConfigError

GOALS: dict[str, str] = {"untargeted": "sememekit.attack.goals:Untargeted", "targeted": "sememekit.attack.goals:Targeted"}
"""Name of ``--goal`` -> "module:Class"."""


class RunningSettings(Settings):
    """Running settings of an attack."""

    preset: str = ""
    """The published setup that these settings follow, shown in the report."""
    limit: int = Field(default=0, ge=0)
    """Most examples; 0 for all."""
    sample: Literal["first", "random"] = "first"
    """Choice of examples if the file has more than ``limit``."""
    query_budget: int = Field(default=0, ge=0)
    """Most queries for an example; 0 for no limit."""
    counting: Literal["distinct", "every"] = "distinct"
    """Queries to count for a repeated text of an example: one in all, or one each time. The victim is called once."""
    constraints: Literal["standard", "loose", "none"] = "standard"
    """Preset that is added to the named constraints. ``loose``: stop_words, protected (marks, numbers, negations),
    part_of_speech and opposites, as published attacks; ``standard``: also names, first_senses, agreement, common_words, length;
    ``none``: nothing."""
    segmenter: str = ""
    """Segmenter of unsegmented text (Chinese) for a victim function, which still reads it without blanks; empty for white space
    and marks. A run uses the segmenter of its data; if this one reads characters, the setting gives the words."""
    lexicon: str = ""
    """``FORMAT:PATH`` of the words of this segmenter."""
    open_vocabulary: tuple[str, ...] = ()
    """Lexicons, each as ``FORMAT:PATH``; a run reads words that it does not know by their sememes there."""
    open_lemmas: str = ""
    """Base forms for these lexicons: a file of ``lemma TAB form`` lines, or ``wordnet``."""
    known_words: bool = True
    """Only substitutes that the victim knows, if it declares ``words``."""
    together: int = Field(default=256, ge=1)
    """Examples that advance together; changes speed and memory, never a result."""
    batch_size: int = Field(default=512, ge=1)
    """Texts in one call of the victim; changes speed and memory, never a result."""
    seed: Seed = 1
    """Random seed."""


class Part(Settings):
    """A chosen variant of a ``kind`` of part, and its settings."""

    kind: str
    name: str
    settings: SerializeAsAny[Settings]

    @property
    def variant(self) -> Any:
        """The class of the part."""
        return load_variant(self.kind, self.name, _VARIANTS[self.kind])

    def build(self, given: Any = None) -> Any:
        """Build the part: a goal gets the labels, a search nothing, candidates and constraints ``AttackResources``."""
        return self.variant(self.settings) if given is None else self.variant(self.settings, given)


class AttackPlan(Settings):
    """An attack, every setting resolved. ``table`` returns the plan as a recipe."""

    claim: Claim | None
    goal: Part
    search: Part
    candidates: Part
    constraints: tuple[Part, ...]
    attack: RunningSettings

    def table(self) -> dict[str, Any]:
        """Return the plan as plain tables: a recipe without any default left out."""
        plain: dict[str, Any] = {} if self.claim is None else {"claim": self.claim.model_dump(mode="json")}
        for slot in ("goal", "search", "candidates"):
            part: Part = getattr(self, slot)
            plain[slot] = {"name": part.name, **part.settings.model_dump(mode="json")}
        plain["constraints"] = {part.name: part.settings.model_dump(mode="json") for part in self.constraints}
        plain["attack"] = self.attack.model_dump(mode="json")
        return plain


PARTS = {
    slot: (variants, USUAL_VARIANTS[slot])
    for slot, variants in (("goal", GOALS), ("search", SEARCHES), ("candidates", CANDIDATES))
}
"""Slot -> its variants, and the default variant."""
_VARIANTS: Mapping[str, Mapping[str, str]] = {**{slot: names for slot, (names, _) in PARTS.items()}, "constraint": CONSTRAINTS}
"""Kind of a part -> its variants."""
_TABLES = ("claim", *ATTACK_SLOTS)  # the tables of an attack's recipe


def is_attack(table: Mapping[str, Any]) -> bool:
    """Return whether the table of a recipe describes an attack, that is, names a search or candidates."""
    return "search" in table or "candidates" in table


def read_attack_plan(table: Mapping[str, Any], where: str) -> AttackPlan:
    """Read the table of a recipe, overrides included, into a plan; ConfigError for unknown slots, variants, keys and values."""
    for slot in table:
        if slot not in _TABLES:
            raise ConfigError(f"{where}: an attack has no table [{slot}]{nearest(slot, _TABLES)}; allowed: {_list(_TABLES)}")
        if table[slot] is not None and not isinstance(table[slot], Mapping):
            raise ConfigError(f"{where}: [{slot}] is a table of settings, given {table[slot]!r}")
    parts: dict[str, Any] = {}
    for slot, (variants, usual) in PARTS.items():
        given = dict(table.get(slot) or {})
        name = given.pop("name", usual)
        if not isinstance(name, str):
            raise ConfigError(f"{where} [{slot}]: name is one of {_list(variants)}, given {name!r}")
        parts[slot] = _part(slot, name, given, f"{where} [{slot}] of {slot} {name!r}", slot)
    running = read_settings(RunningSettings, table.get("attack") or {}, f"{where} [attack]")
    wanted: dict[str, Any] = {name: {} for name in PRESETS[running.constraints]} | dict(table.get("constraints") or {})
    by_sememes = parts["candidates"].name == "sememe"
    of = parts["candidates"].settings.model_dump() if by_sememes else wanted.get("part_of_speech")
    lexicon = {key: of[key] for key in ("sources", "lemmas") if key in of} if isinstance(of, Mapping) else {}
    for name in (
        ("names", "first_senses", "agreement") if by_sememes else ("names", "agreement")
    ):  # of other candidates equal senses are too much to ask
        if isinstance(wanted.get(name), Mapping):
            wanted[name] = lexicon | wanted[name]
    if parts["candidates"].name == "embedding" and isinstance(similarity := wanted.get("similarity"), Mapping):
        wanted["similarity"] = {"path": parts["candidates"].settings.path, **similarity}
    order = [*(name for name in CONSTRAINTS if name in wanted), *(name for name in wanted if name not in CONSTRAINTS)]
    constraints = []
    for name in order:
        if not isinstance(wanted[name], Mapping):
            raise ConfigError(
                f"{where}: [constraints] holds tables such as [constraints.share], given {name} = {wanted[name]!r}"
            )
        constraints.append(_part("constraint", name, wanted[name], f"{where} [constraints.{name}]", f"constraints.{name}"))
    claim = table.get("claim")
    return AttackPlan(
        claim=None if claim is None else read_settings(Claim, claim, f"{where} [claim]"),
        constraints=tuple(constraints),
        attack=running,
        **parts,
    )


def _part(kind: str, name: str, given: Mapping[str, Any], where: str, slot: str) -> Part:
    variant = load_variant(kind, name, _VARIANTS[kind])
    return Part(kind=kind, name=name, settings=read_settings(variant.Settings, given, where, slot))


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def check_parts(plan: AttackPlan, *, language_model: bool) -> None:
    """Raise ConfigError if candidates or constraints lack a resource, before anything is opened."""
    for part in (plan.candidates, *plan.constraints):
        part.variant.check_settings(part.settings, language_model=language_model)


def build_constraints(plan: AttackPlan, resources: AttackResources) -> list[Constraint]:
    """The constraints of a plan, in the order in which they apply."""
    return [part.build(resources) for part in plan.constraints]
