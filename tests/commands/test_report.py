"""The page of a run: what it shows, for runs with and without clusters, and that it needs nothing else."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from sememekit.errors import CheckpointError, ConfigError
from sememekit.jobs.train import train
from sememekit.reports.run import report, run_page
from sememekit.training import EpochReport, RunFolder
from tests.faults.fitted import fit
from tests.pages import Page, check_page
from tests.small_run import Place

pytestmark = pytest.mark.usefixtures("real_charts")


def read(path: Path) -> tuple[str, Page]:
    text = path.read_text(encoding="utf-8")
    return text, check_page(text)


def test_training_leaves_the_page_of_a_run_with_clusters(place: Place, tmp_path: Path) -> None:
    train(place.table("self_organized", schedule__epochs=3), tmp_path / "run")
    text, outline = read(tmp_path / "run" / "report.html")
    assert len(outline.charts) == 4
    assert outline.charts[1].startswith("On validation: perplexity from ")
    assert "The life of the clusters" in outline.headings
    epochs = [record for record in RunFolder.open(tmp_path / "run").metrics() if record["kind"] == "EpochReport"]
    for epoch in epochs:
        assert f"{epoch['valid']['cluster_perplexity']:,.2f}" in text
    assert "decoder.update_every = 7" in text


def test_a_foreign_page_is_refused_before_the_run_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine.html").write_text("<p>mine</p>", encoding="utf-8")
    with pytest.raises(ConfigError, match="not a page that sememekit wrote"):
        report(tmp_path / "none", html=tmp_path / "mine.html")


def test_the_page_keeps_up_with_training(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs of ten seconds or more each leave their page; of shorter ones the last does, also where training breaks off."""
    seen: list[bool] = []

    def stop(report: object) -> None:
        if isinstance(report, EpochReport):
            seen.append((tmp_path / "run" / "report.html").exists())
            if len(seen) == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(place.table(schedule__epochs=3), tmp_path / "run", on_report=stop)
    assert "1 epoch" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8"), "the second has no snapshot"
    assert seen == [False, False]
    seen.clear()
    shutil.rmtree(tmp_path / "run")
    monkeypatch.setattr("sememekit.jobs.train.PAGE_EVERY", 0.0)
    with pytest.raises(KeyboardInterrupt):
        train(place.table(schedule__epochs=3), tmp_path / "run", on_report=stop)
    assert seen == [False, True], "an epoch is on the page once its snapshot is there"


def test_a_run_without_clusters_has_its_learning_curve(softmax: Path, tmp_path: Path) -> None:
    result = report(softmax, html=tmp_path / "page.html")
    _, outline = read(tmp_path / "page.html")
    assert (result.epochs, result.changes) == (3, 0)
    assert len(outline.charts) == 1
    assert "The life of the clusters" not in outline.headings
    with pytest.raises(ConfigError, match="absent does not exist; type: mkdir -p"):
        report(softmax, html=tmp_path / "absent" / "page.html")
    report(softmax, html=tmp_path / "page.html", figure=tmp_path / "figure.svg")
    assert "Learning curve" not in (tmp_path / "figure.svg").read_text(encoding="utf-8"), "a paper has a caption"
    assert "validation perplexity" in (tmp_path / "figure.svg").read_text(encoding="utf-8")


def test_an_epoch_without_a_metric_that_others_have_is_shown(softmax: Path, tmp_path: Path) -> None:
    """A task of a user may write such a line."""
    run = tmp_path / "run"
    shutil.copytree(softmax, run)
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if '"EpochReport"' in line)
    lines[first] = lines[first].replace('"perplexity"', '"perplexitx"')
    (run / "metrics.jsonl").write_text("".join(lines), encoding="utf-8")
    fit(run)
    report(run, html=tmp_path / "page.html")
    assert ">–</td>" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_names_are_no_markup(softmax: Path) -> None:
    folder = RunFolder.open(softmax)
    assert "<b>" not in run_page("<b>", folder.plan, folder.metrics())


def test_a_run_without_an_epoch_has_nothing_to_report(place: Place, tmp_path: Path) -> None:
    def stop(report: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(place.table(), tmp_path / "run", on_report=stop)
    with pytest.raises(CheckpointError, match=r"no finished epoch.*--resume"):
        report(tmp_path / "run")


def test_lost_reports_of_training_are_told(softmax: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(softmax, copy)
    (copy / "metrics.jsonl").unlink()
    with pytest.raises(CheckpointError, match=r"run/metrics\.jsonl is missing, and there are lines of it"):
        report(copy)


def epoch_record(epoch: int, best: bool) -> dict[str, object]:
    valid = {"perplexity": 100.0 - epoch, "rouge1": 0.0088}
    common = {"kind": "EpochReport", "epoch": epoch, "step": 10 * epoch, "train_nats": 4.0, "valid": valid, "rate": 1.0}
    return {**common, "best": best, "rate_cut": False, "finished": "", "seconds": 1.0, "tokens_per_second": 9.0}


def test_one_epoch_alone_is_called_the_best_and_rouge_is_in_per_cent() -> None:
    page = run_page(
        "run", {"encoder": {"name": "lstm"}}, [epoch_record(1, True), epoch_record(2, True), epoch_record(3, False)]
    )
    cells = re.findall(r"<td[^>]*>best</td>", page)
    assert len(cells) == 1
    assert page.index(cells[0]) > page.index(">20<"), "it stands in the row of the second epoch"
    assert "0.88 %" in page
    assert "0.0088" not in page


@pytest.mark.parametrize("perplexity", [1e305, float("inf")])
def test_a_run_that_diverged_has_a_page_whose_chart_leaves_the_last_epoch_out(perplexity: float) -> None:
    last = {**epoch_record(3, False), "train_nats": 700.0, "valid": {"perplexity": perplexity, "rouge1": 0.0}}
    page = run_page("run", {"encoder": {"name": "lstm"}}, [epoch_record(1, True), epoch_record(2, True), last])
    assert f"{perplexity:.4g}" in page, "the table has it"
    assert "validation perplexity from 99.0 to 98.0" in page


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, False),
        ({"encoder": {"name": "lstm", "dropout": 0.2}}, True),
        ({"task": {"name": "language_model", "word_dropout": 0.1}}, True),
        ({"encoder": {"name": "awd_lstm", "weight_drop": 0.5}}, True),
    ],
)
def test_the_curve_of_training_speaks_of_dropout_only_where_there_is_some(changes: dict, said: bool) -> None:
    plan = {"task": {"name": "language_model", "word_dropout": 0.0}, "encoder": {"name": "lstm", "dropout": 0.0}, **changes}
    page = run_page("run", plan, [epoch_record(1, True), epoch_record(2, True)])
    assert ("training, dropout on" in page) == said
    assert "training" in page


def test_control_characters_do_not_reach_a_page() -> None:
    page = run_page("run\x1b[31m\x07", {}, [epoch_record(1, True)])
    assert "\x1b" not in page
    assert "\x07" not in page
    assert "run\ufffd[31m" in page


@pytest.mark.parametrize("every", [0.0, 1e9])
def test_the_page_of_a_training_names_the_best_epoch_that_the_training_reports(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: float
) -> None:
    """Epochs are longer than the time between two pages, and shorter."""
    monkeypatch.setattr("sememekit.jobs.train.PAGE_EVERY", every)
    found = train(place.table(schedule__epochs=3), tmp_path / "run")
    assert found.best_valid is not None
    text = " ".join((tmp_path / "run" / "report.html").read_text(encoding="utf-8").split())
    assert f"best on validation after epoch {found.best_epoch}: perplexity {found.best_valid:,.2f}" in text
    pointer = RunFolder.open(tmp_path / "run").pointer()["best"]
    [best] = [
        epoch for epoch in RunFolder.open(tmp_path / "run").epochs() if epoch["best"] and f"{epoch['step']:08d}" in pointer
    ]
    assert best["epoch"] == found.best_epoch
    report(tmp_path / "run", html=tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "run" / "report.html").read_bytes()
