"""Subcommands about a trained run itself: cluster-update, clusters, report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from sememekit.cli.options import Debug, Device, Dtype, EvaluationData, Json, Quiet, Run, Split, example, given
from sememekit.cli.render import hint, print_fields, print_json, print_table, progress_bars, remark

Which = Annotated[Literal["best", "last"] | None, typer.Option("--which", help="The best weights by validation, or the last.")]


def register(app: typer.Typer) -> None:
    """Add these subcommands to the program."""
    app.command("cluster-update", epilog=example("sememekit cluster-update runs/words --out runs/words-2"))(cluster_update)
    app.command(epilog=example('sememekit clusters runs/words --words "be iraq actor" --save words.json'))(clusters)
    app.command(epilog=example("sememekit report runs/words --html words.html"))(report)


def cluster_update(
    run: Run,
    passes: Annotated[int | None, typer.Option("--passes", min=1, help="How often the training text is read first.")] = None,
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
    debug: Debug = False,
) -> None:
    """Assign the words of a trained model to its clusters anew, from its training text (an E-step).

    No weight changes. Without --out the checkpoint is replaced, whole or not at all; train --resume goes on from it.
    """
    from sememekit.commands.cluster_update import cluster_update as command

    options = given(passes=passes, out=out, split=split, data=data, which=which, device=device, dtype=dtype)
    with progress_bars(quiet) as show:
        result = command(run, progress=show, **options)
    if json:
        print_json(result)
        return
    rows = [
        (name.replace("_", " "), getattr(result.before, name), getattr(result.after, name))
        for name in ("perplexity", "cluster_perplexity", "in_cluster_perplexity")
    ]
    print_table(f"Clusters of {run}, on {result.split}", ("", "before", "after"), rows)
    moved = {"words moved": f"{result.moved_words:.2%}", "text that they are": f"{result.moved_frequency:.2%}"}
    shown = {"written": f"{result.written} ({result.new_checkpoint})", "tokens_read": result.tokens_read}
    counts = {name: getattr(result, name) for name in ("num_clusters", "empty_clusters", "largest_cluster")}
    print_fields("", {**moved, **shown, **counts})
    if result.homeless_words:
        remark(
            f"{result.homeless_words} words found every cluster closed and went to the least loaded one; a larger "
            "decoder.gamma or decoder.frequency_budget would make room",
            quiet,
        )
    hint(f"next: sememekit train --out {result.written} --resume --set schedule.epochs=N, so that the weights follow", quiet)


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
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a page about a run: learning curves, the life of its clusters, every setting."""
    from sememekit.commands.report import report as command

    result = command(run, **given(html=html))
    if json:
        print_json(result)
    elif not quiet:
        print_fields(f"Report of {run}", result, skip=("run",))
