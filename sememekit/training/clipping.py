"""Gradients of a step: clipped together, sparse where only some rows of a table were looked up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from sememekit.decoders.base import Decoder
from sememekit.tasks.base import Task


@contextmanager
def sparse_lookups(task: Task, optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Inside, word vectors of which a step sees a few rows have sparse gradients, where the optimiser's step is then the same:
    SGD without weight decay changes no row that has no gradient.

    With S drawn words a step then costs nearly the same whatever the size of the vocabulary. The moments of Adam change in
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


def clip_gradients(parameters: Sequence[nn.Parameter], limit: float) -> Tensor:
    """Scale all gradients so that the norm of all together is at most ``limit``; returns the norm before.

    The same as ``torch.nn.utils.clip_grad_norm_``, which does not take sparse gradients.
    """
    gradients = []
    for parameter in parameters:
        if parameter.grad is None:
            continue
        if parameter.grad.is_sparse:
            parameter.grad = parameter.grad.coalesce()
            gradients.append(parameter.grad.values())
        else:
            gradients.append(parameter.grad)
    norm = torch.nn.utils.get_total_norm(gradients)
    if gradients:
        torch._foreach_mul_(gradients, (limit / (norm + 1e-6)).clamp(max=1.0))
    return norm
