"""Root mean square gradients of each weight on the training text, which scale the steps of dynamic evaluation."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from sememekit.data.batching import training_columns
from sememekit.errors import CheckpointError, DataError
from sememekit.files import replace_file
from sememekit.progress import OneStage, silent
from sememekit.tasks.base import WordPredictor

STATISTICS_FILE: Final = "gradient-statistics.safetensors"  # their file in a run folder
STATISTICS_BATCH: Final = 100  # columns of a batch, as published


@dataclass(frozen=True)
class GradientStatistics:
    """Statistics of gradients, Sec. 4.1 of Krause et al. 2018."""

    # MS_i = sqrt(mean over batches of g_i^2) for each weight, by parameter name; shared parameters occur once
    root_mean_square: dict[str, Tensor]
    num_batches: int  # number of batches in the mean


def trainable(task: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters with gradients, by name; shared ones once."""
    return {name: parameter for name, parameter in task.named_parameters() if parameter.requires_grad}


@contextmanager
def gradients_without_dropout(task: nn.Module) -> Iterator[None]:
    """Set evaluation mode without dropout but with gradients inside the block; modes are restored afterwards.

    cuDNN computes gradients of recurrent layers only in training mode, so these layers are in training mode, with dropout zero.
    All other modules, including wrappers such as weight drop, stay in evaluation mode."""
    modes = {module: module.training for module in task.modules()}
    kernels = [module for module in task.modules() if isinstance(module, nn.RNNBase)]
    rates = [kernel.dropout for kernel in kernels]
    task.eval()
    for kernel in kernels:
        kernel.dropout = 0.0
        kernel.train()
    try:
        with torch.enable_grad():
            yield
    finally:
        for kernel, rate in zip(kernels, rates, strict=True):
            kernel.dropout = rate
        for module, mode in modes.items():
            module.training = mode


def gather_statistics(
    task: WordPredictor, tokens: np.ndarray, *, segment: int, batch_size: int = STATISTICS_BATCH, progress: OneStage = silent
) -> GradientStatistics:
    """Gather statistics over a text (n,): one gradient of the mean loss for each ``segment`` rows of ``batch_size`` columns.

    The state is carried between batches, without gradients. The last batch may have fewer rows. Weights and modes do not
    change; ``progress`` is called with done and total batches. Raises DataError: the text is too short for two rows."""
    if len(tokens) < 2 * batch_size:
        raise DataError(
            f"gradient statistics read the training text in {batch_size} columns, and its {len(tokens):,} tokens fill "
            f"less than two rows; prepare more training text, or leave out --dynamic"
        )
    columns = training_columns(tokens, batch_size)
    parameters = trainable(task)
    squares = [torch.zeros_like(parameter) for parameter in parameters.values()]
    begins = range(0, len(columns) - 1, segment)
    with gradients_without_dropout(task):
        state = task.encoder.start(batch_size)
        for number, begin in enumerate(begins, start=1):
            chunk = torch.from_numpy(columns[begin : begin + segment + 1].astype(np.int64)).to(task.device)
            hidden, state = task.contexts(chunk[:-1], state)
            loss = task.decoder.nll(hidden, chunk[1:]).mean()
            gradients = gradients_of(loss, list(parameters.values()))
            torch._foreach_addcmul_(squares, gradients, gradients)
            state = tuple(part.detach() for part in state)
            progress(number, len(begins))
    torch._foreach_div_(squares, float(len(begins)))
    torch._foreach_sqrt_(squares)
    return GradientStatistics(dict(zip(parameters, squares, strict=True)), len(begins))


def gradients_of(loss: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """Return gradients in the layout of the parameters; zeros for a parameter on which the loss does not depend."""
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for g, p in zip(found, parameters, strict=True)]


def statistics_for(
    task: WordPredictor, tokens: np.ndarray, text: str, file: Path, *, segment: int, dtype: str, progress: OneStage = silent
) -> GradientStatistics:
    """Return the statistics in ``file`` if they belong to these weights and this text, or gather them and write the file.

    ``tokens`` (n,) begin the training text, and ``text`` is its SHA-256; ``segment`` rows a batch; ``dtype`` is of matrix
    products; ``progress`` as in ``gather_statistics``. Raises CheckpointError: the file is no file of statistics, or cannot be
    written. Raises DataError: the text is too short."""
    signature = {
        "format": 1,
        "weights": _checksum(task.state_dict()),
        "text": text,
        "tokens": len(tokens),
        "batch": STATISTICS_BATCH,
        "segment": segment,
        "dtype": dtype,
    }
    if file.exists() and (found := _read(file, signature, task)) is not None:
        return found
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise CheckpointError(
            f"{file} cannot be written, and gradient statistics are kept there; copy the run to a folder of yours"
        )
    statistics = gather_statistics(task, tokens, segment=segment, progress=progress)
    tensors = {name: tensor.cpu().contiguous() for name, tensor in statistics.root_mean_square.items()}
    metadata = {"signature": json.dumps(signature), "num_batches": str(statistics.num_batches)}
    metadata["sha256"] = _checksum(dict(sorted(tensors.items())), metadata["num_batches"])
    replace_file(file, safetensors.torch.save(tensors, metadata=metadata))
    return statistics


def _checksum(tensors: Mapping[str, Tensor], further: str = "") -> str:
    """SHA-256 over names and values."""
    digest = hashlib.sha256(further.encode())
    for name, tensor in tensors.items():
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _read(file: Path, signature: dict[str, Any], task: WordPredictor) -> GradientStatistics | None:
    """Return the statistics of a file, or None if they belong to other weights or another text."""
    try:
        with safetensors.safe_open(file, framework="pt") as opened:
            metadata = opened.metadata() or {}
            if json.loads(metadata["signature"]) != signature:
                return None
            tensors = {name: opened.get_tensor(name).to(task.device) for name in sorted(opened.keys())}
            num_batches = int(metadata["num_batches"])
            if metadata.get("sha256") != _checksum(tensors, metadata["num_batches"]):
                raise ValueError("its numbers are not those that were written")
    except (OSError, KeyError, TypeError, ValueError, RecursionError, safetensors.SafetensorError) as error:
        raise CheckpointError(
            f"{file} holds no gradient statistics ({error}); delete it, and they are gathered again"
        ) from None
    shapes = {name: parameter.shape for name, parameter in trainable(task).items()}
    if {name: tensor.shape for name, tensor in tensors.items()} != shapes:
        raise CheckpointError(f"{file} has statistics of other parameters; delete it, and they are gathered again")
    return GradientStatistics({name: tensors[name] for name in shapes}, num_batches)
