"""The lead baseline of headline generation: the beginning of a source, and its ROUGE."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sememekit.analysis.written_texts import write_texts_file
from sememekit.config import Record
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.measure.intervals import Interval, interval
from sememekit.measure.rouge import PRESETS, PRESETS_OF_DATASETS, RougeReport, rouge

LEADS: Final = {"gigaword": "8-words", "duc": "75-bytes", "lcsts": "15-characters", "peoples-daily-headlines": "15-characters"}
"""Data set -> the beginning that is taken unless another is asked for."""

_RULE: Final = re.compile(r"([1-9]\d*)-(words|bytes|characters)")


class TextScores(Record):
    """ROUGE by one preset, 0 to 1 with 95 % bootstrap intervals; scores with equal signatures can be compared."""

    name: str
    rouge1: Interval
    rouge2: Interval
    rougeL: Interval
    signature: str


class BaselineReport(Record):
    """The scores of the beginnings (``lead``) of the sources of a split."""

    data: str
    split: str
    lead: str
    examples: int
    scores: tuple[TextScores, ...]


def presets_for(dataset: str, given: Sequence[str] = ()) -> tuple[str, ...]:
    """Names of the ROUGE presets to score by: those given, or those of the data set; ConfigError where there are none."""
    for name in given:
        if name not in PRESETS:
            raise ConfigError(f"--rouge {name!r}: allowed are {', '.join(PRESETS)}")
    names = tuple(given) or PRESETS_OF_DATASETS.get(dataset)
    if not names:
        raise ConfigError(f"{dataset} has no usual ROUGE; choose one of {', '.join(PRESETS)} with --rouge")
    return names


def text_scores(name: str, report: RougeReport) -> TextScores:
    """The report of a preset without the scores of single examples."""
    return TextScores(
        name=name,
        rouge1=interval(report.rouge1),
        rouge2=interval(report.rouge2),
        rougeL=interval(report.rougeL),
        signature=report.signature,
    )


def lead_of(source: Sequence[str], rule: str) -> str:
    """The beginning of a source, as words between blanks; ConfigError for a rule of another form."""
    found = _RULE.fullmatch(rule)
    if found is None:
        raise ConfigError(f"--lead {rule!r}: give N-words, N-bytes or N-characters, such as 8-words")
    size, unit = int(found[1]), found[2]
    if unit == "words":
        return " ".join(source[:size])
    if unit == "characters":
        return "".join(source)[:size]
    return " ".join(source).encode()[:size].decode(errors="ignore")


def baseline(
    data: Path, *, split: str = "test", lead: str | None = None, rouge_by: Sequence[str] = (), texts: Path | None = None
) -> BaselineReport:
    """Score the beginnings of the sources as if they were headlines; arguments as ``sememekit eval --help``.

    ``lead`` counts words as the data were cut, and characters without white space. ``rouge_by`` are names of
    :data:`sememekit.measure.rouge.PRESETS`, none for those of the data set. Raises ConfigError: for another lead or preset, or
    none where the data set has no default. Raises DataError: the data are absent, are no pairs, or lack the split.
    """
    prepared = PreparedData.open(data)
    dataset = prepared.signature.dataset
    originals = prepared.examples(split).originals if prepared.signature.examples is not None else None
    if originals is None:
        raise DataError(
            f"{data}: {dataset} has no references; prepare pairs with: sememekit preprocess "
            "gigaword|lcsts|duc|peoples-daily-headlines SOURCE --out DIR"
        )
    chosen = lead or LEADS.get(dataset)
    if chosen is None:
        raise ConfigError(f"--lead is missing: {dataset} has no default; give N-words, N-bytes or N-characters")
    names = presets_for(dataset, rouge_by)
    pairs = list(originals)
    leads = [lead_of(pair.source, chosen) for pair in pairs]
    references = [list(pair.references) for pair in pairs]
    if texts is not None:
        write_texts_file(texts, [" ".join(pair.source) for pair in pairs], [[lead] for lead in leads], references)
    scores = tuple(text_scores(name, rouge(leads, references, PRESETS[name])) for name in names)
    return BaselineReport(data=str(data), split=split, lead=chosen, examples=len(pairs), scores=scores)
