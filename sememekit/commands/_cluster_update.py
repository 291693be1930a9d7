"""The subcommand cluster-update."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sememekit.commands._exit import STOPPED
from sememekit.commands._options import Debug, Device, Dtype, EvaluationData, Json, Quiet, Run, Split, TrustCode, Which
from sememekit.commands._render import hint, print_fields, print_json, print_table, progress_bars, remark

if TYPE_CHECKING:
    from sememekit.commands.cluster_update import ClusterUpdateReport

EXAMPLES = ("sememekit cluster-update runs/words --out runs/words-2",)


def command(
    run: Run,
    epochs: Annotated[int, typer.Option("--epochs", min=0, help="Train on for so many epochs with the new clusters held.")] = 0,
    running_passes: Annotated[
        int,
        typer.Option("--running-passes", min=0, help="Read the text so often by the running mean; 0 takes the exact mean."),
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="A new run folder for the result; without it RUN is changed.", show_default=False),
    ] = None,
    split: Split = "valid",
    data: EvaluationData = None,
    which: Which = "best",
    device: Device = "auto",
    dtype: Dtype = None,
    json: Json = False,
    quiet: Quiet = False,
    trust_code: TrustCode = False,
    debug: Debug = False,
) -> None:
    """Assign the words of a trained model to its clusters anew from its training text (E-step), and train it on (M-step).

    Without --epochs no weight changes, and the perplexity gets worse: the vectors have not followed. Without --out the
    checkpoint is replaced, whole or not at all. train --resume goes on from either, and with an M-step that was stopped.
    """
    from sememekit.commands.cluster_update import cluster_update
    from sememekit.training import Report, StepReport

    with progress_bars(quiet) as show:

        def on_report(report: Report) -> None:
            if isinstance(report, StepReport):
                show(f"epoch {report.epoch}", report.batch, report.num_batches)

        result = cluster_update(
            run,
            epochs=epochs,
            running_passes=running_passes,
            out=out,
            split=split,
            data=data,
            device=device,
            dtype=dtype,
            which=which,
            progress=show,
            on_report=on_report,
        )
    if json:
        print_json(result)
    else:
        _print_update(run, result)
    if result.homeless_words:
        remark(
            f"{result.homeless_words} words found every cluster closed and went to the least loaded one; a larger "
            "decoder.gamma or decoder.frequency_budget would make room",
            quiet,
        )
    if result.stopped:
        remark(f"stopped by a signal; go on with: sememekit train --out {result.written} --resume", quiet=False)
        raise typer.Exit(STOPPED)
    if not epochs:
        hint(
            f"next: sememekit train --out {result.written} --resume --set schedule.epochs=N, so that the vectors follow", quiet
        )


def _print_update(run: Path, result: ClusterUpdateReport) -> None:
    steps = [("before", result.before), ("new clusters", result.after), ("trained on", result.trained)]
    columns = [(name, values) for name, values in steps if values is not None]
    rows = [
        (name.replace("_", " "), *(getattr(values, name) for _, values in columns))
        for name in ("perplexity", "cluster_perplexity", "in_cluster_perplexity")
    ]
    print_table(f"Clusters of {run}, on {result.split}", ("", *(name for name, _ in columns)), rows)
    moved = {"words moved": f"{result.moved_words:.2%}", "text that they are": f"{result.moved_frequency:.2%}"}
    objective = {"objective, bits (Eq. 7)": f"{result.objective_before:.4f} -> {result.objective_after:.4f}"}
    shown = {"statistics": result.statistics, "tokens_read": result.tokens_read}
    written = {"written": f"{result.written} ({result.new_checkpoint})"}
    counts = {name: getattr(result, name) for name in ("num_clusters", "empty_clusters", "largest_cluster")}
    trained = {"epochs trained": result.epochs_trained, "best epoch": result.best_epoch, "finished": result.finished}
    print_fields("", {**objective, **moved, **shown, **counts, **(trained if result.trained else {}), **written})
