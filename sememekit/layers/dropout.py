"""Dropout with a mask that is shared along axes, and on the hidden-to-hidden matrix of an LSTM."""

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

LSTMState = tuple[Tensor, Tensor]


@final
class WeightDropped:
    """A one-layer LSTM with elements of its hidden-to-hidden matrix dropped (Wan et al. 2013; Merity et al. 2018).

    h_t = LSTM(x_t, h_(t-1)) with (U * M) / (1 - rate) in place of U. The mask M is drawn here and is the same for all steps of
    all calls. The parameters of ``lstm`` do not change: the kernel is called with the dropped matrix. So no parameter is
    registered, swapped or renamed, and state dicts have raw weights only.

    The call is the same as for the layer: (T, B, E) or a packed sequence, and h, c, each (1, B, H). ``lstm`` has one
    layer, one direction, biases, time first, no projection."""

    def __init__(self, lstm: nn.LSTM, rate: float) -> None:
        (input_matrix, hidden_matrix, *biases), *further = lstm.all_weights
        assert not further
        self._weights = [input_matrix, functional.dropout(hidden_matrix, rate, training=True), *biases]
        if hidden_matrix.is_cuda:
            self._weights = one_segment(self._weights)

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """Run ``nn.LSTM`` with the thinned matrix."""
        return [self._weights]

    def __call__(self, x: Tensor | PackedSequence, state: LSTMState) -> tuple[Tensor | PackedSequence, LSTMState]:
        """Outputs in the form of ``x``, and the state after the last step."""
        # The plain numbers: with biases, one layer, no dropout of torch's own, training, one direction, batch not first.
        if isinstance(x, Tensor):
            output, hidden, cell = torch.lstm(x, state, self._weights, True, 1, 0.0, True, False, False)
            return output, (hidden, cell)
        order, back = x.sorted_indices, x.unsorted_indices
        if order is not None:
            state = (state[0].index_select(1, order), state[1].index_select(1, order))
        output, hidden, cell = torch.lstm(x.data, x.batch_sizes, state, self._weights, True, 1, 0.0, True, False)
        if back is not None:
            hidden, cell = hidden.index_select(1, back), cell.index_select(1, back)
        return PackedSequence(output, x.batch_sizes, order, back), (hidden, cell)


def one_segment(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors, in order, as differentiable views of one piece of memory.

    cuDNN warns and copies the weights of a layer (input matrix, hidden matrix, two biases) at each call unless they are
    contiguous. This function copies them once, differentiably."""
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    parts = flat.split([tensor.numel() for tensor in tensors])
    return [part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)]


def shared_dropout(x: Tensor, rate: float, training: bool, shared: Sequence[int]) -> Tensor:
    """Drop elements of ``x`` with one mask along the axes in ``shared`` (locked dropout, Gal and Ghahramani 2016), such as (0,)
    for time in a (T, B, H) tensor. ``rate``: probability of a zero; kept elements are scaled by 1 / (1 - rate)."""
    if not training or rate == 0.0:
        return x
    shape = [1 if axis in shared else size for axis, size in enumerate(x.shape)]
    return x * functional.dropout(x.new_ones(shape), rate, training=True)
