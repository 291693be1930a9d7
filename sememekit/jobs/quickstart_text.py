"""The text of the quickstart: part of the newspaper month, or lines of an own file; as words, and as characters."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sememekit.corpora.peoples_daily import PeoplesDaily
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.files import by_its_beginning, how_to_convert, opening, replace_file
from sememekit.files.reading import SAMPLE
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.segmentation import sentences_without_blanks
from sememekit.prepare.settings import PreprocessSettings
from sememekit.text.form import join_names, parse_tagged, split_sentences, to_half_width
from sememekit.text.reading import Span
from sememekit.text.scripts import HAN
from sememekit.text.segmenters import WhiteSpace

MONTH_SHARE, LARGEST_FILE = 0.34, 2_000_000  # default share of the month, and default bytes of a user's text: as many words

LEAST_LINES, LEAST_WORDS = 60, 1000
"""Least lines of a user's text, of which a tenth is held out, and least words of the training split, to fill some batches."""

LEAST_CHARACTERS, MOST_CHARACTERS = 30_000, 160_000  # characters of the training text of the lattice model

_LONGEST_SENTENCE, _HELD_OUT = 60, 300
"""Longest sentences of the lattice model in characters, and held-out sentences: half for validation, half to segment."""


class Drawn(NamedTuple):
    """Lines drawn from ``source``, which has ``of`` lines; ``dataset`` is as in ``preprocess``, ``share`` as requested."""

    dataset: str
    source: Path
    share: float
    lines: list[str]
    of: int

    @property
    def own(self) -> bool:
        return self.dataset == "plain"

    def more(self) -> str:
        """Advice for a text with too few lines."""
        return "use a longer text" if self.share >= 1.0 else f"use a longer text, or more of it than --share {self.share:g}"


def draw(text: Path | None, month: Path | None, share: float | None, seed: int) -> Drawn:
    """Draw lines of the text or the month uniformly. Raises ConfigError: a wrong share. Raises DataError: there is no month, a
    text cannot be read, is not UTF-8, or too few lines of it are drawn."""
    if text is None:
        dataset, source, usual = "peoples-daily", PeoplesDaily.open(month).sources()[0].path, MONTH_SHARE
    elif text.is_file():
        dataset, source, usual = "plain", text, min(1.0, round(LARGEST_FILE / max(text.stat().st_size, 1), 4)) or 0.0001
    else:
        raise DataError(f"quickstart --text {text}: no such file; give a text with one sentence or paragraph a line, in UTF-8")
    drawn = Drawn(dataset, source, usual if share is None else share, [], 0)
    if not 0.0 < drawn.share <= 1.0:
        raise ConfigError(f"quickstart: the share must lie above 0 and be 1 at most, given {drawn.share:g}")
    generator, of = np.random.PCG64(seed), 0
    with opening(source, lambda why: DataError(f"{why}; give a text in UTF-8")), source.open("rb") as file:
        head = file.read(SAMPLE)
        file.seek(0)
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            of += 1
            if generator.random_raw() / 2.0**64 < drawn.share:
                try:
                    drawn.lines.append(line.strip().decode("utf-8-sig"))
                except UnicodeDecodeError as error:
                    remedy = by_its_beginning(head, source) or how_to_convert(line, source, begins=False)
                    raise DataError(f"{source}:{number}: not UTF-8 ({error.reason}); {remedy}") from None
    least = LEAST_LINES if drawn.own else 1
    if len(drawn.lines) < least:
        raise DataError(
            f"quickstart --text {source}: {len(drawn.lines):,} of its {of:,} lines are used, and {least} at least are needed, "
            f"one sentence or paragraph a line; {drawn.more()}"
        )
    return drawn._replace(of=of)


def prepare_words(out: Path, drawn: Drawn, sources: tuple[str, ...], segmenter: str | None, seed: int) -> PreparedData:
    """Prepare the data of the two compared models: a user's text is segmented as requested (default: at blanks, or by the
    lexicon if most sentences have no blanks). Raises DataError: too few words."""
    path = _write(out / "text" / ("lines.txt" if drawn.own else "month.txt"), drawn.lines)
    own: dict[str, Any] = {}
    if drawn.own:
        raw, seen = sentences_without_blanks(Span(path, str(path), 0, path.stat().st_size), "strict")
        own["segmenter"] = segmenter or ("fmm" if raw * 2 > seen else "none")
        own |= {"min_count": 2, "max_vocabulary": 10_000}
    lexicon = sources if own.get("segmenter", "fmm") == "fmm" else None
    data = _prepared(out / "data", drawn.dataset, path, PreprocessSettings(lexicon=lexicon, seed=seed, force=True, **own))
    if (words := data.signature.splits["train"].tokens) < LEAST_WORDS:
        raise DataError(
            f"quickstart: the text gives {words:,} training words, and {LEAST_WORDS:,} at least are needed "
            f"(50,000 for meaningful figures); {drawn.more()}"
        )
    return data


def _write(path: Path, lines: Sequence[str]) -> Path:
    path.parent.mkdir(exist_ok=True)
    replace_file(path, ("\n".join(lines) + "\n").encode())
    return path


def _prepared(folder: Path, dataset: str, source: Path, settings: PreprocessSettings) -> PreparedData:
    """Return the prepared data in a folder; they are made if missing or torn."""
    try:
        return PreparedData.open(folder)
    except DataError:
        preprocess(dataset, source, folder, settings)
    return PreparedData.open(folder)


def _sentences(drawn: Drawn, segmenter: str) -> Iterator[list[str]]:
    """Yield the sentences of a text as words (a raw sentence is one word), with normalised width only."""
    for line in drawn.lines:
        if not drawn.own:
            for words in split_sentences(join_names(parse_tagged(line))):
                yield [to_half_width(word) for word in words]
        else:
            yield line.split() if segmenter == WhiteSpace.description else ["".join(line.split())]


def prepare_characters(out: Path, drawn: Drawn, segmenter: str) -> tuple[PreparedData | None, str]:
    """Prepare characters for the lattice model, and sentences to segment (``text/gold.txt``); return the data, or a reason."""
    held_out: list[list[str]] = []
    train: list[str] = []
    size = 0
    for number, words in enumerate(_sentences(drawn, segmenter)):
        sentence = "".join(words)
        if not 0 < len(sentence) <= _LONGEST_SENTENCE:
            continue
        if number % 10 == 9 and len(held_out) < _HELD_OUT:
            held_out.append(words)
        elif size < MOST_CHARACTERS:
            train.append(sentence)
            size += len(sentence)
        else:
            break
    if len(HAN.findall("".join(train))) * 2 < size:
        return None, "the text is not Chinese"
    if size < LEAST_CHARACTERS:
        few = f"sentences of at most {_LONGEST_SENTENCE} characters have {size:,} of them"
        return None, f"{few}, fewer than {LEAST_CHARACTERS:,}"
    texts = _write(out / "text" / "characters" / "train.txt", train).parent
    _write(texts / "valid.txt", ["".join(words) for words in held_out[0::2]])
    _write(out / "text" / "gold.txt", [" ".join(words) for words in held_out[1::2]])
    chosen = PreprocessSettings(segmenter="characters", min_count=3, chunks=8000, chunk_length=4, force=True)
    return _prepared(out / "characters", "plain", texts, chosen), ""
