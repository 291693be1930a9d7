"""The real files: the figures that the readers and the graph of People's Daily must give."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from sememekit.sememes import Lexicon, SememeGraph, build_graph, graph_statistics, open_lexicon
from sememekit.sememes.definitions import parse_definition
from sememekit.text.vocabulary import Vocabulary
from tests.definition_text import format_definition


def need(path: Path) -> Path:
    if not path.exists():
        pytest.skip(f"the real file {path.name} is not here")
    return path


@pytest.fixture(scope="module")
def hownet2000(shared_data: Path) -> Lexicon:
    return open_lexicon(f"hownet2000:{need(shared_data / 'hownet' / 'hownet2000' / 'glossary.dat')}")


@pytest.fixture(scope="module")
def word_list(shared_data: Path) -> Lexicon:
    path = need(shared_data / "hownet" / "thunlp-zh" / "Character-enhanced-Sememe-Prediction.hownet.txt")
    return open_lexicon(f"list:{path}")


@pytest.fixture(scope="module")
def peoples_daily(shared_data: Path) -> Vocabulary:
    counts: Counter[str] = Counter()
    for split in ("train", "valid", "test"):
        path = need(shared_data / "peoples-daily-sdlm" / "renmin_hownet" / f"{split}.txt")
        counts.update(path.read_text(encoding="utf-8").split())
    return Vocabulary.from_counts(counts)


@pytest.fixture(scope="module")
def graph(peoples_daily: Vocabulary, hownet2000: Lexicon, word_list: Lexicon) -> SememeGraph:
    return build_graph(peoples_daily, [hownet2000, word_list])


def test_hownet2000(hownet2000: Lexicon, shared_data: Path) -> None:
    assert (hownet2000.num_senses, len(hownet2000)) == (66_181, 53_335)
    assert (hownet2000.report.empty_bags, hownet2000.report.duplicates, hownet2000.report.skipped) == (0, 70, {})
    clean = open_lexicon(f"hownet2000:{need(shared_data / 'hownet' / 'hownet2000' / 'glossary.clean.tsv')}")
    assert all(clean.senses(word) == hownet2000.senses(word) for word in hownet2000.words)


@pytest.mark.slow
def test_word_list(word_list: Lexicon) -> None:
    """One of the 126,740 records has no word; the published figure counts it."""
    assert (word_list.report.records, len(word_list), word_list.report.sememes) == (126_740, 126_739, 2_187)
    assert word_list.report.skipped == {"record without a word": 1}


def test_english_table(shared_data: Path) -> None:
    lexicon = open_lexicon(f"table:{need(shared_data / 'hownet' / 'english' / 'en_wordnet_sememes.tsv.xz')}")
    assert (len(lexicon), lexicon.num_senses, lexicon.report.sememes) == (58_865, 80_780, 2_079)
    for word in list(lexicon.words)[::40]:
        for sense in lexicon.senses(word):
            assert format_definition(parse_definition(sense.definition)) == sense.definition


def test_every_definition_of_hownet2000_is_a_tree(hownet2000: Lexicon) -> None:
    definitions = {sense.definition for word in hownet2000.words for sense in hownet2000.senses(word)}
    changed = [text for text in definitions if format_definition(parse_definition(text)) != text]
    assert len(definitions) == 17_213
    assert len(changed) == 5, "blanks around a name are all that is not kept"


@pytest.mark.slow
def test_the_graph_of_peoples_daily(graph: SememeGraph, peoples_daily: Vocabulary) -> None:
    """About 20,300 senses, 1,770 sememes and 7,200 sets were expected; the paper has 3.4 sememes a word, 22 senses a sememe."""
    assert graph.num_words == 13_477
    assert (graph.num_senses, graph.num_sememes, graph.num_sets) == (20_393, 1_742, 7_140)
    statistics = graph_statistics(graph, peoples_daily.counts)
    assert statistics.tokens == 735_037 + 106_469 + 207_063
    assert statistics.annotated_words == 13_451
    assert statistics.token_coverage == pytest.approx(0.9976, abs=1e-4)
    assert statistics.sememes_per_word == pytest.approx(3.27, abs=0.01)
    bags = {entry.word: entry.senses for entry in graph.entries()}
    assert [sense.sememes for sense in bags["<N>"]] == [("基数",)]
    assert [sense.sememes for sense in bags["《"]] == [("标点",)]


@pytest.mark.slow
def test_removal_of_a_tenth(graph: SememeGraph) -> None:
    edges = sum(len(sense.sememes) for entry in graph.entries() if entry.is_from_lexicon for sense in entry.senses)
    dropped = graph.drop_edges(0.1, seed=1)
    assert dropped.history[-1].startswith(f"drop_edges(rate=0.1, seed=1): {round(0.1 * edges)} of {edges} annotations removed")
    assert dropped.num_words == graph.num_words


def test_a_pickle_of_openhownet(shared_data: Path) -> None:
    from sememekit.sememes.formats.restricted_pickle import load_plain_pickle

    path = need(shared_data / "hownet" / "openhownet-history" / "sememe_all.pickle")
    sememes = load_plain_pickle(path.read_bytes(), path.name)
    assert len(sememes) == 2_542
    assert all(isinstance(name, str) and isinstance(count, int) for name, count in sememes.items())
