"""A small lexicon of our own, its vocabulary and its graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from sememekit.sememes import Lexicon, SememeGraph, build_graph, open_lexicon
from sememekit.text.vocabulary import Vocabulary

GLOSSARY = """\
苹果\tN\tfruit|水果
苹果\tN\tcomputer|电脑,ProperName|专
苹果\tN\tfruit|水果,#eat|吃
苹果\tV\tfruit|水果
吃\tV\teat|吃
国家\tN\tplace|地方,politics|政
的\tSTRU\t{?}
时候\tN\ttime|时间
ＡＢ\tN\tsymbol|符号
"""

COUNTS = {
    "<unk>": 50,
    "的": 40,
    "，": 30,
    "苹果": 20,
    "吃": 15,
    "<N>": 12,
    "国家": 10,
    "没有人知道": 6,
    "AB": 5,
    "<eos>": 4,
    "<year>": 3,
    "时候": 2,
    "℃": 2,
    "……": 1,
}


@pytest.fixture
def glossary(tmp_path: Path) -> Path:
    path = tmp_path / "glossary.tsv"
    path.write_text(GLOSSARY, encoding="utf-8")
    return path


@pytest.fixture
def lexicon(glossary: Path) -> Lexicon:
    return open_lexicon(f"hownet2000:{glossary}")


@pytest.fixture(scope="session")
def vocabulary() -> Vocabulary:
    return Vocabulary.from_counts(COUNTS)


@pytest.fixture
def graph(vocabulary: Vocabulary, lexicon: Lexicon) -> SememeGraph:
    return build_graph(vocabulary, [lexicon])
