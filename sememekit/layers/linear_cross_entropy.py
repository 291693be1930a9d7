"""Cross entropy of a linear layer without storing all logits."""

from typing import Any

import torch
from torch import Tensor

from sememekit.layers.shared import BY_LOG_PROB, add_product, differentiable_once, product_dtype

KEPT_BYTES = 448 << 20  # memory for log-probabilities that the backward pass need not recompute


def linear_cross_entropy(
    rows_NE: Tensor, words_VE: Tensor, bias_V: Tensor | None, target_N: Tensor, block: int = 256, kept_bytes: int = KEPT_BYTES
) -> Tensor:
    """-log softmax(rows words^T + bias)[target], in blocks of n rows.

    Memory for logits is bounded for any N: memory holds one block and, in training, the log-probabilities of the first blocks,
    up to ``kept_bytes``. The backward pass recomputes the other blocks with one more product; with 0 it recomputes all. On CPU
    a block stays in the cache, which saves much of its cost.

    Returns (N,) nats, unreduced."""
    kept_bytes = kept_bytes if torch.is_grad_enabled() else 0
    return _LinearCrossEntropy.apply(rows_NE, words_VE, bias_V, target_N, block, kept_bytes, product_dtype(words_VE))


class _LinearCrossEntropy(torch.autograd.Function):
    """``linear_cross_entropy`` with its gradient; products in ``lowered``, all else in the dtype of the words."""

    @staticmethod
    def forward(ctx: Any, rows_NE: Tensor, words_VE: Tensor, bias_V: Tensor | None, target_N: Tensor, *how: Any) -> Tensor:
        block, kept_bytes, lowered = how
        num_words = len(words_VE)
        log_normaliser_N, nats_N = words_VE.new_empty(len(rows_NE)), words_VE.new_empty(len(rows_NE))
        low_rows_NE, low_words_VE = rows_NE.to(lowered), words_VE.to(lowered)
        offset = words_VE.new_zeros(num_words) if bias_V is None else bias_V
        buffer_nV = words_VE.new_empty(min(block, len(rows_NE)), num_words)
        kept: list[Tensor] = []
        num_kept = kept_bytes // max(1, buffer_nV.numel() * buffer_nV.element_size())
        for begin in range(0, len(rows_NE), block):
            part = slice(begin, begin + block)
            logits_nV = _logits(low_rows_NE[part], low_words_VE, offset, buffer_nV)
            log_probs_nV = logits_nV.log_softmax(dim=1)
            picked = target_N[part, None]
            nats_N[part] = -log_probs_nV.gather(1, picked)[:, 0]
            log_normaliser_N[part] = logits_nV.gather(1, picked)[:, 0] + nats_N[part]
            if len(kept) < num_kept:
                kept.append(log_probs_nV)
        ctx.block, ctx.lowered, ctx.with_bias = block, lowered, bias_V is not None
        ctx.save_for_backward(rows_NE, words_VE, target_N, log_normaliser_N, *([] if bias_V is None else [bias_V]), *kept)
        return nats_N

    @staticmethod
    @differentiable_once("The likelihood of a softmax in blocks (linear_cross_entropy)", BY_LOG_PROB)
    def backward(ctx: Any, grad_N: Tensor) -> tuple[Any, ...]:
        rows_NE, words_VE, target_N, log_normaliser_N, *rest = ctx.saved_tensors
        bias_V = rest.pop(0) if ctx.with_bias else None
        kept = iter(rest)
        low_rows_NE, low_words_VE = rows_NE.to(ctx.lowered), words_VE.to(ctx.lowered)
        grad_rows_NE, grad_words_VE = torch.empty_like(rows_NE), torch.zeros_like(words_VE)
        grad_bias_V = None if bias_V is None else torch.zeros_like(bias_V)
        buffer_nV = words_VE.new_empty(min(ctx.block, len(rows_NE)), len(words_VE))
        for begin in range(0, len(rows_NE), ctx.block):
            part = slice(begin, begin + ctx.block)
            log_probs_nV = next(kept, None)
            if log_probs_nV is None:
                offset = -log_normaliser_N[part, None] if bias_V is None else bias_V - log_normaliser_N[part, None]
                log_probs_nV = _logits(low_rows_NE[part], low_words_VE, offset, buffer_nV)
            # d nats / d logits = p - [v is the target]; the incoming gradient scales the narrow side of each product instead.
            wrong_nV = torch.exp(log_probs_nV, out=buffer_nV[: len(log_probs_nV)])
            wrong_nV.scatter_add_(1, target_N[part, None], wrong_nV.new_full((len(wrong_nV), 1), -1.0))
            if grad_bias_V is not None:
                grad_bias_V.addmv_(wrong_nV.T, grad_N[part])
            lowered = wrong_nV.to(ctx.lowered)
            grad_rows_NE[part] = grad_N[part, None] * (lowered @ low_words_VE)
            add_product(grad_words_VE, lowered.T, (grad_N[part, None] * rows_NE[part]).to(ctx.lowered))
        return grad_rows_NE, grad_words_VE, grad_bias_V, None, None, None, None


def _logits(rows_NE: Tensor, words_VE: Tensor, offset: Tensor, buffer_nV: Tensor) -> Tensor:
    """rows words^T + offset in the first rows of ``buffer``, which are valid until the next call."""
    out = buffer_nV[: len(rows_NE)]
    out.copy_(offset.expand_as(out))
    return add_product(out, rows_NE, words_VE.T)
