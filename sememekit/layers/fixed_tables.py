"""Tables that follow from what a module was built from, and that no state dict has to hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn


class FixedTables(nn.Module):
    """A module with buffers that are no part of its state dict, and that keep their values whatever memory they get.

    ``to_empty``, and loaders that build a module on the meta device and give it fresh memory, fill what a state dict holds and
    leave other buffers as they find them. These are filled again: when memory is exchanged (``_apply``), and when a tensor is
    put in the place of one (``setattr``), as ``transformers`` does. Other values are given by ``register_tables`` alone.

    A cast of the module, such as ``.bfloat16()``, casts them, too, but for those that ``never_narrowed`` names.
    """

    never_narrowed: ClassVar[tuple[str, ...]] = ()
    """Buffers, tables or others, that no cast brings to fewer bits than they have: what adds up over many steps."""
    _tables: dict[str, Tensor]

    def register_tables(self, **tables: Tensor) -> None:
        """Register buffers with these values; again for one that there is already gives it others."""
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
