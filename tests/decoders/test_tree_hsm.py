"""The tree-based softmax against its equation, written out word by word."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from sememekit.decoders.base import Resources
from sememekit.decoders.tree_hsm import TreeHSM
from sememekit.errors import ConfigError
from sememekit.text.vocabulary import Vocabulary
from sememekit.word_classes.partition import WordTree, balanced_tree, huffman_tree, sememe_order
from tests.small import small_graph, small_vocabulary

WIDTH = 5


def make(**settings: object) -> TreeHSM:
    torch.manual_seed(8)
    decoder = TreeHSM(TreeHSM.Settings(**settings), Resources(WIDTH, small_vocabulary(), small_graph())).double()
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return decoder


def twin(decoder: TreeHSM, tree: WordTree, hidden: Tensor) -> Tensor:
    """Log-probabilities (N, V) by climbing from each word to the root."""
    columns = []
    for word in range(tree.num_words):
        place, total = tree.num_words - 1 + word, torch.zeros(len(hidden), dtype=torch.float64)
        while place != 0:
            node, left = int(tree.parent[place]), tree.side[place] == 0
            probability = torch.sigmoid(hidden @ decoder.nodes[node] + decoder.bias[node])
            total = total + (probability if left else 1 - probability).log()
            place = node
        columns.append(total)
    return torch.stack(columns, dim=1)


@pytest.mark.parametrize("kind", ["huffman", "sememes"])
def test_values_and_gradients_equal_the_dense_twin(kind: str) -> None:
    decoder, counts = make(tree=kind), small_vocabulary().counts
    tree = huffman_tree(counts) if kind == "huffman" else balanced_tree(sememe_order(small_graph()), counts)
    hidden = torch.randn(13, WIDTH, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([3, 3, 0, 7, 9, 1, 2, 8, 4, 5, 6, 0, 3])
    upstream = torch.rand(13, dtype=torch.float64)
    expected = twin(decoder, tree, hidden)
    dense = -expected.gather(1, target[:, None])[:, 0]
    ours = decoder.nll(hidden, target)
    torch.testing.assert_close(ours, dense, rtol=0, atol=1e-10)
    torch.testing.assert_close(decoder.log_probs(hidden), expected, rtol=0, atol=1e-10)
    inputs = [hidden, *decoder.parameters()]
    one, other = (torch.autograd.grad((nats * upstream).sum(), inputs) for nats in (ours, dense))
    for left, right in zip(one, other, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-10)


def test_the_loss_meets_only_the_nodes_on_the_way() -> None:
    decoder, tree = make(), huffman_tree(small_vocabulary().counts)
    offsets, nodes, _ = tree.paths()
    with torch.no_grad():
        on_the_way = np.isin(np.arange(len(decoder.nodes)), nodes[offsets[2] : offsets[3]])
        decoder.nodes[torch.from_numpy(~on_the_way)] = torch.nan
    nats = decoder.nll(torch.randn(2, WIDTH, dtype=torch.float64), torch.tensor([2, 9]))
    assert nats.isnan().tolist() == [False, True]


def test_far_scores_do_not_overflow() -> None:
    decoder, hidden = make().float(), torch.full((1, WIDTH), 1e4)
    assert torch.isfinite(decoder.log_probs(hidden)).all()
    nats = torch.cat([decoder.nll(hidden, torch.tensor([word])) for word in range(10)])
    torch.testing.assert_close(nats, -decoder.log_probs(hidden)[0])


def test_sure_turns_have_the_loss_of_their_log_probability() -> None:
    """Loss and gradient agree to float64's precision, also for a score above 20."""
    decoder = TreeHSM(TreeHSM.Settings(), Resources(WIDTH, Vocabulary.from_counts({"a": 2, "b": 1}))).double()
    with torch.no_grad():
        decoder.nodes.fill_(0.0)[:, 0] = 1.0
    scores = torch.tensor([-30.0, -25.0, -20.5, -19.5, 19.5, 20.5, 25.0], dtype=torch.float64)
    hidden = torch.nn.functional.pad(scores[:, None], (0, WIDTH - 1)).requires_grad_()
    for word in (0, 1):
        ours, wanted = decoder.nll(hidden, torch.full((len(scores),), word)), -decoder.log_probs(hidden)[:, word]
        torch.testing.assert_close(ours, wanted, rtol=1e-14, atol=0)
        left, right = (torch.autograd.grad(nats.sum(), hidden)[0][:, 0] for nats in (ours, wanted))
        torch.testing.assert_close(left, right, rtol=1e-14, atol=0)


def test_what_trees_need() -> None:
    assert TreeHSM.needs(TreeHSM.Settings()) == frozenset()
    assert TreeHSM.needs(TreeHSM.Settings(tree="sememes")) == {"graph"}


def test_two_words_are_one_turn_and_one_is_refused() -> None:
    decoder = TreeHSM(TreeHSM.Settings(), Resources(WIDTH, Vocabulary.from_counts({"a": 2, "b": 1})))
    hidden = torch.randn(3, WIDTH)
    left = torch.sigmoid(hidden @ decoder.nodes[0])
    torch.testing.assert_close(decoder.log_probs(hidden).exp(), torch.stack([1 - left, left], dim=1))
    with pytest.raises(ConfigError, match="two words or more"):
        TreeHSM(TreeHSM.Settings(), Resources(WIDTH, Vocabulary.from_counts({"a": 1})))
