"""Segmenters: forward maximum matching, jieba, SentencePiece, white space, characters; for English see ``english``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Literal, Protocol, final

import numpy as np
import numpy.typing as npt

from sememekit.config import load_variant
from sememekit.errors import ConfigError, DataError
from sememekit.files import read_bytes
from sememekit.text.vocabulary import UNKNOWN

_PATTERN: Final = itemgetter(2)
_DIGIT: Final = "0-9\uff10-\uff19"
_LETTER: Final = f"A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\uff21-\uff3a\uff41-\uff5a{_DIGIT}"
_LATIN: Final = re.compile(f"[{_LETTER}]+(?:(?<=[{_DIGIT}])[.\uff0e][{_DIGIT}]+)*(?:(?<=[{_DIGIT}])[%\uff05])?")
_LINE_END: Final = "\n"
_AT_ONCE: Final = 32
"""Lines in one pass of the automaton; with more of them the matches leave the cache."""
_NONE: Final = np.zeros(0, dtype=np.int64)
_WHOLE: Final = "Latin words and numbers whole"

Numbering = Callable[[Sequence[str]], tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]
"""From lines to the numbers of all their words, one line after the other, and (lines,) how many words each has."""

PieceModel = Literal["unigram", "bpe"]

SEGMENTERS: Final = {
    "characters": "sememekit.text.segmenters:Characters",
    "english": "sememekit.text.english:English",
    "english-cased": "sememekit.text.english:EnglishCased",
    "fmm": "sememekit.text.segmenters:MaximumMatcher",
    "gigaword": "sememekit.text.english:Gigaword",
    "hf": "sememekit.text.huggingface:HuggingFacePieces",
    "jieba": "sememekit.text.segmenters:JiebaSegmenter",
    "none": "sememekit.text.segmenters:WhiteSpace",
    "sentencepiece": "sememekit.text.segmenters:SentencePieces",
}


class Segmenter(Protocol):
    """Cuts a text into words. No word is empty or holds white space.

    >>> open_segmenter("characters").segment("今天 好")
    ['今', '天', '好']
    """

    @property
    def description(self) -> str:
        """One line for the signature; it changes whenever the result may change."""

    def segment(self, text: str) -> list[str]: ...


@final
class WhiteSpace:
    """Words are what stands between (Unicode) white space."""

    description = "white space"

    def segment(self, text: str) -> list[str]:
        return text.split()


@final
class Characters:
    """Every character (code point) but white space is a word."""

    description = "characters"

    def segment(self, text: str) -> list[str]:
        return list("".join(text.split()))


@final
class MaximumMatcher:
    """Forward maximum matching (FMM): at each position the longest word of the list; a character that begins none stands alone.

    >>> MaximumMatcher(["今天", "天气"]).segment("今天天气好")
    ['今天', '天气', '好']

    A Latin word or a number (``iPhone6``, ``3.5%``) counts as a word of the list; with ``cut_latin`` it is cut as Chinese is.
    Leftmost-longest matching of an Aho-Corasick automaton gives exactly this, in one pass: a match further to the right can
    start only where no word started before it. Every character of the usual blocks is a pattern of its own, to spare the
    filling of gaps; the result is the same.
    """

    _SINGLES: Final = tuple(
        chr(code)
        for first, last in ((0x21, 0x7E), (0x2010, 0x2027), (0x3001, 0x303F), (0x4E00, 0x9FFF), (0xFF01, 0xFF5E))
        for code in range(first, last + 1)
    )

    def __init__(self, words: Iterable[str], *, cut_latin: bool = False) -> None:
        """Build the automaton; words that are empty or hold white space are left out. Raises DataError when no word is left."""
        import daachorse

        kept = sorted({word for word in words if word and not any(map(str.isspace, word))})
        if not kept:
            raise DataError("forward maximum matching needs a list of words, and this one is empty")
        rule = "" if cut_latin else f", {_WHOLE}"
        self.description = f"forward maximum matching{rule}, {len(kept)} words, {_hash_words(kept)[:16]}"
        self._words, self._cut_latin = kept, cut_latin
        self._longest = max(map(len, kept))
        self._patterns = sorted({*kept, *self._SINGLES, _LINE_END})  # no word and no chunk has a line end
        self._sizes = np.array(list(map(len, self._patterns)), dtype=np.int32)
        self._line_end = self._patterns.index(_LINE_END)
        self._find = daachorse.CharwiseDoubleArrayAhoCorasick(self._patterns, daachorse.MATCH_KIND_LEFTMOST_LONGEST).find

    def segment(self, text: str) -> list[str]:
        chunks = text.split()
        cut = self._segment_chunk if self._cut_latin else self._segment_mixed
        if len(chunks) == 1:
            return cut(chunks[0])
        words: list[str] = []
        for chunk in chunks:
            words += cut(chunk)
        return words

    def numbering(self, ids: Mapping[str, int]) -> Numbering:
        """A function from lines to the ``ids`` of the words that ``segment`` gives; ids has one for every word.

        One pass over many lines: the id of a pattern is looked up once. Lines with Latin words, and those with a character of
        no pattern, are cut once more, each by itself; matches do not cross the ends of lines.
        """
        id_of_pattern = np.full(len(self._patterns), -1, dtype=np.int64)

        def ids_of(patterns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
            fresh = id_of_pattern[patterns] < 0
            if fresh.any():
                for pattern in dict.fromkeys(patterns[fresh].tolist()):
                    id_of_pattern[pattern] = ids[self._patterns[pattern]]
            return id_of_pattern[patterns]

        def number(lines: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
            apart = np.zeros(len(lines), dtype=bool) if self._cut_latin else _with_latin(lines)
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
        """The patterns that lines without Latin words consist of, how many each line has, and the numbers of lines that have a
        character of no pattern; the patterns of these are left out."""
        some = ["\n".join((*lines[first : first + _AT_ONCE], "")) for first in range(0, len(lines), _AT_ONCE)]
        parts = [np.fromiter(map(_PATTERN, found), np.int64, len(found)) for found in map(self._find, some)]
        patterns = np.concatenate([_NONE, *parts])
        is_end = patterns == self._line_end
        ends = np.flatnonzero(is_end)
        counts = np.diff(ends, prepend=-1) - 1
        covered = np.diff(np.cumsum(self._sizes[patterns])[ends], prepend=0) - 1
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
        words: list[str] = []
        position = 0
        while (run := _LATIN.search(chunk, position)) is not None:
            base, start = position, run.start()
            for first, last, _ in self._find(chunk[base : start + self._longest]):
                first, last = base + first, base + last
                if first > start or (first == start and last <= run.end()):
                    break
                words += chunk[position:first]
                words.append(chunk[first:last])
                position = last
            if position <= start:
                words += chunk[position:start]
                words.append(run.group())
                position = run.end()
        return words + self._segment_chunk(chunk[position:])

    def _segment_chunk(self, chunk: str) -> list[str]:
        matches = self._find(chunk)  # (start, end, number of the pattern)
        words = list(map(self._patterns.__getitem__, map(_PATTERN, matches)))
        if sum(map(len, words)) == len(chunk):
            return words
        words = []
        last = 0
        for start, end, _ in matches:
            words += chunk[last:start]
            words.append(chunk[start:end])
            last = end
        words += chunk[last:]
        return words


def _with_latin(lines: Sequence[str]) -> npt.NDArray[np.bool_]:
    """(lines,) whether a line has a Latin letter or a digit."""
    codes = np.frombuffer("\n".join((*lines, "")).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    ends = np.flatnonzero(codes == ord(_LINE_END))
    latin = np.cumsum(_IS_LATIN[np.minimum(codes, len(_IS_LATIN) - 1)])[ends]
    return np.diff(latin, prepend=0) > 0


def _latin_table() -> npt.NDArray[np.bool_]:
    """(65537,) whether a character below U+10000 is a Latin letter or a digit; the last is any other."""
    table = np.zeros((1 << 16) + 1, dtype=bool)
    table[[found.start() for found in re.finditer(f"[{_LETTER}]", "".join(map(chr, range(1 << 16))))]] = True
    return table


_IS_LATIN: Final = _latin_table()


def numbering(segmenter: Segmenter, ids: Mapping[str, int]) -> Numbering:
    """The ``numbering`` of the segmenter, or one that asks ``segment`` about each line."""
    own: Callable[[Mapping[str, int]], Numbering] | None = getattr(segmenter, "numbering", None)
    if own is not None:
        return own(ids)

    def number(lines: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        cut = list(map(segmenter.segment, lines))
        counts = np.fromiter(map(len, cut), dtype=np.int64, count=len(cut))
        words = chain.from_iterable(cut)
        return np.fromiter(map(ids.__getitem__, words), dtype=np.int64, count=int(counts.sum())), counts

    return number


def cuts_latin(description: str) -> bool:
    """Whether a description is of forward maximum matching that cut Latin words, as earlier versions always did."""
    return description.startswith("forward maximum matching") and _WHOLE not in description


def knows_words(description: str) -> bool:
    """Whether a description is of a segmenter that was given the words of a lexicon."""
    return re.search(r"\b\d+ words, [0-9a-f]{16}(,|$)", description) is not None


@final
class JiebaSegmenter:
    """jieba in accurate mode; ``hmm`` adds its hidden Markov model for words outside the dictionary.

    ``words`` replace its dictionary, as in the SDLM paper (those of HowNet; Gu et al. 2018, appendix B): a word that jieba's
    own dictionary has keeps its frequency there, any other gets the frequency 1.
    """

    def __init__(self, hmm: bool = False, words: Iterable[str] | None = None) -> None:
        import logging

        import jieba

        jieba.setLogLevel(logging.WARNING)  # it writes to stderr when it loads its dictionary
        tokenizer = jieba.Tokenizer()
        kept = None
        dictionary = ""
        if words is not None:
            kept = sorted({word for word in words if word and not any(map(str.isspace, word))})
            if not kept:
                raise DataError("jieba needs a dictionary of words, and this one is empty")
            tokenizer.initialize()
            tokenizer.FREQ, tokenizer.total = _prefix_dictionary(kept, tokenizer.FREQ)
            dictionary = f" over {len(kept)} words, {_hash_words(kept)[:16]}"
        self._cut = tokenizer.lcut
        self._hmm, self._words = hmm, kept
        self.description: str = (
            f"jieba {jieba.__version__}{dictionary}, accurate mode, {'with' if hmm else 'without'} hidden Markov model"
        )

    def __reduce__(self) -> tuple[type[JiebaSegmenter], tuple[bool, list[str] | None]]:
        return JiebaSegmenter, (self._hmm, self._words)

    def segment(self, text: str) -> list[str]:
        words: list[str] = []
        for chunk in text.split():
            words += self._cut(chunk, HMM=self._hmm)
        return words


@final
class SentencePieces:
    """Pieces of a SentencePiece model; what it cannot spell becomes ``<unk>``."""

    def __init__(self, model: Path | str) -> None:
        """Load a model. Raises DataError when the file is absent or no SentencePiece model."""
        import sentencepiece

        try:
            content = Path(model).read_bytes()
            self._model: Any = sentencepiece.SentencePieceProcessor(model_proto=content)
        except (OSError, RuntimeError) as error:
            raise DataError(f"{model}: no SentencePiece model: {error}") from None
        pieces = [self._model.id_to_piece(index) for index in range(len(self._model))]
        pieces[self._model.unk_id()] = UNKNOWN
        self._pieces: list[str] = pieces
        self.description = f"SentencePiece, {len(pieces)} pieces, {hashlib.sha256(content).hexdigest()[:16]}"

    def segment(self, text: str) -> list[str]:
        """Pieces of a text; ``▁`` stands for the white space before a word."""
        return [self._pieces[index] for index in self._model.encode(" ".join(text.split()))]

    def as_written(self, text: str) -> list[tuple[str, str]]:
        """The pieces of ``segment``, each with the stretch of the text that it covers, before normalisation by the model.

        The stretches joined are the text, with one blank for white space.
        """
        text = " ".join(text.split())
        found = self._model.encode(text, return_type="offset_mapping")
        spans = zip(found["ids"], found["offsets"], strict=True)
        return [(self._pieces[index], text[begin:end]) for index, (begin, end) in spans]


def train_sentencepieces(sentences: Iterable[str], pieces: int, seed: int, kind: PieceModel = "unigram") -> bytes:
    """Train a SentencePiece model (Kudo 2018, or byte pair encoding: Sennrich et al. 2016) and return its file.

    One thread and a fixed seed: the same sentences give the same bytes. Raises DataError when so many pieces do not fit the
    text, with the number that would.
    """
    import io

    import sentencepiece

    sentencepiece.set_random_generator_seed(seed)
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            vocab_size=pieces,
            model_type=kind,
            num_threads=1,
            character_coverage=0.9995,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise DataError(f"--pieces {pieces}: SentencePiece cannot train on this text: {_reason(str(error))}") from None
    return model.getvalue()


def _reason(message: str) -> str:
    most = re.search(r"Vocabulary size too high .* value <= (\d+)", message)
    if most is not None:
        return f"it has no more than {most[1]} pieces; give --pieces {most[1]} or fewer, or more text"
    fewest = re.search(r"smaller than required_chars\. \d+ vs (\d+)", message)
    if fewest is not None:
        return f"its characters alone need {fewest[1]}; give --pieces {fewest[1]} or more"
    if "!sentences_.empty()" in message:
        return "train has no sentence that it can read; give more text"
    return re.sub(r"^[A-Z_]+: \S+\(\d+\) \[.*?\] ", "", message).strip() or "it gives no reason"


def open_segmenter(
    name: str, *, words: Collection[str] | None = None, hmm: bool = False, model: Path | None = None, cut_latin: bool = False
) -> Segmenter:
    """A segmenter by name: a key of ``SEGMENTERS``, or ``package.module:Class`` for a class of your own without arguments.

    ``words``, of a lexicon, are for ``fmm`` and ``jieba``; ``hmm`` lets jieba guess other words; ``model`` is the file for
    ``sentencepiece`` or ``hf``, and ``hf:PATH`` reads the tokenizer of a Hugging Face model; ``cut_latin`` lets ``fmm`` cut
    Latin words and numbers that are no words of the lexicon. Raises ConfigError for another name, or when what it needs is not
    given.
    """
    from sememekit.text.huggingface import PREFIX, HuggingFacePieces

    if name.startswith(PREFIX):
        return HuggingFacePieces.of_folder(name.removeprefix(PREFIX))
    kind = load_variant("segmenter", name, SEGMENTERS)
    if kind is HuggingFacePieces:
        if model is None:
            raise ConfigError("--segmenter hf needs the folder of a Hugging Face model; write --segmenter hf:PATH")
        return HuggingFacePieces(read_bytes(model, DataError), str(model))
    if kind is MaximumMatcher:
        if words is None:
            raise ConfigError("--segmenter fmm needs the words of a lexicon; pass --lexicon FORMAT:PATH, or --lexicon open")
        return MaximumMatcher(words, cut_latin=cut_latin)
    if kind is JiebaSegmenter:
        return JiebaSegmenter(hmm, words)
    if kind is SentencePieces:
        if model is None:
            raise ConfigError("--segmenter sentencepiece needs a model; pass --model FILE")
        return SentencePieces(model)
    try:
        opened: Segmenter = kind()
    except TypeError as error:
        raise ConfigError(f"segmenter {name!r} cannot be made without arguments: {error}") from None
    if not isinstance(getattr(opened, "description", None), str):
        raise ConfigError(f"segmenter {name!r} has no description, a line that tells it from others")
    return opened


def _prefix_dictionary(words: Iterable[str], known: Mapping[str, int]) -> tuple[dict[str, int], int]:
    """Frequencies of words, zeros for their prefixes (as jieba needs them), and the sum of all."""
    frequencies: dict[str, int] = {}
    total = 0
    for word in words:
        frequencies[word] = max(known.get(word, 0), 1)
        total += frequencies[word]
        for end in range(1, len(word)):
            frequencies.setdefault(word[:end], 0)
    return frequencies, total


def _hash_words(words: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(words).encode(errors="surrogatepass")).hexdigest()
