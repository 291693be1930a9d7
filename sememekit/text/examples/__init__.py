"""Examples of one or more texts and a label: readers of data sets, one name each, and the corpus that prepares them."""

from sememekit.text.examples.base import ExampleSet, Row

EXAMPLE_SETS = {
    "classification": "sememekit.text.examples.sets:Classification",
    "imdb": "sememekit.text.examples.sets:Imdb",
    "nli": "sememekit.text.examples.sets:Inference",
    "snli": "sememekit.text.examples.sets:Inference",
    "sst2": "sememekit.text.examples.sets:Sst2",
}
"""name -> "module:Class"; ``preprocess package.module:Class`` takes a set of your own."""

__all__ = ["EXAMPLE_SETS", "ExampleSet", "Row"]
