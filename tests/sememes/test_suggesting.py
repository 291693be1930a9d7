"""Sememes for words without annotation, and the similarity of pairs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app
from sememekit.errors import ConfigError, DataError
from sememekit.files import RunWarning
from sememekit.sememes import build_graph, open_lexicon
from sememekit.sememes.overlay import apply_changes, read_overlay
from sememekit.sememes.searching import read_pairs, similar_words, similarity
from sememekit.sememes.suggesting import Suggester, suggest, write_changes, write_suggestions
from sememekit.text.vectors import WordVectors
from sememekit.text.vocabulary import Vocabulary

WORDS = {
    "店员": ("人", "商业"),
    "船员": ("人", "船"),
    "教员": ("人", "教"),
    "商船": ("船", "商业"),
    "帆船": ("船",),
    "铁船": ("船", "金属"),
    "苹果": ("水果",),
    "水果": ("水果",),
    "果树": ("树", "水果"),
}


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "words.tsv"
    rows = ["word\tsememes", *(f"{word}\t{' '.join(names)}" for word, names in WORDS.items())]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return f"table:{path}"


def vectors() -> WordVectors:
    words = (*WORDS, "车")
    near = {"水果": 1.0, "苹果": 0.9, "车": 0.95}
    matrix = np.array([[near.get(word, 0.0), 1.0 - near.get(word, 0.0)] for word in words], dtype=np.float32)
    return WordVectors(words, matrix, "")


def test_the_published_rule_of_characters() -> None:
    """P(s | c at its place) is the share of the sememes of all words that have c there."""
    suggester = Suggester(WORDS, ["海员"])
    scores = suggester.by_characters("海员")
    number = {name: place for place, name in enumerate(suggester.names)}
    assert scores[number["人"]] == pytest.approx(3 / 6)
    assert scores[number["船"]] == pytest.approx(1 / 6)
    assert scores[number["金属"]] == 0.0


def test_suggestions_with_their_evidence(table: str) -> None:
    report = suggest(["海员", "大果树", "无此"], [table])
    first, second, _ = report.words
    assert (first.word, first.sememes[0].sememe, first.sememes[0].score) == ("海员", "人", 1.0)
    assert first.sememes[0].evidence[0] == "员 at the end: 3 of 3 words, as in 店员 船员 教员"
    assert set(second.kept) == {"树", "水果"}
    assert "果树 has it" in second.sememes[0].evidence
    assert report.without == ("无此",)
    with pytest.raises(ConfigError, match="give words to suggest"):
        suggest([" "], [table])


def test_a_word_says_nothing_of_itself(table: str) -> None:
    """The word in question is held out, even if it is annotated."""
    (found,) = suggest(["铁船"], [table]).words
    assert found.sememes[0].sememe == "船"
    assert "金属" not in [one.sememe for one in found.sememes]


def test_neighbours_and_the_ensemble() -> None:
    suggester = Suggester(WORDS, ["车"], vectors())
    assert [word for word, _ in suggester.neighbours("车")[:2]] == ["水果", "苹果"]
    scores = suggester.scores("车")
    assert suggester.names[int(scores.argmax())] == "水果"
    assert list(suggester.evidence("车", int(scores.argmax()))) == ["near 水果 (1.00) 苹果 (1.00) 果树 (0.05)"]
    assert not Suggester(WORDS, ["车"]).scores("车").any()


def test_accepted_suggestions_are_a_table_and_an_overlay(table: str, tmp_path: Path) -> None:
    report = suggest(["海员"], [table], counts={"海员": 7}, contexts={"海员": "一 海员 说"})
    file = tmp_path / "more.tsv"
    write_suggestions(file, report)
    assert file.read_text(encoding="utf-8").splitlines()[1].split("\t")[::2] == ["海员", "人", "一 海员 说"]
    assert [sense.sememes for sense in open_lexicon(f"table:{file}").senses("海员")] == [("人",)]
    write_suggestions(file, report)  # in place of an earlier one
    other = tmp_path / "notes.tsv"
    other.write_text("mine\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="suggested sememes"):
        write_suggestions(other, report)
    graph = build_graph(Vocabulary.from_counts({"海员": 2, "店员": 1, "车": 1}), [open_lexicon(table)])
    overlay = tmp_path / "more.overlay"
    assert write_changes(overlay, report, graph) == 1
    changed, senses, _ = apply_changes(graph, read_overlay(overlay))
    assert senses[0].after == ("人",)
    assert changed.entry(0).is_annotated
    with pytest.raises(DataError, match="extend RUN --words"):
        write_changes(overlay, suggest(["店员"], [table]), graph)


def test_the_similarity_of_pairs(table: str, tmp_path: Path) -> None:
    pairs = [("苹果", "水果", 9.0), ("店员", "船员", 5.0), ("店员", "苹果", 1.0), ("店员", "无此", 4.0)]
    report = similarity(pairs, [table])
    assert [pair.similarity for pair in report.pairs] == pytest.approx(
        [1.0, 2 * np.log(3) / (2 * np.log(3) + 2 * np.log(9 / 2) + np.log(9 / 4) - np.log(9 / 2)), 0.0], rel=0.2
    )
    assert report.spearman == pytest.approx(1.0)
    assert (report.judged, report.unknown) == (3, (("店员", "无此"),))
    with pytest.raises(ConfigError, match="no sense of '无此'"):
        similarity([("店员", "无此", None)], [table])
    file = tmp_path / "pairs.tsv"
    file.write_text("one\ttwo\tgold\n苹果\t水果\t9\n店员 苹果 1\n".replace("店员 苹果 1", "店员\t苹果\t1"), encoding="utf-8")
    with pytest.warns(RunWarning, match=r"pairs\.tsv:1: read as a header: 'one two gold'$"):
        assert read_pairs(file) == [("苹果", "水果", 9.0), ("店员", "苹果", 1.0)]
    file.write_text("苹果\t水果\t9\n店员\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"pairs.tsv:2: expected two words"):
        read_pairs(file)
    graph = build_graph(Vocabulary.from_counts({"苹果": 2, "水果": 1, "店员": 1, "无此": 1}), [open_lexicon(table)])
    graph.save(tmp_path / "g")
    found = similar_words("苹果", graph=tmp_path / "g")
    assert [one.word for one in found.senses] == ["水果"]


def test_ties_and_constants_in_the_rank_correlation(table: str) -> None:
    same = [("苹果", "水果", 1.0), ("苹果", "水果", 2.0), ("店员", "苹果", 0.0)]
    assert similarity(same, [table]).spearman == pytest.approx(np.corrcoef([2.5, 2.5, 1], [2, 3, 1])[0, 1])
    assert similarity([(a, b, 1.0) for a, b, _ in same], [table]).spearman is None


def test_on_the_command_line(table: str, tmp_path: Path) -> None:
    run = CliRunner().invoke
    shown = run(app, ["lookup", "--suggest", "海员", "--source", table, "--dump", str(tmp_path / "s.tsv")])
    assert shown.exit_code == 0, shown.output
    assert "员 at the end" in shown.stdout
    assert (tmp_path / "s.tsv").is_file()
    two = json.loads(run(app, ["lookup", "苹果", "水果", "--source", table, "--json"]).stdout)
    assert two["pairs"][0]["similarity"] == 1.0
    for arguments, told in (
        (["苹果", "水果", "店员"], "--suggest takes any number"),
        (["--suggest"], "--suggest needs WORD"),
        (["苹果", "--vectors", "x"], "--vectors needs --suggest"),
        (["苹果", "水果", "--top", "3"], "--top needs --sememe, --similar, --suggest or --diff"),
    ):
        failed = run(app, ["lookup", *arguments])
        assert failed.exit_code == 2
        assert told in " ".join(failed.output.split())
