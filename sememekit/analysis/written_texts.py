"""Texts that systems wrote for the same sources: a file of them, how two such files differ, and the lead baseline."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from pydantic import ConfigDict, Field, ValidationError

from sememekit.config import Record, nearest
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.files import TEXTS, read_text, write_output
from sememekit.files.tables import numbered
from sememekit.measure.bleu import BleuSettings, dialogue_bleu
from sememekit.measure.intervals import Interval, ratio_difference_interval
from sememekit.measure.rouge import PRESETS, PRESETS_OF_DATASETS, TextScores, rouge

SCORED_BY: Final = (*PRESETS, "bleu")  # settings by which texts are scored for a comparison

LEADS: Final = {"gigaword": "8-words", "duc": "75-bytes", "lcsts": "15-characters", "peoples-daily-headlines": "15-characters"}
"""Data set -> the default beginning."""

_RULE: Final = re.compile(r"([1-9]\d*)-(words|bytes|characters)")


class Score(Record):
    """A metric, 0 to 1, with its 95 % bootstrap interval over the examples; no limits for few examples."""

    name: str
    value: float
    low: float | None
    high: float | None


class Scores(Record):
    """Metrics of one kind."""

    preset: str
    signature: str
    """One line; scores with equal signatures can be compared."""
    values: tuple[Score, ...]


def scores_of(preset: str, report: TextScores, names: Mapping[str, str] = {}, signature: str = "") -> Scores:
    """The scores of texts as a record; ``names`` rename metrics, ``signature`` is added to the signature of the report."""
    values = (Score(name=names.get(name, name), **item.model_dump()) for name, item in report.values.items())
    return Scores(preset=preset, signature=report.signature + signature, values=tuple(values))


class TextsDifference(Record):
    """The first texts minus the second, of one metric, and whether the interval excludes zero (None without one)."""

    name: str
    first: float
    second: float
    difference: Interval
    excludes_zero: bool | None


class ComparisonReport(Record):
    """Report of ``compare`` on two files of texts: by metric, the first minus the second."""

    first: str
    second: str
    by: str
    examples: int
    signature: str
    differences: tuple[TextsDifference, ...]


class WrittenLine(Record):
    """A line of a file of texts: a source, the texts of one system for it (best first), and its references."""

    model_config = ConfigDict(extra="ignore")

    source: str
    texts: list[str]
    references: list[str] = Field(min_length=1)


def write_texts_file(
    path: Path, sources: Sequence[str], texts: Sequence[Sequence[str]], references: Sequence[Sequence[str]]
) -> None:
    """Write the texts of a system: each line a JSON object with ``source``, ``texts`` (best first) and ``references``. Raises
    ConfigError and OSError as ``write_output``."""
    lines = (
        json.dumps({"source": source, "texts": [*best], "references": [*own]}, ensure_ascii=False) + "\n"
        for source, best, own in zip(sources, texts, references, strict=True)
    )
    write_output(path, "".join(lines).encode(), TEXTS)


def compare_texts(first: Path, second: Path, by: str, *, seed: int = 0) -> ComparisonReport:
    """Differences between two files of ``eval --texts`` or ``baseline --texts``, of the same data, resampled in pairs.

    BLEU uses the same number of texts per example for both systems: precision is a mean over texts, and later ones are worse.
    Raises ConfigError: ``by`` is none of ``SCORED_BY``. Raises DataError: a bad file, or other sources or references."""
    if by not in SCORED_BY:
        raise ConfigError(f"--by {by!r}{nearest(by, SCORED_BY)}: allowed are {', '.join(SCORED_BY)}")
    lines = one, two = read_texts_file(first), read_texts_file(second)
    for number, (own, other) in enumerate(zip(one, two, strict=False), start=1):
        if own.source != other.source or own.references != other.references:
            raise DataError(f"{first} and {second} are of different data: line {number} has another source or other references")
    if len(one) != len(two):
        raise DataError(f"{first} has {len(one)} texts and {second} has {len(two)}; both must have the same")
    sides, references = [[line.texts or [""] for line in side] for side in lines], [line.references for line in one]
    if by == "bleu":
        settings = BleuSettings(top=min(BleuSettings().top, *(max(map(len, texts)) for texts in sides)))
        reports = [dialogue_bleu(texts, references, settings, seed=seed) for texts in sides]
    else:
        reports = [rouge([best[0] for best in texts], references, PRESETS[by], seed=seed) for texts in sides]
    examples, signature, rows = reports[0].examples, reports[0].signature, []
    ones = np.ones(examples)
    for name in reports[0].per_example:
        columns = [report.per_example[name] for report in reports]
        means = {side: float(column.mean()) for side, column in zip(("first", "second"), columns, strict=True)}
        difference = ratio_difference_interval((columns[0], ones), (columns[1], ones), seed=seed)
        apart = difference.leaves_zero_out
        rows.append(TextsDifference(name=name, **means, difference=difference, excludes_zero=apart))
    compared = {"first": str(first), "second": str(second), "by": by}
    return ComparisonReport(**compared, examples=examples, signature=signature, differences=tuple(rows))


def read_texts_file(path: Path) -> list[WrittenLine]:
    """Read a file of ``write_texts_file``; DataError, with the line, for any other file."""
    found: list[WrittenLine] = []
    for number, line in numbered(read_text(path, DataError)):
        try:
            found.append(WrittenLine.model_validate_json(line))
        except ValidationError:
            told = "not an object with source, texts and references, as eval --texts writes"
            raise DataError(f"{path}:{number}: {told}") from None
    if not found:
        raise DataError(f"{path}: the file is empty")
    return found


class BaselineReport(Record):
    """The scores of the beginnings (``lead``) of the sources of a split."""

    data: str
    split: str
    lead: str
    examples: int
    scores: tuple[Scores, ...]


def lead_of(source: Sequence[str], rule: str) -> str:
    """The beginning of a source, as words between blanks; ConfigError for an invalid rule."""
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

    ``lead`` counts words of the segmented data, or characters without white space. ``rouge_by`` are names of
    :data:`sememekit.measure.rouge.PRESETS`, none for the ROUGE of the data set. Raises ConfigError: an unknown lead or preset,
    or a data set without a default. Raises DataError: the data are absent, are no pairs, or lack the split."""
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
    for name in rouge_by:
        if name not in PRESETS:
            raise ConfigError(f"--rouge {name!r}: allowed are {', '.join(PRESETS)}")
    names = tuple(rouge_by) or PRESETS_OF_DATASETS.get(dataset)
    if not names:
        raise ConfigError(f"{dataset} has no usual ROUGE; choose one of {', '.join(PRESETS)} with --rouge")
    pairs = list(originals)
    leads = [lead_of(pair.source, chosen) for pair in pairs]
    references = [list(pair.references) for pair in pairs]
    if texts is not None:
        write_texts_file(texts, [" ".join(pair.source) for pair in pairs], [[lead] for lead in leads], references)
    scores = tuple(scores_of(name, rouge(leads, references, PRESETS[name])) for name in names)
    return BaselineReport(data=str(data), split=split, lead=chosen, examples=len(pairs), scores=scores)
