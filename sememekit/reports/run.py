"""``sememekit report``: a page about a run, with its learning curves and the changes of its word clusters."""

from collections.abc import Callable, Mapping, Sequence
from math import exp
from pathlib import Path
from typing import Any, Final

from sememekit.config import Record
from sememekit.errors import CheckpointError
from sememekit.figures import percent
from sememekit.files import PAGE as PAGE_FILE
from sememekit.files import check_output, replace_file, typed, write_output
from sememekit.reports import pages
from sememekit.reports.charts import Curves, Line, chart, check_figure, write_figure
from sememekit.runs.plan import VARIANTS, read_plan, variant
from sememekit.training import RunFolder
from sememekit.training.metrics import CLUSTER_UPDATE, measured_at
from sememekit.training.snapshots import step_of

PAGE = "report.html"
Entry = Mapping[str, Any]
_STEP: Final = "training step"
_PARTS: Final = (("cluster", "cluster_perplexity"), ("in-cluster", "in_cluster_perplexity"))


class RunReport(Record):
    """The page of a run; ``changes`` counts changes of the model without gradients."""

    run: str
    page: str
    epochs: int
    steps: int
    changes: int


def report(run: Path, *, html: Path | None = None, figure: Path | None = None) -> RunReport:
    """Write the page of a run, also during training; arguments as ``sememekit report --help``. Raises CheckpointError: no run,
    no finished epoch, or a torn run. Raises ConfigError: another kind of file at ``html`` or ``figure``, or another suffix."""
    check_output(html, PAGE_FILE)
    if figure is not None:
        check_figure(figure)
    folder = RunFolder.open(run)
    records = folder.metrics(live=True)
    if not (epochs := _of_kind(records, "EpochReport")):
        raise CheckpointError(
            f"{run} has no finished epoch to report yet; finish one: {typed('sememekit', 'train', '--out', run, '--resume')}"
        )
    target = html if html is not None else run / PAGE
    best = folder.pointer().get("best")
    written = run_page(run.name, folder.plan, records, None if best is None else step_of(best)).encode()
    if html is None:
        replace_file(target, written)
    else:
        write_output(target, written, PAGE_FILE)
    if figure is not None:
        write_figure(charts(folder.plan, records), figure)
    steps = max(int(record["step"]) for record in records)
    changes = sum("moved_words" in record["values"] for record in _of_kind(records, "ChangeReport", CLUSTER_UPDATE))
    return RunReport(run=str(run), page=str(target), epochs=len(epochs), steps=steps, changes=changes)


def run_page(name: str, plan: Mapping[str, Any], records: Sequence[Entry], best_step: int | None = None) -> str:
    """Return the page of a run with at least one epoch, from its plan and the lines of metrics.jsonl. ``best_step`` is the step
    of the best weights (default: the last epoch that was better than all before)."""
    epochs, changes = _of_kind(records, "EpochReport"), _of_kind(records, "ChangeReport", CLUSTER_UPDATE)
    clustered = "cluster_perplexity" in epochs[-1]["valid"]
    if best_step is None:
        best_step = max((epoch["step"] for epoch in epochs if epoch["best"]), default=0)
    return pages.render(
        "run",
        name=name,
        plan=plan,
        changed=changed_settings(plan),
        epochs=epochs,
        best=measured_at(records, best_step),
        best_step=best_step,
        learning=[chart(one) for one in _learning(epochs, plan)],
        clusters=[(title, chart(one)) for title, one in _clusters(epochs, changes)] if clustered else None,
        orphaned=max((int(record["values"].get("orphaned_words", 0)) for record in changes), default=0),
        by_hand=[record for record in changes if clustered and record["kind"] == CLUSTER_UPDATE],
        figure=_figure,
    )


def changed_settings(plan: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the settings that differ from the default or have none; for custom classes all settings."""
    ours = [slot for slot in VARIANTS if plan.get(slot, {}).get("name") in VARIANTS[slot][0]]
    fields = {slot: variant(slot, plan[slot]["name"]).Settings.model_fields for slot in ours}
    asked = {slot: {"name", *(key for key, field in fields[slot].items() if field.is_required())} for slot in ours}
    usual = read_plan({slot: {key: plan[slot][key] for key in asked[slot]} for slot in ours}, "defaults").table()
    keys = ((slot, key, value) for slot in plan for key, value in plan[slot].items() if key != "prepare")
    return [
        (f"{slot}.{key}", value)
        for slot, key, value in keys
        if usual.get(slot, {}).get(key) != value or key in asked.get(slot, {"name"})
    ]


def charts(plan: Mapping[str, Any], records: Sequence[Entry]) -> list[Curves]:
    """Return all charts of a run, for a file: the learning curve, and charts of its clusters if it has some."""
    epochs, changes = _of_kind(records, "EpochReport"), _of_kind(records, "ChangeReport", CLUSTER_UPDATE)
    clusters = _clusters(epochs, changes) if "cluster_perplexity" in epochs[-1]["valid"] else []
    return [*_learning(epochs, plan), *(one for _, one in clusters)]


def _of_kind(records: Sequence[Entry], *kinds: str) -> list[Entry]:
    return [record for record in records if record["kind"] in kinds]


def _figure(name: str, value: float) -> str:
    """Format a validation figure: ROUGE in per cent; two decimals, or four for a share."""
    if name.startswith("rouge"):
        return percent(value, 2)
    return f"{value:.4g}" if abs(value) >= 1e9 else f"{value:,.2f}" if abs(value) > 1 else f"{value:.4f}"


def _line(name: str, records: Sequence[Entry], value: Callable[[Entry], float | None]) -> Line | None:
    found = [(float(record["step"]), value(record)) for record in records]
    # a larger perplexity would overflow a logarithmic axis
    points = tuple((step, float(y)) for step, y in found if y is not None and 0 < y < 1e100)
    return Line(name, points) if points else None


def _curves(lines: Sequence[Line | None], title: str, y: str) -> list[Curves]:
    there = tuple(line for line in lines if line is not None)
    told = "; ".join(f"{line.name} from {line.points[0][1]:,.1f} to {line.points[-1][1]:,.1f}" for line in there)
    return [Curves(f"{title}: {told}", _STEP, y, there)] if there else []


def _drops(table: Mapping[str, Any]) -> bool:
    """Return whether a plan has dropout, which makes training figures worse."""
    return any(
        _drops(value) if isinstance(value, Mapping) else ("drop" in key and isinstance(value, float) and value > 0)
        for key, value in table.items()
    )


def training_figure(plan: Mapping[str, Any]) -> str:
    """Return a caveat on training figures: with dropout, or estimated from sampled words (too low on average)."""
    decoder = plan.get("decoder", {})
    samples = decoder.get("samples", 0)
    until = ", exact from the first cut on" if decoder.get("samples_until") == "first-cut" else ""
    estimate = [f"estimated from {samples:,} sampled words{until}"] if samples else []
    return ", ".join(["training", *(["dropout on"] if _drops(plan) else []), *estimate])


def _learning(epochs: Sequence[Entry], plan: Mapping[str, Any]) -> list[Curves]:
    valid = epochs[-1]["valid"]
    metric = "perplexity" if "perplexity" in valid else next(iter(valid))
    lines = [_line(f"validation {metric}".replace("_", " "), epochs, lambda record: record["valid"].get(metric))]
    if metric == "accuracy":
        return [Curves("Learning curve", _STEP, metric, (line,), "percent", show=".1%") for line in lines if line is not None]
    if metric == "perplexity":
        lines.append(_line("training", epochs, lambda record: exp(min(700.0, record["train_nats"]))))
    return _curves(lines, f"Learning curve ({training_figure(plan)})", f"{metric} (log scale)".replace("_", " "))


def _clusters(epochs: Sequence[Entry], changes: Sequence[Entry]) -> list[tuple[str, Curves]]:
    """Figure 1 of Shen et al. 2017: perplexities of the clusters, and how much of the vocabulary moves, with headings."""

    def of(name: str) -> Callable[[Entry], float | None]:
        return lambda record: record["valid"].get(name) if record["kind"] == "EpochReport" else record["values"].get(name)

    updates = [record for record in changes if record["kind"] == "ChangeReport" and "cluster_perplexity" in record["values"]]
    valid = [_line("perplexity", epochs, of("perplexity")), *(_line(name, epochs, of(key)) for name, key in _PARTS)]
    trained = [_line(name, updates, of(key)) for name, key in _PARTS]
    moved = tuple(
        Line(name, tuple((float(record["step"]), float(record["values"][key])) for record in updates))
        for name, key in (("of the words", "moved_words"), ("of the text", "moved_frequency"))
    )
    y, title = "perplexity (log scale)", "Share of the words, and of the text that they are, that changed their cluster"
    shares = [Curves(title, _STEP, "share that moved", moved, "percent", show=".1%")] if updates else []
    return [
        *(("On the validation text, after each epoch", one) for one in _curves(valid, "On validation", y)),
        *(("On the training text, between one assignment and the next", one) for one in _curves(trained, "In training", y)),
        *(("Words that change their cluster, at each assignment", one) for one in shares),
    ]
