"""Segmentation of a corpus: segmenter, lexicon, and sentences for training a segmenter."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count, islice, pairwise
from pathlib import Path
from typing import Final

from sememekit.config import is_own, nearest
from sememekit.corpora import Corpus
from sememekit.corpora.division import StratifiedDivision
from sememekit.corpora.examples.corpus import ExampleCorpus
from sememekit.corpora.opening import with_rules
from sememekit.corpora.plain import Plain
from sememekit.data.segmenters import MODELS
from sememekit.errors import ConfigError, DataError
from sememekit.files import typed, unpacked_name, warn
from sememekit.prepare.pipeline import Cutting
from sememekit.prepare.settings import PreprocessSettings
from sememekit.sememes import words_of_lexicons
from sememekit.text.form import TextForm, without_ends
from sememekit.text.huggingface import PREFIX, HuggingFacePieces
from sememekit.text.reading import FaultCounter, Piece, Span, read_pieces
from sememekit.text.scripts import UNSPACED_RANGES
from sememekit.text.segmenters import Segmenter, open_segmenter
from sememekit.text.sentencepieces import SentencePieces, train_sentencepieces

_UNSPACED: Final = re.compile(f"[{UNSPACED_RANGES}]")
_WITHOUT_WORDS: Final = ("none", "characters", "english", "english-cased", "gigaword", "sentencepiece", "hf")
"""Segmenters that use no lexicon."""
SENTENCES_TO_SEE: Final = 1000
_LINES_TO_SEE: Final = 20_000
_SHORTEST_SENTENCE: Final = 4
_LONGEST_WORD: Final = 8
"""A text is unsegmented if most of its first sentences of ``_SHORTEST_SENTENCE`` or more ideographs have no blank, or have over
``_LONGEST_WORD`` ideographs a word. For texts with few ideographs only the first lines are read."""

_CUT_AT_BLANKS: Final = ("none", "english", "english-cased", "gigaword")
"""Segmenters for which a sentence without blanks is one word."""
_CUTTING: Final = ("jieba", "characters", "sentencepiece", "fmm")  # segmenters of Chinese, recommended first
_PARTS: Final = re.compile(r"\t|<\w+>")  # separators of the texts in a line of examples, and of the turns of a dialogue
_TRAINING_SENTENCES: Final = 500_000
"""Most sentences for training a SentencePiece model, since the trainer holds them in memory; the first ones are taken."""


def own_cutting(
    dataset: str, corpus: Corpus, settings: PreprocessSettings, lexicon_words: Iterable[str] | None = None
) -> Cutting:
    """Return the segmentation of a corpus by its data set and the settings; ``lexicon_words`` replace ``settings.lexicon``.
    Raises ConfigError: settings that do not fit. Raises DataError: a lexicon or a tokenizer that cannot be read."""
    asked, tokenizer = settings.segmenter, None
    if asked is not None and asked.startswith(PREFIX):
        tokenizer = HuggingFacePieces.of_folder(asked.removeprefix(PREFIX))
        settings = settings.model_copy(update={"segmenter": "hf"})
    form = TextForm(lower=settings.lower, numbers_to=settings.numbers_to)
    corpus = with_rules(corpus, dataset, form, settings.max_length)
    name = "hf" if tokenizer is not None else choose_segmenter(dataset, corpus, asked)
    _refuse_unused(name, corpus, settings)
    words = read_lexicon(corpus, settings.lexicon, lexicon_words)
    if words is None and name == "fmm" and asked is None:
        name = "none"

    def open_it(parts: Sequence[tuple[str | None, Span]], model: Path) -> Segmenter:
        if asked is None and type(corpus) in (Plain, ExampleCorpus) and name in _CUT_AT_BLANKS:
            _refuse_text_without_blanks(corpus, parts[0][1], settings.errors)
        if isinstance(corpus, Plain):
            lines = [piece.text for piece in islice(_first_pieces(parts[0][1], settings.errors), SENTENCES_TO_SEE)]
            if found := form_of_lines(lines, parts[0][1].name):
                warn(f"{parts[0][1].name}: {found}")
        if tokenizer is not None:
            model.with_name(MODELS["hf"]).write_bytes(tokenizer.content)
            return tokenizer
        if name == "sentencepiece":
            ends = corpus.end_of_sentence if settings.end_of_sentence is None else settings.end_of_sentence
            read = _training_sentences(corpus, parts, settings.errors, settings.seed)
            sentences = islice(map(without_ends, read) if ends else read, _TRAINING_SENTENCES)
            model.write_bytes(train_sentencepieces(sentences, settings.pieces, settings.seed, settings.piece_model))
            return SentencePieces(model)
        return open_segmenter(name, words=words, hmm=settings.hmm, cut_latin=corpus.cuts_latin)

    return Cutting(corpus, settings, words, open_it)


def choose_segmenter(dataset: str, corpus: Corpus, segmenter: str | None) -> str:
    """Return the requested segmenter if the data set allows it, or the data set's default."""
    if segmenter is None:
        return corpus.segmenters[0]
    if segmenter not in corpus.segmenters and not is_own("segmenter", segmenter):
        near, names = nearest(segmenter, corpus.segmenters), ", ".join(corpus.segmenters)
        raise ConfigError(f"--segmenter {segmenter!r}: {dataset} here allows {names}, hf:PATH or package.module:Class{near}")
    return segmenter


def _refuse_unused(name: str, corpus: Corpus, settings: PreprocessSettings) -> None:
    """Raise ConfigError for options that the segmenter ``name`` does not use."""
    fields = type(settings).model_fields
    for option in ("pieces", "piece_model"):
        given = getattr(settings, option)
        if name != "sentencepiece" and given != fields[option].default:
            shown = f"--{option.replace('_', '-')} {given}"
            raise ConfigError(f"{shown}: this is for --segmenter sentencepiece, not for {name}; leave it out")
    if settings.lexicon not in (None, "none", ["none"]) and name in _WITHOUT_WORDS and corpus.stands_alone is None:
        raise ConfigError(
            f"--lexicon: the segmenter {name} cuts without a lexicon; leave it out, or add --segmenter fmm (or jieba), which "
            "cuts by its words"
        )


def read_lexicon(corpus: Corpus, spec: str | Sequence[str] | None, given: Iterable[str] | None) -> frozenset[str] | None:
    """Return the requested lexicon, or the default of the data set; None for none."""
    if given is not None:
        if spec is not None:
            raise ConfigError("give either lexicon or lexicon_words, not both")
        words = frozenset(given)
    else:
        chosen = [spec] if isinstance(spec, str) else [*(spec or ())] or [corpus.default_lexicon or "none"]
        if chosen == ["none"]:
            return None
        if "none" in chosen:
            raise ConfigError(
                f"--lexicon {' --lexicon '.join(chosen)}: none cannot be combined with other lexicons; leave it out"
            )
        words = words_of_lexicons(chosen)
    words = frozenset(word for word in words if "\n" not in word)
    if not words:
        raise ConfigError("the lexicon has no words")
    return words


def sentences_without_blanks(span: Span, errors: str) -> tuple[int, int]:
    """Count the first sentences with Chinese or Japanese characters: without blanks between words, and in total."""
    seen = raw = 0
    for piece in islice(_first_pieces(span, errors), _LINES_TO_SEE):
        if piece.text.isascii():
            continue
        for part in _PARTS.split(piece.text):
            words = [len(_UNSPACED.findall(word)) for word in part.split()]
            if sum(words) >= _SHORTEST_SENTENCE:
                seen += 1
                raw += len(words) == 1 or sum(words) > _LONGEST_WORD * sum(map(bool, words))
        if seen >= SENTENCES_TO_SEE:
            break
    return raw, seen


def _first_pieces(span: Span, errors: str) -> Iterator[Piece]:
    return read_pieces(span, FaultCounter("replace" if errors == "strict" else errors))


def _refuse_text_without_blanks(corpus: Corpus, span: Span, errors: str) -> None:
    """Raise DataError for Chinese or Japanese without blanks between words: each sentence would become one word."""
    raw, seen = sentences_without_blanks(span, errors)
    if raw * 2 > seen:
        first, *others = [f"{name}{' with --lexicon' * (name == 'fmm')}" for name in _CUTTING if name in corpus.segmenters]
        or_others = f" (or {', '.join(others)})" if others else ""
        raise DataError(
            f"{span.name}: {raw:,} of the first {seen:,} sentences with Chinese or Japanese characters have no blanks between "
            f"words, so that each would become one word; add --segmenter {first}{or_others}, or --segmenter none if that is "
            "what you want"
        )


def _training_sentences(corpus: Corpus, parts: Sequence[tuple[str | None, Span]], errors: str, seed: int) -> Iterator[str]:
    """Yield the sentences of train; undivided text is divided by the split labels of the encoder."""
    division = StratifiedDivision(corpus.proportions, seed)
    labels = chain.from_iterable(division.take(1 << 12).tolist() for _ in count())
    for split, span in parts:
        for piece in read_pieces(span, FaultCounter(errors)):
            text = corpus.sentence(piece.text)
            if text is not None and (split == "train" or (split is None and next(labels) == 0)):
                yield text


LONGEST: Final = 1 << 12  # characters of a line that are checked
_FEWEST: Final = 20  # fewest lines for a report
_TAG: Final = re.compile(r"[A-Z][A-Z0-9-]*")
_TAGGED: Final = re.compile(r"\S+?([_/|])[A-Za-z]{1,6}\d?")
_LEAF: Final = re.compile(r"\([^()\s]+ [^()]+\)")


def form_of_lines(lines: Sequence[str], name: str) -> str:
    """Describe the first lines of a file that are no sentences, with the command that extracts the text; "" for text."""
    some = [line[:LONGEST] for line in lines if line.strip()]
    if len(some) < _FEWEST:
        return ""
    tests: tuple[Callable[[Sequence[str], str], tuple[str, str] | None], ...]
    tests = (_table, _tabs, _tokens, _tags, _trees, _numbers)
    what, command = next(filter(None, (test(some, name) for test in tests)), ("", ""))
    return what and f"{what}, and all of it is read as words; the text alone is taken out by: {command} > TEXT"


def _table(lines: Sequence[str], name: str) -> tuple[str, str] | None:
    if not unpacked_name(name).lower().endswith(".csv"):
        return None
    header, *rows = csv.reader(line.replace("\r", " ") for line in lines)
    column = header[_longest([row for row in rows if len(row) == len(header)])]
    script = f"import csv, sys; [print(row[{column!r}]) for row in csv.DictReader(sys.stdin)]"
    what = f"a table with commas between, which begins with {lines[0].strip()[:40]!r}"
    return what, f"{typed('python3', '-c', script)} < {typed(name)}"


def _tabs(lines: Sequence[str], name: str) -> tuple[str, str] | None:
    tabs, count = Counter(line.count("\t") for line in lines).most_common(1)[0]
    if not tabs or 2 * count <= len(lines):
        return None
    rows = [fields for line in lines if len(fields := line.split("\t")) == tabs + 1]
    what = f"{_of(count, lines)} have {tabs + 1} columns with TAB between"
    if all(len(field.split()) <= 1 for row in rows for field in row):
        words = next((place for place in range(tabs) if not all(row[place].strip().isdecimal() for row in rows)), 0)
        return f"{what}, a token a line", _joined(words + 1, name, "-F\\t")
    return what, typed("cut", f"-f{_longest(rows) + 1}", name)


def _tokens(lines: Sequence[str], name: str) -> tuple[str, str] | None:
    rows = [line.split() for line in lines]
    count = sum(len(row) == 2 and _TAG.fullmatch(row[1]) is not None for row in rows)
    return (f"{_of(count, rows)} are a token and its tag", _joined(1, name)) if 10 * count > 9 * len(rows) else None


def _tags(lines: Sequence[str], name: str) -> tuple[str, str] | None:
    words = [word for line in lines for word in line.split()]
    marks = Counter(match[1] for word in words if (match := _TAGGED.fullmatch(word)))
    mark, count = marks.most_common(1)[0] if marks else ("", 0)
    script = f"s,[{mark}][A-Za-z]+[0-9]?( |$),\\1,g"
    what = f"{_of(count, words, 'words')} have a tag behind {mark!r}"
    return (what, typed("sed", "-E", script, name)) if 5 * count > 4 * len(words) else None


def _trees(lines: Sequence[str], name: str) -> tuple[str, str] | None:
    count = sum(line.lstrip().startswith("(") and _LEAF.search(line) is not None for line in lines)
    command = typed("sed", "-E", r"s/\([^() ]* ?//g; s/\)//g", name)
    return (f"{_of(count, lines)} are trees in brackets", command) if 2 * count > len(lines) else None


def _numbers(lines: Sequence[str], name: str) -> tuple[str, str] | None:
    heads = [line.split()[0] for line in lines]
    numbers = [int(head) for head in heads if head.isascii() and head.isdecimal()]
    rises = sum(second == first + 1 for first, second in pairwise(numbers))
    what = f"{_of(len(numbers), lines)} begin with their number"
    return (what, typed("cut", "-d ", "-f2-", name)) if 10 * rises > 9 * len(lines) - 10 else None


def _of(count: int, lines: Sequence[object], unit: str = "lines") -> str:
    return f"{count:,} of the first {len(lines):,} {unit}"


def _longest(rows: Sequence[Sequence[str]]) -> int:
    """The column with the most characters."""
    return max(range(len(rows[0])), key=lambda place: sum(len(row[place]) for row in rows)) if rows else 0


def _joined(column: int, name: str, *separator: str) -> str:
    """Return the command that joins the tokens of one column into sentences at blank lines."""
    return typed("awk", *separator, f'NF {{printf "%s ", ${column}; next}} {{print ""}} END {{print ""}}', name)
