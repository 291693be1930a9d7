"""Explanations of a prediction, and their page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from sememekit.analysis.explanations.sememes import PredictedWord, SenseShare
from sememekit.analysis.explanations.words import Explanation, explain
from sememekit.analysis.senses.tagging import tag
from sememekit.commands._printing import print_parts
from sememekit.commands._program import app
from sememekit.data.prepared import PreparedData
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.jobs.build_sememe_graph import build_sememe_graph
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.prepare.settings import PreprocessSettings
from sememekit.reports.explanation import through_sememes, words_page, words_parts
from sememekit.reports.pages import remarks, write_page
from sememekit.reports.table import share_bar
from sememekit.runs.run import Run
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
    assert {sense.title for sense in apple.senses} == {"noun"}


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


def test_the_mass_of_a_sememe_is_what_its_senses_have(place: Path, explanation: Explanation) -> None:
    """All words are shown, so that p(sense | context) can be added up from what is printed."""
    vocabulary = PreparedData.open(place / "data").vocabulary
    masses: dict[str, float] = {}
    for word in explanation.words:
        for sense in word.senses:
            for item in sense.sememes:
                masses[item.name] = masses.get(item.name, 0.0) + word.probability * sense.share
    every = {item.name: item for word in explanation.words for sense in word.senses for item in sense.sememes}
    for name, item in every.items():
        assert item.mass == pytest.approx(masses[name], abs=1e-6)
        assert item.rise == pytest.approx((item.mass or 0) - (item.mean or 0))
        assert item.lift == pytest.approx((item.mass or 0) / (item.mean or 1))
    counts = dict(zip(vocabulary.tokens, vocabulary.counts.tolist(), strict=True))
    assert every["吃"].count == counts["吃"]
    assert every["水果"].count == counts["苹果"] + counts["梨"]
    assert every["人"].count == counts["我"] + counts["人"]
    rises = [item.rise or 0 for item in explanation.expected]
    assert rises == sorted(rises, reverse=True)
    longer = explain(place / "sdlm", "我 吃", top_sememes=99)
    assert {item.name for item in longer.expected} == {name for name, item in every.items() if (item.rise or 0) > 0}
    assert {item.name for item in explanation.expected} == set(
        sorted((name for name in every if (every[name].rise or 0) > 0), key=lambda name: -(every[name].rise or 0))[:5]
    )
    assert explanation.mean == "over the word counts of train, without context"


def test_a_mean_may_be_taken_over_a_split(place: Path) -> None:
    found = explain(place / "sdlm", "我", mean="test", top=20)
    predictions = len(PreparedData.open(place / "data").tokens("test")) - 1
    assert found.mean == f"over the {predictions} predictions of test"
    again = explain(place / "sdlm", "我", mean="test", data=place / "data", top=20)
    assert again == found
    counts = explain(place / "sdlm", "我", top=20)
    assert [word.probability for word in counts.words] == [word.probability for word in found.words]
    assert counts.expected != found.expected
    with pytest.raises(ConfigError, match=r"no such split; allowed: counts .*, train, valid, test"):
        explain(place / "sdlm", "我", mean="tset")
    with pytest.raises(DataError, match="nowhere"):
        explain(place / "sdlm", "我", mean="test", data=place / "nowhere")


def test_sememes_below_a_count_are_grey(place: Path) -> None:
    found = explain(place / "sdlm", "我 吃", top=20, min_count=50)
    page = words_page(found)
    for name, grey in (("植物", False), ("机器", True)):
        chips = [part.split(">", 1) for part in page.split("<li")[1:] if f">{name}<" in part.split("</li>")[0]]
        assert chips
        assert all(("faint" in head) is grey for head, _ in chips)
        (item,) = {one for word in found.words for sense in word.senses for one in sense.sememes if one.name == name}
        assert (item.count < 50) is grey
    with pytest.raises(ConfigError, match="--min-count must be 1"):
        explain(place / "sdlm", "我", min_count=0)


def test_a_sememe_without_a_mean_has_no_lift(explanation: Explanation, capsys: pytest.CaptureFixture[str]) -> None:
    first = explanation.expected[0]
    unseen = first.model_copy(update={"mean": 0.0, "rise": first.mass, "lift": None, "count": 0})
    found = explanation.model_copy(update={"expected": (unseen, *explanation.expected[1:])})
    print_parts(words_parts(found))
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.split()[:1] == [first.name] and "+" in line]
    assert line.split()[-2:] == ["–", "0"]
    row = next(part for part in words_page(found).split("<tr>") if first.name in part.split("</th>")[0] and "+" in part)
    assert 'class="faint"' in row.split("</th>")[0]
    assert '<td class="number">–</td><td class="number">0</td>' in row
    assert json.loads(found.model_dump_json())["expected"][0]["lift"] is None


def test_words_without_annotation_are_named(explanation: Explanation) -> None:
    annotated = {word.word: word.annotated for word in explanation.words}
    assert annotated["无名"] is False
    assert annotated["梨"] is True
    assert "no annotation" in words_page(explanation)


def test_an_explanation_survives_json(explanation: Explanation) -> None:
    table = json.loads(explanation.model_dump_json())
    keys = {"name", "gate", "at_rest", "mass", "mean", "rise", "lift", "count"}
    assert table["words"][0]["senses"][0]["sememes"][0].keys() == table["expected"][0].keys() == keys
    assert Explanation.model_validate_json(explanation.model_dump_json()) == explanation


def test_a_plain_softmax_says_why_it_has_no_senses(place: Path) -> None:
    found = explain(place / "softmax", "我 吃", top=3)
    assert len(found.words) == 3
    assert all(word.senses == () for word in found.words)
    assert found.sememes == ()
    assert "softmax" in (found.no_senses or "")
    assert "No senses" in check_page(words_page(found)).text


def test_unknown_words_are_said(place: Path) -> None:
    found = explain(place / "sdlm", "我 买 海豚 海豚")
    assert found.unknown == ("海豚",)
    assert [word.read_as for word in found.context] == ["我", "买", "<unk>", "<unk>"]
    assert remarks("words", found)[0] == "The model does not know 海豚 and read <unk> instead."


def test_chinese_without_blanks_is_refused_where_blanks_cut_the_data(place: Path) -> None:
    with pytest.raises(DataError, match="'我吃苹果', which would be read as one <unk>; cut it first: sememekit segment"):
        explain(place / "sdlm", "我吃苹果")


def test_the_page_holds_only_itself(explanation: Explanation, tmp_path: Path) -> None:
    write_page(tmp_path / "why.html", words_page(explanation))
    html = (tmp_path / "why.html").read_text(encoding="utf-8")
    page = check_page(html)
    assert "我 吃" in page.text
    assert all(word.word in page.text for word in explanation.words)
    assert 'lang="zh-Hans"' in html
    assert "prefers-color-scheme: dark" in html


def test_what_a_person_typed_is_no_markup(place: Path) -> None:
    html = words_page(explain(place / "sdlm", "我 <script>alert('1')</script> &amp; \"吃\""))
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


def test_the_prior_is_the_share_without_context(place: Path) -> None:
    run = Run.open(place / "sdlm")
    words = {word.word: word for word in explain(run, "我 吃", top=20).words}
    empty = run.task.decoder.sense_attribution(torch.zeros(6), torch.tensor([run.vocabulary.id("苹果")]))
    assert empty is not None
    expected = sorted(share for _, share in empty.word_senses[0])
    assert sorted(sense.prior for sense in words["苹果"].senses) == pytest.approx(expected)


def test_senses_that_stay_at_the_prior_are_not_told_apart() -> None:
    def word(*shares: float) -> PredictedWord:
        prior = 1 / len(shares)
        senses = [SenseShare(share=share, prior=prior, label="N x", sememes=()) for share in shares]
        return PredictedWord(word="打", probability=0.1, senses=tuple(senses))

    assert [word(*shares).is_told_apart for shares in ((0.59, 0.41), (0.61, 0.39), (1.0,))] == [False, True, True]


def test_the_figure_has_the_probability_of_each_word_through_each_sememe(place: Path, tmp_path: Path) -> None:
    found = explain(place / "sdlm", "我 吃", top=20)
    [drawn] = through_sememes(found)
    assert drawn.columns == tuple(item.name for item in found.expected)
    for word, row in zip(found.words, drawn.values, strict=True):
        senses = [(sense.share, [item.name for item in sense.sememes]) for sense in word.senses]
        by_hand = [word.probability * sum(share for share, names in senses if name in names) for name in drawn.columns]
        assert row == pytest.approx(by_hand)
    shown = CliRunner().invoke(app, ["explain", str(place / "sdlm"), "我 吃", "--figure", str(tmp_path / "one.svg")])
    assert shown.exit_code == 0, shown.stderr
    assert drawn.columns[0] in (tmp_path / "one.svg").read_text(encoding="utf-8")
    assert through_sememes(explain(place / "softmax", "我 吃")) == []


def test_bars_have_a_stroke_at_the_even_share(place: Path) -> None:
    assert [share_bar(share, 0.5) for share in (0.0, 0.25, 1.0)] == ["▏     │", "███   │", "██████│█████"]
    assert share_bar(1.0, 1.0) == "███████████│"
    page = words_page(explain(place / "sdlm", "我 吃", top=20))
    assert page.count('<i style="left:33.3%"></i>') == 3, "the senses of 苹果"
    assert "even share" in page


def test_a_named_word_is_told_by_the_whole_sentence(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = explain(place / "sdlm", "我 吃", top=1, word="苹果", right="。 我")
    assert found.asked is not None
    assert found.asked.word.word == "苹果"
    assert found.asked.right == ("。", "我")
    [row] = [row for row in tag(place / "sdlm", ["我 吃 苹果 。 我"]) if row.token == "苹果"]
    assert [(tag.number, tag.label) for tag in found.asked.tags] == [(sense.number, sense.label) for sense in row.senses]
    probabilities = [sense.probability for sense in row.senses]
    assert [tag.probability for tag in found.asked.tags] == pytest.approx(probabilities, rel=1e-6)
    ranks = [word.word for word in explain(place / "sdlm", "我 吃", top=20).words]
    assert found.asked.rank == 1 + ranks.index("苹果")
    print_parts(words_parts(found))
    assert "whole sentence" in capsys.readouterr().out
    assert f"rank {found.asked.rank} of the next words" in words_page(found)
    assert explain(place / "softmax", "我 吃", word="苹果").asked.tags == ()
    with pytest.raises(DataError, match="does not know this word"):
        explain(place / "sdlm", "我 吃", word="橘子")
    refused = CliRunner().invoke(app, ["explain", str(place / "sdlm"), "我 吃", "--right", "。"])
    assert "only together with --word" in refused.stderr
