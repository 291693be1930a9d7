"""Files whose lines are no running text: columns, a token a line, tags, trees, numbers in front."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from sememekit.files import typed, unpacked_name

LONGEST: Final = 1 << 12
"""Characters of a line that are looked at."""
_FEWEST: Final = 20
"""Lines below which nothing is said."""
_TAG: Final = re.compile(r"[A-Z][A-Z0-9-]*")
_TAGGED: Final = re.compile(r"\S+?([_/|])[A-Za-z]{1,6}\d?")
_LEAF: Final = re.compile(r"\([^()\s]+ [^()]+\)")


def form_of_lines(lines: Sequence[str], name: str) -> str:
    """Say what the first lines of a file are in place of sentences, with the command that takes the text out; "" for text."""
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
    """The command that writes the tokens of one column as sentences, which blank lines end."""
    return typed("awk", *separator, f'NF {{printf "%s ", ${column}; next}} {{print ""}} END {{print ""}}', name)
