"""Base forms, and what a graph makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sememekit.errors import DataError
from sememekit.sememes import build_graph, graph_statistics, open_lemmas, open_lexicon
from sememekit.sememes.word_entry import Source
from sememekit.text.vocabulary import Vocabulary

TABLE = "saw\tn tool cut\nsee\tlook eye\nbe\texist\n's\tbelong\n<unk>\tanything\n"
LEMMAS = "see\tsaw\nsee\tseen\nwrong\tis\nbe\tis\nN\tN\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "table.txt").write_text(TABLE, encoding="utf-8")
    (tmp_path / "lemmas.txt").write_text(LEMMAS, encoding="utf-8")
    return tmp_path


def test_the_surface_form_comes_first_then_the_lemma_and_the_last_line_counts(files: Path) -> None:
    vocabulary = Vocabulary.from_counts(
        {"saw": 5, "seen": 4, "is": 3, "was": 2, "'s": 2, "N": 2, "<unk>": 1, "<eos>": 4, "-": 1}
    )
    lemmas = open_lemmas(str(files / "lemmas.txt"))
    graph = build_graph(vocabulary, [open_lexicon(f"table:{files / 'table.txt'}")], lemmas)
    entries = {entry.word: entry for entry in graph.entries()}
    assert entries["saw"].sememes() == {"n", "tool", "cut"}, "as written, though the list calls it a form of 'see'"
    assert entries["seen"].sememes() == {"look", "eye"}
    assert entries["is"].sememes() == {"exist"}, "the last of two lines"
    assert not entries["was"].is_annotated
    assert not entries["N"].is_annotated, "a word that is its own lemma is looked up once"
    assert entries["<unk>"].sememes() == {"anything"}, "a lexicon that names a special token has it"
    assert entries["<eos>"].source == Source.SPECIAL
    assert "2 words have the senses of their lemma" in graph.history[0]
    assert lemmas.sha256 in graph.history[0]
    statistics = graph_statistics(graph, vocabulary.counts)
    assert statistics.lexicon_coverage == pytest.approx((5 + 4 + 3 + 2 + 1) / 20), "of 24 tokens, 4 ends of sentences left out"


def test_pooled_sets_leave_out_what_rules_say(files: Path) -> None:
    vocabulary = Vocabulary.from_counts({"saw": 5, "see": 4, "-": 3, "was": 2, "<unk>": 1, "<eos>": 4})
    graph = build_graph(vocabulary, [open_lexicon(f"table:{files / 'table.txt'}")])
    set_of_word, offsets, members = graph.pooled_sets()
    pooled = {
        word: [graph.sememes[number] for number in members[offsets[group] : offsets[group + 1]]]
        for word, group in zip(graph.words, set_of_word.tolist(), strict=True)
    }
    assert pooled == {
        "saw": ["cut", "n", "tool"],
        "see": ["eye", "look"],
        "<unk>": ["anything"],
        "-": [],
        "was": [],
        "<eos>": [],
    }
    assert set_of_word[graph.words.index("-")] == set_of_word[graph.words.index("was")]


def test_a_line_without_two_columns_is_named(tmp_path: Path) -> None:
    (tmp_path / "l").write_text("be\tis\nsee saw\n", encoding="utf-8")
    with pytest.raises(DataError, match="l:2: a list of lemmas has lemma TAB form, found 'see saw'"):
        open_lemmas(str(tmp_path / "l"))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        open_lemmas(str(tmp_path / "absent"))
