"""The prepared-data folder: what ``preprocess`` writes and everything else reads.

    FOLDER/
    ├── vocabulary.tsv                        word TAB count, by id
    ├── train.bin, valid.bin, test.bin        raw little-endian ids, two bytes each when V <= 65536, otherwise four
    ├── signature.json                        where the text came from and what was done to it
    ├── signature.sha256                      SHA-256 of that file; folders of earlier versions have none
    ├── sentencepiece.model                   only with that segmenter
    ├── lexicon.txt                           only with a lexicon: its words, by which the text was cut
    ├── chunks.tsv                            only with --chunks: the most frequent n-grams (``text/chunks.py``)
    ├── train.offsets.bin, train.labels.bin   only for examples: where each text begins; their labels
    └── train.texts.jsonl, train.lines.bin    only for pairs: the source and the references as they were before ids

The folder has no dates and no absolute paths: same input, same bytes. The signature holds the SHA-256 of what it stands for,
and a split is compared with it when it is first used.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, final

import numpy as np
import numpy.typing as npt

from sememekit.data.examples import Examples, Originals, check_lines, example_files
from sememekit.data.segmenters import MODEL, kept_words, recorded_segmenter
from sememekit.data.signature import REMEDY, SIGNATURE, Signature, read_signature
from sememekit.errors import DataError
from sememekit.files import has_sha256
from sememekit.text.chunks import CHUNKS, ChunkVocabulary
from sememekit.text.form import TextForm
from sememekit.text.segmenters import Segmenter
from sememekit.text.vocabulary import Vocabulary

VOCABULARY: Final = "vocabulary.tsv"


@final
class PreparedData:
    """A prepared-data folder, opened; use :meth:`open`."""

    def __init__(self, folder: Path, vocabulary: Vocabulary, signature: Signature) -> None:
        self.folder = folder
        self.vocabulary = vocabulary
        self.signature = signature
        self._more: dict[str, Examples] = {}
        self._checked: set[str] = set()

    def with_more(self, split: str, extra: Examples) -> PreparedData:
        """The same folder with further examples at the end of a split. Its files and its signature stay as they are."""
        other = PreparedData(self.folder, self.vocabulary, self.signature)
        other._more = {**self._more, split: extra}
        other._checked = self._checked
        return other

    @classmethod
    def open(cls, folder: Path | str) -> PreparedData:
        """Open a folder and check that its parts belong together. Raises DataError when it is no prepared-data folder, has
        another version, is torn, or its parts do not fit."""
        folder = Path(folder)
        signature = read_signature(folder)
        vocabulary = Vocabulary.load(folder / VOCABULARY)
        if vocabulary.fingerprint != signature.vocabulary:
            raise DataError(
                f"{folder}: {VOCABULARY} has the fingerprint {vocabulary.fingerprint}, but {SIGNATURE} names "
                f"{signature.vocabulary}; the parts are of different runs; {REMEDY} {folder}"
            )
        for split, summary in signature.splits.items():
            path = folder / f"{split}.bin"
            expected = summary.tokens * token_type(len(vocabulary)).itemsize
            size = path.stat().st_size if path.is_file() else None
            if size != expected:
                found = "is missing" if size is None else f"has {size} bytes"
                raise DataError(f"{path}: {found}, {SIGNATURE} asks for {expected}; the folder is torn; {REMEDY} {folder}")
        for path, expected in example_files(folder, signature):
            if not path.is_file() or path.stat().st_size != expected:
                raise DataError(f"{path}: is missing or has not the {expected} bytes of {SIGNATURE}; {REMEDY} {folder}")
        kept_words(folder, signature)
        model = folder / MODEL
        if model.is_file() and (stated := _stated_model(signature)) and not _has(model, stated):
            raise DataError(f"{model}: is not the model by which the text was cut; {REMEDY} {folder}")
        return cls(folder, vocabulary, signature)

    def check(self, split: str) -> None:
        """Compare the files of a split with the SHA-256 of the signature; once for each object. Raises DataError: a file was
        changed or damaged after it was written, or cannot be read; it is named."""
        if split in self._checked:
            return
        summary, sets = self.signature.splits[split], self.signature.examples
        wanted = [([self.folder / f"{split}.bin"], summary.sha256)]
        if sets is not None and split in sets.splits:
            names = ["offsets.bin"] + ["labels.bin"] * (sets.labels is not None) + ["texts.jsonl"] * sets.keeps_text
            wanted.append(([self.folder / f"{split}.{name}" for name in names], sets.splits[split].sha256))
        for paths, sha256 in wanted:
            try:
                good = has_sha256(paths, sha256)
            except OSError as error:
                raise DataError(f"{error.filename or paths[0]}: cannot be read: {error.strerror}") from None
            if not good:
                named = " or ".join(str(path) for path in paths)
                raise DataError(
                    f"{named}: changed or damaged after it was written, its SHA-256 is not that of {SIGNATURE}; copy it again "
                    f"from where it came from, or {REMEDY} {self.folder}"
                )
        if sets is not None and sets.keeps_text and split in sets.splits:
            check_lines(self.folder, split)
        self._checked.add(split)

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits that the folder has, such as ``('train', 'valid', 'test')``."""
        return tuple(self.signature.splits)

    def tokens(self, split: str) -> npt.NDArray[np.unsignedinteger]:
        """The ids of a split, (N,) memory-mapped and read-only, uint16 when V <= 65536 and uint32 otherwise. Raises DataError
        for a split that the folder does not have, or that was changed after it was written."""
        if split not in self.signature.splits:
            raise DataError(f"{self.folder}: no split {split!r}; allowed: {', '.join(self.splits)}")
        self.check(split)
        if self.signature.splits[split].tokens == 0:  # a file without bytes cannot be mapped
            return np.zeros(0, dtype=token_type(len(self.vocabulary)))
        return np.memmap(self.folder / f"{split}.bin", dtype=token_type(len(self.vocabulary)), mode="r")

    def chunks(self) -> ChunkVocabulary:
        """The chunk vocabulary; in a folder without one the words alone, with chunks of one word. Raises DataError when the
        file is absent or torn, or belongs to another vocabulary or another run of ``preprocess``."""
        summary = self.signature.chunks
        if summary is None:
            return ChunkVocabulary(self.vocabulary, max_length=1)
        chunks = ChunkVocabulary.load(self.folder / CHUNKS, self.vocabulary)
        if chunks.fingerprint != summary.fingerprint:
            raise DataError(
                f"{self.folder / CHUNKS}: has the fingerprint {chunks.fingerprint}, {SIGNATURE} names {summary.fingerprint}; "
                f"the parts are of different runs; {REMEDY} {self.folder}"
            )
        return chunks

    def segmenter(self) -> Segmenter:
        """What cut the text into words, had again from this folder; whatever is read beside these data is cut by it. Raises
        ConfigError, DataError as ``recorded_segmenter``."""
        name, dataset = self.signature.options.get("segmenter"), self.signature.dataset
        again = f"sememekit preprocess {dataset} SOURCE --segmenter {name} --lexicon FORMAT:PATH --out {self.folder} --force"
        return recorded_segmenter(self.signature, self.folder / SIGNATURE, remedy=f"prepare it again: {again}")

    def form(self) -> TextForm:
        """The form that the text was brought into before it was cut."""
        return TextForm.recorded(self.signature.options, str(self.folder / SIGNATURE))

    def examples(self, split: str) -> Examples:
        """The examples of a split. Raises DataError when the folder holds a stream of words, or for a split that it does not
        have."""
        tokens, summary = self.tokens(split), self.signature.examples
        if summary is None:
            raise DataError(
                f"{self.folder}: a stream of words, where examples are needed; write them with: "
                "sememekit preprocess snli|sst2|imdb|classification|gigaword|lcsts|switchboard SOURCE --out DIR"
            )
        offsets = np.memmap(self.folder / f"{split}.offsets.bin", dtype="<i8", mode="r")
        labels: npt.NDArray[np.uint16] = np.zeros(0, dtype="<u2")
        if summary.labels is not None:
            labels = np.memmap(self.folder / f"{split}.labels.bin", dtype="<u2", mode="r")
        originals = Originals(self.folder, split) if summary.keeps_text else None
        found = Examples(tokens, offsets, labels, len(summary.texts), originals)
        return found.followed_by(self._more[split]) if split in self._more else found


def _stated_model(signature: Signature) -> str:
    """The beginning of the SHA-256 of the segmentation model, as its description ends, or nothing."""
    kind, _, stated = signature.segmenter.rpartition(" ")
    return stated if kind.startswith("SentencePiece") else ""


def _has(path: Path, beginning: str) -> bool:
    return hashlib.sha256(path.read_bytes()).hexdigest().startswith(beginning)


def token_type(vocabulary_size: int) -> np.dtype[np.unsignedinteger]:
    """The integer type of the id files: little-endian, two bytes when V <= 65536, otherwise four."""
    return np.dtype("<u2") if vocabulary_size <= 1 << 16 else np.dtype("<u4")
