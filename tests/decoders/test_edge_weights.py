"""Weights of the edges between senses and sememes by depth or role: the equations, the start, and graphs without structure."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from sememekit.decoders import edge_blocks, sense_blocks
from sememekit.decoders.base import Resources
from sememekit.decoders.sdlm import SDLM
from sememekit.errors import GraphError
from sememekit.sememes import Lexicon, LexiconReport, SememeGraph, Sense, build_graph
from sememekit.sememes.overlay import apply_changes, parse_change
from tests.decoders.sdlm_twin import dense_log_probs
from tests.small import small_graph, small_vocabulary

WIDTH = 6
KINDS = ["depth", "role"]
NAMES = {
    "depth": ("no structure", "root", "depth 1", "depth 2"),
    "role": ("no structure", "root", "%", "cost", "domain", "plain"),
}


def make(graph: SememeGraph | None = None, moved: float = 0.3, **settings: object) -> SDLM:
    """A layer in float64 whose start does not depend on the weights of edges, ``moved`` away from it."""
    torch.manual_seed(3)
    embedding = torch.nn.Embedding(len(small_vocabulary()), WIDTH)
    decoder = SDLM(
        SDLM.Settings(num_bases=3, **settings), Resources(WIDTH, small_vocabulary(), graph or small_graph(), embedding)
    ).double()
    torch.manual_seed(4)
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.add_(moved * torch.randn_like(parameter))
    return decoder


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalisation", ["left", "symmetric"])
@pytest.mark.parametrize(("block", "rows_per_block"), [(3, 3), (100, 4096)])
@pytest.mark.parametrize("by_edges", [True, False])
def test_values_and_gradients_equal_the_dense_twin(
    kind: str, normalisation: str, block: int, rows_per_block: int, by_edges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sense_blocks, "SENSES_PER_BLOCK", rows_per_block)
    monkeypatch.setattr(edge_blocks, "EDGES_PER_BLOCK", rows_per_block)
    monkeypatch.setattr(SDLM, "_goes_by_edges", lambda layer, hidden: by_edges)
    decoder = make(edge_weights=kind, normalisation=normalisation, tokens_per_block=block)
    assert decoder.edge_weights is not None
    assert decoder.edge_weights.names == NAMES[kind]
    target = torch.arange(len(small_vocabulary()))
    hidden = torch.randn(len(target), WIDTH, dtype=torch.float64, requires_grad=True)
    upstream = torch.rand(len(target), dtype=torch.float64)
    twin = -dense_log_probs(decoder, small_graph(), hidden, normalisation == "symmetric").gather(1, target[:, None])[:, 0]
    ours, inputs = decoder.nll(hidden, target), [hidden, *decoder.parameters()]
    torch.testing.assert_close(ours, twin, rtol=0, atol=1e-9)
    expected = torch.autograd.grad((twin * upstream).sum(), inputs)
    for one, other in zip(torch.autograd.grad((ours * upstream).sum(), inputs), expected, strict=True):
        assert other.abs().max() > 1e-6
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("samples", [0, 4])
def test_at_the_start_it_scores_to_the_bit_as_without(kind: str, samples: int) -> None:
    plain, weighted = (make(moved=0.0, samples=samples, edge_weights=name).float().train() for name in ("none", kind))
    assert {*weighted.state_dict()} - {*plain.state_dict()} == {"edge_weights.logs_CR"}
    for name, value in plain.state_dict().items():
        assert torch.equal(value, weighted.state_dict()[name]), name
    hidden, target = torch.randn(5, 2, WIDTH), torch.arange(10).view(5, 2)
    scores = []
    for decoder in (plain, weighted):
        decoder.begin_training(torch.tensor(small_vocabulary().counts).numpy())
        torch.manual_seed(5)
        scores.append((decoder.nll(hidden, target), decoder.log_probs(hidden)))
    for one, other in zip(*scores, strict=True):
        assert torch.equal(one, other)


def test_the_weights_are_of_their_class_and_basis() -> None:
    """Only words with an edge of the class change their scores, and none where its weight is one."""
    decoder = make(edge_weights="role")
    assert decoder.edge_weights is not None
    hidden = torch.randn(2, WIDTH, dtype=torch.float64)
    with torch.no_grad():
        decoder.edge_weights.logs_CR.zero_()
        before = decoder.scores(hidden)
        decoder.edge_weights.logs_CR[NAMES["role"].index("cost") - 1, 1] = 1.5
        after = decoder.scores(hidden)
    changed = [word for word, differs in zip(small_vocabulary().tokens, (before != after).any(dim=0), strict=True) if differs]
    assert changed == ["买"]


def test_gates_and_masses_are_of_sememes() -> None:
    decoder, hidden = make(edge_weights="role"), torch.randn(WIDTH, dtype=torch.float64)
    evidence = decoder.sense_attribution(hidden, torch.arange(3))
    expected = decoder.gate(hidden).sigmoid()
    assert evidence.sememe_gates == pytest.approx(expected.tolist())
    torch.testing.assert_close(decoder.sense_probabilities(hidden[None]).gates_NK[0], expected)


def test_a_graph_without_structure_is_refused(tmp_path: Path) -> None:
    report = LexiconReport(records=1, words=1, senses=1, sememes=1)
    bare = build_graph(small_vocabulary(), [Lexicon("list:bare", "0", {"人": (Sense("人", ("人",)),)}, report)])
    with pytest.raises(GraphError, match=r"by depth: the graph has no structure.*hownet2000.*sememekit build-sememe-graph"):
        make(bare, edge_weights="depth")
    make(bare)
    small_graph().save(tmp_path / "graph.json")
    make(SememeGraph.load(tmp_path / "graph.json"), edge_weights="depth")


def test_an_overlay_keeps_the_classes_and_their_weights() -> None:
    """What is added has no place in a definition: its class is the first, and no other weight moves."""
    changes = [parse_change("买", "-钱", "here"), parse_change("梨", "+食品", "here")]
    graph, _, _ = apply_changes(small_graph(), changes)
    before, after = make(edge_weights="role"), make(graph, edge_weights="role")
    assert before.edge_weights is not None
    assert after.edge_weights is not None
    assert after.edge_weights.names == before.edge_weights.names
    after.load_state_dict(before.state_dict())
    hidden = torch.randn(3, WIDTH, dtype=torch.float64)
    same = (before.scores(hidden) == after.scores(hidden)).all(dim=0)
    assert [word for word, stays in zip(small_vocabulary().tokens, same, strict=True) if not stays] == ["梨", "买"]
    torch.testing.assert_close(after.log_probs(hidden), dense_log_probs(after, graph, hidden, symmetric=False))
