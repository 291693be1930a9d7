"""Overlap of held-out text with the training text; figures on overlapping text say little about new text."""

from collections.abc import Iterator
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from sememekit.config import Record
from sememekit.data.examples import Examples
from sememekit.data.prepared import PreparedData

NGRAM: Final = 16  # n of the n-grams for comparing running text

_TOKENS_AT_ONCE: Final = 1 << 20
_EXAMPLES_AT_ONCE: Final = 1 << 14
_LARGE: Final = 20_000_000
"""If train has more tokens than this, only one n-gram in ``_EVERY`` is looked up, chosen by its words."""
_EVERY: Final = 16

Hashes = npt.NDArray[np.uint64]

_BASE: Final = 0x9E3779B97F4A7C15
_INVERSE: Final = pow(_BASE, -1, 1 << 64)


class Overlap(Record):
    """Held-out text that also occurs in train."""

    unit: Literal["examples", "n-grams"]
    """"examples" (labels may differ), or "n-grams" of ``NGRAM`` words of running text, across sentences."""
    shared: int
    of: int
    """shared, of: number of units that occur in train, and number of compared units."""

    @property
    def share(self) -> float:
        return self.shared / self.of if self.of else 0.0


def overlap_with_train(data: PreparedData) -> dict[str, Overlap]:
    """Return the overlap of each other split with train; empty without train.

    Texts are compared by 64-bit hashes, so a false match has a probability of about 10^-19 for each compared pair. Words
    outside the vocabulary are all ``<unk>``."""
    if "train" not in data.splits:
        return {}
    others = [split for split in data.splits if split != "train"]
    if data.signature.examples is not None:
        held_out = {split: np.concatenate([*_of_examples(data.examples(split)), _NONE]) for split in others}
        train, unit = _of_examples(data.examples("train")), "examples"
    else:
        every = _EVERY if len(data.tokens("train")) > _LARGE else 1
        held_out = {split: np.concatenate([*_of_ngrams(data.tokens(split), every), _NONE]) for split in others}
        train, unit = _of_ngrams(data.tokens("train"), every), "n-grams"
    wanted = np.unique(np.concatenate([*held_out.values(), _NONE]))
    seen = np.zeros(len(wanted), dtype=bool)
    for hashes in train:
        place = np.searchsorted(wanted, hashes)
        place[place == len(wanted)] = 0
        seen[place[wanted[place] == hashes] if len(wanted) else []] = True
    return {
        split: Overlap(unit=unit, shared=int(seen[np.searchsorted(wanted, hashes)].sum()), of=len(hashes))
        for split, hashes in held_out.items()
    }


_NONE: Final[Hashes] = np.zeros(0, dtype=np.uint64)


def _of_ngrams(tokens: npt.NDArray[np.unsignedinteger], every: int) -> Iterator[Hashes]:
    """Yield the hash of each n-gram, block by block."""
    for begin in range(0, len(tokens) - NGRAM + 1, _TOKENS_AT_ONCE):
        block = tokens[begin : begin + _TOKENS_AT_ONCE + NGRAM - 1]
        starts = np.arange(len(block) - NGRAM + 1)
        hashes = _hashes(block, starts, starts + NGRAM)
        yield hashes if every == 1 else hashes[_mixed(hashes) % np.uint64(every) == 0]


def _of_examples(examples: Examples) -> Iterator[Hashes]:
    """Yield the hash of the texts of each example, block by block."""
    for begin in range(0, len(examples), _EXAMPLES_AT_ONCE):
        end = min(begin + _EXAMPLES_AT_ONCE, len(examples))
        offsets = examples.offsets[begin * examples.num_texts : end * examples.num_texts + 1]
        block = examples.tokens[offsets[0] : offsets[-1]]
        bounds = (offsets - offsets[0]).reshape(-1)
        texts = _hashes(block, bounds[:-1], bounds[1:]).reshape(-1, examples.num_texts)
        combined = np.zeros(len(texts), dtype=np.uint64)
        for column in texts.T:
            combined = _mixed(combined) + _mixed(column)
        yield combined


def _hashes(tokens: npt.NDArray[np.unsignedinteger], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> Hashes:
    """sum_j mix(t_(start + j)) b^j modulo 2^64 of parts of a block (Karp and Rabin 1987), from the block's prefix sums."""
    powers, inverses = np.full((2, len(tokens) + 1), np.uint64(1))
    powers[1:], inverses[1:] = np.uint64(_BASE), np.uint64(_INVERSE)
    powers, inverses = np.cumprod(powers), np.cumprod(inverses)
    prefix = np.zeros(len(tokens) + 1, dtype=np.uint64)
    np.cumsum(_mixed(tokens.astype(np.uint64)) * powers[:-1], out=prefix[1:])
    found: Hashes = (prefix[ends] - prefix[starts]) * inverses[starts]
    return found


def _mixed(values: Hashes) -> Hashes:
    """The finaliser of splitmix64 (Steele et al. 2014), which maps close values to distant values."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
