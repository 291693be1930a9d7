"""Nats of a text by sentence: what is needed to resample sentences."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from sememekit.analysis.word_groups import WordNats
from sememekit.data.prepared import PreparedData
from sememekit.measure import Tally
from sememekit.measure.scored import Scored

ENDS: Final = ("。", "！", "？", ".", "!", "?")
"""Words that end a sentence in a text without ``<eos>``."""
BLOCK: Final = 40
"""Tokens that stand for a sentence in a text that has no ends of sentences at all."""


Sums = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]
"""Nats and number of predictions, sentence by sentence: (n,) each."""


class SentenceNats:
    """The nats of whole sentences, of a model that gives words none of their own.

    Attributes:
        unit: what a sentence is, for people.
    """

    unit = "sentences, each with its <eos>"

    def __init__(self, lengths: npt.NDArray[np.int64]) -> None:
        """Args: lengths: (n,) tokens of each sentence, its end mark included."""
        self._lengths, self._nats = lengths, np.full(len(lengths), np.nan)

    def add(self, numbers: npt.NDArray[np.int64], nats: npt.NDArray[np.float64]) -> None:
        """Keep the nats of some sentences, by their numbers."""
        self._nats[numbers] = nats

    def sums(self, chosen: npt.NDArray[np.bool_] | None = None) -> Sums:
        """Nats and tokens of every sentence; ValueError for ``chosen`` words, which have no nats here."""
        if chosen is not None:
            raise ValueError("whole sentences were scored, and no words")
        return self._nats, self._lengths

    @property
    def total(self) -> Tally:
        return Tally(float(self._nats.sum()), int(self._lengths.sum()))


class TextNats(WordNats):
    """``WordNats`` that keep each prediction with the sentence of its word: what is needed to resample sentences.

    Attributes:
        unit: what a sentence is in this text, for people.
    """

    def __init__(self, data: PreparedData, split: str) -> None:
        super().__init__(len(data.vocabulary))
        self._data, self._split, self._row = data, split, 0
        self._kept: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.int64]]] = []
        self._of_stream: npt.NDArray[np.int64] | None = None
        self.unit = "pairs"

    def add(self, scored: Scored) -> None:
        """Count a chunk of scored text; chunks of a stream come in its order."""
        super().add(scored)
        mask = scored.mask.cpu()
        if scored.places is not None:
            sentence = np.asarray(scored.places[:, 0], dtype=np.int64)
        else:
            if self._of_stream is None:
                self._of_stream, self.unit = sentences_of(self._data, self._split)
            num_rows, num_columns = mask.shape
            length = -(-len(self._of_stream) // num_columns)  # of a column: the layout of ``evaluation_columns``
            rows = np.arange(self._row, self._row + num_rows)[:, None] + np.arange(num_columns) * length
            sentence = self._of_stream[rows[mask.numpy()]]
            self._row += num_rows
        words = scored.targets.cpu()[mask].numpy().astype(np.int64)
        self._kept.append((words, scored.nats.cpu()[mask].double().numpy(), sentence))

    def sums(self, chosen: npt.NDArray[np.bool_] | None = None) -> Sums:
        """Nats and number of the predictions of ``chosen`` words (V,), of all words without."""
        words, nats, sentence = (np.concatenate(part) for part in zip(*self._kept, strict=True))
        size, own = int(sentence.max()) + 1, slice(None) if chosen is None else chosen[words]
        sums = np.bincount(sentence[own], nats[own], minlength=size)
        return sums.astype(np.float64), np.bincount(sentence[own], minlength=size).astype(np.int64)


def sentences_of(data: PreparedData, split: str) -> tuple[npt.NDArray[np.int64], str]:
    """The sentence of each prediction of a stream, (P,) rising from 0, and what a sentence is.

    A sentence ends with ``<eos>`` where the data have it, otherwise with a mark of ``ENDS``; a text with neither is cut into
    blocks of ``BLOCK`` tokens.
    """
    tokens, vocabulary = np.asarray(data.tokens(split)), data.vocabulary
    if data.signature.end_of_sentence and vocabulary.end_id is not None:
        ends, unit = [vocabulary.end_id], "sentences, each with its <eos>"
    else:
        marks = [mark for mark in ENDS if mark in vocabulary]
        ends, unit = [vocabulary.id(mark) for mark in marks], f"sentences, which end with {' '.join(marks)}"
    is_end = np.isin(tokens, ends)
    if not is_end.any():
        return np.arange(len(tokens) - 1) // BLOCK, f"blocks of {BLOCK} tokens, as the text has no ends of sentences"
    number: npt.NDArray[np.int64] = np.cumsum(is_end) - is_end
    return number[1:] - number[1], unit
