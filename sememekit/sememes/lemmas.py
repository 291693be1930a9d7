"""Base forms: a word that no lexicon knows as it is written may be known by its lemma."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sememekit.errors import DataError
from sememekit.sememes.reading import read_lexicon_text


@dataclass(frozen=True)
class Lemmas:
    """Inflected form -> lemma.

    Attributes:
        name: where they come from, for reports.
        sha256: of the file.
        of_form: a form and its lemma, both as the file writes them.
    """

    name: str
    sha256: str
    of_form: Mapping[str, str]

    def lemma(self, word: str) -> str | None:
        """The lemma of an inflected form, or None for a word that is not in the list."""
        return self.of_form.get(word)


def read_lemmas(path: Path) -> Lemmas:
    """Read ``lemma TAB form`` lines; of several lines with one form the last counts, as in the released code of sememe RNNs.

    Raises:
        DataError: the file is absent or not text, or a line has not two columns.
    """
    source = read_lexicon_text(path)
    of_form: dict[str, str] = {}
    for number, line in enumerate(source.lines(), start=1):
        if not line.strip():
            continue
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) != 2 or not all(columns):
            raise DataError(f"{source.place(number)}: a list of lemmas has lemma TAB form, found {line[:60]!r}")
        lemma, form = columns
        of_form[form] = lemma
    return Lemmas(f"lemmas:{path.name}", source.sha256, of_form)
