"""Readers of corpora by name; a reader is imported when its data set is asked for."""

from sememekit.corpora.base import Corpus

DATASETS = {
    "billion-word": "sememekit.corpora.billion_word:BillionWord",
    "peoples-daily": "sememekit.corpora.peoples_daily:PeoplesDaily",
    "plain": "sememekit.corpora.plain:Plain",
    "ptb": "sememekit.corpora.ptb:PennTreebank",
    "text8": "sememekit.corpora.text8:Text8",
    "wikitext": "sememekit.corpora.ptb:WikiText",
}

__all__ = ["DATASETS", "Corpus"]
