"""Rows of different lengths in one batch, padded at the end; padding has no effect."""

from __future__ import annotations

import torch
from torch import Tensor


def padding_mask(lengths: Tensor, like: Tensor) -> Tensor:
    """(T, B, 1) true where a step of ``like`` (T, B, ...) is padding."""
    steps = torch.arange(like.shape[0], device=like.device)
    return (steps[:, None] >= lengths.to(like.device)[None, :]).unsqueeze(-1)


def zero_padding(sequence: Tensor, lengths: Tensor | None) -> Tensor:
    """``sequence`` (T, B, H) with zeros beyond the lengths, without gradient."""
    return sequence if lengths is None else sequence.masked_fill(padding_mask(lengths, sequence), 0.0)


def last_real_step(sequence: Tensor, lengths: Tensor | None) -> Tensor:
    """(B, H) the last real step of each row of ``sequence`` (T, B, H)."""
    if lengths is None:
        return sequence[-1]
    return sequence[lengths.to(sequence.device) - 1, torch.arange(sequence.shape[1], device=sequence.device)]


def reversal(length_of_batch: int, lengths: Tensor | None, batch_size: int, device: torch.device) -> Tensor:
    """(T, B) for each row its real steps from the last to the first, then its padding unmoved: its own inverse."""
    steps = torch.arange(length_of_batch, device=device)[:, None]
    if lengths is None:
        return (length_of_batch - 1 - steps).expand(-1, batch_size)
    own = lengths.to(device)[None, :]
    return torch.where(steps < own, own - 1 - steps, steps)


def reorder(sequence: Tensor, order: Tensor) -> Tensor:
    """Every row of ``sequence`` (T, B) or (T, B, H) in the ``order`` (T, B) of its own steps."""
    return sequence[order, torch.arange(sequence.shape[1], device=sequence.device)]
