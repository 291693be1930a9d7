"""Cross entropy within groups: each row uses only the items in the group of its target."""

from typing import Any, Final, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from sememekit.layers.incidence import FixedTables, segment_logsumexp
from sememekit.layers.shared import BY_LOG_PROB, at_least_single, differentiable_once, product_and_bias, product_dtype

BLOCK: Final = 16  # rows of one padded block of the batched path
LOPSIDED: Final = 8  # largest / mean group size up to which groups are padded to one size (not on the CPU)


@final
class Groups(FixedTables):
    """V items in G disjoint groups, as index arrays on the device, without learned parameters.

    >>> groups = Groups(np.array([0, 1, 0]))
    >>> groups.members.tolist(), groups.bounds
    ([0, 2, 1], [0, 2, 3])

    Args:
        group_of: (V,) the group of each item.
        num_groups: G, if some groups may be empty. Default: unused numbers are left out, so that groups are 0 .. G-1 in order
            and none is empty.
        persistent: whether the groups are in the state dict; needed for groups that change in training.

    Attributes:
        group_of: (V,) the group of each item, 0 .. G-1.
        members: (V,) items, group after group, rising within a group.
        place_of: (V,) position of each item in ``members``.
        offsets: (G + 1,) group g is ``members[offsets[g]:offsets[g + 1]]``; ``bounds`` are the same as Python numbers.
        largest: the size of the largest group.
        in_order: whether ``members`` is 0 .. V-1, so that the vectors of a group are a slice and need no copy."""

    group_of: Tensor
    members: Tensor
    place_of: Tensor
    offsets: Tensor

    def __init__(self, group_of: NDArray[np.integer], num_groups: int | None = None, *, persistent: bool = False) -> None:
        super().__init__()
        numbers = np.unique(group_of, return_inverse=True)[1] if num_groups is None else group_of
        self.num_groups = int(numbers.max()) + 1 if num_groups is None else num_groups
        own = torch.from_numpy(numbers.astype(np.int64))
        if persistent:
            self.register_buffer("group_of", own)
        else:
            self.register_tables(group_of=own)
        self._divide()
        self.register_load_state_dict_post_hook(_set_again)

    def set(self, group_of: Tensor) -> None:
        """Reassign the items to the same number of groups. Reads the sizes from the device."""
        self.group_of.copy_(group_of)
        self._divide()

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "group_of" and name not in self._tables:  # a loader put what it read in its place
            self._divide()

    def _divide(self) -> None:
        """Compute the other tables from ``group_of``."""
        if self.group_of.is_meta:
            return
        sizes = torch.bincount(self.group_of, minlength=self.num_groups)
        members = self.group_of.argsort(stable=True)
        offsets = functional.pad(sizes.cumsum(0), (1, 0))
        self.register_tables(members=members, place_of=members.argsort(), offsets=offsets)
        self.bounds: list[int] = offsets.tolist()
        self.largest, self.any_empty = int(sizes.max()), bool((sizes == 0).any())
        self.in_order = bool((self.group_of.diff() >= 0).all())

    @property
    def lopsided(self) -> bool:
        """True if the largest group has over ``LOPSIDED`` times the mean size, as the class of the rarest words often has."""
        return self.largest * self.num_groups > LOPSIDED * len(self.group_of)

    @property
    def sizes(self) -> Tensor:
        """(G,) items in each group."""
        return self.offsets.diff()

    def sort_by_group(self, target: Tensor) -> tuple[Tensor, Tensor]:
        """Sort rows with these targets (N,) by group. Returns the order of the rows (N,), and for each sorted row the place of
        its target among the members of the group."""
        group = self.group_of[target]
        order = group.argsort(stable=True)
        return order, (self.place_of[target] - self.offsets[group])[order]


def _set_again(groups: nn.Module, keys: Any) -> None:
    """Hook after a state dict was loaded; a function, since a lambda could not be pickled."""
    assert isinstance(groups, Groups)
    groups._divide()


def grouped_cross_entropy(rows_NE: Tensor, items_VE: Tensor, bias_V: Tensor | None, target_N: Tensor, groups: Groups) -> Tensor:
    """Return -log softmax of rows items^T + bias at the target, normalised over the target's group only.

    Rows are sorted by group, so that the vectors of a group are gathered once for all its rows. The work is 2 E times the sum,
    over rows, of the size of the row's group; the gradient has V x E numbers. On a CPU groups are processed one by one in the
    cache, and a hand-written backward pass writes each row of the gradient once; group counts are read back. On other devices
    blocks of ``BLOCK`` rows take one padded batched product with static shapes, so nothing is read back. There, too, lopsided
    groups are processed one by one, since their blocks would be mostly padding.

    Returns (N,) nats, unreduced, in the dtype of the items. Under autocast, products are in its dtype."""
    if rows_NE.device.type == "cpu" or groups.lopsided:
        return _GroupByGroup.apply(
            rows_NE, items_VE, bias_V, target_N, groups, product_dtype(items_VE), torch.is_grad_enabled()
        )
    return _in_padded_blocks(rows_NE, items_VE, bias_V, target_N, groups)


def within_groups(rows: Tensor, items_VE: Tensor, bias_V: Tensor | None, groups: Groups) -> Tensor:
    """Return log softmax of rows items^T + bias within each group: (..., E) -> (..., V), at least in single precision."""
    logits = at_least_single(product_and_bias(rows, items_VE, bias_V)).movedim(-1, 0)
    normaliser = segment_logsumexp(logits, groups.group_of, groups.num_groups)
    return (logits - normaliser.index_select(0, groups.group_of)).movedim(0, -1)


class _GroupByGroup(torch.autograd.Function):
    """``grouped_cross_entropy`` a group at a time.

    The gradient of a row is its incoming number times (share - one-hot) times the vectors of its group. The product is taken in
    the forward pass, while the vectors are in the cache, so the vectors are read once and their gradient is written once."""

    @staticmethod
    def forward(ctx: Any, rows_NE: Tensor, items_VE: Tensor, bias_V: Tensor | None, target_N: Tensor, *how: Any) -> Tensor:
        groups, lowered, with_gradient = how
        order_N, place_N = groups.sort_by_group(target_N)
        counts = torch.bincount(groups.group_of[target_N], minlength=groups.num_groups).tolist()
        pick = _Picker(groups.members, groups.in_order)
        sorted_rows_NE, place_N1 = rows_NE[order_N].to(lowered), place_N[:, None]
        sorted_nats_N1 = items_VE.new_empty(len(rows_NE), 1)
        grad_sorted_NE = items_VE.new_empty(rows_NE.shape if with_gradient else 0)
        minus_one = items_VE.new_full((len(rows_NE), 1), -1.0)
        parts: list[tuple[Tensor, int, int, int, int]] = []  # share - one-hot, first row and end, first member and end
        end = 0
        for number, count in enumerate(counts):
            if not count:
                continue
            begin, end = end, end + count
            first, last = groups.bounds[number], groups.bounds[number + 1]
            vectors = pick(items_VE, first, last).to(lowered)
            logits = (sorted_rows_NE[begin:end] @ vectors.T).to(items_VE.dtype)
            if bias_V is not None:
                logits += pick(bias_V, first, last)
            log_probs = functional.log_softmax(logits, dim=1)
            torch.gather(log_probs, 1, place_N1[begin:end], out=sorted_nats_N1[begin:end])
            if with_gradient:
                share = log_probs.exp_().scatter_add_(1, place_N1[begin:end], minus_one[begin:end])
                grad_sorted_NE[begin:end] = share.to(lowered) @ vectors
                parts.append((share, begin, end, first, last))
        # The groups may be others by the time of the backward pass, so the members that were used are kept with the picker.
        ctx.pick, ctx.parts, ctx.lowered, ctx.with_bias = pick, parts, lowered, bias_V is not None
        ctx.save_for_backward(sorted_rows_NE, items_VE, order_N, grad_sorted_NE)
        return torch.empty_like(sorted_nats_N1).index_copy_(0, order_N, sorted_nats_N1.neg_())[:, 0]

    @staticmethod
    @differentiable_once("The likelihood of words in clusters (grouped_cross_entropy)", BY_LOG_PROB)
    def backward(ctx: Any, grad_N: Tensor) -> tuple[Any, ...]:
        sorted_rows_NE, items_VE, order_N, grad_sorted_NE = ctx.saved_tensors
        pick, sorted_grad_N1 = ctx.pick, grad_N[order_N, None]
        grad_items_VE = torch.empty_like(items_VE)
        grad_bias_V = items_VE.new_zeros(len(items_VE)) if ctx.with_bias else None
        done = 0
        for share, begin, end, first, last in ctx.parts:
            weighted = share * sorted_grad_N1[begin:end]
            pick.put(grad_items_VE, first, last, weighted.to(ctx.lowered).T @ sorted_rows_NE[begin:end])
            if grad_bias_V is not None:
                pick.put(grad_bias_V, first, last, weighted.sum(dim=0))
            pick.clear(grad_items_VE, done, first)
            done = last
        pick.clear(grad_items_VE, done, len(items_VE))
        grad_rows_NE = torch.empty_like(grad_sorted_NE).index_copy_(0, order_N, grad_sorted_NE * sorted_grad_N1)
        return grad_rows_NE, grad_items_VE, grad_bias_V, None, None, None, None


class _Picker:
    """Pick rows of a tensor over items by their range in ``members``; a slice if the items are in the order of ``members``."""

    def __init__(self, members: Tensor, in_order: bool) -> None:
        self.members, self.in_order = members, in_order

    def __call__(self, over_items: Tensor, first: int, last: int) -> Tensor:
        return over_items[first:last] if self.in_order else over_items.index_select(0, self.members[first:last])

    def put(self, over_items: Tensor, first: int, last: int, rows: Tensor) -> None:
        if self.in_order:
            over_items[first:last] = rows
        else:
            over_items.index_copy_(0, self.members[first:last], rows.to(over_items.dtype))

    def clear(self, over_items: Tensor, first: int, last: int) -> None:
        if first < last and self.in_order:
            over_items[first:last] = 0.0
        elif first < last:
            over_items.index_fill_(0, self.members[first:last], 0.0)


def _in_padded_blocks(rows_NE: Tensor, items_VE: Tensor, bias_V: Tensor | None, target_N: Tensor, groups: Groups) -> Tensor:
    """``grouped_cross_entropy`` as one batched product of (blocks, BLOCK, E) and (blocks, largest group, E)."""
    device = rows_NE.device
    order_N, at_target = groups.sort_by_group(target_N)
    group = groups.group_of[target_N[order_N]]
    counts = torch.zeros_like(groups.sizes).scatter_add_(0, group, torch.ones_like(group))
    ends = counts.add(BLOCK - 1).div(BLOCK, rounding_mode="floor").cumsum(0)  # of each group, in blocks
    num_blocks = len(rows_NE) // BLOCK + groups.num_groups  # at least as many as there are, so that nothing is read back
    rank = torch.arange(len(rows_NE), device=device) - (counts.cumsum(0) - counts)[group]
    slot = functional.pad(ends, (1, 0))[group] * BLOCK + rank
    of_block = torch.searchsorted(ends, torch.arange(num_blocks, device=device), right=True).clamp_(max=groups.num_groups - 1)
    places = torch.arange(groups.largest, device=device)
    padding = places >= groups.sizes[of_block][:, None]  # (blocks, largest)
    chosen = groups.members[(groups.offsets[of_block][:, None] + places).clamp_(max=len(items_VE) - 1)]
    spread = rows_NE.new_zeros(num_blocks * BLOCK, rows_NE.shape[1]).index_copy(0, slot, rows_NE[order_N])
    logits = (spread.view(num_blocks, BLOCK, -1) @ functional.embedding(chosen, items_VE).transpose(1, 2)).to(items_VE.dtype)
    if bias_V is not None:
        logits = logits + bias_V[chosen][:, None]
    # A spare block at the end may stand for an empty group; no row reads it, and it stays unmasked so that no NaN arises.
    hide = (padding & ~padding.all(dim=1, keepdim=True))[:, None]
    log_probs = logits.masked_fill(hide, -torch.inf).log_softmax(dim=2).view(num_blocks * BLOCK, -1)
    return items_VE.new_empty(len(rows_NE)).index_copy(0, order_N, -log_probs[slot, at_target])
