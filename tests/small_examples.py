"""Pairs and single texts small enough to reason about, prepared once."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from sememekit.data.prepared import PreparedData
from sememekit.jobs.preprocess import preprocess

SUBJECTS = ("a man", "the girl", "two dogs")
VERBS = ("sleeps", "runs", "doesn't eat")
OPPOSITE = {"sleeps": "runs", "runs": "sleeps", "doesn't eat": "runs"}


def pair(source: random.Random) -> tuple[str, str, str]:
    """A pair whose label follows from its verbs."""
    who, verb = source.choice(SUBJECTS), source.choice(VERBS)
    label = source.choice(("entailment", "neutral", "contradiction"))
    hypothesis = {"entailment": f"{who} {verb}.", "contradiction": f"{who} {OPPOSITE[verb]} .", "neutral": "It's nice outside!"}
    return f"{who} {verb} in the park , in the rain .", hypothesis[label], label


def write_pairs(folder: Path, sizes: tuple[int, int, int] = (60, 20, 20)) -> Path:
    """The official form: JSON lines, with a pair in each file on which nobody agreed."""
    folder.mkdir(parents=True, exist_ok=True)
    source = random.Random(3)
    for split, size in zip(("train", "dev", "test"), sizes, strict=True):
        rows = [pair(source) for _ in range(size)]
        rows.insert(1, ("a man", "a woman", "-"))
        lines = [json.dumps({"gold_label": c, "sentence1": a, "sentence2": b, "pairID": "1"}) for a, b, c in rows]
        (folder / f"snli_1.0_{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def write_reviews(folder: Path) -> Path:
    """Texts TAB 0 or 1, without a header."""
    folder.mkdir(parents=True, exist_ok=True)
    source = random.Random(4)
    for split, size in (("train", 50), ("valid", 15), ("test", 15)):
        rows = [source.choice([("a fine , fine film .", 1), ("what a bore", 0), ("n't bad at all", 1)]) for _ in range(size)]
        (folder / f"{split}.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in rows), encoding="utf-8")
    return folder


def write_vectors(path: Path, words: list[str], size: int = 5) -> Path:
    source = random.Random(9)
    lines = [" ".join([word, *(f"{source.uniform(-2, 2):.4f}" for _ in range(size))]) for word in words]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


class ExamplePlace:
    """A folder with prepared ``pairs`` and ``reviews``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        preprocess("snli", write_pairs(folder / "snli"), folder / "pairs")
        preprocess("sst2", write_reviews(folder / "sst2"), folder / "reviews")
        self.pairs = PreparedData.open(folder / "pairs")
        self.reviews = PreparedData.open(folder / "reviews")

    def table(self, task: str = "nli", encoder: str = "bilstm", **changes: object) -> dict[str, Any]:
        """A plan of a tiny model; ``schedule__epochs=3`` changes a key."""
        table: dict[str, Any] = {
            "data": {"path": str((self.pairs if task == "nli" else self.reviews).folder)},
            "task": {"name": task, "embedding_size": 5, "batch_size": 8, "evaluation_batch_size": 7, "classifier_size": 6},
            "encoder": {"name": encoder, "hidden_size": 4, "num_layers": 1},
            "optimizer": {"name": "sgd", "learning_rate": 0.2, "clip": 5.0},
            "schedule": {"epochs": 2, "factor": 0.2, "decay": 0.99},
            "run": {"threads": 1, "device": "cpu", "stall_epochs": 0, "report_every": 3},
        }
        for path, value in changes.items():
            slot, _, key = path.partition("__")
            table.setdefault(slot, {})[key] = value
        return table
