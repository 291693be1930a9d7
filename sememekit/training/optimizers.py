"""The optimisers by name."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from sememekit.training.settings import OptimizerSettings


def make_optimizer(settings: OptimizerSettings, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Plain SGD, Adam or Adagrad over ``parameters``; clipping is the trainer's work."""
    if settings.name == "adam":
        return torch.optim.Adam(parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay)
    if settings.name == "adagrad":
        return torch.optim.Adagrad(parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay)
    return torch.optim.SGD(parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay)
