"""Labelled texts from a file, and the result of an attack on each."""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from sememekit.attack.documents import Cutter, Document, Fields
from sememekit.attack.victim import FAULT
from sememekit.config import Record
from sememekit.corpora.examples import ExampleSet
from sememekit.corpora.examples.labelled import LabelledFile, read_labelled
from sememekit.errors import DataError
from sememekit.measure.attack_rates import ExampleOutcome, SpaceSize

NO_LABEL: Final = "-"  # the label in SNLI where the annotators did not agree


@dataclass(frozen=True)
class Example:
    """One labelled text."""

    index: int  # place in the file, from 0; index and seed together decide all random numbers of the attack on this example
    fields: Fields  # the text, or (premise, hypothesis)
    label: str  # name of the true label, as the file has it


class Change(Record):
    """One replaced word."""

    field: int
    """Number of the text in the example, from 0."""
    place: int
    """Number of the word in its field, from 0."""
    begin: int
    """Beginning of the word in the field, in characters."""
    old: str
    """The word before the attack."""
    new: str
    """Its substitute."""


def change_of(document: Document, number: int, new: str) -> Change:
    """Return the change of word ``number`` to ``new``."""
    word = document.words[number]
    place = sum(other.field == word.field for other in document.words[:number])
    return Change(field=word.field, place=place, begin=word.begin, old=word.text, new=new)


class ExampleResult(ExampleOutcome):
    """Result of one example; a line of ``examples.jsonl``."""

    index: int
    """Number of the example, from 0."""
    fields: tuple[str, ...]
    """The texts of the example."""
    label: str
    """The true label."""
    reason: str = ""
    """Reason why it was skipped, failed, had nothing to try or ended in an error."""
    space: SpaceSize | None = None
    """Size of the search space; None if it was not reached."""
    prediction: str | None = None
    """Label by the victim before the attack; None if the query failed."""
    probabilities: tuple[float, ...] | None = None
    """Probabilities by the victim before the attack; None if the query failed."""
    target: str | None = None
    """Target label of the attack; None for any other label."""
    adversarial: tuple[str, ...] | None = None
    """The fields that fooled the victim; None unless it succeeded."""
    adversarial_prediction: str | None = None
    """Label of the texts that fooled the victim; None unless it succeeded."""
    adversarial_probabilities: tuple[float, ...] | None = None
    """Probabilities of the texts that fooled the victim; None unless it succeeded."""
    changes: tuple[Change, ...] = ()
    """The replaced words."""
    best_score: float | None = None
    """The highest score that the search saw, 0 to 1."""

    @property
    def broken(self) -> bool:
        """True if the victim gave no answer; a resumed attack then tries again."""
        return self.outcome == "error" and self.reason.startswith(FAULT)


def read_examples(path: Path, kind: ExampleSet | None = None) -> tuple[list[Example], LabelledFile]:
    """Read labelled texts and the name of their file; see ``read_labelled``. Labels get the spelling of the set."""
    file = read_labelled(path, kind)
    spelled = kind.spelled if kind is not None else {}
    rows = enumerate(file.rows)
    return [Example(index, row.texts, spelled.get(row.label or "", row.label or "")) for index, row in rows], file


def choose_examples(examples: Sequence[Example], limit: int, sample: str, seed: int) -> list[Example]:
    """Return the first ``limit`` examples, or a sample without replacement in the order of the file; 0 for all."""
    if not limit or limit >= len(examples):
        return list(examples)
    if sample == "first":
        return list(examples[:limit])
    chosen = np.random.default_rng([seed, 1]).choice(len(examples), size=limit, replace=False)
    return [examples[index] for index in sorted(chosen.tolist())]


def words_of(examples: Iterable[Example], cut: Cutter | None = None) -> list[str]:
    """Return every word of the examples, as written and in lower case, most frequent first, to look up candidates.

    An example on which ``cut`` fails ends in an error later."""
    counts = Counter[str]()
    for example in examples:
        with suppress(DataError):
            for word in Document.read(example.fields, cut).words:
                counts.update({word.text, word.text.lower()})
    return sorted(counts, key=lambda word: (-counts[word], word))
