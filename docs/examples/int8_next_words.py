"""Give a trained run int8 weights for inference on a CPU: its LSTM layers, and the output layer of a softmax.

    python int8_next_words.py RUN "去年 美国"

Weights are rounded to eight bits for each layer, and products are computed in integers, by torch's dynamic quantisation. The
run in memory changes, its folder does not. Other encoders and output layers keep float32.
"""

import sys
import warnings

import torch
from torch import Tensor, nn

from sememekit import Run, load_run


def in_int8(run: Run) -> Run:
    """Return the run after its weights were rounded."""
    task = run.task
    task.encoder = _rounded(task.encoder, nn.LSTM)
    task.encoder.of_type = nn.Parameter(torch.zeros(1))  # states have the type of parameters, and rounded layers have none
    if run.plan.decoder is not None and run.plan.decoder.name in ("softmax", "sampled"):
        words, bias = task.decoder.words.weight, task.decoder.bias
        output = nn.Linear(words.shape[1], words.shape[0], bias=bias is not None)
        output.load_state_dict({"weight": words} | ({} if bias is None else {"bias": bias}))
        product = _rounded(nn.Sequential(output), nn.Linear)

        def scores(hidden: Tensor, chosen: Tensor | None = None) -> Tensor:
            found = product(torch.atleast_2d(hidden)).reshape(*hidden.shape[:-1], -1)
            return found if chosen is None else found[..., chosen]

        task.decoder.scores = scores
    return run


def _rounded(module: nn.Module, kind: type[nn.Module]) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch will move this function to torchao
        return torch.ao.quantization.quantize_dynamic(module, {kind}, dtype=torch.qint8)


if __name__ == "__main__":
    print(in_int8(load_run(sys.argv[1], device="cpu")).next_words(sys.argv[2]))
