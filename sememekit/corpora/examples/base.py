"""The base class of sets of examples: the texts of an example, the labels, and where they are in a file."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from sememekit.corpora.examples.rows import Opened, Row, RowReader
from sememekit.corpora.sources import SPLIT_NAMES
from sememekit.text.form import without_ends
from sememekit.text.reading import FaultCounter
from sememekit.text.vocabulary import STOP

__all__ = ["START", "STOP", "ExampleSet", "Row"]

START = "<s>"


class ExampleSet:
    """A kind of examples. A subclass sets the attributes; a method is needed only for files of a form of their own.

        class Reviews(ExampleSet):
            texts, headers = ("text",), (("text", "review"),)
            columns = ("text", "label")

    Attributes:
        texts: the name of each text of an example, in the order in which a task takes them.
        headers: for each text, the names that a column (or a key of JSON lines) may have, best first.
        label_headers: the same for the label; empty for examples without labels.
        columns: the order of columns in tables without a header, by the names of ``texts`` and "label".
        labels: the labels allowed, in the order of their ids; None for the labels of the training split, sorted.
        spelled: other spellings of labels.
        left_out: labels of examples that are counted and left out.
        beside: for three files side by side, the beginning of the name of each, by the order of ``columns``; empty for none.
        split_names: for each split, parts that the name of its file may have, in lower case, between ``.``, ``_`` and ``-``.
        break_mark: whether ``<br />`` stands for white space.
        segmenters, normalisation, default_lexicon, cuts_latin: as in ``Corpus``.
        marks: words that a reader puts between the parts of a text; no segmenter cuts them.
        keeps_text: whether the words of the first text and the references are kept beside the ids.
        predicted: the text that models predict word by word, followed by ``</s>``; None where they predict labels.
        vocabulary_of_train: whether the vocabulary is counted on train alone; otherwise on all splits.
        held_out_stays_out: whether training examples that occur in valid or test are counted and left out.
        test_only: whether the set is a test set, which needs the vocabulary of other data.
        parts: names of the files of a set with a given division, so that one of them is not divided; empty for none.
        part_begins: the bytes that each of these files begins with.
        proportions, in_order: how one file is divided into train, valid and test, and whether in the order of the file.
    """

    texts: ClassVar[tuple[str, ...]]
    headers: ClassVar[tuple[tuple[str, ...], ...]]
    label_headers: ClassVar[tuple[str, ...]] = ("label",)
    columns: ClassVar[tuple[str, ...]]
    labels: ClassVar[tuple[str, ...] | None] = None
    spelled: ClassVar[Mapping[str, str]] = {}
    left_out: ClassVar[frozenset[str]] = frozenset()
    beside: ClassVar[tuple[str, ...]] = ()
    split_names: ClassVar[Mapping[str, tuple[str, ...]]] = SPLIT_NAMES
    break_mark: ClassVar[bool] = False
    segmenters: ClassVar[tuple[str, ...]] = ("english", "english-cased", "none", "jieba", "fmm", "characters", "sentencepiece")
    normalisation: str = "white space to one blank"
    default_lexicon: ClassVar[str | None] = None
    cuts_latin: ClassVar[bool] = False
    marks: ClassVar[tuple[str, ...]] = ()
    keeps_text: ClassVar[bool] = False
    predicted: ClassVar[int | None] = None
    vocabulary_of_train: ClassVar[bool] = False
    held_out_stays_out: ClassVar[bool] = False
    test_only: ClassVar[bool] = False
    parts: ClassVar[tuple[str, ...]] = ()
    part_begins: ClassVar[bytes] = b""
    proportions: ClassVar[tuple[int, int, int]] = (90, 5, 5)
    in_order: ClassVar[bool] = False

    def default_source(self) -> Path | None:
        """The file to read when none is named; None where one must be."""
        return None

    def text(self, value: str) -> str:
        """A text of the source in one line, with one blank for white space and without marks of its ends."""
        value = value.removeprefix("\ufeff")
        return " ".join(without_ends(value.replace("<br />", " ") if self.break_mark else value).split())

    def beside_names(self, name: str) -> list[str]:
        """Names of the files that are read together with the file ``name``, itself among them, in the order of ``columns``."""
        if not self.beside or not name.startswith(self.beside[0]):
            return [name]
        rest = name[len(self.beside[0]) :]
        return [start + rest for start in self.beside]

    def reads_folder(self, path: Path) -> bool:
        """Return whether a path is a folder with a folder of texts for each label, as in ``aclImdb/train``."""
        return len(self.texts) == 1 and bool(self.label_headers) and path.is_dir() and any(map(Path.is_dir, path.iterdir()))

    def is_beside(self, name: str) -> bool:
        """Whether a file is read together with another one, which is not the first."""
        return bool(self.beside) and name.startswith(self.beside[1:])

    def rows(self, files: Sequence[Opened], split: str | None, faults: FaultCounter, left_out: Counter[str]) -> Iterator[Row]:
        """The examples of one plain file, or of several side by side; ``split`` is None for a file that will be divided.

        ``faults`` say what to do about invalid bytes, ``left_out`` counts why examples are left out. Raises DataError for a row
        of another form, with file and line.
        """
        return iter(RowReader(files, self, faults))
