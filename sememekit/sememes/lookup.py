"""What lexicons know of a word, and what is wrong with the open lexicon: the reports of ``lookup`` and how they are found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sememekit.config import Record, resources_folder
from sememekit.errors import DataError
from sememekit.sememes import Sense, Side, open_lexicons
from sememekit.sememes.building import spellings
from sememekit.sememes.definitions import DefinitionNode, parse_definition
from sememekit.sememes.formats.open_lexicon import MAX_SEMEMES, Fault, scan_open_lexicon
from sememekit.sememes.overlay import near_spellings
from sememekit.sememes.special_tokens import SpecialTokens
from sememekit.sememes.word_entry import Source


class DefinitionTree(Record):
    """One node of a DEF: ``relation`` is how it hangs from its parent (``agent``, ``#``, or empty)."""

    relation: str
    sememe: str
    """``english|中文``, a sign such as ``~`` that points back, or empty for a bracket around several."""
    children: tuple[DefinitionTree, ...] = ()


class LookupSense(Record):
    """One sense in one lexicon."""

    source: str
    """``format:file``, or "special token"."""
    word: str
    """As the lexicon spells it; a full-width word may be found in half width."""
    part_of_speech: str
    gloss: str
    sememes: tuple[str, ...]
    definition: str
    tree: tuple[DefinitionTree, ...]
    """Of the definition; empty where the lexicon has none."""
    definition_fault: str
    """Why the definition is no tree, or empty."""


class LookupReport(Record):
    """What the lexicons know of a word. A graph takes the senses of the first source in which any has sememes."""

    word: str
    sources: tuple[str, ...]
    """The lexicons that were asked."""
    senses: tuple[LookupSense, ...]
    nearest: tuple[str, ...]
    """Similar words of the lexicons, best first; only when the word is unknown."""


class CheckReport(Record):
    """What the open lexicon holds and what is wrong with it."""

    folder: str
    ok: bool
    """No fault at all."""
    faults: tuple[Fault, ...]
    files: tuple[str, ...]
    entries: int
    words: int
    senses: int
    """Entries with different sememes, word by word; what a graph makes of them."""
    sememes: int
    max_sememes: int
    unused_sememes: tuple[str, ...]
    entries_by_part_of_speech: dict[str, int]


def lookup(word: str, sources: Sequence[str] = ("open",), *, side: Side = "chinese") -> LookupReport:
    """Look a word up in each lexicon; an entry that a lexicon repeats word for word is shown once.

    The word is written as in a text; ASCII in half or full width is the same. Special tokens such as ``<N>`` have senses, too.
    Raises ConfigError, DataError: as ``open_lexicon``."""
    word = word.strip()
    lexicons = open_lexicons(sources, side)
    senses: list[LookupSense] = []
    special = SpecialTokens(lexicons).sememes_of(word)
    if special is not None:
        senses.append(_describe(Source.SPECIAL, Sense(word, special)))
    for lexicon in lexicons:
        for spelling in spellings(word):
            senses.extend(_describe(lexicon.name, sense) for sense in dict.fromkeys(lexicon.senses(spelling)))
    return LookupReport(
        word=word,
        sources=tuple(lexicon.name for lexicon in lexicons),
        senses=tuple(senses),
        nearest=() if senses else near_spellings(word, (other for lexicon in lexicons for other in lexicon.words)),
    )


def check_open_lexicon(folder: Path | None = None) -> CheckReport:
    """Read an open lexicon, by default that of sememekit, and list every fault instead of stopping at the first. Raises
    DataError: there is no such folder, no inventory, no file of entries, or a file is not UTF-8."""
    folder = folder or resources_folder() / "lexicon"
    scan = scan_open_lexicon(folder)
    used = {name for sense in scan.senses for name in sense.sememes}
    return CheckReport(
        folder=str(folder),
        ok=not scan.faults,
        faults=scan.faults,
        files=tuple(path.name for path in scan.files),
        entries=len(scan.senses),
        words=len({sense.word for sense in scan.senses}),
        senses=len({(sense.word, sense.sememes) for sense in scan.senses}),
        sememes=len(scan.inventory),
        max_sememes=MAX_SEMEMES,
        unused_sememes=tuple(name for name in scan.inventory if name not in used),
        entries_by_part_of_speech=dict(sorted(Counter(sense.part_of_speech for sense in scan.senses).items())),
    )


def _describe(source: str, sense: Sense) -> LookupSense:
    tree: tuple[DefinitionTree, ...] = ()
    fault = ""
    if sense.definition:
        try:
            tree = tuple(_tree(node) for node in parse_definition(sense.definition))
        except DataError as error:
            fault = str(error)
    return LookupSense(source=source, tree=tree, definition_fault=fault, **vars(sense))


def _tree(node: DefinitionNode) -> DefinitionTree:
    """``~`` and ``?`` are the sememe where there is no name, and part of the relation where there is one."""
    has_name = bool(node.sememe) or node.is_group
    relation = " ".join(part for part in (node.relation, node.marks if has_name else "") if part)
    return DefinitionTree(
        relation=relation,
        sememe=node.sememe if has_name else node.marks,
        children=tuple(_tree(child) for child in node.children),
    )
