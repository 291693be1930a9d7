"""Runs as segmenters and as language models of attacks on Chinese text, which stays without blanks."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sememekit import __version__, load_run
from sememekit import attack_classifier as attack_texts
from sememekit.attack.folder import AttackFolder
from sememekit.errors import ConfigError
from sememekit.jobs.attack import attack
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs.attacks.language_model import AttackLanguageModel
from sememekit.runs.attacks.victims import LatticeCutter, run_cutter
from sememekit.runs.lattices import LatticeReader, open_reader, segment_lines
from sememekit.runs.run import Run

LINES = ("电影很好看。", "这部电影很难看。", "我昨天看电影。", "影片精彩，电影好看。", "好看的影片很精彩。") * 8
TEXTS = ("这部电影很好看。\tyes\n", "我昨天看的电影很难看。\tno\n", "影片精彩，电影很好看。\tyes\n")
VICTIM = """
import numpy as np
seen = []
def predict(texts):
    seen.extend(texts)
    yes = np.array([0.9 if "好看" in text else 0.2 for text in texts])
    return np.stack([1 - yes, yes], axis=1)
predict.labels = ("no", "yes")
"""


def trained(folder: Path, name: str, segmenter: str, task: dict[str, Any], encoder: str, **options: Any) -> Path:
    data = folder / f"{name}-data"
    preprocess("plain", folder / "in", data, PreprocessSettings(segmenter=segmenter, **options))
    plan = {
        "data": {"path": str(data)},
        "task": {"embedding_size": 6, "batch_size": 4, **task},
        "encoder": {"name": encoder, "hidden_size": 6},
        "optimizer": {"name": "adam", "learning_rate": 0.02, "clip": 1.0},
        "schedule": {"epochs": 2},
        "run": {"threads": 1, "device": "cpu", "stall_epochs": 0},
    }
    train(plan, folder / name)
    return folder / name


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chinese")
    (folder / "in").mkdir()
    for split, lines in (("train", LINES), ("valid", LINES[:4]), ("test", LINES[:5])):
        (folder / "in" / f"{split}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    lattice = {"name": "lattice", "sub_size": 5, "longest_chunk": 2}
    trained(folder, "lattice", "characters", lattice, "lattice_lstm", chunks=12, chunk_length=2)
    trained(folder, "characters", "characters", {}, "lstm")
    trained(folder, "jieba", "jieba", {}, "lstm")
    (folder / "c.tsv").write_text("".join(TEXTS), encoding="utf-8")
    words = {"好看": ["精彩"], "电影": ["影片"], "昨天": ["今天"], "影片": ["电影"], "看": ["瞧"], "部": ["本"], "。": ["！"]}
    (folder / "c.json").write_text(json.dumps(words, ensure_ascii=False), encoding="utf-8")
    (folder / "chinese_run_victim.py").write_text(VICTIM, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ["lattice", "jieba", "characters"])
def test_a_run_cuts_texts_where_they_stand(name: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delitem(sys.modules, "chinese_run_victim", raising=False)
    calls: list[int] = []
    read = LatticeReader.read
    monkeypatch.setattr(LatticeReader, "read", lambda self, texts: calls.append(len(texts)) or read(self, texts))
    table = {
        "search": {"name": "exhaustive"},
        "candidates": {"name": "table", "path": "c.json"},
        "attack": {"segmenter": name, "constraints": "none"},
    }
    report = attack("chinese_run_victim:predict", Path("c.tsv"), tmp_path / "out", table=table)
    monkeypatch.setattr(LatticeReader, "read", read)
    seen = sys.modules["chinese_run_victim"].seen
    assert len(seen) > len(TEXTS)
    assert not any(" " in text for text in seen)
    assert name in report.segmentation
    identity = AttackFolder.open(tmp_path / "out").identity
    assert (identity["segmentation"], identity["sememekit"]) == (report.segmentation, __version__)
    cut, _ = run_cutter(Path(name))
    assert identity.get("segmentation_weights") == (Run.open(Path(name)).weights_sha256 if name == "lattice" else None)
    for line in (tmp_path / "out" / "examples.jsonl").read_text(encoding="utf-8").splitlines():
        result = json.loads(line)
        (text,), words = result["fields"], list(cut(result["fields"][0]))
        assert "".join(words) == text
        for change in result["changes"]:
            assert words[change["place"]] == change["old"] == text[change["begin"] :][: len(change["old"])]
    if name == "lattice":
        assert isinstance(cut, LatticeCutter)
        assert calls == [len(TEXTS)], "all texts go through the model at once, and once"
        assert list(cut("这部电影很好看。")) == next(
            segment_lines(open_reader(folder / "lattice", "segment"), ["这部电影很好看。"])
        )
    if name == "characters":
        assert report.coverage.changeable == 5, "看 four times, 部 once"


def test_runs_that_cut_no_chinese_are_refused(folder: Path) -> None:
    preprocess("plain", folder / "in", folder / "blanks-data", PreprocessSettings(segmenter="none"))
    plan = {"data": {"path": str(folder / "blanks-data")}, "task": {"embedding_size": 4, "batch_size": 4}}
    plan |= {"encoder": {"name": "lstm", "hidden_size": 4}, "schedule": {"epochs": 1}, "run": {"threads": 1, "device": "cpu"}}
    train(plan, folder / "blanks")
    with pytest.raises(ConfigError, match="reads text cut by: white space; give a lattice model"):
        run_cutter(folder / "blanks")
    with pytest.raises(ConfigError, match="has its own words; leave --lexicon out"):
        run_cutter(folder / "jieba", "open")


def test_a_language_model_cuts_the_words_of_an_attack_as_its_own_text(folder: Path) -> None:
    nats = AttackLanguageModel(folder / "characters", "cpu")
    whole, cut, other = nats([["电影", "很", "好看"], ["电", "影", "很", "好", "看"], ["电影", "很", "难看"]])
    assert whole == cut
    assert len(whole) == len(other) >= 5, "a prediction a character"
    assert whole[:3] == pytest.approx(other[:3])
    assert whole[3] != pytest.approx(other[3]), "no word is unknown that the characters make"


@pytest.mark.parametrize("opened", [False, True], ids=["folder", "run"])
def test_python_takes_a_language_model(folder: Path, opened: bool) -> None:
    judge = folder / "characters"
    predict = lambda texts: np.array([[0.9, 0.1] if "工人" in text else [0.2, 0.8] for text in texts])  # noqa: E731
    found = attack_texts(
        predict,
        ["今天 工人 看 电影 。"],
        ["yes"],
        names=["yes", "no"],
        sources="open",
        language_model=load_run(judge, device="cpu") if opened else judge,
        settings={"constraints": {"perplexity": {"most": 1e9}}},
    )
    assert found.report.rates.outcomes["success"] == 1
    assert found.report.perplexity_before is not None
    assert any(note.startswith("perplexity: at most 1e+09 times") for note in found.report.notes)
