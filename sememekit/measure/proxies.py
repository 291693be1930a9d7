"""Automatic proxies of the validity of adversarial texts, and their agreement with raters.

A proxy is no rating: only raters say whether a text is valid. Its agreement with raters is the area under the ROC curve,

    area = P(s > s') + P(s = s') / 2,

with the scores s and s' of a text with the answer yes and of a text with the answer no; 0.5 is chance. The interval is the one
of Hanley and McNeil (Radiology 143, 1982)."""

import math
from collections.abc import Mapping
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from sememekit.config import Record
from sememekit.measure.attack_rates import Verdict
from sememekit.measure.intervals import Interval

QUESTIONS: Final = {"label": "label", "similarity": "meaning", "perplexity ratio": "fluent"}
"""Proxy -> the question to raters that it comes closest to."""


class Proxy(Record):
    """A measure of the changed texts of the successes."""

    name: Literal["label", "similarity", "perplexity ratio"]
    source: str
    """The model or file that measures."""
    scores: dict[int, float]
    """The scores by example number; higher is better. ``label``: probability of the true label minus the largest other
    probability, above 0 for yes. ``similarity``: a cosine. ``perplexity ratio``: minus its logarithm."""
    after: Interval
    before: Interval | None = None
    """before, after: ``label``: share of the originals and of the changed texts with the true label. Otherwise ``after`` is the
    mean cosine, or the geometric mean of the ratios."""
    rated: int = 0
    """Measured texts that raters have rated."""
    areas: dict[str, Interval] = Field(default_factory=dict)
    """Question of ``QUESTIONS``, and "valid" -> agreement with raters."""

    def compared(self, verdicts: Mapping[int, Verdict]) -> "Proxy":
        """Return the proxy with its agreement with the verdicts, by example number."""
        common = [index for index in self.scores if index in verdicts]
        scores = [self.scores[index] for index in common]
        asked = (QUESTIONS[self.name], "valid")
        areas = {name: area(scores, [getattr(verdicts[index], name) for index in common]) for name in asked}
        return self.model_copy(update={"rated": len(common), "areas": areas})


def area(scores: ArrayLike, answers: ArrayLike) -> Interval:
    """The area under the ROC curve, see the module; no value if all answers are equal."""
    values, yes = np.asarray(scores, dtype=np.float64), np.asarray(answers, dtype=bool)
    n, m = int(yes.sum()), int((~yes).sum())
    if not n * m:
        return Interval(value=None)
    a = float(np.sign(values[yes][:, None] - values[~yes]).mean()) / 2 + 0.5
    variance = a * (1 - a) + (n - 1) * (a / (2 - a) - a * a) + (m - 1) * (2 * a * a / (1 + a) - a * a)
    half = 1.96 * math.sqrt(max(variance, 0.0) / (n * m))
    return Interval(value=a, low=max(a - half, 0.0), high=min(a + half, 1.0))
