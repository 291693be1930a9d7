"""The sets of examples that have a name."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import ClassVar, final

from sememekit.corpora.examples.base import ExampleSet
from sememekit.corpora.examples.rows import Opened, Row, is_json, json_records, value_of
from sememekit.errors import DataError
from sememekit.text.form import has_ends
from sememekit.text.reading import FaultCounter


class TextPairs(ExampleSet):
    """Two texts and a label of your own, such as paraphrases (LCQMC, BQ, AFQMC, QQP)."""

    texts = ("premise", "hypothesis")
    headers: ClassVar = (
        ("premise", "sentence1", "s1", "question1", "text_a", "text1", "query"),
        ("hypothesis", "sentence2", "s2", "question2", "text_b", "text2", "title"),
    )
    label_headers: ClassVar = ("gold_label", "label", "labels", "is_duplicate")
    columns: ClassVar = ("premise", "hypothesis", "label")


@final
class InferenceSet(TextPairs):
    """Natural language inference: SNLI (Bowman et al. 2015) as released, tokenised in three files, or any table of its kind.

    Pairs labelled ``-`` or ``-1``, on which the annotators disagree, are left out as usual. Labels may be the numbers of the
    Hugging Face hub."""

    labels: ClassVar = ("entailment", "neutral", "contradiction")
    spelled: ClassVar = {"0": "entailment", "1": "neutral", "2": "contradiction"}
    left_out: ClassVar = frozenset({"-", "-1"})
    beside: ClassVar = ("s1.", "s2.", "labels.")


class ClassificationSet(ExampleSet):
    """One text and a label, in a table; the training split defines the labels."""

    texts = ("text",)
    headers: ClassVar = (("text", "sentence", "review", "text_a", "content", "query"),)
    label_headers: ClassVar = ("label", "sentiment", "class", "gold_label", "labels", "genre", "topic")
    columns: ClassVar = ("text", "label")


@final
class Sst2(ClassificationSet):
    """The Stanford Sentiment Treebank in two classes (Socher et al. 2013): text TAB 0 or 1, with or without a header."""

    labels: ClassVar = ("negative", "positive")
    spelled: ClassVar = {"0": "negative", "1": "positive"}


@final
class Imdb(ClassificationSet):
    """Film reviews (Maas et al. 2011): a table with the columns Sentiment and Text, or the folder ``aclImdb``."""

    labels: ClassVar = ("negative", "positive")
    spelled: ClassVar = {
        **dict.fromkeys(("0", "neg", "Negative"), "negative"),
        **dict.fromkeys(("1", "pos", "Positive"), "positive"),
    }
    left_out: ClassVar = frozenset({"unsup"})  # the folder of reviews without labels
    break_mark: ClassVar = True


SOURCE_KEYS = ("source", "text", "article", "document", "short_text", "content", "abst")
TARGET_KEYS = ("references", "summaries", "target", "summary", "title", "headline")
_NAMES = (("article", "title"), ("source", "target"), ("src", "tgt"))


class PairSet(ExampleSet):
    """A source and a target, with references stored as text.

    The vocabulary comes from train alone. A training pair that occurs in valid or test is counted and left out."""

    texts = ("source", "target")
    headers: ClassVar = (SOURCE_KEYS, TARGET_KEYS)
    label_headers: ClassVar = ()
    columns: ClassVar = ("source", "target")
    keeps_text: ClassVar = True
    predicted: ClassVar = 1
    vocabulary_of_train: ClassVar = True
    held_out_stays_out: ClassVar = True


class FilePairs(PairSet):
    """Pairs in two parallel files, line by line (``train.article.txt`` with ``train.title.txt``; also ``source`` with
    ``target`` and ``src`` with ``tgt``), in JSON lines with a text and its summary or summaries, or in a table with TAB."""

    def beside_names(self, name: str) -> list[str]:
        """Return the file, and the parallel file with "title" for "article" in its name."""
        for source, target in _NAMES:
            if _has(source, name):
                return [name, _swap(source, target, name)]
        return [name]

    def is_beside(self, name: str) -> bool:
        return any(_has(target, name) for _, target in _NAMES)

    def rows(self, files: Sequence[Opened], split: str | None, faults: FaultCounter, left_out: Counter[str]) -> Iterator[Row]:
        if len(files) == 1 and is_json(files[0]):
            return _of_records(files[0], self, faults)
        return (row._replace(references=row.texts[1:]) for row in super().rows(files, split, faults, left_out))


@final
class GigawordSet(FilePairs):
    """Headlines of Gigaword in the form of Rush et al. (2015): tokenised, lower-cased, digits as ``#``."""

    segmenters: ClassVar = ("gigaword", "none", "english", "english-cased", "jieba", "characters", "fmm", "sentencepiece")


@final
class Duc(FilePairs):
    """DUC-2004, task 1: first sentences with four references each, a test set for models of Gigaword."""

    segmenters: ClassVar = GigawordSet.segmenters
    test_only: ClassVar = True


def _of_records(file: Opened, kind: ExampleSet, faults: FaultCounter) -> Iterator[Row]:
    for number, record in json_records(file, faults):
        where = f"{file.name}:{number}"
        source, target = value_of(record, SOURCE_KEYS, where)[1], value_of(record, TARGET_KEYS, where)[1]
        if not isinstance(source, str):
            raise DataError(f"{where}: the source must be a string, given {source!r}"[:300])
        references = [target] if isinstance(target, str) else target
        if not isinstance(references, list) or not all(isinstance(reference, str) for reference in references):
            raise DataError(f"{where}: the target must be a string or a list of strings, given {target!r}"[:300])
        if not references:
            raise DataError(f"{where}: no reference; a pair needs one at least")
        blank = [place for place, reference in enumerate(references, start=1) if not reference.strip()]
        if blank and len(references) > 1:
            raise DataError(f"{where}: reference {blank[0]} of {len(references)} is empty")
        if any(map(has_ends, (source, *references))):
            faults.add("end_marks")
        tidy = tuple(map(kind.text, references))
        yield Row(number, (kind.text(source), tidy[0]), None, tidy)


def _has(part: str, name: str) -> bool:
    return re.search(rf"(?:^|[._-]){part}(?=[._-]|$)", name) is not None


def _swap(old: str, new: str, name: str) -> str:
    return re.sub(rf"(^|[._-]){old}(?=[._-]|$)", rf"\g<1>{new}", name, count=1)
