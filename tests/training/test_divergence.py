"""Runs whose rate is absurd: whatever becomes of them, no snapshot holds a number that is not finite, and none is a bug."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from sememekit.analysis.evaluate import evaluate
from sememekit.errors import SememekitError, TrainingError
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs.run import Run
from sememekit.training import RunFolder
from tests.small_examples import ExamplePlace
from tests.small_pairs import PairPlace, write_pairs
from tests.small_run import Place

LATTICE: dict[str, dict[str, Any]] = {
    "task": {"name": "lattice", "embedding_size": 6, "sub_size": 5, "longest_chunk": 3, "batch_size": 8},
    "encoder": {"name": "lattice_lstm", "hidden_size": 6},
    "decoder": {"name": "softmax"},
    "run": {"threads": 1, "device": "cpu"},
}


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Plans of nine kinds of run."""
    folder = tmp_path_factory.mktemp("divergence")
    words, pairs, examples = Place(folder / "words"), PairPlace(folder / "pairs"), ExamplePlace(folder / "examples")
    chunks = Place(folder / "chunks", end_of_sentence=True, chunks=8, chunk_length=3)
    models = {name: words.table(name) for name in ("softmax", "sdlm", "mos", "self_organized", "class_hsm")}
    return models | {
        "nli": examples.table("nli"),
        "classification": examples.table("classification"),
        "headline": pairs.table("softmax"),
        "lattice": {"data": {"path": str(chunks.data.folder)}, **LATTICE},
    }


def runaway(table: dict[str, Any], out: Path, optimizer: str, rate: float) -> str:
    """Train with that rate and no clip worth the name, and hold what is left to what is promised; how it ended."""
    plan = {
        **table,
        "optimizer": {"name": optimizer, "learning_rate": rate, "clip": 1e30},
        "schedule": {"epochs": 3},
        "run": {**table["run"], "stall_epochs": 0, "checkpoint_every": 4},
    }
    try:
        report = train(plan, out)
        assert report.best_valid is None or math.isfinite(report.best_valid)
        report.model_dump_json()
        ended = "finished"
    except TrainingError as error:
        ended = str(error)
    assert len(ended) < 600
    assert "\n" not in ended
    folder = RunFolder.open(out)
    pointer = folder.pointer()
    assert ("no checkpoint was written" in ended) == (not pointer)
    for which in ("last", "best"):
        if which not in pointer:
            continue
        snapshot = folder.load(which, with_trainer=True)  # type: ignore[call-overload]
        floats = [tensor for tensor in snapshot.weights.values() if tensor.is_floating_point()]
        assert all(bool(torch.isfinite(tensor).all()) for tensor in floats), which
        best = snapshot.trainer["progress"]["best"]
        assert best is None or math.isfinite(best)
        Run.open(out, which=which, device="cpu").load()  # type: ignore[arg-type]
    for record in folder.metrics():
        if record["kind"] == "EpochReport":
            assert all(math.isfinite(value) for value in record["valid"].values())
    if "best" in pointer:
        with suppress(SememekitError):
            evaluate(out, device="cpu").model_dump_json()
    return ended


@pytest.mark.parametrize(("kind", "optimizer", "rate"), [("softmax", "adam", 3e38), ("nli", "adam", 3e38), ("nli", "sgd", 1e6)])
def test_a_run_that_diverges_leaves_only_whole_checkpoints(
    tables: dict[str, dict[str, Any]], tmp_path: Path, kind: str, optimizer: str, rate: float
) -> None:
    runaway(tables[kind], tmp_path / "run", optimizer, rate)


def test_a_lattice_that_is_worse_than_guessing_ends(tables: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    ended = runaway(tables["lattice"], tmp_path / "run", "adam", 30.0)
    assert "a model that gives each of the 11 words the same probability has 11" in ended


def test_a_word_that_train_lacks_is_named_beside_the_rate(tables: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    """Targets of valid count if train has no ``<unk>``; sources do not."""
    told = "4 words to predict in valid are <unk> and none in train is"
    known, new, source = [("我 吃 梨", "吃 梨")] * 9, [("我 吃 梨", "火星 飞船")] * 2, [("火星 飞船", "吃 梨")] * 2
    for name, valid, words in (("target", new, True), ("source", source, False)):
        rows = {"train": known, "valid": valid, "test": valid}
        preprocess("tests.small_pairs:SmallPairs", write_pairs(tmp_path / f"{name}.text", rows), tmp_path / f"{name}.data")
        table = {**tables["headline"], "data": {"path": str(tmp_path / f"{name}.data")}}
        ended = told_of(table, tmp_path / name)
        assert (told in ended, "start again with a lower rate" in ended) == (words, True)
    assert "<unk>" not in told_of(tables["headline"], tmp_path / "small")
    text = tmp_path / "text"
    text.mkdir()
    for split, line in (("train", "我 吃 梨 。 人 买 电脑 。"), ("valid", "火星 飞船 火星 飞船"), ("test", "我 吃 梨")):
        (text / f"{split}.txt").write_text(f"{line}\n" * 30, encoding="utf-8")
    preprocess("plain", text, tmp_path / "plain", PreprocessSettings(segmenter="none"))
    plain = {**tables["softmax"], "data": {"path": str(tmp_path / "plain")}}
    assert "119 words to predict in valid are <unk> and none in train is" in told_of(plain, tmp_path / "words")


def told_of(table: dict[str, Any], out: Path) -> str:
    """Return the message that ends a run with an absurd rate."""
    optimizer = {"name": "adam", "learning_rate": 100.0, "clip": 1e30}
    with pytest.raises(TrainingError) as failed:
        train({**table, "optimizer": optimizer, "run": {**table["run"], "stall_epochs": 0}}, out)
    return str(failed.value)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1e6, 3e38])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize(
    "kind", ["softmax", "sdlm", "mos", "self_organized", "class_hsm", "nli", "classification", "headline", "lattice"]
)
def test_every_kind_of_run_diverges_well(
    tables: dict[str, dict[str, Any]], tmp_path: Path, kind: str, optimizer: str, rate: float
) -> None:
    runaway(tables[kind], tmp_path / "run", optimizer, rate)
