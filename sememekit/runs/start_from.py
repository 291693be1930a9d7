"""Start from the weights of another run (``--from``)."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from sememekit.config import check_table, differences, differing
from sememekit.data.prepared import PreparedData
from sememekit.errors import CheckpointError, SememekitError
from sememekit.layers import training_counters
from sememekit.runs.build import build_task, graph_of, parts_of
from sememekit.runs.plan import Plan, read_plan
from sememekit.runs.run import CLUSTERS, GRAPH, load_weights, vocabulary_of_run
from sememekit.tasks.base import Task
from sememekit.text.vocabulary import Vocabulary
from sememekit.training import RunFolder
from sememekit.training.trainer import first_seed


def table_of_run(path: Path) -> dict[str, Any]:
    """Return the table of a run to start from (``--from``): its plan without claim, graph and clusters."""
    folder = RunFolder.open(path)
    check_table(folder.plan, f"{path}/plan.json")
    table = {slot: dict(keys) for slot, keys in folder.plan.items() if slot != "claim"}
    for slot, name in (("graph", GRAPH), ("clusters", CLUSTERS)):
        if folder.file(name).exists():
            table[slot] = {**table.get(slot, {}), "path": str(folder.file(name))}
    run = {key: value for key, value in table.get("run", {}).items() if key != "earlier_epochs"}
    table["run"] = {**run, "start_from": str(path)}
    return table


def with_earlier_epochs(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of a fresh run; if it starts from another run, with ``run.earlier_epochs``."""
    run = table.get("run", {})
    if not run.get("start_from") or "earlier_epochs" in run:
        return dict(table)
    folder = RunFolder.open(Path(run["start_from"]))
    before = int(folder.plan.get("run", {}).get("earlier_epochs", 0))
    return {**table, "run": {**run, "earlier_epochs": before + folder.num_epochs()}}


_OF_WEIGHTS = ("task", "encoder", "decoder", "graph", "clusters")  # slots that decide the weights of a model and their sizes


def start_from(path: Path, plan: Plan, task: Task, vocabulary: Vocabulary, data: PreparedData) -> None:
    """Load the best weights of another run into a model; the ``training_counters`` stay. CheckpointError if words or sizes
    differ. Random numbers continue from the end of the other run."""
    folder = RunFolder.open(path)
    words = vocabulary_of_run(folder)
    if words.fingerprint != vocabulary.fingerprint:
        raise CheckpointError(
            f"--from {path}: it was trained on vocabulary {words.fingerprint} ({len(words):,} words) and these data have "
            f"{vocabulary.fingerprint} ({len(vocabulary):,} words); give data of the same vocabulary with --data DIR"
        )
    weights = folder.load("best", with_trainer=False).weights
    there, here = table_of_run(path), plan.table()
    if weights.keys() - task.state_dict().keys():  # perhaps what counts there, and nothing does here
        with suppress(SememekitError):  # no such model on these data: the weights do not fit, which is told below
            old = read_plan({**there, "data": {"path": str(data.folder)}}, "the plan")
            counters = training_counters(build_task(old, *parts_of(old, data, graph_of(old))))
            weights = {name: part for name, part in weights.items() if name not in counters}
    try:
        load_weights(task, {**weights, **training_counters(task)}, path, "keep task, encoder and decoder as that run has them")
    except CheckpointError as error:
        found = [(slot, key) for slot, key in differing(there, here) if slot in _OF_WEIGHTS]
        if not found:
            raise
        raise CheckpointError(
            f"--from {path}: its weights do not fit this model: {differences(there, here, found)}; leave out the recipe, "
            "options and settings that change layers or their sizes, or leave out --from and train this model from the start"
        ) from error
    torch.manual_seed(first_seed(plan.run))
