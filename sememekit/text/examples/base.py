"""What a set of examples says about itself: which texts an example has, which labels there are, where they stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

START = "<s>"
STOP = "</s>"


class Row(NamedTuple):
    """An example as a file has it; ``label`` is None where the set has none."""

    line: int
    texts: tuple[str, ...]
    label: str | None


class ExampleSet:
    """A kind of examples. A subclass sets the attributes; it needs no method.

    Attributes:
        texts: the name of each text of an example, in the order in which a task takes them.
        headers: for each text, the names that a column (or a key of JSON lines) may have, best first.
        label_headers: the same for the label; empty for examples without labels.
        columns: the order of columns in tables without a header, by the names of ``texts`` and "label".
        labels: the labels allowed, in the order of their ids; None for those of the training split, sorted.
        spelled: other spellings of labels.
        left_out: labels of examples that are counted and left out.
        beside: for three files side by side, the beginning of the name of each, by the order of ``columns``; empty for none.
        break_mark: whether ``<br />`` stands for white space.
        segmenters: the segmenters that make sense; the first is the default.
    """

    texts: ClassVar[tuple[str, ...]]
    headers: ClassVar[tuple[tuple[str, ...], ...]]
    label_headers: ClassVar[tuple[str, ...]] = ("label",)
    columns: ClassVar[tuple[str, ...]]
    labels: ClassVar[tuple[str, ...] | None] = None
    spelled: ClassVar[Mapping[str, str]] = {}
    left_out: ClassVar[frozenset[str]] = frozenset()
    beside: ClassVar[tuple[str, ...]] = ()
    break_mark: ClassVar[bool] = False
    segmenters: ClassVar[tuple[str, ...]] = ("english", "english-cased", "none", "jieba", "fmm", "sentencepiece")
