"""The prepared-data folder: what ``preprocess`` writes and everything else reads.

    FOLDER/
    ├── vocabulary.tsv                        word TAB count, by id
    ├── train.bin, valid.bin, test.bin        raw little-endian ids, two bytes each when V <= 65536, otherwise four
    ├── signature.json                        where the text came from and what was done to it
    ├── signature.sha256                      SHA-256 of that file; folders of earlier versions have none
    ├── sentencepiece.model                   only with that segmenter
    ├── chunks.tsv                            only with --chunks: the most frequent n-grams (``text/chunks.py``)
    ├── train.offsets.bin, train.labels.bin   only for examples: where each text begins; their labels
    └── train.texts.jsonl, train.lines.bin    only for pairs: the source and the references as they were before ids

The folder has no dates and no absolute paths: same input, same bytes. The signature holds the SHA-256 of what it stands for,
and a split is compared with it when it is first used.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from sememekit.config import Record
from sememekit.errors import DataError
from sememekit.files import has_sha256, read_object
from sememekit.text.chunks import CHUNKS, ChunkVocabulary
from sememekit.text.reading import TextFaults
from sememekit.text.vocabulary import Vocabulary

FORMAT: Final = 1
SIGNATURE: Final = "signature.json"
VOCABULARY: Final = "vocabulary.tsv"
CHECKSUM: Final = "signature.sha256"
_MODEL: Final = "sentencepiece.model"
_REMEDY: Final = "write it with: sememekit preprocess DATASET SOURCE --force --out"
_FIRST: Final = _REMEDY.replace(" --force", "")


class SourceFile(Record):
    """One file that was read: its name without folders, and the size in bytes and SHA-256 of what lies on the disk."""

    split: str
    name: str
    bytes: int
    sha256: str


class SplitSummary(Record):
    """Counts of one split.

    Attributes:
        tokens: number of ids in the file, ``<eos>`` included.
        types: distinct ids among them.
        unknown: how many are ``<unk>``.
        unknown_rate: unknown / tokens, rounded to 6 decimals.
        sentences: lines or sentences.
        characters: characters of the text without white space (see ``Signature.size_of``).
        bytes: the same text in UTF-8.
        sha256: of the file of ids.
    """

    tokens: int
    types: int
    unknown: int
    unknown_rate: float
    sentences: int
    characters: int
    bytes: int
    sha256: str


class ExampleSplit(Record):
    """The examples of one split.

    Attributes:
        examples: how many.
        of_label: how many of each label.
        sha256: over the file of offsets, then that of labels, then that of texts.
    """

    examples: int
    of_label: dict[str, int]
    sha256: str


class ExamplesSummary(Record):
    """What a folder of examples has beside a stream of words.

    Attributes:
        texts: names of the texts of an example, in order.
        labels: names of the labels by id, or None for examples without.
        left_out: why examples were left out (a label that marks them, an empty text) and how many.
        splits: counts of each split.
        keeps_text: whether the source and the references of each example are kept as text.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...] | None
    left_out: dict[str, int]
    splits: dict[str, ExampleSplit]
    keeps_text: bool = False


class Wording(NamedTuple):
    """An example before its words became ids.

    Attributes:
        source: the words of the first text, as many as it has ids; what the vocabulary lacks is spelled out.
        references: the target as people wrote it, in one way or several, neither cut nor normalised beyond white space.
    """

    source: tuple[str, ...]
    references: tuple[str, ...]


@final
class Wordings:
    """The wordings of a split, read a line at a time."""

    def __init__(self, folder: Path, split: str) -> None:
        self._path = folder / f"{split}.texts.jsonl"
        self._lines = np.memmap(folder / f"{split}.lines.bin", dtype="<i8", mode="r")

    def __len__(self) -> int:
        return len(self._lines) - 1

    def __getitem__(self, example: int) -> Wording:
        if not 0 <= example < len(self):
            raise IndexError(example)
        with self._path.open("rb") as file:
            return self._read(file, example)

    def __iter__(self) -> Iterator[Wording]:
        with self._path.open("rb") as file:
            for example in range(len(self)):
                yield self._read(file, example)

    def _read(self, file: BinaryIO, example: int) -> Wording:
        start, end = self._lines[example : example + 2].tolist()
        if not 0 <= start <= end <= os.fstat(file.fileno()).st_size:
            raise DataError(
                f"{self._path}: the file of line ends beside it is damaged: line {example + 1} is said to lie at bytes {start} "
                f"to {end}; {_REMEDY} {self._path.parent}"
            )
        file.seek(start)
        try:
            record = json.loads(file.read(end - start))
            return Wording(tuple(record["source"].split(" ")), tuple(record["references"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DataError(f"{self._path}:{example + 1}: torn ({error}); {_REMEDY} {self._path.parent}") from None


class ChunksSummary(Record):
    """The chunk vocabulary of a folder.

    Attributes:
        ngrams: how many n-grams it has beside the words.
        length: L, words of an n-gram at most.
        rarest: count of the last n-gram that was taken; 0 where there is none.
        fingerprint: of the file ``chunks.tsv``.
    """

    ngrams: int
    length: int
    rarest: int
    fingerprint: str


@dataclass(frozen=True)
class Examples:
    """The examples of a split, memory-mapped: n examples of N texts each.

    Attributes:
        tokens: (tokens,) ids of all texts, one after the other.
        offsets: (n * N + 1,) where each text begins, and where the last ends.
        labels: (n,) ids of labels; without elements for examples that have none.
        num_texts: N.
        wordings: for pairs, the source and the references as text.
    """

    tokens: npt.NDArray[np.unsignedinteger]
    offsets: npt.NDArray[np.int64]
    labels: npt.NDArray[np.uint16]
    num_texts: int
    wordings: Wordings | None = None

    def __len__(self) -> int:
        return (len(self.offsets) - 1) // self.num_texts

    def text(self, example: int, text: int) -> npt.NDArray[np.unsignedinteger]:
        """The ids of one text of an example."""
        place = example * self.num_texts + text
        return self.tokens[self.offsets[place] : self.offsets[place + 1]]

    def lengths(self) -> npt.NDArray[np.int64]:
        """(n, N) words of each text."""
        return np.diff(self.offsets).reshape(-1, self.num_texts)

    def followed_by(self, other: Examples) -> Examples:
        """These examples and then the others, in memory, without wordings."""
        return Examples(
            np.concatenate([self.tokens, other.tokens.astype(self.tokens.dtype)]),
            np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]]),
            np.concatenate([self.labels, other.labels]),
            self.num_texts,
        )


class Signature(Record):
    """Where a prepared-data folder came from.

    Attributes:
        format: version of the folder's layout.
        dataset: name of the data set.
        options: the options of the command that decide the result.
        sources: the files read, in order.
        normalisation: the rule applied to the text before segmentation, in words.
        segmenter: how text was cut into words, in words.
        lexicon: SHA-256 over the sorted words of the lexicon, or None without one.
        lexicon_words: how many words that lexicon has, or None.
        lexicon_coverage: share of the running tokens, before ``<unk>`` replacement, that the lexicon knows; None without one.
        faults: the policy for bad bytes and what it met.
        end_of_sentence: whether each sentence ends with ``<eos>``, or with ``options["end_mark"]`` where that is there.
        vocabulary: fingerprint of the vocabulary.
        vocabulary_size: V.
        vocabulary_splits: the splits that the words were counted on; none for the words of other data; None where the version
            that prepared the folder did not say.
        size_of: what ``characters`` and ``bytes`` were counted on: ``source`` is the text of the source before normalisation
            and ``<unk>`` replacement; ``tokens`` is the words as the source gives them, ``<unk>`` and the like spelled out.
        splits: counts of each split.
        examples: for folders of examples: their texts and labels; None for a stream of words.
        chunks: the chunk vocabulary; None for a folder without.
    """

    format: int
    dataset: str
    options: dict[str, str | int | float | bool | None]
    sources: tuple[SourceFile, ...]
    normalisation: str
    segmenter: str
    lexicon: str | None
    lexicon_words: int | None
    lexicon_coverage: float | None
    faults: TextFaults
    end_of_sentence: bool
    vocabulary: str
    vocabulary_size: int
    vocabulary_splits: tuple[str, ...] | None = None
    size_of: str
    splits: dict[str, SplitSummary]
    examples: ExamplesSummary | None = None
    chunks: ChunksSummary | None = None


@final
class PreparedData:
    """A prepared-data folder, opened; use :meth:`open`."""

    def __init__(self, folder: Path, vocabulary: Vocabulary, signature: Signature) -> None:
        self.folder = folder
        self.vocabulary = vocabulary
        self.signature = signature
        self._more: dict[str, Examples] = {}
        self._checked: set[str] = set()

    def with_more(self, split: str, extra: Examples) -> PreparedData:
        """The same folder with further examples at the end of a split. Its files and its signature stay as they are."""
        other = PreparedData(self.folder, self.vocabulary, self.signature)
        other._more = {**self._more, split: extra}
        other._checked = self._checked
        return other

    @classmethod
    def open(cls, folder: Path | str) -> PreparedData:
        """Open a folder and check that its parts belong together.

        Raises:
            DataError: when it is no prepared-data folder, has another version, is torn, or its parts do not fit.
        """
        folder = Path(folder)
        signature = _read_signature(folder)
        vocabulary = Vocabulary.load(folder / VOCABULARY)
        if vocabulary.fingerprint != signature.vocabulary:
            raise DataError(
                f"{folder}: {VOCABULARY} has the fingerprint {vocabulary.fingerprint}, but {SIGNATURE} names "
                f"{signature.vocabulary}; the parts are of different runs; {_REMEDY} {folder}"
            )
        for split, summary in signature.splits.items():
            path = folder / f"{split}.bin"
            expected = summary.tokens * token_type(len(vocabulary)).itemsize
            size = path.stat().st_size if path.is_file() else None
            if size != expected:
                found = "is missing" if size is None else f"has {size} bytes"
                raise DataError(f"{path}: {found}, {SIGNATURE} asks for {expected}; the folder is torn; {_REMEDY} {folder}")
        for path, expected in _example_files(folder, signature):
            if not path.is_file() or path.stat().st_size != expected:
                raise DataError(f"{path}: is missing or has not the {expected} bytes of {SIGNATURE}; {_REMEDY} {folder}")
        model = folder / _MODEL
        if model.is_file() and (stated := _stated_model(signature)) and not _has(model, stated):
            raise DataError(f"{model}: is not the model by which the text was cut; {_REMEDY} {folder}")
        return cls(folder, vocabulary, signature)

    def check(self, split: str) -> None:
        """Compare the files of a split with the SHA-256 of the signature; once for each object.

        Raises:
            DataError: a file was changed or damaged after it was written, or cannot be read; it is named.
        """
        if split in self._checked:
            return
        summary, sets = self.signature.splits[split], self.signature.examples
        wanted = [([self.folder / f"{split}.bin"], summary.sha256)]
        if sets is not None and split in sets.splits:
            names = ["offsets.bin"] + ["labels.bin"] * (sets.labels is not None) + ["texts.jsonl"] * sets.keeps_text
            wanted.append(([self.folder / f"{split}.{name}" for name in names], sets.splits[split].sha256))
        for paths, sha256 in wanted:
            try:
                good = has_sha256(paths, sha256)
            except OSError as error:
                raise DataError(f"{error.filename or paths[0]}: cannot be read: {error.strerror}") from None
            if not good:
                named = " or ".join(str(path) for path in paths)
                raise DataError(
                    f"{named}: changed or damaged after it was written, its SHA-256 is not that of {SIGNATURE}; copy it again "
                    f"from where it came from, or {_REMEDY} {self.folder}"
                )
        if sets is not None and sets.keeps_text and split in sets.splits:
            _check_lines(self.folder, split)
        self._checked.add(split)

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits that the folder has, such as ``('train', 'valid', 'test')``."""
        return tuple(self.signature.splits)

    def tokens(self, split: str) -> npt.NDArray[np.unsignedinteger]:
        """The ids of a split, (N,) memory-mapped and read-only, uint16 when V <= 65536 and uint32 otherwise.

        Raises:
            DataError: for a split that the folder does not have, or that was changed after it was written.
        """
        if split not in self.signature.splits:
            raise DataError(f"{self.folder}: no split {split!r}; allowed: {', '.join(self.splits)}")
        self.check(split)
        if self.signature.splits[split].tokens == 0:  # a file without bytes cannot be mapped
            return np.zeros(0, dtype=token_type(len(self.vocabulary)))
        return np.memmap(self.folder / f"{split}.bin", dtype=token_type(len(self.vocabulary)), mode="r")

    def chunks(self) -> ChunkVocabulary:
        """The chunk vocabulary; in a folder without one the words alone, with chunks of one word.

        Raises:
            DataError: when the file is absent or torn, or belongs to another vocabulary or another run of ``preprocess``.
        """
        summary = self.signature.chunks
        if summary is None:
            return ChunkVocabulary(self.vocabulary, max_length=1)
        chunks = ChunkVocabulary.load(self.folder / CHUNKS, self.vocabulary)
        if chunks.fingerprint != summary.fingerprint:
            raise DataError(
                f"{self.folder / CHUNKS}: has the fingerprint {chunks.fingerprint}, {SIGNATURE} names {summary.fingerprint}; "
                f"the parts are of different runs; {_REMEDY} {self.folder}"
            )
        return chunks

    def examples(self, split: str) -> Examples:
        """The examples of a split.

        Raises:
            DataError: when the folder holds a stream of words, or for a split that it does not have.
        """
        tokens, summary = self.tokens(split), self.signature.examples
        if summary is None:
            raise DataError(
                f"{self.folder}: a stream of words, where examples are needed; write them with: "
                "sememekit preprocess snli|sst2|imdb|classification|gigaword|lcsts|switchboard SOURCE --out DIR"
            )
        offsets = np.memmap(self.folder / f"{split}.offsets.bin", dtype="<i8", mode="r")
        labels: npt.NDArray[np.uint16] = np.zeros(0, dtype="<u2")
        if summary.labels is not None:
            labels = np.memmap(self.folder / f"{split}.labels.bin", dtype="<u2", mode="r")
        wordings = Wordings(self.folder, split) if summary.keeps_text else None
        found = Examples(tokens, offsets, labels, len(summary.texts), wordings)
        return found.followed_by(self._more[split]) if split in self._more else found


def _example_files(folder: Path, signature: Signature) -> Iterator[tuple[Path, int]]:
    """Further files of a folder of examples, and the size of each."""
    if signature.examples is None:
        return
    for split, summary in signature.examples.splits.items():
        yield folder / f"{split}.offsets.bin", 8 * (summary.examples * len(signature.examples.texts) + 1)
        if signature.examples.labels is not None:
            yield folder / f"{split}.labels.bin", 2 * summary.examples
        if signature.examples.keeps_text:
            lines = folder / f"{split}.lines.bin"
            yield lines, 8 * (summary.examples + 1)
            size = 8 * (summary.examples + 1)
            if lines.is_file() and lines.stat().st_size == size:  # otherwise the line before was refused
                yield folder / f"{split}.texts.jsonl", int(np.fromfile(lines, dtype="<i8")[-1])


def _check_lines(folder: Path, split: str) -> None:
    """Make sure that ``SPLIT.lines.bin`` says where each line of the text begins, by the line ends of the text itself."""
    ends, position = [np.zeros(1, dtype=np.int64)], 0
    with (folder / f"{split}.texts.jsonl").open("rb") as stream:
        while block := stream.read(1 << 24):
            ends.append(np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")) + position + 1)
            position += len(block)
    path = folder / f"{split}.lines.bin"
    if not np.array_equal(np.concatenate(ends), np.fromfile(path, dtype="<i8")):
        raise DataError(f"{path}: does not say where the lines of {split}.texts.jsonl begin; {_REMEDY} {folder}")


def _stated_model(signature: Signature) -> str:
    """The beginning of the SHA-256 of the segmentation model, as its description ends, or nothing."""
    kind, _, stated = signature.segmenter.rpartition(" ")
    return stated if kind.startswith("SentencePiece") else ""


def _has(path: Path, beginning: str) -> bool:
    return hashlib.sha256(path.read_bytes()).hexdigest().startswith(beginning)


def token_type(vocabulary_size: int) -> np.dtype[np.unsignedinteger]:
    """The integer type of the id files: little-endian, two bytes when V <= 65536, otherwise four."""
    return np.dtype("<u2") if vocabulary_size <= 1 << 16 else np.dtype("<u4")


def _read_signature(folder: Path) -> Signature:
    if not folder.exists():
        raise DataError(f"{folder}: no such folder; {_FIRST} {folder}")
    if not folder.is_dir():
        raise DataError(f"{folder}: a file, where a prepared-data folder is needed; {_FIRST} DIR")
    path = folder / SIGNATURE
    if not path.is_file():
        raise DataError(f"{folder}: not a prepared-data folder, it has no {SIGNATURE}; {_FIRST} DIR")
    table = read_object(path, lambda why: DataError(f"{why}: torn or not JSON; {_REMEDY} {folder}"))
    version = table.get("format")
    if version != FORMAT:
        raise DataError(f"{path}: the folder has version {version!r:.60}, this sememekit reads {FORMAT}; {_REMEDY} {folder}")
    try:
        signature = Signature.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise DataError(f"{path}: key {place!r}: {first['msg']}; {_REMEDY} {folder}") from None
    for split in signature.splits:
        if not split.isidentifier():
            raise DataError(f"{path}: {split!r} cannot be the name of a split; {_REMEDY} {folder}")
    checksum = folder / CHECKSUM
    if checksum.is_file():
        stated = checksum.read_bytes().split()
        if not stated or hashlib.sha256(path.read_bytes()).hexdigest().encode() != stated[0]:
            raise DataError(
                f"{path}: changed or damaged after it was written, {CHECKSUM} beside it has another SHA-256; copy the folder "
                f"again from where it came from, or {_REMEDY} {folder}"
            )
    return signature


def write_signature(path: Path, signature: Signature) -> None:
    """Write the signature as JSON, and its SHA-256 beside it; the same signature gives the same bytes."""
    left_out = {
        name for name in ("chunks", "vocabulary_splits") if getattr(signature, name) is None
    }  # a folder without has the bytes it always had
    table = signature.model_dump(mode="json", exclude=left_out)
    if not signature.faults.long_sentences:
        del table["faults"]["long_sentences"]
    content = json.dumps(table, ensure_ascii=False, indent=1).encode() + b"\n"
    path.write_bytes(content)
    path.with_name(CHECKSUM).write_text(f"{hashlib.sha256(content).hexdigest()}  {path.name}\n", encoding="ascii")
