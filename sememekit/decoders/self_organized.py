"""The self-organised hierarchical softmax: clusters of words that are learned with the model (Shen et al. 2017)."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from sememekit.decoders.assignment import Assignment, assign_greedily
from sememekit.decoders.base import ClusterChange, ClusterLearner, Resources, word_vectors
from sememekit.decoders.bias_start import BiasStartSettings, begin_bias, begin_class_bias
from sememekit.errors import ConfigError
from sememekit.layers import FixedTables, Linear, shared_dropout
from sememekit.layers.grouped_cross_entropy import Groups, grouped_cross_entropy
from sememekit.measure import Tally
from sememekit.ranks import ALONE, Ranks


@final
class SelfOrganized(ClusterLearner, FixedTables):
    """p(w | h) = p(C(w) | h) p(w | h, C(w)), with each word in one cluster C(w), learned during training.

    - h_c = relu(W_c h), h_w = relu(W_w h), Eq. (1) of Shen et al. 2017; no bias, as printed;
    - p(c | h) = softmax over clusters of h_c . u_c, Eq. (2); p(w | h, c) = softmax over the words of c of h_w . x_w, Eq. (3);
    - q(w, c), an estimate of the mean of log2 p(c | h) over the contexts of w, moves at each training occurrence of w by
      exponential smoothing, Eq. (9): q(w, c) <- (1 - a) q(w, c) + a log2 p(c | h);
    - every K steps words are assigned by falling frequency to the open cluster with the highest q, Algorithm 1
      (``assignment.assign_greedily``). Only the assignment changes, not the vectors.

    The printed Eq. (10) has a = 1 - 1/f with f the count of w: a word seen once then never moves, and q of a frequent word
    depends on its last occurrence alone. A running mean over about one epoch of the text needs a = 1/f, the default here;
    ``smoothing="printed"`` is Eq. (10) to the letter.

    Our choices where the paper is silent: C is sqrt(V) rounded up. q starts at -log2 C, the value of the uniform distribution
    (at 0 an unseen pair would beat all others), continues over updates and is never reset. Occurrences of a word in one batch
    count in the order of the text. f is the count of the vocabulary, over all splits, at least 1. First clusters come from
    random scores, under the same two limits. With fewer clusters than sqrt(V), as from a file, the limit of words is gamma V /
    C. A cluster without words gets no probability, so that words sum to one; q uses the softmax over all clusters, so that an
    empty cluster can win words again. Statistics use contexts with dropout. Padding words of a task are counted, too.

    With several processes each step shares the occurrences of all ranks, so that q and the clusters are the same everywhere:
    contexts (T, B, H) in the order of one process, rows (N, H) rank after rank.

    q has V x C numbers and is part of each checkpoint."""

    never_narrowed: ClassVar[tuple[str, ...]] = ("scores", "losses", "weight_of_new")
    training_counters: ClassVar[tuple[str, ...]] = ("held_steps",)

    class Settings(BiasStartSettings):
        tied: bool = True
        """Share the word vectors with the input embedding; contexts take its size."""
        start: Literal["random", "file"] = "random"
        """Source of the first clusters: random, or a file of clusters (``--clusters``)."""
        num_clusters: int | None = Field(default=None, ge=1)
        """C; unset: sqrt(V) rounded up, or the number in the file."""
        gamma: float = Field(default=1.5, gt=1.0)
        """A cluster is closed once it has gamma max(sqrt(V), V / C) words."""
        frequency_budget: float = Field(default=0.1, gt=0.0)
        """f_b: a cluster is closed once its words are this share of the text."""
        update_every: int = Field(default=1000, ge=0)
        """K, training steps between assignments; 0 keeps the clusters fixed and gathers no statistics."""
        smoothing: Literal["corrected", "printed"] = "corrected"
        """Weight of a new occurrence of a word with count f: 1/f, or 1 - 1/f as printed."""
        bias: bool = False
        """A bias for each word and each cluster; not in the paper."""
        projection: Literal["relu", "tanh", "none"] = "relu"
        """Map from h to h_c and h_w: a matrix with relu, Eq. (1), or with tanh (ours, without dead units); or none, as in
        ``class_hsm``: both are h, and a tied embedding must be as wide as the contexts."""
        context_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate on the projected contexts, one mask a sequence; not in the paper."""

    @classmethod
    def needs(cls, settings: Settings) -> frozenset[str]:
        return frozenset({"clusters"} if settings.start == "file" else ())

    scores: Tensor
    weight_of_new: Tensor
    losses: Tensor
    held_steps: Tensor

    def __init__(self, settings: Settings, resources: Resources) -> None:
        super().__init__(settings, resources)
        self.settings, self.learns_from_nll = settings, settings.update_every > 0
        counts = resources.vocabulary.counts
        given = resources.clusters if settings.start == "file" else None
        num_words, num_clusters = len(counts), _number_of_clusters(settings, len(counts), given)
        projected = settings.projection != "none"
        self.words = word_vectors(resources, "self_organized", tied=settings.tied, any_size=projected)
        size = self.words.embedding_dim
        self.projection = nn.Linear(resources.width, 2 * size, bias=False) if projected else None
        self.cluster_vectors = Linear(size, num_clusters, bias=settings.bias)
        nn.init.uniform_(self.cluster_vectors.weight, -0.1, 0.1)
        if settings.bias:
            nn.init.zeros_(self.cluster_vectors.bias)
        self.bias = nn.Parameter(torch.zeros(num_words)) if settings.bias else None

        occurrences = np.maximum(counts, 1).astype(np.float64)
        self.frequencies = occurrences / occurrences.sum()
        share = 1.0 / occurrences
        self.register_tables(weight_of_new=torch.from_numpy(share if settings.smoothing == "corrected" else 1.0 - share))
        try:  # read now, also on the meta device
            self.register_buffer("scores", torch.rand(num_words, num_clusters, device="cpu"))
        except RuntimeError:
            told = f"{num_words:,} words x {num_clusters:,} clusters take {4e-9 * num_words * num_clusters:.1f} GB"
            raise ConfigError(f"decoder 'self_organized': {told}, beyond memory; set decoder.num_clusters=200") from None
        self.register_buffer("losses", torch.zeros(3, dtype=torch.float64))
        """Nats of clusters, nats inside clusters, and tokens, since the last assignment."""
        self.register_buffer("held_steps", torch.zeros((), dtype=torch.int64))
        """Training steps with frozen clusters; ``_held`` is a copy on the CPU."""
        self._held, self._ranks = 0, ALONE
        self._seen: list[tuple[Tensor, Tensor, Tensor]] = []
        """log p(c | h), words and growth of ``losses`` since the last step of this rank; used with several ranks."""
        first, self.orphaned_at_start = self._assign(None) if given is None else (given, 0)
        self.groups = Groups(first, num_clusters, persistent=True)
        self.scores.fill_(-math.log2(num_clusters))

    def room_for_words(self) -> Mapping[str, Any]:
        return {"num_clusters": self.num_clusters}

    def begin_training(self, counts: NDArray[np.integer]) -> None:
        """With "log_frequency", cluster biases start from the frequencies of the first words and stay when words move."""
        begin_class_bias(self.cluster_vectors.bias, self.settings.bias_start, counts, self.groups.group_of)
        begin_bias(self.bias, self.settings.bias_start, counts)

    def _choices(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        for_clusters, for_words = self._contexts(hidden)
        return self._among_filled(self.cluster_vectors(for_clusters)).log_softmax(dim=-1), for_words

    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the loss over all clusters and the words of one cluster; in training also update q."""
        return self.nll_of_some(hidden, target, None)

    def nll_of_some(self, hidden: Tensor, target: Tensor, keep: Tensor | None) -> Tensor:
        """Return ``nll`` of the targets selected by ``keep`` (...), and 0 for the others; None selects all."""
        counted = self.training and torch.is_grad_enabled() and self.learns_from_nll and not self._held
        of_cluster, within = self._parts(hidden, target, counted, keep)
        return of_cluster + within

    def nll_parts(self, hidden: Tensor, target: Tensor) -> dict[str, Tensor]:
        of_cluster, within = self._parts(hidden, target, counted=False)
        return {"cluster": of_cluster, "in_cluster": within}

    @torch.no_grad()
    def observe(self, hidden: Tensor, target: Tensor) -> None:
        """Update q by Eq. (9) for each occurrence, in the order of the text."""
        rows = hidden.reshape(-1, hidden.shape[-1])
        if len(rows):
            logits = self.cluster_vectors(self._contexts(rows)[0])
            self._smooth(logits.to(self.scores.dtype).log_softmax(dim=-1), target.reshape(-1))

    @torch.no_grad()
    def cluster_bits(self, hidden: Tensor) -> Tensor:
        logits = self.cluster_vectors(self._contexts(hidden)[0])
        return logits.to(self.scores.dtype).log_softmax(dim=-1) / math.log(2.0)

    def set_cluster_statistics(self, means: Tensor, seen: Tensor) -> None:
        """Set ``q`` by Eq. (8) instead of Eq. (9)."""
        self.scores.copy_(torch.where(seen[:, None].to(self.scores.device), means.to(self.scores), self.scores))

    def freeze_clusters(self, steps: int) -> None:
        self._held = steps
        self.held_steps.fill_(steps)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        super()._load_from_state_dict(state_dict, prefix, *rest)
        self._held = int(self.held_steps)

    def reassign(self) -> ClusterChange:
        self.losses.zero_()
        before = self.groups.group_of.cpu().numpy().copy()
        after, orphaned = self._assign(before)
        self.groups.set(torch.from_numpy(after))
        moved = before != after
        return ClusterChange(
            moved_words=float(moved.mean()),
            moved_frequency=float(self.frequencies[moved].sum()),
            orphaned_words=orphaned,
            empty_clusters=int((self.groups.sizes == 0).sum()),
            largest_cluster=self.groups.largest,
        )

    def train_together(self, ranks: Ranks, draws: torch.Generator) -> None:
        self._ranks = ranks

    @torch.no_grad()
    def _share_occurrences(self) -> None:
        """Collect the occurrences of all ranks in this step, in the order of the batch's columns."""
        if self._ranks.size == 1:
            return
        along, grown = 0, torch.zeros_like(self.losses)
        for _, target, losses in self._seen:
            along, grown = target.ndim - 1, grown + losses
        along = max(self._ranks.all(along))
        mine = [torch.cat([seen[part] for seen in self._seen], dim=along) if self._seen else None for part in (0, 1)]
        log_probs, words = (self._ranks.joined_along(part, along) for part in mine)
        self._ranks.add_up_([grown])
        self.losses += grown
        self._seen.clear()
        if log_probs is not None and words is not None:
            self._smooth(log_probs.reshape(-1, log_probs.shape[-1]), words.reshape(-1))

    def after_step(self, step: int) -> dict[str, float] | None:
        """Reassign words every K steps; step 1 reports the first clusters.

        The perplexities are of the training text since the last assignment. Frozen clusters stay."""
        if self._held:
            self.freeze_clusters(self._held - 1)
            return None
        every = self.settings.update_every
        if every:
            self._share_occurrences()
        due = every > 0 and step % every == 0
        if not due and step != 1:
            return None
        if not due:  # the clusters that training begins with
            empty = int((self.groups.sizes == 0).sum())
            return ClusterChange(0.0, 0.0, self.orphaned_at_start, empty, self.groups.largest)._asdict()
        of_clusters, within, tokens = self.losses.tolist()
        perplexities = {
            "cluster_perplexity": Tally(of_clusters, int(tokens)).perplexity,
            "in_cluster_perplexity": Tally(within, int(tokens)).perplexity,
        }
        return {**self.reassign()._asdict(), **perplexities}

    def _contexts(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return h_c and h_w, (..., E) each."""
        if self.projection is None:
            contexts = torch.cat([hidden, hidden], dim=-1)
        else:
            contexts = self.projection(hidden)
            contexts = contexts.relu() if self.settings.projection == "relu" else contexts.tanh()
        contexts = shared_dropout(contexts, self.settings.context_dropout, self.training, (0,) if hidden.ndim == 3 else ())
        for_clusters, for_words = contexts.chunk(2, dim=-1)
        return for_clusters, for_words

    def _among_filled(self, logits: Tensor) -> Tensor:
        """Cluster logits (..., C), -inf for clusters without words."""
        return logits.masked_fill(self.groups.sizes == 0, -torch.inf) if self.groups.any_empty else logits

    def _parts(self, hidden: Tensor, target: Tensor, counted: bool, keep: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return -log p(C(w) | h) and -log p(w | h, C(w)), (...) each; 0 for targets outside ``keep``."""
        words = target.reshape(-1)
        for_clusters, for_words = (part.reshape(-1, part.shape[-1]) for part in self._contexts(hidden))
        if keep is not None:
            kept = keep.reshape(-1)
            words, for_clusters, for_words = words[kept], for_clusters[kept], for_words[kept]
        logits = self.cluster_vectors(for_clusters)
        log_probs = self._among_filled(logits).log_softmax(dim=-1)
        of_cluster = -log_probs.gather(-1, self.groups.group_of[words, None])[:, 0]
        within = grouped_cross_entropy(for_words, self.words.weight, self.bias, words, self.groups)
        if counted and len(words):
            with torch.no_grad():
                over_all, wide = log_probs, self.scores.dtype
                if self.groups.any_empty or log_probs.dtype != wide:
                    over_all = logits.to(wide).log_softmax(dim=-1)
                if self._ranks.size > 1:
                    both = torch.stack([of_cluster.double().sum(), within.double().sum()])
                    seen, count = words if keep is not None else target, both.new_full((1,), len(words))
                    self._seen.append((over_all.detach().view(*seen.shape, -1), seen, torch.cat([both, count])))
                else:
                    self._smooth(over_all.detach(), words)
                    self.losses[0] += of_cluster.double().sum()
                    self.losses[1] += within.double().sum()
                    self.losses[2] += len(words)
        if keep is not None:
            of_cluster, within = (part.new_zeros(target.shape).masked_scatter(keep, part) for part in (of_cluster, within))
        return of_cluster.reshape(target.shape), within.reshape(target.shape)

    def _smooth(self, log_probs: Tensor, words: Tensor) -> None:
        """Apply Eq. (9) to tokens ``words`` (N,) in order, with natural ``log_probs`` (N, C).

        For a word that occurs n times: q <- (1-a)^n q + sum_i a (1-a)^(n-i) log2 p_i. The sums are deterministic (no atomic
        additions), and shapes do not depend on the data."""
        order = words.argsort(stable=True)
        ordered = words[order]
        position = torch.arange(len(words), device=words.device)
        run = functional.pad((ordered.diff() != 0).cumsum(0), (1, 0))  # the number of a token's word among those that occur
        counts = torch.zeros_like(position).scatter_add_(0, run, torch.ones_like(run))
        ends = counts.cumsum(0)  # runs beyond the last are empty
        new = self.weight_of_new[ordered]
        weights = new * (1.0 - new).pow(ends[run] - 1 - position)
        word = ordered[(ends - counts).clamp(max=len(words) - 1)]
        sums = functional.embedding_bag(
            order,
            log_probs / math.log(2.0),
            torch.cat([ends - counts, ends[-1:]]),
            mode="sum",
            per_sample_weights=weights.to(log_probs.dtype),
            include_last_offset=True,
        )
        forgotten = -torch.expm1(counts.clamp(min=1) * torch.log1p(-self.weight_of_new[word]))  # 1 - (1-a)^n
        # The change of an empty run is exactly 0, so it does not matter that it is added to the row of another word.
        change = sums - forgotten[:, None] * self.scores[word] * (counts > 0)[:, None]
        self.scores.index_add_(0, word, change.to(self.scores.dtype))

    def _assign(self, present: NDArray[np.int64] | None) -> Assignment:
        num_words, num_clusters = self.scores.shape
        return assign_greedily(
            self.scores.cpu().numpy(),
            self.frequencies,
            largest=self.settings.gamma * max(math.sqrt(num_words), num_words / num_clusters),
            budget=self.settings.frequency_budget,
            present=present,
        )


def _number_of_clusters(settings: SelfOrganized.Settings, num_words: int, given: NDArray[np.int64] | None) -> int:
    if given is None:
        return settings.num_clusters or math.ceil(math.sqrt(num_words))
    of_file = int(given.max()) + 1
    if settings.num_clusters is not None and settings.num_clusters < of_file:
        raise ConfigError(
            f"decoder 'self_organized': the file of clusters has {of_file}, more than decoder.num_clusters="
            f"{settings.num_clusters}; leave decoder.num_clusters out, or give {of_file} at least"
        )
    return settings.num_clusters or of_file
