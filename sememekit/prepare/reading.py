"""Sources of a corpus, hashed and unpacked side by side on an engine; what was unpacked is kept for a run that goes on.

A source that leaves a file in the work folder has a marker beside it, ``NUMBER.source``: what the source was (name, size and
time, or what its store says), and the size and SHA-256 of the file. A later run takes the file again where both agree. Shards
have such markers, too.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from sememekit.corpora.base import Corpus
from sememekit.corpora.sources import CorpusFile, Unpacked
from sememekit.engines.base import Engine
from sememekit.files import replace_file, sync_to_disk, to_json
from sememekit.progress import Progress
from sememekit.text.reading import FaultCounter

_VERSION: Final = 3
MARKER: Final = ".source"


class SourceTask(NamedTuple):
    """One source for a process of an engine."""

    corpus: Corpus
    source: CorpusFile
    number: int
    folder: Path
    errors: str

    def run(self) -> tuple[Unpacked, dict[str, int]]:
        """The source, and the faults of its bytes."""
        source = CorpusFile(self.source.split, self.source.path.absolute())
        marker, stamp = self.folder / f"{self.number}{MARKER}", self._stamp(source.path)
        if (kept := read_marker(marker)) is not None and kept["stamp"] == stamp:
            return Unpacked(**{**kept["found"], "path": self.folder / kept["found"]["path"]}), kept["faults"]
        faults = FaultCounter(self.errors)
        found = self.corpus.unpack(source, self.number, self.folder, faults)
        if found.path != source.path:
            table = {**found._asdict(), "path": found.path.name}
            write_marker(marker, {"stamp": stamp, "found": table, "faults": faults.counts}, [found.path])
        return found, faults.counts

    def _stamp(self, path: Any) -> list[Any]:
        """What changes when the source does."""
        if isinstance(path, Path):
            stat = path.stat() if path.is_file() else None
            state: Any = None if stat is None else [stat.st_size, stat.st_mtime_ns, stat.st_ino]
        else:
            state = path.stamp()
        return [_VERSION, str(path), state, self.errors, self.corpus.column]


def write_marker(marker: Path, table: Mapping[str, Any], files: Sequence[Path]) -> None:
    """Write what is known of finished files beside them, with size and SHA-256 of each, once they are on the disk."""
    for file in files:
        sync_to_disk(file)
    replace_file(marker, to_json({**table, "files": {file.name: _digest(file) for file in files}}))


def read_marker(marker: Path) -> dict[str, Any] | None:
    """What ``write_marker`` wrote, where all files are as they were; otherwise None."""
    try:
        table: dict[str, Any] = json.loads(marker.read_bytes())
        return table if table["files"] == {name: _digest(marker.parent / name) for name in table["files"]} else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _digest(path: Path) -> list[int | str]:
    with path.open("rb") as file:
        return [path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()]


def read_sources(
    engine: Engine,
    corpus: Corpus,
    sources: Sequence[CorpusFile],
    folder: Path,
    faults: FaultCounter,
    progress: Progress,
) -> list[Unpacked]:
    """Every source, in order; their faults are added to ``faults``. Raises DataError as ``Corpus.unpack``."""
    progress("hash", 0, len(sources))
    found: list[Unpacked] = []
    if not corpus.unpacks_apart:
        for number, source in enumerate(sources):
            found.append(corpus.unpack(source, number, folder, faults))
            progress("hash", number + 1, len(sources))
        return found
    tasks = [SourceTask(corpus, source, number, folder, faults.policy) for number, source in enumerate(sources)]
    for unpacked, counts in engine.in_order(SourceTask.run, tasks, lambda done: progress("hash", done, len(sources))):
        found.append(unpacked)
        faults.add_all(counts)
    return found
