"""The signature of prepared data: where their text came from, what was done to it, and the SHA-256 of what came out."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from sememekit.config import Record
from sememekit.errors import DataError
from sememekit.files import read_object
from sememekit.text.reading import TextFaults

FORMAT: Final = 1
SIGNATURE: Final = "signature.json"
CHECKSUM: Final = "signature.sha256"
REMEDY: Final = "write it with: sememekit preprocess DATASET SOURCE --force --out"
_FIRST: Final = REMEDY.replace(" --force", "")


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


def read_signature(folder: Path) -> Signature:
    """The signature of a prepared-data folder, compared with its checksum where there is one. Raises DataError: no such folder,
    one of another version, or a torn one."""
    if not folder.exists():
        raise DataError(f"{folder}: no such folder; {_FIRST} {folder}")
    if not folder.is_dir():
        raise DataError(f"{folder}: a file, where a prepared-data folder is needed; {_FIRST} DIR")
    path = folder / SIGNATURE
    if not path.is_file():
        raise DataError(f"{folder}: not a prepared-data folder, it has no {SIGNATURE}; {_FIRST} DIR")
    table = read_object(path, lambda why: DataError(f"{why}: torn or not JSON; {REMEDY} {folder}"))
    version = table.get("format")
    if version != FORMAT:
        raise DataError(f"{path}: the folder has version {version!r:.60}, this sememekit reads {FORMAT}; {REMEDY} {folder}")
    try:
        signature = Signature.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise DataError(f"{path}: key {place!r}: {first['msg']}; {REMEDY} {folder}") from None
    for split in signature.splits:
        if not split.isidentifier():
            raise DataError(f"{path}: {split!r} cannot be the name of a split; {REMEDY} {folder}")
    checksum = folder / CHECKSUM
    if checksum.is_file():
        stated = checksum.read_bytes().split()
        if not stated or hashlib.sha256(path.read_bytes()).hexdigest().encode() != stated[0]:
            raise DataError(
                f"{path}: changed or damaged after it was written, {CHECKSUM} beside it has another SHA-256; copy the folder "
                f"again from where it came from, or {REMEDY} {folder}"
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
