"""The reader of WordNet's files, on a database of a few lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from sememekit.errors import DataError
from sememekit.sememes.wordnet import read_wordnet
from tests.small_wordnet import write_database


def test_synsets_and_synonyms(tmp_path: Path) -> None:
    wordnet = read_wordnet(str(write_database(tmp_path / "dict")))
    assert [synset.part_of_speech for synset in wordnet.synsets] == ["n", "n", "v", "a", "r"]
    assert wordnet.synsets[0].gloss == 'a barking animal; "good dog"'
    assert wordnet.synonyms("Dog") == ("domestic dog", "chase")
    assert wordnet.synonyms("large") == ("galore", "big")
    assert wordnet.synonyms("quickly") == ()
    assert wordnet.synonyms("absent") == ()
    assert read_wordnet(str(tmp_path)).sha256 == wordnet.sha256, "the folder above 'dict' will do"


@pytest.mark.parametrize(
    ("line", "problem"),
    [("00000010 03 n 09 dog 0 000 | short\n", "too few"), ("00000010 03 n 01 dog 0 000\n", "no gloss"), ("x\n", "no gloss")],
)
def test_a_line_that_is_no_synset_is_named(tmp_path: Path, line: str, problem: str) -> None:
    with pytest.raises(DataError, match=rf"data\.noun:2: no synset \({problem}"):
        read_wordnet(str(write_database(tmp_path / "w", data_noun=line)))


def test_a_folder_without_the_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no data\.noun; give the folder"):
        read_wordnet(str(tmp_path))
