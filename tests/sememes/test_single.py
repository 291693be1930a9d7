"""``single:FORMAT:PATH``: the words of another lexicon, with nothing that they share."""

from __future__ import annotations

from pathlib import Path

import pytest

from sememekit.errors import ConfigError
from sememekit.sememes import build_graph, open_lexicon, open_lexicons
from sememekit.text.vocabulary import Vocabulary


def test_each_word_has_one_sememe_that_no_other_has(tmp_path: Path) -> None:
    file = tmp_path / "table.tsv"
    file.write_text("苹果\t水果 植物\t电脑\n梨\t水果 植物\n", encoding="utf-8")
    reference, single = open_lexicons([f"table:{file}", f"single:table:{file}"])
    assert list(single.words) == list(reference.words)
    assert [sense.sememes for word in single.words for sense in single.senses(word)] == [("苹果",), ("梨",)]
    assert single.name == f"single:{reference.name}"
    assert single.sha256 != reference.sha256
    words = Vocabulary.from_counts({"苹果": 3, "梨": 2, "无名": 1, "。": 4, "<unk>": 1})
    graph = build_graph(words, [single])
    known = ("苹果", "梨")
    assert [graph.entry(words.id(word)).sememes() for word in known] == [{"苹果"}, {"梨"}]
    assert graph.annotated.tolist() == [word != "无名" for word in words.tokens]
    assert (graph.senses_per_sememe[[graph.sememes.index(word) for word in known]] == 1).all()


def test_a_lemma_lends_none_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "table.tsv"
    file.write_text("dog\tanimal\n", encoding="utf-8")
    single = open_lexicon(f"single:table:{file}")
    assert [sense.sememes for sense in single.lend(single.senses("dog"), "dogs")] == [("dogs",)]
    with pytest.raises(ConfigError, match="single follows a lexicon"):
        open_lexicon(f"single:single:table:{file}")
