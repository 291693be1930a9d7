"""Penn Treebank in the form of Mikolov et al. 2010: ``ptb.train.txt`` and so on, 10,000 types with ``<eos>``."""

from __future__ import annotations

from typing import final

from sememekit.corpora.base import SplitFolder


@final
class PennTreebank(SplitFolder):
    """Every line, also a blank one, ends with ``<eos>``, as the word language models have it."""

    dataset = "ptb"
    patterns = ("ptb.{}.txt", "{}.txt")
    end_of_sentence = True
    keeps_blank_lines = True
