"""A training step of the AWD-LSTM against a step of a plain LSTM of the same sizes.

    python benchmarks/awd_lstm.py [--words 10000] [--embedding 400] [--hidden 1150] [--layers 3] [--batch 20] [--length 70]
        [--repeats 5] [--threads 1]

A step is loss, gradient, clipping and plain SGD, with a tied softmax on top. Three sides are timed interleaved in one run: the
plain LSTM without any dropout; the AWD-LSTM with weight drop and nothing else; and the AWD-LSTM with all that the published
recipe has (locked dropout, dropout of words, both penalties). Prints a JSON object with the median of the repeats, CPU
seconds with one thread and wall time with more, and the ratios to the plain side.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from typing import Any

import torch
from measuring import times

from sememekit.runs.build import build_task
from sememekit.runs.plan import read_plan
from sememekit.text.vocabulary import Vocabulary

REGULARISED = {
    "word_dropout": 0.1,
    "input_dropout": 0.4,
    "output_dropout": 0.4,
    "locked_dropout": True,
    "activation_penalty": 2.0,
    "temporal_penalty": 1.0,
}


def step_of(
    options: argparse.Namespace, encoder: dict[str, Any], task: dict[str, Any], tokens: torch.Tensor
) -> Callable[[], None]:
    """A function that takes one step of a fresh model."""
    sizes = {"hidden_size": options.hidden, "num_layers": options.layers, "output_size": options.embedding}
    table = {"task": {"embedding_size": options.embedding, **task}, "encoder": {**encoder, **sizes}}
    words = {f"w{number}": options.words - number for number in range(options.words - 1)}
    model = build_task(read_plan(table, "benchmark"), Vocabulary.from_counts(words | {"<unk>": 0}), None).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, weight_decay=1.2e-6)
    start = model.encoder.start(options.batch)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        for loss in model.losses(tokens, start):
            objective = loss.nats / loss.count
            (objective if loss.penalty is None else objective + loss.penalty).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in {"words": 10_000, "embedding": 400, "hidden": 1150, "layers": 3, "batch": 20, "length": 70}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    tokens = torch.randint(0, options.words, (options.length + 1, options.batch))
    awd = {"name": "awd_lstm", "weight_drop": 0.5}
    sides = {
        "plain_lstm": step_of(options, {"name": "lstm"}, {}, tokens),
        "weight_drop": step_of(options, {**awd, "dropout": 0.0}, {}, tokens),
        "awd_lstm": step_of(options, {**awd, "dropout": 0.25}, REGULARISED, tokens),
    }
    taken = times(sides, options.repeats)
    seconds = {name: statistics.median(values) for name, values in taken.items()}
    print(
        json.dumps(
            {
                "benchmark": "awd_lstm",
                **vars(options),
                "seconds_per_step": seconds,
                "all_seconds": taken,
                "weight_drop_over_plain": seconds["weight_drop"] / seconds["plain_lstm"],
                "awd_over_plain": seconds["awd_lstm"] / seconds["plain_lstm"],
                "goals": {"weight_drop_over_plain": "<= 1.15"},
            }
        )
    )


if __name__ == "__main__":
    main()
