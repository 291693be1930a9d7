"""The reader of WordNet's files, on a database of a few lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from sememekit.errors import DataError
from sememekit.sememes.wordnet import read_wordnet

LICENCE = "  1 This software and database is being provided to you\n"
LINES = {
    "data.noun": '00000010 03 n 02 dog 0 domestic_dog 0 001 @ 00000020 n 0000 | a barking animal; "good dog"\n'
    "00000020 03 n 01 animal 0 000 | a living being\n",
    "data.verb": "00000010 30 v 02 dog 0 chase 1 000 01 + 08 00 | go after\n",
    "data.adj": "00000010 00 s 03 galore(ip) 0 Big 0 large 0 000 | of size\n",
    "data.adv": "00000010 02 r 01 quickly 0 000 | fast\n",
}


def write(folder: Path, **changes: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in {**LINES, **{key.replace("_", "."): value for key, value in changes.items()}}.items():
        (folder / name).write_text(LICENCE + text, encoding="utf-8")
    return folder


def test_synsets_and_synonyms(tmp_path: Path) -> None:
    wordnet = read_wordnet(str(write(tmp_path / "dict")))
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
        read_wordnet(str(write(tmp_path / "w", data_noun=line)))


def test_a_folder_without_the_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no data\.noun; give the folder"):
        read_wordnet(str(tmp_path))
