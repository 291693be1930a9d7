"""Places of files that are not there, stores that fail, packages that are missing: each error has the remedy."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sememekit.errors import ConfigError, DataError
from sememekit.jobs.preprocess import preprocess


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("absent-*.txt", "no such file, and no file that fits"),
        ("-", "-: a pipe or a device, which is read but once, .*; write it into a file"),
        ("/dev/null", "/dev/null: a pipe or a device"),
        ("memory://nowhere/x.txt", "no such file"),
        ("nonsense://x", "cannot be read: ValueError: Protocol not known"),
    ],
)
def test_places_without_files_are_told(place: str, message: str, tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(DataError, match=message):
        preprocess("plain", place, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ((), r"\(it is empty\); .* or give a file itself: .*/folder/FILE"),
        (
            ("b.doc", "a.pdf"),
            r"\(it has a.pdf, b.doc\); names must end in .txt, .jsonl, .*\.gz, .*train, valid or test in a name",
        ),
        (("inner/text.txt",), r"\(it has inner/\); .* or give a folder inside it, such as .*/folder/inner"),
        ((".git/config", "inner/text.txt"), "inside it, such as .*/folder/inner"),
        ((".git/config",), r"\(it has .git/\); .* or give a file itself"),
        ([f"{number}.md" for number in range(7)], "it has 0.md, 1.md, 2.md, 3.md, 4.md and 2 more"),
    ],
)
def test_a_folder_without_text_says_which_names_are_looked_for(names: Sequence[str], told: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    with pytest.raises(DataError, match=told):
        preprocess("plain", folder, tmp_path / "out")


class StoreError(Exception):
    """An error of a store, which is no OSError."""


class Broken(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        raise StoreError("the key is not valid any more")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("store://x/*.txt", r"store://x/\*\.txt: cannot be read: StoreError: no such host; see that the store is reached"),
        ("store://listed/*.txt", r"store://listed/1\.txt: cannot be read: StoreError: the key is not valid any more; see"),
    ],
)
def test_what_a_store_says_is_told(place: str, message: str, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")

    class Store(fsspec.AbstractFileSystem):  # type: ignore[misc, name-defined]
        """A store that fails when it is asked for its files, or when they are read."""

        protocol = "store"

        def glob(self, path: str, **options: Any) -> list[str]:
            if "listed" not in path:
                raise StoreError("no such\n host")
            return [path.replace("*", "1")]

        def ukey(self, path: str) -> str:
            return path

        def open(self, path: str, mode: str = "rb", **options: Any) -> Broken:
            return Broken()

    fsspec.register_implementation("store", Store, clobber=True)
    with pytest.raises(DataError, match=message):
        preprocess("plain", place, tmp_path / "out")


def test_the_package_of_a_store_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(ConfigError, match=r"s3://bucket/x: Install s3fs to access S3; run: pip install s3fs$"):
        preprocess("plain", "s3://bucket/x", tmp_path / "out")


@pytest.mark.parametrize(
    ("module", "name"), [("fsspec", "memory://x/a.txt"), ("pyarrow", "a.parquet"), ("backports.zstd", "a.txt.zst")]
)
def test_a_package_that_is_missing_is_named(module: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if module == "backports.zstd" and sys.version_info >= (3, 14):
        pytest.skip("a part of Python from 3.14 on")
    monkeypatch.setitem(sys.modules, module, None)
    place = name if "://" in name else str(tmp_path / name)
    if "://" not in name:
        Path(place).write_bytes(b"x")
    with pytest.raises(ConfigError, match=rf"need.* '?{module}'?[;,].* run: pip install .sememekit\[remote\]."):
        preprocess("plain", place, tmp_path / "out")
