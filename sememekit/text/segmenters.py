"""Segmenters by name; white space, characters and jieba are here, the others in files of their own."""

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, Final, Protocol, final

import numpy as np
import numpy.typing as npt

from sememekit.config import load_variant
from sememekit.errors import ConfigError, DataError
from sememekit.files import read_bytes
from sememekit.text.maximum_matching import MaximumMatcher, Numbering, hash_words
from sememekit.text.sentencepieces import SentencePieces

SEGMENTERS: Final = {
    "characters": "sememekit.text.segmenters:Characters",
    "english": "sememekit.text.english:English",
    "english-cased": "sememekit.text.english:EnglishCased",
    "fmm": "sememekit.text.maximum_matching:MaximumMatcher",
    "gigaword": "sememekit.text.english:Gigaword",
    "hf": "sememekit.text.huggingface:HuggingFacePieces",
    "jieba": "sememekit.text.segmenters:JiebaSegmenter",
    "none": "sememekit.text.segmenters:WhiteSpace",
    "sentencepiece": "sememekit.text.sentencepieces:SentencePieces",
}


class Segmenter(Protocol):
    """A segmenter of text into words. No word is empty or contains white space.

    >>> open_segmenter("characters").segment("今天 好")
    ['今', '天', '好']"""

    @property
    def description(self) -> str:
        """Return a line for the signature, which changes whenever the result may change."""

    def segment(self, text: str) -> list[str]: ...


@final
class WhiteSpace:
    """Words are separated by (Unicode) white space."""

    description = "white space"

    def segment(self, text: str) -> list[str]:
        return text.split()


@final
class Characters:
    """Every character (code point) but white space is a word."""

    description = "characters"

    def segment(self, text: str) -> list[str]:
        return list("".join(text.split()))


def numbering(segmenter: Segmenter, ids: Mapping[str, int]) -> Numbering:
    """Return the ``numbering`` of the segmenter, or one that calls ``segment`` for each line."""
    own: Callable[[Mapping[str, int]], Numbering] | None = getattr(segmenter, "numbering", None)
    if own is not None:
        return own(ids)

    def number(lines: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        cut = list(map(segmenter.segment, lines))
        counts = np.fromiter(map(len, cut), dtype=np.int64, count=len(cut))
        words = chain.from_iterable(cut)
        return np.fromiter(map(ids.__getitem__, words), dtype=np.int64, count=int(counts.sum())), counts

    return number


def knows_words(description: str) -> bool:
    """Return whether a description stands for a segmenter with the words of a lexicon."""
    return re.search(r"\b\d+ words, [0-9a-f]{16}(,|$)", description) is not None


@final
class JiebaSegmenter:
    """jieba in accurate mode; ``hmm`` adds its hidden Markov model for words outside the dictionary.

    ``words`` replace its dictionary, as in the SDLM paper (the words of HowNet; Gu et al. 2018, appendix B): words in jieba's
    dictionary keep their frequency, others get the frequency 1."""

    def __init__(self, hmm: bool = False, words: Iterable[str] | None = None) -> None:
        import jieba

        tokenizer = _usual_jieba()
        kept = None
        dictionary = ""
        if words is not None:
            kept = sorted({word for word in words if word and not any(map(str.isspace, word))})
            if not kept:
                raise DataError("jieba needs a dictionary of words, and this one is empty")
            known, tokenizer = tokenizer.FREQ, jieba.Tokenizer()
            lines = "".join(f"{word} {max(known.get(word, 0), 1)}\n" for word in kept)
            tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(BytesIO(lines.encode()))
            tokenizer.initialized = True
            dictionary = f" over {len(kept)} words, {hash_words(kept)[:16]}"
        self._cut = tokenizer.lcut
        self._hmm, self._words = hmm, kept
        self.description: str = (
            f"jieba {jieba.__version__}{dictionary}, accurate mode, {'with' if hmm else 'without'} hidden Markov model"
        )

    def __reduce__(self) -> "tuple[type[JiebaSegmenter], tuple[bool, list[str] | None]]":
        return JiebaSegmenter, (self._hmm, self._words)

    def segment(self, text: str) -> list[str]:
        return [word for chunk in text.split() for word in self._cut(chunk, HMM=self._hmm)]


def open_segmenter(
    name: str, *, words: Collection[str] | None = None, hmm: bool = False, model: Path | None = None, cut_latin: bool = False
) -> Segmenter:
    """Open a segmenter by name: a key of ``SEGMENTERS``, or ``package.module:Class`` for a class without arguments.

    ``words``, of a lexicon, are for ``fmm`` and ``jieba``; ``hmm`` lets jieba guess other words; ``model`` is the file for
    ``sentencepiece`` or ``hf``, and ``hf:PATH`` reads the tokenizer of a Hugging Face model; ``cut_latin`` lets ``fmm`` cut
    Latin words and numbers that are not in the lexicon. Raises ConfigError: another name, or a missing part."""
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


@cache
def _usual_jieba() -> Any:
    """Return jieba with its own dictionary, without its cache in the temporary folder, to which any program could write."""
    import jieba

    jieba.setLogLevel(logging.WARNING)  # it writes to stderr when it loads its dictionary
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer
