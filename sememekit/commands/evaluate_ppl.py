"""The subcommand evaluate-ppl; the plain function is ``sememekit.analysis.evaluate_ppl.evaluate_ppl``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememekit.analysis.groupings import Grouping
from sememekit.commands._completion import complete_setting
from sememekit.commands._options import (
    BatchSize,
    Device,
    Dtype,
    EvaluationData,
    Json,
    Overlay,
    Quiet,
    Run,
    Split,
    Which,
    option,
)
from sememekit.commands._printing import print_fields, print_json, print_table, remark, say
from sememekit.commands._progress import progress_bars
from sememekit.errors import ConfigError
from sememekit.figures import percent
from sememekit.files import typed

if TYPE_CHECKING:
    from sememekit.analysis.evaluate_ppl import PerplexityReport
    from sememekit.analysis.evaluate_seeds import SeedsPerplexity
    from sememekit.analysis.evaluate_several import ComparedWords, PerplexityComparison
    from sememekit.protocols.adaptation import AdaptationReport

EXAMPLES = (
    "sememekit evaluate-ppl runs/sdlm --by senses",
    "sememekit evaluate-ppl runs/softmax runs/sdlm --by senses --by sememes",
    "sememekit evaluate-ppl runs/sdlm --overlay overlay.txt",
    "sememekit evaluate-ppl runs/sdlm --cache --tune",
    "sememekit evaluate-ppl runs/mos --dynamic --set dynamic.preset=mos-ptb",
)
SHOWN_POINTS = 10
"""Rows of a grid that are printed; --json has all."""


def command(
    run: Run,
    others: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN2]...", help="Further runs: one table of all, with differences from RUN.", show_default=False
        ),
    ] = None,
    split: Split = "test",
    by: Annotated[
        list[Grouping] | None,
        option(
            "--by",
            "Also by kinds of words: senses or sememes (how many a word has), frequency (its count in the training text), or "
            "sememes-at-frequency (sememes among words of like counts); may be repeated.",
            metavar="KIND",
        ),
    ] = None,
    overlay: Overlay = None,
    data: EvaluationData = None,
    graph: Annotated[Path | None, option("--graph", "Sememe graph for --by, where the run has none.")] = None,
    batch_size: BatchSize = None,
    which: Which = "best",
    cache: Annotated[bool, option("--cache", "Continuous cache: mix in words that followed similar contexts.")] = False,
    dynamic: Annotated[bool, option("--dynamic", "Dynamic evaluation: a gradient step after each segment.")] = False,
    tune: Annotated[bool, option("--tune", "Find their settings that were not chosen on valid, then use them.")] = False,
    overrides: Annotated[
        list[str] | None,
        option(
            "--set",
            "cache.preset (ptb, wikitext-2), theta, weight (lambda), window, start; dynamic.preset (awd-ptb, "
            "awd-ptb-paper, awd-wikitext-2, mos-ptb, mos-wikitext-2), rate, decay, epsilon, scaling, segment, "
            "statistics_tokens; tune.tokens. May be repeated.",
            metavar="SLOT.KEY=VALUE",
            show_default=False,
            autocompletion=complete_setting,
        ),
    ] = None,
    device: Device = "auto",
    dtype: Dtype = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Perplexity with its signature; the rule is in docs/perplexity.md.

    With several runs: one table, differences from the first run with paired 95 % intervals over the sentences of the text. With
    --overlay the same of one run before and after, for the words whose annotation is changed and for all others.

    RUN may be a folder that train --seeds wrote: then the perplexity of each seed, with mean and standard deviation.

    With --cache or --dynamic the model learns from the text as it reads, see docs/perplexity.md; the run stays as it is.
    """
    from sememekit.analysis.evaluate_ppl import PerplexityReport, evaluate_ppl
    from sememekit.analysis.evaluate_seeds import SeedsPerplexity, evaluate_seeds
    from sememekit.analysis.evaluate_several import PerplexityComparison, compare_ppl, evaluate_overlay
    from sememekit.protocols.adaptation import read_adaptation
    from sememekit.runs.run import Run as LoadedRun
    from sememekit.training.checkpoint import seed_runs

    adaptation = read_adaptation(overrides or (), cache=cache, dynamic=dynamic, tune=tune)
    if overlay is not None and (others or adaptation is not None):
        raise ConfigError(
            "--overlay compares one run as it was trained with itself; leave out further runs, --cache and --dynamic"
        )
    runs = (run, *(others or ()))
    seeds = next((one for one in runs if not (one / "plan.json").is_file() and seed_runs(one)), None)
    if seeds is not None and (others or overlay is not None):
        advice = f"--overlay takes one run, such as {seed_runs(seeds)[0]}"
        if others:
            advice = f"models of several seeds are compared by: {typed('sememekit', 'compare', *runs)}"
        raise ConfigError(f"{seeds} holds runs of several seeds; {advice}")
    groupings = list(dict.fromkeys(one.value for one in by or ()))
    options: dict[str, Any] = {"split": split, "by": groupings, "data": data, "graph": graph, "batch_size": batch_size}
    where: dict[str, Any] = {"which": which, "device": device, "dtype": dtype}
    report: PerplexityReport | PerplexityComparison | SeedsPerplexity
    with progress_bars(quiet) as show:
        if overlay is not None:
            report = evaluate_overlay(LoadedRun.open(run, **where), overlay, **options, progress=show)
        elif others:
            opened = [LoadedRun.open(one, **where) for one in runs]
            report = compare_ppl(opened, **options, adaptation=adaptation, progress=show)
        else:
            options |= {**where, "adaptation": adaptation, "progress": show}
            report = evaluate_ppl(run, **options) if seeds is None else evaluate_seeds(seeds, partial(evaluate_ppl, **options))
    if json:
        print_json(report)
    elif isinstance(report, PerplexityComparison):
        _print_comparison(report)
    elif isinstance(report, SeedsPerplexity):
        _print_seeds(report)
    else:
        _print_report(report)
    for one in (report,) if isinstance(report, PerplexityReport) else report.reports:
        if one.cut_sources:
            remark(f"{one.run}: {one.cut_sources:,} sources have more words than the model reads (task.read_words)", quiet)
    for word in getattr(report, "absent", ()):
        remark(f"{word} does not occur in {report.split}", quiet)


def _print_report(report: PerplexityReport) -> None:
    skipped = ("run", "split", "graph", "signature", "groups", "adaptation", "cut_sources")
    print_fields(f"Perplexity of {report.run} on {report.split}", report, skip=skipped)
    if report.adaptation is not None:
        _print_adaptation(report.adaptation)
    for grouping, groups in (report.groups or {}).items():
        rows = [(group.name, group.perplexity, group.tokens, percent(group.share)) for group in groups]
        print_table(f"By {grouping} of the word", ("words", "perplexity", "tokens", "share"), rows)
    say(f"signature: {report.signature}")


def _print_seeds(report: SeedsPerplexity) -> None:
    """A row for each seed, then mean and standard deviation; groups of words with their means."""
    from sememekit.measure.sides import SCALES

    adapted = [one.adaptation.static_perplexity for one in report.reports if one.adaptation is not None]
    columns = ["seed", "perplexity", "tokens", "checkpoint", *(["perplexity as trained"] if adapted else [])]
    rows: list[tuple[object, ...]] = [
        (str(seed), one.perplexity, one.tokens, one.checkpoint, *adapted[place : place + 1])
        for place, (seed, one) in enumerate(zip(report.seeds, report.reports, strict=True))
    ]
    rows += [("geometric mean", report.mean), ("sd", report.sd)]
    print_table(f"Perplexity of {report.run} on {report.split}", columns, rows)
    columns = ["words", "tokens", "share", *(f"seed {seed}" for seed in report.seeds), "geometric mean"]
    for grouping in report.reports[0].groups or {}:
        rows = []
        for first, *others in zip(*((one.groups or {})[grouping] for one in report.reports), strict=True):
            values = [one.perplexity for one in (first, *others)]
            known = [math.log(value) for value in values if value is not None]
            mean = SCALES["perplexity"].mean(known) if known else None
            rows.append((first.name, first.tokens, percent(first.share), *values, mean))
        print_table(f"By {grouping} of the word", columns, rows)
    say(f"signature: {report.signature}")


def _print_comparison(report: PerplexityComparison) -> None:
    """One table: perplexities, and by how much each further model differs from the first; a row with a name is shown once."""
    from sememekit.analysis.evaluate_several import OverlayComparison

    names = [f"{one.run} ({', '.join(filter(None, (one.checkpoint, one.marginal)))})" for one in report.reports]
    if isinstance(report, OverlayComparison):
        for change in report.changes:
            say(f"{change.word}#{change.sense}: {' '.join(change.before)} -> {' '.join(change.after)}")
        names = [f"{names[0]} as trained", f"the same with {report.overlay}"]
    for number, name in enumerate(names, start=1):
        say(f"{number}: {name}")
    numbers = range(1, len(names) + 1)
    columns = ["words", "tokens", "share", *map(str, numbers)]
    columns += [head for number in numbers[1:] for head in (f"{number} - 1", "in %", "from", "to")]
    rows = {row.name: (row.name, row.tokens, percent(row.share), *row.perplexities, *_changes(row)) for row in report.rows}
    print_table(f"Perplexity on {report.split}", columns, rows.values())
    drawn = f"{report.resamples:,} paired draws of {report.units:,} {report.unit}"
    say(f"intervals: 95 %, {drawn}; the variation between trainings (seeds) is not in them")
    say(f"signature: {report.signature}")


def _changes(row: ComparedWords) -> Iterator[object]:
    for change in row.changes:
        yield change.perplexity
        for value in (change.relative.value, change.relative.low, change.relative.high):
            yield percent(value, 2, "+", unit=False)


def _print_adaptation(report: AdaptationReport) -> None:
    if (tuning := report.tuning) is not None:
        where = f"{tuning.tokens:,} tokens of {tuning.split}, {tuning.static_perplexity:,.2f} as trained"
        for name, points, columns in (
            ("Dynamic evaluation", tuning.dynamic, {"rate": "rate", "decay": "decay (lambda)", "epsilon": "epsilon"}),
            ("Cache", tuning.cache, {"theta": "theta", "weight": "lambda", "window": "window"}),
        ):
            if points is not None:
                rows = [(*(getattr(one.settings, key) for key in columns), one.perplexity) for one in points[:SHOWN_POINTS]]
                best = f"the best {SHOWN_POINTS} of " if len(points) > SHOWN_POINTS else ""
                title = f"{name}: {best}{len(points)} settings on {where}"
                print_table(title, (*columns.values(), "perplexity"), rows, numeric=0)
        if tuning.at_the_edge:
            names = ", ".join(tuning.at_the_edge)
            remark(f"the best value is at the edge of the grid: {names}; values outside of it may be better", quiet=False)
    settings = {"cache": report.cache, "dynamic": report.dynamic, "the same in krause scaling": report.exact}
    fields = {
        "perplexity as trained": report.static_perplexity,
        **{name: None if one is None else one.model_dump() for name, one in settings.items()},
        "batches of the statistics": report.statistics_batches,
    }
    print_fields("Learned while reading", fields)
