"""Scoring: targets in contexts."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sememekit.decoders.base import Decoder
from sememekit.measure.scored import Scored


def score_targets(
    decoder: Decoder, hidden: Tensor, targets: Tensor, mask: Tensor, places: NDArray[np.int64] | None = None
) -> Scored:
    """Score ``targets`` (...) in the contexts ``hidden`` (..., H), with the terms of the loss where the decoder names them."""
    with torch.no_grad():
        parts = decoder.nll_parts(hidden, targets)
        nats = torch.stack([*parts.values()]).sum(dim=0) if parts else decoder.nll(hidden, targets)
    return Scored(targets, nats, mask, parts, hidden, places)
