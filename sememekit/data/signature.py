"""The signature of prepared data: sources, processing, and the SHA-256 of the result."""

import hashlib
import json
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from sememekit.config import Record, first_problem
from sememekit.errors import DataError
from sememekit.files import is_there, read_bytes, read_object, refuse_odd_files, typed
from sememekit.text.reading import TextFaults

FORMAT: Final = 1
SIGNATURE: Final = "signature.json"
CHECKSUM: Final = "signature.sha256"
LABELS: Final = "{}.sentence-labels.txt"
"""File of the labels of a running text; ``{}`` for the split."""


def remedy(folder: str | Path) -> str:
    """Return advice on preparing a folder again, as a clause of a message."""
    return f"write it with: {typed('sememekit', 'preprocess', 'DATASET', 'SOURCE', '--force', '--out', folder)}"


def _first(folder: str | Path) -> str:
    return remedy(folder).replace(" --force", "", 1)


class SourceFile(Record):
    """A source: its name without folders, and the size in bytes and SHA-256 of the file as it is on the disk."""

    split: str
    name: str
    bytes: int
    sha256: str


class SplitSummary(Record):
    """Counts of one split."""

    tokens: int
    types: int
    """tokens, types: ids in the file, ``<eos>`` included, and distinct ones."""
    unknown: int
    unknown_rate: float
    """unknown, unknown_rate: number and share (rounded to 6 decimals) of ``<unk>``."""
    sentences: int
    """Lines or sentences."""
    characters: int
    bytes: int
    """characters, bytes: of the text without white space, in UTF-8 (see ``Signature.size_of``)."""
    sha256: str
    """SHA-256 of the file of ids."""


class ExampleSplit(Record):
    """The number of examples of a split, in all and by label, and the SHA-256 over the files of offsets, labels and texts."""

    examples: int
    of_label: dict[str, int]
    sha256: str


class ExamplesSummary(Record):
    """The part of a signature about examples."""

    texts: tuple[str, ...]
    labels: tuple[str, ...] | None
    """texts, labels: names of the texts of an example, and of the labels by id; None for examples without."""
    left_out: dict[str, int]
    """Number of examples left out, by reason (a label, an empty text)."""
    splits: dict[str, ExampleSplit]
    keeps_text: bool = False
    """True if source and references of each example are stored as text."""


class ChunksSummary(Record):
    """The chunk vocabulary of a folder: the number of n-grams, L, the count of the rarest n-gram (0 without n-grams), and the
    fingerprint of ``chunks.tsv``."""

    ngrams: int
    length: int
    rarest: int
    fingerprint: str


class Signature(Record):
    """The origin of a prepared-data folder."""

    format: int
    """Version of the folder's layout."""
    dataset: str
    options: dict[str, str | int | float | bool | None]
    """Options of the command that decide the result."""
    sources: tuple[SourceFile, ...]
    """The files read, in order."""
    normalisation: str
    segmenter: str
    """normalisation, segmenter: processing before segmentation, and the segmenter, in words."""
    lexicon: str | None
    lexicon_words: int | None
    """lexicon, lexicon_words: SHA-256 over the sorted words of the lexicon, and their number; None without one."""
    lexicon_coverage: float | None
    """Share of tokens, before ``<unk>`` replacement, that the lexicon knows; None without one."""
    faults: TextFaults
    """The policy for invalid bytes, and the faults that occurred."""
    end_of_sentence: bool
    """True if each sentence ends with ``<eos>``, or with ``options["end_mark"]`` if set."""
    vocabulary: str
    vocabulary_size: int
    """vocabulary, vocabulary_size: fingerprint of the vocabulary, and V."""
    vocabulary_splits: tuple[str, ...]
    """The splits on which words were counted; none for a vocabulary of other data."""
    size_of: str
    """The text of ``characters`` and ``bytes``: ``source`` before normalisation and ``<unk>`` replacement, or ``tokens``, the
    words of the source with ``<unk>`` and the like spelled out."""
    splits: dict[str, SplitSummary]
    examples: ExamplesSummary | None = None
    chunks: ChunksSummary | None = None
    """examples, chunks: None for a running text, and for a folder without chunks."""
    labels: dict[str, str] | None = None
    """Split -> SHA-256 of the labels of its sentences; None for a running text without."""


def read_signature(folder: Path) -> Signature:
    """The signature of a prepared-data folder, compared with its checksum. Raises DataError: none, another version, or torn."""
    if not folder.exists():
        raise DataError(f"{folder}: no such folder; {_first(folder)}")
    if not folder.is_dir():
        raise DataError(f"{folder}: a file, where a prepared-data folder is needed; {_first('DIR')}")
    path = folder / SIGNATURE
    if (folder / "plan.json").is_file():
        raise DataError(
            f"{folder}: a run, where a prepared-data folder is needed; give the one that it was trained on, or {_first('DIR')}"
        )
    if not is_there(path, DataError):
        raise DataError(f"{folder}: not a prepared-data folder, it has no {SIGNATURE}; {_first('DIR')}")
    refuse_odd_files(folder, DataError)
    table = read_object(path, lambda why: DataError(f"{why}: torn or not JSON; {remedy(folder)}"))
    version = table.get("format")
    if version != FORMAT:
        raise DataError(f"{path}: the folder has version {version!r:.60}, this sememekit reads {FORMAT}; {remedy(folder)}")
    try:
        signature = Signature.model_validate(table)
    except ValidationError as error:
        raise DataError(f"{path}: {first_problem(error)}; {remedy(folder)}") from None
    for split in signature.splits:
        if not split.isidentifier():
            raise DataError(f"{path}: {split!r} cannot be the name of a split; {remedy(folder)}")
    stated = read_bytes(folder / CHECKSUM, lambda why: DataError(f"{why}; {remedy(folder)}")).split()
    if stated[:1] != [hashlib.sha256(path.read_bytes()).hexdigest().encode()]:
        raise DataError(
            f"{path}: changed or damaged after it was written, {CHECKSUM} beside it has another SHA-256; copy the folder "
            f"again from where it came from, or {remedy(folder)}"
        )
    return signature


def write_signature(path: Path, signature: Signature) -> None:
    """Write the signature as JSON, and its SHA-256 beside it; the same signature gives the same bytes."""
    table = signature.model_dump(
        mode="json", exclude={name for name in ("chunks", "labels") if getattr(signature, name) is None}
    )
    for name in ("long_sentences", "end_marks"):
        if not table["faults"][name]:
            del table["faults"][name]
    content = json.dumps(table, ensure_ascii=False, indent=1).encode() + b"\n"
    path.write_bytes(content)
    path.with_name(CHECKSUM).write_text(f"{hashlib.sha256(content).hexdigest()}  {path.name}\n", encoding="ascii")
