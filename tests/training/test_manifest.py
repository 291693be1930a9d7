"""The manifest of a run folder: what it lists is there and as it was, what it does not list is not."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from sememekit.errors import CheckpointError
from sememekit.training import manifest
from sememekit.training.manifest import check_manifest, hashes, read_manifest, replace_listed, write_manifest

FILES = {"plan.json": b"{}", "vocabulary.tsv": b"a\t1\n"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    write_manifest(tmp_path, hashes(FILES))
    return tmp_path


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_it_lists_what_is_there(folder: Path) -> None:
    check_manifest(folder)
    assert read_manifest(folder) == {name: sha(content) for name, content in FILES.items()}


@pytest.mark.parametrize("files", [["plan.json"], "plan.json", None, {"plan.json": 3}, {"../plan.json": "0"}, {"a/b": "0"}])
def test_a_manifest_of_another_form_is_refused(folder: Path, files: Any) -> None:
    (folder / "manifest.json").write_text(json.dumps({"files": files}), encoding="utf-8")
    with pytest.raises(CheckpointError, match="lists no files; it was changed after writing"):
        read_manifest(folder)


def test_missing_changed_and_foreign_files_are_named(folder: Path) -> None:
    (folder / "graph.json").write_text("{}", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"graph\.json is no file of this run.*mv .*graph\.json .*graph\.json\.aside"):
        check_manifest(folder)
    (folder / "graph.json").unlink()
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    check_manifest(folder)
    (folder / "plan.json").write_bytes(b"{ }")
    with pytest.raises(CheckpointError, match=r"plan\.json does not match its checksum"):
        check_manifest(folder)
    (folder / "plan.json").unlink()
    with pytest.raises(CheckpointError, match=r"plan\.json is missing, and manifest\.json lists it"):
        check_manifest(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(CheckpointError, match=r"manifest\.json is missing"):
        check_manifest(folder)


@pytest.mark.parametrize("name", ["plan.json", "graph.json"])
def test_a_kill_while_a_listed_file_is_replaced_or_added_leaves_a_whole_folder(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill comes before any of the three writes, or none does."""
    real = manifest.replace_file
    for writes in (0, 1, 2, 3):
        left = writes

        def counted(path: Path, content: bytes) -> None:
            nonlocal left
            if not left:
                raise KeyboardInterrupt
            left -= 1
            real(path, content)

        with monkeypatch.context() as patch:
            patch.setattr(manifest, "replace_file", counted)
            if writes < 3:
                with pytest.raises(KeyboardInterrupt):
                    replace_listed(folder, name, b"new")
            else:
                replace_listed(folder, name, b"new")
        check_manifest(folder)
    assert read_manifest(folder)[name] == sha(b"new")
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match="is missing"):
        check_manifest(folder)
