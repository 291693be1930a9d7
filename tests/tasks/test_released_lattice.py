"""Every piece of the released lattice model can be chosen: the task has its losses for any L, state and number of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from sememekit.errors import ConfigError
from sememekit.layers.lattice import log_marginal
from sememekit.runs.build import build_task
from sememekit.runs.plan import read_plan
from sememekit.tasks.lattice.model import Lattice
from sememekit.text.chunks import ChunkVocabulary
from sememekit.text.vocabulary import Vocabulary
from tests.tasks.released_lattice import Released

VOCABULARY = Vocabulary.from_counts({"a": 9, "b": 8, "c": 7, "<eos>": 5, "<unk>": 2, "<s>": 1})
NGRAMS = [("a", "b"), ("b", "c"), ("a", "b", "c"), ("c", "<eos>")]
ONE, TWO, UNEQUAL = ["a b c a b"], ["a b c a b", "c c b <unk> a"], ["a b c a b", "b c"]
TEMPERATURE = 0.7


def both(longest: int, state: str, layers: int = 2, **changes: Any) -> tuple[Lattice, Released]:
    """The task and the released model with the same parameters."""
    ids = [tuple(VOCABULARY.encode(gram).tolist()) for gram in NGRAMS]
    chunks = ChunkVocabulary(VOCABULARY, ids, [5, 4, 3, 2], max_length=3)
    task = {
        "name": "lattice",
        "state": state,
        "longest_chunk": longest,
        "embedding_size": 6,
        "sub_size": 6,
        "inner_layers": layers,
        "inner_coupled": True,
        "token_vectors": "own",
        "sub_marks": "released",
        "start_mark": "<s>",
        "temperature": TEMPERATURE,
        "temperature_every": 100,
        **changes,
    }
    table = {"task": task, "encoder": {"name": "lattice_lstm", "hidden_size": 5, "num_layers": layers, "coupled": True}}
    made = build_task(read_plan(table, "case"), VOCABULARY, None, chunks=chunks).double()
    assert isinstance(made, Lattice)
    listed = [(word,) for word in VOCABULARY.tokens] + [gram for gram in NGRAMS if len(gram) <= longest > 1]
    twin = Released([*VOCABULARY.tokens, "<chunk_start>", "<chunk_end>"], [*listed, ("<other>",)], longest, layers, 5, 6)
    if changes.get("sub_marks", "released") == "released" and changes.get("token_vectors", "own") == "own":
        twin.give(made)
    return made, twin


def losses(task: Lattice, sentences: Sequence[str], **more: Any) -> Tensor:
    rows = [np.append(VOCABULARY.encode(sentence.split()), VOCABULARY.end_id) for sentence in sentences]
    batch = task.batch_of(rows)
    return -log_marginal(task.edge_scores(batch, **more), batch.lengths)


@pytest.mark.parametrize("sentences", [ONE, TWO, UNEQUAL], ids=["one", "two", "unequal"])
@pytest.mark.parametrize(("longest", "layers"), [(1, 2), (2, 2), (3, 2), (3, 1), (3, 3)])
def test_tree_states(longest: int, sentences: list[str], layers: int) -> None:
    task, twin = both(longest, "tree", layers)
    expected = [-twin.log_probability(sentence.split(), lambda paths, _: paths.softmax(0)) for sentence in sentences]
    for training in (False, True):
        torch.testing.assert_close(losses(task.train(training), sentences), torch.stack(expected), rtol=0, atol=1e-10)


@pytest.mark.parametrize("sentences", [ONE, TWO, UNEQUAL], ids=["one", "two", "unequal"])
@pytest.mark.parametrize("longest", [1, 2, 3])
def test_gumbel_weights_in_the_tree_step(longest: int, sentences: list[str]) -> None:
    """Training uses the noise of a generator that both are given, evaluation the most probable edge."""
    task, twin = both(longest, "gumbel_tree")
    nodes = max(len(sentence.split()) for sentence in sentences)
    source = torch.Generator().manual_seed(8)
    noise = [
        -torch.empty(min(longest, node), len(sentences), dtype=torch.float64).exponential_(generator=source).log()
        for node in range(1, nodes + 1)
    ]
    drawn, hard = [], []
    for column, sentence in enumerate(sentences):

        def soft(paths: Tensor, node: int, column: int = column) -> Tensor:
            return ((paths + noise[node - 1][:, column]) / TEMPERATURE).softmax(0)

        drawn.append(-twin.log_probability(sentence.split(), soft))
        hard.append(-twin.log_probability(sentence.split(), lambda paths, _: torch.eye(len(paths)).double()[paths.argmax()]))
    found = losses(task.train(), sentences, generator=torch.Generator().manual_seed(8))
    torch.testing.assert_close(found, torch.stack(drawn), rtol=0, atol=1e-10)
    torch.testing.assert_close(losses(task.eval(), sentences), torch.stack(hard), rtol=0, atol=1e-10)
    if longest > 1:
        assert (torch.stack(drawn) - torch.stack(hard)).abs().min() > 1e-6


def test_weights_that_are_known_take_the_place_of_those_that_a_rule_finds() -> None:
    task, twin = both(3, "tree")
    seen: list[Tensor] = []

    def weigh(paths: Tensor, node: int) -> Tensor:
        seen.append(torch.full((len(paths),), 1 / len(paths), dtype=torch.float64))
        return seen[-1]

    expected = -twin.log_probability(ONE[0].split(), weigh)
    known = [torch.ones(1, 1).double(), *(weights.unsqueeze(1) for weights in seen)]
    torch.testing.assert_close(losses(task, ONE, known=known)[0], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "change",
    [{"start_mark": ""}, {"state": "marginal"}, {"state": "gumbel"}, {"sub_marks": "proper"}, {"token_vectors": "shared"}],
    ids=lambda change: next(iter(change)) + "=" + str(next(iter(change.values()))),
)
def test_each_piece_matters(change: dict[str, str]) -> None:
    """The released loss with one piece of this house's in its place is another number, or another set of parameters."""
    task, twin = both(3, **{"state": "tree", **change})
    if "sub_marks" in change or "token_vectors" in change:
        missing = set(both(3, "tree")[0].state_dict()) - set(task.state_dict())
        assert missing == (
            {"sub_model.start.weight", "sub_model.start.bias"} if "sub_marks" in change else {"token_embedding.weight"}
        )
        return
    released = -twin.log_probability(ONE[0].split(), lambda paths, _: paths.softmax(0))
    assert abs(float((losses(task.eval(), ONE)[0] - released).detach())) > 1e-4


def test_a_start_mark_is_a_word_of_the_vocabulary() -> None:
    with pytest.raises(ConfigError, match=r"start_mark='<begin>' is no word.*--vocabulary"):
        both(2, "tree", start_mark="<begin>")
