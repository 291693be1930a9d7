"""The self-organised softmax against the full one and the adaptive one, and how its cost grows with the vocabulary.

    python benchmarks/self_organized.py [--words 44000] [--width 512] [--tokens 2560] [--repeats 5] [--growth 11000 44000 ...]
    python benchmarks/self_organized.py --steps [--words 18339] [--width 128] [--batch 32] [--chunk 20]

A training step of the output layer alone is timed: ``nll(hidden, target).mean().backward()`` in training mode with the
gradients of contexts and of all parameters, freshly allocated as after ``zero_grad(set_to_none=True)``; for the self-organised
layer that includes the smoothing of q, Eq. (9). The optimiser is not in it. Gradients are dense: V x H numbers are written
whatever the layer looked at, by all sides but the adaptive one, whose rare words have short vectors. Targets follow Zipf's law.
With ``--steps`` a whole training step of a language model with Adagrad is timed in its place.

All sides take turns in one run; the best time of each counts: CPU seconds of the process with one thread (OMP_NUM_THREADS=1),
wall time with more. Prints a JSON object.

Floor: multiply-adds are 3 x 2 N (2 H^2 + C H + s H), s the mean size of a token's cluster; the vectors of the clusters that
occur are read once and V x H gradients are written once, into memory that the kernel hands out page by page. The printed floor
takes both at the rates that this machine reached in the same run, on a product of the projection's size and on a fill of V x H.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from measuring import best_times
from torch import Tensor

from sememekit.config import load_variant
from sememekit.decoders import DECODERS
from sememekit.decoders.base import Decoder, Resources
from sememekit.decoders.self_organized import SelfOrganized
from sememekit.encoders.base import EncoderResources
from sememekit.encoders.lstm import LSTM
from sememekit.layers import uniform_embedding
from sememekit.tasks.language_model import LanguageModel
from sememekit.text.vocabulary import Vocabulary

SIDES: dict[str, dict[str, Any]] = {
    "softmax": {"tied": False},
    "adaptive": {},
    "class_hsm": {"tied": False},
    "self_organized": {"tied": False},
}


def zipf(num_words: int) -> Vocabulary:
    """Words whose counts fall as 1 / rank, down to 1."""
    counts = np.maximum(1, (num_words / np.arange(1, num_words + 1)).astype(np.int64))
    return Vocabulary([f"w{number:07d}" for number in range(num_words)], counts)


def draw(vocabulary: Vocabulary, shape: tuple[int, ...]) -> Tensor:
    """Tokens by the counts of a vocabulary."""
    generator = np.random.default_rng(1)
    share = vocabulary.counts / vocabulary.counts.sum()
    return torch.from_numpy(generator.choice(len(vocabulary), size=shape, p=share))


def make(name: str, vocabulary: Vocabulary, width: int) -> Decoder:
    torch.manual_seed(1)
    kind = load_variant("decoder", name, DECODERS)
    return kind(kind.Settings(**SIDES[name]), Resources(width, vocabulary)).train()


def layer_step(layer: Decoder, hidden: Tensor, target: Tensor) -> Callable[[], None]:
    leaves = [hidden, *layer.parameters()]

    def step() -> None:
        for leaf in leaves:
            leaf.grad = None
        layer.nll(hidden, target).mean().backward()

    return step


def model_step(layer: Decoder, vocabulary: Vocabulary, width: int, batch: int, chunk: int) -> Callable[[], None]:
    settings = LanguageModel.Settings(embedding_size=width, batch_size=batch, chunk_length=chunk)
    encoder = LSTM(LSTM.Settings(hidden_size=width, num_layers=1), EncoderResources(width, vocabulary, None))
    task = LanguageModel(settings, vocabulary, uniform_embedding(len(vocabulary), settings.embedding_size), encoder, layer)
    optimizer = torch.optim.Adagrad(task.parameters(), lr=0.1)
    tokens, number = draw(vocabulary, (chunk + 1, batch)), [0]

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss = task.loss(tokens, encoder.start(batch))
        (loss.nats / loss.count).backward()
        torch.nn.utils.clip_grad_norm_(task.parameters(), 0.25)
        optimizer.step()
        number[0] += 1
        task.after_step(number[0])

    return step


def probes(num_words: int, num_tokens: int, width: int) -> dict[str, Callable[[], None]]:
    """Parts of the floor: a product as large as the projections, V x H numbers read, V x H written to fresh memory."""
    left, right = torch.randn(num_tokens, width), torch.randn(width, 2 * width)
    kept = torch.ones(num_words, width)

    def product() -> None:
        torch.mm(left, right)

    def read() -> None:
        kept.sum()

    def write() -> None:
        torch.empty(num_words, width).fill_(0.0)

    return {"product": product, "read": read, "write": write}


def floor(layer: SelfOrganized, target: Tensor, width: int, rates: dict[str, float]) -> dict[str, float]:
    """Return FLOPs and bytes of the layer, and their time at the speed of ``probes``."""
    sizes = layer.groups.sizes
    group = layer.groups.group_of[target.flatten()]
    num_tokens, num_words = len(group), len(layer.groups.group_of)
    size = float(sizes[group].double().mean())
    flops = 3 * 2 * num_tokens * width * (2 * width + layer.num_clusters + size)
    read = float(sizes[group.unique()].sum()) / num_words
    flops_per_second = 2 * num_tokens * width * 2 * width / rates["product"]
    return {
        "gigaflop": flops / 1e9,
        "megabytes_read": read * num_words * width * 4 / 1e6,
        "megabytes_written": num_words * width * 4 / 1e6,
        "gigaflops_of_a_product": flops_per_second / 1e9,
        "clusters_that_occur": float(len(group.unique())),
        "mean_size_of_a_tokens_cluster": size,
        "seconds": flops / flops_per_second + rates["read"] * read + rates["write"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=int, default=44_000)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=2560)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--growth", type=int, nargs="*", default=[])
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--chunk", type=int, default=20)
    options = parser.parse_args()
    width = options.width
    result: dict[str, Any] = {"benchmark": "self_organized", "threads": torch.get_num_threads(), "width": width}
    if options.steps:
        vocabulary = zipf(options.words)
        steps = {
            name: model_step(make(name, vocabulary, width), vocabulary, width, options.batch, options.chunk) for name in SIDES
        }
        cpu = best_times(steps, options.repeats)
        count = options.batch * options.chunk
        result |= {
            "words": options.words,
            "tokens": count,
            "cpu_microseconds_per_token": {k: v / count * 1e6 for k, v in cpu.items()},
        }
        result["softmax_over_each"] = {name: cpu["softmax"] / value for name, value in cpu.items()}
    elif options.growth:
        seconds, floors = [], []
        for words in options.growth:
            vocabulary = zipf(words)
            layer = make("self_organized", vocabulary, width)
            assert isinstance(layer, SelfOrganized)
            hidden = torch.randn(options.tokens, width).requires_grad_()
            target = draw(vocabulary, (options.tokens,))
            turns = {"layer": layer_step(layer, hidden, target), **probes(words, options.tokens, width)}
            found = best_times(turns, options.repeats)
            seconds.append(found["layer"])
            floors.append(floor(layer, target, width, found))
            del layer, turns
        exponent = float(np.polyfit(np.log(options.growth), np.log(seconds), 1)[0])
        result |= {"words": options.growth, "seconds": seconds, "exponent": exponent, "floors": floors}
        result["goals"] = {"exponent": "<= 0.65"}
    else:
        vocabulary = zipf(options.words)
        hidden = torch.randn(options.tokens, width).requires_grad_()
        target = draw(vocabulary, (options.tokens,))
        layers = {name: make(name, vocabulary, width) for name in SIDES}
        steps = {name: layer_step(layer, hidden, target) for name, layer in layers.items()}
        found = best_times(steps | probes(options.words, options.tokens, width), options.repeats)
        seconds_of = {name: found[name] for name in SIDES}
        ours = layers["self_organized"]
        assert isinstance(ours, SelfOrganized)
        least = floor(ours, target, width, found)
        result |= {
            "words": options.words,
            "tokens": options.tokens,
            "seconds": seconds_of,
            "times_as_fast_as": {name: value / seconds_of["self_organized"] for name, value in seconds_of.items()},
            "floor": least,
            "share_of_floor": least["seconds"] / seconds_of["self_organized"],
            "goals": {"times_as_fast_as softmax": ">= 6", "times_as_fast_as adaptive": ">= 1"},
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
