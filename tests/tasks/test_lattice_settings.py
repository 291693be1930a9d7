"""Settings of lattice models: what probabilities sum to, how vectors start, what falls with a run, what has no effect."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from sememekit.config import unread
from sememekit.errors import ConfigError
from sememekit.layers.lattice import log_marginal
from sememekit.runs.build import build_task
from sememekit.runs.plan import read_plan
from sememekit.tasks.lattice.batch import length_remarks, limit_places
from sememekit.tasks.lattice.model import Lattice
from sememekit.tasks.lattice.settings import LONG, LatticeSettings
from sememekit.text.vocabulary import Vocabulary
from tests.tasks.lattice_twin import Twin
from tests.tasks.test_lattice import RULES, SENTENCES, VOCABULARY, gradients, ids, model


def total_probability(task: Lattice, most: int) -> float:
    """Return the probability of all sentences of up to ``most`` words."""
    words = [word for word in range(len(task.vocabulary)) if word != task.end]
    total = 0.0
    for length in range(most + 1):
        texts = [np.array([*chosen, task.end]) for chosen in itertools.product(words, repeat=length)]
        for first in range(0, len(texts), 400):
            total += float(task.lattices(texts[first : first + 400]).log_probabilities().exp().sum())
    return total


def ending_often(rule: str, shape: str, **more: object) -> Lattice:
    """A model whose sentences are short, so that few strings have nearly all of its probability."""
    task = model(rule, shape, **more).eval()
    entries = task.entries
    closing = [chunk for chunk in range(len(entries.chunks)) if task.end in entries.chunks.tokens(chunk)]
    with torch.no_grad():
        for chunk in closing:
            task.decoder.bias[entries.rows[chunk]] += 6.0
        if task.sub_model is not None:
            task.sub_model.bias[task.end] += 9.0
    return task


@pytest.mark.parametrize("shape", ["L=2", "E=2", "L=3, E=2"])
@pytest.mark.parametrize("rule", RULES)
def test_the_probabilities_of_all_sentences_sum_to_one_whatever_the_rule(rule: str, shape: str) -> None:
    task = ending_often(rule, shape)
    assert task.sums_to_one
    sums = [total_probability(task, most) for most in (3, 4)]
    assert sums[0] < sums[1] <= 1 + 1e-10
    assert sums[1] > 0.98
    assert "approximate" not in task.marginal


@pytest.mark.parametrize("marks", ["proper", "released"])
def test_only_the_released_marks_of_chunks_lose_a_part(marks: str) -> None:
    """The edges out of the start sum to one, or to less with the released marks."""
    task = model("tree", "L=2", sub_marks=marks).eval()
    total = 0.0
    for words in [(one,) for one in range(len(VOCABULARY))] + list(itertools.product(range(len(VOCABULARY)), repeat=2)):
        if task.end not in words[:-1]:
            sentence = np.array(words if words[-1] == task.end else (*words, task.end))
            total += float(task.lattices([sentence]).scores[0, len(words) - 1, len(words) - 1].exp().sum())
    assert task.sums_to_one == (marks == "proper")
    assert ("below one" in task.marginal) == (marks == "released")
    if marks == "proper":
        assert total == pytest.approx(1.0, abs=1e-10)
    else:
        assert total < 0.99


def test_the_start_of_the_logits_does_not_depend_on_the_size_of_the_vectors() -> None:
    words = Vocabulary.from_counts({f"w{number}": 1 for number in range(600)} | {"<eos>": 5})
    spreads = []
    for size in (24, 96, 384):
        task = {"name": "lattice", "longest_chunk": 1, "sub_model": False, "composition_size": 0, "embedding_size": size}
        table = {"task": task, "encoder": {"name": "lattice_lstm", "hidden_size": 64}}
        made = build_task(read_plan(table, "case"), words, None)
        assert isinstance(made, Lattice)
        with torch.no_grad():
            hidden = torch.randn(300, 64) * 0.1
            spreads.append(float((torch.tanh(made.output(hidden)) @ made.embedding.weight.T).std()))
    assert max(spreads) / min(spreads) < 1.3
    assert LatticeSettings(spread=0.1).start_spread == 0.1


def test_three_copies_have_the_mean_of_three_in_double_precision() -> None:
    task = model("marginal", "L=2", copies=3)
    twin = Twin(task)
    expected = twin.log_probability(ids("a b c a b").tolist()).detach()
    found = task.lattices([ids("a b c a b")]).log_probabilities()[0]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_the_temperature_falls_in_proportion_to_the_run_or_as_released() -> None:
    task = model("gumbel_tree", "L=2", temperature=5.0, temperature_share=0.5)
    assert task.temperature == 5.0
    task.after_step(1)
    with pytest.raises(ConfigError, match=r"expect_updates.*temperature_every=100"):
        _ = task.temperature
    task.expect_updates(626)
    seen = []
    for step in range(2, 627):
        task.after_step(step)
        seen.append(task.temperature)
    assert seen == sorted(seen, reverse=True)
    assert seen[155] == pytest.approx((5.0 * 0.25) ** 0.5, rel=0.02), "half-way to the floor after a quarter of the run"
    assert seen[311] == pytest.approx(0.25)
    released = model("gumbel_tree", "L=2", temperature=5.0, temperature_every=100)
    released.updates += 626
    assert released.temperature == pytest.approx(5 * 0.99**6)


def test_noise_comes_from_a_generator_that_is_given() -> None:
    task = model("gumbel", "L=3, E=2").train()
    batch = task.batch_of([ids(sentence) for sentence in SENTENCES])
    before = torch.get_rng_state()
    found = [
        log_marginal(task.edge_scores(batch, generator=torch.Generator().manual_seed(seed)), batch.lengths)
        for seed in (1, 1, 2)
    ]
    assert torch.equal(torch.get_rng_state(), before), "nothing was drawn from torch's own"
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_dropout_inside_chunks_draws_once_for_both_passes_and_is_gone_in_evaluation() -> None:
    task = model("marginal", "L=3, E=2", inner_dropout=0.5, inner_layers=2)
    one_pass = model("marginal", "L=3, E=2", inner_dropout=0.5, inner_layers=2, posterior_gradient=True)
    batch = task.batch_of([ids(sentence) for sentence in SENTENCES])
    torch.manual_seed(4)
    two_passes = task.loss(batch, ()).nats
    torch.manual_seed(4)
    torch.testing.assert_close(two_passes, one_pass.loss(batch, ()).nats, rtol=0, atol=1e-10)
    assert not torch.equal(two_passes, task.loss(batch, ()).nats), "other masks"
    task.eval()
    assert torch.equal(task.loss(batch, ()).nats, task.loss(batch, ()).nats)


def test_a_loss_per_sentence_is_divided_by_sentences() -> None:
    task = model("marginal", "L=2", loss_per="sentence")
    loss = task.loss(task.batch_of([ids(sentence) for sentence in SENTENCES]), ())
    assert (loss.divisor, loss.count) == (len(SENTENCES), sum(len(ids(sentence)) for sentence in SENTENCES))
    assert model("marginal", "L=2").loss(task.batch_of([ids("a")]), ()).divisor is None


def test_models_of_the_plain_settings_have_the_weights_that_they_always_had() -> None:
    """Run folders of before there were layers, gates, tables and marks inside chunks open as they are."""
    names = set(model("tree", "L=3, E=2").state_dict())
    inside = {"forward_input", "backward_input"}
    composition = {f"composition.{name}.{part}" for name in inside for part in ("weight", "bias")}
    composition |= {"composition.forward_recurrent.weight", "composition.backward_recurrent.weight"}
    sub = {f"sub_model.{name}.{part}" for name in ("begin", "output", "input", "end") for part in ("weight", "bias")}
    sub |= {"sub_model.recurrent.weight", "sub_model.bias"}
    assert {name for name in names if name.startswith("composition")} == composition
    assert {name for name in names if name.startswith("sub_model")} == sub
    assert "token_embedding.weight" not in names


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"longest_chunk": 1, "num_chunks": 40}, "num_chunks"),
        ({"sub_model": False, "sub_size": 7}, "sub_size"),
        ({"sub_model": False, "sub_marks": "released"}, "sub_marks"),
        ({"state": "direct", "posterior_gradient": True}, "posterior_gradient"),
        ({"temperature": 3.0}, "temperature"),
        ({"state": "gumbel", "temperature_every": 9, "temperature_share": 0.1}, "temperature_share"),
        ({"state": "gumbel", "temperature_decay": 0.9}, "temperature_decay"),
    ],
)
def test_a_setting_that_nothing_reads_is_remarked(given: dict[str, object], word: str) -> None:
    found = unread(LatticeSettings.model_validate(given), "task")
    assert len(found) == 1
    assert found[0].startswith(f"task.{word}=")
    assert " changes nothing: " in found[0]


def test_settings_that_are_read_are_not_remarked() -> None:
    for state in RULES:
        annealed = {"temperature": 4.0, "temperature_share": 0.3} if "gumbel" in state else {}
        assert unread(LatticeSettings.model_validate({"state": state, "sub_size": 9, **annealed}), "task") == []
    assert unread(LatticeSettings(longest_chunk=1, sub_model=False, composition_size=0), "task") == []


def test_a_batch_has_no_more_places_than_there_is_room_for() -> None:
    lengths = np.array([20_000, 900, 30, 20, 10, 10, 9])
    cut = list(limit_places([np.arange(4), np.arange(4, 7)], lengths, 1_800))
    assert [chosen.tolist() for chosen in cut] == [[0], [1, 2], [3], [4, 5, 6]]
    assert LatticeSettings().max_length == LONG


def test_gradients_reach_what_released_models_have_more() -> None:
    task = model("gumbel_tree", "as released", inner_dropout=0.2)
    nats = task.loss(task.batch_of([ids(sentence) for sentence in SENTENCES]), ()).nats
    named = dict(task.named_parameters())
    assert {"token_embedding.weight", "sub_model.start.weight", "sub_model.above.0.recurrent.weight"} <= set(named)
    for name, grad in zip(named, gradients(nats, task), strict=True):
        assert (grad != 0).any(), name


@pytest.mark.parametrize(("limit", "most"), [(5, 5), (0, LONG)])
def test_a_sentence_of_the_greatest_length_is_not_too_long(limit: int, most: int) -> None:
    """Lengths count the end mark."""
    assert length_remarks(np.array([3, most + 1]), limit) == []
    (remark,) = length_remarks(np.array([most + 1, most + 2]), limit)
    assert remark.startswith(f"1 of 2 training sentences have more than {'task.max_length=' if limit else ''}{most} tokens")


def test_no_chunk_ends_behind_its_sentence() -> None:
    found = model("marginal", "L=2").eval().lattices([ids("a b c a b"), ids("a")])
    assert (found.chunks[0, :, 0] >= 0).all()
    assert (found.chunks[1, 2:] == -1).all()


def test_a_temperature_is_asked_for_by_annealed_rules_in_training_alone() -> None:
    """The temperature needs the number of updates of the run, which a user's own loop may not know."""
    for rule, training in (("tree", True), ("tree", False), ("gumbel", False)):
        task = model(rule, "L=2").train(training)
        task.updates.fill_(3)
        assert torch.isfinite(task.loss(task.batch_of([ids("a b")]), ()).nats)
    with pytest.raises(ConfigError, match=r"which is not known: call task\.expect_updates"):
        task.train().loss(task.batch_of([ids("a b")]), ())


def test_what_is_made_of_tokens_is_as_wide_as_the_chunk_unless_its_size_is_given() -> None:
    sizes = {size: LatticeSettings(embedding_size=size) for size in (7, 8)}
    assert {size: one.composed_size for size, one in sizes.items()} == {7: 6, 8: 8}
    assert LatticeSettings(embedding_size=8, composition_size=2).composed_size == 2
    assert LatticeSettings(embedding_size=8, state="segmental").composed_size == 0


def test_a_checkpoint_holds_weights_and_the_number_of_updates() -> None:
    task = model("tree", "L=3, E=2")
    shared = {name for name, _ in task.named_parameters(remove_duplicate=False)}
    assert set(task.state_dict()) - shared == {"updates"}, "what is made of the settings and the words is made again"
