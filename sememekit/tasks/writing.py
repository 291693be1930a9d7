"""The base class of tasks whose model writes a text for a text, and what holds for all that predict words."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from torch import Tensor

from sememekit.data.examples import Originals
from sememekit.data.prepared import PreparedData
from sememekit.errors import DataError
from sememekit.measure.perplexity import Scored
from sememekit.progress import OneStage, silent
from sememekit.search import BeamSettings, Hypothesis
from sememekit.tasks.base import Kind, Task, WordPredictor, declares, require
from sememekit.tasks.padding import Ids
from sememekit.tasks.scoring import PAIRS, Scoring, UnitScores, unit_scores
from sememekit.text.vocabulary import Vocabulary


class TeacherForced(NamedTuple):
    """The predictions of a given text.

    Attributes:
        contexts: (T, G) what each word was predicted from.
        weights: (T, S) of the attention over the source, each row summing to one.
        nats: (T,) negative log-likelihood of each word.
    """

    contexts: Tensor
    weights: Tensor
    nats: Tensor


class TextWriter(Task):
    """A task whose model gives texts a probability, given another text: perplexity, beam search, explanations.

    >>> [hypotheses] = task.write([vocabulary.encode(source)])
    >>> hypothesis_words(vocabulary, hypotheses[0], source, task.search)
    >>> perplexity = tallies(task.score_pairs(data, "test"))[0].perplexity
    """

    kind: ClassVar[Kind] = "texts"
    kinds: ClassVar[frozenset[Kind]] = frozenset({"texts"})
    summary, trained_by = "a model that writes a text for a text", "headline|dialogue"
    scored_with: ClassVar[Literal["rouge", "bleu"]]

    @property
    @abstractmethod
    def search(self) -> BeamSettings:
        """The settings of its beam search."""

    @abstractmethod
    def check_source(self, words: int, where: str) -> None:
        """Raise DataError, beginning with ``where``, for a source of ``words`` words that this model cannot read."""

    @abstractmethod
    def write(
        self, sources: Sequence[Ids], search: BeamSettings | None = None, progress: OneStage = silent
    ) -> list[list[Hypothesis]]:
        """The best texts for each source, without dropout; no source depends on the others in its batch.

        Args:
            sources: word ids, 1 at least each.
            search: how; None for ``self.search``.
            progress: called with sources done and in all.
        """

    @abstractmethod
    def teacher_forced(self, source: Ids, words: Sequence[int]) -> TeacherForced:
        """The predictions of ``words`` (word ids) given ``source``, without dropout."""

    @property
    @abstractmethod
    def end(self) -> int:
        """The word that ends a target."""

    @abstractmethod
    def score_pairs(self, data: PreparedData, split: str, progress: OneStage = silent) -> Iterator[Scored]:
        """Nats of every target word of a split and of each end, without dropout: chunks of (N,) real predictions, with the
        ``places`` of each."""

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


Predictor = WordPredictor | TextWriter
"""Tasks whose output layer gives single words probabilities, from one context each."""


def predictor(task: Task, command: str) -> Predictor:
    """The task, where its output layer predicts words, in a stream or for a text; ConfigError for ``command`` otherwise."""
    return task if declares(task, TextWriter) else require(task, WordPredictor, command)


def predictions(task: Predictor, data: PreparedData, split: str, progress: OneStage = silent) -> Iterator[Scored]:
    """Every prediction of a split with its context: see ``WordPredictor.score`` and ``score_pairs``."""
    if declares(task, TextWriter):
        return task.score_pairs(data, split, progress)
    return task.score(data.tokens(split), progress=progress)


def hypothesis_words(vocabulary: Vocabulary, found: Hypothesis, source: Sequence[str], search: BeamSettings) -> tuple[str, ...]:
    """The words of a hypothesis; where the search says so, ``<unk>`` is replaced by the most attended word of ``source``."""
    words = vocabulary.decode(found.words)
    if search.unknown != "replace":
        return tuple(words)
    looked = zip(found.words, words, found.attended, strict=True)
    return tuple(source[place] if number == vocabulary.unknown_id else word for number, word, place in looked)


def originals_of(data: PreparedData, split: str) -> Originals:
    """Sources and references of a split as they were written; DataError where the data keep none."""
    found = data.examples(split).originals
    if found is None:
        raise DataError(
            f"{data.folder}: keeps no references, which texts are measured by; write pairs with: sememekit preprocess "
            "gigaword|lcsts|duc|peoples-daily-headlines|switchboard SOURCE --out DIR"
        )
    return found
