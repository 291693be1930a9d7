"""The command from lexicons and a prepared-data folder to a graph file."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError, GraphError
from sememekit.files import RunWarning
from sememekit.jobs.build_sememe_graph import build_sememe_graph
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from sememekit.sememes import SememeGraph
from tests.commands.refusals import refusal

HOWNET = "NO.=1\nW_C=苹果\nW_E=apple\nDEF={fruit|水果}\nNO.=2\nW_C=吃\nW_E=eat\nDEF={eat|吃:patient={food|食品}}\n"


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    text = tmp_path / "text.txt"
    text.write_text("我 吃 苹果\n" * 30 + "apple 吃\n" * 10, encoding="utf-8")
    preprocess("plain", text, tmp_path / "data", PreprocessSettings(segmenter="none", min_count=1))
    return tmp_path / "data"


@pytest.fixture
def sources(tmp_path: Path) -> list[str]:
    (tmp_path / "hownet.txt").write_text(HOWNET, encoding="utf-8")
    (tmp_path / "list.txt").write_text("吃\n尝\n我\n人\n", encoding="utf-8")
    return [f"hownet:{tmp_path / 'hownet.txt'}", f"list:{tmp_path / 'list.txt'}"]


def test_report_and_file(prepared: Path, sources: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = build_sememe_graph(sources, prepared, tmp_path / "graph.json")
    graph = SememeGraph.load(tmp_path / "graph.json")
    graph.check_vocabulary(PreparedData.open(prepared).vocabulary)
    assert report.fingerprint == graph.fingerprint
    assert [(use.name, use.words_used) for use in report.lexicons] == [("hownet:hownet.txt", 2), ("list:list.txt", 1)]
    assert report.lexicons[0].tokens_used == 62, "of the 36 sentences of train"
    assert report.statistics.words_without_annotation == ("apple",)
    assert report.history == ()
    assert capsys.readouterr() == ("", "")


def test_a_graph_of_other_sources_is_not_replaced_in_silence(
    prepared: Path, sources: list[str], tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    out = tmp_path / "graph.json"
    for _ in range(2):
        build_sememe_graph(sources, prepared, out)
    assert not recwarn.list, "the same again"
    with pytest.warns(RunWarning, match=r"graph.json is replaced; it was a graph of hownet:hownet.txt and list:list.txt$"):
        build_sememe_graph(sources[:1], prepared, out)
    out.write_bytes(out.read_bytes()[:200])
    with pytest.warns(RunWarning, match=r"it was a graph of another version, or torn$"):
        build_sememe_graph(sources, prepared, out)


def test_a_lexicon_of_another_language_is_told(prepared: Path, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("apple\nfruit\n", encoding="utf-8")
    told = r"^only 10\.2 % of the tokens are in list:\S+other\.txt: see that the lexicon is of the language of the text"
    with pytest.warns(RunWarning, match=told):
        build_sememe_graph([f"list:{tmp_path / 'other.txt'}"], prepared, tmp_path / "graph.json")


def test_english_side_goes_to_the_formats_that_have_one(prepared: Path, sources: list[str], tmp_path: Path) -> None:
    report = build_sememe_graph(sources, prepared, tmp_path / "graph.json", side="english")
    assert [use.words_used for use in report.lexicons] == [1, 2]
    assert report.statistics.words_without_annotation == ("苹果",)


def test_edges_dropped_are_told(prepared: Path, sources: list[str], tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    report = build_sememe_graph(sources, prepared, tmp_path / "graph.json", drop_edges=0.5, seed=3)
    again = build_sememe_graph(sources, prepared, tmp_path / "again.json", drop_edges=0.5, seed=3)
    assert "2 of 4 annotations removed" in report.history[0]
    assert again.fingerprint == report.fingerprint
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "graph.json").read_bytes()
    build_sememe_graph([sources[1], sources[1]], prepared, tmp_path / "twice.json", drop_edges=0.5)
    assert not recwarn.list, "a dropped word is no reason to leave a source out"


def test_the_same_lexicon_name_twice(prepared: Path, sources: list[str], tmp_path: Path) -> None:
    with pytest.warns(RunWarning, match=r"list\.txt: no word has its senses from it: .*; leave it out, or name it first"):
        report = build_sememe_graph([sources[1], sources[1]], prepared, tmp_path / "graph.json")
    assert [(use.name, use.words_used) for use in report.lexicons] == [("list:list.txt", 2), ("list:list.txt (2)", 0)]


def test_wrong_calls(prepared: Path, sources: list[str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at least one lexicon"):
        build_sememe_graph([], prepared, tmp_path / "graph.json")
    one = build_sememe_graph(sources[1], prepared, tmp_path / "one.json")
    assert [use.name for use in one.lexicons] == ["list:list.txt"]
    with pytest.raises(DataError):
        build_sememe_graph(sources, tmp_path / "absent", tmp_path / "graph.json")
    with pytest.raises(GraphError, match="between 0 and 1"):
        build_sememe_graph(sources, prepared, tmp_path / "graph.json", drop_edges=1.5)
    with pytest.raises(ConfigError, match=r"absent does not exist; type: mkdir -p"):
        build_sememe_graph(sources, prepared, tmp_path / "absent" / "graph.json")
    assert not (tmp_path / "graph.json").exists()


def test_a_lexicon_without_a_word_of_the_data_leaves_the_old_graph(prepared: Path, sources: list[str], tmp_path: Path) -> None:
    out, other = tmp_path / "graph.json", tmp_path / "other.tsv"
    build_sememe_graph(sources, prepared, out)
    before = out.read_bytes()
    other.write_text("zebra\tanimal\nyacht\tship\n", encoding="utf-8")
    with pytest.raises(GraphError, match=r"no word of .* is in table:.*other.tsv, so that the graph would be empty"):
        build_sememe_graph([f"table:{other}"], prepared, out)
    assert out.read_bytes() == before


def test_sememes_that_no_other_source_has_are_told_with_the_nearest(prepared: Path, tmp_path: Path) -> None:
    mine, other = tmp_path / "mine.tsv", tmp_path / "other.tsv"
    mine.write_text("苹果\t水果们 食品\n", encoding="utf-8")
    other.write_text("吃\t水果 食品\n", encoding="utf-8")
    with pytest.warns(RunWarning) as told:
        build_sememe_graph([f"table:{mine}", f"table:{other}"], prepared, tmp_path / "graph.json")
    found = [str(one.message) for one in told]
    assert any("mine.tsv: 1 of its 2 sememes are in no other source" in one and "水果们 (near: 水果)" in one for one in found)
    mine.write_text("苹果\t水果 食品\n", encoding="utf-8")
    build_sememe_graph([f"table:{mine}", f"table:{other}"], prepared, tmp_path / "again.json")


@pytest.mark.parametrize(("count", "drop_edges", "told"), [(1, 0.0, 0), (2, 0.0, 1), (2, 0.5, 0)])
def test_sources_are_compared_if_there_are_two_and_no_edge_was_dropped(
    prepared: Path,
    sources: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    drop_edges: float,
    told: int,
) -> None:
    compared: list[list[bool]] = []

    def remarks(uses: object, lexicons: object, by_hand: list[bool]) -> list[str]:
        compared.append(by_hand)
        return ["a remark"]

    monkeypatch.setattr("sememekit.jobs.build_sememe_graph.source_remarks", remarks)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        build_sememe_graph(sources[:count], prepared, tmp_path / "graph.json", drop_edges=drop_edges)
    assert [str(one.message) for one in found] == ["a remark"] * told
    assert compared == [[False, True]] * told, "sememes of a list are typed by hand"


def test_a_lexicon_of_just_enough_tokens_is_of_the_language(
    prepared: Path, sources: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    coverage = build_sememe_graph(sources, prepared, tmp_path / "graph.json").statistics.lexicon_coverage
    monkeypatch.setattr("sememekit.jobs.build_sememe_graph.LEAST_COVERAGE", coverage)
    build_sememe_graph(sources, prepared, tmp_path / "graph.json")
    assert not recwarn.list


def test_traditional_characters_are_told(tmp_path: Path) -> None:
    hint = "is in traditional characters, and lexicons are in simplified: convert it by opencc -c t2s"
    assert f"電腦 {hint}" in refusal("lookup", "電腦")
    assert hint not in refusal("lookup", "没有的词啊")
    (tmp_path / "text.txt").write_text("電腦 學生 喜歡 師長\n" * 40, encoding="utf-8")
    preprocess("plain", tmp_path / "text.txt", tmp_path / "data")
    with pytest.raises(GraphError, match=hint):
        build_sememe_graph(["open"], tmp_path / "data", tmp_path / "graph.json")
