"""Ids and lengths that a user gives: whole numbers of any dtype, each inside its range."""

import torch
from torch import Tensor


def whole_numbers(given: Tensor, what: str) -> Tensor:
    """``given`` as int64, from any dtype of whole numbers.

    Raises:
        TypeError: no tensor, or one of floats, of complex numbers or of booleans. ``what`` begins the message.
    """
    if not isinstance(given, Tensor):
        raise TypeError(f"{what} must be a tensor of whole numbers, given {type(given).__name__}")
    if given.is_floating_point() or given.is_complex() or given.dtype == torch.bool:
        raise TypeError(f"{what} must be whole numbers, given {given.dtype}; convert them with .long() if they are ids")
    return given.long()


def check_range(numbers: Tensor, first: int, last: int, what: str, *, spared: int | None = None, hint: str = "") -> None:
    """Refuse numbers outside of ``first`` to ``last``.

    On a CPU they are looked at. On a GPU the device looks at them, so that nothing is read back: it stops with an assertion.
    What a compiler traces is not checked, since a graph must not depend on the data.

    Args:
        numbers: int64 of any shape.
        first, last: the smallest and the largest that is allowed.
        what: begins the message.
        spared: a number that is allowed besides.
        hint: ends the message.

    Raises:
        ValueError: a number outside, the first of which is named; on a CPU.
    """
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
