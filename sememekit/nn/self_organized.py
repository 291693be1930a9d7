"""The self-organised hierarchical softmax (Shen et al. 2017) as a module for any model."""

import warnings
from typing import Any, ClassVar, final

import numpy as np
import torch
from torch import Tensor, distributed, nn
from torch.optim import Optimizer

from sememekit.decoders.base import Decoder
from sememekit.decoders.self_organized import SelfOrganized
from sememekit.errors import ConfigError
from sememekit.nn.output_layer import OutputLayer
from sememekit.sememes import SememeGraph


@final
class SelfOrganizedSoftmax(OutputLayer):
    """p(w | h) = p(C(w) | h) p(w | h, C(w)), with word clusters learned during training (Shen et al. 2017).

    >>> layer = SelfOrganizedSoftmax(16, counts, update_every=2, gamma=3.0, frequency_budget=0.5)
    >>> output, loss = layer(hidden_TBH, target_TB)
    >>> figures = layer.after_step()    # after optimizer.step(); or once: layer.follow(optimizer)

    h_c = relu(W_c h), h_w = relu(W_w h) (Eq. 1); p(c | h) = softmax of h_c . u_c (Eq. 2), p(w | h, c) = softmax over the words
    of c of h_w . x_w (Eq. 3). In training each occurrence of a word updates its statistics q(w, c) (Eq. 9), and every
    ``update_every`` steps words are reassigned (Algorithm 1), without gradients.

    Clusters change only in ``after_step``, never inside ``forward``, since a step may take several losses (accumulation).
    ``follow(optimizer)`` calls ``after_step`` after each step; long training without it gives a warning. Step count, statistics
    and clusters are buffers of the state dict. With ``torch.distributed`` all processes must call ``after_step``: statistics
    are averaged before words move, so clusters are the same everywhere, and ``DistributedDataParallel`` need not send buffers
    at each step (``forward_sync_buffers=False``, before torch 2.13 ``broadcast_buffers=False``), which saves V x C numbers.

    Do not compute the loss inside ``torch.utils.checkpoint.checkpoint(..., use_reentrant=False)``, which counts each occurrence
    twice; ``use_reentrant=True`` counts it once. A compiled graph scores all words, and a batch with ignored targets does not
    update the statistics of word 0.

    Settings: ``num_clusters``, ``gamma``, ``frequency_budget``, ``update_every`` (1000), ``smoothing``, ``projection``,
    ``bias``, ``context_dropout`` (``decoders.self_organized``). A shared embedding may have any width. Ignored targets do not
    count."""

    decoder_class: ClassVar[type[Decoder]] = SelfOrganized
    any_size: ClassVar[bool] = True
    static: ClassVar[bool] = False
    by_clusters: ClassVar[tuple[str, str] | None] = ("start", "file")
    layer: SelfOrganized
    num_steps: Tensor

    def __init__(self, in_features: int, counts: Any, *, clusters: Any = None, **options: Any) -> None:
        """Build as ``OutputLayer``. ``counts`` may be the number V only with ``update_every=0``, since a new occurrence has
        weight 1 / count. ``clusters`` (V,) are the first clusters. By default they are random but depend only on the counts,
        not on torch's seed, so that several processes begin with the same clusters. Raises ConfigError: as ``OutputLayer``, or
        learned clusters with the number V."""
        super().__init__(in_features, counts, clusters=clusters, **options)
        if isinstance(counts, int | np.integer) and self.layer.settings.update_every:
            raise ConfigError(
                f"SelfOrganizedSoftmax: learns clusters from the counts of words, and was given only their number, {counts}; "
                f"give (V,) counts, as of torch.bincount(ids, minlength={counts}), or update_every=0 for "
                "clusters that stay as they are"
            )
        self.register_buffer("num_steps", torch.zeros((), dtype=torch.int64, device=self.layer.scores.device))
        self._steps = self._losses_without_step = 0
        self._followed: Any = None
        self._version = self.layer.groups.group_of._version
        self.register_load_state_dict_post_hook(_read_steps_again)

    @property
    def clusters(self) -> Tensor:
        """(V,) the cluster of each word."""
        return self.layer.clusters()

    def _built(self, graph: SememeGraph | None) -> None:
        if self.layer.settings.start == "random":
            self._draw_first_clusters()

    def _unreduced(self, hidden: Tensor, target: Tensor) -> Tensor:
        self._follow_clusters()
        return super()._unreduced(hidden, target)

    def log_prob(self, hidden: Tensor) -> Tensor:
        self._follow_clusters()
        return super().log_prob(hidden)

    def after_step(self) -> dict[str, float] | None:
        """Count an optimiser step; reassign words every ``update_every`` steps.

        Returns figures after the first step and each reassignment, otherwise None: shares of words and text that moved,
        orphaned words, empty clusters, size of the largest cluster, and perplexities of clusters and of words inside clusters
        since the last reassignment (NaN for compiled losses)."""
        self._steps, self._losses_without_step = self._steps + 1, 0
        self.num_steps.fill_(self._steps)
        every = self.layer.settings.update_every
        if every and self._steps % every == 0:
            self._follow_clusters()
            if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
                for buffer in (self.layer.scores, self.layer.losses):
                    distributed.all_reduce(buffer)
                self.layer.scores /= distributed.get_world_size()
        figures = self.layer.after_step(self._steps)
        self._version = self.layer.groups.group_of._version
        return figures

    def follow(self, optimizer: Optimizer) -> Any:
        """Call ``after_step`` after each step of this optimiser from now on; the returned handle has ``remove()``.

        Raises TypeError: not an optimiser."""
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"SelfOrganizedSoftmax.follow: give the torch.optim optimiser, given {type(optimizer).__name__}")
        if self._followed is not None:
            self._followed.remove()  # or a step would count twice

        def call(*_: Any) -> None:
            self.after_step()

        self._followed = optimizer.register_step_post_hook(call)
        return self._followed

    def _nll(self, hidden: Tensor, words: Tensor, keep: Tensor) -> Tensor:
        learns = self.training and torch.is_grad_enabled() and self.layer.settings.update_every > 0
        if torch.compiler.is_compiling():
            # in shapes that do not depend on ``keep``: word 0, which stands for words left out, keeps its statistics
            if learns:
                before = self.layer.scores[0].clone()
                self.layer.observe(hidden, words)
                self.layer.scores[0].copy_(torch.where(keep.all(), self.layer.scores[0], before))
            return super()._nll(hidden, words, keep)
        if not learns:
            return self.layer.nll(hidden, words)
        self._remind()
        return self.layer.nll_of_some(hidden, words, None if bool(keep.all()) else keep)

    @torch.no_grad()
    def _draw_first_clusters(self) -> None:
        scores = self.layer.scores
        start = scores.clone()
        scores.copy_(torch.rand(scores.shape, generator=torch.Generator().manual_seed(0), device="cpu"))
        self.layer.orphaned_at_start = self.layer.reassign().orphaned_words
        scores.copy_(start)

    def _remind(self) -> None:
        """Warn once if losses are computed and ``after_step`` is never called."""
        self._losses_without_step += 1
        if self._losses_without_step == 2 * self.layer.settings.update_every + 1:
            warnings.warn(
                f"SelfOrganizedSoftmax: {self._losses_without_step} training losses without a step, so its clusters stay as "
                "they are; call layer.after_step() after optimizer.step(), or once layer.follow(optimizer)",
                stacklevel=5,
            )

    def _follow_clusters(self) -> None:
        """Rebuild the clusters if something wrote into their buffer, such as a broadcast."""
        groups = self.layer.groups
        if not torch.compiler.is_compiling() and groups.group_of._version != self._version:
            groups.set(groups.group_of)
            self._version = groups.group_of._version


def _read_steps_again(layer: nn.Module, keys: Any) -> None:
    """A hook, called after a state dict is loaded; a function, since a lambda cannot be pickled."""
    assert isinstance(layer, SelfOrganizedSoftmax)
    layer._steps = int(layer.num_steps)
    layer._version = layer.layer.groups.group_of._version
