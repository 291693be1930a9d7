"""The most probable items; p(item) is the probability of its group times its probability inside the group."""

import torch
from torch import Tensor

from sememekit.layers.grouped_cross_entropy import Groups, within_groups
from sememekit.layers.shared import product_and_bias

FIRST_GROUPS = 4
"""Number of groups of each row that the first round searches; each round searches twice as many as the previous round."""
PATIENCE, FEW_ROWS = 12, 256
"""Once so many groups of a row are searched and fewer rows than this number are open, these rows search all items at once: a
product for each group would take longer. At V = 69,000, unsure rows, group by group and at once: 5 of them 196 and 31 ms, 64 of
them 0.48 and 0.15 s, 640 of them 1.7 and 2.1 s."""


@torch.no_grad()
def grouped_topk(
    rows_NE: Tensor, items_VE: Tensor, bias_V: Tensor | None, among_NG: Tensor, groups: Groups, count: int
) -> tuple[Tensor, Tensor]:
    """The ``count`` items with the largest log p(group) + log softmax over the group of rows items^T + bias, exactly.

    No item is more probable than its group. So the groups of a row are searched by falling probability, and a row is done when
    its next group is no more probable than the last of its ``count`` best items so far. Rows that search the same group are
    processed together, so that its vectors are gathered once a round. The more concentrated the group probabilities of a row,
    the fewer groups it searches. In the end, a few rows with flat group probabilities search all items at once.

    ``among_NG``: log-probabilities of the groups, -inf for empty ones. Returns log-probabilities (N, count) by falling value,
    and items (N, count)."""
    if _at_once_is_quicker(len(rows_NE), items_VE, groups):
        return _among_all(rows_NE, items_VE, bias_V, among_NG, groups, count)
    best = among_NG.new_full((len(rows_NE), count), -torch.inf)
    which = torch.zeros((len(rows_NE), count), dtype=torch.long, device=rows_NE.device)
    falling, order = among_NG.sort(dim=1, descending=True, stable=True)
    begin, width = 0, FIRST_GROUPS
    open_rows = torch.arange(len(rows_NE), device=rows_NE.device)
    while begin < groups.num_groups and len(open_rows):
        if begin >= PATIENCE and len(open_rows) < FEW_ROWS:
            best[open_rows], which[open_rows] = _among_all(
                rows_NE[open_rows], items_VE, bias_V, among_NG[open_rows], groups, count
            )
            break
        bound, asked = falling[open_rows, begin : begin + width], order[open_rows, begin : begin + width]
        # A tie with the last item found changes no value, so a group that only ties is left out.
        wanted = (bound > best[open_rows, -1:]).nonzero()
        group = asked[wanted[:, 0], wanted[:, 1]]
        wanted, group = wanted[by_group := group.argsort(stable=True)], group[by_group]
        values = best.new_full((*asked.shape, count), -torch.inf)
        found = which.new_zeros((*asked.shape, count))
        counts, end = torch.bincount(group, minlength=groups.num_groups).tolist(), 0
        for number, size in enumerate(counts):
            first, last = groups.bounds[number], groups.bounds[number + 1]
            if not size or first == last:
                end += size
                continue
            start, end = end, end + size
            row, column = wanted[start:end].T
            members = groups.members[first:last]
            bias = None if bias_V is None else bias_V[members]
            logits = product_and_bias(rows_NE[open_rows[row]], items_VE[members], bias)
            inside = logits.to(best.dtype).log_softmax(dim=1).topk(min(count, last - first))
            values[row, column, : inside.values.shape[1]] = inside.values + bound[row, column, None]
            found[row, column, : inside.values.shape[1]] = members[inside.indices]
        values = torch.cat([best[open_rows], values.flatten(1)], dim=1)
        top = values.topk(count)
        best[open_rows] = top.values
        which[open_rows] = torch.cat([which[open_rows], found.flatten(1)], dim=1).gather(1, top.indices)
        begin, width = begin + width, 2 * width
        if begin < groups.num_groups:
            open_rows = open_rows[falling[open_rows, begin] > best[open_rows, -1]]
    return best, which


def _at_once_is_quicker(num_rows: int, items_VE: Tensor, groups: Groups) -> bool:
    """Return whether searching all items takes less time than a few groups of each row, by measurements on one CPU core.

    All: vectors are read (0.8 ns a number) or multiplied (25 G multiply-adds a second), and 15 ns for each row and item.
    Groups: 24 a row, 0.1 ms for each group that any row searches, and products of few rows (10 G multiply-adds a second). The
    choice changes only the time: both ways give the same items."""
    num_items, size = items_VE.shape
    at_once = num_items * size * max(0.8, num_rows / 25) + 15 * num_rows * num_items
    in_groups = 100_000 * min(groups.num_groups, 24 * num_rows) + num_rows * 24 * num_items / groups.num_groups * size / 10
    return at_once < in_groups


def _among_all(
    rows_NE: Tensor, items_VE: Tensor, bias_V: Tensor | None, among_NG: Tensor, groups: Groups, count: int
) -> tuple[Tensor, Tensor]:
    """Return the same result from the probabilities of all items."""
    found = (within_groups(rows_NE, items_VE, bias_V, groups) + among_NG.index_select(1, groups.group_of)).topk(count, dim=1)
    return found.values, found.indices
