"""Overlays: small files that change the sememes of single senses of a graph.

::

    # sememekit overlay 1
    苹果#2	+水果 -品牌	品牌 电脑

Each line is a change: the word with the number of its sense in the graph, from 1 (optional if it has one sense); the sememes to
add and to remove; and, optionally, the sememes before the change as a check. Changes are applied in order and add up. Lines
that begin with ``#`` and a blank are remarks."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from sememekit.config import Record
from sememekit.errors import ConfigError, DataError, GraphError
from sememekit.files import OVERLAY, read_text, write_output
from sememekit.files.tables import split_lines, table_rows
from sememekit.sememes.building import spellings
from sememekit.sememes.graph import SememeGraph
from sememekit.sememes.special_tokens import UNKNOWN
from sememekit.sememes.word_entry import SenseEntry, WordEntry

HEADER: Final = "# sememekit overlay 1"
SOURCE: Final = "overlay"  # the source of a word that has sememes from an overlay alone
NUM_NEAREST: Final = 5


@dataclass(frozen=True)
class Change:
    """Sememes to add to a sense and to remove from it."""

    sense: str  # ``WORD#NUMBER``, or ``WORD`` where it has one sense
    # add, remove: names of sememes; of a name such as ``fruit|水果`` one side is enough
    add: tuple[str, ...]
    remove: tuple[str, ...]
    was: str  # the sememes before the change, with blanks between; empty for no check
    place: str  # file and line, for messages


class ChangedSense(Record):
    """The sememes of a sense, numbered from 1, before and after an overlay."""

    word: str
    sense: int
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def added(self) -> tuple[str, ...]:
        """The sememes that were added."""
        return tuple(name for name in self.after if name not in self.before)


def parse_change(sense: str, text: str, place: str, was: str = "") -> Change:
    """Parse a change ``+sememe -sememe``; a name may contain blanks.

    Raises ConfigError: an empty text, a name without a sign, commas for blanks, or a name twice."""
    parts = re.split(r"\s+(?=[+-])", text.strip())
    if not all(len(part) > 1 and part[0] in "+-" for part in parts) or re.search(r"[,;，；、][+-]", text):
        raise ConfigError(f"{place}: {text!r} is no change; write +SEMEME to add and -SEMEME to remove, blanks between")
    names = [part[1:].strip() for part in parts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"{place}: sememe {twice!r} stands twice in {text!r}; name it once")
    add, remove = (tuple(name for part, name in zip(parts, names, strict=True) if part[0] == sign) for sign in "+-")
    return Change(sense.strip(), add, remove, was, place)


def read_overlay(path: Path) -> tuple[Change, ...]:
    """The changes of an overlay file, in order.

    Raises DataError: it cannot be read, or is no overlay. Raises ConfigError: a line is no change."""
    lines = split_lines(read_text(path, lambda why: DataError(f"overlay {why}; write one with: sememekit lookup --change")))
    if lines[0].strip() != HEADER:
        raise DataError(
            f"overlay {path}: its first line is not {HEADER!r}, so it is no overlay, or one of a newer sememekit; write one "
            "with: sememekit lookup --change"
        )
    changes = []
    for number, line, (sense, *rest) in table_rows(lines, path):
        if line.startswith("# "):
            continue
        if not sense.strip() or not 1 <= len(rest) <= 2:
            raise DataError(
                f"{path}:{number}: expected WORD#SENSE, a tab and +SEMEME -SEMEME, and maybe a tab and the sememes before; "
                f"found {line!r}"
            )
        changes.append(parse_change(sense, rest[0], f"{path}:{number}", rest[1].strip() if len(rest) > 1 else ""))
    return tuple(changes)


def write_overlay(path: Path, changes: Iterable[Change]) -> None:
    """Write an overlay file; only another overlay file is replaced. Raises ConfigError and OSError as ``write_output``."""
    lines = [HEADER]
    for change in changes:
        signed = [*(f"+{name}" for name in change.add), *(f"-{name}" for name in change.remove)]
        lines.append("\t".join([change.sense, " ".join(signed), *([change.was] if change.was else [])]))
    write_output(path, "".join(line + "\n" for line in lines).encode(), OVERLAY)


def apply_changes(
    graph: SememeGraph, changes: Sequence[Change], record: str = "overlay"
) -> tuple[SememeGraph, tuple[ChangedSense, ...], tuple[Change, ...]]:
    """Apply changes in order. Return the new graph, in which sememes and senses keep their numbers; the changed senses; and the
    changes in the spelling of the graph, each with the sememes before.

    The one sense {``<unk>``} of an unannotated word loses ``<unk>`` when a sememe is added. ``record`` is the line for the
    graph's history.

    Raises GraphError, with the place and the nearest spellings: an unknown word, sense or sememe; a sememe to add that the
    sense has, or to remove that it lacks; a sense that would become empty or equal to another sense of its word."""
    entries, spelled = list(graph.entries()), []
    ids, touched = {word: number for number, word in enumerate(graph.words)}, dict[tuple[int, int], None]()
    for change in changes:
        word, number = _find(change, ids, entries)
        entry, name = entries[word], f"{entries[word].word}#{number + 1}"
        before = entry.senses[number]
        if change.was and change.was != " ".join(before.sememes):
            raise GraphError(
                f"{change.place}: the file was written for the sense {name} with {change.was}, and this graph has "
                f"{' '.join(before.sememes)}; write the file again for this graph: sememekit lookup --change --graph FILE"
            )
        add, remove = ([_sememe(one, graph.sememes, change.place) for one in names] for names in (change.add, change.remove))
        after = _changed(change, name, before, add, remove, known=entry.is_annotated)
        if any(after == other.sememes for other in entry.senses):
            raise GraphError(
                f"{change.place}: {name} would have the sememes of another sense of {entry.word}, and senses of a word must "
                "differ; choose other sememes"
            )
        senses = [*entry.senses]
        senses[number] = before.with_sememes(after, before.label.replace(" ".join(before.sememes), " ".join(after)))
        entries[word] = WordEntry(entry.word, entry.source if entry.is_annotated else SOURCE, tuple(senses))
        touched[word, number] = None
        spelled.append(Change(name, tuple(add), tuple(remove), " ".join(before.sememes), change.place))
    pairs = [
        (word, number, graph.entry(word).senses[number].sememes, entries[word].senses[number].sememes)
        for word, number in touched
    ]
    changed = [ChangedSense(word=graph.words[w], sense=n + 1, before=old, after=new) for w, n, old, new in pairs if old != new]
    return graph.with_senses(entries, record), tuple(changed), tuple(spelled)


def _find(change: Change, ids: dict[str, int], entries: Sequence[WordEntry]) -> tuple[int, int]:
    """The id of the word of a change, and the number of the sense, from 0."""
    word, mark, digits = change.sense, "", ""
    if word not in ids:
        head, mark, digits = word.rpartition("#")
        word = head if mark and digits.isdecimal() else word
    word = next((form for form in spellings(word) if form in ids), word)
    if word not in ids:
        raise GraphError(f"{change.place}: no word {word!r} in the graph{near(word, ids)}")
    senses = entries[ids[word]].senses
    listed = ", ".join(f"{word}#{number} ({' '.join(sense.sememes)})" for number, sense in enumerate(senses, start=1))
    if not digits and len(senses) > 1:
        raise GraphError(f"{change.place}: {word} has {len(senses)} senses; say which: {listed}")
    if digits and not 1 <= int(digits) <= len(senses):
        raise GraphError(f"{change.place}: {word} has no sense {digits}; it has: {listed}")
    return ids[word], int(digits or 1) - 1


def _sememe(name: str, sememes: Sequence[str], place: str) -> str:
    """Return the sememe of a name; one side of ``english|中文`` is enough if it is unique."""
    if name in sememes:
        return name
    sides = [one for one in sememes if name in one.split("|")]
    if len(sides) == 1:
        return sides[0]
    if sides:
        raise GraphError(f"{place}: {name!r} is a part of several sememe names: {', '.join(sides)}; write one in full")
    raise GraphError(
        f"{place}: no sense of the graph has the sememe {name!r}{near(name, sememes)}; a model has weights only for "
        "sememes of the graph that it was trained with, so a new one needs training: build-sememe-graph, then train"
    )


def _changed(
    change: Change, name: str, before: SenseEntry, add: Sequence[str], remove: Sequence[str], *, known: bool
) -> tuple[str, ...]:
    has = f"{name} has {' '.join(before.sememes)}"
    absent, there = [one for one in remove if one not in before.sememes], [one for one in add if one in before.sememes]
    if absent:
        raise GraphError(f"{change.place}: cannot remove {' '.join(absent)}, which is not there: {has}")
    if there:
        raise GraphError(f"{change.place}: cannot add {' '.join(there)}, which is there already: {has}")
    dropped = {*remove} if known else {*remove, UNKNOWN}
    after = tuple(sorted({*before.sememes, *add} - dropped))
    if not after:
        raise GraphError(f"{change.place}: nothing would be left of {name}, and a sense has a sememe at least; add one to it")
    return after


def near(name: str, known: Iterable[str]) -> str:
    """The nearest spellings, as the end of a clause."""
    found = near_spellings(name, known)
    return f" (near: {' '.join(found)})" if found else ""


def near_spellings(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Up to five names that are spelled alike, best first.

    Only names of similar length that share a character are compared, since comparing all of HowNet would take seconds."""
    characters = set(name)
    candidates = dict.fromkeys(one for one in known if abs(len(one) - len(name)) <= 2 and not characters.isdisjoint(one))
    return tuple(get_close_matches(name, list(candidates), n=NUM_NEAREST, cutoff=0.4))
