"""``sememekit cluster-update``: an E-step on a trained model, which reassigns its word clusters, and an M-step after it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sememekit.commands._options import Device, Dtype, EvaluationData, Json, Quiet, Run, Split, Which, option
from sememekit.commands._printing import hint, leave_stopped, print_fields, print_json, print_table, remark
from sememekit.commands._progress import progress_bars
from sememekit.figures import percent
from sememekit.files import typed

if TYPE_CHECKING:
    from sememekit.jobs.cluster_update import ClusterUpdateReport

EXAMPLES = ("sememekit cluster-update runs/words --out runs/words-2",)


def command(
    run: Run,
    which: Which = "best",
    epochs: Annotated[int, option("--epochs", "Epochs of further training with the new clusters fixed.", min=0)] = 0,
    running_passes: Annotated[
        int, option("--running-passes", "Passes over the text that update the running mean; 0 computes the exact mean.", min=0)
    ] = 0,
    out: Annotated[Path | None, option("--out", "A new run folder for the result; without it RUN is changed.")] = None,
    split: Split = "valid",
    data: EvaluationData = None,
    device: Device = "auto",
    dtype: Dtype = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Reassign the words of a trained model to clusters by its training text (E-step), and continue training (M-step).

    Without --epochs no weight changes, and the perplexity usually gets worse, because the vectors have not adapted. Without
    --out the checkpoint is replaced atomically. train --resume continues either run, also after an interrupted M-step."""
    from sememekit.jobs.cluster_update import cluster_update
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
    print_json(result) if json else _print_update(run, result)
    if result.orphaned_words:
        remark(
            f"{result.orphaned_words} words were put into the least loaded cluster, since every cluster was full; to "
            "make room, raise decoder.gamma or decoder.frequency_budget",
            quiet,
        )
    if result.objective_fell:
        numbers = f"from {result.objective_before:.4f} to {result.objective_after:.4f} bits"
        kept = f"{run} has them now: train it on and compare with the perplexity before; --out NEW_RUN keeps the old ones"
        if out is not None:
            kept = f"{run} is as it was: go on with it, or compare both after training {out} on"
        exact = "; without --running-passes the mean is exact" if result.statistics == "running" else ""
        worse = f"the new clusters are worse by Eq. (7) on the training text, which fell {numbers}"
        remark(f"warning: {worse}; {kept}{exact}", quiet)
    again = typed("sememekit", "train", "--out", result.written, "--resume")
    if result.stopped:
        leave_stopped(f"go on with: {again}")
    if not epochs:
        hint(f"next: {again} --set schedule.epochs=N, to train on", quiet)


def _print_update(run: Path, result: "ClusterUpdateReport") -> None:
    steps = [("before", result.before), ("new clusters", result.after), ("trained on", result.trained)]
    columns = [(name, values) for name, values in steps if values is not None]
    figures = ("perplexity", "cluster_perplexity", "in_cluster_perplexity")
    rows = [(name.replace("_", " "), *(getattr(values, name) for _, values in columns)) for name in figures]
    print_table(f"Clusters of {run}, on {result.split}", ("", *(name for name, _ in columns)), rows)
    moved = {"words moved": percent(result.moved_words, 2), "text that they are": percent(result.moved_frequency, 2)}
    objective = {"objective, bits (Eq. 7)": f"{result.objective_before:.4f} -> {result.objective_after:.4f}"}
    trained = ("epochs_trained", "best_epoch", "finished") if result.trained else ()
    names = ("statistics", "tokens_read", "num_clusters", "empty_clusters", "largest_cluster", *trained)
    written = {"written": f"{result.written} ({result.new_checkpoint})"}
    print_fields("", objective | moved | {name: getattr(result, name) for name in names} | written)
