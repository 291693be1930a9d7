"""Automatic proxies of the validity of adversarial texts, and their agreement with raters.

A proxy is no rating: it says what a program finds, and only raters say whether a text is valid. Its agreement with raters has

    area = P(s > s') + P(s = s') / 2,    kappa = (a - e) / (1 - e),

the area under the ROC curve and Cohen's kappa. s and s' are the scores of a text with the answer yes and a text with the answer
no; 0.5 is chance. a is the share of texts with equal answers, and e the share that is expected if the answers are independent;
0 is chance.
"""

from collections.abc import Mapping
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sememekit.config import Record
from sememekit.measure.attack_rates import Verdict
from sememekit.measure.intervals import RESAMPLES, Interval, from_draws

Question = Literal["meaning", "label", "fluent"]


class Agreement(Record):
    """Agreement of a proxy with raters.

    Attributes:
        texts: texts that were rated and measured.
        own, valid: area for the proxy's own question, and for validity; no value if all answers are equal.
        kappa: of yes and no to the own question; None for a proxy without yes and no.
    """

    texts: int
    own: Interval
    valid: Interval
    kappa: Interval | None


class Proxy(Record):
    """A measure of the changed texts of the successes.

    Attributes:
        source: the model or file that measures.
        question: the question to raters that it comes closest to.
        scores: by example number; higher is better. ``label``: probability of the true label minus the largest other
            probability, above 0 for yes. ``similarity``: a cosine. ``perplexity ratio``: minus its logarithm.
        before, after: share with the true label, of the originals and of the changed texts; otherwise ``after`` is the mean
            cosine, or the geometric mean of the ratios.
    """

    name: Literal["label", "similarity", "perplexity ratio"]
    source: str
    question: Question
    scores: dict[int, float]
    before: Interval | None
    after: Interval
    agreement: Agreement | None = None

    def compared(self, verdicts: Mapping[int, Verdict]) -> "Proxy":
        """Return the proxy with its agreement with the verdicts, by example number."""
        common = [index for index in self.scores if index in verdicts]
        scores = np.array([self.scores[index] for index in common])
        own, valid = (
            np.array([getattr(verdicts[index], name) for index in common], dtype=bool) for name in (self.question, "valid")
        )
        found = kappa(scores > 0, own) if self.name == "label" else None
        agreement = Agreement(texts=len(common), own=area(scores, own), valid=area(scores, valid), kappa=found)
        return self.model_copy(update={"agreement": agreement})


def area(scores: ArrayLike, yes: NDArray[np.bool_]) -> Interval:
    """The area under the ROC curve of n scores for n answers, see the module, with a bootstrap interval over texts."""
    values = np.asarray(scores, dtype=np.float64)
    above = np.sign(values[yes][:, None] - values[~yes][None]) / 2 + 0.5
    times = np.concatenate([np.ones((1, len(yes))), _times(len(yes))])
    first, second = times[:, yes], times[:, ~yes]
    weights = first.sum(axis=1) * second.sum(axis=1)
    areas = np.divide(((first @ above) * second).sum(axis=1), weights, out=np.full(len(times), np.nan), where=weights > 0)
    return from_draws(float(areas[0]), areas[1:])


def kappa(one: NDArray[np.bool_], two: NDArray[np.bool_]) -> Interval:
    """Cohen's kappa of two answers to n texts, see the module, with a bootstrap interval over texts."""
    times = np.concatenate([np.ones((1, len(one))), _times(len(one))])
    size = np.maximum(times.sum(axis=1), 1)
    p, q, same = ((times @ answers) / size for answers in (one, two, one == two))
    chance = p * q + (1 - p) * (1 - q)
    found = np.divide(same - chance, 1 - chance, out=np.full(len(times), np.nan), where=chance < 1)
    return from_draws(float(found[0]), found[1:])


_FEWEST: Final = 10
"""Texts below which there is no interval."""


def _times(n: int) -> NDArray[np.float64]:
    """(resamples, n) how often each text is drawn; no resample of few texts."""
    generator = np.random.default_rng(0)
    return generator.multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(float) if n >= _FEWEST else np.zeros((0, n))
