"""Cross entropy of a linear layer without ever holding all of its logits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sememekit.layers.precision import product_dtype

KEPT_BYTES = 448 << 20
"""Memory that a forward pass may spend on log-probabilities so that the backward pass need not compute them again."""


def linear_cross_entropy(
    rows: Tensor, words: Tensor, bias: Tensor | None, target: Tensor, block: int = 256, kept_bytes: int = KEPT_BYTES
) -> Tensor:
    """-log softmax(rows words^T + bias)[target], in blocks of rows.

    Memory for logits is bounded whatever M is: a block, and for training the log-probabilities of the first blocks up to
    ``kept_bytes``. The backward pass computes those of the other blocks again, at the price of one more product. On CPU a block
    stays in the cache, which pays for much of that.

    Args:
        rows: (M, E) contexts.
        words: (V, E) output vectors.
        bias: (V,) or None.
        target: (M,) ids.
        block: rows worked on at once.
        kept_bytes: of log-probabilities that are kept for the backward pass; 0 computes all again.

    Returns:
        (M,) nats, unreduced.
    """
    kept_bytes = kept_bytes if torch.is_grad_enabled() else 0
    return _LinearCrossEntropy.apply(rows, words, bias, target, block, kept_bytes, product_dtype(words))


class _LinearCrossEntropy(torch.autograd.Function):
    """``linear_cross_entropy`` with its gradient; products in ``lowered``, all else in the dtype of the words."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        words: Tensor,
        bias: Tensor | None,
        target: Tensor,
        block: int,
        kept_bytes: int,
        lowered: torch.dtype,
    ) -> Tensor:
        num_words = len(words)
        log_normaliser, nats = words.new_empty(len(rows)), words.new_empty(len(rows))
        lowered_rows, lowered_words = rows.to(lowered), words.to(lowered)
        offset = words.new_zeros(num_words) if bias is None else bias
        buffer = words.new_empty(min(block, len(rows)), num_words)
        kept: list[Tensor] = []
        num_kept = kept_bytes // max(1, buffer.numel() * buffer.element_size())
        for begin in range(0, len(rows), block):
            part = slice(begin, begin + block)
            logits = _logits(lowered_rows[part], lowered_words, offset, buffer)
            log_probs = logits.log_softmax(dim=1)
            picked = target[part, None]
            nats[part] = -log_probs.gather(1, picked)[:, 0]
            log_normaliser[part] = logits.gather(1, picked)[:, 0] + nats[part]
            if len(kept) < num_kept:
                kept.append(log_probs)
        ctx.block, ctx.lowered, ctx.with_bias = block, lowered, bias is not None
        ctx.save_for_backward(rows, words, target, log_normaliser, *([] if bias is None else [bias]), *kept)
        return nats

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        rows, words, target, log_normaliser, *rest = ctx.saved_tensors
        bias = rest.pop(0) if ctx.with_bias else None
        kept = iter(rest)
        lowered_rows, lowered_words = rows.to(ctx.lowered), words.to(ctx.lowered)
        grad_rows, grad_words = torch.empty_like(rows), torch.zeros_like(words)
        grad_bias = None if bias is None else torch.zeros_like(bias)
        buffer = words.new_empty(min(ctx.block, len(rows)), len(words))
        for begin in range(0, len(rows), ctx.block):
            part = slice(begin, begin + ctx.block)
            log_probs = next(kept, None)
            if log_probs is None:
                offset = -log_normaliser[part, None] if bias is None else bias - log_normaliser[part, None]
                log_probs = _logits(lowered_rows[part], lowered_words, offset, buffer)
            # d nats / d logits = p - [v is the target]; the incoming gradient scales the narrow side of each product instead.
            wrong = torch.exp(log_probs, out=buffer[: len(log_probs)])
            wrong.scatter_add_(1, target[part, None], wrong.new_full((len(wrong), 1), -1.0))
            if grad_bias is not None:
                grad_bias.addmv_(wrong.T, grad[part])
            lowered = wrong.to(ctx.lowered)
            grad_rows[part] = grad[part, None] * (lowered @ lowered_words)
            _add_product(grad_words, lowered.T, (grad[part, None] * rows[part]).to(ctx.lowered))
        return grad_rows, grad_words, grad_bias, None, None, None, None


def _logits(rows: Tensor, words: Tensor, offset: Tensor, buffer: Tensor) -> Tensor:
    """rows words^T + offset in the first rows of ``buffer``, which are valid until the next call."""
    out = buffer[: len(rows)]
    out.copy_(offset.expand_as(out))
    return _add_product(out, rows, words.T)


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """``total += left @ right``, summed in the dtype of ``total``."""
    return total.addmm_(left, right) if left.dtype == total.dtype else total.add_(left @ right)
