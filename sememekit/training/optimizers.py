"""Optimisers by name, clipping of all gradients together (also sparse ones, of looked-up rows), averaged weights."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import final

import torch
from torch import Tensor, nn

from sememekit.decoders.base import Scheduled
from sememekit.errors import ConfigError
from sememekit.tasks.base import Task
from sememekit.training.settings import OptimizerSettings


def make_optimizer(settings: OptimizerSettings, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Plain SGD, Adam or Adagrad; the trainer clips. ConfigError: ``initial_accumulator`` for an optimiser without one."""
    if settings.initial_accumulator and settings.name != "adagrad":
        raise ConfigError(
            f"[optimizer] initial_accumulator = {settings.initial_accumulator:g} belongs to adagrad, "
            f"given name = {settings.name!r}; leave it out, or add --set optimizer.name=adagrad"
        )
    rate, decay = settings.learning_rate, settings.weight_decay
    if settings.name == "adam":
        # fused: one pass over weights and moments in place of one for each of a dozen operations
        return torch.optim.Adam(parameters, rate, weight_decay=decay, fused=True)
    if settings.name == "adagrad":
        start = settings.initial_accumulator
        return torch.optim.Adagrad(parameters, rate, weight_decay=decay, initial_accumulator_value=start)
    return torch.optim.SGD(parameters, rate, weight_decay=decay)


@contextmanager
def sparse_lookups(task: Task, optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Use sparse gradients for word vectors inside the block, if a step uses few of their rows and takes the same step.

    This holds for SGD without momentum and weight decay, which changes only rows with a gradient.

    With S sampled words the cost of a step then hardly depends on the size of the vocabulary. Adam changes moments in every
    row. Adagrad could use sparse gradients, but torch's version warns."""
    plain = isinstance(optimizer, torch.optim.SGD)
    takes = plain and not any(group["momentum"] or group["weight_decay"] for group in optimizer.param_groups)
    decoders = [part for part in task.modules() if isinstance(part, Scheduled)]
    try:
        for decoder in decoders:
            decoder.look_up_sparsely(takes)
        yield
    finally:
        for decoder in decoders:
            decoder.look_up_sparsely(False)


def clip_gradients(parameters: Sequence[nn.Parameter], limit: float) -> Tensor:
    """Scale all gradients so that their total norm is at most ``limit``; return the norm before.

    It does the same as ``torch.nn.utils.clip_grad_norm_``, which does not accept sparse gradients."""
    gradients = []
    for parameter in parameters:
        if (gradient := parameter.grad) is None:
            continue
        if gradient.is_sparse:
            parameter.grad = gradient.coalesce()
            gradient = parameter.grad.values()
        gradients.append(gradient)
    norm = torch.nn.utils.get_total_norm(gradients)
    if gradients:
        torch._foreach_mul_(gradients, (limit / (norm + 1e-6)).clamp(max=1.0))
    return norm


@final
class Average:
    """The mean of parameters over steps: m_t = m_(t-1) + (w_t - m_(t-1)) / t, the averaging of Polyak and Juditsky 1992.

    >>> average = Average(list(module.parameters()))
    >>> average.update()  # after each step of the optimiser
    >>> with average.averaged_weights():
    ...     result = module(torch.ones(1, 2))  # by the mean weights

    Every step counts, including the first. torch's ASGD leaves out the first step and uses the rate of the previous step, so
    that a rate scaled by segment length acts on the next segment. Here the ordinary optimiser takes the steps. All parameters
    are averaged; the public code leaves out the tail vectors of an adaptive softmax, which then stay constant.

    Parameters stay the same objects, so tied matrices stay tied."""

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
        """Use the means as weights inside the block, and restore the exact weights afterwards; no change without a mean."""
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
        """Return the state for resuming: the count and the training weights. Inside ``averaged_weights`` the model holds the
        means. Raises RuntimeError outside of this block, where the means would be lost."""
        if not self.count:
            return {"count": 0, "training": []}
        if self._kept is None:
            raise RuntimeError("the state of an average can only be read inside 'averaged_weights'")
        return {"count": self.count, "training": self._kept}

    def restore(self, state: dict[str, int | list[Tensor]]) -> None:
        """Continue from ``state``. The model holds the means; the training weights replace them."""
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
