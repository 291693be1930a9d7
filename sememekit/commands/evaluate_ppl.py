"""The subcommand evaluate-ppl; the plain function is ``sememekit.analysis.evaluate_ppl.evaluate_ppl``."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from sememekit.analysis.groupings import Grouping
from sememekit.commands import _options as shared
from sememekit.commands._options import argument, option
from sememekit.commands._printing import print_json, print_parts, remark
from sememekit.commands._progress import progress_bars
from sememekit.errors import ConfigError
from sememekit.files import check_output, typed, write_output

EXAMPLES = (
    "sememekit evaluate-ppl quickstart/sdlm --by senses",
    "sememekit evaluate-ppl quickstart/softmax quickstart/sdlm --by sememes",
    "sememekit evaluate-ppl quickstart/sdlm --overlay overlay.txt",
    "sememekit evaluate-ppl quickstart/sdlm --cache --tune",
    "sememekit evaluate-ppl runs/mos --dynamic --set dynamic.preset=mos-ptb",
)


def command(
    run: shared.Run,
    others: Annotated[list[Path] | None, argument("[RUN2]...", "Further runs to compare with RUN.")] = None,
    split: shared.Split = "test",
    by: Annotated[
        list[Grouping] | None,
        option("--by", "senses, sememes, frequency or sememes-at-frequency of words, or labels; repeatable.", metavar="KIND"),
    ] = None,
    overlay: shared.Overlay = None,
    data: shared.EvaluationData = None,
    graph: Annotated[Path | None, option("--graph", "Sememe graph for --by, where the run has none.")] = None,
    labels: Annotated[Path | None, option("--labels", "For --by labels: a label for each sentence, one a line.")] = None,
    batch_size: shared.BatchSize = None,
    which: shared.Which = "best",
    cache: Annotated[bool, option("--cache", "Continuous cache: mix in words that followed similar contexts.")] = False,
    dynamic: Annotated[bool, option("--dynamic", "Dynamic evaluation: a gradient step after each segment.")] = False,
    tune: Annotated[bool, option("--tune", "Tune the settings that you did not give, on the validation split.")] = False,
    overrides: Annotated[
        list[str] | None,
        option(
            "--set",
            "cache.preset (ptb, wikitext-2), theta, weight (lambda), window, start; dynamic.preset (awd-ptb, "
            "awd-ptb-paper, awd-wikitext-2, mos-ptb, mos-wikitext-2), rate, decay, epsilon, scaling, segment, "
            "statistics_tokens; tune.tokens. May be repeated.",
            metavar="SLOT.KEY=VALUE",
        ),
    ] = None,
    csv: Annotated[Path | None, option("--csv", "Also write the table of --by as CSV.")] = None,
    latex: Annotated[Path | None, option("--latex", "Also write the table for LaTeX (package booktabs).")] = None,
    caption: Annotated[str, option("--caption", "With --latex: caption of the table.")] = "",
    names: Annotated[str, option("--names", "Names of the runs in the table.", metavar="NAME,NAME,...")] = "",
    device: shared.Device = "auto",
    dtype: shared.Dtype = None,
    json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Perplexity with its signature; the rule is in docs/perplexity.md.

    With several runs: one table with differences from the first run, and paired 95 % intervals over sentences. With --overlay:
    one run before and after the changes, for words with changed annotation and for all others.

    RUN may be a folder of train --seeds: this prints the perplexity of each seed, with mean and standard deviation.

    With --cache or --dynamic the model learns from the text as it reads (docs/perplexity.md); the run does not change."""
    from sememekit.analysis.evaluate import SeedsReport, evaluate_seeds
    from sememekit.analysis.evaluate_ppl import PerplexityComparison, PerplexityReport, compare_ppl, evaluate_ppl
    from sememekit.analysis.scored_runs import TextReading
    from sememekit.protocols.adaptation import read_adaptation
    from sememekit.reports import perplexity
    from sememekit.runs.run import Run as LoadedRun
    from sememekit.training.checkpoint import seed_runs

    check_output(csv, perplexity.WORDS_CSV)
    check_output(latex, perplexity.LATEX)
    called = names.split(",") if names else []
    if called and len(called) != 1 + len(others or ()) + (overlay is not None):
        raise ConfigError(f"--names {names}: give a name for each run, with a comma between")
    if (csv or latex) and not (by or others or overlay):
        raise ConfigError("--csv and --latex: one perplexity is no table; add --by KIND, or give several runs")
    if caption and latex is None:
        raise ConfigError(f"--caption {caption!r:.60}: it stands above the table of --latex FILE; add --latex, or leave it out")
    adaptation = read_adaptation(overrides or (), cache=cache, dynamic=dynamic, tune=tune)
    if overlay is not None and (others or adaptation is not None):
        raise ConfigError(
            "--overlay compares one run with and without the changes; leave out further runs, --cache and --dynamic"
        )
    runs = (run, *(others or ()))
    seeds = next((one for one in runs if not (one / "plan.json").is_file() and seed_runs(one)), None)
    if seeds is not None and (others or overlay is not None):
        advice = f"--overlay takes one run, such as {seed_runs(seeds)[0]}"
        if others:
            advice = f"models of several seeds are compared by: {typed('sememekit', 'compare', *runs)}"
        raise ConfigError(f"{seeds} holds runs of several seeds; {advice}")
    groupings = list(dict.fromkeys(one.value for one in by or ()))
    options: dict[str, Any] = {"by": groupings, "graph": graph, "labels": labels}
    where: dict[str, Any] = {"which": which, "device": device, "dtype": dtype}
    report: PerplexityReport | PerplexityComparison | SeedsReport
    with progress_bars(quiet) as show:
        if overlay is not None or others:
            opened, text = [LoadedRun.open(one, **where) for one in runs], TextReading(split, data, batch_size, adaptation)
            report = compare_ppl(opened, text, overlay=overlay, **options, progress=show)
        else:
            options |= {**where, "split": split, "data": data, "batch_size": batch_size}
            options |= {"adaptation": adaptation, "progress": show}
            report = evaluate_ppl(run, **options) if seeds is None else evaluate_seeds(seeds, partial(evaluate_ppl, **options))
    if csv is not None:
        write_output(csv, perplexity.words_table(report, called).csv().encode(), perplexity.WORDS_CSV)
    if latex is not None:
        kinds = [word for one in groupings for word in ("--by", one)]
        comments = [typed("sememekit", "evaluate-ppl", *runs, "--split", split, *kinds), f"signature: {report.signature}"]
        tasks = [] if seeds else [LoadedRun.open(one, **where).task for one in (*runs, *([run] if overlay else []))]
        numbers = [sum(weights.numel() for weights in task.parameters()) for task in tasks]
        table = perplexity.words_table(report, called, numbers).latex(comments, caption)
        write_output(latex, table.encode(), perplexity.LATEX)
    print_json(report) if json else print_parts(perplexity.parts(report, called))
    for one in (report,) if isinstance(report, PerplexityReport) else report.reports:
        if isinstance(one, PerplexityReport) and one.cut_sources:
            remark(f"{one.run}: {one.cut_sources:,} sources have more words than the model reads (task.read_words)", quiet)
    for word in getattr(report, "absent", ()):
        remark(f"{word} does not occur in {report.split}", quiet)
