"""Natural language inference and classification: features, batches, vectors, and resuming bit by bit."""

from __future__ import annotations

import json
import lzma
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sememekit.data.batching import bucketed_batches
from sememekit.data.examples import Examples
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.jobs.train import train
from sememekit.runs.build import build_task, labels_of
from sememekit.runs.plan import read_plan
from sememekit.runs.run import Run
from sememekit.tasks.classifier import TextClassifier
from sememekit.training import EpochReport, Report
from tests.small_examples import ExamplePlace, write_vectors
from tests.training.resuming import assert_same_bits, last, numbers, stop_after


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> ExamplePlace:
    return ExamplePlace(tmp_path_factory.mktemp("examples"))


def model(place: ExamplePlace, task: str = "nli", encoder: str = "bilstm", **changes: object) -> TextClassifier:
    data = place.pairs if task == "nli" else place.reviews
    plan = read_plan(place.table(task, encoder, **changes), "test")
    built = build_task(plan, data.vocabulary, None, labels=labels_of(data.signature))
    assert isinstance(built, TextClassifier)
    built.begin_training(data)
    return built


def test_classifier_dropout_thins_the_features_and_every_layer_above(place: ExamplePlace) -> None:
    task = model(place, task__classifier_dropout=0.5)
    zeros: list[float] = []
    for layer in (*task.hidden, task.choice):
        layer.register_forward_pre_hook(lambda _, inputs: zeros.append(float((inputs[0] == 0).double().mean())))
    batch = next(task.batches(place.pairs, 5, 0))
    task.train().loss(batch, ())
    assert len(zeros) == 1 + len(task.hidden) >= 2
    assert all(0.25 < share < 0.75 for share in zeros), zeros
    zeros.clear()
    task.eval().loss(batch, ())
    assert zeros == [0.0] * (1 + len(task.hidden))


def test_the_loss_is_that_of_the_equations(place: ExamplePlace) -> None:
    """A float64 twin: the vectors of both texts one by one, features, two tanh layers, a softmax; values and gradients."""
    task = model(place).double()
    batch = next(task.batches(place.pairs, 5, 0))
    loss = task.loss(batch, ()).nats
    loss.backward()
    gradient = task.encoder.get_parameter("back.stack.0.weight_ih_l0").grad
    assert gradient is not None
    gradient = gradient.clone()
    task.zero_grad()
    nats = torch.zeros((), dtype=torch.float64)
    size = len(batch.labels)
    for example in range(size):
        u, v = (one_text(task, batch.tokens[: batch.lengths[column], column]) for column in (example, size + example))
        x = torch.cat([u, v, (u - v).abs(), u * v])
        for layer in task.hidden:
            x = (layer.weight @ x + layer.bias).tanh()
        logits = task.choice.weight @ x + task.choice.bias
        nats = nats - (logits[batch.labels[example]] - logits.exp().sum().log())
    nats.backward()
    assert float(loss.detach()) == pytest.approx(float(nats.detach()), rel=1e-5)
    own = task.encoder.get_parameter("back.stack.0.weight_ih_l0").grad
    assert own is not None
    torch.testing.assert_close(gradient, own, rtol=1e-5, atol=1e-7)


def one_text(task: TextClassifier, tokens: torch.Tensor) -> torch.Tensor:
    """The last output of the forward LSTM beside the backward LSTM's, by torch's own bidirectional order of reading."""
    x = task.embedding(tokens)[:, None]
    forth = task.encoder.get_submodule("forth.stack.0")(x)[0][-1, 0]
    back = task.encoder.get_submodule("back.stack.0")(x.flip(0))[0][-1, 0]
    return torch.cat([forth, back])


@pytest.mark.parametrize("pooling", ["last", "max"])
@pytest.mark.parametrize("encoder", ["lstm", "gru", "bilstm", "bigru"])
def test_a_mixed_batch_is_its_examples_one_by_one(place: ExamplePlace, encoder: str, pooling: str) -> None:
    task = model(place, encoder=encoder, task__pooling=pooling).eval()
    examples = place.pairs.examples("train")
    texts = [(examples.text(index, 0), examples.text(index, 1)) for index in range(12)]
    together = task.probabilities(texts)
    apart = np.concatenate([task.probabilities([pair]) for pair in texts])
    np.testing.assert_allclose(together, apart, rtol=1e-5)
    np.testing.assert_allclose(together.sum(1), 1, rtol=1e-12)
    assert np.ptp(together[:, 0]) > 0


def test_marks_stand_around_every_text(place: ExamplePlace) -> None:
    task = model(place)
    batch = task.batch_of([([3, 4, 5], [6])], np.array([1]))
    start, stop = place.pairs.vocabulary.id("<s>"), place.pairs.vocabulary.id("</s>")
    assert batch.tokens[:, 0].tolist() == [start, 3, 4, 5, stop]
    assert batch.tokens[:3, 1].tolist() == [start, 6, stop]
    assert batch.lengths.tolist() == [5, 3]


def test_long_texts_are_cut_where_asked(place: ExamplePlace) -> None:
    task = model(place, task__max_length=2)
    assert task.batch_of([([3, 4, 5], [6])], np.array([1])).lengths.tolist() == [4, 3]


def test_a_text_that_holds_a_batch_up_is_named(place: ExamplePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = np.array([[9, 4], [8, 1001], [7, 3]])
    monkeypatch.setattr(Examples, "lengths", lambda self: lengths)
    (told,) = model(place).remarks(place.pairs)
    assert told.startswith("example 2 of train has 1,001 words, where the usual one has 9: ")
    assert told.endswith("--set task.max_length=1000")
    assert model(place, task__max_length=50).remarks(place.pairs) == []
    lengths[1, 1] = 1000
    assert model(place).remarks(place.pairs) == []


def test_every_word_of_the_vocabulary_is_read_where_it_stands(place: ExamplePlace) -> None:
    task = model(place, "classification")
    words = np.arange(len(task.vocabulary))
    rows = task.batch_of([[words]], np.array([1])).tokens[1:-1, 0].tolist()
    assert rows == [task.word_read(int(word)) for word in words[task.places_read(words)]] == words.tolist()


def test_an_epoch_has_every_example_once_in_an_order_of_its_own(place: ExamplePlace) -> None:
    task = model(place)
    one, same, other = ([batch.labels.tolist() for batch in task.batches(place.pairs, order, 0)] for order in (1, 1, 2))
    assert one == same != other
    assert len(one) == task.num_batches(place.pairs, 1) == 8
    assert sorted(label for batch in one for label in batch) == sorted(place.pairs.examples("train").labels.tolist())
    assert [batch.labels.tolist() for batch in task.batches(place.pairs, 1, 3)] == one[3:]


def test_buckets_pad_little_and_lose_nothing() -> None:
    lengths = np.random.default_rng(0).integers(1, 60, size=1003)
    batches = bucketed_batches(lengths, 10, 4)
    assert sorted(np.concatenate(batches).tolist()) == list(range(1003))
    assert len(batches) == 101
    padded = sum(int(lengths[batch].max()) * len(batch) for batch in batches)
    assert padded < 1.1 * lengths.sum(), "in random batches of ten it would be 1.8 times"


def test_evaluation_is_the_mean_of_its_examples(place: ExamplePlace) -> None:
    task = model(place)
    examples = place.pairs.examples("valid")
    p = task.probabilities([(examples.text(index, 0), examples.text(index, 1)) for index in range(len(examples))])
    accuracy, nats = task.evaluate_labels(place.pairs, "valid")
    assert accuracy.accuracy == np.mean(p.argmax(1) == examples.labels)
    assert nats == pytest.approx(-np.log(p[np.arange(len(p)), examples.labels]).sum(), rel=1e-6)
    assert task.evaluate(place.pairs, "valid")["accuracy"] == accuracy.accuracy
    assert task.training, "evaluation leaves the mode as it was"
    assert 0 < task.unigram_baseline(place.pairs, "valid")["accuracy"] < 1


@pytest.mark.parametrize("tune", [False, True])
def test_vectors_are_taken_from_the_file(place: ExamplePlace, tmp_path: Path, tune: bool) -> None:
    vocabulary = place.pairs.vocabulary
    file = write_vectors(tmp_path / "v.txt", ["man", "sleeps", "elsewhere", "rain"])
    task = model(place, task__vectors=str(file), task__tune_vectors=tune)
    wanted = {line.split(" ")[0]: [float(x) for x in line.split(" ")[1:]] for line in file.read_text().splitlines()}
    for word in ("man", "sleeps", "rain"):
        assert task.embedding.weight[vocabulary.id(word)].tolist() == pytest.approx(wanted[word], rel=1e-6)
    assert task.embedding.weight.requires_grad == tune
    outside = [index for index, word in enumerate(vocabulary.tokens) if word not in wanted]
    assert float(task.embedding.weight.detach()[outside].std()) == pytest.approx(1.15, rel=0.3), (
        "drawn as widely as the file's numbers"
    )


def test_words_without_a_vector(place: ExamplePlace, tmp_path: Path) -> None:
    vocabulary = place.pairs.vocabulary
    file = str(write_vectors(tmp_path / "v.txt", ["man", "sleeps"]))
    text = vocabulary.encode(["man", "runs", "sleeps"])
    tasks = {outside: model(place, task__vectors=file, task__outside=outside) for outside in ("random", "unknown", "drop")}
    rows = {outside: task.batch_of([(text, text)], np.array([0])).tokens[:, 0] for outside, task in tasks.items()}
    words = {outside: vocabulary.decode(row.tolist()) for outside, row in rows.items()}
    assert words["random"][1:-1] == ["man", "runs", "sleeps"]
    assert words["unknown"][1:-1] == ["man", "<unk>", "sleeps"]
    assert words["drop"][1:-1] == ["man", "sleeps"]
    for task in tasks.values():
        assert [task.word_read(mark) for mark in task._marks] == list(task._marks), "a mark needs no vector"


@pytest.mark.parametrize("outside", ["random", "unknown", "drop"])
def test_it_is_told_how_much_of_the_text_has_a_vector(place: ExamplePlace, tmp_path: Path, outside: str) -> None:
    from sememekit.analysis.evaluate import evaluate

    file = write_vectors(tmp_path / "v.txt", ["man", "sleeps", "rain", "elsewhere"])
    said: list[str] = []
    table = place.table(task__vectors=str(file), task__outside=outside, schedule__epochs=1)
    report = train(table, tmp_path / "run", on_remark=said.append)
    for split, found in (
        ("train", report.vectors),
        ("test", Run.open(tmp_path / "run").task.vector_coverage(place.pairs, "test")),
    ):
        ids = place.pairs.tokens(split)
        words = [word for word in place.pairs.vocabulary.decode(ids.tolist()) if word not in ("<s>", "</s>")]
        assert found is not None
        assert (found.tokens, found.words, found.outside) == (len(words), len(set(words)), outside)
        assert found.tokens_with_vector == sum(word in ("man", "sleeps", "rain") for word in words)
        assert found.words_with_vector == len({"man", "sleeps", "rain"} & set(words))
        assert 0 < found.tokens_with_vector < found.tokens
    assert said == [f"vectors: {report.vectors.sentence()}"]
    assert evaluate(tmp_path / "run").vectors.tokens_with_vector == found.tokens_with_vector
    kept = [record for record in metrics_of(tmp_path / "run") if record["kind"] == "VectorCoverage"]
    assert kept == [{"kind": "VectorCoverage", "epoch": 1, "step": 0, **report.vectors.model_dump(mode="json")}]


def metrics_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def test_a_model_in_double_precision_has_a_loss_in_double_precision(place: ExamplePlace) -> None:
    task = model(place).double()
    assert task.loss(next(task.batches(place.pairs, 5, 0)), ()).nats.dtype == torch.float64


@pytest.mark.parametrize("task", ["nli", "classification"])
@pytest.mark.parametrize(("key", "value"), [("classifier_layers", -1), ("classifier_size", 0), ("max_length", -1)])
def test_bounds_hold_in_every_task(place: ExamplePlace, task: str, key: str, value: int) -> None:
    with pytest.raises(
        ConfigError, match=rf"\[task\] of task '{task}': key '{key}': input should be greater than.* given {value}"
    ):
        read_plan(place.table(task, **{f"task__{key}": value}), "test")


def test_a_text_that_is_dropped_whole_is_its_marks(place: ExamplePlace, tmp_path: Path) -> None:
    file = str(write_vectors(tmp_path / "v.txt", ["man"]))
    task = model(place, task__vectors=file, task__outside="drop")
    ids = place.pairs.vocabulary.encode(["runs"])
    assert np.isfinite(task.probabilities([(ids, ids)])).all()


@pytest.mark.parametrize(
    ("content", "pattern"),
    [
        ("man 1 2 3\n", r"vectors of 3 numbers, where task\.embedding_size is 5; add --set task\.embedding_size=3"),
        ("man 1 2 3 4 5\nrain 1 2 3 4\n", r"v\.txt:2: "),
        ("man 1 2 3 4 5\nrain 1 2 3 4 5 6\n", r"v\.txt:2: "),
        ("man 1 2 3 4 x\n", r"v\.txt:1: "),
        ("man 1 2 3 4 nan\n", r"v\.txt:1: "),
        ("Mann 1 2 3 4 5\n", r"has none of the \d+ words of the vocabulary"),
        ("", r"v\.txt: holds no vectors"),
    ],
)
def test_vectors_that_cannot_be_used(place: ExamplePlace, tmp_path: Path, content: str, pattern: str) -> None:
    (tmp_path / "v.txt").write_text(content)
    with pytest.raises(DataError, match=pattern):
        model(place, task__vectors=str(tmp_path / "v.txt"))


def test_a_header_repeated_words_and_xz(place: ExamplePlace, tmp_path: Path) -> None:
    text = "2 5\nman 1 2 3 4 5\nman 9 9 9 9 9\n"
    (tmp_path / "v.txt.xz").write_bytes(lzma.compress(text.encode()))
    task = model(place, task__vectors=str(tmp_path / "v.txt.xz"))
    assert task.embedding.weight[place.pairs.vocabulary.id("man")].tolist() == [1, 2, 3, 4, 5]


def test_a_truncated_archive_trains_nothing(place: ExamplePlace, tmp_path: Path) -> None:
    packed = lzma.compress(write_vectors(tmp_path / "v.txt", [f"w{n}" for n in range(999)]).read_bytes())
    (tmp_path / "cut.xz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match=r"cut\.xz.*after line \d+.*fetch it again"):
        train(place.table(task__vectors=str(tmp_path / "cut.xz")), tmp_path / "run")
    with pytest.raises(DataError, match=r"absent\.txt: no such file; .*--vectors FILE"):
        train(place.table(task__vectors=str(tmp_path / "absent.txt")), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_frozen_vectors_stay_and_a_run_needs_no_file_afterwards(place: ExamplePlace, tmp_path: Path) -> None:
    file = write_vectors(tmp_path / "v.txt", ["man", "rain", "sleeps"])
    train(place.table(task__vectors=str(file), task__outside="drop"), tmp_path / "run")
    before = model(place, task__vectors=str(file)).embedding.weight.detach().clone()
    file.unlink()
    task = Run.open(tmp_path / "run", device="cpu").task
    assert isinstance(task, TextClassifier)
    assert torch.equal(task.embedding.weight, before)
    ids = place.pairs.vocabulary.encode(["man", "runs"])
    assert task.batch_of([(ids, ids)], np.array([0])).lengths.tolist() == [3, 3], "what was dropped in training is dropped"


def test_a_stopped_run_goes_on_to_the_same_bits(place: ExamplePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = place.table(encoder="bigru", task__input_dropout=0.3, task__classifier_dropout=0.2, schedule__epochs=3, run__seed=4)
    straight: list[Report] = []
    train(table, tmp_path / "straight", on_report=straight.append)
    with monkeypatch.context() as patch:
        stop_after(patch, 11)  # in the middle of the second epoch
        assert train(table, tmp_path / "halted").stopped
    resumed: list[Report] = []
    train({}, tmp_path / "halted", resume=True, on_report=resumed.append)
    assert numbers(resumed, EpochReport) == numbers(straight, EpochReport)[1:]
    one, other = last(tmp_path / "straight"), last(tmp_path / "halted")
    assert_same_bits(one.weights, other.weights)
    assert_same_bits(one.trainer["progress"], other.trainer["progress"])


def test_the_schedule_of_the_paper(place: ExamplePlace, tmp_path: Path) -> None:
    """x 0.99 an epoch, / 5 where validation did not rise."""
    reports: list[Report] = []
    train(place.table(schedule__epochs=6), tmp_path / "run", on_report=reports.append)
    epochs = [report for report in reports if isinstance(report, EpochReport)]
    rate = 0.2
    for report in epochs:
        assert report.rate == pytest.approx(rate, rel=1e-12)
        rate *= 0.99 * (0.2 if report.rate_cut else 1.0)
    assert {report.rate_cut for report in epochs} == {True, False}
    values = [report.valid["accuracy"] for report in epochs]
    for index, report in enumerate(epochs):
        assert report.rate_cut == (index > 0 and values[index] <= max(values[:index]))


def test_it_learns_what_follows_from_the_words(place: ExamplePlace, tmp_path: Path) -> None:
    own: dict[str, Any] = {
        "optimizer__name": "adam",
        "optimizer__learning_rate": 0.02,
        "schedule__epochs": 8,
        "schedule__factor": 1.0,
    }
    report = train(place.table("classification", "lstm", **own), tmp_path / "run")
    assert report.best_valid == 1.0


def test_parts_that_do_not_fit(place: ExamplePlace, tmp_path: Path) -> None:
    table = place.table()
    with pytest.raises(ConfigError, match=r"task 'nli' predicts labels, not words; leave the decoder out"):
        read_plan({**table, "decoder": {"name": "sdlm"}}, "test")
    with pytest.raises(DataError, match=r"reviews: has 1 texts an example .*this model takes 2.*--task classification"):
        train({**place.table("classification"), "task": table["task"]}, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    stream = place.folder / "stream"
    from sememekit.jobs.preprocess import preprocess

    (place.folder / "text.txt").write_text("a b c\n" * 40)
    preprocess("plain", place.folder / "text.txt", stream)
    with pytest.raises(ConfigError, match=r"needs data with two labels or more, and these have 0; .*preprocess snli"):
        train({**table, "data": {"path": str(stream)}}, tmp_path / "run")


def test_a_run_does_not_go_on_with_other_labels(place: ExamplePlace, tmp_path: Path) -> None:
    import shutil

    from sememekit.data.prepared import PreparedData
    from sememekit.data.signature import write_signature

    train(place.table("classification", "lstm"), tmp_path / "run")
    shutil.copytree(place.reviews.folder, tmp_path / "data")
    signature = place.reviews.signature
    assert signature.examples is not None
    changed = signature.examples.splits["train"].model_copy(update={"sha256": "0" * 64})
    examples = signature.examples.model_copy(update={"splits": {**signature.examples.splits, "train": changed}})
    write_signature(tmp_path / "data" / "signature.json", signature.model_copy(update={"examples": examples}))
    assert PreparedData.open(tmp_path / "data").signature != signature
    with pytest.raises(CheckpointError, match="begun with other examples in train"):
        train({"data": {"path": str(tmp_path / "data")}}, tmp_path / "run", resume=True)


def test_the_loss_of_an_untrained_model_is_a_guess(place: ExamplePlace) -> None:
    task = model(place)
    _, nats = task.evaluate_labels(place.pairs, "test")
    assert nats / 20 == pytest.approx(math.log(3), rel=0.2)


def test_the_page_of_a_run_shows_its_accuracy(place: ExamplePlace, tmp_path: Path, real_charts: None) -> None:
    train(place.table(), tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "nli, encoder bilstm; 2 epochs" in page
    assert "validation accuracy" in page
