"""The graph: what every word gets, how it is numbered, and that its file gives it back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sememekit.errors import ConfigError, GraphError
from sememekit.sememes import Lexicon, SememeGraph, build_graph, graph_statistics, open_lexicon
from sememekit.sememes.graph import LexiconSource, SenseEntry, Source, WordEntry
from sememekit.text.vocabulary import Vocabulary


def sememes_of(graph: SememeGraph, word: str) -> list[set[str]]:
    """Read the arrays, not the entries, so that the numbering is what is tested."""
    word_id = graph.words.index(word)
    senses = []
    for sense in range(graph.sense_offsets[word_id], graph.sense_offsets[word_id + 1]):
        assert graph.word_of_sense[sense] == word_id
        start, end = graph.set_offsets[graph.sense_set[sense]], graph.set_offsets[graph.sense_set[sense] + 1]
        senses.append({graph.sememes[number] for number in graph.set_sememes[start:end]})
    return senses


names = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=4)
bags = st.lists(st.sampled_from([f"义{i}" for i in range(9)]), min_size=1, max_size=4, unique=True).map(
    lambda b: tuple(sorted(b))
)
senses_of_a_word = st.lists(st.builds(SenseEntry, bags, names), min_size=1, max_size=4, unique_by=lambda sense: sense.sememes)
entry_lists = st.lists(
    st.builds(WordEntry, names, st.sampled_from(["list:a", *Source.RULES, Source.NONE]), senses_of_a_word.map(tuple)),
    min_size=1,
    max_size=8,
    unique_by=lambda entry: entry.word,
)


def test_every_kind_of_word(graph: SememeGraph) -> None:
    assert sememes_of(graph, "苹果") == [{"水果"}, {"专", "电脑"}, {"水果", "吃"}]
    assert sememes_of(graph, "吃") == [{"吃"}]
    assert sememes_of(graph, "<unk>") == [{"<unk>"}]
    assert sememes_of(graph, "<eos>") == [{"<eos>"}]
    assert sememes_of(graph, "<N>") == [{"基数"}]
    assert sememes_of(graph, "<year>") == [{"时间", "年", "特定"}]
    assert sememes_of(graph, "℃") == sememes_of(graph, "……") == sememes_of(graph, "，") == [{"符号"}]
    assert sememes_of(graph, "AB") == [{"符号"}]
    assert sememes_of(graph, "没有人知道") == sememes_of(graph, "的") == [{"<unk>"}]
    assert [word for word, has in zip(graph.words, graph.annotated, strict=True) if not has] == ["的", "没有人知道"]
    assert dict(zip(graph.words, graph.word_sources, strict=True))["，"] == Source.PUNCTUATION


def test_labels_show_part_of_speech_and_gloss_or_sememes(graph: SememeGraph) -> None:
    start = graph.sense_offsets[graph.words.index("苹果")]
    assert graph.sense_labels[start : start + 3] == ("N/V 水果", "N 专 电脑", "N 吃 水果")
    assert graph.sense_labels[graph.sense_offsets[graph.words.index("<eos>")]] == "<eos>"


def test_counts_agree(graph: SememeGraph) -> None:
    assert graph.num_senses == len(graph.word_of_sense) == len(graph.sense_labels) == graph.sense_offsets[-1]
    assert graph.num_sets == len(set(map(frozenset, (s for word in graph.words for s in sememes_of(graph, word)))))
    by_hand = np.zeros(graph.num_sememes, dtype=np.int64)
    for word in graph.words:
        for sense in sememes_of(graph, word):
            for name in sense:
                by_hand[graph.sememes.index(name)] += 1
    np.testing.assert_array_equal(graph.senses_per_sememe, by_hand)
    assert by_hand.min() > 0


def test_arrays_are_immutable(graph: SememeGraph) -> None:
    for array in (graph.sense_offsets, graph.sense_set, graph.set_offsets, graph.set_sememes, graph.word_of_sense):
        assert array.dtype == np.int64
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        graph.annotated[0] = False


def test_the_first_lexicon_that_knows_a_word_has_it(vocabulary: Vocabulary, lexicon: Lexicon, tmp_path: Path) -> None:
    second = tmp_path / "second.txt"
    second.write_text("吃\n饮食\n的\n构助\n", encoding="utf-8")
    graph = build_graph(vocabulary, [lexicon, open_lexicon(f"list:{second}")])
    assert sememes_of(graph, "吃") == [{"吃"}]
    assert sememes_of(graph, "的") == [{"构助"}]
    assert dict(zip(graph.words, graph.word_sources, strict=True))["的"] == "list:second.txt"
    other_order = build_graph(vocabulary, [open_lexicon(f"list:{second}"), lexicon])
    assert sememes_of(other_order, "吃") == [{"饮食"}]


def test_statistics_by_hand(graph: SememeGraph, vocabulary: Vocabulary) -> None:
    statistics = graph_statistics(graph, vocabulary.counts)
    assert statistics.words_without_annotation == ("的", "没有人知道")
    assert statistics.tokens == 200
    assert statistics.annotated_tokens == 154
    assert statistics.token_coverage == pytest.approx(0.77)
    assert statistics.type_coverage == pytest.approx(12 / 14)
    assert statistics.senses_per_word == pytest.approx(14 / 12)
    assert statistics.sememes_per_word == pytest.approx((1 + 1 + 4 + 1 + 1 + 2 + 1 + 1 + 3 + 1 + 1 + 1) / 12)
    assert statistics.sememes_per_sense == pytest.approx((1 + 1 + 5 + 1 + 1 + 2 + 1 + 1 + 3 + 1 + 1 + 1) / 14)
    assert statistics.senses_per_sememe == pytest.approx(19 / 13), "the two senses of words without annotation are left out"
    assert statistics.words_by_source["hownet2000:glossary.tsv"] == 5
    assert statistics.tokens_by_source["punctuation rule"] == 30
    with pytest.raises(GraphError, match="one count for each of the 14 words"):
        graph_statistics(graph, [1, 2])


def test_a_graph_fits_its_vocabulary_alone(graph: SememeGraph, vocabulary: Vocabulary) -> None:
    graph.check_vocabulary(vocabulary)
    other = Vocabulary.from_counts({"<unk>": 1, "吃": 1})
    with pytest.raises(GraphError, match=f"{vocabulary.fingerprint}.*{other.fingerprint}.*sememekit build-sememe-graph"):
        graph.check_vocabulary(other)


@given(entry_lists, st.lists(names, max_size=2))
def test_any_graph_comes_back_from_its_file(tmp_path_factory: pytest.TempPathFactory, entries: list, history: list) -> None:
    graph = SememeGraph(entries, "0123", [LexiconSource("list:a", "ff")], history)
    path = tmp_path_factory.mktemp("graph") / "graph.json"
    graph.save(path)
    again = SememeGraph.load(path)
    for name in ("sense_offsets", "sense_set", "set_offsets", "set_sememes", "word_of_sense", "annotated", "senses_per_sememe"):
        np.testing.assert_array_equal(getattr(again, name), getattr(graph, name))
    for name in ("words", "sememes", "sense_labels", "word_sources", "history", "lexicons", "fingerprint"):
        assert getattr(again, name) == getattr(graph, name)
    first = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == first


def test_same_input_same_bytes_and_a_word_a_line(vocabulary: Vocabulary, glossary: Path, tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        build_graph(vocabulary, [open_lexicon(f"hownet2000:{glossary}")]).save(tmp_path / name)
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert text == (tmp_path / "b.json").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if '"word": "吃"' in line] == [
        '{"word": "吃", "source": "hownet2000:glossary.tsv", "senses": [{"label": "V 吃", "sememes": ["吃"]}]},',
        '{"word": "吃", "senses": [[[0, "root"]]]},',
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json", "glossary.tsv"]


def test_a_file_cut_anywhere_is_refused(graph: SememeGraph, tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    graph.save(path)
    whole = path.read_bytes()
    for length in [*range(0, len(whole) - 2, 97), len(whole) - 2]:
        path.write_bytes(whole[:length])
        with pytest.raises(GraphError, match="build-sememe-graph"):
            SememeGraph.load(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"version": 1', '"version": 2', "version 2, and this program reads version 1"),
        ('"format": "sememekit sememe graph"', '"format": "other"', "another kind of JSON file"),
        ('"sememes": ["吃"]', '"sememes": ["喝"]', "changed after it was written"),
        ('"sememes": ["吃"]', '"sememes": []', "a sense without a sememe"),
        ('"sememes": ["吃"]', '"sememes": [3]', "wrong kind"),
        ('"senses": [{"label": "V 吃"', '"meanings": [{"label": "V 吃"', "a part is missing"),
        ('{"word": "吃"', '{"word": "国家"', "occurs twice"),
    ],
)
def test_a_changed_file_is_refused(graph: SememeGraph, tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "graph.json"
    graph.save(path)
    text = path.read_text(encoding="utf-8")
    assert text.count(old) >= 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(GraphError, match=message):
        SememeGraph.load(path)


@pytest.mark.parametrize("content", [b"[1, 2]", b"\xff\xfe", b"[" * 100_000, b"null"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(content)
    with pytest.raises(GraphError):
        SememeGraph.load(path)


def test_absent_places(graph: SememeGraph, tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="cannot be read: No such file"):
        SememeGraph.load(tmp_path / "graph.json")
    with pytest.raises(ConfigError, match="absent does not exist; type: mkdir"):
        graph.save(tmp_path / "absent" / "graph.json")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([], "at least one word"),
        ([WordEntry("a", "list:a", ())], "has no sense"),
        ([WordEntry("a", "list:a", (SenseEntry(("x",), "1"), SenseEntry(("x",), "2")))], "two senses with the same sememes"),
    ],
)
def test_a_graph_without_sense_is_refused(entries: list, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        SememeGraph(entries, "0")


def test_a_graph_needs_a_lexicon(vocabulary: Vocabulary) -> None:
    with pytest.raises(GraphError, match="at least one lexicon"):
        build_graph(vocabulary, [])


@given(entry_lists, st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]), st.integers(0, 3))
def test_edges_dropped(entries: list[WordEntry], rate: float, seed: int) -> None:
    graph = SememeGraph(entries, "0")
    edges = sum(len(sense.sememes) for entry in entries if entry.is_from_lexicon for sense in entry.senses)
    dropped = graph.drop_edges(rate, seed)
    assert f"{round(rate * edges)} of {edges} annotations removed" in dropped.history[-1]
    assert dropped.words == graph.words
    assert dropped == graph.drop_edges(rate, seed)
    for old, new in zip(graph.entries(), dropped.entries(), strict=True):
        if not old.is_from_lexicon:
            assert new == old
        elif new.is_annotated:
            bags = [set(sense.sememes) for sense in old.senses]
            assert all(any(set(sense.sememes) <= bag for bag in bags) for sense in new.senses)
        else:
            assert [sense.sememes for sense in new.senses] == [("<unk>",)]
    if rate == 0.0:
        assert tuple(dropped.entries()) == tuple(graph.entries())


def test_exactly_the_asked_share_of_edges_goes() -> None:
    """One sense a word, so that no merging hides an edge."""
    entries = [WordEntry(f"w{i}", "list:a", (SenseEntry(("x", "y", f"z{i}"), ""),)) for i in range(50)]
    graph = SememeGraph([*entries, WordEntry("<N>", Source.SPECIAL, (SenseEntry(("基数",), ""),))], "0")
    dropped = graph.drop_edges(0.1, seed=4)
    assert graph_statistics(graph, [1] * 51).edges - graph_statistics(dropped, [1] * 51).edges == 15
    assert dropped != graph.drop_edges(0.1, seed=5)
    assert [entry for entry in dropped.entries() if entry.word == "<N>"] == [graph.entry(50)]


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_a_rate_that_is_none(graph: SememeGraph, rate: float) -> None:
    with pytest.raises(GraphError, match="between 0 and 1"):
        graph.drop_edges(rate, seed=0)


def test_the_file_is_plain_json(graph: SememeGraph, tmp_path: Path) -> None:
    graph.save(tmp_path / "graph.json")
    document = json.loads((tmp_path / "graph.json").read_text(encoding="utf-8"))
    assert [entry["word"] for entry in document["words"]] == list(graph.words)
