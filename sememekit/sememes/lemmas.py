"""Base forms: a word that no lexicon knows as it is written may be known by its lemma."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sememekit.errors import DataError
from sememekit.sememes.reading import read_lexicon_text
from sememekit.sememes.wordnet import wordnet_folder
from sememekit.sememes.wordnet_index import read_wordnet_index


class Lemmas(Protocol):
    """Base forms of inflected words."""

    @property
    def name(self) -> str:
        """Where they come from, for reports."""

    @property
    def sha256(self) -> str:
        """Of the files that were read."""

    def bases(self, word: str) -> tuple[str, ...]:
        """The base forms that ``word`` may have, the most probable first, the word itself left out; empty for unknown words."""


@dataclass(frozen=True)
class LemmaList:
    """A list of inflected forms, each with its lemma, both as the file writes them."""

    name: str
    sha256: str
    of_form: Mapping[str, str]

    def bases(self, word: str) -> tuple[str, ...]:
        lemma = self.of_form.get(word, word)
        return () if lemma == word else (lemma,)


def open_lemmas(spec: str) -> Lemmas:
    """The lemmas of ``wordnet`` or ``wordnet:FOLDER``, or of a file of ``lemma TAB form`` lines. Raises DataError: the files
    are absent or are not what they should be."""
    name, _, path = spec.partition(":")
    if name == "wordnet" and not Path(spec).is_file():
        return read_wordnet_index(wordnet_folder(path))
    return read_lemmas(Path(spec).expanduser())


def read_lemmas(path: Path) -> LemmaList:
    """Read ``lemma TAB form`` lines; of several lines with one form the last counts, as in the released code of sememe RNNs.
    Raises DataError: the file is absent or not text, or a line has not two columns."""
    source = read_lexicon_text(path)
    of_form: dict[str, str] = {}
    for number, line in source.entries():
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) != 2 or not all(columns):
            raise DataError(f"{source.place(number)}: a list of lemmas has lemma TAB form, found {line[:60]!r}")
        lemma, form = columns
        of_form[form] = lemma
    return LemmaList(f"lemmas:{path.name}", source.sha256, of_form)
