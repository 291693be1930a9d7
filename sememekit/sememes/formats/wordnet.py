"""WordNet as a lexicon, with synonyms in place of sememes: the control of Qin et al. 2020."""

from collections.abc import Iterator

from sememekit.errors import DataError
from sememekit.sememes.lexicon import Entry, Lexicon, LexiconReader, Sense, lexicon_of
from sememekit.sememes.wordnet import DEBIAN, WordNet, read_wordnet, wordnet_folder


class WordNetReader(LexiconReader):
    """A sense of a word is a synset that has further words; its "sememes" are these further words, in lower case.

    All words of a synset have one part of speech. Synsets of one word give no sense. All synonyms are taken. The released code
    took 1 to 4 at random, regardless of the part of speech, and for half of its entries the sum of the whole vocabulary."""

    format_name = "wordnet"
    default_path = str(DEBIAN)

    def read(self) -> Lexicon:
        folder = wordnet_folder(str(self.path))
        wordnet = read_wordnet(str(folder))
        lexicon = lexicon_of(_records(wordnet), folder, f"{self.format_name}:{folder.name}", wordnet.sha256)
        if not lexicon.words:
            raise DataError(f"WordNet {folder}: no synset with two words")
        return lexicon


def _records(wordnet: WordNet) -> Iterator[tuple[int, Entry]]:
    for number, synset in enumerate(wordnet.synsets, start=1):
        words = tuple(dict.fromkeys(word.lower() for word in synset.words))
        if len(words) == 1:
            yield number, "synset of one word"
        for word in words if len(words) > 1 else ():
            others = tuple(other.replace(" ", "_") for other in words if other != word)
            yield number, Sense(word, others, synset.part_of_speech, synset.gloss)
