"""The base class of tasks, and one for each kind of model that commands know."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, Self, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sememekit.config import Settings, name_of
from sememekit.data.examples import Examples
from sememekit.data.prepared import PreparedData
from sememekit.decoders.base import Decoder, Scheduled
from sememekit.encoders.base import Encoder, State
from sememekit.errors import ConfigError, DataError
from sememekit.measure.classes import Accuracy
from sememekit.measure.perplexity import Scored
from sememekit.progress import OneStage, silent
from sememekit.ranks import ALONE, Ranks
from sememekit.tasks import TASKS
from sememekit.tasks.resources import TaskResources
from sememekit.tasks.scoring import Scoring, UnitScores, stream_scoring
from sememekit.tasks.vectors import VectorCoverage
from sememekit.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Kind = Literal["words", "labels", "texts", "influence", "lattices"]
"""Questions that commands can ask of a model: see ``Task.kinds``."""

Carry = tuple[Tensor, ...]  # state that one batch passes to the next, as tensors that a checkpoint can store


@dataclass(frozen=True)
class BatchLoss:
    """The loss of one batch."""

    nats: Tensor
    """Scalar tensor, the summed negative log-likelihood of ``count`` predictions."""
    count: int
    penalty: Tensor | None
    """Scalar tensor that is added to ``nats / count`` for the gradient only, or None."""
    carry: Carry
    rate_scale: float = 1.0
    """Factor of the learning rate in the step of this loss alone."""
    share: float = 1.0
    """Share of this part in the step's gradient, if a batch is computed in several parts."""
    divisor: int | None = None
    """Divisor of ``nats`` for the gradient, if not ``count``."""


class PrimaryMetric(NamedTuple):
    """The metric that selects the best checkpoint, and its direction."""

    name: str
    lower_is_better: bool

    def improves(self, new: float, best: float | None, threshold: float = 0.0) -> bool:
        """Return whether ``new`` is better than ``best`` by more than ``threshold`` times ``best``; False if not finite."""
        if best is None:
            return math.isfinite(new)
        margin = threshold * abs(best)
        return math.isfinite(new) and (new < best - margin if self.lower_is_better else new > best + margin)


class Task(nn.Module, ABC):
    """A model with its training batches, loss and evaluation: the trainer uses nothing else.

    >>> task = Run.open("runs/sdlm").task
    >>> task.evaluate(PreparedData.open("data/pd"), "valid")["perplexity"]
    >>> "words" in task.kinds

    A subclass nests a frozen ``Settings``. For commands other than ``train`` and ``eval`` it derives from ``WordPredictor``,
    ``LabelPredictor`` or ``writing.TextWriter``."""

    Settings: type[Settings]
    kinds: ClassVar[frozenset[Kind]] = frozenset()
    """Questions that commands can ask it; each is declared by the base class with the methods."""
    kind: ClassVar[Kind]
    """The kind that this class declares, if any."""
    summary: ClassVar[str]
    """The kind in words, for messages: "a model that predicts words"."""
    usual_optimizer: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Default settings of the optimiser, for tasks that need another one than the SGD of language models."""
    trained_by: ClassVar[str]
    """Tasks of the kind, for messages."""
    takes_decoder: ClassVar[bool] = True
    """True if it has an output layer that ``--decoder`` chooses."""
    left_to_right: ClassVar[bool] = False
    """True if it predicts the encoder's next input, which excludes encoders that ``reads_ahead``."""
    vocabulary: Vocabulary
    encoder: Encoder
    decoder: Decoder
    """The output layer, if it has one; the task notifies it of steps and of the target counts."""

    @classmethod
    @abstractmethod
    def build(cls, settings: Any, resources: TaskResources) -> Self:
        """Build the model, freshly initialised, on the CPU; torch's generator is seeded before.

        ``resources``: the words, and the parts in the plan, which ``resources.make_encoder`` and ``make_decoder`` build. Raises
        ConfigError: the parts do not fit, or a needed part is absent."""

    @property
    @abstractmethod
    def metric(self) -> PrimaryMetric:
        """The metric that chooses the best weights."""

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @classmethod
    def needs(cls, settings: Any) -> frozenset[str]:
        """Return the names of the parts that these settings need: "graph", or none."""
        return frozenset()

    def remarks(self, data: PreparedData) -> Sequence[str]:
        """Return remarks for the user before training on ``data`` begins, a sentence each."""
        return ()

    def target_counts(self, data: PreparedData, split: str) -> NDArray[np.int64] | None:
        """Return (V,) how often each word is a target in a split; None if the task predicts no words."""
        return None

    def begin_training(self, data: PreparedData) -> None:
        """Initialise weights from the training text or from files; called once, on the CPU, before a fresh run is trained."""
        counts = self.target_counts(data, "train")
        if counts is not None:
            self.decoder.begin_training(counts)

    @abstractmethod
    def num_batches(self, data: PreparedData, epoch_seed: int) -> int:
        """Return the number of ``batches`` in the training epoch ``epoch_seed``."""

    @abstractmethod
    def batches(self, data: PreparedData, epoch_seed: int, first: int) -> Iterator[Any]:
        """Yield the training batches of one epoch from number ``first`` on, on the device of the parameters.

        ``epoch_seed`` seeds the random order and cuts of an epoch. The same seed gives the same batches, so that a run can be
        resumed in the middle of an epoch."""

    def start(self, data: PreparedData) -> Carry:
        """Return the state for the first batch of an epoch."""
        return ()

    @abstractmethod
    def loss(self, batch: Any, carry: Carry) -> BatchLoss:
        """Return the loss of one batch in nats, summed."""

    def losses(self, batch: Any, carry: Carry) -> Iterator[BatchLoss]:
        """Yield the loss of one batch in parts whose gradients are added, to save memory (default: one part).

        The shares sum to one, and the last part has the state, penalty and scale of the whole batch."""
        yield self.loss(batch, carry)

    def after_step(self, step: int) -> dict[str, float] | None:
        """Notify the output layer after each optimiser step, numbered from 1; see ``Scheduled.after_step``."""
        layer = getattr(self, "decoder", None)
        return layer.after_step(step) if isinstance(layer, Scheduled) else None

    @abstractmethod
    def evaluate(self, data: PreparedData, split: str) -> dict[str, float]:
        """Return the metrics on a split, without dropout, including the primary one."""

    @abstractmethod
    def unigram_baseline(self, data: PreparedData, split: str) -> dict[str, float]:
        """Return the primary metric of a unigram model; a run that stays near it is stuck."""

    def scored(self, data: PreparedData, split: str, batch_size: int | None = None) -> Scoring | None:
        """Return the scoring of a split by units; None if the metrics are not sums over units.

        ``batch_size``: columns of a running text (default: the columns of evaluation); other texts have no columns."""
        return None


class Divided(Task):
    """A task that several processes can train: ``batches`` and ``start`` return its rank's part, None for an empty part."""

    ranks: Ranks = ALONE
    """The processes that train it."""


class Planned(Task):
    """A task with a schedule of its own."""

    @abstractmethod
    def expect_updates(self, total: int) -> None:
        """Receive the planned number of updates of the run at the start of each epoch."""


class WordPredictor(Task):
    """A task whose model predicts the next word of a text: perplexity, scores, samples, explanations.

    >>> hidden_TBH, state = task.contexts(tokens_TB, task.encoder.start(2))
    >>> log_probs_TBV = task.decoder.log_probs(hidden_TBH)
    >>> perplexity = tallies(task.score(ids_N))[0].perplexity"""

    kind: ClassVar[Kind] = "words"
    kinds: ClassVar[frozenset[Kind]] = frozenset({"words"})
    summary, trained_by = "a model that predicts words", "language_model"
    left_to_right: ClassVar[bool] = True

    @property
    @abstractmethod
    def evaluation_batch_size(self) -> int:
        """Number of columns of a stream in evaluation."""

    @abstractmethod
    def contexts(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Contexts (T, B, H) after each of ``tokens`` (T, B), and the last state; the first state is ``encoder.start(B)``."""

    @abstractmethod
    def score(self, tokens: np.ndarray, *, batch_size: int | None = None, progress: OneStage = silent) -> Iterator[Scored]:
        """Score a stream by the evaluation protocol: every token but the first is predicted once, without dropout.

        ``tokens``: (n,) word ids; ``batch_size``: columns, None for ``evaluation_batch_size``. ``progress`` is called with the
        number of predicted tokens so far, and the total."""

    def scored(self, data: PreparedData, split: str, batch_size: int | None = None) -> Scoring:
        tokens = data.tokens(split)
        columns = min(batch_size or self.evaluation_batch_size, max(len(tokens) - 1, 1))
        return stream_scoring(data, split, lambda progress: self.score(tokens, batch_size=columns, progress=progress), columns)


class LabelPredictor(Task):
    """A task whose model predicts labels of whole texts. It has no output layer over words.

    >>> ids = [vocabulary.encode(text.split()) for text in ("A man sleeps .", "He is awake .")]
    >>> probabilities_NC = task.probabilities([ids])    # one example of two texts
    >>> task.labels[probabilities_NC[0].argmax()]"""

    kind: ClassVar[Kind] = "labels"
    kinds: ClassVar[frozenset[Kind]] = frozenset({"labels"})
    summary, trained_by = "a model that predicts labels", "nli|classification"
    usual_optimizer: ClassVar[Mapping[str, Any]] = MappingProxyType({"name": "adam", "learning_rate": 0.002, "clip": 5.0})
    takes_decoder: ClassVar[bool] = False
    labels: tuple[str, ...]
    num_texts: ClassVar[int]

    @abstractmethod
    def probabilities(self, texts: Sequence[Sequence[NDArray[np.integer]]]) -> NDArray[np.float64]:
        """(n, C) probabilities of the labels for n examples of N arrays of word ids each, without dropout."""

    def vector_coverage(self, data: PreparedData, split: str) -> VectorCoverage | None:
        """Return the coverage of a split by the pretrained vectors of the model; None without pretrained vectors."""
        return None

    def examples(self, data: PreparedData, split: str) -> Examples:
        """Return the examples of a split; DataError if they do not fit this model."""
        examples = data.examples(split)
        summary = data.signature.examples
        if summary is None or summary.labels != self.labels or examples.num_texts != self.num_texts:
            given = f"{examples.num_texts} texts an example and the labels {summary.labels if summary else None}"
            raise DataError(
                f"{data.folder}: has {given}; this model takes {self.num_texts} and the labels {self.labels}; "
                f"for pairs there is --task nli, for single texts --task classification"
            )
        if len(examples) == 0:
            raise DataError(f"{data.folder}: the split {split!r} has no examples")
        return examples

    def scored(self, data: PreparedData, split: str, batch_size: int | None = None) -> Scoring:
        examples = self.examples(data, split)
        units = np.arange(len(examples))

        def chunks(progress: OneStage) -> Iterator[UnitScores]:
            progress(0, len(units))
            right = self.probabilities([examples.texts(number) for number in units.tolist()]).argmax(1) == examples.labels
            yield UnitScores(units, right.astype(np.float64), np.ones_like(units))
            progress(len(units), len(units))

        how = "labels examples, one by one"
        return Scoring(chunks, "examples", len(units), "accuracy", how=how, without=("batch_size",), counted="examples")

    @abstractmethod
    def evaluate_labels(self, data: PreparedData, split: str) -> tuple[Accuracy, float]:
        """Return accuracy, interval and confusion on a split, and the summed nats of the right labels."""


P = TypeVar("P", bound=Task)

_OTHER_COMMANDS: Final[dict[Kind, tuple[str, ...]]] = {
    "words": ("score RUN", "generate RUN"),
    "lattices": ("evaluate-ppl RUN", "segment --model RUN", "explain RUN TEXT"),
    "labels": ("predict RUN", "compare RUN RUN2", "analyze RUN RUN2"),
    "texts": ("generate RUN",),
}


def declares(task: Task, kind: type[P]) -> TypeIs[P]:
    """Return whether the task is of a ``kind`` such as ``WordPredictor``."""
    return kind.kind in task.kinds


def require(task: Task, kind: type[P], command: str) -> P:
    """Return the task if it is of the ``kind``; ConfigError as ``check_declares``."""
    check_declares(type(task), kind, command)
    return cast(P, task)


def take_part(task: Task, ranks: Ranks) -> None:
    """Give a task its ranks. Raises ConfigError: it cannot be divided, or there are more processes than the batch allows."""
    size = ranks.size
    if size > 1 and not isinstance(task, Divided):
        raise ConfigError(
            f"task {name_of(type(task), TASKS)} does not divide its batches, and {size} processes were started; train it in "
            "one process, or derive the class from Divided and give each rank its part (docs/scale.md)"
        )
    batch: int = getattr(getattr(task, "settings", None), "batch_size", size)
    if batch < size:
        raise ConfigError(
            f"task.batch_size={batch} cannot be divided among {size} processes; start {batch} at most "
            f"(torchrun --nproc_per_node={batch} ...), or set --set task.batch_size={size} or more"
        )
    if isinstance(task, Divided):
        task.ranks = ranks


def check_declares(task: type[Task], kind: type[Task], command: str) -> None:
    """Refuse a class of tasks that is not of the ``kind``; ConfigError for ``command`` names other tasks."""
    if kind.kind not in task.kinds:
        known = [f"'sememekit {usage}'" for own, commands in _OTHER_COMMANDS.items() if own in task.kinds for usage in commands]
        others = f"{', '.join(known)} and " if known else ""
        raise ConfigError(
            f"{command} needs {kind.summary}, and this run has the task {name_of(task, TASKS)}; train one with "
            f"'sememekit train --task {kind.trained_by}', or see {others}'sememekit eval RUN' for this one"
        )
