"""The segmenter of a corpus: its name, the words that it knows, the sentences that it is trained on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count, islice
from typing import Final

from sememekit.config import is_own, nearest
from sememekit.corpora import Corpus
from sememekit.corpora.division import StratifiedDivision
from sememekit.data.segmenters import lexicon_bytes
from sememekit.errors import ConfigError, DataError
from sememekit.prepare.pipeline import SegmenterWords
from sememekit.prepare.settings import PreprocessSettings
from sememekit.sememes import words_of_lexicons
from sememekit.text.reading import FaultCounter, Span, read_pieces
from sememekit.text.scripts import UNSPACED_RANGES

_UNSPACED: Final = re.compile(f"[{UNSPACED_RANGES}]")
_WITHOUT_WORDS: Final = ("none", "characters", "english", "english-cased", "gigaword", "sentencepiece", "hf")
"""Segmenters that no lexicon changes."""
_SENTENCES_TO_SEE: Final = 1000
_LINES_TO_SEE: Final = 20_000
_SHORTEST_SENTENCE: Final = 4
_LONGEST_WORD: Final = 8
"""A text is unsegmented if, of its first sentences with so many ideographs, most have no blank, or more ideographs a word than
this. Where a text of another script has few of them, its first lines decide, and the others are not read."""

CUT_AT_BLANKS: Final = ("none", "english", "english-cased", "gigaword")
"""Segmenters to which a sentence without blanks is one word."""


def choose_segmenter(dataset: str, corpus: Corpus, segmenter: str | None) -> str:
    """The segmenter that was asked for, when the data set allows it, or the data set's own."""
    if segmenter is None:
        return corpus.segmenters[0]
    if segmenter not in corpus.segmenters and not is_own("segmenter", segmenter):
        near, names = nearest(segmenter, corpus.segmenters), ", ".join(corpus.segmenters)
        raise ConfigError(f"--segmenter {segmenter!r}: {dataset} here allows {names}, hf:PATH or package.module:Class{near}")
    return segmenter


def refuse_unused(name: str, corpus: Corpus, settings: PreprocessSettings) -> None:
    """Refuse options that the segmenter ``name`` has no use for. Raises ConfigError: it would read none of them."""
    fields = type(settings).model_fields
    for option in ("pieces", "piece_model"):
        given = getattr(settings, option)
        if name != "sentencepiece" and given != fields[option].default:
            shown = f"--{option.replace('_', '-')} {given}"
            raise ConfigError(f"{shown}: this is for --segmenter sentencepiece, not for {name}; leave it out")
    if settings.lexicon not in (None, "none", ["none"]) and name in _WITHOUT_WORDS and not corpus.lexicon_limits_words():
        raise ConfigError(
            f"--lexicon: the segmenter {name} cuts without a lexicon; leave it out, or add --segmenter fmm (or jieba), which "
            "cuts by its words"
        )


def read_lexicon(corpus: Corpus, spec: str | Sequence[str] | None, given: Iterable[str] | None) -> SegmenterWords | None:
    """The lexicon that was asked for, or the default of the data set; None for none."""
    if given is not None:
        if spec is not None:
            raise ConfigError("give either lexicon or lexicon_words, not both")
        words = frozenset(given)
    else:
        chosen = [spec] if isinstance(spec, str) else [*(spec or ())] or [corpus.default_lexicon or "none"]
        if chosen == ["none"]:
            return None
        if "none" in chosen:
            raise ConfigError(f"--lexicon {' --lexicon '.join(chosen)}: none goes with no other; leave it out")
        words = words_of_lexicons(chosen)
    words = frozenset(word for word in words if "\n" not in word)
    if not words:
        raise ConfigError("the lexicon has no words")
    return SegmenterWords(words, hashlib.sha256(lexicon_bytes(words)).hexdigest())


def sentences_without_blanks(span: Span, errors: str) -> tuple[int, int]:
    """Of the first sentences with Chinese or Japanese characters: how many have no blanks between words, and of how many."""
    seen = raw = 0
    pieces = read_pieces(span, FaultCounter("replace" if errors == "strict" else errors))
    for piece in islice(pieces, _LINES_TO_SEE):
        if piece.text.isascii():
            continue
        words = [len(_UNSPACED.findall(word)) for word in piece.text.split()]
        if sum(words) >= _SHORTEST_SENTENCE:
            seen += 1
            raw += len(words) == 1 or sum(words) > _LONGEST_WORD * sum(map(bool, words))
        if seen == _SENTENCES_TO_SEE:
            break
    return raw, seen


def refuse_text_without_blanks(span: Span, errors: str) -> None:
    """Raise DataError for Chinese or Japanese without blanks between words: each sentence would become one word."""
    raw, seen = sentences_without_blanks(span, errors)
    if raw * 2 > seen:
        raise DataError(
            f"{span.name}: {raw:,} of the first {seen:,} sentences with Chinese or Japanese characters have no blanks between "
            "words, so that each would become one word; add --segmenter jieba (or characters, sentencepiece, or fmm with "
            "--lexicon), or --segmenter none if that is what you want"
        )


def training_sentences(corpus: Corpus, parts: Sequence[tuple[str | None, Span]], errors: str, seed: int) -> Iterator[str]:
    """The sentences of train; of undivided text by the labels that the encoder gives."""
    division = StratifiedDivision(corpus.proportions, seed)
    labels = chain.from_iterable(division.take(1 << 12).tolist() for _ in count())
    for split, span in parts:
        for piece in read_pieces(span, FaultCounter(errors)):
            text = corpus.sentence(piece.text)
            if text is not None and (split == "train" or (split is None and next(labels) == 0)):
                yield text
