"""Readers of corpora by name; a reader is imported when its data set is asked for."""

from sememekit.corpora.base import Corpus

DATASETS = {
    "billion-word": "sememekit.corpora.benchmarks:BillionWord",
    "peoples-daily": "sememekit.corpora.peoples_daily:PeoplesDaily",
    "plain": "sememekit.corpora.plain:Plain",
    "ptb": "sememekit.corpora.benchmarks:PennTreebank",
    "text8": "sememekit.corpora.benchmarks:Text8",
    "wikitext": "sememekit.corpora.benchmarks:WikiText",
}

__all__ = ["DATASETS", "Corpus"]
