"""Scoring: targets in contexts, and a whole split unit by unit (sentence, pair or example), for figures and their intervals."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sememekit.data.prepared import PreparedData
from sememekit.decoders.base import Decoder
from sememekit.measure.perplexity import Scored
from sememekit.progress import OneStage

ENDS: Final = ("。", "！", "？", ".", "!", "?")  # words that end a sentence in a text without ``<eos>``
BLOCK: Final = 40  # tokens of a block that counts as a sentence in a text without sentence ends
WITH_END: Final = "sentences, each with its <eos>"

PAIRS: Final = {"columns": "pairs", "state": "source", "eos": "predicted"}
"""Part of the signature of pairs: target words and end marks are predicted from the source and the previous words."""
SENTENCES: Final = {"columns": "none", "state": "sentence"}
"""Part of the signature of sentences: every token and end mark is predicted, and no state is carried over."""


@dataclass(frozen=True)
class UnitScores:
    """Scored predictions, each with its unit: a sentence, pair or example."""

    units: NDArray[np.int64]
    """(N,) the unit number of each prediction."""
    values: NDArray[np.float64]
    """(N,) nats of each prediction; for labels 1 if correct, otherwise 0."""
    counts: NDArray[np.int64]
    """(N,) number of predictions behind each value: 1, or the tokens of a whole sentence."""
    words: NDArray[np.int64] | None = None
    """(N,) the target word of each prediction; None if single words have no values."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Nats of each term of the loss, summed over N: see ``Decoder.nll_parts``."""


@dataclass(frozen=True)
class Scoring:
    """Scoring of a split by a task, as ``evaluate-ppl`` and ``compare`` use it.

    >>> scoring = task.scored(data, "test")
    >>> nats = sum(part.values.sum() for part in scoring.chunks(silent))"""

    chunks: Callable[[OneStage], Iterator[UnitScores]]
    """Yields every prediction of the split once, without dropout; takes a callback for progress."""
    unit: str
    """Name of the unit; ``num_units`` is their number."""
    num_units: int
    figure: Literal["perplexity", "accuracy"] = "perplexity"
    """True if the mean of the values is an accuracy or the logarithm of a perplexity."""
    columns: int = 1
    """Number of columns of running text."""
    reading: Mapping[str, str] = field(default_factory=dict)
    """Parts of the signature that differ from those for a fixed model on running text."""
    how: str = ""
    """For texts other than running text, the reason in messages: "reads pairs, not a running text"."""
    without: tuple[str, ...] = ()
    """Options that do not apply to this reading: "by", "overlay", "cache", "dynamic", "batch_size"."""
    counted: str = "tokens"
    """Unit of progress."""
    source_lengths: NDArray[np.int64] | None = None
    """(n,) words of the source of each pair; None for other texts."""


def score_targets(
    decoder: Decoder, hidden: Tensor, targets: Tensor, mask: Tensor, places: NDArray[np.int64] | None = None
) -> Scored:
    """Score ``targets`` (...) in the contexts ``hidden`` (..., H), with the decoder's named terms of the loss, if any."""
    with torch.no_grad():
        parts = decoder.nll_parts(hidden, targets)
        nats = torch.stack([*parts.values()]).sum(dim=0) if parts else decoder.nll(hidden, targets)
    return Scored(targets, nats, mask, parts, hidden, places)


def unit_scores(scored: Scored, units: NDArray[np.int64]) -> UnitScores:
    """Return a segment as ``UnitScores``; ``units`` (N,) are for its N unmasked predictions, in rows of the mask."""
    values = scored.nats[scored.mask].double().cpu().numpy()
    words = scored.targets[scored.mask].cpu().numpy().astype(np.int64)
    parts = {name: float(part[scored.mask].double().sum()) for name, part in scored.parts.items()}
    return UnitScores(units, values, np.ones(len(values), dtype=np.int64), words, parts)


def stream_scoring(
    data: PreparedData,
    split: str,
    segments: Callable[[OneStage], Iterable[Scored]],
    columns: int,
    reading: Mapping[str, str] = MappingProxyType({}),
) -> Scoring:
    """Return the scoring of a stream by sentences; ``segments`` yields its parts in the layout of ``evaluation_columns``."""
    unit_P, unit = sentences_of(data, split)
    length = -(-len(unit_P) // columns)

    def chunks(progress: OneStage) -> Iterator[UnitScores]:
        begin = 0
        for scored in segments(progress):
            mask = scored.mask.cpu().numpy()
            rows = np.arange(begin, begin + len(mask))[:, None] + np.arange(columns) * length
            yield unit_scores(scored, unit_P[rows[mask]])
            begin += len(mask)

    return Scoring(chunks, unit, int(unit_P.max(initial=-1)) + 1, columns=columns, reading=reading)


def sentences_of(data: PreparedData, split: str) -> tuple[NDArray[np.int64], str]:
    """Return the sentence of each prediction of a stream, (P,) rising from 0, and the definition of a sentence.

    A sentence ends with ``<eos>`` where the data have it, otherwise with a mark of ``ENDS``; a text with neither is cut into
    blocks of ``BLOCK`` tokens."""
    tokens, vocabulary = np.asarray(data.tokens(split)), data.vocabulary
    if data.signature.end_of_sentence and vocabulary.end_id is not None:
        ends, unit = [vocabulary.end_id], WITH_END
    else:
        marks = [mark for mark in ENDS if mark in vocabulary]
        ends, unit = [vocabulary.id(mark) for mark in marks], f"sentences, which end with {' '.join(marks)}"
    is_end = np.isin(tokens, ends)
    if not is_end.any():
        return np.arange(len(tokens) - 1) // BLOCK, f"blocks of {BLOCK} tokens, as the text has no ends of sentences"
    number: NDArray[np.int64] = np.cumsum(is_end) - is_end
    return number[1:] - number[1:2], unit
