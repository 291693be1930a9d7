"""``sememekit compare``: language models, classifiers, or the texts of two systems for the same sources, with intervals."""

from pathlib import Path
from typing import Annotated

import typer

from sememekit.commands import _options as shared
from sememekit.commands._options import argument, fail_usage, option, others_typed
from sememekit.commands._printing import print_json, print_parts, remark
from sememekit.commands._progress import progress_bars
from sememekit.errors import ConfigError

EXAMPLES = (
    "sememekit compare quickstart/softmax quickstart/sdlm --html table.html",
    "sememekit compare a1,a2,a3 b1,b2,b3 --latex table.tex",
    "sememekit compare one.jsonl other.jsonl --by gigaword",
)

_SIDE = "A run, several seeds of one model (a folder of 'train --seeds', or runs with commas between), or a file of texts."


def command(
    context: typer.Context,
    first: Annotated[str, argument("FIRST", f"{_SIDE} Others are compared with it.")],
    others: Annotated[list[str], argument("SECOND...", "Others to compare with FIRST, of the same kind.")],
    by: Annotated[str | None, option("--by", "Metric of texts: gigaword, duc, lcsts-characters, lcsts-words or bleu.")] = None,
    split: shared.Split = "test",
    data: shared.EvaluationData = None,
    batch_size: shared.BatchSize = None,
    which: shared.Which = "best",
    csv: Annotated[Path | None, option("--csv", "Also write the table as CSV, with all digits.")] = None,
    latex: Annotated[Path | None, option("--latex", "Also write the table for LaTeX (package booktabs).")] = None,
    html: shared.Html = None,
    figure: shared.Figure = None,
    seed: shared.Seed = 0,
    device: shared.Device = "auto",
    dtype: shared.Dtype = None,
    json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Compare language models or classifiers, or the texts of two systems, with paired 95 % intervals.

    Models: perplexity of the best checkpoints on one text, or accuracy on the same examples, then the best validation at equal
    updates and at equal training time (of the faster side). A difference has three intervals: over sentences or examples (drawn
    in pairs), over seeds, and over both. Runs with different signatures are refused."""
    if Path(first).is_file():
        _texts(context, [first, *others], by, seed, json)
        return
    if by is not None:
        raise ConfigError(
            f"--by {by}: it is for two files of 'eval --texts', and {first} is no file; leave --by out, or give two such files"
        )
    from sememekit.analysis.compare_runs import compare
    from sememekit.files import PAGE, check_output, write_output
    from sememekit.reports import perplexity
    from sememekit.reports.charts import check_figure, write_figure

    tables = [(csv, perplexity.csv_text, perplexity.CSV), (latex, perplexity.latex_text, perplexity.LATEX)]
    tables.append((html, perplexity.runs_page, PAGE))
    for path, _, kind in tables:
        check_output(path, kind)
    if figure is not None:
        check_figure(figure)
    with progress_bars(quiet) as show:
        report = compare(
            [first, *others],
            split=split,
            data=data,
            batch_size=batch_size,
            device=device,
            dtype=dtype,
            which=which,
            seed=seed,
            progress=show,
        )
    for path, text, kind in tables:
        if path is not None:
            write_output(path, text(report).encode(), kind)
    if figure is not None:
        write_figure(perplexity.curves(report), figure)
    print_json(report) if json else print_parts(perplexity.runs_parts(report))
    for told in report.remarks:
        remark(told, quiet)


def _texts(context: typer.Context, files: list[str], by: str | None, seed: int, json: bool) -> None:
    from sememekit.analysis.written_texts import SCORED_BY, compare_texts
    from sememekit.reports import metrics

    if len(files) != 2 or by is None:
        fail_usage(
            f"files of texts are compared two at a time, with --by {', '.join(SCORED_BY[:-1])} or {SCORED_BY[-1]}; "
            f"given {len(files)} and {'no --by' if by is None else f'--by {by}'}"
        )
    if typed := others_typed(context, ("first", "others", "by", "seed", "json", "quiet")):
        fail_usage(f"{typed[0]} is for runs, and {files[0]} is a file of texts; leave it out")
    report = compare_texts(Path(files[0]), Path(files[1]), by, seed=seed)
    print_json(report) if json else print_parts(metrics.parts(report))
