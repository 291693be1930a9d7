"""Checks of tensors that a caller of ``sememekit.nn`` gives."""

from collections.abc import Sequence

import torch
from torch import Tensor


def whole_numbers(given: Tensor, what: str, shape: Sequence[int] | None = None, of: str = "") -> Tensor:
    """Convert ``given`` to int64 from any integer dtype.

    Raises TypeError, beginning with ``what``: not a tensor of integers. Raises ValueError: not of the ``shape`` of ``of``."""
    if not isinstance(given, Tensor):
        raise TypeError(f"{what} must be a tensor of whole numbers, given {type(given).__name__}")
    if given.is_floating_point() or given.is_complex() or given.dtype == torch.bool:
        raise TypeError(f"{what} must be whole numbers, given {given.dtype}; convert them with .long() if they are ids")
    if shape is not None and given.shape != tuple(shape):
        raise ValueError(f"{what} must be {tuple(shape)} for {of}, given {tuple(given.shape)}")
    return given.long()


def check_range(numbers: Tensor, first: int, last: int, what: str, *, spared: int | None = None, hint: str = "") -> None:
    """Refuse numbers outside of ``first`` to ``last``.

    A GPU stops with an assertion, so that nothing is read back. Traced calls are not checked, since a graph must not depend on
    the data. ``spared`` is a further allowed number, and ``hint`` ends the message.

    Raises ValueError (on a CPU): naming the first number outside the range."""
    if torch.compiler.is_compiling() or numbers.is_meta:
        return
    wrong = (numbers < first) | (numbers > last)
    if spared is not None:
        wrong &= numbers != spared
    allowed = f"{what} must be {first} to {last}"
    if numbers.is_cuda:
        torch._assert_async(~wrong.any(), f"{allowed}{hint}")
    elif wrong.any():
        place = tuple(int(index) for index in wrong.nonzero()[0])
        raise ValueError(f"{allowed}, given {int(numbers[place])} at {list(place)}{hint}")


def check_shapes(parts: Sequence[Tensor], shapes: Sequence[tuple[int, ...]], wanted: str) -> None:
    """Refuse tensors of other shapes, which would be broadcast or used for the wrong layer; ``wanted`` begins the message."""
    given = [tuple(part.shape) for part in parts]
    if given != list(shapes):
        raise ValueError(f"{wanted}, given {', '.join(map(str, given))}")
