"""Controls for experiments: the words of another lexicon with random labels, with one unique sememe a word, or with the senses
of another word."""

import hashlib
from dataclasses import replace

import numpy as np

from sememekit.config import Seed
from sememekit.errors import ConfigError
from sememekit.sememes.lexicon import Lexicon, LexiconReader, Sense, Side


class RandomLabels(Lexicon):
    """The words and senses of another lexicon; random labels, drawn for each word, replace its sememes one to one.

    A word keeps its number of sememes, overall and by sense. Labels depend on the word and the seed alone, and are equally
    likely. An inflected form with the senses of its lemma gets separate labels."""

    def __init__(self, reference: Lexicon, seed: int) -> None:
        self._seed = seed
        inventory = {name for word in reference.words for sense in reference.senses(word) for name in sense.sememes}
        self._labels = tuple(f"label-{number}" for number in range(len(inventory)))
        senses = {word: self.lend(reference.senses(word), word) for word in reference.words}
        name = f"random:{reference.name}"
        digest = hashlib.sha256(f"{reference.sha256} {seed}".encode()).hexdigest()
        super().__init__(name, digest, senses, reference.report, self._labels)

    def lend(self, senses: tuple[Sense, ...], word: str) -> tuple[Sense, ...]:
        names = sorted({name for sense in senses for name in sense.sememes})
        key = hashlib.sha256(f"{self._seed} {word}".encode("utf-8", "surrogatepass")).digest()
        drawn = np.random.default_rng(int.from_bytes(key)).choice(len(self._labels), len(names), replace=False)
        label = {name: self._labels[number] for name, number in zip(names, drawn, strict=True)}
        return tuple(
            replace(sense, word=word, sememes=tuple(label[name] for name in sense.sememes), definition="") for sense in senses
        )


class SingleSememes(Lexicon):
    """Words, also inflected forms with the senses of their lemma, with one sense and one sememe: the word itself."""

    def lend(self, senses: tuple[Sense, ...], word: str) -> tuple[Sense, ...]:
        return (Sense(word, (word,)),)


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

    def reference(self) -> Lexicon:
        """The lexicon that is copied."""
        from sememekit.sememes import open_lexicons

        name, own = str(self.path), self.format_name
        if name.partition(":")[0] == own:
            raise ConfigError(f"{own}:{name}: {own} follows a lexicon, as in {own}:table:PATH")
        return open_lexicons([name], **self.settings.model_dump())[0]

    def read(self) -> Lexicon:
        return RandomLabels(self.reference(), self.settings.seed)


class SingleReader(RandomReader):
    """``single:FORMAT:PATH``: for each word that the other lexicon knows, one sememe that no other word has."""

    format_name = "single"

    def read(self) -> Lexicon:
        of = self.reference()
        words = [word for word in of.words if any(sense.sememes for sense in of.senses(word))]
        digest = hashlib.sha256(f"single {of.sha256}".encode()).hexdigest()
        return SingleSememes(f"single:{of.name}", digest, {word: (Sense(word, (word,)),) for word in words}, of.report)


class ShuffledReader(RandomReader):
    """``shuffled:FORMAT:PATH``: each word has all senses of another word of that lexicon with a similar frequency.

    Words exchange senses when a graph is built (``building.build_graph``). Each set of sememes keeps the number of words that
    have it, and about the number of their tokens; random labels keep neither."""

    format_name = "shuffled"

    def read(self) -> Lexicon:
        of, seed = self.reference(), self.settings.seed
        digest = hashlib.sha256(f"shuffled {of.sha256} {seed}".encode()).hexdigest()
        senses = {word: of.senses(word) for word in of.words}
        shuffled = Lexicon(f"shuffled:{of.name}", digest, senses, of.report, of.inventory)
        shuffled.shuffle_seed = seed
        return shuffled
