"""Sentences with gold senses of words."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sememekit.config import Record
from sememekit.errors import DataError
from sememekit.files.reading import read_text
from sememekit.files.tables import Row, names_of, numbered, split_lines, table_rows

FORMATS: Final = (
    "lines of SememeWSD ({'context': [...], 'target_word': ..., 'target_position': 0, 'sense': {...}}), a table with the "
    "columns sentence, word, position, sense, or CoNLL-U with Sense= or Sememes= in MISC"
)
_COLUMNS: Final = ("sentence", "word", "position", "sense")


@dataclass(frozen=True)
class GoldTarget:
    """A word in a sentence, with its gold sense."""

    line: int  # of the file, from 1
    words: tuple[str, ...]
    position: int  # of the word, from 0; valid only after a check by ``misplaced``
    word: str
    sense: frozenset[str] | int  # the sememes of the sense, or its number in the lexicon, from 1


class LeftOut(Record):
    """Targets that cannot be scored for one cause, with the line of the first."""

    cause: str
    count: int
    first: str


def left_out(name: str, causes: Mapping[str, Sequence[GoldTarget]]) -> tuple[LeftOut, ...]:
    """Return each cause with its number of targets and the first target, the most frequent cause first."""
    found = []
    for cause, own in causes.items():
        sense = own[0].sense
        shown = f"#{sense}" if isinstance(sense, int) else f" {{{', '.join(sorted(sense))}}}"
        found.append(LeftOut(cause=cause, count=len(own), first=f"{name}, line {own[0].line}: {own[0].word}{shown}"))
    return tuple(sorted(found, key=lambda one: -one.count))


def misplaced(target: GoldTarget) -> str | None:
    """Return the cause if the sentence does not have the word at the position, else None."""
    if not 0 <= target.position < len(target.words):
        return "position outside the sentence"
    return None if target.words[target.position] == target.word else "another word at the position"


def matching_senses(gold: frozenset[str] | int, senses: Sequence[frozenset[str]]) -> frozenset[int]:
    """Return the senses of a word that match a gold sense, by their place in the lexicon from 0; may be empty.

    A number matches the sense with this number. Sememes match the sense with exactly these sememes; without such a sense, every
    sense with all of them and more, since a lexicon may divide a gold sense into finer ones.

    >>> matching_senses(frozenset({"human"}), [frozenset({"human", "male"}), frozenset({"tool"})])
    frozenset({0})"""
    if isinstance(gold, int):
        return frozenset({gold - 1}) if 1 <= gold <= len(senses) else frozenset()
    exact = frozenset(place for place, sense in enumerate(senses) if sense == gold)
    return exact or frozenset(place for place, sense in enumerate(senses) if gold and sense > gold)


def read_gold(path: Path) -> list[GoldTarget]:
    """Read gold annotations of senses; the first line decides the format.

    - SememeWSD (Hou et al. 2020): a Python literal a line, position from 0; ``<target>`` is the word, ``?`` no sememe.
    - Table: tab between columns, positions from 1; docs/senses.md has the columns.
    - CoNLL-U: every token whose MISC has ``Sememes=A,B`` or ``Sense=2`` is a target (``\\p`` is the ``|`` of a name); where a
      token has both, the sememes count.

    >>> targets = read_gold(Path("gold.tsv"))
    >>> targets[0].word, targets[0].position

    Raises DataError: the file is absent, is in none of these formats, has no target, or a line is damaged."""
    text = read_text(path, lambda why: DataError(f"--senses {why}"))
    lines, none = split_lines(text), "the table has a header and no row"
    first = next((line for line in lines if line.strip()), "")
    if not first:
        raise DataError(f"--senses {path}: the file is empty; it must have {FORMATS}")
    if first.lstrip().startswith("{"):
        found = [_literal(path, number, line) for number, line in numbered(lines)]
    elif set(_COLUMNS) <= {*names_of(next(table_rows(lines, path, _COLUMNS)).cells)}:
        found = list(_table(path, table_rows(lines, path, _COLUMNS)))
    elif first.startswith("#") or len(first.split("\t")) == 10:
        found, none = list(_conllu(path, lines)), "no token has Sense= or Sememes= in MISC"
    else:
        raise DataError(f"--senses {path}: the first line is {first[:60]!r}; the file must have {FORMATS}")
    if not found:
        raise DataError(f"--senses {path}: {none}, so there is nothing to compare with")
    return found


def _damaged(path: Path, number: int, why: str) -> DataError:
    return DataError(f"--senses {path}, line {number}: {why}; correct the line or take it out")


def _literal(path: Path, number: int, line: str) -> GoldTarget:
    try:
        record: dict[str, Any] = ast.literal_eval(line.strip())
        words, place = [str(word) for word in record["context"]], int(record["target_position"])
        word, sense = str(record["target_word"]), frozenset(map(str, record["sense"])) - {"?"}
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError) as error:
        why = f"has no {error}" if isinstance(error, KeyError) else f"is no Python literal of a record ({error})"
        raise _damaged(path, number, why) from None
    if 0 <= place < len(words) and words[place] == "<target>":
        words[place] = word
    return GoldTarget(number, tuple(words), place, word, sense)


def _table(path: Path, rows: Iterator[Row]) -> Iterator[GoldTarget]:
    columns = names_of(next(rows).cells)
    for number, _, own in rows:
        cells = dict(zip(columns, own, strict=False))
        if len(cells) < len(columns):
            raise _damaged(path, number, f"has {len(cells)} of {len(columns)} columns")
        if not re.fullmatch(r"-?\d+", cells["position"].strip()):
            raise _damaged(path, number, f"the position {cells['position']!r} is no number")
        words, sense = tuple(cells["sentence"].split()), _sense(cells["sense"].split())
        yield GoldTarget(number, words, int(cells["position"]) - 1, cells["word"].strip(), sense)


def _conllu(path: Path, lines: Iterable[str]) -> Iterator[GoldTarget]:
    rows: list[tuple[int, list[str]]] = []
    for number, line in enumerate([*lines, ""], start=1):
        if line.strip() and not line.startswith("#"):
            cells = line.split("\t")
            if len(cells) != 10:
                raise _damaged(path, number, f"has {len(cells)} columns, and CoNLL-U has 10")
            if cells[0].isdecimal():  # neither a range of tokens nor an empty node
                rows.append((number, cells))
        elif not line.strip():
            words = tuple(cells[1] for _, cells in rows)
            for place, (at, cells) in enumerate(rows):
                misc = dict(part.split("=", 1) for part in cells[9].split("|") if "=" in part)
                sememes = misc.get("Sememes", misc.get("Sense", "")).replace("\\p", "|")
                if sememes:
                    yield GoldTarget(at, words, place, words[place], _sense(sememes.split(",")))
            rows = []


def _sense(parts: Sequence[str]) -> frozenset[str] | int:
    return int(parts[0]) if len(parts) == 1 and parts[0].isdecimal() else frozenset(parts)
