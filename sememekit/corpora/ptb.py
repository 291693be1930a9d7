"""Penn Treebank (Mikolov et al. 2010) and WikiText (Merity et al. 2016) in their word-level form: a folder of three files."""

from __future__ import annotations

from typing import final

from sememekit.corpora.base import SplitFolder


@final
class PennTreebank(SplitFolder):
    """``ptb.train.txt`` and so on: 10,000 types with ``<eos>``, which ends every line, also a blank one."""

    dataset = "ptb"
    patterns = ("ptb.{}.txt", "{}.txt")
    end_of_sentence = keeps_blank_lines = True


@final
class WikiText(SplitFolder):
    """WikiText-2 and WikiText-103, ``wiki.train.tokens`` and so on, or ``.raw``, in which no rare word was replaced; ``<eos>``
    ends every line, also a blank one."""

    dataset = "wikitext"
    patterns = ("wiki.{}.tokens", "wiki.{}.raw", "{}.txt")
    end_of_sentence = keeps_blank_lines = True
