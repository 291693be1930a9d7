"""Differentiated softmax (Chen, Grangier and Auli 2015): frequent words read more of the context than rare ones."""

from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import Any, final

import torch
from torch import Tensor, nn

from sememekit.decoders.adaptive import band_bounds
from sememekit.decoders.base import Resources, word_vectors
from sememekit.decoders.bias_start import BiasStartSettings
from sememekit.decoders.sampling import NormalisedScores, SamplingSettings, linear_scores
from sememekit.errors import ConfigError


@final
class Differentiated(NormalisedScores):
    """p(w | g) = softmax over all words of g[part(w)] . x_w + b_w, Sec. 3.2 of Chen et al. 2015 (D-softmax).

    The vocabulary is divided into bands by falling count. The context is divided into a part for each band, the widest part for
    the first band. A word is scored by the part of its band alone, and its vector has the width of this part. One softmax
    covers all bands, so the distribution is exact. The products cost the sum of band size x part width instead of V x H.

    If tied (E = H), the vector of a word is the slice of its input vector that belongs to its band."""

    class Settings(SamplingSettings, BiasStartSettings):
        cutoffs: tuple[int, ...] | None = None
        """Ids at which later bands begin, rising; unset: 5 % and 25 % of the vocabulary, as in ``adaptive``."""
        widths: tuple[int, ...] | None = None
        """Width of the part of each band, adding up to H. Unset: each half of the previous, 4/7, 2/7, 1/7 of H."""
        tied: bool = False
        """Take word vectors from the input embedding, cut to the part of the band; not in the paper."""
        bias: bool = True
        """A bias for each word."""

    def __init__(self, settings: Settings, resources: Resources) -> None:
        super().__init__(settings, resources)
        size, width = len(resources.vocabulary), resources.width
        self.band_bounds = band_bounds(settings.cutoffs, size, "differentiated")
        self.part_bounds = _part_bounds(settings.widths, width, len(self.band_bounds) - 1)
        self.words = word_vectors(resources, "differentiated", tied=True) if settings.tied else None
        self.bands = nn.ParameterList()
        if not settings.tied:
            for (first, last), (begin, end) in zip(pairwise(self.band_bounds), pairwise(self.part_bounds), strict=True):
                self.bands.append(nn.Parameter(torch.empty(last - first, end - begin).uniform_(-0.1, 0.1)))
        self.bias = nn.Parameter(torch.zeros(size)) if settings.bias else None
        self.bias_start = settings.bias_start

    def room_for_words(self) -> Mapping[str, Any]:
        widths = [end - begin for begin, end in pairwise(self.part_bounds)]
        return {"cutoffs": self.band_bounds[1:-1], "widths": widths}

    def scores(self, hidden: Tensor, words: Tensor | None = None) -> Tensor:
        parts = []
        for number, (begin, end) in enumerate(pairwise(self.part_bounds)):
            first, last = self.band_bounds[number : number + 2]
            vectors = self.bands[number] if self.words is None else self.words.weight[first:last, begin:end]
            bias = None if self.bias is None else self.bias[first:last]
            chosen = None if words is None else words[(words >= first) & (words < last)] - first
            parts.append(linear_scores(hidden[..., begin:end], vectors, bias, chosen))
        return torch.cat(parts, dim=-1)


def _part_bounds(widths: tuple[int, ...] | None, width: int, num_bands: int) -> list[int]:
    """Return the start positions of the parts of a context, and H."""
    if widths is None:
        shares = [max(1, 2 ** (num_bands - 1 - band) * width // (2**num_bands - 1)) for band in range(num_bands)]
        widths = (width - sum(shares[1:]), *shares[1:])
    if len(widths) != num_bands or min(widths) < 1 or sum(widths) != width:
        raise ConfigError(
            f"decoder 'differentiated': {num_bands} bands of words need {num_bands} widths of 1 or more that add up to the "
            f"context's {width}, given {list(widths)}; set decoder.widths or decoder.cutoffs"
        )
    return [0, *accumulate(widths)]
