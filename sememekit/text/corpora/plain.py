"""Plain text of any language, one sentence a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import final

from sememekit.errors import DataError
from sememekit.text.corpora.base import Corpus, Unit, require_source, text_size
from sememekit.text.segment import Segmenter
from sememekit.text.sources import Source, find_splits


@final
class Plain(Corpus):
    """A file is divided 90:5:5 by a seed, in the order of its lines; a folder with train.txt and so on is taken as it is.

    Blank lines are no sentences. In a folder, valid and test may be absent. The vocabulary is that of train alone.
    """

    segmenters = ("none", "characters", "fmm", "jieba", "sentencepiece")
    size_of = "source"
    end_of_sentence = True
    vocabulary_splits = ("train",)

    def __init__(self, source: Path) -> None:
        self._source = source

    @classmethod
    def open(cls, source: Path | None) -> Plain:
        """A text file, or a folder with ``train.txt`` and, as you like, ``valid.txt`` and ``test.txt``."""
        path = require_source("plain", source, "a text file, or a folder with train.txt, valid.txt and test.txt")
        if not path.exists():
            raise DataError(f"{path}: no such file or folder")
        return cls(path)

    def sources(self) -> list[Source]:
        """The file, or those of the folder."""
        if self._source.is_dir():
            return find_splits(self._source, ["{}.txt"], required=("train",))
        return [Source(None, self._source)]

    def units(self, text: str, segmenter: Segmenter) -> Iterator[Unit]:
        """One sentence."""
        yield Unit(segmenter.segment(text), *text_size(text.split()))
