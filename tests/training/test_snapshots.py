"""Snapshots as folders: their names and order, what is stored once, and what is removed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from sememekit.errors import CheckpointError
from sememekit.training.checkpoint import RunFolder
from sememekit.training.manifest import read_manifest, write_manifest, write_run_manifest
from sememekit.training.snapshots import (
    free_name,
    read_json,
    read_pointer,
    read_snapshot,
    remove_snapshots,
    snapshots_in,
    step_of,
    whole_snapshots,
    write_pointer,
    write_snapshot,
)


def test_snapshots_are_in_the_order_of_their_writing(tmp_path: Path) -> None:
    names = ["step-00000009", "step-00000009.1", "step-00000009.2", "step-00000009.10", "step-00000010", "step-123456789012"]
    for name in [*reversed(names), "step-9", ".step-00000001.stale", "step-00000001.x"]:
        (tmp_path / name).mkdir()
    (tmp_path / "step-00000002").write_text("a file")
    assert snapshots_in(tmp_path) == names
    assert [step_of(name) for name in names] == [9, 9, 9, 9, 10, 123456789012]


def test_a_step_that_is_there_gets_the_next_number(tmp_path: Path) -> None:
    for name in ("step-00000007", "step-00000007.1", "step-00000007.2"):
        assert free_name(tmp_path, 7) == name
        (tmp_path / name).mkdir()
    assert free_name(tmp_path, 8) == "step-00000008"


class Model(nn.Module):
    """Two names of one matrix, and two tensors without numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Parameter(torch.arange(6.0).reshape(2, 3))
        self.two = self.one
        self.empty, self.nothing = nn.Parameter(torch.zeros(0)), nn.Parameter(torch.zeros(0))


def test_a_shared_tensor_comes_back_under_each_of_its_names(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "step-00000001", Model(), {"carry": (torch.ones(2),)})
    whole = read_snapshot(tmp_path / "step-00000001", with_trainer=True)
    assert whole.name == "step-00000001"
    assert {name: tensor.tolist() for name, tensor in whole.weights.items()} == {
        "one": [[0, 1, 2], [3, 4, 5]],
        "two": [[0, 1, 2], [3, 4, 5]],
        "empty": [],
        "nothing": [],
    }
    assert whole.weights["one"] is whole.weights["two"]
    assert torch.equal(whole.trainer["carry"][0], torch.ones(2))
    assert read_snapshot(tmp_path / "step-00000001", with_trainer=False).trainer == {}
    text = (tmp_path / "step-00000001" / "trainer.json").read_text()
    assert '"two": "one"' in text
    assert "nothing" not in text, "a tensor without numbers shares nothing"


def test_only_whole_snapshots_are_offered(tmp_path: Path) -> None:
    for name in ("step-00000001", "step-00000002", "step-00000003"):
        write_snapshot(tmp_path / name, Model(), {})
    (tmp_path / "step-00000002" / "trainer.json").write_text("{}")
    (tmp_path / "step-00000003" / "manifest.json").write_text('{"weights.safetensors": "x"}')
    assert whole_snapshots(tmp_path) == ["step-00000001"]
    with pytest.raises(CheckpointError, match=r"does not list weights\.safetensors, trainer\.safetensors, trainer\.json"):
        read_snapshot(tmp_path / "step-00000003", with_trainer=True)
    parts = '{"weights.safetensors": "x", "trainer.safetensors": "x", "trainer.json": 3}'
    (tmp_path / "step-00000003" / "manifest.json").write_text(parts)
    with pytest.raises(CheckpointError, match="does not list"):
        read_snapshot(tmp_path / "step-00000003", with_trainer=True)


def test_what_is_removed_goes_whole_and_links_stay(tmp_path: Path) -> None:
    for name in ("step-00000001", "step-00000002", ".step-00000001.stale", ".step-00000004.writing-77", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text("x")
    (tmp_path / ".step-00000005.stale").write_text("a file")
    (tmp_path / ".step-00000006.stale").symlink_to(tmp_path / "other")
    (tmp_path / "step-00000003").symlink_to(tmp_path / "other")
    remove_snapshots(tmp_path, ["step-00000001", "step-00000003", "step-00000009"])
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        ".step-00000005.stale",
        ".step-00000006.stale",
        "other",
        "step-00000002",
        "step-00000003",
    ]
    assert (tmp_path / "other" / "x").exists()


def test_a_pointer_comes_back_with_what_was_being_written_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "pointer.json"
    both = {"last": "step-00000002", "best": "step-00000001"}
    write_pointer(path, both, next=["step-00000003"], stale={"step-00000009", "step-00000008"})
    names = ["step-00000003", "step-00000008", "step-00000009"]
    assert read_pointer(path, lambda: "offer") == (both, names)
    write_pointer(path, both, stale=[])
    assert read_pointer(path, lambda: "offer") == (both, [])
    assert "stale" not in path.read_text()
    for text in (
        '{"first": "step-00000001"}',
        '{"last": 3}',
        '{"last": "elsewhere"}',
        '{"last": "step-00000001", "next": "step-00000002"}',
        '{"last": "step-00000001", "stale": ["elsewhere"]}',
    ):
        path.write_text(text)
        with pytest.raises(CheckpointError, match=r"names no checkpoints; .*; offer"):
            read_pointer(path, lambda: "offer")
    path.write_text('{"last": "step-00000001", "sha256": "0"}')
    with pytest.raises(CheckpointError, match="does not match its own checksum"):
        read_pointer(path, lambda: "offer")
    path.write_text('{"last": "step-00000001"}')
    assert read_pointer(path, lambda: "offer") == ({"last": "step-00000001"}, [])


def test_a_missing_and_a_torn_document_say_to_copy_the_folder(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"plan\.json is missing; the run folder is damaged; copy it again"):
        read_json(tmp_path / "plan.json")
    (tmp_path / "plan.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"plan\.json.*; the run folder is damaged; copy it again"):
        read_json(tmp_path / "plan.json")


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", {"task": {}}, {"sememekit": "0"}, {"vocabulary.tsv": b"a\t1\n"})


def test_the_two_newest_whole_snapshots_are_offered_in_the_place_of_a_lost_pointer(run: RunFolder) -> None:
    checkpoints = run.path / "checkpoints"
    (checkpoints / "pointer.json").unlink()
    for steps, best in ((1, 1), (2, 1), (3, 2), (4, 3)):
        write_snapshot(checkpoints / f"step-{steps:08d}", Model(), {})
        offer = f'"best": "step-{best:08d}", "last": "step-{steps:08d}"'
        with pytest.raises(CheckpointError, match=rf"newest whole snapshot is step-{steps:08d}: .*{offer}"):
            run.pointer()


def test_a_manifest_that_is_written_anew_keeps_the_files_that_it_listed_and_adds_fixed_ones(run: RunFolder) -> None:
    extra = run.path / "own.txt"
    extra.write_text("own")
    write_manifest(run.path, {**read_manifest(run.path), "own.txt": "0", "gone.txt": "0"})
    (run.path / "lexicon.txt").write_text("a")
    write_run_manifest(run.path)
    assert set(read_manifest(run.path)) == {"vocabulary.tsv", "plan.json", "versions.json", "lexicon.txt", "own.txt"}
    RunFolder.open(run.path)
    (run.path / "manifest.json").unlink()
    write_run_manifest(run.path)
    assert "own.txt" not in read_manifest(run.path), "nothing says any more that it belongs there"
