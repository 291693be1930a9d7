"""The continuous cache: words that followed similar hidden states get probability (Grave et al. 2017).

It reads any iterator of scored segments, from a static model or from dynamic evaluation."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any, Final, Literal

import torch
from pydantic import Field
from torch import Tensor

from sememekit.config import Record, Settings
from sememekit.errors import ConfigError
from sememekit.measure import Tally
from sememekit.measure.perplexity import Scored

Start = Literal["history", "full-window"]

BLOCK_ELEMENTS: Final = 1 << 20  # most similarities in memory


class CacheSettings(Settings):
    """Settings of the cache; the defaults are those that the AWD-LSTM code published for Penn Treebank."""

    theta: float = Field(default=1.0, ge=0.0)
    """Preference of the cache for similar hidden states; 0 is the unigram distribution of the window."""
    weight: float = Field(default=0.1, gt=0.0, lt=1.0)
    """lambda, the share of the cache in the mixture."""
    window: int = Field(default=500, ge=1)
    """Number of last positions in the cache."""
    start: Start = "history"
    """Start of the cache: after one position ("history") or, as in the public code, after more than ``window`` positions."""


CACHE_PRESETS: Final = {
    "ptb": CacheSettings(theta=1.0, weight=0.1, window=500),
    "wikitext-2": CacheSettings(theta=0.662, weight=0.1279, window=3785),
}
"""Published settings by data set, of the AWD-LSTM code (Merity et al. 2018)."""


def cache_settings(preset: str | None = None, **given: Any) -> CacheSettings:
    """The settings of a preset, replaced by the ``given`` fields. Raises ConfigError: no such preset."""
    if preset is not None and preset not in CACHE_PRESETS:
        raise ConfigError(f"unknown preset {preset!r} of the cache; allowed: {', '.join(CACHE_PRESETS)}")
    base = CacheSettings() if preset is None else CACHE_PRESETS[preset]
    return CacheSettings(**{**base.model_dump(), **given})


class CacheGrid(Settings):
    """The values that ``tune_cache`` tries, in all combinations."""

    thetas: tuple[float, ...] = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
    weights: tuple[float, ...] = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
    windows: tuple[int, ...] = (100, 250, 500, 1000, 2000)
    start: Start = "history"


class CachePoint(Record):
    """One point of the grid and its perplexity."""

    settings: CacheSettings
    perplexity: float


def with_cache(segments: Iterable[Scored], settings: CacheSettings) -> Iterator[Scored]:
    """Yield the segments under p = lambda p_cache + (1 - lambda) p_model.

    p_cache(w) is the sum of softmax_i(theta h_t . h_i) over the positions i of the last ``window`` whose next word was w, with
    h the inputs of the output layer, without dropout. Before the cache starts, p is p_model. Each column has a separate
    history. Segments are joined without a gap, so that their length does not change the result.
    Raises ConfigError: the segments have no hidden states."""
    for segment, found in _log_caches(segments, (settings.window,), (settings.theta,), settings.start):
        log_cache = found[settings.window, settings.theta]
        yield replace(segment, nats=_mixed(segment.nats, log_cache, settings.weight), parts={})


def tune_cache(segments: Iterable[Scored], grid: CacheGrid) -> list[CachePoint]:
    """Perplexity at every point of a grid, from one pass over validation text; best first."""
    tallies = {point: Tally() for point in product(grid.windows, grid.thetas, grid.weights)}
    for segment, log_caches in _log_caches(segments, grid.windows, grid.thetas, grid.start):
        for (window, theta), log_cache in log_caches.items():
            for weight in grid.weights:
                nats = _mixed(segment.nats, log_cache, weight)[segment.mask]
                tallies[window, theta, weight] += Tally(float(nats.double().sum()), nats.numel())
    points = []
    for (window, theta, weight), tally in tallies.items():
        settings = CacheSettings(theta=theta, weight=weight, window=window, start=grid.start)
        points.append(CachePoint(settings=settings, perplexity=tally.perplexity))
    return sorted(points, key=lambda point: point.perplexity)


_LogCache = tuple[Tensor, int]  # log p_cache(target) (T, B) of a segment, and the first row with the cache


def _mixed(nats: Tensor, log_cache: _LogCache, weight: float) -> Tensor:
    """-log of the mixture, in log space: a word outside the cache has log p_cache = -inf."""
    values, first = log_cache
    mixed = torch.logaddexp(math.log(weight) + values[first:], math.log1p(-weight) - nats[first:])
    return torch.cat([nats[:first], -mixed])


def _log_caches(
    segments: Iterable[Scored], windows: tuple[int, ...], thetas: tuple[float, ...], start: Start
) -> Iterator[tuple[Scored, dict[tuple[int, float], _LogCache]]]:
    """Yield each segment with log p_cache of its targets for every window and theta; similarities are computed once."""
    history: tuple[Tensor, Tensor] | None = None
    seen, widest = 0, max(windows)
    for segment in segments:
        if segment.hidden is None:
            raise ConfigError("a cache needs one context for each predicted word, and this task has none; leave out --cache")
        keys = segment.hidden if segment.hidden.dtype == torch.float64 else segment.hidden.float()
        old_keys, old_words = history or (keys[:0], segment.targets[:0])
        history = torch.cat([old_keys[-widest:], keys]), torch.cat([old_words[-widest:], segment.targets])
        found = {}
        for (window, theta), values in _targets_in_cache(*history, len(keys), windows, thetas).items():
            needed = 1 if start == "history" else window + 1
            found[window, theta] = values, min(max(needed - seen, 0), len(keys))
        yield segment, found
        seen += len(keys)


def _targets_in_cache(
    keys: Tensor, words: Tensor, length: int, windows: tuple[int, ...], thetas: tuple[float, ...]
) -> dict[tuple[int, float], Tensor]:
    """log p_cache(target) (T, B) for every window and theta, in blocks of rows of bounded memory.

    ``keys`` (n, B, H) are the hidden states before the segment (at most the largest window) and its own T = ``length``;
    ``words`` (n, B) are the words after them."""
    widest, behind = max(windows), len(keys) - length
    results = {point: keys.new_empty(length, keys.shape[1]) for point in product(windows, thetas)}
    size = max(1, BLOCK_ELEMENTS // (keys.shape[1] * (widest + length)))
    for begin in range(0, length, size):
        rows = min(size, length - begin)
        low, high = max(0, behind + begin - widest), behind + begin + rows
        past, past_words = keys[low:high].transpose(0, 1), words[low:high].T
        target = past_words[:, -rows:, None]
        with torch.autocast(keys.device.type, enabled=False):
            similar = torch.bmm(past[:, -rows:], past.transpose(1, 2))
        # Row r of the block is number (high - low - rows + r) of these keys: it sees the `window` before it.
        order = torch.arange(high - low, device=keys.device)
        distance = order[-rows:, None] - order
        for window in windows:
            near = slice(-(window + rows), None)
            unseen = (distance[:, near] < 1) | (distance[:, near] > window)
            other = unseen | (past_words[:, None, near] != target)
            for theta in thetas:
                scores = similar[:, :, near] * theta
                matching = scores.masked_fill(other, -torch.inf).logsumexp(dim=2)
                share = matching - scores.masked_fill_(unseen, -torch.inf).logsumexp(dim=2)
                results[window, theta][begin : begin + rows] = share.T
    return results
