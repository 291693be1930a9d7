"""The sets of examples that have a name."""

from __future__ import annotations

from typing import ClassVar, final

from sememekit.corpora.examples.base import ExampleSet


@final
class InferenceSet(ExampleSet):
    """Natural language inference: SNLI (Bowman et al. 2015) as released, tokenised in three files, or any table of its kind.

    ``-`` marks pairs on which the annotators did not agree; they are left out, as is the custom.
    """

    texts = ("premise", "hypothesis")
    headers: ClassVar = (("premise", "sentence1", "s1"), ("hypothesis", "sentence2", "s2"))
    label_headers: ClassVar = ("gold_label", "label", "labels")
    columns: ClassVar = ("premise", "hypothesis", "label")
    labels: ClassVar = ("entailment", "neutral", "contradiction")
    left_out: ClassVar = frozenset({"-"})
    beside: ClassVar = ("s1.", "s2.", "labels.")


class ClassificationSet(ExampleSet):
    """One text and a label, in a table: any labels, as many as the training split has."""

    texts = ("text",)
    headers: ClassVar = (("text", "sentence", "review"),)
    label_headers: ClassVar = ("label", "sentiment", "class", "gold_label", "labels")
    columns: ClassVar = ("text", "label")


@final
class Sst2(ClassificationSet):
    """The Stanford Sentiment Treebank in two classes (Socher et al. 2013): text TAB 0 or 1, with or without a header."""

    labels: ClassVar = ("negative", "positive")
    spelled: ClassVar = {"0": "negative", "1": "positive"}


@final
class Imdb(ClassificationSet):
    """Film reviews (Maas et al. 2011) as a table with the columns Sentiment and Text."""

    labels: ClassVar = ("negative", "positive")
    spelled: ClassVar = {"0": "negative", "1": "positive", "Negative": "negative", "Positive": "positive"}
    break_mark: ClassVar = True
