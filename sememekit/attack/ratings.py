"""Blind rating sheets of adversarial texts, and the answers of raters.

A row is a success: its original and its adversarial text, in an order decided by their hash. The sheet hides which is which,
the victim's answers and the true label. Rows are sorted by hash, so that the first n are a random sample."""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from sememekit.attack.examples import ExampleResult
from sememekit.errors import DataError
from sememekit.files import read_text
from sememekit.files.tables import csv_text, names_of, table_rows
from sememekit.measure.attack_rates import Verdict, agreement_of

ANSWERS: Final = ("same meaning", "label 1", "label 2", "fluent 1", "fluent 2")
COLUMNS: Final = ("item", "text 1", "text 2", *ANSWERS)
MOST_RATED: Final = 200  # rows of a sheet
_NO_CHANCE: Final = 10  # rows on which two raters do not agree in every answer by chance
_YES: Final = {"yes": True, "y": True, "1": True, "no": False, "n": False, "0": False}


class Item(NamedTuple):
    """A row: its name, the example and its number in the attack, and whether the adversarial text comes first."""

    name: str
    result: ExampleResult
    swapped: bool

    @property
    def texts(self) -> list[tuple[str, ...]]:
        pair = [self.result.fields, self.result.adversarial or ()]
        return pair[::-1] if self.swapped else pair


def items_of(results: Iterable[ExampleResult]) -> list[Item]:
    """Return the rows of an attack: at most ``MOST_RATED`` of its successes."""
    won = [result for result in results if result.adversarial is not None]
    names = [sha256(json.dumps([one.index, one.fields, one.adversarial]).encode()).hexdigest() for one in won]
    items = [Item(name[:10], result, name[10] < "8") for name, result in zip(names, won, strict=True)]
    return sorted(items, key=lambda item: item.name)[:MOST_RATED]


def sheet(items: Sequence[Item]) -> bytes:
    """Return the rows as CSV with empty answers."""
    rows = ([item.name, *("\n".join(text) for text in item.texts), *("" for _ in ANSWERS)] for item in items)
    return csv_text([COLUMNS, *rows]).encode("utf-8-sig")


class Ratings(NamedTuple):
    """The answers of the raters of an attack."""

    verdicts: dict[int, Verdict]  # number of a rated example -> the majority vote; a tie counts as "no"
    rows: int  # filled rows of all raters
    raters: int
    agreement: dict[str, float | None]  # question -> Krippendorff's alpha; empty for one rater
    remarks: tuple[str, ...]  # what was given twice and counts once


def read_ratings(paths: Sequence[Path], items: Sequence[Item], labels: Sequence[str]) -> Ratings:
    """Read filled sheets, one a rater; rows without answers are skipped. A sheet that was given before (the
    same file, or equal answers in at least ten rows) and a row that a sheet repeats count once.

    Raises DataError: a row of another attack, an unknown answer, two different answers of a rater, or no answers at all."""
    known = {item.name: item for item in items}
    sheets, remarks = dict[Path, dict[int, Verdict]](), list[str]()
    for path in paths:
        found, repeated = _read_sheet(path, known, labels)
        if repeated:
            remarks.append(f"{path}: {repeated:,} rows stand there twice, and count once")
        same = (other for other, answers in sheets.items() if answers == found)
        if twin := next((other for other in same if len(found) >= _NO_CHANCE or other.samefile(path)), None):
            remarks.append(f"{path}: the answers of {twin} once more, which count as one rater")
        elif found:
            sheets[path] = found
    if not sheets:
        raise DataError(f"--ratings {', '.join(map(str, paths))}: no row has answers")
    found_of: dict[int, list[Verdict]] = {}
    for answers in sheets.values():
        for index, verdict in answers.items():
            found_of.setdefault(index, []).append(verdict)
    most = {
        index: Verdict(*(2 * sum(said) > len(said) for said in zip(*each, strict=True))) for index, each in found_of.items()
    }
    questions = ("meaning", "label", "fluent", "valid") if len(sheets) > 1 else ()
    agreement = {name: agreement_of([getattr(one, name) for one in each] for each in found_of.values()) for name in questions}
    return Ratings(most, sum(map(len, sheets.values())), len(sheets), agreement, tuple(remarks))


def _read_sheet(path: Path, known: Mapping[str, Item], labels: Sequence[str]) -> tuple[dict[int, Verdict], int]:
    """Return the verdicts of a sheet by example, and the number of repeated rows; errors as ``read_ratings``."""
    text = read_text(path, lambda why: DataError(f"--ratings {why}"))
    rows = list(table_rows(text, path, COLUMNS))
    header = names_of(rows[0].cells if rows else ())
    if missing := [name for name in ("item", *ANSWERS) if name not in header]:
        raise DataError(f"--ratings {path}: no column {missing[0]!r}; fill in ratings.csv or ratings.html of the attack")
    found, repeated = dict[int, Verdict](), 0
    for line, _, cells in rows[1:]:
        row = dict(zip(header, map(str.strip, cells), strict=False))
        name, *answers = (row.get(name, "") for name in ("item", *ANSWERS))
        if not any(answers):
            continue
        where = f"--ratings {path}:{line}"
        if name not in known:
            raise DataError(f"{where}: item {name!r} is not on the sheet of this attack; fill in the sheet in its folder")
        item = known[name]
        verdict = _verdict(answers, item, labels, where)
        if (before := found.setdefault(item.result.index, verdict)) != verdict:
            raise DataError(f"{where}: item {name!r} was answered otherwise in an earlier row; leave one of the two out")
        repeated += before is not verdict
    return found, repeated


def _verdict(answers: Sequence[str], item: Item, labels: Sequence[str], where: str) -> Verdict:
    allowed: Mapping[str, Sequence[str]] = {name: labels if name.startswith("label") else tuple(_YES) for name in ANSWERS}
    for name, answer in zip(ANSWERS, answers, strict=True):
        if (answer if name.startswith("label") else answer.lower()) not in allowed[name]:
            raise DataError(f"{where}: {name} is one of {', '.join(allowed[name])}, given {answer!r}")
    same, *rest = answers
    original, adversarial = rest[int(item.swapped) :: 2], rest[int(not item.swapped) :: 2]
    true = item.result.label
    return Verdict(_YES[same.lower()], adversarial[0] == true, _YES[adversarial[1].lower()], original[0] == true)
