"""The subcommand clusters; the plain function is ``sememekit.analysis.clusters.clusters``."""

from pathlib import Path
from typing import Annotated

from sememekit.commands._options import Html, Json, Quiet, Run, Which, option
from sememekit.commands._printing import check_outputs, print_json, print_parts, remark
from sememekit.figures import percent

EXAMPLES = ('sememekit clusters runs/words --words "be iraq actor" --save words.json',)


def command(
    run: Run,
    words: Annotated[str | None, option("--words", "Show the clusters of these words, separated by spaces.")] = None,
    top: Annotated[int, option("--top", "Without --words: number of clusters, largest share of text first.", min=1)] = 10,
    members: Annotated[int, option("--members", "Words to show of each cluster.", min=1)] = 15,
    save: Annotated[Path | None, option("--save", "Write all clusters to a file, for train --clusters.")] = None,
    html: Html = None,
    which: Which = "best",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the word clusters of a model."""
    check_outputs(html)
    from sememekit.analysis.clusters import clusters
    from sememekit.reports.pages import render, write_page
    from sememekit.reports.table import Table

    result = clusters(run, words=(words or "").split(), top=top, members=members, save=save, which=which)
    columns = ["cluster", "of the text", "words", *(["asked for"] if words else []), "most frequent"]
    rows = []
    for found in result.clusters:
        asked = [" ".join(found.asked_for)] if words else []
        rows.append((found.number, percent(found.frequency, 2), found.size, *asked, " ".join(found.words)))
    title = f"{result.num_clusters:,} clusters of {result.num_words:,} words: {result.smallest} to {result.largest} words"
    title += f", {result.empty_clusters} empty" if result.empty_clusters else ""
    print_json(result) if json else print_parts([Table(columns, rows, title, numbers=())])
    if html is not None:
        page = Table(columns, rows, numbers=())
        write_page(html, render("parts", title=f"Word clusters of {run.name}", lead=f"{title}.", charts=[], parts=[page]))
    if result.saved:
        remark(f"clusters: {result.saved}", quiet)
