"""One text of every example as running text: the titles of pairs, the sentences of a classifier."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, final

from sememekit.corpora.base import Corpus, text_size
from sememekit.corpora.examples.base import ExampleSet
from sememekit.corpora.examples.corpus import ExampleCorpus
from sememekit.corpora.units import ShardResult, Unit
from sememekit.data.signature import LABELS
from sememekit.errors import ConfigError
from sememekit.text.segmenters import Segmenter


@final
class ColumnCorpus(ExampleCorpus):
    """The texts of one column of a set of examples, each a sentence, in the splits of the examples.

    It turns pairs into running text for language models: ``preprocess gigaword FOLDER --column target`` gives the titles with
    end marks. Files are read, checked and divided as examples; the vocabulary comes from train alone. Labels are kept for
    ``evaluate-ppl --by labels``."""

    end_of_sentence: ClassVar[bool] = True

    def __init__(self, kind: ExampleSet, files: Mapping[str | None, Sequence[Path]], seed: int, column: str) -> None:
        """Raises ConfigError: the set has no such column."""
        super().__init__(kind, files, seed)
        if column not in kind.texts:
            raise ConfigError(f"--column {column}: the examples have {', '.join(kind.texts)}")
        self._number = kind.texts.index(column)
        self.normalisation += f"; the {column} of each example alone"
        self.specials, self.predicted, self.vocabulary_splits = Corpus.specials, None, ("train",)

    def annotate(self, target: Path, parts: Sequence[tuple[str | None, ShardResult]]) -> None:
        """Write the label of each sentence, one a line, for each split of labelled examples."""
        names = [" ".join(name.split()) for name in self._label_ids]
        for part in self._parts if self.kind.label_headers else []:
            with (target / LABELS.format(part.split)).open("a", encoding="utf-8", newline="\n") as out:
                out.writelines(f"{names[label]}\n" for label in part.labels)

    def sentence(self, text: str) -> str | None:
        return super().sentence(text.split("\t")[self._number])

    def units(self, text: str, segmenter: Segmenter) -> Iterator[Unit]:
        own = text.split("\t")[self._number]
        yield Unit(self.cut(own, segmenter), *text_size(own.split()))
