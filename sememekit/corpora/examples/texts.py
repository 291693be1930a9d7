"""The text of pairs beside their ids: the words of the source as they were cut, and the references as written."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from sememekit.corpora.units import ShardResult
from sememekit.errors import DataError


def write_texts(
    folder: Path, split: str, num_texts: int, shards: Sequence[ShardResult], references: Iterable[str], digest: hashlib._Hash
) -> None:
    """Write ``SPLIT.texts.jsonl`` and ``SPLIT.lines.bin``; see :class:`~sememekit.data.examples.Originals`.

    An example has N = ``num_texts`` texts, the first of which is the source. ``shards`` are those of the split, in order;
    memory grows with the distinct words of one. ``references`` are a JSON list a line, in the order of the examples; ``digest``
    is updated with the bytes of the texts. Raises DataError when there are more examples than references, or the other way
    round.
    """
    ends, position = array("q", [0]), 0
    lists = iter(references)
    with (folder / f"{split}.texts.jsonl").open("wb", buffering=1 << 20) as out:
        for source in islice(_texts(shards), 0, None, num_texts):
            kept = next(lists, None)
            if kept is None:
                raise DataError(f"split {split!r}: more examples than references; a segmenter must not lose or add a text")
            line = f'{{"source": {json.dumps(" ".join(source), ensure_ascii=False)}, "references": {kept.rstrip()}}}\n'.encode()
            out.write(line)
            digest.update(line)
            position += len(line)
            ends.append(position)
    if next(lists, None) is not None:
        raise DataError(f"split {split!r}: more references than examples; a segmenter must not lose or add a text")
    np.frombuffer(ends, dtype=np.int64).astype("<i8").tofile(folder / f"{split}.lines.bin")


def _texts(shards: Sequence[ShardResult]) -> Iterator[list[str]]:
    for shard in shards:
        words = [""] * sum(1 for _ in shard.types())
        for word, _, index in shard.types():
            words[index] = word
        ids, position = shard.ids(), 0
        for length in shard.units()[:, 0].tolist():
            yield [words[index] for index in ids[position : position + length].tolist()]
            position += length
