"""Dynamic evaluation: a gradient step on each segment after the segment is scored (Krause et al. 2018)."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any, Final, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from sememekit.config import Record, Settings
from sememekit.data.batching import evaluation_columns
from sememekit.errors import ConfigError
from sememekit.measure.perplexity import Scored
from sememekit.progress import OneStage, silent
from sememekit.protocols.gradient_statistics import GradientStatistics, gradients_of, gradients_without_dropout, trainable
from sememekit.tasks.base import WordPredictor

Scaling = Literal["krause", "mos"]

PUBLISHED_SEGMENT: Final = 5


class DynamicSettings(Settings):
    """Settings of dynamic evaluation; the defaults are those published for the AWD-LSTM on Penn Treebank."""

    rate: float = Field(default=5e-5, gt=0.0)
    """eta, rate of the step against the gradient."""
    decay: float = Field(default=0.002, ge=0.0)
    """lambda, rate of the step back to the trained weights."""
    epsilon: float = Field(default=2e-5, gt=0.0)
    """Added to MS, to keep steps small on weights with small gradients."""
    scaling: Scaling = "krause"
    """Scale of rate, decay and epsilon: as in the equations ("krause"), or sums for means ("mos"); see docs/perplexity.md."""
    segment: int = Field(default=PUBLISHED_SEGMENT, ge=1)
    """L, words scored before each step."""

    def in_krause_scaling(self, num_tensors: int, num_batches: int) -> "DynamicSettings":
        """Return the same steps in the scaling of the equations, for m parameter tensors and n batches of statistics.

        The equations have means over batches and over parameter tensors. The first public code, and after it the code of the
        mixture of softmaxes, have sums: MS' = sqrt(n) MS and D' = MS' / sum_tensors mean(MS') = D / m. So lambda' D' = (lambda'
        / m) D and eta' / (MS' + eps') = (eta' / sqrt(n)) / (MS + eps' / sqrt(n))."""
        if self.scaling == "krause":
            return self
        root = math.sqrt(num_batches)
        given = {"rate": self.rate / root, "decay": self.decay / num_tensors, "epsilon": self.epsilon / root}
        return DynamicSettings(**given, scaling="krause", segment=self.segment)


DYNAMIC_PRESETS: Final = {
    "awd-ptb": DynamicSettings(),
    "awd-ptb-paper": DynamicSettings(rate=0.002, decay=0.02, epsilon=0.001, scaling="mos"),
    "awd-wikitext-2": DynamicSettings(rate=0.002, decay=0.02, epsilon=0.001, scaling="mos"),
    "mos-ptb": DynamicSettings(rate=0.002, decay=0.075, epsilon=0.001, scaling="mos"),
    "mos-wikitext-2": DynamicSettings(rate=0.002, decay=0.02, epsilon=0.002, scaling="mos"),
}
"""Published settings: awd-* of Krause et al. 2018 and its public code, mos-* of Table 8, Yang et al. 2018."""

_USUAL: Final = {"krause": "awd-ptb", "mos": "mos-ptb"}


def dynamic_settings(preset: str | None = None, **given: Any) -> DynamicSettings:
    """The settings of a preset, replaced by the ``given`` fields.

    Without a preset, the settings are the published settings for Penn Treebank in the given scaling. Default rate and decay are
    proportional to the segment, as in the grid search of the public code. Raises ConfigError: an unknown preset."""
    if preset is not None and preset not in DYNAMIC_PRESETS:
        raise ConfigError(f"unknown preset {preset!r} of dynamic evaluation; allowed: {', '.join(DYNAMIC_PRESETS)}")
    base = DYNAMIC_PRESETS[preset or _USUAL[given.get("scaling", "krause")]]
    if (scaling := given.get("scaling", base.scaling)) != base.scaling:
        raise ConfigError(
            f"the numbers of the preset {preset!r} are in the scaling {base.scaling!r}, given {scaling!r}; leave one out"
        )
    grown = given.get("segment", PUBLISHED_SEGMENT) / PUBLISHED_SEGMENT
    return DynamicSettings(**{**base.model_dump(), "rate": base.rate * grown, "decay": base.decay * grown, **given})


class DynamicGrid(Settings):
    """Multiples of rate and decay for tuning, in all combinations."""

    rates: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    decays: tuple[float, ...] = (0.5, 1.0, 2.0)


class DynamicPoint(Record):
    """One point of the grid and its perplexity; None where that is not finite."""

    settings: DynamicSettings
    perplexity: float | None


def grid_points(start: DynamicSettings, grid: DynamicGrid) -> list[DynamicSettings]:
    """Return the settings of a grid around ``start``."""
    return [
        start.model_copy(update={"rate": start.rate * rate, "decay": start.decay * decay})
        for rate, decay in product(grid.rates, grid.decays)
    ]


def score_dynamically(
    task: WordPredictor,
    tokens: np.ndarray,
    settings: DynamicSettings,
    statistics: GradientStatistics,
    *,
    batch_size: int = 1,
    progress: OneStage = silent,
) -> Iterator[Scored]:
    """Score a stream segment by segment; after each, the weights take a step on its loss (Eq. (5), (6), Krause et al. 2018).

    w <- w + lambda D (w_0 - w) - eta g / (MS + epsilon), with g the gradient of the mean loss of the segment, MS the statistics
    of this model on its training text, D = MS / (mean over parameter tensors of mean(MS)), lambda D at most 1. A segment is
    scored before the step on it. State is carried over without gradients; there is no dropout. The ``batch_size`` columns share
    the weights, and a step uses their mean loss. The weights are restored exactly at the end, also after an early exit
    (``close``) or an error.

    Every token of ``tokens`` (n,) but the first is predicted once; ``progress`` is called with the predicted and the total
    number of tokens. Yields segments of at most ``segment`` rows; a short last segment weighs by its words."""
    inputs, targets, mask = evaluation_columns(tokens, batch_size)
    named = trainable(task)
    parameters: list[Tensor] = list(named.values())
    exact = settings.in_krause_scaling(len(parameters), statistics.num_batches)
    sizes = [statistics.root_mean_square[name] for name in named]
    mean_size = torch.stack([size.mean() for size in sizes]).mean()
    pulls = [(size * (exact.decay / mean_size)).clamp_(max=1.0) for size in sizes]
    steps = [exact.rate / (size + exact.epsilon) for size in sizes]
    trained = [parameter.detach().clone() for parameter in parameters]
    done, total = 0, len(tokens) - 1
    try:
        state = task.encoder.start(inputs.shape[1])
        for begin in range(0, len(inputs), settings.segment):
            part = slice(begin, begin + settings.segment)
            target, counts = (torch.from_numpy(array[part]).to(task.device) for array in (targets, mask))
            with gradients_without_dropout(task):
                hidden, state = task.contexts(torch.from_numpy(inputs[part]).to(task.device), state)
                nats = task.decoder.nll(hidden, target)
                gradients = gradients_of(nats[counts].mean(), parameters)
            state = tuple(tensor.detach() for tensor in state)
            with torch.no_grad():
                torch._foreach_lerp_(parameters, trained, pulls)
                torch._foreach_addcmul_(parameters, gradients, steps, value=-1.0)
            torch.clear_autocast_cache()  # else autocast, while it is on, goes on with its bfloat16 copies of the old weights
            yield Scored(target, nats.detach(), counts, hidden=hidden.detach())
            done += int(mask[part].sum())
            progress(done, total)
    finally:
        with torch.no_grad():
            torch._foreach_copy_(parameters, trained)
        torch.clear_autocast_cache()
