"""What an attack works on: labelled texts from a file, and what became of each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from sememekit.attack.documents import Fields
from sememekit.config import Record
from sememekit.errors import DataError
from sememekit.measure.attack_coverage import SpaceSize
from sememekit.measure.attack_rates import ExampleOutcome

FIELD_NAMES: Final[dict[int, tuple[str, ...]]] = {1: ("text",), 2: ("premise", "hypothesis")}
"""Fields of an example -> what they are called."""

_HEADERS: Final = {
    "text": ("text", "sentence", "sentence1", "premise", "review"),
    "hypothesis": ("sentence2", "hypothesis"),
    "label": ("label", "gold_label", "labels"),
}
NO_LABEL: Final = "-"
"""What SNLI writes where the annotators did not agree."""


@dataclass(frozen=True)
class Example:
    """One labelled text.

    Attributes:
        index: place in the file, from 0; the random numbers of an attack on it depend on the seed and this alone.
        fields: the text, or (premise, hypothesis).
        label: name of the true label, as the file has it.
    """

    index: int
    fields: Fields
    label: str


class Change(Record):
    """One exchanged word.

    Attributes:
        field: number of the field it is in.
        place: number of the word in that field, from 0.
        begin: where the word begins in the field, in characters; None in files of earlier versions.
        old, new: before and after.
    """

    field: int
    place: int
    begin: int | None = None
    old: str
    new: str


class ExampleResult(ExampleOutcome):
    """What became of one example; a line of ``examples.jsonl``.

    Attributes:
        index, fields, label: the example.
        reason: why it was skipped, failed, had nothing to try or ended in an error.
        space: how much there was to try; None where it did not come to that.
        prediction: label that the victim gave before the attack; None where it could not be asked.
        probabilities: of each label, before.
        target: label that the attack was after; None for any other.
        adversarial: the fields that fooled the victim; None unless it succeeded.
        adversarial_prediction, adversarial_probabilities: what the victim said to them.
        changes: exchanged words.
        best_score: the highest score that the search saw, 0 to 1.
    """

    index: int
    fields: tuple[str, ...]
    label: str
    reason: str = ""
    space: SpaceSize | None = None
    prediction: str | None = None
    probabilities: tuple[float, ...] | None = None
    target: str | None = None
    adversarial: tuple[str, ...] | None = None
    adversarial_prediction: str | None = None
    adversarial_probabilities: tuple[float, ...] | None = None
    changes: tuple[Change, ...] = ()
    best_score: float | None = None


@dataclass(frozen=True)
class ExampleFile:
    """The examples of a file.

    Attributes:
        examples: in order.
        field_names: ``text``, or ``premise`` and ``hypothesis``.
        sha256: of the file, or of all its parts.
    """

    examples: tuple[Example, ...]
    field_names: tuple[str, ...]
    sha256: str


def read_examples(path: Path) -> ExampleFile:
    """Read labelled texts.

    Args:
        path: ``.tsv`` with 2 columns (text, label) or 3 (premise, hypothesis, label), with or without a header; ``.jsonl``
            with ``text`` or ``sentence1`` and ``sentence2``, and ``label`` or ``gold_label`` (SNLI's own); or ``s1.SPLIT``,
            beside which ``s2.SPLIT`` and ``labels.SPLIT`` lie.

    Raises:
        DataError: absent, not UTF-8, empty, or a line that is no example; names the line.
    """
    if path.name.startswith("s1."):
        found, digest = _three_files(path)
    else:
        data = _bytes(path)
        digest = hashlib.sha256(data).hexdigest()
        text = _text(path, data)
        found = list(_json_lines(path, text) if path.suffix in {".jsonl", ".json"} else _table(path, text))
    examples = tuple(Example(index, fields, label) for index, (fields, label) in enumerate(found))
    if not examples:
        raise DataError(f"{path}: holds no examples")
    width = {len(example.fields) for example in examples}
    if len(width) > 1:
        raise DataError(f"{path}: holds single texts and pairs; one file, one kind")
    return ExampleFile(examples, FIELD_NAMES[width.pop()], digest)


def choose_examples(examples: Sequence[Example], limit: int, sample: str, seed: int) -> list[Example]:
    """The first ``limit`` examples, or so many drawn without replacement, in the order of the file; 0 takes all."""
    if not limit or limit >= len(examples):
        return list(examples)
    if sample == "first":
        return list(examples[:limit])
    chosen = np.random.default_rng([seed, 1]).choice(len(examples), size=limit, replace=False)
    return [examples[index] for index in sorted(chosen.tolist())]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"examples {path}: cannot be read: {error.strerror}") from None


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"examples {path}: byte {error.start} is not UTF-8; convert the file") from None


def _table(path: Path, text: str) -> Iterable[tuple[Fields, str]]:
    lines = [line.rstrip("\r") for line in text.split("\n")]
    rows = [(number, line.split("\t")) for number, line in enumerate(lines, start=1) if line.strip()]
    if not rows:
        return
    header = [name.strip().lower() for name in rows[0][1]]
    columns = _columns(header)
    width = len(header)
    if columns is None:
        if width not in (2, 3):
            raise DataError(f"{path}:1: {width} columns; a table has text TAB label, or premise TAB hypothesis TAB label")
        columns = list(range(width))
    else:
        rows = rows[1:]
    for number, row in rows:
        if len(row) != width:
            raise DataError(f"{path}:{number}: {len(row)} columns, and {width} are expected")
        *fields, label = (row[column].strip() for column in columns)
        yield tuple(fields), label


def _columns(header: list[str]) -> list[int] | None:
    """Places of the text, the hypothesis where there is one, and the label, by the names of a header; None where it is none."""
    if not any(name in _HEADERS["label"] for name in header):
        return None
    places = []
    for kind in ("text", "hypothesis", "label"):
        found = [header.index(name) for name in _HEADERS[kind] if name in header]
        if found:
            places.append(found[0])
        elif kind != "hypothesis":
            return None
    return places


def _json_lines(path: Path, text: str) -> Iterable[tuple[Fields, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}:{number}: not JSON: {error}") from None
        values = []
        for kind in ("text", "hypothesis", "label"):
            found = [record[name] for name in _HEADERS[kind] if isinstance(record, dict) and name in record]
            if found and isinstance(found[0], str | int) and not isinstance(found[0], bool):
                values.append(_writable(str(found[0]), f"{path}:{number}"))
            elif kind != "hypothesis":
                raise DataError(f"{path}:{number}: no {' or '.join(_HEADERS[kind])} in this line")
        yield tuple(values[:-1]), values[-1]


def _writable(text: str, where: str) -> str:
    """The text, unless it holds half a surrogate pair, which JSON can spell and no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{where}: character {error.start + 1} of a text or label is half a surrogate pair ({text[error.start]!a}), which "
            "is no character; take it out or write the whole pair"
        ) from None
    return text


def _three_files(path: Path) -> tuple[list[tuple[Fields, str]], str]:
    parts = [path, path.with_name("s2." + path.name[3:]), path.with_name("labels." + path.name[3:])]
    data = [_bytes(part) for part in parts]
    lines = [_text(part, content).rstrip("\n").split("\n") for part, content in zip(parts, data, strict=True)]
    if len({len(part) for part in lines}) > 1:
        raise DataError(f"{path}: {' / '.join(str(len(part)) for part in lines)} lines in s1 / s2 / labels; they must agree")
    rows: list[tuple[Fields, str]] = [
        ((one.strip(), two.strip()), label.strip()) for one, two, label in zip(*lines, strict=True)
    ]
    return rows, hashlib.sha256(b"\0".join(data)).hexdigest()
