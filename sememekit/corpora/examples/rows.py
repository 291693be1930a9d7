"""Rows of JSON lines, of tables with TAB or commas, and of parallel files."""

import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, Protocol, final

from sememekit.errors import DataError
from sememekit.files import typed, unpacked_name, warn
from sememekit.files.tables import table_rows
from sememekit.text.form import has_ends
from sememekit.text.reading import FaultCounter, Span, place, read_named, read_pieces, refuse_other_encoding

_FEWEST_ROWS: Final = 20  # number of further rows after which a label that only the first row has is reported
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Columns(Protocol):
    """The attributes of ``ExampleSet`` about columns."""

    texts: ClassVar[tuple[str, ...]]
    headers: ClassVar[tuple[tuple[str, ...], ...]]
    label_headers: ClassVar[tuple[str, ...]]
    columns: ClassVar[tuple[str, ...]]

    def text(self, value: str) -> str: ...


class Row(NamedTuple):
    """An example of a file: its line, N texts, label (None where the set has none), and for pairs the references as written."""

    line: int
    texts: tuple[str, ...]
    label: str | None
    references: tuple[str, ...] = ()


class Opened(NamedTuple):
    """A decompressed file, and its name for the user; without a path it is standard input."""

    path: Path | None
    name: str

    @property
    def ending(self) -> str:
        """The suffix of the format, such as ``.csv`` for ``a.csv.xz``; folders were converted to ``.jsonl``."""
        return ".jsonl" if Path(self.name).is_dir() else Path(unpacked_name(self.name)).suffix.lower()


def numbered_lines(file: Opened, faults: FaultCounter) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, from 1. Raises DataError: bytes that ``faults`` refuses, or a line above 1 MiB."""
    if file.path is None:
        pieces = read_named(sys.stdin.buffer, file.name, faults)
    else:
        refuse_other_encoding(file.path, file.name, faults)
        span = Span(file.path, file.name, 0, file.path.stat().st_size)
        pieces = read_pieces(span, faults)
    for number, piece in enumerate(pieces, start=1):
        if not piece.ends_line:
            where = f"{file.name}:{number}" if file.path is None else place(span, piece.offset)
            raise DataError(f"{where}: a line above 1 MiB is no example; is this the right file?")
        yield number, piece.text


def is_json(file: Opened) -> bool:
    """Return whether a file has a JSON object a line, by its name."""
    return file.ending in (".jsonl", ".json", ".ndjson", ".parquet")


def json_records(file: Opened, faults: FaultCounter) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number of each line that is not blank, and its object. Raises DataError: a line that is no JSON object."""
    for number, text in numbered_lines(file, faults):
        if not text.strip():
            continue
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{file.name}:{number}: not JSON ({error}); one object a line is needed") from None
        if not isinstance(record, dict):
            raise DataError(f"{file.name}:{number}: not a JSON object; one object a line is needed")
        if "\\u" in text:  # an escape can hold what UTF-8 cannot
            record = _without_surrogates(record, f"{file.name}:{number}", faults)
        if record is not None:
            yield number, record


def _without_surrogates(record: dict[str, Any], where: str, faults: FaultCounter) -> dict[str, Any] | None:
    """Return the record without lone surrogates by the policy of ``faults``; None if it is left out."""
    text = json.dumps(record, ensure_ascii=False)
    found = _SURROGATE.search(text)
    if found is None:
        return record
    if faults.policy == "strict":
        code = ord(found[0])
        raise DataError(f"{where}: half a surrogate pair (\\u{code:04x}), which is no character; mend the file{faults.choices}")
    if not faults.keeps("invalid_utf8"):
        return None
    mended: dict[str, Any] = json.loads(_SURROGATE.sub("\ufffd", text))
    return mended


def value_of(record: Mapping[str, Any], keys: Sequence[str], where: str, hint: str = "") -> tuple[str, Any]:
    """Return the first of ``keys`` that a record has, in any case, and its value. DataError, ending with ``hint``: none."""
    folded = {key.strip().casefold(): value for key, value in record.items()}
    for key in keys:
        if key.casefold() in folded:
            return key, folded[key.casefold()]
    told = f"{where}: has none of the keys {', '.join(map(repr, keys))}; it has {', '.join(map(repr, record))}"
    raise DataError(told[:300] + hint)


def _without_labels(name: str, choices: str) -> str:
    """Return the advice for a file without labels, such as a test set with secret labels; ``choices`` of preprocess."""
    leave_out = ", or leave this file out: name the others with --train FILE and --valid FILE in place of the folder"
    return f"{leave_out if choices else ''}; a model labels it by: {typed('sememekit', 'predict', 'RUN', name)}"


@final
class RowReader:
    """The examples of one file, or of parallel files for ``kind.columns``, in order.

    The first line of a table is a header if it names the columns, in any case; otherwise they are ``kind.columns``. ``labels``
    is None if each row has its label; for texts without labels, ``labels`` are those in an ignored last column. ``header`` is
    the header line, if any, once read; ``lines`` counts the lines read so far."""

    def __init__(
        self, files: Sequence[Opened], kind: Columns, faults: FaultCounter, labels: Collection[str] | None = None
    ) -> None:
        self.header: list[str] | None = None
        self.lines = 0
        self._files, self._kind, self._faults, self._labels = files, kind, faults, labels
        self._wanted = [*kind.texts, *(["label"] if labels is None and kind.label_headers else [])]
        self._headers = [*kind.headers, kind.label_headers][: len(self._wanted)]

    def __iter__(self) -> Iterator[Row]:
        """The rows. Raises DataError for a row of another form, with file and line."""
        if len(self._files) > 1:
            return self._side_by_side()
        return self._of_json(self._files[0]) if is_json(self._files[0]) else self._of_table(self._files[0])

    def _counted(self, file: Opened) -> Iterator[str]:
        for number, text in numbered_lines(file, self._faults):
            self.lines = number
            yield text

    def _of_json(self, file: Opened) -> Iterator[Row]:
        for number, record in json_records(file, self._faults):
            values = []
            for keys in self._headers:
                hint = _without_labels(file.name, self._faults.choices) if keys is self._kind.label_headers else ""
                key, value = value_of(record, keys, f"{file.name}:{number}", hint)
                value = "" if value is None and keys is self._kind.label_headers else value
                if not isinstance(value, str | int):
                    raise DataError(f"{file.name}:{number}: {key!r} must be a string, given {value!r}"[:300])
                values.append(str(value))
            yield self._row(number, values)

    def _of_table(self, file: Opened) -> Iterator[Row]:
        columns: Sequence[str] = ()
        places: list[int] = []
        first: Row | None = None
        again = others = 0  # rows behind the first, with its label and with others
        for number, text, fields in table_rows(self._counted(file), file.name):
            if not columns:
                found = self._named(fields, f"{file.name}:{number}")
                if found is not None:
                    columns, places, self.header = fields, found, fields
                    continue
                columns = self._columns(fields)
                places = [columns.index(name) for name in self._wanted]
            if len(columns) == 1 and self.header is None and text and "\t" not in text:
                fields = [text]  # a text a line: its quotes are its own
            if len(fields) != len(columns):
                between = "TAB" if text else "commas"
                needed = f"{', '.join(columns)}{'' if self.header else '; or a first line that names the columns'}"
                raise DataError(
                    f"{file.name}:{number}: {len(fields)} column{'s' * (len(fields) > 1)} with {between} between, "
                    f"{len(columns)} are needed ({needed})"
                )
            row = self._row(number, [fields[index] for index in places])
            again, others = again + (first is not None and row.label == first.label), others + (first is not None)
            first = first or row
            yield row
        if self.header is None and first is not None and first.label is not None and not again and others >= _FEWEST_ROWS:
            warn(
                f"{file.name}:{first.line}: no other line has its label, {first.label!r}; if this line is a header, name its "
                f"columns as these are known: {', '.join(keys[0] for keys in self._headers)}"
            )

    def _named(self, fields: Sequence[str], where: str) -> list[int] | None:
        """Return the indices of the wanted columns by header names; None if the line is not a header."""
        names = [field.strip().casefold() for field in fields]
        found = [next((names.index(key.casefold()) for key in keys if key.casefold() in names), None) for keys in self._headers]
        places = [index for index in found if index is not None]
        if len(places) < len(found) and len(places) > ("label" not in self._wanted) * len(found) // 2:
            missing = next(keys for keys, index in zip(self._headers, found, strict=True) if index is None)
            hint = "an example that stands first needs a line above it that names the columns"
            if missing is self._kind.label_headers:
                hint = _without_labels(self._files[0].name, self._faults.choices).lstrip(";, ")
            raise DataError(
                f"{where}: the header has no column {' or '.join(map(repr, missing))}; it has {', '.join(map(repr, fields))}: "
                f"rename one; {hint}"
            )
        return places if len(places) == len(found) else None

    def _columns(self, fields: Sequence[str]) -> Sequence[str]:
        columns = self._kind.columns
        if self._labels is None or "label" not in columns:
            return columns
        if len(fields) == len(columns) and fields[columns.index("label")].strip() in self._labels:
            return columns
        return [name for name in columns if name != "label"]

    def _side_by_side(self) -> Iterator[Row]:
        files, faults = self._files, self._faults
        skips = faults.policy == "skip"  # a line that one file loses is one of all
        reading = FaultCounter("replace") if skips else faults
        order = [self._kind.columns.index(column) for column in self._wanted]
        with ExitStack() as stack:
            streams = [numbered_lines(file, reading) for file in files]
            for stream in streams:
                stack.callback(stream.close)  # type: ignore[attr-defined]
            for number, lines in enumerate(zip_longest(*streams), start=1):
                for file, line in zip(files, lines, strict=True):
                    if line is None:
                        raise DataError(f"{file.name}: ends after {number - 1} lines, and the files beside it are longer")
                bad = sum(reading.counts.pop(name, 0) for name in ("invalid_utf8", "nul")) if skips else 0
                if bad:
                    faults.add("skipped_lines")
                elif any(line[1].strip() for line in lines):
                    yield self._row(number, [lines[index][1] for index in order])
        if skips:
            faults.counts.update(reading.counts)

    def _row(self, number: int, values: Sequence[str]) -> Row:
        self.lines = max(self.lines, number)
        given = values[: len(self._kind.texts)]
        if any(map(has_ends, given)):
            self._faults.add("end_marks")
        texts = tuple(map(self._kind.text, given))
        label = values[-1].strip() if len(values) > len(texts) else None
        return Row(number, texts, label)
