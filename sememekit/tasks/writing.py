"""The base class of tasks whose model writes a text for a source, and functions for all tasks that predict words."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from torch import Tensor

from sememekit.data.batching import Ids
from sememekit.data.examples import Originals
from sememekit.data.prepared import PreparedData
from sememekit.errors import DataError
from sememekit.measure.perplexity import Scored
from sememekit.progress import OneStage, silent
from sememekit.search import BeamSettings, Hypothesis
from sememekit.tasks.base import Kind, Task, WordPredictor, declares, require
from sememekit.tasks.scoring import PAIRS, Scoring, UnitScores, unit_scores
from sememekit.text.vocabulary import Vocabulary


class TeacherForced(NamedTuple):
    """The predictions of a given text."""

    contexts: Tensor  # (T, G) the context of each prediction
    weights: Tensor  # (T, S) of the attention over the source, each row summing to one
    nats: Tensor  # (T,) negative log-likelihood of each word


class TextWriter(Task):
    """A task whose model predicts a text given a source text: perplexity, beam search, explanations.

    >>> [hypotheses] = task.write([vocabulary.encode(source)])
    >>> hypothesis_words(vocabulary, hypotheses[0], source, task.search)
    >>> perplexity = tallies(task.score_pairs(data, "test"))[0].perplexity"""

    kind: ClassVar[Kind] = "texts"
    kinds: ClassVar[frozenset[Kind]] = frozenset({"texts"})
    summary, trained_by = "a model that writes a text for a text", "headline|dialogue"
    scored_with: ClassVar[Literal["rouge", "bleu"]]
    search: BeamSettings
    """The settings of its beam search."""
    end: int
    """The word that ends a target."""

    @abstractmethod
    def check_source(self, words: int, where: str) -> None:
        """Raise DataError (beginning with ``where``) if a source of ``words`` words is empty or too long for this model."""

    @abstractmethod
    def write(
        self, sources: Sequence[Ids], search: BeamSettings | None = None, progress: OneStage = silent
    ) -> list[list[Hypothesis]]:
        """The best texts for each source, without dropout; no source depends on the others in its batch.

        ``sources``: word ids, at least one for each source; ``search``: settings of the search (default: ``self.search``).
        ``progress`` is called with the number of finished sources, and the total."""

    @abstractmethod
    def teacher_forced(self, source: Ids, words: Sequence[int]) -> TeacherForced:
        """The predictions of ``words`` (word ids) given ``source``, without dropout."""

    @abstractmethod
    def score_pairs(self, data: PreparedData, split: str, progress: OneStage = silent) -> Iterator[Scored]:
        """Yield the nats of all target words and end marks of a split, without dropout, in chunks of (N,) predictions with
        their ``places``."""

    def scored(self, data: PreparedData, split: str, batch_size: int | None = None) -> Scoring:
        lengths = data.examples(split).lengths()[:, 0]

        def chunks(progress: OneStage) -> Iterator[UnitScores]:
            for scored in self.score_pairs(data, split, progress):
                assert scored.places is not None
                yield unit_scores(scored, scored.places[:, 0].astype(np.int64))

        return Scoring(
            chunks,
            "pairs",
            len(lengths),
            reading=PAIRS,
            how="reads pairs, not a running text",
            without=("cache", "dynamic", "batch_size"),
            counted="pairs",
            source_lengths=lengths,
        )


Predictor = WordPredictor | TextWriter  # tasks whose output layer gives single words probabilities, from one context each


def predictor(task: Task, command: str) -> Predictor:
    """Return the task if its output layer predicts words; otherwise ConfigError for ``command``."""
    return task if declares(task, TextWriter) else require(task, WordPredictor, command)


def predictions(task: Predictor, data: PreparedData, split: str, progress: OneStage = silent) -> Iterator[Scored]:
    """Yield every prediction of a split with its context; see ``WordPredictor.score`` and ``score_pairs``."""
    if declares(task, TextWriter):
        return task.score_pairs(data, split, progress)
    return task.score(data.tokens(split), progress=progress)


def hypothesis_words(vocabulary: Vocabulary, found: Hypothesis, source: Sequence[str], search: BeamSettings) -> tuple[str, ...]:
    """Return the words of a hypothesis; the setting ``unknown`` can replace ``<unk>`` by the most attended source word."""
    words = vocabulary.decode(found.words)
    if search.unknown != "replace":
        return tuple(words)
    looked = zip(found.words, words, found.attended, strict=True)
    return tuple(source[place] if number == vocabulary.unknown_id else word for number, word, place in looked)


def originals_of(data: PreparedData, split: str) -> Originals:
    """Return sources and references of a split as originally written; DataError if the data have none."""
    found = data.examples(split).originals
    if found is None:
        raise DataError(
            f"{data.folder}: has no references to score texts against; write pairs with: sememekit preprocess "
            "gigaword|lcsts|duc|peoples-daily-headlines|switchboard SOURCE --out DIR"
        )
    return found
