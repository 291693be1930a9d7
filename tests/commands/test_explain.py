"""What explain finds, and what its page holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sememekit.analysis.explain import Explanation, explain
from sememekit.commands.build_sememe_graph import build_sememe_graph
from sememekit.commands.preprocess import preprocess
from sememekit.commands.train import train
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.prepare.settings import PreprocessSettings
from sememekit.reports.explanation import explanation_page, remarks, write_page
from tests.pages import check_page
from tests.small import SENSES

LINES = ["我 吃 苹果 。", "我 买 电脑 。", "人 吃 梨 。", "我 买 苹果 。", "<unk> 买 无名 。"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, a graph, a sememe model ("sdlm") and a plain one ("softmax"), trained for a few steps."""
    folder = tmp_path_factory.mktemp("explain")
    (folder / "text.txt").write_text("\n".join(LINES * 30) + "\n", encoding="utf-8")
    rows = "".join(f"{sense.word}\tN\t{','.join(f'x|{name}' for name in sense.sememes)}\n" for sense in SENSES)
    (folder / "lexicon.tsv").write_text(rows, encoding="utf-8")
    preprocess("plain", folder / "text.txt", folder / "data", PreprocessSettings(end_of_sentence=False))
    build_sememe_graph([f"hownet2000:{folder / 'lexicon.tsv'}"], folder / "data", folder / "graph")
    common = {
        "data": {"path": str(folder / "data")},
        "task": {"name": "language_model", "embedding_size": 6, "batch_size": 4},
        "encoder": {"name": "lstm", "hidden_size": 6, "num_layers": 1},
        "optimizer": {"learning_rate": 2.0},
        "schedule": {"epochs": 2},
        "run": {"threads": 1, "stall_epochs": 0},
    }
    train({**common, "decoder": {"name": "softmax"}}, folder / "softmax")
    train({**common, "decoder": {"name": "sdlm"}, "graph": {"path": str(folder / "graph")}}, folder / "sdlm")
    return folder


@pytest.fixture(scope="module")
def explanation(place: Path) -> Explanation:
    return explain(place / "sdlm", "我 吃", top=20, top_sememes=5)


def test_words_senses_and_gates_add_up(explanation: Explanation) -> None:
    probabilities = [word.probability for word in explanation.words]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) == pytest.approx(1.0, abs=1e-5)
    for word in explanation.words:
        assert sum(sense.share for sense in word.senses) == pytest.approx(1.0, abs=1e-5)
        assert [sense.share for sense in word.senses] == sorted((sense.share for sense in word.senses), reverse=True)
    apple = next(word for word in explanation.words if word.word == "苹果")
    assert {tuple(sorted(item.name for item in sense.sememes)) for sense in apple.senses} == {
        ("植物", "水果"),
        ("品牌", "电脑"),
        ("食品",),
    }
    assert {sense.title for sense in apple.senses} == {"N"}


def test_the_strongest_sememes_are_those_of_the_senses(explanation: Explanation) -> None:
    gates = [item.gate for item in explanation.sememes]
    assert len(gates) == 5
    assert gates == sorted(gates, reverse=True)
    of_senses = {item.name: item for word in explanation.words for sense in word.senses for item in sense.sememes}
    assert all(of_senses[item.name] == item for item in explanation.sememes)
    rises = [item.gate - item.at_rest for item in explanation.raised]
    assert rises == sorted(rises, reverse=True)
    assert len(rises) == 5
    assert all(0 < item.gate < 1 and 0 < item.at_rest < 1 for item in of_senses.values())


def test_words_without_annotation_are_named(explanation: Explanation) -> None:
    annotated = {word.word: word.annotated for word in explanation.words}
    assert annotated["无名"] is False
    assert annotated["梨"] is True
    assert "no annotation" in explanation_page(explanation)


def test_an_explanation_survives_json(explanation: Explanation) -> None:
    table = json.loads(explanation.model_dump_json())
    assert table["words"][0]["senses"][0]["sememes"][0].keys() == {"name", "gate", "at_rest"}
    assert Explanation.model_validate_json(explanation.model_dump_json()) == explanation


def test_a_plain_softmax_says_why_it_has_no_senses(place: Path) -> None:
    found = explain(place / "softmax", "我 吃", top=3)
    assert len(found.words) == 3
    assert all(word.senses == () for word in found.words)
    assert found.sememes == ()
    assert "softmax" in (found.no_senses or "")
    assert "No senses" in check_page(explanation_page(found)).text


def test_unknown_words_are_said(place: Path) -> None:
    found = explain(place / "sdlm", "我 买 海豚 海豚")
    assert found.unknown == ("海豚",)
    assert [word.read_as for word in found.context] == ["我", "买", "<unk>", "<unk>"]
    assert remarks(found) == ["The model does not know 海豚 and read <unk> instead."]


def test_chinese_without_blanks_is_cut_by_the_words_of_the_model(place: Path) -> None:
    found = explain(place / "sdlm", "我吃苹果")
    assert [word.word for word in found.context] == ["我", "吃", "苹果"]
    assert "longest match" in found.segmentation
    assert found.words == explain(place / "sdlm", "我 吃 苹果").words


def test_the_page_holds_only_itself(explanation: Explanation, tmp_path: Path) -> None:
    write_page(explanation, tmp_path / "why.html")
    html = (tmp_path / "why.html").read_text(encoding="utf-8")
    page = check_page(html)
    assert "我 吃" in page.text
    assert all(word.word in page.text for word in explanation.words)
    assert 'lang="zh-Hans"' in html
    assert "prefers-color-scheme: dark" in html


def test_what_a_person_typed_is_no_markup(place: Path) -> None:
    html = explanation_page(explain(place / "sdlm", "我 <script>alert('1')</script> &amp; \"吃\""))
    page = check_page(html)
    assert "<script>alert('1')</script>" in page.text
    assert "&amp;" in page.text


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ("", "the context is empty"),
        (" \t\n", "the context is empty"),
        ("海豚 鲸鱼", "knows none of the words"),
        ("x", "none of"),
    ],
)
def test_a_context_that_says_nothing_is_an_error(place: Path, context: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        explain(place / "sdlm", context)


def test_wrong_numbers_and_folders_are_errors(place: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must be 1 at least"):
        explain(place / "sdlm", "我", top=0)
    with pytest.raises(CheckpointError, match="does not exist"):
        explain(tmp_path / "nothing", "我")
