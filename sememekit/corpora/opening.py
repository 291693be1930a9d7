"""Open a corpus by the name of its data set."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import ClassVar, final

from sememekit.config import load_variant
from sememekit.corpora import DATASETS, Corpus
from sememekit.corpora.base import text_size
from sememekit.corpora.examples import EXAMPLE_SETS, ExampleSet
from sememekit.corpora.examples.corpus import ExampleCorpus
from sememekit.corpora.examples.files import files_of_splits
from sememekit.corpora.examples.switchboard import Switchboard
from sememekit.corpora.places import is_url
from sememekit.corpora.plain import Plain
from sememekit.corpora.units import ShardResult, Unit
from sememekit.data.signature import LABELS, SIGNATURE
from sememekit.errors import ConfigError, DataError
from sememekit.files import typed
from sememekit.text.form import TextForm
from sememekit.text.segmenters import Segmenter


def open_corpus(
    dataset: str,
    source: Path | str | None,
    files: Mapping[str, Sequence[Path | str]],
    *,
    seed: int = 1,
    turns: int | None = None,
    has_vocabulary: bool = False,
    column: str | None = None,
) -> Corpus:
    """The corpus of a data set: a name of ``DATASETS`` or ``EXAMPLE_SETS``, or ``package.module:Class``.

    ``source`` is a file or folder (for ``plain``, a pattern or a URL, too). ``files`` (split -> files) is for examples and
    ``plain``; ``seed`` divides one file of examples; ``turns`` is for ``switchboard``; for ``has_vocabulary`` see
    ``files_of_splits``. With ``column``, the corpus is one text of each example, or a column of .jsonl and .parquet files of
    ``plain``. Raises ConfigError: an unknown name, or options that do not fit the data set. Raises DataError: a source that is
    absent or of another kind."""
    kind = load_variant(
        "data set",
        dataset,
        {**DATASETS, **EXAMPLE_SETS},
        lambda found: isinstance(found, type) and issubclass(found, Corpus | ExampleSet),
    )
    _refuse_prepared(dataset, source, files)
    if turns is not None and kind is not Switchboard:
        raise ConfigError(f"--turns {turns}: {dataset} has no turns; this is for switchboard")
    if issubclass(kind, ExampleSet):
        _refuse_urls(dataset, source, *files.values())
        paths = {split: [Path(place) for place in places] for split, places in files.items()}
        examples = kind() if turns is None else Switchboard(turns)
        folder = None if source is None else Path(source)
        found = files_of_splits(examples, folder, paths, has_vocabulary=has_vocabulary)
        return ExampleCorpus(examples, found, seed) if column is None else ColumnCorpus(examples, found, seed, column)
    if kind is Plain:
        return Plain(source, files, column, has_vocabulary=has_vocabulary)
    if column is not None:
        raise ConfigError(
            f"--column {column}: {dataset} is text without columns; this is for sets of examples, such as gigaword"
        )
    _refuse_urls(dataset, source)
    if files:
        raise ConfigError(f"--{next(iter(files))}: {dataset} is text without labels; give a folder or a file as SOURCE")
    if source is None and kind.wanted:
        raise ConfigError(f"preprocess {dataset}: SOURCE is missing; give {kind.wanted}")
    corpus: Corpus = kind.open(None if source is None else Path(source))
    return corpus


def _refuse_prepared(dataset: str, source: Path | str | None, files: Mapping[str, Sequence[Path | str]]) -> None:
    """Refuse prepared data as a source, since a reader would take the stored texts for a corpus."""
    for place in (source, *chain.from_iterable(files.values())):
        if place is not None and not is_url(place) and (Path(place) / SIGNATURE).is_file():
            raise DataError(
                f"{place}: prepared data already, which other commands take with {typed('--data', place)}; "
                f"'preprocess {dataset}' needs the text that they were made of"
            )


def _refuse_urls(dataset: str, source: Path | str | None, *files: Sequence[Path | str]) -> None:
    for place in (source, *chain.from_iterable(files)):
        if is_url(place):
            raise ConfigError(f"{place}: {dataset} is read from a folder or a file of this machine; plain reads URLs")


def with_rules(corpus: Corpus, dataset: str, form: TextForm, max_length: int | None) -> Corpus:
    """The corpus with the options for plain text. Raises ConfigError for another data set with such options."""
    given = {"--lower": form.lower, "--numbers-to": form.numbers_to is not None, "--max-length": max_length is not None}
    if isinstance(corpus, Plain):
        return corpus.with_rules(form, max_length)
    if not any(given.values()):
        return corpus
    asked = next(name for name, is_given in given.items() if is_given)
    raise ConfigError(f"{asked} is for plain: {dataset} has its own rules")


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
