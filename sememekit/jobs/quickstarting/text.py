"""The text of the quickstart: part of the newspaper month, or lines of an own file; as words, and as characters."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from sememekit.corpora.peoples_daily import PeoplesDaily
from sememekit.data.prepared import PreparedData
from sememekit.errors import DataError
from sememekit.files import from_gb18030, may_be_gb18030, opening, replace_file
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.quickstarting.folder import QuickstartSettings, forget_data
from sememekit.prepare.segmentation import sentences_without_blanks
from sememekit.prepare.settings import PreprocessSettings
from sememekit.reports.quickstart import TextSummary
from sememekit.sememes import SememeGraph
from sememekit.text.form import join_names, parse_tagged, split_sentences, to_half_width
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


class Text(NamedTuple):
    """The lines that were drawn from ``source``: their file, how many they are, and how many lines ``source`` has."""

    path: Path
    source: Path
    chosen: int
    lines: int
    own: bool


def draw(out: Path, settings: QuickstartSettings, again: str) -> Text:
    """Write the lines of the text or month that are used into ``out``, each with the same chance.

    ``again`` is the command that goes on with ``out``.

    Raises:
        DataError: there is no month, a text cannot be read, is not UTF-8, or too few lines of it were chosen.
        ConfigError: it is not the text that models of ``out`` began to read.
    """
    own, share = bool(settings.text), settings.share
    if own:
        path, source = out / "text" / "lines.txt", Path(settings.text)
    else:
        path = out / "text" / "month.txt"
        source = PeoplesDaily.open(Path(settings.month) if settings.month else None).sources()[0].path
    generator, chosen, lines = np.random.PCG64(settings.seed), [], 0
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
    if own and len(chosen) < LEAST_LINES:
        raise DataError(
            f"quickstart --text {source}: {len(chosen):,} of its {lines:,} lines are used, and "
            f"{LEAST_LINES} at least are needed, one sentence or paragraph a line; {_more(share)}"
        )
    return Text(path, source, len(chosen), lines, own)


def _more(share: float) -> str:
    return "use a longer text" if share >= 1.0 else f"use a longer text, or more of it than --share {share:g}"


def _settings_of(text: Text, settings: QuickstartSettings) -> PreprocessSettings:
    """Return the settings of preprocess: an own text is cut as asked, else at its blanks, or by the lexicon if most sentences
    have none. ``force``, because a torn folder is ours, too."""
    if not text.own:
        return PreprocessSettings(lexicon=settings.sources, seed=settings.seed, force=True)
    segmenter = settings.segmenter
    if not segmenter:
        raw, seen = sentences_without_blanks(Span(text.path, str(text.path), 0, text.path.stat().st_size), "strict")
        segmenter = "fmm" if raw * 2 > seen else "none"
    return PreprocessSettings(
        segmenter=segmenter,
        lexicon=settings.sources if segmenter == "fmm" else None,
        min_count=_SMALLEST_COUNT,
        max_vocabulary=_MOST_WORDS,
        seed=settings.seed,
        force=True,
    )


def _prepared(folder: Path, dataset: str, source: Path, settings: Callable[[], PreprocessSettings]) -> PreparedData:
    """The prepared data in a folder, which are made where they are missing or torn."""
    try:
        return PreparedData.open(folder)
    except DataError:
        preprocess(dataset, source, folder, settings())
    return PreparedData.open(folder)


def prepare_words(out: Path, text: Text, settings: QuickstartSettings) -> PreparedData:
    """The prepared data of the two models that are compared. Raises DataError: too few words."""
    dataset = "plain" if text.own else "peoples-daily"
    data = _prepared(out / "data", dataset, text.path, lambda: _settings_of(text, settings))
    words = data.signature.splits["train"].tokens
    if words < LEAST_WORDS:
        raise DataError(
            f"quickstart: the text gives {words:,} training words, and {LEAST_WORDS:,} at least are needed "
            f"(50,000 for meaningful figures); {_more(settings.share)}"
        )
    return data


def text_summary(text: Text, data: PreparedData, graph: SememeGraph) -> TextSummary:
    """Sizes of a text, and how much of it is unknown or annotated."""
    splits, counts = data.signature.splits, data.vocabulary.counts
    return TextSummary(
        month=text.source.name,
        paragraphs=text.chosen,
        paragraphs_of_month=text.lines,
        tokens={name: split.tokens for name, split in splits.items()},
        vocabulary=len(data.vocabulary),
        unknown_rate=sum(split.unknown for split in splits.values()) / sum(split.tokens for split in splits.values()),
        segmenter=data.signature.segmenter if text.own else "",
        annotated=float(counts[graph.annotated].sum() / max(counts.sum(), 1)),
    )


def _sentences(text: Text, segmenter: str) -> Iterator[list[str]]:
    """The sentences of a text as words; a raw one is one word. For characters: normalised as to width and nothing else."""
    for line in text.path.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n"):
        if not text.own:
            for words in split_sentences(join_names(parse_tagged(line))):
                yield [to_half_width(word) for word in words]
        else:
            yield line.split() if segmenter == WhiteSpace.description else ["".join(line.split())]


def prepare_characters(out: Path, text: Text, data: PreparedData) -> tuple[PreparedData | None, str]:
    """The prepared data of the lattice model, characters without any blank, and beside it the sentences that it will cut.
    Returns the data, or None and why there is no such model.
    """
    texts = out / "text" / "characters"
    held_out: list[list[str]] = []
    train: list[str] = []
    size = han = 0
    for number, words in enumerate(_sentences(text, data.signature.segmenter)):
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
        few = f"sentences of at most {_LONGEST_SENTENCE} characters have {size:,} of them"
        return None, f"{few}, fewer than {LEAST_CHARACTERS:,}"
    texts.mkdir(exist_ok=True)
    lines = {"train": train, "valid": ["".join(words) for words in held_out[0::2]]}
    for name, found in lines.items():
        replace_file(texts / f"{name}.txt", ("\n".join(found) + "\n").encode())
    replace_file(out / "text" / "gold.txt", ("\n".join(" ".join(words) for words in held_out[1::2]) + "\n").encode())
    chosen = PreprocessSettings(segmenter="characters", min_count=3, chunks=8000, chunk_length=4, force=True)
    return _prepared(out / "characters", "plain", texts, lambda: chosen), ""
