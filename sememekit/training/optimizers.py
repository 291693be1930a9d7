"""Optimisers by name; gradients clipped together, sparse where a step looked up only some rows of a table."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from sememekit.decoders.base import Decoder
from sememekit.errors import ConfigError
from sememekit.layers import rows_of_ranks
from sememekit.ranks import ALONE, Ranks
from sememekit.tasks.base import Task
from sememekit.training.settings import OptimizerSettings
from sememekit.training.together import any_shards


def make_optimizer(settings: OptimizerSettings, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Plain SGD, Adam or Adagrad over ``parameters``; the trainer clips. Raises ConfigError: ``initial_accumulator`` for an
    optimiser that has none."""
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
    """Inside, word vectors of which a step sees a few rows have sparse gradients, where the optimiser's step is then the same:
    SGD without weight decay changes no row that has no gradient.

    With S sampled words a step then costs nearly the same whatever the size of the vocabulary. The moments of Adam change in
    every row. Adagrad could be given sparse gradients; torch's warns.
    """
    plain = isinstance(optimizer, torch.optim.SGD)
    takes = plain and not any(group["momentum"] or group["weight_decay"] for group in optimizer.param_groups)
    decoders = [part for part in task.modules() if isinstance(part, Decoder)]
    try:
        for decoder in decoders:
            decoder.look_up_sparsely(takes)
        yield
    finally:
        for decoder in decoders:
            decoder.look_up_sparsely(False)


def clip_gradients(parameters: Sequence[nn.Parameter], limit: float, ranks: Ranks = ALONE) -> Tensor:
    """Scale all gradients so that the norm of all together is at most ``limit``; returns the norm before.

    The same as ``torch.nn.utils.clip_grad_norm_``, which does not take sparse gradients. Tables in shards count with the rows
    of all ranks.
    """
    whole, shards = list[Tensor](), list[Tensor]()
    for parameter in parameters:
        if parameter.grad is None:
            continue
        gradient = parameter.grad
        if gradient.is_sparse:
            parameter.grad = gradient.coalesce()
            gradient = parameter.grad.values()
        (whole if rows_of_ranks(parameter) is None else shards).append(gradient)
    norm = torch.nn.utils.get_total_norm(whole)
    if any_shards(parameters):
        square = torch.nn.utils.get_total_norm(shards).square()
        ranks.add_up_([square])
        norm = (norm.square() + square).sqrt()
    if whole or shards:
        torch._foreach_mul_(whole + shards, (limit / (norm + 1e-6)).clamp(max=1.0))
    return norm
