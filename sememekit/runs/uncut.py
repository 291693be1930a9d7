"""Chinese without blanks that a model reads as one unknown word: refused where it is most of a text, else remarked on."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Final

from sememekit.attack import long_run
from sememekit.errors import DataError
from sememekit.files import RunWarning
from sememekit.runs.run import Run
from sememekit.text.segmenters import WhiteSpace
from sememekit.text.vocabulary import UNKNOWN

UNCUT_SHARE: Final = 0.2
"""Share of texts with Chinese too long for one word from which a command stops: it would answer about other texts."""
CUT_FIRST: Final = "cut it first: sememekit segment"
"""What to do where nothing here cuts."""


def how_to_cut(run: Run, *, apart: bool) -> str:
    """What to do about text that should have been cut and was not."""
    cuts = run.signature.segmenter != WhiteSpace.description
    return "leave out --apart" if apart and cuts else CUT_FIRST


def refuse_uncut(texts: Iterable[Sequence[str]], where: str, advice: str) -> None:
    """Raise DataError where in ``UNCUT_SHARE`` of the texts a model would read Chinese without blanks as one word.

    Args:
        texts: of each text the words that the model does not know.
        where: the texts lie.
    """
    found = [long_run(tuple(unknown)) for unknown in texts]
    uncut = [run for run in found if run]
    if uncut and len(uncut) >= UNCUT_SHARE * len(found):
        raise DataError(
            f"{where}: {len(uncut):,} of the first {len(found):,} texts hold Chinese without blanks, such as "
            f"{uncut[0][:12]!r}, which "
            f"would be read as one {UNKNOWN}; {advice}"
        )


def warn_uncut(unknown: Sequence[str], advice: str) -> bool:
    """A RunWarning of Chinese without blanks among words that a model read as unknown; whether there is any."""
    uncut = long_run(tuple(unknown))
    if uncut:
        told = f"Chinese without blanks was read as one {UNKNOWN}, such as {uncut[:12]!r}"
        warnings.warn(f"{told}; {advice}", RunWarning, stacklevel=3)
    return bool(uncut)
