"""The subcommand eval; the plain functions are ``evaluate`` and ``evaluate_segmentation`` in ``sememekit.analysis``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememekit.commands._kinds import Way, choose, refuse
from sememekit.commands._options import (
    Decode,
    Device,
    Dtype,
    EvaluationData,
    Json,
    Quiet,
    Run,
    SearchOverrides,
    SplitIfGiven,
    Texts,
    Which,
    given,
)
from sememekit.commands._render import per_cent, print_fields, print_json, print_table, progress_bars, say

if TYPE_CHECKING:
    from sememekit.analysis.evaluate import MetricsReport
    from sememekit.analysis.segmentation import SegmentationReport

EXAMPLES = ("sememekit eval runs/sdlm --split valid --json",)


def command(
    run: Run,
    split: SplitIfGiven = None,
    data: EvaluationData = None,
    overrides: SearchOverrides = None,
    texts: Texts = None,
    segmentation: Annotated[
        Path | None,
        typer.Option("--segmentation", metavar="GOLD", help="Judge the words of a lattice model by a text with words apart."),
    ] = None,
    words: Annotated[
        Path | None,
        typer.Option("--words", metavar="TEXT", help="With --segmentation: a text whose words maximum matching knows."),
    ] = None,
    lexicon: Annotated[
        str | None,
        typer.Option(
            "--lexicon", metavar="FORMAT:PATH", help="With --segmentation: a lexicon whose words maximum matching knows."
        ),
    ] = None,
    decode: Decode = None,
    which: Which = "best",
    device: Device = "auto",
    dtype: Dtype = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Whatever the metrics of the task are, by their usual names."""
    way, typed = choose("eval", run, WAYS, locals())
    with progress_bars(quiet or json) as show:
        report, print_report = way.call(
            run, progress=show, which=which, device=device, **typed, **given(split=split, data=data, dtype=dtype)
        )
    print_json(report) if json else print_report(report)


def _metrics(run: Path, **options: Any) -> tuple[Any, Callable[[Any], None]]:
    from sememekit.analysis.evaluate import evaluate

    return evaluate(run, **options), _print_metrics


def _lattice(
    run: Path,
    *,
    segmentation: Path | None = None,
    words: Path | None = None,
    lexicon: str | None = None,
    decode: str | None = None,
    **options: Any,
) -> tuple[Any, Callable[[Any], None]]:
    if segmentation is None:
        refuse({"words": words, "lexicon": lexicon, "decode": decode}, "only together with --segmentation GOLD")
        return _metrics(run, **options)
    from sememekit.analysis.segmentation import evaluate_segmentation

    others = {name: options.get(name) for name in ("split", "data", "dtype")}
    refuse(others, "eval --segmentation GOLD reads the text of GOLD as it is; leave this out")
    chosen = given(words=words, lexicon=lexicon, decoding=decode)
    return evaluate_segmentation(run, segmentation, **chosen, **options), _print_segmentation


def _print_metrics(report: MetricsReport) -> None:
    metrics = report.model_dump()
    if "search" in metrics:
        _print_written_scores(metrics)
        return
    print_fields(f"Metrics of {report.run} on {report.split}", report, skip=("run", "split", "vectors", *_TABLES))
    if "vectors" in metrics:
        from sememekit.tasks.base import VectorCoverage

        say(f"vectors: {VectorCoverage.model_validate(metrics['vectors']).sentence()}")
    if "confusion" in metrics:
        _print_classes(metrics)


_TABLES = ("classes", "confusion", "labels", "interval", "accuracy_low", "accuracy_high")


def _print_classes(metrics: dict[str, Any]) -> None:
    """The interval, the scores of each class and the confusion matrix."""
    low, high = metrics["accuracy_low"], metrics["accuracy_high"]
    say(f"accuracy {metrics['accuracy']:.2%}, between {low:.2%} and {high:.2%} ({metrics['interval']})\n")
    rows = [tuple(scores[key] for key in ("label", "precision", "recall", "f1", "support")) for scores in metrics["classes"]]
    print_table("By label", ("label", "precision", "recall", "F1", "examples"), rows)
    rows = [(label, *row) for label, row in zip(metrics["labels"], metrics["confusion"], strict=True)]
    print_table("What an example is (row), and what it was called (column)", ("", *metrics["labels"]), rows)


def _print_written_scores(metrics: dict[str, Any]) -> None:
    """Perplexity, then each kind of score with its intervals and its signature."""
    parts = {f"{name} perplexity": value for name, value in metrics["parts"].items()}
    names = ("perplexity", "nats", "tokens", "examples", "checkpoint_by", "words", "unknown")
    fields = {name: metrics[name] for name in names} | parts
    print_fields(f"Metrics of {metrics['run']} on {metrics['split']}", fields)
    say(f"signature: {metrics['perplexity_signature']}\n")
    for scores in metrics["scores"]:
        rows = [(item["name"], *(per_cent(item[key]) for key in ("value", "low", "high"))) for item in scores["values"]]
        print_table(f"{scores['preset']}, in per cent", ("", "score", "from", "to"), rows)
        say(f"signature: {scores['signature']}\n")


def _print_segmentation(report: SegmentationReport) -> None:
    """A row for the model and for each baseline."""
    columns = ["segmentation", "precision", "recall", "F1", "95%", "words", "F1 of the model minus this", "95%"]
    with_new = report.rows[0].new_recall is not None
    rows = []
    for row in report.rows:
        interval = f"{row.f1_low:.4f}–{row.f1_high:.4f}"
        cells: list[object] = [row.name, f"{row.precision:.4f}", f"{row.recall:.4f}", f"{row.f1:.4f}", interval, row.words]
        if row.difference is None:
            cells += [None, None]
        else:
            cells += [f"{row.difference:+.4f}", f"{row.difference_low:+.4f} to {row.difference_high:+.4f}"]
        rows.append([*cells, row.new_recall] if with_new else cells)
    first = report.rows[0]
    title = f"Words of {report.gold} found by {report.run} ({report.decoding}, {report.marginal})"
    print_table(title, [*columns, "recall of new words"] if with_new else columns, rows)
    say(f"{first.sentences:,} sentences, {first.gold_words:,} gold words; intervals: bootstrap over sentences")


WAYS = (
    Way("texts", "a model of headlines or dialogue", frozenset({"overrides", "texts"}), _metrics),
    Way("lattices", "a lattice model", frozenset({"segmentation", "words", "lexicon", "decode"}), _lattice),
    Way("labels", "a classifier", frozenset(), _metrics),
    Way("words", "a model that writes no texts", frozenset(), _metrics),
)
