"""The part-of-speech codes of the open lexicon, a subset of those of the People's Daily corpus with one meaning each."""

PARTS_OF_SPEECH: dict[str, str] = {
    "n": "noun",
    "v": "verb",
    "a": "adjective",
    "d": "adverb",
    "r": "pronoun",
    "m": "numeral",
    "q": "measure word",
    "p": "preposition",
    "c": "conjunction",
    "u": "particle",
    "f": "localiser",
    "t": "time word",
    "w": "punctuation",
    "k": "affix",
    "e": "exclamation",
    "i": "idiom or fixed phrase",
    "o": "other",
}
"""Code -> name."""
