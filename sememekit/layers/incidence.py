"""A fixed sparse 0/1 matrix between two finite sets, as an operator on dense rows; log-space sums over segments of rows."""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional


class FixedTables(nn.Module):
    """A module with constant buffers outside its state dict, which keep their values in new memory.

    ``to_empty``, and loaders that build modules on the meta device, fill only the state dict in new memory. Therefore these
    buffers are filled again when memory is replaced (``_apply``) and when a tensor is assigned (``setattr``), as
    ``transformers`` does. Only ``register_tables`` changes their values.

    A cast of the module, such as ``.bfloat16()``, casts them too, except for ``never_narrowed``."""

    never_narrowed: ClassVar[tuple[str, ...]] = ()
    """Buffers that no cast makes narrower, since they sum over many steps."""
    _tables: dict[str, Tensor]

    def register_tables(self, **tables: Tensor) -> None:
        """Register buffers with these values, or change the values of existing ones."""
        self._tables = {**self.__dict__.get("_tables", {}), **tables}
        for name, table in tables.items():
            self.register_buffer(name, table, persistent=False)

    def __setattr__(self, name: str, value: Any) -> None:
        kept = self.__dict__.get("_tables", {})
        if name in kept and isinstance(value, Tensor):
            _fill(value, kept[name])
        super().__setattr__(name, value)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        before = {name: getattr(self, name) for name in self.never_narrowed}
        super()._apply(fn, recurse)
        for name, buffer in before.items():
            device, dtype = getattr(self, name).device, torch.promote_types(getattr(self, name).dtype, buffer.dtype)
            if getattr(self, name).dtype != dtype:
                setattr(self, name, buffer.to(device, dtype))
        for name, kept in self.__dict__.get("_tables", {}).items():
            _fill(getattr(self, name), kept)
        return self


@torch.no_grad()
def _fill(table: Tensor, kept: Tensor) -> None:
    if table is not kept and not table.is_meta and table.data_ptr() != kept.data_ptr():
        table.copy_(kept)


class Incidence(FixedTables):
    """The members (column numbers) of each row, for sums over the members of a row and, transposed, over the rows of a member.

    >>> incidence = Incidence(offsets=torch.tensor([0, 2, 3]), members=torch.tensor([0, 1, 1]), num_columns=2)
    >>> incidence(torch.tensor([[1.0], [10.0]])).tolist()
    [[11.0], [10.0]]

    With M the (rows x columns) 0/1 matrix, ``incidence(x)`` is M x and ``incidence.back(y)`` is M^T y. Neither builds a sparse
    tensor: both are gather-and-sum over contiguous rows, which runs on CPU and CUDA, is deterministic (no atomic additions) and
    takes a weight for each edge. Index arrays are int32, with which the CPU kernel is up to 1.5 times as fast.

    ``offsets``: (rows + 1,) integers, where the members of each row begin and end in ``members``: (edges,) column numbers."""

    offsets: Tensor
    members: Tensor
    back_offsets: Tensor
    back_rows: Tensor
    back_edges: Tensor

    def __init__(self, offsets: Tensor, members: Tensor, num_columns: int) -> None:
        super().__init__()
        num_rows = len(offsets) - 1
        rows = torch.arange(num_rows, device=offsets.device)
        row_of_edge = rows.repeat_interleave(offsets.diff(), output_size=len(members))
        by_column = members.argsort(stable=True)
        back_offsets = functional.pad(torch.bincount(members, minlength=num_columns).cumsum(0), (1, 0))
        self.num_rows = num_rows
        self.register_tables(offsets=offsets.int(), members=members.int(), back_offsets=back_offsets.int())
        self.register_tables(back_rows=row_of_edge[by_column].int(), back_edges=by_column)

    def forward(self, x: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Sum over the members of each row. ``x``: (columns, N); ``edge_weight``: (edges,). Returns (rows, N)."""
        return _sums(x, self.members, self.offsets, edge_weight)

    def back(self, y: Tensor, back_weight: Tensor | None = None) -> Tensor:
        """Sum over the rows that a member belongs to. ``y``: (rows, N). Returns (columns, N).

        ``back_weight``: (edges,) ``edge_weight[incidence.back_edges]``, the weights in the order of their use here."""
        return _sums(y, self.back_rows, self.back_offsets, back_weight)


def _sums(x: Tensor, members: Tensor, offsets: Tensor, weight: Tensor | None) -> Tensor:
    """``functional.embedding_bag`` with sums, without its checks, which cost as much as the sum of a small block."""
    return torch.embedding_bag(x, members, offsets, False, 0, False, weight, True)[0]


def segment_logsumexp(x: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """Log of the sum of exponentials of the rows of each segment, each segment shifted by its own maximum. ``x``: (S, ...)
    log-space values; ``segment``: (S,) 0 .. num_segments - 1, each with at least one row. Returns (num_segments, ...): never
    -inf or NaN for finite ``x``, since the largest term counts as exp(0)."""
    shape = (num_segments, *x.shape[1:])
    with torch.no_grad():
        rows = segment.view(-1, *[1] * (x.ndim - 1)).expand_as(x)
        top = x.new_full(shape, -torch.inf).scatter_reduce_(0, rows, x, "amax")
    total = x.new_zeros(shape).index_add(0, segment, (x - top.index_select(0, segment)).exp())
    return total.log() + top
