"""Buffers that say how far a training is, beside the weights that it changes."""

from __future__ import annotations

from torch import Tensor, nn


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
