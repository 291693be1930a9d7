"""A trained model that gives texts labels."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sememekit.corpora.examples.base import ExampleSet
from sememekit.corpora.examples.labelled import set_of
from sememekit.errors import DataError
from sememekit.runs.run import Run
from sememekit.runs.uncut import CUT_FIRST, cuts, refuse_uncut, refuse_unknown, uncut
from sememekit.tasks.base import LabelPredictor, require
from sememekit.text.segmenters import Segmenter

Text = str | Sequence[str]  # a text as it is written, or its words


class Classifier(NamedTuple):
    """A trained model that gives texts labels.

    >>> classifier = load_classifier(Path("runs/nli"))
    >>> classifier.probabilities([("A man sleeps.", "He is awake.")])    # (1, C), columns as in classifier.labels"""

    run: Run
    task: LabelPredictor
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    segmenter: Segmenter
    kind: ExampleSet  # the data set of the training, which determines the format of files

    def words(self, text: Text) -> list[str]:
        """Return the words of a text: segmented like the training data; a list of words stays unchanged."""
        return self.segmenter.segment(self.kind.text(text)) if isinstance(text, str) else list(text)

    def check(self, examples: Sequence[Sequence[str] | str], where: str) -> None:
        """Raise DataError: unsegmented Chinese for a run on data with blanks between words, or texts without a known word."""
        texts = ((example,) if isinstance(example, str) else example for example in examples)
        words = [[word for text in each for word in self.words(text)] for each in texts]
        if not cuts(self.run):
            refuse_uncut([uncut(self.run, each) for each in words], where, CUT_FIRST)
        refuse_unknown(self.run, chain.from_iterable(words), where)

    def probabilities(self, examples: Sequence[Sequence[Text] | str]) -> npt.NDArray[np.float64]:
        """(n, C) probabilities of the labels of n examples, each a tuple of its N texts; for N = 1 also the text alone. A text
        is a string, which is segmented like the training data, or a list of words. Words outside the vocabulary are ``<unk>``.
        Raises DataError: another number of texts, or a text without words, with the number of the example, from 1."""
        vocabulary, ids = self.run.vocabulary, []
        for number, example in enumerate(examples, start=1):
            texts = (example,) if isinstance(example, str) else tuple(example)
            if len(texts) != len(self.texts):
                raise DataError(
                    f"example {number}: {len(texts)} texts, where this model takes {len(self.texts)}: {', '.join(self.texts)}"
                )
            words = [self.words(text) for text in texts]
            for name, found in zip(self.texts, words, strict=True):
                if not found:
                    raise DataError(f"example {number}: the {name} is empty; give at least one word")
            ids.append([vocabulary.encode(found) for found in words])
        if not ids:
            return np.zeros((0, len(self.labels)))
        with self.run.autocast():
            return self.task.probabilities(ids)


def load_classifier(run: Path | Run, *, command: str = "predict") -> Classifier:
    """Load a trained model that predicts labels; errors name the ``command``.

    Raises ConfigError: the model predicts no labels. Raises DataError: the segmenter of its data is not available."""
    loaded = Run.open(run)
    task = require(loaded.task, LabelPredictor, command)
    if loaded.signature.examples is None:
        raise DataError(f"{run}/data.json lists no texts and labels; the run folder is damaged, copy it again")
    texts = loaded.signature.examples.texts
    return Classifier(loaded, task, texts, task.labels, loaded.segmenter(), set_of(loaded.signature.dataset, texts))
