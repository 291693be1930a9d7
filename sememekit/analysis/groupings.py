"""Groupings of words and of sentences: the values of ``--by`` in ``evaluate-ppl``, in a file that its help page can import."""

from enum import StrEnum


class Grouping(StrEnum):
    """A property that predictions are grouped by."""

    senses = "senses"
    sememes = "sememes"
    frequency = "frequency"
    sememes_at_frequency = "sememes-at-frequency"
    labels = "labels"
    """Labels of sentences, such as their genre."""
