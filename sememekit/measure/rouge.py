"""ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004) of written texts against references, with a signature and bootstrap intervals.

The package rouge-score does the counting. This module defines the rest: the unit, the length limit, several references, and
that marks such as ``<unk>`` match nothing."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any, Final, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sememekit.config import Settings
from sememekit.errors import ConfigError, DataError
from sememekit.measure.intervals import RESAMPLES, Interval, ratio_interval
from sememekit.text.form import MARK

NEVER_WORD: Final = "zqunknownqz"
"""The word that replaces a mark such as ``<unk>`` in a scored text; no reference has this word."""


def spread_of(references: Sequence[Sequence[str]]) -> str:
    """Return the number of references, or its range: "4", "1-3"."""
    counts = sorted({len(own) for own in references})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]}-{counts[-1]}"


def digest_of(references: Sequence[Sequence[str]]) -> str:
    """Return the start of the SHA-256 of all original references, in order.

    It does not depend on vocabulary, segmenter or sources."""
    digest = hashlib.sha256()
    for own in references:
        digest.update(json.dumps([*own]).encode() + b"\n")
    return digest.hexdigest()[:12]


METRICS: Final = ("rouge1", "rouge2", "rougeL")

_NEVER_CHARACTER: Final = "\ue000"


class RougeSettings(Settings):
    """Settings of ROUGE."""

    unit: Literal["word", "character"] = "word"
    """"word" or "character"; every character that is not white space is one."""
    tokenizer: Literal["rouge-score", "jieba", "white space"] = "rouge-score"
    """The tokenizer of words, on both sides: "rouge-score" (lower case; anything but ASCII letters and digits separates words),
    "jieba" (its own dictionary, no guessing) or "white space". Without effect for characters."""
    stemming: bool = False
    """Porter's stems of English words of more than three letters."""
    byte_cap: int | None = Field(default=None, ge=1)
    """Number of UTF-8 bytes of a written text that count; None for all. References are never cut."""
    statistic: Literal["f1", "recall"] = "f1"
    references: Literal["best", "summed", "mean"] = "best"
    """Several references of a text: "best" takes the one with the highest score, "summed" adds up matches and sizes before
    dividing, as ROUGE-1.5.5 does by default, "mean" takes the mean of the scores."""


PRESETS: Final[Mapping[str, RougeSettings]] = {
    "gigaword": RougeSettings(stemming=True),
    "duc": RougeSettings(stemming=True, byte_cap=75, statistic="recall", references="summed"),
    "lcsts-characters": RougeSettings(unit="character"),
    "lcsts-words": RougeSettings(tokenizer="jieba"),
}
"""Settings by name: F1 of full texts for Gigaword, recall at 75 bytes against four references for DUC-2004 (both with stems, as
in the scripts of Rush et al. 2015), F1 by characters and by words for LCSTS."""

PRESETS_OF_DATASETS: Final[Mapping[str, tuple[str, ...]]] = {
    "gigaword": ("gigaword",),
    "duc": ("duc",),
    "lcsts": ("lcsts-characters", "lcsts-words"),
    "peoples-daily-headlines": ("lcsts-characters", "lcsts-words"),
}
"""Data set -> its usual presets, the main one first."""


@dataclass(frozen=True)
class TextScores:
    """Means over n examples, 0 to 1, with 95 % bootstrap intervals, and ``per_example``: metric -> (n,).

    Scores with equal ``signature`` can be compared."""

    values: Mapping[str, Interval]
    per_example: Mapping[str, npt.NDArray[np.float64]]
    examples: int
    signature: str

    def __getitem__(self, name: str) -> float:
        return self.values[name].value or 0.0

    @classmethod
    def of(cls, names: Sequence[str], rows: npt.ArrayLike, parts: Mapping[str, object], resamples: int, seed: int) -> Self:
        """Summarise metrics by name, from the rows (n, names) of the examples and the parts of the signature."""
        table = np.asarray(rows, dtype=np.float64).reshape(-1, len(names))
        columns, ones = dict(zip(names, table.T, strict=True)), np.ones(len(table))
        values = {name: ratio_interval(column, ones, resamples=resamples, seed=seed) for name, column in columns.items()}
        return cls(values, columns, len(table), "|".join(f"{name}:{value}" for name, value in parts.items()))


def rouge(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    settings: RougeSettings | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> TextScores:
    """Score n written texts (words with blanks between, also in Chinese) against one or several references each.

    Marks as words of a hypothesis (``<unk>``, ``<t>``, ``</s>``, ``[CLS]`` and others of ``text.form.MARK``) count as words
    and match nothing, even if the reference has the mark or ``byte_cap`` cuts it. ``resamples`` and ``seed`` are of the
    bootstrap. Raises DataError: nothing to score, texts and references in different numbers, a text without a reference, or a
    tokenizer that drops most letters of the references. Raises ConfigError: settings that contradict each other."""
    settings = settings or RougeSettings()
    _check_numbers(hypotheses, references)
    if not sees(settings, (text for own in references for text in own)):
        raise DataError(
            "the tokenizer rouge-score keeps ASCII letters and digits alone, and most letters of these references are not "
            "ASCII; score them by characters (lcsts-characters), or by words of jieba (lcsts-words)"
        )
    score = _scorer(settings)
    rows = [_example(hypothesis, own, settings, score) for hypothesis, own in zip(hypotheses, references, strict=True)]
    return TextScores.of(METRICS, rows, _signature(settings, references), resamples, seed)


def sees(settings: RougeSettings, texts: Iterable[str]) -> bool:
    """Return whether a tokenizer keeps at least half of the letters of some texts. The tokenizer of rouge-score
    drops all but ASCII, so that Chinese and Russian texts would be scored by their digits."""
    if settings.unit == "character" or settings.tokenizer != "rouge-score":
        return True
    letters = kept = 0
    for text in texts:
        letters += sum(map(str.isalpha, text))
        kept += sum(letter.isascii() and letter.isalpha() for letter in text)
    return 2 * kept >= letters


def _signature(settings: RougeSettings, references: Sequence[Sequence[str]]) -> dict[str, object]:
    """Return all that must agree before two scores can be compared: scoring and references."""
    tokenizer: str = "characters" if settings.unit == "character" else settings.tokenizer
    if tokenizer == "jieba":
        tokenizer = f"jieba-{version('jieba')}"
    return {
        "metric": "rouge",
        "unit": settings.unit,
        "tok": tokenizer.replace(" ", "-"),
        "stem": "porter" if settings.stemming else "no",
        "cap": "no" if settings.byte_cap is None else f"{settings.byte_cap}b",
        "stat": settings.statistic,
        "refs": f"{spread_of(references)}/{settings.references}",
        "references": digest_of(references),
        # With a cap marks are found before it: a value of its own, since scores under a cap once were of marks found after it.
        "unk": "never" if settings.byte_cap is None else "never/before-cap",
        "package": f"rouge-score-{version('rouge-score')}",
    }


def _check_numbers(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    if len(hypotheses) != len(references):
        raise DataError(f"{len(hypotheses)} texts to score, but references for {len(references)}; each text needs its own")
    if not hypotheses:
        raise DataError("no texts to score")
    for number, own in enumerate(references, start=1):
        if isinstance(own, str) or not own:
            what = "a string where a list of references is needed" if isinstance(own, str) else "no reference"
            raise DataError(f"text {number}: {what}")


_Scores = Mapping[str, Any]


def _scorer(settings: RougeSettings) -> Callable[[str, str], tuple[_Scores, int, int]]:
    """A function of (reference, hypothesis): rouge-score's scores, and the units of the two."""
    from rouge_score.rouge_scorer import RougeScorer

    cut = _cutter(settings)
    scorer = RougeScorer(list(METRICS), tokenizer=SimpleNamespace(tokenize=cut))
    return lambda reference, hypothesis: (scorer.score(reference, hypothesis), len(cut(reference)), len(cut(hypothesis)))


def _cutter(settings: RougeSettings) -> Callable[[str], Sequence[str]]:
    if settings.stemming and (settings.unit == "character" or settings.tokenizer == "jieba"):
        raise ConfigError("stemming is for English words; leave it out for characters and for jieba")
    if settings.unit == "character":
        return cache(lambda text: tuple("".join(text.split())))
    if settings.tokenizer == "jieba":
        from sememekit.text.segmenters import open_segmenter

        segment = open_segmenter("jieba").segment
        # Words of a model stand between blanks, which are none of jieba's business.
        return cache(lambda text: tuple(segment("".join(text.split()))))
    if settings.tokenizer == "white space":
        if settings.stemming:
            raise ConfigError("stemming goes with the tokenizer 'rouge-score'")
        return cache(lambda text: tuple(text.split()))
    from rouge_score.tokenizers import DefaultTokenizer

    return cache(DefaultTokenizer(settings.stemming).tokenize)


def _example(
    hypothesis: str, references: Sequence[str], settings: RougeSettings, score: Callable[[str, str], tuple[_Scores, int, int]]
) -> list[float]:
    by_word = settings.unit == "word" and settings.tokenizer != "jieba"
    hypothesis = _known(hypothesis, settings.byte_cap, NEVER_WORD if by_word else _NEVER_CHARACTER)
    found = [score(reference, hypothesis) for reference in references]
    key = "fmeasure" if settings.statistic == "f1" else "recall"
    values = []
    for name in METRICS:
        if settings.references == "summed":
            values.append(_summed(found, name, settings.statistic))
        else:
            scores = [float(getattr(scores[name], key)) for scores, _, _ in found]
            values.append(max(scores) if settings.references == "best" else sum(scores) / len(scores))
    return values


def _known(text: str, byte_cap: int | None, never: str) -> str:
    """Return the text that counts, with ``never`` for each mark, even if the byte cap cuts the mark (``<un``)."""
    if byte_cap is None:
        return MARK.sub(never, text)
    kept = text.encode()[:byte_cap].decode(errors="ignore")
    for mark in MARK.finditer(text):
        if mark.start() < len(kept) < mark.end():
            kept = kept[: mark.start()] + never
    return MARK.sub(never, kept)


def _summed(found: Sequence[tuple[_Scores, int, int]], name: str, statistic: str) -> float:
    """Return matches over all references, divided by the total."""
    order = 2 if name == "rouge2" else 1
    matches = wanted = written = 0
    for scores, size, own_size in found:
        grams = max(size - order + 1, 0)
        matches += round(float(scores[name].recall) * grams)
        wanted += grams
        written += max(own_size - order + 1, 0)
    recall = matches / wanted if wanted else 0.0
    precision = matches / written if written else 0.0
    if statistic == "recall":
        return recall
    return 2 * precision * recall / (precision + recall) if matches else 0.0
