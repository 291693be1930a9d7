"""Chinese without blanks: cut, or where nothing cuts it refused or remarked on, as a model reads it as one unknown word."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Final

from sememekit.attack import long_run
from sememekit.errors import DataError
from sememekit.files import RunWarning
from sememekit.runs.run import Run
from sememekit.text.maximum_matching import MaximumMatcher
from sememekit.text.scripts import HAN
from sememekit.text.segmenters import Segmenter, WhiteSpace
from sememekit.text.vocabulary import UNKNOWN

UNCUT_SHARE: Final = 0.2
"""Share of texts with Chinese too long for one word from which a command stops: it would answer about other texts."""
CUT_FIRST: Final = "cut it first: sememekit segment"
"""What to do where nothing here cuts."""
BLANKS: Final = "blanks"
"""How a line with blanks is cut."""


def cut_by_blanks(run: Run) -> bool:
    """Whether blanks cut the data of the run."""
    return run.signature.options.get("segmenter") == "none"


def is_raw(run: Run, words: Sequence[str]) -> bool:
    """Whether a line that blanks cut into ``words`` is Chinese without blanks."""
    return len(words) == 1 and words[0] not in run.vocabulary and len(words[0]) > 1 and bool(HAN.search(words[0]))


def cut_line(run: Run, line: str, *, remedy: str = "") -> tuple[list[str], str]:
    """The words of a line, and how they were cut: by its blanks; of Chinese without any as the data of the run were, numbers
    kept whole where these have classes for them, or by longest match over the words of the run where blanks cut the data.

    Raises DataError: as ``Run.segmenter``, whose ``remedy`` is what else the command offers."""
    words = line.split()
    if not is_raw(run, words):
        return words, BLANKS
    segmenter: Segmenter
    if cut_by_blanks(run):
        segmenter = MaximumMatcher(run.vocabulary.tokens)
        how = "longest match over the words of the model, as the context has no blanks"
    else:
        segmenter, how = run.segmenter(remedy=remedy), "the segmenter of the training data"
    return run.form().cut(words[0], segmenter), how


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
