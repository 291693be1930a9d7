"""Controls for experiments: words of another lexicon with random labels, one unique sememe a word, no
sememes, or another word's senses."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sememekit.config import Seed
from sememekit.errors import ConfigError
from sememekit.sememes.lexicon import Lexicon, LexiconReader, Sense, Side
from sememekit.text.vocabulary import UNKNOWN


class RandomReader(LexiconReader):
    """``random:FORMAT:PATH``: random labels, as many for each word as it has sememes in that lexicon.

    The number of different labels is the lexicon's number of sememes. (The released code gave 1 to 4 labels to every word.)"""

    format_name = "random"

    class Settings(LexiconReader.Settings):
        """``seed`` of the labels; the other settings are of the lexicon that is copied."""

        seed: Seed = 0
        side: Side = "chinese"
        yes_download: bool = False
        lemmas: str | None = None
        defining_words: int = 2000

    settings: Settings

    def read(self) -> Lexicon:
        from sememekit.sememes import open_lexicons

        name, own = str(self.path), self.format_name
        if name.partition(":")[0] == own:
            raise ConfigError(f"{own}:{name}: {own} follows a lexicon, as in {own}:table:PATH")
        return self.control(open_lexicons([name], **self.settings.model_dump())[0])

    def control(self, of: Lexicon) -> Lexicon:
        """Return the words and senses of a lexicon, with a label in place of each sememe.

        A word keeps its number of sememes, overall and by sense. Labels depend on the word and the seed alone, and are equally
        likely. An inflected form with the senses of its lemma gets separate labels."""
        seed, names = self.settings.seed, {name for word in of.words for sense in of.senses(word) for name in sense.sememes}
        labels = tuple(f"label-{number}" for number in range(len(names)))

        def labelled(senses: tuple[Sense, ...], word: str) -> tuple[Sense, ...]:
            names = sorted({name for sense in senses for name in sense.sememes})
            key = hashlib.sha256(f"{seed} {word}".encode("utf-8", "surrogatepass")).digest()
            drawn = np.random.default_rng(int.from_bytes(key)).choice(len(labels), len(names), replace=False)
            label = {name: labels[number] for name, number in zip(names, drawn, strict=True)}
            named = [tuple(label[name] for name in sense.sememes) for sense in senses]
            return tuple(replace(one, word=word, sememes=own, definition="") for one, own in zip(senses, named, strict=True))

        senses = {word: labelled(of.senses(word), word) for word in of.words}
        return self._made(of, f"{of.sha256} {seed}", senses, labels, lend=labelled)

    def _made(self, of: Lexicon, identity: str, senses: Mapping[str, tuple[Sense, ...]], *more: Any, **how: Any) -> Lexicon:
        digest = hashlib.sha256(identity.encode()).hexdigest()
        return Lexicon(f"{self.format_name}:{of.name}", digest, senses, of.report, *more, **how)


class SingleReader(RandomReader):
    """``single:FORMAT:PATH``: for each word that the other lexicon knows, one sememe that no other word has: the word itself.

    Inflected forms with the senses of their lemma have a sememe of their own, too."""

    format_name = "single"

    def control(self, of: Lexicon) -> Lexicon:
        def single(senses: tuple[Sense, ...], word: str) -> tuple[Sense, ...]:
            return (Sense(word, (self.sememe_of(word),)),)

        known = [word for word in of.words if any(sense.sememes for sense in of.senses(word))]
        return self._made(of, f"{self.format_name} {of.sha256}", {word: single((), word) for word in known}, lend=single)

    def sememe_of(self, word: str) -> str:
        return word


class BareReader(SingleReader):
    """``bare:FORMAT:PATH``: the words of the other lexicon with the one sememe ``<unk>``, as words without annotation have it.

    A model knows such a word by its characters and its count alone."""

    format_name = "bare"

    def sememe_of(self, word: str) -> str:
        return UNKNOWN


class ShuffledReader(RandomReader):
    """``shuffled:FORMAT:PATH``: each word has all senses of another word of that lexicon with a similar frequency.

    Words exchange senses when a graph is built (``building.build_graph``). Each set of sememes keeps the number of words that
    have it, and about the number of their tokens; random labels keep neither."""

    format_name = "shuffled"

    def control(self, of: Lexicon) -> Lexicon:
        seed, senses = self.settings.seed, {word: of.senses(word) for word in of.words}
        return self._made(of, f"shuffled {of.sha256} {seed}", senses, of.inventory, shuffle_seed=seed)
