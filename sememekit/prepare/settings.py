"""Options of ``preprocess``, and its report."""

from pathlib import Path
from typing import ClassVar, Final

from sememekit.config import Record, Seed, Settings
from sememekit.data.signature import Signature
from sememekit.prepare.overlap import Overlap
from sememekit.text.sentencepieces import PieceModel

SHARD_BYTES: Final = 64 << 20


class PreprocessSettings(Settings):
    """Options of ``preprocess``. None means the default of the data set."""

    segmenter: str | None = None
    """``characters``, ``fmm``, ``jieba``, ``none``, ``sentencepiece``, or ``package.module:Class``."""
    hmm: bool = False
    """Let jieba guess words outside its dictionary."""
    pieces: int = 8000
    piece_model: PieceModel = "unigram"
    """pieces, piece_model: size of a SentencePiece model, and ``unigram`` or ``bpe``."""
    lower: bool = False
    """Bring the text into lower case."""
    numbers_to: str | None = None
    """The word that replaces every number, such as ``N``; None keeps the numbers."""
    max_length: int | None = None
    """Longest sentence in words (with a SentencePiece model: between white space); longer ones are left out of all splits. None
    for no limit."""
    min_count: int | None = None
    """Words that are rarer (in the splits on which the vocabulary is counted) become ``<unk>``."""
    max_vocabulary: int | None = None
    """Largest size of the vocabulary, ``<unk>`` and ``<eos>`` included; rarer words become ``<unk>``."""
    hold_out: float | None = None
    """Share of the words of 20 to 200 occurrences that are drawn to become ``<unk>``; ``held-out.tsv`` lists them with their
    counts, for ``extend``."""
    end_of_sentence: bool | None = None
    """True if a sentence ends with ``<eos>`` (with the vocabulary of pairs: with ``</s>``)."""
    chunks: int = 0
    chunk_length: int | None = None
    """chunks, chunk_length: number of the most frequent n-grams of train in the chunk vocabulary; L, their maximum length."""
    seed: Seed = 1
    """The seed of the shuffle, the division into splits and the draw of ``hold_out``."""
    lexicon: str | tuple[str, ...] | None = None
    """Words of the segmenter: ``FORMAT:PATH``, ``open`` for the shipped lexicon, or ``none``; several are joined."""
    vocabulary: Path | None = None
    """Prepared data or a run folder whose vocabulary is used, so that a model with this vocabulary can be evaluated on these
    data; other words become ``<unk>``. The text is segmented in the same way, unless ``segmenter`` is ``none`` for segmented
    text. Examples then need no split, and one file is ``test``."""
    column: str | None = None
    """For a set of examples, the text to keep as running text for language models, such as ``target``, each with an end of
    sentence; for ``plain`` the column of .jsonl and .parquet files (default: ``text``)."""
    turns: int | None = None
    """For ``switchboard``: the number of turns before the answer in its source; None for ten."""
    errors: str = "strict"
    """For NUL and bytes that are not UTF-8: ``strict`` (stop), ``replace`` or ``skip``; the signature counts them."""
    workers: int = 1
    """Processes at a time; more than one uses "spawn", so a script needs ``if __name__ == "__main__"``."""
    engine: str = "local"
    """Place where processes run: ``local``, ``dask:tcp://HOST:PORT`` or ``slurm:KEY=VALUE,...``."""
    shard_bytes: int = SHARD_BYTES
    """Size of a shard; a killed run continues after its last finished shard. Lines above 1 MiB are cut at the end of a shard,
    so the shard size can change the place of a cut."""
    force: bool = False
    """Replace the prepared data in the output folder."""

    unrecorded: ClassVar[frozenset[str]] = frozenset(
        {"lexicon", "vocabulary", "column", "turns", "errors", "workers", "engine", "shard_bytes", "force"}
    )
    """Fields that are not among the options of the signature."""


class PreprocessReport(Record):
    """The result of ``preprocess``: the signature of the folder, and the overlap of each other split with train."""

    folder: str
    signature: Signature
    overlap: dict[str, Overlap]
