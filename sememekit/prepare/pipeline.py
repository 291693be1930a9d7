"""Prepare a corpus as a folder, in bounded memory, resumable and atomic.

1. Sources are hashed and decompressed into the work folder ``.NAME.partial`` beside the output.
2. Each source is cut into shards at line ends; shards are segmented and counted, and write markers.
3. The sorted word lists of the shards are merged into one vocabulary.
4. The provisional ids of the shards become ids of the vocabulary, and sentences go to their splits.
5. With --chunks, n-grams of the training split are counted for the chunk vocabulary.
6. The finished folder is renamed to its place and the work folder is removed.

Steps 1 to 4 run on an engine: in this process, in processes of this machine, or on other machines (``sememekit.engines``).

A killed run leaves the work folder; the next run with the same input and options continues after the last finished shard.
Replacing an earlier folder takes two renames: a process killed between them leaves none; the next run creates it."""

import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, final

import numpy as np

from sememekit.corpora.base import Corpus
from sememekit.corpora.sources import CorpusFile, Unpacked
from sememekit.corpora.units import ShardResult
from sememekit.data.prepared import HELD_OUT, VOCABULARY, PreparedData, token_type
from sememekit.data.segmenters import LEXICON, MODEL, MODELS, lexicon_bytes
from sememekit.data.signature import FORMAT, LABELS, SIGNATURE, ChunksSummary, Signature, SourceFile, write_signature
from sememekit.engines.base import Engine, open_engine
from sememekit.errors import ConfigError, DataError
from sememekit.files import naming, sole_writer, sync_to_disk
from sememekit.prepare.encode import write_splits
from sememekit.prepare.merge import count_predicted, hold_out, merge_vocabulary, of_training
from sememekit.prepare.ngrams import frequent_ngrams
from sememekit.prepare.settings import PreprocessSettings
from sememekit.prepare.shards import MARKER, ShardJob, read_sources, run_shards
from sememekit.progress import Progress
from sememekit.text.chunks import CHUNKS, LONGEST, ChunkVocabulary
from sememekit.text.huggingface import HuggingFacePieces
from sememekit.text.reading import FaultCounter, Span, cut_spans, refuse_other_encoding
from sememekit.text.segmenters import Segmenter, WhiteSpace
from sememekit.text.vocabulary import END, STOP, UNKNOWN, Vocabulary

OpenSegmenter = Callable[[Sequence[tuple[str | None, Span]], Path], Segmenter]


class Cutting(NamedTuple):
    """A corpus, and how its text becomes words."""

    corpus: Corpus
    settings: PreprocessSettings  # the requested settings, completed from other data
    words: frozenset[str] | None  # the words of the segmenter, if it has a lexicon
    # makes the segmenter from all (split, span) of the text, on which it may train, and a path for its model
    open_segmenter: OpenSegmenter


@final
class Pipeline:
    """One run of ``preprocess``; call :meth:`run` once.

    ``dataset`` is the name of the corpus, for the signature; ``given`` is the vocabulary of other data
    (``settings.vocabulary``); ``progress`` has the stages ``hash``, ``shards``, ``encode``."""

    def __init__(self, dataset: str, cutting: Cutting, out: Path, *, given: Vocabulary | None, progress: Progress) -> None:
        corpus, settings, self._lexicon, self._open_segmenter = cutting
        self._dataset, self._corpus, self._settings, self._given = dataset, corpus, settings, given
        self._out = out.absolute()
        self._work = _work_folder(self._out)
        self._faults = FaultCounter(settings.errors)
        self._progress = progress
        self._held_out: dict[str, int] = {}
        chosen = settings.end_of_sentence
        self._end_of_sentence = corpus.end_of_sentence if chosen is None else chosen
        self._end = END if given is None or END in given or STOP not in given else STOP
        self._min_count = corpus.min_count if settings.min_count is None else settings.min_count
        self._max_vocabulary = corpus.max_vocabulary if settings.max_vocabulary is None else settings.max_vocabulary
        _check_chunks(settings, self._end_of_sentence)

    def run(self) -> PreparedData:
        """Run all steps. Raises DataError: unusable sources or output folder."""
        _check_out(self._out, self._settings.force)
        sources = self._corpus.sources()
        try:
            self._work.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"--out {self._out}: cannot write in {self._out.parent} ({error.strerror or error}); give a folder elsewhere"
            ) from None
        busy = f"--out {self._out}: another preprocess is writing this folder (%s); wait for it, or give another"
        with sole_writer(self._work / "lock", lambda holder: DataError(busy % holder)), naming(self._out):
            try:
                with open_engine(self._settings.engine, self._settings.workers, self._work) as engine:
                    return self._run(engine, sources)
            except BaseException:
                if not any(any(self._work.glob(f"*{ending}")) for ending in (".done", MARKER)):  # nothing to go on from
                    shutil.rmtree(self._work, ignore_errors=True)
                raise

    def _run(self, engine: Engine, sources: Sequence[CorpusFile]) -> PreparedData:
        unpacked = read_sources(engine, self._corpus, sources, self._work, self._faults, self._progress)
        for source, found in zip(sources, unpacked, strict=True):
            refuse_other_encoding(found.path, str(source.path), self._faults)
        parts = self._cut(sources, unpacked)
        for name in MODELS.values():
            (self._work / name).unlink(missing_ok=True)  # of an earlier, killed run
        segmenter = self._open_segmenter([(split, span) for split, span, _ in parts], self._work / MODEL)
        end = self._end if self._end_of_sentence else None
        job = ShardJob(self._work, self._corpus, segmenter, end, self._faults.policy)
        keys = [job.key(span, sha256) for _, span, sha256 in parts]
        results = run_shards(engine, job, [span for _, span, _ in parts], keys, self._progress)
        # All pieces of the tokenizer of a model are the vocabulary unless another one is asked for.
        limited = self._settings.min_count is not None or self._settings.max_vocabulary is not None
        pieces = segmenter.names if isinstance(segmenter, HuggingFacePieces) and not limited else ()
        shards = [(split, result) for (split, _, _), result in zip(parts, results, strict=True)]
        vocabulary, coverage = self._merge(engine, shards, pieces)
        target = self._work / "finished"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        splits = write_splits(engine, target, vocabulary, shards, self._corpus, self._settings.seed, self._progress)
        examples = self._corpus.annotate(target, shards)
        named = {split: target / LABELS.format(split) for split in splits}
        labels = {split: hashlib.sha256(path.read_bytes()).hexdigest() for split, path in named.items() if path.is_file()}
        ends = sum(one.sentences for one in splits.values()) if self._end_of_sentence else 0
        if sum(one.tokens - one.unknown for one in splits.values()) <= ends:
            at_least = f"--min-count {self._min_count}" if self._given is None else f"--vocabulary {self._settings.vocabulary}"
            raise DataError(f"{at_least}: no word is left; leave it out, or give text of its language, cut into words")
        for split, summary in splits.items():
            if examples is None and summary.tokens < 2:
                raise DataError(
                    f"the split {split!r} has a single token, so there is nothing to predict; give more text for it: --{split} "
                    "FILE, or a longer text that is divided"
                )
        chunks = self._count_chunks(target, vocabulary)
        for result in results:
            self._faults.counts.update(result.faults)
        signature = Signature(
            format=FORMAT,
            dataset=self._dataset,
            options=self._effective_options(segmenter),
            sources=tuple(
                SourceFile(split=source.split or "all", name=source.path.name, bytes=found.bytes, sha256=found.sha256)
                for source, found in zip(sources, unpacked, strict=True)
            ),
            normalisation=self._corpus.normalisation,
            segmenter=segmenter.description,
            lexicon=hashlib.sha256(lexicon_bytes(self._lexicon)).hexdigest() if self._lexicon else None,
            lexicon_words=len(self._lexicon) if self._lexicon else None,
            lexicon_coverage=coverage,
            faults=self._faults.report(),
            end_of_sentence=self._end_of_sentence,
            vocabulary=vocabulary.fingerprint,
            vocabulary_size=len(vocabulary),
            vocabulary_splits=() if self._given is not None else self._corpus.vocabulary_splits,
            size_of=self._corpus.size_of,
            splits=splits,
            examples=examples,
            chunks=chunks,
            labels=labels or None,
        )
        return self._finish(target, vocabulary, signature)

    def _cut(self, sources: Sequence[CorpusFile], unpacked: Sequence[Unpacked]) -> list[tuple[str | None, Span, str]]:
        """Return (split, span, SHA-256 of all that decides the text) for every shard, in order."""
        return [
            (split, span, found.text_sha256 or found.sha256)
            for source, found in zip(sources, unpacked, strict=True)
            for split, start, end in self._corpus.ranges(source.split, found.path, found.text_bytes)
            for span in cut_spans(found.path, str(source.path), start, end, self._settings.shard_bytes)
        ]

    def _count_chunks(self, target: Path, vocabulary: Vocabulary) -> ChunksSummary | None:
        length = self._settings.chunk_length
        if not self._settings.chunks or length is None:
            return None
        unknown, end = vocabulary.unknown_id, vocabulary.end_id
        ngrams, counts = frequent_ngrams(
            np.memmap(target / "train.bin", dtype=token_type(len(vocabulary)), mode="r"),
            len(vocabulary),
            longest=length,
            most=self._settings.chunks,
            never=() if unknown is None else (unknown,),
            only_last=() if end is None else (end,),
            folder=self._work,
        )
        chunks = ChunkVocabulary(vocabulary, ngrams, counts, max_length=length)
        chunks.save(target / CHUNKS)
        rarest = counts[-1] if counts else 0
        return ChunksSummary(ngrams=chunks.num_ngrams, length=length, rarest=rarest, fingerprint=chunks.fingerprint)

    def _merge(
        self, engine: Engine, shards: Sequence[tuple[str | None, ShardResult]], pieces: tuple[str, ...]
    ) -> tuple[Vocabulary, float | None]:
        """Return the vocabulary (of the corpus and ``pieces``, or given), and the share of tokens that the lexicon knows."""
        specials = (*self._corpus.specials, self._end) if self._end_of_sentence else self._corpus.specials
        if pieces:
            specials = tuple(dict.fromkeys((*pieces, *(word for word in specials if word != UNKNOWN))))
        if self._given is not None:
            missing = [word for word in specials if word not in self._given]
            if missing:
                raise DataError(
                    f"--vocabulary {self._settings.vocabulary}: its words lack {', '.join(missing)}, which {self._dataset} "
                    "needs; it was made from data of another kind"
                )
            return self._given, None
        splits = self._corpus.vocabulary_splits
        counted = [result for split, result in shards if split in splits]
        undivided = [result for split, result in shards if split is None]
        if splits == ("train",) and not self._corpus.shuffle:
            undivided = of_training(engine, undivided, self._corpus.proportions, self._settings.seed, self._work)
        counted += undivided
        lexicon, protected = self._lexicon, self._corpus.stands_alone
        vocabulary, coverage = merge_vocabulary(
            engine,
            counted,
            is_known=None if lexicon is None or protected is None else lambda word: word in lexicon or protected(word),
            min_count=self._min_count,
            max_vocabulary=self._max_vocabulary,
            specials=specials,
            folder=self._work,
        )
        if self._corpus.predicted is not None:
            vocabulary = count_predicted(vocabulary, counted, self._corpus.predicted)
        if self._settings.hold_out is not None:
            vocabulary, self._held_out = hold_out(vocabulary, self._settings.hold_out, self._settings.seed)
        return vocabulary, coverage

    def _effective_options(self, segmenter: Segmenter) -> dict[str, str | int | float | bool | None]:
        """The options that decide the result, with the defaults of the data set."""
        left_out = set(PreprocessSettings.unrecorded)
        left_out |= set() if self._settings.chunks else {"chunks", "chunk_length"}
        fields = PreprocessSettings.model_fields
        later = ("piece_model", "lower", "numbers_to", "max_length", "hold_out")  # not asked for: the signature stays as it was
        left_out |= {name for name in later if getattr(self._settings, name) == fields[name].default}
        options = self._settings.model_dump(exclude=left_out)
        options.update(
            segmenter=self._settings.segmenter or self._corpus.segmenters[0],
            min_count=self._min_count,
            max_vocabulary=self._max_vocabulary,
            end_of_sentence=self._end_of_sentence,
        )
        if isinstance(segmenter, WhiteSpace):
            options["segmenter"] = "none"
        if self._end_of_sentence and self._end != END:
            options["end_mark"] = self._end
        return options

    def _finish(self, target: Path, vocabulary: Vocabulary, signature: Signature) -> PreparedData:
        vocabulary.save(target / VOCABULARY)
        if self._held_out:
            rows = [("word", "count"), *self._held_out.items()]
            (target / HELD_OUT).write_text("".join(f"{word}\t{count}\n" for word, count in rows), "utf-8", newline="\n")
        for name in MODELS.values():
            if (self._work / name).is_file():
                shutil.copyfile(self._work / name, target / name)
        if self._lexicon is not None:
            (target / LEXICON).write_bytes(lexicon_bytes(self._lexicon))
        write_signature(target / SIGNATURE, signature)
        PreparedData.open(target)
        for path in [*target.iterdir(), target]:
            sync_to_disk(path)
        if self._out.exists():
            _check_out(self._out, self._settings.force)
            replaced = self._work / "replaced"
            shutil.rmtree(replaced, ignore_errors=True)  # of a run that was killed between the renames and its end
            os.replace(self._out, replaced)
        os.replace(target, self._out)
        sync_to_disk(self._out.parent)
        shutil.rmtree(self._work)
        return PreparedData.open(self._out)


def _check_chunks(settings: PreprocessSettings, end_of_sentence: bool) -> None:
    if settings.chunks < 0 or (settings.chunk_length is not None and settings.chunk_length < 2):
        raise ConfigError(f"--chunks {settings.chunks} --chunk-length {settings.chunk_length}: n-grams have 2 words or more")
    if settings.chunk_length is not None and settings.chunk_length > LONGEST:
        raise ConfigError(f"--chunk-length {settings.chunk_length}: n-grams have {LONGEST} words or fewer")
    if bool(settings.chunks) != (settings.chunk_length is not None):
        raise ConfigError("--chunks N and --chunk-length L go together: the N most frequent n-grams of 2 to L words")
    if settings.chunks and not end_of_sentence:
        raise ConfigError("--chunks: n-grams must not cross the ends of sentences, which are not marked; add --end-of-sentence")


def _work_folder(out: Path) -> Path:
    return out.parent / f".{out.name}.partial"


def _check_out(out: Path, force: bool) -> None:
    """Raise DataError when ``out`` holds files that preprocess did not write, or prepared data without ``force``."""
    if out.exists() and not out.is_dir():
        raise DataError(f"--out {out}: a file is there already; give a folder")
    if out.is_dir() and any(out.iterdir()) and not (out / SIGNATURE).is_file():
        raise DataError(f"--out {out}: the folder holds other files and no {SIGNATURE}; give another, or empty it")
    if (out / SIGNATURE).is_file() and not force:
        left = _work_folder(out)
        beside = f"; {left} is of a command that was killed or still runs, and --force goes on from it" if left.exists() else ""
        raise DataError(
            f"--out {out}: prepared data are there already; give another folder, or replace them with --force{beside}"
        )
