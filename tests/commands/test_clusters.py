"""cluster-update and clusters: an E-step on a finished run, written whole; clusters shown, saved and used again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from sememekit.build import load_run
from sememekit.commands.cluster_update import cluster_update
from sememekit.commands.clusters import clusters
from sememekit.commands.evaluate import evaluate, evaluate_ppl
from sememekit.commands.train import train
from sememekit.decoders.self_organized import SelfOrganized
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.sememes.clusters import read_clusters
from sememekit.training import RunFolder
from tests.small_run import Place


@pytest.fixture(scope="session")
def organized(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clusters that were never assigned in training, so that there is something to move."""
    run = tmp_path_factory.mktemp("runs") / "organized"
    train(place.table("self_organized", decoder__update_every=1000, schedule__epochs=2), run)
    return run


@pytest.fixture
def copy(organized: Path, tmp_path: Path) -> Path:
    shutil.copytree(organized, tmp_path / "copy")
    return tmp_path / "copy"


def test_an_update_in_place_is_the_run_with_other_clusters(copy: Path) -> None:
    before = load_run(copy)
    pointer = RunFolder.open(copy).pointer()
    report = cluster_update(copy, passes=2)
    after = load_run(copy)
    assert report.before.perplexity == pytest.approx(
        report.before.cluster_perplexity * report.before.in_cluster_perplexity, rel=1e-6
    )
    assert evaluate(copy, split="valid").model_dump()["perplexity"] == pytest.approx(report.after.perplexity, rel=1e-6)
    assert report.tokens_read == 2 * (len(training_tokens(after)) - 1)
    moved = (before.task.decoder.clusters() != after.task.decoder.clusters()).double().mean().item()
    assert report.moved_words == pytest.approx(moved)
    assert moved > 0
    for name, value in before.task.named_parameters():
        assert torch.equal(value, dict(after.task.named_parameters())[name]), name
    folder = RunFolder.open(copy)
    assert report.new_checkpoint not in pointer.values()
    assert set(folder.pointer().values()) == {report.new_checkpoint}, "both pointed to the one snapshot"
    assert [entry.name for entry in (copy / "checkpoints").iterdir() if entry.is_dir()] == [report.new_checkpoint]
    assert folder.metrics()[-1]["kind"] == "ClusterUpdate"


def training_tokens(loaded: object) -> np.ndarray:
    from sememekit.text import PreparedData

    return PreparedData.open(Path(loaded.plan.data.path)).tokens("train")  # type: ignore[attr-defined]


def test_statistics_are_those_of_the_training_text(copy: Path) -> None:
    """q after one pass, token by token."""
    loaded = load_run(copy)
    decoder = loaded.task.decoder
    assert isinstance(decoder, SelfOrganized)
    expected = decoder.scores.double()
    counts = loaded.vocabulary.counts
    tokens = training_tokens(loaded)
    from sememekit.text.batching import evaluation_columns

    inputs, targets, mask = evaluation_columns(tokens, loaded.task.evaluation_batch_size)
    with torch.no_grad():
        hidden, _ = loaded.task.contexts(torch.from_numpy(inputs), loaded.task.encoder.start(inputs.shape[1]))
        first = (hidden @ decoder.projection.weight.T).relu().chunk(2, dim=-1)[0]
        bits = decoder.cluster_vectors(first).log_softmax(dim=-1).double() / np.log(2)
    for row in range(len(inputs)):
        for column in np.flatnonzero(mask[row]).tolist():
            word = int(targets[row, column])
            new = 1.0 / counts[word]
            expected[word] = (1 - new) * expected[word] + new * bits[row, column]
    cluster_update(copy)
    scores = load_run(copy).task.decoder.scores
    torch.testing.assert_close(scores.double(), expected, rtol=1e-4, atol=1e-4)


def test_perplexity_is_the_product_of_its_parts(organized: Path, softmax: Path) -> None:
    report = evaluate_ppl(organized, device="cpu")
    assert report.parts is not None
    assert report.perplexity == pytest.approx(report.parts["cluster"] * report.parts["in_cluster"], rel=1e-6)
    assert evaluate_ppl(softmax, device="cpu").parts is None


def test_a_copy_leaves_the_run_as_it_was(copy: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    report = cluster_update(copy, out=tmp_path / "second")
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before
    assert evaluate(tmp_path / "second", split="valid").model_dump()["perplexity"] == pytest.approx(
        report.after.perplexity, rel=1e-6
    )
    resumed = train({"schedule": {"epochs": 3}}, tmp_path / "second", resume=True)
    assert resumed.epochs == 3
    with pytest.raises(ConfigError, match="exists already; choose another --out"):
        cluster_update(copy, out=tmp_path / "second")


def test_a_killed_update_leaves_the_old_checkpoint(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = evaluate(copy, split="valid")

    def killed(*anything: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RunFolder, "_point", killed)
    with pytest.raises(KeyboardInterrupt):
        cluster_update(copy)
    monkeypatch.undo()
    assert evaluate(copy, split="valid") == before
    cluster_update(copy)
    assert evaluate(copy, split="valid") != before


def test_a_run_goes_on_after_an_update(copy: Path) -> None:
    cluster_update(copy)
    loaded = load_run(copy).task.decoder.clusters()
    train({"schedule": {"epochs": 3}}, copy, resume=True)
    assert torch.equal(load_run(copy, which="last").task.decoder.clusters(), loaded)


def test_what_has_no_clusters_is_told_so(softmax: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'softmax'.*learns no word clusters.*--decoder self_organized"):
        cluster_update(softmax)
    with pytest.raises(ConfigError, match=r"'softmax'.*does not divide words"):
        clusters(softmax)
    with pytest.raises(CheckpointError, match="does not exist"):
        clusters(tmp_path / "nowhere")


def test_clusters_are_shown_saved_and_used_again(place: Place, organized: Path, tmp_path: Path) -> None:
    report = clusters(organized, words=["苹果", "吃", "苹果"], save=tmp_path / "words.json")
    loaded = load_run(organized)
    cluster_of = loaded.task.decoder.clusters().numpy()
    for cluster in report.clusters:
        assert {cluster_of[loaded.vocabulary.id(word)] for word in cluster.words} == {cluster.number}
        assert cluster.size == int((cluster_of == cluster.number).sum()) == len(cluster.words)
        shares = loaded.vocabulary.counts[cluster_of == cluster.number].sum() / loaded.vocabulary.counts.sum()
        assert cluster.frequency == pytest.approx(shares)
    assert sorted(word for cluster in report.clusters for word in cluster.asked_for) == sorted(["苹果", "吃"])
    assert np.array_equal(read_clusters(tmp_path / "words.json", loaded.vocabulary), cluster_of)
    everything = clusters(organized, top=99)
    assert sum(cluster.size for cluster in everything.clusters) == everything.num_words
    assert [cluster.frequency for cluster in everything.clusters] == sorted(
        (cluster.frequency for cluster in everything.clusters), reverse=True
    )
    with pytest.raises(DataError, match="'nowhere'"):
        clusters(organized, words=["nowhere"])
    for decoder, own in (
        ("self_organized", {"decoder__update_every": 0, "decoder__start": "file"}),
        ("class_hsm", {"decoder__classes": "file"}),
    ):
        table = place.table(decoder, **own, schedule__epochs=1, clusters__path=str(tmp_path / "words.json"))
        train(table, tmp_path / decoder)
        again = clusters(tmp_path / decoder, top=99)
        assert sorted(sorted(cluster.words) for cluster in again.clusters) == sorted(
            sorted(cluster.words) for cluster in everything.clusters if cluster.size
        )


def test_metrics_tell_the_life_of_the_clusters(place: Place, tmp_path: Path) -> None:
    train(place.table("self_organized", schedule__epochs=2), tmp_path / "run")
    records = RunFolder.open(tmp_path / "run").metrics()
    changes = [record for record in records if record["kind"] == "ChangeReport"]
    assert [record["step"] for record in changes] == [1, 7, 14, 21, 28, 35, 42, 49, 56]
    epochs = [record for record in records if record["kind"] == "EpochReport"]
    for epoch in epochs:
        valid = epoch["valid"]
        assert valid["perplexity"] == pytest.approx(valid["cluster_perplexity"] * valid["in_cluster_perplexity"], rel=1e-6)
    assert json.dumps(changes)
