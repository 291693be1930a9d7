"""The perplexity protocol: its divisor, and the version that makes two figures comparable."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from pydantic import ConfigDict

from sememekit.config import Record


@dataclass(frozen=True)
class Tally:
    """Total nats and the number of predicted tokens. Tallies add up; a mean of means cannot be written.

    >>> (Tally(4.0, 2) + Tally(2.0, 1)).mean
    2.0
    """

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
    characters), ``bits_per_byte`` nats / ln 2 / UTF-8 bytes, both of the source text; None where those were not counted.
    """

    model_config = ConfigDict(allow_inf_nan=True)

    perplexity: float
    nats: float
    tokens: int
    per_character: float | None = None
    bits_per_byte: float | None = None


def perplexity_of(tally: Tally, characters: int = 0, num_bytes: int = 0) -> Perplexity:
    """Perplexity by word, by character and bits a byte; ``characters`` and ``num_bytes`` of the source text without white
    space, 0 where unknown."""
    return Perplexity(
        perplexity=tally.perplexity,
        nats=tally.nats,
        tokens=tally.count,
        per_character=Tally(tally.nats, characters).perplexity if characters else None,
        bits_per_byte=tally.nats / math.log(2) / num_bytes if num_bytes else None,
    )


def unigram_tally(train: np.ndarray, tokens: np.ndarray, num_words: int) -> Tally:
    """Nats of ``tokens`` (m,), except the first, under the add-one unigram model of ``train`` (n,): the unigram baseline."""
    counts = np.bincount(train, minlength=num_words) + 1.0
    log_probs = np.log(counts / counts.sum())
    predicted = tokens[1:]
    return Tally(float(-log_probs[predicted].sum()), len(predicted))
