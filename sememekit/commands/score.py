"""The subcommand score; the plain function is ``sememekit.analysis.score.score``."""

from pathlib import Path
from typing import Annotated

from sememekit.commands._input import input_name, lines_of, some
from sememekit.commands._options import Device, Errors, Json, Overlay, Run, Which, argument, option
from sememekit.commands._printing import print_json, remark, say

EXAMPLES = (
    "echo 去年 美国 贸易 逆差 | sememekit score quickstart/sdlm",
    "sememekit score quickstart/sdlm quickstart/text/gold.txt --json",
    "sememekit score quickstart/sdlm quickstart/text/gold.txt --overlay overlay.txt",
)

COLUMNS = ("sentence", "position", "token", "nats", "read_as")


def command(
    run: Run,
    file: Annotated[Path | None, argument("[FILE]", "Sentence, or source TAB target, a line. Default: stdin.")] = None,
    carry: Annotated[bool, option("--carry", "Read the lines as one text, as evaluate-ppl does.")] = False,
    segment: Annotated[bool, option("--segment", "Segment the lines with the segmenter of the run's data.")] = False,
    overlay: Overlay = None,
    which: Which = "best",
    errors: Errors = "strict",
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Loss (surprisal, nats) of every word, TAB between; the first line names the columns, read_as is the word as read.

    A word without context has no loss. Headline and dialogue models score the words of the target and its end, given the
    source. With --overlay a last column has the loss with changed annotation; stderr has the sums of both."""
    from sememekit.analysis.score import OverlaidScoreReport, OverlaidToken, OverlaySums, ScoreReport, score
    from sememekit.runs.run import Run as LoadedRun

    lines, line = lines_of(file, errors), f"{input_name(file)}, line"
    loaded = LoadedRun.open(run, which=which, device=device)
    sums = OverlaySums()
    rows = sums.passing(score(loaded, lines, carry=carry, segment=segment or None, name=line, overlay=overlay))
    nothing = f"no words in {input_name(file)}, so nothing is scored; give a sentence a line, words between blanks"
    rows = some(rows, nothing)
    if json:
        read = {"tokens": tuple(rows), **loaded.of_run}
        print_json(ScoreReport(**read) if overlay is None else OverlaidScoreReport(**read, overlay=str(overlay)))
    else:
        say(*COLUMNS, *([] if overlay is None else ["nats_overlay"]), sep="\t")
        for row in rows:
            more = [_nats(row.nats_overlay)] if isinstance(row, OverlaidToken) else []
            say(row.sentence, row.position, row.token, _nats(row.nats), row.read_as, *more, sep="\t")
    if overlay is not None:
        remark(sums.sentence(overlay), quiet=False)


def _nats(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"
