"""Lemmas: a word that no lexicon knows as it is written may be known by its base form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sememekit.errors import DataError
from sememekit.sememes.reading import read_lexicon_text
from sememekit.sememes.wordnet import read_wordnet_index, wordnet_folder


class Lemmas(Protocol):
    """Base forms of inflected words, and where they come from: a name for reports, and the SHA-256 of the files."""

    @property
    def name(self) -> str: ...

    @property
    def sha256(self) -> str: ...

    def bases(self, word: str) -> tuple[str, ...]:
        """The base forms of ``word``, the most probable first, without the word itself; empty for unknown words."""


@dataclass(frozen=True)
class LemmaList:
    """Inflected forms, each with its lemma."""

    name: str
    sha256: str
    of_form: Mapping[str, str]

    def bases(self, word: str) -> tuple[str, ...]:
        lemma = self.of_form.get(word, word)
        return () if lemma == word else (lemma,)


def open_lemmas(spec: str) -> Lemmas:
    """The lemmas of ``wordnet`` or ``wordnet:FOLDER``, or of a file of ``lemma TAB form`` lines. Raises DataError for files
    that are absent or of another form."""
    name, _, path = spec.partition(":")
    if name == "wordnet" and not Path(spec).is_file():
        return read_wordnet_index(wordnet_folder(path))
    return read_lemmas(Path(spec).expanduser())


def read_lemmas(path: Path) -> LemmaList:
    """Read ``lemma TAB form`` lines; of several lines with one form the last counts, as in the released code of sememe RNNs.
    Raises DataError: absent, not text, or a line without two columns."""
    source = read_lexicon_text(path)
    of_form: dict[str, str] = {}
    for number, line in source.entries():
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) != 2 or not all(columns):
            raise DataError(f"{source.place(number)}: a list of lemmas has lemma TAB form, found {line[:60]!r}")
        lemma, form = columns
        of_form[form] = lemma
    return LemmaList(f"lemmas:{path.name}", source.sha256, of_form)
