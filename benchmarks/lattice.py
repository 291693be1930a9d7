"""Lattice language models: the training step against a plain LSTM's, and against the same mathematics edge by edge.

    python benchmarks/lattice.py [--data DIR] [--data-3 DIR] [--batch 40] [--length 30] [--repeats 5] [--loop]

DIR is prepared data with a chunk vocabulary of 10,000 n-grams of 2 tokens and, for L = 3, of 3 (--data-3). Without data, words
drawn by Zipf's law and their most frequent n-grams stand in; how many chunks a sentence holds depends on the text, so real text
is the honest side. A step is forward, backward, clipping and Adam on one batch of sentences of equal length cut from the
training text; sides of a ratio are timed interleaved in one run, the best of the repeats. Every model has two layers of 200,
vectors of 256 (128 with two copies), tied, as in Section 5.2 of Buckman and Neubig 2018. "plain" is the language model of the
house with an LSTM and a tied softmax on the same tokens, "chain" the lattice with one path, with the parameters of the
lattices without what only they have.

The floor of a model is the time of its matrix products alone, counted below, at the speed at which this machine does the plain
model's softmax product, so that it says how much of a step is anything else. ``--loop`` runs the twin of the tests, which goes
through nodes, edges and vectors one at a time, on one sentence. Prints a JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from measuring import best_times

from sememekit.data.prepared import PreparedData
from sememekit.runs.build import build_task
from sememekit.runs.plan import read_plan
from sememekit.tasks.language_model import LanguageModel
from sememekit.tasks.lattice.model import Lattice
from sememekit.text.chunks import ChunkVocabulary
from sememekit.text.vocabulary import Vocabulary

LATTICES: dict[str, dict[str, Any]] = {
    "chain": {"longest_chunk": 1, "sub_model": False, "composition_size": 0},
    "L=1": {"longest_chunk": 1},
    "L=2": {"longest_chunk": 2},
    "L=2 tree": {"longest_chunk": 2, "state": "tree"},
    "L=2 direct": {"longest_chunk": 2, "state": "direct"},
    "L=2 segmental": {"longest_chunk": 2, "state": "segmental"},
    "L=3": {"longest_chunk": 3},
    "E=2": {"longest_chunk": 1, "copies": 2, "sub_model": False, "composition_size": 0, "embedding_size": 128},
}
GOALS = {"L=2": 5.5, "L=3": 7.5, "E=2": 2.2}
PAPER = {"L=1": 1.8, "L=2": 10.8, "E=2": 5.6}
"""Seconds a batch over the baseline's (Table 5), at three layers of 1500 on a GPU."""


class Text(NamedTuple):
    """Input of the models: words, text, and the chunks of L = 2 and of L = 3."""

    vocabulary: Vocabulary
    tokens: npt.NDArray[np.int64]
    chunks: ChunkVocabulary
    longer: ChunkVocabulary | None


def prepared(folder: Path, longer: Path | None, size: int) -> Text:
    """The first ``size`` tokens of the training text."""
    data = PreparedData.open(folder)
    chunks_3 = PreparedData.open(longer).chunks() if longer else None
    return Text(data.vocabulary, np.asarray(data.tokens("train")[:size]).astype(np.int64), data.chunks(), chunks_3)


def made_up(num_words: int, size: int, num_chunks: int = 10_000) -> Text:
    """Words by Zipf's law, and the most frequent n-grams of 200,000 of them."""
    counts = {f"w{rank:06}": max(1, 1_000_000 // rank) for rank in range(1, num_words - 1)}
    vocabulary = Vocabulary.from_counts({"<eos>": 40_000, "<unk>": 1} | counts)
    share = vocabulary.counts.astype(np.float64)
    share[[vocabulary.end_id, vocabulary.unknown_id]] = 0.0
    tokens = np.random.default_rng(1).choice(len(vocabulary), size=max(size, 200_000), p=share / share.sum())

    def chunks(longest: int) -> ChunkVocabulary:
        words = tokens[:200_000].tolist()
        found = Counter(gram for n in range(2, longest + 1) for gram in zip(*(words[k:] for k in range(n)), strict=False))
        most = sorted(found.items(), key=lambda item: (-item[1], len(item[0]), item[0]))[:num_chunks]
        return ChunkVocabulary(vocabulary, [gram for gram, _ in most], [count for _, count in most], max_length=longest)

    return Text(vocabulary, tokens, chunks(2), chunks(3))


def sentences(text: Text, batch: int, length: int) -> list[npt.NDArray[np.int64]]:
    """Running text cut into sentences of equal length, each with an end mark."""
    end, words = text.vocabulary.end_id, text.tokens
    assert end is not None
    words = words[words != end][: batch * (length - 1)].reshape(batch, length - 1)
    return [np.append(row, end) for row in words]


def stepper(task: Any, batch: Any, carry: Any) -> Callable[[], None]:
    """A training step as the trainer takes it."""
    task.train()
    optimizer = torch.optim.Adam(task.parameters(), lr=1e-3)
    parameters = list(task.parameters())

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss = task.loss(batch, carry)
        (loss.nats / loss.count).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 0.25)
        optimizer.step()

    return step


def gigaflops(task: Lattice, batch: Any) -> dict[str, float]:
    """Return the FLOPs of the matrix products of a step: forward, and twice as many backward."""
    settings, size = task.settings, task.settings.embedding_size
    tokens, columns, longest, copies = batch.rows.shape
    nodes, width, layers = tokens * columns, task.encoder.output_size, 2
    words, rows = len(task.vocabulary), len(task.embedding.weight)
    edges = nodes * longest * copies
    inputs = settings.embedding_size + settings.composed_size
    windows = 0 if batch.windows is None else len(batch.windows.rows)
    half = 0 if task.composition is None else task.composition.size
    parts = {
        "main softmax": nodes * rows * size + nodes * width * size,
        "states": 4 * width * (windows * copies * inputs + (layers - 1) * edges * width + layers * nodes * width),
        "windows": 2 * windows * 4 * half * (size + half),
    }
    if task.sub_model is not None:
        sub = task.sub_model.size
        parts["sub-model softmax"] = nodes * longest * words * size
        parts["sub-model states"] = nodes * (4 * sub * width + longest * (4 * sub * sub + sub * size) + 4 * sub * size)
    if settings.state == "segmental":
        parts["states"] = nodes * 4 * width * (inputs + (2 * layers - 1) * width)
    return {name: 6e-9 * count for name, count in parts.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--data-3", type=Path)
    parser.add_argument("--words", type=int, default=10_000, help="without data")
    parser.add_argument("--batch", type=int, default=40)
    parser.add_argument("--length", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--loop", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(1)
    size = 4 * options.batch * options.length
    source = prepared(options.data, options.data_3, size) if options.data else made_up(options.words, size)
    text = sentences(source, options.batch, options.length)
    chosen = options.only if options.only is not None else [name for name in LATTICES if source.longer or name != "L=3"]

    steps: dict[str, Callable[[], None]] = {}
    plain = build_task(
        read_plan({"task": {"embedding_size": 256}, "encoder": {"hidden_size": 200, "output_size": 256}}, "plain"),
        source.vocabulary,
        None,
    )
    assert isinstance(plain, LanguageModel)
    stream = torch.from_numpy(np.stack([np.insert(row, 0, row[-1]) for row in text]).T.copy())
    steps["plain"] = stepper(plain, stream, plain.encoder.start(options.batch))
    counts = {}
    tasks = {}
    for name in chosen:
        table = {"task": {"name": "lattice", **LATTICES[name]}, "encoder": {"name": "lattice_lstm", "hidden_size": 200}}
        chunks = (source.longer or source.chunks) if name == "L=3" else source.chunks
        task = build_task(read_plan(table, name), source.vocabulary, None, chunks=chunks)
        assert isinstance(task, Lattice)
        batch = task.batch_of(text)
        steps[name], counts[name], tasks[name] = stepper(task, batch, ()), gigaflops(task, batch), task
    best = best_times(steps, options.repeats)
    fastest = min(best["plain"], best.get("chain", float("inf")))

    rows, vectors = torch.randn(options.batch * options.length, 256), plain.embedding.weight.detach()
    product_speed = _speed(rows, vectors)
    report: dict[str, Any] = {
        "benchmark": "lattice",
        "text": str(options.data or "made up"),
        "seconds": {name: round(value, 4) for name, value in best.items()},
        "ratio_to_fastest_plain": {name: round(best[name] / fastest, 2) for name in chosen},
        "goals": GOALS,
        "paper": PAPER,
        "gigaflops": {name: {part: round(value, 2) for part, value in parts.items()} for name, parts in counts.items()},
        "product_gigaflops_per_second": round(product_speed, 1),
        "times_the_floor": {name: round(best[name] * product_speed / sum(counts[name].values()), 2) for name in chosen},
        "parameters": {name: sum(p.numel() for p in task.parameters()) for name, task in tasks.items()},
    }
    if options.loop:
        from tests.tasks.lattice_twin import Twin

        report["loop"] = {}
        for name in chosen:
            task = tasks[name]
            begin = time.process_time()
            (-Twin(task).log_probability(text[0].tolist())).backward()
            report["loop"][name] = round((time.process_time() - begin) * options.batch / best[name], 1)
    report |= {"threads": torch.get_num_threads(), "torch": torch.__version__}
    print(json.dumps(report))


def _speed(rows: torch.Tensor, vectors: torch.Tensor) -> float:
    """Gigaflops a second of the product of contexts and words."""

    def multiply() -> None:
        rows @ vectors.T

    return 2e-9 * len(rows) * vectors.numel() / best_times({"product": multiply}, 5)["product"]


if __name__ == "__main__":
    main()
