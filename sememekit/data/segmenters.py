"""Open the segmenter of prepared data or of a run from its folder, which stores words, model and description."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from sememekit.config import check_code
from sememekit.data.signature import Signature
from sememekit.errors import DataError
from sememekit.files import read_bytes
from sememekit.sememes import words_of_lexicons
from sememekit.text.huggingface import PIECES
from sememekit.text.maximum_matching import cuts_latin
from sememekit.text.pieces import whole_words
from sememekit.text.segmenters import Segmenter, knows_words, open_segmenter

LEXICON: Final = "lexicon.txt"
"""The words of the lexicon of prepared data, sorted, a line each; its SHA-256 is ``Signature.lexicon``."""
MODEL: Final = "sentencepiece.model"
MODELS: Final = {"sentencepiece": MODEL, "hf": PIECES}  # segmenter -> the file of its model in prepared data and runs


def words_of_pieces(signature: Signature, tokens: Sequence[str]) -> Mapping[str, str | None]:
    """Return for pieces of a tokenizer the word that each spells (``whole_words``); empty for data of words."""
    in_pieces = signature.options.get("segmenter") in MODELS
    return dict(zip(tokens, whole_words(tokens), strict=True)) if in_pieces else {}


def recorded_name(signature: Signature, where: Path) -> str:
    """The name of the segmenter in the signature ``where``. ConfigError: it is untrusted code. DataError: it has none."""
    name = signature.options.get("segmenter")
    if not isinstance(name, str):
        raise DataError(f"{where} names no segmenter; the file was changed after it was written")
    check_code({"options.segmenter": name}, str(where))
    return name


def segmenter_for(
    name: str, *, lexicon: str | Sequence[str] | None = None, hmm: bool = False, model: Path | str | None = None
) -> Segmenter:
    """Return a segmenter of ``sememekit.text.segmenters.SEGMENTERS``, or ``package.module:Class``, with the words of a lexicon.

    ``lexicon``, one or several ``FORMAT:PATH`` or ``open``, is for ``fmm`` (``open`` by default) and for ``jieba``;
    ``hmm`` lets jieba guess other words; ``model`` is a file of ``MODELS``. Raises ConfigError: an unknown name, or a missing
    part. Raises DataError: a lexicon or a model that cannot be read."""
    knows = name == "fmm" or (name == "jieba" and lexicon not in (None, "none", ["none"]))
    words = words_of_lexicons(lexicon or "open") if knows else None
    return open_segmenter(name, words=words, hmm=hmm, model=Path(model) if model is not None else None)


def recorded_segmenter(signature: Signature, where: Path, *, words: Iterable[str] | None = None) -> Segmenter:
    """Return the segmenter of some data; its description must equal the signature's, read from the file ``where``.

    The segmenter uses the words stored beside the signature; ``words`` from a user must be equal. Raises ConfigError: the
    signature names code that is not trusted. Raises DataError: the segmenter cannot be opened, or its description differs."""
    name, folder, given, model = recorded_name(signature, where), where.parent, words is not None, None
    if not given:
        words = kept_words(folder, signature)
    elif not knows_words(signature.segmenter):
        words = None
    if name in MODELS and not (model := folder / MODELS[name]).is_file():
        raise DataError(
            f"{folder}: has no {MODELS[name]}, by which its text was cut; copy the folder again from where it came from"
        )
    hmm = bool(signature.options.get("hmm"))
    segmenter = open_segmenter(
        name, words=None if words is None else frozenset(words), hmm=hmm, model=model, cut_latin=cuts_latin(signature.segmenter)
    )
    if segmenter.description == signature.segmenter:
        return segmenter
    told = f"{folder}: its text was cut by: {signature.segmenter}; here it would be cut by: {segmenter.description}"
    if given:
        raise DataError(f"{told}; the folder keeps the words that it was cut with: leave --lexicon out")
    raise DataError(f"{told}; use the versions of sememekit and of the segmenter that it was cut with")


def kept_words(folder: Path, signature: Signature) -> frozenset[str] | None:
    """Return the words of the lexicon in a folder; None without one. DataError: the file is missing or was changed."""
    if signature.lexicon is None:
        return None
    path = folder / LEXICON
    content = read_bytes(path, lambda why: DataError(f"{why}; copy the folder again from where it came from"))
    if hashlib.sha256(content).hexdigest() != signature.lexicon:
        raise DataError(
            f"{path}: changed or damaged after it was written, its SHA-256 differs from the lexicon's in the signature; "
            "copy the folder again from where it came from"
        )
    return frozenset(content.decode().split("\n"))


def lexicon_bytes(words: Iterable[str]) -> bytes:
    """The content of ``lexicon.txt``."""
    return "\n".join(sorted(words)).encode()
