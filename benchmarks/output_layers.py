"""A training step of each output layer against a step of the full softmax.

    python benchmarks/output_layers.py [--words 10000] [--width 512] [--tokens 700] [--repeats 5] [--layers class_hsm ...]
    python benchmarks/output_layers.py --peers softmax adaptive sdlm
    python benchmarks/output_layers.py --alone adaptive --words 2000000 --width 64 --gigabytes 9

The loss of one batch and its gradients, the encoder left out. Words are drawn by Zipf's law (count of rank r = 10^6 / r), as
the vocabulary counts them. All layers are timed interleaved in one run, with their usual settings; the best of the repeats
counts, since a busy machine only ever adds: CPU seconds with one thread, wall time with more. Peak memory is measured in a
fresh process for each layer, over what it held before the step with its gradients in place. Prints a JSON object.

``--peers`` times the modules of ``sememekit.nn`` beside the modules of torch that they replace, eager and under
``torch.compile`` with inductor, which needs a C++ compiler. The CPU seconds of compilation are reported apart.

``--alone`` measures steps of one module and the peak memory of the process. For ``sdlm`` the 100,000 most frequent words have
senses with three sememes, and the others one sense without. Above ``--gigabytes`` of address space it reports the error."""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # torch reads it when it is imported

import numpy as np
import torch
from measuring import peak_megabytes, resident_kilobytes, times
from sdlm import random_graph
from torch import Tensor, nn

from sememekit.config import load_variant
from sememekit.decoders import DECODERS
from sememekit.decoders.base import Decoder, Resources
from sememekit.layers import linear_cross_entropy
from sememekit.nn import AdaptiveSoftmax, FullSoftmax, SelfOrganizedSoftmax, SememeSoftmax, Senses
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


class LinearLoss(nn.Module):
    """``Linear`` and the mean of ``loss``: all scores at once, or in blocks."""

    def __init__(self, width: int, words: int, blocks: bool) -> None:
        super().__init__()
        self.linear, self.blocks = nn.Linear(width, words), blocks

    def forward(self, hidden: Tensor, target: Tensor) -> Tensor:
        if self.blocks:
            return linear_cross_entropy(hidden, self.linear.weight, self.linear.bias, target).mean()
        return nn.functional.cross_entropy(self.linear(hidden), target)


def peers(options: argparse.Namespace) -> dict[str, Any]:
    """Steps of layers beside torch's, and the first step of compiled ones: CPU seconds."""
    torch.manual_seed(1)
    vocabulary, graph = random_graph(options.words - 1)  # and <unk>
    words, width = len(vocabulary), options.width
    counts = torch.tensor([max(1, 1_000_000 // rank) for rank in range(1, words + 1)])
    hidden = (torch.randn(options.tokens, width) * 0.3).requires_grad_(True)
    target = torch.multinomial(counts.double(), options.tokens, replacement=True)
    cutoffs = [words // 20, words // 4]
    makers: dict[str, dict[str, Callable[[], nn.Module]]] = {
        "softmax": {
            "Linear and cross_entropy": lambda: LinearLoss(width, words, False),
            "FullSoftmax": lambda: FullSoftmax(width, counts),
            "linear_cross_entropy": lambda: LinearLoss(width, words, True),
        },
        "adaptive": {
            "AdaptiveLogSoftmaxWithLoss": lambda: nn.AdaptiveLogSoftmaxWithLoss(width, words, cutoffs),
            "AdaptiveSoftmax": lambda: AdaptiveSoftmax(width, counts),
            "SelfOrganizedSoftmax": lambda: SelfOrganizedSoftmax(width, counts),
        },
        "sdlm": {
            "SememeSoftmax": lambda: SememeSoftmax(width, graph),
            "SememeSoftmax, 1,000 samples": lambda: SememeSoftmax(width, graph, counts, samples=1000),
        },
    }
    layers = {name: make() for group in options.peers for name, make in makers[group].items()}
    compilation = {}

    def step(layer: nn.Module, form: Callable[..., Any]) -> None:
        for parameter in [hidden, *layer.parameters()]:
            parameter.grad = None
        found = form(hidden, target)
        (found if isinstance(found, Tensor) else found.loss).backward()

    steps: dict[str, Callable[[], None]] = {}
    for name, layer in layers.items():
        steps[name] = partial(step, layer, layer)
        if not name.startswith(("Linear and", "Sememe")):
            continue
        steps[f"{name}, compiled"] = partial(step, layer, torch.compile(layer))
        begin = sum(os.times()[:4])  # the compiler is a child
        steps[f"{name}, compiled"]()
        compilation[name] = round(sum(os.times()[:4]) - begin, 1)
    taken = times(steps, options.repeats)
    seconds = {name: round(min(values), 4) for name, values in taken.items()}
    sizes = {"words": words, "width": width, "tokens": options.tokens, "repeats": options.repeats}
    return {"benchmark": "output_layers --peers", **sizes, "seconds": seconds, "seconds_of_compilation": compilation}


def alone(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Steps of one module, and the peak memory of the process."""
    words, width = options.words, options.width
    counts = np.maximum(1, 1_000_000 // np.arange(1, words + 1))
    generator, annotated = np.random.default_rng(1), min(words, 100_000)
    senses_of_word = np.ones(words, dtype=np.int64)
    senses_of_word[:annotated] += generator.poisson(0.5, annotated)
    num_senses, real = int(senses_of_word.sum()), int(senses_of_word[:annotated].sum())
    sememes = (generator.integers(0, 1742, real)[:, None] + np.array([0, 7, 31])) % 1742  # three different ones of a sense

    def senses() -> Senses:
        ends = np.minimum(np.arange(num_senses + 1), real) * 3
        return Senses.from_arrays(np.concatenate([[0], senses_of_word.cumsum()]), ends, sememes.ravel())

    makers: dict[str, Callable[[], nn.Module]] = {
        "adaptive": lambda: AdaptiveSoftmax(width, counts),
        "self_organized": lambda: SelfOrganizedSoftmax(width, counts),
        "self_organized, 200 clusters": lambda: SelfOrganizedSoftmax(width, counts, num_clusters=200),
        "sdlm": lambda: SememeSoftmax(width, senses()),
        "sdlm, 1,000 samples": lambda: SememeSoftmax(width, senses(), counts, samples=1000),
    }
    sizes = {"words": words, "width": width, "tokens": options.tokens}
    if options.gigabytes:
        resource.setrlimit(resource.RLIMIT_AS, (options.gigabytes << 30, options.gigabytes << 30))
    begin = time.process_time()
    try:
        layer = makers[name]()
        building = time.process_time() - begin
        hidden = (torch.randn(options.tokens, width) * 0.3).requires_grad_(True)
        target = torch.multinomial(torch.from_numpy(counts).double(), options.tokens, replacement=True)
        seconds = []
        for _ in range(options.repeats):
            for parameter in [hidden, *layer.parameters()]:
                parameter.grad = None
            begin = time.process_time()
            layer(hidden, target).loss.backward()
            seconds.append(time.process_time() - begin)
    except (RuntimeError, MemoryError) as error:
        return {**sizes, "error": f"{type(error).__name__}: {error}"}
    peak = resident_kilobytes("VmHWM") / (1 << 20)
    figures = {"cpu_seconds_of_building": building, "cpu_seconds_of_step": min(seconds), "peak_gigabytes": peak}
    return {**sizes, **{what: round(value, 3) for what, value in figures.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes = {"words": 10_000, "width": 512, "tokens": 700, "repeats": 5}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--layers", nargs="+", choices=sorted(DECODERS), default=list(LAYERS))
    parser.add_argument("--measure-memory-of", choices=sorted(DECODERS))
    parser.add_argument("--peers", nargs="+", choices=["softmax", "adaptive", "sdlm"], help="beside modules of torch")
    alone_choices = ["adaptive", "self_organized", "self_organized, 200 clusters", "sdlm", "sdlm, 1,000 samples"]
    parser.add_argument("--alone", choices=alone_choices, help="one module")
    parser.add_argument("--gigabytes", type=int, help="largest address space, for --alone")
    options = parser.parse_args()
    if options.alone:
        print(json.dumps({"benchmark": "output_layers --alone", "layer": options.alone, **alone(options.alone, options)}))
        return
    if options.peers:
        print(json.dumps(peers(options)))
        return
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
