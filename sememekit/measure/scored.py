"""Predictions with their nats, and the metrics of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sememekit.measure.perplexity import Tally


@dataclass(frozen=True)
class Scored:
    """A segment of scored text.

    Attributes:
        targets: (T, B) word ids that were predicted.
        nats: (T, B) negative log-likelihood of each.
        mask: (T, B) which of them count; the rest is padding.
        parts: terms that ``nats`` is the sum of, (T, B) each: see ``Decoder.nll_parts``.
        hidden: (T, B, H) the hidden states that they were predicted from; None for a task that has none.
        places: (N, 2) the example and the position in its target of each prediction, for tasks of pairs.
    """

    targets: Tensor
    nats: Tensor
    mask: Tensor
    parts: Mapping[str, Tensor] = field(default_factory=dict)
    hidden: Tensor | None = None
    places: NDArray[np.int64] | None = None


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
    """Perplexity, nats and tokens of scored text, and the perplexity of each term of the loss; their product is the whole."""
    whole, parts = tallies(chunks)
    metrics = {"perplexity": whole.perplexity, "nats": whole.nats, "tokens": whole.count}
    return metrics | {f"{name}_perplexity": tally.perplexity for name, tally in parts.items()}
