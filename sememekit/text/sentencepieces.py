"""Pieces of words by SentencePiece: segment with a model, or train one."""

import hashlib
import re
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, final

from sememekit.errors import DataError
from sememekit.files import read_bytes
from sememekit.text.vocabulary import UNKNOWN

PieceModel = Literal["unigram", "bpe"]


@final
class SentencePieces:
    """Pieces of a SentencePiece model; text that the model cannot spell becomes ``<unk>``."""

    def __init__(self, model: Path | str) -> None:
        """Load a model. Raises DataError: the file is absent, or not a SentencePiece model."""
        import sentencepiece

        content = read_bytes(Path(model), DataError)
        try:
            self._model: Any = sentencepiece.SentencePieceProcessor(model_proto=content or b"empty")
        except RuntimeError:
            raise DataError(
                f"{model}: no SentencePiece model; give the file that 'spm_train' of SentencePiece or 'sememekit preprocess "
                "--segmenter sentencepiece' wrote, DATA/sentencepiece.model"
            ) from None
        pieces = [self._model.id_to_piece(index) for index in range(len(self._model))]
        pieces[self._model.unk_id()] = UNKNOWN
        self._pieces: list[str] = pieces
        self.description = f"SentencePiece, {len(pieces)} pieces, {hashlib.sha256(content).hexdigest()[:16]}"

    def segment(self, text: str) -> list[str]:
        """Pieces of a text; ``▁`` stands for the white space before a word."""
        return [self._pieces[index] for index in self._model.encode(" ".join(text.split()))]

    def as_written(self, text: str) -> list[tuple[str, str]]:
        """Return the pieces of ``segment``, each with its original text before normalisation by the model.

        Joined, these originals are the text with single blanks. A text whose characters are all dropped has no pieces."""
        text = " ".join(text.split())
        found = self._model.encode(text, return_type="offset_mapping")
        # What the model drops at either end (U+200B, U+FEFF, U+FFFD) lies in no span: the first and the last piece have it.
        ends = [end for _, end in found["offsets"][:-1]]
        begins = [0, *ends] if found["ids"] else []
        spans = zip(found["ids"], begins, [*ends, len(text)], strict=False)
        return [(self._pieces[index], text[begin:end]) for index, begin, end in spans]


def train_sentencepieces(sentences: Iterable[str], pieces: int, seed: int, kind: PieceModel = "unigram") -> bytes:
    """Train a SentencePiece model (Kudo 2018, or byte pair encoding: Sennrich et al. 2016) and return its file.

    One thread and a fixed seed: the same sentences give the same bytes. Raises DataError: more pieces than the text allows; the
    message names the possible number."""
    import sentencepiece

    sentencepiece.set_random_generator_seed(seed % 2**32)  # it takes 32 bits
    model = BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            vocab_size=pieces,
            max_sentence_length=1 << 30,  # bytes; SentencePiece silently drops longer ones, by default above 4192
            model_type=kind,
            num_threads=1,
            character_coverage=0.9995,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise DataError(f"--pieces {pieces}: SentencePiece cannot train on this text: {_reason(str(error))}") from None
    return model.getvalue()


def _reason(message: str) -> str:
    most = re.search(r"Vocabulary size too high .* value <= (\d+)", message)
    if most is not None:
        return f"it has no more than {most[1]} pieces; give --pieces {most[1]} or fewer, or more text"
    fewest = re.search(r"smaller than required_chars\. \d+ vs (\d+)", message)
    if fewest is not None:
        return f"its characters alone need {fewest[1]}; give --pieces {fewest[1]} or more"
    if "!sentences_.empty()" in message:
        return "train has no sentence that it can read; give more text"
    return re.sub(r"^[A-Z_]+: \S+\(\d+\) \[.*?\] ", "", message).strip() or "it gives no reason"
