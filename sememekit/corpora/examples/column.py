"""One text of every example as running text: the titles of pairs, the sentences of a classifier."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, final

from sememekit.corpora.base import Corpus, text_size
from sememekit.corpora.examples.corpus import ExampleCorpus
from sememekit.corpora.sources import CorpusFile, Unpacked
from sememekit.corpora.units import Unit
from sememekit.errors import ConfigError
from sememekit.text.reading import FaultCounter
from sememekit.text.segmenters import Segmenter


@final
class ColumnCorpus(Corpus):
    """The texts of one column of a set of examples, each a sentence, in the splits of the examples.

    What language models read of pairs: ``preprocess gigaword FOLDER --column target`` gives the titles, ends included. The
    files are read, checked and divided as for the examples; the vocabulary is that of train alone.
    """

    size_of = "source"
    unpacks_apart: ClassVar[bool] = False
    end_of_sentence: ClassVar[bool] = True
    vocabulary_splits = ("train",)

    def __init__(self, examples: ExampleCorpus, column: str) -> None:
        """Raises ConfigError: the set has no such column."""
        texts = examples.kind.texts
        if column not in texts:
            raise ConfigError(f"--column {column}: the examples have {', '.join(texts)}")
        self._examples, self._number = examples, texts.index(column)
        self.segmenters = examples.segmenters
        self.normalisation = f"{examples.normalisation}; the {column} of each example alone"
        self.default_lexicon = examples.default_lexicon
        self.proportions = examples.proportions
        self.cuts_latin = examples.cuts_latin

    def sources(self) -> list[CorpusFile]:
        return self._examples.sources()

    def unpack(self, source: CorpusFile, number: int, folder: Path, faults: FaultCounter) -> Unpacked:
        return self._examples.unpack(source, number, folder, faults)

    def ranges(self, split: str | None, text: Path, size: int) -> list[tuple[str | None, int, int]]:
        return self._examples.ranges(split, text, size)

    def sentence(self, text: str) -> str | None:
        return super().sentence(text.split("\t")[self._number])

    def units(self, text: str, segmenter: Segmenter) -> Iterator[Unit]:
        own = text.split("\t")[self._number]
        yield Unit(self._examples.cut(own, segmenter), *text_size(own.split()))
