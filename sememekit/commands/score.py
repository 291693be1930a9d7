"""The subcommand score; the plain function is ``sememekit.analysis.score.score``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from sememekit.commands._kinds import refuse
from sememekit.commands._lines import input_name, lines_of
from sememekit.commands._options import Device, Errors, Run, Which, option
from sememekit.commands._render import remark, remark_uncut, say

EXAMPLES = ("echo 去年 美国 贸易 逆差 | sememekit score runs/sdlm",)


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
) -> None:
    """Loss (surprisal, nats) of every word: lines of sentence, position, word, nats, word as read; separated by TAB.

    Nats are empty where there is nothing to predict the word from. A model of headlines or dialogue scores the words of the
    target and its end, given the source.
    """
    from sememekit.analysis.score import score
    from sememekit.text.vocabulary import UNKNOWN

    if not segment:
        refuse({"lexicon": lexicon}, "only together with --segment; add it, or leave this out")
    lines, warned = lines_of(file, errors), segment
    line = f"{input_name(file)}, line"
    options: dict[str, Any] = {"carry": carry, "segment": segment, "lexicon": lexicon, "which": which, "device": device}
    for row in score(run, lines, **options, name=line, remark=partial(remark, quiet=False)):
        nats = "" if row.nats is None else f"{row.nats:.6f}"
        say(row.sentence, row.position, row.token, nats, row.read_as, sep="\t")
        if not warned and row.read_as == UNKNOWN:
            warned = remark_uncut((row.token,), "add --segment, or cut the lines with: sememekit segment FILE")
