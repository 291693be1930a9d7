"""Worlds to put faults into: prepared data, a graph and a run of each of six kinds, made by the command line.

The folders that commands make of runs (attacks, seeds, sweeps, what is pushed) are in ``folders.py``.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.child import Commands, Outcome
from tests.small import SENSES
from tests.small_examples import write_pairs
from tests.small_pairs import pair
from tests.small_run import write_text

KINDS = ("softmax", "sdlm", "self_organized", "nli", "headline", "lattice")
LINES = "我 吃 苹果 。\n人 买 电脑 。\n"
NLI_LINES = "a man sleeps in the park .\ta man runs .\ntwo dogs runs in the park\tIt's nice outside!\n"

_COMMON = {
    "run.threads": 1,
    "run.device": "cpu",
    "run.stall_epochs": 0,
    "run.report_every": 2,
    "task.embedding_size": 6,
    "encoder.hidden_size": 6,
    "encoder.num_layers": 1,
    "schedule.epochs": 2,
}
_WORDS = {"task.batch_size": 4, "task.chunk_length": 40, "task.evaluation_batch_size": 3, "optimizer.learning_rate": 4.0}
_ORGANIZED = {"decoder.update_every": 3, "decoder.gamma": 3.0, "decoder.frequency_budget": 0.5}
_SMALL_BATCHES = {"task.batch_size": 16, "task.evaluation_batch_size": 7}
_WRITER = {**_SMALL_BATCHES, "task.hidden_size": 6, "encoder.hidden_size": 4, "optimizer.learning_rate": 0.02}
_LATTICE = {"task.sub_size": 5, "task.longest_chunk": 3, "task.batch_size": 16, "optimizer.learning_rate": 0.02}

_KIND: dict[str, tuple[list[str], dict[str, object]]] = {
    "softmax": ([], _WORDS),
    "sdlm": (["--decoder", "sdlm"], {**_WORDS, "decoder.num_bases": 2}),
    "self_organized": (["--decoder", "self_organized"], {**_WORDS, **_ORGANIZED}),
    "nli": (["--task", "nli", "--encoder", "bilstm"], {**_SMALL_BATCHES, "task.classifier_size": 6, "encoder.hidden_size": 4}),
    "headline": (["--task", "headline", "--encoder", "bilstm"], {"optimizer.name": "adam", **_WRITER}),
    "lattice": (["--task", "lattice", "--encoder", "lattice_lstm"], {"optimizer.name": "adam", **_LATTICE}),
}
"""The flags of each kind, and its settings."""


@dataclass(frozen=True)
class World:
    """The folder of one kind: ``data``, ``run`` and, for sdlm, ``graph``, beside ``lines.txt`` to read.

    Attributes:
        kind: of ``KINDS``.
        folder: where everything lies.
        train: the command that made the run.
        readers: name -> a command that reads data or run and prints a figure or a text.
        parts: what is damaged, relative to the folder.
        depth: folders below a part whose files are damaged; the runs inside a folder have worlds of their own.
    """

    kind: str
    folder: Path
    train: list[str]
    readers: dict[str, list[str]] = field(default_factory=dict)
    parts: tuple[str, ...] = ("data", "graph", "run")
    depth: int = 99

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def run(self) -> Path:
        return self.folder / "run"

    def files(self) -> list[Path]:
        """Every file of data, graph and run, relative to the folder, sorted; pages for people left out."""
        found = [path.relative_to(self.folder) for path in self.folder.rglob("*") if path.is_file() and path.suffix != ".html"]
        return sorted(path for path in found if path.parts[0] in self.parts and len(path.parts) <= self.depth + 1)


def write_lexicon(path: Path) -> Path:
    """The senses of ``tests/small.py`` in the format ``hownet2000``."""
    lines = [f"{sense.word}\tN\t{','.join(f'{name}|{name}' for name in sense.sememes)}\n" for sense in SENSES]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def write_headlines(folder: Path, sizes: Sequence[int] = (60, 15, 15)) -> Path:
    """Two files side by side for each split; no source of one split is in another."""
    folder.mkdir(parents=True)
    source, seen = random.Random(6), set()
    for split, size in zip(("train", "valid", "test"), sizes, strict=True):
        rows: list[tuple[str, str]] = []
        while len(rows) < size:
            found, title = pair(source)
            found = f"{found} {' '.join(source.choice('我人梨') for _ in range(4))}"
            if found not in seen:
                seen.add(found)
                rows.append((found, title))
        for name, column in (("article", 0), ("title", 1)):
            (folder / f"{split}.{name}.txt").write_text("".join(f"{row[column]}\n" for row in rows), encoding="utf-8")
    return folder


def make_data(commands: Commands, folder: Path, kind: str) -> None:
    """``folder/text`` and ``folder/data``."""
    text, data = folder / "text", folder / "data"
    if kind == "nli":
        commands.do("preprocess", "snli", write_pairs(text), "--out", data, "-q")
    elif kind == "headline":
        commands.do("preprocess", "gigaword", write_headlines(text), "--segmenter", "none", "--out", data, "-q")
    else:
        chunks = ["--chunks", 8, "--chunk-length", 3] if kind in ("lattice", "sdlm") else []
        write_text(text, 100)
        plain = ["preprocess", "plain", text, "--segmenter", "none", "--min-count", 1, "--end-of-sentence", *chunks]
        commands.do(*plain, "--out", data, "-q")


def settings(**values: object) -> list[str]:
    """``schedule__epochs=3`` as the command line has it."""
    return [part for key, value in values.items() for part in ("--set", f"{key.replace('__', '.')}={value}")]


def make_world(commands: Commands, folder: Path, kind: str, **changes: object) -> World:
    """Data, graph and run; ``schedule__epochs=3`` changes a setting."""
    folder.mkdir(parents=True)
    make_data(commands, folder, kind)
    flags, own = _KIND[kind]
    keys = {**_COMMON, **own, **{key.replace("__", "."): value for key, value in changes.items()}}
    graph: list[str] = []
    if kind == "sdlm":
        lexicon = write_lexicon(folder / "lexicon.tsv")
        source = ["--source", f"hownet2000:{lexicon}", "--data", folder / "data", "--out", folder / "graph"]
        commands.do("build-sememe-graph", *source)
        graph = ["--graph", str(folder / "graph")]
    (folder / "lines.txt").write_text(NLI_LINES if kind == "nli" else LINES, encoding="utf-8")
    train = ["train", *flags, "--data", str(folder / "data"), *graph, *settings(**keys), "-q", "--json"]
    commands.do(*train, "--out", folder / "run")
    shutil.copytree(folder / "run", folder / "copy")
    return World(kind, folder, train, _readers(kind, folder))


def _readers(kind: str, folder: Path) -> dict[str, list[str]]:
    """The commands that read a world of this kind."""
    run, lines = str(folder / "run"), str(folder / "lines.txt")
    found = {"card": ["card", run], "report": ["report", run, "--html", str(folder / "page.html"), "--json"]}
    found["push"] = ["push", run, str(folder / "out"), "--json"]
    if kind == "nli":
        found |= {
            "eval": ["eval", run, "--json"],
            "predict": ["predict", run, lines, "--json"],
            "compare": ["compare", run, str(folder / "copy"), "--json"],
        }
    elif kind == "headline":
        found |= {
            "eval": ["eval", run, "--json"],
            "generate": ["generate", run, "--input", lines, "--json"],
            "explain": ["explain", run, "我 吃 苹果 。 人 吃 梨 。", "--json"],
        }
    elif kind == "lattice":
        found |= {
            "evaluate-ppl": ["evaluate-ppl", run, "--json"],
            "explain": ["explain", run, "我 吃 苹果 。", "--json"],
            "segment": ["segment", lines, "--model", run],
        }
    else:
        found |= {
            "evaluate-ppl": ["evaluate-ppl", run, "--json"],
            "compare": ["compare", run, str(folder / "copy"), "--json"],
            "explain": ["explain", run, "我 吃", "--json"],
            "score": ["score", run, lines],
            "generate": ["generate", run, "我", "--num-tokens", "5", "--seed", "3", "--json"],
        }
    return found


_TIMES = re.compile(r'"(seconds|tokens_per_second|run)": ?("[^"]*"|[-+0-9.eE]+|null)')


def shown(outcome: Outcome) -> str:
    """Return the output of a command, without what depends on the clock."""
    return _TIMES.sub("", outcome.out)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its relative name; a file gives itself."""
    if folder.is_file():
        return {folder.name: folder.read_bytes()}
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def run_state(run: Path) -> dict[str, object]:
    """Return the parts that are equal in two equal runs: both snapshots, the plan, the reports of epochs."""
    found: dict[str, object] = {}
    pointer = json.loads((run / "checkpoints" / "pointer.json").read_bytes())
    found["pointer"] = sorted(pointer)  # a run at its end has neither snapshots being written nor some being removed
    for which, name in ((which, pointer[which]) for which in ("best", "last")):
        folder = run / "checkpoints" / name
        for file in ("weights.safetensors", "trainer.safetensors"):
            found[f"{which}/{file}"] = (folder / file).read_bytes()
        found[f"{which}/trainer.json"] = without_times(json.loads((folder / "trainer.json").read_bytes()))
    found["plan"] = json.loads((run / "plan.json").read_bytes())
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_bytes().splitlines()]
    found["epochs"] = [without_times(line) for line in lines if line["kind"] == "EpochReport"]
    return found


def without_times(tree: object) -> object:
    """A tree of JSON without the entries that depend on the clock."""
    if isinstance(tree, dict):
        return {
            key: without_times(value)
            for key, value in tree.items()
            if key not in {"seconds", "cpu_seconds", "tokens_per_second"}
            and not (key == "metrics" and set(value) == {"bytes", "sha256"})
        }
    return [without_times(value) for value in tree] if isinstance(tree, list) else tree


def put(source: Path, target: Path) -> None:
    """Make ``target`` a copy of ``source``; whatever was there goes. A source that does not exist leaves nothing."""
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    elif source.exists():
        shutil.copy2(source, target)
