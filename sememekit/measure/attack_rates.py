"""Success rates of an attack over the correctly classified examples, with intervals.

An example has one of five outcomes, which are never added up into each other:

    success        a text within the constraints for which the victim's answer meets the goal
    failed         the search ended without one, or the query budget was spent
    no_candidates  nothing to try: no word has a substitute, or the constraints leave none
    skipped        not attacked: misclassified without any attack, or left out by the constraints or the search
    error          the victim or the example itself is at fault: neither robust nor fooled; one that was classified before still
                   counts for accuracy, and as untried where it was right

Intervals of rates and of their differences are those of ``sememekit.measure.rates``; those of means are bootstrap intervals.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import numpy as np

from sememekit.config import Record
from sememekit.measure.intervals import Interval, interval, ratio_difference_interval, ratio_interval
from sememekit.measure.rates import rate, rate_difference

Outcome = Literal["success", "failed", "no_candidates", "skipped", "error"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("success", "failed", "no_candidates", "skipped", "error")
LEVELS: Final = (100, 500, 2000)
"""Queries at which the success rate is reported."""
UNDER_ATTACK: Final = "accuracy under attack"
NOT_TURNED: Final = "right before and not turned to the target"
"""What ``accuracy_under_attack`` is called where examples have a target: a text that moves the victim to a third label does not
reach the goal, so that the victim may be wrong on it."""


class ExampleOutcome(Record):
    """The result of one example.

    Attributes:
        correct: whether the victim classified it correctly before the attack; None where it could not be asked.
        queries: by the counting rule of the attack.
        words_changed: of the adversarial text; 0 unless it succeeded.
        num_words: the divisor of the share of changed words.
    """

    outcome: Outcome
    correct: bool | None
    queries: int
    words_changed: int
    num_words: int


class AttackRates(Record):
    """Rates of one attack; see the module for the five outcomes.

    Attributes:
        examples, outcomes: in all, and by outcome.
        attackable: success and failed together, the examples with something to try: the divisor of the success rate.
        attacked: these and those of no_candidates.
        untried: correctly classified and never tried to the end: no_candidates, those that the constraints or the search left
            out, and those that ended in an error.
        accuracy: correctly classified before the attack, of all that could be classified.
        accuracy_under_attack: correctly classified, tried and not fooled, of the same; nothing untried counts as surviving.
            With a target fooled is only what was turned to it: see ``NOT_TURNED``.
        accuracy_at_most: the same with everything untried counted as surviving; equal to it where all were tried.
        success_rate, success_of_attacked: successes of those attackable, and of those attacked.
        success_at: success_rate with successes of at most so many queries; None above the query budget.
        mean_queries, median_queries: of those attackable, failed or not.
        mean_queries_of_successes: of successes alone.
        words_changed: mean share of words changed, over successes.
    """

    examples: int
    outcomes: dict[str, int]
    attackable: int
    attacked: int
    untried: int
    accuracy: Interval
    accuracy_under_attack: Interval
    accuracy_at_most: Interval
    success_rate: Interval
    success_of_attacked: Interval
    success_at: dict[int, Interval | None]
    mean_queries: Interval
    median_queries: float | None
    mean_queries_of_successes: float | None
    words_changed: float | None


def attack_rates(records: Sequence[ExampleOutcome], *, query_budget: int = 0) -> AttackRates:
    """The rates of one attack; ``records`` in the order of the data, so that intervals repeat exactly.

    Success rates at more queries than ``query_budget`` (0 for none) are unknown.
    """
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
        mean_queries=interval(ratio_interval(queries * attackable, attackable)),
        median_queries=float(np.median(queries[attackable > 0])) if attackable.any() else None,
        mean_queries_of_successes=float(won.mean()) if len(won) else None,
        words_changed=float(np.mean(shares)) if shares else None,
    )


class Difference(Record):
    """The first attack minus the second, of one metric, both with their intervals, and whether that of the difference excludes
    zero (None without a difference)."""

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
    """Differences between two attacks on the same examples, by their number, resampled together.

    A success rate divides by what was correct and could be tried on its own side, so both sides have their own denominator; the
    rows "attacked in both" compare like with like. Only examples in both count; those with an error on a side count for the
    accuracies alone, where both sides classified them. ``budgets`` are the queries allowed each example of a side; 0 for none.
    ``survived_as`` names the row of those not fooled: ``UNDER_ATTACK`` or ``NOT_TURNED``.
    """
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
            rows.append(
                (f"success rate at {level:,} queries", [(success[k] * (queries[k] <= level), attacked[k]) for k in (0, 1)])
            )
    rows.append(("success rate, attacked in both", [(success[k] * both, both) for k in (0, 1)]))
    rows.append(("mean queries, attacked in both", [(queries[k] * both, both) for k in (0, 1)]))
    return [_difference(name, *pair) for name, pair in rows]


def _difference(name: str, one: tuple[np.ndarray, np.ndarray], two: tuple[np.ndarray, np.ndarray]) -> Difference:
    if name.startswith("mean "):
        sides = [interval(ratio_interval(*side)) for side in (one, two)]
        found = interval(ratio_difference_interval(one, two))
    else:
        sides, found = [rate(*side) for side in (one, two)], rate_difference(one, two)
    zero_out = None if found.low is None or found.high is None else found.low > 0 or found.high < 0
    return Difference(name=name, first=sides[0], second=sides[1], difference=found, excludes_zero=zero_out)


def _flags(records: Sequence[ExampleOutcome], outcome: str) -> np.ndarray:
    return np.array([record.outcome == outcome for record in records], dtype=np.float64)


def _known(records: Sequence[ExampleOutcome]) -> np.ndarray:
    """Examples that count for accuracy: all that were classified, whatever came later. Those misclassified are final after one
    query, and those right stay exposed to a victim that raises: without the errors accuracy would be too low."""
    return np.array([record.correct is not None for record in records], dtype=np.float64)


def _right(records: Sequence[ExampleOutcome]) -> np.ndarray:
    return np.array([bool(record.correct) for record in records], dtype=np.float64)
