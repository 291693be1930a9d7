"""LSTM with the sememe cell: its training step against the plain LSTM's, and its layer against a loop over the equations.

    python benchmarks/sememe_cells.py [--data DIR --graph FILE] [--width 650] [--time 35] [--batch 20] [--repeats 5]

Sides of a ratio are timed interleaved in one run. A step is forward, backward and SGD with clipping of the two-layer language
model with a softmax over all words. Without data and graph, random ones of the size of Penn Treebank with English HowNet stand
in; words that repeat within a batch are cheaper, so real text is the honest side. The loop is what one writes down from Eq. (7)
of Qin et al. 2020: a step at a time, the maps of one input joined, everything through autograd; "all_distinct" gives both a
batch without a repeated set of sememes. Prints a JSON object.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from measuring import best_times
from torch import Tensor

from sememekit.data.batching import training_columns
from sememekit.data.prepared import PreparedData
from sememekit.decoders.base import Resources
from sememekit.decoders.softmax import Softmax
from sememekit.encoders.base import EncoderResources
from sememekit.encoders.lstm import LSTM, LSTMCell
from sememekit.encoders.sememe_sum import SememeSum
from sememekit.layers import uniform_embedding
from sememekit.sememes import SememeGraph, Sense, build_graph
from sememekit.sememes.lexicon import Entry, lexicon_of
from sememekit.tasks.language_model import LanguageModel
from sememekit.text.vocabulary import Vocabulary


def random_graph(num_words: int, num_sememes: int = 1724) -> tuple[Vocabulary, SememeGraph]:
    """Words of which three in four have senses, 2.7 each, of 2.1 sememes."""
    generator = np.random.default_rng(1)
    words = [f"w{number}" for number in range(num_words - 1)]
    vocabulary = Vocabulary.from_counts({word: 2 * num_words - number for number, word in enumerate(words)} | {"<unk>": 1})
    senses: list[tuple[int, Entry]] = []
    for word in words:
        if generator.random() < 0.77:
            for _ in range(1 + generator.poisson(1.7)):
                chosen = generator.integers(0, num_sememes, 1 + generator.poisson(1.1))
                senses.append((0, Sense(word, tuple({f"k{k}" for k in chosen}))))
    return vocabulary, build_graph(vocabulary, [lexicon_of(senses, Path("random"), "list:random", "0" * 64)])


def loop_over_the_equations(layer: LSTMCell, x: Tensor, pi: Tensor, hidden: Tensor, cell: Tensor) -> Tensor:
    """Eq. (7) a step at a time, with the parameters of ``layer``."""
    size, outputs = layer.size, []
    for x_t, pi_t in zip(x, pi, strict=True):
        u_s, i_s, o_s = layer.sememe_cell(pi_t).split(size, dim=-1)
        c_s = torch.sigmoid(i_s) * torch.tanh(u_s)
        h_s = torch.sigmoid(o_s) * torch.tanh(c_s)
        u_x, f_x, i_x, o_x, f_s_x = layer.input(x_t).split(size, dim=-1)
        u_h, f_h, i_h, o_h = layer.recurrent(hidden).split(size, dim=-1)
        i_c, o_c, f_s_c, u_c = layer.sememes(h_s).split(size, dim=-1)
        f = torch.sigmoid(f_x + f_h)
        f_s = torch.sigmoid(f_s_x + f_s_c)
        i = torch.sigmoid(i_x + i_h + i_c)
        o = torch.sigmoid(o_x + o_h + o_c)
        u = torch.tanh(u_x + u_h + u_c)
        cell = f * cell + f_s * c_s + i * u
        hidden = o * torch.tanh(cell)
        outputs.append(hidden)
    return torch.stack(outputs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--graph", type=Path)
    parser.add_argument("--width", type=int, default=650)
    parser.add_argument("--time", type=int, default=35)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--words", type=int, default=10000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    width, length, batch = options.width, options.time, options.batch
    torch.manual_seed(1)
    if options.data and options.graph:
        data, graph = PreparedData.open(options.data), SememeGraph.load(options.graph)
        vocabulary = data.vocabulary
        rows = training_columns(data.tokens("train"), batch)[: length + 1]
        tokens = torch.from_numpy(rows.astype(np.int64))
    else:
        vocabulary, graph = random_graph(options.words)
        tokens = torch.from_numpy(np.random.default_rng(2).zipf(1.2, 8 * (length + 1) * batch))
        tokens = tokens[tokens <= len(vocabulary)][: (length + 1) * batch].view(length + 1, batch) - 1

    layer, sums = LSTMCell(width, width, width), SememeSum(graph, width, 0.05, 0.0)
    x = torch.randn(length, batch, width).mul_(0.1).requires_grad_(True)
    zero = torch.zeros(batch, width)

    words_of_sets = np.unique(sums.set_of_word.numpy(), return_index=True)[1][: length * batch]
    apart = torch.from_numpy(words_of_sets).view(length, batch)

    def ours(words: Tensor) -> Tensor:
        return layer(x, sums(words), (zero, zero))[0]

    def loop(words: Tensor) -> Tensor:
        pi = sums(words)
        return loop_over_the_equations(layer, x, pi.to_positions(pi.rows), zero, zero)

    text = tokens[:-1]
    difference = (ours(text) - loop(text)).abs().max().item()
    layers = best_times(
        {
            "ours": lambda: ours(text).sum().backward(),
            "loop": lambda: loop(text).sum().backward(),
            "ours_all_distinct": lambda: ours(apart).sum().backward(),
            "loop_all_distinct": lambda: loop(apart).sum().backward(),
        },
        options.repeats,
    )

    def training_step(injection: str) -> Callable[[], None]:
        embedding = uniform_embedding(len(vocabulary), width)
        settings = LSTM.Settings(hidden_size=width, injection=injection, dropout=0.5, sememe_dropout=0.5)
        encoder = LSTM(settings, EncoderResources(width, vocabulary, graph))
        decoder = Softmax(Softmax.Settings(tied=False), Resources(width, vocabulary, graph, embedding))
        task_settings = LanguageModel.Settings(embedding_size=width, batch_size=batch, input_dropout=0.5, output_dropout=0.5)
        task = LanguageModel(task_settings, vocabulary, embedding, encoder, decoder)
        optimizer = torch.optim.SGD(task.parameters(), lr=0.1)

        def step() -> None:
            optimizer.zero_grad()
            loss = task.loss(tokens, encoder.start(batch))
            (loss.nats / loss.count).backward()
            torch.nn.utils.clip_grad_norm_(task.parameters(), 0.25)
            optimizer.step()

        return step

    steps = best_times({name: training_step(name) for name in ("none", "concat", "gate", "cell")}, options.repeats)
    distinct = len(sums(text).rows) / text.numel()
    report = {
        "benchmark": "sememe_cells",
        "layer_seconds": layers,
        "layer_speedup": round(layers["loop"] / layers["ours"], 2),
        "layer_speedup_all_distinct": round(layers["loop_all_distinct"] / layers["ours_all_distinct"], 2),
        "layer_goal": 1.8,
        "share_of_distinct_sets": round(distinct, 3),
        "products_over_plain": round(1 + (1 + 7 * distinct) * width / (16 * width + len(vocabulary)), 3),
        "largest_difference": difference,
        "step_seconds": steps,
        "step_ratios_to_plain": {name: round(steps[name] / steps["none"], 3) for name in steps},
        "cell_step_goal": 1.5,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "sizes": {name: str(value) for name, value in vars(options).items()},
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
