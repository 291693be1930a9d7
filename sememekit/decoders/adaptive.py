"""Adaptive softmax (Grave et al. 2017): rare words get smaller vectors and are computed only when needed."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, final

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from sememekit import config
from sememekit.decoders.base import Decoder, Resources
from sememekit.errors import ConfigError


@final
class Adaptive(Decoder):
    """A softmax over frequent words and tail clusters, and one inside each tail; contexts shrink from tail to tail.

    It wraps torch's ``AdaptiveLogSoftmaxWithLoss``, which requires word ids by falling frequency. It is never tied, since the
    tails have shorter vectors than the input."""

    class Settings(config.Settings):
        cutoffs: tuple[int, ...] | None = None
        """Ids at which tails begin, rising; unset: 5 % and 25 % of the vocabulary."""
        shrink: float = Field(default=4.0, ge=1.0, le=1e6)
        """The context of tail i has the size H / shrink^i."""
        head_bias: bool = False
        """A bias in the first softmax."""

    def __init__(self, settings: Settings, resources: Resources) -> None:
        super().__init__(settings, resources)
        size = len(resources.vocabulary)
        given = band_bounds(settings.cutoffs or None, size, "adaptive")[1:-1]
        if not given:
            raise ConfigError(f"decoder 'adaptive': a tail needs 2 words or more, and there is {size}; take a full softmax")
        if resources.width < settings.shrink ** len(given):
            raise ConfigError(
                f"decoder 'adaptive': contexts of {resources.width} shrunk {len(given)} times by {settings.shrink:g} have no "
                f"size left; set decoder.shrink to at most {resources.width ** (1 / len(given)):.2g}, or fewer decoder.cutoffs"
            )
        self.layer = nn.AdaptiveLogSoftmaxWithLoss(
            resources.width, size, given, div_value=settings.shrink, head_bias=settings.head_bias
        )

    def room_for_words(self) -> Mapping[str, Any]:
        return {"cutoffs": self.layer.cutoffs[:-1]}

    def log_probs(self, hidden: Tensor) -> Tensor:
        with torch.autocast(hidden.device.type, enabled=False):
            return self.layer.log_prob(self._rows(hidden)).view(*hidden.shape[:-1], self.layer.n_classes)

    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        with torch.autocast(hidden.device.type, enabled=False):
            return -self.layer(self._rows(hidden), target.flatten()).output.view(target.shape)

    def _topk_words(self, hidden: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Compute the head for all contexts, and a tail only where it is more probable than the last word found so far."""
        count = min(count, self.layer.n_classes)
        with torch.autocast(hidden.device.type, enabled=False):
            rows = self._rows(hidden)
            head = self.layer.head(rows).log_softmax(dim=-1)
            first = self.layer.shortlist_size
            values, words = head[:, :first].topk(min(count, first))
            values = functional.pad(values, (0, count - values.shape[1]), value=-torch.inf)
            words = functional.pad(words, (0, count - words.shape[1]))
            for number, tail in enumerate(self.layer.tail):
                of_tail = head[:, first + number]
                asked = (of_tail > values[:, -1]).nonzero()[:, 0]
                if not len(asked):
                    continue
                inside = tail(rows[asked]).log_softmax(dim=-1) + of_tail[asked, None]
                best = inside.topk(min(count, inside.shape[1]))
                both = torch.cat([values[asked], best.values], dim=1)
                numbers = torch.cat([words[asked], best.indices + self.layer.cutoffs[number]], dim=1)
                values[asked], kept = both.topk(count)
                words[asked] = numbers.gather(1, kept)
        return values, words

    def _rows(self, hidden: Tensor) -> Tensor:
        """(N, H) in the dtype of the weights: torch's layer mixes dtypes under autocast and fails."""
        return hidden.reshape(-1, hidden.shape[-1]).to(self.layer.head.weight.dtype)


def band_bounds(cutoffs: tuple[int, ...] | None, size: int, name: str) -> list[int]:
    """Return the first word of each band (bands of words by falling count), and V = ``size`` at the end; without ``cutoffs``
    bands begin at 5 % and 25 % of the vocabulary. Raises ConfigError: cutoffs that do not rise, or lie outside of it."""
    if cutoffs is None:
        cutoffs = tuple(sorted(cut for cut in {max(1, size // 20), max(3, size // 4)} if cut < size))
    bounds = [0, *cutoffs, size]
    if any(last <= first for first, last in pairwise(bounds)):
        raise ConfigError(
            f"decoder {name!r}: cutoffs {list(cutoffs)} must rise strictly and lie between 1 and {size - 1} for a vocabulary "
            f"of {size} words; set decoder.cutoffs"
        )
    return bounds
