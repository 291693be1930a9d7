"""Plain text of any language, one sentence a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import final

from sememekit.corpora.base import Corpus, require_source, text_size
from sememekit.corpora.sources import CorpusFile, find_splits
from sememekit.corpora.units import Unit
from sememekit.errors import ConfigError, DataError
from sememekit.text.form import TextForm
from sememekit.text.huggingface import HuggingFacePieces
from sememekit.text.segmenters import Segmenter, SentencePieces


@final
class Plain(Corpus):
    """Plain text: a file is divided 90:5:5 by a seed, in the order of its lines; a folder has train.txt and so on.

    Blank lines are no sentences. In a folder, valid and test may be absent. The vocabulary is that of train alone. Options
    bring the text into the form of a benchmark: lower case, one word in place of every number
    (:class:`~sememekit.text.form.TextForm`), and no long sentences, in any split.
    """

    segmenters = ("none", "characters", "fmm", "jieba", "sentencepiece")
    size_of = "source"
    end_of_sentence = True
    vocabulary_splits = ("train",)

    def __init__(
        self, source: Path, *, lower: bool = False, numbers_to: str | None = None, max_length: int | None = None
    ) -> None:
        """Read ``source``; the options as in ``PreprocessSettings``. Raises ConfigError for a replacement of numbers that is no
        word, or a length below 1."""
        if numbers_to is not None and numbers_to.split() != [numbers_to]:
            raise ConfigError(f"--numbers-to {numbers_to!r}: one word is needed, such as N")
        if max_length is not None and max_length < 1:
            raise ConfigError(f"--max-length {max_length}: 1 or more is needed")
        self._source, self._form, self._max_length = source, TextForm(lower, numbers_to), max_length
        rules = ["lower case"] * lower
        rules += [f"numbers to {numbers_to}"] * (numbers_to is not None)
        rules += [f"sentences of more than {max_length} words left out"] * (max_length is not None)
        if rules:
            self.normalisation = "; ".join(rules)

    @classmethod
    def open(cls, source: Path | None) -> Plain:
        path = require_source("plain", source, "a text file, or a folder with train.txt, valid.txt and test.txt")
        if not path.exists():
            raise DataError(f"{path}: no such file or folder")
        return cls(path)

    def with_rules(self, *, lower: bool, numbers_to: str | None, max_length: int | None) -> Plain:
        return Plain(self._source, lower=lower, numbers_to=numbers_to, max_length=max_length)

    def sources(self) -> list[CorpusFile]:
        if self._source.is_dir():
            return find_splits(self._source, ["{}.txt"], required=("train",))
        return [CorpusFile(None, self._source)]

    def sentence(self, text: str) -> str | None:
        read = self._form.text(text).split()
        return None if not read or self._is_long(len(read)) else " ".join(read)

    def units(self, text: str, segmenter: Segmenter) -> Iterator[Unit]:
        read = self._form.text(text) if self._form.changes else text
        words = self._form.words(segmenter.segment(read))
        left_out = False
        if self._max_length is not None:
            left_out = self._is_long(
                len(read.split()) if isinstance(segmenter, SentencePieces | HuggingFacePieces) else len(words)
            )
        yield Unit(words, *text_size(text.split()), left_out)

    def _is_long(self, words: int) -> bool:
        return self._max_length is not None and words > self._max_length
