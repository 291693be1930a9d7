"""A set of examples as a corpus: its files become lines of texts with TAB between, for the usual pipeline.

Beside the ids of a split the finished folder has:

    SPLIT.offsets.bin   (examples x texts + 1,) int64: where each text begins in SPLIT.bin, text by text, example by example
    SPLIT.labels.bin    (examples,) uint16
    SPLIT.texts.jsonl   where the set keeps its text: the words of the source as cut, and the references as written, a line each
    SPLIT.lines.bin     (examples + 1,) int64: where each of these lines begins"""

from __future__ import annotations

import hashlib
import json
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, count, islice, pairwise, repeat
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

import numpy as np

from sememekit.corpora.base import Corpus, Predicted, text_size
from sememekit.corpora.division import StratifiedDivision
from sememekit.corpora.examples.base import START, STOP, ExampleSet, Row
from sememekit.corpora.examples.files import side_by_side
from sememekit.corpora.examples.rows import Opened
from sememekit.corpora.sources import SPLITS, CorpusFile, Unpacked, unpack
from sememekit.corpora.units import ShardResult, Unit
from sememekit.data.signature import ExampleSplit, ExamplesSummary
from sememekit.errors import ConfigError, DataError
from sememekit.text.form import cut_apart
from sememekit.text.reading import LINE_CAP, FaultCounter
from sememekit.text.segmenters import Segmenter
from sememekit.text.vocabulary import UNKNOWN

_MOST_LABELS: Final = 1000
_SHOWN: Final = 40  # most labels in a message
_BLOCK: Final = 1 << 20


class _Part(NamedTuple):
    """Rows of one source in one split: their number, their labels by provisional ids, and their references."""

    split: str
    labels: array[int]
    references: Path
    rows: int


class ExampleCorpus(Corpus):
    """The corpus of a set of examples."""

    size_of = "source"
    unpacks_apart: ClassVar[bool] = False

    def __init__(self, kind: ExampleSet, files: Mapping[str | None, Sequence[Path]], seed: int) -> None:
        self.kind = kind
        self.segmenters = kind.segmenters
        self.specials = (UNKNOWN, START, STOP, *kind.marks)
        self.normalisation = f"{kind.normalisation} ({type(kind).__name__.removesuffix('Set')})"
        self.default_lexicon = kind.default_lexicon
        train, valid, test = kind.proportions
        self.proportions = (train + test, valid, 0) if "test" in files else kind.proportions
        self.cuts_latin = kind.cuts_latin
        if kind.vocabulary_of_train:
            self.vocabulary_splits = ("train",)
        if kind.predicted is not None:
            self.predicted = Predicted(len(kind.texts), kind.predicted, STOP)
        self._files = {split: list(paths) for split, paths in files.items()}
        self._seed = seed
        self._ranges: dict[str, list[tuple[str | None, int, int]]] = {}
        self._parts: list[_Part] = []
        self._labels, self._labels_of = kind.labels, ""
        self._label_ids: dict[str, int] = {label: index for index, label in enumerate(kind.labels or ())}
        if len(self._label_ids) > _MOST_LABELS:
            raise ConfigError(f"{type(kind).__name__} declares {len(self._label_ids):,} labels; allowed are {_MOST_LABELS:,}")
        self._as_read: set[str] = set()
        self._left_out: Counter[str] = Counter()
        self._frozen = kind.labels is not None
        self._held_out: set[bytes] = set()
        self._marks = re.compile(f"({'|'.join(map(re.escape, kind.marks))})") if kind.marks else None

    def take_labels(self, labels: Sequence[str], of: str) -> None:
        """Allow exactly the labels of other data (folder ``of``, for messages), in the order of their ids, if neither the set
        nor a training split defines labels."""
        if self._labels is None and self._files.keys().isdisjoint({None, "train"}):
            self._labels, self._labels_of = tuple(labels), f" (labels of {of})"
            self._label_ids, self._frozen = {label: index for index, label in enumerate(labels)}, True

    def sources(self) -> list[CorpusFile]:
        """The files: train first, since it defines the labels, or last, if held-out examples are removed from it."""
        order = (None, "valid", "test", "train") if self.kind.held_out_stays_out else (None, *SPLITS)
        return [CorpusFile(split, path) for split in order for path in self._files.get(split, [])]

    def unpack(self, source: CorpusFile, number: int, folder: Path, faults: FaultCounter) -> Unpacked:
        """Write the rows of a source as lines, check each, and record its label."""
        paths = side_by_side(source.path, self.kind)
        plain = [unpack(CorpusFile(f"{number}-{index}", path), folder, faults) for index, path in enumerate(paths)]
        files = [Opened(found.path, str(path)) for found, path in zip(plain, paths, strict=True)]
        names = repeat(source.split) if source.split is not None else self._division(files, faults)
        rows = self._checked(self.kind.rows(files, source.split, faults, self._left_out), files, faults)
        splits = SPLITS if source.split is None else (source.split,)
        if source.split is None and self.kind.held_out_stays_out:
            first = zip(self._first_pass(files, faults), self._division(files, faults), strict=False)
            self._held_out |= {_key(row) for row, split in first if split != "train"}
        target = folder / f"{number}.rows"
        counts, labels = self._write(self._apart(zip(rows, names, strict=False)), splits, target)  # all rows are to be read
        self._ranges[str(target)] = []
        end, text_digest = 0, hashlib.sha256()
        with target.open("wb") as out:
            for split in splits:
                part = _beside(target, split, "rows")
                start, end = end, end + part.stat().st_size
                with part.open("rb") as file:
                    while block := file.read(_BLOCK):
                        text_digest.update(block)
                        out.write(block)
                part.unlink()
                if start != end:
                    self._ranges[str(target)].append((split, start, end))
                self._parts.append(_Part(split, labels[split], _beside(target, split, "references"), counts[split]))
        smallest = StratifiedDivision(self.proportions, 0).smallest
        why = "; ".join(f"{reason}: {count:,}" for reason, count in self._left_out.items())
        why = why and f" ({why})"
        if source.split is None and (sum(counts.values()) < smallest or not counts["train"]):
            raise DataError(
                f"{source.path}: too few examples to divide, {sum(counts.values()):,}{why}; give --valid and --test files"
            )
        if source.split in (None, "train"):
            self._frozen = self._frozen or source.path == (self._files.get("train") or self._files[None])[-1]
        if source.split is not None and not counts[source.split]:
            raise DataError(f"{source.path}: no examples are left for the split {source.split!r}{why}")
        digest = plain[0].sha256 if len(plain) == 1 else hashlib.sha256("".join(p.sha256 for p in plain).encode()).hexdigest()
        return Unpacked(target, sum(found.bytes for found in plain), digest, end, text_digest.hexdigest())

    def ranges(self, split: str | None, text: Path, size: int) -> list[tuple[str | None, int, int]]:
        return self._ranges[str(text)]

    def units(self, text: str, segmenter: Segmenter) -> Iterator[Unit]:
        for part in text.split("\t"):
            yield Unit(self.cut(part, segmenter), *text_size(part.split()))

    def annotate(self, target: Path, parts: Sequence[tuple[str | None, ShardResult]]) -> ExamplesSummary | None:
        """Write offsets and labels of every split into the finished folder."""
        names = self._labels or tuple(sorted(self._label_ids))
        mapping = np.zeros(max(len(self._label_ids), 1), dtype="<u2")
        for name, index in self._label_ids.items():
            mapping[index] = names.index(name)
        summaries = {}
        for split in SPLITS:
            own = [part for part in self._parts if part.split == split]
            if not own:
                continue
            digest = hashlib.sha256()
            examples = sum(part.rows for part in own)
            texts = _write_offsets(target / f"{split}.offsets.bin", [s for name, s in parts if name == split], digest)
            if texts != examples * len(self.kind.texts):
                raise DataError(f"split {split!r}: {examples} examples gave {texts} texts; a segmenter must not lose a text")
            of_label = np.zeros(len(names), dtype=np.int64)
            if self.kind.label_headers:
                with (target / f"{split}.labels.bin").open("wb") as out:
                    for part in own:
                        ids = mapping[np.frombuffer(part.labels, dtype=np.uint16)]
                        of_label += np.bincount(ids, minlength=len(names))
                        digest.update(ids.tobytes())
                        out.write(ids.data)
            if self.kind.keeps_text:
                with ExitStack() as stack:
                    files = [stack.enter_context(part.references.open(encoding="utf-8", newline="\n")) for part in own]
                    shards, references = [s for name, s in parts if name == split], chain.from_iterable(files)
                    write_texts(target, split, len(self.kind.texts), shards, references, digest)
            unused = [name for name, amount in zip(names, of_label.tolist(), strict=True) if not amount]
            if split == "train" and unused and self.kind.spelled and all(map(str.isdecimal, self._as_read)):
                raise DataError(
                    f"the labels of train are {', '.join(sorted(self._as_read))}, without {unused[0]!r} of this set: the "
                    "numbers mean something else here; read pairs with labels of your own by: sememekit "
                    "preprocess text-pairs, single texts by: sememekit preprocess classification"
                )
            summaries[split] = ExampleSplit(
                examples=examples, of_label=dict(zip(names, of_label.tolist(), strict=True)), sha256=digest.hexdigest()
            )
        return ExamplesSummary(
            texts=self.kind.texts,
            labels=names if self.kind.label_headers else None,
            left_out=dict(sorted(self._left_out.items())),
            splits=summaries,
            keeps_text=self.kind.keeps_text,
        )

    def cut(self, text: str, segmenter: Segmenter) -> list[str]:
        """The words of a text; marks between its parts stay whole."""
        return segmenter.segment(text) if self._marks is None else cut_apart(self._marks.split(text), segmenter)

    def _checked(self, rows: Iterator[Row], files: Sequence[Opened], faults: FaultCounter) -> Iterator[Row]:
        name = files[0].name
        file_of = dict(zip(self.kind.columns, files, strict=False)) if len(files) > 1 else {}
        for row in rows:
            label = row.label
            empty = [title for title, text in zip(self.kind.texts, row.texts, strict=True) if not text]
            if empty or label == "":
                what = empty[0] if empty else "label"
                if faults.policy != "skip":
                    where = file_of.get(what, files[0]).name
                    raise DataError(f"{where}:{row.line}: the {what} is empty; mend it, or leave it out with --errors skip")
                self._left_out[f"empty {what}"] += 1
                continue
            if label is not None:
                if label in self.kind.left_out:
                    self._left_out[label] += 1
                    continue
                self._as_read.add(label)
                label = self.kind.spelled.get(label, label)
                if label not in self._label_ids:
                    if self._frozen:
                        raise DataError(f"{name}:{row.line}: unknown label {label!r:.60}; {self._allowed()}")
                    if len(self._label_ids) == _MOST_LABELS:
                        raise DataError(
                            f"{name}:{row.line}: more than {_MOST_LABELS} different labels; is the column of the label the "
                            "right one?"
                        )
                    self._label_ids[label] = len(self._label_ids)
            yield row._replace(label=label)

    def _allowed(self) -> str:
        """Return the message for a label that the data set, or its training split, does not have."""
        names = [*sorted(self._label_ids), *sorted(self.kind.left_out)]
        if self._labels is None and names[_SHOWN:]:
            some = ", ".join(f"{name:.40}" for name in names[:3])
            return f"train has {len(names):,} labels, such as {some}; is the column of the label the right one?"
        pairs = self.kind.labels and len(self.kind.texts) == 2
        own = "; pairs with labels of your own are read by: sememekit preprocess text-pairs" if pairs else ""
        where = self._labels_of if self._labels else " (in the training split)"
        return f"allowed{where}: {', '.join(names)}{own}"

    def _apart(self, rows: Iterable[tuple[Row, str]]) -> Iterator[tuple[str, Row]]:
        """Yield each row with its split; if the set says so, leave out training examples that occur in valid or test."""
        for row, split in rows:
            if self.kind.held_out_stays_out:
                if split != "train":
                    self._held_out.add(_key(row))
                elif _key(row) in self._held_out:
                    self._left_out["training example that occurs in valid or test"] += 1
                    continue
            yield split, row

    def _first_pass(self, files: Sequence[Opened], faults: FaultCounter) -> Iterator[Row]:
        """Yield the rows of one file in a first pass, without counting."""
        counter = FaultCounter(faults.policy)
        left_out, self._left_out = self._left_out, Counter()
        yield from self._checked(self.kind.rows(files, None, counter, Counter()), files, counter)
        self._left_out = left_out

    def _division(self, files: Sequence[Opened], faults: FaultCounter) -> Iterator[str]:
        """Yield the split of each row of one file; to divide in file order, a first pass counts the rows."""
        if self.kind.in_order:
            count_rows = sum(1 for _ in self._first_pass(files, faults))
            ends = [round(count_rows * sum(self.proportions[:end]) / sum(self.proportions)) for end in range(4)]
            return chain.from_iterable(repeat(split, b - a) for split, (a, b) in zip(SPLITS, pairwise(ends), strict=True))
        division = StratifiedDivision(self.proportions, self._seed)
        labels = chain.from_iterable(division.take(1 << 12).tolist() for _ in count())
        return (SPLITS[label] for label in labels)

    def _write(
        self, rows: Iterable[tuple[str, Row]], splits: Sequence[str], target: Path
    ) -> tuple[Counter[str], dict[str, array[int]]]:
        """Write the rows and references of each split into files; return numbers and labels."""
        counts, labels = Counter[str](), {split: array("H") for split in splits}
        with ExitStack() as stack:
            files = {
                (split, what): stack.enter_context(_beside(target, split, what).open("wb", buffering=_BLOCK))
                for split in splits
                for what in ("rows", "references")
            }
            for split, row in rows:
                line = "\t".join(row.texts).encode()
                if len(line) >= LINE_CAP:
                    raise DataError(f"row {row.line}: {len(line):,} bytes; an example may have 1 MiB")
                files[split, "rows"].write(line + b"\n")
                if row.label is not None:
                    labels[split].append(self._label_ids[row.label])
                if self.kind.keeps_text:
                    files[split, "references"].write(json.dumps(row.references, ensure_ascii=False).encode() + b"\n")
                counts[split] += 1
        return counts, labels


def _key(row: Row) -> bytes:
    return hashlib.blake2b("\t".join(row.texts).encode(), digest_size=12).digest()


def _beside(target: Path, split: str, what: str) -> Path:
    return target.with_name(f"{target.stem}.{split}.{what}")


def _write_offsets(path: Path, shards: Sequence[ShardResult], digest: hashlib._Hash) -> int:
    """Write the offsets of texts; return their number."""
    position = texts = 0
    with path.open("wb") as out:
        first = np.zeros(1, dtype="<i8")
        digest.update(first.tobytes())
        out.write(first.data)
        for shard in shards:
            units = shard.units()
            for begin in range(0, len(units), _BLOCK):
                ends = (position + np.cumsum(units[begin : begin + _BLOCK, 0], dtype=np.int64)).astype("<i8")
                position = int(ends[-1])
                texts += len(ends)
                digest.update(ends.tobytes())
                out.write(ends.data)
    return texts


def write_texts(
    folder: Path, split: str, num_texts: int, shards: Sequence[ShardResult], references: Iterable[str], digest: hashlib._Hash
) -> None:
    """Write ``SPLIT.texts.jsonl`` and ``SPLIT.lines.bin``; see :class:`~sememekit.data.examples.Originals`.

    An example has N = ``num_texts`` texts, with the source first. ``shards`` are the shards of the split, in order; memory
    grows with the distinct words of a shard. ``references`` has one line for each example, a JSON list; ``digest`` is updated
    with the texts. Raises DataError: unequal numbers of examples and references."""
    ends, position = array("q", [0]), 0
    lists = iter(references)
    with (folder / f"{split}.texts.jsonl").open("wb", buffering=1 << 20) as out:
        for source in islice(_texts(shards), 0, None, num_texts):
            kept = next(lists, None)
            if kept is None:
                raise DataError(f"split {split!r}: more examples than references; a segmenter must not lose or add a text")
            line = f'{{"source": {json.dumps(" ".join(source), ensure_ascii=False)}, "references": {kept.rstrip()}}}\n'.encode()
            out.write(line)
            digest.update(line)
            position += len(line)
            ends.append(position)
    if next(lists, None) is not None:
        raise DataError(f"split {split!r}: more references than examples; a segmenter must not lose or add a text")
    np.frombuffer(ends, dtype=np.int64).astype("<i8").tofile(folder / f"{split}.lines.bin")


def _texts(shards: Sequence[ShardResult]) -> Iterator[list[str]]:
    for shard in shards:
        words = {index: word for word, _, index in shard.types()}
        ids, position = shard.ids(), 0
        for length in shard.units()[:, 0].tolist():
            yield [words[index] for index in ids[position : position + length].tolist()]
            position += length
