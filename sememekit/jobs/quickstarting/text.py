"""The text of the quickstart: part of the newspaper month, or lines of an own file; as words, and as characters."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from sememekit.corpora.peoples_daily import PeoplesDaily
from sememekit.data.prepared import PreparedData
from sememekit.errors import DataError
from sememekit.files import from_gb18030, may_be_gb18030, opening, read_object, replace_file
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.quickstarting.folder import forget_data
from sememekit.prepare.segmentation import sentences_without_blanks
from sememekit.prepare.settings import PreprocessSettings
from sememekit.reports.quickstart import TextSummary
from sememekit.sememes import SememeGraph
from sememekit.text.normalise import join_names, parse_tagged, split_sentences, to_half_width
from sememekit.text.reading import Span
from sememekit.text.scripts import HAN
from sememekit.text.segmenters import WhiteSpace

LEAST_LINES: Final = 60
"""Lines of an own text at least: every twentieth is for validation, and every twentieth for the test."""

LEAST_WORDS: Final = 1000
"""Words of the training split at least: what is less fills no batch a few times over."""

LARGEST_FILE: Final = 2_000_000
"""Bytes of an own text that are used unless a share is given: as many words as the usual share of the month has."""

CHARACTERS: Final = 160_000
"""Characters that the lattice model learns from at most, and the least that it is trained on."""
LEAST_CHARACTERS: Final = 30_000

_LONGEST_SENTENCE: Final = 60
_HELD_OUT: Final = 300
"""Sentences of at most so many characters are read by the lattice model, and so many are held out: half of them for validation,
half to cut."""

_SMALLEST_COUNT: Final = 2
_MOST_WORDS: Final = 10_000
"""Own text: words that occur once are ``<unk>``, and so are those beyond the most frequent."""


def usual_share(text: Path | None, of_month: float) -> float:
    """The share that is used unless one is given: ``of_month``, or as much of an own text as takes the same time. Raises
    DataError: there is no such file.
    """
    if text is None:
        return of_month
    if not text.is_file():
        raise DataError(f"quickstart --text {text}: no such file; give a text with one sentence or paragraph a line, in UTF-8")
    return min(1.0, round(LARGEST_FILE / max(text.stat().st_size, 1), 4)) or 0.0001


def prepare_month(out: Path, month_file: str, share: float, seed: int, again: str) -> Path:
    """The part of the month that is used, as a tagged month of its own; each paragraph is in with the same chance. Raises
    DataError: there is no month, or nothing of it was chosen. Raises ConfigError: as ``prepare_own_text``.
    """
    month = PeoplesDaily.open(Path(month_file) if month_file else None).sources()[0].path
    return _draw(out, "month.txt", month, share, seed, again)


def prepare_own_text(out: Path, text: Path, share: float, seed: int, again: str) -> Path:
    """The lines of an own text that are used, each with the same chance; ``again`` is the command that goes on with ``out``.

    Raises:
        DataError: it cannot be read, is not UTF-8, or too few lines of it were chosen.
        ConfigError: it is not the text that models of ``out`` began to read.
    """
    path = _draw(out, "lines.txt", text, share, seed, again)
    counts = read_counts(path)
    if counts["paragraphs"] < LEAST_LINES:
        raise DataError(
            f"quickstart --text {text}: {counts['paragraphs']:,} of its {counts['paragraphs_of_month']:,} lines are used, and "
            f"{LEAST_LINES} at least are needed, one sentence or paragraph a line; {_more(share)}"
        )
    return path


def _draw(out: Path, name: str, source: Path, share: float, seed: int, again: str) -> Path:
    path = out / "text" / name
    generator, chosen, lines = np.random.PCG64(seed), [], 0
    with opening(source, lambda why: DataError(f"{why}; give a text in UTF-8")), source.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            lines += 1
            if generator.random_raw() / 2.0**64 < share:
                try:
                    line.decode()
                except UnicodeDecodeError as error:
                    remedy = from_gb18030(source) if may_be_gb18030(line) else "convert the file to UTF-8"
                    raise DataError(f"{source}:{number}: not UTF-8 ({error.reason}); {remedy}") from None
                chosen.append(line.strip())
    if not chosen:
        raise DataError(f"{source}: a share of {share:g} of its {lines} paragraphs selects none; give a larger --share")
    drawn = b"\n".join(chosen) + b"\n"
    if path.is_file() and path.read_bytes() != drawn:
        forget_data(out, source, again)
    path.parent.mkdir(exist_ok=True)
    replace_file(path, drawn)
    counts = {"paragraphs": len(chosen), "paragraphs_of_month": lines, "month": source.name}
    replace_file(path.parent / "counts.json", json.dumps(counts).encode() + b"\n")
    return path


def _more(share: float) -> str:
    return "use a longer text" if share >= 1.0 else f"use a longer text, or more of it than --share {share:g}"


def read_counts(text: Path) -> dict[str, int]:
    """How many lines were chosen, of how many of which file: the fields of ``TextSummary``.

    Raises DataError: the file that says so was damaged.
    """
    return read_object(
        text.parent / "counts.json", lambda why: DataError(f"{why}; type the command again, which writes it anew")
    )


def is_tagged(text: Path) -> bool:
    """Whether a text that was drawn is of the newspaper month."""
    return text.name == "month.txt"


def segmenter_of(text: Path, asked: str) -> str:
    """How an own text is cut: as asked; else at its blanks, or by the lexicon where most sentences have none."""
    if asked:
        return asked
    raw, seen = sentences_without_blanks(Span(text, str(text), 0, text.stat().st_size), "strict")
    return "fmm" if raw * 2 > seen else "none"


def prepare_words(out: Path, text: Path, sources: tuple[str, ...], asked: str, share: float, seed: int) -> PreparedData:
    """The prepared data of the two models that are compared. Raises DataError: too few words."""
    folder = out / "data"
    try:
        data = PreparedData.open(folder)
    except DataError:
        if is_tagged(text):
            chosen = PreprocessSettings(lexicon=sources, seed=seed, force=True)  # a torn folder is ours, too
            preprocess("peoples-daily", text, folder, chosen)
        else:
            segmenter = segmenter_of(text, asked)
            chosen = PreprocessSettings(
                segmenter=segmenter,
                lexicon=sources if segmenter == "fmm" else None,
                min_count=_SMALLEST_COUNT,
                max_vocabulary=_MOST_WORDS,
                seed=seed,
                force=True,
            )
            preprocess("plain", text, folder, chosen)
        data = PreparedData.open(folder)
    words = data.signature.splits["train"].tokens
    if words < LEAST_WORDS:
        raise DataError(
            f"quickstart: the text gives {words:,} training words, and {LEAST_WORDS:,} at least are needed "
            f"(50,000 for meaningful figures); {_more(share)}"
        )
    return data


def text_summary(text: Path, data: PreparedData, graph: SememeGraph) -> TextSummary:
    """Sizes of a text, and how much of it is unknown or annotated."""
    splits = data.signature.splits
    counts = data.vocabulary.counts
    return TextSummary(
        **read_counts(text),
        tokens={name: split.tokens for name, split in splits.items()},
        vocabulary=len(data.vocabulary),
        unknown_rate=sum(split.unknown for split in splits.values()) / sum(split.tokens for split in splits.values()),
        segmenter="" if is_tagged(text) else data.signature.segmenter,
        annotated=float(counts[graph.annotated].sum() / max(counts.sum(), 1)),
    )


def sentences(text: Path, segmenter: str) -> Iterator[list[str]]:
    """The sentences of a text as words; a raw one is one word. For characters: normalised as to width and nothing else."""
    for line in text.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n"):
        if is_tagged(text):
            for words in split_sentences(join_names(parse_tagged(line))):
                yield [to_half_width(word) for word in words]
        else:
            yield line.split() if segmenter == WhiteSpace.description else ["".join(line.split())]


def prepare_characters(out: Path, text: Path, data: PreparedData) -> tuple[PreparedData | None, str]:
    """The prepared data of the lattice model, characters without any blank, and beside it the sentences that it will cut.
    Returns the data, or None and why there is no such model.
    """
    folder, texts = out / "characters", out / "text" / "characters"
    held_out: list[list[str]] = []
    train: list[str] = []
    size = han = 0
    for number, words in enumerate(sentences(text, data.signature.segmenter)):
        sentence = "".join(words)
        if not 0 < len(sentence) <= _LONGEST_SENTENCE:
            continue
        if number % 10 == 9 and len(held_out) < _HELD_OUT:
            held_out.append(words)
        elif size < CHARACTERS:
            train.append(sentence)
            size += len(sentence)
            han += len(HAN.findall(sentence))
        else:
            break
    if han * 2 < size:
        return None, "the text is not Chinese"
    if size < LEAST_CHARACTERS:
        return (
            None,
            f"sentences of at most {_LONGEST_SENTENCE} characters have {size:,} of them, fewer than {LEAST_CHARACTERS:,}",
        )
    texts.mkdir(exist_ok=True)
    lines = {"train": train, "valid": ["".join(words) for words in held_out[0::2]]}
    for name, found in lines.items():
        replace_file(texts / f"{name}.txt", ("\n".join(found) + "\n").encode())
    replace_file(out / "text" / "gold.txt", ("\n".join(" ".join(words) for words in held_out[1::2]) + "\n").encode())
    try:
        return PreparedData.open(folder), ""
    except DataError:
        chosen = PreprocessSettings(segmenter="characters", min_count=3, chunks=8000, chunk_length=4, force=True)
        preprocess("plain", texts, folder, chosen)
    return PreparedData.open(folder), ""
