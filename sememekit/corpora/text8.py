"""text8: one stream of lower-case English words without lines (Mahoney 2006)."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final, final

from sememekit.corpora.base import SegmentedCorpus, require_source
from sememekit.corpora.sources import CorpusFile, require_file
from sememekit.errors import DataError

DEVELOPMENT_BYTES: Final = 1_000_000


@final
class Text8(SegmentedCorpus):
    """The last million characters are the development set, all before is for training (Shen et al. 2017, section 4.1).

    There is no test set. text8 is ASCII, so the cut is made in bytes; a word across the cut goes to training. The vocabulary
    has at most 44,000 words, the size in that paper.
    """

    size_of = "source"
    max_vocabulary: ClassVar[int | None] = 44_000

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def open(cls, source: Path | None) -> Text8:
        path = require_source("text8", source, "the file text8")
        if path.is_dir():
            inside = [path / name for name in ("text8", "text8.xz", "text8.gz", "text8.bz2")]
            path = next((candidate for candidate in inside if candidate.is_file()), path)
        return cls(require_file(path))

    def sources(self) -> list[CorpusFile]:
        return [CorpusFile(None, self._path)]

    def ranges(self, split: str | None, text: Path, size: int) -> list[tuple[str | None, int, int]]:
        """All but the last million bytes, and those. Raises DataError when too little is left to train on."""
        cut = size - DEVELOPMENT_BYTES
        if cut < DEVELOPMENT_BYTES:
            raise DataError(
                f"{self._path}: {size} bytes of text; text8 needs {2 * DEVELOPMENT_BYTES} at least, for the last "
                f"{DEVELOPMENT_BYTES} are the development set; use the data set 'plain' for a shorter text"
            )
        with text.open("rb") as file:
            file.seek(cut)
            cut += file.read(1 << 10).find(b" ") + 1  # 0 where no word ends within a thousand characters
        return [("train", 0, cut), ("valid", cut, size)]
