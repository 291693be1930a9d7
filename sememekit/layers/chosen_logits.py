"""Log-probabilities of a few words a context under a softmax, for contexts that come one block after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

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

    Where a recurrence needs the numbers but no gradients, its calls under ``torch.no_grad`` are a rehearsal: what they found
    is kept, and the next call with gradients, for the contexts of all of them in their order, takes it from there.

    Args:
        words: (V, E) output vectors.
        bias: (V,) or None.
        kept_bytes: of probabilities that are kept for the backward pass.
    """

    def __init__(self, words: Tensor, bias: Tensor | None, kept_bytes: int = KEPT_BYTES) -> None:
        self._store = _Store(words.detach(), None if bias is None else bias.detach(), kept_bytes)
        self._learns = torch.is_grad_enabled() and (words.requires_grad or (bias is not None and bias.requires_grad))
        self._ticket = _Words.apply(words, bias, self._store) if self._learns else words.new_zeros(())
        self._rehearsed: list[_Found] = []

    def pick(self, rows: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Unnormalised log-probabilities, and what normalises them.

        Args:
            rows: (M, E) contexts.
            targets: (M, K) word ids.

        Returns:
            (M, K) logits, and (M,) the logarithm of the sum of exponentials over all words.
        """
        store, rows = self._store, rows.to(self._store.words.dtype)
        with_gradients = torch.is_grad_enabled()
        if with_gradients and self._rehearsed:
            found = _joined(self._rehearsed)
            self._rehearsed = []
            assert len(found.normaliser) == len(rows)
            return _Pick.apply(rows, targets, self._ticket, store, found)
        found = store.look(rows.detach(), targets, keep=self._learns or (with_gradients and rows.requires_grad))
        if with_gradients:
            return _Pick.apply(rows, targets, self._ticket, store, found)
        if self._learns:
            self._rehearsed.append(found)
        return found.logits, found.normaliser

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


_Place = tuple[_Pool | None, int, int]
"""Where the probabilities of some contexts are: a pool, and the first row and the one behind the last; None for nowhere."""


@dataclass(frozen=True)
class _Found:
    """Logits (M, K) and normalisers (M,) of some contexts, and where their probabilities are."""

    logits: Tensor
    normaliser: Tensor
    places: tuple[_Place, ...]


def _joined(parts: Sequence[_Found]) -> _Found:
    """Several blocks as one; neighbours in a pool become one place."""
    places: list[_Place] = []
    for pool, begin, end in (place for part in parts for place in part.places):
        if places and places[-1][0] is pool and (pool is None or places[-1][2] == begin):
            last = places.pop()
            begin, end = last[1], last[2] + end - begin
        places.append((pool, begin, end))
    return _Found(torch.cat([part.logits for part in parts]), torch.cat([part.normaliser for part in parts]), tuple(places))


class _Store:
    """The words, and all that their gradient will be made of."""

    def __init__(self, words: Tensor, bias: Tensor | None, kept_bytes: int) -> None:
        self.words, self.bias = words, bias
        self.left = kept_bytes
        self.pools: list[_Pool] = []
        self.picks: list[tuple[Tensor, Tensor, Tensor]] = []
        self.again: list[tuple[Tensor, Tensor, Tensor]] = []

    def logits(self, rows: Tensor) -> Tensor:
        logits = rows @ self.words.T
        return logits if self.bias is None else logits.add_(self.bias)

    def look(self, rows: Tensor, targets: Tensor, *, keep: bool) -> _Found:
        """Logits and normalisers, block by block, and with ``keep`` the probabilities as far as there is room."""
        parts = []
        for begin in range(0, max(len(rows), 1), _BLOCK):
            block = rows[begin : begin + _BLOCK]
            logits = self.logits(block)
            picked = logits.gather(1, targets[begin : begin + _BLOCK])
            room = self._room(len(block)) if keep else None
            if room is None:
                parts.append(_Found(picked, logits.logsumexp(1), ((None, 0, len(block)),)))
                continue
            pool, first = room
            kept = torch.softmax(logits, 1, out=pool.probabilities[first : pool.used])
            pool.rows[first : pool.used] = block
            parts.append(_Found(picked, logits.amax(1) - kept.amax(1).log(), ((pool, first, pool.used),)))
        return _joined(parts)

    def _room(self, num_rows: int) -> tuple[_Pool, int] | None:
        """A pool with room for so many contexts and the row where it begins, or None where memory for that is used up."""
        need = num_rows * self.words.shape[0] * self.words.element_size()
        if not num_rows or need > self.left:
            return None
        if not self.pools or self.pools[-1].used + num_rows > len(self.pools[-1].rows):
            rows = max(num_rows, min(_POOL_ROWS, self.left * num_rows // need))
            self.pools.append(_Pool(self.words, rows, *self.words.shape))
            self.left -= rows * need // num_rows
        pool = self.pools[-1]
        pool.used += num_rows
        return pool, pool.used - num_rows


class _Pick(torch.autograd.Function):
    """What was found for each row, as a function of the rows. The words get their gradient in ``_Words``."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, targets: Tensor, ticket: Tensor, store: _Store, found: _Found) -> tuple[Tensor, Tensor]:
        ctx.store, ctx.places = store, found.places
        ctx.save_for_backward(rows, targets, found.normaliser)
        return found.logits, found.normaliser.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_picked: Tensor, grad_normaliser: Tensor) -> tuple[Tensor | None, ...]:
        rows, targets, normaliser = ctx.saved_tensors
        store: _Store = ctx.store
        parts, done = [], 0
        for pool, begin, end in ctx.places:
            part = slice(done, done + end - begin)
            done = part.stop
            if pool is not None:
                probabilities = pool.probabilities[begin:end]
                pool.grads[begin:end] = grad_normaliser[part]
            else:
                probabilities = store.logits(rows[part]).sub_(normaliser[part, None]).exp_()
                store.again.append((rows[part], normaliser[part], grad_normaliser[part]))
            parts.append(probabilities @ store.words)
        store.picks.append((rows, targets, grad_picked))
        grad_rows = torch.cat(parts).mul_(grad_normaliser[:, None])
        grad_rows += (grad_picked.unsqueeze(2) * store.words[targets]).sum(1)
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
