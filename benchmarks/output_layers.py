"""A training step of each output layer against a step of the full softmax.

    python benchmarks/output_layers.py [--words 10000] [--width 512] [--tokens 700] [--repeats 5] [--layers class_hsm ...]

The loss of one batch and its gradients, the encoder left out. Words are drawn by Zipf's law (count of rank r = 10^6 / r), as
the vocabulary counts them. All layers are timed interleaved in one run, with their usual settings; the best of the repeats
counts, since a busy machine only ever adds: CPU seconds with one thread, wall time with more. Peak memory is measured in a
fresh process for each layer, over what it held before the step with its gradients in place. Prints a JSON object."""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import torch
from measuring import peak_megabytes, resident_kilobytes, times

from sememekit.config import load_variant
from sememekit.decoders import DECODERS
from sememekit.decoders.base import Decoder, Resources
from sememekit.text.vocabulary import Vocabulary

LAYERS = ("class_hsm", "tree_hsm", "adaptive", "differentiated", "sampled")


class Step:
    """One training step of a layer on fixed contexts and targets."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        torch.manual_seed(1)
        counts = {f"w{rank:07}": max(1, 1_000_000 // rank) for rank in range(1, options.words + 1)}
        vocabulary = Vocabulary.from_counts(counts)
        embedding = torch.nn.Embedding(options.words, options.width)
        torch.nn.init.uniform_(embedding.weight, -0.1, 0.1)
        kind = load_variant("decoder", name, DECODERS)
        self.layer: Decoder = kind(kind.Settings(), Resources(options.width, vocabulary, None, embedding)).train()
        self.hidden = (torch.randn(options.tokens, options.width) * 0.3).requires_grad_(True)
        self.target = torch.multinomial(torch.from_numpy(vocabulary.counts.copy()).double(), options.tokens, replacement=True)

    def __call__(self) -> None:
        for parameter in [self.hidden, *self.layer.parameters()]:
            parameter.grad = None
        self.layer.nll(self.hidden, self.target).mean().backward()

    def peak_megabytes(self) -> float:
        """Peak resident memory of a step over what is held before it, gradients included."""
        for parameter in [self.hidden, *self.layer.parameters()]:
            parameter.grad = torch.zeros_like(parameter)
        Path("/proc/self/clear_refs").write_text("5")  # Linux: the high-water mark starts again from what is held now
        before = resident_kilobytes("VmRSS")
        self.layer.nll(self.hidden, self.target).mean().backward()
        return (resident_kilobytes("VmHWM") - before) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes = {"words": 10_000, "width": 512, "tokens": 700, "repeats": 5}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--layers", nargs="+", choices=sorted(DECODERS), default=list(LAYERS))
    parser.add_argument("--measure-memory-of", choices=sorted(DECODERS))
    options = parser.parse_args()
    if options.measure_memory_of:
        print(Step(options.measure_memory_of, options).peak_megabytes())
        return
    names = ["softmax", *(name for name in options.layers if name != "softmax")]
    steps = {name: Step(name, options) for name in names}
    taken = times(dict(steps), options.repeats)
    passed_on = [f"--{name}={getattr(options, name)}" for name in sizes]
    memory = {name: peak_megabytes(__file__, passed_on, name) for name in names}
    best = {name: min(values) for name, values in taken.items()}
    report = {
        "benchmark": "output_layers",
        **{name: getattr(options, name) for name in sizes},
        "threads": torch.get_num_threads(),
        "seconds_median": {name: statistics.median(values) for name, values in taken.items()},
        "seconds_best": best,
        "times_as_fast_as_softmax": {name: best["softmax"] / best[name] for name in names},
        "peak_megabytes": memory,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
