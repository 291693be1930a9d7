"""One odd text through all ways in: score, predict, explain and Python cut it into the same words, or all refuse it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from sememekit import load_run
from sememekit.analysis.explanations.words import explain
from sememekit.analysis.predict import predict
from sememekit.analysis.score import score
from sememekit.commands._input import lines_of
from sememekit.errors import DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs.classifier import Classifier
from tests.small_run import Place, write_text

WORDS = ["我", "吃", "梨", "。"]
CUT = {
    "byte-order mark": "\ufeff我 吃 梨 。",
    "line separator": "我 吃\u2028梨 。",
    "next line": "我 吃\x85梨 。",
    "form feed": "我 吃\x0c梨 。",
    "carriage return": "我 吃 梨 。\r\n",
    "full-width blank": "我　吃　梨　。",
    "no-break space": "我\u00a0吃 梨 。",
    "blanks": "  我  吃 梨 。  ",
    "marks of ends": "<s> 我 吃 梨 。 </s>",
    "an end": "我 吃 梨 。 <eos>",
}
REFUSED = {"NUL": "我 吃\0梨 。", "empty": "", "blank": " \u3000 "}
RAW = "我吃梨我吃梨我吃梨。"


class Models(NamedTuple):
    """A language model and a classifier over the same words."""

    words: Path
    labels: Path


def trained(folder: Path, segmenter: str) -> Models:
    source = write_text(folder / "text")
    glue = " " if segmenter == "none" else ""
    for split in ("train", "valid", "test"):
        lines = (source / f"{split}.txt").read_text(encoding="utf-8").splitlines()
        lines = [line.replace(" ", glue) for line in lines]
        (source / f"{split}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (folder / "labels").mkdir(exist_ok=True)
        rows = [f"{line}\t{'eats' if '吃' in line else 'buys'}\n" for line in lines]
        (folder / "labels" / f"{split}.tsv").write_text("".join(rows), encoding="utf-8")
    settings = PreprocessSettings(segmenter=segmenter, min_count=1)
    plan = Place(folder / "plan").table(schedule__epochs=1)
    preprocess("plain", source, folder / "words.data", settings)
    preprocess("classification", folder / "labels", folder / "labels.data", settings)
    train({**plan, "data": {"path": str(folder / "words.data")}}, folder / "words")
    task = {"name": "classification", "embedding_size": 6, "batch_size": 8}
    plan = {key: value for key, value in plan.items() if key != "decoder"}
    train({**plan, "data": {"path": str(folder / "labels.data")}, "task": task}, folder / "labels.run")
    return Models(folder / "words", folder / "labels.run")


@pytest.fixture(scope="module")
def blanks(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return trained(tmp_path_factory.mktemp("blanks"), "none")


@pytest.fixture(scope="module")
def characters(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return trained(tmp_path_factory.mktemp("characters"), "characters")


def ways(models: Models, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str] | None]:
    """Return for each way the words that the model reads, or None if the way refuses or has nothing to read."""
    read: list[list[str]] = []
    words_of = Classifier.words

    def kept(self: Classifier, given: str) -> list[str]:
        read.append(words_of(self, given))
        return read[-1]

    monkeypatch.setattr(Classifier, "words", kept)
    path = folder / "text.txt"
    path.write_bytes(text.encode() if text.endswith("\n") else text.encode() + b"\n")
    run, classifier = load_run(models.words, device="cpu"), load_run(models.labels, device="cpu")

    def by_classifier(call: object) -> list[str]:
        read.clear()
        call()  # type: ignore[operator]
        return read[-1] if read else []

    asked = {
        "score": lambda: [row.token for row in score(models.words, lines_of(path, "strict"))],
        "score in Python": lambda: run.score(text).column("word"),
        "perplexity": lambda: run.perplexity(text) and None,
        "explain": lambda: [word.word for word in explain(models.words, text).context],
        "explain in Python": lambda: [word.word for word in run.explain(text).report.context],
        "predict": lambda: by_classifier(lambda: [*predict(models.labels, path)]),
        "predict in Python": lambda: by_classifier(lambda: classifier.predict([text])),
    }
    found: dict[str, list[str] | None] = {}
    for name, ask in asked.items():
        try:
            words = ask()
        except DataError:
            words = None
        if name != "perplexity":
            found[name] = [word for word in words if word != "<eos>"] or None if words is not None else None
        else:
            found[name] = words
    return found


@pytest.mark.parametrize("name", CUT)
def test_odd_text_is_cut_into_the_same_words(
    blanks: Models, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ways(blanks, CUT[name], tmp_path, monkeypatch)
    found.pop("perplexity")
    assert found == dict.fromkeys(found, WORDS)
    run = load_run(blanks.words, device="cpu")
    assert run.perplexity(CUT[name]) == run.perplexity("我 吃 梨 。")


@pytest.mark.parametrize("name", REFUSED)
def test_text_that_is_none_is_refused(blanks: Models, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ways(blanks, REFUSED[name], tmp_path, monkeypatch)
    assert found == dict.fromkeys(found)


def test_raw_chinese_is_refused_where_blanks_cut_the_data(
    blanks: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ways(blanks, RAW, tmp_path, monkeypatch)
    assert found == dict.fromkeys(found)


@pytest.mark.parametrize("text", [RAW, "我吃", "我 吃梨我吃梨我吃梨。"])
@pytest.mark.filterwarnings("ignore:.*Chinese without blanks is cut as the data")
def test_raw_chinese_is_cut_as_the_data_were(
    characters: Models, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ways(characters, text, tmp_path, monkeypatch)
    found.pop("perplexity")
    assert all(words == [*text.replace(" ", "")] for words in found.values()), found


def test_a_tab_divides_columns_of_predict_and_words_elsewhere(
    blanks: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ways(blanks, "我\t吃 梨 。", tmp_path, monkeypatch)
    assert (found.pop("predict"), found.pop("perplexity")) == (None, None)
    assert found == dict.fromkeys(found, WORDS)
