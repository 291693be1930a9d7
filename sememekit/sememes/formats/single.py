"""One sememe of its own for each word: the control in which words share nothing."""

from __future__ import annotations

import hashlib

from sememekit.errors import ConfigError
from sememekit.sememes.lexicon import Lexicon, LexiconReader, Sense, Side


class SingleSememes(Lexicon):
    """The words of another lexicon that have sememes there, each with one sense that has one sememe, the word itself.

    An inflected form that borrows the senses of its lemma gets a sememe of its own, too.
    """

    def __init__(self, reference: Lexicon) -> None:
        words = [word for word in reference.words if any(sense.sememes for sense in reference.senses(word))]
        digest = hashlib.sha256(f"single {reference.sha256}".encode()).hexdigest()
        senses = {word: (Sense(word, (word,)),) for word in words}
        super().__init__(f"single:{reference.name}", digest, senses, reference.report)

    def lend(self, senses: tuple[Sense, ...], word: str) -> tuple[Sense, ...]:
        return (Sense(word, (word,)),)


class SingleReader(LexiconReader):
    """``single:FORMAT:PATH``: for each word that the other lexicon knows, one sememe that no other word has."""

    format_name = "single"

    class Settings(LexiconReader.Settings):
        """They go to the lexicon whose words are taken."""

        side: Side = "chinese"
        yes_download: bool = False
        lemmas: str | None = None
        defining_words: int = 2000
        seed: int = 0

    settings: Settings

    def read(self) -> Lexicon:
        from sememekit.sememes import open_lexicons

        reference_name = str(self.path)
        if reference_name.partition(":")[0] == self.format_name:
            raise ConfigError(f"single:{reference_name}: single follows a lexicon, as in single:table:PATH")
        (reference,) = open_lexicons([reference_name], **self.settings.model_dump())
        return SingleSememes(reference)
