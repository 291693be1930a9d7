"""The prepared-data folder: written by ``preprocess``, read by everything else.

    FOLDER/
    ├── vocabulary.tsv                        word TAB count, by id
    ├── train.bin, valid.bin, test.bin        raw little-endian ids, two bytes each when V <= 65536, otherwise four
    ├── signature.json                        where the text came from and what was done to it
    ├── signature.sha256                      SHA-256 of that file
    ├── sentencepiece.model, pieces.json      only with the segmenters sentencepiece and hf
    ├── lexicon.txt                           only with a lexicon: the words that the segmenter knew
    ├── chunks.tsv                            only with --chunks: the most frequent n-grams (``text/chunks.py``)
    ├── train.sentence-labels.txt             only for a column of labelled examples: the label of each sentence, one a line
    ├── train.offsets.bin, train.labels.bin   only for examples: where each text begins; their labels
    └── train.texts.jsonl, train.lines.bin    only for pairs: the source and the references as text

The folder has no dates and no absolute paths: same input, same bytes. Each split is compared with its SHA-256 in the signature
at first use; later replacements of the file are not read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from copy import copy
from itertools import chain
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from sememekit.data.examples import Examples, Originals, check_lines, example_files, mapped
from sememekit.data.segmenters import MODELS, kept_words, recorded_segmenter
from sememekit.data.signature import LABELS, SIGNATURE, Signature, read_signature, remedy
from sememekit.errors import DataError
from sememekit.files import has_sha256, opening, read_bytes
from sememekit.text.chunks import CHUNKS, ChunkVocabulary
from sememekit.text.form import TextForm
from sememekit.text.segmenters import Segmenter
from sememekit.text.vocabulary import Vocabulary

VOCABULARY: Final = "vocabulary.tsv"
HELD_OUT: Final = "held-out.tsv"
_TYPES: Final = {"offsets.bin": "<i8", "labels.bin": "<u2", "texts.jsonl": "u1", "lines.bin": "<i8"}
"""Number types of the files of examples, of each split."""


@final
class PreparedData:
    """A prepared-data folder; use :meth:`open`.

    data = PreparedData.open("data/ptb")
    ids, words = data.tokens("train"), data.vocabulary
    data.segmenter().segment("text that is cut as the data were")"""

    def __init__(self, folder: Path, vocabulary: Vocabulary, signature: Signature) -> None:
        self.folder = folder
        self.vocabulary = vocabulary
        self.signature = signature
        self._more: dict[str, Examples] = {}
        self._checked: set[str] = set()
        self._mapped: dict[str, npt.NDArray[Any]] = {}

    def with_more(self, split: str, extra: Examples) -> PreparedData:
        """Return the data with further examples at the end of a split; files and signature do not change."""
        other = copy(self)
        other._more = {**self._more, split: extra}
        return other

    def recoded(self, vocabulary: Vocabulary, recode: Callable[[Any], Sequence[int]]) -> PreparedData:
        """Return the same folder with another vocabulary; ``recode`` turns the ids of a split into ids of this vocabulary."""
        other = PreparedData(self.folder, vocabulary, self.signature)
        other._checked = {*self.splits}
        other._mapped = {f"{split}.bin": np.array(recode(self.tokens(split)), dtype=np.uint32) for split in self.splits}
        return other

    def num_added(self, split: str) -> int:
        """Examples of a split that ``with_more`` added."""
        return len(self._more.get(split, ()))

    @classmethod
    def open(cls, folder: Path | str) -> PreparedData:
        """Open a folder and check that its parts belong together. Raises DataError: no prepared-data folder, another version,
        torn, or parts that do not fit."""
        folder = Path(folder)
        signature = read_signature(folder)
        vocabulary = Vocabulary.load(folder / VOCABULARY)
        if vocabulary.fingerprint != signature.vocabulary:
            raise DataError(
                f"{folder}: {VOCABULARY} has the fingerprint {vocabulary.fingerprint}, but {SIGNATURE} names "
                f"{signature.vocabulary}; the parts are of different runs; {remedy(folder)}"
            )
        width = token_type(len(vocabulary)).itemsize
        ids = [(folder / f"{split}.bin", summary.tokens * width) for split, summary in signature.splits.items()]
        for path, expected in chain(ids, example_files(folder, signature)):
            size = path.stat().st_size if path.is_file() else None
            if size != expected:
                found = "is missing" if size is None else f"has {size} bytes"
                raise DataError(f"{path}: {found}, {SIGNATURE} asks for {expected}; the folder is torn; {remedy(folder)}")
        kept_words(folder, signature)
        stated = signature.segmenter.rpartition(" ")[2]  # the description of a segmenter with a model ends with a SHA-256
        own = MODELS.get(str(signature.options.get("segmenter")))
        model = folder / own if own is not None else None
        if model is not None and model.is_file() and not hashlib.sha256(model.read_bytes()).hexdigest().startswith(stated):
            raise DataError(f"{model}: is not the model by which the text was cut; {remedy(folder)}")
        return cls(folder, vocabulary, signature)

    def check(self, split: str) -> None:
        """Map the files of a split and compare them with their SHA-256 once; later replacements are not read. Raises DataError:
        a file was changed, is damaged or cannot be read."""
        if split in self._checked:
            return
        summary, sets = self.signature.splits[split], self.signature.examples
        wanted = [([self.folder / f"{split}.bin"], summary.sha256)]
        self._map(f"{split}.bin", token_type(len(self.vocabulary)))
        if sets is not None and split in sets.splits:
            names = ["offsets.bin"] + ["labels.bin"] * (sets.labels is not None) + ["texts.jsonl"] * sets.keeps_text
            wanted.append(([self.folder / f"{split}.{name}" for name in names], sets.splits[split].sha256))
            for name in [*names, *["lines.bin"] * sets.keeps_text]:
                self._map(f"{split}.{name}", _TYPES[name])
        for paths, sha256 in wanted:
            with opening(paths[0], DataError):
                good = has_sha256(paths, sha256)
            if not good:
                named = " or ".join(str(path) for path in paths)
                raise DataError(
                    f"{named}: changed or damaged after it was written, its SHA-256 differs from {SIGNATURE}; copy it again "
                    f"from where it came from, or {remedy(self.folder)}"
                )
        if sets is not None and sets.keeps_text and split in sets.splits:
            check_lines(self.folder, split)
        self._checked.add(split)

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits, such as ``('train', 'valid', 'test')``."""
        return tuple(self.signature.splits)

    def tokens(self, split: str) -> npt.NDArray[np.unsignedinteger]:
        """The ids of a split, (N,) memory-mapped and read-only, uint16 when V <= 65536, else uint32. Raises DataError for a
        split that the folder does not have, or that was changed."""
        if split not in self.signature.splits:
            raise DataError(f"{self.folder}: no split {split!r}; name another one (--split): {', '.join(self.splits)}")
        self.check(split)
        return self._mapped[f"{split}.bin"]

    def sentence_labels(self, split: str) -> tuple[str, ...]:
        """The label of each sentence of a running text; empty without labels. Raises DataError: changed or damaged labels."""
        stated = (self.signature.labels or {}).get(split)
        if stated is None:
            return ()
        path = self.folder / LABELS.format(split)
        content = read_bytes(path, lambda why: DataError(f"{why}; put it back, or {remedy(self.folder)}"))
        if hashlib.sha256(content).hexdigest() != stated:
            raise DataError(f"{path}: changed or damaged after it was written; {remedy(self.folder)}")
        return tuple(content.decode().split("\n")[:-1])

    def first_contexts(self, words: Sequence[str], around: int = 8) -> dict[str, str]:
        """Return word -> context of its first occurrence; words that never occur are left out."""
        wanted = {self.vocabulary.id(word): word for word in words}
        found: dict[str, str] = {}
        for split in self.splits:
            tokens = self.tokens(split)
            numbers, places = np.unique(tokens, return_index=True)
            for number, place in zip(numbers.tolist(), places.tolist(), strict=True):
                if (word := wanted.pop(number, None)) is not None:
                    near = tokens[max(0, place - around) : place + around + 1]
                    found[word] = " ".join(self.vocabulary.decode(near.tolist()))
        return found

    def train_counts(self) -> npt.NDArray[np.int64]:
        """Count each word in the training text alone, (V,). By contrast, the counts of the vocabulary may be over all splits,
        or over other text; they are returned for examples and for folders without training text."""
        if self.signature.examples is not None or "train" not in self.splits:
            return self.vocabulary.counts
        return np.bincount(self.tokens("train"), minlength=len(self.vocabulary))

    def _map(self, name: str, dtype: npt.DTypeLike) -> None:
        path = self.folder / name
        with opening(path, lambda why: DataError(f"{why}; put it back, or {remedy(self.folder)}")):
            self._mapped[name] = mapped(path, dtype)

    def chunks(self) -> ChunkVocabulary:
        """Return the chunk vocabulary (default: chunks of one word). Raises DataError: the file is absent or incomplete, or
        belongs to another vocabulary or another call of ``preprocess``."""
        summary = self.signature.chunks
        if summary is None:
            return ChunkVocabulary(self.vocabulary, max_length=1)
        chunks = ChunkVocabulary.load(self.folder / CHUNKS, self.vocabulary)
        if chunks.fingerprint != summary.fingerprint:
            raise DataError(
                f"{self.folder / CHUNKS}: has the fingerprint {chunks.fingerprint}, {SIGNATURE} names {summary.fingerprint}; "
                f"the parts are of different runs; {remedy(self.folder)}"
            )
        return chunks

    def segmenter(self) -> Segmenter:
        """Return the segmenter of these data, opened from this folder, for segmenting other text. Raises ConfigError,
        DataError: as ``recorded_segmenter``."""
        return recorded_segmenter(self.signature, self.folder / SIGNATURE)

    def form(self) -> TextForm:
        """The form of the text before segmentation."""
        return TextForm.recorded(self.signature.options, self.signature.normalisation)

    def examples(self, split: str) -> Examples:
        """The examples of a split. Raises DataError: a running text, or an absent split."""
        tokens, summary = self.tokens(split), self.signature.examples
        if summary is None:
            raise DataError(
                f"{self.folder}: a stream of words, where examples are needed; write them with: "
                "sememekit preprocess snli|sst2|imdb|classification|gigaword|lcsts|switchboard SOURCE --out DIR"
            )
        if split not in summary.splits:
            raise DataError(f"{self.folder}: {SIGNATURE} lacks the examples of the split {split!r}; {remedy(self.folder)}")
        mapped = self._mapped
        labels = np.zeros(0, dtype="<u2") if summary.labels is None else mapped[f"{split}.labels.bin"]
        originals = None
        if summary.keeps_text:
            path = self.folder / f"{split}.texts.jsonl"
            originals = Originals(path, mapped[path.name], mapped[f"{split}.lines.bin"])
        found = Examples(tokens, mapped[f"{split}.offsets.bin"], labels, len(summary.texts), originals)
        return found.followed_by(self._more[split]) if split in self._more else found


def token_type(vocabulary_size: int) -> np.dtype[np.unsignedinteger]:
    """The integer type of the id files: little-endian, two bytes when V <= 65536, otherwise four."""
    return np.dtype("<u2") if vocabulary_size <= 1 << 16 else np.dtype("<u4")
