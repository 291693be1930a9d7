"""Sets of examples with one or more texts and a label, by name."""

from sememekit.config import check_code, load_variant
from sememekit.corpora.examples.base import ExampleSet, Row

EXAMPLE_SETS = {
    "classification": "sememekit.corpora.examples.sets:ClassificationSet",
    "duc": "sememekit.corpora.examples.sets:Duc",
    "gigaword": "sememekit.corpora.examples.sets:GigawordSet",
    "imdb": "sememekit.corpora.examples.sets:Imdb",
    "lcsts": "sememekit.corpora.examples.lcsts:Lcsts",
    "nli": "sememekit.corpora.examples.sets:InferenceSet",
    "peoples-daily-headlines": "sememekit.corpora.examples.peoples_daily:PeoplesDailyHeadlines",
    "snli": "sememekit.corpora.examples.sets:InferenceSet",
    "sst2": "sememekit.corpora.examples.sets:Sst2",
    "switchboard": "sememekit.corpora.examples.switchboard:Switchboard",
    "text-pairs": "sememekit.corpora.examples.sets:TextPairs",
}
"""name -> "module:Class"; ``preprocess package.module:Class`` takes a set of your own."""

__all__ = ["EXAMPLE_SETS", "ExampleSet", "Row", "recorded_set"]


def recorded_set(dataset: str, where: str) -> ExampleSet:
    """The set that data were prepared from, by the signature ``where``. ConfigError: it names code, untrusted or absent."""
    check_code({"dataset": dataset}, where)
    kind: ExampleSet = load_variant("data set", dataset, EXAMPLE_SETS)()
    return kind
