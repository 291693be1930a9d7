"""BLEU of answers in a dialogue: the best few hypotheses of a beam against what was said (Zhao et al. 2017; Yang et al. 2018).

With d_n the smoothed BLEU of one sentence with n-grams of up to n words, H hypotheses and M references of an example:

    precision_n = mean over the hypotheses of the largest d_n to any reference
    recall_n    = mean over the references of the largest d_n of any hypothesis

both averaged over the examples. sacrebleu counts and smooths. N-grams longer than the hypothesis are left out, since "add-k"
would give them a precision of 1 (0 + 1 of 0 + 1). With one reference, recall is the maximum of the H values and precision their
mean, so recall is never below precision. In the table of the MoS paper it is below, so that paper had several references."""

from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sememekit.config import Settings
from sememekit.errors import DataError
from sememekit.measure.intervals import RESAMPLES
from sememekit.measure.rouge import NEVER_WORD, TextScores, digest_of, spread_of
from sememekit.text.english import English
from sememekit.text.form import MARK

ORDERS: Final = (1, 2, 3, 4)


class BleuSettings(Settings):
    """Settings of BLEU."""

    top: int = Field(default=5, ge=1)
    """H, number of best hypotheses of an example that count."""
    smoothing: Literal["exp", "add-k", "floor"] = "exp"
    """The smoothing of zero counts: "exp" (halving; method 3 of Chen and Cherry 2014), "add-k" (k = 1) or "floor" (0.1)."""
    tokenizer: Literal["english", "white space"] = "english"
    """"english" (lower case, punctuation and clitics separate, both sides alike) or "white space"."""


def dialogue_bleu(
    candidates: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    settings: BleuSettings | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> TextScores:
    """Score answers: n lists of hypotheses, best first, against n lists of references, "precision1" ... "recall4".

    N-gram orders that exceed the length of a hypothesis are left out of its geometric mean. A hypothesis without any right word
    scores 0, and marks such as ``<unk>`` match nothing. ``resamples`` and ``seed`` are of the bootstrap. Raises DataError:
    nothing to score, different numbers of candidates and references, or an example without candidates or references."""
    settings = settings or BleuSettings()
    _check_numbers(candidates, references)
    distance = _Distance(settings)
    rows = [_example(texts[: settings.top], own, distance) for texts, own in zip(candidates, references, strict=True)]
    names = [f"{side}{order}" for side in ("precision", "recall") for order in ORDERS]
    parts = {
        "metric": "sentence-bleu-1-4",
        "top": settings.top,
        "refs": spread_of(references),
        "references": digest_of(references),
        "tok": settings.tokenizer.replace(" ", "-"),
        "smooth": settings.smoothing,
        "eff": "yes",
        "unk": "never",
        "package": f"sacrebleu-{version('sacrebleu')}",
    }
    return TextScores.of(names, rows, parts, resamples, seed)


class _Distance:
    """BLEU-1 to BLEU-4 of a hypothesis against one reference."""

    def __init__(self, settings: BleuSettings) -> None:
        from sacrebleu.metrics.bleu import BLEU

        self._smoothing = settings.smoothing
        # Counting alone; "add-k" would add to the counts themselves, and without an effective order sacrebleu complains.
        self._bleu = BLEU(tokenize="none", smooth_method="none", effective_order=True)
        self._cut = English().segment if settings.tokenizer == "english" else str.split

    def words(self, text: str) -> str:
        return " ".join(self._cut(text))

    def __call__(self, hypothesis: str, reference: str) -> list[float]:
        counted = self._bleu.sentence_score(hypothesis, [reference])
        longest = max(1, sum(total > 0 for total in counted.totals))  # by "add-k" sacrebleu would add to longer ones, too
        bleu, found = partial(self._bleu.compute_bleu, smooth_method=self._smoothing, effective_order=True), []
        for order in (min(order, longest) for order in ORDERS):
            given = counted.counts[:order], counted.totals[:order], counted.sys_len, counted.ref_len
            found.append(min(bleu(*given, max_ngram_order=order).score / 100.0, 1.0))
        return found


def _example(hypotheses: Sequence[str], references: Sequence[str], distance: _Distance) -> npt.NDArray[np.float64]:
    """(8,) precision of each order, then recall."""
    texts = [distance.words(MARK.sub(NEVER_WORD, text)) for text in hypotheses]
    own = [distance.words(text) for text in references]
    table = np.array([[distance(text, reference) for reference in own] for text in texts])  # (H, M, 4)
    return np.concatenate([table.max(axis=1).mean(axis=0), table.max(axis=0).mean(axis=0)])


def _check_numbers(candidates: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> None:
    if len(candidates) != len(references):
        raise DataError(f"{len(candidates)} lists of answers, but references for {len(references)}; each needs its own")
    if not candidates:
        raise DataError("no answers to score")
    for number, (texts, own) in enumerate(zip(candidates, references, strict=True), start=1):
        for what, given in (("answer", texts), ("reference", own)):
            if isinstance(given, str) or not given:
                raise DataError(f"example {number}: {'a string, not a list' if isinstance(given, str) else 'no'} {what}")
