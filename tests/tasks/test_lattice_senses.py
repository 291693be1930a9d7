"""Sense lattices: copies from a sememe graph, their start, and what is masked where a word has fewer than others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from sememekit.errors import ConfigError
from sememekit.runs.build import build_task
from sememekit.runs.plan import read_plan
from sememekit.sememes import build_graph
from sememekit.tasks.lattice.inner import _mean
from sememekit.tasks.lattice.model import NOISE, Lattice
from sememekit.text.chunks import ChunkVocabulary
from sememekit.text.vocabulary import Vocabulary
from tests.small import COUNTS, small_lexicon

VOCABULARY = Vocabulary.from_counts({**COUNTS, "<eos>": 9})
GRAPH = build_graph(VOCABULARY, [small_lexicon()])


SPREAD = 0.3


def model(**task: Any) -> Lattice:
    settings = {
        "name": "lattice",
        "senses": True,
        "copies": 2,
        "longest_chunk": 1,
        "embedding_size": 400,
        "sub_size": 5,
        "spread": SPREAD,
    }
    table = {"task": {**settings, **task}, "encoder": {"name": "lattice_lstm", "hidden_size": 7}}
    pair = (VOCABULARY.id("我"), VOCABULARY.id("吃"))
    chunks = ChunkVocabulary(VOCABULARY, [pair], [3], max_length=2)
    made = build_task(read_plan(table, "case"), VOCABULARY, GRAPH, chunks=chunks)
    assert isinstance(made, Lattice)
    return made


def vector(task: Lattice, word: str, copy: int = 0) -> torch.Tensor:
    return task.embedding.weight[task.entries.rows[VOCABULARY.id(word), copy]].detach()


def test_words_have_as_many_copies_as_senses_up_to_the_bound() -> None:
    copies = dict(zip(VOCABULARY.tokens, model(copies=3, longest_chunk=2).entries.num_copies.tolist(), strict=False))
    assert (copies["苹果"], copies["吃"], copies["梨"], copies["无名"]) == (3, 2, 1, 1)
    assert model(copies=2).entries.num_copies[VOCABULARY.id("苹果")] == 2
    assert model(copies=3, longest_chunk=2).entries.num_copies[len(VOCABULARY)] == 1, "n-grams have one"


def test_copies_start_from_their_sememes() -> None:
    task = model()
    fruit, computer = GRAPH.sense_labels[int(GRAPH.sense_offsets[VOCABULARY.id("苹果")]) :][:2]
    assert ("水果" in fruit, "电脑" in computer) == (True, True)
    same = (vector(task, "苹果") - vector(task, "梨")).abs().max()
    assert 0 < same <= 2 * NOISE * SPREAD, "梨 is of the same sememes"
    shared = torch.corrcoef(torch.stack([vector(task, "苹果", 1), vector(task, "电脑"), vector(task, "梨")]))
    assert shared[0, 1] == pytest.approx(0.5, abs=0.12), "one of two sememes in common"
    assert shared[0, 2] == pytest.approx(0.0, abs=0.15)
    for word, copy in (("苹果", 0), ("无名", 0), ("。", 0)):
        assert vector(task, word, copy).std() == pytest.approx(SPREAD / 3**0.5, rel=0.15)


def test_missing_copies_have_no_edges_and_the_rest_sums_to_one() -> None:
    task = model(sub_model=False, composition_size=0)
    total = 0.0
    for word in range(len(VOCABULARY)):
        sentence = np.array([word, VOCABULARY.end_id] if word != VOCABULARY.end_id else [word])
        found = task.lattices([sentence])
        first = found.scores[0, 0, 0]
        assert torch.isfinite(first).sum() == task.entries.num_copies[word]
        total += float(first.exp().sum())
    assert total == pytest.approx(1.0, abs=1e-5)


def test_senses_need_a_graph_and_room_for_two() -> None:
    table = {"task": {"name": "lattice", "senses": True, "longest_chunk": 1, "copies": 3}, "encoder": {"name": "lattice_lstm"}}
    with pytest.raises(ConfigError, match="give them with --graph FILE"):
        build_task(read_plan(table, "case"), VOCABULARY, None)
    with pytest.raises(ConfigError, match="set 2 or more"):
        model(copies=1)


def test_the_vector_of_a_word_is_the_mean_of_the_copies_that_there_are() -> None:
    there_VC = torch.tensor([[True, False], [True, True]])
    rows_VCE = torch.tensor([[[1.0], [5.0]], [[2.0], [4.0]]])
    assert _mean(rows_VCE, there_VC).tolist() == [[1.0], [3.0]]
    assert _mean(rows_VCE.expand(2, 2, 2), there_VC).tolist() == [[1.0, 1.0], [3.0, 3.0]]
    assert _mean(rows_VCE[:, :1], there_VC[:, :1]).tolist() == [[1.0], [2.0]]
