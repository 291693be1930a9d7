"""Guess the format of a lexicon file."""

import re
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from sememekit.files import typed
from sememekit.files.tables import names_of, split_lines

_LOOKED_AT: Final = 40
_FEWEST_RECORDS: Final = 4
_SURELY: Final = 20  # a list with so many records is refused if no sememe line repeats; a shorter list need not have repeats
_CILIN: Final = re.compile(r"[A-L][a-z]\d\d[A-Z]\d\d[=#@]\s.*")
WORD_LINE: Final = re.compile(r"(\S+)(?:\s+\d+(?:\.\d+)?)?(?:\s+[a-z][A-Za-z]*\d*)?")
"""A word, then possibly its count and its part of speech, as user dictionaries of jieba have them."""
_NAMES: Final = {
    "hownet": "HowNet's records",
    "hownet2000": "HowNet 2000 (word TAB part of speech TAB DEF)",
    "se-wrl": "a sense file of SE-WRL (word, number of senses, then the number of sememes and the sememes of each)",
    "cilin": "Cilin (a code, then words)",
    "words": "a list of words without sememes",
    "list": "a list of words and sememes in alternating lines",
    "table": "a table",
}


def sense_file_row(line: str) -> tuple[str, list[tuple[str, ...]]] | None:
    """Return the word and the sememes of each sense of a line ``word n {k sememe ...}``, or None for another line."""
    word, *rest = line.split() or [""]
    senses, place = list[tuple[str, ...]](), 1
    while place < len(rest) and rest[place].isdecimal():
        end = place + 1 + int(rest[place])
        senses.append(tuple(rest[place + 1 : end]))
        place = end
    return (word, senses) if rest and place == len(rest) and rest[0] == str(len(senses)) and senses else None


def seems(lines: Sequence[str]) -> str:
    """Return the format of the lines, a key of the names above, or an empty string if it is not clear."""
    some = [line.strip() for line in islice((line for line in lines if line.strip()), _LOOKED_AT)]
    if not some or "NO." in some[0][:3]:
        return "hownet" if some else ""
    if any({"word", "sememes"} <= {*names_of(some[0].split(mark))} for mark in "\t,;"):
        return "table"
    if _is_hownet2000([line.split("\t") for line in some]):
        return "hownet2000"
    tests: dict[str, Callable[[str], object]] = {"se-wrl": sense_file_row, "cilin": _CILIN.fullmatch}
    for name, test in tests.items():
        if 2 * sum(test(line) is not None for line in some) > len(some):
            return name
    counted = [line for line in some if WORD_LINE.fullmatch(line) and len(line.split()) > 1 and line.split()[1].isdecimal()]
    return "words" if 2 * len(counted) > len(some) or only_words(lines, _SURELY) else ""


def _is_hownet2000(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether rows are a word, a part of speech and a DEF. A table has sememes in the second column, not one word in
    capitals in every line, and no commas or braces in the third."""
    if not all(len(row) == 3 and re.fullmatch("[A-Z]+", row[1].strip()) for row in rows):
        return False
    pairs, joined = (sum(any(mark in row[2] for mark in marks) for row in rows) for marks in ("|", ",{"))
    return joined > 0 and 2 * pairs > len(rows)


def only_words(lines: Sequence[str], fewest: int = _FEWEST_RECORDS) -> bool:
    """Return whether each line is one name and names hardly repeat, which is typical of words but not of sememes."""
    kept = [line.strip() for line in lines if line.strip()]
    several = sum(len(line.split()) > 1 for line in kept)
    second = kept[1::2]
    return len(second) >= fewest and 10 * several < len(kept) and 10 * len(set(second)) > 9 * len(second)


def other_form(path: Path, form: str) -> str:
    """Return the format that a file seems to have, and the option to type for it."""
    if form == "cilin":
        script = '{for (i = 2; i <= NF; i++) print $i "\\t" $1}'
        use = f"make a table of it, {typed('awk', script, path)} > cilin.tsv, and use table:cilin.tsv"
    else:
        use = ("for --lexicon use " if form == "words" else "use ") + typed(f"{form}:{path}")
    instead = "; if every second line is a sememe, write word TAB sememe and use table:FILE" if form == "words" else ""
    return f"{path}: seems to be {_NAMES[form]}; {use}{instead}"


def likely_format(path: Path) -> str:
    """Return the format to name as an example for a file, by its first lines; the reader reports other likely formats."""
    try:
        with path.open("rb") as stream:
            lines = split_lines(stream.read(1 << 16).decode(errors="replace"))[:400]
    except OSError:  # such as a folder
        return "table"
    if (form := seems(lines)) and form != "cilin":
        return form
    if not form and only_words(lines):
        return "words"
    words = [line for line in lines[:2] if line.strip()]  # released lists begin with a blank line
    return "list" if form != "cilin" and words and "\t" not in words[0] else "table"
