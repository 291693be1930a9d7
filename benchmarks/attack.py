"""Queries a second of the genetic attack on an LSTM classifier at the size of SST-2, four ways of asking.

    python benchmarks/attack.py [--run RUN] [--texts FILE] [--examples 48] [--repeats 3] [--replacement best|random]
    python benchmarks/attack.py --published 4x256 12x768 [--examples 6] [--budget 100]

    together   all examples advance together: a call of the victim is one large padded batch, what an example asked before is
               answered from memory (what ``attack`` does)
    remembered one example at a time, its population as a batch, with the same memory
    example    one example at a time, its population as a batch, without memory: what public codes do
    single     one example at a time, one query at a time, without memory

The search is the genetic one with the paper's settings for sentiment (population 60, 8 substitutes, ``best`` replacement) over
a few generations; search and seed, and with them every query in its order and every score, are the same on all sides, which is
checked. A query is a text that the search asks for. The victim is a trained run of ours (``--run``), or else an untrained LSTM
of our own classifier at the size that GloVe's 50 numbers ask for: speed does not depend on what it has learned. It never gives
in, so that every side asks the same. Texts are lines of ``--texts`` (text TAB label), or made up with the lengths of SST-2's
test sentences. All sides are timed interleaved in one run, the best of ``--repeats`` counts; ``single`` does a share of the
examples, and its speed is measured on this share. Prints a JSON object.

``--published`` attacks BERT classifiers of LAYERSxWIDTH with random weights, written to a folder and opened as ``hf:FOLDER``,
by greedy search and particle swarm. It reports the share of CPU time outside the model, from its first call to its last one,
and how much of that the tokenizer takes.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch

from sememekit.attack import (
    Attack,
    Document,
    Example,
    Victim,
    read_attack_plan,
    read_examples,
    words_of,
)
from sememekit.attack.space import Space
from sememekit.encoders.base import EncoderResources
from sememekit.encoders.lstm import LSTM
from sememekit.runs.classifier import load_classifier
from sememekit.tasks.classifier import SingleTextClassifier
from sememekit.text.vocabulary import Vocabulary

SHARE_OF_SINGLE = 16
LABELS = ("0", "1", "2")


class Outcome(NamedTuple):
    """Work of a side: queries of the search, calls of the victim, the best score of each example."""

    queries: int
    calls: int
    best: dict[int, float]


def untrained(words: list[str], hidden: int) -> Callable[[list[str]], np.ndarray]:
    """Our classifier of single texts: vectors of 50, one LSTM, the maximum over its states, one layer of 64."""
    vocabulary = Vocabulary.from_counts({**dict.fromkeys(words, 1), "<unk>": 1, "<s>": 1, "</s>": 1})
    settings = SingleTextClassifier.Settings(embedding_size=50, classifier_size=64, classifier_layers=1, pooling="max")
    embedding = torch.nn.Embedding(len(vocabulary), settings.embedding_size)
    torch.nn.init.normal_(embedding.weight, std=0.1)
    encoder = LSTM(LSTM.Settings(hidden_size=hidden, num_layers=1), EncoderResources(50, vocabulary, None))
    task = SingleTextClassifier(settings, vocabulary, embedding, encoder, ("0", "1")).train(mode=False)
    return lambda texts: task.probabilities([[vocabulary.encode(text.split())] for text in texts])


def out_of_reach(function: Callable[[list[str]], np.ndarray]) -> Callable[[list[str]], np.ndarray]:
    """The same with a third class that is never the most probable; the attack aims at it, so that nobody is ever fooled."""

    def wrapped(texts: list[str]) -> np.ndarray:
        two = function(texts)
        return np.concatenate([0.999 * two[:, :1], two[:, 1:], 0.001 * two[:, :1]], axis=1)

    return wrapped


def made_up_texts(num: int, num_words: int = 15_000) -> list[str]:
    """Zipf words in sentences of about the lengths of SST-2: 19 words, give or take 9."""
    generator = np.random.default_rng(3)
    lengths = np.clip(generator.normal(19, 9, num).round().astype(int), 3, 50)
    chances = 1.0 / np.arange(1, num_words + 1)
    return [" ".join(f"w{word}" for word in generator.choice(num_words, n, p=chances / chances.sum())) for n in lengths]


def substitutes(words: list[str]) -> dict[str, tuple[str, ...]]:
    """Eight other words for each word but the 30 most frequent."""
    generator = np.random.default_rng(4)
    pool = words[30:]
    return {word: tuple(pool[i] for i in generator.choice(len(pool), 8, replace=False)) for word in pool}


def write_bert(folder: Path, texts: list[str], shape: str) -> list[str]:
    """Write a BERT of single texts with random weights and a tokenizer of words, and return its labels of ``texts``."""
    import tokenizers
    import transformers

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"w{number}" for number in range(15_000))]
    pieces = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]")
    )
    pieces.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    pieces.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    marks = {"pad_token": "[PAD]", "unk_token": "[UNK]", "model_max_length": 128}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=pieces, **marks)
    layers, width = map(int, shape.split("x"))
    config = transformers.BertConfig(
        vocab_size=len(words),
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
        max_position_embeddings=128,
        id2label=dict(enumerate(LABELS[:2])),
    )
    model = transformers.BertForSequenceClassification(config).train(mode=False)
    with torch.no_grad():
        found = model(**tokenizer(texts, padding=True, return_tensors="pt")).logits.argmax(dim=1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return [LABELS[label] for label in found.tolist()]


class Timed:
    """A function that adds up its CPU seconds, and notes when it began first and ended last."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.seconds, self.calls, self.first, self.last = function, 0.0, 0, 0.0, 0.0

    def method(self) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            begin = time.process_time()
            found = self.function(*given, **named)
            self.last = time.process_time()
            self.first, self.calls, self.seconds = self.first or begin, self.calls + 1, self.seconds + self.last - begin
            return found

        return call


def published(shape: str, search: str, options: argparse.Namespace) -> dict[str, float]:
    """Attack a classifier of transformers, and return where CPU time goes."""
    import transformers

    from sememekit import attack_classifier

    texts = made_up_texts(options.examples)
    model, tokenizer = transformers.BertForSequenceClassification, transformers.PreTrainedTokenizerFast
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        labels = write_bert(folder / "model", texts, shape)
        (folder / "table.json").write_text(json.dumps(substitutes([f"w{number}" for number in range(15_000)])))
        timed = {"model": Timed(model.forward), "tokenizer": Timed(tokenizer.__call__)}
        model.forward, tokenizer.__call__ = timed["model"].method(), timed["tokenizer"].method()
        try:
            running = {"query_budget": options.budget, "constraints": "none"}
            settings = {"candidates": {"path": str(folder / "table.json")}, "attack": running}
            begin = time.process_time()
            result = attack_classifier(
                f"hf:{folder / 'model'}", texts, labels, candidates="table", search=search, settings=settings
            )
            whole = time.process_time() - begin
        finally:
            model.forward, tokenizer.__call__ = timed["model"].function, timed["tokenizer"].function
    between = timed["model"].last - timed["model"].first
    return {
        "queries": sum(row["queries"] for row in result),
        "calls": timed["model"].calls,
        "cpu_seconds": round(whole, 3),
        "cpu_seconds_from_first_to_last_call": round(between, 3),
        "cpu_seconds_of_model": round(timed["model"].seconds, 3),
        "share_outside_of_model": round(1 - timed["model"].seconds / between, 4),
        "share_of_tokenizer": round(timed["tokenizer"].seconds / between, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--examples", type=int, default=48)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--replacement", choices=("best", "random"), default="best")
    parser.add_argument("--generations", type=int, default=5)
    parser.add_argument("--published", nargs="+", metavar="LAYERSxWIDTH", help="attack classifiers of transformers instead")
    parser.add_argument("--budget", type=int, default=100, help="most queries of an example, for --published")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    if options.published:
        found = {
            f"{shape}, {search}": published(shape, search, options)
            for shape in options.published
            for search in ("greedy", "pso")
        }
        print(json.dumps({"benchmark": "attack --published", "sides": found, "load": os.getloadavg()[1]}))
        return
    if options.texts:
        texts = [example.fields[0] for example in read_examples(options.texts)[0][: options.examples]]
    else:
        texts = made_up_texts(options.examples)
    words = words_of([Example(0, (text,), "0") for text in texts])
    known = list(dict.fromkeys([*words, *(f"w{number}" for number in range(15_000))]))
    trained = load_classifier(options.run).probabilities if options.run else None
    model = out_of_reach(trained or untrained(known, options.hidden))
    table = substitutes(known)
    labels = [str(int(row.argmax())) for text in texts for row in model([text])]
    examples = [
        Example(index, (text,), label)
        for index, (text, label) in enumerate(zip(texts, labels, strict=True))
        if not table.keys().isdisjoint(text.split())  # the search is never begun where there is nothing to try
    ]
    search = {"name": "genetic", "population": 60, "generations": options.generations, "replacement": options.replacement}

    plan = read_attack_plan(
        {
            "goal": {"name": "targeted", "targets": {"0": ("2",), "1": ("2",)}},
            "search": search,
            "candidates": {"name": "table", "path": "none"},
            "attack": {"counting": "every", "together": len(examples), "batch_size": 1024},
        },
        "benchmark",
    )

    def engine(together: int, chosen: list[Example]) -> Outcome:
        victim = Victim(model, LABELS, name="lstm", batch_size=plan.attack.batch_size)
        settings = plan.attack.model_copy(update={"together": together})
        attack = Attack(victim, plan.goal.build(LABELS), plan.search.build(), [], table, settings)
        results = list(attack.run(chosen))
        best = {result.index: round(result.best_score or 0.0, 6) for result in results}
        return Outcome(sum(result.queries for result in results), victim.calls, best)

    def plain(batch_size: int, chosen: list[Example]) -> Outcome:
        queries, calls, best = 0, 0, {}
        for example in chosen:
            generator = np.random.default_rng([plan.attack.seed, example.index])
            space = Space.open(Document.read(example.fields), table)
            aim = plan.goal.build(LABELS).aim(LABELS.index(example.label), generator)
            start = float(aim.scores(model([example.fields[0]]))[0])
            steps = plan.search.build().run(space, start, generator)
            highest, rows = start, next(steps)
            queries, calls = queries + 1, calls + 1
            while True:
                texts = [space.text(row)[0] for row in rows]
                parts = [model(texts[begin : begin + batch_size]) for begin in range(0, len(texts), batch_size)]
                scores = aim.scores(np.concatenate(parts))
                queries, calls, highest = queries + len(texts), calls + len(parts), max(highest, float(scores.max()))
                try:
                    rows = steps.send(scores)
                except StopIteration:
                    break
            best[example.index] = round(highest, 6)
        return Outcome(queries, calls, best)

    few = examples[::SHARE_OF_SINGLE]
    sides: dict[str, Callable[[], Outcome]] = {
        "together": lambda: engine(len(examples), examples),
        "remembered": lambda: engine(1, examples),
        "example": lambda: plain(1 << 20, examples),
        "single": lambda: plain(1, few),
    }
    best: dict[str, dict[str, float]] = {}
    reference: dict[int, float] = {}
    for _ in range(options.repeats):
        for name, run in sides.items():
            begin = time.perf_counter()
            outcome = run()
            seconds = time.perf_counter() - begin
            for index, score in outcome.best.items():
                if abs(score - reference.setdefault(index, score)) > 2e-6:
                    raise SystemExit(f"{name}: example {index} went another way; the sides are not comparable")
            speed = outcome.queries / seconds
            if name not in best or speed > best[name]["queries_per_second"]:
                best[name] = {
                    "queries_per_second": speed,
                    "queries": outcome.queries,
                    "calls": outcome.calls,
                    "seconds": seconds,
                }
    print(
        json.dumps(
            {
                "benchmark": "attack",
                "settings": {key: str(value) for key, value in vars(options).items()},
                "sides": best,
                **{
                    f"ratio_to_{name}": best["together"]["queries_per_second"] / best[name]["queries_per_second"]
                    for name in ("single", "example", "remembered")
                },
            }
        )
    )


if __name__ == "__main__":
    main()
