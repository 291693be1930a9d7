"""Scoring that adapts to the text it reads: a continuous cache, and dynamic evaluation."""

from sememekit.protocols.cache import (
    CACHE_PRESETS,
    CacheGrid,
    CachePoint,
    CacheSettings,
    cache_settings,
    tune_cache,
    with_cache,
)
from sememekit.protocols.dynamic import (
    DYNAMIC_PRESETS,
    DynamicGrid,
    DynamicPoint,
    DynamicSettings,
    dynamic_settings,
    grid_points,
    score_dynamically,
)
from sememekit.protocols.gradient_statistics import STATISTICS_FILE, GradientStatistics, statistics_for

__all__ = [
    "CACHE_PRESETS",
    "DYNAMIC_PRESETS",
    "STATISTICS_FILE",
    "CacheGrid",
    "CachePoint",
    "CacheSettings",
    "DynamicGrid",
    "DynamicPoint",
    "DynamicSettings",
    "GradientStatistics",
    "cache_settings",
    "dynamic_settings",
    "grid_points",
    "score_dynamically",
    "statistics_for",
    "tune_cache",
    "with_cache",
]
