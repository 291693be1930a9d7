"""Source files: splits of a folder, hashing, decompression, texts from columns."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from sememekit.errors import DataError
from sememekit.files import (
    PACKED,
    CutArchiveError,
    DamagedArchiveError,
    by_its_beginning,
    how_to_convert,
    needed,
    opening,
    packing_of,
    unpack_blocks,
    unpacked_name,
)
from sememekit.files.packed import BLOCK
from sememekit.files.reading import CONVERT
from sememekit.text.other_encodings import refuse_mostly_invalid
from sememekit.text.reading import FaultCounter, without_mark

SPLITS: Final = ("train", "valid", "test")
SPLIT_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "train": ("train",),
    "valid": ("valid", "validation", "dev", "val"),
    "test": ("test",),
}
"""For each split the possible parts of its file name."""

_FORMS: Final = {".jsonl": ".jsonl", ".ndjson": ".jsonl", ".json": ".jsonl", ".parquet": ".parquet"}
"""Suffixes of files with columns, and their formats."""


class CorpusFile(NamedTuple):
    """A file and its split (None: to be divided); a file of a remote store is a ``corpora.places.RemoteFile``, used alike."""

    split: str | None
    path: Any


class Unpacked(NamedTuple):
    """A source for reading by byte ranges: the plain file with its size, and ``bytes`` and SHA-256 of the original file.

    ``text_sha256`` is the checksum of the plain file, if the original file alone does not determine the plain file."""

    path: Path
    bytes: int
    sha256: str
    text_bytes: int
    text_sha256: str = ""


def find_splits(folder: Path, patterns: Sequence[str]) -> list[CorpusFile]:
    """The files of a folder with one file for each split. Raises DataError when one of them is missing.

    ``patterns`` are file names with ``{}`` for the split; a compressed file (.xz, .gz, .bz2, .zst) serves as well."""
    if not folder.is_dir():
        kind = "is a file" if folder.exists() else "does not exist"
        raise DataError(f"{folder}: {kind}; a folder with {', '.join(patterns[0].format(split) for split in SPLITS)} is needed")
    found = []
    for split in SPLITS:
        tried = [pattern.format(split) + ending for pattern in patterns for ending in ("", *PACKED)]
        path = next((folder / name for name in tried if (folder / name).is_file()), None)
        if path is None:
            names = ", ".join(pattern.format(split) for pattern in patterns)
            raise DataError(f"{folder}: no file for the split {split!r}; looked for {names} (also as {', '.join(PACKED)})")
        found.append(CorpusFile(split, path))
    return found


def splits_in_name(name: str, names: Mapping[str, Sequence[str]] = SPLIT_NAMES) -> list[str]:
    """Return the splits in a file name, as parts between ``.``, ``_`` and ``-``, in either case."""
    parts = set(re.split(r"[._\-]", name.lower()))
    return [split for split, aliases in names.items() if not parts.isdisjoint(aliases)]


def require_file(path: Path) -> Path:
    """Return the path. Raises DataError: it is a folder or absent."""
    if path.is_dir():
        raise DataError(f"{path}: a folder, where a text file is needed")
    if not path.is_file():
        pipe = "a pipe or a device, which is read but once, and this is read several times; write it into a file"
        raise DataError(f"{path}: {pipe if path.exists() else 'no such file'}")
    return path


def unpack(
    source: CorpusFile, folder: Path, faults: FaultCounter, *, name: str | None = None, column: str | None = None
) -> Unpacked:
    """Hash a source, and write its text block by block as ``NAME.unpacked`` into ``folder`` (default name: the split). A plain
    file of this machine is only hashed.

    ``faults`` counts archives that end too early, and texts that are not UTF-8. ``column`` is the column of .jsonl and .parquet
    files; None reads lines. Raises DataError: a file that cannot be read, is empty, is damaged or, under the policy ``strict``,
    ends too early."""
    target = folder / f"{name or source.split or 'text'}.unpacked"
    packing, form = form_of(source.path.name)
    path = source.path
    if isinstance(path, Path) and path.is_dir():
        return _unpack_folder(path, target, faults)
    form = form if column is not None or form == ".parquet" else ""
    with opening(Path(str(path)), DataError):
        if isinstance(path, Path) and not packing and not form:
            with path.open("rb") as file:
                digest, size = hashlib.file_digest(file, "sha256").hexdigest(), file.tell()
            if size == 0:
                raise DataError(f"{path}: the file is empty")
            return Unpacked(path, size, digest, size)
        raw, text = _Counted(), _Counted()
        with target.open("wb") as out:
            out.writelines(map(text.add, _texts(path, target, raw, faults, form, column)))
        if raw.size == 0 or text.size == 0:
            raise DataError(f"{path}: the file is empty" if not form else f"{path}: no text in the column {column!r}")
        return Unpacked(target, raw.size, raw.hexdigest(), text.size, text.hexdigest())


def form_of(name: str) -> tuple[str, str]:
    """Return the suffixes of the compression and of the format with columns (``.jsonl``, ``.parquet``), each "" if none."""
    plain = unpacked_name(name).lower()
    return packing_of(name), next((form for ending, form in _FORMS.items() if plain.endswith(ending)), "")


def _unpack_folder(folder: Path, target: Path, faults: FaultCounter) -> Unpacked:
    """Write the texts of a folder, which has a folder for each label, as JSON lines in the order of the names."""
    text = _Counted()
    with target.open("wb") as out:
        for path in sorted(folder.glob("*/*.txt")):
            with opening(path, DataError):
                content = decoded(path.read_bytes(), str(path), faults)
            if content is not None:
                record = {"text": content, "label": path.parent.name}
                out.write(text.add(json.dumps(record, ensure_ascii=False).encode() + b"\n"))
    if text.size == 0:
        raise DataError(f"{folder}: no LABEL/NAME.txt; a folder of labelled texts has a folder of .txt files for each label")
    return Unpacked(target, text.size, text.hexdigest(), text.size, text.hexdigest())


class _Counted:
    """Size and SHA-256 of a stream."""

    def __init__(self) -> None:
        self.size, self._digest = 0, hashlib.sha256()
        self.hexdigest = self._digest.hexdigest

    def add(self, block: bytes) -> bytes:
        self.size += len(block)
        self._digest.update(block)
        return block


def _texts(path: Any, target: Path, raw: _Counted, faults: FaultCounter, form: str, column: str | None) -> Iterator[bytes]:
    """Yield the text of a file in blocks; ``raw`` counts the bytes read of the file itself."""
    blocks = _unpacked_blocks(path, raw, faults)
    if form == ".jsonl" and column is not None:
        yield from texts_of_lines(blocks, str(path), column, faults)
    elif form == ".parquet":  # read from its end: a whole copy is needed
        copy = target.with_suffix(".parquet")
        with copy.open("wb") as out:
            out.writelines(blocks)
        yield from texts_of_parquet(copy, str(path), column)
        copy.unlink()
    else:
        yield from blocks


def _unpacked_blocks(path: Any, raw: _Counted, faults: FaultCounter) -> Iterator[bytes]:
    """The bytes of a file in blocks, decompressed."""
    packing, size = packing_of(path.name), 0
    with path.open("rb") as file:
        blocks = map(raw.add, iter(lambda: file.read(BLOCK), b""))
        try:
            for block in unpack_blocks(packing, blocks) if packing else blocks:
                yield block
                size += len(block)
        except CutArchiveError:
            if not size:
                return
            if faults.policy == "strict":
                read_on = ", or pass --errors replace to read up to there" if faults.choices else ""
                raise DataError(
                    f"{path}: ends before its end mark, after {size} bytes of text; fetch it again{read_on}"
                ) from None
            faults.add("truncated_archives")
        except DamagedArchiveError as error:
            remedy = "fetch it again" if size else f"is it packed at all? if it is not, take {packing} off its name"
            raise DataError(f"{path}: damaged after {size} bytes of text: {error}; {remedy}") from None


_ROWS: Final = 1 << 10
_HINT: Final = "; one object a line is needed; of one list of objects it is made by: jq -c '.[]' FILE.json > FILE.jsonl"


def texts_of_lines(blocks: Iterable[bytes], name: str, column: str, faults: FaultCounter) -> Iterator[bytes]:
    """Yield the text of each JSON object with a line end, one line at a time.

    Byte-order marks are removed and counted; lines that are not UTF-8 are counted under ``replace`` and ``skip``. Raises
    DataError, with file and line: no object with the column; invalid UTF-8 under ``strict``, or mostly under ``replace``."""
    lines, invalid_before = 0, faults.bad_lines
    for number, line in enumerate(_lines(blocks), start=1):
        line = without_mark(line, faults)
        if not line.strip():
            continue
        lines += 1
        text = decoded(line, name, faults, number)
        if text is None:
            continue
        hint = (f"; {odd}" if (odd := by_its_beginning(line, name)) else _HINT) if lines == 1 else ""
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{name}:{number}: no JSON object: {str(error).splitlines()[0]:.120}{hint}") from None
        if hint and not isinstance(found, dict):
            raise DataError(f"{name}:{number}: no JSON object but {type(found).__name__}{hint}")
        text = found.get(column) if isinstance(found, dict) else None
        if not isinstance(text, str):
            had = f"it has {', '.join(map(str, found))}" if isinstance(found, dict) else "it is no object"
            raise DataError(f"{name}:{number}: no text in the column {column!r}, {had}; name the column with --column")
        yield _as_lines(text)
    if faults.policy == "replace":
        refuse_mostly_invalid(name, faults.bad_lines - invalid_before, lines)


def decoded(line: bytes, name: str, faults: FaultCounter, number: int = 0) -> str | None:
    """Return the text of a file, or of its line ``number``; None where ``skip`` leaves it out. Raises DataError: invalid UTF-8
    under ``strict``."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        if faults.policy == "strict":
            where, remedy = f"{name}:{number}" if number else name, how_to_convert(line, name, begins=number < 2)
            raise DataError(
                f"{where}: not UTF-8 at byte {error.start} of it; {remedy}{faults.choices * (remedy == CONVERT)}"
            ) from None
        return line.decode(errors="replace") if faults.keeps("invalid_utf8") else None


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    begun: list[bytes] = []
    for block in blocks:
        first, *others = block.split(b"\n")
        begun.append(first)
        for line in others:
            yield b"".join(begun)
            begun = [line]
    yield b"".join(begun)


def texts_of_parquet(path: Path, name: str, column: str | None) -> Iterator[bytes]:
    """The texts of a column, or without one all columns as JSON lines, a thousand rows at a time. Raises DataError: no Parquet
    file, or no such column of texts. Raises ConfigError: pyarrow is not installed."""
    pyarrow, parquet = (
        needed(each, f"{name}: reading .parquet", "sememekit[remote]") for each in ("pyarrow", "pyarrow.parquet")
    )
    try:
        with parquet.ParquetFile(path) as file:
            columns = file.schema_arrow.names
            if column is None:
                for batch in file.iter_batches(batch_size=_ROWS, use_threads=False):
                    yield from (json.dumps(row, ensure_ascii=False, default=str).encode() + b"\n" for row in batch.to_pylist())
                return
            if column not in columns:
                raise DataError(f"{name}: no column {column!r}, it has {', '.join(columns)}; name the column with --column")
            for batch in file.iter_batches(batch_size=_ROWS, columns=[column], use_threads=False):
                for text in batch.column(0).to_pylist():
                    if not isinstance(text, str | None):
                        raise DataError(f"{name}: the column {column!r} holds no texts; name another with --column")
                    if text:
                        yield _as_lines(text)
    except (pyarrow.ArrowException, OSError) as error:  # it raises OSError for a damaged end
        raise DataError(f"{name}: no Parquet file, or a damaged one: {str(error).splitlines()[0]:.120}") from None


def _as_lines(text: str) -> bytes:
    return text.rstrip("\n").encode(errors="surrogatepass") + b"\n"
