"""Word clusters on disk: both spellings come back, and what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sememekit.errors import ConfigError, DataError
from sememekit.text.vocabulary import Vocabulary
from sememekit.word_classes.file import read_clusters, write_clusters
from tests.small import small_vocabulary

WORDS = small_vocabulary().tokens


@given(st.lists(st.integers(0, 12), min_size=len(WORDS), max_size=len(WORDS)))
def test_clusters_come_back(tmp_path_factory: pytest.TempPathFactory, ids: list[int]) -> None:
    path = tmp_path_factory.mktemp("clusters") / "clusters.json"
    write_clusters(path, small_vocabulary(), ids)
    assert read_clusters(path, small_vocabulary()).tolist() == ids
    before = path.read_bytes()
    write_clusters(path, small_vocabulary(), np.array(ids))
    assert path.read_bytes() == before


def test_text_with_numbers_keeps_them_and_other_names_are_numbered_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "clusters.txt"
    path.write_text("".join(f"{word}\t{(i * 3) % 8}\n" for i, word in enumerate(WORDS)), encoding="utf-8")
    assert read_clusters(path, small_vocabulary()).tolist() == [(i * 3) % 8 for i in range(len(WORDS))]
    path.write_text("".join(f"{word}\t{'0110'[: i % 3 + 1]}\r\n" for i, word in enumerate(WORDS)), encoding="utf-8-sig")
    assert read_clusters(path, small_vocabulary()).tolist() == [i % 3 for i in range(len(WORDS))]
    path.write_text("".join(f"{word}\t{10**12 + i % 2}\n" for i, word in enumerate(WORDS)), encoding="utf-8")
    assert read_clusters(path, small_vocabulary()).tolist() == [i % 2 for i in range(len(WORDS))]


def test_words_that_look_like_json_are_still_lines(tmp_path: Path) -> None:
    path = tmp_path / "clusters.txt"
    path.write_text("{\t0\na\t1\n", encoding="utf-8")
    assert read_clusters(path, Vocabulary.from_counts({"a": 2, "{": 1})).tolist() == [1, 0]


def test_words_that_the_vocabulary_lacks_are_left_out_and_counts_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "clusters.json"
    write_clusters(path, Vocabulary.from_counts({"a": 3, "b": 2, "c": 1}), [1, 0, 1])
    assert read_clusters(path, Vocabulary.from_counts({"a": 1, "c": 5})).tolist() == [1, 1]


def lines(*rows: str) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lines("a\t0"), r"1 of the 2 words of the vocabulary are in no cluster: 'b'; add them"),
        (lines("a\t0", "b\t1", "a\t1"), r"in two places: 'a' \(line 1 and line 3\)"),
        (lines("a\t0", "b\t1", "z\t1", "z\t0"), r"in two places: 'z'"),
        (lines("a 0", "b 1"), r":1: expected 'word TAB cluster'"),
        (lines("a\t0\t7", "b\t1"), r":1: expected"),
        (b"", r"2 of the 2 words"),
        (b'{"clusters": [["a"], ["b", "a"]]}', r"'a' \(cluster 0 and cluster 1\)"),
        (b'{"fingerprint": "0123", "clusters": [["a"]]}', r"'b'; written for vocabulary 0123, this is [0-9a-f]{16}"),
        (b'{"clusters": [["a"], ["b"', "is not JSON"),
        (b'{"clusters": [["a"], 7]}', r"another kind of JSON"),
        (b'{"words": []}', r"another kind of JSON"),
        (b'{"format": "x", "clusters": [["a", "b"]]}', r"'x'"),
        (b'{"version": 2, "clusters": [["a", "b"]]}', r"version 2"),
        (b"a\t0\nb\xff\t1\n", "not UTF-8 at byte 5"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "clusters"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_clusters(path, Vocabulary.from_counts({"a": 2, "b": 1}))
    assert str(path) in str(caught.value)


def test_what_cannot_be_written_or_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no-folder does not exist; type: mkdir"):
        write_clusters(tmp_path / "no-folder" / "x", small_vocabulary(), [0] * len(WORDS))
    with pytest.raises(DataError, match="cannot be read"):
        read_clusters(tmp_path, small_vocabulary())
    for bad in ([0, 1], [-1] * len(WORDS)):
        with pytest.raises(DataError, match=r"10 words need as many cluster numbers"):
            write_clusters(tmp_path / "x", small_vocabulary(), bad)
