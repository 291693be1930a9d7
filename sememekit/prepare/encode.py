"""Provisional ids of the shards to ids of the vocabulary, sentence by sentence into the files of the splits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, final

import numpy as np
import numpy.typing as npt

from sememekit.corpora.division import StratifiedDivision, shuffled_division
from sememekit.corpora.sources import SPLITS
from sememekit.corpora.units import ShardResult
from sememekit.data.prepared import token_type
from sememekit.data.signature import SplitSummary
from sememekit.errors import DataError
from sememekit.text.vocabulary import Vocabulary

_SENTENCES: Final = 1 << 16
_WORDS: Final = 1 << 22


@final
class SplitWriter:
    """The file of ids of one split, and its counts."""

    def __init__(self, path: Path, vocabulary: Vocabulary) -> None:
        self._file = path.open("wb")
        self._type = token_type(len(vocabulary))
        self._counts: npt.NDArray[np.int64] = np.zeros(len(vocabulary), dtype=np.int64)
        self._unknown = vocabulary.unknown_id
        self._digest = hashlib.sha256()
        self._sizes = np.zeros(3, dtype=np.int64)  # sentences, characters, bytes

    def write(self, ids: npt.NDArray[np.integer], units: npt.NDArray[np.uint32]) -> None:
        """Append ids (N,) of whole sentences, and their units (sentences, 3)."""
        self._counts += np.bincount(ids, minlength=len(self._counts))
        self._sizes += [len(units), *units[:, 1:].sum(axis=0, dtype=np.int64)]
        data = ids.astype(self._type).tobytes()
        self._digest.update(data)
        self._file.write(data)

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

    def __init__(self, folder: Path, vocabulary: Vocabulary, progress: Callable[[str, int, int], None]) -> None:
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
        division = StratifiedDivision(proportions, seed)
        for done, (split, shard) in enumerate(parts):
            self._progress("encode", done, len(parts))
            if split is not None:
                self._copy(shard, self._writer(split))
            elif not shuffle:
                self._divide(shard, division)
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

    def _require(self, sentences: int, proportions: Sequence[int]) -> None:
        needed = StratifiedDivision(proportions, 0).smallest if max(proportions) < 1000 else len(proportions) * 10
        if sentences == 0:
            raise DataError("the text has no words: nothing but white space, or nothing that --errors leaves of it")
        if sentences < needed:
            raise DataError(
                f"the text has {sentences} sentences, and {needed} are needed to divide it {':'.join(map(str, proportions))}; "
                "give a longer text, or a folder with train.txt, valid.txt and test.txt"
            )

    def _writer(self, split: str) -> SplitWriter:
        if split not in self._writers:
            self._writers[split] = SplitWriter(self._folder / f"{split}.bin", self._vocabulary)
        return self._writers[split]

    def _mapping(self, shard: ShardResult) -> npt.NDArray[np.uint32]:
        pairs = [(index, self._vocabulary.id(word)) for word, _, index in shard.types()]
        mapping = np.zeros(len(pairs), dtype=np.uint32)
        if pairs:
            provisional, final_ids = np.array(pairs, dtype=np.int64).T
            mapping[provisional] = final_ids
        return mapping

    def _copy(self, shard: ShardResult, writer: SplitWriter) -> None:
        mapping, ids, units = self._mapping(shard), shard.ids(), shard.units()
        for first in range(0, len(ids), _WORDS):
            writer.write(mapping[ids[first : first + _WORDS]], units[:0])
        for first in range(0, len(units), _SENTENCES):
            writer.write(mapping[:0], np.asarray(units[first : first + _SENTENCES]))

    def _divide(self, shard: ShardResult, division: StratifiedDivision) -> None:
        mapping, ids, units = self._mapping(shard), shard.ids(), shard.units()
        position = 0
        for first in range(0, len(units), _SENTENCES):
            block = np.asarray(units[first : first + _SENTENCES])
            words = int(block[:, 0].sum(dtype=np.int64))
            block_ids = mapping[ids[position : position + words]]
            position += words
            labels = division.take(len(block))
            labels_of_words = np.repeat(labels, block[:, 0])
            for label, split in enumerate(SPLITS):
                self._writer(split).write(block_ids[labels_of_words == label], block[labels == label])

    def _shuffle(self, shards: Sequence[ShardResult], proportions: Sequence[int], seed: int) -> None:
        """Gather sentences in shuffled order; the ids stay on the disk, the index of sentences is in memory."""
        path = self._folder.parent / "shuffle.bin"
        unit_list = []
        with path.open("wb") as file:
            for shard in shards:
                mapping, ids = self._mapping(shard), shard.ids()
                for first in range(0, len(ids), _WORDS):
                    mapping[ids[first : first + _WORDS]].tofile(file)
                unit_list.append(np.array(shard.units()))
        units = np.concatenate(unit_list)
        ends = np.cumsum(units[:, 0], dtype=np.int64)
        starts = ends - units[:, 0]
        ids = np.memmap(path, dtype=np.uint32, mode="r")
        for split, order in zip(SPLITS, shuffled_division(len(units), proportions, seed), strict=True):
            for first in range(0, len(order), _SENTENCES):
                block = order[first : first + _SENTENCES]
                gathered = np.concatenate([ids[starts[index] : ends[index]] for index in block])
                self._writer(split).write(gathered, units[block])
        path.unlink()
