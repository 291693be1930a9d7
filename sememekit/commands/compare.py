"""``sememekit compare``: language models, classifiers, or the texts of two systems for the same sources, with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sememekit.commands._exit import fail_usage
from sememekit.commands._options import Device, Dtype, EvaluationData, Figure, Json, Quiet, Seed, Split, Which, option
from sememekit.commands._printing import in_per_cent, print_json, print_table, remark, say
from sememekit.commands._progress import progress_bars
from sememekit.config import nearest
from sememekit.errors import ConfigError

if TYPE_CHECKING:
    from sememekit.analysis.compare_runs import RunsComparison
    from sememekit.analysis.written_texts import ComparisonReport

EXAMPLES = (
    "sememekit compare runs/softmax runs/sdlm --csv table.csv --figure curves.svg",
    "sememekit compare a1,a2,a3 b1,b2,b3 --latex table.tex",
    "sememekit compare one.jsonl other.jsonl --by gigaword",
)

_SIDE = "A run, several seeds of one model (a folder of 'train --seeds', or runs with commas between), or a file of texts."


def command(
    context: typer.Context,
    first: Annotated[str, typer.Argument(metavar="FIRST", help=f"{_SIDE} Differences are from this one.")],
    others: Annotated[list[str], typer.Argument(metavar="SECOND...", help="What is compared with it, of the same kind.")],
    by: Annotated[str | None, option("--by", "Of texts: gigaword, duc, lcsts-characters, lcsts-words or bleu.")] = None,
    split: Split = "test",
    data: EvaluationData = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", min=1, help="Batch size: columns the text is read in; 1 is the exact stream.")
    ] = None,
    which: Which = "best",
    csv: Annotated[Path | None, option("--csv", "Also write the table as CSV, with all digits.")] = None,
    latex: Annotated[Path | None, option("--latex", "Also write the table for LaTeX (package booktabs).")] = None,
    figure: Figure = None,
    seed: Seed = 0,
    device: Device = "auto",
    dtype: Dtype = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare language models or classifiers, or the texts of two systems, with paired 95 % intervals.

    Models: perplexity of the best checkpoints on one text, or accuracy on the same examples, then the best validation at equal
    updates and at equal training time (that of the side that spent less). A difference has an interval over the sentences or
    examples, which are drawn in pairs, one over the seeds, and one over both. Runs whose signatures differ are refused.
    """
    from sememekit.files import check_output
    from sememekit.reports import runs_table
    from sememekit.reports.charts import check_figure, write_figure

    if Path(first).is_file():
        if len(others) != 1 or by is None:
            fail_usage(
                "files of texts are compared two at a time, with --by gigaword, duc, lcsts-characters, lcsts-words or bleu; "
                f"given {1 + len(others)} and {'no --by' if by is None else f'--by {by}'}"
            )
        for name in ("csv", "latex", "figure", "split", "data", "batch_size", "which", "device", "dtype"):
            source = context.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                fail_usage(f"--{name.replace('_', '-')} is for runs, and {first} is a file of texts; leave it out")
        _print_texts(Path(first), Path(others[0]), by, seed, json)
        return
    if by is not None:
        raise ConfigError(
            f"--by {by}: it is for two files of 'eval --texts', and {first} is no file; leave --by out, or give two such files"
        )
    for path, kind in ((csv, runs_table.CSV), (latex, runs_table.LATEX)):
        if path is not None:
            check_output(path, kind)
    if figure is not None:
        check_figure(figure)
    from sememekit.analysis.compare_runs import compare_runs
    from sememekit.files import write_output

    with progress_bars(quiet) as show:
        report = compare_runs(
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
    if csv is not None:
        write_output(csv, runs_table.csv_text(report).encode(), runs_table.CSV)
    if latex is not None:
        write_output(latex, runs_table.latex_text(report).encode(), runs_table.LATEX)
    if figure is not None:
        write_figure(runs_table.curves(report), figure)
    if json:
        print_json(report)
    else:
        _print_runs(report)
    for text in report.remarks:
        remark(text, quiet)


def _print_runs(report: RunsComparison) -> None:
    from sememekit.reports.runs_table import columns, rows

    for number, side in enumerate(report.sides, start=1):
        say(f"{number}: {side.name}" if len(side.runs) == 1 else f"{number}: {side.name} ({len(side.runs)} seeds)")
    print_table("", columns(report), rows(report), numeric=2)
    drawn = f"{report.resamples:,} draws of {report.units:,} {report.unit}"
    if report.figure == "accuracy":
        drawn += ", of two single runs Newcombe's"
    say(f"changes are from 1; intervals: 95 %, {drawn}")
    say("over seeds: Student's distribution; over both: the two together, as independent errors")
    if report.time != "CPU":
        say("training time is wall time: a run of an earlier version kept no CPU time")
    say(f"signature: {report.signature}")


def _print_texts(first: Path, second: Path, by: str, seed: int, json: bool) -> None:
    report = compare(first, second, by, seed=seed)
    if json:
        print_json(report)
        return
    rows = [
        (row.name, *in_per_cent((row.first, row.second, *row.difference.model_dump().values()))) for row in report.differences
    ]
    columns = ("", "first", "second", "difference", "from", "to")
    print_table(f"{first} minus {second}, {report.examples:,} texts, in per cent", columns, rows)
    say(report.signature)


def compare(first: Path, second: Path, by: str, *, seed: int = 0) -> ComparisonReport:
    """Differences between two files of ``eval --texts`` or ``baseline --texts``, of the same data, resampled in pairs.

    Raises:
        ConfigError: ``by`` is neither a name of :data:`sememekit.measure.rouge.PRESETS` nor ``bleu``.
        DataError: a file that cannot be read, or files of other sources or references, with the line.
    """
    from sememekit.analysis.written_texts import ComparisonReport, check_same_sources, difference_table, read_texts_file
    from sememekit.measure.rouge import PRESETS

    allowed = [*PRESETS, "bleu"]
    if by not in allowed:
        raise ConfigError(f"--by {by!r}{nearest(by, allowed)}: allowed are {', '.join(allowed)}")
    one, two = read_texts_file(first), read_texts_file(second)
    check_same_sources(one, two, first, second)
    signature, rows = difference_table(one, two, by, seed)
    return ComparisonReport(
        first=str(first), second=str(second), by=by, examples=len(one.texts), signature=signature, differences=rows
    )
