"""A word that may come next, with its senses, and a word that was named, with its senses in the whole sentence."""

from collections.abc import Sequence
from typing import Final

from sememekit.analysis.explanations.sememes import SenseShare
from sememekit.analysis.senses.tagging import SenseTag, header_of, tag
from sememekit.config import Record
from sememekit.errors import DataError
from sememekit.runs.run import Run

LEAST_MOVED: Final = 0.1
"""Total variation between the shares of senses in a context and without any, below which they are not told apart."""


class PredictedWord(Record):
    """A word that may come next.

    Attributes:
        probability: p(word | context).
        source: the lexicon or rule that its senses come from; None for models without senses.
        annotated: whether any lexicon or rule knows the word; None for models without senses.
        senses: by falling share; empty for models without senses.
    """

    word: str
    probability: float
    source: str | None = None
    annotated: bool | None = None
    senses: tuple[SenseShare, ...] = ()

    @property
    def is_told_apart(self) -> bool:
        """Return whether the context moves the shares of senses from the empty context by at least ``LEAST_MOVED``."""
        moved = sum(abs(sense.share - sense.prior) for sense in self.senses if sense.prior is not None) / 2
        return len(self.senses) < 2 or moved >= LEAST_MOVED


class AskedWord(Record):
    """A word that was named, in the whole sentence.

    Attributes:
        word: as a word that may come next.
        rank: of its probability among all words, from 1.
        right: the words after it.
        tags: its senses by the method ``combined`` of ``SenseTagger``; empty for models without senses.
        accuracy: what is known of how often this method is right, a sentence each.
    """

    word: PredictedWord
    rank: int
    right: tuple[str, ...]
    tags: tuple[SenseTag, ...]
    accuracy: tuple[str, ...]


def known_word(run: Run, word: str) -> int:
    """The number of a word that was named. Raises DataError: the model does not know it."""
    normal = run.form().word(word)
    if normal not in run.vocabulary:
        known = run.folder.file("vocabulary.tsv")
        raise DataError(f"--word {word}: the model does not know this word; {known} has those that it knows")
    return run.vocabulary.id(normal)


def asked_word(run: Run, left: Sequence[str], word: PredictedWord, rank: int, right: Sequence[str]) -> AskedWord:
    """A named word between the words before and after it; without senses for a model that has none."""
    if not word.senses:
        return AskedWord(word=word, rank=rank, right=tuple(right), tags=(), accuracy=())
    line = " ".join([*left, word.word, *right])
    tagged = next(row for row in tag(run, [line]) if row.position == len(left) + 1)
    accuracy = tuple(header_of(run, "combined", ()).sentences()[1:])
    return AskedWord(word=word, rank=rank, right=tuple(right), tags=tagged.senses, accuracy=accuracy)
