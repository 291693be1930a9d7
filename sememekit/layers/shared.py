"""Shared parts of computations: precision of sums and products, hand-written backward passes, modes of modules."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Final, ParamSpec, TypeVar, final

import torch
from torch import Tensor, nn
from torch.nn import functional


def at_least_single(values: Tensor) -> Tensor:
    """Convert half precision to single precision; single and double stay."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def product_dtype(parameter: Tensor) -> torch.dtype:
    """Return the dtype of a parameter's matrix products: autocast's dtype if autocast is on, otherwise the parameter's.

    Double precision stays under autocast, as in torch."""
    kind = parameter.device.type
    lowers = torch.is_autocast_enabled(kind) and parameter.dtype != torch.float64
    return torch.get_autocast_dtype(kind) if lowers else parameter.dtype


def product_and_bias(rows: Tensor, items: Tensor, bias: Tensor | None) -> Tensor:
    """rows items^T + bias, (..., E), (V, E), (V,) -> (..., V): the product in ``product_dtype``, the sum in the items' dtype.

    The bias of a word is near the logarithm of its frequency, and half precision would round the sum by up to 0.03."""
    if product_dtype(items) == items.dtype:
        return functional.linear(rows, items, bias)
    product = functional.linear(rows, items).to(items.dtype)
    return product if bias is None else product.add_(bias)


@final
class Linear(nn.Linear):
    """``nn.Linear`` by ``product_and_bias``: its bias is not rounded to half precision."""

    def forward(self, input: Tensor) -> Tensor:
        return product_and_bias(input, self.weight, self.bias)


def add_product(total: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """``total += left @ right``, summed in the dtype of ``total``."""
    return total.addmm_(left, right) if left.dtype == total.dtype else total.add_(left @ right)


P = ParamSpec("P")
R = TypeVar("R")

NO_WAY: Final = "leave create_graph out; gradient penalties and Hessians are not supported here"
BY_LOG_PROB: Final = (
    "take the loss from the probabilities of all words, whose gradient has derivatives: of a layer of sememekit.nn "
    "-layer.log_prob(hidden).gather(-1, target.unsqueeze(-1)).squeeze(-1), of a decoder the same with log_probs"
)
"""Advice: a replacement for the likelihood of an output layer."""


def differentiable_once(what: str, instead: str = NO_WAY) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make ``backward`` of a ``torch.autograd.Function`` refuse second derivatives.

    torch's ``once_differentiable`` raises only if an incoming gradient requires grad. The gradient of a mean requires none, and
    a second derivative is then silently wrong. A backward pass records gradients only with ``create_graph=True``. Traced code
    is not checked.

    Raises RuntimeError: when ``backward`` is called with ``create_graph=True``."""

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


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Set evaluation mode inside the block, and restore the mode of every submodule afterwards."""
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in before:
            part.training = training


def training_counters(model: nn.Module) -> dict[str, Tensor]:
    """Return name -> buffer for all ``training_counters`` of the modules of a model.

    The state dict has these buffers for resuming. Code that loads weights of another run, or of an earlier epoch, into a model
    in training must keep the model's own counters."""
    return {
        f"{prefix}.{name}".lstrip("."): getattr(module, name)
        for prefix, module in model.named_modules(remove_duplicate=False)
        for name in getattr(module, "training_counters", ())
    }


def uniform_embedding(num_rows: int, size: int, spread: float = 0.1) -> nn.Embedding:
    """(V, E) vectors, uniform in +-``spread``."""
    embedding = nn.Embedding(num_rows, size)
    nn.init.uniform_(embedding.weight, -spread, spread)
    return embedding
