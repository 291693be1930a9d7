"""Senses out of lists, arrays and lexicons."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch.utils.checkpoint import checkpoint

from sememekit.errors import ConfigError
from sememekit.nn import (
    AdaptiveSoftmax,
    LatticeLoss,
    MixtureOfSememeSoftmaxes,
    SelfOrganizedSoftmax,
    SememeLSTM,
    SememeSoftmax,
    Senses,
)
from tests.nn.cases import COUNTS, SENSES, WIDTH, contexts, targets
from tests.small import small_graph, small_lexicon, small_vocabulary


def test_lists_arrays_and_names_are_the_same_words() -> None:
    from_lists = Senses(SENSES)
    offsets = np.cumsum([0, *(len(word) for word in SENSES)])
    sets = [sense for word in SENSES for sense in word]
    from_arrays = Senses.from_arrays(torch.tensor(offsets), np.cumsum([0, *map(len, sets)]), np.concatenate(sets))
    named = Senses([[[f"s{sememe}" for sememe in sense] for sense in word] for word in SENSES])
    assert from_arrays.graph.fingerprint == from_lists.graph.fingerprint
    assert named.sememes == ("<unk>", "s0", "s1", "s2", "s3", "s5")
    for name in ("sense_offsets", "set_offsets"):
        assert getattr(named.graph, name).tolist() == getattr(from_lists.graph, name).tolist()
    assert (from_lists.num_words, from_lists.num_senses, from_lists.num_sememes) == (7, 9, 6)


def test_equal_and_empty_senses_are_no_senses() -> None:
    senses = Senses([[[1, 0], [0, 1, 1], []], [[]]])
    assert (senses.num_senses, senses.sememes) == (2, (0, 1, "<unk>"))


def test_words_of_a_tokenizer_in_its_own_order() -> None:
    tokens = ["[PAD]", "▁苹果", "电脑", "苹果", "xyz", "▁人"]
    senses = Senses.of_words(tokens, small_lexicon(), clean=lambda token: token.removeprefix("▁"))
    entries = [senses.graph.entry(word) for word in range(len(tokens))]
    assert [entry.word for entry in entries] == tokens
    assert entries[1].senses == entries[3].senses
    assert len(entries[3].senses) == 3
    assert [entry.is_annotated for entry in entries] == [False, True, True, True, False, True]
    layer = SememeSoftmax(WIDTH, senses)
    assert layer.log_prob(contexts(2)).shape == (2, 6)


def test_a_graph_of_our_own() -> None:
    layer = SememeSoftmax(WIDTH, small_graph(), small_vocabulary().counts, samples=3)
    assert layer.sememes == small_graph().sememes
    assert layer(contexts(4), targets(4)).loss.isfinite()


def test_numbers_of_any_length_rise() -> None:
    numbers = (5, 999_999_999, 1_000_000_000, 70_000_000_000)
    senses = Senses([[[number]] for number in reversed(numbers)])
    assert senses.sememes == numbers
    with pytest.raises(ConfigError, match=r"here 70,000,000,001 for 4 sememes; number them 0, 1, 2, \.\.\. or give names"):
        SememeLSTM(4, 8, senses)


def test_words_are_a_list() -> None:
    with pytest.raises(ConfigError, match=r"words must be a list, given the string '工人'"):
        Senses.of_words("工人")


def test_wrong_counts_are_told() -> None:
    for counts, told in (
        ([0.1, 0.4, 0.2, 0.25, 0.05], r"counts are whole numbers of occurrences, given such as 0\.1; multiply frequencies"),
        ([1e30, 1.0], r"a count must be below 2\*\*62, given 1e\+30"),
        (True, r"counts must be \(V,\) numbers"),
    ):
        with pytest.raises(ConfigError, match=told):
            AdaptiveSoftmax(8, counts, cutoffs=(1,))
    assert AdaptiveSoftmax(8, [1.0, 4.0, 2.0], cutoffs=(1,)).rank_of_word.tolist() == [2, 0, 1]


def test_wrong_senses_are_told() -> None:
    for given, told in (
        ([], "no words"),
        ([[["a", 1]]], "some sememes are names"),
        ([[[-1]]], "a number of 0 or more, given -1"),
        ([[[1.5]]], "given 1.5"),
    ):
        with pytest.raises(ConfigError, match=told):
            Senses(given)  # type: ignore[arg-type]
    nested = r"nest lists as \[\[\['human', 'thing'\], \['tool'\]\]"
    for given, told in (
        ([["human", "thing"], ["human"]], "sense 0 of word 0 must be a list of sememes, given 'human'"),
        ([[["human"]], "thing"], "word 1 must be a list of senses, given 'thing'"),
        ([[["human"]], [["thing"], 3]], "sense 1 of word 1 must be a list of sememes, given 3"),
        ([1, 2], "word 0 must be a list of senses, given 1"),
        ([[[1]], None], "word 1 must be a list of senses, given None"),
        ([{"human": ["thing"]}], "word 0 must be a list of senses, given {'human'"),
        ({"human": [["thing"]]}, "senses must be a list of words, given {'human'"),
        ("open", "senses must be a list of words, given 'open'"),
        (None, "senses must be a list of words, given None"),
    ):
        with pytest.raises(ConfigError, match=f"Senses: {told}.*{nested}"):
            Senses(given)  # type: ignore[arg-type]
    for kind in (SememeSoftmax, MixtureOfSememeSoftmaxes):
        for wrong in ("open", None):
            with pytest.raises(ConfigError, match=rf"{kind.__name__}: senses must be lists .*, given {wrong!r}; .*of_words"):
                kind(WIDTH, wrong)
    assert Senses([np.array([[0, 1]]), torch.tensor([[2]]), ()]).num_senses == 3
    with pytest.raises(ConfigError, match="2 words, but senses for 1; give one word for each"):
        Senses([[[1]]], words=["a", "b"])
    with pytest.raises(ConfigError, match="sememe_offsets must rise from 0 to 2"):
        Senses.from_arrays([0, 1], [0, 1], [3, 4])


def test_the_loss_of_a_lattice_is_that_of_all_paths() -> None:
    scores = torch.randn(1, 3, 2, 1, generator=torch.Generator().manual_seed(2))
    scores[0, 0, 1] = -torch.inf
    one, two = scores[0, :, 0, 0], scores[0, :, 1, 0]
    paths = torch.stack([one[0] + one[1] + one[2], two[1] + one[2], one[0] + two[2]])
    lengths = torch.tensor([3])
    torch.testing.assert_close(LatticeLoss("sum")(scores, lengths), -paths.logsumexp(dim=0))
    torch.testing.assert_close(LatticeLoss()(scores, lengths), -paths.logsumexp(dim=0) / 3)
    assert LatticeLoss("none")(scores, lengths).shape == (1,)
    posteriors = LatticeLoss().posteriors(scores, lengths)
    torch.testing.assert_close(posteriors[0, 2, 1, 0], paths.softmax(dim=0)[2])
    log_prob, taken = LatticeLoss().best_path(scores, lengths)
    assert float(log_prob) == pytest.approx(float(paths.max()))
    assert taken.sum() == (3 if int(paths.argmax()) == 0 else 2)
    drawn = LatticeLoss().sample(scores, lengths, torch.Generator().manual_seed(1))
    assert drawn.shape == scores.shape
    with pytest.raises(ValueError, match="reduction"):
        LatticeLoss("total")  # type: ignore[arg-type]


def test_lattices_that_do_not_fit_are_told() -> None:
    loss, scores, lengths = LatticeLoss(), torch.zeros(2, 3, 2, 1), torch.tensor([3, 1])
    calls = (loss, loss.posteriors, loss.best_path, loss.sample)
    for call in calls:
        with pytest.raises(ValueError, match=r"scores must be \(B, T, L, E\) with L and E of 1 or more, given \(2, 3, 2\)"):
            call(scores[..., 0], lengths)
        with pytest.raises(ValueError, match=r"lengths must be \(2,\) for scores \(2, 3, 2, 1\), given \(3,\)"):
            call(scores, torch.tensor([3, 1, 1]))
        for wrong in (-1, 4):
            with pytest.raises(ValueError, match=rf"lengths must be 0 to 3, given {wrong} at \[1\]"):
                call(scores, torch.tensor([3, wrong]))
        with pytest.raises(TypeError, match=r"lengths must be whole numbers, given torch.float32"):
            call(scores, lengths.float())
        with pytest.raises(TypeError, match="lengths must be a tensor of whole numbers, given list"):
            call(scores, [3, 1])
        with pytest.raises(TypeError, match=r"tensor of floats \(B, T, L, E\), given torch.int64"):
            call(scores.long(), lengths)
    torch.testing.assert_close(loss(scores, lengths.to(torch.uint8)), loss(scores, lengths))


def test_a_text_without_a_path_has_no_edges() -> None:
    scores = torch.zeros(2, 3, 2, 1)
    scores[1, 1:] = -torch.inf  # nothing ends at the second node or the third
    loss, lengths = LatticeLoss("none"), torch.tensor([3, 3])
    value, taken = loss.best_path(scores, lengths)
    assert value.tolist() == [0.0, -torch.inf]
    for edges in (taken, loss.sample(scores, lengths)):
        assert edges[0].any()
        assert not edges[1].any()
    assert loss(scores, lengths)[1] == torch.inf


def clusters_layer(**settings: object) -> SelfOrganizedSoftmax:
    return SelfOrganizedSoftmax(WIDTH, COUNTS, **{"update_every": 2, "gamma": 3.0, "frequency_budget": 0.5, **settings})


def test_clusters_move_after_steps_and_never_in_a_loss() -> None:
    torch.manual_seed(0)
    layer = clusters_layer()
    optimizer = torch.optim.SGD(layer.parameters(), lr=5.0)
    before = layer.clusters.clone()
    layer(contexts(5, 3), targets(5, 3)).loss.backward()
    optimizer.step()
    first = layer.after_step()
    assert first is not None
    assert first["moved_words"] == 0
    assert torch.equal(layer.clusters, before)
    layer(contexts(5, 3), targets(5, 3)).loss.backward()
    assert torch.equal(layer.clusters, before)
    figures = layer.after_step()
    assert figures is not None
    assert figures["moved_words"] == pytest.approx(float((layer.clusters != before).float().mean()))
    assert figures["cluster_perplexity"] > 1
    assert layer.after_step() is None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_statistics_of_frequent_words_move_whatever_the_dtype_of_the_weights(dtype: torch.dtype) -> None:
    """q of a word of 60,000 occurrences moves by less than a weight of half the bits can say."""
    torch.manual_seed(0)
    counts = [60_000, 30_000, 20_000, 15_000, 12_000, 10_000, 1]
    exact = SelfOrganizedSoftmax(WIDTH, counts, update_every=1000, gamma=3.0, frequency_budget=0.5)
    layer = copy.deepcopy(exact).to(dtype)
    for _ in range(5):
        exact(contexts(4000), targets(4000))
        layer(contexts(4000).to(dtype), targets(4000))
    statistics = layer.layer
    assert (statistics.scores.dtype, statistics.losses.dtype, statistics.weight_of_new.dtype) == (
        torch.float32,
        torch.float64,
        torch.float64,
    )
    torch.testing.assert_close(statistics.scores, exact.layer.scores, rtol=0.01, atol=0)
    moved = (statistics.scores + math.log2(statistics.num_clusters)).abs()
    expected = (exact.layer.scores + math.log2(statistics.num_clusters)).abs()
    torch.testing.assert_close(moved, expected, rtol=0.05, atol=1e-4)
    torch.testing.assert_close(statistics.losses, exact.layer.losses, rtol=0.01, atol=0)
    figures = layer.after_step()
    assert figures is not None
    layer.load_state_dict(exact.state_dict())
    assert torch.equal(statistics.scores, exact.layer.scores)


def test_an_optimizer_is_followed_until_its_hook_is_removed() -> None:
    layer = clusters_layer()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    with pytest.raises(TypeError, match=r"give the torch\.optim optimiser, given Linear"):
        layer.follow(torch.nn.Linear(2, 2))  # type: ignore[arg-type]
    layer.follow(optimizer)
    handle = layer.follow(optimizer)  # in the place of the first: a step counts once
    for _ in range(3):
        layer(contexts(4), targets(4)).loss.backward()
        optimizer.step()
    assert int(layer.num_steps) == 3
    handle.remove()
    optimizer.step()
    assert int(layer.num_steps) == 3


def test_steps_go_on_from_a_state_dict() -> None:
    layer, other = clusters_layer(), clusters_layer()
    layer.after_step()
    other.load_state_dict(layer.state_dict())
    assert other.after_step() is not None  # the second step, when words move
    assert int(other.num_steps) == 2


def test_a_layer_that_is_never_told_of_steps_warns_once() -> None:
    layer = clusters_layer()
    for _ in range(4):
        layer(contexts(4), targets(4))
    with pytest.warns(UserWarning, match="call layer.after_step"):
        layer(contexts(4), targets(4))
    layer(contexts(4), targets(4))
    layer.eval()
    for _ in range(9):
        layer(contexts(4), targets(4))


def test_a_buffer_that_is_written_to_is_followed() -> None:
    layer = clusters_layer()
    given = torch.tensor([0, 1, 1, 2, 0, 2, 2])
    layer.layer.groups.group_of.copy_(given)
    fresh = clusters_layer(clusters=given)
    fresh.layer.load_state_dict({**layer.layer.state_dict()})
    fresh.layer.groups.set(given)
    hidden, target = contexts(4), targets(4)
    torch.testing.assert_close(layer.eval().nll(hidden, target), fresh.eval().nll(hidden, target))


@pytest.mark.parametrize(("reentrant", "times"), [(False, 2), (True, 1)])
def test_recomputed_losses_count_as_the_docstring_says(reentrant: bool, times: int) -> None:
    torch.manual_seed(0)
    layer, other = clusters_layer(), clusters_layer()
    other.load_state_dict(layer.state_dict())
    hidden = contexts(6).requires_grad_(True)
    for _ in range(times):
        layer(hidden, targets(6)).loss.backward()
    checkpoint(lambda x: other(x, targets(6)).loss, hidden, use_reentrant=reentrant).backward()
    torch.testing.assert_close(other.layer.scores, layer.layer.scores)
    assert float(other.layer.losses[2]) == 6 * times


def test_statistics_leave_ignored_targets_out() -> None:
    torch.manual_seed(0)
    layer, other = clusters_layer(), clusters_layer()
    other.load_state_dict(layer.state_dict())
    target = targets(6)
    target[2:4] = -100
    layer(contexts(6), target)
    other(contexts(6)[target != -100], target[target != -100])
    torch.testing.assert_close(layer.layer.scores, other.layer.scores)


def test_layers_that_ask_for_counts_say_so() -> None:
    for kind in (SememeSoftmax, MixtureOfSememeSoftmaxes):
        for setting in ({"samples": 3}, {"bias_start": "log_frequency"}):
            with pytest.raises(ConfigError, match=r"needs counts; give counts= \(V,\) of the words"):
                kind(WIDTH, SENSES, **setting)
            kind(WIDTH, SENSES, len(SENSES), **setting)
