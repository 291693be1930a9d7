"""Proxies of validity of a finished attack: the label of a second model, similarity of texts, perplexity."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sememekit.attack import Cutter, Document, ExampleResult
from sememekit.attack.constraints import Constraint
from sememekit.attack.constraints.similarity import Similarity
from sememekit.errors import ConfigError, DataError
from sememekit.measure.intervals import Interval, rate, ratio_interval
from sememekit.measure.proxies import Proxy
from sememekit.runs.attacks.language_model import AttackLanguageModel
from sememekit.runs.attacks.victims import NamedVictim

Words = list[list[str]]
"""The words of each field of a text."""


def checked_judge(judge: NamedVictim, of: NamedVictim) -> NamedVictim:
    """Return the second classifier. Raises ConfigError: it is the victim itself, or lacks a label of the victim."""
    name = judge.victim.name
    mine, theirs = (one.identity.get("weights") or one.identity.get("sha256") or one.victim.name for one in (judge, of))
    if mine == theirs:
        raise ConfigError(f"--judge {name}: it is the victim itself; name a classifier that was trained apart from it")
    if lacking := set(of.victim.labels) - set(judge.victim.labels):
        raise ConfigError(
            f"--judge {name}: its labels are {', '.join(judge.victim.labels)}, and the victim has {', '.join(sorted(lacking))}"
        )
    return judge


def proxies(
    results: Sequence[ExampleResult],
    judge: NamedVictim | None,
    constraints: Sequence[Constraint],
    nats: AttackLanguageModel | None,
    cut: Cutter | None,
) -> tuple[tuple[Proxy, ...], float | None, float | None]:
    """Return the proxies over all successes, and the perplexity of the changed fields before and after the attack."""
    won = [result for result in results if result.adversarial is not None]
    if not won:
        return (), None, None
    numbers = [result.index for result in won]
    texts = [_words(result, cut) for result in won]
    found = [] if judge is None else [_label(judge, won)]
    for part in constraints:
        if isinstance(part, Similarity):
            cosines = [part.cosine(*both) for both in texts]
            after = ratio_interval(cosines, np.ones(len(cosines)))
            scores = dict(zip(numbers, cosines, strict=True))
            source = Path(part.settings.path).name
            found.append(Proxy(name="similarity", source=source, question="meaning", scores=scores, before=None, after=after))
    if nats is None:
        return tuple(found), None, None
    changed = [sorted({change.field for change in result.changes}) for result in won]
    sides = []
    for side in (0, 1):
        read = iter(nats([both[side][field] for both, fields in zip(texts, changed, strict=True) for field in fields]))
        sides.append([[each for _ in fields for each in next(read)] for fields in changed])
    scores = {index: _mean(one) - _mean(two) for index, one, two in zip(numbers, *sides, strict=True)}
    logs = ratio_interval([-score for score in scores.values()], np.ones(len(scores)))
    after = Interval(**{name: None if value is None else math.exp(value) for name, value in logs.model_dump().items()})
    source = str(nats.identity["run"])
    found.append(Proxy(name="perplexity ratio", source=source, question="fluent", scores=scores, before=None, after=after))
    before, then = (math.exp(min(_mean([nat for one in side for nat in one]), 700)) for side in sides)
    return tuple(found), before, then


def _label(judge: NamedVictim, won: Sequence[ExampleResult]) -> Proxy:
    """Ask the second model about originals and changed texts. Raises DataError: it gives no answer."""
    victim, margins = judge.victim, []
    asked = [[result.fields, result.adversarial or ()] for result in won]
    for result, answers in zip(won, victim.ask(asked), strict=True):
        if wrong := [answer for answer in answers if isinstance(answer, str)]:
            raise DataError(f"--judge {victim.name}: example {result.index}: {wrong[0].replace('the victim', 'the judge')}")
        label = victim.labels.index(result.label)
        margins.append([float(row[label] - np.delete(row, label).max()) for row in np.array(answers, dtype=np.float64)])
    before, after = (rate(column > 0, np.ones(len(won))) for column in np.array(margins).T)
    scores = {result.index: margin[1] for result, margin in zip(won, margins, strict=True)}
    return Proxy(name="label", source=victim.name, question="label", scores=scores, before=before, after=after)


def _mean(nats: Sequence[float]) -> float:
    return sum(nats) / len(nats) if nats else 0.0


def _words(result: ExampleResult, cut: Cutter | None) -> tuple[Words, Words]:
    """The words of each field of a success, before and after its changes."""
    new = {(change.field, change.begin): change.new for change in result.changes}
    before: Words = [[] for _ in result.fields]
    after: Words = [[] for _ in result.fields]
    for word in Document.read(result.fields, cut).words:
        before[word.field].append(word.text)
        after[word.field].append(new.get((word.field, word.begin), word.text))
    return before, after
