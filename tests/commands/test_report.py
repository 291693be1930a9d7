"""The page of a run: what it shows, for runs with and without clusters, and that it needs nothing else."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sememekit.commands.chart import Line, spread, step_chart
from sememekit.commands.report import report, run_page
from sememekit.commands.train import train
from sememekit.errors import CheckpointError
from sememekit.training import RunFolder
from tests.small_run import Place


class Outline(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.charts: list[str] = []
        self.headings: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in {"meta", "line", "circle", "polyline"}:
            self.open.append(tag)
        if tag == "svg":
            self.charts.append(dict(attrs)["aria-label"] or "")

    def handle_endtag(self, tag: str) -> None:
        if tag not in {"meta", "line", "circle", "polyline"}:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in {"h1", "h2", "h3"}:
            self.headings.append(data)


def read(path: Path) -> tuple[str, Outline]:
    text = path.read_text(encoding="utf-8")
    outline = Outline()
    outline.feed(text)
    assert outline.open == [], "every element is closed"
    assert not re.search(r"<script|https?://|@import|url\(", text)
    return text, outline


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


def test_a_run_without_clusters_has_its_learning_curve(softmax: Path, tmp_path: Path) -> None:
    result = report(softmax, html=tmp_path / "page.html")
    _, outline = read(tmp_path / "page.html")
    assert (result.epochs, result.changes) == (3, 0)
    assert len(outline.charts) == 1
    assert "The life of the clusters" not in outline.headings


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


def test_labels_keep_their_order_and_their_distance() -> None:
    assert spread([10.0, 12.0, 90.0, 11.0], 17) == [10.0, 44.0, 90.0, 27.0]


def test_charts_have_room_for_every_value() -> None:
    for scale, values in (("log", (0.5, 1.0, 3000.0)), ("percent", (0.0, 0.003, 0.9))):
        chart = step_chart(
            [Line("one", tuple((float(step), value) for step, value in enumerate(values)))], title="t", y="y", scale=scale
        )
        heights = [float(pair.split(",")[1]) for pair in re.search(r'points="([^"]+)"', chart)[1].split()]
        assert all(16 <= height <= 294.1 for height in heights)
