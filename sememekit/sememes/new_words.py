"""New words for a trained run: a file of words, their senses from the file or from lexicons, and a larger graph."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from sememekit.errors import DataError
from sememekit.files import read_text
from sememekit.files.tables import list_items, names_of, table_rows, unguarded
from sememekit.sememes import SememeGraph, Side, build_graph, open_lemmas, open_lexicons
from sememekit.sememes.formats.records import COLUMNS
from sememekit.sememes.overlay import near
from sememekit.sememes.special_tokens import UNKNOWN
from sememekit.sememes.word_entry import LexiconSource, SenseEntry, Source, WordEntry
from sememekit.text.vocabulary import Vocabulary, parse_count

PRESENT: Final = "in the vocabulary already"
NEVER_READ: Final = "read as another word by the run"
NO_SEMEME: Final = "no sememe that the graph knows"


class NewWords(NamedTuple):
    """The new words of a file, as a run takes them."""

    # the words that can be added, sorted by spelling; an unannotated word has the one sense {``<unk>``}
    entries: tuple[WordEntry, ...]
    counts: dict[str, int]  # occurrences that the file states, by word
    refused: dict[str, tuple[str, ...]]  # cause -> the words that cannot be added
    dropped: tuple[str, ...]  # sememes that the graph does not know, of words that also have known sememes
    lexicons: tuple[LexiconSource, ...]  # the file and the lexicons of the call


def read_new_words(
    path: Path,
    graph: SememeGraph,
    sources: Sequence[str] = (),
    side: Side = "chinese",
    lemmas: str | None = None,
    read: Callable[[str], str] = str,
) -> NewWords:
    """Read a file of new words for a run that knows the words and the sememes of ``graph``.

    The file has a word on each line, or is a table with a header (``word``, and possibly ``sememes`` and ``count``) and a sense
    on each line. A word without sememes in the file is looked up in ``sources``, then its base form by ``lemmas``. One side of
    a name such as ``fruit|水果`` is enough. A word that the run reads as another, by its ``read``, is refused.

    Raises DataError: the file cannot be read, has no words, a count is no number, or no word of it can be added. Raises
    ConfigError, DataError: as ``open_lexicon``."""
    text = read_text(path, lambda why: DataError(f"--words {why}"))
    rows = list(table_rows(text, path, COLUMNS | {"count"}))
    if not rows:
        raise DataError(f"--words {path}: no words; write a word a line, or a table with the header word, sememes, count")
    header = names_of(rows[0].cells)
    if not (named := "word" in header):
        list_items(text, path)  # refuses a table
    words, counts, described = dict[str, None](), dict[str, int](), set[str]()
    for number, _, cells in rows[named:]:
        row = dict(zip(header if named else ("word",), map(unguarded, cells), strict=False))
        word = row.get("word", "").strip()
        if not word or (not named and len(cells) > 1):
            raise DataError(f"{path}:{number}: {'no word' if named else 'a tab, and no header'}; begin with: word TAB sememes")
        words[word] = None
        described |= {word} if row.get("sememes", "").strip() else set()
        if text := row.get("count", "").strip():
            if (count := parse_count(text)) is None:
                raise DataError(f"{path}:{number}: the count {text!r} is no whole number; leave it empty, or give 0 or more")
            counts[word] = max(count, counts.get(word, 0))
    never = tuple(word for word in words if read(word) != word and word not in graph.words)
    for word in never:
        del words[word]
    if never and not words:
        raise DataError(
            f"--words {path}: all {len(never):,} words are {NEVER_READ}, such as {never[0]!r} as {read(never[0])!r}"
        )
    if not words.keys() - set(graph.words):
        raise DataError(f"--words {path}: all {len(words):,} words are {PRESENT}; give words that the run does not know")
    asked = [*([f"table:{path}"] if "sememes" in header and named else []), *sources]
    new = new_words(words, graph, asked, side, lemmas, described)._replace(counts=counts)
    if never:
        new = new._replace(refused={**new.refused, NEVER_READ: never})
    if not new.entries:
        first = next(iter(new.dropped), UNKNOWN)
        raise DataError(
            f"--words {path}: none of its words can be added: {len(new.refused.get(PRESENT, ())):,} are {PRESENT}, and "
            f"{len(new.refused[NO_SEMEME]):,} have {NO_SEMEME}, such as {first!r}{near(first, graph.sememes)}; use sememes "
            "that 'sememekit lookup WORD --graph RUN' shows, or a --source with these words"
        )
    return new


def new_words(
    words: Iterable[str],
    graph: SememeGraph,
    sources: Sequence[str],
    side: Side = "chinese",
    lemmas: str | None = None,
    described: Collection[str] = (),
) -> NewWords:
    """Look words up in lexicons, for a run that knows the words and the sememes of ``graph``; errors as ``open_lexicon``.

    A word without a sememe that the graph knows is refused if it is ``described``, else it is unannotated."""
    known, asked = set(graph.words), tuple(dict.fromkeys(words))
    absent = Vocabulary.from_counts({word: 0 for word in asked if word not in known})
    if sources and len(absent):
        opened = None if lemmas is None else open_lemmas(lemmas)
        built = build_graph(absent, open_lexicons(sources, side, lemmas=lemmas), opened)
        found, origins = tuple(built.entries()), built.lexicons
    else:
        found, origins = tuple(_unannotated(word) for word in absent.tokens), ()
    dropped: dict[str, None] = {}
    sides = [(side, name) for name in graph.sememes for side in name.split("|")]
    times = Counter(side for side, _ in sides)
    spelled = {side: name for side, name in sides if times[side] == 1} | {name: name for name in graph.sememes}
    fitting = [
        _fitting(entry, spelled, dropped) or (None if entry.word in described else _unannotated(entry.word)) for entry in found
    ]
    refused = {
        PRESENT: tuple(word for word in asked if word in known),
        NO_SEMEME: tuple(entry.word for entry, kept in zip(found, fitting, strict=True) if kept is None),
    }
    entries = tuple(entry for entry in fitting if entry is not None)
    return NewWords(entries, {}, {cause: each for cause, each in refused.items() if each}, tuple(dropped), origins)


def _unannotated(word: str) -> WordEntry:
    return WordEntry(word, Source.NONE, (SenseEntry((UNKNOWN,), UNKNOWN),))


def _fitting(entry: WordEntry, spelled: dict[str, str], dropped: dict[str, None]) -> WordEntry | None:
    """Return the word with the sememes that the graph knows, or None if it knows none."""
    senses: dict[tuple[str, ...], SenseEntry] = {}
    for sense in entry.senses:
        places = {spelled[name]: place for name, place in sense.edges() if name in spelled}
        dropped |= dict.fromkeys(name for name in sense.sememes if name not in spelled)
        if names := tuple(sorted(places)):
            kept = tuple(places[name] for name in names)
            senses.setdefault(names, replace(sense, sememes=names, places=kept if any(kept) else ()))
    return replace(entry, senses=tuple(senses.values())) if senses else None


def larger_graph(graph: SememeGraph, vocabulary: Vocabulary, new: NewWords, record: str) -> SememeGraph:
    """Return the graph of a vocabulary with the words of ``graph`` and new ones; the sememes stay."""
    entries = {entry.word: entry for entry in (*graph.entries(), *new.entries)}
    lexicons = (*graph.lexicons, *(one for one in new.lexicons if one not in graph.lexicons))
    history = (*graph.history, record)
    return SememeGraph([entries[word] for word in vocabulary.tokens], vocabulary.fingerprint, lexicons, history)
