"""Division of a text into train, valid and test: seeded, exact, and the same on every machine.

Both ways rank raw 64-bit numbers from PCG64, whose stream numpy promises not to change."""

from collections.abc import Sequence
from math import gcd
from typing import final

import numpy as np
import numpy.typing as npt

from sememekit.errors import DataError


def shuffled_division(count: int, proportions: Sequence[int], seed: int) -> list[npt.NDArray[np.int64]]:
    """Shuffle 0..count-1 and cut the result in the given proportions; return an array of sentence numbers for each part.

    Memory: 16 bytes a sentence. Raises DataError when a part would be empty."""
    order = np.argsort(np.random.PCG64(seed).random_raw(count), kind="stable")
    cuts = [round(count * sum(proportions[:end]) / sum(proportions)) for end in range(1, len(proportions))]
    parts = np.split(order, cuts)
    if any(len(part) == 0 for part in parts):
        raise DataError(f"{count} sentences cannot be divided {':'.join(map(str, proportions))}; every split needs one")
    return parts


@final
class StratifiedDivision:
    """Split labels for a stream of sentences, in constant memory.

    Blocks have as many sentences as the sum of the reduced proportions, such as 20 for 90:5:5. In every full block each split
    gets its exact share, at random positions. The label of sentence i does not depend on later sentences."""

    def __init__(self, proportions: Sequence[int], seed: int, first: int = 0) -> None:
        """Begin with the label of sentence ``first``."""
        divisor = gcd(*proportions)
        self._pattern = np.repeat(np.arange(len(proportions), dtype=np.int8), [part // divisor for part in proportions])
        self._generator = np.random.PCG64(seed)
        self._left = np.zeros(0, dtype=np.int8)
        self.smallest = size = len(self._pattern)
        self._generator.advance(first // size * size)  # whole blocks need no drawing
        self.take(first % size)

    def take(self, count: int) -> npt.NDArray[np.int8]:
        """Labels of the next ``count`` sentences: (count,) index into the proportions."""
        size = len(self._pattern)
        blocks = -(-max(0, count - len(self._left)) // size)
        keys = np.asarray(self._generator.random_raw(blocks * size)).reshape(blocks, size)
        drawn = self._pattern[np.argsort(keys, axis=1, kind="stable")].reshape(-1)
        labels = np.concatenate([self._left, drawn])
        self._left = labels[count:]
        return labels[:count]
