"""Success rates of an attack over the correctly classified examples, with intervals.

An example has one of five outcomes, which are counted separately and defined in docs/attacks.md. An example with an error is
neither robust nor fooled; if it was classified before, it still counts for accuracy, and as untried if correct.

Rates and their differences have the intervals of ``sememekit.measure.intervals``; means have bootstrap intervals."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from pydantic import Field

from sememekit.config import Record
from sememekit.measure.intervals import Interval, rate, rate_difference, ratio_difference_interval, ratio_interval

Outcome = Literal["success", "failed", "no_candidates", "skipped", "error"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("success", "failed", "no_candidates", "skipped", "error")
LEVELS: Final = (100, 500, 2000)
"""Queries at which the success rate is reported."""
UNDER_ATTACK: Final = "accuracy under attack"
NOT_TURNED: Final = "right before and not turned to the target"
"""Name of ``accuracy_under_attack`` with target labels: a third label is wrong, but does not reach the goal."""


class ExampleOutcome(Record):
    """The result of one example."""

    outcome: Outcome
    """The result of the attack."""
    correct: bool | None
    """True if the victim classified it correctly before the attack; None if the query failed."""
    queries: int
    """The queries by the counting rule of the attack."""
    words_changed: int
    """Number of changed words of the adversarial text; 0 unless it succeeded."""
    num_words: int
    """The divisor of the share of changed words."""


class AttackRates(Record):
    """Rates of one attack; see the module for the five outcomes."""

    examples: int
    outcomes: dict[str, int]
    attackable: int
    """Success + failed, the divisor of the success rate."""
    attacked: int
    """Attackable + no_candidates."""
    untried: int
    """Correctly classified but not attacked to the end: no_candidates, left out by constraints or search, and errors."""
    accuracy: Interval
    """Correctly classified before the attack, of all that could be classified."""
    accuracy_under_attack: Interval
    """Correctly classified, attacked and not fooled, over the same total; untried examples count as fooled. With target labels
    the victim counts as fooled only if it answers the target: see ``NOT_TURNED``."""
    accuracy_at_most: Interval
    """The same with untried examples counted as robust."""
    success_rate: Interval
    success_of_attacked: Interval
    """success_rate, success_of_attacked: successes over attackable, and over attacked examples."""
    success_at: dict[int, Interval | None]
    """Success rate within a number of queries; None above the query budget."""
    mean_queries: Interval
    median_queries: float | None
    """mean_queries, median_queries: over attackable examples."""
    mean_queries_of_successes: float | None
    words_changed: float | None
    """Mean share of words changed, over successes."""


def attack_rates(records: Sequence[ExampleOutcome], *, query_budget: int = 0) -> AttackRates:
    """The rates of one attack; ``records`` in the order of the data, so that intervals repeat exactly.

    Success rates at more queries than ``query_budget`` (0 for none) are unknown."""
    success, failed = _flags(records, "success"), _flags(records, "failed")
    attackable, attacked = success + failed, success + failed + _flags(records, "no_candidates")
    known, right = _known(records), _right(records)
    queries = np.array([record.queries for record in records], dtype=np.float64)
    shares = [record.words_changed / record.num_words for record in records if record.outcome == "success" and record.num_words]
    won = queries[success > 0]
    at: dict[int, Interval | None] = {}
    for level in LEVELS:
        beyond = bool(query_budget) and level > query_budget
        at[level] = None if beyond else rate(success * (queries <= level), attackable)
    return AttackRates(
        examples=len(records),
        outcomes={name: int(_flags(records, name).sum()) for name in OUTCOMES},
        attackable=int(attackable.sum()),
        attacked=int(attacked.sum()),
        untried=int((right - attackable).sum()),
        accuracy=rate(right, known),
        accuracy_under_attack=rate(failed, known),
        accuracy_at_most=rate(right - success, known),
        success_rate=rate(success, attackable),
        success_of_attacked=rate(success, attacked),
        success_at=at,
        mean_queries=ratio_interval(queries * attackable, attackable),
        median_queries=float(np.median(queries[attackable > 0])) if attackable.any() else None,
        mean_queries_of_successes=float(won.mean()) if len(won) else None,
        words_changed=float(np.mean(shares)) if shares else None,
    )


class Difference(Record):
    """The first attack minus the second, of one metric; ``excludes_zero`` is True if the interval does, None without one."""

    name: str
    first: Interval
    second: Interval
    difference: Interval
    excludes_zero: bool | None


def paired_differences(
    first: Mapping[int, ExampleOutcome],
    second: Mapping[int, ExampleOutcome],
    *,
    budgets: tuple[int, int] = (0, 0),
    survived_as: str = UNDER_ATTACK,
) -> list[Difference]:
    """Return differences between two attacks on the same examples (by number), with paired resampling.

    The success rates of the two sides have different denominators (correct and attackable on that side); the rows "attacked in
    both" have a common one. Only examples in both attacks count. Examples with an error count only for the accuracies, and only
    if both sides classified them. ``budgets`` are the queries allowed each example of a side; 0 for none. ``survived_as`` names
    the row of examples not fooled: ``UNDER_ATTACK`` or ``NOT_TURNED``."""
    common = [index for index in sorted(first) if index in second]
    sides = [[side[index] for index in common] for side in (first, second)]
    whole = (1 - _flags(sides[0], "error")) * (1 - _flags(sides[1], "error"))
    known = _known(sides[0]) * _known(sides[1])
    right = [_right(side) * known for side in sides]
    fooled, survived = ([_flags(side, outcome) * known for side in sides] for outcome in ("success", "failed"))
    success, attacked = [each * whole for each in fooled], [(fooled[k] + survived[k]) * whole for k in (0, 1)]
    queries = [np.array([record.queries for record in side], dtype=np.float64) for side in sides]
    both = attacked[0] * attacked[1]
    rows: list[tuple[str, list[tuple[np.ndarray, np.ndarray]]]] = [
        ("accuracy", [(right[k], known) for k in (0, 1)]),
        (survived_as, [(survived[k], known) for k in (0, 1)]),
        (f"{survived_as}, untried as surviving", [(right[k] - fooled[k], known) for k in (0, 1)]),
        ("success rate", [(success[k], attacked[k]) for k in (0, 1)]),
    ]
    for level in LEVELS:
        if all(not budget or level <= budget for budget in budgets):
            within = [(success[k] * (queries[k] <= level), attacked[k]) for k in (0, 1)]
            rows.append((f"success rate at {level:,} queries", within))
    rows.append(("success rate, attacked in both", [(success[k] * both, both) for k in (0, 1)]))
    rows.append(("mean queries, attacked in both", [(queries[k] * both, both) for k in (0, 1)]))
    return [_difference(name, *pair) for name, pair in rows]


def _difference(name: str, one: tuple[np.ndarray, np.ndarray], two: tuple[np.ndarray, np.ndarray]) -> Difference:
    if name.startswith("mean "):
        sides = [ratio_interval(*side) for side in (one, two)]
        found = ratio_difference_interval(one, two)
    else:
        sides, found = [rate(*side) for side in (one, two)], rate_difference(one, two)
    return Difference(name=name, first=sides[0], second=sides[1], difference=found, excludes_zero=found.leaves_zero_out)


def _flags(records: Sequence[ExampleOutcome], outcome: str) -> np.ndarray:
    return np.array([record.outcome == outcome for record in records], dtype=np.float64)


def _known(records: Sequence[ExampleOutcome]) -> np.ndarray:
    # Also with a later error: only correct examples are queried further, so that accuracy would be too low without them.
    return np.array([record.correct is not None for record in records], dtype=np.float64)


def _right(records: Sequence[ExampleOutcome]) -> np.ndarray:
    return np.array([bool(record.correct) for record in records], dtype=np.float64)


LOW_COVERAGE: Final = 0.2
"""Share of changeable words below which an attack says little about the victim."""


class SpaceSize(Record):
    """The search space of one example."""

    words: int
    """The words in the fields that may change, without punctuation."""
    with_candidates: int
    """Words among ``words`` that have any substitute."""
    changeable: int
    """Words among ``words`` that have a substitute under the constraints."""
    substitutes: int
    """The substitutes of the changeable words together."""
    texts_log10: float | None
    """log10 of the number of other texts within the constraints; None where there is none."""
    refused: tuple[int, ...] = ()
    """Substitutes that each constraint refused, in their order."""


class Coverage(Record):
    """The joint search space of all correctly classified examples that no constraint refused.

    Sums, shares of the words, the mean number of substitutes of a changeable word, the median over examples with a text to
    try, and the substitutes that each constraint refused. Ratios without a divisor are None."""

    examples: int
    words: int
    with_candidates: int
    changeable: int
    share_with_candidates: float | None
    share_changeable: float | None
    mean_substitutes: float | None
    median_texts_log10: float | None
    refused: tuple[int, ...] = ()

    @property
    def low(self) -> bool:
        return self.share_changeable is not None and self.share_changeable < LOW_COVERAGE


def coverage_of(sizes: Iterable[SpaceSize]) -> Coverage:
    """Sums, shares and the median over examples."""
    found = list(sizes)
    names = ("words", "with_candidates", "changeable", "substitutes")
    words, with_candidates, changeable, substitutes = (sum(getattr(size, name) for size in found) for name in names)
    logs = [size.texts_log10 for size in found if size.texts_log10 is not None]
    return Coverage(
        examples=len(found),
        words=words,
        with_candidates=with_candidates,
        changeable=changeable,
        share_with_candidates=with_candidates / words if words else None,
        share_changeable=changeable / words if words else None,
        mean_substitutes=substitutes / changeable if changeable else None,
        median_texts_log10=float(np.median(logs)) if logs else None,
        refused=tuple(map(sum, zip_longest(*(size.refused for size in found), fillvalue=0))),
    )


class Verdict(NamedTuple):
    """The majority vote on a success: same meaning; label and fluency of the changed text; label of the ``original``."""

    meaning: bool
    label: bool
    fluent: bool
    original: bool

    @property
    def valid(self) -> bool:
        return self.meaning and self.label and self.fluent


class Validity(Record):
    """The validity of the successes of an attack."""

    rated: int
    successes: int
    """rated, successes: successes that were rated, and all."""
    ratings: int
    """Rows of all raters on them."""
    raters: int = 1
    agreement: dict[str, float | None] = Field(default_factory=dict)
    """Question -> Krippendorff's alpha of the raters (see ``agreement_of``); empty for one rater."""
    remarks: tuple[str, ...] = ()
    """Sheets and rows that were given twice and count once."""
    meaning: Interval
    label: Interval
    fluent: Interval
    valid: Interval
    """meaning, label, fluent, valid: share of rated texts that keep the meaning, keep the label, are fluent, and all three."""
    originals: Interval
    """Share of originals to which raters give the true label."""
    valid_success: Interval
    valid_success_at: dict[int, Interval | None]
    """The same with successes of at most so many queries; None above the query budget."""


def product_interval(first: Interval, second: Interval) -> Interval:
    """The product of two independent rates with its interval, see the module."""
    values = [[getattr(found, name) for name in ("value", "low", "high")] for found in (first, second)]
    if any(None in each for each in values):
        return Interval(value=None)
    (p, low_p, high_p), (v, low_v, high_v) = values
    low, high = math.hypot(v * (p - low_p), p * (v - low_v)), math.hypot(v * (high_p - p), p * (high_v - v))
    return Interval(value=p * v, low=max(p * v - low, 0.0), high=min(p * v + high, 1.0))


def agreement_of(answers: Iterable[Sequence[Hashable]]) -> float | None:
    """Krippendorff's alpha for nominal answers, given the answers of a unit; None if all answers are equal or no unit has two.

    With n_uc answers c on unit u, m_u answers on it, and n_c and n sums over units with m_u > 1 (Krippendorff 2011):

        alpha = 1 - (n - 1) sum_u sum_c n_uc (m_u - n_uc) / (m_u - 1) / sum_c n_c (n - n_c)."""
    units = [Counter(each) for each in answers if len(each) > 1]
    totals = sum(units, Counter[Hashable]())
    n = totals.total()
    expected = sum(count * (n - count) for count in totals.values())
    if not expected:
        return None
    apart = sum(sum(count * (unit.total() - count) for count in unit.values()) / (unit.total() - 1) for unit in units)
    return 1.0 - (n - 1) * apart / expected


def validity_of(
    records: Sequence[ExampleOutcome],
    verdicts: Mapping[int, Verdict],
    ratings: int,
    *,
    query_budget: int = 0,
    **of_raters: Any,
) -> Validity:
    """The validity of an attack; ``verdicts`` by the place of an example in ``records``, ``ratings`` of all raters;
    ``of_raters``: raters, agreement and remarks of ``Validity``.

    An adversarial text is valid if it keeps the meaning and the true label of the original, and is fluent. S of N examples are
    successes, and a random sample of n successes is rated; with p = S / N and v = valid / n the rate of valid successes is p v.
    Its interval puts the limits of Wilson together by the delta method, as Newcombe does for a difference of rates:

        low = p v - sqrt((v (p - low_p))^2 + (p (v - low_v))^2),    high alike.

    If all are rated, v^2 p (1 - p) / N + p^2 v (1 - v) / S = p v (1 - p v) / N, the variance of a share of N."""
    queries, won = np.array([record.queries for record in records]), _flags(records, "success")
    tried = won + _flags(records, "failed")
    rated = np.array([float(place in verdicts) for place in range(len(records))])
    said = {
        name: np.array([float(place in verdicts and getattr(verdicts[place], name)) for place in range(len(records))])
        for name in ("meaning", "label", "fluent", "valid", "original")
    }

    def up_to(level: float) -> Interval:
        quick = queries <= level
        return product_interval(rate(won * quick, tried), rate(said["valid"] * quick, rated * quick))

    return Validity(
        rated=len(verdicts),
        successes=int(won.sum()),
        ratings=ratings,
        **of_raters,
        **{name: rate(said[name], rated) for name in ("meaning", "label", "fluent", "valid")},
        originals=rate(said["original"], rated),
        valid_success=up_to(math.inf),
        valid_success_at={level: None if query_budget and level > query_budget else up_to(level) for level in LEVELS},
    )
