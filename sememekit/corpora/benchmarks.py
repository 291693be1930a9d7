"""Benchmarks of language models in English: Penn Treebank (Mikolov et al. 2010) and WikiText (Merity et al. 2016) in their
word-level form, text8 (Mahoney 2006), and the One Billion Word Benchmark (Chelba et al. 2013)."""

from pathlib import Path
from typing import ClassVar, Final, final

from sememekit.corpora.base import SegmentedCorpus, SplitFolder
from sememekit.corpora.places import without_twins
from sememekit.corpora.sources import CorpusFile, require_file
from sememekit.errors import DataError

DEVELOPMENT_BYTES: Final = 1_000_000
TRAINING: Final = "training-monolingual.tokenized.shuffled"
HELD_OUT: Final = "heldout-monolingual.tokenized.shuffled"
_TRAIN: Final = "news.en-000??-of-00100"
_VALID: Final = "news.en.heldout-0000[1-9]-of-00050"
_TEST: Final = "news.en.heldout-00000-of-00050"


@final
class PennTreebank(SplitFolder):
    """``ptb.train.txt`` and so on: 10,000 types with ``<eos>``, which ends every line, also a blank one."""

    wanted = "the folder with ptb.train.txt, ptb.valid.txt and ptb.test.txt"
    patterns = ("ptb.{}.txt", "{}.txt")
    end_of_sentence = keeps_blank_lines = True


@final
class WikiText(SplitFolder):
    """WikiText-2 and WikiText-103, ``wiki.train.tokens`` and so on, or ``.raw``, in which no rare word was replaced; ``<eos>``
    ends every line, also a blank one."""

    wanted = "the folder with wiki.train.tokens, wiki.valid.tokens and wiki.test.tokens"
    patterns = ("wiki.{}.tokens", "wiki.{}.raw", "{}.txt")
    end_of_sentence = keeps_blank_lines = True


@final
class Text8(SegmentedCorpus):
    """One stream of lower-case words; the last million characters are the development set, all before is for training (Shen et
    al. 2017, section 4.1).

    There is no test set. text8 is ASCII, so the cut is made in bytes; a word across the cut goes to training. The vocabulary
    has at most 44,000 words, as in Shen et al."""

    size_of = "source"
    max_vocabulary: ClassVar[int | None] = 44_000
    wanted = "the file text8"

    def sources(self) -> list[CorpusFile]:
        inside = [self._source / name for name in ("text8", "text8.xz", "text8.gz", "text8.bz2")]
        return [CorpusFile(None, require_file(next(filter(Path.is_file, inside), self._source)))]

    def ranges(self, split: str | None, text: Path, size: int) -> list[tuple[str | None, int, int]]:
        """Return all but the last million bytes as train, and the rest as valid. DataError: too little is left for train."""
        cut = size - DEVELOPMENT_BYTES
        if cut < DEVELOPMENT_BYTES:
            raise DataError(
                f"{self._source}: {size} bytes of text; text8 needs {2 * DEVELOPMENT_BYTES} at least, for the last "
                f"{DEVELOPMENT_BYTES} are the development set; use the data set 'plain' for a shorter text"
            )
        with text.open("rb") as file:
            file.seek(cut)
            cut += file.read(1 << 10).find(b" ") + 1  # 0 where no word ends within a thousand characters
        return [("train", 0, cut), ("valid", cut, size)]


@final
class BillionWord(SegmentedCorpus):
    """The folder that the archive unpacks to, with two folders of shards; shards may be compressed one by one.

    Train has all training shards that are there, test the first held-out shard (as is usual), and valid the next nine. Words
    that occur less than three times in train are ``<unk>``, as in the benchmark; each sentence ends with ``<eos>``."""

    min_count: ClassVar[int] = 3
    end_of_sentence: ClassVar[bool] = True
    vocabulary_splits = ("train",)
    wanted = f"the folder with {TRAINING} and {HELD_OUT}"

    def sources(self) -> list[CorpusFile]:
        if not self._source.is_dir():
            kind = "is a file" if self._source.exists() else "does not exist"
            raise DataError(f"{self._source}: {kind}; {self.wanted} is needed")
        found = []
        for split, folder, pattern in (("train", TRAINING, _TRAIN), ("valid", HELD_OUT, _VALID), ("test", HELD_OUT, _TEST)):
            shards = without_twins(sorted((self._source / folder).glob(f"{pattern}*")))
            if not shards:
                raise DataError(f"{self._source}: no shards for the split {split!r}; looked for {folder}/{pattern}")
            found += [CorpusFile(split, path) for path in shards]
        return found
