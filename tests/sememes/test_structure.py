"""The places of sememes in definitions: both forms of HowNet, the places that a graph keeps, and its file."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from sememekit.errors import GraphError
from sememekit.sememes import Lexicon, SememeGraph, build_graph, graph_statistics, open_lexicon
from sememekit.sememes.definitions import Place, places_in
from sememekit.sememes.graph import WordEntry
from sememekit.sememes.graph_file import render_structure
from sememekit.sememes.overlay import apply_changes, parse_change
from sememekit.sememes.word_entry import SenseEntry
from tests.small import small_graph, small_vocabulary

ROOT = Place(0, "root")


@pytest.mark.parametrize(
    ("definition", "places"),
    [
        ("human|人", {"人": ROOT}),
        (
            "human|人,#occupation|职位,*teach|教,education|教育,patient=idea|念头",
            {
                "人": ROOT,
                "职位": Place(1, "#"),
                "教": Place(1, "*"),
                "教育": Place(1, "plain"),
                "念头": Place(1, "patient"),
                "没有": None,
            },
        ),
        (
            "{human|人:HostOf={Occupation|职位},domain={education|教育},{teach|教:agent={~},time={past|昔}{now|今}}}",
            {
                "人": ROOT,
                "职位": Place(1, "HostOf"),
                "教育": Place(1, "domain"),
                "教": Place(1, "plain"),
                "昔": Place(2, "time"),
                "今": Place(2, "time"),
            },
        ),
        ("{a|甲:b={c|丙:d={e|戊}}};{e|戊:x={c|丙}}", {"甲": ROOT, "丙": Place(1, "b"), "戊": ROOT}),
        ("a|甲,content=(neg|否,*past|昔)", {"甲": ROOT, "否": Place(1, "content"), "昔": Place(1, "*")}),
        ("{neg|否,past|昔}", {"否": ROOT, "昔": Place(1, "plain")}),
        (
            "a|甲,(institution|机构=UN|联合国)",
            {"甲": ROOT, "机构": Place(1, "institution|机构"), "联合国": Place(1, "institution|机构")},
        ),
        ("{purpose}", {"purpose": ROOT}),
        ("{human|人:{think|思考}}", {"human|人": ROOT, "think|思考": Place(1, "plain")}),
        ('place|地方,belong="North Land|北国"', {"地方": ROOT, "北国": Place(1, "belong")}),
    ],
)
def test_places_by_hand(definition: str, places: dict[str, Place | None]) -> None:
    assert dict(zip(places, places_in(definition, tuple(places)), strict=True)) == places


@pytest.mark.parametrize("definition", ["", "{human|人", "nothing|无"])
def test_without_a_tree_there_are_no_places(definition: str) -> None:
    assert places_in(definition, ("人",)) == ()


def test_statistics_count_edges_by_class() -> None:
    statistics = graph_statistics(small_graph(), small_vocabulary().counts)
    assert (statistics.edges, statistics.edges_with_structure) == (19, 10)
    assert statistics.edges_by_depth == {"no structure": 9, "root": 5, "depth 1": 4, "depth 2": 1}
    assert next(iter(statistics.edges_by_role.items())) == ("no structure", 9)
    assert statistics.edges_by_role["plain"] == 2
    assert list(statistics.edges_by_role.items())[1:] == [("root", 5), ("plain", 2), ("%", 1), ("cost", 1), ("domain", 1)]
    deep = SememeGraph([WordEntry("梨", "list:a", (SenseEntry(("x", "y", "z"), "x", (ROOT, Place(7, "a"), None)),))], "0")
    assert graph_statistics(deep, [1]).edges_by_depth == {"no structure": 1, "root": 1, "depth 3 or more": 1}
    assert list(graph_statistics(deep, [1]).edges_by_role) == ["no structure", "root", "a"], "ties have one order"
    whole = SememeGraph([WordEntry("梨", "list:a", (SenseEntry(("x",), "x", (ROOT,)),))], "0")
    assert graph_statistics(whole, [1]).edges_by_depth == {"root": 1}
    bare = graph_statistics(without_structure(small_graph()), small_vocabulary().counts)
    assert (bare.edges_with_structure, bare.edges_by_depth, bare.edges_by_role) == (0, {}, {})


def without_structure(graph: SememeGraph) -> SememeGraph:
    """The graph of lexicons without definitions."""
    entries = [
        WordEntry(entry.word, entry.source, tuple(SenseEntry(sense.sememes, sense.label) for sense in entry.senses))
        for entry in graph.entries()
    ]
    return SememeGraph(entries, graph.vocabulary_fingerprint, graph.lexicons, graph.history)


def test_the_file_keeps_it_outside_of_the_fingerprint(tmp_path: Path) -> None:
    graph, bare = small_graph(), without_structure(small_graph())
    graph.save(tmp_path / "graph.json")
    bare.save(tmp_path / "bare.json")
    loaded, old = SememeGraph.load(tmp_path / "graph.json"), SememeGraph.load(tmp_path / "bare.json")
    assert loaded == graph != old == bare
    assert graph.fingerprint == bare.fingerprint, "the same annotation: words are grouped alike, and runs compare"
    assert (graph.has_structure, bare.has_structure, bare.structure_fingerprint) == (True, False, "")
    assert [*loaded.entries()] == [*graph.entries()]
    text, old_text = ((tmp_path / name).read_text(encoding="utf-8") for name in ("graph.json", "bare.json"))
    assert text.startswith(old_text.removesuffix("\n}\n")), "only added to"
    assert "structure" not in old_text
    line = '{"word": "苹果", "senses": [[[1, "%"], [0, "root"]], [[0, "root"], [1, "domain"]], []]}'
    assert f"\n{line},\n" in text
    assert render_structure(loaded.entries()) in text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('[1, "%"]', '[2, "%"]', "was changed after it was written"),
        ('[1, "%"]', "null", "was changed after it was written"),
        ('[[1, "%"], [0, "root"]], ', "", "was changed after it was written"),
        ('[1, "%"], ', "", "was changed after it was written"),
        ('[1, "%"]', "[1]", "missing or of the wrong kind"),
        ('{"word": "梨", "senses": [[[', '{"word": "无", "senses": [[[', "was changed after it was written"),
        ('[1, "%"]', '[-1, "%"]', "expected a depth of 0 or more, found -1"),
        ('[1, "%"]', '["1", "%"]', "expected a depth"),
        ('[1, "%"]', "[1, 2]", "expected a text"),
        ('"structure": [', '"structures": [', "was changed after it was written"),
    ],
)
def test_a_file_with_another_structure_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "graph.json"
    small_graph().save(path)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    json.loads(path.read_text(encoding="utf-8"))
    with pytest.raises(GraphError, match=said):
        SememeGraph.load(path)


def test_places_that_do_not_fit_their_sememes_are_refused_whatever_the_fingerprint_says(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    small_graph().save(path)
    text = path.read_text(encoding="utf-8")
    structure = render_structure(small_graph().entries())
    shorter = structure.replace('[1, "%"], ', "", 1)
    forged = hashlib.sha256(shorter.encode()).hexdigest()
    path.write_text(text.replace(structure, shorter).replace(small_graph().structure_fingerprint, forged), encoding="utf-8")
    with pytest.raises(GraphError, match="was changed after it was written"):
        SememeGraph.load(path)


def test_what_stays_keeps_its_place() -> None:
    graph, _, _ = apply_changes(small_graph(), [parse_change("苹果#1", "+食品 -水果", "here")])
    sense = graph.entry(graph.words.index("苹果")).senses[0]
    assert dict(sense.edges()) == {"植物": Place(1, "%"), "食品": None}
    dropped = small_graph().drop_edges(0.3, seed=3)
    kept = {(entry.word, *edge) for entry in dropped.entries() for sense in entry.senses for edge in sense.edges()}
    known = {(entry.word, *edge) for entry in small_graph().entries() for sense in entry.senses for edge in sense.edges()}
    assert {one for one in kept if one[1] != "<unk>"} < known
    assert dropped.has_structure


def test_equal_senses_have_the_places_of_the_first_definition_that_is_a_tree(tmp_path: Path) -> None:
    path = tmp_path / "table.tsv"
    rows = [
        "word\tsememes\tdef",
        "梨\ta|甲 b|乙\t{a|甲",
        "梨\ta|甲 b|乙\t{b|乙:part={a|甲}}",
        "梨\ta|甲 b|乙\t{a|甲:part={b|乙}}",
    ]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    graph = build_graph(small_vocabulary(), [open_lexicon(f"table:{path}")])
    (sense,) = graph.entry(graph.words.index("梨")).senses
    assert dict(sense.edges()) == {"a|甲": Place(1, "part"), "b|乙": ROOT}


def test_lexicons_without_definitions_give_none() -> None:
    lexicon: Lexicon = open_lexicon("open")
    assert not build_graph(small_vocabulary(), [lexicon]).has_structure


@pytest.mark.slow
def test_the_edges_of_hownet2000_have_places(shared_data: Path) -> None:
    """Every definition of the glossary is a tree; three names stand behind an English one without ``|``, and are not found."""
    path = shared_data / "hownet" / "hownet2000" / "glossary.clean.tsv"
    if not path.exists():
        pytest.skip(f"{path} is not here; it is under a licence for research")
    lexicon = open_lexicon(f"hownet2000:{path}")
    senses = [sense for word in lexicon.words for sense in lexicon.senses(word) if sense.sememes]
    places = [place for sense in senses for place in places_in(sense.definition, sense.sememes) or (None,) * len(sense.sememes)]
    assert len(places) == sum(len(sense.sememes) for sense in senses)
    assert (len(places), places.count(None)) == (154_012, 3)
    assert {place.depth for place in places if place} == {0, 1}, "this edition is flat"
