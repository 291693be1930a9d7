"""Questions to all modules of a model: its buffers that count the training, and evaluation mode for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode inside; afterwards every part has its former mode again, also one that was in evaluation by itself."""
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in before:
            part.training = training


def training_counters(model: nn.Module) -> dict[str, Tensor]:
    """Name -> buffer, of those that the modules of a model name in an attribute ``training_counters``.

    They are part of its state dict, so that a resumed run goes on where it was. Who puts weights of another run, or of an
    earlier epoch, into a model that is being trained keeps these as they are.
    """
    return {
        f"{prefix}.{name}".lstrip("."): getattr(module, name)
        for prefix, module in model.named_modules(remove_duplicate=False)
        for name in getattr(module, "training_counters", ())
    }
