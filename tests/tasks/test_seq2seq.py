"""Models from texts to texts: batches, every output layer, searched texts, resuming bit by bit, bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sememekit.data.prepared import PreparedData
from sememekit.decoders import DECODERS
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.train import train
from sememekit.measure.rouge import RougeSettings, rouge
from sememekit.runs.build import build_task, graph_of
from sememekit.runs.plan import read_plan
from sememekit.runs.run import Run
from sememekit.search import BeamSettings
from sememekit.tasks.seq2seq import SequenceToSequence
from sememekit.training import EpochReport, Report
from sememekit.word_classes.file import write_clusters
from tests.small_pairs import EIGHT, PairPlace
from tests.training.resuming import assert_same_bits, last, numbers, stop_after


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> PairPlace:
    return PairPlace(tmp_path_factory.mktemp("pairs"))


def pairs_of(data: PreparedData, split: str = "train") -> list[tuple[Any, Any]]:
    examples = data.examples(split)
    return [(examples.text(index, 0), examples.text(index, 1)) for index in range(len(examples))]


SHAPES: list[dict[str, Any]] = [
    {},
    {"task__feeding": "output", "task__cell": "gru", "task__num_layers": 2},
    {"task__feeding": "context", "task__attention": "additive", "task__share_embedding": False, "encoder": "gru"},
    {"encoder": "bilstm", "encoder__injection": "cell"},
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_mixed_batch_is_its_pairs_one_by_one(place: PairPlace, shape: dict[str, Any]) -> None:
    """Losses, gradients and the texts that are found agree."""
    graph = {"graph__path": str(place.folder / "eight.graph")}
    task = place.model(name="eight", **shape, **graph)
    pairs = pairs_of(place.eight)
    together = task.loss(task.batch_of(pairs), ())
    together.nats.backward()
    gradients = {name: value.grad.clone() for name, value in task.named_parameters() if value.grad is not None}
    assert len(gradients) == len(dict(task.named_parameters()))
    task.zero_grad()
    losses = [task.loss(task.batch_of([pair]), ()) for pair in pairs]
    sum(loss.nats for loss in losses).backward()
    assert together.count == sum(loss.count for loss in losses) == sum(len(target) + 1 for _, target in pairs)
    assert float(together.nats.detach()) == pytest.approx(sum(float(loss.nats.detach()) for loss in losses), rel=1e-6)
    for name, value in task.named_parameters():
        torch.testing.assert_close(value.grad, gradients[name], rtol=1e-9, atol=1e-12, msg=name)
    search = BeamSettings(beam_size=3, num_best=2, max_length=6)
    sources = [source for source, _ in pairs]
    found = task.write(sources, search)
    alone = [task.write([source], search)[0] for source in sources]
    assert [[item.words for item in best] for best in found] == [[item.words for item in best] for best in alone]


def test_the_loss_is_that_of_a_model_that_reads_one_word_at_a_time(place: PairPlace) -> None:
    task = place.model(task__feeding="output")
    source, target = pairs_of(place.pairs)[0]
    memory, state = task._read(torch.from_numpy(source.astype(np.int64))[:, None], torch.tensor([len(source)]))
    nats, before = 0.0, task.vocabulary.id("<s>")
    for word in [*target.tolist(), task.vocabulary.id("</s>")]:
        log_probs, ids, state, _ = task._step(torch.tensor([[before]]), state, memory, len(task.vocabulary))
        nats, before = nats - float(log_probs[0, ids[0].tolist().index(word)].detach()), word
    assert float(task.loss(task.batch_of([(source, target)]), ()).nats.detach()) == pytest.approx(nats, rel=1e-6)


def test_input_dropout_thins_what_is_read_and_what_is_written(place: PairPlace) -> None:
    task = place.model(task__input_dropout=0.5, task__share_embedding=False)
    with torch.no_grad():
        for embedding in (task.source_embedding, task.embedding):
            embedding.weight.fill_(1.0)
    seen: dict[str, set[float]] = {}
    for name, module in (("source", task.encoder), ("target", task.writer)):
        module.register_forward_pre_hook(lambda _, inputs, name=name: seen.update({name: set(inputs[0].unique().tolist())}))
    batch = task.batch_of(pairs_of(place.pairs)[:8])
    task.train().loss(batch, ())
    assert seen == {"source": {0.0, 2.0}, "target": {0.0, 2.0}}
    task.eval().loss(batch, ())
    assert seen == {"source": {1.0}, "target": {1.0}}


def test_padding_is_never_scored(place: PairPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output layer sees a row for each word and each end, and no other."""
    task, seen = place.model(name="eight"), []
    original = task.decoder.nll
    monkeypatch.setattr(task.decoder, "nll", lambda hidden, target: seen.append(hidden.shape) or original(hidden, target))
    task.loss(task.batch_of(pairs_of(place.eight)), ())
    assert seen == [(sum(len(target.split()) + 1 for _, target in EIGHT), 6)]


@pytest.mark.parametrize("decoder", sorted(DECODERS))
def test_a_found_text_costs_what_rereading_it_says(place: PairPlace, decoder: str) -> None:
    task = place.model(decoder)
    for source, _ in pairs_of(place.pairs)[:3]:
        for found in task.write([source], BeamSettings(beam_size=3, num_best=3, min_length=2, max_length=4))[0]:
            read = task.teacher_forced(source, found.words)
            ends = float(task.loss(task.batch_of([(source, np.array(found.words))]), ()).nats.detach())
            assert found.nats == pytest.approx(ends if found.ended else float(read.nats.sum()), rel=1e-6)
            assert read.weights.shape == (len(found.words), len(source))
            assert found.attended == tuple(read.weights.argmax(-1).tolist())


WIDE_ENOUGH: dict[str, dict[str, Any]] = {"differentiated": {"cutoffs": [5], "widths": [16, 8]}}
"""Eight pairs cannot be told apart in vectors of one number."""


def learn(place: PairPlace, decoder: str, **changes: object) -> SequenceToSequence:
    """A model that has learned the eight pairs by heart."""
    settings = {"task__embedding_size": 24, "task__hidden_size": 24, "encoder__hidden_size": 12, "task__input_dropout": 0.0}
    table = place.table(decoder, name="eight", **settings, **changes)
    table["decoder"].update(WIDE_ENOUGH.get(decoder, {}))
    plan = read_plan(table, "test")
    task = build_task(plan, place.eight.vocabulary, graph_of(plan))
    assert isinstance(task, SequenceToSequence)
    task.begin_training(place.eight)
    batch = task.batch_of(pairs_of(place.eight))
    optimizer = torch.optim.Adam(task.parameters(), lr=0.02)
    task.train()
    for step in range(1, 400):
        optimizer.zero_grad()
        loss = task.loss(batch, ())
        mean = loss.nats / loss.count
        if step % 10 == 0 and float(mean.detach()) < 0.02:
            break
        mean.backward()
        torch.nn.utils.clip_grad_norm_(task.parameters(), 5.0)
        optimizer.step()
        task.after_step(step)
    return task.eval()


SLOW = {"adaptive", "class_hsm", "differentiated", "moc", "mos", "mos_sdlm", "tree_hsm"}
"""The others stand for them in everyday runs."""


@pytest.mark.parametrize(
    "decoder", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in sorted(DECODERS)]
)
def test_eight_pairs_are_learnt_by_heart(place: PairPlace, decoder: str) -> None:
    task = learn(place, decoder)
    found = task.write([source for source, _ in pairs_of(place.eight)])
    texts = [" ".join(task.vocabulary.decode(best[0].words)) for best in found]
    assert texts == [target for _, target in EIGHT]
    scores = rouge(texts, [[target] for _, target in EIGHT], RougeSettings(unit="character"))
    assert (scores["rouge1"], scores["rougeL"]) == (1.0, 1.0)


def test_training_goes_on_bit_by_bit(place: PairPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dropout = {"task__input_dropout": 0.2, "task__output_dropout": 0.2, "task__dropout": 0.2, "task__num_layers": 2}
    table = place.table("self_organized", "bilstm", task__feeding="output", **dropout)
    whole: list[Report] = []
    train(table, tmp_path / "whole", on_report=whole.append)
    with monkeypatch.context() as patch:
        stop_after(patch, 11)  # in the middle of the second epoch
        assert train(table, tmp_path / "parts").stopped
    rest: list[Report] = []
    train({}, tmp_path / "parts", resume=True, on_report=rest.append)
    assert_same_bits(last(tmp_path / "whole").weights, last(tmp_path / "parts").weights)
    assert_same_bits(last(tmp_path / "whole").trainer, last(tmp_path / "parts").trainer)
    assert numbers(whole, EpochReport)[-1:] == numbers(rest, EpochReport)[-1:]


def test_a_table_within_a_slot_is_given_again_in_part(place: PairPlace, tmp_path: Path) -> None:
    """A recipe gives one key: the run has all keys of ``task.search``, and the plan one."""
    table = place.table(schedule__epochs=1, task__search={"beam_size": 2})
    train(table, tmp_path / "run")
    assert "no_repeat" in Run.open(tmp_path / "run").plan.table()["task"]["search"]
    assert train(table, tmp_path / "run", resume=True).epochs == 1
    for other in ({"beam_size": 3}, {"beam_siz": 2}):
        with pytest.raises(ConfigError, match=r"--resume: the run in .* has task\.search="):
            train({"task": {"search": other}}, tmp_path / "run", resume=True)


def test_a_run_says_what_its_best_weights_were_chosen_by(place: PairPlace, tmp_path: Path) -> None:
    reports: list[Report] = []
    report = train(place.table(schedule__epochs=5), tmp_path / "run", on_report=reports.append)
    assert report.metric == "perplexity"
    loaded = Run.open(tmp_path / "run")
    assert loaded.plan.table()["task"]["checkpoint_by"] == "nll"
    metrics = loaded.task.evaluate(place.pairs, "valid")
    assert metrics["perplexity"] == pytest.approx(report.best_valid, rel=1e-5)
    assert metrics["tokens"] == sum(len(target) + 1 for _, target in pairs_of(place.pairs, "valid"))
    assert metrics["perplexity"] < loaded.task.unigram_baseline(place.pairs, "valid")["perplexity"]


def test_the_parts_of_the_loss_multiply(place: PairPlace) -> None:
    metrics = place.model("self_organized").evaluate(place.pairs, "valid")
    product = metrics["cluster_perplexity"] * metrics["in_cluster_perplexity"]
    assert metrics["perplexity"] == pytest.approx(product, rel=1e-9)


def test_learned_clusters_stay_as_they_were_given(place: PairPlace, tmp_path: Path) -> None:
    """Sec. 5.2 of Shen et al. 2017: clusters of another model are the fixed structure of this one."""
    vocabulary, path = place.pairs.vocabulary, tmp_path / "clusters.json"
    given = np.arange(len(vocabulary)) % 3
    write_clusters(path, vocabulary, given)
    table = place.table("self_organized", clusters__path=str(path))
    table["decoder"] |= {"start": "file", "update_every": 0}
    train(table, tmp_path / "run")
    task = Run.open(tmp_path / "run").task
    assert isinstance(task, SequenceToSequence)
    assert isinstance(task.decoder.clusters(), torch.Tensor)
    assert task.decoder.clusters().tolist() == given.tolist()


def test_unknown_words_can_be_forbidden(place: PairPlace) -> None:
    task = place.model()
    unknown = task.vocabulary.unknown_id
    assert unknown is not None
    with torch.no_grad():
        task.decoder.get_parameter("bias")[unknown] = 50.0
    source, _ = pairs_of(place.pairs)[0]
    assert set(task.write([source])[0][0].words) == {unknown}
    assert unknown not in task.write([source], BeamSettings(unknown="never"))[0][0].words


def test_sources_that_cannot_be_read(place: PairPlace) -> None:
    task = place.model()
    word = task.vocabulary.id("我")
    with pytest.raises(DataError, match=r"source 2: the source is empty"):
        task.write([np.array([word]), np.array([], dtype=np.int64)])
    with pytest.raises(DataError, match=r"source 1: 10,000 words, where a source has 1,000 at most; .*task\.read_words=1000"):
        task.write([np.full(10_000, word)])
    cut = place.model(task__read_words=4)
    assert len(cut.write([np.full(10_000, word)])[0][0].attended) > 0
    short = place.model(task__longest_source=5)
    with pytest.raises(DataError, match=r"pair \d+ of train: 8 words, where a source has 5 at most"):
        short.num_batches(place.pairs, 0)


def test_data_of_another_kind(place: PairPlace, tmp_path: Path) -> None:
    from tests.small_examples import ExamplePlace

    other = ExamplePlace(tmp_path)
    with pytest.raises(DataError, match=r"examples of premise and hypothesis, where pairs of source and target are needed"):
        train(place.table(data__path=str(other.pairs.folder)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_stream_of_words_has_no_marks(place: PairPlace, tmp_path: Path) -> None:
    from tests.small_run import Place

    with pytest.raises(ConfigError, match=r"no '<s>'.*preprocess gigaword"):
        train(place.table(data__path=str(Place(tmp_path).data.folder)), tmp_path / "run")
