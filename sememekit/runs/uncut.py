"""Chinese without blanks that a model reads as one unknown word: the remark that Python and the command line give."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Final

from sememekit.attack import long_run
from sememekit.files import RunWarning
from sememekit.runs.run import Run
from sememekit.text.segmenters import WhiteSpace
from sememekit.text.vocabulary import UNKNOWN

CUT_FIRST: Final = "cut it first: sememekit segment"
"""What to do where nothing here cuts."""


def how_to_cut(run: Run, *, apart: bool) -> str:
    """What to do about text that should have been cut and was not."""
    cuts = run.signature.segmenter != WhiteSpace.description
    return "leave out --apart" if apart and cuts else CUT_FIRST


def warn_uncut(unknown: Sequence[str], advice: str) -> bool:
    """A RunWarning of Chinese without blanks among words that a model read as unknown; whether there is any."""
    uncut = long_run(tuple(unknown))
    if uncut:
        told = f"Chinese without blanks was read as one {UNKNOWN}, such as {uncut[:12]!r}"
        warnings.warn(f"{told}; {advice}", RunWarning, stacklevel=3)
    return bool(uncut)
