"""Data that were cut with an own lexicon go through every command that reads text, after the file of the lexicon is gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sememekit.analysis.explanations.label import explain_label
from sememekit.analysis.predict import predict
from sememekit.data.prepared import PreparedData
from sememekit.errors import DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs.attacks.victims import open_victim
from sememekit.runs.augment import augmented
from sememekit.runs.run import Run

TEXT = "大房子好天气"
WORDS = {"fmm": ["大房子", "好天气"], "jieba": ["大房子", "好天气"]}


@pytest.fixture(scope="module", params=["fmm", "jieba"])
def prepared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, PreparedData]:
    folder = tmp_path_factory.mktemp(request.param)
    rows = ["大房子好天气\tgood", "我们家好天气\tgood", "大房子坏天气\tbad", "我们家坏天气\tbad"]
    (folder / "text").mkdir()
    for split, times in (("train", 6), ("valid", 2), ("test", 2)):
        (folder / "text" / f"{split}.tsv").write_text("\n".join(rows * times) + "\n", encoding="utf-8")
    lexicon = folder / "lex.txt"
    lexicon.write_text("".join(f"{word}\nx\n" for word in ("大房子", "好天气", "坏天气", "我们家")), encoding="utf-8")
    settings = PreprocessSettings(segmenter=request.param, lexicon=f"list:{lexicon}", min_count=1)
    preprocess("classification", folder / "text", folder / "data", settings)
    preprocess("classification", folder / "text", folder / "again", settings)
    for path in (folder / "data").iterdir():
        assert path.read_bytes() == (folder / "again" / path.name).read_bytes(), path.name
    lexicon.unlink()
    return request.param, PreparedData.open(folder / "data")


def table(data: PreparedData, **of_data: Any) -> dict[str, Any]:
    return {
        "data": {"path": str(data.folder), **of_data},
        "task": {"name": "classification", "embedding_size": 4, "batch_size": 4},
        "encoder": {"name": "bilstm", "hidden_size": 4},
        "schedule": {"epochs": 1},
        "run": {"threads": 1, "device": "cpu", "stall_epochs": 0},
    }


def test_data_run_and_commands_cut_alike(prepared: tuple[str, PreparedData], tmp_path: Path) -> None:
    name, data = prepared
    assert data.segmenter().segment(TEXT) == WORDS[name]
    train(table(data), tmp_path / "run")
    assert Run.open(tmp_path / "run").segmenter().description == data.signature.segmenter
    (tmp_path / "texts.txt").write_text(f"{TEXT}\n", encoding="utf-8")
    found = predict(tmp_path / "run", tmp_path / "texts.txt")
    assert found.classifier.words(TEXT) == WORDS[name]
    assert [prediction.line for prediction in found] == [1]
    victim = open_victim(str(tmp_path / "run"), device="cpu")
    assert victim.cut is not None
    assert list(victim.cut(TEXT)) == WORDS[name]
    assert [word.word for word in explain_label(tmp_path / "run", [TEXT]).texts[0].words] == WORDS[name]


def test_added_examples_have_the_words_of_the_data(prepared: tuple[str, PreparedData], tmp_path: Path) -> None:
    name, data = prepared
    (tmp_path / "more.jsonl").write_text(json.dumps({"text": "好天气大房子", "label": "good"}) + "\n", encoding="utf-8")
    examples = augmented(data, tmp_path / "more.jsonl", 1.0, seed=1).examples("train")
    assert data.vocabulary.decode(examples.text(len(examples) - 1, 0)) == WORDS[name][::-1]
    report = train(table(data, augment=str(tmp_path / "more.jsonl")), tmp_path / "run")
    assert report.epochs == 1


def test_new_data_in_the_words_of_a_run_keep_the_lexicon(prepared: tuple[str, PreparedData], tmp_path: Path) -> None:
    name, data = prepared
    train(table(data), tmp_path / "run")
    (tmp_path / "new.tsv").write_text(f"{TEXT}\tgood\n", encoding="utf-8")
    for given in (data.folder, tmp_path / "run"):
        settings = PreprocessSettings(vocabulary=given, force=True)
        signature = preprocess("classification", tmp_path / "new.tsv", tmp_path / "new", settings).signature
        new = PreparedData.open(tmp_path / "new")
        assert signature.lexicon == data.signature.lexicon
        assert new.vocabulary.decode(new.examples("test").text(0, 0)) == WORDS[name]
        assert new.segmenter().segment(TEXT) == WORDS[name]
        for words, fits in ((("大房子", "好天气", "坏天气", "我们家"), True), (("大房子", "好天气"), False)):
            (tmp_path / "lex.txt").write_text("".join(f"{word}\nx\n" for word in words), encoding="utf-8")
            named = settings.model_copy(update={"lexicon": f"list:{tmp_path / 'lex.txt'}"})
            if fits:
                again = preprocess("classification", tmp_path / "new.tsv", tmp_path / "new", named).signature
                assert again.lexicon == data.signature.lexicon
                continue
            with pytest.raises(DataError, match="the folder keeps the words that it was cut with: leave --lexicon out"):
                preprocess("classification", tmp_path / "new.tsv", tmp_path / "new", named)
