"""Recurrent layers that torch does not have: one module a layer, scanned by ``sememekit.layers``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal

from torch import Tensor, nn

from sememekit.encoders.base import State

Initialisation = Literal["uniform", "kaiming"]


class CustomRecurrentLayer(nn.Module, ABC):
    """A recurrent layer that may read pi beside its input. Every linear map has its own bias.

    Shapes: T time, B batch, E input, P size of pi, H output.
    """

    @abstractmethod
    def forward(self, x: Tensor, pi: Any, state: State) -> State:
        """Every state of the sequence, outputs first: (T, B, H) each, in the order of ``state``, whose tensors are (B, H).

        ``x`` is (T, B, E); ``pi`` is a ``Pi`` of (T, B), the sum of each word's sememes, or None where the layer does not use
        it.
        """


def initialise(module: nn.Module, way: Initialisation, size: int) -> None:
    """Initialise the linear maps and torch's own recurrent modules inside ``module``.

    ``uniform`` in +-1 / sqrt(H), biases too, as torch's recurrent modules; ``kaiming`` is Normal with variance 2 / fan-in and
    biases 0, as the released sememe cells.
    """
    for name, parameter in module.named_parameters():
        if way == "uniform":
            nn.init.uniform_(parameter, -(size**-0.5), size**-0.5)
        elif "bias" in name:
            nn.init.zeros_(parameter)
        else:
            nn.init.kaiming_normal_(parameter)
