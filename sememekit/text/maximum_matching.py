"""Forward maximum matching: the longest word of a list at each position."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from operator import itemgetter
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from sememekit.errors import DataError

_PATTERN: Final = itemgetter(2)
_DIGIT: Final = "0-9\uff10-\uff19"
_LETTER: Final = f"A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\uff21-\uff3a\uff41-\uff5a{_DIGIT}"
_LATIN: Final = re.compile(f"[{_LETTER}]+(?:(?<=[{_DIGIT}])[.\uff0e][{_DIGIT}]+)*(?:(?<=[{_DIGIT}])[%\uff05])?")
_LINE_END: Final = "\n"
_AT_ONCE: Final = 32  # lines in one pass of the automaton, so that matches fit the cache
_NONE: Final = np.zeros(0, dtype=np.int64)
_WHOLE: Final = "Latin words and numbers whole"

Numbering = Callable[[Sequence[str]], tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]
"""A function from lines to the ids of all their words, concatenated, and (lines,) the number of words."""


@final
class MaximumMatcher:
    """Forward maximum matching (FMM): at each position the longest word of the list, or a single character.

    >>> MaximumMatcher(["今天", "天气"]).segment("今天天气好")
    ['今天', '天气', '好']

    A Latin word or a number (``iPhone6``, ``3.5%``) counts as a word of the list; with ``cut_latin`` it is segmented like
    Chinese. Leftmost-longest matching by an Aho-Corasick automaton gives this result in one pass."""

    _SINGLES: Final = tuple(
        chr(code)
        for first, last in ((0x21, 0x7E), (0x2010, 0x2027), (0x3001, 0x303F), (0x4E00, 0x9FFF), (0xFF01, 0xFF5E))
        for code in range(first, last + 1)
    )

    def __init__(self, words: Iterable[str], *, cut_latin: bool = False) -> None:
        """Build the automaton; words that are empty or hold white space are left out. Raises DataError when no word is left."""
        kept = sorted({word for word in words if word and not any(map(str.isspace, word))})
        if not kept:
            raise DataError("forward maximum matching needs a list of words, and this one is empty")
        rule = "" if cut_latin else f", {_WHOLE}"
        self.description = f"forward maximum matching{rule}, {len(kept)} words, {hash_words(kept)[:16]}"
        self._words, self._cut_latin = kept, cut_latin
        self._longest = max(map(len, kept))
        self._find = _automaton(kept)

    @cached_property
    def _gapless(self) -> tuple[list[str], npt.NDArray[np.int32], Any]:
        """Words, usual characters and a line end, their lengths, and their automaton, which takes 50 times as long to build."""
        patterns = sorted({*self._words, *self._SINGLES, _LINE_END})  # no word and no chunk has a line end
        return patterns, np.array(list(map(len, patterns)), dtype=np.int32), _automaton(patterns)

    def segment(self, text: str) -> list[str]:
        cut = self._segment_chunk if self._cut_latin else self._segment_mixed
        return list(chain.from_iterable(map(cut, text.split())))

    def numbering(self, ids: Mapping[str, int]) -> Numbering:
        """Return a function from lines to ``ids`` of the words of ``segment``; ids has an entry for every word.

        The function makes one pass over many lines; matches do not cross line ends. Every character of the usual blocks is a
        pattern of its automaton, so that matches leave no gaps. Lines with Latin words or characters outside the patterns are
        segmented separately."""
        known = self._gapless[0]
        id_of_pattern = np.full(len(known), -1, dtype=np.int64)

        def ids_of(patterns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
            fresh = id_of_pattern[patterns] < 0
            if fresh.any():
                for pattern in dict.fromkeys(patterns[fresh].tolist()):
                    id_of_pattern[pattern] = ids[known[pattern]]
            return id_of_pattern[patterns]

        def number(lines: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
            apart = np.zeros(len(lines), dtype=bool) if self._cut_latin else line_sums(lines, _IS_LATIN)[:, 0] > 0
            together = [line for line, is_apart in zip(lines, apart.tolist(), strict=True) if not is_apart]
            patterns, numbers, gaps = self._match(together)
            apart[np.flatnonzero(~apart)[gaps]] = True
            counts = np.zeros(len(lines), dtype=np.int64)
            counts[~apart] = np.delete(numbers, gaps)
            cut = [self.segment(lines[number]) for number in np.flatnonzero(apart).tolist()]
            counts[apart] = list(map(len, cut))
            found = np.empty(int(counts.sum()), dtype=np.int64)
            of_apart = np.repeat(apart, counts)
            found[of_apart] = [ids[word] for words in cut for word in words]
            found[~of_apart] = ids_of(patterns)
            return found, counts

        return number

    def _match(self, lines: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], list[int]]:
        """Return the patterns in lines without Latin words, their number in each line, and lines with other characters."""
        known, sizes, find = self._gapless
        some = ["\n".join((*lines[first : first + _AT_ONCE], "")) for first in range(0, len(lines), _AT_ONCE)]
        parts = [np.fromiter(map(_PATTERN, found), np.int64, len(found)) for found in map(find, some)]
        patterns = np.concatenate([_NONE, *parts])
        is_end = patterns == known.index(_LINE_END)
        ends = np.flatnonzero(is_end)
        counts = np.diff(ends, prepend=-1) - 1
        covered = np.diff(np.cumsum(sizes[patterns])[ends], prepend=0) - 1
        lacking = np.flatnonzero(covered < np.fromiter(map(len, lines), np.int64, len(lines)))
        gaps = [number for number in lacking.tolist() if covered[number] < sum(map(len, lines[number].split()))]
        patterns = patterns[~is_end]
        if gaps:
            whole = np.ones(len(lines), dtype=bool)
            whole[gaps] = False
            patterns = patterns[np.repeat(whole, counts)]
        return patterns, counts, gaps

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(MaximumMatcher, cut_latin=self._cut_latin), (self._words,)

    def _segment_mixed(self, chunk: str) -> list[str]:
        words, position = list[str](), 0
        while (run := _LATIN.search(chunk, position)) is not None:
            base, start = position, run.start()
            for first, last, _ in self._find(chunk[base : start + self._longest]):
                first, last = base + first, base + last
                if first > start or (first == start and last <= run.end()):
                    break
                words += [*chunk[position:first], chunk[first:last]]
                position = last
            if position <= start:
                words += [*chunk[position:start], run.group()]
                position = run.end()
        return words + self._segment_chunk(chunk[position:])

    def _segment_chunk(self, chunk: str) -> list[str]:
        words, last = list[str](), 0
        for start, end, _ in self._find(chunk):
            if start > last:  # matches mostly touch, and an empty slice costs as much as a word
                words += chunk[last:start]
            words.append(chunk[start:end])
            last = end
        return words + list(chunk[last:])


def _automaton(patterns: list[str]) -> Any:
    """Return the ``find`` of an automaton: text -> (start, end, number of the pattern) of its leftmost-longest matches."""
    import daachorse

    return daachorse.CharwiseDoubleArrayAhoCorasick(patterns, daachorse.MATCH_KIND_LEFTMOST_LONGEST).find


def line_sums(lines: Sequence[str], tables: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Return (lines, n) sums over the characters of lines; ``tables`` (n, 65537) have a number for each character below
    U+10000, and a last number for all other characters."""
    codes = np.frombuffer("\n".join((*lines, "")).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    ends = np.flatnonzero(codes == ord(_LINE_END))
    codes = np.minimum(codes, tables.shape[1] - 1)
    return np.stack([np.diff(np.cumsum(table[codes], dtype=np.int64)[ends], prepend=0) for table in tables], axis=1)


_IS_LATIN: Final = np.zeros((1, (1 << 16) + 1), dtype=np.uint8)
"""Table for ``line_sums``: whether a character is a Latin letter or a digit."""
_IS_LATIN[0, [found.start() for found in re.finditer(f"[{_LETTER}]", "".join(map(chr, range(1 << 16))))]] = 1


def cuts_latin(description: str) -> bool:
    """Return whether a segmenter's description stands for maximum matching that cuts Latin words (as for some corpora)."""
    return description.startswith("forward maximum matching") and _WHOLE not in description


def hash_words(words: Iterable[str]) -> str:
    """SHA-256 of words in their order, for a description."""
    return hashlib.sha256("\n".join(words).encode(errors="surrogatepass")).hexdigest()
