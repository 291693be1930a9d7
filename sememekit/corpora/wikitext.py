"""WikiText-2 and WikiText-103 in their word-level form (Merity et al. 2016): ``wiki.train.tokens`` and so on."""

from __future__ import annotations

from typing import final

from sememekit.corpora.base import SplitFolder


@final
class WikiText(SplitFolder):
    """Every line, also a blank one, ends with ``<eos>``, as the word language models have it."""

    dataset = "wikitext"
    patterns = ("wiki.{}.tokens", "{}.txt")
    end_of_sentence = True
    keeps_blank_lines = True
