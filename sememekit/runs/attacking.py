"""Running an attack out of its parts, and the reports of one and of two."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sememekit.attack import (
    Attack,
    AttackPlan,
    AttackResources,
    Cutter,
    Document,
    Example,
    ExampleResult,
    build_candidates,
    build_constraints,
    build_goal,
    build_search,
    long_run,
    words_of,
)
from sememekit.attack.examples import NO_LABEL
from sememekit.attack.folder import LATER, AttackFolder
from sememekit.attack.report import AttackComparison, AttackReport
from sememekit.errors import CheckpointError, DataError
from sememekit.figures import percent
from sememekit.measure.attack_coverage import Coverage, coverage_of
from sememekit.measure.attack_rates import NOT_TURNED, UNDER_ATTACK, attack_rates, paired_differences
from sememekit.measure.intervals import Interval
from sememekit.progress import Progress
from sememekit.runs.run_cutter import LatticeCutter
from sememekit.runs.sentence_nats import SentenceNats
from sememekit.runs.victims import NamedVictim

ASKED_AGAIN = 3
"""Finished examples whose original texts a resumed attack asks the victim again."""
SAME = 1e-4
"""How far a probability of the same victim may move between two calls: with other texts in the batch, on another machine."""
UNCUT_SHARE = 0.2
"""Share of examples with a stretch too long for one word from which an attack stops: it would take sentences for words."""


def frequent_words(by_count: Iterable[str]) -> tuple[str, ...]:
    """Words as the constraint ``frequent_words`` looks for them, in small letters and without marks, in the given order."""
    return tuple(dict.fromkeys(word.lower() for word in by_count if word[:1].isalnum()))


def prepare_attack(
    plan: AttackPlan,
    named: NamedVictim,
    examples: Sequence[Example],
    field_names: tuple[str, ...],
    chosen: Sequence[Example],
    nats: SentenceNats | None,
) -> tuple[Attack, dict[str, str]]:
    """The engine with all its parts, and the hashes of what the substitutes came from."""
    if isinstance(named.cut, LatticeCutter):
        named.cut.ahead(field for example in examples for field in example.fields)
    victim, words = named.victim, words_of(chosen, named.cut)
    frequent = frequent_words(words_of(examples, named.cut) if victim.words is None else victim.words)
    known = frozenset(victim.words) if plan.attack.known_words and victim.words is not None else None
    resources = AttackResources(known, frequent, field_names, nats)
    candidates = build_candidates(plan, resources)
    substitutes = candidates.table(words)
    ready = Attack(
        victim,
        build_goal(plan, victim.labels),
        build_search(plan),
        build_constraints(plan, replace(resources, words=frozenset(words).union(*substitutes.values()))),
        substitutes,
        plan.attack,
        named.cut,
    )
    return ready, candidates.sources()


@dataclass(frozen=True)
class OpenAttack:
    """An attack and the folder of its results.

    Attributes:
        folder: the results so far.
        engine: victim, goal, search, constraints and substitutes.
        nats: the language model that ranks substitutes, where there is one.
        data: the file of the examples, as it was typed.
        uncut: warnings about texts that were not cut.
    """

    folder: AttackFolder
    engine: Attack
    plan: AttackPlan
    named: NamedVictim
    nats: SentenceNats | None
    data: str
    chosen: Sequence[Example]
    uncut: Sequence[str]

    def left(self) -> list[Example]:
        """What is to be attacked: examples without a result, and those on which the victim failed."""
        done = self.folder.results()
        return [example for example in self.chosen if example.index not in done or done[example.index].broken]

    def check_victim(self) -> None:
        """Raise CheckpointError where a function gives finished examples other probabilities than it gave before: its name says
        nothing of its code. Victims of other kinds have the hash of their weights in ``attack.json``."""
        if self.named.identity["kind"] != "function" or not self.left():
            return
        done = [result for _, result in sorted(self.folder.results().items()) if result.probabilities and not result.broken]
        numbers = {round(place * (len(done) - 1) / (ASKED_AGAIN - 1)) for place in range(ASKED_AGAIN)} if done else set()
        picked = [done[number] for number in sorted(numbers)]
        for result, [answer] in zip(picked, self.named.victim.ask([[one.fields] for one in picked]), strict=True):
            stored = result.probabilities or ()
            if isinstance(answer, str) or (
                len(stored) == len(answer) and all(abs(a - b) <= SAME for a, b in zip(stored, answer.tolist(), strict=True))
            ):
                continue
            before, now = (", ".join(f"{value:.4f}" for value in row) for row in (stored, answer))
            raise CheckpointError(
                f"--resume: {self.folder.path} was begun with another victim: {self.named.victim.name} gave example "
                f"{result.index} ({result.fields[-1][:40]!r}) {before}, and now gives it {now}; restore the victim as it was, "
                "or start anew with another --out"
            )

    def run(self, should_stop: Callable[[], bool], progress: Progress) -> bool:
        """Attack what is not finished yet; whether a signal came in between."""
        left = self.left()
        finished, total = len(self.chosen) - len(left), len(self.chosen)
        progress("examples", finished, total)
        for result in self.engine.run(left, should_stop):
            self.folder.append(result)
            finished += 1
            progress("examples", finished, total)
        if finished < total:
            return True
        self.folder.finish()
        return False

    def report(self, seconds: float, stopped: bool) -> tuple[AttackReport, list[ExampleResult]]:
        """What came of it, after ``seconds`` of this call, and of each example."""
        results = [result for _, result in sorted(self.folder.results().items())]
        before, after = _perplexities(results, self.nats, self.named.cut) if self.nats is not None else (None, None)
        coverage = coverage_of(result.space for result in results if result.space is not None)
        unfinished = f"unfinished: the {len(results):,} examples done first are the quick ones, so these rates are no estimate"
        rates = attack_rates(results, query_budget=self.plan.attack.query_budget)
        doubts = list(warnings(self.plan, coverage, results))
        if not stopped:  # what the victim has wrong is done first
            doubts += doubtful_accuracy(self.named, results, rates.accuracy)
        report = AttackReport(
            folder=str(self.folder.path),
            victim=self.named.victim.name,
            data=self.data,
            preset=self.plan.attack.preset,
            goal=self.plan.goal.name,
            search=self.plan.search.name,
            candidates=self.plan.candidates.name,
            counting=self.plan.attack.counting,
            query_budget=self.plan.attack.query_budget,
            segmentation=self.named.cut_by,
            notes=tuple(notes(self.plan, self.named, [part.told for part in self.engine.constraints if part.told])),
            warnings=(*self.uncut, *doubts, *([unfinished] if stopped else [])),
            coverage=coverage,
            rates=rates,
            perplexity_before=before,
            perplexity_after=after,
            reasons=dict(Counter(_reason(result) for result in results if result.reason).most_common()),
            queries=sum(result.queries for result in results),
            texts_asked=self.named.victim.texts_asked,
            calls=self.named.victim.calls,
            seconds=seconds,
            stopped=stopped,
            resume_command=self.folder.resume_command,
            signature=self.folder.signature,
            targeted=_has_targets(results),
        )
        return report, results


def refuse_only_errors(
    report: AttackReport, results: Sequence[ExampleResult], *, kept: bool = True, typed: bool = True
) -> None:
    """Raise DataError when the victim failed on every example that it was asked about: that is no result.

    Whether the folder of the attack is ``kept``, so that the message may name it, and whether the attack was ``typed``, so that
    it can be resumed.
    """
    asked = [result for result in results if result.queries or result.outcome == "error"]
    if asked and all(result.outcome == "error" for result in asked):
        see = f"; see {report.folder}" if kept else ""
        if typed and any(result.broken for result in asked):
            see += f"; repair the victim, then: {report.resume_command}"
        raise DataError(f"the attack on {report.victim} ended in an error on every example: {asked[0].reason}{see}")


def _reason(result: ExampleResult) -> str:
    """Outcome and reason; a number at the end that belongs to the one example alone is left out."""
    reason = result.reason if result.outcome == "error" else re.sub(r" \([\d,]+\)$", "", result.reason)
    return f"{result.outcome}: {reason}"


def _perplexities(
    results: Iterable[ExampleResult], nats: SentenceNats, cut: Cutter | None
) -> tuple[float | None, float | None]:
    """Perplexity of the changed fields of all successes before and after: exp of the nats of all of them by their tokens."""
    sentences: tuple[list[list[str]], list[list[str]]] = ([], [])
    for result in results:
        if result.adversarial is None:
            continue
        for field in sorted({change.field for change in result.changes}):
            for side, fields in zip(sentences, (result.fields, result.adversarial), strict=True):
                side.append([word.text for word in Document.read((fields[field],), cut).words])
    predictions = [[each for of_words in nats(side) for each in of_words] for side in sentences]
    before, after = (math.exp(min(sum(each) / len(each), 700)) if each else None for each in predictions)
    return before, after


def compare_attacks(first: Path, second: Path) -> AttackComparison:
    """Paired differences between two finished attacks on the same data, the first minus the second. Raises CheckpointError: a
    folder is no attack, or an unfinished one: successes end first, so what is done already is no sample. Raises DataError: they
    are neither on one file nor on the same texts and labels, or have no example in common.
    """
    folders = [AttackFolder.open(path) for path in (first, second)]
    for folder in folders:
        if not folder.finished:
            raise CheckpointError(
                f"{folder.path} is unfinished, and easy examples are done first, so that its rates are too high; finish it: "
                f"{folder.resume_command}"
            )
    sides = [folder.results() for folder in folders]
    hashes = [folder.identity["data"]["sha256"] for folder in folders]
    if hashes[0] != hashes[1] and not _same_examples(*sides):  # texts of a list have another hash than those of a file
        names = " and ".join(str(folder.identity["data"]["path"]) for folder in folders)
        raise DataError(f"{first} and {second} attacked different data ({names}); pairs need the same examples")
    common = [
        index for index in sides[0] if index in sides[1] and "error" not in (sides[0][index].outcome, sides[1][index].outcome)
    ]
    if not common:
        raise DataError(f"{first} and {second} have no finished example in common")
    budgets = tuple(folder.query_budget for folder in folders)
    survived_as = NOT_TURNED if any(_has_targets(side.values()) for side in sides) else UNDER_ATTACK
    return AttackComparison(
        first=str(first),
        second=str(second),
        common=len(common),
        only_one=len({*sides[0], *sides[1]}) - len(common),
        unlike=_unlike(folders[0].identity, folders[1].identity),
        rows=tuple(paired_differences(sides[0], sides[1], budgets=(budgets[0], budgets[1]), survived_as=survived_as)),
    )


def _same_examples(first: Mapping[int, ExampleResult], second: Mapping[int, ExampleResult]) -> bool:
    """Whether all that both have are the same texts with the same labels."""
    common = first.keys() & second.keys()
    return all((first[one].fields, first[one].label) == (second[one].fields, second[one].label) for one in common)


def _has_targets(results: Iterable[ExampleResult]) -> bool:
    return any(result.target is not None for result in results)


def _unlike(first: Mapping[str, Any], second: Mapping[str, Any], name: str = "") -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for key in dict.fromkeys((*first, *second)):
        one, two, path = first.get(key), second.get(key), f"{name}.{key}" if name else key
        if isinstance(one, Mapping) and isinstance(two, Mapping):
            found |= _unlike(one, two, path)
        elif one != two and not (None in (one, two) and LATER.fullmatch(path)):
            found[path] = ("–" if one is None else str(one), "–" if two is None else str(two))
    return found


def check_labels(named: NamedVictim, examples: Sequence[Example], data: str) -> None:
    """Raise DataError where no example has a label that the victim gives: every one would end in an error."""
    found = sorted({example.label for example in examples} - {NO_LABEL})
    if not found or set(found) & set(named.victim.labels):
        return
    if named.identity["kind"] == "run":
        remedy = "write the labels of the run into the file"
    else:
        remedy = "name those of the file in the order of the victim's columns: --labels A,B"
    raise DataError(
        f"{data}: its labels are {', '.join(found[:10])}, and none is one of the victim's: {', '.join(named.victim.labels)}; "
        f"{remedy}"
    )


def check_cut(named: NamedVictim, examples: Sequence[Example], data: str) -> list[str]:
    """Warnings about Chinese text that would be taken for one word; DataError from ``UNCUT_SHARE`` of the examples on."""
    if named.cut is not None:
        return []
    found = [run for run in (long_run(example.fields) for example in examples) if run]
    if not found:
        return []
    told = (
        f"{data}: {len(found):,} of {len(examples):,} examples hold Chinese without blanks, such as {found[0][:12]!r}, which "
        "would be taken for one word"
    )
    if named.blanks:
        remedy = "the victim was trained on text with blanks between words; cut the file alike, with: sememekit segment FILE"
    else:
        remedy = "add --segmenter jieba, or --segmenter fmm --lexicon FORMAT:PATH; the victim still gets text without blanks"
    if len(found) >= UNCUT_SHARE * len(examples):
        raise DataError(f"{told}; {remedy}")
    return [f"{told}; {remedy}"]


def notes(plan: AttackPlan, named: NamedVictim, told: Iterable[str]) -> list[str]:
    """What an attack left alone and did not check; ``told`` is what its constraints say of themselves."""
    names = [part.name for part in plan.constraints]
    found = [f"constraints {plan.attack.constraints}: {', '.join(names) if names else 'everything may change'}"]
    if plan.attack.constraints == "none" and not {"stop_words", "protected"} & set(names):
        found.append("stop words, marks, numbers and negations may change")
    if "part_of_speech" in names and (unchecked := _part_of_speech(plan)):
        found.append(unchecked)
    found += told
    if named.victim.words is None and plan.attack.known_words:
        found.append("known-words filter off: the victim names no words (attribute words), so substitutes may be new to it")
    elif not plan.attack.known_words:
        found.append("known-words filter off: attack.known_words is false")
    return found


def warnings(plan: AttackPlan, coverage: Coverage, results: Sequence[ExampleResult]) -> list[str]:
    """What makes the figures say less than they seem to."""
    found = []
    errors = Counter(result.reason for result in results if result.outcome == "error")
    if errors:
        [(reason, _)] = errors.most_common(1)
        found.append(
            f"{errors.total():,} of {len(results):,} examples ended in an error (most frequent: {reason}); rates are over "
            "the rest and may be biased"
        )
    paraphrases = any(part.name == "paraphrases" for part in plan.constraints)
    if plan.candidates.name == "embedding" and not _antonym_list(plan) and not paraphrases:
        found.append(
            "neighbours of word vectors include opposites and words of other meaning (man and woman, dog and cat), and no "
            "antonym list was given: a success may be a text whose true label is another; add --opposites FILE or "
            "--paraphrases FILE"
        )
    if coverage.words and coverage.low:
        found.append(
            f"only {percent(coverage.share_changeable or 0)} of the words may change ({coverage.with_candidates:,} of "
            f"{coverage.words:,} have candidates, {coverage.changeable:,} under the constraints): the figures say little about "
            "the victim; give candidates in the language of the texts, or loosen the constraints"
        )
    return found


def doubtful_accuracy(named: NamedVictim, results: Sequence[ExampleResult], accuracy: Interval) -> list[str]:
    """Warnings about a victim that looks robust because it does not look at the texts, or whose labels are in another order."""
    found = []
    labels = named.victim.labels
    known = [result for result in results if result.correct is not None]
    predictions, true = {result.prediction for result in known}, {result.label for result in known}
    if len(predictions) == 1 and len(true) > 1:
        found.append(
            f"the victim calls all {len(known):,} texts {known[0].prediction}, and the data have {len(true)} labels: one that "
            "gives the same answer to every text cannot be fooled, which is not robust"
        )
    if accuracy.high is not None and accuracy.high < 1 / len(labels):
        turned = ",".join(reversed(labels)) if len(labels) == 2 else "A,B,... in the order of the victim's columns"
        own = named.identity["kind"] == "run"
        remedy = "do the data mean the same by them?" if own else f"labels in another order? --labels {turned}"
        guessing = percent(1 / len(labels))
        found.append(
            f"accuracy before the attack is {percent(accuracy.value or 0.0)}, at most "
            f"{percent(accuracy.high)} by its interval, below the {guessing} of guessing among "
            f"{len(labels)} labels: {remedy}"
        )
    return found


def _part_of_speech(plan: AttackPlan) -> str:
    """What to say where the constraint has no lexicon: candidates keep parts of speech by themselves, or nothing does."""
    settings = [part.settings for part in plan.constraints if part.name == "part_of_speech"]
    if any(getattr(found, "sources", ()) for found in settings):
        return ""
    if plan.candidates.name in ("sememe", "wordnet"):
        return f"part of speech kept by the candidates ({plan.candidates.name})"
    return "part of speech not checked: no lexicon was given; add --source FORMAT:PATH"


def _antonym_list(plan: AttackPlan) -> bool:
    settings = [part.settings for part in plan.constraints if part.name == "opposites"]
    return any(getattr(found, "files", ()) or getattr(found, "wordnet", "") for found in settings)
