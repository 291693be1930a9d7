"""Word clusters of a trained run: shown, saved and used again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from sememekit.analysis.clusters import clusters
from sememekit.analysis.evaluate_ppl import evaluate_ppl
from sememekit.commands._program import app
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.jobs.cluster_update import cluster_update
from sememekit.jobs.train import train
from sememekit.runs.run import Run
from sememekit.training import RunFolder
from sememekit.word_classes.file import read_clusters
from tests.pages import check_page
from tests.small_pairs import PairPlace
from tests.small_run import Place


def test_what_has_no_clusters_is_told_so(softmax: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'softmax'.*learns no word clusters.*--decoder self_organized"):
        cluster_update(softmax)
    with pytest.raises(ConfigError, match=r"'softmax'.*does not divide words"):
        clusters(softmax)
    with pytest.raises(CheckpointError, match="does not exist"):
        clusters(tmp_path / "nowhere")


def test_clusters_have_a_page(organized: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["clusters", str(organized), "--html", str(tmp_path / "clusters.html")])
    assert done.exit_code == 0, done.stderr
    page = check_page((tmp_path / "clusters.html").read_text(encoding="utf-8"))
    assert all(" ".join(found.words) in page.text for found in clusters(organized).clusters)


def test_clusters_are_shown_saved_and_used_again(place: Place, organized: Path, tmp_path: Path) -> None:
    report = clusters(organized, words=["苹果", "吃", "苹果"], save=tmp_path / "words.json")
    loaded = Run.open(organized)
    cluster_of = loaded.task.decoder.clusters().numpy()
    for cluster in report.clusters:
        assert {cluster_of[loaded.vocabulary.id(word)] for word in cluster.words} == {cluster.number}
        assert cluster.size == int((cluster_of == cluster.number).sum()) == len(cluster.words)
        shares = loaded.vocabulary.counts[cluster_of == cluster.number].sum() / loaded.vocabulary.counts.sum()
        assert cluster.frequency == pytest.approx(shares)
    assert sorted(word for cluster in report.clusters for word in cluster.asked_for) == sorted(["苹果", "吃"])
    assert [cluster.number for cluster in report.clusters] == list(
        dict.fromkeys(cluster_of[loaded.vocabulary.id(word)] for word in ("苹果", "吃"))
    )
    sizes = np.bincount(cluster_of, minlength=loaded.task.decoder.num_clusters)
    found = report.num_words, report.num_clusters, report.empty_clusters, report.smallest, report.largest
    filled = sizes[sizes > 0]
    assert found == (len(loaded.vocabulary), len(sizes), len(sizes) - len(filled), min(filled), max(filled))
    assert (report.saved, clusters(organized).saved) == (str(tmp_path / "words.json"), "")
    [most, *_] = clusters(organized, top=1, members=1).clusters
    own = [word for word, number in zip(loaded.vocabulary.tokens, cluster_of.tolist(), strict=True) if number == most.number]
    assert (most.words, most.size, most.asked_for) == ((own[0],), len(own), ())
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


def test_perplexity_is_the_product_of_its_parts(organized: Path, softmax: Path) -> None:
    report = evaluate_ppl(organized, device="cpu")
    assert report.parts is not None
    assert report.perplexity == pytest.approx(report.parts["cluster"] * report.parts["in_cluster"], rel=1e-6)
    assert evaluate_ppl(softmax, device="cpu").parts is None


def test_clusters_of_a_headline_run(tmp_path: Path) -> None:
    """Clusters are shown, assigned anew by the words of targets and their ends, and trained on."""
    pairs = PairPlace(tmp_path)
    train(pairs.table("self_organized", schedule__epochs=2, decoder__update_every=1000), tmp_path / "run")
    shown = clusters(tmp_path / "run", words=["</s>", "吃"])
    assert {word for cluster in shown.clusters for word in cluster.asked_for} == {"</s>", "吃"}
    report = cluster_update(tmp_path / "run", out=tmp_path / "new", epochs=1)
    examples = pairs.pairs.examples("train")
    assert report.tokens_read == sum(len(examples.text(number, 1)) + 1 for number in range(len(examples)))
    assert report.objective_after >= report.objective_before or report.orphaned_words
    assert report.before.perplexity == pytest.approx(evaluate_ppl(tmp_path / "run", split="valid").perplexity)
    assert report.trained is not None
    assert report.trained.perplexity == pytest.approx(evaluate_ppl(tmp_path / "new", split="valid").perplexity)
