"""``sememekit segment``: text in, words between blanks out."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sememekit.config import check_code
from sememekit.errors import DataError
from sememekit.text import Signature
from sememekit.text.form import TextForm
from sememekit.text.reading import FaultCounter, read_stream
from sememekit.text.segment import Segmenter, cuts_latin, open_segmenter
from sememekit.training import RunFolder


def recorded_name(signature: Signature, where: Path) -> str:
    """The name of the segmenter that data were cut with, as a folder says it.

    Args:
        signature: of the data.
        where: the file that it was read from.

    Raises:
        ConfigError: it names code, which is not trusted.
        DataError: it names none.
    """
    name = signature.options.get("segmenter")
    if not isinstance(name, str):
        raise DataError(f"{where} names no segmenter; it was changed after writing")
    check_code({"options.segmenter": name}, str(where))
    return name


def recorded_form(folder: RunFolder) -> TextForm:
    """The form that the text of a run was brought into before it was cut; what is typed in has to be brought into it, too.

    Raises:
        DataError: data.json was changed after writing.
    """
    return TextForm.recorded(folder.data_signature().options, str(folder.file("data.json")))


def segmenter_for(
    name: str,
    *,
    lexicon: str | Sequence[str] | None = None,
    lexicon_words: Iterable[str] | None = None,
    hmm: bool = False,
    model: Path | str | None = None,
    like: str = "",
) -> Segmenter:
    """A segmenter by name, as the command line gives it.

    Args:
        name: one of ``sememekit.text.segment.SEGMENTERS``, or ``package.module:Class``.
        lexicon: ``FORMAT:PATH`` or ``open``, for ``fmm`` and ``jieba``, which takes its words for a dictionary; for ``fmm``
            ``open`` when neither this nor ``lexicon_words`` is given. Of several lexicons all words are taken.
        lexicon_words: the words themselves, in place of ``lexicon``.
        hmm: let jieba guess words outside its dictionary.
        like: description of a segmenter that this one is to cut alike, such as that of a run's data: earlier versions let
            ``fmm`` cut Latin words.
        model: a SentencePiece model, such as ``DIR/sentencepiece.model`` of a prepared-data folder.

    Raises:
        ConfigError: for another name, or when something that it needs is missing.
        DataError: for a lexicon or a model that cannot be read.
    """
    words = frozenset(lexicon_words) if lexicon_words is not None else None
    if words is None and (name == "fmm" or (name == "jieba" and lexicon not in (None, "none", ["none"]))):
        words = words_of_lexicons(lexicon or "open")
    model = Path(model) if model is not None else None
    return open_segmenter(name, words=words, hmm=hmm, model=model, cut_latin=cuts_latin(like))


def words_of_lexicons(specs: str | Sequence[str]) -> frozenset[str]:
    """All words of one lexicon, ``FORMAT:PATH``, or of several together.

    Raises:
        ConfigError, DataError: as ``open_lexicon``.
    """
    from sememekit.sememes import open_lexicon

    names = [specs] if isinstance(specs, str) else specs
    return frozenset(word for spec in names for word in open_lexicon(spec).words)


@contextmanager
def input_stream(file: Path | None) -> Iterator[BinaryIO]:
    """A file, or stdin for None, open for reading bytes.

    Raises:
        DataError: the file cannot be read.
    """
    if file is None:
        yield sys.stdin.buffer
        return
    try:
        opened = file.open("rb")
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror or error}") from None
    with opened:
        yield opened


def segment_stream(
    file: BinaryIO, segmenter: Segmenter, *, errors: str = "strict", name: str = "stdin", faults: FaultCounter | None = None
) -> Iterator[str]:
    """Segment a stream line by line; write what is yielded as it comes, line ends are in it.

    A line above 1 MiB is segmented in pieces, cut at white space or sentence marks, so memory stays bounded; its output is one
    line again. Each line of the input that is not left out gives one line of output.

    Args:
        file: open for reading bytes, such as ``sys.stdin.buffer``.
        segmenter: see :func:`segmenter_for`.
        errors: ``strict``, ``replace`` or ``skip`` for bytes that are not UTF-8 and for NUL.
        name: of the stream, for messages.
        faults: a counter to fill, in place of ``errors``.

    Raises:
        DataError: under ``strict``, for bytes that are not UTF-8 and for NUL, with the byte offset.
    """
    counter = faults if faults is not None else FaultCounter(errors)
    for piece in read_stream(file, lambda offset: name, counter):
        words = " ".join(segmenter.segment(piece.text))
        yield words + ("\n" if piece.ends_line else " ")
