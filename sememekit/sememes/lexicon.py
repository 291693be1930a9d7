"""The form that all lexicons are read into: words, their senses, and the sememes of each sense."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from sememekit import config

CHINESE_RUN = re.compile("[\u4e00-\u9fa5]+")
"""The released code takes every maximal run of these characters in a DEF as one sememe (LM/hownet.py of SDLM)."""

PAIR = re.compile("([A-Za-z0-9][A-Za-z0-9_.'-]*(?: [A-Za-z0-9_.'-]+)*)\\|([\u4e00-\u9fa5]+)")  # ``english|中文`` inside a DEF


@dataclass(frozen=True)
class Sense:
    """One sense of one word, with a sorted set of sememes.

    The set may be empty: HowNet has definitions in English only, such as ``{partner}``. A graph leaves such a sense out."""

    word: str
    sememes: tuple[str, ...]
    part_of_speech: str = ""
    gloss: str = ""
    definition: str = ""
    """The DEF as the file gives it, or an empty string."""
    gloss_zh: str = field(default="", compare=False)
    """The Chinese gloss of the open lexicon, or an empty string."""
    example: str = field(default="", compare=False)
    """Words between blanks in which the sense is meant, or an empty string."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sememes", tuple(sorted(set(self.sememes))))


Side = Literal["chinese", "english"]  # the language of the words to read from a bilingual lexicon


class LexiconReport(config.Record):
    """Counts of a file; everything that is left out is counted."""

    records: int
    """Entries in the file, those skipped included."""
    words: int
    senses: int
    sememes: int
    skipped: dict[str, int] = Field(default_factory=dict)
    """Entries that gave no sense, by reason."""
    empty_bags: int = 0
    """Senses without a sememe; a graph drops them."""
    duplicates: int = 0
    """Senses that equal another in word, part of speech, gloss and definition; a graph merges them."""
    examples: tuple[str, ...] = ()
    """The first few skipped entries, as ``file:line: reason``."""
    notes: tuple[str, ...] = ()
    """Remarks, such as on encoding and download."""


class Lexicon:
    """An immutable dictionary: word -> senses, in the order of the file.

    ``name`` is ``format:file``; ``inventory`` has the sememes that the file declares, if any, whether used or not. ``lend``
    returns the senses that a word gets from its lemma, which has the given senses (default: the same senses).
    ``shuffle_seed`` is for exchanging the senses of words of like frequency in a graph; None: no exchange."""

    def __init__(
        self,
        name: str,
        sha256: str,
        senses: Mapping[str, tuple[Sense, ...]],
        report: LexiconReport,
        inventory: Sequence[str] = (),
        *,
        lend: Callable[[tuple[Sense, ...], str], tuple[Sense, ...]] = lambda senses, word: senses,
        shuffle_seed: int | None = None,
    ) -> None:
        self.name, self.sha256, self.report, self.inventory = name, sha256, report, tuple(inventory)
        self.lend, self.shuffle_seed = lend, shuffle_seed
        self._senses = dict(senses)

    @property
    def words(self) -> KeysView[str]:
        return self._senses.keys()

    @property
    def num_senses(self) -> int:
        return self.report.senses

    def senses(self, word: str) -> tuple[Sense, ...]:
        """The senses of a word in the order of the file; empty for an unknown word."""
        return self._senses.get(word, ())

    def __len__(self) -> int:
        return len(self._senses)

    def __contains__(self, word: object) -> bool:
        return word in self._senses

    def __repr__(self) -> str:
        return f"Lexicon({self.name!r}, {len(self)} words, {self.num_senses} senses)"


Entry = Sense | str  # a sense, or the reason why an entry of a file gives none


def lexicon_of(
    records: Iterable[tuple[int, Entry]],
    path: Path,
    name: str,
    sha256: str,
    notes: Sequence[str] = (),
    inventory: Sequence[str] = (),
) -> Lexicon:
    """Return the lexicon of (line, record) of the file at ``path``, with counts of its senses and faults."""
    senses, skipped, examples = dict[str, list[Sense]](), Counter[str](), list[str]()
    for line, record in records:
        if isinstance(record, Sense):
            senses.setdefault(record.word, []).append(record)
            continue
        skipped[record] += 1
        if len(examples) < 5:
            examples.append(f"{path}:{line}: {record}")
    every = [sense for entries in senses.values() for sense in entries]
    report = LexiconReport(
        records=len(every) + skipped.total(),
        words=len(senses),
        senses=len(every),
        sememes=len({sememe for sense in every for sememe in sense.sememes}),
        skipped=skipped,
        empty_bags=sum(not sense.sememes for sense in every),
        duplicates=len(every) - len(set(every)),
        examples=tuple(examples),
        notes=tuple(notes),
    )
    return Lexicon(name, sha256, {word: tuple(entries) for word, entries in senses.items()}, report, inventory)


class LexiconReader(ABC):
    """Reads one format. A new format is one file with a subclass and one line in ``LEXICON_FORMATS``."""

    class Settings(config.Settings):
        """Options of the format; most have none."""

    format_name: str
    has_sememes: ClassVar[bool] = True
    """False for a list of words, which only segmenters take."""
    default_path: ClassVar[str | None] = None
    """Default path, maybe with ``~``; None if a path is required."""

    def __init__(self, path: Path, settings: Settings) -> None:
        self.path = path
        self.settings = settings

    @abstractmethod
    def read(self) -> Lexicon:
        """Read the whole lexicon. Raises DataError with the file, the line (if any), the text found and the form expected."""
