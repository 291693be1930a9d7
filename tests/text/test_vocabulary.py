from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sememekit.errors import DataError
from sememekit.text.vocabulary import Vocabulary

words = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\t\n\r\0"), min_size=1, max_size=5)


def test_ids_go_by_falling_count_then_by_spelling() -> None:
    vocabulary = Vocabulary.from_counts({"乙": 2, "甲": 2, "常": 9, "b": 2})
    assert vocabulary.tokens == ("常", "b", "乙", "甲")
    assert vocabulary.counts.tolist() == [9, 2, 2, 2]
    assert vocabulary.counts.dtype == np.int64


def test_specials_without_a_count_get_zero_and_those_with_one_keep_it() -> None:
    vocabulary = Vocabulary.from_counts({"a": 1, "<eos>": 5}, specials=("<unk>", "<eos>"))
    assert vocabulary.tokens == ("<eos>", "a", "<unk>")
    assert vocabulary.counts.tolist() == [5, 1, 0]
    assert (vocabulary.end_id, vocabulary.unknown_id) == (0, 2)


def test_unknown_words_get_the_unknown_id() -> None:
    vocabulary = Vocabulary.from_counts({"a": 2, "<unk>": 1})
    assert vocabulary.id("never") == 1
    assert vocabulary.encode(["a", "never", "a"]).tolist() == [0, 1, 0]
    assert vocabulary.decode([1, 0]) == ["<unk>", "a"]
    assert "never" not in vocabulary
    assert "a" in vocabulary


def test_a_closed_vocabulary_names_the_unknown_word() -> None:
    with pytest.raises(DataError, match=r"'never'.*no '<unk>'"):
        Vocabulary.from_counts({"a": 1}).id("never")
    with pytest.raises(DataError, match=r"'never'.*no '<unk>'"):
        Vocabulary.from_counts({"a": 1}).encode(["a", "never"])
    assert Vocabulary.from_counts({"a": 1}).encode(["a"]).tolist() == [0]


@pytest.mark.parametrize("id", [-1, 1, 10**12])
def test_ids_outside_are_refused(id: int) -> None:
    with pytest.raises(DataError, match="allowed are 0 to 0"):
        Vocabulary.from_counts({"a": 1}).token(id)


def test_nothing_can_be_changed() -> None:
    vocabulary = Vocabulary.from_counts({"a": 1})
    with pytest.raises(AttributeError, match="cannot assign"):
        vocabulary.tokens = ("b",)
    with pytest.raises(AttributeError, match="cannot delete"):
        del vocabulary.counts
    with pytest.raises(ValueError, match="read-only"):
        vocabulary.counts[0] = 7


@given(st.dictionaries(words, st.integers(0, 10**12), min_size=1, max_size=30))
@example({"\ufeff": 1})
def test_saving_and_loading_and_pickling_give_the_same(
    tmp_path_factory: pytest.TempPathFactory, counts: dict[str, int]
) -> None:
    path = tmp_path_factory.mktemp("vocabulary") / "vocabulary.tsv"
    vocabulary = Vocabulary.from_counts(counts)
    vocabulary.save(path)
    for again in (Vocabulary.load(path), pickle.loads(pickle.dumps(vocabulary))):
        assert again.tokens == vocabulary.tokens
        assert again.counts.tolist() == vocabulary.counts.tolist()
        assert again == vocabulary
    assert vocabulary.decode(vocabulary.encode(vocabulary.tokens)) == list(counts_in_order(counts))


def counts_in_order(counts: dict[str, int]) -> list[str]:
    return sorted(counts, key=lambda word: (-counts[word], word))


def test_the_fingerprint_sees_words_and_counts() -> None:
    prints = {
        Vocabulary.from_counts(Counter(text.split())).fingerprint for text in ("a a b", "a a c", "a a a b", "a b", "a a b b b")
    }
    assert len(prints) == 5
    assert all(len(value) == 16 and int(value, 16) >= 0 for value in prints)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\t3\nb\n", r"vocabulary.tsv:2: expected 'word TAB count', found 'b'"),
        (b"a\t3\nb\tx\n", r":2: expected 'word TAB count'"),
        (b"a\t9223372036854775808\n", r":1: expected 'word TAB count', .*; a count is 0 to 9223372036854775807"),
        (b"a\t" + b"9" * 5000 + b"\n", r":1: expected 'word TAB count', .*; a count is 0 to 9223372036854775807"),
        (b"a\t3\nb\t-1\n", r":2: expected 'word TAB count'"),
        ("a\t3\nb\t²\n".encode(), r":2: expected 'word TAB count'"),
        (b"a\t3\nb\t1\t2\n", r":2: expected 'word TAB count'"),
        (b"a\t3\n\t1\n", r":2: '' cannot be a word"),
        (b"a\t3\na\t1\n", r":2: 'a' stands on line 1 already"),
        (b"a\t3\nb\t4\n", r":2: 'b' with count 4 is out of order"),
        (b"b\t3\na\t3\n", r":2: 'a' with count 3 is out of order"),
        (b"a\t3\nb\xff\t1\n", r":2: not UTF-8 at byte 5"),
        (b"a\t3\nb\t1", r"no line end, so the file is cut short"),
        (b"", r"is empty"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "vocabulary.tsv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        Vocabulary.load(path)


def test_absent_files_and_folders_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(DataError, match="cannot be read"):
            Vocabulary.load(path)


@pytest.mark.parametrize("word", ["", "a\tb", "a\nb", "a\rb", "a\0b", "\ud800"])
def test_words_that_a_file_cannot_hold_are_refused(word: str) -> None:
    with pytest.raises(DataError):
        Vocabulary.from_counts({word: 1})


def test_an_empty_vocabulary_is_refused() -> None:
    with pytest.raises(DataError, match="no words"):
        Vocabulary.from_counts({})
