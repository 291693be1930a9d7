"""Cross entropy within groups: of V items, a row looks at those in the group of its target and at no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class Groups(nn.Module):
    """V items in C disjoint groups, none of them empty, as index arrays on the device; it holds nothing that is learned.

    Args:
        group_of: (V,) the group of each item. Numbers that no item has are left out, so that groups are 0 .. C-1 in order.

    Attributes:
        group_of: (V,) the group of each item, 0 .. C-1.
        members: (V,) items, group after group, rising within a group.
        place_of: (V,) where an item stands in ``members``.
        bounds: C+1 numbers; group c is ``members[bounds[c]:bounds[c + 1]]``.
        in_order: whether ``members`` is 0 .. V-1, so that the vectors of a group are a slice and need no copy.
    """

    group_of: Tensor
    members: Tensor
    place_of: Tensor

    def __init__(self, group_of: NDArray[np.integer]) -> None:
        super().__init__()
        _, dense = np.unique(group_of, return_inverse=True)
        members = np.argsort(dense, kind="stable")
        self.bounds: list[int] = [0, *np.cumsum(np.bincount(dense)).tolist()]
        self.in_order = bool((members == np.arange(len(members))).all())
        self.register_buffer("group_of", torch.from_numpy(dense.astype(np.int64)), persistent=False)
        self.register_buffer("members", torch.from_numpy(members.astype(np.int64)), persistent=False)
        self.register_buffer("place_of", torch.from_numpy(np.argsort(members).astype(np.int64)), persistent=False)

    @property
    def num_groups(self) -> int:
        """C."""
        return len(self.bounds) - 1

    def pick(self, over_items: Tensor, group: int) -> Tensor:
        """The rows of a group, from a tensor over items."""
        part = slice(self.bounds[group], self.bounds[group + 1])
        return over_items[part] if self.in_order else over_items.index_select(0, self.members[part])

    def put(self, over_items: Tensor, group: int, rows: Tensor) -> None:
        """Write the rows of a group into a tensor over items."""
        part = slice(self.bounds[group], self.bounds[group + 1])
        if self.in_order:
            over_items[part] = rows
        else:
            over_items.index_copy_(0, self.members[part], rows.to(over_items.dtype))


def grouped_cross_entropy(rows: Tensor, items: Tensor, bias: Tensor | None, target: Tensor, groups: Groups) -> Tensor:
    """-log softmax over the group of the target alone, of rows items^T + bias, taken at the target.

    Rows are sorted by group; then each group that occurs is one product of its rows and its vectors. The cost is the sum of
    rows x members over those groups, and the largest tensor is as large as the vectors of one group: no vectors are gathered
    for single rows and no padding is computed. The number of rows of each group is read back once a call. The backward pass is
    written by hand, so that the gradient of the items is one (V, E) tensor and not one for each group.

    Args:
        rows: (N, E) contexts.
        items: (V, E) output vectors.
        bias: (V,) or None.
        target: (N,) items.
        groups: of the items.

    Returns:
        (N,) nats, unreduced.
    """
    kind = rows.device.type
    product_dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else items.dtype
    nats: Tensor = _GroupedCrossEntropy.apply(rows, items, bias, target, groups, product_dtype)
    return nats


class _GroupedCrossEntropy(torch.autograd.Function):
    """``grouped_cross_entropy`` with its gradient; products in ``product_dtype``, all else in the dtype of the items."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        items: Tensor,
        bias: Tensor | None,
        target: Tensor,
        groups: Groups,
        product_dtype: torch.dtype,
    ) -> Tensor:
        group = groups.group_of[target]
        order = group.argsort(stable=True)
        counts = torch.bincount(group, minlength=groups.num_groups).tolist()
        place = groups.place_of[target[order]]
        sorted_rows = rows[order].to(product_dtype)
        nats = items.new_empty(len(rows))
        shares, parts, end = [], [], 0
        for number, count in enumerate(counts):
            if not count:
                continue
            part, end = slice(end, end + count), end + count
            logits = (sorted_rows[part] @ groups.pick(items, number).to(product_dtype).T).to(items.dtype)
            if bias is not None:
                logits += groups.pick(bias, number)
            log_normaliser = logits.logsumexp(dim=1, keepdim=True)
            hit = (place[part] - groups.bounds[number])[:, None]
            nats[part] = (log_normaliser - logits.gather(1, hit))[:, 0]
            shares.append(logits.sub_(log_normaliser).exp_().scatter_add_(1, hit, -torch.ones_like(log_normaliser)))
            parts.append((number, part))
        ctx.groups, ctx.shares, ctx.parts, ctx.product_dtype = groups, shares, parts, product_dtype
        ctx.with_bias = bias is not None
        ctx.save_for_backward(sorted_rows, items, order)
        return torch.empty_like(nats).index_copy_(0, order, nats)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        sorted_rows, items, order = ctx.saved_tensors
        groups: Groups = ctx.groups
        grad = grad[order]
        grad_items = torch.zeros_like(items)
        grad_bias = items.new_zeros(len(items)) if ctx.with_bias else None
        grad_sorted = torch.empty(sorted_rows.shape, dtype=items.dtype, device=items.device)
        for (number, part), share in zip(ctx.parts, ctx.shares, strict=True):
            weighted = share * grad[part, None]
            lowered = weighted.to(ctx.product_dtype)
            grad_sorted[part] = (lowered @ groups.pick(items, number).to(ctx.product_dtype)).to(items.dtype)
            groups.put(grad_items, number, lowered.T @ sorted_rows[part])
            if grad_bias is not None:
                groups.put(grad_bias, number, weighted.sum(dim=0))
        grad_rows = torch.empty_like(grad_sorted).index_copy_(0, order, grad_sorted)
        return grad_rows, grad_items, grad_bias, None, None, None
