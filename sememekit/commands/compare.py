"""``sememekit compare``: two systems that wrote texts for the same sources, with paired intervals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, NamedTuple

from sememekit.config import Record
from sememekit.errors import ConfigError, DataError
from sememekit.files import TEXTS, write_output
from sememekit.measure.attack_rates import Difference, interval
from sememekit.measure.bleu import dialogue_bleu
from sememekit.measure.intervals import Estimate
from sememekit.measure.rouge import METRICS, PRESETS, rouge
from sememekit.measure.score_differences import score_differences

BLEU: Final = "bleu"


class ComparisonReport(Record):
    """What ``compare`` found.

    Attributes:
        first, second: the files.
        by: how texts were scored.
        examples: sources that both have.
        signature: of the scores.
        differences: first minus second, by metric.
    """

    first: str
    second: str
    by: str
    examples: int
    signature: str
    differences: tuple[Difference, ...]


class _Texts(NamedTuple):
    sources: list[str]
    texts: list[list[str]]
    references: list[list[str]]


def compare(first: Path, second: Path, by: str, *, seed: int = 0) -> ComparisonReport:
    """Differences between two systems, resampled in pairs.

    Args:
        first, second: files that ``eval --texts`` or ``baseline --texts`` wrote, of the same data.
        by: a name of :data:`sememekit.measure.rouge.PRESETS`, or ``bleu``.
        seed: of the bootstrap.

    Raises:
        ConfigError: for another ``by``.
        DataError: a file that cannot be read, or files of other sources or references, with the line.
    """
    if by not in PRESETS and by != BLEU:
        raise ConfigError(f"--by {by!r}: allowed are {', '.join([*PRESETS, BLEU])}")
    one, two = _read(first), _read(second)
    _check_same(one, two, first, second)
    if by == BLEU:
        bleus = [dialogue_bleu(side.texts, side.references, seed=seed) for side in (one, two)]
        names = tuple(bleus[0].per_example)
        found = score_differences(*bleus, seed=seed)
        means = [{name: float(report.per_example[name].mean()) for name in names} for report in bleus]
        signature = bleus[0].signature
    else:
        rouges = [rouge([best[0] for best in side.texts], side.references, PRESETS[by], seed=seed) for side in (one, two)]
        names = METRICS
        found = score_differences(*rouges, seed=seed)
        means = [{name: float(report.per_example[name].mean()) for name in names} for report in rouges]
        signature = rouges[0].signature
    rows = tuple(_difference(name, means[0][name], means[1][name], found[name]) for name in names)
    return ComparisonReport(
        first=str(first), second=str(second), by=by, examples=len(one.texts), signature=signature, differences=rows
    )


def write_texts_file(path: Path, sources: list[str], texts: list[list[str]], references: list[list[str]]) -> None:
    """Write what a system wrote, a JSON object a line with ``source``, ``texts`` (the best first) and ``references``.

    Raises:
        DataError: when it cannot be written.
    """
    try:
        lines = (
            json.dumps({"source": source, "texts": best, "references": own}, ensure_ascii=False) + "\n"
            for source, best, own in zip(sources, texts, references, strict=True)
        )
        write_output(path, "".join(lines).encode(), TEXTS)
    except OSError as error:
        raise DataError(f"--texts {path}: cannot be written: {error.strerror}") from None


def _difference(name: str, first: float, second: float, found: Estimate) -> Difference:
    return Difference(
        name=name, first=first, second=second, difference=interval(found), excludes_zero=found.low > 0 or found.high < 0
    )


def _read(path: Path) -> _Texts:
    table = _Texts([], [], [])
    try:
        with path.open(encoding="utf-8") as file:
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
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8; is it a file that eval --texts wrote?") from None
    if not table.texts:
        raise DataError(f"{path}: the file is empty")
    return table


def _check_same(one: _Texts, two: _Texts, first: Path, second: Path) -> None:
    for number, pair in enumerate(zip(one.sources, two.sources, strict=False), start=1):
        if pair[0] != pair[1] or one.references[number - 1] != two.references[number - 1]:
            raise DataError(f"{first} and {second} are of different data: line {number} has another source or other references")
    if len(one.sources) != len(two.sources):
        raise DataError(f"{first} has {len(one.sources)} texts and {second} has {len(two.sources)}; both must have the same")
