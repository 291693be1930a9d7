"""Log-probabilities of a few words for each context under a softmax; contexts come block by block."""

from itertools import chain
from typing import Any, NamedTuple, final

import torch
from torch import Tensor

from sememekit.layers.shared import differentiable_once

KEPT_BYTES = 1 << 30
"""Memory for probabilities that the backward pass uses again; for further contexts they are computed a second time."""

_POOL_ROWS = 512
_BLOCK = 256


@final
class ChosenLogits:
    """Softmax over V words for contexts that become known one after the other, as in a recurrence over the probabilities.

    ``pick`` may be called any number of times; each call takes one product with the words, for any number of targets a row. The
    backward pass takes the two other products over many calls at once. The gradient of a normaliser log z_n with respect to its
    context is sum_v p_nv x_v. It depends on no incoming gradient, so the first backward call computes it for all calls that
    share a pool. The gradient of the words is computed after the last backward call: it is as large as the words, and adding it
    up call by call would move it through memory each time.

    ``words`` (V, E) are the output vectors with ``bias`` (V,) or None; at most ``kept_bytes`` of probabilities are kept for the
    backward pass."""

    def __init__(self, words: Tensor, bias: Tensor | None, kept_bytes: int = KEPT_BYTES) -> None:
        self._shared = _Shared(words.detach(), None if bias is None else bias.detach(), kept_bytes)
        self._learns = torch.is_grad_enabled() and (words.requires_grad or (bias is not None and bias.requires_grad))
        self._ticket = _Words.apply(words, bias, self._shared) if self._learns else torch.zeros((), device="cpu")

    def pick(self, rows_NE: Tensor, targets_NK: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits of the targets and the normalisers.

        The logits are (N, K); the normalisers (N,) are the log-sum-exp over all words."""
        rows = rows_NE.to(self._shared.words.dtype)
        keep = torch.is_grad_enabled() and (self._learns or rows.requires_grad)
        blocks = zip(rows.split(_BLOCK), targets_NK.split(_BLOCK), strict=True)
        logits, normalisers = zip(*(_Pick.apply(*block, self._ticket, self._shared, keep) for block in blocks), strict=True)
        return (logits[0], normalisers[0]) if len(logits) == 1 else (torch.cat(logits), torch.cat(normalisers))

    def log_probs(self, rows_NE: Tensor, targets_NK: Tensor) -> Tensor:
        """(N, K) log-probabilities; arguments as ``pick``."""
        logits, normaliser = self.pick(rows_NE, targets_NK)
        return logits - normaliser[:, None]


class _Pool:
    """Probabilities of the contexts of some calls, beside these contexts and the gradients of their normalisers."""

    def __init__(self, words: Tensor, num_rows: int) -> None:
        self.words = words
        self.probabilities = words.new_empty(num_rows, len(words))
        self.rows = words.new_zeros(num_rows, words.shape[1])
        self.grads = words.new_zeros(num_rows)
        self.used = 0
        self._means: Tensor | None = None

    def means(self) -> Tensor:
        """(N, E) sum_v p_nv x_v for the contexts of all calls so far."""
        if self._means is None or len(self._means) < self.used:
            self._means = self.probabilities[: self.used] @ self.words
        return self._means


class _Backward(NamedTuple):
    """Tensors that the backward pass of a call needs; ``place``: where its probabilities are, if they are kept."""

    rows: Tensor
    targets: Tensor
    normaliser: Tensor
    grad_picked: Tensor
    grad_normaliser: Tensor
    place: tuple[_Pool, slice] | None


class _Shared:
    """The words and, during the backward pass, the parts of their gradient."""

    def __init__(self, words: Tensor, bias: Tensor | None, kept_bytes: int) -> None:
        self.words, self.bias, self.left = words, bias, kept_bytes
        self.pools: list[_Pool] = []
        self.backward: list[_Backward] = []

    def logits(self, rows: Tensor) -> Tensor:
        logits = rows @ self.words.T
        return logits if self.bias is None else logits.add_(self.bias)

    def probabilities(self, rows: Tensor, normaliser: Tensor) -> Tensor:
        return self.logits(rows).sub_(normaliser[:, None]).exp_()

    def reserve(self, num_rows: int) -> tuple[_Pool, slice] | None:
        """Return a place for the probabilities of so many contexts, or None if the memory for them is used up."""
        need = num_rows * self.words.shape[0] * self.words.element_size()
        if not num_rows or need > self.left:
            return None
        if not self.pools or self.pools[-1].used + num_rows > len(self.pools[-1].rows):
            rows = max(num_rows, min(_POOL_ROWS, self.left * num_rows // need))
            self.pools.append(_Pool(self.words, rows))
            self.left -= rows * need // num_rows
        pool = self.pools[-1]
        pool.used += num_rows
        return pool, slice(pool.used - num_rows, pool.used)

    def gradients(self, num_calls: int) -> tuple[Tensor, Tensor]:
        """Return gradients of words and bias after the backward pass of the last of ``num_calls`` calls; frees their memory.

        Earlier gradients come from backward passes for the contexts alone, and do not count."""
        grad_words, grad_bias = torch.zeros_like(self.words), self.words.new_zeros(len(self.words))
        calls, self.backward = self.backward[-num_calls:], []
        for pool in self.pools:
            pool.grads.zero_()
        for call in calls:
            if call.place is not None:
                pool, part = call.place
                pool.grads[part] = call.grad_normaliser
        kept = [(pool.probabilities[: pool.used], pool.rows[: pool.used], pool.grads[: pool.used]) for pool in self.pools]
        again = (
            (self.probabilities(call.rows, call.normaliser), call.rows, call.grad_normaliser)
            for call in calls
            if call.place is None
        )
        for probabilities, rows, grads in chain(kept, again):
            grad_words.addmm_(probabilities.t(), rows * grads[:, None])
            grad_bias.addmv_(probabilities.t(), grads)
        for call in calls:
            flat = call.targets.flatten()
            grad_words.index_add_(0, flat, (call.grad_picked.unsqueeze(2) * call.rows.unsqueeze(1)).flatten(0, 1))
            grad_bias.index_add_(0, flat, call.grad_picked.flatten())
        return grad_words, grad_bias


class _Pick(torch.autograd.Function):
    """Logits of targets and normalisers of a block of contexts. The words get their gradient in ``_Words``."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, targets: Tensor, ticket: Tensor, shared: _Shared, keep: bool) -> tuple[Tensor, Tensor]:
        logits = shared.logits(rows)
        ctx.shared, ctx.place = shared, shared.reserve(len(rows)) if keep else None
        if ctx.place is None:
            normaliser = logits.logsumexp(1)
        else:
            pool, part = ctx.place
            kept = torch.softmax(logits, 1, out=pool.probabilities[part])
            pool.rows[part] = rows
            normaliser = logits.amax(1) - kept.amax(1).log()
        ctx.save_for_backward(rows, targets, normaliser)
        return logits.gather(1, targets), normaliser

    @staticmethod
    @differentiable_once("ChosenLogits")
    def backward(ctx: Any, grad_picked: Tensor, grad_normaliser: Tensor) -> tuple[Tensor | None, ...]:
        rows, targets, normaliser = ctx.saved_tensors
        shared: _Shared = ctx.shared
        if ctx.place is None:
            means = shared.probabilities(rows, normaliser) @ shared.words
        else:
            pool, part = ctx.place
            means = pool.means()[part]
        shared.backward.append(_Backward(rows, targets, normaliser, grad_picked, grad_normaliser, ctx.place))
        grad_rows = means * grad_normaliser[:, None]
        grad_rows += (grad_picked.unsqueeze(2) * shared.words[targets]).sum(1)
        return grad_rows, None, torch.ones((), device="cpu"), None, None


class _Words(torch.autograd.Function):
    """An input of every ``_Pick``, so that autograd runs this backward pass after the last ``_Pick``. Its gradient is the
    number of ``_Pick`` calls; it is on the CPU, so that reading it waits for no device."""

    @staticmethod
    def forward(ctx: Any, words: Tensor, bias: Tensor | None, shared: _Shared) -> Tensor:
        ctx.shared, ctx.biased = shared, bias is not None
        return torch.zeros((), device="cpu")

    @staticmethod
    @differentiable_once("ChosenLogits")
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grad_words, grad_bias = ctx.shared.gradients(int(grad))
        return grad_words, (grad_bias if ctx.biased else None), None
