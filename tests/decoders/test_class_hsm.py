"""The class-based softmax against its equation, written out densely, and where its classes come from."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from sememekit.decoders.base import Resources
from sememekit.decoders.class_hsm import ClassHSM
from sememekit.errors import ConfigError
from sememekit.layers.grouped_cross_entropy import Groups, grouped_cross_entropy
from tests.small import small_graph, small_vocabulary

WIDTH = 6
CLUSTERS = np.array([4, 0, 0, 2, 4, 4, 0, 9, 9, 4])


def make(clusters: NDArray[np.int64] = CLUSTERS, **settings: object) -> ClassHSM:
    torch.manual_seed(5)
    vocabulary = small_vocabulary()
    resources = Resources(WIDTH, vocabulary, small_graph(), torch.nn.Embedding(len(vocabulary), WIDTH), clusters)
    decoder = ClassHSM(ClassHSM.Settings(**settings), resources).double()
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return decoder


def twin(decoder: ClassHSM, clusters: NDArray[np.int64], hidden: Tensor) -> Tensor:
    """Probabilities (N, V), class by class and word by word."""
    names = sorted(set(clusters.tolist()))
    of_class = torch.softmax(hidden @ decoder.classes.weight.T + decoder.classes.bias, dim=1)
    columns = []
    for word, cluster in enumerate(clusters.tolist()):
        mates = [other for other in range(len(clusters)) if clusters[other] == cluster]
        scores = torch.stack([hidden @ decoder.words.weight[mate] + decoder.bias[mate] for mate in mates], dim=1)
        columns.append(of_class[:, names.index(cluster)] * torch.softmax(scores, dim=1)[:, mates.index(word)])
    return torch.stack(columns, dim=1)


@pytest.mark.parametrize("clusters", [CLUSTERS, np.zeros(10, dtype=np.int64), np.arange(10), np.sort(CLUSTERS)], ids=str)
def test_values_and_gradients_equal_the_dense_twin(clusters: NDArray[np.int64]) -> None:
    decoder = make(clusters, classes="file")
    hidden = torch.randn(13, WIDTH, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([3, 3, 0, 7, 9, 1, 2, 8, 4, 5, 6, 0, 3])
    upstream = torch.rand(13, dtype=torch.float64)
    dense = -twin(decoder, clusters, hidden).log().gather(1, target[:, None])[:, 0]
    ours = decoder.nll(hidden, target)
    torch.testing.assert_close(ours, dense, rtol=0, atol=1e-10)
    torch.testing.assert_close(decoder.log_probs(hidden), twin(decoder, clusters, hidden).log(), rtol=0, atol=1e-10)
    inputs = [hidden, *decoder.parameters()]
    one, other = (torch.autograd.grad((nats * upstream).sum(), inputs) for nats in (ours, dense))
    for left, right in zip(one, other, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-10)


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=12),
    st.lists(st.integers(0, 100), max_size=9),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_grouped_cross_entropy_is_that_of_the_masked_rows(
    group_of: list[int], targets: list[int], with_bias: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    target = torch.tensor([number % len(group_of) for number in targets], dtype=torch.long)
    rows = torch.randn(len(target), 3, dtype=torch.float64, requires_grad=True)
    items = torch.randn(len(group_of), 3, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(len(group_of), dtype=torch.float64, requires_grad=True) if with_bias else None
    mates = torch.tensor(group_of)[target][:, None] == torch.tensor(group_of)[None]
    logits = torch.nn.functional.linear(rows, items, bias).masked_fill(~mates, -torch.inf)
    dense = torch.nn.functional.cross_entropy(logits, target, reduction="none")
    ours = grouped_cross_entropy(rows, items, bias, target, Groups(np.array(group_of)))
    torch.testing.assert_close(ours, dense)
    weight = torch.rand(len(target), dtype=torch.float64)
    inputs = [rows, items, *([] if bias is None else [bias])]
    one, other = (torch.autograd.grad((nats * weight).sum(), inputs) for nats in (ours, dense))
    for left, right in zip(one, other, strict=True):
        torch.testing.assert_close(left, right)


def test_groups_of_equal_mass_are_lopsided_and_those_of_equal_size_are_not() -> None:
    assert Groups(np.array([0] + [1] + [2] * 98 + list(range(3, 20)))).lopsided
    assert not Groups(np.arange(100) % 10).lopsided


def test_the_loss_never_meets_the_words_of_other_classes() -> None:
    decoder = make(classes="file")
    with torch.no_grad():
        decoder.words.weight[torch.from_numpy(CLUSTERS != 4)] = torch.nan
    hidden = torch.randn(4, WIDTH, dtype=torch.float64)
    assert torch.isfinite(decoder.nll(hidden, torch.tensor([0, 4, 5, 9]))).all()
    assert decoder.nll(hidden, torch.tensor([0, 4, 5, 1])).isnan().tolist() == [False, False, False, True]


def test_where_classes_come_from() -> None:
    by_count = make().groups.group_of.tolist()
    assert by_count == sorted(by_count), "words are numbered by falling count"
    assert make(num_classes=4).groups.num_groups == 4
    by_sememes = make(classes="sememes", num_classes=3).groups.group_of
    pear, apple = (small_vocabulary().id(word) for word in ("梨", "苹果"))
    assert by_sememes[pear] == by_sememes[apple]
    assert torch.bincount(by_sememes).tolist() == [4, 2, 4]


def test_impossible_numbers_of_classes_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"10 words cannot fill 11 classes; .*at most 10.*3"):
        make(num_classes=11)
    with pytest.raises(ConfigError, match=r"the file says how many; leave decoder\.num_classes out"):
        make(classes="file", num_classes=2)


def test_what_classes_need() -> None:
    wanted = {classes: ClassHSM.needs(ClassHSM.Settings(classes=classes)) for classes in ("frequency", "sememes", "file")}
    assert wanted == {"frequency": frozenset(), "sememes": {"graph"}, "file": {"clusters"}}
