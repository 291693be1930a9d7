"""Remarks on an attack: notes on what was not checked, and warnings against misreading its figures."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from sememekit.attack import AttackPlan, ExampleResult
from sememekit.attack.engine import NOT_AGAIN
from sememekit.figures import percent
from sememekit.measure.attack_rates import Coverage
from sememekit.measure.intervals import Interval
from sememekit.runs.attacks.victims import NamedVictim
from sememekit.sememes import open_lexicons


def notes(plan: AttackPlan, named: NamedVictim, told: Iterable[str]) -> Iterator[str]:
    """Yield what an attack skipped or did not check; ``told`` has the notes of its constraints."""
    names = [part.name for part in plan.constraints]
    yield f"constraints {plan.attack.constraints}: {', '.join(names) if names else 'everything may change'}"
    if plan.attack.constraints == "none" and not {"stop_words", "protected"} & set(names):
        yield "stop words, marks, numbers and negations may change"
    if "part_of_speech" in names and (unchecked := _part_of_speech(plan)):
        yield unchecked
    yield from told
    if named.assumed:
        yield named.assumed
    if named.victim.words is None and plan.attack.known_words:
        yield "known-words filter off: the victim names no words (attribute words), so substitutes may be new to it"
    elif not plan.attack.known_words:
        yield "known-words filter off: attack.known_words is false"


def warnings(plan: AttackPlan, coverage: Coverage, results: Sequence[ExampleResult]) -> Iterator[str]:
    """Yield the reasons to distrust the figures."""
    errors = Counter(result.reason for result in results if result.outcome == "error")
    if errors:
        [(reason, _)] = errors.most_common(1)
        yield (
            f"{errors.total():,} of {len(results):,} examples ended in an error (most frequent: {reason}); rates are over "
            "the rest and may be biased"
        )
    if noise := sum(result.reason == NOT_AGAIN for result in results):
        fooled = noise + sum(result.outcome == "success" for result in results)
        yield (
            f"{noise:,} of {fooled:,} texts that fooled the victim did not when each was asked again alone, and count as "
            "failed: its answers change from call to call; put a model of torch into evaluation mode (model.eval()) and fix "
            "its random numbers, then attack anew"
        )
    opposites = [part.settings for part in plan.constraints if part.name == "opposites"]
    antonyms = any(getattr(found, "files", ()) or getattr(found, "wordnet", "") for found in opposites)
    paraphrases = any(part.name == "paraphrases" for part in plan.constraints)
    if plan.candidates.name == "embedding" and not antonyms and not paraphrases:
        yield (
            "neighbours of word vectors include opposites and words of other meaning (man and woman, dog and cat), and no "
            "antonym list was given: a success may be a text whose true label is another; add --opposites FILE or "
            "--paraphrases FILE"
        )
    if coverage.words and coverage.low:
        yield (
            f"only {percent(coverage.share_changeable or 0)} of the words may change ({coverage.with_candidates:,} of "
            f"{coverage.words:,} have candidates, {coverage.changeable:,} under the constraints): the figures say little about "
            "the victim; give candidates in the language of the texts, or loosen the constraints"
        )


def doubtful_accuracy(named: NamedVictim, results: Sequence[ExampleResult], accuracy: Interval) -> Iterator[str]:
    """Warn about a victim that only seems robust: it ignores the texts, or its labels are in another order."""
    labels = named.victim.labels
    known = [result for result in results if result.correct is not None]
    predictions, true = {result.prediction for result in known}, {result.label for result in known}
    if len(predictions) == 1 and len(true) > 1:
        yield (
            f"the victim calls all {len(known):,} texts {known[0].prediction}, and the data have {len(true)} labels: one that "
            "gives the same answer to every text cannot be fooled, which is not robust"
        )
    if accuracy.high is not None and accuracy.high < 1 / len(labels):
        turned = ",".join(reversed(labels)) if len(labels) == 2 else "A,B,... in the order of the victim's columns"
        remedy = f"labels in another order? --labels {turned}"
        if named.own_labels:  # which --labels must not reorder
            remedy = f"do the data mean the same by {', '.join(labels)}, and does the victim name its columns in their order?"
        yield (
            f"accuracy before the attack is {percent(accuracy.value or 0.0)}, at most {percent(accuracy.high)} by its "
            f"interval, below the {percent(1 / len(labels))} of guessing among {len(labels)} labels: {remedy}"
        )


def _part_of_speech(plan: AttackPlan) -> str:
    """Return the note on whether candidates keep their part of speech, for a constraint without a lexicon."""
    settings = [part.settings for part in plan.constraints if part.name == "part_of_speech"]
    if any(getattr(found, "sources", ()) for found in settings):
        return ""
    if plan.candidates.name == "wordnet":
        return "part of speech kept by the candidates (wordnet)"
    if plan.candidates.name == "sememe":
        lexicons = open_lexicons(getattr(plan.candidates.settings, "sources", ()))
        senses = [sense for lexicon in lexicons for word in lexicon.words for sense in lexicon.senses(word)]
        known = sum(bool(sense.part_of_speech) for sense in senses)
        if not known:
            return f"part of speech not checked: none of the {len(senses):,} senses of the candidates' lexicon has one"
        share = "" if known == len(senses) else f" for the {percent(known / len(senses))} of senses that have one"
        return f"part of speech kept by the candidates (sememe){share}"
    return "part of speech not checked: no lexicon was given; add --source FORMAT:PATH"
