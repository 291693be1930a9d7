"""Base of all output layers of ``sememekit.nn``: shapes, ignored targets, ids in any order, the loss, and a fingerprint of the
senses, classes or tree on which the weights of a layer depend."""

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sememekit.config import read_settings
from sememekit.decoders.base import Decoder, Resources, rate_was_cut
from sememekit.errors import CheckpointError, ConfigError
from sememekit.nn.checks import as_weight, check_arguments, check_range, whole_numbers
from sememekit.nn.senses import Nested, Senses, Words, as_clusters, as_counts, as_senses
from sememekit.sememes import SememeGraph
from sememekit.text.vocabulary import Vocabulary

IGNORED = -100  # default of the ignored target, as in ``torch.nn.CrossEntropyLoss``


class Output(NamedTuple):
    """The output of a layer, named as ``torch.nn.AdaptiveLogSoftmaxWithLoss`` names it.

    Attributes:
        output: (...) log-probability of each target in nats, 0 for ignored targets.
        loss: mean negative log-probability of the targets that are not ignored, 0 if all are; or by the ``reduction``."""

    output: Tensor
    loss: Tensor


class OutputLayer(nn.Module):
    """A distribution over V words for each context: base of the output layers of ``sememekit.nn``.

    ``layer(hidden, target)`` returns ``(output, loss)`` like ``torch.nn.AdaptiveLogSoftmaxWithLoss``, so a layer can replace it
    in a training loop; ``log_prob`` and ``predict`` have the same form. Contexts may be (..., H) with targets (...), not only
    (N, H). Word ids come from any tokenizer, in any order.

    Each setting of the wrapped layer (``Settings`` of ``decoder_class``) is a keyword of the constructor; unknown ones are
    refused. A state dict has the order of words by count, and a fingerprint of senses, classes or tree, which must match on
    loading. The state dict does not contain senses, classes or tree: store them beside it.

    ``in_features`` and ``num_words`` are H and V; ``layer`` is the output layer of ``sememekit.decoders`` that computes."""

    decoder_class: ClassVar[type[Decoder]]
    any_size: ClassVar[bool] = False
    """True if a shared embedding may differ from the contexts in width."""
    ordered: ClassVar[bool] = False
    """True if the wrapped layer needs ids by falling count, so that ids are permuted."""
    by_senses: ClassVar[tuple[str, str] | tuple[()] | None] = None
    """The setting that ``senses`` imply, with its value; () if they imply none, None if the layer reads no senses."""
    by_clusters: ClassVar[tuple[str, str] | None] = None
    """The setting that ``clusters`` imply, with its value; () and None as above."""
    static: ClassVar[bool] = True
    """True if ``layer.nll`` has static shapes and so compiles; else a compiled graph uses the probabilities of all words."""
    rank_of_word: Tensor
    weight: Tensor | None
    layer: Decoder

    def __init__(
        self,
        in_features: int,
        counts: Any,
        senses: Senses | SememeGraph | Nested | None = None,
        *,
        embedding: nn.Embedding | None = None,
        clusters: Any = None,
        ignore_index: int = IGNORED,
        weight: Any = None,
        label_smoothing: float = 0.0,
        reduction: Literal["mean", "sum", "none"] = "mean",
        batch_first: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
        **settings: Any,
    ) -> None:
        """Build the layer.

        Args:
            in_features: H, the width of the contexts.
            counts: (V,) how often each word is a target in the training text, as an array, a tensor or a list; the number V
                alone stands for V words of equal or unknown counts.
            senses: for each of V words its senses, for each sense its sememes, if the layer reads them: nested lists,
                ``Senses`` or a graph.
            embedding: the input embedding (V, E) to share, if the layer can.
            clusters: (V,) given classes or first clusters, if the layer has any.
            ignore_index: the ignored target.
            weight, label_smoothing, reduction: as in ``torch.nn.CrossEntropyLoss``: a weight (V,) for each target (an array,
                a tensor or a list), the probability that is spread over all words, and "mean", "sum" or "none". They change
                ``loss`` only. The mean of nothing is 0: if all targets are ignored, or all have the weight 0.
            batch_first: contexts with three axes have the batch first, not time; this matters for dropout only.
            device, dtype: of the layer, and of a shared embedding.
            settings: further settings of the layer, see the class.

        Raises ConfigError: a setting is unknown or out of range, or an argument does not fit or is not used."""
        super().__init__()
        name, kind = type(self).__name__, self.decoder_class
        of_loss = {"ignore_index": ignore_index, "label_smoothing": label_smoothing, "reduction": reduction}
        check_arguments(name, in_features=in_features, **of_loss, batch_first=batch_first, device=device, dtype=dtype)
        for what, given, choice in (("clusters", clusters, self.by_clusters), ("senses", senses, self.by_senses)):
            if given is not None and choice is None:
                raise ConfigError(f"{name} reads no {what}; leave {what}= out")
            if given is not None and choice:
                settings.setdefault(*choice)
        meanings = None if senses is None else as_senses(senses)
        counted = as_counts(counts, None if meanings is None else meanings.num_words, name)
        if "tied" in settings:
            raise ConfigError(f"{name}: 'tied' follows from embedding=: give the input embedding to share, or leave it out")
        self._check_embedding(name, in_features, len(counted), embedding)
        if "tied" in kind.Settings.model_fields:
            settings["tied"] = embedding is not None
        not_read = [what for what, choice in (("clusters", self.by_clusters), ("senses", self.by_senses)) if choice is None]
        beside = ("senses", *(OutputLayer.__init__.__kwdefaults__ or ()))
        read = read_settings(kind.Settings, settings, name, beside=beside, taken=("tied", *not_read))
        order = np.argsort(-counted, kind="stable") if self.ordered else np.arange(len(counted))
        if self.ordered:
            self.register_buffer("rank_of_word", torch.from_numpy(np.argsort(order, kind="stable")))
        graph = None if meanings is None else meanings.graph
        tokens = tuple(map(str, range(len(counted)))) if graph is None else graph.words
        words = Words(tokens, counted[order], "" if graph is None else graph.vocabulary_fingerprint)
        self.in_features, self.num_words = in_features, len(counted)
        self.ignore_index, self.batch_first = ignore_index, batch_first
        self._shared = () if embedding is None else (embedding,)  # a tuple: the layer registers it where it is used
        self.sememes = () if meanings is None else meanings.sememes
        groups = as_clusters(clusters, len(counted), name)
        self.layer = kind(read, Resources(in_features, cast(Vocabulary, words), graph, embedding, groups))
        self._built(graph)
        self.layer.begin_training(counted[order])
        if label_smoothing and (getattr(read, "samples", 0) or getattr(self.layer, "learns_from_nll", False)):
            raise ConfigError(
                f"{name}: label_smoothing needs the probabilities of all words; leave it out, or train with samples=0, or with "
                "clusters that stay as they are (update_every=0)"
            )
        self.label_smoothing, self.reduction = label_smoothing, reduction
        self.register_buffer("weight", as_weight(weight, len(counted), name), persistent=False)
        self.to(device=device, dtype=dtype)

    def forward(self, hidden: Tensor, target: Tensor | None = None) -> Output:
        """Return log-probabilities of the targets, and the loss (default of ``reduction``: the mean).

        ``hidden``: (..., H) contexts; ``target``: (...) ids of words, whole numbers of any dtype, or ``ignore_index``.

        Raises TypeError: targets that are not integers. Raises ValueError: shapes that do not fit, or (on a CPU) targets that
        are neither 0 to V - 1 nor ``ignore_index``. A GPU stops there with an assertion; a compiled graph does not check."""
        if target is None:
            raise TypeError(
                f"{type(self).__name__}: layer(hidden, target) is a loss; without targets call layer.log_prob(hidden) for the "
                "log-probabilities of all words, or layer.predict(hidden) for the best word"
            )
        target = self._checked(hidden, target)
        keep = target != self.ignore_index
        words, share = target.where(keep, 0), self.label_smoothing
        counts = keep if self.weight is None else self.weight[words] * keep
        if share:
            log_probs = self.log_prob(hidden)
            nats = -log_probs.gather(-1, words.unsqueeze(-1)).squeeze(-1).where(keep, 0.0)
            of_all = -(log_probs if self.weight is None else log_probs * self.weight).sum(dim=-1).where(keep, 0.0)
            losses = (1.0 - share) * nats * counts + share / self.num_words * of_all
        else:
            nats = self._unreduced(hidden, target)
            losses = nats if self.weight is None else nats * counts
        if self.reduction == "none":
            return Output(-nats, losses)
        # summed in single precision at least: a batch of half-precision nats reaches beyond 65,504
        total = losses.sum(dtype=torch.promote_types(losses.dtype, torch.float32))
        if self.reduction == "mean":
            of_all_targets = counts.sum()
            some = of_all_targets > 0
            total = (total / of_all_targets.where(some, 1)).where(some, 0.0)
        return Output(-nats, total.to(losses.dtype))

    if TYPE_CHECKING:
        __call__ = forward

    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return (...) the nats of each target, unreduced, 0 for ignored targets; an estimate if training samples words."""
        return self._unreduced(hidden, self._checked(hidden, target))

    def _unreduced(self, hidden: Tensor, target: Tensor) -> Tensor:
        """``nll`` of checked targets."""
        keep = target != self.ignore_index
        words = target.where(keep, 0)
        if self.ordered:
            words = self.rank_of_word[words]
        swap = self._swap(hidden)
        return swap(self._nll(swap(hidden), swap(words), swap(keep))).where(keep, 0.0)

    def log_prob(self, hidden: Tensor) -> Tensor:
        """Return (..., V) natural log-probabilities of all words; each row of probabilities sums to one."""
        self._check(hidden)
        swap = self._swap(hidden)
        log_probs = swap(self.layer.log_probs(swap(hidden)))
        return log_probs.index_select(-1, self.rank_of_word) if self.ordered else log_probs

    def predict(self, hidden: Tensor) -> Tensor:
        """Return (...) the most probable word of each context."""
        return self.topk(hidden, 1)[1][..., 0]

    @torch.no_grad()
    def topk(self, hidden: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Return log-probabilities and ids (..., C) of the ``count`` most probable words, by falling probability."""
        self._check(hidden)
        if count < 1:
            raise ValueError(f"{type(self).__name__}: topk gives one word or more, given {count}")
        rows = hidden.reshape(-1, self.in_features)
        if torch.compiler.is_compiling():  # cheaper ways go by the probabilities, on which no graph may depend
            values, words = self.layer.log_probs(rows).topk(min(count, self.num_words))
        else:
            values, words = self.layer.topk_words(rows, count)
        words = self.rank_of_word.argsort()[words] if self.ordered else words
        shape = (*hidden.shape[:-1], values.shape[-1])
        return values.reshape(shape), words.reshape(shape)

    def after_step(self) -> dict[str, float] | None:
        """Update the layer after each optimiser step. Only ``SelfOrganizedSoftmax`` changes, and returns figures."""
        return None

    def stop_sampling(self) -> None:
        """Train with the exact loss from now on, with ``samples_until="first-cut"``."""
        rate_was_cut(self.layer)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, num_words={self.num_words}"

    def _built(self, graph: SememeGraph | None) -> None:
        """Hook after the wrapped layer is built with the given senses, before its biases start from counts."""

    def _nll(self, hidden: Tensor, words: Tensor, keep: Tensor) -> Tensor:
        """Return the nats of valid words; arbitrary values for words outside ``keep``."""
        if torch.compiler.is_compiling() and not self._static(hidden):
            return -self.layer.log_probs(hidden).gather(-1, words.unsqueeze(-1)).squeeze(-1)
        return self.layer.nll(hidden, words)

    def _static(self, hidden: Tensor) -> bool:
        return self.static

    def _swap(self, hidden: Tensor) -> Callable[[Tensor], Tensor]:
        """Return a function that puts time first, if contexts have it, so that dropout masks are locked over time."""
        return (lambda x: x.transpose(0, 1)) if self.batch_first and hidden.ndim >= 3 else (lambda x: x)

    def _check(self, hidden: Tensor) -> None:
        if hidden.shape[-1:] != (self.in_features,):
            raise ValueError(f"{type(self).__name__}: contexts must be (..., {self.in_features}), given {tuple(hidden.shape)}")
        for rows in (embedding.weight.shape[0] for embedding in self._shared):
            if rows != self.num_words:
                raise ValueError(
                    f"{type(self).__name__}: the shared embedding has {rows} rows now, and the layer was built for "
                    f"{self.num_words} words; build the layer anew with it"
                )

    def _checked(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Check targets and return them as int64."""
        self._check(hidden)
        name = type(self).__name__
        target = whole_numbers(target, f"{name}: targets", hidden.shape[:-1], f"contexts {tuple(hidden.shape)}")
        hint = f"; to leave a target out, give ignore_index={self.ignore_index}, or build the layer with another ignore_index"
        check_range(target, 0, self.num_words - 1, f"{name}: targets", spared=self.ignore_index, hint=hint)
        return target

    def _check_embedding(self, name: str, in_features: int, num_words: int, embedding: nn.Embedding | None) -> None:
        if embedding is None:
            return
        if "tied" not in self.decoder_class.Settings.model_fields:
            raise ConfigError(f"{name} has vectors of its own and shares none; leave embedding= out")
        if not isinstance(embedding, nn.Embedding):
            raise ConfigError(
                f"{name}: embedding must be the torch.nn.Embedding to share, the module and not its weight, given "
                f"{type(embedding).__name__}"
            )
        rows, width = embedding.weight.shape
        if rows != num_words or (width != in_features and not self.any_size):
            wanted = f"({num_words}, any width)" if self.any_size else f"({num_words}, {in_features})"
            raise ConfigError(f"{name}: a shared embedding must be {wanted}, given ({rows}, {width}); leave embedding= out")


class StructuredLayer(OutputLayer):
    """An output layer whose state dict has a fingerprint of its structure, which must match on loading."""

    def _built(self, graph: SememeGraph | None) -> None:
        digest = hashlib.sha256()
        for array in self._structure(graph):
            digest.update(str(array.shape).encode() + np.ascontiguousarray(array, dtype=np.int64).tobytes())
        digest.update(repr(self.sememes).encode())
        self._fingerprint = np.frombuffer(digest.digest(), dtype=np.uint8).astype(np.int64)

    @abstractmethod
    def _structure(self, graph: SememeGraph | None) -> Iterable[NDArray[Any]]:
        """Return integer arrays that identify the words, senses or classes of the weights."""

    def get_extra_state(self) -> Tensor:
        """Return the fingerprint as a tensor of 32 numbers, which any format of weights can store."""
        return torch.from_numpy(self._fingerprint.copy())

    def set_extra_state(self, state: Any) -> None:
        """Compare the fingerprint of a state dict with this layer's.

        Raises CheckpointError: the weights belong to other senses, classes or another tree."""
        found = state.cpu().long().numpy() if isinstance(state, Tensor) else np.zeros(0, dtype=np.int64)
        if not np.array_equal(found, self._fingerprint):
            raise CheckpointError(
                f"{type(self).__name__}: the state dict belongs to a layer with other senses, classes or tree "
                f"(fingerprint {_short(found)}, here {_short(self._fingerprint)}); build it from the counts, senses, "
                "clusters and settings of the stored one"
            )


def _short(fingerprint: NDArray[Any]) -> str:
    return "".join(f"{number & 255:02x}" for number in fingerprint[:4].tolist()) or "unreadable"
