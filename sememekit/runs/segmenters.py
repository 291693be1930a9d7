"""The segmenter that cut the data of a run, and the form that its text was brought into."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from sememekit.config import check_code
from sememekit.data.prepared import Signature
from sememekit.errors import DataError
from sememekit.runs.build import LoadedRun
from sememekit.text.form import TextForm
from sememekit.text.segmenters import Segmenter, cuts_latin, open_segmenter
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
        name: one of ``sememekit.text.segmenters.SEGMENTERS``, or ``package.module:Class``.
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


def recorded_segmenter(loaded: LoadedRun, signature: Signature, lexicon: str | None) -> Segmenter:
    """The segmenter that the data were cut with.

    Raises:
        DataError: when it cannot be had again, or when it is another one by its description.
    """
    name, model = recorded_name(signature, loaded.folder.file("data.json")), None
    if name == "sentencepiece":
        model = loaded.folder.file("sentencepiece.model")
    segmenter = segmenter_for(name, lexicon=lexicon, hmm=bool(signature.options["hmm"]), model=model, like=signature.segmenter)
    if segmenter.description != signature.segmenter:
        raise DataError(
            f"{loaded.folder.path} was trained on text cut by: {signature.segmenter}; here it would be cut by: "
            f"{segmenter.description}; give the same lexicon with --lexicon FORMAT:PATH, or text with the words apart"
        )
    return segmenter
