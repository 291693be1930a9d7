"""Readers of corpora, one file each. The table is lazy: a reader is imported when its data set is asked for."""

from sememekit.text.corpora.base import Corpus, CorpusOptions

DATASETS = {
    "peoples-daily": "sememekit.text.corpora.peoples_daily:PeoplesDaily",
    "plain": "sememekit.text.corpora.plain:Plain",
    "ptb": "sememekit.text.corpora.ptb:PennTreebank",
    "text8": "sememekit.text.corpora.text8:Text8",
    "wikitext": "sememekit.text.corpora.wikitext:WikiText",
}

__all__ = ["DATASETS", "Corpus", "CorpusOptions"]
