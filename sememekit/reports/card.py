"""The model card of a run: Markdown with metadata, from the run folder alone."""

from collections.abc import Mapping
from math import exp
from pathlib import Path
from typing import Final, NamedTuple

from sememekit.figures import percent
from sememekit.files import typed
from sememekit.reports import pages
from sememekit.reports.run import changed_settings, training_figure
from sememekit.runs.plan import Plan
from sememekit.runs.run import Run, Which
from sememekit.runs.sharing import without_folders
from sememekit.text.scripts import HAN
from sememekit.training.metrics import CLUSTER_UPDATE, measured_at
from sememekit.training.snapshots import step_of

_PIPELINES: Final = {"labels": "text-classification", "lattices": "token-classification"}
_VERSIONS: Final = ("sememekit", "python", "torch", "numpy", "threads", "cuda")
_LEFT_OUT: Final = ("claim", "run", "data", "graph", "clusters")
_OF_CLUSTERS: Final = ("perplexity", "cluster_perplexity", "in_cluster_perplexity")


def model_card(run: Run | Path | str, name: str | None = None, *, which: Which = "best") -> str:
    """Markdown with metadata as the Hugging Face hub reads it: figures, data, sememes, settings, versions, use.

    ``name``: of the model (default: of the folder). The figures are the validation figures of the best weights, or of the last.
    The licence is left to the owner. Raises CheckpointError: as ``Run.open``."""
    opened = Run.open(run, device="cpu")
    title, plan, graph = " ".join((name or opened.path.resolve().name).split()), opened.plan, opened.stored_graph
    found = _validated(opened, which)
    slots = {"task": plan.task, "encoder": plan.encoder, **({"output layer": plan.decoder} if plan.decoder is not None else {})}
    tags = ["sememekit", *(slot.name for slot in slots.values()), *(["sememes"] if graph else [])]
    counts = zip(opened.vocabulary.tokens, opened.vocabulary.counts.tolist(), strict=True)
    chinese = 2 * sum(count for word, count in counts if HAN.search(word)) > int(opened.vocabulary.counts.sum())
    changed = [(key, value) for key, value in changed_settings(plan.table()) if key.partition(".")[0] not in _LEFT_OUT]
    settings, versions, splits = [*changed, ("run.seed", plan.run.seed)], opened.folder.versions, []
    for split, size in opened.signature.splits.items():
        unknown, text = percent(size.unknown_rate, 2), f"`{size.sha256[:12]}`"
        splits.append((split, f"{size.tokens:,}", f"{size.types:,}", unknown, f"{size.sentences:,}", text))
    command = "evaluate-ppl" if {"words", "lattices"} & opened.kinds else "eval"
    return pages.markdown(
        "card",
        run=opened,
        data=opened.signature,
        title=title,
        found=found,
        pipeline=next((_PIPELINES[kind] for kind in _PIPELINES if kind in opened.kinds), "text-generation"),
        chinese=chinese,
        tags=[tag.replace("_", "-") for tag in dict.fromkeys(tags)],
        parts=[f"{slot} {chosen.name}" for slot, chosen in slots.items()],
        figures=_figures(found, plan),
        added=max((record.get("augmented", 0) for record in opened.folder.metrics()), default=0),
        splits=splits,
        graph=graph,
        lexicons=[(source.name, f"`{source.sha256[:12]}`") for source in graph.lexicons] if graph else [],
        settings=[(f"`{key}`", f"`{without_folders(value)}`") for key, value in settings],
        versions=[(name, versions[name]) for name in _VERSIONS if versions.get(name) is not None],
        pull=typed("sememekit", "pull", "FOLDER", "--out", title),
        score=typed("sememekit", command, title, "--data", "DATA"),
    )


class _Validated(NamedTuple):
    """Figures of a checkpoint on validation by name, mean training nats of its epoch (if it ends one), and a description."""

    valid: Mapping[str, float]
    train_nats: float | None
    told: str


def _validated(run: Run, which: Which) -> _Validated:
    """Return the figures of the best or the last weights: at the end of their epoch, or after a later change of clusters."""
    name = run.folder.pointer().get(which)
    if name is None or not run.folder.epochs():
        return _Validated({}, None, "No epoch of training was finished.")
    step = step_of(name)
    last = measured_at(run.folder.metrics(), step)
    if last is None:
        why = "with which training began: no epoch was better" if not step else "inside an epoch: nobody validated them"
        return _Validated({}, None, f"The weights are those after {step:,} steps, {why}.")
    if last["kind"] == CLUSTER_UPDATE:
        valid = {name: last["values"][name] for name in _OF_CLUSTERS if last["split"] == "valid" and name in last["values"]}
        return _Validated(valid, None, f"After {step:,} steps, with the clusters that `sememekit cluster-update` gave it then.")
    chosen = "the best on validation, which chose it" if last["best"] else "the last, and not the best on validation"
    return _Validated(last["valid"], last["train_nats"], f"Epoch {last['epoch']}, after {step:,} steps: {chosen}.")


def _figures(found: _Validated, plan: Plan) -> list[tuple[str, str]]:
    rows = []
    if "perplexity" in found.valid and found.train_nats is not None:
        rows.append((f"perplexity of the epoch: {training_figure(plan.table())}", f"{exp(min(found.train_nats, 700.0)):,.2f}"))
    for metric, value in found.valid.items():
        counted = metric in ("tokens", "examples")
        rows.append((f"validation {metric.replace('_', ' ')}", f"{value:,.0f}" if counted else f"{value:,.4f}"))
    return rows
