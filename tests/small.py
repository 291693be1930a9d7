"""A vocabulary, a graph and prepared data small enough to reason about; every test that needs a model takes them from here."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from sememekit.sememes import Lexicon, SememeGraph, Sense, build_graph
from sememekit.sememes.lexicon import lexicon_of
from sememekit.text.vocabulary import Vocabulary

SENSES = [
    Sense("苹果", ("水果", "植物"), definition="fruit|水果,%plant|植物"),
    Sense("苹果", ("电脑", "品牌"), definition="{brand|品牌:domain={computer|电脑}}"),
    Sense("苹果", ("食品",)),
    Sense("梨", ("水果", "植物"), definition="plant|植物,fruit|水果"),
    Sense("吃", ("吃",)),
    Sense("吃", ("受",)),
    Sense("我", ("人", "第一人称"), definition="human|人,1stPerson|第一人称"),
    Sense("人", ("人",)),
    Sense("买", ("买", "钱"), definition="{buy|买:{thing|物:cost={money|钱}}}"),
    Sense("电脑", ("电脑", "机器")),
]
"""Words of one sense and of several, senses that share a set, sememes that are shared, definitions of depths 0 to 2 and none;
"无名" below has no sense at all."""

COUNTS = {"我": 9, "吃": 8, "苹果": 7, "梨": 4, "。": 9, "买": 3, "电脑": 3, "人": 2, "<unk>": 2, "无名": 1}


@cache
def small_vocabulary() -> Vocabulary:
    return Vocabulary.from_counts(COUNTS)


@cache
def small_lexicon() -> Lexicon:
    return lexicon_of_senses("list:small", SENSES)


def lexicon_of_senses(name: str, senses: Iterable[Sense]) -> Lexicon:
    return lexicon_of(enumerate(senses), Path("own"), name, "0" * 64)


@cache
def small_graph() -> SememeGraph:
    return build_graph(small_vocabulary(), [small_lexicon()])
