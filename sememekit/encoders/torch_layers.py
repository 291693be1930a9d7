"""Torch's own recurrent modules: their kernels, and on a CPU LSTMs with products in bfloat16."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sememekit.encoders.base import State
from sememekit.encoders.lengths import last_real_step, zero_padding
from sememekit.layers import WeightDropped, lstm_scan


def run_layer(layer: Any, x: Tensor, own: State, lengths: Tensor | None, dtype: torch.dtype) -> tuple[Tensor, State]:
    """Run a recurrent module of torch, or a ``WeightDropped`` one, over ``x`` (T, B, E): outputs (T, B, H), states (B, H).

    Autocast is off here. ``dtype`` is that of its products (``product_dtype``): where it is lower than that of ``x``, an LSTM
    on a CPU multiplies in it and keeps states, sums and gates as they are; every other layer and device stays at the dtype of
    ``x``. What torch does under autocast rounds the states, too.
    """
    if dtype != x.dtype and x.device.type == "cpu" and isinstance(layer, nn.LSTM | WeightDropped):
        return _scan_with_products_in(dtype, layer.all_weights[0], x, own, lengths)
    return _run_kernel(layer, x, own, lengths)


def _scan_with_products_in(
    dtype: torch.dtype, weights: Sequence[Tensor], x: Tensor, own: State, lengths: Tensor | None
) -> tuple[Tensor, State]:
    """One layer of an LSTM of torch, whose rows are those of i, f, u, o: ``lstm_scan`` wants u, f, i, o."""
    input_GE, recurrent_GH, *biases = (_candidate_first(part) for part in weights)
    ready_TBG = functional.linear(x.to(dtype), input_GE.to(dtype)).to(x.dtype) + sum(biases)
    scanned = lstm_scan(ready_TBG, recurrent_GH.to(dtype), *own)
    return zero_padding(scanned[0], lengths), tuple(last_real_step(part, lengths) for part in scanned)


def _candidate_first(rows: Tensor) -> Tensor:
    """Rows of i, f, u, o in the order u, f, i, o."""
    i, f, u, o = rows.chunk(4)
    return torch.cat([u, f, i, o])


def _run_kernel(layer: Any, x: Tensor, own: State, lengths: Tensor | None) -> tuple[Tensor, State]:
    """``run_layer`` by the kernel of torch."""
    before = tuple(part.unsqueeze(0) for part in own)  # (1, B, H) each
    if lengths is None:
        hidden, after = layer(x, before if len(own) > 1 else before[0])
        return hidden, tuple(part.squeeze(0) for part in (after if isinstance(after, tuple) else (after,)))
    # The longest first, by hand: torch's own way of sorting reads the order back from the device.
    falling, order = lengths.cpu().sort(descending=True)
    back, order = (index.to(x.device, non_blocking=True) for index in (order.argsort(), order))
    before = tuple(part.index_select(1, order) for part in before)
    packed = nn.utils.rnn.pack_padded_sequence(x.index_select(1, order), falling)
    packed, after = layer(packed, before if len(own) > 1 else before[0])
    hidden, _ = nn.utils.rnn.pad_packed_sequence(packed, total_length=len(x))
    states = after if isinstance(after, tuple) else (after,)
    return hidden.index_select(1, back), tuple(part.index_select(1, back).squeeze(0) for part in states)
