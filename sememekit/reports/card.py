"""The model card of a run: Markdown with metadata, out of the folder of the run alone."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from math import exp
from pathlib import Path
from typing import Final, NamedTuple

from sememekit.config import Settings
from sememekit.figures import percent
from sememekit.files import typed
from sememekit.reports.run import training_figure
from sememekit.runs.plan import Plan, Slot
from sememekit.runs.run import Run, Which
from sememekit.runs.sharing import without_folders
from sememekit.text.scripts import HAN
from sememekit.training.metrics import CLUSTER_UPDATE, measured_at
from sememekit.training.snapshots import step_of

_PIPELINES: Final = (("labels", "text-classification"), ("lattices", "token-classification"), ("", "text-generation"))
_COUNTS: Final = ("nats", "tokens", "examples")
_LEFT_OUT: Final = ("claim", "run", "data", "graph", "clusters")
_OF_CLUSTERS: Final = ("perplexity", "cluster_perplexity", "in_cluster_perplexity")


def model_card(run: Run | Path | str, name: str | None = None, *, which: Which = "best") -> str:
    """Markdown with metadata as the Hugging Face hub reads it: figures, data, sememes, settings, versions, use.

    ``name`` is that of the model; the name of the folder unless given. The figures are those of the best weights, or of the
    last, as they were validated. The licence is left to the owner. Raises CheckpointError: as ``Run.open``.
    """
    opened = Run.open(run, device="cpu")
    title = " ".join((name or opened.path.resolve().name).split())
    found = _validated(opened, which)
    parts = [
        _metadata(opened, title, found),
        _opening(opened, title),
        _figures(found, opened.plan),
        _data(opened),
        _sememes(opened),
    ]
    parts += [_settings(opened.plan), _versions(opened), _use(opened, title), _licence(opened)]
    return "\n\n".join(part for part in parts if part) + "\n"


class _Validated(NamedTuple):
    """What weights were worth on validation: ``valid`` by the name of the figure, empty where nobody measured; the mean nats of
    their epoch of training, where it is one; and ``told``, which weights these are."""

    valid: Mapping[str, float]
    train_nats: float | None
    told: str


def _validated(run: Run, which: Which) -> _Validated:
    """Of the best weights or of the last, out of the line of ``metrics.jsonl`` that has their step: of the end of their epoch,
    or of the change of their clusters since."""
    run.folder.check_metrics()
    name = run.folder.pointer().get(which)
    if name is None or not run.epochs():
        return _Validated({}, None, "No epoch of training was finished.")
    step = step_of(name)
    last = measured_at(run.metrics(), step)
    if last is None:
        why = "with which training began: no epoch was better" if not step else "inside an epoch: nobody validated them"
        return _Validated({}, None, f"The weights are those after {step:,} steps, {why}.")
    if last["kind"] == CLUSTER_UPDATE:
        valid = {name: last["values"][name] for name in _OF_CLUSTERS if last["split"] == "valid" and name in last["values"]}
        return _Validated(valid, None, f"After {step:,} steps, with the clusters that `sememekit cluster-update` gave it then.")
    chosen = "the best on validation, which chose it" if last["best"] else "the last, and not the best on validation"
    return _Validated(last["valid"], last["train_nats"], f"Epoch {last['epoch']}, after {step:,} steps: {chosen}.")


def _metadata(run: Run, title: str, found: _Validated) -> str:
    pipeline = next(found for kind, found in _PIPELINES if not kind or kind in run.kinds)
    decoder = [run.plan.decoder.name] if run.plan.decoder is not None else []
    tags = ["sememekit", run.plan.task.name, run.plan.encoder.name, *decoder, *(["sememes"] if run.stored_graph else [])]
    lines = ["---", "license: unknown  # for the owner to fill in", "library_name: sememekit", f"pipeline_tag: {pipeline}"]
    counts = zip(run.vocabulary.tokens, run.vocabulary.counts.tolist(), strict=True)
    chinese = sum(count for word, count in counts if HAN.search(word))
    lines += ["language: zh"] if 2 * chinese > int(run.vocabulary.counts.sum()) else []
    lines += ["tags:", *(f"- {json.dumps(tag.replace('_', '-'))}" for tag in dict.fromkeys(tags))]
    if found.valid:
        lines += ["model-index:", f"- name: {json.dumps(title, ensure_ascii=False)}", "  results:", "  - task:"]
        lines += [f"      type: {pipeline}", "    dataset:", f"      name: {json.dumps(run.signature.dataset)}"]
        lines += [f"      type: {json.dumps(run.signature.dataset)}", "      split: valid", "    metrics:"]
        for metric, value in found.valid.items():
            if metric not in _COUNTS:
                lines += [f"    - type: {json.dumps(metric)}", f"      value: {value:.6g}"]
    return "\n".join([*lines, "---"])


def _opening(run: Run, title: str) -> str:
    plan = run.plan
    parts = [f"task {plan.task.name}", f"encoder {plan.encoder.name}"]
    parts += [f"output layer {plan.decoder.name}"] if plan.decoder is not None else []
    return f"# {_plain(title)}\n\nA model of [sememekit](#use): {', '.join(parts)}; {len(run.vocabulary):,} words."


def _plain(text: str) -> str:
    """A text of somebody else as one line of Markdown that is only text: no heading, link, table, code or HTML."""
    return re.sub(r"([\\`\[\]<>|])", r"\\\1", " ".join(text.split()))


def _figures(found: _Validated, plan: Plan) -> str:
    rows: list[Sequence[object]] = []
    if "perplexity" in found.valid and found.train_nats is not None:
        rows.append((f"perplexity of the epoch: {training_figure(plan.table())}", f"{exp(min(found.train_nats, 700.0)):,.2f}"))
    for metric, value in found.valid.items():
        counted = metric in ("tokens", "examples")
        rows.append((f"validation {metric.replace('_', ' ')}", f"{value:,.0f}" if counted else f"{value:,.4f}"))
    table = f"{_table(('figure', 'value'), rows)}\n\n" if rows else ""
    test = "Test figures are not part of a run: `sememekit evaluate-ppl` or `sememekit eval` gives them with their signature."
    return f"## Figures\n\n{table}{found.told}{f' {test}' if rows else ''}"


def _data(run: Run) -> str:
    signature = run.signature
    rows = [
        (
            split,
            f"{size.tokens:,}",
            f"{size.types:,}",
            percent(size.unknown_rate, 2),
            f"{size.sentences:,}",
            f"`{size.sha256[:12]}`",
        )
        for split, size in signature.splits.items()
    ]
    facts = [
        f"Data set: {_plain(signature.dataset)}",
        f"segmenter: {_plain(signature.segmenter)}",
        f"normalisation: {_plain(signature.normalisation)}",
        f"sentences end with a word of their own: {'yes' if signature.end_of_sentence else 'no'}",
        f"vocabulary: {signature.vocabulary_size:,} words, fingerprint `{signature.vocabulary}`",
    ]
    if added := max((record.get("augmented", 0) for record in run.metrics()), default=0):
        facts.append(f"training examples added by `--augment`: {added:,}")
    labels = f" Labels: {_plain(', '.join(run.labels))}." if run.labels else ""
    table = _table(("split", "tokens", "types", "unknown", "sentences", "SHA-256 of the ids"), rows)
    return f"## Data\n\n{'; '.join(facts)}.{labels}\n\n{table}"


def _sememes(run: Run) -> str:
    graph = run.stored_graph
    if graph is None:
        return ""
    rows = [(source.name, f"`{source.sha256[:12]}`") for source in graph.lexicons]
    return (
        f"## Sememes\n\nThe graph of the run has {graph.num_sememes:,} sememes, out of these lexicons:\n\n"
        f"{_table(('lexicon', 'SHA-256'), rows)}"
    )


def _settings(plan: Plan) -> str:
    rows = [(f"`{key}`", f"`{value}`") for key, value in _changed(plan)]
    return f"## Settings\n\nThose that differ from the defaults; `plan.json` has all.\n\n{_table(('setting', 'value'), rows)}"


def _changed(plan: Plan) -> Iterator[tuple[str, object]]:
    for slot in type(plan).model_fields:
        chosen = getattr(plan, slot)
        if slot in _LEFT_OUT or chosen is None:
            continue
        settings: Settings = chosen.settings if isinstance(chosen, Slot) else chosen
        if isinstance(chosen, Slot):
            yield f"{slot}.name", chosen.name
        for key, field in type(settings).model_fields.items():
            value = getattr(settings, key)
            if value != field.get_default(call_default_factory=True):
                yield f"{slot}.{key}", without_folders(value)
    yield "run.seed", plan.run.seed


def _versions(run: Run) -> str:
    wanted = ("sememekit", "python", "torch", "numpy", "threads", "cuda")
    rows = [(name, run.folder.versions[name]) for name in wanted if run.folder.versions.get(name) is not None]
    return f"## Versions\n\n{_table(('', 'version'), rows)}"


def _use(run: Run, title: str) -> str:
    text = "labels" not in run.kinds
    score = typed("sememekit", "evaluate-ppl" if {"words", "sentences"} & run.kinds else "eval", title, "--data", "DATA")
    call = "perplexity('...')" if text else "predict(['...'])"
    return (
        f"## Use\n\n```text\npip install sememekit\n{typed('sememekit', 'pull', 'FOLDER', '--out', title)}\n{score}\n```\n\n"
        f"```python\nfrom sememekit import load_run\n\nrun = load_run({title!r})\nprint(run.{call})\n```"
    )


def _licence(run: Run) -> str:
    graph = " and `graph.json` what the lexicons say of them" if run.stored_graph is not None else ""
    return (
        "## Licence\n\nTo be filled in by the owner, here and in the first lines. The files hold more than weights: "
        f"`vocabulary.tsv` has the words of the text that the model learned from{graph}."
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines
    )
