"""Victim queries a second of an attack on an LSTM classifier at the size of SST-2, three ways of asking.

    python benchmarks/attack.py [--texts FILE] [--examples 48] [--hidden 150] [--repeats 3] [--preset best|random]

    together   all examples advance together: a call of the victim is one large padded batch (what ``attack`` does)
    example    one example at a time, its population as a batch
    single     one example at a time, one query at a time

The search, the seed and with them every query and every result are the same on all sides, which is checked; repeated queries
are answered from memory on all sides alike. The victim is an untrained LSTM (width 150, word vectors of 300, two classes),
because speed does not depend on what it has learnt; the budget of 400 queries makes every side do the same work. Texts are
lines of ``--texts`` (text TAB label), or made up with the lengths of SST-2's test sentences. All sides are timed in turns in
one run, the best of ``--repeats`` counts; ``single`` is so slow that it does a share of the examples. Prints a JSON object.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from sememekit.attack import Attack, Example, Victim, build_goal, build_search, read_attack_plan, read_examples, words_of

SHARE_OF_SINGLE = 6


class LstmVictim(nn.Module):
    """Word vectors, one LSTM, its last state, two classes, and a third that is never the likeliest.

    The attack aims at that third class: nobody is ever fooled, and each side asks until the budget is spent.
    """

    def __init__(self, words: list[str], width: int, hidden: int) -> None:
        super().__init__()
        self.ids = {word: number for number, word in enumerate(words, start=2)}
        self.embedding = nn.Embedding(len(words) + 2, width)
        self.lstm = nn.LSTM(width, hidden, batch_first=True)
        self.classes = nn.Linear(hidden, 2)

    @torch.inference_mode()
    def forward(self, texts: list[str]) -> np.ndarray:
        rows = [[self.ids.get(word, 1) for word in text.split()] or [1] for text in texts]
        lengths = torch.tensor([len(row) for row in rows])
        padded = torch.zeros(len(rows), int(lengths.max()), dtype=torch.long)
        for number, row in enumerate(rows):
            padded[number, : len(row)] = torch.tensor(row)
        packed = pack_padded_sequence(self.embedding(padded), lengths, batch_first=True, enforce_sorted=False)
        two = torch.softmax(self.classes(self.lstm(packed)[1][0][-1]), dim=1)
        return torch.cat([0.999 * two[:, :1], two[:, 1:], 0.001 * two[:, :1]], dim=1).numpy()


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--examples", type=int, default=48)
    parser.add_argument("--hidden", type=int, default=150)
    parser.add_argument("--width", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--preset", choices=("best", "random"), default="random")
    parser.add_argument("--budget", type=int, default=400)
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    if options.texts:
        texts = [example.fields[0] for example in read_examples(options.texts).examples[: options.examples]]
    else:
        texts = made_up_texts(options.examples)
    words = words_of([Example(0, (text,), "0") for text in texts])
    known = list(dict.fromkeys([*words, *(f"w{number}" for number in range(15_000))]))
    model = LstmVictim(known, options.width, options.hidden).eval()
    table = substitutes(known)
    labels = [str(int(row.argmax())) for text in texts for row in model([text])]
    examples = [Example(index, (text,), label) for index, (text, label) in enumerate(zip(texts, labels, strict=True))]
    search = {"name": "genetic", "population": 60, "generations": 30, "replacement": options.preset, "revisit": True}

    def side(together: int, batch_size: int, chosen: list[Example]) -> tuple[float, int, dict[int, Any], int]:
        plan = read_attack_plan(
            {
                "goal": {"name": "targeted", "targets": {"0": ("2",), "1": ("2",)}},
                "search": search,
                "candidates": {"name": "table", "path": "none"},
                "attack": {"query_budget": options.budget, "together": together, "batch_size": batch_size},
            },
            "benchmark",
        )
        victim = Victim(model, ("0", "1", "2"), name="lstm", batch_size=batch_size)
        attack = Attack(victim, build_goal(plan, victim.labels), build_search(plan), [], table, plan.attack)
        begin = time.perf_counter()
        results = {result.index: result for result in attack.run(chosen)}
        return time.perf_counter() - begin, victim.texts_asked, results, victim.calls

    sides = {
        "together": (512, 1024, examples),
        "example": (1, 1024, examples),
        "single": (1, 1, examples[::SHARE_OF_SINGLE]),
    }
    best: dict[str, dict[str, float]] = {}
    reference: dict[int, Any] = {}
    for _ in range(options.repeats):
        for name, (together, batch_size, chosen) in sides.items():
            seconds, asked, results, calls = side(together, batch_size, chosen)
            for index, result in results.items():
                reference.setdefault(index, result)
                if (result.outcome, result.queries) != (reference[index].outcome, reference[index].queries):
                    raise SystemExit(f"{name}: example {index} went another way; the sides are not comparable")
            speed = asked / seconds
            if name not in best or speed > best[name]["queries_per_second"]:
                best[name] = {"queries_per_second": speed, "queries": asked, "calls": calls, "seconds": seconds}
    print(
        json.dumps(
            {
                "benchmark": "attack",
                "settings": {key: str(value) for key, value in vars(options).items()},
                "sides": best,
                "ratio_to_single": best["together"]["queries_per_second"] / best["single"]["queries_per_second"],
                "ratio_to_example": best["together"]["queries_per_second"] / best["example"]["queries_per_second"],
            }
        )
    )


if __name__ == "__main__":
    main()
