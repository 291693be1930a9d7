"""The subcommand score; the plain function is ``sememekit.analysis.score.score``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememekit.commands._input import input_name, lines_of
from sememekit.commands._options import Device, Errors, Json, Run, Which, option, refuse
from sememekit.commands._printing import print_json, remark, remark_uncut, say

if TYPE_CHECKING:
    from sememekit.analysis.score import ScoredToken

EXAMPLES = ("echo 去年 美国 贸易 逆差 | sememekit score runs/sdlm", "sememekit score runs/sdlm words.txt --json")

COLUMNS = ("sentence", "position", "token", "nats", "read_as")


def command(
    run: Run,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="Segmented sentences, one a line; for headline, dialogue: source TAB target. Stdin unless given.",
        ),
    ] = None,
    carry: Annotated[bool, option("--carry", "Read the lines as one text, as evaluate-ppl does.")] = False,
    segment: Annotated[bool, option("--segment", "Segment the lines with the segmenter of the run's data.")] = False,
    lexicon: Annotated[
        str | None,
        option("--lexicon", "Words that this segmenter knows, for a run without lexicon.txt.", metavar="FORMAT:PATH"),
    ] = None,
    which: Which = "best",
    errors: Errors = "strict",
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Loss (surprisal, nats) of every word, TAB between; the first line names the columns, read_as is the word as read.

    Nats are empty where there is nothing to predict the word from. A model of headlines or dialogue scores the words of the
    target and its end, given the source.
    """
    from sememekit.analysis.score import ScoreReport, score
    from sememekit.runs.run import Run as LoadedRun

    if not segment:
        refuse({"lexicon": lexicon}, "only together with --segment; add it, or leave this out")
    lines, line = lines_of(file, errors), f"{input_name(file)}, line"
    loaded = LoadedRun.open(run, which=which, device=device)
    options: dict[str, Any] = {"carry": carry, "segment": segment, "lexicon": lexicon, "which": which, "device": device}
    rows = score(loaded, lines, **options, name=line, remark=partial(remark, quiet=False))
    if not segment:
        rows = _remarking_uncut(rows)
    first = next(rows, None)  # the first lines are read before anything is written
    if first is None:
        remark(f"no words in {input_name(file)}, so nothing is scored", quiet=False)
    rows = rows if first is None else chain([first], rows)
    if json:
        print_json(ScoreReport(tokens=tuple(rows), run=str(run), checkpoint=loaded.snapshot))
        return
    say(*COLUMNS, sep="\t")
    for row in rows:
        nats = "" if row.nats is None else f"{row.nats:.6f}"
        say(row.sentence, row.position, row.token, nats, row.read_as, sep="\t")


def _remarking_uncut(rows: Iterable[ScoredToken]) -> Iterator[ScoredToken]:
    """The same rows; the first that is Chinese without blanks, read as one unknown word, is told on stderr."""
    from sememekit.text.vocabulary import UNKNOWN

    told = False
    for row in rows:
        yield row
        if not told and row.read_as == UNKNOWN:
            told = remark_uncut((row.token,), "add --segment, or cut the lines with: sememekit segment FILE")
