"""Cross entropy of a linear layer without ever holding all of its logits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def linear_cross_entropy(rows: Tensor, words: Tensor, bias: Tensor | None, target: Tensor, block: int = 256) -> Tensor:
    """-log softmax(rows words^T + bias)[target], in blocks of rows; the backward pass computes the logits of a block again.

    Memory for logits is ``block`` x V in place of M x V, at the price of one more product of rows and words; on CPU the block
    stays in the cache, which more than pays for it.

    Args:
        rows: (M, E) contexts.
        words: (V, E) output vectors.
        bias: (V,) or None.
        target: (M,) ids.
        block: rows worked on at once.

    Returns:
        (M,) nats, unreduced.
    """
    kind = rows.device.type
    product_dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else words.dtype
    result: Tensor = _LinearCrossEntropy.apply(rows, words, bias, target, block, product_dtype)
    return result


class _LinearCrossEntropy(torch.autograd.Function):
    """``linear_cross_entropy`` with its gradient; products in ``product_dtype``, all else in the dtype of the words."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, words: Tensor, bias: Tensor | None, target: Tensor, block: int, product_dtype: torch.dtype
    ) -> Tensor:
        log_normaliser, picked = words.new_empty(len(rows)), words.new_empty(len(rows))
        lowered_rows, lowered_words = rows.to(product_dtype), words.to(product_dtype)
        for begin in range(0, len(rows), block):
            part = slice(begin, begin + block)
            logits = _logits(lowered_rows[part], lowered_words, bias, words.dtype)
            log_normaliser[part] = logits.logsumexp(dim=1)
            picked[part] = logits.gather(1, target[part, None])[:, 0]
        ctx.block, ctx.product_dtype, ctx.with_bias = block, product_dtype, bias is not None
        ctx.save_for_backward(rows, words, target, log_normaliser, *([] if bias is None else [bias]))
        return log_normaliser - picked

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        rows, words, target, log_normaliser, *rest = ctx.saved_tensors
        bias = rest[0] if ctx.with_bias else None
        lowered_rows, lowered_words = rows.to(ctx.product_dtype), words.to(ctx.product_dtype)
        grad_rows, grad_words = torch.empty_like(rows), torch.zeros_like(words)
        grad_bias = None if bias is None else torch.zeros_like(bias)
        for begin in range(0, len(rows), ctx.block):
            part = slice(begin, begin + ctx.block)
            share = _logits(lowered_rows[part], lowered_words, bias, words.dtype)
            share.sub_(log_normaliser[part, None]).exp_().mul_(grad[part, None])
            share.scatter_add_(1, target[part, None], -grad[part, None])
            if grad_bias is not None:
                grad_bias += share.sum(dim=0)
            lowered = share.to(ctx.product_dtype)
            grad_rows[part] = (lowered @ lowered_words).to(rows.dtype)
            grad_words += lowered.T @ lowered_rows[part]
        return grad_rows, grad_words, grad_bias, None, None, None


def _logits(rows: Tensor, words: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
    logits = (rows @ words.T).to(dtype)
    return logits if bias is None else logits.add_(bias)
