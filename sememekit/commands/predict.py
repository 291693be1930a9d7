"""The subcommand predict; the plain function is ``sememekit.analysis.predict.predict``."""

import shlex
from pathlib import Path
from typing import Annotated, Any

from sememekit.commands._input import input_name, some
from sememekit.commands._options import Device, Errors, Json, Lemmas, OpenVocabulary, Run, Side, Which, argument, fail_usage
from sememekit.commands._printing import print_json, remark, say
from sememekit.errors import DataError

EXAMPLES = ("sememekit predict runs/sst2 reviews.txt --json",)


def command(
    run: Run,
    file: Annotated[Path | None, argument("[FILE]", "Texts, pairs with TAB, or a file of preprocess. Default: stdin.")] = None,
    which: Which = "best",
    errors: Errors = "strict",
    device: Device = "auto",
    open_vocabulary: OpenVocabulary = None,
    side: Side = "chinese",
    lemmas: Lemmas = None,
    json: Json = False,
) -> None:
    """Print the label of each text and the probability of every label, TAB between; the first line names the columns.

    FILE may be .jsonl, .csv or a table, packed or not; labels in it are not read. A first line that names its columns, such as
    "text TAB label", is a header. Blank lines stay blank, so that the table can be pasted beside the file."""
    from sememekit.analysis.predict import PredictionReport, predict
    from sememekit.runs.run import Run as LoadedRun

    file = None if str(file) == "-" else file
    if not open_vocabulary and (lemmas is not None or side != "chinese"):
        fail_usage("--lemmas and --side are for --open-vocabulary FORMAT:PATH; add it, or leave them out")
    lexicons: dict[str, Any] = {"open_vocabulary": open_vocabulary or (), "side": side, "lemmas": lemmas}
    loaded = LoadedRun.open(run, which=which, device=device)
    predictions = predict(loaded, file, errors=errors, **lexicons)  # it reads no text yet
    try:
        there = file is None or file.exists()
    except OSError:  # a whole text is too long for a name
        there = False
    if not there:
        typed = shlex.join(["sememekit", "predict", str(run)])
        raise DataError(f"{file}: no such file; a text itself is read from stdin: echo {shlex.quote(str(file))} | {typed}")
    classifier = predictions.classifier
    rows = some(predictions, f"no text in {input_name(file)}, so nothing is labelled; give a text a line")
    if json:
        read = tuple(rows)  # adds words
        words = tuple(sorted(predictions.added))
        print_json(PredictionReport(**classifier.run.of_run, labels=classifier.labels, predictions=read, added=words))
        return
    say("label", *classifier.labels, sep="\t")
    written = int(predictions.header)
    for row in rows:
        say("\n" * (row.line - written - 1), end="")
        say(row.label, *(f"{value:.6f}" for value in row.probabilities.values()), sep="\t")
        written = row.line
    say("\n" * (predictions.lines - written), end="")
    if open_vocabulary:
        few = " ".join(sorted(predictions.added)[:10])
        number = f"{len(predictions.added):,} words outside the vocabulary"
        remark(f"{number} were read by their sememes{few and ': '}{few}", quiet=False)
