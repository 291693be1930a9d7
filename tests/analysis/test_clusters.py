"""cluster-update and clusters: an E-step on a finished run, written whole; clusters shown, saved and used again."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from sememekit.analysis.clusters import clusters
from sememekit.analysis.evaluate import evaluate
from sememekit.analysis.evaluate_ppl import evaluate_ppl
from sememekit.commands._options import WhichName
from sememekit.commands._program import app
from sememekit.commands.cluster_update import cluster_update
from sememekit.commands.train import train
from sememekit.data.batching import evaluation_columns
from sememekit.decoders.assignment import assign_greedily
from sememekit.decoders.self_organized import SelfOrganized
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.reports.run import report as write_report
from sememekit.runs.augment import FILE as AUGMENT_FILE
from sememekit.runs.run import Run
from sememekit.training import EpochReport, RunFolder
from sememekit.training.checkpoint import write_run_manifest
from sememekit.training.snapshots import step_of
from sememekit.word_classes.file import read_clusters
from tests.small_pairs import PairPlace
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
    before = Run.open(copy).task  # read before the update
    pointer = RunFolder.open(copy).pointer()
    report = cluster_update(copy, running_passes=2)
    after = Run.open(copy)
    assert report.before.perplexity == pytest.approx(
        report.before.cluster_perplexity * report.before.in_cluster_perplexity, rel=1e-6
    )
    assert evaluate(copy, split="valid").model_dump()["perplexity"] == pytest.approx(report.after.perplexity, rel=1e-6)
    assert report.tokens_read == 2 * (len(training_tokens(after)) - 1)
    moved = (before.decoder.clusters() != after.task.decoder.clusters()).double().mean().item()
    assert report.moved_words == pytest.approx(moved)
    assert moved > 0
    assert report.statistics == "running"
    for name, value in before.named_parameters():
        assert torch.equal(value, dict(after.task.named_parameters())[name]), name
    folder = RunFolder.open(copy)
    assert report.new_checkpoint not in pointer.values()
    assert set(folder.pointer().values()) == {report.new_checkpoint}, "both pointed to the one snapshot"
    assert [entry.name for entry in (copy / "checkpoints").iterdir() if entry.is_dir()] == [report.new_checkpoint]
    assert folder.metrics()[-1]["kind"] == "ClusterUpdate"


def training_tokens(loaded: object) -> np.ndarray:
    from sememekit.data.prepared import PreparedData

    return PreparedData.open(Path(loaded.plan.data.path)).tokens("train")  # type: ignore[attr-defined]


def bits_of(run: Path) -> tuple[np.ndarray, np.ndarray]:
    """Words of the training text (n,) in the order of reading and log2 p(c | h) before each (n, C), written out."""
    loaded = Run.open(run)
    decoder = loaded.task.decoder
    assert isinstance(decoder, SelfOrganized)
    inputs, targets, mask = evaluation_columns(training_tokens(loaded), loaded.task.evaluation_batch_size)
    with torch.no_grad():
        hidden, _ = loaded.task.contexts(torch.from_numpy(inputs), loaded.task.encoder.start(inputs.shape[1]))
        first = (hidden @ decoder.projection.weight.T).relu().chunk(2, dim=-1)[0]
        bits = decoder.cluster_vectors(first).log_softmax(dim=-1).double().numpy() / np.log(2)
    return targets[mask], bits[mask]


def test_statistics_are_the_mean_over_the_training_text(copy: Path) -> None:
    """Eq. (8), Eq. (7) and Algorithm 1 against numpy; words that the training text lacks keep the q that they had."""
    loaded = Run.open(copy)
    decoder = loaded.task.decoder
    words, bits = bits_of(copy)
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
    report = cluster_update(copy)
    after = Run.open(copy).task.decoder
    np.testing.assert_allclose(after.scores.double().numpy(), expected, rtol=1e-4, atol=1e-4)
    assert np.array_equal(after.clusters().numpy(), new)
    rows = np.arange(len(words))
    for objective, cluster_of in ((report.objective_before, old), (report.objective_after, new)):
        filled = np.log2((2.0 ** bits[:, np.unique(cluster_of)]).sum(axis=1))
        assert objective == pytest.approx((bits[rows, cluster_of[words]] - filled).mean(), abs=1e-5)
    assert report.statistics == "exact"
    assert report.tokens_read == len(words)


@pytest.mark.parametrize("filled", [4, 2, 1])
def test_the_objective_is_that_of_the_model(copy: Path, filled: int) -> None:
    """Clusters without words have no probability: Eq. (7) is -log2 of the cluster perplexity of the text that was read."""
    loaded = Run.open(copy)
    decoder = loaded.task.decoder
    decoder.groups.set(decoder.clusters() % filled)
    state = loaded.folder.load("best", with_trainer=True).trainer
    loaded.folder.revise(loaded.snapshot, loaded.task, state)
    report = cluster_update(copy, split="train")
    assert len(np.unique(decoder.clusters().numpy())) == filled <= report.num_clusters
    for objective, measured in ((report.objective_before, report.before), (report.objective_after, report.after)):
        assert objective == pytest.approx(-math.log2(measured.cluster_perplexity), abs=1e-6)


def test_an_assignment_that_is_worse_is_told(copy: Path, tmp_path: Path) -> None:
    cluster_update(copy)
    folder = RunFolder.open(copy)
    folder.replace_plan({**folder.plan, "decoder": {**folder.plan["decoder"], "gamma": 1.01, "frequency_budget": 0.02}})

    def told(*options: str) -> tuple[str, str]:
        result = CliRunner().invoke(app, ["cluster-update", str(copy), *options])
        assert result.exit_code == 0, result.output
        return result.stdout, " ".join(result.stderr.split())

    out, err = told("--out", str(tmp_path / "new"), "--json")
    report = json.loads(out)
    assert report["objective_fell"]
    numbers = f"from {report['objective_before']:.4f} to {report['objective_after']:.4f} bits"
    assert f"worse by Eq. (7) on the training text, which fell {numbers}; {copy} is as it was" in err
    assert "--out NEW_RUN keeps the old ones; without --running-passes" in told("--running-passes", "1")[1]
    assert not cluster_update(copy).objective_fell
    assert "Eq. (7)" not in told()[1]


def test_the_exact_mean_is_a_fixed_point_and_words_never_seen_keep_their_statistics(copy: Path) -> None:
    first = cluster_update(copy)
    second = cluster_update(copy)
    assert second.moved_words == 0
    assert second.objective_before == second.objective_after == pytest.approx(first.objective_after, abs=1e-9)
    assert second.before == first.after == second.after
    decoder = Run.open(copy).task.decoder
    assert isinstance(decoder, SelfOrganized)
    scores = decoder.scores.clone()
    decoder.set_cluster_statistics(torch.full_like(scores, -7.0), torch.arange(len(scores)) == 2)
    assert (decoder.scores[2] == -7).all()
    assert torch.equal(decoder.scores[3:], scores[3:])


def test_running_statistics_are_those_of_the_training_text(copy: Path) -> None:
    """q after one running pass, token by token."""
    loaded = Run.open(copy)
    expected = loaded.task.decoder.scores.double().numpy().copy()
    counts = loaded.vocabulary.counts
    for word, row in zip(*bits_of(copy), strict=True):
        new = 1.0 / counts[word]
        expected[word] = (1 - new) * expected[word] + new * row
    cluster_update(copy, running_passes=1)
    scores = Run.open(copy).task.decoder.scores
    np.testing.assert_allclose(scores.double().numpy(), expected, rtol=1e-4, atol=1e-4)


def test_an_m_step_trains_with_the_clusters_held(copy: Path, tmp_path: Path) -> None:
    """Its epochs are those of the run's training with ``freeze_clusters``; afterwards clusters are assigned in training
    again."""
    decoder = {"decoder": {"update_every": 7}}
    folder = RunFolder.open(copy)
    folder.replace_plan({**folder.plan, "decoder": {**folder.plan["decoder"], **decoder["decoder"]}})
    report = cluster_update(copy, epochs=2, out=tmp_path / "new")
    assert report.trained is not None
    assert report.epochs_trained == 2
    assert report.trained.perplexity < report.after.perplexity
    assert report.finished == "4 epochs done"
    assert report.best_epoch > 2
    last = Run.open(tmp_path / "new", which="last").task.decoder
    cluster_update(copy, out=tmp_path / "assigned")
    assigned = Run.open(tmp_path / "assigned").task.decoder
    assert torch.equal(last.clusters(), assigned.clusters()), "held"
    assert torch.equal(last.scores, assigned.scores), "no statistics either"
    assert int(last.held_steps) == 0
    records = RunFolder.open(tmp_path / "new").metrics()
    begun = [record["kind"] for record in records].index("ClusterUpdate")
    assert not [record for record in records[begun:] if record["kind"] == "ChangeReport"]
    assert [record["epoch"] for record in records[begun:] if record["kind"] == "EpochReport"] == [3, 4]
    train({"schedule": {"epochs": 5}}, tmp_path / "new", resume=True)
    later = RunFolder.open(tmp_path / "new").metrics()[len(records) :]
    assert [record for record in later if record["kind"] == "ChangeReport"], "and assigns again"


def test_a_stopped_m_step_goes_on_to_the_same_bits(copy: Path, tmp_path: Path) -> None:
    shutil.copytree(copy, tmp_path / "twin")
    cluster_update(copy, epochs=2)

    def kill(report: object) -> None:
        if isinstance(report, EpochReport):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cluster_update(tmp_path / "twin", epochs=2, on_report=kill)
    train({}, tmp_path / "twin", resume=True)
    whole, resumed = (Run.open(run, which="last").task.state_dict() for run in (copy, tmp_path / "twin"))
    assert all(torch.equal(value, resumed[name]) for name, value in whole.items())


def test_what_an_update_was_worth_is_what_it_is_worth(copy: Path) -> None:
    """The best value of the run is that of the new clusters, so that a better epoch after it is kept."""
    report = cluster_update(copy)
    state = RunFolder.open(copy).load("best", with_trainer=True).trainer
    assert state["progress"]["best"] == pytest.approx(report.after.perplexity)


def test_in_a_folder_of_its_own_the_snapshot_is_the_best_so_far(copy: Path, tmp_path: Path) -> None:
    """Also where the run has a better one, which stays there: the better epochs of the M-step are kept."""
    folder = RunFolder.open(copy)
    state = folder.load("best", with_trainer=True)
    progress = {**state.trainer["progress"], "best": 1.0, "best_epoch": 1, "since_best": 1}
    folder.save(step_of(state.name) + 1, Run.open(copy).task, {**state.trainer, "progress": progress}, best=False)
    report = cluster_update(copy, which="last", out=tmp_path / "new")
    kept = RunFolder.open(tmp_path / "new").load("best", with_trainer=True).trainer["progress"]
    assert kept["best"] == pytest.approx(report.after.perplexity)
    assert (kept["best_epoch"], kept["since_best"]) == (2, 0)
    report = cluster_update(copy, which="last", epochs=1, out=tmp_path / "trained")
    assert report.trained is not None
    assert report.trained.perplexity < report.after.perplexity
    assert report.best_epoch == 3


def test_an_m_step_never_drops_a_later_snapshot(copy: Path, tmp_path: Path) -> None:
    folder = RunFolder.open(copy)
    state = folder.load("best", with_trainer=True)
    later = folder.save(step_of(state.name) + 1, Run.open(copy).task, state.trainer, best=False)
    with pytest.raises(ConfigError, match=rf"would delete the later {later} .*--out NEW_RUN, or .*--which last"):
        cluster_update(copy, epochs=1)
    assert cluster_update(copy, epochs=1, out=tmp_path / "new").trained is not None


@pytest.mark.parametrize("moment", ["create", "append_metrics", "save", "rename"])
def test_a_killed_copy_is_no_run_and_can_be_made_again(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def killed(*anything: object, **named: object) -> None:
        raise KeyboardInterrupt

    (copy / AUGMENT_FILE).write_text("{}\n")
    write_run_manifest(copy)
    if moment == "rename":
        monkeypatch.setattr(Path, "replace", killed)
    else:
        monkeypatch.setattr(RunFolder, moment, killed)
    with pytest.raises(KeyboardInterrupt):
        cluster_update(copy, out=tmp_path / "second")
    monkeypatch.undo()
    assert not (tmp_path / "second").exists()
    with pytest.raises(CheckpointError, match="does not exist"):
        train({}, tmp_path / "second", resume=True)
    cluster_update(copy, out=tmp_path / "second")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "second"]
    kept = {path.name for path in copy.iterdir() if path.is_file()} - {"report.html"}
    assert {path.name for path in (tmp_path / "second").iterdir() if path.is_file()} == kept
    assert (tmp_path / "second" / AUGMENT_FILE).read_text() == "{}\n"


def test_a_snapshot_of_a_former_version_holds_nothing(organized: Path) -> None:
    """Its clusters are assigned in training as they were."""
    decoder = Run.open(organized).task.decoder
    state = decoder.state_dict()
    del state["held_steps"]
    decoder.freeze_clusters(3)
    decoder.load_state_dict(state)
    assert int(decoder.held_steps) == decoder._held == 0


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


@pytest.mark.parametrize("which", ["best", "last"])
def test_the_page_of_a_copy_marks_no_epoch_before_the_new_clusters(copy: Path, tmp_path: Path, which: WhichName) -> None:
    second = tmp_path / "second"
    cluster_update(copy, out=second, which=which)
    step = RunFolder.open(second).metrics()[-1]["step"]
    told = f"the best weights have the clusters that cluster-update gave them after {step:,} steps"
    write_report(second)
    page = (second / "report.html").read_text(encoding="utf-8")
    assert told in page
    assert not re.search("<td[^>]*>best</td>", page)
    train({"schedule": {"epochs": 3}}, second, resume=True)
    page = (second / "report.html").read_text(encoding="utf-8")
    last = RunFolder.open(second).metrics()[-1]
    assert last["best"] == (told not in page) == bool(re.search("<td[^>]*>best</td>", page))


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
    loaded = Run.open(copy).task.decoder.clusters()
    train({"schedule": {"epochs": 3}}, copy, resume=True)
    assert torch.equal(Run.open(copy, which="last").task.decoder.clusters(), loaded)


def test_what_has_no_clusters_is_told_so(softmax: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'softmax'.*learns no word clusters.*--decoder self_organized"):
        cluster_update(softmax)
    with pytest.raises(ConfigError, match=r"'softmax'.*does not divide words"):
        clusters(softmax)
    with pytest.raises(CheckpointError, match="does not exist"):
        clusters(tmp_path / "nowhere")


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


def test_clusters_of_a_headline_run(tmp_path: Path) -> None:
    """They are shown, assigned anew by the words of targets and their ends, and trained on."""
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
