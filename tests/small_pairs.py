"""Pairs of a text and its headline, made of the words of ``tests/small.py``, and plans of tiny models that write headlines."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, ClassVar

from sememekit.config import load_variant
from sememekit.corpora.examples.sets import FilePairs
from sememekit.data.prepared import PreparedData
from sememekit.decoders import DECODERS
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.runs.build import build_task, clusters_of
from sememekit.runs.plan import read_plan
from sememekit.sememes import SememeGraph, build_graph
from sememekit.tasks.seq2seq import SequenceToSequence
from tests.small import small_lexicon
from tests.small_run import SMALL_DECODERS

EIGHT = [
    ("我 吃 苹果 。 人 吃 梨 。", "吃 苹果"),
    ("人 吃 梨 。 我 买 电脑 。", "人 吃 梨"),
    ("我 买 电脑 。", "买 电脑 。"),
    ("人 买 无名 。 我 吃 梨 。 我 吃 梨", "无名"),
    ("苹果 。 电脑", "苹果 电脑 苹果"),
    ("梨", "梨"),
    ("我 我 人 人", "我 人"),
    ("无名 买 我", "我 买 无名 人"),
]

LINES = ["我 吃 苹果 。 人 吃 梨 。", "人 买 电脑 。 我 买 无名 。"]
WRITTEN = ["吃 梨", "买 无名"]
"""Texts, and the headlines that ``learned_run`` writes for them."""


class SmallPairs(FilePairs):
    """A table with two columns, words apart; pairs of train may be in valid, too."""

    segmenters: ClassVar = ("none",)
    held_out_stays_out: ClassVar = False


class CharacterPairs(SmallPairs):
    """The same, cut into characters."""

    segmenters: ClassVar = ("characters",)


def pair(source: random.Random) -> tuple[str, str]:
    """The headline repeats the verb and what follows it in the second sentence."""
    sentences = [
        (source.choice("我人"), *source.choice([("吃", "苹果"), ("吃", "梨"), ("买", "电脑"), ("买", "无名")]))
        for _ in range(2)
    ]
    return " ".join(f"{' '.join(words)} 。" for words in sentences), " ".join(sentences[1][1:])


def write_pairs(folder: Path, rows: dict[str, list[tuple[str, str]]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for split, pairs in rows.items():
        (folder / f"{split}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    return folder


class PairPlace:
    """A folder with prepared ``pairs``, the ``eight`` of above, and a graph of each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        source = random.Random(6)
        made = {split: [pair(source) for _ in range(size)] for split, size in (("train", 60), ("valid", 15), ("test", 15))}
        for name, rows in (("pairs", made), ("eight", dict.fromkeys(("train", "valid", "test"), EIGHT))):
            preprocess("tests.small_pairs:SmallPairs", write_pairs(folder / f"{name}.text", rows), folder / name)
            data = PreparedData.open(folder / name)
            build_graph(data.vocabulary, [small_lexicon()]).save(folder / f"{name}.graph")
        self.pairs, self.eight = PreparedData.open(folder / "pairs"), PreparedData.open(folder / "eight")

    def table(
        self, decoder: str = "softmax", encoder: str = "bilstm", name: str = "pairs", **changes: object
    ) -> dict[str, Any]:
        """A plan of a tiny model; ``schedule__epochs=3`` changes a key."""
        table: dict[str, Any] = {
            "data": {"path": str(self.folder / name)},
            "task": {"name": "headline", "embedding_size": 6, "hidden_size": 6, "batch_size": 8, "evaluation_batch_size": 7},
            "encoder": {"name": encoder, "hidden_size": 4, "num_layers": 1},
            "decoder": {"name": decoder, **SMALL_DECODERS.get(decoder, {})},
            "optimizer": {"name": "adam", "learning_rate": 0.02, "clip": 5.0},
            "schedule": {"epochs": 2, "factor": 0.5},
            "run": {"threads": 1, "device": "cpu", "stall_epochs": 0, "report_every": 3},
        }
        kind = load_variant("decoder", decoder, DECODERS)
        if "graph" in kind.needs(kind.Settings(**SMALL_DECODERS.get(decoder, {}))):
            table["graph"] = {"path": str(self.folder / f"{name}.graph")}
        for path, value in changes.items():
            slot, _, key = path.partition("__")
            table.setdefault(slot, {})[key] = value
        return table

    def model(
        self, decoder: str = "softmax", encoder: str = "bilstm", name: str = "pairs", **changes: object
    ) -> SequenceToSequence:
        """An untrained model in float64, every weight moved away from where it starts."""
        import torch

        plan = read_plan(self.table(decoder, encoder, name, **changes), "test")
        data = PreparedData.open(self.folder / name)
        graph = SememeGraph.load(self.folder / f"{name}.graph")
        built = build_task(plan, data.vocabulary, graph, clusters_of(plan, data.vocabulary))
        assert isinstance(built, SequenceToSequence)
        generator = torch.Generator().manual_seed(3)
        with torch.no_grad():
            for parameter in built.double().parameters():
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
        return built.eval()


def learned_run(place: PairPlace) -> Path:
    """Headlines through sememes, chosen by ROUGE, learned until all are right."""
    sizes: dict[str, Any] = {"task__embedding_size": 24, "task__hidden_size": 24, "encoder__hidden_size": 12}
    folder = place.folder / "run"
    report = train(place.table("sdlm", **sizes, task__checkpoint_by="rouge", schedule__epochs=20, schedule__factor=1.0), folder)
    assert (report.metric, report.best_valid) == ("rougeL", 1.0)
    return folder
