"""The vectors that a batch of lattices is made of."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sememekit.layers import rows_of
from sememekit.tasks.lattice.batch import LatticeBatch
from sememekit.tasks.lattice.composition import Composition


@dataclass(frozen=True)
class BatchVectors:
    """Vectors of a batch: (W, E) of its distinct words, (V, E) of all words where a sub-model predicts them, and (D, C, I) of
    its distinct windows in each copy, those of one token first.
    """

    words: Tensor
    every: Tensor | None
    windows: Tensor


def batch_vectors(
    batch: LatticeBatch,
    rows: Tensor,
    word_rows_VC: Tensor,
    has_copy_VC: Tensor,
    tokens: nn.Embedding | None,
    composition: Composition | None,
    *,
    every: bool,
) -> BatchVectors:
    """Look the vectors up, with one gradient of the table for all of them.

    Args:
        rows: (rows, E) vectors of the entries.
        word_rows_VC, has_copy_VC: rows of the copies of each word, and which copies there are.
        tokens: vectors of tokens of their own; None for the mean of the copies of each word.
        composition: what makes vectors of windows from those of tokens, if anything does.
        every: whether those of all words are needed.
    """
    indices = [] if tokens is not None else [word_rows_VC[batch.words], *([word_rows_VC] if every else [])]
    if batch.windows is not None:
        indices.append(batch.windows.rows)
    found = iter(rows_of(rows, *indices) if indices else ())
    if tokens is not None:
        words, all_words = tokens(batch.words), tokens.weight if every else None
    else:
        words = _mean(next(found), has_copy_VC[batch.words])
        all_words = _mean(next(found), has_copy_VC) if every else None
    if batch.windows is None:
        return BatchVectors(words, all_words, words.unsqueeze(1))
    windows = next(found)
    if composition is not None:
        composed = composition(words, batch.windows)
        windows = torch.cat([windows, composed.unsqueeze(1).expand(-1, windows.shape[1], -1)], dim=2)
    return BatchVectors(words, all_words, windows)


def _mean(rows_VCE: Tensor, there_VC: Tensor) -> Tensor:
    """(V, E) the mean of the copies of each word, of those that there are."""
    if rows_VCE.shape[1] == 1:
        return rows_VCE.squeeze(1)
    return (rows_VCE * there_VC.unsqueeze(2)).sum(1) / there_VC.sum(1, keepdim=True)
