"""Adaptive softmax (Grave et al. 2017): rare words get smaller vectors and are looked at only when needed."""

from __future__ import annotations

from typing import final

import torch
from pydantic import Field
from torch import Tensor, nn

from sememekit import config
from sememekit.decoders.base import Decoder, Resources
from sememekit.errors import ConfigError


@final
class Adaptive(Decoder):
    """A softmax over frequent words and tail clusters, and one in each tail, with contexts that shrink from tail to tail.

    torch's ``AdaptiveLogSoftmaxWithLoss`` behind our contract. It wants words by falling frequency, as our ids are. It owns its
    vectors, and those of the tails are shorter than the input's, so it is never tied.

    Shapes: contexts (..., H), log-probabilities (..., V).
    """

    class Settings(config.Settings):
        """Settings of the adaptive softmax."""

        cutoffs: tuple[int, ...] | None = None
        """Ids at which tails begin, rising; None for 5 % and 25 % of the vocabulary."""
        shrink: float = Field(default=4.0, ge=1.0, le=1e6)
        """The context of tail i has the size H / shrink^i."""
        head_bias: bool = False
        """A bias in the first softmax."""

    @classmethod
    def by_frequency(cls, settings: Settings) -> bool:
        return True

    def __init__(self, settings: Settings, resources: Resources) -> None:
        super().__init__(settings, resources)
        size = len(resources.vocabulary)
        given = settings.cutoffs or (max(1, size // 20), max(3, size // 4))
        if list(given) != sorted(set(given)) or given[0] < 1 or given[-1] >= size:
            raise ConfigError(
                f"decoder 'adaptive': cutoffs {list(given)} must rise strictly and lie between 1 and {size - 1} for a "
                f"vocabulary of {size} words; set decoder.cutoffs"
            )
        if resources.width < settings.shrink ** len(given):
            raise ConfigError(
                f"decoder 'adaptive': contexts of {resources.width} shrunk {len(given)} times by {settings.shrink:g} have no "
                f"size left; set decoder.shrink to at most {resources.width ** (1 / len(given)):.2g}, or fewer decoder.cutoffs"
            )
        self.layer = nn.AdaptiveLogSoftmaxWithLoss(
            resources.width, size, list(given), div_value=settings.shrink, head_bias=settings.head_bias
        )

    def log_probs(self, hidden: Tensor) -> Tensor:
        with torch.autocast(hidden.device.type, enabled=False):
            return self.layer.log_prob(self._rows(hidden)).view(*hidden.shape[:-1], self.layer.n_classes)

    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        with torch.autocast(hidden.device.type, enabled=False):
            return -self.layer(self._rows(hidden), target.flatten()).output.view(target.shape)

    def _rows(self, hidden: Tensor) -> Tensor:
        """(N, H) in the dtype of the weights: torch's layer mixes dtypes under autocast and fails."""
        return hidden.reshape(-1, hidden.shape[-1]).to(self.layer.head.weight.dtype)
