"""Examples of one or more texts and a label: readers of data sets, one name each, and the corpus that prepares them."""

from sememekit.text.examples.base import ExampleSet, Row

EXAMPLE_SETS = {
    "classification": "sememekit.text.examples.sets:Classification",
    "duc": "sememekit.text.examples.pairs:Duc",
    "gigaword": "sememekit.text.examples.pairs:Gigaword",
    "imdb": "sememekit.text.examples.sets:Imdb",
    "lcsts": "sememekit.text.examples.lcsts:Lcsts",
    "nli": "sememekit.text.examples.sets:Inference",
    "peoples-daily-headlines": "sememekit.text.examples.peoples_daily:PeoplesDailyHeadlines",
    "snli": "sememekit.text.examples.sets:Inference",
    "sst2": "sememekit.text.examples.sets:Sst2",
    "switchboard": "sememekit.text.examples.switchboard:Switchboard",
}
"""name -> "module:Class"; ``preprocess package.module:Class`` takes a set of your own."""

__all__ = ["EXAMPLE_SETS", "ExampleSet", "Row"]
