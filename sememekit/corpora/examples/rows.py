"""Rows out of files: JSON lines, tables with TAB, and files that belong together line by line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from sememekit.errors import DataError
from sememekit.text.reading import FaultCounter, Piece, Span, place, read_pieces


class Columns(Protocol):
    """What a set of examples says about the columns of its files; see ``ExampleSet``."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the texts of an example."""

    @property
    def headers(self) -> tuple[tuple[str, ...], ...]:
        """Names that the column of each text may have."""

    @property
    def label_headers(self) -> tuple[str, ...]:
        """The same for the label."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The order of columns without a header."""

    @property
    def break_mark(self) -> bool:
        """Whether ``<br />`` stands for white space."""


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Row(NamedTuple):
    """An example as a file has it.

    Attributes:
        line: where it begins.
        texts: N texts.
        label: None where the set has none.
        references: for sets that keep their text: the ways in which people wrote the target, as they wrote them.
    """

    line: int
    texts: tuple[str, ...]
    label: str | None
    references: tuple[str, ...] = ()


class Opened(NamedTuple):
    """A file that is plain by now, and the name under which the user knows it."""

    path: Path
    name: str


def read_rows(files: Sequence[Opened], kind: Columns, faults: FaultCounter) -> Iterator[Row]:
    """The examples of one file, or of several that stand side by side.

    Raises:
        DataError: for a row of another form, with file and line.
    """
    if len(files) > 1:
        return _side_by_side(files, kind, faults)
    if is_json(files[0]):
        return _json_rows(files[0], kind, faults)
    return _table_rows(files[0], kind, faults)


def whole_lines(file: Opened, faults: FaultCounter) -> Iterator[tuple[Piece, str]]:
    """Whole lines and what to call their place; a line above the cap is an error, as no example is a part of a line."""
    span = Span(file.path, file.name, 0, file.path.stat().st_size)
    for piece in read_pieces(span, faults):
        if not piece.ends_line:
            raise DataError(f"{place(span, piece.offset)}: a line above 1 MiB is no example; is this the right file?")
        yield piece, file.name


def is_json(file: Opened) -> bool:
    """Whether a file has a JSON object a line, by its name."""
    return file.name.removesuffix(".xz").removesuffix(".gz").removesuffix(".bz2").endswith((".jsonl", ".json"))


def json_records(file: Opened, faults: FaultCounter) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number of each line that is not blank, and its object.

    Raises:
        DataError: for a line that is no JSON object, with file and line.
    """
    for number, (piece, name) in enumerate(whole_lines(file, faults), start=1):
        if not piece.text.strip():
            continue
        try:
            record = json.loads(piece.text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{name}:{number}: not JSON ({error}); one object a line is needed") from None
        if not isinstance(record, dict):
            raise DataError(f"{name}:{number}: not a JSON object; one object a line is needed")
        if "\\u" in piece.text:  # an escape can hold what UTF-8 cannot
            record = _without_surrogates(record, f"{name}:{number}", faults)
        if record is not None:
            yield number, record


def _without_surrogates(record: dict[str, Any], where: str, faults: FaultCounter) -> dict[str, Any] | None:
    """The record, without halves of surrogate pairs by the policy of ``faults``; None for one that is left out."""
    text = json.dumps(record, ensure_ascii=False)
    found = _SURROGATE.search(text)
    if found is None:
        return record
    if faults.policy == "strict":
        raise DataError(
            f"{where}: half a surrogate pair (\\u{ord(found[0]):04x}), which is no character; mend the file, or pass --errors "
            "replace or --errors skip"
        )
    faults.add("invalid_utf8")
    if faults.policy == "skip":
        faults.add("skipped_lines")
        return None
    mended: dict[str, Any] = json.loads(_SURROGATE.sub("\ufffd", text))
    return mended


def _json_rows(file: Opened, kind: Columns, faults: FaultCounter) -> Iterator[Row]:
    name = file.name
    for number, record in json_records(file, faults):
        values = [_field(record, headers, f"{name}:{number}") for headers in (*kind.headers, *_label_headers(kind))]
        yield _row(number, values, kind)


def _field(record: dict[str, object], headers: Sequence[str], where: str) -> str:
    for header in headers:
        if header in record:
            value = record[header]
            if not isinstance(value, str | int):
                raise DataError(f"{where}: {header!r} must be a string, given {value!r}"[:300])
            return str(value)
    raise DataError(
        f"{where}: has none of the keys {', '.join(map(repr, headers))}; it has {', '.join(map(repr, record))}"[:300]
    )


def _table_rows(file: Opened, kind: Columns, faults: FaultCounter) -> Iterator[Row]:
    """Rows of a table. The first line is a header when it names the columns; without one they come as ``kind.columns``."""
    places: list[int] | None = None
    wanted = [*kind.headers, *_label_headers(kind)]
    width = number = 0
    for piece, name in whole_lines(file, faults):
        number += 1
        fields = [_unquote(field) for field in piece.text.split("\t")]
        if places is None:
            found = [next((fields.index(header) for header in headers if header in fields), None) for headers in wanted]
            if all(place is not None for place in found):
                places, width = [place for place in found if place is not None], len(fields)
                continue
            if len([place for place in found if place is not None]) > len(found) // 2:
                missing = next(headers for headers, place in zip(wanted, found, strict=True) if place is None)
                raise DataError(f"{name}:{number}: the header has no column {' or '.join(map(repr, missing))}")
            order = [*kind.texts, *(["label"] if kind.label_headers else [])]
            places, width = [kind.columns.index(column) for column in order], len(kind.columns)
        if not piece.text.strip():
            continue
        if len(fields) != width:
            raise DataError(
                f"{name}:{number}: {len(fields)} columns with TAB between, {width} are needed"
                + ("" if number > 1 else f" ({', '.join(kind.columns)}), or a header that names them")
            )
        yield _row(number, [fields[place] for place in places], kind)


def _unquote(field: str) -> str:
    """A field without the quotes of a spreadsheet: they enclose it whole, and quotes inside are doubled."""
    if len(field) >= 2 and field[0] == field[-1] == '"':
        inside = field[1:-1]
        if '"' not in inside.replace('""', ""):
            return inside.replace('""', '"')
    return field


def _side_by_side(files: Sequence[Opened], kind: Columns, faults: FaultCounter) -> Iterator[Row]:
    """Row n is line n of every file."""
    if faults.policy == "skip":
        raise DataError(
            f"{files[0].name}: --errors skip would leave a line out of one file and not of the others; use --errors replace"
        )
    order = [kind.columns.index(column) for column in (*kind.texts, *(["label"] if kind.label_headers else []))]
    with ExitStack() as stack:
        streams = [whole_lines(file, faults) for file in files]
        for stream in streams:
            stack.callback(stream.close)  # type: ignore[attr-defined]
        for number, pieces in enumerate(zip_longest(*streams), start=1):
            for file, piece in zip(files, pieces, strict=True):
                if piece is None:
                    raise DataError(f"{file.name}: ends after {number - 1} lines, and the files beside it go on")
            yield _row(number, [pieces[index][0].text for index in order], kind)


def _label_headers(kind: Columns) -> tuple[tuple[str, ...], ...]:
    return (kind.label_headers,) if kind.label_headers else ()


def _row(number: int, values: Sequence[str], kind: Columns) -> Row:
    texts = values[: len(kind.texts)]
    if kind.break_mark:
        texts = [text.replace("<br />", " ") for text in texts]
    label = values[-1].strip() if kind.label_headers else None
    return Row(number, tuple(" ".join(text.split()) for text in texts), label)
