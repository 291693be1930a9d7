"""Pairs of a source and a target: headlines, and whatever else one text is made from another."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, ClassVar, final

from sememekit.corpora.examples.base import ExampleSet
from sememekit.corpora.examples.rows import Opened, Row, is_json, json_records, whole_lines
from sememekit.errors import DataError
from sememekit.text.reading import FaultCounter

SOURCE_KEYS = ("source", "text", "article", "document", "short_text")
TARGET_KEYS = ("references", "summaries", "target", "summary", "title", "headline")
_NAMES = (("article", "title"), ("source", "target"), ("src", "tgt"))


class PairSet(ExampleSet):
    """A source and a target, whose references are kept as they were written.

    The vocabulary is that of train alone. A training pair that occurs in valid or test is counted and left out.
    """

    texts = ("source", "target")
    headers: ClassVar = (SOURCE_KEYS, TARGET_KEYS)
    label_headers: ClassVar = ()
    columns: ClassVar = ("source", "target")
    keeps_text: ClassVar = True
    predicted: ClassVar = 1
    vocabulary_of_train: ClassVar = True
    held_out_stays_out: ClassVar = True


class FilePairs(PairSet):
    """Pairs in two files side by side, line by line (``train.article.txt`` with ``train.title.txt``; also ``source`` with
    ``target`` and ``src`` with ``tgt``), in JSON lines with a text and its summary or summaries, or in a table with TAB.
    """

    def beside_names(self, name: str) -> list[str]:
        """The file, and the one whose name has "title" where this has "article"."""
        for source, target in _NAMES:
            if _has(source, name):
                return [name, _swap(source, target, name)]
        return [name]

    def is_beside(self, name: str) -> bool:
        """Whether it is the file of targets."""
        return any(_has(target, name) for _, target in _NAMES)

    def rows(self, files: Sequence[Opened], split: str | None, faults: FaultCounter, left_out: Counter[str]) -> Iterator[Row]:
        """Pairs of one file, or of two."""
        if len(files) == 1 and is_json(files[0]):
            return _of_records(files[0], faults)
        if len(files) == 1:
            return (_pair(row.line, row.texts[0], [row.texts[1]]) for row in super().rows(files, split, faults, left_out))
        return _of_two_files(files[0], files[1], faults)


@final
class Gigaword(FilePairs):
    """Headlines of Gigaword in the form of Rush et al. (2015): tokenised, lower-cased, digits as ``#``."""

    segmenters: ClassVar = ("gigaword", "none", "english", "english-cased", "sentencepiece")


@final
class Duc(FilePairs):
    """DUC-2004, task 1: first sentences with four references each, a test set for models of Gigaword."""

    segmenters: ClassVar = Gigaword.segmenters
    test_only: ClassVar = True


def _of_records(file: Opened, faults: FaultCounter) -> Iterator[Row]:
    for number, record in json_records(file, faults):
        where = f"{file.name}:{number}"
        source, target = _value(record, SOURCE_KEYS, where), _value(record, TARGET_KEYS, where)
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
        yield _pair(number, source, references)


def _value(record: dict[str, Any], keys: Sequence[str], where: str) -> Any:
    for key in keys:
        if key in record:
            return record[key]
    raise DataError(f"{where}: has none of the keys {', '.join(map(repr, keys))}; it has {', '.join(map(repr, record))}"[:300])


def _of_two_files(source: Opened, target: Opened, faults: FaultCounter) -> Iterator[Row]:
    if faults.policy == "skip":
        raise DataError(
            f"{source.name}: --errors skip would leave a line out of one file and not of the other; use --errors replace"
        )
    streams = [whole_lines(source, faults), whole_lines(target, faults)]
    for number, (left, right) in enumerate(zip_longest(*streams), start=1):
        if left is None or right is None:
            short, long = (source, target) if left is None else (target, source)
            raise DataError(
                f"{short.name}: ends after {number - 1} lines, and {long.name} goes on; lines of equal number belong together"
            )
        yield _pair(number, left[0].text, [right[0].text])


def _pair(line: int, source: str, references: Sequence[str]) -> Row:
    """A row whose target is the first reference; runs of white space become one blank."""
    tidy = tuple(" ".join(reference.split()) for reference in references)
    return Row(line, (" ".join(source.split()), tidy[0]), None, tidy)


def _has(part: str, name: str) -> bool:
    return re.search(rf"(?:^|[._-]){part}(?=[._-]|$)", name) is not None


def _swap(old: str, new: str, name: str) -> str:
    return re.sub(rf"(^|[._-]){old}(?=[._-]|$)", rf"\g<1>{new}", name, count=1)
