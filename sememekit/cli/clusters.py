"""Subcommands about a trained run itself: cluster-update, clusters, report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sememekit.cli.options import (
    Debug,
    Device,
    Dtype,
    EvaluationData,
    Figure,
    Json,
    Quiet,
    Run,
    Split,
    TrustCode,
    example,
    given,
)
from sememekit.cli.program import STOPPED
from sememekit.cli.render import hint, print_fields, print_json, print_table, progress_bars, remark

if TYPE_CHECKING:
    from sememekit.commands.cluster_update import ClusterUpdateReport

Which = Annotated[Literal["best", "last"] | None, typer.Option("--which", help="The best weights by validation, or the last.")]


def register(app: typer.Typer) -> None:
    """Add these subcommands to the program."""
    app.command("cluster-update", epilog=example("sememekit cluster-update runs/words --out runs/words-2"))(cluster_update)
    app.command(epilog=example('sememekit clusters runs/words --words "be iraq actor" --save words.json'))(clusters)
    app.command(epilog=example("sememekit report runs/words --html words.html"))(report)


def cluster_update(
    run: Run,
    epochs: Annotated[
        int | None, typer.Option("--epochs", min=0, help="Train on for so many epochs with the new clusters held; 0.")
    ] = None,
    running_passes: Annotated[
        int | None,
        typer.Option(
            "--running-passes", min=1, help="Read the text so often by the running mean; the exact mean unless given."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="A new run folder for the result; without it RUN is changed.", show_default=False),
    ] = None,
    split: Split = None,
    data: EvaluationData = None,
    which: Which = None,
    device: Device = None,
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
    from sememekit.commands.cluster_update import cluster_update as command
    from sememekit.training import Report, StepReport

    options = given(epochs=epochs, running_passes=running_passes, out=out, split=split, data=data, which=which)
    with progress_bars(quiet) as show:

        def on_report(report: Report) -> None:
            if isinstance(report, StepReport):
                show(f"epoch {report.epoch}", report.batch, report.num_batches)

        result = command(run, progress=show, on_report=on_report, **options, **given(device=device, dtype=dtype))
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


def clusters(
    run: Run,
    words: Annotated[str | None, typer.Option("--words", help="Show the clusters of these, a space between them.")] = None,
    top: Annotated[int | None, typer.Option("--top", min=1, help="Without --words: how many, those with most text.")] = None,
    members: Annotated[int | None, typer.Option("--members", min=1, help="How many words of each to show.")] = None,
    save: Annotated[
        Path | None, typer.Option("--save", help="Write all clusters to a file, for train --clusters.", show_default=False)
    ] = None,
    which: Which = None,
    json: Json = False,
    quiet: Quiet = False,
    trust_code: TrustCode = False,
    debug: Debug = False,
) -> None:
    """Which words a model keeps in one cluster."""
    from sememekit.commands.clusters import clusters as command

    options = given(top=top, members=members, save=save, which=which)
    result = command(run, words=(words or "").split(), **options)
    if json:
        print_json(result)
    else:
        rows = [
            (cluster.number, f"{cluster.frequency:.2%}", cluster.size, " ".join(cluster.asked_for), " ".join(cluster.words))
            for cluster in result.clusters
        ]
        title = (
            f"{result.num_clusters:,} clusters of {result.num_words:,} words: {result.smallest} to {result.largest} words"
            + (f", {result.empty_clusters} empty" if result.empty_clusters else "")
        )
        if words:
            print_table(title, ("cluster", "of the text", "words", "asked for", "commonest"), rows, numeric=5)
        else:
            print_table(
                title, ("cluster", "of the text", "words", "commonest"), [(*row[:3], row[4]) for row in rows], numeric=4
            )
    if result.saved:
        remark(f"clusters: {result.saved}", quiet)


def report(
    run: Run,
    html: Annotated[
        Path | None, typer.Option("--html", help="The page to write; report.html in RUN unless given.", show_default=False)
    ] = None,
    figure: Figure = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a page about a run: learning curves, the life of its clusters, every setting."""
    from sememekit.reports.run import report as command

    result = command(run, **given(html=html, figure=figure))
    if json:
        print_json(result)
    elif not quiet:
        print_fields(f"Report of {run}", result, skip=("run",))
    if figure is not None:
        remark(f"figure: {figure}", quiet)
