"""Scoring of ``evaluate-ppl`` with a cache, dynamic evaluation or both, and the tuning of their settings."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from pydantic import Field

from sememekit.config import ADAPTATION_SLOTS, Record, Settings, read_overrides, read_settings
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError
from sememekit.measure.perplexity import Scored, tallies
from sememekit.progress import OneStage, Progress
from sememekit.protocols.cache import CacheGrid, CachePoint, CacheSettings, cache_settings, tune_cache, with_cache
from sememekit.protocols.dynamic import (
    DynamicGrid,
    DynamicPoint,
    DynamicSettings,
    dynamic_settings,
    grid_points,
    score_dynamically,
)
from sememekit.protocols.gradient_statistics import STATISTICS_FILE, GradientStatistics, statistics_for
from sememekit.tasks.base import WordPredictor

DYNAMIC_TUNING_TOKENS: Final = 30_000
"""Default validation tokens for tuning dynamic evaluation, as in the quick search of the public code."""


class TuneChoice(Settings):
    """Tuning of all settings that were not given, and the text for it."""

    tokens: int | None = Field(default=None, ge=2)
    """Number of first validation tokens; unset: all with a cache alone, 30,000 with dynamic evaluation."""


class Tuning(TuneChoice):
    """The grids for tuning on the validation split before the text is scored."""

    cache: CacheGrid = CacheGrid()
    dynamic: DynamicGrid = DynamicGrid()


class Adaptation(Settings):
    """Ways of adapting to the scored text; the run does not change."""

    cache: CacheSettings | None = None
    dynamic: DynamicSettings | None = None
    tuning: Tuning | None = None
    """Tuning on the validation split; None for no tuning."""
    statistics_tokens: int | None = Field(default=None, ge=1)
    """Number of first training tokens for gradient statistics; unset: all, as published."""


class TuningReport(Record):
    """The result of tuning."""

    split: str
    tokens: int
    """split, tokens: the text of the tuning."""
    static_perplexity: float
    """Perplexity of this text under the static model."""
    dynamic: tuple[DynamicPoint, ...] | None
    cache: tuple[CachePoint, ...] | None
    """dynamic, cache: every tried point, best first; the cache is tuned with the best dynamic evaluation."""
    at_the_edge: tuple[str, ...]
    """Names of settings whose best value is the smallest or the largest of the grid."""


class AdaptationReport(Record):
    """The rule by which a text was scored."""

    static_perplexity: float
    """Perplexity of the same text in the same columns under the static model."""
    cache: CacheSettings | None
    dynamic: DynamicSettings | None
    """cache, dynamic: the settings in use."""
    exact: DynamicSettings | None
    """Settings of dynamic evaluation in the scaling of the equations, if given in the other scaling."""
    statistics_batches: int | None
    """Number of batches in the statistics of gradients."""
    tuning: TuningReport | None


@dataclass(frozen=True)
class AdaptiveScorer:
    """A scorer with a tuned adaptation and its statistics."""

    task: WordPredictor
    cache: CacheSettings | None
    dynamic: DynamicSettings | None
    statistics: GradientStatistics | None
    tuning: TuningReport | None

    def segments(self, tokens: np.ndarray, columns: int, progress: OneStage) -> Iterator[Scored]:
        if self.dynamic is None or self.statistics is None:
            segments = self.task.score(tokens, batch_size=columns, progress=progress)
        else:
            segments = score_dynamically(
                self.task, tokens, self.dynamic, self.statistics, batch_size=columns, progress=progress
            )
        return segments if self.cache is None else with_cache(segments, self.cache)

    def report(self, tokens: np.ndarray, columns: int, progress: Progress) -> AdaptationReport:
        """The settings, and the perplexity of the text under the static model."""
        static, _ = tallies(self.task.score(tokens, batch_size=columns, progress=partial(progress, "tokens, as trained")))
        exact = None
        if self.dynamic is not None and self.statistics is not None and self.dynamic.scaling != "krause":
            exact = self.dynamic.in_krause_scaling(len(self.statistics.root_mean_square), self.statistics.num_batches)
        return AdaptationReport(
            static_perplexity=static.perplexity,
            cache=self.cache,
            dynamic=self.dynamic,
            exact=exact,
            statistics_batches=None if self.statistics is None else self.statistics.num_batches,
            tuning=self.tuning,
        )

    def signature(self) -> dict[str, str]:
        """Additions to the signature of the static model."""
        parts = {}
        if self.cache is not None:
            cache = self.cache
            parts["cache"] = f"theta={cache.theta:g},lambda={cache.weight:g},window={cache.window},start={cache.start}"
        if self.dynamic is not None and self.statistics is not None:
            steps = self.dynamic
            parts["chunk"] = str(steps.segment)
            parts["dynamic"] = (
                f"{steps.scaling},rate={steps.rate:g},lambda={steps.decay:g},epsilon={steps.epsilon:g},"
                f"statistics={self.statistics.num_batches}"
            )
        return parts


def make_scorer(
    task: WordPredictor, data: PreparedData, run: Path, adaptation: Adaptation, dtype: str, columns: int, progress: Progress
) -> AdaptiveScorer:
    """Gather the statistics of an adaptation, and tune it if requested.

    ``data`` has training text for statistics and validation text for tuning; statistics are stored in the folder ``run``;
    ``dtype`` is for matrix products; ``columns`` as in the scored text. Raises ConfigError: tuning without anything to tune.
    Raises DataError: a split is missing or too short."""
    if adaptation.tuning is not None and adaptation.cache is None and adaptation.dynamic is None:
        raise ConfigError("tuning needs something to tune: a cache (--cache), dynamic evaluation (--dynamic), or both")
    statistics = None
    if adaptation.dynamic is not None:
        statistics = statistics_for(
            task,
            data.tokens("train")[: adaptation.statistics_tokens],
            data.signature.splits["train"].sha256,
            run / STATISTICS_FILE,
            segment=adaptation.dynamic.segment,
            dtype=dtype,
            progress=partial(progress, "batches for gradient statistics"),
        )
    reader = AdaptiveScorer(task, adaptation.cache, adaptation.dynamic, statistics, None)
    return reader if adaptation.tuning is None else _tuned(reader, data, adaptation.tuning, columns, progress)


def _tuned(reader: AdaptiveScorer, data: PreparedData, tuning: Tuning, columns: int, progress: Progress) -> AdaptiveScorer:
    """Return the scorer with the best settings on the validation split: dynamic evaluation is tuned first, then the cache."""
    tokens = data.tokens("valid")
    limit = tuning.tokens or (DYNAMIC_TUNING_TOKENS if reader.dynamic is not None else len(tokens))
    tokens = tokens[:limit]
    columns = min(columns, max(len(tokens) - 1, 1))
    static, _ = tallies(reader.task.score(tokens, batch_size=columns))
    steps, dynamic_points, edges = reader.dynamic, None, []
    if steps is not None and reader.statistics is not None:
        candidates = grid_points(steps, tuning.dynamic)
        points = []
        for number, candidate in enumerate(candidates, start=1):
            tally, _ = tallies(score_dynamically(reader.task, tokens, candidate, reader.statistics, batch_size=columns))
            perplexity = tally.perplexity if math.isfinite(tally.perplexity) else None
            points.append(DynamicPoint(settings=candidate, perplexity=perplexity))
            progress("settings of the steps", number, len(candidates))
        dynamic_points = tuple(sorted(points, key=lambda point: math.inf if point.perplexity is None else point.perplexity))
        if dynamic_points[0].perplexity is None:
            raise ConfigError(f"no rate of the grid around {steps.rate:g} worked; use a smaller --set dynamic.rate")
        steps = dynamic_points[0].settings
        edges += _edges("dynamic rate", steps.rate, [candidate.rate for candidate in candidates])
        edges += _edges("dynamic decay", steps.decay, [candidate.decay for candidate in candidates])
    cache, cache_points = reader.cache, None
    if cache is not None:
        tuned = replace(reader, cache=None, dynamic=steps)
        segments = tuned.segments(tokens, columns, partial(progress, "tokens for tuning the cache"))
        cache_points = tuple(tune_cache(segments, tuning.cache))
        cache = cache_points[0].settings
        edges += _edges("theta", cache.theta, tuning.cache.thetas)
        edges += _edges("lambda", cache.weight, tuning.cache.weights)
        edges += _edges("window", cache.window, tuning.cache.windows)
    report = TuningReport(
        split="valid",
        tokens=len(tokens),
        static_perplexity=static.perplexity,
        dynamic=dynamic_points,
        cache=cache_points,
        at_the_edge=tuple(edges),
    )
    return replace(reader, cache=cache, dynamic=steps, tuning=report)


def _edges(name: str, best: float, tried: Iterable[float]) -> list[str]:
    values = set(tried)
    return [name] if len(values) > 1 and best in (min(values), max(values)) else []


S = TypeVar("S", bound=Settings)


class CacheChoice(CacheSettings):
    """The continuous cache: its settings, and a preset for the others."""

    preset: str | None = None
    """Preset with published settings for all keys that are not given: "ptb" or "wikitext-2"."""


class DynamicChoice(DynamicSettings):
    """Dynamic evaluation: its settings, a preset for the others, and the training tokens for MS."""

    preset: str | None = None
    """Preset for all keys that are not given: awd-ptb, awd-ptb-paper, awd-wikitext-2, mos-ptb or mos-wikitext-2."""
    statistics_tokens: int | None = Field(default=None, ge=1)
    """Number of first training tokens for gradient statistics (MS); unset: all, as published."""


def read_adaptation(
    overrides: Sequence[str] = (), *, cache: bool = False, dynamic: bool = False, tune: bool = False
) -> Adaptation | None:
    """Return the adaptation that ``cache``, ``dynamic`` and ``tune`` ask for; None for the static model.

    ``overrides`` are ``cache.KEY=VALUE``, ``dynamic.KEY=VALUE`` and ``tune.KEY=VALUE``. Tuning keeps given settings and tries
    all values of the others. Raises ConfigError: an override without its flag, an unknown key, or a value out of range."""
    table = read_overrides(overrides, ADAPTATION_SLOTS)
    needed = {"cache": cache, "dynamic": dynamic, "tune": tune}
    for slot, keys in table.items():
        if not needed[slot]:
            raise ConfigError(f"--set {slot}.{next(iter(keys))}: of no use without --{slot}; add it, or leave this out")
    if tune and not (cache or dynamic):
        raise ConfigError("--tune: of no use without --cache, --dynamic or both; add one")
    chosen = _chosen(CacheChoice, "cache", table)
    moved = _chosen(DynamicChoice, "dynamic", table)
    statistics_tokens = moved.pop("statistics_tokens", None)
    tuning = None
    if tune:
        fixed = {f"{name}s": (chosen[name],) for name in ("theta", "weight", "window") if name in chosen}
        if "start" in chosen:
            fixed["start"] = chosen["start"]
        tuning = Tuning(
            tokens=_chosen(TuneChoice, "tune", table).get("tokens"),
            cache=CacheGrid(**fixed),
            dynamic=DynamicGrid(**{f"{name}s": (1.0,) for name in ("rate", "decay") if name in moved}),
        )
    if not (cache or dynamic):
        return None
    return Adaptation(
        cache=cache_settings(**chosen) if cache else None,
        dynamic=dynamic_settings(**moved) if dynamic else None,
        tuning=tuning,
        statistics_tokens=statistics_tokens,
    )


def _chosen(kind: type[S], slot: str, table: dict[str, dict[str, Any]]) -> dict[str, Any]:
    settings = read_settings(kind, table.get(slot, {}), f"--set {slot}")
    return {name: getattr(settings, name) for name in settings.model_fields_set}
