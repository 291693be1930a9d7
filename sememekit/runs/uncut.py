"""Handling of unsegmented Chinese, which a model reads as one unknown word: cut, refused, or a warning if it is rare."""

from collections.abc import Iterable, Sequence
from typing import Final

from sememekit.attack import long_run
from sememekit.data.segmenters import MODELS
from sememekit.errors import DataError
from sememekit.files import warn
from sememekit.runs.run import Run
from sememekit.sememes.building import BLANK
from sememekit.text.scripts import HAN
from sememekit.text.segmenters import Segmenter, WhiteSpace
from sememekit.text.vocabulary import UNKNOWN

UNCUT_SHARE: Final = 0.2  # least share of texts with unsegmented Chinese at which a command segments or stops
CUT_FIRST: Final = "cut it first: sememekit segment"  # advice if no segmenter is at hand
_SENTENCE: Final = 4  # least characters of a text of one unknown word that counts as unsegmented Chinese


def cuts(run: Run) -> bool:
    """Return whether a segmenter cut the data of a run; otherwise its words had blanks between them."""
    return run.signature.segmenter != WhiteSpace.description


def how_to_cut(run: Run, *, apart: bool) -> str:
    """Return advice for text that should have been segmented."""
    return "leave out --apart" if apart and cuts(run) else CUT_FIRST


def uncut(run: Run, words: Sequence[str]) -> str:
    """Return the unsegmented Chinese in a text: unknown words that are too long for a word, or the whole text."""
    form, known = run.form(), run.vocabulary
    unknown = tuple(word for word in words if form.word(word) not in known)
    least = 2 if cuts(run) else _SENTENCE
    whole = unknown[0] if len(words) == len(unknown) == 1 and len(HAN.findall(unknown[0])) >= least else ""
    return long_run(unknown) or whole


def segmenter_of_raw(run: Run, texts: Sequence[Sequence[str]], where: str, *, may_cut: bool = True) -> Segmenter | None:
    """Return the segmenter of a run if the texts need it: they are largely unsegmented Chinese, or not yet cut into the pieces
    of the run; otherwise None. Raises DataError: blanks cut the data of the run, or not ``may_cut``."""
    in_pieces = run.signature.options.get("segmenter") in MODELS
    if may_cut and in_pieces and not any(word in run.vocabulary and BLANK in word for words in texts for word in words):
        return run.segmenter()
    found = [uncut(run, words) for words in texts]
    if not (may_cut and cuts(run)):
        refuse_uncut(found, where, CUT_FIRST)
    raw = sum(map(bool, found))
    return run.segmenter() if raw and raw >= UNCUT_SHARE * len(found) else None


def refuse_unknown(run: Run, words: Iterable[str], where: str, *, apart: bool = False) -> None:
    """Raise DataError if a run knows no word of its texts, so that its answer would be about ``<unk>`` alone."""
    read = list(words)
    if read and run.vocabulary.unknown_id is not None and not any(word in run.vocabulary for word in read):
        refuse_uncut([uncut(run, read)], where, how_to_cut(run, apart=apart))
        raise DataError(
            f"{where}: the model knows none of the words, such as {' '.join(read[:5])[:40]!r}; give text of the language of "
            f"its data, cut into words by: sememekit segment; its words are in {run.folder.file('vocabulary.tsv')}"
        )


def refuse_uncut(found: Sequence[str], where: str, advice: str) -> None:
    """Raise DataError if ``UNCUT_SHARE`` of the texts hold Chinese without blanks; ``found`` has the ``uncut`` of each."""
    raw = list(filter(None, found))
    if raw and len(raw) >= UNCUT_SHARE * len(found):
        of = f"{len(raw):,} of the first {len(found):,} texts hold " if len(found) > 1 else ""
        raise DataError(
            f"{where}: {of}Chinese without blanks, such as {raw[0][:12]!r}, which would be read as one {UNKNOWN}; {advice}"
        )


def warn_uncut(unknown: Sequence[str], advice: str) -> bool:
    """Warn about unsegmented Chinese among unknown words; return whether there is any."""
    found = long_run(tuple(unknown))
    if found:
        warn(f"Chinese without blanks was read as one {UNKNOWN}, such as {found[:12]!r}; {advice}")
    return bool(found)
