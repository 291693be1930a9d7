"""Divergence: tests of a diverged run or a vanishing rate, the message, and the first non-finite part."""

import math
from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor, nn

from sememekit.tasks.base import Carry, Task
from sememekit.training.settings import OptimizerSettings
from sememekit.training.state import TrainingState

SURELY: Final = 1.5
"""A perplexity above this multiple of the perplexity of the uniform distribution is divergence, even if the loss fell."""

ROSE: Final = 0.05  # rise of a training loss in nats that exceeds the differences between batches of an untrained model

NOTHING: Final = 1e-8  # below this share of the first rate, steps are smaller than float32 can store, and nothing is learned


def uniform_perplexity(task: Task) -> float | None:
    """Return the perplexity of the uniform distribution, above which a trained model has diverged; None for other metrics."""
    has_words = hasattr(task, "vocabulary") and task.metric.name == "perplexity"
    return float(len(task.vocabulary)) if has_words else None


def worse_than_guessing(progress: TrainingState, value: float, uniform: float) -> bool:
    """Return whether a validation perplexity shows that the run has diverged.

    It has if the perplexity is above ``uniform`` (of the uniform distribution), except in two cases: over-fitting (better
    before, or better on the training text), and a run that has just begun (close to uniform, with a falling training loss)."""
    if value <= uniform:
        return False
    nats = progress.nats / progress.count
    if progress.best is not None and progress.best <= uniform:
        return nats > math.log(uniform)
    return value > SURELY * uniform or nats > max(math.log(uniform), progress.start_nats or math.inf) + ROSE


def rate_is_nothing(progress: TrainingState, optimizer: OptimizerSettings, decay: float) -> bool:
    """Return whether the rate of the next epoch, with ``decay``, is below ``NOTHING`` of the first."""
    return progress.rate * decay < NOTHING * optimizer.learning_rate


def how_to_go_on(progress: TrainingState, optimizer: OptimizerSettings, pointer: Mapping[str, str]) -> str:
    """Return advice on starting again, and what remains; the rate is never below the schedule's last cut of the first rate."""
    lower = optimizer.learning_rate / 4
    if progress.rate < optimizer.learning_rate:
        lower = max(lower, progress.rate)
    if "best" in pointer:
        best = f"epoch {progress.best_epoch}" if progress.best_epoch else "the weights that the run began with"
        left = f"checkpoints written so far are whole, and the best is from {best}, {pointer['best']}"
    else:
        left = "checkpoints written so far are whole" if pointer else "no checkpoint was written"
    return (
        f"start again with a lower rate (--set optimizer.learning_rate={lower:g}) or a tighter clip (--set "
        f"optimizer.clip={optimizer.clip / 2:g}) and another --out; {left}"
    )


NOT_AGAIN: Final = "it did not appear again on the same batch"


def first_bad_module(task: Task, batch: Any, carry: Carry) -> str:
    """Return a clause on the first part of a task with non-finite numbers, such as "parameter 'decoder.gate.weight' holds
    non-finite numbers".

    It checks parameters, then outputs of modules in a forward pass, then gradients."""
    bad = next((name for name, parameter in task.named_parameters() if not _finite(parameter)), None)
    if bad is not None:
        return f"parameter {bad!r} holds non-finite numbers"
    found: list[str] = []
    handles = [module.register_forward_hook(_watch(name, found)) for name, module in task.named_modules() if name]
    try:
        loss = task.loss(batch, carry)
        if not found and not _finite(loss.nats):
            found.append("the output layer's loss (its 'nll')")
        if not found:
            task.zero_grad(set_to_none=True)
            loss.nats.backward()
            gradients = ((name, parameter.grad) for name, parameter in task.named_parameters())
            found += [f"the gradient of {name!r}" for name, grad in gradients if grad is not None and not _finite(grad)]
    finally:
        for handle in handles:
            handle.remove()
        task.zero_grad(set_to_none=True)
    return f"the first non-finite number comes from {found[0]}" if found else NOT_AGAIN


def first_bad_weight(module: nn.Module) -> str | None:
    """Return the first parameter or stored buffer with a non-finite number, or None."""
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
