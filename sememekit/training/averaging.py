"""Averaged weights."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import final

import torch
from torch import Tensor, nn


@final
class Average:
    """The mean of parameters over steps: m_t = m_(t-1) + (w_t - m_(t-1)) / t, the averaging of Polyak and Juditsky 1992.

    >>> average = Average(list(module.parameters()))
    >>> average.update()  # after each step of the optimiser
    >>> with average.averaged_weights():
    ...     result = module(torch.ones(1, 2))  # by the mean weights

    Every step counts, the first included. torch's ASGD leaves the first one out and takes each step with the rate of the step
    before, so that a rate scaled by the length of a segment acts on the next segment; here the usual optimiser takes the steps.
    Nor is any parameter left out: the public code does not give its new optimiser the tail vectors of an adaptive softmax,
    which then stay constant.

    Parameters stay the same objects, so tied matrices are tied inside ``averaged_weights`` and after it.
    """

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = parameters
        self.count = 0
        self._means: list[Tensor] = []
        self._kept: list[Tensor] | None = None

    @torch.no_grad()
    def update(self) -> None:
        current = [parameter.detach() for parameter in self.parameters]
        self.count += 1
        if self.count == 1:
            self._means = [tensor.clone() for tensor in current]
        else:
            torch._foreach_lerp_(self._means, current, 1.0 / self.count)

    def restart(self) -> None:
        self.count, self._means = 0, []

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """The means in place of the weights inside, the exact weights again afterwards; no change without a mean."""
        if not self.count:
            yield
            return
        self._kept = [parameter.detach().clone() for parameter in self.parameters]
        self._put(self._means)
        try:
            yield
        finally:
            self._put(self._kept)
            self._kept = None

    def state(self) -> dict[str, int | list[Tensor]]:
        """For resuming: the count and the weights of training. The means are in the model, inside ``averaged_weights``. Raises
        RuntimeError outside of it, where the means would be lost."""
        if not self.count:
            return {"count": 0, "training": []}
        if self._kept is None:
            raise RuntimeError("the state of an average is taken inside 'averaged_weights'")
        return {"count": self.count, "training": self._kept}

    def restore(self, state: dict[str, int | list[Tensor]]) -> None:
        """Continue from ``state`` with a model that holds the means: the weights of training replace them."""
        count, training = state["count"], state["training"]
        assert isinstance(count, int)
        assert isinstance(training, list)
        self.count, self._means = count, []
        if count:
            self._means = [parameter.detach().clone() for parameter in self.parameters]
            self._put(training)

    @torch.no_grad()
    def _put(self, tensors: Sequence[Tensor]) -> None:
        for parameter, tensor in zip(self.parameters, tensors, strict=True):
            parameter.copy_(tensor)
