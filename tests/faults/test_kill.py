"""A few kill points of each command: those that once went wrong, and one in the middle. ``make faults`` has more."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.faults.child import Commands
from tests.faults.kill import MUST_BE_ZERO, Point, points, reset, scenes


def some(events: int) -> Iterable[int]:
    """The middle, and the last moments, where what is finished is put into its place."""
    return sorted({events // 2, *range(max(1, events - 5), events + 1, 2)})


def middle(events: int) -> Iterable[int]:
    """Return an early, a middle and a late event."""
    return sorted({1, events // 2, events - 1} - {0})


def wrong(commands: Commands, folder: Path, piece: str, scene: str, chosen: object) -> list[Point]:
    found = [one for one in scenes(commands, folder, [piece]) if one.name == scene]
    assert len(found) == 1, piece
    tried = list(points(commands, found[0], chosen))  # type: ignore[arg-type]
    assert tried, "nothing was killed"
    return [point for point in tried if point.verdict in MUST_BE_ZERO]


def test_a_killed_training_resumes_with_the_same_bits(commands: Commands, tmp_path: Path) -> None:
    def around(events: int) -> Iterable[int]:
        """Add events in the last snapshot, whose epoch is reported already."""
        return sorted({*middle(events), *range(events - 10, events, 4)})

    assert wrong(commands, tmp_path / "s", "train", "train", around) == []


@pytest.mark.parametrize("scene", ["preprocess plain, replacing", "preprocess snli, new"])
def test_a_killed_preprocess_is_whole_or_nothing_and_can_be_repeated(commands: Commands, tmp_path: Path, scene: str) -> None:
    assert wrong(commands, tmp_path / "s", scene.split(",")[0], scene, some) == []


def test_a_killed_graph_is_whole_or_nothing_and_leaves_nothing(commands: Commands, tmp_path: Path) -> None:
    assert wrong(commands, tmp_path / "s", "build-sememe-graph", "build-sememe-graph, replacing", middle) == []


@pytest.mark.parametrize("scene", ["cluster-update in place", "cluster-update --out"])
def test_a_killed_cluster_update_can_be_repeated(commands: Commands, tmp_path: Path, scene: str) -> None:
    assert wrong(commands, tmp_path / "s", "cluster-update", scene, middle) == []


@pytest.mark.parametrize("scene", ["push", "pull"])
def test_a_killed_push_or_pull_leaves_nothing(commands: Commands, tmp_path: Path, scene: str) -> None:
    assert wrong(commands, tmp_path / "s", "push", scene, middle) == []


def test_a_killed_attack_resumes_with_a_torn_line(commands: Commands, tmp_path: Path) -> None:
    assert wrong(commands, tmp_path / "s", "attack", "attack, last line torn", middle) == []


@pytest.mark.parametrize("scene", ["train", "preprocess plain, new", "build-sememe-graph, new", "push", "pull"])
def test_what_appears_is_on_the_disk(commands: Commands, tmp_path: Path, scene: str) -> None:
    """A power cut after a rename must not leave empty files: every file was synced, and the folder that names it."""
    piece = "push" if scene == "pull" else scene.partition(",")[0]
    found = next(one for one in scenes(commands, tmp_path / "s", [piece]) if one.name == scene)
    reset(found)
    commands.do(*found.command, synced=tmp_path / "synced")
    synced = {int(line) for line in (tmp_path / "synced").read_text().split()}
    drawn = {"tensorboard", ".lock", "report.html"}  # what can be drawn again, or is empty
    files = [path for path in (found.work, found.out, *found.out.rglob("*")) if not drawn & set(path.parts)]
    assert [str(path.relative_to(found.work)) for path in files if path.stat().st_ino not in synced] == []


def test_the_harness_sees_events_and_kills_before_them(commands: Commands, tmp_path: Path) -> None:
    """A trial that kills nothing, or sees nothing, would find every program good."""
    text, out = tmp_path / "t.txt", tmp_path / "out"
    text.write_text("a b c\n" * 40, encoding="utf-8")
    command = ["preprocess", "plain", text, "--segmenter", "none", "-q", "--out"]
    quiet = commands.do(*command, tmp_path / "quiet", watch=tmp_path / "quiet")
    assert quiet.events > 20
    killed = commands(*command, out, watch=out, kill=1)
    assert (killed.killed, killed.events) == (True, 1)
    assert not (tmp_path / ".out.partial").exists(), "killed before the first event, not after it"
    last = commands(*command, out, watch=out, kill=quiet.events)
    assert last.killed
    assert (out / "signature.json").exists()
    assert not commands(*command, tmp_path / "third", watch=tmp_path / "third", kill=quiet.events + 1).killed
