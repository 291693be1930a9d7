"""Rounds of questions: short texts first, each text once, and successes that must hold when they are asked again."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sememekit.attack import Attack, Example, ExampleResult, Victim
from sememekit.attack.documents import Document
from sememekit.attack.engine import NOT_AGAIN
from sememekit.attack.space import Space
from tests.attack.toys import EXAMPLES, LABELS, TABLE, Counting, logit, make_attack, predict


def test_a_long_text_holds_no_short_one_up() -> None:
    """All examples of a round waited for the largest: beside a text of 3,000 words 10 of 25 were done after 500 s."""
    words = [*TABLE, *("the", "a", "end")]
    long = Example(99, (" ".join(words[number % len(words)] for number in range(500)) + " good" * 300,), "yes")
    victim = Counting()
    attack = make_attack("greedy", function=victim, attack__batch_size=16, constraints={"share": {"most": 0.5}})
    found = []
    for result in attack.run([long, *EXAMPLES]):
        found.append(result)
        if len(found) == len(EXAMPLES):
            break
    assert [result.index for result in found].count(99) == 0
    assert sum(len(text) > 3000 for text in victim.texts) <= 1, "the long text as it is; what it becomes waits for the others"
    alone = {result.index: result for result in make_attack("greedy", constraints={"share": {"most": 0.5}}).run(EXAMPLES)}
    assert {result.index: result for result in found} == alone


def test_texts_of_a_long_step_are_made_a_round_at_a_time() -> None:
    long = Example(0, ("good bad slow film very end " * 150,), "no")
    attack = make_attack("greedy", function=lambda texts: np.tile([0.9, 0.1], (len(texts), 1)), attack__batch_size=16)
    asking = attack.attack_one(long)
    next(asking)
    tracemalloc.start()
    wanted = asking.send([np.array([0.9, 0.1])])
    assert tracemalloc.get_traced_memory()[1] < len(wanted) * len(long.fields[0]), "the texts together would need more"
    tracemalloc.stop()
    assert len(wanted) > 2000
    assert wanted[3:5] == [wanted[3], wanted[4]]
    assert wanted[3] != long.fields


def test_two_rows_that_are_one_text_are_one_query() -> None:
    """Chinese without blanks: 人 by 人民 before 工 is 人民工, as is 工 by 民工 behind 人."""
    table = {"人": ("人民", "老人"), "工": ("民工",)}
    document = Document.read(("人工好",), list)
    texts = [Space.open(document, table).text(np.array(row, dtype=np.int16)) for row in ([1, 0], [0, 1])]
    assert texts == [("人民工好",)] * 2
    asked: list[str] = []

    def function(given: list[str]) -> np.ndarray:
        asked.extend(given)
        return np.array([[0.9 - 0.01 * len(text), 0.1 + 0.01 * len(text)] for text in given])

    for counting in ("distinct", "every"):
        asked.clear()
        attack = make_attack("exhaustive", function=function, attack__counting=counting)
        [result] = replace(attack, table=table, cut=list).run([Example(0, ("人工好",), "no")])
        assert result.outcome == "failed"
        assert sorted(asked) == sorted({"人工好", "人民工好", "老人工好", "人民民工好", "老人民工好"})
        assert result.queries == {"distinct": 5, "every": 6}[counting]
        assert result.best_score == pytest.approx(0.15), "the best of all rows, whichever way it was written"


class Noisy:
    """The toy with noise on its logit, as a model of torch left in training mode has."""

    def __init__(self, size: float) -> None:
        self._source, self._size = np.random.default_rng(1), size

    def __call__(self, texts: list[str]) -> np.ndarray:
        noise = self._source.normal(size=len(texts)) * self._size
        yes = 1 / (1 + np.exp(-(np.array([logit(text) for text in texts]) + noise)))
        return np.stack([1 - yes, yes], axis=1)


def test_successes_that_do_not_hold_when_asked_again_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = [Example(n, (f"{EXAMPLES[n % 8].fields[0]} x{n}",), EXAMPLES[n % 8].label) for n in range(80)]
    attack = make_attack("greedy", constraints={"share": {"most": 0.3}})

    def share_that_fools(results: list[ExampleResult]) -> float:
        """Return the share of successes that fool the same victim without noise."""
        won = [result for result in results if result.adversarial is not None]
        return float(np.mean([(logit(one.adversarial[0]) > 0) != (one.label == "yes") for one in won if one.adversarial]))

    noisy = replace(attack, victim=Victim(Noisy(1.0), LABELS, name="noisy"))
    results = list(noisy.run(examples))
    lost = [result for result in results if result.reason == NOT_AGAIN]
    assert len(lost) > 10
    assert all((one.outcome, one.adversarial, one.changes, one.words_changed) == ("failed", None, (), 0) for one in lost)
    assert noisy.victim.texts_asked == sum(result.queries for result in results), "asking again is not counted"
    monkeypatch.setattr(Attack, "confirmed", lambda self, result: result)
    unchecked = list(replace(attack, victim=Victim(Noisy(1.0), LABELS, name="noisy")).run(examples))
    assert share_that_fools(results) > 0.85 > 0.75 > share_that_fools(unchecked)


def test_a_victim_that_raises_when_asked_again_is_an_error_and_a_little_movement_is_none() -> None:
    def last_bits(texts: list[str]) -> np.ndarray:
        return predict(texts) + np.array([[1.0, -1.0]]) * (1e-6 if len(texts) == 1 else 0.0)

    plain = {result.index: result for result in make_attack("greedy").run(EXAMPLES)}
    moved = {result.index: result for result in make_attack("greedy", function=last_bits).run(EXAMPLES)}
    outcomes: list[Any] = [{index: result.outcome for index, result in each.items()} for each in (plain, moved)]
    assert outcomes[0] == outcomes[1]
    attack, won = make_attack("greedy"), next(result for result in plain.values() if result.outcome == "success")

    def broken(texts: list[str]) -> np.ndarray:
        raise RuntimeError("gone")

    found = replace(attack, victim=Victim(broken, LABELS, name="toy")).confirmed(won)
    assert (found.outcome, found.reason, found.adversarial) == ("error", "the victim raised RuntimeError: gone", None)
    assert found.broken, "--resume asks again"
    assert attack.confirmed(won) is won
