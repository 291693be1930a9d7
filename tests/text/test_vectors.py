"""Word vectors from text, good and bad."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest

from sememekit.errors import DataError
from sememekit.text.vectors import read_vectors

TEXT = "the 1 2 3\ncat 0.5 -1e-2 7\n. . . 4 5 6\nthe 9 9 9\n"


def test_words_and_numbers(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "v.txt.xz").write_bytes(lzma.compress(("4 3\n" + TEXT).encode()))
    plain = read_vectors(tmp_path / "v.txt")
    assert plain.words == ("the", "cat", ". . .")
    assert (plain.size, plain.row_of["cat"]) == (3, 1)
    np.testing.assert_array_equal(plain.matrix, np.array([[1, 2, 3], [0.5, -0.01, 7], [4, 5, 6]], dtype=np.float32))
    packed = read_vectors(tmp_path / "v.txt.xz", words={"cat", "absent"}, size=3)
    assert packed.words == ("cat",)
    (tmp_path / "one.txt").write_text("the 1\ncat 2\n", encoding="utf-8")
    assert read_vectors(tmp_path / "one.txt").matrix.tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("the 1 2 3\ncat 1 2\n", r"v\.txt:2: 2 numbers behind the word, and vectors of 3"),
        ("the 1 2 3\ncat 1 2 3 4\n", r"v\.txt:2: 4 numbers behind the word, and vectors of 3"),
        ("the 1 2 3\ncat 1 2 x\n", r"v\.txt:2: the last 3 fields"),
        ("the 1 nan 3\n", "not finite"),
        ("", "holds no vectors"),
        ("the\n", "is a word and its numbers"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "v.txt").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=problem):
        read_vectors(tmp_path / "v.txt")


def test_broken_packing_and_bytes_are_refused(tmp_path: Path) -> None:
    packed = lzma.compress(("".join(f"w{number} {number} 2 3\n" for number in range(5000))).encode())
    (tmp_path / "cut.xz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match="not an intact xz"):
        read_vectors(tmp_path / "cut.xz")
    (tmp_path / "late.txt").write_bytes(b"word 1 2\n" * 5000 + b"\xff 1 2\n")
    with pytest.raises(DataError, match=r"not UTF-8 after line 4,\d\d\d;"):
        read_vectors(tmp_path / "late.txt")
    (tmp_path / "bin.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not UTF-8"):
        read_vectors(tmp_path / "bin.txt")
    with pytest.raises(DataError, match="cannot be read"):
        read_vectors(tmp_path / "absent.txt")
