"""``sememekit eval RUN --segmentation GOLD``: word segmentation by a lattice model, against a gold segmentation.

A word is a span of characters, white space left out. It is right if a gold word begins and ends at the same characters.
Precision is right / given words, recall is right / gold words, F1 is twice right / (given + gold)."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

from sememekit.config import Record
from sememekit.errors import ConfigError, DataError
from sememekit.figures import percent
from sememekit.files import opening, warn
from sememekit.measure.intervals import Interval, ratio_difference_interval, ratio_interval
from sememekit.prepare.segmentation import SENTENCES_TO_SEE, form_of_lines
from sememekit.progress import Progress, silent
from sememekit.runs.lattices import Decoding, open_reader, segment_lines
from sememekit.runs.run import OfRun, Run
from sememekit.sememes import open_lexicon
from sememekit.text.form import has_ends, without_ends
from sememekit.text.maximum_matching import MaximumMatcher
from sememekit.text.reading import FaultCounter, read_named

Words = Sequence[str]

MODEL: Final = "model"


class SegmentationRow(Record):
    """Scores of n sentences that were cut into words by the model, or by a baseline."""

    sentences: int
    gold_words: int
    words: int
    right: int
    """gold_words, words, right: number of words in the gold segmentation, in this one, and in both."""
    precision: float
    recall: float
    f1: float
    """precision, recall, f1: see the module; 0 if nothing is right or the divisor is 0."""
    f1_low: float | None
    f1_high: float | None
    """f1_low, f1_high: 95 % bootstrap interval over sentences; None for few sentences."""
    new_words: int | None = None
    """Gold words outside the list of known words; None without a list."""
    new_recall: float | None = None
    """Share of the ``new_words`` that were found; None without new words or a list."""
    name: str = MODEL
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    """difference, difference_low, difference_high: F1 of the model minus F1 of this baseline on the same sentences, with the
    95 % interval of a paired bootstrap; None for the model, no limits for few sentences."""


@final
@dataclass(frozen=True)
class WordCounts:
    """Words of n sentences, (n,) each: in the gold segmentation, in another, and in both.

    ``new`` and ``new_right``: gold words outside a list of known words, and the right ones of these; None without a list."""

    gold: npt.NDArray[np.int64]
    given: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    new: npt.NDArray[np.int64] | None = None
    new_right: npt.NDArray[np.int64] | None = None

    def scores(self, seed: int = 0, **more: Any) -> SegmentationRow:
        gold, given, right = int(self.gold.sum()), int(self.given.sum()), int(self.right.sum())
        found = ratio_interval(2 * self.right, self.gold + self.given, seed=seed)
        new = None if self.new is None else int(self.new.sum())
        return SegmentationRow(
            **more,
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
                f"sentence {number}: the text differs from the gold segmentation: {''.join(words)[:40]!r} in the place of "
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
    """Compute F1 of the first minus F1 of the second on the same sentences, with the 95% interval of a paired bootstrap."""
    sides = [(2 * counts.right, counts.gold + counts.given) for counts in (first, second)]
    return ratio_difference_interval(*sides, seed=seed)


def spans(words: Words) -> list[tuple[int, int]]:
    """Return the first character of every word, and the character after its last."""
    return list(pairwise(np.cumsum([0, *map(len, words)]).tolist()))


def random_words(text: str, rate: float, generator: np.random.Generator) -> list[str]:
    """Cut a text at each position between two characters with probability ``rate``, independently."""
    cuts = [index for index in range(1, len(text)) if generator.random() < rate]
    return [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def boundary_rate(sentences: Sequence[Words]) -> float:
    """Share of the positions between two characters where a word ends."""
    inner = sum(max(len(words) - 1, 0) for words in sentences)
    places = sum(max(sum(map(len, words)) - 1, 0) for words in sentences)
    return inner / places if places else 0.0


LONGEST_WORD: Final = 8  # most characters of a line, in the mean, for a file without blanks to be read as a list of words

Marks = Literal["found", "given"]
"""Source of the boundaries of numbers, Latin letters and punctuation marks: the model, or the rule of ``split_marks``."""


class SegmentationReport(OfRun):
    """The model, then the baselines, against a gold segmentation."""

    gold: str
    decoding: Decoding
    marks: Marks = "found"
    """"found", by the model and the baselines, like all words; or "given" to the model and the baselines."""
    marginal: str
    """The meaning of the model's probabilities: a sum over segmentations, and the rule that merges states."""
    rows: tuple[SegmentationRow, ...]


def evaluate_segmentation(
    run: Path | Run,
    gold: Path,
    *,
    words: Path | None = None,
    lexicons: Sequence[str] = (),
    decoding: Decoding = "viterbi",
    marks: Marks = "found",
    seed: int = 0,
    errors: str = "strict",
    progress: Progress = silent,
) -> SegmentationReport:
    """Compute precision, recall and F1 of words, beside baselines that need no model.

    The model is given each line of ``gold`` without its blanks; docs/lattices.md has the baselines. New words are the gold
    words that ``words`` lacks. With ``marks`` "given" the model reads the text with blanks around numbers, Latin letters and
    punctuation marks, which are one word each in every segmentation, as in Sun and Deng 2018. Raises ConfigError: the run is no
    lattice model, or its tokens are whole words. Raises DataError: a gold file without words."""
    reader = open_reader(run, "eval --segmentation")
    if not reader.finds_words:
        raise ConfigError(
            f"eval --segmentation: {run} was trained on text cut into words (by {reader.run.signature.segmenter}), so it "
            "cannot cut text; train a model on data of 'sememekit preprocess ... --segmenter characters' or 'sentencepiece'"
        )
    gold_words = read_words(gold, errors)
    known = frozenset(word for sentence in read_words(words, errors) for word in sentence) if words is not None else None
    raw = ["".join(sentence) for sentence in gold_words]
    shown = raw if marks == "found" else [" ".join(stretch for stretch, _ in split_marks(text)) for text in raw]
    found: list[Words] = []
    for sentence in segment_lines(reader, shown, decoding):
        found.append(sentence)
        progress("sentences", len(found), len(raw))
    ways: dict[str, Sequence[Words]] = {MODEL: found}
    ngrams = reader.ngrams()
    if ngrams:
        ways[f"maximum matching, {len(ngrams):,} n-grams of the run"] = _match(ngrams, raw)
    if known is not None and words is not None:
        ways[f"maximum matching, {len(known):,} words of {words.name}"] = _match(known, raw)
    for lexicon in lexicons:
        listed = frozenset(open_lexicon(lexicon).words)
        ways[f"maximum matching, {len(listed):,} words of lexicon {lexicon}"] = _match(listed, raw)
    generator, rate = np.random.default_rng(seed), boundary_rate(gold_words)
    ways[f"random, a cut at {percent(rate)} of the places"] = [random_words(text, rate, generator) for text in raw]
    ways["every character a word"] = [list(text) for text in raw]
    if marks == "given":
        ways = {name: [*map(with_marks, raw, sentences)] for name, sentences in ways.items()}
    rows, marginal = tuple(_rows(gold_words, ways, known, seed)), reader.task.marginal
    return SegmentationReport(**reader.run.of_run, gold=str(gold), decoding=decoding, marks=marks, marginal=marginal, rows=rows)


def read_words(path: Path, errors: str = "strict") -> list[list[str]]:
    """Return the lines with words of a segmented text, without marks of ends such as ``<eos>``; a RunWarning counts them, or
    names another form, such as ``word/TAG``. Raises DataError: unreadable, empty, or long lines without a blank."""
    with opening(path, lambda why: DataError(f"{why}; give a text with words between blanks")), path.open("rb") as file:
        lines = [piece.text for piece in read_named(file, str(path), FaultCounter(errors))]
    sentences = [words for words in (without_ends(line).split() for line in lines) if words]
    if ends := sum(map(has_ends, lines)):
        warn(f"{path}: marks of begins or ends of sentences, such as </s>, are left out of {ends:,} lines")
    if form := form_of_lines(lines[:SENTENCES_TO_SEE], str(path)):
        warn(f"{path}: {form}")
    if not sentences:
        raise DataError(f"{path}: no words; give a text with one sentence a line and its words between blanks")
    if all(len(words) == 1 for words in sentences) and sum(len(word) for [word] in sentences) > LONGEST_WORD * len(sentences):
        raise DataError(
            f"{path}: no line has a blank, so the text is not cut into words; give a text with its words between blanks"
        )
    return sentences


def _rows(
    gold: Sequence[Words], ways: dict[str, Sequence[Words]], known: frozenset[str] | None, seed: int
) -> list[SegmentationRow]:
    counts = {name: count_words(gold, cut, known) for name, cut in ways.items()}
    rows = []
    for name, counted in counts.items():
        fields = {}
        if name != MODEL:
            apart = f1_difference(counts[MODEL], counted, seed)
            fields = {"difference": apart.value, "difference_low": apart.low, "difference_high": apart.high}
        rows.append(counted.scores(seed, name=name, **fields))
    return rows


def _match(words: frozenset[str], texts: Sequence[str]) -> list[list[str]]:
    matcher = MaximumMatcher(words, cut_latin=True)  # the baseline as the field has it
    return [matcher.segment(text) for text in texts]


_NUMBER: Final = r"[0-9０-９\u2160-\u2179%％.．+＋＞∶‰㈨℃]+"
_LATIN: Final = r"[A-Za-zＡ-Ｚａ-ｚ\u03b1-\u03d0＆]+"
_CHINESE: Final = r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002ceaf\U0002f800-\U0002fa1f○]+"
_STRETCH: Final = re.compile(rf"(?P<mark>{_NUMBER}|{_LATIN})|(?P<text>{_CHINESE})|(?P<sign>\S)(?P=sign)*")


def split_marks(text: str) -> list[tuple[str, bool]]:
    """Split a text at white space and marks; return the parts, and whether each is a mark.

    A mark is a run of digits with their signs, a run of Latin or Greek letters, or a punctuation mark (repeated ones such as
    ``——`` are one). The classes follow Sun and Deng 2018 (``codes/tokenization.py`` of its release), with the narrow ``%``.

    >>> split_marks("１９９８年，ＷＴＯ——")
    [('１９９８', True), ('年', False), ('，', True), ('ＷＴＯ', True), ('——', True)]"""
    return [(match[0], match["text"] is None) for match in _STRETCH.finditer("".join(text.split()))]


def with_marks(text: str, words: Words) -> list[str]:
    """Return the segmentation ``words`` of ``text`` with every mark as one word, and no word across its edges."""
    ends, place, bare = {0, *(end for _, end in spans(words))}, 0, "".join(text.split())
    for stretch, is_mark in split_marks(text):
        if is_mark:
            ends -= set(range(place + 1, place + len(stretch)))
        place += len(stretch)
        ends.add(place)
    return [bare[begin:end] for begin, end in pairwise(sorted(ends))]
