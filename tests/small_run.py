"""Prepared data, a graph file and plans for models of a few hundred numbers, made of the words of ``tests/small.py``."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from sememekit.config import load_variant
from sememekit.data.prepared import PreparedData
from sememekit.decoders import DECODERS
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from sememekit.sememes import build_graph
from sememekit.tasks.language_model import LanguageModel
from tests.small import small_lexicon

FRUIT = ("苹果", "梨", "梨")
GOODS = ("电脑", "苹果", "无名")


def sentence(source: random.Random) -> str:
    """Words follow from those before, so that there is something to learn."""
    who = "我" if source.random() < 0.6 else "人"
    if source.random() < 0.5:
        return f"{who} 吃 {FRUIT[int(source.random() * 3)]} 。"
    return f"{who} 买 {GOODS[int(source.random() * 3)]} 。"


def write_text(folder: Path, sentences: int = 150, seed: int = 5) -> Path:
    """A folder with train.txt, valid.txt and test.txt."""
    folder.mkdir(parents=True, exist_ok=True)
    source = random.Random(seed)
    for split, size in (("train", sentences), ("valid", sentences // 4), ("test", sentences // 4)):
        (folder / f"{split}.txt").write_text("".join(sentence(source) + "\n" for _ in range(size)), encoding="utf-8")
    return folder


SMALL_DECODERS: dict[str, dict[str, Any]] = {
    "sdlm": {"num_bases": 2},
    "adaptive": {"shrink": 2.0},
    "mos": {"num_components": 3},
    "moc": {"num_components": 3},
    "mos_sdlm": {"num_components": 2, "num_bases": 2},
    "self_organized": {"update_every": 7, "gamma": 3.0, "frequency_budget": 0.5},
}
"""Settings that a decoder needs at this size; one that needs none is left out."""


class Place:
    """A folder with ``data`` and ``small.graph``."""

    def __init__(self, folder: Path, end_of_sentence: bool = False, **options: Any) -> None:
        self.folder = folder
        self.text = write_text(folder / "text")
        preprocess(
            "plain", self.text, folder / "data", PreprocessSettings(min_count=1, end_of_sentence=end_of_sentence, **options)
        )
        self.data = PreparedData.open(folder / "data")
        self.graph = folder / "small.graph"
        build_graph(self.data.vocabulary, [small_lexicon()]).save(self.graph)

    def table(self, decoder: str = "softmax", **changes: object) -> dict[str, Any]:
        """A plan of a tiny model; ``schedule__epochs=3`` changes a key."""
        table: dict[str, Any] = {
            "data": {"path": str(self.data.folder)},
            "task": {"embedding_size": 6, "batch_size": 4, "chunk_length": 5, "evaluation_batch_size": 3},
            "encoder": {"hidden_size": 6, "num_layers": 2},
            "decoder": {"name": decoder, **SMALL_DECODERS.get(decoder, {})},
            "optimizer": {"learning_rate": 4.0},
            "schedule": {"epochs": 2},
            "run": {"threads": 1, "device": "cpu", "stall_epochs": 0, "report_every": 5},
        }
        kind = load_variant("decoder", decoder, DECODERS)
        if "graph" in kind.needs(kind.Settings(**SMALL_DECODERS.get(decoder, {}))):
            table["graph"] = {"path": str(self.graph)}
        for path, value in changes.items():
            slot, _, key = path.partition("__")
            table.setdefault(slot, {})[key] = value
        return table


def in_chunks(task: LanguageModel, length: int) -> LanguageModel:
    """The model, which scores so many rows of a text at once from now on."""
    task.settings = task.settings.model_copy(update={"evaluation_chunk_length": length})
    return task
