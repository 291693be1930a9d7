"""Log-probabilities of a few words a context under a softmax, for contexts that come one block after the other."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sememekit.layers.product import product

KEPT_BYTES = 1 << 30
"""Memory for probabilities that the backward pass uses again; those of further contexts are computed a second time."""

_POOL_ROWS = 512
_BLOCK = 256


@final
class ChosenLogits:
    """Softmax over V words for contexts that are known only one after the other, as in a recurrence that looks at them.

    ``pick(rows, targets)`` may be called any number of times; each call takes one product with the words, however many targets
    a row has. The gradient of the words is taken in one product over many calls, once all of them have gone backward: it is as
    large as the words themselves, and adding it up call by call would move it through memory each time.

    Args:
        words: (V, E) output vectors.
        bias: (V,) or None.
        kept_bytes: of probabilities that are kept for the backward pass.
    """

    def __init__(self, words: Tensor, bias: Tensor | None, kept_bytes: int = KEPT_BYTES) -> None:
        self._store = _Store(words.detach(), None if bias is None else bias.detach(), kept_bytes)
        self._learns = torch.is_grad_enabled() and (words.requires_grad or (bias is not None and bias.requires_grad))
        self._ticket = _Words.apply(words, bias, self._store) if self._learns else words.new_zeros(())

    def pick(self, rows: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Unnormalised log-probabilities, and what normalises them.

        Args:
            rows: (M, E) contexts.
            targets: (M, K) word ids.

        Returns:
            (M, K) logits, and (M,) the logarithm of the sum of exponentials over all words.
        """
        rows = rows.to(self._store.words.dtype)
        keep = torch.is_grad_enabled() and (self._learns or rows.requires_grad)
        blocks = [
            _Pick.apply(rows[begin : begin + _BLOCK], targets[begin : begin + _BLOCK], self._ticket, self._store, keep)
            for begin in range(0, len(rows), _BLOCK)
        ]
        if len(blocks) == 1:
            return blocks[0]
        if not blocks:
            return rows.new_zeros(targets.shape), rows.new_zeros(0)
        return torch.cat([block[0] for block in blocks]), torch.cat([block[1] for block in blocks])

    def log_probs(self, rows: Tensor, targets: Tensor) -> Tensor:
        """(M, K) log-probabilities; arguments as ``pick``."""
        logits, normaliser = self.pick(rows, targets)
        return logits - normaliser[:, None]


class _Pool:
    """Room for the probabilities of some contexts beside the contexts and the gradients of their normalisers."""

    def __init__(self, like: Tensor, num_rows: int, num_words: int, size: int) -> None:
        self.probabilities = like.new_empty(num_rows, num_words)
        self.rows = like.new_zeros(num_rows, size)
        self.grads = like.new_zeros(num_rows)
        self.used = 0


class _Store:
    """The words, and all that their gradient will be made of."""

    def __init__(self, words: Tensor, bias: Tensor | None, kept_bytes: int) -> None:
        self.words, self.bias = words, bias
        self.left = kept_bytes
        self.pools: list[_Pool] = []
        self.picks: list[tuple[Tensor, Tensor, Tensor]] = []
        self.again: list[tuple[Tensor, Tensor, Tensor]] = []

    def logits(self, rows: Tensor) -> Tensor:
        logits = product(rows, self.words)
        return logits if self.bias is None else logits.add_(self.bias)

    def room(self, num_rows: int) -> tuple[_Pool, slice] | None:
        """Where so many contexts are kept, or None where memory for that is used up."""
        need = num_rows * self.words.shape[0] * self.words.element_size()
        if need > self.left:
            return None
        if not self.pools or self.pools[-1].used + num_rows > len(self.pools[-1].rows):
            rows = max(num_rows, min(_POOL_ROWS, self.left * num_rows // need))
            self.pools.append(_Pool(self.words, rows, *self.words.shape))
            self.left -= rows * need // num_rows
        pool = self.pools[-1]
        pool.used += num_rows
        return pool, slice(pool.used - num_rows, pool.used)


class _Pick(torch.autograd.Function):
    """Logits of the targets and the normaliser of each row. The words get their gradient in ``_Words``."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, targets: Tensor, ticket: Tensor, store: _Store, keep: bool) -> tuple[Tensor, Tensor]:
        logits = store.logits(rows)
        picked = logits.gather(1, targets)
        top, where = logits.max(1)
        place = store.room(len(rows)) if keep else None
        if place is None:
            normaliser = logits.logsumexp(1)
        else:
            kept = torch.softmax(logits, 1, out=place[0].probabilities[place[1]])
            normaliser = top - kept.gather(1, where[:, None])[:, 0].log()
            place[0].rows[place[1]] = rows
        ctx.store, ctx.place = store, place
        ctx.save_for_backward(rows, targets, normaliser)
        return picked, normaliser

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_picked: Tensor, grad_normaliser: Tensor) -> tuple[Tensor | None, ...]:
        rows, targets, normaliser = ctx.saved_tensors
        store: _Store = ctx.store
        if ctx.place is not None:
            pool, part = ctx.place
            probabilities = pool.probabilities[part]
            pool.grads[part] = grad_normaliser
        else:
            probabilities = store.logits(rows).sub_(normaliser[:, None]).exp_()
            store.again.append((rows, normaliser, grad_normaliser))
        store.picks.append((rows, targets, grad_picked))
        grad_rows = product(probabilities, store.words.t()).mul_(grad_normaliser[:, None])
        grad_rows += torch.bmm(grad_picked.unsqueeze(1), store.words[targets]).squeeze(1)
        return grad_rows, None, grad_normaliser.new_zeros(()), None, None


class _Words(torch.autograd.Function):
    """A ticket that every ``_Pick`` holds, so that autograd comes here after the last of them has gone backward."""

    @staticmethod
    def forward(ctx: Any, words: Tensor, bias: Tensor | None, store: _Store) -> Tensor:
        ctx.store, ctx.biased = store, bias is not None
        return words.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        store: _Store = ctx.store
        grad_words = torch.zeros_like(store.words)
        grad_bias = store.words.new_zeros(len(store.words))
        for pool in store.pools:
            probabilities, grads = pool.probabilities[: pool.used], pool.grads[: pool.used]
            grad_words.addmm_(probabilities.t(), pool.rows[: pool.used] * grads[:, None])
            grad_bias.addmv_(probabilities.t(), grads)
            pool.grads.zero_()
        for rows, normaliser, grads in store.again:
            probabilities = store.logits(rows).sub_(normaliser[:, None]).exp_()
            grad_words.addmm_(probabilities.t(), rows * grads[:, None])
            grad_bias.addmv_(probabilities.t(), grads)
        for rows, targets, grads in store.picks:
            flat = targets.flatten()
            grad_words.index_add_(0, flat, (grads.unsqueeze(2) * rows.unsqueeze(1)).flatten(0, 1))
            grad_bias.index_add_(0, flat, grads.flatten())
        store.picks.clear()
        store.again.clear()
        return grad_words, (grad_bias if ctx.biased else None), None
