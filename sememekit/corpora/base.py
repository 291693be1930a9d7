"""What every reader of a corpus promises, and the promise kept for text that is segmented already."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from sememekit.corpora.sources import SPLITS, CorpusFile, Unpacked, find_splits, unpack
from sememekit.corpora.units import ShardResult, Unit
from sememekit.data.signature import ExamplesSummary
from sememekit.errors import ConfigError
from sememekit.text.reading import FaultCounter
from sememekit.text.segmenters import Segmenter
from sememekit.text.vocabulary import UNKNOWN


class Predicted(NamedTuple):
    """What models of examples predict: of every ``texts`` texts the one at place ``text``, and then the word ``end``."""

    texts: int
    text: int
    end: str


class Corpus(ABC):
    """A reader. It names its files, says how text becomes words, and holds the defaults of the data set.

    A reader is pickled to every worker, so it holds plain values only; :meth:`units` gets the segmenter.

    Attributes:
        normalisation: what is done to the text before segmentation, in words.
        segmenters: the segmenters that make sense; the first is the default.
        size_of: ``source`` or ``tokens``, as in the signature.
        min_count, max_vocabulary, end_of_sentence: the defaults of the data set.
        cuts_latin: whether forward maximum matching cuts Latin words and numbers that the lexicon lacks.
        keeps_blank_lines: whether a line without words is a sentence (of ``<eos>`` alone).
        default_lexicon: the lexicon when none is named; None for no lexicon.
        proportions: of train, valid and test, for text that comes undivided.
        shuffle: whether undivided text is shuffled, or divided in its order.
        vocabulary_splits: the splits whose words are counted for the vocabulary.
        predicted: which texts of examples models predict; their words alone are counted. None where all are predicted.
        specials: words that the vocabulary holds whether they occur or not; ``<eos>`` comes by ``end_of_sentence``.
    """

    normalisation: str = "none"
    segmenters: tuple[str, ...] = ("none",)
    size_of: ClassVar[str] = "tokens"
    min_count: ClassVar[int] = 1
    max_vocabulary: ClassVar[int | None] = None
    end_of_sentence: ClassVar[bool] = False
    cuts_latin: bool = False
    keeps_blank_lines: ClassVar[bool] = False
    default_lexicon: str | None = None
    proportions: tuple[int, int, int] = (90, 5, 5)
    shuffle: ClassVar[bool] = False
    specials: tuple[str, ...] = (UNKNOWN,)
    vocabulary_splits: tuple[str, ...] = SPLITS
    predicted: Predicted | None = None

    @classmethod
    @abstractmethod
    def open(cls, source: Path | None) -> Corpus:
        """The reader for what lies at ``source``. Raises DataError when it is not there, or not of the right kind."""

    @abstractmethod
    def sources(self) -> list[CorpusFile]:
        """The files to read, in order."""

    def ranges(self, split: str | None, text: Path, size: int) -> list[tuple[str | None, int, int]]:
        """Parts of an unpacked file as (split, first byte, last byte + 1): the whole unless a reader says otherwise."""
        return [(split, 0, size)]

    def unpack(self, source: CorpusFile, number: int, folder: Path, faults: FaultCounter) -> Unpacked:
        """Make source ``number`` ready to be read by byte ranges; what is written goes into ``folder``. Raises DataError for a
        file that cannot be read, is empty or damaged."""
        return unpack(source, folder, faults)

    def annotate(self, target: Path, parts: Sequence[tuple[str | None, ShardResult]]) -> ExamplesSummary | None:
        """Write what the finished folder has beside ids, from the (split, shard) in order; None where that is nothing."""
        return None

    def sentence(self, text: str) -> str | None:
        """A line as a segmenter that learns from the text is to read it; None for one that it is not to read."""
        return " ".join(text.split()) or None

    @abstractmethod
    def units(self, text: str, segmenter: Segmenter) -> Iterable[Unit]:
        """The sentences of a line. Raises DataError for a line of another form; the caller adds file and line."""

    def stands_alone(self, word: str) -> bool:
        """Whether a word is kept although the lexicon does not know it."""
        return False

    def lexicon_limits_words(self) -> bool:
        """Whether words outside the lexicon become ``<unk>``."""
        return False


class SegmentedCorpus(Corpus):
    """Text whose words stand between white space already, one sentence a line."""

    def units(self, text: str, segmenter: Segmenter) -> Iterator[Unit]:
        """The words as they are."""
        words = segmenter.segment(text)
        yield Unit(words, *text_size(words))


class SplitFolder(SegmentedCorpus):
    """Text whose words stand apart, in a folder with one file for each split.

    Attributes:
        dataset: its name, for messages.
        patterns: names of the files with ``{}`` for the split, the usual one first.
    """

    dataset: ClassVar[str]
    patterns: ClassVar[tuple[str, ...]]

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def open(cls, source: Path | None) -> Corpus:
        names = [cls.patterns[0].format(split) for split in SPLITS]
        return cls(require_source(cls.dataset, source, f"the folder with {', '.join(names[:-1])} and {names[-1]}"))

    def sources(self) -> list[CorpusFile]:
        return find_splits(self._folder, self.patterns)


def text_size(words: Iterable[str]) -> tuple[int, int]:
    """Characters and UTF-8 bytes of words without what stands between them."""
    text = "".join(words)
    return len(text), len(text) if text.isascii() else len(text.encode())


def require_source(dataset: str, source: Path | None, wanted: str) -> Path:
    """The source, when one was given. Raises ConfigError when none was."""
    if source is None:
        raise ConfigError(f"preprocess {dataset}: SOURCE is missing; give {wanted}")
    return source
