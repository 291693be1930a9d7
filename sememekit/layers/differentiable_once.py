"""Backward passes that are written by hand and have no derivative of their own."""

from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")

NO_WAY: Final = "leave create_graph out; gradient penalties and Hessians are not supported here"
BY_LOG_PROB: Final = (
    "take the loss from the probabilities of all words, whose gradient has derivatives: of a layer of sememekit.nn "
    "-layer.log_prob(hidden).gather(-1, target.unsqueeze(-1)).squeeze(-1), of a decoder the same with log_probs"
)
"""What to use in place of the likelihood of an output layer."""


def differentiable_once(what: str, instead: str = NO_WAY) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make ``backward`` of a ``torch.autograd.Function`` refuse to be differentiated again.

    torch's ``once_differentiable`` raises only where an incoming gradient needs one. That of a mean needs none, and a second
    derivative is then wrong in silence. Gradients are recorded in a backward pass if and only if somebody asks for
    ``create_graph=True``. What a compiler traces is left alone.

    Args:
        what: has no second derivative, for the message.
        instead: what to do about it.

    Raises:
        RuntimeError: when ``backward`` is called with ``create_graph=True``.
    """

    def decorate(backward: Callable[P, R]) -> Callable[P, R]:
        @wraps(backward)
        def refuse_second_derivatives(*args: P.args, **kwargs: P.kwargs) -> R:
            if torch.is_grad_enabled() and not torch.compiler.is_compiling():
                raise RuntimeError(
                    f"{what} can be differentiated once: its backward pass is written by hand, and create_graph=True asks for "
                    f"the derivative of that; {instead}"
                )
            return backward(*args, **kwargs)

        return refuse_second_derivatives

    return decorate
