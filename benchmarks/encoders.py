"""Encoders of equal width under one output layer: interleaved training steps, or a race on prepared data.

    python benchmarks/encoders.py [--encoders lstm,mogrifier,transformer] [--hidden 128] [--layers 2] [--repeats 7]
    python benchmarks/encoders.py --data DIR --seconds 60 [--rates 0.001,0.003,0.01] [--seeds 1]

A step is loss, gradient, clipping and Adam of a language model with one thread; CPU seconds. Without ``--data`` the sides are
timed interleaved on random words, and a JSON object has the best of the repeats and the ratios to the first side. With
``--data`` each encoder is trained with each rate and seed for so many CPU seconds (validation does not count), and a line of
JSON for each run has [updates, seconds, perplexity on the first words of the validation text] at every ``--every`` updates.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import torch
from measuring import best_times

from sememekit.data.prepared import PreparedData
from sememekit.measure.perplexity import perplexity_metrics
from sememekit.runs.build import build_task
from sememekit.runs.plan import read_plan
from sememekit.tasks.language_model import LanguageModel
from sememekit.text.vocabulary import Vocabulary

EXTRA: dict[str, dict[str, Any]] = {
    "lstm": {"initialisation": "kaiming"},
    "mogrifier": {"initialisation": "kaiming", "rounds": 5},
    "mogrifier-rank": {"initialisation": "kaiming", "rounds": 5, "rank": 16},
    "mogrifier-two": {"initialisation": "kaiming", "rounds": 2},
    "transformer": {"num_heads": 4, "context": 64},
}
"""Settings beside the sizes; what follows a hyphen names a side, not an encoder."""


def model_of(options: argparse.Namespace, side: str, vocabulary: Vocabulary) -> LanguageModel:
    """A fresh language model with this encoder."""
    sizes = {"hidden_size": options.hidden, "num_layers": options.layers}
    table = {
        "task": {"embedding_size": options.hidden, "batch_size": options.batch, "chunk_length": options.length},
        "encoder": {"name": side.partition("-")[0], **sizes, **EXTRA.get(side, {})},
        "decoder": {"name": options.decoder},
    }
    model = build_task(read_plan(table, "benchmark"), vocabulary, None).train()
    assert isinstance(model, LanguageModel)
    return model


def stepper(model: LanguageModel, rate: float) -> Callable[[torch.Tensor, Any], Any]:
    """A function that takes a step on a batch out of a state and gives the state after it."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)

    def step(batch: torch.Tensor, carry: Any) -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = model.loss(batch, carry)
        (loss.nats / loss.count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.carry

    return step


def race(options: argparse.Namespace, side: str, rate: float, seed: int, data: PreparedData) -> dict[str, Any]:
    """Train for ``options.seconds``; a curve."""
    torch.manual_seed(seed)
    model = model_of(options, side, data.vocabulary)
    model.begin_training(data)
    step, valid = stepper(model, rate), data.tokens("valid")[: options.valid]
    curve: list[tuple[int, float, float]] = []
    carry, spent = model.start(data), 0.0
    for updates, (batch, first) in enumerate(forever(model, data), start=1):
        carry = model.start(data) if first else carry
        begin = time.process_time()
        carry = step(batch, carry)
        spent += time.process_time() - begin
        if updates % options.every == 0 or spent >= options.seconds:
            perplexity = perplexity_metrics(model.score(valid))["perplexity"]
            curve.append((updates, round(spent, 3), round(perplexity, 3)))
        if spent >= options.seconds:
            break
    sizes = {"parameters": sum(part.numel() for part in model.encoder.parameters())}
    return {"encoder": side, "rate": rate, "seed": seed, **sizes, "curve": curve}


def forever(model: LanguageModel, data: PreparedData) -> Iterator[tuple[torch.Tensor, bool]]:
    """Batches of one epoch after the other, and whether an epoch begins with each."""
    while True:
        for number, batch in enumerate(model.batches(data, 0, 0)):
            yield batch, number == 0


def steps(options: argparse.Namespace, sides: list[str]) -> dict[str, Any]:
    """Time interleaved training steps on random words."""
    words = {f"w{number}": options.words - number for number in range(options.words - 1)}
    vocabulary = Vocabulary.from_counts(words | {"<unk>": 0})
    torch.manual_seed(1)
    batch = torch.randint(0, options.words, (options.length + 1, options.batch))

    def one(side: str) -> Callable[[], None]:
        model = model_of(options, side, vocabulary)
        step, start = stepper(model, 1e-4), model.encoder.start(options.batch)
        return lambda: step(batch, start) and None

    seconds = best_times({side: one(side) for side in sides}, options.repeats)
    return {"cpu_seconds_per_step": seconds, "ratios": {side: seconds[side] / seconds[sides[0]] for side in sides}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoders", default="lstm,mogrifier,transformer")
    parser.add_argument("--decoder", default="adaptive")
    for name, value in {"words": 10_000, "hidden": 128, "layers": 2, "batch": 20, "length": 35, "repeats": 7}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--valid", type=int, default=20_000)
    parser.add_argument("--rates", default="0.001,0.003,0.01")
    parser.add_argument("--seeds", default="1")
    options = parser.parse_args()
    torch.set_num_threads(1)
    sides = options.encoders.split(",")
    if options.data is None:
        print(json.dumps({"benchmark": "encoders", **vars(options), **steps(options, sides)}))
        return
    data = PreparedData.open(options.data)
    seeds, rates = map(int, options.seeds.split(",")), map(float, options.rates.split(","))
    for seed, rate, side in product(seeds, rates, sides):
        print(json.dumps(race(options, side, rate, seed, data)), flush=True)


if __name__ == "__main__":
    main()
