"""The One Billion Word Benchmark (Chelba et al. 2013): 99 shards for training and 50 that were held out."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final, final

from sememekit.corpora.base import SegmentedCorpus, require_source
from sememekit.corpora.places import without_twins
from sememekit.corpora.sources import CorpusFile
from sememekit.errors import DataError

TRAINING: Final = "training-monolingual.tokenized.shuffled"
HELD_OUT: Final = "heldout-monolingual.tokenized.shuffled"
_TRAIN: Final = "news.en-000??-of-00100"
_VALID: Final = "news.en.heldout-0000[1-9]-of-00050"
_TEST: Final = "news.en.heldout-00000-of-00050"


@final
class BillionWord(SegmentedCorpus):
    """The folder that the archive unpacks to, with two folders of shards; shards may be compressed one by one.

    Train is every training shard that is there, test the first held-out shard, as is usual, and valid the next nine. Words that
    occur less than three times in train are ``<unk>``, as in the benchmark; each sentence ends with ``<eos>``.
    """

    min_count: ClassVar[int] = 3
    end_of_sentence: ClassVar[bool] = True
    vocabulary_splits = ("train",)

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def open(cls, source: Path | None) -> BillionWord:
        return cls(require_source("billion-word", source, f"the folder with {TRAINING} and {HELD_OUT}"))

    def sources(self) -> list[CorpusFile]:
        if not self._folder.is_dir():
            kind = "is a file" if self._folder.exists() else "does not exist"
            raise DataError(f"{self._folder}: {kind}; the folder with {TRAINING} and {HELD_OUT} is needed")
        found = []
        for split, folder, pattern in (("train", TRAINING, _TRAIN), ("valid", HELD_OUT, _VALID), ("test", HELD_OUT, _TEST)):
            shards = without_twins(sorted((self._folder / folder).glob(f"{pattern}*")))
            if not shards:
                raise DataError(f"{self._folder}: no shards for the split {split!r}; looked for {folder}/{pattern}")
            found += [CorpusFile(split, path) for path in shards]
        return found
