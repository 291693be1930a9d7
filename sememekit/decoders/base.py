"""Base class of the output layers, and what it guarantees."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sememekit.config import Settings, name_of
from sememekit.decoders import DECODERS
from sememekit.errors import ConfigError
from sememekit.layers import grouped_topk, uniform_embedding
from sememekit.layers.grouped_cross_entropy import Groups, within_groups
from sememekit.ranks import Ranks
from sememekit.sememes import SememeGraph
from sememekit.text.vocabulary import Vocabulary


class Resources(NamedTuple):
    """Resources from which an output layer is built. Five fields, and a sixth needs a written reason.

    The reason of the fifth: clusters that one model has learned are data to the next one. They are read once, when a run
    begins, and travel inside its folder as the graph does; a path in a decoder's settings would dangle afterwards.

    Attributes:
        width: H, the size of the contexts.
        vocabulary: the V words.
        graph: words, senses and sememes, where the run has a graph.
        embedding: the input embedding (V, E), to be shared by a tied output layer.
        clusters: (V,) the cluster of each word, where the run has a file of word clusters.
    """

    width: int
    vocabulary: Vocabulary
    graph: SememeGraph | None = None
    embedding: nn.Embedding | None = None
    clusters: NDArray[np.int64] | None = None


class SenseAttribution(NamedTuple):
    """Sense attribution and sememe gates behind the probabilities in one context.

    Attributes:
        word_senses: for each word asked for, (sense number in the graph, share of the word's probability) by falling share.
        sememe_gates: (K,) the probability of each sememe being expressed, in the order of the graph.
    """

    word_senses: tuple[tuple[tuple[int, float], ...], ...]
    sememe_gates: tuple[float, ...]


class SenseProbabilities(NamedTuple):
    """The distribution over all senses that the word probabilities are sums of, for N contexts.

    Attributes:
        log_senses_NS: (N, S) log p(sense | context), in the order of the graph; the exponentials of a row sum to one.
        gates_NK: (N, K) the probability of each sememe being expressed, in the order of the graph.
    """

    log_senses_NS: Tensor
    gates_NK: Tensor


_REMEDIES = {
    "clusters": "needs a file of word clusters; give it with --clusters FILE",
    "embedding": "needs 'embedding', which this task does not offer",
    "graph": "needs a sememe graph; build one with 'sememekit build-sememe-graph' and give it with --graph FILE",
}
"""Need of a decoder -> how to meet it."""

LARGEST_TABLE = 1 << 26
"""Numbers in the tables of contexts x words that a search lets an output layer make at once: 256 MB in single precision."""


class Decoder(nn.Module, ABC):
    """The output distribution over words, with its projection and its loss.

    >>> layer = Softmax(Softmax.Settings(tied=False), Resources(width=16, vocabulary=words))
    >>> nats_TB = layer.nll(hidden_TBH, target_TB)
    >>> log_probs_TBV = layer.log_probs(hidden_TBH)

    A subclass nests a frozen ``Settings`` and takes ``(settings, resources)``. Contexts have any leading shape; of a context
    with three axes the first is time, along which locked masks are shared.
    """

    Settings: type[Settings]
    tables: int = 1
    """Tables of contexts x words that ``log_probs`` holds at once, as a mixture does; searches bound their memory by it."""

    @classmethod
    def needs(cls, settings: Any) -> frozenset[str]:
        """The optional fields of ``Resources`` that these settings need: "graph", "embedding", "clusters"."""
        return frozenset()

    def __init__(self, settings: Any, resources: Resources) -> None:
        super().__init__()
        self._num_words, self._width = len(resources.vocabulary), resources.width
        for field in sorted(self.needs(settings)):
            if getattr(resources, field) is None:
                raise ConfigError(f"decoder {spelled(self)!r} with these settings {_REMEDIES[field]}")

    @property
    def estimates_in_training(self) -> bool:
        """Whether ``nll`` in training mode is a random estimate, drawn from torch's generator; it is exact in evaluation."""
        return False

    def forward(self, hidden: Tensor, target: Tensor) -> Tensor:
        """``nll``, so that hooks, wrappers and compilers find the layer; ``sememekit.nn`` has modules with a mean loss."""
        return self.nll(hidden, target)

    @abstractmethod
    def log_probs(self, hidden: Tensor) -> Tensor:
        """Natural logarithms of the word probabilities. ``hidden``: (..., H). Returns (..., V); each row sums to one."""

    @abstractmethod
    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Negative log-likelihood in nats of each target, unreduced: equal to the gathered ``log_probs``, maybe cheaper.

        ``hidden``: (..., H) contexts; ``target``: (...) word ids. Returns (...) nats.
        """

    def chosen_log_probs(self) -> Callable[[Tensor, Tensor], Tensor]:
        """A function of contexts (N, H) and words (N, K) that gives their log-probabilities (N, K), K words for each context.

        It is for one step of training and may be called any number of times in it, as a recurrence does that looks at the
        probabilities; a decoder may take over many calls at once what is cheaper so. Equal to the gathered ``log_probs``.
        """
        return lambda hidden, words: self.log_probs(hidden).gather(-1, words)

    def topk_words(self, hidden: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The ``count`` most probable words of each context, or all where there are fewer: what a search asks at each step.

        Equal to the largest ``log_probs``, maybe cheaper: nobody needs the others.

        Args:
            hidden: (N, H) contexts.
            count: how many.

        Returns log-probabilities (N, C) by falling value, and word ids (N, C); both may be written over."""
        found = [
            self._topk_words(part, count) for part in hidden.split(max(1, LARGEST_TABLE // (self.tables * self._num_words)))
        ]
        return torch.cat([values for values, _ in found]), torch.cat([words for _, words in found])

    def _topk_words(self, hidden: Tensor, count: int) -> tuple[Tensor, Tensor]:
        log_probs = self.log_probs(hidden)
        values, words = log_probs.topk(min(count, log_probs.shape[-1]))
        return values, words

    def nll_parts(self, hidden: Tensor, target: Tensor) -> dict[str, Tensor]:
        """The terms that ``nll`` is the sum of in evaluation, by name, each (...); empty where it is one term.

        A decoder that first chooses a cluster answers "cluster" and "in_cluster", so that evaluation can say what each costs.
        """
        return {}

    def begin_training(self, counts: NDArray[np.integer]) -> None:
        """Called once before a fresh run is trained, for what starts from how frequent words are; nothing by default.

        Args:
            counts: (V,) how often each word is predicted in the training text. Those of the vocabulary may hold other splits.
        """

    def after_step(self, step: int) -> dict[str, float] | None:
        """Called after each step of the optimiser with its number, from 1; for what changes by other means than gradients.

        Returns plain numbers about what was done, which the trainer reports and writes into metrics.jsonl; None when
        nothing was. All state that this depends on must be in buffers, so that a run that is resumed does the same."""
        return None

    def room_for_words(self) -> Mapping[str, Any]:
        """Settings under which this layer stays as it is when the vocabulary gets more words at its end; None removes a key.

        They are of what the layer derives from the number or the counts of words. Raises ConfigError: it has no word vectors.
        """
        return {}


class Scheduled(Decoder):
    """An output layer with callbacks for the course of the training, beside its steps."""

    def train_together(self, ranks: Ranks, draws: torch.Generator) -> None:
        """Called once before several processes train: for what must be the same on all ranks and is in no gradient.

        Args: ranks: they make the same calls in the same order; ``after_step`` is a place to exchange numbers. draws: gives the
        same numbers on every rank, for what is drawn once for a whole batch; resuming restores it. Torch's own generator
        differs from rank to rank.
        """

    def look_up_sparsely(self, allowed: bool) -> None:
        """Called around each step of training: whether gradients of word vectors may be sparse, which saves time where a step
        sees few words. A decoder that takes them from ``nn.Embedding`` sets its ``sparse``; most need the whole table."""

    def after_rate_cut(self) -> None:
        """Called after an epoch whose validation made the schedule cut the learning rate, before the next epoch.

        All state that this changes must be in buffers, so that a run that is resumed does the same.
        Those that say how far training is are named in an attribute ``training_counters``, and begin anew in a run that begins
        with the weights of this one (``--from``).
        """


class Sensed(Decoder):
    """An output layer whose words are sums of senses, and senses products of sememes."""

    @abstractmethod
    def sense_attribution(self, hidden: Tensor, words: Tensor) -> SenseAttribution:
        """Senses and sememes behind ``words`` (n,) in a context ``hidden`` (H,)."""

    @abstractmethod
    def sense_probabilities(self, hidden: Tensor) -> SenseProbabilities:
        """Probabilities of all senses and sememe gates in contexts ``hidden`` (N, H)."""

    def sense_logs(self, hidden: Tensor, words: Tensor, senses: Tensor) -> Tensor:
        """(N, S') log p(sense | context) up to one number a context, of ``senses`` (S',): all of the distinct ``words`` (W,).

        Contexts are ``hidden`` (N, H); maybe cheaper than ``sense_probabilities``.
        """
        return self.sense_probabilities(hidden).log_senses_NS[:, senses]


class Clustered(Decoder):
    """An output layer that first chooses the cluster of the next word, then the word: ``groups`` divides the V words.

    A subclass sets ``words``, ``bias`` and ``groups``, and gives the two choices (``_choices``).
    """

    words: nn.Embedding
    bias: Tensor | None
    groups: Groups

    @property
    def num_clusters(self) -> int:
        """C, clusters without words included."""
        return self.groups.num_groups

    def clusters(self) -> Tensor:
        """(V,) the cluster of each word, 0 to ``num_clusters`` - 1."""
        return self.groups.group_of

    @abstractmethod
    def _choices(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the clusters (..., C), -inf for empty ones, and contexts (..., E) of the words within."""

    def log_probs(self, hidden: Tensor) -> Tensor:
        among, rows = self._choices(hidden)
        within = within_groups(rows, self.words.weight, self.bias, self.groups)
        return within + among.index_select(-1, self.groups.group_of)

    def topk_words(self, hidden: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """No word is more probable than its cluster, so on a CPU most clusters are never looked into."""
        if hidden.device.type != "cpu":
            return super().topk_words(hidden, count)
        among, rows = self._choices(hidden)
        return grouped_topk(rows, self.words.weight, self.bias, among, self.groups, min(count, self._num_words))


class ClusterChange(NamedTuple):
    """The changes by reassigning words to clusters.

    Attributes:
        moved_words: share of the V words that changed their cluster, 0 to 1.
        moved_frequency: share of the text that these words are, 0 to 1.
        orphaned_words: words that found no open cluster and went to the least loaded one.
        empty_clusters: clusters without a word.
        largest_cluster: words in the largest.
    """

    moved_words: float
    moved_frequency: float
    orphaned_words: int
    empty_clusters: int
    largest_cluster: int


class ClusterLearner(Clustered, Scheduled):
    """A decoder whose word clusters are learned from where words occur: ``observe`` a text, then ``reassign``."""

    @property
    def learns_from_nll(self) -> bool:
        """Whether ``nll`` in training gathers the statistics by which ``after_step`` moves words."""
        return False

    @abstractmethod
    def observe(self, hidden: Tensor, target: Tensor) -> None:
        """Add the occurrences of ``target`` (...) after contexts ``hidden`` (..., H) to the statistics."""

    @abstractmethod
    def cluster_bits(self, hidden: Tensor) -> Tensor:
        """log2 p(c | h) of every cluster, empty ones included: contexts (N, H) -> (N, C)."""

    @abstractmethod
    def set_cluster_statistics(self, means: Tensor, seen: Tensor) -> None:
        """Put exact means of ``cluster_bits`` over the occurrences of each word in the place of the statistics.

        Args:
            means: (V, C).
            seen: (V,) which words occur; the others keep the statistics that they have.
        """

    @abstractmethod
    def reassign(self) -> ClusterChange:
        """Divide the words anew by the statistics. The vectors of words and clusters stay as they are."""

    @abstractmethod
    def freeze_clusters(self, steps: int) -> None:
        """Keep the clusters and their statistics as they are for the next ``steps`` steps of training; resuming knows it."""


def spelled(layer: Decoder) -> str:
    """Return what a user types for an output layer: its name, or ``package.module:Class``."""
    return name_of(type(layer), DECODERS)


def word_vectors(resources: Resources, decoder: str, *, tied: bool, any_size: bool = False) -> nn.Embedding:
    """Output word vectors: the input embedding when tied, otherwise a new (V, H) one, uniform in +-0.1.

    Args:
        any_size: the decoder makes contexts of the embedding's size, whatever that is.

    Raises ConfigError: tied, and the task has no embedding, or one of another size than the contexts."""
    if not tied:
        return uniform_embedding(len(resources.vocabulary), resources.width)
    if resources.embedding is None:
        raise ConfigError(f"decoder {decoder!r} is tied, but this task offers no embedding; set decoder.tied=false")
    size = resources.embedding.embedding_dim
    if size != resources.width and not any_size:
        raise ConfigError(
            f"decoder {decoder!r} is tied: the embedding size ({size}) and the size of its contexts ({resources.width}: of the "
            f"encoder's output, in pairs task.hidden_size) must be equal; set task.embedding_size={resources.width}, or the "
            "other one, or decoder.tied=false"
        )
    return resources.embedding


def rate_was_cut(model: nn.Module) -> None:
    """Tell all output layers of a model: see ``Scheduled.after_rate_cut``."""
    for part in model.modules():
        if isinstance(part, Scheduled):
            part.after_rate_cut()


def loss_is_estimated(layers: Iterable[Decoder]) -> bool:
    """Return whether training estimates the loss of any of these output layers at this point, from sampled words."""
    return any(layer.estimates_in_training for layer in layers)
