"""Read a whole file of labelled texts, for ``attack`` and ``train --augment``, by the rules of ``preprocess``."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from sememekit.corpora.examples import EXAMPLE_SETS, ExampleSet, recorded_set
from sememekit.corpora.examples.files import side_by_side
from sememekit.corpora.examples.rows import Opened, Row, is_json, json_records, numbered_lines
from sememekit.corpora.examples.sets import ClassificationSet, InferenceSet
from sememekit.corpora.sources import CorpusFile, unpack
from sememekit.errors import DataError
from sememekit.files.tables import table_rows
from sememekit.text.reading import FaultCounter


class LabelledFile(NamedTuple):
    """The examples of a file: rows with labels as spelled there, names of the texts, SHA-256 of the file or files."""

    rows: tuple[Row, ...]
    texts: tuple[str, ...]
    sha256: str


def read_labelled(path: Path, kind: ExampleSet | None = None) -> LabelledFile:
    """Read labelled texts of a set; by default one text, or premise and hypothesis, whichever the first line shows.

    ``path`` is a table with TAB (or ``.csv``), with or without a header, ``.jsonl``, or ``s1.SPLIT`` beside ``s2.SPLIT`` and
    ``labels.SPLIT``; ``.xz``, ``.gz`` and ``.bz2`` are decompressed. Raises DataError: absent, not UTF-8, empty, or a line that
    is no example; names file and line."""
    faults = FaultCounter("strict", can_choose=False)
    kind = kind or _likely_kind(path, faults)
    with opened(path, kind, faults) as files:
        rows = tuple(kind.rows(files, None, faults, Counter()))
        given = [
            Path(file.name) if Path(file.name).is_file() else Path(str(file.path)) for file in files
        ]  # of a folder its rows
        digest = hashlib.sha256(b"\0".join(part.read_bytes() for part in given)).hexdigest()
    if not rows:
        raise DataError(f"{path}: holds no examples")
    if empty := next((row.line for row in rows if not any(row.texts)), None):
        raise DataError(f"{path}:{empty}: a text is empty; mend the line, or delete it")
    return LabelledFile(rows, kind.texts, digest)


def read_records(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """(line, object) of JSON lines; empty for a file of another form. Raises DataError: absent, or no JSON object."""
    faults = FaultCounter("strict", can_choose=False)
    with opened(path, ClassificationSet(), faults) as (file,):
        return list(json_records(file, faults)) if is_json(file) else []


def set_of(dataset: str, texts: tuple[str, ...]) -> ExampleSet:
    """Return the set of a ``dataset`` without running custom code: columns named like its ``texts`` replace a custom class."""
    if dataset in EXAMPLE_SETS:
        return recorded_set(dataset, dataset)
    usual: ExampleSet = {1: ClassificationSet(), 2: InferenceSet()}.get(len(texts), ExampleSet())
    others = usual.headers if len(texts) in (1, 2) else ((),) * len(texts)
    headers = tuple((name, *more) for name, more in zip(texts, others, strict=True))
    return type("OwnSet", (type(usual),), {"texts": texts, "headers": headers, "columns": (*texts, "label")})()


@contextmanager
def opened(path: Path, kind: ExampleSet, faults: FaultCounter) -> Iterator[list[Opened]]:
    """Open a file and its parallel files, decompressed inside the block. Raises DataError: one is absent, empty or damaged."""
    with TemporaryDirectory(prefix="sememekit-") as folder:
        paths = side_by_side(path, kind)
        plain = [unpack(CorpusFile(str(number), part), Path(folder), faults).path for number, part in enumerate(paths)]
        yield [Opened(there, str(part)) for there, part in zip(plain, paths, strict=True)]


def _likely_kind(path: Path, faults: FaultCounter) -> ExampleSet:
    single, pair = ClassificationSet(), InferenceSet()
    if len(pair.beside_names(path.name)) > 1:
        return pair
    with opened(path, single, faults) as (file,):
        if is_json(file):
            fields = list(next((record for _, record in json_records(file, faults)), ()))
        else:
            lines = (text for _, text in numbered_lines(file, faults))
            fields = next((row.cells for row in table_rows(lines, file.name)), [])
        names = {field.strip().casefold() for field in fields}
        if names & set(pair.headers[1]):
            return pair
        if is_json(file) or not fields or names & set(single.label_headers) or len(fields) == 2:
            return single
        if len(fields) == 3:
            return pair
        raise DataError(
            f"{path}:1: {len(fields)} column{'s' * (len(fields) > 1)}; a table has text and label, or premise, hypothesis and "
            "label, or a first line that names them"
        )
