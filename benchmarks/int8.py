"""int8 weights by torch's dynamic quantisation: perplexity of a trained run, and CPU time, against float32.

    sememekit quickstart --out quickstart
    python benchmarks/int8.py --run quickstart/softmax --data quickstart/data --out int8.json

The perplexity is of the run with its LSTM, its output layer, or both in int8. The times are of a run of the same size and of an
LSTM of 650 with 13,478 words, whose weights are random.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from measuring import times
from torch import Tensor, nn
from torch.nn import functional

from sememekit import load_run
from sememekit.data.prepared import PreparedData
from sememekit.files import replace_file, to_json

TOKENS = 700
Part = Callable[[Tensor], Tensor]


class Reader(nn.Module):
    """LSTM layers without dropout, which return their outputs and states."""

    def __init__(self, layers: list[nn.LSTM]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)[0]
        return x


def quantized(part: nn.Module, kind: type[nn.Module]) -> nn.Module:
    """The module with int8 weights in its parts of a kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.ao.quantization.quantize_dynamic(part, {kind}, dtype=torch.qint8)


def sides(reader: Reader, output: nn.Linear) -> dict[str, tuple[nn.Module, nn.Module]]:
    small_reader, small_output = quantized(reader, nn.LSTM), quantized(nn.Sequential(output), nn.Linear)
    return {
        "float32": (reader, output),
        "LSTM int8": (small_reader, output),
        "output int8": (reader, small_output),
        "both int8": (small_reader, small_output),
    }


def perplexities(made: dict[str, tuple[nn.Module, nn.Module]], vectors: nn.Embedding, ids: Tensor) -> dict[str, float]:
    """Perplexity of a text in 20 columns, each read from a state of zero."""
    length = len(ids) // 20
    columns = ids[: 20 * length].view(20, length).T
    found = {}
    for name, (reader, output) in made.items():
        total = 0.0
        hidden = reader(vectors(columns[:-1]))
        for part, target in zip(hidden.split(50), columns[1:].split(50), strict=True):
            total += float(functional.cross_entropy(output(part).flatten(0, 1), target.flatten(), reduction="sum"))
        found[name] = float(torch.tensor(total / columns[1:].numel()).exp())
    return found


def cpu_times(made: dict[str, tuple[nn.Module, nn.Module]], width: int, repeats: int) -> dict[str, Any]:
    """Milliseconds of log-probabilities of 35 x 20 tokens, and of one token after another."""
    found: dict[str, Any] = {}
    for task, x, count in (("700 tokens", torch.randn(35, 20, width), 1), ("one token", torch.randn(1, 1, width), 20)):

        def ask(part: tuple[nn.Module, nn.Module], x: Tensor = x, count: int = count) -> Callable[[], None]:
            def run() -> None:
                for _ in range(count):
                    part[1](part[0](x)).log_softmax(-1)

            return run

        taken = times({name: ask(part) for name, part in made.items()}, repeats)
        found[task] = {
            name: {"best": 1e3 * min(all_) / count, "mean": 1e3 * sum(all_) / len(all_) / count} for name, all_ in taken.items()
        }
    return found


@torch.no_grad()
def main() -> None:
    """Measure, and write the result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--run", type=Path, default=Path("quickstart/softmax"))
    parser.add_argument("--data", type=Path, default=Path("quickstart/data"))
    parser.add_argument("--split", default="test")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("int8.json"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    task = load_run(arguments.run).task
    reader = Reader(list(task.encoder.stack)).train(mode=False)
    words = task.decoder.words
    output = nn.Linear(words.embedding_dim, words.num_embeddings)
    output.weight.copy_(words.weight)
    output.bias.copy_(task.decoder.bias)
    ids = torch.from_numpy(PreparedData.open(arguments.data).tokens(arguments.split).astype("int64"))
    made = sides(reader, output)
    found: dict[str, Any] = {"perplexity": perplexities(made, task.embedding, ids), "tokens": len(ids)}
    found["times"] = {
        f"H = {words.embedding_dim}, V = {words.num_embeddings}": cpu_times(made, words.embedding_dim, arguments.repeats)
    }
    wide = sides(Reader([nn.LSTM(650, 650), nn.LSTM(650, 650)]).train(mode=False), nn.Linear(650, 13478))
    found["times"]["H = 650, V = 13478"] = cpu_times(wide, 650, arguments.repeats)
    found |= {"load": os.getloadavg()[0], "date": time.strftime("%Y-%m-%d"), "torch": torch.__version__}
    replace_file(arguments.out, to_json(found))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
