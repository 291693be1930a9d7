"""Plain text of any language, one sentence a line."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Final, final

from sememekit.corpora.base import Corpus, text_size
from sememekit.corpora.places import files_of_place, is_folder, splits_of_folder
from sememekit.corpora.sources import SPLITS, CorpusFile, form_of
from sememekit.corpora.units import Unit
from sememekit.errors import ConfigError
from sememekit.text.form import TextForm
from sememekit.text.huggingface import HuggingFacePieces
from sememekit.text.segmenters import Segmenter
from sememekit.text.sentencepieces import SentencePieces

TEXT: Final = "text"  # the default column


@final
class Plain(Corpus):
    """Plain text: lines go to train, valid and test 90:5:5 by a seed, in order; a folder may have a file for each split.

    Text may be in many files: a folder, a pattern, an fsspec URL, or several of these for a split. File names with train, valid
    (validation, dev, val) or test as a part define splits; valid and test may be absent. From .jsonl, .ndjson, .json (an object
    a line) and .parquet files one column is read. Blank lines are skipped. The vocabulary comes from train alone. Options
    convert the text into the form of a benchmark: lower case, one word in place of every number
    (:class:`~sememekit.text.form.TextForm`), and no long sentences, in any split. With the vocabulary of other data, a text may
    be a test set alone."""

    segmenters = ("none", "characters", "fmm", "jieba", "sentencepiece")
    size_of = "source"
    end_of_sentence = True
    vocabulary_splits = ("train",)

    def __init__(
        self,
        source: Path | str | None,
        files: Mapping[str, Sequence[Path | str]] | None = None,
        column: str | None = None,
        *,
        has_vocabulary: bool = False,
    ) -> None:
        """Read ``source``, or the ``files`` of each split. With ``has_vocabulary`` (of other data) the text may have no train.
        Raises ConfigError: neither, or both, or no train where the vocabulary is to be counted."""
        if files and source is not None:
            raise ConfigError(f"preprocess plain {source}: either SOURCE or --train, --valid and --test; leave one out")
        if files and "train" not in files and not has_vocabulary:
            raise ConfigError(
                f"--{next(iter(files))}: --train is missing; name the files of train, too, or the run or data whose words are "
                "used: --vocabulary RUN"
            )
        if not files and source is None:
            wanted = "a text file, a pattern, a URL, or a folder, with train.txt, valid.txt and test.txt or of any text files"
            raise ConfigError(f"preprocess plain: SOURCE is missing; give {wanted}")
        self._source, self._files, self._has_vocabulary = source, dict(files or {}), has_vocabulary
        self.column: str = column or TEXT
        self._form = TextForm()
        self._max_length: int | None = None

    def with_rules(self, form: TextForm, max_length: int | None) -> "Plain":
        """Return this text brought into a form, without sentences of more than ``max_length`` words. Raises ConfigError for a
        replacement of numbers that is no word, or a length below 1."""
        if (numbers_to := form.numbers_to) is not None and numbers_to.split() != [numbers_to]:
            raise ConfigError(f"--numbers-to {numbers_to!r}: one word is needed, such as N")
        if max_length is not None and max_length < 1:
            raise ConfigError(f"--max-length {max_length}: 1 or more is needed")
        other = copy(self)
        other._form, other._max_length = form, max_length
        rules = form.rules + [f"sentences of more than {max_length} words left out"] * (max_length is not None)
        rules += [f"the column {self.column}"] * (self.column != TEXT)
        other.normalisation = "; ".join(rules) or Corpus.normalisation
        return other

    def sources(self) -> list[CorpusFile]:
        place = str(self._source)
        if self._files:
            named = [(split, str(each)) for split in SPLITS for each in self._files.get(split, ())]
            found = [CorpusFile(split, path) for split, each in named for path in files_of_place(each)]
        else:
            files = files_of_place(place)
            splits = splits_of_folder(place, files, needs_train=not self._has_vocabulary) if is_folder(place) else []
            found = splits or [CorpusFile(None, path) for path in files]
        if self.column != TEXT and not any(form_of(one.path.name)[1] for one in found):
            raise ConfigError(
                f"--column {self.column}: {found[0].path} has no columns, as .jsonl and .parquet files have; leave --column out"
            )
        return found

    def is_lines(self, segmenter: Segmenter) -> bool:
        return not self._form.changes and self._max_length is None

    def sentence(self, text: str) -> str | None:
        read = self._form.text(text).split()
        return None if not read or self._is_long(len(read)) else " ".join(read)

    def units(self, text: str, segmenter: Segmenter) -> Iterator[Unit]:
        words = self._form.cut(text, segmenter)
        left_out = False
        if self._max_length is not None:
            pieces = isinstance(segmenter, SentencePieces | HuggingFacePieces)
            left_out = self._is_long(len(self._form.text(text).split()) if pieces else len(words))
        yield Unit(words, *text_size(text.split()), left_out)

    def _is_long(self, words: int) -> bool:
        return self._max_length is not None and words > self._max_length
