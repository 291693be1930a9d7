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
    report = suggest(["海员", "大果树", "一二三四"], [table])
    first, second, third = report.words
    assert (first.word, first.sememes[0].sememe, first.sememes[0].score) == ("海员", "人", 1.0)
    assert first.sememes[0].evidence[0] == "员 at the end: 3 of 3 words, as in 店员 船员 教员"
    assert set(second.kept) == {"树", "水果"}
    assert "果树 has it" in second.sememes[0].evidence
    assert (third.sememes, report.without, report.methods) == ((), ("一二三四",), ("parts",)), "no word has this length"
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
    scores = suggester.ensemble("车")
    assert suggester.names[int(scores.argmax())] == "水果"
    assert list(suggester.evidence("车", int(scores.argmax()))) == ["near 水果 (1.00) 苹果 (1.00) 果树 (0.05)"]
    assert not Suggester(WORDS, ["车"]).ensemble("车").any()


LONG = {"甲乙丙丁": "a", "戊乙丙": "b", "乙丙": "c", "乙丙丁": "d", "己乙庚": "e"}


def test_every_score_of_the_parts_computed_by_hand() -> None:
    """己乙丙丁. A part of n words counts weight / (n + 1), a part of three characters 1.2 times as much."""
    begin = 1 / 2 + 0.3 / 2 + 1 / 2 + 1.5 / 2  # 己 first, 己 anywhere, 己乙 in it, 己乙 at the beginning: e alone
    second, third, fourth = 0.3 / 6, 0.3 / 5, 0.3 / 3  # 乙 anywhere: a b c d e; 丙 anywhere: a b c d; 丁 anywhere: a d
    middle_second, middle_third, last = 0.7 / 4, 0.7 / 3, 1 / 3  # 乙 inside: a b e; 丙 inside: a d; 丁 last: a d
    pair, last_pair, ends = 1 / 4, 1 / 3, 2.5 / 3  # 乙丙 in it: a b d; 丙丁 in it: a d; 丙丁 at the end: a d
    expected = {
        "a": second + third + fourth + middle_second + middle_third + last + pair + last_pair + ends + 1.2 * 2.5 / 2,
        "b": second + third + middle_second + pair,
        "c": second + third + 2 / 4,  # the word 乙丙 inside
        "d": second + third + fourth + middle_third + last + pair + last_pair + ends + 2 * 3 / 4,  # the word 乙丙丁 at the end
        "e": second + middle_second + begin,
    }
    suggester = Suggester({word: [name] for word, name in LONG.items()}, ["己乙丙丁"])
    np.testing.assert_allclose(suggester.by_parts("己乙丙丁"), [*expected.values()], rtol=1e-12)
    by_characters = {"a": 1 / 2 + 1 / 3 + 1 / 2, "b": 1 / 3, "c": 0.0, "d": 1 / 2 + 1 / 2, "e": 1 + 1 / 3}
    np.testing.assert_allclose(suggester.by_characters("己乙丙丁"), [*by_characters.values()], rtol=1e-12)
    found = suggester.suggestions("己乙丙丁", 4)
    order = sorted(expected, key=lambda name: -expected[name])
    assert [one.sememe for one in found.sememes] == order[:4] == ["a", "d", "e", "c"]
    np.testing.assert_allclose([one.score for one in found.sememes], [expected[name] / expected["a"] for name in order[:4]])
    assert found.kept == ("a", "d", "e"), "half of the best score at least"
    assert [one.evidence for one in found.sememes] == [
        (
            "乙丙丁 at the end: 1 of 1 words, as in 甲乙丙丁",
            "丙丁 at the end: 1 of 2 words, as in 甲乙丙丁",
            "丁 at the end: 1 of 2 words, as in 甲乙丙丁",
        ),
        (
            "乙丙丁 has it",
            "丙丁 at the end: 1 of 2 words, as in 乙丙丁",
            "丁 at the end: 1 of 2 words, as in 乙丙丁",
        ),
        (
            "己乙 at the beginning: 1 of 1 words, as in 己乙庚",
            "己 at the beginning: 1 of 1 words, as in 己乙庚",
            "己乙 in it: 1 of 1 words, as in 己乙庚",
        ),
        ("乙丙 has it", "乙 anywhere: 1 of 5 words, as in 乙丙"),
    ]


def test_frequency_breaks_ties_and_stands_in_for_parts(table: str) -> None:
    """In 海员 nothing but 员 is known: 人 has all of its three words, three sememes one of them each. Among the nine words of
    two characters four have 船, two 商业 and one 教."""
    report = suggest(["海员", "无此", "无"], [table], counts={"无此": 3})
    tied, unknown, short = report.words
    assert [one.sememe for one in tied.sememes] == ["人", "船", "商业", "教"]
    np.testing.assert_allclose([one.score for one in tied.sememes], [1, 1 / 3, 1 / 3, 1 / 3])
    assert [(one.sememe, one.score) for one in unknown.sememes][:2] == [("船", 1.0), ("人", 3 / 4)]
    assert unknown.sememes[0].evidence == ("frequent among words of 2 characters: 4 of 9",)
    assert (tied.by_frequency, unknown.by_frequency, unknown.count, short.count) == (False, True, 3, 0)
    assert (report.by_frequency, report.without, report.methods) == (("无此",), ("无",), ("parts", "frequency"))
    of_one = Suggester({"人": {"x"}, "山": {"x", "y"}, "一二三四": {"z"}, "一二三四五": {"z", "y"}}, ["川", "六七八九十零"])
    assert of_one.by_frequency("川").tolist() == [1.0, 0.5, 0.0]
    assert of_one.suggestions("川", 5).sememes[1].evidence == ("frequent among words of 1 character: 1 of 2",)
    assert of_one.suggestions("六七八九十零", 1).sememes[0].evidence == (
        "frequent among words of 4 or more characters: 2 of 2",
    )


def test_order_parts_and_evidence_of_single_cases() -> None:
    scores = dict.fromkeys(sorted({name for names in WORDS.values() for name in names}), 0.0) | {"教": 0.12, "船": 0.11}
    suggester = Suggester(WORDS, ["海员"])
    ranking = suggester.ranking("海员", np.array([*scores.values()]))
    assert [suggester.names[place] for place in np.argsort(-ranking)][:2] == ["教", "船"], "frequency only breaks ties"
    assert Suggester({"川": {"x"}}, ["山川"]).by_parts("山川") == pytest.approx((1 + 0.3) / 2), "no inner word of one character"
    twice = Suggester({"一员二": {"x"}}, ["三员员四"]).suggestions("三员员四", 1).sememes[0]
    assert twice.evidence == ("员 inside: 1 of 1 words, as in 一员二",)


def test_every_score_of_the_ensemble_computed_by_hand() -> None:
    """海员 by its parts: 人 0.975, three sememes 0.325. Its vector is near 铁船 (0.8) and 帆船 (0.6), and at a right angle to
    all others: 船 has 0.8 + 0.8 * 0.6, 金属 0.8."""
    near = {"铁船": (0.8, 0.6), "帆船": (0.6, 0.8), "海员": (2.0, 0.0)}
    words = (*WORDS, "海员")
    matrix = np.array([near.get(word, (0.0, 3.0)) for word in words], dtype=np.float32)
    suggester = Suggester(WORDS, ["海员"], WordVectors(words, matrix, ""))
    assert [word for word, _ in suggester.neighbours("海员")] == ["铁船", "帆船"]
    expected = {"人": 1.0, "船": 1 / 3 + 0.1, "商业": 1 / 3, "教": 1 / 3, "金属": 0.1 * 0.8 / 1.28, "树": 0.0, "水果": 0.0}
    scores = dict(zip(suggester.names, suggester.ensemble("海员").tolist(), strict=True))
    assert scores == pytest.approx(expected, rel=1e-6)
    found = suggester.suggestions("海员", 9).sememes
    assert [one.sememe for one in found] == ["人", "船", "商业", "教", "金属"]
    assert found[-1].evidence == ("near 铁船 (0.80)",)
    assert found[1].evidence == ("near 铁船 (0.80) 帆船 (0.60)", "员 at the end: 1 of 3 words, as in 船员")


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
    by_frequency = suggest(["车子"], [table])
    assert by_frequency.by_frequency == ("车子",)
    known = build_graph(Vocabulary.from_counts({"车子": 2, "帆船": 1}), [open_lexicon(table)])
    with pytest.raises(DataError, match="other than by frequency"):
        write_changes(overlay, by_frequency, known)


def test_the_similarity_of_pairs(table: str, tmp_path: Path) -> None:
    pairs = [("苹果", "水果", 9.0), ("店员", "船员", 5.0), ("店员", "苹果", 1.0), ("店员", "无此", 4.0)]
    report = similarity(pairs, [table])
    assert [pair.similarity for pair in report.pairs] == pytest.approx(
        [1.0, 2 * np.log(3) / (2 * np.log(3) + 2 * np.log(9 / 2) + np.log(9 / 4) - np.log(9 / 2)), 0.0], rel=0.2
    )
    assert report.spearman == pytest.approx(1.0)
    # one of three characters is shared, one of three, none
    assert report.spearman_of_characters == pytest.approx(np.corrcoef([3, 2, 1], [2.5, 2.5, 1])[0, 1])
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
