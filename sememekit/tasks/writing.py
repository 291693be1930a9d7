"""What every task promises whose model writes a text for a text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from sememekit.data.examples import Originals
from sememekit.data.prepared import PreparedData
from sememekit.decoders.base import Decoder
from sememekit.encoders.base import Encoder
from sememekit.errors import DataError
from sememekit.measure.scored import Scored
from sememekit.search import BeamSettings, Hypothesis
from sememekit.tasks.base import Kind, Task, WordPredictor, declares, require
from sememekit.tasks.padding import Ids
from sememekit.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class TeacherForced:
    """What a model says while it writes a text that is known already.

    Attributes:
        contexts: (T, G) what each word was predicted from.
        weights: (T, S) of the attention over the source, each row summing to one.
        nats: (T,) negative log-likelihood of each word.
    """

    contexts: Tensor
    weights: Tensor
    nats: Tensor


class TextWriter(Task):
    """A task whose model gives texts a probability, given another text: perplexity, searched texts, explanations.

    Attributes:
        scored_with: what its texts are measured by.
    """

    kind: ClassVar[Kind] = "texts"
    kinds: ClassVar[frozenset[Kind]] = frozenset({"texts"})
    summary, trained_by = "a model that writes a text for a text", "headline|dialogue"
    vocabulary: Vocabulary
    encoder: Encoder
    decoder: Decoder
    scored_with: ClassVar[Literal["rouge", "bleu"]]

    @property
    @abstractmethod
    def search(self) -> BeamSettings:
        """How texts are searched for unless one says otherwise."""

    @abstractmethod
    def check_source(self, words: int, where: str) -> None:
        """Refuse a source that this model cannot read.

        Args:
            words: how many it has.
            where: its place, which begins the message.

        Raises:
            DataError: it is empty, or longer than the settings allow.
        """

    @abstractmethod
    def write(
        self,
        sources: Sequence[Ids],
        search: BeamSettings | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """The best texts for each source, without dropout; no source depends on its company.

        Args:
            sources: word ids, 1 at least each.
            search: how; None for ``self.search``.
            progress: called with sources done and in all.
        """

    @abstractmethod
    def teacher_forced(self, source: Ids, words: Sequence[int]) -> TeacherForced:
        """What the model says while it writes ``words``, which are word ids, without dropout."""

    @property
    @abstractmethod
    def end(self) -> int:
        """The word that ends a target."""

    @abstractmethod
    def score_pairs(
        self, data: PreparedData, split: str, progress: Callable[[int, int], None] | None = None
    ) -> Iterator[Scored]:
        """Nats of every target word of a split and of each end, without dropout: chunks of (N,) real predictions.

        Args:
            data: the prepared data.
            split: of it.
            progress: called with pairs so far and in all.
        """


Predictor = WordPredictor | TextWriter
"""Tasks whose output layer gives single words probabilities, from one context each."""


def predictor(task: Task, command: str) -> Predictor:
    """The task, where its output layer predicts words of the vocabulary, in a stream or for a text.

    Raises:
        ConfigError: where it does not, naming ``command``.
    """
    return task if declares(task, TextWriter) else require(task, WordPredictor, command)


def predictions(
    task: Predictor, data: PreparedData, split: str, progress: Callable[[int, int], None] | None = None
) -> Iterator[Scored]:
    """Every prediction of a split with its context, without dropout: see ``WordPredictor.score`` and ``score_pairs``."""
    if declares(task, TextWriter):
        return task.score_pairs(data, split, progress)
    return task.score(data.tokens(split), progress=progress)


def hypothesis_words(vocabulary: Vocabulary, found: Hypothesis, source: Sequence[str], search: BeamSettings) -> tuple[str, ...]:
    """The words of a hypothesis. Where the search says so, ``<unk>`` gives way to the most attended word of ``source``."""
    words = vocabulary.decode(found.words)
    if search.unknown != "replace":
        return tuple(words)
    looked = zip(found.words, words, found.attended, strict=True)
    return tuple(source[place] if number == vocabulary.unknown_id else word for number, word, place in looked)


def originals_of(data: PreparedData, split: str) -> Originals:
    """Sources and references of a split as they were written.

    Raises:
        DataError: the data keep no text.
    """
    found = data.examples(split).originals
    if found is None:
        raise DataError(
            f"{data.folder}: keeps no references, which texts are measured by; write pairs with: sememekit preprocess "
            "gigaword|lcsts|duc|peoples-daily-headlines|switchboard SOURCE --out DIR"
        )
    return found
