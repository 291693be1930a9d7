"""``sememekit segment``: text in, words between blanks out."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

from sememekit.commands import _options as shared
from sememekit.commands._input import input_name, input_stream
from sememekit.commands._options import WhichName, argument, given, option
from sememekit.commands._printing import hint, remark_faults, say
from sememekit.errors import ConfigError, DataError

if TYPE_CHECKING:
    from sememekit.text.reading import FaultCounter
    from sememekit.text.segmenters import Segmenter as SegmenterClass

EXAMPLES = (
    "echo 去年美国贸易逆差 | sememekit segment",
    "echo 去年美国贸易逆差 | sememekit segment --model quickstart/lattice",
)


def command(
    file: Annotated[Path | None, argument("[FILE]", "One text per line. Default: stdin.")] = None,
    segmenter: Annotated[str | None, shared.segmenter_option("fmm")] = None,
    lexicon: shared.SegmenterLexicons = None,
    hmm: shared.Hmm = False,
    model: Annotated[Path | None, option("--model", "Lattice run or SentencePiece model.", metavar="RUN|FILE")] = None,
    decode: shared.Decode = None,
    which: Annotated[WhichName | None, option("--which", "Checkpoint: the best by validation, or the last.")] = None,
    device: shared.DeviceIfGiven = None,
    errors: shared.Errors = "strict",
    quiet: shared.Quiet = False,
) -> None:
    """Cut lines into words and write them to stdout, a space between words.

    With --model RUN a trained lattice model cuts, and white space in a line ends a word."""
    from sememekit.text.reading import FaultCounter

    name = input_name(file)
    hint("reading from the terminal; Ctrl-D ends", quiet=quiet or name != "stdin" or not sys.stdin.isatty())
    faults = FaultCounter(errors)
    if model is not None and not model.exists():
        raise DataError(
            f"segment --model {model}: no such file or folder; give the run of a lattice model, or a SentencePiece model"
        )
    with input_stream(file) as source:
        if model is not None and model.is_dir():
            from sememekit.runs.lattices import open_reader, segment_raw
            from sememekit.runs.run import Run as LoadedRun

            if segmenter is not None or lexicon or hmm:
                told = "leave --segmenter, --lexicon and --hmm out"
                raise ConfigError(f"segment --model RUN: the run has its own way to cut text; {told}")
            reader = open_reader(LoadedRun.open(model, which=which, device=device), "segment --model")
            lines = segment_raw(reader, source, name=name, faults=faults, **given(decoding=decode))
        else:
            if decode is not None or which is not None or device is not None:
                raise ConfigError("segment: --decode, --which and --device need --model RUN with the folder of a lattice model")
            from sememekit.data.segmenters import segmenter_for

            usual = "fmm" if model is None else "sentencepiece"
            chosen = segmenter_for(segmenter or usual, lexicon=lexicon, hmm=hmm, model=model)
            lines = segment_stream(source, chosen, faults, name)
        words = False
        for line in lines:
            say(line, end="")
            words = words or not line.isspace()
    if not words:
        raise DataError(f"no words in {name}, so nothing is segmented; give a text a line: echo TEXT | sememekit segment")
    remark_faults(faults.report().model_dump(), quiet)


def segment_stream(file: BinaryIO, segmenter: "SegmenterClass", faults: "FaultCounter", name: str = "stdin") -> Iterator[str]:
    """Segment a stream line by line; yielded texts contain their line ends.

    Each line that ``faults`` does not drop gives one line. A line above 1 MiB is segmented in pieces, cut at white space or
    sentence marks. Raises DataError, with the byte offset: bytes that are not UTF-8, or NUL, if ``faults`` is strict."""
    from sememekit.text.reading import read_named

    for piece in read_named(file, name, faults):
        yield " ".join(segmenter.segment(piece.text)) + ("\n" if piece.ends_line else " ")
