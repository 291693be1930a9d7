"""The self-organised hierarchical softmax against literal twins: smoothing, assignment, the split of the loss, its buffers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sememekit.config import read_settings
from sememekit.decoders.assignment import assign_greedily
from sememekit.decoders.base import Resources
from sememekit.decoders.self_organized import SelfOrganized
from sememekit.errors import ConfigError
from sememekit.layers import training_counters
from sememekit.layers.grouped_cross_entropy import Groups, _in_padded_blocks, grouped_cross_entropy
from tests.small import small_vocabulary

WIDTH = 6
WORDS = len(small_vocabulary())


def make(clusters: np.ndarray | None = None, **changes: Any) -> SelfOrganized:
    torch.manual_seed(5)
    resources = Resources(WIDTH, small_vocabulary(), None, torch.nn.Embedding(WORDS, WIDTH), clusters)
    start = {} if clusters is None else {"start": "file"}
    return SelfOrganized(read_settings(SelfOrganized.Settings, {**start, **changes}, "test"), resources).double()


def contexts(*shape: int) -> Tensor:
    return torch.randn(*shape, WIDTH, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


# Algorithm 1 word by word, as printed.
def literal(scores: np.ndarray, frequencies: np.ndarray, largest: float, budget: float, present: np.ndarray | None) -> Any:
    num_words, num_clusters = scores.shape
    members: list[list[int]] = [[] for _ in range(num_clusters)]
    load = [0.0] * num_clusters
    orphaned = 0
    for word in sorted(range(num_words), key=lambda w: (-frequencies[w], w)):
        ranked = sorted(
            range(num_clusters),
            key=lambda c: (-scores[word, c], 0 if present is not None and present[word] == c else 1, c),
        )
        choice = next((c for c in ranked if len(members[c]) < largest and load[c] < budget), None)
        if choice is None:
            orphaned += 1
            choice = min(range(num_clusters), key=lambda c: (len(members[c]), load[c], c))
        members[choice].append(word)
        load[choice] += frequencies[word]
    return [next(c for c in range(num_clusters) if word in members[c]) for word in range(num_words)], orphaned


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 40),
    st.integers(1, 9),
    st.floats(0.5, 12.0),
    st.floats(0.01, 1.0),
    st.booleans(),
)
def test_the_assignment_is_the_printed_algorithm(
    seed: int, num_words: int, num_clusters: int, largest: float, budget: float, with_present: bool
) -> None:
    generator = np.random.default_rng(seed)
    scores = generator.integers(-3, 1, (num_words, num_clusters)).astype(np.float64)  # many ties
    frequencies = generator.integers(1, 5, num_words).astype(np.float64)
    frequencies /= frequencies.sum()
    present = generator.integers(0, num_clusters, num_words) if with_present else None
    found = assign_greedily(scores, frequencies, largest=largest, budget=budget, present=present)
    expected, orphaned = literal(scores, frequencies, largest, budget, present)
    assert found.cluster_of.tolist() == expected
    assert found.orphaned == orphaned


def test_both_limits_are_tested_before_a_word_is_added() -> None:
    scores = np.array([[0.0, -1.0]] * 4)
    frequencies = np.array([0.4, 0.3, 0.2, 0.1])
    by_words = assign_greedily(scores, frequencies, largest=2, budget=9.0)
    assert by_words.cluster_of.tolist() == [0, 0, 1, 1]
    by_share = assign_greedily(scores, frequencies, largest=9, budget=0.35)
    assert by_share.cluster_of.tolist() == [0, 1, 1, 0], "0.4 enters an empty cluster; 0.2 joins 0.3 and passes the budget"
    assert by_share.orphaned == 1, "then both are closed, and the first has fewer words"


def test_words_without_an_open_cluster_are_counted() -> None:
    found = assign_greedily(np.zeros((5, 2)), np.full(5, 0.2), largest=1, budget=1.0)
    assert found.cluster_of.tolist() == [0, 1, 0, 1, 0]
    assert found.orphaned == 3


@pytest.mark.parametrize("smoothing", ["corrected", "printed"])
def test_smoothing_is_one_occurrence_after_the_other(smoothing: str) -> None:
    decoder = make(smoothing=smoothing)
    target = torch.tensor([[0, 3, 0], [9, 0, 3], [1, 1, 9]])
    hidden = contexts(3, 3)
    expected = decoder.scores.clone()
    assert torch.equal(expected, torch.full_like(expected, -math.log2(decoder.groups.num_groups)))
    decoder.train()
    with torch.no_grad():
        h_c = (hidden @ decoder.projection.weight.T).relu()[..., :WIDTH]
        bits = (h_c @ decoder.cluster_vectors.weight.T).log_softmax(dim=-1) / math.log(2)
    counts = small_vocabulary().counts
    for word, sample in zip(target.flatten().tolist(), bits.flatten(0, 1), strict=True):
        share = 1.0 / counts[word]
        new = share if smoothing == "corrected" else 1.0 - share
        expected[word] = (1.0 - new) * expected[word] + new * sample
    decoder.nll(hidden.requires_grad_(), target)
    torch.testing.assert_close(decoder.scores, expected, rtol=1e-12, atol=1e-12)
    decoder.eval().observe(hidden, target)
    assert not torch.allclose(decoder.scores, expected), "observe counts in evaluation, too"


def test_a_word_seen_once_moves_only_when_the_factor_is_corrected() -> None:
    once = small_vocabulary().id("无名")
    assert small_vocabulary().counts[once] == 1
    moved = {}
    for smoothing in ("corrected", "printed"):
        decoder = make(smoothing=smoothing).train()
        before = decoder.scores[once].clone()
        decoder.nll(contexts(1).requires_grad_(), torch.tensor([once]))
        moved[smoothing] = not torch.equal(before, decoder.scores[once])
    assert moved == {"corrected": True, "printed": False}


def test_evaluation_and_frozen_clusters_gather_nothing() -> None:
    decoder = make()
    before = decoder.scores.clone()
    decoder.eval().nll(contexts(4).requires_grad_(), torch.arange(4))
    decoder.nll_parts(contexts(4), torch.arange(4))
    with torch.no_grad():
        decoder.train().nll(contexts(4), torch.arange(4))
    frozen = make(update_every=0).train()
    frozen.nll(contexts(4).requires_grad_(), torch.arange(4))
    assert torch.equal(decoder.scores, before)
    assert torch.equal(frozen.scores, before)
    assert frozen.after_step(1000) is None


def test_held_clusters_stay_held_under_the_weights_of_another_epoch() -> None:
    decoder, best = make(), make().state_dict()
    decoder.freeze_clusters(3)
    decoder.load_state_dict({**best, **training_counters(decoder)})
    assert (int(decoder.held_steps), decoder.after_step(1)) == (3, None)
    assert int(decoder.held_steps) == 2


def test_the_parts_add_up_to_the_loss() -> None:
    decoder = make().eval()
    parts = decoder.nll_parts(contexts(3, 4), torch.arange(12).reshape(3, 4) % WORDS)
    assert set(parts) == {"cluster", "in_cluster"}
    torch.testing.assert_close(sum(parts.values()), decoder.nll(contexts(3, 4), torch.arange(12).reshape(3, 4) % WORDS))


def test_an_update_changes_the_assignment_and_nothing_else() -> None:
    decoder = make(update_every=4, frequency_budget=0.9, gamma=3.0).train()
    weights = {name: value.clone() for name, value in decoder.named_parameters()}
    before = decoder.clusters().clone()
    decoder.nll(contexts(30).requires_grad_(), torch.arange(30) % WORDS)
    scores = decoder.scores.clone()
    expected = assign_greedily(
        scores.numpy(), decoder.frequencies, largest=3.0 * math.sqrt(WORDS), budget=0.9, present=before.numpy()
    )
    assert decoder.after_step(3) is None
    values = decoder.after_step(4)
    assert values is not None
    assert decoder.clusters().tolist() == expected.cluster_of.tolist() != before.tolist()
    moved = (decoder.clusters() != before).numpy()
    assert values["moved_words"] == pytest.approx(moved.mean())
    counts = small_vocabulary().counts
    assert values["moved_frequency"] == pytest.approx(counts[moved].sum() / counts.sum())
    assert values["cluster_perplexity"] > 1 < values["in_cluster_perplexity"]
    assert torch.equal(decoder.scores, scores), "q goes on"
    for name, value in decoder.named_parameters():
        assert torch.equal(value, weights[name]), name
    total = decoder.log_probs(contexts(5)).exp().sum(dim=-1)
    torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-9)


def test_the_first_step_says_how_clusters_begin() -> None:
    values = make(start="random").after_step(1)
    assert values is not None
    assert values["moved_words"] == 0.0
    assert values["orphaned_words"] > 0, "ten words of a tenth of the text each do not fit into four clusters"


def test_a_cluster_that_lost_its_words_has_no_probability_and_can_win_them_again() -> None:
    empty = make(np.array([0, 0, 2, 2, 2, 0, 0, 3, 3, 3]), num_clusters=5).eval()
    total = empty.log_probs(contexts(7)).exp().sum(dim=-1)
    torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-9)
    empty.train().nll(contexts(7).requires_grad_(), torch.arange(7)).sum().backward()
    assert torch.isfinite(empty.scores).all()
    assert (empty.cluster_vectors.weight.grad[[1, 4]] == 0).all()
    assert (empty.scores[:7, 1] != empty.scores[9, 1]).all()


def test_clusters_of_a_file_begin_and_can_be_frozen() -> None:
    given = np.array([0, 1, 2, 3, 4, 0, 1, 2, 3, 4])
    assert make(given).clusters().tolist() == given.tolist()
    assert make(given, start="random").groups.num_groups == math.ceil(math.sqrt(WORDS))
    with pytest.raises(ConfigError, match=r"has 5, more than decoder\.num_clusters=4"):
        make(given, num_clusters=4)
    with pytest.raises(ConfigError, match="--clusters FILE"):
        make(None, start="file")


def test_loading_brings_back_assignment_and_statistics() -> None:
    decoder = make(update_every=1, frequency_budget=0.9).train()
    decoder.nll(contexts(30).requires_grad_(), torch.arange(30) % WORDS)
    decoder.after_step(1)
    decoder.nll(contexts(20).requires_grad_(), torch.arange(20) % WORDS)
    twin = make(update_every=1, frequency_budget=0.9)
    twin.load_state_dict(decoder.state_dict())
    hidden, target = contexts(9), torch.arange(9)
    assert torch.equal(twin.eval().nll(hidden, target), decoder.eval().nll(hidden, target))
    assert torch.equal(twin.log_probs(hidden), decoder.log_probs(hidden))
    assert twin.after_step(2) == decoder.after_step(2)
    assert torch.equal(twin.clusters(), decoder.clusters())


@pytest.mark.parametrize("num_rows", [0, 1, 7, 60])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("division", ["scattered", "in order", "empty groups"])
def test_padded_blocks_equal_the_groups_one_by_one(num_rows: int, with_bias: bool, division: str) -> None:
    """The path of accelerators, on the CPU; and a division that is changed between the passes."""
    generator = torch.Generator().manual_seed(3)
    group_of = torch.randint(0, 6, (23,), generator=generator)
    if division == "in order":
        group_of = group_of.sort().values
    if division == "empty groups":
        group_of[group_of == 2] = 3
        group_of[group_of == 5] = 0
    results = []
    for path in ("one by one", "blocks"):
        groups = Groups(group_of.numpy(), 6)
        rows = torch.randn(num_rows, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64).requires_grad_()
        items = torch.randn(23, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64).requires_grad_()
        bias = torch.linspace(-1, 1, 23, dtype=torch.float64).requires_grad_() if with_bias else None
        target = torch.randint(0, 23, (num_rows,), generator=torch.Generator().manual_seed(4))
        if path == "blocks":
            nats = _in_padded_blocks(rows, items, bias, target, groups)
        else:
            nats = grouped_cross_entropy(rows, items, bias, target, groups)
            groups.set(torch.zeros(23, dtype=torch.int64))
        (nats * torch.linspace(0.5, 2, num_rows, dtype=torch.float64)).sum().backward()
        results.append([nats.detach(), *(part.grad for part in (rows, items, bias) if part is not None)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_a_file_of_clusters_is_written_and_read(tmp_path: Path) -> None:
    from sememekit.word_classes.file import read_clusters, write_clusters

    decoder = make()
    write_clusters(tmp_path / "clusters.json", small_vocabulary(), decoder.clusters().numpy())
    again = make(read_clusters(tmp_path / "clusters.json", small_vocabulary()), start="file")
    assert torch.equal(again.clusters(), decoder.clusters())


def test_a_table_beyond_memory_names_a_smaller_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Tensor:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(torch, "rand", refuse)
    with pytest.raises(
        ConfigError, match=rf"{WORDS} words x 3 clusters take 0.0 GB, beyond memory; set decoder.num_clusters=200"
    ):
        make(num_clusters=3)
