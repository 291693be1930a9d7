"""Proxies of validity of a finished attack: the label of a second model, similarity of texts, perplexity."""

import math
from collections.abc import Iterable, Sequence
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


def check_judge(judge: NamedVictim, of: NamedVictim) -> None:
    """Raise ConfigError if the second classifier is the victim itself, or lacks a label of the victim."""
    use = f"--judge {judge.victim.name}"
    mine, theirs = (one.identity.get("weights") or one.identity.get("sha256") or one.victim.name for one in (judge, of))
    if mine == theirs:
        raise ConfigError(f"{use}: it is the victim itself; name a classifier that was trained apart from it")
    if lacking := ", ".join(sorted(set(of.victim.labels) - set(judge.victim.labels))):
        raise ConfigError(f"{use}: its labels are {', '.join(judge.victim.labels)}; name a classifier that also has {lacking}")


def proxies(
    results: Iterable[ExampleResult],
    judge: NamedVictim | None,
    constraints: Iterable[Constraint],
    nats: AttackLanguageModel | None,
    cut: Cutter | None,
) -> tuple[tuple[Proxy, ...], float | None, float | None]:
    """Return the proxies over all successes, and the perplexity of the changed fields before and after the attack."""
    won = {result.index: result for result in results if result.adversarial is not None}
    if not won:
        return (), None, None
    ones, texts = np.ones(len(won)), [_changed_fields(changes_of(result, cut)) for result in won.values()]
    found = [] if judge is None else [_label(judge, list(won.values()))]
    for part in (part for part in constraints if isinstance(part, Similarity)):
        cosines = [min(part.cosine(*pair) for pair in pairs) for pairs in texts]
        scores, source = dict(zip(won, cosines, strict=True)), Path(part.settings.path).name
        found.append(Proxy(name="similarity", source=source, scores=scores, after=ratio_interval(cosines, ones)))
    if nats is None:
        return tuple(found), None, None
    sides = []
    for side in (0, 1):
        read = iter(nats([pair[side] for pairs in texts for pair in pairs]))
        sides.append([[nat for _ in pairs for nat in next(read)] for pairs in texts])
    rises = [_mean(two) - _mean(one) for one, two in zip(*sides, strict=True)]
    logs, scores = ratio_interval(rises, ones), {index: -rise for index, rise in zip(won, rises, strict=True)}
    ratio = Interval(**{end: None if value is None else math.exp(value) for end, value in logs.model_dump().items()})
    found.append(Proxy(name="perplexity ratio", source=str(nats.identity["run"]), scores=scores, after=ratio))
    before, after = (math.exp(min(_mean([nat for one in side for nat in one]), 700)) for side in sides)
    return tuple(found), before, after


def _label(judge: NamedVictim, won: Sequence[ExampleResult]) -> Proxy:
    """Ask the second model about originals and changed texts. Raises DataError: it gives no answer."""
    victim, margins = judge.victim, []
    for result, answers in zip(won, victim.ask([[result.fields, result.adversarial or ()] for result in won]), strict=True):
        if wrong := [answer for answer in answers if isinstance(answer, str)]:
            raise DataError(f"--judge {victim.name}: example {result.index}: {wrong[0].replace(FAULT, 'the judge')}")
        label = victim.labels.index(result.label)
        margins.append([float(row[label] - np.delete(row, label).max()) for row in np.array(answers, dtype=np.float64)])
    before, after = (rate(column > 0, np.ones(len(won))) for column in np.array(margins).T)
    scores = {result.index: margin for result, (_, margin) in zip(won, margins, strict=True)}
    return Proxy(name="label", source=victim.name, scores=scores, before=before, after=after)


def _mean(nats: Sequence[float]) -> float:
    return sum(nats) / len(nats) if nats else 0.0


def changes_of(result: ExampleResult, cut: Cutter | None) -> Space:
    """The space of a success in which each changed word has its substitute alone."""
    document = Document.read(result.fields, cut)
    new = {(change.field, change.begin): (change.new,) for change in result.changes}
    space = Space.open(document, {})
    return space.narrowed(substitutes=tuple(new.get((word.field, word.begin), ()) for word in document.words))


def _changed_fields(space: Space) -> list[tuple[list[str], list[str]]]:
    """The words of each changed field, before and after all changes."""
    found: dict[int, tuple[list[str], list[str]]] = {space.document.words[number].field: ([], []) for number in space.positions}
    for word, new in zip(space.document.words, space.substitutes, strict=True):
        if word.field in found:
            found[word.field][0].append(word.text)
            found[word.field][1].append(new[0] if new else word.text)
    return list(found.values())
