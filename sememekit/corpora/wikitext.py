"""WikiText-2 and WikiText-103 in their word-level form (Merity et al. 2016): ``wiki.train.tokens`` and so on."""

from __future__ import annotations

from pathlib import Path
from typing import final

from sememekit.corpora.base import SegmentedCorpus, require_source
from sememekit.corpora.sources import Source, find_splits


@final
class WikiText(SegmentedCorpus):
    """Every line, also a blank one, ends with ``<eos>``, as the word language models have it."""

    end_of_sentence = True
    keeps_blank_lines = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def open(cls, source: Path | None) -> WikiText:
        """The folder with ``wiki.{train,valid,test}.tokens``."""
        return cls(
            require_source("wikitext", source, "the folder with wiki.train.tokens, wiki.valid.tokens and wiki.test.tokens")
        )

    def sources(self) -> list[Source]:
        """The three files."""
        return find_splits(self._folder, ["wiki.{}.tokens", "{}.txt"])
