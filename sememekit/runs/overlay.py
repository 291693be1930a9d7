"""Overlays on trained models: checks that a run can use an overlay and has trained its sememes."""

from pathlib import Path

from sememekit.decoders.sense_structure import SenseStructure
from sememekit.encoders.sememe_sum import SememeSum
from sememekit.errors import ConfigError
from sememekit.runs.plan import Plan, variant
from sememekit.sememes import SememeGraph
from sememekit.sememes.overlay import ChangedSense, apply_changes, read_overlay
from sememekit.sememes.statistics import counts_of_added
from sememekit.tasks.base import Task
from sememekit.text.vocabulary import Vocabulary


def overlaid(
    where: Path, graph: SememeGraph | None, vocabulary: Vocabulary, overlay: Path
) -> tuple[SememeGraph, tuple[ChangedSense, ...]]:
    """Return the graph of a run with the changes of an overlay file, and the changed senses. Raises ConfigError: the run has no
    graph, the overlay changes nothing, or it adds a sememe whose words never occur (a RunWarning if they are rare). Raises
    DataError, GraphError: as ``read_overlay`` and ``apply_changes``."""
    if graph is None:
        raise ConfigError(
            f"--overlay {overlay}: {where} has no sememe graph to change; give a run that was trained with --graph"
        )
    changed, senses, _ = apply_changes(graph, read_overlay(overlay), f"overlay {overlay.name}")
    if not senses:
        raise ConfigError(
            f"--overlay {overlay}: its lines change no sense of the graph; add a change: sememekit lookup --change"
        )
    counts_of_added(graph, vocabulary.counts, senses, overlay, where)
    return changed, senses


def check_reads_graph(plan: Plan, task: Task, where: Path) -> None:
    """Refuse a model that cannot read a changed graph with its present weights.

    Sememe-driven layers and sememe encoders have weights for sememes and senses, and an overlay keeps the ids of both. Other
    parts, such as classes of words, are built once from the graph and would not fit a changed graph. Raises ConfigError: a part
    was built from the graph, or no part reads the graph."""
    parts = [("task", plan.task, False), ("encoder", plan.encoder, _holds(getattr(task, "encoder", None), SememeSum))]
    if plan.decoder is not None:
        parts.append(("decoder", plan.decoder, _holds(getattr(task, "decoder", None), SenseStructure)))
    readers = [
        (slot, chosen, follows)
        for slot, chosen, follows in parts
        if "graph" in variant(slot, chosen.name).needs(chosen.settings)
    ]
    if not readers:
        names = " and ".join(f"{slot} {chosen.name!r}" for slot, chosen, _ in parts)
        raise ConfigError(
            f"--overlay: {where} reads no sememes ({names}), so an overlay changes nothing; give a run with --decoder sdlm"
        )
    for slot, chosen, follows in readers:
        if not follows:
            raise ConfigError(
                f"--overlay: {where} has {slot} {chosen.name!r}, which was built from its graph once (classes, trees or "
                "vectors of words), so that its weights do not fit another graph; train again with the changed lexicon"
            )


def _holds(module: object, kind: type) -> bool:
    return any(isinstance(part, kind) for part in module.modules()) if hasattr(module, "modules") else False
