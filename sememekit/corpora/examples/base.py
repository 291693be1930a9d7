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
    """A data set of examples. A subclass sets the attributes; it needs methods only for special file formats.

    class Reviews(ExampleSet):
        texts, headers = ("text",), (("text", "review"),)
        columns = ("text", "label")"""

    texts: ClassVar[tuple[str, ...]]
    """The name of each text of an example, in the order in which a task takes them."""
    headers: ClassVar[tuple[tuple[str, ...], ...]]
    """For each text the possible names of its column (or key of JSON lines), best first."""
    label_headers: ClassVar[tuple[str, ...]] = ("label",)
    """Possible names of the label; empty for examples without labels."""
    columns: ClassVar[tuple[str, ...]]
    """The order of columns in tables without a header, by the names of ``texts`` and "label"."""
    labels: ClassVar[tuple[str, ...] | None] = None
    """The allowed labels by id; None for the sorted labels of train."""
    spelled: ClassVar[Mapping[str, str]] = {}
    """Other spellings of labels."""
    left_out: ClassVar[frozenset[str]] = frozenset()
    """Labels whose examples are counted and left out."""
    beside: ClassVar[tuple[str, ...]] = ()
    """For parallel files, the beginning of the name of each, in the order of ``columns``; otherwise empty."""
    split_names: ClassVar[Mapping[str, tuple[str, ...]]] = SPLIT_NAMES
    """For each split the possible parts of its file name, in lower case, between ``.``, ``_`` and ``-``."""
    break_mark: ClassVar[bool] = False
    """True if ``<br />`` stands for white space."""
    segmenters: ClassVar[tuple[str, ...]] = ("english", "english-cased", "none", "jieba", "fmm", "characters", "sentencepiece")
    normalisation: str = "white space to one blank"
    default_lexicon: ClassVar[str | None] = None
    cuts_latin: ClassVar[bool] = False
    """segmenters, normalisation, default_lexicon, cuts_latin: as in ``Corpus``."""
    marks: ClassVar[tuple[str, ...]] = ()
    """Words inserted between the parts of a text, which no segmenter cuts."""
    keeps_text: ClassVar[bool] = False
    """True if source words and references are stored beside the ids."""
    predicted: ClassVar[int | None] = None
    """The text that models predict word by word, followed by ``</s>``; None for labels."""
    vocabulary_of_train: ClassVar[bool] = False
    """True if the vocabulary is counted on train alone; otherwise on all splits."""
    held_out_stays_out: ClassVar[bool] = False
    """True if training examples that occur in valid or test are counted and left out."""
    test_only: ClassVar[bool] = False
    """True if the set is a test set, which needs the vocabulary of other data."""
    parts: ClassVar[tuple[str, ...]] = ()
    """File names of a set that is already divided, so that none of these files is divided; otherwise empty."""
    part_begins: ClassVar[bytes] = b""
    """First bytes of these files."""
    proportions: ClassVar[tuple[int, int, int]] = (90, 5, 5)
    in_order: ClassVar[bool] = False
    """proportions, in_order: proportions for dividing one file, and whether to divide it in file order."""

    def default_source(self) -> Path | None:
        """Return the default file; None if a file is required."""
        return None

    def text(self, value: str) -> str:
        """Return a text in one line, with single blanks and without end marks."""
        value = value.removeprefix("\ufeff")
        return " ".join(without_ends(value.replace("<br />", " ") if self.break_mark else value).split())

    def beside_names(self, name: str) -> list[str]:
        """Return the names of the parallel files of ``name``, itself included, in the order of ``columns``."""
        if not self.beside or not name.startswith(self.beside[0]):
            return [name]
        rest = name[len(self.beside[0]) :]
        return [start + rest for start in self.beside]

    def reads_folder(self, path: Path) -> bool:
        """Return whether a path is a folder that holds a folder of texts for each label, as in ``aclImdb/train``."""
        return len(self.texts) == 1 and bool(self.label_headers) and path.is_dir() and any(map(Path.is_dir, path.iterdir()))

    def is_beside(self, name: str) -> bool:
        """Return whether a file is a parallel file but not the first."""
        return bool(self.beside) and name.startswith(self.beside[1:])

    def rows(self, files: Sequence[Opened], split: str | None, faults: FaultCounter, left_out: Counter[str]) -> Iterator[Row]:
        """Yield the examples of a plain file, or of parallel files; ``split`` is None for a file that will be divided.

        ``faults`` handles invalid bytes, ``left_out`` counts reasons for leaving out examples. Raises DataError, with file and
        line, for a row of another form."""
        return iter(RowReader(files, self, faults))
