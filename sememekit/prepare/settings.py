"""What the user may choose when a corpus is turned into prepared data."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from sememekit.config import Settings
from sememekit.text.segmenters import PieceModel

SHARD_BYTES: Final = 64 << 20


class PreprocessSettings(Settings):
    """Options of ``preprocess``. None means the default of the data set.

    Attributes:
        segmenter: ``characters``, ``fmm``, ``jieba``, ``none``, ``sentencepiece``, or ``package.module:Class``.
        hmm: let jieba guess words outside its dictionary.
        pieces: size of a SentencePiece model.
        piece_model: ``unigram`` or ``bpe``.
        lower: bring the text into lower case.
        numbers_to: the word that replaces every number, such as ``N``; None keeps the numbers.
        max_length: sentences of more words are left out of all splits (with a SentencePiece model: words between white space);
            None for no limit.
        min_count: words that occur less often, in the splits that the vocabulary is counted on, become ``<unk>``.
        max_vocabulary: largest size of the vocabulary, ``<unk>`` and ``<eos>`` included; rarer words become ``<unk>``.
        end_of_sentence: whether a sentence ends with ``<eos>`` (with the words of pairs: with ``</s>``).
        chunks: how many of the most frequent n-grams of train the chunk vocabulary takes; 0 for no chunk vocabulary.
        chunk_length: L, words of such an n-gram at most; None without chunks.
        seed: of the shuffle and the division into splits.
        lexicon: words that the segmenter knows: ``FORMAT:PATH``, ``open`` for the lexicon that ships with sememekit, or
            ``none``; of several lexicons all words.
        vocabulary: prepared data or a run folder whose words are used as they are, so that a model of those data can be
            evaluated on these. The text is cut as theirs was, unless ``segmenter`` is ``none`` for text that is cut already; a
            word that they lack becomes ``<unk>``. Of examples no split must be present then, and one file is ``test``.
        turns: for ``switchboard``: how many turns before the answer make its source; None for ten.
        errors: ``strict`` (stop), ``replace`` or ``skip`` for bytes that are not UTF-8 and for NUL; they are counted in the
            signature.
        workers: processes for segmenting; more than one uses "spawn", so a script needs ``if __name__ == "__main__"``.
        shard_bytes: size of a shard; a killed run continues after its last finished shard. Lines above 1 MiB are cut where a
            shard ends, so with such lines the size of a shard can decide where a sentence is cut.
        force: replace the prepared data that the output folder holds; without it they are an error.
    """

    segmenter: str | None = None
    hmm: bool = False
    pieces: int = 8000
    piece_model: PieceModel = "unigram"
    lower: bool = False
    numbers_to: str | None = None
    max_length: int | None = None
    min_count: int | None = None
    max_vocabulary: int | None = None
    end_of_sentence: bool | None = None
    chunks: int = 0
    chunk_length: int | None = None
    seed: int = 1
    lexicon: str | tuple[str, ...] | None = None
    vocabulary: Path | None = None
    turns: int | None = None
    errors: str = "strict"
    workers: int = 1
    shard_bytes: int = SHARD_BYTES
    force: bool = False

    unrecorded: ClassVar[frozenset[str]] = frozenset(
        {"lexicon", "vocabulary", "turns", "errors", "workers", "shard_bytes", "force"}
    )
    """Fields that the signature of the data does not hold, or holds elsewhere."""
