"""Base classes of the readers of corpora."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from sememekit.corpora.sources import SPLITS, CorpusFile, Unpacked, find_splits, unpack
from sememekit.corpora.units import ShardResult, Unit
from sememekit.data.signature import ExamplesSummary
from sememekit.text.reading import FaultCounter
from sememekit.text.segmenters import Segmenter, WhiteSpace
from sememekit.text.vocabulary import UNKNOWN


class Predicted(NamedTuple):
    """The text that models predict in each example: its index ``text`` in ``texts``, and the word ``end`` that follows it."""

    texts: int
    text: int
    end: str


class Corpus(ABC):
    """A reader of a data set: its files, how text becomes words, and the defaults of ``preprocess``.

        corpus = Plain.open(Path("news.txt"))
        for unit in corpus.units("a line of the file", WhiteSpace()):
            unit.words

    A reader is pickled to every worker, so it holds plain values only; :meth:`units` gets the segmenter.

    Attributes:
        normalisation: changes to the text before segmentation, in words.
        segmenters: the allowed segmenters, default first.
        size_of: ``source`` or ``tokens``, as in the signature.
        min_count, max_vocabulary, end_of_sentence: the defaults of the data set.
        cuts_latin: whether forward maximum matching cuts unknown Latin words and numbers.
        keeps_blank_lines: whether a line without words is a sentence (of ``<eos>`` alone).
        default_lexicon: the default lexicon; None for none.
        proportions, shuffle: of train, valid and test, for undivided text, and whether it is shuffled before the division.
        vocabulary_splits: the splits whose words are counted for the vocabulary.
        predicted: the texts of examples that models predict; only their words are counted. None for all.
        specials: words that the vocabulary always holds; ``<eos>`` is added by ``end_of_sentence``.
        column: the column of .jsonl and .parquet files to read; None reads lines.
        unpacks_apart: whether sources can be read in parallel, since ``unpack`` of a source uses no other source.
        stands_alone: function that is true for words that stay although the lexicon lacks them.
        wanted: description of SOURCE, for the error if it is missing; empty if it is optional."""

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
    column: str | None = None
    unpacks_apart: ClassVar[bool] = True
    wanted: ClassVar[str] = ""
    stands_alone: ClassVar[Any] = None

    def __init__(self, source: Any) -> None:
        self._source = source

    @classmethod
    def open(cls, source: Path | None) -> "Corpus":
        """The reader of ``source``. Raises DataError when it is absent or of another kind."""
        return cls(source)

    @abstractmethod
    def sources(self) -> list[CorpusFile]: ...

    def ranges(self, split: str | None, text: Path, size: int) -> list[tuple[str | None, int, int]]:
        """Parts of an unpacked file as (split, first byte, last byte + 1); by default the whole."""
        return [(split, 0, size)]

    def unpack(self, source: CorpusFile, number: int, folder: Path, faults: FaultCounter) -> Unpacked:
        """Prepare source ``number`` for reading by byte ranges, with work files in ``folder``. Raises DataError for a file that
        cannot be read, is empty or damaged."""
        return unpack(source, folder, faults, name=str(number), column=self.column)

    def annotate(self, target: Path, parts: Sequence[tuple[str | None, ShardResult]]) -> ExamplesSummary | None:
        """Write further files of the finished folder from the (split, shard) in order; None without any."""
        return None

    def sentence(self, text: str) -> str | None:
        """Return a line as training input of a segmenter; None if it is left out."""
        return " ".join(text.split()) or None

    @abstractmethod
    def units(self, text: str, segmenter: Segmenter) -> Iterable[Unit]:
        """Yield the sentences of a line. Raises DataError for a line of another form; the caller adds file and line."""

    def is_lines(self, segmenter: Segmenter) -> bool:
        """Return whether :meth:`units` does nothing but segment a line, so that many lines can be segmented at once."""
        return False


class SegmentedCorpus(Corpus):
    """Segmented text, with a sentence on each line and white space between words."""

    def units(self, text: str, segmenter: Segmenter) -> Iterator[Unit]:
        words = segmenter.segment(text)
        yield Unit(words, *text_size(words))

    def is_lines(self, segmenter: Segmenter) -> bool:
        return isinstance(segmenter, WhiteSpace)


class SplitFolder(SegmentedCorpus):
    """Segmented text in a folder with one file for each split; ``patterns`` name them, ``{}`` for the split."""

    patterns: ClassVar[tuple[str, ...]]

    def sources(self) -> list[CorpusFile]:
        return find_splits(self._source, self.patterns)


def text_size(words: Iterable[str]) -> tuple[int, int]:
    """Characters and UTF-8 bytes of words without white space."""
    text = "".join(words)
    return len(text), len(text) if text.isascii() else len(text.encode())
