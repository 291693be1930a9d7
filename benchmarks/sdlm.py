"""The sememe-driven output layer against the plain formulation, and its training step against the tied softmax's.

    python benchmarks/sdlm.py [--data DIR --graph FILE] [--tokens 700] [--width 650] [--bases 5] [--repeats 3] [--steps-only]
        [--bfloat16]

Without data and graph a random graph of the sizes of the released People's Daily stands in. All sides of a ratio are timed
interleaved in one run, and ratios of whole steps are given of the best passes and of the means: on a busy machine a short pass
finds a quiet moment more often than a long one, so the ratio of the best favours the short. Peak memory is measured in a fresh
process for each side, over what it held before the pass. Prints a JSON object.

The plain formulation is the one of the public code: gather word vectors to senses, R products of contexts and sense vectors
(R, N, S), a sparse product for the gates, softmax over senses, sparse sum into words, logarithm of them all. Its sparse tensors
are coordinate lists, the only kind that torch had then; with compressed rows it is some 8 % faster.

Floor: 3 x 2 R V E multiply-adds a token for the products of contexts and word vectors, forward and backward. Evaluation
without gradients is timed too, beside its floor: R products of contexts and word vectors, 64 tokens at once, and one of
contexts and bases.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import best_times, peak_megabytes, resident_kilobytes, times
from torch import Tensor

from sememekit.data.prepared import PreparedData
from sememekit.decoders.base import Decoder, Resources
from sememekit.decoders.sdlm import SDLM
from sememekit.decoders.softmax import Softmax
from sememekit.encoders.base import EncoderResources
from sememekit.encoders.lstm import LSTM
from sememekit.sememes import SememeGraph, Sense, build_graph
from sememekit.sememes.lexicon import Entry, lexicon_of
from sememekit.tasks.language_model import LanguageModel
from sememekit.text.vocabulary import Vocabulary
from sememekit.training import autocast
from sememekit.training.optimizers import clip_gradients, sparse_lookups


def random_graph(
    num_words: int = 13477, num_sememes: int = 1742, vocabulary: Vocabulary | None = None
) -> tuple[Vocabulary, SememeGraph]:
    """A graph of the released corpus's sizes, or of a ``vocabulary``: 1.5 senses a word, 2.3 sememes a sense, frequent sets
    shared."""
    generator = np.random.default_rng(1)
    words = [f"w{number}" for number in range(num_words)] if vocabulary is None else vocabulary.decode(range(len(vocabulary)))
    if vocabulary is None:
        vocabulary = Vocabulary.from_counts({word: num_words - number for number, word in enumerate(words)} | {"<unk>": 0})
    shared = [
        tuple({f"k{k}" for k in generator.integers(0, num_sememes, size)}) for size in generator.choice([1, 2, 3, 4, 5], 7000)
    ]
    senses: list[tuple[int, Entry]] = []
    for word in words:
        for number in generator.choice(len(shared), 1 + generator.poisson(0.5), replace=False):
            senses.append((0, Sense(word, shared[number])))
    return vocabulary, build_graph(vocabulary, [lexicon_of(senses, Path("random"), "list:random", "0" * 64)])


class PlainSDLM(torch.nn.Module):
    """The layer as the public code computes it, with the parameters of ``layer``."""

    def __init__(self, layer: SDLM, graph: SememeGraph) -> None:
        super().__init__()
        self.layer = layer
        sizes = np.diff(graph.set_offsets)
        pairs = [
            (s, k)
            for s, u in enumerate(graph.sense_set)
            for k in graph.set_sememes[graph.set_offsets[u] : graph.set_offsets[u + 1]]
        ]
        indices = torch.tensor(pairs).T
        values = torch.from_numpy(1.0 / sizes[graph.sense_set][indices[0].numpy()]).float()
        self.constant = (
            torch.sparse_coo_tensor(indices, values, (graph.num_senses, graph.num_sememes)).coalesce().to_sparse_csr()
        )
        self.word_of_sense = torch.from_numpy(graph.word_of_sense.copy())
        rows = torch.stack([self.word_of_sense, torch.arange(graph.num_senses)])
        ones = torch.ones(graph.num_senses)
        self.into_words = torch.sparse_coo_tensor(rows, ones, (graph.num_words, graph.num_senses)).coalesce()

    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        layer, flat = self.layer, hidden.reshape(-1, hidden.shape[-1])
        vectors = layer.words.weight[self.word_of_sense]
        gates = torch.sigmoid(layer.gate(flat))
        mixing = layer.mixing.softmax(dim=1)
        contexts = torch.einsum("nh,rhe->rne", flat, layer.bases)
        products = contexts @ vectors.T
        experts = torch.stack([torch.sparse.mm(self.constant, (gates * mixing[:, r]).T).T for r in range(len(products))])
        logits = (products * experts).sum(dim=0) + layer.sense_bias
        words = torch.sparse.mm(self.into_words, torch.softmax(logits, dim=1).T).T
        others = torch.ones_like(words).scatter_(1, target.reshape(-1, 1), 0.0)
        return torch.nn.functional.nll_loss((words + 1e-9 * others).log(), target.flatten(), reduction="none")


def evaluation(
    layers: dict[str, Decoder], hidden: Tensor, target: Tensor, words_VE: Tensor, num_bases: int, repeats: int
) -> dict[str, Any]:
    """Time the exact loss without gradients, and the products alone that an SDLM needs for it."""
    width, num_tokens = hidden.shape[-1], target.numel()
    contexts, bases = torch.randn(64 * num_bases, width), torch.randn(num_bases, width, width)
    rows, buffer = hidden.detach().reshape(-1, width), torch.empty(len(words_VE), len(contexts))

    def loss(layer: Decoder) -> None:
        layer.train(mode=False).nll(hidden, target)

    def products() -> None:
        torch.bmm(rows.expand(num_bases, -1, -1), bases)
        for begin in range(0, num_tokens, 64):
            part = min(64, num_tokens - begin) * num_bases
            torch.mm(words_VE, contexts[:part].T, out=buffer[:, :part] if part == len(contexts) else None)

    with torch.no_grad():
        sides: dict[str, Callable[[], None]] = {name: partial(loss, layer) for name, layer in layers.items()}
        best = best_times(sides | {"products": products}, repeats)
    for layer in layers.values():
        layer.train()
    gigaflop = 2 * num_bases * num_tokens * width * (len(words_VE) + width) / 1e9
    return {
        "seconds": {name: round(value, 4) for name, value in best.items()},
        "over_softmax": best["sdlm"] / best["softmax"],
        "floor_over_softmax": best["products"] / best["softmax"],
        "gigaflop_of_products": gigaflop,
        "gigaflops_of_products": gigaflop / best["products"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--graph", type=Path)
    parser.add_argument("--tokens", type=int, default=700)
    parser.add_argument("--width", type=int, default=650)
    parser.add_argument("--bases", type=int, default=5)
    parser.add_argument("--samples", type=int, default=1000, help="words drawn a batch by the sampled layer")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps-only", action="store_true", help="leave out the plain formulation and the memory")
    parser.add_argument("--bfloat16", action="store_true", help="time the steps with products in bfloat16, too")
    parser.add_argument("--measure-memory-of", choices=["ours", "plain", "sampled", "softmax"])
    options = parser.parse_args()
    if options.data and options.graph:
        vocabulary, graph = PreparedData.open(options.data).vocabulary, SememeGraph.load(options.graph)
    else:
        vocabulary, graph = random_graph()
    torch.manual_seed(1)
    width, batch = options.width, 20
    embedding = torch.nn.Embedding(len(vocabulary), width)
    torch.nn.init.uniform_(embedding.weight, -0.1, 0.1)
    resources = Resources(width, vocabulary, graph, embedding)
    sdlm = SDLM(SDLM.Settings(preset="release", num_bases=options.bases), resources)
    plain = PlainSDLM(sdlm, graph)
    sampled = SDLM(SDLM.Settings(preset="release", num_bases=options.bases, samples=options.samples), resources)
    softmax = Softmax(Softmax.Settings(), resources)
    layers_of = {"ours": sdlm, "plain": plain, "sampled": sampled, "softmax": softmax}
    hidden = (torch.randn(options.tokens // batch, batch, width) * 0.3).requires_grad_(True)
    # Words as often as in a text: the sampled layer's work depends on what is repeated.
    counts = torch.from_numpy(vocabulary.counts.copy()).double()
    target = torch.multinomial(counts, hidden[..., 0].numel(), replacement=True).view(hidden.shape[:-1])

    def pass_through(layer: Decoder | PlainSDLM) -> Callable[[], None]:
        return lambda: layer.nll(hidden, target).mean().backward()

    if options.measure_memory_of:
        layer = layers_of[options.measure_memory_of]
        for parameter in [hidden, *layer.parameters()]:
            parameter.grad = torch.zeros_like(parameter)
        Path("/proc/self/clear_refs").write_text("5")  # Linux: the high-water mark starts again from what is held now
        before = resident_kilobytes("VmRSS")
        pass_through(layer)()
        print((resident_kilobytes("VmHWM") - before) / 1024)
        return

    def training_step(decoder: Decoder, dtype: str = "float32") -> Callable[[], None]:
        encoder = LSTM(LSTM.Settings(hidden_size=width), EncoderResources(width, vocabulary, graph))
        settings = LanguageModel.Settings(embedding_size=width)
        task = LanguageModel(settings, vocabulary, embedding, encoder, decoder)
        optimizer = torch.optim.SGD(task.parameters(), lr=0.1)
        tokens = torch.multinomial(counts, (options.tokens // batch + 1) * batch, replacement=True).view(-1, batch)

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            with sparse_lookups(task, optimizer):
                with autocast(torch.device("cpu"), dtype):
                    loss = task.loss(tokens, encoder.start(batch))
                (loss.nats / loss.count).backward()
            clip_gradients([*task.parameters()], 0.25)
            optimizer.step()

        return step

    arms = {"sdlm": sdlm, "sampled_sdlm": sampled, "softmax": softmax}
    dtypes = ("float32", "bfloat16") if options.bfloat16 else ("float32",)
    sides = {name if dtype == "float32" else f"{name}_{dtype}": (arms[name], dtype) for name in arms for dtype in dtypes}
    steps = times({name: training_step(*side) for name, side in sides.items()}, options.repeats)
    best, mean = ({name: reduce(taken) for name, taken in steps.items()} for reduce in (min, statistics.mean))
    num_tokens, edges = hidden[..., 0].numel(), int(np.diff(graph.set_offsets)[graph.sense_set].sum())
    products = 6 * options.bases * len(vocabulary) * width
    without_gradients = evaluation(
        {"sdlm": sdlm, "softmax": softmax}, hidden, target, embedding.weight.detach(), options.bases, options.repeats
    )
    more = products * (1 - 1 / options.bases) + 6 * options.bases * width**2  # than a softmax multiplies, a token
    more_seconds = num_tokens * more / without_gradients["gigaflops_of_products"] / 1e9
    result = {
        "benchmark": "sdlm",
        "graph": str(options.graph) if options.graph else "random",
        "tokens": num_tokens,
        "width": width,
        "bases": options.bases,
        "words": graph.num_words,
        "senses": graph.num_senses,
        "sememe_sets": graph.num_sets,
        "sense_sememe_edges": edges,
        "threads": torch.get_num_threads(),
        "step_seconds": {name: [round(value, 4) for value in taken] for name, taken in steps.items()},
        "step_time_over_softmax": best["sdlm"] / best["softmax"],
        "mean_step_time_over_softmax": mean["sdlm"] / mean["softmax"],
        "sampled_step_time_over_softmax": best["sampled_sdlm"] / best["softmax"],
        "mean_sampled_step_time_over_softmax": mean["sampled_sdlm"] / mean["softmax"],
        "floor_of_step_over_softmax": 1 + more_seconds / best["softmax"],
        "evaluation": without_gradients,
        "step_time_in_bfloat16": {name: best[f"{name}_bfloat16"] / best[name] for name in arms if options.bfloat16},
        "megaflop_per_token": {
            "products": products / 1e6,
            "products_of_a_softmax": products / options.bases / 1e6,
            "gates_of_senses": 2 * 3 * options.bases * edges / 1e6,
            "products_of_senses": 2 * 3 * options.bases * graph.num_senses / 1e6,
            "bases": 6 * options.bases * width**2 / 1e6,
        },
        "goals": {
            "decoder_speed_ratio": ">= 2.5",
            "decoder_memory_ratio": "<= 0.7",
            "step_time_over_softmax": "<= 3.5 at width 650, <= 5 at 48 to 128",
            "evaluation_over_softmax": "<= 3.0",
            "sampled_step_time_over_softmax": "<= 1.0",
            "sampled_memory_over_softmax": "< 1.0",
        },
    }
    if not options.steps_only:
        difference = (sdlm.nll(hidden, target).flatten() - plain.nll(hidden, target).flatten()).abs().max().item()
        layers = best_times({"ours": pass_through(sdlm), "plain": pass_through(plain)}, options.repeats)
        sizes = {"tokens": options.tokens, "width": width, "bases": options.bases, "samples": options.samples}
        passed_on = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
        if options.data and options.graph:
            passed_on += ["--data", str(options.data), "--graph", str(options.graph)]
        memory = {side: peak_megabytes(__file__, passed_on, side) for side in layers_of}
        result |= {
            "largest_difference_of_nll": difference,
            "decoder_tokens_per_second": {side: num_tokens / value for side, value in layers.items()},
            "decoder_speed_ratio": layers["plain"] / layers["ours"],
            "decoder_gigaflops_reached": products * num_tokens / layers["ours"] / 1e9,
            "decoder_peak_megabytes": memory,
            "decoder_memory_ratio": memory["ours"] / memory["plain"],
            "sampled_memory_over_softmax": memory["sampled"] / memory["softmax"],
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
