"""Run attacks: each example is a coroutine that yields texts and receives answers; each round queries the victim in batches.

A round takes the examples with the fewest texts. One too large for a round waits, then is queried in parts.

Queries: every text that a search asks for is one query of its example, the example itself included. With the rule ``distinct``
a text that the same example asked before is answered from memory and not counted again; with ``every`` it is counted each time.
All texts of one step are queried and counted, even if the first succeeds. A step beyond the budget is cut, and the search ends.

A text that a constraint refuses is not queried and not counted; the search gets the score ``REFUSED``.

An invalid or missing answer of the victim ends its example with the outcome ``error``. A success must hold when its original
and its adversarial text are queried again, each alone; these queries are not counted."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sememekit.attack.constraints import Check, Constraint
from sememekit.attack.documents import Cutter, Document, Fields
from sememekit.attack.examples import NO_LABEL, Example, ExampleResult, change_of
from sememekit.attack.goals import Aim, Goal
from sememekit.attack.plan import RunningSettings
from sememekit.attack.searches import Search
from sememekit.attack.space import Rows, Space, Texts, best_index, size_of
from sememekit.attack.victim import LENGTH, SAME, Answer, Victim, num_characters
from sememekit.errors import DataError

_Asking = Generator[Sequence[Fields], list[Answer], ExampleResult]

NOT_AGAIN: Final = "fooled the victim once, and not when asked again alone"
"""The reason of a success that failed when queried again."""
_TIMES: Final = 9  # number of calls that are averaged for a victim with varying answers
_BATCHES: Final = 8  # most batches of a round: enough to sort texts by length, few enough that a stop loses little
REFUSED: Final = 0.0  # the lowest score, for texts that a constraint refuses: no search prefers such a text


@final
@dataclass(frozen=True)
class Attack:
    """A victim, a goal, a search, constraints and substitutes, ready to run on examples.

    >>> goal, search = Untargeted(Untargeted.Settings(), victim.labels), Greedy(Greedy.Settings())
    >>> attack = Attack(victim, goal, search, [], {"good": ("fine",)}, RunningSettings())
    >>> [result] = attack.run([Example(0, ("a good film",), "positive")])
    >>> result.outcome, result.queries
    ('failed', 2)"""

    victim: Victim
    goal: Goal
    search: Search
    constraints: Sequence[Constraint]
    table: Mapping[str, tuple[str, ...]]
    settings: RunningSettings
    cut: Cutter | None = None  # segmenter of texts without blanks; None for white space and marks
    # fields -> characters of each that the victim reads; None if it reads all. Later words are not attacked
    reads: Callable[[Fields], tuple[int, ...]] | None = None

    def run(self, examples: Iterable[Example], should_stop: Callable[[], bool] = lambda: False) -> Iterator[ExampleResult]:
        """Attack the examples, ``together`` at a time, and yield each result as soon as it is known.

        The outcome of an example does not depend on other examples. After ``should_stop`` no result is yielded; unfinished
        examples start again when the attack is resumed."""
        waiting = iter(examples)
        active: list[_Active] = []
        while True:
            while len(active) < self.settings.together and (example := next(waiting, None)) is not None:
                active.append(_Active(self.attack_one(example), num_characters(example.fields)))
                if (result := active[-1].advance(None)) is not None:
                    yield result
                    active.pop()
            if not active or should_stop():
                return
            asked = self._round(active)
            answers = self.victim.ask(
                [one.wanted[len(one.answers) : len(one.answers) + num] for one, num in asked], should_stop
            )
            for (one, _), found in zip(asked, answers, strict=False):  # a stop leaves all without
                one.answers += found
                if len(one.answers) < len(one.wanted):
                    continue
                if should_stop():  # a constraint with a language model takes its time
                    return
                if (result := one.advance(one.answers)) is not None:
                    active.remove(one)
                    yield self.confirmed(result)

    def _round(self, active: Sequence[_Active]) -> list[tuple[_Active, int]]:
        """Return the next examples, fewest texts first, and how many texts of each: one too large waits and comes in parts."""
        room = _BATCHES * self.victim.batch_size * LENGTH
        found: list[tuple[_Active, int]] = []
        for one in sorted(active, key=lambda one: one.left * one.length):
            num = min(one.left, room // one.length)
            if num < one.left and found:
                break
            found.append((one, max(num, 1)))
            room -= num * one.length
        return found

    def confirmed(self, result: ExampleResult) -> ExampleResult:
        """Return a success unchanged if its texts, queried one by one, fool the victim again; otherwise return a failure. If
        answers vary, the means of several calls decide."""
        if result.adversarial is None or result.probabilities is None or result.adversarial_probabilities is None:
            return result
        label = self.victim.labels.index(result.label)
        aim = Aim(label, None if result.target is None else self.victim.labels.index(result.target))
        texts, again = (result.fields, result.adversarial), []
        for times in (1, _TIMES - 1):  # a victim whose answers do not vary returns after the first
            again += [[self.victim.alone(text) for text in texts] for _ in range(times)]
            if wrong := [answer for pair in again for answer in pair if isinstance(answer, str)]:
                return result.model_copy(update={**_NO_SUCCESS, "outcome": "error", "reason": wrong[0]})
            means_2C = np.mean(np.array(again, dtype=np.float64), axis=0)
            holds = means_2C[0].argmax() == label and bool(aim.reached(means_2C[1:])[0])
            moved = abs(means_2C - np.array([result.probabilities, result.adversarial_probabilities])).max() > SAME
            if holds and not moved:
                return result
        return result if holds else result.model_copy(update={**_NO_SUCCESS, "outcome": "failed", "reason": NOT_AGAIN})

    def attack_one(self, example: Example, generator: np.random.Generator | None = None) -> _Asking:
        """Attack one example, as a coroutine that yields texts to query and returns the result.

        ``generator`` draws all its random numbers (default: from the seed and the number of the example)."""
        generator = np.random.default_rng([self.settings.seed, example.index]) if generator is None else generator
        labels = self.victim.labels
        known: dict[str, Any] = {"index": example.index, "fields": example.fields, "label": example.label}

        def result(outcome: str, reason: str = "", **more: Any) -> ExampleResult:
            values = {"correct": None, "queries": 0, "words_changed": 0, "num_words": 0, **known, **more}
            return ExampleResult(outcome=outcome, reason=reason, **values)

        if example.label == NO_LABEL:
            return result("skipped", "no gold label")
        if example.label not in labels:
            return result("error", f"unknown label {example.label!r}; the victim's labels: {', '.join(labels)}")
        label = labels.index(example.label)
        answer = (yield [example.fields])[0]
        known["queries"] = 1
        if isinstance(answer, str):
            return result("error", answer)
        predicted = int(answer.argmax())
        known |= {"prediction": labels[predicted], "probabilities": tuple(answer.tolist()), "correct": predicted == label}
        if predicted != label:
            return result("skipped", "classified wrongly without an attack")
        try:
            document = Document.read(example.fields, self.cut)
        except DataError as error:
            return result("error", str(error))
        whole = Space.open(document, self.table)
        if self.reads is not None:
            ends = self.reads(example.fields)
            whole = whole.inside(lambda word: word.begin < ends[word.field])
        space, spaces = whole, [whole]
        for constraint in self.constraints:
            space = constraint.narrow(space)
            spaces.append(space)
            if space.refusal:
                break
        known["num_words"] = space.num_words
        if not space.num_words:
            return result("skipped", "no words that may change")
        if space.refusal:
            return result("skipped", space.refusal)
        # Of an example that a constraint refused, the later constraints have not seen the space.
        known["space"] = size_of(spaces)
        aim = self.goal.aim(label, generator)
        known["target"] = None if aim.target is None else labels[aim.target]
        start = float(aim.scores(answer[None])[0])
        known["best_score"] = start
        if not len(space.positions):
            none = not any(whole.substitutes[number] for number in space.scope)
            reason = "no word has a substitute" if none else "the constraints leave no word a substitute"
            return result("no_candidates", reason)
        if space.most < 1:
            return result("no_candidates", "the constraints allow no change")
        if refusal := self.search.refusal(space):
            return result("skipped", refusal)
        checks = [check for check in (constraint.check(space) for constraint in self.constraints) if check is not None]
        outcome = yield from _Run(self, space, aim, answer, generator, checks).drive(start)
        known |= {"queries": outcome.queries, "best_score": outcome.best_score}
        if outcome.row is None or outcome.probabilities is None:
            return result("error" if outcome.broken else "failed", outcome.reason)
        changes = space.changes(outcome.row)
        found = outcome.probabilities
        return result(
            "success",
            words_changed=len(changes),
            adversarial=document.replace(changes),
            adversarial_prediction=labels[int(found.argmax())],
            adversarial_probabilities=tuple(found.tolist()),
            changes=tuple(change_of(document, number, new) for number, new in sorted(changes.items())),
        )


_NO_SUCCESS: Final[dict[str, Any]] = {
    "words_changed": 0,
    "adversarial": None,
    "adversarial_prediction": None,
    "adversarial_probabilities": None,
    "changes": (),
}
"""Values of a result that only a success has."""


class _Active:
    """An unfinished example: its queries, their approximate length, and the answers so far."""

    def __init__(self, asking: _Asking, length: int) -> None:
        self._asking, self.length = asking, max(length, LENGTH)
        self.wanted: Sequence[Fields] = ()
        self.answers: list[Answer] = []

    @property
    def left(self) -> int:
        return len(self.wanted) - len(self.answers)

    def advance(self, answers: list[Answer] | None) -> ExampleResult | None:
        """Send the answers; return the result, or None if the example has more queries."""
        try:
            self.wanted = next(self._asking) if answers is None else self._asking.send(answers)
        except StopIteration as end:
            return end.value
        self.answers = []
        return None


class _Outcome(NamedTuple):
    queries: int
    best_score: float
    reason: str = ""
    broken: bool = False
    row: Rows | None = None
    probabilities: NDArray[np.float64] | None = None


class _Run:
    """The search on one example: memory of answers, counting, budget, success."""

    def __init__(
        self,
        attack: Attack,
        space: Space,
        aim: Aim,
        origin: NDArray[np.float64],
        generator: np.random.Generator,
        checks: Sequence[Check],
    ) -> None:
        self._attack, self._space, self._aim, self._generator, self._checks = attack, space, aim, generator, checks
        first = space.origin()[0]
        self._memory: dict[bytes, NDArray[np.float64]] = {self._key(first): origin}
        self._allowed: dict[bytes, bool] = {first.tobytes(): True}
        self._queries = 1

    def drive(self, start: float) -> Generator[Sequence[Fields], list[Answer], _Outcome]:
        best = start
        search = self._attack.search.run(self._space, start, self._generator)
        try:
            rows = next(search, None)
            while rows is not None:
                rows = np.asarray(rows, dtype=np.int16)
                keys, allowed = [self._key(row) for row in rows], self._check(rows)
                fresh, asked = self._count(keys, allowed)
                if fresh:
                    answers = yield Texts(self._space, rows, fresh)
                    for index, answer in zip(fresh, answers, strict=True):
                        if isinstance(answer, str):
                            return _Outcome(self._queries, best, answer, broken=True)
                        self._memory[keys[index]] = answer
                scores = np.full(asked, REFUSED)
                known = np.flatnonzero(allowed[:asked])
                if len(known):
                    probabilities = np.stack([self._memory[keys[index]] for index in known])
                    scores[known] = self._aim.scores(probabilities)
                    best = max(best, float(scores.max()))
                    won = known[self._aim.reached(probabilities)]
                    if len(won := won[rows[won].any(axis=1)]):  # a row of zeros is the original text
                        # The success with the fewest changes, then the best score, then the first.
                        changed = (rows[won] > 0).sum(axis=1)
                        fewest = won[changed == changed.min()]
                        index = int(fewest[best_index(scores[fewest])])
                        return _Outcome(self._queries, best, row=rows[index], probabilities=self._memory[keys[index]])
                if asked < len(keys):
                    return _Outcome(
                        self._queries, best, f"the budget of {self._attack.settings.query_budget:,} queries is spent"
                    )
                try:
                    rows = search.send(scores)
                except StopIteration:
                    rows = None
        finally:
            search.close()
        return _Outcome(self._queries, best, self._attack.search.verdict)

    def _key(self, row: Rows) -> bytes:
        """Return a key for the text of a row (P,): in Chinese two rows can give the same text, which counts once."""
        return blake2b("\0".join(self._space.text(row)).encode(errors="surrogatepass"), digest_size=16).digest()

    def _check(self, rows: Rows) -> NDArray[np.bool_]:
        """Return (N,) which rows the constraints allow; each constraint checks only the rows that earlier constraints allow."""
        if not self._checks:
            return np.ones(len(rows), dtype=bool)
        keys = [row.tobytes() for row in rows]
        new = {key: index for index, key in enumerate(keys) if key not in self._allowed}
        self._allowed |= dict.fromkeys(new, True)
        for check in self._checks:
            left = [key for key in new if self._allowed[key]]
            if left:
                self._allowed |= zip(left, check(rows[[new[key] for key in left]]).tolist(), strict=True)
        return np.array([self._allowed[key] for key in keys])

    def _count(self, keys: list[bytes], allowed: NDArray[np.bool_]) -> tuple[list[int], int]:
        """Return the rows to query and the number of rows within the budget, and count these rows as queries."""
        settings = self._attack.settings
        fresh: dict[bytes, int] = {}
        for index, key in enumerate(keys):
            if not allowed[index]:
                continue
            new = key not in self._memory and key not in fresh
            if new or settings.counting == "every":
                if settings.query_budget and self._queries >= settings.query_budget:
                    return list(fresh.values()), index
                self._queries += 1
            if new:
                fresh[key] = index
        return list(fresh.values()), len(keys)
