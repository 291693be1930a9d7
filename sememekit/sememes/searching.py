"""Search lexicons by sememes: words with a sememe, words with similar sememes, differences, several lexicons in one."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from sememekit.config import Record
from sememekit.errors import ConfigError, DataError
from sememekit.files import TABLE, check_output, read_text, warn, write_output
from sememekit.files.tables import table_rows, tsv_text
from sememekit.sememes import Lexicon, Sense, Side, open_lexicons
from sememekit.sememes.building import spellings
from sememekit.sememes.graph import graph_at
from sememekit.sememes.lexicon import PAIR
from sememekit.sememes.overlay import near
from sememekit.text.scripts import traditional_hint
from sememekit.text.vocabulary import parse_number

DUMP_HEADER: Final = "word\tpos\tgloss\tsememes\tdef"
"""Columns of a file that ``dump_lexicons`` writes; ``table:FILE`` reads it."""


class FoundSense(Record):
    """A sense that was found, with its similarity (0 to 1) to the queried sense, if any, and the shared sememes."""

    word: str
    source: str
    part_of_speech: str
    gloss: str
    sememes: tuple[str, ...]
    similarity: float | None = None
    shared: tuple[str, ...] = ()


class SearchReport(Record):
    """The query, the number of matching words, and the senses of the first ones."""

    asked: tuple[str, ...]
    sources: tuple[str, ...]
    num_words: int
    senses: tuple[FoundSense, ...]


class ChangedWord(Record):
    """A word with different sets of sememes in two lexicons: the sets in one alone, with blanks between sememes."""

    word: str
    first_only: tuple[str, ...]
    second_only: tuple[str, ...]


class DiffReport(Record):
    """The differences of two lexicons in words and in sets of sememes of senses; parts of speech and glosses do not count."""

    first: str
    second: str
    """first, second: the lexicons."""
    words: tuple[int, int]
    senses: tuple[int, int]
    sememes: tuple[int, int]
    """words, senses, sememes: counts in the first and the second; each distinct set of sememes of a word is a sense."""
    num_same: int
    """Words with the same sets in both lexicons."""
    num_first_only: int
    num_second_only: int
    num_changed: int
    """num_first_only, num_second_only, num_changed: words in only one lexicon, and words with different sets."""
    first_only: tuple[str, ...]
    second_only: tuple[str, ...]
    """first_only, second_only: words in only one lexicon, in its order."""
    changed: tuple[ChangedWord, ...]
    """Every word with different sets."""
    sememes_first_only: tuple[str, ...]
    sememes_second_only: tuple[str, ...]
    """sememes_first_only, sememes_second_only: sememes that only one lexicon uses."""


class DumpReport(Record):
    """The file that was written; ``renamed`` counts names of sememes whose blanks became ``_``."""

    file: str
    sources: tuple[str, ...]
    words: int
    senses: int
    renamed: int


def words_with(
    sememes: Sequence[str], sources: Sequence[str] = ("open",), *, side: Side = "chinese", top: int = 0
) -> SearchReport:
    """Return words that have all given sememes in one sense; one side of a name such as ``fruit|水果`` is enough.

    ``top``: number of words to list, 0 for all. Raises ConfigError: a sememe that no lexicon has, with the nearest ones. Raises
    DataError: as ``open_lexicon``.

    >>> words_with(["fruit"]).senses[0].sememes
    ('fruit|水果',)"""
    senses = list(senses_of(open_lexicons(sources, side)))
    known = _by_side(sense for _, sense in senses)
    wanted = []
    for asked in sememes:
        names = known.get(asked) or known.get(asked.partition("|")[2])
        if not names:
            told = f"no sememe {asked!r} in {', '.join(sources)}{near(asked, known)}"
            raise ConfigError(f"{told}; 'sememekit lookup WORD' shows the sememes of a word")
        wanted.append(names)
    found = [_found(source, sense) for source, sense in senses if all(names & {*sense.sememes} for names in wanted)]
    return _report(sememes, sources, found, top)


def similar_words(
    word: str, sources: Sequence[str] = ("open",), *, side: Side = "chinese", top: int = 20, graph: Path | None = None
) -> SearchReport:
    """Return the words with the most similar sememes, each with its most similar sense.

    The similarity of two senses is 2 I(A and B) / (I(A) + I(B)) (Lin 1998), where A and B are their sememes, I is the sum of
    -log p(k), and p(k) is the share of senses with sememe k: sharing a rare sememe counts more. It is 1 for equal sets. ``top``
    words are listed, 0 for all with a sememe in common. Words come from ``sources``, or from a ``graph``: a file, or the folder
    of a run. Raises ConfigError: none has sememes for the word; DataError, GraphError: as ``open_lexicon`` and ``graph_at``."""
    asked, senses = _all_senses(sources, side, graph)
    own, weight = _own_senses(word, senses, asked), _weights(senses)
    found: dict[str, FoundSense] = {}
    for source, sense in senses:
        if sense.word == own[0].word:
            continue
        similarity, shared = max((_similarity(mine.sememes, sense.sememes, weight) for mine in own), key=lambda item: item[0])
        if shared and (sense.word not in found or similarity > (found[sense.word].similarity or 0.0)):
            found[sense.word] = _found(source, sense, similarity, shared)
    ranked = sorted(found.values(), key=lambda one: (-(one.similarity or 0.0), one.word))
    return _report((word,), asked, ranked, top)


class WordPair(Record):
    """Two words with the similarity of their best pair of senses, these senses, and the human judgement if there is one."""

    first: str
    second: str
    similarity: float
    sememes: tuple[tuple[str, ...], tuple[str, ...]]
    shared: tuple[str, ...]
    gold: float | None = None


class PairsReport(Record):
    """The similarities of pairs of words; ``unknown`` pairs have a word without sememes. ``spearman`` is the rank correlation
    with the judgements, over ``judged`` pairs; None without. ``spearman_of_characters``: the same of the Jaccard index of the
    characters of the words, a baseline without a lexicon."""

    sources: tuple[str, ...]
    pairs: tuple[WordPair, ...]
    unknown: tuple[tuple[str, str], ...]
    judged: int
    spearman: float | None
    spearman_of_characters: float | None = None


def similarity(
    pairs: Sequence[tuple[str, str, float | None]],
    sources: Sequence[str] = ("open",),
    *,
    side: Side = "chinese",
    graph: Path | None = None,
) -> PairsReport:
    """Compute the similarity of word pairs by their most similar senses, as in ``similar_words``.

    Raises ConfigError: a single pair has a word that no lexicon knows (with the nearest spellings).

    >>> similarity([("苹果", "水果", None)]).pairs[0].similarity
    1.0"""
    asked, senses = _all_senses(sources, side, graph)
    weight, by_word = _weights(senses), defaultdict[str, list[Sense]](list)
    for _, sense in senses:
        by_word[sense.word].append(sense)
    found, unknown = list[WordPair](), list[tuple[str, str]]()
    for first, second, gold in pairs:
        first, second = first.strip(), second.strip()
        of_pair = [next((by_word[form] for form in spellings(word) if form in by_word), []) for word in (first, second)]
        if not all(of_pair):
            if len(pairs) == 1:
                _own_senses(second if of_pair[0] else first, senses, asked)
            unknown.append((first, second))
            continue
        sides = [(one.sememes, other.sememes) for one in of_pair[0] for other in of_pair[1]]
        value, shared, best = max(((*_similarity(*both, weight), both) for both in sides), key=lambda item: item[0])
        found.append(WordPair(first=first, second=second, similarity=value, sememes=best, shared=shared, gold=gold))
    judged = [(one.gold, one.similarity, _alike(one.first, one.second)) for one in found if one.gold is not None]
    rho, trivial = (
        _spearman([one[0] for one in judged], [one[side] for one in judged]) if len(judged) > 2 else None for side in (1, 2)
    )
    return PairsReport(
        sources=asked,
        pairs=tuple(found),
        unknown=tuple(unknown),
        judged=len(judged),
        spearman=rho,
        spearman_of_characters=trivial,
    )


def _alike(first: str, second: str) -> float:
    return len({*first} & {*second}) / len({*first} | {*second})


_MISSING: Final = frozenset({"", "na", "n/a", "nan", "inf", "null", "none"})


def read_pairs(path: Path) -> list[tuple[str, str, float | None]]:
    """Read rows of two words and maybe a number, with tabs or blanks between, or a ``.csv``.

    A first row without a digit in its third cell is a header, which a RunWarning names. Raises DataError: another row."""
    text = read_text(path, lambda why: DataError(f"--pairs {why}"))
    pairs: list[tuple[str, str, float | None]] = []
    for place, (number, _, cells) in enumerate(table_rows(text, path)):
        first, *rest = row = [cell.strip() for cell in (cells if len(cells) > 1 else cells[0].split())]
        while rest and not rest[-1]:
            rest.pop()
        shown = " ".join(row)[:60]
        no_digit = len(rest) > 1 and not any(map(str.isdecimal, rest[1]))
        if place == 0 and no_digit and rest[1].strip("+-").casefold() not in _MISSING:
            warn(f"--pairs {path}:{number}: read as a header: {shown!r}")
            continue
        gold = parse_number(rest[1]) if len(rest) > 1 else None
        if not (first and rest and rest[0]) or (len(rest) > 1 and gold is None):
            wrong = f"; {rest[1]!r} is no number such as 8.5" if len(rest) > 1 else ""
            raise DataError(
                f"--pairs {path}:{number}: expected two words, and possibly a number behind them, tabs between, found {shown!r}"
                f"{wrong}; mend the line, or take it out"
            )
        pairs.append((first, rest[0], gold))
    if not pairs:
        raise DataError(f"--pairs {path}: no pairs; write two words and possibly a number on a line, tabs between")
    return pairs


def _spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Spearman's rank correlation, with mean ranks for ties; None if a side is constant."""
    unique = (np.unique(np.asarray(values), return_inverse=True, return_counts=True) for values in (first, second))
    ranks = [(np.cumsum(times) - (times - 1) / 2)[place] for _, place, times in unique]
    one, other = (rank - rank.mean() for rank in ranks)
    length = float(np.sqrt((one**2).sum() * (other**2).sum()))
    return float((one * other).sum()) / length if length else None


def _all_senses(sources: Sequence[str], side: Side, graph: Path | None) -> tuple[tuple[str, ...], list[tuple[str, Sense]]]:
    """Names of the lexicons, or of a graph, and (source, sense) of every annotated word in them."""
    if graph is None:
        return tuple(sources), list(senses_of(open_lexicons(sources, side)))
    entries = [entry for entry in graph_at(graph).entries() if entry.is_annotated]
    found = [(entry.source, Sense(entry.word, one.sememes, gloss=one.label)) for entry in entries for one in entry.senses]
    return (str(graph),), found


def _own_senses(word: str, senses: Sequence[tuple[str, Sense]], asked: Sequence[str]) -> list[Sense]:
    own = next((same for form in spellings(word.strip()) if (same := [one for _, one in senses if one.word == form])), [])
    if not own:
        hint = near(word, (sense.word for _, sense in senses))
        told = f"no sense of {word!r} with sememes in {', '.join(asked)}{hint}; add a lexicon with --source"
        raise ConfigError(told + traditional_hint([word]))
    return own


def _weights(senses: Sequence[tuple[str, Sense]]) -> dict[str, float]:
    """-log p(k) of each sememe."""
    counts = Counter(sememe for _, sense in senses for sememe in sense.sememes)
    return {sememe: math.log(len(senses) / count) for sememe, count in counts.items()}


def diff_lexicons(first: str, second: str, *, side: Side = "chinese") -> DiffReport:
    """Compare two lexicons, each ``FORMAT:PATH``. Raises ConfigError, DataError: as ``open_lexicon``."""
    one, other = open_lexicons([first, second], side)
    ours, theirs = sets = [
        {word: frozenset(sense.sememes for sense in lexicon.senses(word) if sense.sememes) for word in lexicon.words}
        for lexicon in (one, other)
    ]
    both = [word for word in ours if word in theirs]
    changed = [
        ChangedWord(
            word=word,
            first_only=tuple(" ".join(each) for each in sorted(ours[word] - theirs[word])),
            second_only=tuple(" ".join(each) for each in sorted(theirs[word] - ours[word])),
        )
        for word in both
        if ours[word] != theirs[word]
    ]
    first_only = tuple(word for word in ours if word not in theirs)
    second_only = tuple(word for word in theirs if word not in ours)
    used = [{sememe for bags in each.values() for bag in bags for sememe in bag} for each in sets]
    return DiffReport(
        first=one.name,
        second=other.name,
        words=(len(ours), len(theirs)),
        senses=(sum(map(len, ours.values())), sum(map(len, theirs.values()))),
        sememes=(len(used[0]), len(used[1])),
        num_same=len(both) - len(changed),
        num_first_only=len(first_only),
        num_second_only=len(second_only),
        num_changed=len(changed),
        first_only=first_only,
        second_only=second_only,
        changed=tuple(changed),
        sememes_first_only=tuple(sorted(used[0] - used[1])),
        sememes_second_only=tuple(sorted(used[1] - used[0])),
    )


def dump_lexicons(path: Path, sources: Sequence[str] = ("open",), *, side: Side = "chinese") -> DumpReport:
    """Write the senses of one or several lexicons to a table for ``table:FILE``.

    A word comes from the first lexicon in which it has sememes, as in a graph. Blanks in the name of a sememe become ``_``,
    since blanks separate names; tabs and line ends in a gloss become blanks. Raises ConfigError: the path holds something else.
    Raises ConfigError, DataError: as ``open_lexicon``."""
    check_output(path, TABLE)
    rows = [DUMP_HEADER.split("\t")]
    words, renamed = set[str](), set[str]()
    for _, sense in senses_of(open_lexicons(sources, side)):
        words.add(sense.word)
        renamed |= {sememe for sememe in sense.sememes if len(sememe.split()) > 1}
        sememes = " ".join("_".join(sememe.split()) for sememe in sense.sememes)
        rows.append([sense.word, sense.part_of_speech, sense.gloss, sememes, sense.definition])
    if not words:
        raise DataError(f"none of {', '.join(sources)} has a word with sememes; nothing was written")
    write_output(path, tsv_text(rows).encode(), TABLE)
    return DumpReport(file=str(path), sources=tuple(sources), words=len(words), senses=len(rows) - 1, renamed=len(renamed))


def senses_of(lexicons: Sequence[Lexicon]) -> Iterator[tuple[str, Sense]]:
    """Yield (lexicon, sense) of every word, from the first lexicon in which it has sememes; equal senses once."""
    done: set[str] = set()
    for lexicon in lexicons:
        entries = {word: [sense for sense in dict.fromkeys(lexicon.senses(word)) if sense.sememes] for word in lexicon.words}
        for word, senses in entries.items():
            if word not in done:
                yield from ((lexicon.name, sense) for sense in senses)
        done |= {word for word, senses in entries.items() if senses}


def _by_side(senses: Iterable[Sense]) -> dict[str, set[str]]:
    """Return the sememes of each name, or side of ``english|中文``; HowNet has English sides in definitions only."""
    found: dict[str, set[str]] = {}
    for sense in senses:
        for sememe in sense.sememes:
            for name in (sememe, *sememe.split("|")):
                found.setdefault(name, set()).add(sememe)
        for english, chinese in PAIR.findall(sense.definition):
            if chinese in sense.sememes:
                found.setdefault(english, set()).add(chinese)
    return found


def _similarity(mine: Sequence[str], other: Sequence[str], weight: Mapping[str, float]) -> tuple[float, tuple[str, ...]]:
    shared = tuple(sememe for sememe in mine if sememe in other)
    if {*mine} == {*other}:
        return 1.0, shared
    both = sum(weight[sememe] for sememe in mine) + sum(weight[sememe] for sememe in other)
    return 2.0 * sum(weight[sememe] for sememe in shared) / both if both else 0.0, shared


def _found(source: str, sense: Sense, similarity: float | None = None, shared: tuple[str, ...] = ()) -> FoundSense:
    given = {name: value for name, value in vars(sense).items() if name in FoundSense.model_fields}
    return FoundSense(source=source, similarity=similarity, shared=shared, **given)


def _report(asked: Sequence[str], sources: Sequence[str], found: Sequence[FoundSense], top: int) -> SearchReport:
    words = list(dict.fromkeys(sense.word for sense in found))
    listed = {*words[: top or None]}
    shown = tuple(sense for sense in found if sense.word in listed)
    return SearchReport(asked=tuple(asked), sources=tuple(sources), num_words=len(words), senses=shown)
