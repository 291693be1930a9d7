"""Write the next-word model of a run as a program that runs without sememekit.

    python export_next_words.py RUN next-words.pt2
    python export_next_words.py RUN next-words.onnx

The program takes a word id a row (B,) and the state after the words before it, and gives log-probabilities (B, V) of the next
word and the new state. A text begins with zeros as state. ``.pt2`` needs torch alone (``torch.export.load``), ``.onnx`` any
runtime of ONNX, and onnxscript to be written. Words are the lines of the file ``.words.txt`` beside it, from id 0.
"""

import sys
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from sememekit import load_run


class NextWords(nn.Module):
    """One step of a language model whose encoder keeps a state of fixed size, such as an LSTM or a GRU."""

    def __init__(self, task: nn.Module) -> None:
        super().__init__()
        self.task = task

    def forward(self, word_B: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        hidden_1BH, state = self.task.contexts(word_B[None], state)
        return self.task.decoder.log_probs(hidden_1BH[0]), state


@torch.no_grad()
def export(run_folder: str, path: str) -> None:
    """Write the program and its words."""
    run = load_run(run_folder)
    step, example = NextWords(run.task).eval(), (torch.tensor([0, 1]), run.task.encoder.start(2))
    rows = torch.export.Dim("rows", max=4096)
    step(*example)  # an output layer makes some of its tables when they are first asked for
    shapes = ({0: rows}, tuple({0: rows} for _ in example[1]))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The tensor attribute")  # torch's LSTM renames its weights while it is traced
        if path.endswith(".onnx"):
            torch.onnx.export(step, example, path, dynamic_shapes=shapes, dynamo=True)
        else:
            torch.export.save(torch.export.export(step, example, dynamic_shapes=shapes), path)
    Path(path).with_suffix(".words.txt").write_text("\n".join(run.vocabulary.tokens) + "\n", encoding="utf-8")


if __name__ == "__main__":
    export(*sys.argv[1:])
