"""Pieces of tokenizers: their marks, and which of them are words."""

from collections.abc import Sequence
from typing import Final, Literal, get_args

from sememekit.errors import ConfigError
from sememekit.text.scripts import HAN

Blanks = Literal["auto", "always", "never"]
"""Blanks before words in running text: before all words except words that begin with a Chinese or Japanese character or
full-width mark; before all; or before none."""

_PRINTABLE: Final = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
BYTE_OF: Final = {chr(byte): byte for byte in _PRINTABLE} | {
    chr(0x100 + place): byte for place, byte in enumerate(sorted({*range(0x100)}.difference(_PRINTABLE)))
}
"""Character -> byte of byte-level tokenizers: printable bytes are themselves, others U+0100 and on."""

_MARKS: Final = ("Ġ", "▁", "##", "</w>")


def whole_words(tokens: Sequence[str], blanks: Blanks = "auto") -> list[str | None]:
    """Return the word of each token without the marks of its tokenizer; None for a token inside a word.

    ``blanks``: as ``nn.Senses.of_tokenizer``. A word of one character is often cut off a longer one, in any text, so "auto"
    looks at Chinese tokens of several characters: text with blanks gives the mark to most of these, raw text to few."""
    if blanks not in get_args(Blanks):
        raise ConfigError(f"blanks={blanks!r}: allowed are {', '.join(get_args(Blanks))}")
    uses = {mark: sum(mark in token for token in tokens) for mark in _MARKS}
    mark = max(uses, key=lambda mark: uses[mark])

    def text_of(token: str) -> str:
        text = token.replace(mark, "")
        if mark == "Ġ":
            text = bytes(BYTE_OF[letter] for letter in text if letter in BYTE_OF).decode(errors="replace")
        return text

    chinese = {token: text for token in tokens if HAN.search(text := text_of(token))}
    several = [mark in token for token, text in chinese.items() if len(text) > 1] or [mark in token for token in chinese]
    is_raw = blanks == "never" or (blanks == "auto" and 2 * sum(several) < len(several))

    def word_of(token: str) -> str | None:
        if not uses[mark] or (token[0], token[-1]) == ("<", ">"):  # <unk>, <|endoftext|>
            return token
        if mark == "##":
            return token if token == mark or not token.startswith(mark) else None
        return (text_of(token) or None) if mark in token or (is_raw and token in chinese) else None

    return [word_of(token) for token in tokens]
