"""Batched beam search against one text at a time, and a training step with the self-organised softmax against the full one.

    python benchmarks/seq2seq.py
    python benchmarks/seq2seq.py decode [--inputs FILE.jsonl] [--batched 256] [--alone 16] [--words 69000] [--width 512]
    python benchmarks/seq2seq.py decode --run RUN [--data DATA]
    python benchmarks/seq2seq.py train [--words 69000] [--width 512] [--batch 128] [--source 31] [--target 8]

Both sides take turns in one run; the best time of each counts: CPU seconds of the process with one thread
(OMP_NUM_THREADS=1), wall time with more. Prints a JSON object a line, ``decode`` and then ``train`` unless one of them is asked
for.

``decode``: an untrained model of one LSTM layer on each side writes 10 words for each input; with ``--run`` a trained one
writes what it writes, over the test split. Inputs are taken at equal distances from all of them in the order of their length,
so that a part stands for the whole; each side has its own number of them, and seconds are for one. Without ``--inputs``
lengths have the mean and the spread of Gigaword's test set. Floor of a full softmax: 2 V H operations for each hypothesis and
word, at the rate of one such product over a batch in the same run; ``products`` has what it takes for 5 rows and for a batch.

``train``: a whole step, from a batch to new weights, with Adam, clipping and Zipf targets; ``self_organized`` keeps its
clusters. The floor counts the products of all parts, forward and twice as much backward, at the rate of a product of the full
layer's size, and what Adam has to move, 7 numbers for each weight (reads gradient, weight, two moments; writes three), at the
rate of a fill.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sememekit.config import load_variant
from sememekit.data.prepared import PreparedData
from sememekit.decoders import DECODERS
from sememekit.decoders.base import Resources
from sememekit.encoders.base import EncoderResources
from sememekit.encoders.lstm import LSTM
from sememekit.layers import uniform_embedding
from sememekit.runs.run import Run
from sememekit.search import BeamSettings
from sememekit.tasks.headline import HeadlineWriter
from sememekit.tasks.seq2seq import SequenceToSequence
from sememekit.text.vocabulary import Vocabulary
from sememekit.training import OptimizerSettings
from sememekit.training.optimizers import make_optimizer

MARKS = ("<unk>", "<s>", "</s>")
WRITTEN = 10
"""Words of each text of an untrained model."""


def clock() -> float:
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def zipf(num_words: int, known: list[str]) -> Vocabulary:
    """The words of the inputs and others, whose counts fall as 1 / rank."""
    words = list(dict.fromkeys([*MARKS, *known]))[:num_words]
    words += [f"w{number:07d}" for number in range(num_words - len(words))]
    return Vocabulary.from_counts({word: max(1, num_words // rank) for rank, word in enumerate(words, start=1)})


def read_inputs(path: Path | None) -> list[list[str]]:
    """Words of each input; made up without a file."""
    if path is not None:
        return [json.loads(line)["text"].split() for line in path.read_text(encoding="utf-8").splitlines()]
    generator = np.random.default_rng(1)
    lengths = np.clip(generator.normal(29.7, 9.0, size=1951), 5, 80).astype(int)
    return [[f"x{rank}" for rank in np.minimum(generator.zipf(1.3, size=size), 20_000)] for size in lengths]


def make_model(name: str, vocabulary: Vocabulary, width: int, batch: int) -> SequenceToSequence:
    torch.manual_seed(1)
    settings = HeadlineWriter.Settings(embedding_size=width, hidden_size=width, evaluation_batch_size=batch)
    embedding = uniform_embedding(len(vocabulary), settings.embedding_size)
    encoder = LSTM(LSTM.Settings(hidden_size=width, num_layers=1), EncoderResources(width, vocabulary, None))
    kind = load_variant("decoder", name, DECODERS)
    options = {"update_every": 0} if name == "self_organized" else {}
    decoder = kind(kind.Settings(tied=False, **options), Resources(width, vocabulary, None, embedding))
    return HeadlineWriter(settings, vocabulary, embedding, encoder, decoder)


def spread(items: list[Any], number: int) -> list[Any]:
    """``number`` of the items at equal distances, from the middle of the first part on."""
    step = len(items) / number
    return [items[int((index + 0.5) * step)] for index in range(min(number, len(items)))]


def decode(options: argparse.Namespace) -> dict[str, Any]:
    if options.run is None:
        texts = read_inputs(options.inputs)
        vocabulary = zipf(options.words, [word for text in texts for word in text])
        task = make_model("softmax", vocabulary, options.width, options.batch)
        sources, search = [vocabulary.encode(text) for text in texts], BeamSettings(min_length=WRITTEN, max_length=WRITTEN)
    else:
        loaded = Run.open(options.run, device="cpu")
        assert isinstance(loaded.task, SequenceToSequence)
        task = loaded.task
        examples = PreparedData.open(options.data or Path(loaded.plan.data.path)).examples("test")
        sources, search = [examples.text(index, 0) for index in range(len(examples))], task.search
    task.settings = task.settings.model_copy(update={"evaluation_batch_size": options.batch})
    sources.sort(key=len)
    many, few = spread(sources, options.batched), spread(sources, options.alone)
    task.write(many[:2], search)  # the first call allocates

    seconds, found = {"batched": math.inf, "alone": math.inf}, {}
    for _ in range(options.repeats):
        began = clock()
        found["batched"] = task.write(many, search)
        seconds["batched"] = min(seconds["batched"], (clock() - began) / len(many))
        began = clock()
        found["alone"] = [task.write([source], search)[0] for source in few]
        seconds["alone"] = min(seconds["alone"], (clock() - began) / len(few))
    both = task.write(few, search)
    words = [len(best[0].words) for best in found["batched"]]
    size, width = len(task.vocabulary), task.writer.readout.out_features
    matrix, products = torch.randn(size, width), {}
    for number in (search.beam_size, options.batch * search.beam_size):
        rows, products[number] = torch.randn(number, width), math.inf
        for _ in range(options.repeats + 1):
            began = clock()
            torch.nn.functional.linear(rows, matrix)
            products[number] = min(products[number], clock() - began)
    rate = 2 * len(rows) * size * width / products[len(rows)]
    steps = float(np.mean(words)) + (options.run is not None)
    flop = 2 * size * width * ((steps - 1) * search.beam_size + 1)
    return {
        "words": size,
        "width": width,
        "beam": search.beam_size,
        "inputs": {"all": len(sources), "batched": len(many), "alone": len(few)},
        "batch": options.batch,
        "words_written": {"mean": float(np.mean(words)), "longest": max(words)},
        "same_texts": sum(a[0].words == b[0].words for a, b in zip(both, found["alone"], strict=True)) / len(few),
        "seconds_an_input": seconds,
        "times_as_fast": seconds["alone"] / seconds["batched"],
        "floor": {"gigaflop_an_input": flop / 1e9, "gigaflops_of_a_product": rate / 1e9, "seconds_an_input": flop / rate},
        "products": products,
        "goals": {"times_as_fast": ">= 6"},
    }


def training_step(task: SequenceToSequence, batch: Any) -> Callable[[], None]:
    optimizer = make_optimizer(OptimizerSettings(name="adam", learning_rate=0.001), task.parameters())
    number = [0]

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss = task.loss(batch, ())
        (loss.nats / loss.count).backward()
        torch.nn.utils.clip_grad_norm_(task.parameters(), 5.0)
        optimizer.step()
        number[0] += 1
        task.after_step(number[0])

    return step


def train(options: argparse.Namespace) -> dict[str, Any]:
    vocabulary, width = zipf(options.words, []), options.width
    generator = np.random.default_rng(1)
    share = vocabulary.counts / vocabulary.counts.sum()

    def draw(size: int) -> np.ndarray:
        return generator.choice(len(vocabulary), size=size, p=share)

    pairs = [(draw(options.source), draw(options.target)) for _ in range(options.batch)]
    seconds, parts = {"softmax": math.inf, "self_organized": math.inf}, {}
    probes: dict[str, float] = {}
    names = tuple(seconds) if options.only is None else (options.only,)
    models = {name: make_model(name, vocabulary, width, 64).train() for name in names}
    steps = {name: training_step(task, task.batch_of(pairs)) for name, task in models.items()}
    for round_number in range(options.repeats + 1):
        for name, step in steps.items():
            began = clock()
            step()
            if round_number:  # the first step makes Adam's moments
                seconds[name] = min(seconds[name], clock() - began)
    tokens = options.batch * (options.target + 1)
    for name, task in models.items():
        weights = sum(parameter.numel() for parameter in task.parameters())
        if name == "softmax":
            layer = options.words * width
        else:
            sizes = task.decoder.groups.sizes.double()
            group = task.decoder.groups.group_of[torch.from_numpy(np.concatenate([pair[1] for pair in pairs]))]
            layer = int(width * (2 * width + task.decoder.num_clusters + float(sizes[group].mean())))
        recurrent = 8 * width * width
        read = options.batch * options.source * (recurrent + width * width)
        written = tokens * (recurrent + 2 * width * width + 2 * options.source * width)
        parts[name] = {"gigaflop": 6 * (tokens * layer + read + written) / 1e9, "weights": weights}
    left, right = torch.randn(tokens, width), torch.randn(width, options.words)
    began = clock()
    torch.mm(left, right)
    probes["gigaflops_of_a_product"] = 2 * tokens * width * options.words / (clock() - began) / 1e9
    page = torch.empty(options.words * width)
    page.fill_(1.0)
    began = clock()
    page.fill_(0.0)
    probes["gigabytes_a_second_of_a_fill"] = 4 * page.numel() / (clock() - began) / 1e9
    for part in parts.values():
        moved = 7 * 4 * part["weights"] / 1e9 / probes["gigabytes_a_second_of_a_fill"]
        part["floor_seconds"] = part["gigaflop"] / probes["gigaflops_of_a_product"] + moved
    return {
        "words": options.words,
        "width": width,
        "batch": options.batch,
        "target_words": options.target,
        "source_words": options.source,
        "seconds": seconds,
        "times_as_fast": seconds["softmax"] / seconds["self_organized"],
        "floor": parts | probes,
        "goals": {"times_as_fast": ">= 3"},
    }


PARTS = {"decode": decode, "train": train}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=PARTS, help="both unless given")
    parser.add_argument("--inputs", type=Path)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--batched", type=int, default=244)
    parser.add_argument("--alone", type=int, default=16)
    parser.add_argument("--words", type=int, default=69_000)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--source", type=int, default=31)
    parser.add_argument("--target", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", choices=("softmax", "self_organized"))
    options = parser.parse_args()
    for what in PARTS if options.what is None else (options.what,):
        found = PARTS[what](options)
        print(json.dumps({"benchmark": f"seq2seq {what}", "threads": torch.get_num_threads(), **found}), flush=True)


if __name__ == "__main__":
    main()
