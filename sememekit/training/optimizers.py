"""Optimisers by name."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from sememekit.errors import ConfigError
from sememekit.training.settings import OptimizerSettings


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
