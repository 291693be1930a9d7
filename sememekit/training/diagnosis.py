"""Diagnosis of numbers that are not finite: the first module or weight that has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor, nn

from sememekit.tasks.base import Carry, Task

NOT_AGAIN: Final = "it did not appear again on the same batch"


def first_bad_module(task: Task, batch: Any, carry: Carry, on_any_rank: Callable[[bool], bool] = bool) -> str:
    """A clause that names the first part of a task with a non-finite number on a batch, such as "parameter
    'decoder.gate.weight' holds non-finite numbers".

    Looks, in this order, at the parameters, at the outputs of the modules in a forward pass, and at the gradients. With tables
    in shards all ranks look together, and each place is the last one on all of them where one finds something
    (``on_any_rank``).
    """
    bad = next((name for name, parameter in task.named_parameters() if not _finite(parameter)), None)
    if on_any_rank(bad is not None):
        return NOT_AGAIN if bad is None else f"parameter {bad!r} holds non-finite numbers"
    found: list[str] = []
    handles = []
    for name, module in task.named_modules():
        if name:
            handles.append(module.register_forward_hook(_watch(name, found)))
    try:
        loss = task.loss(batch, carry)
        if not found and not _finite(loss.nats):
            found.append("the output layer's loss (its 'nll')")
        if not on_any_rank(bool(found)):
            task.zero_grad(set_to_none=True)
            loss.nats.backward()
            found += [
                f"the gradient of {name!r}" for name, p in task.named_parameters() if p.grad is not None and not _finite(p.grad)
            ]
    finally:
        for handle in handles:
            handle.remove()
        task.zero_grad(set_to_none=True)
    return f"the first non-finite number comes from {found[0]}" if found else NOT_AGAIN


def first_bad_weight(module: nn.Module) -> str | None:
    """The first parameter or stored buffer with a number that is not finite, or None."""
    named = [(name, tensor) for name, tensor in module.state_dict().items() if tensor.is_floating_point() and tensor.numel()]
    largest = torch.stack([torch.linalg.vector_norm(tensor, ord=torch.inf).double() for _, tensor in named])
    bad = (~torch.isfinite(largest)).nonzero()
    return repr(named[int(bad[0])][0]) if len(bad) else None


def _watch(name: str, found: list[str]) -> Any:
    def hook(module: nn.Module, inputs: Any, output: Any) -> None:
        if not all(_finite(part) for part in _tensors(output)):
            found.append(f"module {name!r} ({type(module).__name__})")

    return hook


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, tuple | list):
        return [tensor for part in value for tensor in _tensors(part)]
    return []


def _finite(tensor: Tensor) -> bool:
    return bool(torch.isfinite(tensor._values() if tensor.is_sparse else tensor).all())
