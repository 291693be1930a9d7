"""The perplexity protocol: divisor, version, and predictions with their losses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import ConfigDict
from torch import Tensor

from sememekit.config import Record


@dataclass(frozen=True)
class Tally:
    """Total nats and the number of predicted tokens. Tallies are added, so that means are never averaged.

    >>> (Tally(4.0, 2) + Tally(2.0, 1)).mean
    2.0"""

    nats: float = 0.0
    count: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.nats + other.nats, self.count + other.count)

    @property
    def mean(self) -> float:
        """Nats a token; NaN for an empty tally."""
        return self.nats / self.count if self.count else math.nan

    @property
    def perplexity(self) -> float:
        """exp of the mean; infinite where that overflows, NaN for an empty tally."""
        return math.exp(self.mean) if not self.mean > 700 else math.inf


PROTOCOL_VERSION = 1


class Perplexity(Record):
    """Perplexity of a text in three units; see docs/perplexity.md.

    ``perplexity`` is exp(nats / tokens), by word; infinite for a model that diverged. ``per_character`` is exp(nats /
    characters), ``bits_per_byte`` nats / ln 2 / UTF-8 bytes, both of the source text; None if not counted."""

    model_config = ConfigDict(allow_inf_nan=True)

    perplexity: float
    nats: float
    tokens: int
    per_character: float | None = None
    bits_per_byte: float | None = None


def perplexity_of(tally: Tally, characters: int = 0, num_bytes: int = 0) -> Perplexity:
    """Perplexity by word and character, and bits a byte; sizes of the source text without white space, 0 where unknown."""
    character = Tally(tally.nats, characters).perplexity if characters else None
    byte = tally.nats / math.log(2) / num_bytes if num_bytes else None
    return Perplexity(
        perplexity=tally.perplexity, nats=tally.nats, tokens=tally.count, per_character=character, bits_per_byte=byte
    )


def unigram_tally(train: np.ndarray, tokens: np.ndarray, num_words: int) -> Tally:
    """Nats of ``tokens`` (m,), except the first, under the add-one unigram model of ``train`` (n,): the unigram baseline."""
    counts = np.bincount(train, minlength=num_words) + 1.0
    log_probs = np.log(counts / counts.sum())
    predicted = tokens[1:]
    return Tally(float(-log_probs[predicted].sum()), len(predicted))


@dataclass(frozen=True)
class Scored:
    """A segment of scored text."""

    targets: Tensor
    """(T, B) word ids that were predicted."""
    nats: Tensor
    """(T, B) negative log-likelihood of each."""
    mask: Tensor
    """(T, B) False for padding."""
    parts: Mapping[str, Tensor] = field(default_factory=dict)
    """Terms whose sum is ``nats``, (T, B) each: see ``Decoder.nll_parts``."""
    hidden: Tensor | None = None
    """(T, B, H) the hidden states of the predictions; None for tasks without."""
    places: NDArray[np.int64] | None = None
    """(N, 2) the example and the position in its target of each prediction, for tasks of pairs."""


def tallies(chunks: Iterable[Scored]) -> tuple[Tally, dict[str, Tally]]:
    """Nats and predicted tokens of scored text, and the same for each of its parts, summed in float64."""
    nats: dict[str, Tensor] = {}
    whole, count = torch.zeros((), dtype=torch.float64), 0
    for chunk in chunks:
        count += int(chunk.mask.sum())
        whole += chunk.nats.double().masked_fill(~chunk.mask, 0.0).sum().cpu()
        for name, part in chunk.parts.items():
            total = part.double().masked_fill(~chunk.mask, 0.0).sum().cpu()
            nats[name] = nats[name] + total if name in nats else total
    return Tally(float(whole), count), {name: Tally(float(total), count) for name, total in nats.items()}


def perplexity_metrics(chunks: Iterable[Scored]) -> dict[str, float]:
    """Perplexity, nats and tokens of scored text, and the perplexity of each term of the loss; their product is the first."""
    whole, parts = tallies(chunks)
    metrics = {"perplexity": whole.perplexity, "nats": whole.nats, "tokens": whole.count}
    return metrics | {f"{name}_perplexity": tally.perplexity for name, tally in parts.items()}
