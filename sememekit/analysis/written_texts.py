"""Texts that systems wrote for the same sources, as a file of JSON lines, and how two such files differ."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from sememekit.config import Record, nearest
from sememekit.errors import ConfigError, DataError
from sememekit.files import TEXTS, opening, write_output
from sememekit.measure.bleu import BleuReport, BleuSettings, dialogue_bleu
from sememekit.measure.intervals import Interval, interval, ratio_difference_interval
from sememekit.measure.rouge import PRESETS, RougeReport, rouge

SCORED_BY: Final = (*PRESETS, "bleu")
"""Settings by which texts are scored for a comparison."""


class TextsDifference(Record):
    """The first texts minus the second, of one metric, and whether the interval excludes zero (None without one)."""

    name: str
    first: float
    second: float
    difference: Interval
    excludes_zero: bool | None


class ComparisonReport(Record):
    """Report of ``compare`` on two files of texts: by metric, the first minus the second.

    Attributes:
        by: how texts were scored.
        examples: sources that both have.
    """

    first: str
    second: str
    by: str
    examples: int
    signature: str
    differences: tuple[TextsDifference, ...]


class Texts(NamedTuple):
    """Texts of one system: a source, its texts with the best first, and its references in each place."""

    sources: list[str]
    texts: list[list[str]]
    references: list[list[str]]


def write_texts_file(
    path: Path, sources: Sequence[str], texts: Sequence[Sequence[str]], references: Sequence[Sequence[str]]
) -> None:
    """Write what a system wrote, a JSON object a line with ``source``, ``texts`` (the best first) and ``references``. Raises
    ConfigError and OSError as ``write_output``."""
    lines = (
        json.dumps({"source": source, "texts": [*best], "references": [*own]}, ensure_ascii=False) + "\n"
        for source, best, own in zip(sources, texts, references, strict=True)
    )
    write_output(path, "".join(lines).encode(), TEXTS)


def compare_texts(first: Path, second: Path, by: str, *, seed: int = 0) -> ComparisonReport:
    """Differences between two files of ``eval --texts`` or ``baseline --texts``, of the same data, resampled in pairs.

    BLEU reads as many texts an example as both systems wrote, for its precision is a mean over them, and later ones are worse.

    Raises:
        ConfigError: ``by`` is none of ``SCORED_BY``.
        DataError: a file that cannot be read, or files of other sources or references, with the line.
    """
    if by not in SCORED_BY:
        raise ConfigError(f"--by {by!r}{nearest(by, SCORED_BY)}: allowed are {', '.join(SCORED_BY)}")
    sides = [read_texts_file(first), read_texts_file(second)]
    check_same_sources(sides[0], sides[1], first, second)
    reports: list[BleuReport | RougeReport]
    if by == "bleu":
        num_best = min(max(map(len, side.texts), default=1) for side in sides)
        settings = BleuSettings(top=min(BleuSettings().top, max(1, num_best)))
        reports = [dialogue_bleu(side.texts, side.references, settings, seed=seed) for side in sides]
    else:
        reports = [rouge([best[0] for best in side.texts], side.references, PRESETS[by], seed=seed) for side in sides]
    ones, rows = np.ones(reports[0].examples), []
    for name in reports[0].per_example:
        columns = [report.per_example[name] for report in reports]
        one, two = (float(column.mean()) for column in columns)
        difference = interval(ratio_difference_interval((columns[0], ones), (columns[1], ones), seed=seed))
        apart = difference.leaves_zero_out
        rows.append(TextsDifference(name=name, first=one, second=two, difference=difference, excludes_zero=apart))
    return ComparisonReport(
        first=str(first),
        second=str(second),
        by=by,
        examples=reports[0].examples,
        signature=reports[0].signature,
        differences=tuple(rows),
    )


def read_texts_file(path: Path) -> Texts:
    """Read what ``write_texts_file`` wrote; DataError, with the line, for anything else."""
    table = Texts([], [], [])
    try:
        with opening(path, DataError), path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    record = json.loads(line)
                    source, texts, references = record["source"], record["texts"], record["references"]
                    lists = isinstance(texts, list) and isinstance(references, list)
                    good = lists and all(isinstance(text, str) for text in [source, *texts, *references])
                except (ValueError, KeyError, TypeError, RecursionError):
                    good = False
                if not good or not references:
                    raise DataError(f"{path}:{number}: not an object with source, texts and references, as eval --texts writes")
                table.sources.append(source)
                table.texts.append(texts or [""])
                table.references.append(references)
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8; is it a file that eval --texts wrote?") from None
    if not table.texts:
        raise DataError(f"{path}: the file is empty")
    return table


def check_same_sources(one: Texts, two: Texts, first: Path, second: Path) -> None:
    """Raise DataError unless both files have the same sources and references in the same order."""
    for number, pair in enumerate(zip(one.sources, two.sources, strict=False), start=1):
        if pair[0] != pair[1] or one.references[number - 1] != two.references[number - 1]:
            raise DataError(f"{first} and {second} are of different data: line {number} has another source or other references")
    if len(one.sources) != len(two.sources):
        raise DataError(f"{first} has {len(one.sources)} texts and {second} has {len(two.sources)}; both must have the same")
