"""Lemmas, by which inflected words are found in lexicons."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sememekit.errors import DataError
from sememekit.files import at_home
from sememekit.sememes.reading import read_lexicon_text
from sememekit.sememes.wordnet import WordNetIndex, read_wordnet_index, wordnet_folder


@dataclass(frozen=True)
class LemmaList:
    """Inflected forms, each with its lemma."""

    name: str
    sha256: str
    of_form: Mapping[str, str]

    def bases(self, word: str) -> tuple[str, ...]:
        """The base forms of ``word`` without the word itself; empty for unknown words."""
        lemma = self.of_form.get(word, word)
        return () if lemma == word else (lemma,)


Lemmas = WordNetIndex | LemmaList
"""Base forms of inflected words, a name of their source for reports, and the SHA-256 of its files."""


def open_lemmas(spec: str) -> Lemmas:
    """The lemmas of ``wordnet`` or ``wordnet:FOLDER``, or of a file of ``lemma TAB form`` lines; if a form has several lines
    the last counts, as in the released code of sememe RNNs. Raises DataError for files that are absent or of another form."""
    if (index := wordnet_of(spec)) is not None:
        return index
    path = at_home(spec)
    pairs, sha256 = read_pairs(path)
    return LemmaList(f"lemmas:{path.name}", sha256, {form: lemma for lemma, form in pairs})


def wordnet_of(spec: str) -> WordNetIndex | None:
    """The index of ``wordnet`` or ``wordnet:FOLDER``; None for the name of a file. Raises DataError: no WordNet."""
    name, _, path = spec.partition(":")
    return read_wordnet_index(wordnet_folder(path)) if name == "wordnet" and not Path(spec).is_file() else None


def read_pairs(path: Path) -> tuple[list[tuple[str, str]], str]:
    """Lemma and form of each ``lemma TAB form`` line, and the SHA-256. DataError: absent, not text, or another line."""
    source = read_lexicon_text(path)
    pairs = []
    for number, line, cells in source.rows():
        columns = [cell.strip() for cell in cells]
        if len(columns) != 2 or not all(columns):
            raise DataError(f"{source.place(number)}: a list of lemmas has lemma TAB form, found {line[:60]!r}")
        pairs.append((columns[0], columns[1]))
    return pairs, source.sha256
