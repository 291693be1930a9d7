"""Penn Treebank in the form of Mikolov et al. 2010: ``ptb.train.txt`` and so on, 10,000 types with ``<eos>``."""

from __future__ import annotations

from pathlib import Path
from typing import final

from sememekit.corpora.base import SegmentedCorpus, require_source
from sememekit.corpora.sources import Source, find_splits


@final
class PennTreebank(SegmentedCorpus):
    """Every line, also a blank one, ends with ``<eos>``, as the word language models have it."""

    end_of_sentence = True
    keeps_blank_lines = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def open(cls, source: Path | None) -> PennTreebank:
        """The folder with ``ptb.{train,valid,test}.txt``."""
        return cls(require_source("ptb", source, "the folder with ptb.train.txt, ptb.valid.txt and ptb.test.txt"))

    def sources(self) -> list[Source]:
        """The three files."""
        return find_splits(self._folder, ["ptb.{}.txt", "{}.txt"])
