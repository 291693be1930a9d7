"""The sets of examples that have a name."""

from typing import ClassVar, final

from sememekit.corpora.examples.base import ExampleSet


class TextPairs(ExampleSet):
    """Two texts and a label of your own, such as paraphrases (LCQMC, BQ, AFQMC, QQP)."""

    texts = ("premise", "hypothesis")
    headers: ClassVar = (
        ("premise", "sentence1", "s1", "question1", "text_a", "text1", "query"),
        ("hypothesis", "sentence2", "s2", "question2", "text_b", "text2", "title"),
    )
    label_headers: ClassVar = ("gold_label", "label", "labels", "is_duplicate")
    columns: ClassVar = ("premise", "hypothesis", "label")


@final
class InferenceSet(TextPairs):
    """Natural language inference: SNLI (Bowman et al. 2015) as released, tokenised in three files, or any table of its kind.

    ``-`` and ``-1`` mark pairs on which the annotators did not agree; they are left out, as is the custom. Labels may be the
    numbers that the hub has for them.
    """

    labels: ClassVar = ("entailment", "neutral", "contradiction")
    spelled: ClassVar = {"0": "entailment", "1": "neutral", "2": "contradiction"}
    left_out: ClassVar = frozenset({"-", "-1"})
    beside: ClassVar = ("s1.", "s2.", "labels.")


class ClassificationSet(ExampleSet):
    """One text and a label, in a table: any labels, as many as the training split has."""

    texts = ("text",)
    headers: ClassVar = (("text", "sentence", "review", "text_a", "content", "query"),)
    label_headers: ClassVar = ("label", "sentiment", "class", "gold_label", "labels")
    columns: ClassVar = ("text", "label")


@final
class Sst2(ClassificationSet):
    """The Stanford Sentiment Treebank in two classes (Socher et al. 2013): text TAB 0 or 1, with or without a header."""

    labels: ClassVar = ("negative", "positive")
    spelled: ClassVar = {"0": "negative", "1": "positive"}


@final
class Imdb(ClassificationSet):
    """Film reviews (Maas et al. 2011): a table with the columns Sentiment and Text, or the folder ``aclImdb``."""

    labels: ClassVar = ("negative", "positive")
    spelled: ClassVar = {
        **dict.fromkeys(("0", "neg", "Negative"), "negative"),
        **dict.fromkeys(("1", "pos", "Positive"), "positive"),
    }
    left_out: ClassVar = frozenset({"unsup"})  # the folder of reviews without labels
    break_mark: ClassVar = True
