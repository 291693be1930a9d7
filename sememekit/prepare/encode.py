"""Provisional ids of the shards to ids of the vocabulary: each shard by itself, then one after the other into the splits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from sememekit.corpora.division import StratifiedDivision, shuffled_division
from sememekit.corpora.sources import SPLITS
from sememekit.corpora.units import ShardResult
from sememekit.data.prepared import VOCABULARY, token_type
from sememekit.data.signature import SplitSummary
from sememekit.engines.base import Engine
from sememekit.errors import DataError
from sememekit.progress import Progress
from sememekit.text.vocabulary import Vocabulary

_SENTENCES: Final = 1 << 16
_WORDS: Final = 1 << 22
_BYTES: Final = 1 << 20


class Encoded(NamedTuple):
    """One shard's part of a split: a file of ids in the type of the finished folder, and what is counted of it.

    Attributes:
        path: the file of ids.
        tokens: how many they are.
        types: file of the (2, types) ids that occur and their counts; a shard has few of the V words.
        sizes: sentences, characters and bytes.
    """

    path: Path
    tokens: int
    types: Path
    sizes: tuple[int, int, int]


class EncodeTask(NamedTuple):
    """The ids of one shard, for a process of an engine.

    Attributes:
        split: its split; None for one that is divided.
        first: number of its first sentence among those that are divided.
        vocabulary: the file of the vocabulary, and its fingerprint.
    """

    shard: ShardResult
    split: str | None
    first: int
    proportions: tuple[int, ...]
    seed: int
    vocabulary: Path
    fingerprint: str
    stem: Path

    def run(self) -> dict[str, Encoded]:
        """Split -> its part of the shard."""
        vocabulary = _vocabulary(self.vocabulary, self.fingerprint)
        shard, mapping = self.shard, _mapping(self.shard, vocabulary)
        division = StratifiedDivision(self.proportions, self.seed)
        division.skip(self.first)
        writers = {split: _PartWriter(self.stem, split, vocabulary) for split in ([self.split] if self.split else SPLITS)}
        ids, units, position = shard.ids(), shard.units(), 0
        for first in range(0, len(units), _SENTENCES):
            block = np.asarray(units[first : first + _SENTENCES])
            words = int(block[:, 0].sum(dtype=np.int64))
            block_ids = mapping[ids[position : position + words]]
            position += words
            if self.split is not None:
                writers[self.split].write(block_ids, block)
                continue
            labels = division.take(len(block))
            labels_of_words = np.repeat(labels, block[:, 0])
            for label, split in enumerate(SPLITS):
                writers[split].write(block_ids[labels_of_words == label], block[labels == label])
        return {split: writer.close() for split, writer in writers.items()}


@final
class _PartWriter:
    def __init__(self, stem: Path, split: str, vocabulary: Vocabulary) -> None:
        self._path = stem.with_name(f"{stem.name}.{split}.encoded")
        self._file = self._path.open("wb")
        self._type = token_type(len(vocabulary))
        self._counts: npt.NDArray[np.int64] = np.zeros(len(vocabulary), dtype=np.int64)
        self._sizes = np.zeros(3, dtype=np.int64)

    def write(self, ids: npt.NDArray[np.integer], units: npt.NDArray[np.uint32]) -> None:
        """Append ids (N,) of whole sentences, and their units (sentences, 3)."""
        self._counts += np.bincount(ids, minlength=len(self._counts))
        self._sizes += [len(units), *units[:, 1:].sum(axis=0, dtype=np.int64)]
        self._file.write(ids.astype(self._type).data)

    def close(self) -> Encoded:
        self._file.close()
        types = self._path.with_suffix(".counts.npy")
        found = np.flatnonzero(self._counts)
        np.save(types, np.stack([found, self._counts[found]]))
        sentences, characters, size = self._sizes.tolist()
        return Encoded(self._path, int(self._counts.sum()), types, (sentences, characters, size))


def _mapping(shard: ShardResult, vocabulary: Vocabulary) -> npt.NDArray[np.uint32]:
    pairs = [(index, vocabulary.id(word)) for word, _, index in shard.types()]
    mapping = np.zeros(len(pairs), dtype=np.uint32)
    if pairs:
        provisional, final_ids = np.array(pairs, dtype=np.int64).T
        mapping[provisional] = final_ids
    return mapping


@lru_cache(maxsize=1)
def _vocabulary(path: Path, fingerprint: str) -> Vocabulary:
    """The vocabulary of the run at hand, read once in a process."""
    return Vocabulary.load(path)


@final
class SplitWriter:
    """The file of ids of one split, and its counts."""

    def __init__(self, path: Path, vocabulary: Vocabulary) -> None:
        self._file = path.open("wb")
        self._counts: npt.NDArray[np.int64] = np.zeros(len(vocabulary), dtype=np.int64)
        self._unknown = vocabulary.unknown_id
        self._digest = hashlib.sha256()
        self._sizes = np.zeros(3, dtype=np.int64)  # sentences, characters, bytes

    def take(self, part: Encoded) -> None:
        """Append the part of a shard, and remove its files."""
        found, counts = np.load(part.types)
        self._counts[found] += counts
        self._sizes += part.sizes
        with part.path.open("rb") as file:
            while block := file.read(_BYTES):
                self._digest.update(block)
                self._file.write(block)
        part.path.unlink()
        part.types.unlink()

    def abandon(self) -> None:
        self._file.close()

    def close(self) -> SplitSummary:
        self.abandon()
        tokens = int(self._counts.sum())
        unknown = 0 if self._unknown is None else int(self._counts[self._unknown])
        sentences, characters, size = self._sizes.tolist()
        return SplitSummary(
            tokens=tokens,
            types=int(np.count_nonzero(self._counts)),
            unknown=unknown,
            unknown_rate=round(unknown / tokens, 6) if tokens else 0.0,
            sentences=sentences,
            characters=characters,
            bytes=size,
            sha256=self._digest.hexdigest(),
        )


@final
class IdWriter:
    """Writes the splits of one prepared-data folder; as a context manager it always closes their files."""

    def __init__(self, engine: Engine, folder: Path, vocabulary: Vocabulary, progress: Progress) -> None:
        self._engine = engine
        self._folder = folder
        self._vocabulary = vocabulary
        self._progress = progress
        self._writers: dict[str, SplitWriter] = {}

    def __enter__(self) -> IdWriter:
        return self

    def __exit__(self, *failure: object) -> None:
        for writer in self._writers.values():
            writer.abandon()

    def encode(
        self, parts: Sequence[tuple[str | None, ShardResult]], *, proportions: Sequence[int], shuffle: bool, seed: int
    ) -> dict[str, SplitSummary]:
        """Write every shard to its split; shards without a split are divided together. Raises DataError when a split would hold
        no words."""
        undivided = [shard for split, shard in parts if split is None]
        if undivided:
            self._require(sum(shard.sentences for shard in undivided), proportions)
        whole = [(split, shard) for split, shard in parts if split is not None or not shuffle]
        self._progress("encode", 0, len(parts))
        for done, encoded in enumerate(self._encoded(whole, proportions, seed), start=1):
            for split, part in encoded.items():
                self._writer(split).take(part)
            self._progress("encode", done, len(parts))
        if undivided and shuffle:
            self._shuffle(undivided, proportions, seed)
        self._progress("encode", len(parts), len(parts))
        summaries: dict[str, SplitSummary] = {split: self._writers[split].close() for split in SPLITS if split in self._writers}
        for split, summary in summaries.items():
            if summary.tokens == 0:
                raise DataError(
                    f"the split {split!r} has no words: nothing but white space, or nothing that --errors leaves of it"
                )
        return summaries

    def _encoded(
        self, parts: Sequence[tuple[str | None, ShardResult]], proportions: Sequence[int], seed: int
    ) -> Iterator[dict[str, Encoded]]:
        """The parts of every shard, in order; those of later shards wait on the disk."""
        work = self._folder.parent
        path = work / VOCABULARY
        self._vocabulary.save(path)
        firsts = [0, *accumulate(0 if split else shard.sentences for split, shard in parts)]
        tasks = [
            EncodeTask(
                shard, split, first, tuple(proportions), seed, path, self._vocabulary.fingerprint, work / f"shard-{number}"
            )
            for number, ((split, shard), first) in enumerate(zip(parts, firsts, strict=False))
        ]
        return self._engine.in_order(EncodeTask.run, tasks)

    def _require(self, sentences: int, proportions: Sequence[int]) -> None:
        needed = StratifiedDivision(proportions, 0).smallest if max(proportions) < 1000 else len(proportions) * 10
        if sentences == 0:
            raise DataError("the text has no words: nothing but white space, or nothing that --errors leaves of it")
        if sentences < needed:
            raise DataError(
                f"the text has {sentences} sentence{'s' if sentences > 1 else ''}, since each line is one and LF alone ends a "
                f"line, and {needed} are needed to divide it {':'.join(map(str, proportions))}; give a longer text, one with a "
                "sentence a line, or a folder with train.txt, valid.txt and test.txt"
            )

    def _writer(self, split: str) -> SplitWriter:
        if split not in self._writers:
            self._writers[split] = SplitWriter(self._folder / f"{split}.bin", self._vocabulary)
        return self._writers[split]

    def _shuffle(self, shards: Sequence[ShardResult], proportions: Sequence[int], seed: int) -> None:
        """Gather sentences in shuffled order; the ids stay on the disk, the index of sentences is in memory."""
        path = self._folder.parent / "shuffle.bin"
        unit_list = []
        with path.open("wb") as file:
            for shard in shards:
                mapping, ids = _mapping(shard, self._vocabulary), shard.ids()
                for first in range(0, len(ids), _WORDS):
                    file.write(mapping[ids[first : first + _WORDS]].data)
                unit_list.append(np.array(shard.units()))
        units = np.concatenate(unit_list)
        ends = np.cumsum(units[:, 0], dtype=np.int64)
        starts = ends - units[:, 0]
        ids = np.memmap(path, dtype=np.uint32, mode="r")
        for split, order in zip(SPLITS, shuffled_division(len(units), proportions, seed), strict=True):
            writer = _PartWriter(path, split, self._vocabulary)
            for first in range(0, len(order), _SENTENCES):
                block = order[first : first + _SENTENCES]
                writer.write(np.concatenate([ids[starts[index] : ends[index]] for index in block]), units[block])
            self._writer(split).take(writer.close())
        path.unlink()
