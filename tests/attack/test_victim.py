"""A victim that misbehaves costs its own examples an error, and nobody else anything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from sememekit.attack import Example, Victim
from sememekit.attack.victim import LENGTH
from sememekit.measure.attack_rates import coverage_of
from tests.attack.toys import EXAMPLES, LABELS, make_attack, predict


def raising(texts: list[str]) -> np.ndarray:
    if any(text.startswith("a bad") for text in texts):
        raise RuntimeError("no thanks")
    return predict(texts)


def with_nan(texts: list[str]) -> np.ndarray:
    found = predict(texts)
    found[[text.startswith("a bad") for text in texts]] = np.nan
    return found


def too_few_rows(texts: list[str]) -> np.ndarray:
    return predict(texts)[: 1 if any(text.startswith("a bad") for text in texts) and len(texts) > 1 else len(texts)]


def logits(texts: list[str]) -> np.ndarray:
    found = predict(texts)
    bad = [text.startswith("a bad") for text in texts]
    found[bad] = np.log(found[bad])
    return found


@pytest.mark.parametrize("function", [raising, with_nan, logits])
def test_a_fault_ends_its_own_examples_with_an_error(function: Any) -> None:
    good = {result.index: result for result in make_attack("greedy").run(EXAMPLES)}
    found = {result.index: result for result in make_attack("greedy", function=function).run(EXAMPLES)}
    for example in EXAMPLES:
        if example.fields[0].startswith("a bad"):
            assert found[example.index].outcome == "error"
            assert "victim" in found[example.index].reason
            assert found[example.index].correct is None
        else:
            assert found[example.index] == good[example.index]


def test_a_wrong_shape_of_a_batch_is_an_error_of_those_who_cause_it() -> None:
    found = {result.index: result for result in make_attack("greedy", function=too_few_rows).run(EXAMPLES)}
    assert found[1].outcome == "error"
    assert "must give an array of shape" in found[1].reason
    assert found[0] == next(make_attack("greedy").run(EXAMPLES[:1]))


def test_a_fault_in_the_middle_of_a_search_is_no_failure() -> None:
    def later(texts: list[str]) -> np.ndarray:
        if any("dull" in text for text in texts):
            raise ValueError("dull")
        return predict(texts)

    found = {result.index: result for result in make_attack("greedy", function=later).run(EXAMPLES)}
    assert found[1].outcome == "error"
    assert found[1].reason == "the victim raised ValueError: dull"
    assert found[1].correct is True
    assert found[1].queries > 1


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda n: np.ones((n, 2), dtype=np.int64), "floating-point"),
        (lambda n: np.full((n, 3), 1 / 3), "shape"),
        (lambda n: [["a", "b"]] * n, "floating-point"),
        (
            lambda n: np.full((n, 2), [1.5, -0.5]),
            "no probabilities: sum 1, least -0.5; if these are logits, say so by the option logits",
        ),
        (lambda n: None, "floating-point"),
    ],
)
def test_answers_that_are_no_probabilities(answer: Any, problem: str) -> None:
    victim = Victim(lambda texts: answer(len(texts)), LABELS, name="toy")
    found = victim.ask([[("x",)], [("y",), ("z",)]])
    assert [len(part) for part in found] == [1, 2]
    assert all(isinstance(item, str) and problem in item for part in found for item in part)


def test_only_what_a_failed_batch_held_is_asked_again() -> None:
    """Batches are of texts of like length; the second one fails, and its texts are asked once more, example by example."""
    asked: list[list[str]] = []

    def broken_on_long(texts: list[str]) -> np.ndarray:
        asked.append(list(texts))
        if len(texts) > 1 and "long long" in texts:
            raise RuntimeError("too long")
        return np.full((len(texts), 2), 0.5)

    victim = Victim(broken_on_long, LABELS, name="toy", batch_size=2)
    found = victim.ask([[("a",), ("long long",)], [("b",), ("longer",)], [("longer",)]])
    assert asked == [["a", "b"], ["longer", "long long"], ["long long"], ["longer"]]
    assert all(np.array_equal(answer, [0.5, 0.5]) for part in found for answer in part)
    assert (victim.calls, victim.texts_asked) == (4, 6)


def test_a_stop_between_two_batches_ends_the_questions() -> None:
    victim = Victim(predict, LABELS, name="toy", batch_size=2)
    wanted = [[(f"{example} {number}",) for number in range(5)] + [("all",)] for example in range(4)]
    assert victim.ask(wanted, lambda: victim.calls == 3) == []
    assert (victim.calls, victim.texts_asked) == (3, 6)
    found = victim.ask(wanted)
    assert [len(answers) for answers in found] == [6] * 4
    assert victim.texts_asked == 6 + 21, "a text of several examples is asked once"


def test_batches_of_long_texts_are_small() -> None:
    """512 texts of 2,400 words took 3.8 GB: a batch holds as many characters as one of ordinary texts."""
    sizes: list[tuple[int, int]] = []

    def function(texts: list[str]) -> np.ndarray:
        sizes.append((len(texts), max(map(len, texts))))
        return np.full((len(texts), 2), 0.5)

    victim = Victim(function, LABELS, name="toy", batch_size=8)
    texts = [("x" * length + str(number),) for length in (10, 1500, 9000) for number in range(9)]
    found = victim.ask([texts])[0]
    assert len(found) == 27
    assert sizes[0] == (8, 11)
    assert all(num * longest <= 8 * LENGTH or num == 1 for num, longest in sizes)
    assert [num for num, longest in sizes if longest > 2000] == [1] * 9


def test_company_in_a_batch_shows_in_no_digit() -> None:
    """A victim's last bits depend on the batch; nine decimals are kept."""
    almost = [0.1234567894, 0.8765432106]
    answer = Victim(lambda texts: np.array([almost] * len(texts)), LABELS, name="toy").ask([[("x",)]])[0][0]
    assert list(answer) == [0.123456789, 0.876543211]


def test_tensors_will_do_and_pairs_come_as_tuples() -> None:
    seen = []

    def pairs(texts: list[tuple[str, str]]) -> torch.Tensor:
        seen.extend(texts)
        return torch.full((len(texts), 2), 0.5, requires_grad=True)

    answers = Victim(pairs, LABELS, name="toy", batch_size=2).ask([[("a", "b"), ("c", "d")], [("a", "b"), ("e", "")]])
    assert sorted(seen) == [("a", "b"), ("c", "d"), ("e", "")]
    np.testing.assert_array_equal(np.array(answers), np.full((2, 2, 2), 0.5))


@pytest.mark.parametrize(
    ("text", "label", "outcome", "reason", "queries", "num_words"),
    [
        ("", "no", "skipped", "classified wrongly", 1, 0),
        ("", "yes", "skipped", "no words", 1, 0),
        ("good", "-", "skipped", "no gold label", 0, 0),
        ("good", "maybe", "error", "unknown label 'maybe'; the victim's labels: no, yes", 0, 0),
        ("wonder", "yes", "no_candidates", "no word has a substitute", 1, 1),
        ("good", "yes", "failed", "search exhausted, no adversarial example found", 4, 1),
    ],
)
def test_awkward_examples_end_in_a_clear_outcome(
    text: str, label: str, outcome: str, reason: str, queries: int, num_words: int
) -> None:
    def yes(texts: list[str]) -> np.ndarray:
        return np.full((len(texts), 2), [0.1, 0.9])

    result = next(make_attack("greedy", function=yes).run([Example(0, (text,), label)]))
    assert result.outcome == outcome
    assert reason in result.reason
    assert (result.queries, result.words_changed, result.num_words) == (queries, 0, num_words)


def test_limits_that_leave_nothing() -> None:
    constraints = {"share": {"most": 0.1}, "minimum_length": {"words": 4}}
    found = {result.index: result for result in make_attack("greedy", constraints=constraints).run(EXAMPLES)}
    assert (found[1].outcome, found[1].reason) == ("no_candidates", "the constraints allow no change")
    constraints["minimum_length"]["words"] = 5
    found = {result.index: result for result in make_attack("greedy", constraints=constraints).run(EXAMPLES)}
    assert (found[1].outcome, found[1].reason, found[1].correct) == ("skipped", "fewer than 5 words", True)


def test_an_example_that_a_constraint_refuses_has_no_part_in_coverage() -> None:
    """The later constraints do not read it: ``share`` would leave it nothing."""
    constraints = {"minimum_length": {"words": 5}, "share": {"most": 0.1}}
    results = list(make_attack("greedy", constraints=constraints).run(EXAMPLES))
    left = [result for result in results if result.correct and result.outcome != "skipped"]
    assert [result.index for result in results if result.correct and result.reason == "fewer than 5 words"]
    found = coverage_of(result.space for result in results if result.space is not None)
    words = sum(word.isalpha() for result in left for word in result.fields[0].split())
    assert (found.examples, found.words) == (len(left), words)
