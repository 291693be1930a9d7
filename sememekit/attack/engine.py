"""Runs attacks: each example is a coroutine that yields texts and is sent answers; each round asks the victim once.

Queries: every text that a search asks for is one query of its example, the example itself included. With the rule ``distinct``
a text that the same example asked before is answered from memory and not counted again; with ``every`` it is counted each time.
All texts of one step are asked, and counted, even if the first of them succeeds. A step that goes over the query budget is cut:
its first texts are asked as far as the budget allows, and then the search ends.

A text that a constraint refuses as a whole is not asked and no query; to the search it has the score ``REFUSED``.

An answer of the victim that is no probability, or none at all, ends its example with the outcome ``error``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sememekit.attack.constraints.base import Check, Constraint
from sememekit.attack.documents import Cutter, Document, Fields
from sememekit.attack.examples import NO_LABEL, Change, Example, ExampleResult
from sememekit.attack.goals import Aim, Goal
from sememekit.attack.plan import RunningSettings
from sememekit.attack.searches.base import Search
from sememekit.attack.space import Rows, Space, best_index
from sememekit.attack.victim import Answer, Victim
from sememekit.errors import DataError
from sememekit.measure.attack_coverage import SpaceSize

_Asking = Generator[list[Fields], list[Answer], ExampleResult]

REFUSED: Final = 0.0
"""The lowest score there is: no search takes such a text for better than another."""


@final
@dataclass(frozen=True)
class Attack:
    """A victim, a goal, a search, constraints and substitutes, ready to run on examples.

    >>> goal, search = Untargeted(Untargeted.Settings(), victim.labels), Greedy(Greedy.Settings())
    >>> attack = Attack(victim, goal, search, [], {"good": ("fine",)}, RunningSettings())
    >>> [result] = attack.run([Example(0, ("a good film",), "positive")])
    >>> result.outcome, result.queries
    ('failed', 2)

    Attributes:
        table: substitutes by word.
        cut: cuts texts without blanks between their words; None for white space and marks.
    """

    victim: Victim
    goal: Goal
    search: Search
    constraints: Sequence[Constraint]
    table: Mapping[str, tuple[str, ...]]
    settings: RunningSettings
    cut: Cutter | None = None

    def run(self, examples: Iterable[Example], should_stop: Callable[[], bool] = lambda: False) -> Iterator[ExampleResult]:
        """Attack the examples, ``together`` of them at a time, and yield each result as soon as it is known.

        What becomes of an example does not depend on the others. After ``should_stop`` is true no result is yielded any more;
        examples that were under way are begun anew when the attack is resumed.
        """
        waiting = iter(examples)
        active: list[tuple[_Asking, list[Fields]]] = []
        while True:
            while len(active) < self.settings.together and (example := next(waiting, None)) is not None:
                asking = self.attack_one(example)
                first = _advance(asking, None)
                if isinstance(first, ExampleResult):
                    yield first
                else:
                    active.append((asking, first))
            if not active or should_stop():
                return
            still: list[tuple[_Asking, list[Fields]]] = []
            answers = self.victim.answers([wanted for _, wanted in active], should_stop)
            for (asking, _), answer in zip(active, answers, strict=False):  # a stop leaves some without
                if should_stop():  # a constraint with a language model takes its time
                    return
                next_step = _advance(asking, answer)
                if isinstance(next_step, ExampleResult):
                    yield next_step
                else:
                    still.append((asking, next_step))
            active = still

    def attack_one(self, example: Example, generator: np.random.Generator | None = None) -> _Asking:
        """One example, as a coroutine that yields texts to ask and returns the result.

        ``generator`` is the source of everything random in it; by default from the seed and the number of the example.
        """
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
        whole = space = Space.open(document, self.table)
        for constraint in self.constraints:
            space = constraint.narrow(space)
            if space.refusal:
                break
        known["num_words"] = space.num_words
        if not space.num_words:
            return result("skipped", "no words that may change")
        if space.refusal:
            return result("skipped", space.refusal)
        known["space"] = _size(whole, space)  # of an example that a constraint refused, the later ones have not seen the space
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
            changes=tuple(_change(document, number, new) for number, new in sorted(changes.items())),
        )


@dataclass(frozen=True)
class _Outcome:
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
        first = space.origin()[0].tobytes()
        self._memory: dict[bytes, NDArray[np.float64]] = {first: origin}
        self._allowed: dict[bytes, bool] = {first: True}
        self._queries = 1

    def drive(self, start: float) -> Generator[list[Fields], list[Answer], _Outcome]:
        best = start
        search = self._attack.search.run(self._space, start, self._generator)
        try:
            rows = next(search, None)
            while rows is not None:
                rows = np.asarray(rows, dtype=np.int16)
                keys = [row.tobytes() for row in rows]
                self._check(rows, keys)
                fresh, asked = self._count(keys)
                if fresh:
                    texts = [self._space.text(rows[index]) for index in fresh]
                    answers = yield texts
                    for index, answer in zip(fresh, answers, strict=True):
                        if isinstance(answer, str):
                            return _Outcome(self._queries, best, answer, broken=True)
                        self._memory[keys[index]] = answer
                scores = np.full(asked, REFUSED)
                known = np.array([index for index, key in enumerate(keys[:asked]) if self._allowed[key]], dtype=np.int64)
                if len(known):
                    probabilities = np.stack([self._memory[keys[index]] for index in known])
                    scores[known] = self._aim.scores(probabilities)
                    best = max(best, float(scores.max()))
                    won = known[self._aim.reached(probabilities) & (rows[known] > 0).any(axis=1)]
                    if len(won):
                        index = self._pick(won, rows, scores)
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

    def _check(self, rows: Rows, keys: list[bytes]) -> None:
        """Ask the constraints about rows that they have not seen; the later ones only about what the earlier ones allow."""
        new = {key: index for index, key in enumerate(keys) if key not in self._allowed}
        self._allowed |= dict.fromkeys(new, True)
        for check in self._checks:
            left = [key for key in new if self._allowed[key]]
            if left:
                self._allowed |= zip(left, check(rows[[new[key] for key in left]]).tolist(), strict=True)

    def _count(self, keys: list[bytes]) -> tuple[list[int], int]:
        """Which rows must be asked, and how many rows from the front are answered at all under the budget; counts them."""
        settings = self._attack.settings
        fresh: list[int] = []
        seen: set[bytes] = set()
        for index, key in enumerate(keys):
            if not self._allowed[key]:
                continue
            new = key not in self._memory and key not in seen
            if new or settings.counting == "every":
                if settings.query_budget and self._queries >= settings.query_budget:
                    return fresh, index
                self._queries += 1
            if new:
                fresh.append(index)
                seen.add(key)
        return fresh, len(keys)

    @staticmethod
    def _pick(won: NDArray[np.int64], rows: Rows, scores: NDArray[np.float64]) -> int:
        """Of several successes the one with the fewest changes, then the best score, then the first."""
        changed = (rows[won] > 0).sum(axis=1)
        fewest = won[changed == changed.min()]
        return int(fewest[best_index(scores[fewest])])


def _advance(asking: _Asking, answers: list[Answer] | None) -> list[Fields] | ExampleResult:
    try:
        return next(asking) if answers is None else asking.send(answers)
    except StopIteration as end:
        return end.value


def _change(document: Document, number: int, new: str) -> Change:
    word = document.words[number]
    place = sum(other.field == word.field for other in document.words[:number])
    return Change(field=word.field, place=place, begin=word.begin, old=word.text, new=new)


def _size(whole: Space, space: Space) -> SpaceSize:
    """How much there is to try: before (``whole``) and after the constraints."""
    words = [number for number in space.scope if any(map(str.isalnum, whole.document.words[number].text))]
    kept = [number for number in words if space.substitutes[number]]
    return SpaceSize(
        words=len(words),
        with_candidates=sum(bool(whole.substitutes[number]) for number in words),
        changeable=len(kept),
        substitutes=sum(len(space.substitutes[number]) for number in kept),
        texts_log10=space.texts_log10(),
    )


def words_of(examples: Iterable[Example], cut: Cutter | None = None) -> list[str]:
    """Every word of the examples as written and in lower case, most frequent first: what candidates are looked up for.

    Args:
        cut: see ``Document.read``; an example that it cannot be used on ends in an error of its own later on.
    """
    counts: dict[str, int] = {}
    for example in examples:
        try:
            words = Document.read(example.fields, cut).words
        except DataError:
            continue
        for word in words:
            for form in {word.text, word.text.lower()}:
                counts[form] = counts.get(form, 0) + 1
    return sorted(counts, key=lambda word: (-counts[word], word))
