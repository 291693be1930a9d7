"""The plan of a run: the table of a recipe with every setting resolved, and its variants."""

from collections import Counter
from collections.abc import Collection, Mapping
from inspect import isabstract
from typing import Any, Final, cast

from pydantic import Field, SerializeAsAny

from sememekit.config import USUAL_VARIANTS, Claim, Settings, load_variant, nearest, read_settings, unread
from sememekit.decoders import DECODERS
from sememekit.decoders.base import Decoder
from sememekit.encoders import ENCODERS
from sememekit.encoders.base import Encoder, FromFiles
from sememekit.errors import CheckpointError, ConfigError
from sememekit.tasks import TASKS
from sememekit.tasks.base import Kind, Task
from sememekit.training import OptimizerSettings, RunFolder, RunSettings, ScheduleSettings

KIND_NAMES: Final[Mapping[Kind, str]] = {
    "labels": "a classifier",
    "texts": "a model of headlines or dialogue",
    "lattices": "a lattice model",
    "words": "a model that predicts words",
}
"""Kinds of runs that commands and methods distinguish, in the order in which they are tested."""


class DataSettings(Settings):
    """The prepared data of a run."""

    path: str = ""
    """Folder that ``sememekit preprocess`` wrote."""
    prepare: str = ""
    """The command that writes it, for readers of the recipe."""
    augment: str = ""
    """Further training examples: adversarial examples that ``sememekit attack`` wrote; empty for none."""
    augment_share: float = Field(default=0.1, gt=0.0)
    """Most added texts, as a share of the training examples."""


class GraphSettings(Settings):
    """The sememe graph of a run."""

    path: str = ""
    """File that ``sememekit build-sememe-graph`` wrote; empty for runs without sememes."""
    prepare: str = ""
    """The command that makes it."""


class ClustersSettings(Settings):
    """The word clusters of a run, if its output layer takes any."""

    path: str = ""
    """File of word clusters (``clusters --save``); empty for runs without clusters."""
    prepare: str = ""
    """The command that makes it."""


class Slot(Settings):
    """A chosen variant and its settings."""

    name: str
    settings: SerializeAsAny[Settings]


class Plan(Settings):
    """All settings of a run, resolved. ``table`` returns them as a recipe."""

    claim: Claim | None
    data: DataSettings
    graph: GraphSettings
    clusters: ClustersSettings
    task: Slot
    encoder: Slot
    decoder: Slot | None
    """None for tasks that predict no words."""
    optimizer: OptimizerSettings
    schedule: ScheduleSettings
    run: RunSettings

    @property
    def task_class(self) -> type[Task]:
        return cast(type[Task], variant("task", self.task.name))

    def table(self) -> dict[str, Any]:
        """Return the plan as plain tables: a recipe with all defaults."""
        plain: dict[str, Any] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, Slot):
                plain[name] = {"name": value.name, **value.settings.model_dump(mode="json", exclude_none=True)}
            elif value is not None:
                plain[name] = value.model_dump(mode="json", exclude_none=True)
        return plain


VARIANTS: dict[str, tuple[dict[str, str], type[Any], str]] = {
    slot: (variants, base, USUAL_VARIANTS[slot])
    for slot, variants, base in (("task", TASKS, Task), ("encoder", ENCODERS, Encoder), ("decoder", DECODERS, Decoder))
}
"""Slot -> its variants, their base class, and the default variant."""
PLAIN: dict[str, type[Settings]] = {
    "claim": Claim,
    "data": DataSettings,
    "graph": GraphSettings,
    "clusters": ClustersSettings,
    "optimizer": OptimizerSettings,
    "schedule": ScheduleSettings,
    "run": RunSettings,
}
"""Slot -> its settings, where it has no variants."""


def variant(slot: str, name: str) -> Any:
    """The class of an encoder, a decoder or a task; ConfigError for an unknown name."""
    table, base, _ = VARIANTS[slot]

    def is_one(found: Any) -> bool:
        kinds = (found, base), (getattr(found, "Settings", None), Settings)
        return all(isinstance(given, type) and issubclass(given, wanted) for given, wanted in kinds)

    found = load_variant(slot, name, table, is_one)
    if isabstract(found):
        lacks = ", ".join(sorted(found.__abstractmethods__))
        raise ConfigError(f"{slot} {name!r}: the class lacks what every {slot} of its kind has: {lacks}; add it to the class")
    return found


def read_plan(table: Mapping[str, Any], where: str) -> Plan:
    """Read the table of a recipe, overrides included, into a plan; ``where`` is its name in messages. Raises ConfigError: an
    unknown slot, variant or key, or a value of the wrong kind."""
    allowed = [*PLAIN, *VARIANTS]
    for slot in table:
        if slot not in allowed:
            raise ConfigError(f"{where}: unknown table [{slot}]{nearest(slot, allowed)}; allowed: {', '.join(sorted(allowed))}")
        if table[slot] is not None and not isinstance(table[slot], Mapping):
            raise ConfigError(f"{where}: [{slot}] must be a table of keys and values, given {table[slot]!r:.60}")
    task = variant("task", (table.get("task") or {}).get("name", VARIANTS["task"][2]))
    optimizer = table.get("optimizer") or {}
    if "name" not in optimizer:
        table = {**table, "optimizer": {**task.usual_optimizer, **optimizer}}
    parts: dict[str, Any] = {}
    keys = _keys_of(table)
    for slot, kind in PLAIN.items():
        given = table.get(slot)
        if slot == "claim":  # which no option sets
            parts[slot] = None if given is None else read_settings(kind, given, f"{where} [claim]")
        else:
            parts[slot] = read_settings(kind, given or {}, f"{where} [{slot}]", slot, homes=_homes(keys, slot))
    encoder = variant("encoder", (table.get("encoder") or {}).get("name", VARIANTS["encoder"][2]))
    for slot in ("encoder", "task", "decoder"):  # the task may take the width of its word vectors from the encoder
        if slot == "decoder" and not variant("task", parts["task"].name).takes_decoder:
            if table.get(slot):
                raise ConfigError(f"{where}: {no_words(parts['task'].name)}; leave the decoder out")
            parts[slot] = None
            continue
        given = dict(table.get(slot) or {})
        name = given.pop("name", VARIANTS[slot][2])
        kind = variant(slot, name).Settings
        if slot == "task" and "embedding_size" in kind.model_fields.keys() - given.keys() and issubclass(encoder, FromFiles):
            given["embedding_size"] = encoder.vector_size(parts["encoder"].settings)
        settings = read_settings(kind, given, f"{where} [{slot}] of {slot} {name!r}", slot, homes=_homes(keys, slot))
        parts[slot] = Slot(name=name, settings=settings.settled(parts["optimizer"].name, encoder.unit_contexts))
    return Plan(**parts)


_SET_BY_HAND = ("optimizer", "schedule", "run", *VARIANTS)


def _keys_of(table: Mapping[str, Any]) -> dict[str, Collection[str]]:
    """Return slot -> its keys in this plan, for the slots that a user sets key by key."""
    chosen = {slot: (table.get(slot) or {}).get("name", usual) for slot, (_, _, usual) in VARIANTS.items()}
    kinds = {slot: PLAIN[slot] if slot in PLAIN else variant(slot, chosen[slot]).Settings for slot in _SET_BY_HAND}
    return {slot: kind.model_fields.keys() for slot, kind in kinds.items()}


def _homes(keys: Mapping[str, Collection[str]], slot: str) -> dict[str, str]:
    """Return key -> slot, for keys that exactly one other slot has."""
    elsewhere = [(key, other) for other, its in keys.items() if other != slot for key in its if key not in keys.get(slot, ())]
    counts = Counter(key for key, _ in elsewhere)
    return {key: other for key, other in elsewhere if counts[key] == 1}


def remarks_on(plan: Plan) -> tuple[str, ...]:
    """Return a remark for each setting (or graph) of a plan that no part of the model reads.

    Unread settings are no errors: models of an experiment share flags, and a run keeps its graph for ``--by``."""
    sentences: list[str] = []
    for slot, chosen in _chosen(plan):
        sentences += unread(chosen.settings, slot)
    sentences += unread(plan.optimizer, "optimizer")
    if late := [epoch for epoch in plan.schedule.milestones if epoch >= plan.schedule.epochs]:
        sentences.append(
            f"schedule.milestones: nothing is trained after epoch {late[0]}, since schedule.epochs is {plan.schedule.epochs}"
        )
    parts = [(variant(slot, chosen.name), chosen.settings) for slot, chosen in _chosen(plan)]
    settings = plan.decoder.settings if plan.decoder is not None else None
    draws = getattr(settings, "samples", 0) and getattr(settings, "samples_until", "") == "first-cut"
    if draws and plan.schedule.factor == 1.0:
        sentences.append(
            "decoder.samples_until = first-cut changes nothing: schedule.factor is 1 and never cuts the rate, so that training "
            "stays an estimate to its end; set schedule.factor, or train on: sememekit train --from RUN --set decoder.samples=0"
        )
    if plan.graph.path and not any("graph" in kind.needs(settings) for kind, settings in parts):
        names = " and ".join(f"{slot} {chosen.name!r}" for slot, chosen in _chosen(plan))
        sentences.append(
            f"the graph {plan.graph.path} changes nothing: {names} with these settings read no sememes; the run keeps it, for "
            "instance for 'sememekit evaluate-ppl --by senses'"
        )
    return tuple(sentences)


def _chosen(plan: Plan) -> list[tuple[str, Slot]]:
    return [(slot, chosen) for slot in VARIANTS if (chosen := getattr(plan, slot)) is not None]


def no_words(task: str) -> str:
    """Return the reason why a task takes no output layer."""
    return f"task {task!r} predicts {'labels, not' if 'labels' in variant('task', task).kinds else 'no'} words"


def plan_of_run(folder: RunFolder, table: Mapping[str, Any] | None = None) -> Plan:
    """Return the plan of a run, or of a ``table`` made from it. CheckpointError: it is unreadable. ConfigError: no class."""
    where, wanted = f"{folder.path}/plan.json", folder.plan if table is None else table
    for slot in VARIANTS:
        keys = wanted.get(slot)
        if isinstance(keys, Mapping) and isinstance(name := keys.get("name"), str) and ":" in name:
            variant(slot, name)  # that it is not here is no fault of the plan
    try:
        return read_plan(wanted, where)
    except (ConfigError, TypeError, ValueError, AttributeError, RecursionError) as error:
        why = str(error) if isinstance(error, ConfigError) else f"{where} is no plan ({type(error).__name__}: {error})"
        raise CheckpointError(
            f"{why}; the plan was changed by hand, or written with another version of sememekit or a package that is not "
            "installed"
        ) from None
