"""Word segmentation against a gold segmentation: precision, recall and F1 of words, as in the SIGHAN bakeoffs.

A word is the stretch of characters that it covers, white space left out. It is right when the gold segmentation has a word that
begins and ends at the same characters. Precision is right / given words, recall is right / gold words, F1 is twice right /
(given + gold).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
import numpy.typing as npt

from sememekit.config import Record
from sememekit.errors import DataError
from sememekit.measure.intervals import Interval, interval, ratio_difference_interval, ratio_interval

Words = Sequence[str]


class SegmentationScores(Record):
    """Scores of n sentences that were cut into words.

    Attributes:
        gold_words, words, right: of the gold segmentation, of this one, and in both.
        precision, recall, f1: see the module; 0 where nothing is right, and where there is nothing to divide by.
        f1_low, f1_high: 95 % bootstrap interval over sentences; None of few sentences.
        new_words: gold words outside the list of known words; None without a list.
        new_recall: share of those that were found; None without a list or such words.
    """

    sentences: int
    gold_words: int
    words: int
    right: int
    precision: float
    recall: float
    f1: float
    f1_low: float | None
    f1_high: float | None
    new_words: int | None = None
    new_recall: float | None = None


@final
@dataclass(frozen=True)
class WordCounts:
    """Words of n sentences, (n,) each: in the gold segmentation, in another, and in both.

    ``new`` and ``new_right``: gold words outside a list of known words, and how many of them are right; None without a list.
    """

    gold: npt.NDArray[np.int64]
    given: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    new: npt.NDArray[np.int64] | None = None
    new_right: npt.NDArray[np.int64] | None = None

    def scores(self, seed: int = 0) -> SegmentationScores:
        gold, given, right = int(self.gold.sum()), int(self.given.sum()), int(self.right.sum())
        found = interval(ratio_interval(2 * self.right, self.gold + self.given, seed=seed))
        new = None if self.new is None else int(self.new.sum())
        return SegmentationScores(
            sentences=len(self.gold),
            gold_words=gold,
            words=given,
            right=right,
            precision=right / given if given else 0.0,
            recall=right / gold if gold else 0.0,
            f1=2 * right / (gold + given) if gold + given else 0.0,
            f1_low=found.low,
            f1_high=found.high,
            new_words=new,
            new_recall=float(self.new_right.sum()) / new if new and self.new_right is not None else None,
        )


def count_words(gold: Sequence[Words], given: Sequence[Words], known: Collection[str] | None = None) -> WordCounts:
    """Compare two segmentations of the same n sentences; gold words outside of ``known`` are counted separately. Raises
    DataError for another number of sentences, or a sentence of another text, by its number from 1."""
    if len(gold) != len(given):
        raise DataError(f"{len(given)} sentences were segmented, and the gold segmentation has {len(gold)}")
    rows = []
    for number, (right_words, words) in enumerate(zip(gold, given, strict=True), start=1):
        if "".join(right_words) != "".join(words):
            raise DataError(
                f"sentence {number}: another text than that of the gold segmentation: {''.join(words)[:40]!r} in the place of "
                f"{''.join(right_words)[:40]!r}"
            )
        expected, found = spans(right_words), set(spans(words))
        hits = [span in found for span in expected]
        new = [known is not None and word not in known for word in right_words]
        new_right = sum(hit and is_new for hit, is_new in zip(hits, new, strict=True))
        rows.append((len(expected), len(found), sum(hits), sum(new), new_right))
    columns = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    return WordCounts(*columns[:3], *(columns[3:] if known is not None else (None, None)))


def f1_difference(first: WordCounts, second: WordCounts, seed: int = 0) -> Interval:
    """F1 of the first minus that of the second on the same sentences, with the 95% interval of a paired bootstrap."""
    sides = [(2 * counts.right, counts.gold + counts.given) for counts in (first, second)]
    return interval(ratio_difference_interval(*sides, seed=seed))


def spans(words: Words) -> list[tuple[int, int]]:
    """First character and the one behind the last, of every word."""
    ends = np.cumsum([0, *map(len, words)]).tolist()
    return list(pairwise(ends))


def random_words(text: str, rate: float, generator: np.random.Generator) -> list[str]:
    """Cut a text at each position between two characters with probability ``rate``, independently."""
    cuts = [index for index in range(1, len(text)) if generator.random() < rate]
    return [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def boundary_rate(sentences: Sequence[Words]) -> float:
    """Share of the positions between two characters where a word ends."""
    inner = sum(max(len(words) - 1, 0) for words in sentences)
    places = sum(max(sum(map(len, words)) - 1, 0) for words in sentences)
    return inner / places if places else 0.0
