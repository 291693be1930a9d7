"""``sememekit eval RUN --segmentation GOLD``: word segmentation by a lattice model, against a gold segmentation."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import numpy as np

from sememekit.errors import ConfigError, DataError
from sememekit.figures import percent
from sememekit.files import opening
from sememekit.measure.segmentation import SegmentationScores, Words, boundary_rate, count_words, f1_difference, random_words
from sememekit.progress import Progress, silent
from sememekit.runs.lattices import Decoding, open_reader, segment_lines
from sememekit.runs.run import OfRun, Run, Which
from sememekit.text.marks import split_marks, with_marks
from sememekit.text.maximum_matching import MaximumMatcher
from sememekit.text.reading import FaultCounter, read_named

LONGEST_WORD: Final = 8
"""Characters: a file without blanks whose lines have more in the mean is a text and no list of words."""

MODEL: Final = "model"
Marks = Literal["found", "given"]
"""Whether numbers, Latin letters and punctuation marks are words by rule; see ``text.marks``."""


class SegmentationRow(SegmentationScores):
    """Scores of the model, or of a baseline.

    Attributes:
        difference, difference_low, difference_high: F1 of the model minus that of this baseline on the same sentences, with the
            95 % interval of a paired bootstrap; None for the model itself, no limits of few sentences.
    """

    name: str
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None


class SegmentationReport(OfRun):
    """The model, then the baselines, against a gold segmentation.

    Attributes:
        marks: "found" by the model and the baselines like all words, or "given" to all of them.
        marginal: what the probabilities of the model are: a sum over segmentations, and by which rule states merge.
    """

    gold: str
    decoding: Decoding
    marks: Marks = "found"
    marginal: str
    rows: tuple[SegmentationRow, ...]


def evaluate_segmentation(
    run: Path | Run,
    gold: Path,
    *,
    words: Path | None = None,
    lexicon: str | None = None,
    decoding: Decoding = "viterbi",
    marks: Marks = "found",
    device: str = "auto",
    which: Which = "best",
    seed: int = 0,
    errors: str = "strict",
    progress: Progress = silent,
) -> SegmentationReport:
    """Precision, recall and F1 of words, beside those of segmentations that need no model.

    The model is given each line of ``gold`` without its blanks. Beside it stand: forward maximum matching with the n-grams of
    the run's own chunk vocabulary, with the words of the text ``words`` and with those of ``lexicon``; cuts at random, at the
    rate at which the gold words end; and every character for itself. The gold words that ``words`` lacks are the new words.

    With ``marks`` "given" the model reads the text with blanks around numbers, Latin letters and punctuation marks, each of
    these is one word in every segmentation, and none goes across its edges: the condition of Sun and Deng 2018.

    Raises:
        ConfigError: the run is no lattice model, or one of whole words.
        DataError: the gold file cannot be read or has no words.
    """
    reader = open_reader(run, "eval --segmentation", device=device, which=which)
    if not reader.finds_words:
        how = reader.run.signature.segmenter
        raise ConfigError(
            f"eval --segmentation: {run} was trained on text cut into words (by {how}), so it cannot cut text; train "
            "a model on data of 'sememekit preprocess ... --segmenter characters' or 'sentencepiece'"
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
    if lexicon is not None:
        from sememekit.sememes import open_lexicon

        listed = frozenset(open_lexicon(lexicon).words)
        ways[f"maximum matching, {len(listed):,} words of lexicon {lexicon}"] = _match(listed, raw)
    generator, rate = np.random.default_rng(seed), boundary_rate(gold_words)
    ways[f"random, a cut at {percent(rate)} of the places"] = [random_words(text, rate, generator) for text in raw]
    ways["every character a word"] = [list(text) for text in raw]
    if marks == "given":
        ways = {name: [*map(with_marks, raw, sentences)] for name, sentences in ways.items()}
    return SegmentationReport(
        run=str(run),
        checkpoint=reader.run.snapshot,
        gold=str(gold),
        decoding=decoding,
        marks=marks,
        marginal=reader.task.marginal,
        rows=tuple(_rows(gold_words, ways, known, seed)),
    )


def read_words(path: Path, errors: str = "strict") -> list[list[str]]:
    """The lines of a segmented text that have words; DataError where it cannot be read, has none, or is not segmented: no line
    has a blank, and they are longer than the words of a list."""
    with opening(path, lambda why: DataError(f"{why}; give a text with words between blanks")), path.open("rb") as file:
        pieces = read_named(file, str(path), FaultCounter(errors))
        sentences = [words for words in (piece.text.split() for piece in pieces) if words]
    if not sentences:
        raise DataError(f"{path}: no words; give a text with one sentence a line and its words between blanks")
    if all(len(words) == 1 for words in sentences) and sum(len(word) for [word] in sentences) > LONGEST_WORD * len(sentences):
        raise DataError(f"{path}: no line has a blank, so nobody cut it into words; give a text with its words between blanks")
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
        rows.append(SegmentationRow(name=name, **counted.scores(seed).model_dump(), **fields))
    return rows


def _match(words: frozenset[str], texts: Sequence[str]) -> list[list[str]]:
    matcher = MaximumMatcher(words, cut_latin=True)  # the baseline as the field has it
    return [matcher.segment(text) for text in texts]
