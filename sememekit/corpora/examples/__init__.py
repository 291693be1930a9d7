"""Examples of one or more texts and a label: readers of data sets, one name each, and the corpus that prepares them."""

from sememekit.corpora.examples.base import ExampleSet, Row

EXAMPLE_SETS = {
    "classification": "sememekit.corpora.examples.sets:Classification",
    "duc": "sememekit.corpora.examples.pairs:Duc",
    "gigaword": "sememekit.corpora.examples.pairs:Gigaword",
    "imdb": "sememekit.corpora.examples.sets:Imdb",
    "lcsts": "sememekit.corpora.examples.lcsts:Lcsts",
    "nli": "sememekit.corpora.examples.sets:Inference",
    "peoples-daily-headlines": "sememekit.corpora.examples.peoples_daily:PeoplesDailyHeadlines",
    "snli": "sememekit.corpora.examples.sets:Inference",
    "sst2": "sememekit.corpora.examples.sets:Sst2",
    "switchboard": "sememekit.corpora.examples.switchboard:Switchboard",
}
"""name -> "module:Class"; ``preprocess package.module:Class`` takes a set of your own."""

__all__ = ["EXAMPLE_SETS", "ExampleSet", "Row"]
