"""Replace provisional ids by ids of the vocabulary in each shard, then write shards into the splits."""

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from functools import lru_cache, partial
from itertools import accumulate
from operator import call
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from sememekit.corpora.base import Corpus
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


class Encoded(NamedTuple):
    """One shard's part of a split: a file of ids in the final type, and its counts."""

    path: Path  # of the ids
    types: Path  # of the ids that occur and their counts (2, types), since a shard has few of the V words
    sizes: tuple[int, int, int]  # sentences, characters and bytes


def encode_shard(
    shard: ShardResult, split: str | None, division: StratifiedDivision, path: Path, fingerprint: str, stem: Path
) -> dict[str, Encoded]:
    """Return split -> its part of one shard, in a process of an engine, by the vocabulary in the file ``path``.

    A shard without a split is divided; ``division`` begins with its first sentence."""
    vocabulary = _vocabulary(path, fingerprint)
    mapping = _mapping(shard, vocabulary)
    writers = {name: _PartWriter(stem, name, vocabulary) for name in ([split] if split else SPLITS)}
    ids, units, position = shard.ids(), shard.units(), 0
    for begin in range(0, len(units), _SENTENCES):
        block = np.asarray(units[begin : begin + _SENTENCES])
        num_words = int(block[:, 0].sum(dtype=np.int64))
        block_ids = mapping[ids[position : position + num_words]]
        position += num_words
        if split is not None:
            writers[split].write(block_ids, block)
            continue
        labels = division.take(len(block))
        labels_of_words = np.repeat(labels, block[:, 0])
        for label, name in enumerate(SPLITS):
            writers[name].write(block_ids[labels_of_words == label], block[labels == label])
    return {name: writer.close() for name, writer in writers.items()}


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
        return Encoded(self._path, types, (sentences, characters, size))


def _mapping(shard: ShardResult, vocabulary: Vocabulary) -> npt.NDArray[np.uint32]:
    pairs = np.array([(index, vocabulary.id(word)) for word, _, index in shard.types()], dtype=np.int64).reshape(-1, 2)
    mapping = np.zeros(len(pairs), dtype=np.uint32)
    mapping[pairs[:, 0]] = pairs[:, 1]
    return mapping


@lru_cache(maxsize=1)
def _vocabulary(path: Path, fingerprint: str) -> Vocabulary:
    """Return the vocabulary of the current run, read once in a process."""
    return Vocabulary.load(path)


@final
class SplitWriter:
    """The file of ids of one split, and its counts."""

    def __init__(self, file: BinaryIO, vocabulary: Vocabulary) -> None:
        self._file = file
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
            while block := file.read(1 << 20):
                self._digest.update(block)
                self._file.write(block)
        part.path.unlink()
        part.types.unlink()

    def summary(self) -> SplitSummary:
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


Parts = Sequence[tuple[str | None, ShardResult]]  # shards with their splits; None for shards that are divided together


def write_splits(
    engine: Engine, folder: Path, vocabulary: Vocabulary, parts: Parts, corpus: Corpus, seed: int, progress: Progress
) -> dict[str, SplitSummary]:
    """Write every shard to its split in a prepared-data folder. Raises DataError: a split without words."""
    undivided = [shard for split, shard in parts if split is None]
    if undivided:
        _require(sum(shard.sentences for shard in undivided), corpus.proportions)
    whole = [(split, shard) for split, shard in parts if split is not None or not corpus.shuffle]
    firsts = [0, *accumulate(0 if split else shard.sentences for split, shard in whole)]
    work, path = folder.parent, folder.parent / VOCABULARY
    vocabulary.save(path)
    divisions = [StratifiedDivision(corpus.proportions, seed, first) for first in firsts]
    tasks = [
        partial(encode_shard, shard, split, division, path, vocabulary.fingerprint, work / f"shard-{number}")
        for number, ((split, shard), division) in enumerate(zip(whole, divisions, strict=False))
    ]
    progress("encode", 0, len(parts))
    writers: dict[str, SplitWriter] = {}
    with ExitStack() as stack:

        def take(encoded: dict[str, Encoded]) -> None:
            for split, part in encoded.items():
                if split not in writers:
                    writers[split] = SplitWriter(stack.enter_context((folder / f"{split}.bin").open("wb")), vocabulary)
                writers[split].take(part)

        for done, encoded in enumerate(engine.in_order(call, tasks), start=1):
            take(encoded)
            progress("encode", done, len(parts))
        if undivided and corpus.shuffle:
            take(_shuffled(work / "shuffle.bin", vocabulary, undivided, corpus.proportions, seed))
    progress("encode", len(parts), len(parts))
    summaries: dict[str, SplitSummary] = {split: writers[split].summary() for split in SPLITS if split in writers}
    for split, summary in summaries.items():
        if summary.tokens == 0:
            raise DataError(f"the split {split!r} has no words: it is white space alone, or --errors dropped all of it")
    return summaries


def _require(sentences: int, proportions: Sequence[int]) -> None:
    needed = StratifiedDivision(proportions, 0).smallest if max(proportions) < 1000 else len(proportions) * 10
    if sentences == 0:
        raise DataError("the text has no words: it is white space alone, or --errors dropped all of it")
    if sentences < needed:
        raise DataError(
            f"the text has {sentences} sentence{'s' if sentences > 1 else ''} (lines that end with LF), and {needed} are "
            f"needed to divide it {':'.join(map(str, proportions))}; give a longer text, one with a "
            "sentence a line, or a folder with train.txt, valid.txt and test.txt"
        )


def _shuffled(
    path: Path, vocabulary: Vocabulary, shards: Sequence[ShardResult], proportions: Sequence[int], seed: int
) -> dict[str, Encoded]:
    """Gather sentences in shuffled order; ids stay on disk in ``path``, the index of sentences is in memory."""
    unit_list = []
    with path.open("wb") as file:
        for shard in shards:
            mapping, ids = _mapping(shard, vocabulary), shard.ids()
            for first in range(0, len(ids), _WORDS):
                file.write(mapping[ids[first : first + _WORDS]].data)
            unit_list.append(np.array(shard.units()))
    units = np.concatenate(unit_list)
    ends = np.cumsum(units[:, 0], dtype=np.int64)
    starts = ends - units[:, 0]
    ids = np.memmap(path, dtype=np.uint32, mode="r")
    found = {}
    for split, order in zip(SPLITS, shuffled_division(len(units), proportions, seed), strict=True):
        writer = _PartWriter(path, split, vocabulary)
        for first in range(0, len(order), _SENTENCES):
            block = order[first : first + _SENTENCES]
            writer.write(np.concatenate([ids[starts[index] : ends[index]] for index in block]), units[block])
        found[split] = writer.close()
    path.unlink()
    return found
