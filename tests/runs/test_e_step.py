"""The E-step of cluster-update: statistics, Eq. (7) and Algorithm 1 against numpy."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from sememekit.commands._program import app
from sememekit.data.batching import evaluation_columns
from sememekit.decoders.assignment import assign_greedily
from sememekit.decoders.self_organized import SelfOrganized
from sememekit.jobs.cluster_update import cluster_update
from sememekit.runs.run import Run
from sememekit.training import RunFolder


def bits_of(run: Path) -> tuple[np.ndarray, np.ndarray]:
    """Words of the training text (n,) in the order of reading and log2 p(c | h) before each (n, C), written out."""
    loaded = Run.open(run)
    decoder = loaded.task.decoder
    assert isinstance(decoder, SelfOrganized)
    inputs, targets, mask = evaluation_columns(loaded.data().tokens("train"), loaded.task.evaluation_batch_size)
    with torch.no_grad():
        hidden, _ = loaded.task.contexts(torch.from_numpy(inputs), loaded.task.encoder.start(inputs.shape[1]))
        first = (hidden @ decoder.projection.weight.T).relu().chunk(2, dim=-1)[0]
        bits = decoder.cluster_vectors(first).log_softmax(dim=-1).double().numpy() / np.log(2)
    return targets[mask], bits[mask]


def test_statistics_are_the_mean_over_the_training_text(organized_copy: Path) -> None:
    """Eq. (8), Eq. (7) and Algorithm 1 against numpy; words that the training text lacks keep the q that they had."""
    loaded = Run.open(organized_copy)
    decoder = loaded.task.decoder
    words, bits = bits_of(organized_copy)
    expected = decoder.scores.double().numpy().copy()
    for word in set(words.tolist()):
        expected[word] = bits[words == word].mean(axis=0)
    old = decoder.clusters().numpy().copy()
    size = len(loaded.vocabulary)
    settings, clusters_ = decoder.settings, decoder.num_clusters
    largest = settings.gamma * max(size**0.5, size / clusters_)
    new = assign_greedily(
        expected, decoder.frequencies, largest=largest, budget=settings.frequency_budget, present=old
    ).cluster_of
    report = cluster_update(organized_copy)
    after = Run.open(organized_copy).task.decoder
    np.testing.assert_allclose(after.scores.double().numpy(), expected, rtol=1e-4, atol=1e-4)
    assert np.array_equal(after.clusters().numpy(), new)
    rows = np.arange(len(words))
    for objective, cluster_of in ((report.objective_before, old), (report.objective_after, new)):
        filled = np.log2((2.0 ** bits[:, np.unique(cluster_of)]).sum(axis=1))
        assert objective == pytest.approx((bits[rows, cluster_of[words]] - filled).mean(), abs=1e-5)
    assert report.statistics == "exact"
    assert report.tokens_read == len(words)


@pytest.mark.parametrize("filled", [4, 2, 1])
def test_the_objective_is_that_of_the_model(organized_copy: Path, filled: int) -> None:
    """Clusters without words have no probability: Eq. (7) is -log2 of the cluster perplexity of the text that was read."""
    loaded = Run.open(organized_copy)
    decoder = loaded.task.decoder
    decoder.groups.set(decoder.clusters() % filled)
    state = loaded.folder.load("best", with_trainer=True).trainer
    loaded.folder.revise(loaded.snapshot, loaded.task, state)
    report = cluster_update(organized_copy, split="train")
    assert len(np.unique(decoder.clusters().numpy())) == filled <= report.num_clusters
    for objective, measured in ((report.objective_before, report.before), (report.objective_after, report.after)):
        assert objective == pytest.approx(-math.log2(measured.cluster_perplexity), abs=1e-6)


def test_an_assignment_that_is_worse_is_told(organized_copy: Path, tmp_path: Path) -> None:
    cluster_update(organized_copy)
    folder = RunFolder.open(organized_copy)
    folder.replace_plan({**folder.plan, "decoder": {**folder.plan["decoder"], "gamma": 1.01, "frequency_budget": 0.02}})

    def told(*options: str) -> tuple[str, str]:
        result = CliRunner().invoke(app, ["cluster-update", str(organized_copy), *options])
        assert result.exit_code == 0, result.output
        return result.stdout, " ".join(result.stderr.split())

    out, err = told("--out", str(tmp_path / "new"), "--json")
    report = json.loads(out)
    assert report["objective_fell"]
    numbers = f"from {report['objective_before']:.4f} to {report['objective_after']:.4f} bits"
    assert f"worse by Eq. (7) on the training text, which fell {numbers}; {organized_copy} is as it was" in err
    assert "--out NEW_RUN keeps the old ones; without --running-passes" in told("--running-passes", "1")[1]
    assert not cluster_update(organized_copy).objective_fell
    assert "Eq. (7)" not in told()[1]


def test_the_exact_mean_is_a_fixed_point_and_words_never_seen_keep_their_statistics(organized_copy: Path) -> None:
    first = cluster_update(organized_copy)
    second = cluster_update(organized_copy)
    assert second.moved_words == 0
    assert second.objective_before == second.objective_after == pytest.approx(first.objective_after, abs=1e-9)
    assert second.before == first.after == second.after
    decoder = Run.open(organized_copy).task.decoder
    assert isinstance(decoder, SelfOrganized)
    scores = decoder.scores.clone()
    decoder.set_cluster_statistics(torch.full_like(scores, -7.0), torch.arange(len(scores)) == 2)
    assert (decoder.scores[2] == -7).all()
    assert torch.equal(decoder.scores[3:], scores[3:])


def test_running_statistics_are_those_of_the_training_text(organized_copy: Path) -> None:
    """q after one running pass, token by token."""
    loaded = Run.open(organized_copy)
    expected = loaded.task.decoder.scores.double().numpy().copy()
    counts = loaded.vocabulary.counts
    for word, row in zip(*bits_of(organized_copy), strict=True):
        new = 1.0 / counts[word]
        expected[word] = (1 - new) * expected[word] + new * row
    cluster_update(organized_copy, running_passes=1)
    scores = Run.open(organized_copy).task.decoder.scores
    np.testing.assert_allclose(scores.double().numpy(), expected, rtol=1e-4, atol=1e-4)
