"""The subcommand clusters; the plain function is ``sememekit.analysis.clusters.clusters``."""

from pathlib import Path
from typing import Annotated

from sememekit.commands._options import Json, Quiet, Run, Which, option
from sememekit.commands._printing import print_json, print_table, remark
from sememekit.figures import percent

EXAMPLES = ('sememekit clusters runs/words --words "be iraq actor" --save words.json',)


def command(
    run: Run,
    words: Annotated[str | None, option("--words", "Show the clusters of these words, separated by spaces.")] = None,
    top: Annotated[int, option("--top", "Without --words: how many clusters, those with most of the text.", min=1)] = 10,
    members: Annotated[int, option("--members", "How many words of each to show.", min=1)] = 15,
    save: Annotated[Path | None, option("--save", "Write all clusters to a file, for train --clusters.")] = None,
    which: Which = "best",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the word clusters of a model."""
    from sememekit.analysis.clusters import clusters

    result = clusters(run, words=(words or "").split(), top=top, members=members, save=save, which=which)
    if json:
        print_json(result)
    else:
        columns = ["cluster", "of the text", "words", *(["asked for"] if words else []), "commonest"]
        rows = []
        for found in result.clusters:
            asked = [" ".join(found.asked_for)] if words else []
            rows.append((found.number, percent(found.frequency, 2), found.size, *asked, " ".join(found.words)))
        title = (
            f"{result.num_clusters:,} clusters of {result.num_words:,} words: {result.smallest} to {result.largest} words"
            + (f", {result.empty_clusters} empty" if result.empty_clusters else "")
        )
        print_table(title, columns, rows, numeric=len(columns))
    if result.saved:
        remark(f"clusters: {result.saved}", quiet)
