"""Sources of a corpus, hashed and unpacked side by side on an engine; what was unpacked is kept for a run that goes on.

A source that leaves a file in the work folder has a marker beside it, ``NUMBER.source``: what the source was (name, size and
time, or what its store says), and the size and SHA-256 of the file. A later run takes the file again where both agree.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from sememekit.corpora.base import Corpus
from sememekit.corpora.sources import CorpusFile, Unpacked
from sememekit.engines.base import Engine
from sememekit.files import replace_file, sync_to_disk, to_json
from sememekit.progress import Progress
from sememekit.text.reading import FaultCounter

_VERSION: Final = 2
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
        if (kept := _kept(marker, stamp)) is not None:
            return kept
        faults = FaultCounter(self.errors)
        found = self.corpus.unpack(source, self.number, self.folder, faults)
        if found.path != source.path:
            sync_to_disk(found.path)
            told = {**found._asdict(), "path": found.path.name}
            replace_file(marker, to_json({"stamp": stamp, "found": told, "faults": faults.counts}))
        return found, faults.counts

    def _stamp(self, path: Any) -> list[Any]:
        """What changes when the source does."""
        if isinstance(path, Path):
            stat = path.stat() if path.is_file() else None
            state: Any = None if stat is None else [stat.st_size, stat.st_mtime_ns, stat.st_ino]
        else:
            state = path.stamp()
        return [_VERSION, str(path), state, self.errors, self.corpus.column]


def _kept(marker: Path, stamp: list[Any]) -> tuple[Unpacked, dict[str, int]] | None:
    try:
        told = json.loads(marker.read_bytes())
        found = Unpacked(**{**told["found"], "path": marker.parent / told["found"]["path"]})
        with found.path.open("rb") as file:
            whole = hashlib.file_digest(file, "sha256").hexdigest() == found.text_sha256
        return (found, dict(told["faults"])) if told["stamp"] == stamp and whole else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


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
    if not corpus.unpacks_apart:
        found = []
        for number, source in enumerate(sources):
            found.append(corpus.unpack(source, number, folder, faults))
            progress("hash", number + 1, len(sources))
        return found
    tasks = [SourceTask(corpus, source, number, folder, faults.policy) for number, source in enumerate(sources)]
    results: dict[int, tuple[Unpacked, dict[str, int]]] = {}
    for index, result in engine.map(SourceTask.run, tasks):
        results[index] = result
        progress("hash", len(results), len(sources))
    for index in range(len(sources)):
        for name, amount in results[index][1].items():
            faults.add(name, amount)
    return [results[index][0] for index in range(len(sources))]
