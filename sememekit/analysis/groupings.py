"""Groupings of words: the values of ``--by`` in ``evaluate-ppl``, in a file that its help page can import."""

from enum import StrEnum


class Grouping(StrEnum):
    """A property that words are grouped by; all but the training count need a sememe graph."""

    senses = "senses"
    sememes = "sememes"
    frequency = "frequency"
    sememes_at_frequency = "sememes-at-frequency"
