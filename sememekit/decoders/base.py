"""Base class of the output layers, and their contract."""

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
    """Resources from which an output layer is built. There are five fields; a sixth needs a written reason.

    The reason for the field ``clusters``: clusters learned by one model are data for the next model. They are read once, when a
    run begins, and copied into its folder like the graph; a path in the settings of a decoder would break later.

    Attributes:
        width: H, the size of the contexts.
        vocabulary: the V words.
        graph: words, senses and sememes, if the run has a graph.
        embedding: the input embedding (V, E), to be shared by a tied output layer.
        clusters: (V,) the cluster of each word, if the run has a file of word clusters."""

    width: int
    vocabulary: Vocabulary
    graph: SememeGraph | None = None
    embedding: nn.Embedding | None = None
    clusters: NDArray[np.int64] | None = None


class SenseAttribution(NamedTuple):
    """Sense attribution and sememe gates behind the probabilities in one context.

    Attributes:
        word_senses: for each requested word, (sense number in the graph, share of the word's probability) by falling share.
        sememe_gates: (K,) the probability of each sememe being expressed, in the order of the graph."""

    word_senses: tuple[tuple[tuple[int, float], ...], ...]
    sememe_gates: tuple[float, ...]


class SenseProbabilities(NamedTuple):
    """The distribution over all senses in N contexts; a word probability is the sum over the senses of the word.

    Attributes:
        log_senses_NS: (N, S) log p(sense | context), in the order of the graph; the exponentials of a row sum to one.
        gates_NK: (N, K) the probability of each sememe being expressed, in the order of the graph."""

    log_senses_NS: Tensor
    gates_NK: Tensor


_REMEDIES = {
    "clusters": "needs a file of word clusters; give it with --clusters FILE",
    "embedding": "needs 'embedding', which this task does not offer",
    "graph": "needs a sememe graph; build one with 'sememekit build-sememe-graph' and give it with --graph FILE",
}
"""Need of a decoder -> how to meet it."""

LARGEST_TABLE = 1 << 26
"""Most numbers in the tables of contexts x words that a search computes at once: 256 MB in single precision."""


class Decoder(nn.Module, ABC):
    """The output distribution over words, with its projection and its loss.

    >>> layer = Softmax(Softmax.Settings(tied=False), Resources(width=16, vocabulary=words))
    >>> nats_TB = layer.nll(hidden_TBH, target_TB)
    >>> log_probs_TBV = layer.log_probs(hidden_TBH)

    A subclass nests a frozen ``Settings`` and takes ``(settings, resources)``. Contexts have any leading shape, (..., H), and
    log-probabilities are (..., V); with three axes the first is time, along which locked masks are shared."""

    Settings: type[Settings]
    tables: int = 1
    """Number of tables (contexts x words) that ``log_probs`` holds at once, by which searches bound their memory."""

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
        """True if ``nll`` is a random estimate in training mode; it is exact in evaluation."""
        return False

    def forward(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Call ``nll``, so that hooks, wrappers and compilers find the layer; ``sememekit.nn`` has modules with a mean loss."""
        return self.nll(hidden, target)

    @abstractmethod
    def log_probs(self, hidden: Tensor) -> Tensor:
        """Natural logarithms of the word probabilities. ``hidden``: (..., H). Returns (..., V); each row sums to one."""

    @abstractmethod
    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the negative log-likelihood of each target in nats, unreduced: equal to gathered ``log_probs``, maybe cheaper.

        ``hidden``: (..., H) contexts; ``target``: (...) word ids. Returns (...) nats."""

    def chosen_log_probs(self) -> Callable[[Tensor, Tensor], Tensor]:
        """Return a function from contexts (N, H) and K words for each (N, K) to log-probabilities (N, K).

        The function serves one training step. It may be called many times, for example by a recurrence over the probabilities,
        and a decoder can share work between the calls. Equal to the gathered ``log_probs``."""
        return lambda hidden, words: self.log_probs(hidden).gather(-1, words)

    def topk_words(self, hidden: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Return the ``count`` most probable words of each context (or all words), as a search needs them at each step.

        Equal to the largest ``log_probs``, but maybe cheaper. ``hidden``: (N, H) contexts. Returns log-probabilities (N, C) by
        falling value, and word ids (N, C); both may be written over."""
        found = [
            self._topk_words(part, count) for part in hidden.split(max(1, LARGEST_TABLE // (self.tables * self._num_words)))
        ]
        return torch.cat([values for values, _ in found]), torch.cat([words for _, words in found])

    def _topk_words(self, hidden: Tensor, count: int) -> tuple[Tensor, Tensor]:
        log_probs = self.log_probs(hidden)
        values, words = log_probs.topk(min(count, log_probs.shape[-1]))
        return values, words

    def nll_parts(self, hidden: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Return the named terms of ``nll`` in evaluation, each (...), which add up to it; empty if it has one term.

        A decoder that first chooses a cluster returns "cluster" and "in_cluster", so that evaluation reports both."""
        return {}

    def begin_training(self, counts: NDArray[np.integer]) -> None:
        """Initialise from word frequencies, once before a fresh run is trained (default: nothing).

        ``counts``: (V,) how often each word is a target in the training text, without other splits."""

    def room_for_words(self) -> Mapping[str, Any]:
        """Return settings that keep this layer unchanged when words are appended to the vocabulary; None removes a key.

        They fix values that the layer would otherwise derive from the number or the counts of words. Raises ConfigError: it has
        no word vectors."""
        return {}


class Scheduled(Decoder):
    """An output layer with callbacks for the training schedule."""

    def train_together(self, ranks: Ranks, draws: torch.Generator) -> None:
        """Synchronise state without gradient among ranks; called once before several processes train.

        ``ranks`` all make the same calls in the same order; ``after_step`` can exchange numbers. ``draws`` has the same numbers
        on every rank, unlike torch's default generator, for draws that a whole batch shares; resuming restores it."""

    def look_up_sparsely(self, allowed: bool) -> None:
        """Allow or forbid sparse gradients of word vectors around each training step; sparse gradients save time if a step uses
        few words. A decoder with an ``nn.Embedding`` sets its ``sparse``; most need the whole table."""

    def after_step(self, step: int) -> dict[str, float] | None:
        """Update the state that changes without gradients; called after each optimiser step, numbered from 1.

        Returns numbers for the trainer to report and write into metrics.jsonl, or None if nothing changed. All its state must
        be in buffers, so that a resumed run does the same."""
        return None

    def after_rate_cut(self) -> None:
        """React to a cut of the learning rate, called before the next epoch.

        All state that this changes must be in buffers, so that a resumed run does the same. The attribute ``training_counters``
        names the buffers of training progress, which a run with ``--from`` resets."""


class Sensed(Decoder):
    """An output layer in which a word is a sum of senses, and a sense a product of sememe experts."""

    @abstractmethod
    def sense_attribution(self, hidden: Tensor, words: Tensor) -> SenseAttribution:
        """Return senses and sememes behind ``words`` (n,) in a context ``hidden`` (H,)."""

    @abstractmethod
    def sense_probabilities(self, hidden: Tensor) -> SenseProbabilities:
        """Probabilities of all senses and sememe gates in contexts ``hidden`` (N, H)."""

    def sense_logs(self, hidden: Tensor, words: Tensor, senses: Tensor) -> Tensor:
        """Return (N, S') log p(sense | context), up to a constant for each context, for ``senses`` (S',): all senses of the
        distinct ``words`` (W,).

        Contexts are ``hidden`` (N, H); maybe cheaper than ``sense_probabilities``."""
        return self.sense_probabilities(hidden).log_senses_NS[:, senses]


class Clustered(Decoder):
    """An output layer that first chooses the cluster of the next word, then the word: ``groups`` divides the V words.

    A subclass sets ``words``, ``bias`` and ``groups``, and implements ``_choices``."""

    words: nn.Embedding
    bias: Tensor | None
    groups: Groups

    @property
    def num_clusters(self) -> int:
        """C, including clusters without words."""
        return self.groups.num_groups

    def clusters(self) -> Tensor:
        """(V,) the cluster of each word, 0 to ``num_clusters`` - 1."""
        return self.groups.group_of

    @abstractmethod
    def _choices(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-probabilities of clusters (..., C), -inf for empty ones, and contexts (..., E) for words inside."""

    def log_probs(self, hidden: Tensor) -> Tensor:
        among, rows = self._choices(hidden)
        within = within_groups(rows, self.words.weight, self.bias, self.groups)
        return within + among.index_select(-1, self.groups.group_of)

    def topk_words(self, hidden: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Search only probable clusters on a CPU, since no word is more probable than its cluster."""
        if hidden.device.type != "cpu":
            return super().topk_words(hidden, count)
        among, rows = self._choices(hidden)
        return grouped_topk(rows, self.words.weight, self.bias, among, self.groups, min(count, self._num_words))


class ClusterChange(NamedTuple):
    """The result of reassigning words to clusters."""

    moved_words: float  # share of the V words that changed their cluster, 0 to 1
    moved_frequency: float  # their share of the text, 0 to 1
    orphaned_words: int  # words that went to the least loaded cluster, since no cluster was open
    empty_clusters: int  # clusters without a word
    largest_cluster: int  # words in the largest cluster


class ClusterLearner(Clustered, Scheduled):
    """A decoder that learns word clusters from the contexts of words: ``observe`` a text, then ``reassign``."""

    learns_from_nll: bool = False
    """True if ``nll`` in training gathers the statistics by which ``after_step`` moves words."""

    @abstractmethod
    def observe(self, hidden: Tensor, target: Tensor) -> None:
        """Add the occurrences of ``target`` (...) after contexts ``hidden`` (..., H) to the statistics."""

    @abstractmethod
    def cluster_bits(self, hidden: Tensor) -> Tensor:
        """Return log2 p(c | h) of every cluster, including empty ones: contexts (N, H) -> (N, C)."""

    @abstractmethod
    def set_cluster_statistics(self, means: Tensor, seen: Tensor) -> None:
        """Replace the statistics by exact means of ``cluster_bits`` over the occurrences of each word.

        ``means``: (V, C); ``seen``: (V,) which words occur. Other words keep their statistics."""

    @abstractmethod
    def reassign(self) -> ClusterChange:
        """Reassign words by the statistics. The vectors of words and clusters do not change."""

    @abstractmethod
    def freeze_clusters(self, steps: int) -> None:
        """Freeze the clusters and their statistics for the next ``steps`` training steps, also after resuming."""


def spelled(layer: Decoder) -> str:
    """Return the name of an output layer on the command line: a name, or ``package.module:Class``."""
    return name_of(type(layer), DECODERS)


def word_vectors(resources: Resources, decoder: str, *, tied: bool, any_size: bool = False) -> nn.Embedding:
    """Return the output word vectors: the input embedding if tied, otherwise a new (V, H) table, uniform in +-0.1.

    ``any_size``: the decoder maps contexts to the size of the embedding. Raises ConfigError: tied, but the task has no
    embedding, or its embedding and the contexts differ in size."""
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
    """Call ``Scheduled.after_rate_cut`` of all output layers of a model."""
    for part in model.modules():
        if isinstance(part, Scheduled):
            part.after_rate_cut()


def loss_is_estimated(layers: Iterable[Decoder]) -> bool:
    """Return whether training at this point estimates the loss of any of these output layers from sampled words."""
    return any(layer.estimates_in_training for layer in layers)
