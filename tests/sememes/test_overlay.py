"""Overlays: what a change may be, what it does to a graph, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from sememekit.commands._program import app
from sememekit.errors import ConfigError, DataError, GraphError, SememekitError
from sememekit.sememes.graph import SememeGraph
from sememekit.sememes.lookup import add_change, annotation
from sememekit.sememes.overlay import HEADER, apply_changes, parse_change, read_overlay, write_overlay
from tests.small import lexicon_of_senses, small_graph


def changed(*changes: tuple[str, str]) -> SememeGraph:
    """The graph of tests/small.py: 苹果 has the senses {植物 水果}, {品牌 电脑} and {食品}; 无名 is not annotated."""
    return apply_changes(small_graph(), [parse_change(sense, text, "here") for sense, text in changes])[0]


def test_one_sense_changes_and_all_numbers_stay() -> None:
    before, after = small_graph(), changed(("苹果#2", "+机器 -品牌"))
    word = before.words.index("苹果")
    assert [set(sense.sememes) for sense in after.entry(word).senses] == [{"植物", "水果"}, {"机器", "电脑"}, {"食品"}]
    assert after.sememes == before.sememes, "品牌 has no sense left, and keeps its number"
    assert np.array_equal(after.sense_offsets, before.sense_offsets)
    assert np.array_equal(after.senses_per_sememe, before.senses_per_sememe)
    assert after.fingerprint != before.fingerprint
    assert after.history[-1] == "overlay"
    for number, (old, new) in enumerate(zip(before.entries(), after.entries(), strict=True)):
        assert number == word or old == new
    names = [[after.sememes[k] for k in after.set_sememes[slice(*after.set_offsets[u : u + 2])]] for u in after.sense_set]
    first = int(after.sense_offsets[word])
    assert sorted(names[first + 1]) == sorted(["机器", "电脑"])


def test_labels_follow_the_sememes() -> None:
    before, after = small_graph(), changed(("梨", "+食品"))
    word = before.words.index("梨")
    assert before.entry(word).senses[0].label == " ".join(before.entry(word).senses[0].sememes)
    assert after.entry(word).senses[0].label == " ".join(after.entry(word).senses[0].sememes)


def test_changes_add_up_in_their_order() -> None:
    both = [parse_change("苹果#3", "+水果", "here"), parse_change("苹果#3", "-食品", "here")]
    graph, senses, spelled = apply_changes(small_graph(), both)
    assert [(one.word, one.sense, one.before, one.after, one.added) for one in senses] == [
        ("苹果", 3, ("食品",), ("水果",), ("水果",))
    ]
    assert [change.was for change in spelled] == ["食品", " ".join(sorted(("食品", "水果")))]
    assert graph == changed(("苹果#3", "+水果"), ("苹果#3", "-食品"))
    _, none, _ = apply_changes(small_graph(), [parse_change("梨", "+食品", "a"), parse_change("梨", "-食品", "b")])
    assert none == (), "taken back"


def test_a_word_without_annotation_loses_its_mark() -> None:
    graph = changed(("无名", "+水果"))
    entry = graph.entry(graph.words.index("无名"))
    assert [sense.sememes for sense in entry.senses] == [("水果",)]
    assert (entry.source, entry.is_annotated, entry.is_from_lexicon) == ("overlay", True, True)
    assert graph.annotated[graph.words.index("无名")]


@pytest.mark.parametrize(
    ("sense", "text", "said"),
    [
        ("苹", "+水果", r"no word '苹' in the graph \(near: 苹果\)"),
        ("苹果", "+水果", r"has 3 senses; say which: 苹果#1 \(.*\), 苹果#2 \(.*\), 苹果#3 \(食品\)"),
        ("苹果#4", "+水果", r"no sense 4; it has: 苹果#1"),
        ("苹果#0", "+水果", r"no sense 0"),
        ("梨", "+电脑机", r"no sense of the graph has the sememe '电脑机' \(near: .*电脑.*\).*needs training"),
        ("梨", "-电脑", r"cannot remove 电脑, which is not there: 梨#1 has"),
        ("梨", "+水果", r"cannot add 水果, which is there already: 梨#1 has"),
        ("吃#1", "-吃", r"nothing would be left of 吃#1"),
        ("吃#1", "+受 -吃", r"would have the sememes of another sense of 吃"),
        ("梨", "食品", r"'食品' is no change; write \+SEMEME"),
        ("梨", "", r"is no change"),
        ("梨", "+水果,-食品", r"'\+水果,-食品' is no change; .*blanks between"),
        ("梨", "+水果 ，+食品", r"is no change"),
        ("梨", "+食品 -食品", r"'食品' stands twice"),
    ],
)
def test_what_cannot_be_changed_is_said(sense: str, text: str, said: str) -> None:
    with pytest.raises(SememekitError, match=f"^here: .*{said}"):
        changed((sense, text))


def test_names_with_two_sides_and_with_blanks() -> None:
    from sememekit.sememes import build_graph
    from sememekit.sememes.lexicon import Sense

    names = {"甲": ("fruit|水果",), "乙": ("fly away|飞", "fly|飞"), "丙#2": ("part|部件",)}
    lexicon = lexicon_of_senses("list:two", [Sense(*one) for one in names.items()])
    words = type("Words", (), {"tokens": ("甲", "乙", "丙#2"), "fingerprint": "x"})()
    graph = build_graph(words, [lexicon])
    done, _, (change, other) = apply_changes(
        graph, [parse_change("甲", "+fly away|飞 +部件", "here"), parse_change("丙#2", "+水果", "here")]
    )
    assert (change.sense, change.add) == ("甲#1", ("fly away|飞", "part|部件"))
    assert (other.sense, other.add) == ("丙#2#1", ("fruit|水果",)), "a word that looks like a numbered sense is itself"
    assert done.entry(0).senses[0].sememes == tuple(sorted(("fruit|水果", "fly away|飞", "part|部件")))
    with pytest.raises(GraphError, match=r"'飞' is a part of several sememe names: fly away\|飞, fly\|飞"):
        apply_changes(graph, [parse_change("甲", "+飞", "here")])


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    file, graph = tmp_path / "o.txt", tmp_path / "g.graph"
    small_graph().save(graph)
    report = add_change("苹果#2", "+水果 -品牌", file, graph=graph)
    assert (report.word, report.sense, report.changes) == ("苹果", 2, 1)
    assert set(report.after) == {"水果", "电脑"}
    again = add_change("苹果#2", "+机器", file, graph=graph)
    assert again.before == report.after
    assert again.changes == 2
    was = " ".join(sorted(("品牌", "电脑")))
    assert file.read_text(encoding="utf-8").splitlines()[:2] == [HEADER, f"苹果#2\t+水果 -品牌\t{was}"]
    read = read_overlay(file)
    assert apply_changes(small_graph(), read)[0] == changed(("苹果#2", "+水果 -品牌"), ("苹果#2", "+机器"))
    write_overlay(tmp_path / "copy.txt", read)
    assert (tmp_path / "copy.txt").read_bytes() == file.read_bytes()
    kept = file.read_bytes()
    with pytest.raises(GraphError, match="cannot add"):
        add_change("苹果#2", "+机器", file, graph=graph)
    assert file.read_bytes() == kept, "what is refused is not written"


def test_a_file_written_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "o.txt"
    file.write_text(f"{HEADER}\n# by hand\n\n梨\t+食品\n苹果#3\t+水果\t食品\n", encoding="utf-8")
    assert apply_changes(small_graph(), read_overlay(file))[0] == changed(("梨", "+食品"), ("苹果#3", "+水果"))
    file.write_text(f"{HEADER}\n苹果#3\t+水果\t食物\n", encoding="utf-8")
    with pytest.raises(
        GraphError, match=rf"^{re.escape(str(file))}:2: the file was written for the sense 苹果#3 with 食物, and this graph"
    ):
        apply_changes(small_graph(), read_overlay(file))


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("梨\t+食品\n", DataError, "its first line is not"),
        ("", DataError, "its first line is not"),
        (f"{HEADER}\n梨 +食品\n", DataError, r"o.txt:2: expected WORD#SENSE, a tab"),
        (f"{HEADER}\n\t+食品\n", DataError, r"o.txt:2: expected"),
        (f"{HEADER}\n梨\t食品\n", ConfigError, r"o.txt:2: '食品' is no change"),
    ],
)
def test_what_is_no_overlay_is_said(tmp_path: Path, text: str, error: type[Exception], said: str) -> None:
    (tmp_path / "o.txt").write_text(text, encoding="utf-8")
    with pytest.raises(error, match=said):
        read_overlay(tmp_path / "o.txt")


def test_an_overlay_replaces_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="is not an overlay"):
        add_change("学费", "+水果", tmp_path / "notes.txt")
    with pytest.raises(DataError, match="cannot be read"):
        read_overlay(tmp_path / "absent.txt")
    with pytest.raises(ConfigError, match=r"keeps no graph\.json"):
        add_change("梨", "+食品", tmp_path / "o.txt", graph=tmp_path)
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine\n"


def test_a_change_is_not_added_to_those_of_another_graph(tmp_path: Path) -> None:
    small_graph().save(tmp_path / "g.graph")
    others = f"{HEADER}\napple\t+fruit\n"
    (tmp_path / "o.txt").write_text(others, encoding="utf-8")
    with pytest.raises(GraphError, match=r"o.txt:2: no word 'apple' .*; the changes of another graph .* file: --overlay FILE$"):
        add_change("梨", "+食品", tmp_path / "o.txt", graph=tmp_path / "g.graph")
    assert (tmp_path / "o.txt").read_text(encoding="utf-8") == others


def test_without_a_graph_the_lexicon_is_asked(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("苹果\n水果\n苹果\n电脑 品牌\n梨\n水果\n", encoding="utf-8")
    report = add_change("苹果#2", "+水果", tmp_path / "o.txt", sources=[f"list:{tmp_path / 'list.txt'}"])
    assert set(report.after) == {"水果", "电脑", "品牌"}
    assert report.checked_with == "list:list.txt"


def test_the_annotation_of_a_word_as_a_graph_numbers_it(tmp_path: Path) -> None:
    graph, overlay = tmp_path / "graph.json", tmp_path / "o.txt"
    small_graph().save(graph)
    report = annotation(" 苹果 ", tmp_path)
    assert [(each.sense, {*each.sememes}) for each in report.senses] == [
        (1, {"植物", "水果"}),
        (2, {"品牌", "电脑"}),
        (3, {"食品"}),
    ]
    assert report.overlay is None
    for sense in report.senses[1:]:
        add_change(f"苹果#{sense.sense}", "+机器", overlay, graph=graph)
    assert [{*each.sememes} for each in annotation("苹果", graph, overlay).senses] == [
        {"植物", "水果"},
        {"品牌", "机器", "电脑"},
        {"机器", "食品"},
    ]
    assert annotation("无名", graph).source == "none"
    with pytest.raises(GraphError, match=r"no word '苹果树' in the graph .near: 苹果.; to ask a lexicon leave out --graph"):
        annotation("苹果树", graph)


def test_the_command_shows_the_annotation_of_a_word(tmp_path: Path) -> None:
    small_graph().save(tmp_path / "graph.json")

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["lookup", *arguments], terminal_width=200)

    result = run("苹果", "--graph", str(tmp_path))
    assert "苹果#2" in result.stdout
    assert json.loads(run("无名", "--graph", str(tmp_path), "--json").stdout)["senses"][0]["sememes"] == ["<unk>"]
    for arguments, said in (
        (["--sememe", "a", "--graph", "g"], "--graph needs WORD, two words"),
        (["苹果", "--source", "open", "--graph", "g"], "give --graph or --source, not both"),
        (["苹果", "--overlay", "o.txt"], "--overlay needs --change, or WORD or --suggest with --graph"),
    ):
        refused = run(*arguments)
        assert (refused.exit_code, said in refused.stderr) == (2, True), refused.stderr
