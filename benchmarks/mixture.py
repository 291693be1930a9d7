"""The loss of a mixture of softmaxes against the plain, materialised form.

    python benchmarks/mixture.py [--tokens 840] [--components 15] [--words 10000] [--size 280] [--width 620] [--repeats 5]

The sizes are from the published Penn Treebank model: 70 rows of 12 columns, contexts of 280. The plain form is the paper's
equation as one writes it down, and as the public code has it: softmax over (tokens, K, V), weighted sum over K, logarithm.
Both sides are timed interleaved in one run, forward and backward; peak memory is measured in a fresh process for each side,
over what it held before the step. Prints a JSON object.

Floor: 3 x 2 K V E multiply-adds a token for the products of contexts and word vectors, forward and backward.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path

import torch
from measuring import peak_megabytes, resident_kilobytes, times
from torch import Tensor

from sememekit.decoders.base import Resources
from sememekit.decoders.mos import MoS
from sememekit.text.vocabulary import Vocabulary


def plain_nll(layer: MoS, hidden: Tensor, target: Tensor) -> Tensor:
    """-log sum_k pi_k softmax(W h_k + b)[target] with every probability in memory."""
    log_weights, contexts = layer.mixture(hidden.flatten(0, 1))
    each = torch.softmax(torch.nn.functional.linear(contexts, layer.words.weight, layer.bias), dim=-1)
    mixed = (log_weights.exp().unsqueeze(-1) * each).sum(dim=1)
    return torch.nn.functional.nll_loss(mixed.log(), target.flatten(), reduction="none").view_as(target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in {"tokens": 840, "components": 15, "words": 10000, "size": 280, "width": 620, "repeats": 5}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--measure-memory-of", choices=["ours", "plain"])
    options = parser.parse_args()
    torch.manual_seed(1)
    vocabulary = Vocabulary.from_counts(
        {f"w{number}": options.words - number for number in range(options.words - 1)} | {"<unk>": 0}
    )
    embedding = torch.nn.Embedding(options.words, options.size)
    torch.nn.init.uniform_(embedding.weight, -0.1, 0.1)
    layer = MoS(MoS.Settings(num_components=options.components), Resources(options.width, vocabulary, None, embedding))
    hidden = (torch.randn(options.tokens // 12, 12, options.width) * 0.3).requires_grad_(True)
    target = torch.randint(0, options.words, hidden.shape[:-1])
    sides: dict[str, Callable[[], Tensor]] = {
        "ours": lambda: layer.nll(hidden, target),
        "plain": lambda: plain_nll(layer, hidden, target),
    }

    def pass_through(side: str) -> Callable[[], None]:
        return lambda: sides[side]().mean().backward()

    if options.measure_memory_of:
        for parameter in [hidden, *layer.parameters()]:
            parameter.grad = torch.zeros_like(parameter)
        Path("/proc/self/clear_refs").write_text("5")  # Linux: the high-water mark starts again from what is held now
        before = resident_kilobytes("VmRSS")
        pass_through(options.measure_memory_of)()
        print((resident_kilobytes("VmHWM") - before) / 1024)
        return

    with torch.no_grad():
        difference = (sides["ours"]() - sides["plain"]()).abs().max().item()
    taken = times({side: pass_through(side) for side in sides}, options.repeats)
    median = {side: statistics.median(values) for side, values in taken.items()}
    passed_on = [f"--{name}={getattr(options, name)}" for name in ("tokens", "components", "words", "size", "width")]
    memory = {side: peak_megabytes(__file__, passed_on, side) for side in sides}
    count = hidden.shape[0] * hidden.shape[1]
    flops = 3 * 2 * options.components * options.words * options.size
    print(
        json.dumps(
            {
                "benchmark": "mixture",
                "tokens": count,
                "components": options.components,
                "words": options.words,
                "size": options.size,
                "threads": torch.get_num_threads(),
                "largest_difference_of_nll": difference,
                "seconds_median": median,
                "seconds_best": {side: min(values) for side, values in taken.items()},
                "speed_ratio": median["plain"] / median["ours"],
                "floor": {"megaflop_per_token": flops / 1e6, "gigaflops_reached": flops * count / median["ours"] / 1e9},
                "peak_megabytes": memory,
                "memory_ratio": memory["ours"] / memory["plain"],
                "goals": {"speed_ratio": ">= 1.3", "memory_ratio": "<= 0.4"},
            }
        )
    )


if __name__ == "__main__":
    main()
