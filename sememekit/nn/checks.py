"""Checks of arguments and tensors that a caller of ``sememekit.nn`` gives."""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sememekit.errors import ConfigError

_LARGEST: Final = 2**31 - 1
_SIZES: Final = ("in_features", "input_size", "hidden_size", "num_layers", "num_sememes")
_REDUCTIONS: Final = ("mean", "sum", "none")


def check_arguments(name: str, **given: Any) -> None:
    """Refuse arguments of a constructor by their names; ``name`` is the class.

    Raises ConfigError: a size that is no whole number of 1 or more, a flag that is no bool, an unknown device or reduction, a
    dtype that is not of floats, an ``ignore_index`` that is no whole number, or a smoothing outside 0 to 1."""
    for what, value in given.items():
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if what in _SIZES:
            good, allowed = whole and 1 <= value <= _LARGEST, "a whole number of 1 or more"
        elif what == "ignore_index":
            good, allowed = whole and abs(value) <= _LARGEST, "a whole number"
        elif what == "label_smoothing":
            real = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            good, allowed = real and 0.0 <= value <= 1.0, "a number of 0 to 1"
        elif what == "reduction":
            good, allowed = isinstance(value, str) and value in _REDUCTIONS, "'mean', 'sum' or 'none'"
        elif what == "dtype":
            good, allowed = (
                value is None or (isinstance(value, torch.dtype) and value.is_floating_point),
                "a torch.dtype of floats",
            )
        elif what == "device":
            good, allowed = _is_device(value), "a device of torch, such as 'cpu'"
        else:
            good, allowed = isinstance(value, bool | np.bool_), "True or False"
        if not good:
            raise ConfigError(f"{name}: {what} must be {allowed}, given {value!r:.80}")


def _is_device(given: Any) -> bool:
    try:
        return given is None or bool(torch.device(given).type)
    except (RuntimeError, TypeError, ValueError):
        return False


def array_of(given: Any, what: str, wanted: str) -> NDArray[Any]:
    """Convert an array, a tensor or a list of numbers. Raises ConfigError, "``what`` must be ``wanted``": of another kind."""
    try:
        found = np.asarray(given.detach().cpu() if isinstance(given, Tensor) else given)
    except (TypeError, ValueError, RuntimeError):
        found = np.empty(0, dtype=object)
    if found.dtype.kind not in "iuf":
        raise ConfigError(f"{what} must be {wanted}, given {given!r:.80}")
    return found


def as_weight(weight: Any, num_words: int, name: str) -> Tensor | None:
    """Return (V,) weights from an array, a tensor or a list; None stays None.

    Raises ConfigError: not a finite number of 0 or more for each word."""
    if weight is None:
        return None
    wanted = f"({num_words},) finite numbers of 0 or more, one for each word"
    found = array_of(weight, f"{name}: weight", wanted)
    good = found.shape == (num_words,) and np.isfinite(found).all() and found.min() >= 0
    if not good:
        least = f", least {found.min():g}" if found.shape == (num_words,) and not math.isnan(found.min()) else ""
        raise ConfigError(f"{name}: weight must be {wanted}, given {found.shape}{least}")
    return (
        weight
        if isinstance(weight, Tensor) and weight.is_floating_point()
        else torch.tensor(found).to(torch.get_default_dtype())
    )


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
