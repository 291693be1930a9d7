"""Proxies of validity of a finished attack: the label of a second model, similarity of texts, perplexity."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sememekit.attack import Cutter, Document, ExampleResult
from sememekit.attack.constraints import Constraint
from sememekit.attack.constraints.similarity import Similarity
from sememekit.attack.space import Space
from sememekit.attack.victim import FAULT
from sememekit.errors import ConfigError, DataError
from sememekit.measure.intervals import Interval, rate, ratio_interval
from sememekit.measure.proxies import Proxy
from sememekit.runs.attacks.language_model import AttackLanguageModel
from sememekit.runs.attacks.victims import NamedVictim

Words = list[list[str]]
"""The words of each field of a text."""


def check_judge(judge: NamedVictim, of: NamedVictim) -> None:
    """Raise ConfigError if the second classifier is the victim itself, or lacks a label of the victim."""
    use = f"--judge {judge.victim.name}"
    mine, theirs = (one.identity.get("weights") or one.identity.get("sha256") or one.victim.name for one in (judge, of))
    if mine == theirs:
        raise ConfigError(f"{use}: it is the victim itself; name a classifier that was trained apart from it")
    if lacking := set(of.victim.labels) - set(judge.victim.labels):
        has = ", ".join(judge.victim.labels)
        raise ConfigError(f"{use}: its labels are {has}; name a classifier that also has {', '.join(sorted(lacking))}")


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
    ones, texts = np.ones(len(won)), [_words(changes_of(result, cut)) for result in won]
    found = [] if judge is None else [_label(judge, won)]
    for part in (part for part in constraints if isinstance(part, Similarity)):
        cosines = [part.cosine(*both) for both in texts]
        source, after = Path(part.settings.path).name, ratio_interval(cosines, ones)
        found.append(Proxy(name="similarity", source=source, scores=_by_number(won, cosines), after=after))
    if nats is None:
        return tuple(found), None, None
    changed = [sorted({change.field for change in result.changes}) for result in won]
    sides = []
    for side in (0, 1):
        read = iter(nats([both[side][field] for both, fields in zip(texts, changed, strict=True) for field in fields]))
        sides.append([[nat for _ in fields for nat in next(read)] for fields in changed])
    gains = [_mean(one) - _mean(two) for one, two in zip(*sides, strict=True)]
    logs = ratio_interval([-gain for gain in gains], ones)
    ratio = Interval(**{end: None if value is None else math.exp(value) for end, value in logs.model_dump().items()})
    found.append(Proxy(name="perplexity ratio", source=str(nats.identity["run"]), scores=_by_number(won, gains), after=ratio))
    before, then = (math.exp(min(_mean([nat for one in side for nat in one]), 700)) for side in sides)
    return tuple(found), before, then


def _label(judge: NamedVictim, won: Sequence[ExampleResult]) -> Proxy:
    """Ask the second model about originals and changed texts. Raises DataError: it gives no answer."""
    victim, margins = judge.victim, []
    for result, answers in zip(won, victim.ask([[result.fields, result.adversarial or ()] for result in won]), strict=True):
        if wrong := [answer for answer in answers if isinstance(answer, str)]:
            raise DataError(f"--judge {victim.name}: example {result.index}: {wrong[0].replace(FAULT, 'the judge')}")
        label = victim.labels.index(result.label)
        margins.append([float(row[label] - np.delete(row, label).max()) for row in np.array(answers, dtype=np.float64)])
    before, after = (rate(column > 0, np.ones(len(won))) for column in np.array(margins).T)
    scores = _by_number(won, [margin for _, margin in margins])
    return Proxy(name="label", source=victim.name, scores=scores, before=before, after=after)


def _by_number(won: Sequence[ExampleResult], scores: Sequence[float]) -> dict[int, float]:
    return dict(zip((result.index for result in won), scores, strict=True))


def _mean(nats: Sequence[float]) -> float:
    return sum(nats) / len(nats) if nats else 0.0


def changes_of(result: ExampleResult, cut: Cutter | None) -> Space:
    """The space of a success in which each changed word has its substitute alone."""
    document = Document.read(result.fields, cut)
    new = {(change.field, change.begin): (change.new,) for change in result.changes}
    space = Space.open(document, {})
    return space.narrowed(substitutes=tuple(new.get((word.field, word.begin), ()) for word in document.words))


def _words(space: Space) -> tuple[Words, Words]:
    """The words of each field, before and after all changes."""
    words, fields = space.document.words, range(len(space.document.fields))
    old = [word.text for word in words]
    new = [found[0] if found else word for word, found in zip(old, space.substitutes, strict=True)]
    first, second = (
        [[text[n] for n, word in enumerate(words) if word.field == field] for field in fields] for text in (old, new)
    )
    return first, second
