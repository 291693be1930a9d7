"""The subcommand predict; the plain function is ``sememekit.analysis.predict.predict``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from sememekit.commands._lines import lines_of
from sememekit.commands._options import Debug, Device, Errors, Json, Run, TrustCode, Which
from sememekit.commands._render import print_json, say

EXAMPLES = ("sememekit predict runs/sst2 reviews.txt --json",)


def command(
    run: Run,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A text a line, or a pair with TAB between; stdin unless given.")
    ] = None,
    which: Which = "best",
    errors: Errors = "strict",
    device: Device = "auto",
    json: Json = False,
    trust_code: TrustCode = False,
    debug: Debug = False,
) -> None:
    """The label of each line and the probability of every label, TAB between; a header names the columns.

    A blank line of the input is a blank line of the output, so that line N of the file is line N + 1 of the table.
    """
    from sememekit.analysis.predict import PredictionReport, predict

    read = 0

    def counted() -> Iterator[str]:
        nonlocal read
        for line in lines_of(file, errors):
            read += 1
            yield line

    classifier, predictions = predict(run, counted(), which=which, device=device)
    if json:
        checkpoint, labels = classifier.run.snapshot, classifier.labels
        print_json(PredictionReport(run=str(run), checkpoint=checkpoint, labels=labels, predictions=tuple(predictions)))
        return
    first = next(predictions, None)  # the first lines are read before anything is written
    say("label", *classifier.labels, sep="\t")
    written = 0
    for row in predictions if first is None else chain([first], predictions):
        say("\n" * (row.line - written - 1), end="")
        say(row.label, *(f"{value:.6f}" for value in row.probabilities.values()), sep="\t")
        written = row.line
    say("\n" * (read - written), end="")
