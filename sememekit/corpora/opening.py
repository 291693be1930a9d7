"""Open a corpus by the name of its data set."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from sememekit.config import load_variant
from sememekit.corpora import DATASETS, Corpus
from sememekit.corpora.examples import EXAMPLE_SETS, ExampleSet
from sememekit.corpora.examples.column import ColumnCorpus
from sememekit.corpora.examples.corpus import ExampleCorpus
from sememekit.corpora.examples.files import files_of_splits
from sememekit.corpora.examples.switchboard import Switchboard
from sememekit.corpora.places import is_url
from sememekit.corpora.plain import Plain
from sememekit.data.signature import SIGNATURE
from sememekit.errors import ConfigError, DataError
from sememekit.files import typed
from sememekit.text.form import TextForm


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
