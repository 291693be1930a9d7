"""Build an attack from its parts, run it, and report it."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from sememekit import __version__
from sememekit.attack import (
    Attack,
    AttackPlan,
    AttackResources,
    Document,
    Example,
    ExampleResult,
    build_constraints,
    long_run,
    read_attack_plan,
    words_of,
)
from sememekit.attack.examples import NO_LABEL
from sememekit.attack.folder import AttackFolder
from sememekit.attack.report import AttackReport
from sememekit.attack.resources import named_apart
from sememekit.attack.victim import SAME
from sememekit.errors import CheckpointError, DataError
from sememekit.measure.attack_rates import attack_rates, coverage_of
from sememekit.progress import Progress
from sememekit.runs.attacks.language_model import AttackLanguageModel
from sememekit.runs.attacks.proxies import changes_of, proxies
from sememekit.runs.attacks.remarks import doubtful_accuracy, notes, warnings
from sememekit.runs.attacks.victims import LatticeCutter, NamedVictim
from sememekit.runs.uncut import UNCUT_SHARE

ASKED_AGAIN = 3  # finished examples on which a resumed attack queries the victim again, to see that it is the same
LEAST_WORDS = 1000  # distinct words of a file that stand for the words of a victim that names none
IN_COMPANY = 8  # texts on which the victim is queried singly and as a batch before an attack


def frequent_words(by_count: Iterable[str]) -> tuple[str, ...]:
    """Return the words in lower case, without marks and in the given order, as the constraint ``frequent_words`` needs them."""
    return tuple(dict.fromkeys(word.lower() for word in by_count if word[:1].isalnum()))


class AttackedData(NamedTuple):
    """The examples of an attack, as ``attack.json`` stores them."""

    path: str
    sha256: str
    fields: tuple[str, ...]


class AttackParts(NamedTuple):
    """All parts of an attack."""

    plan: AttackPlan
    named: NamedVictim
    nats: AttackLanguageModel | None  # the language model that ranks substitutes, if any
    data: AttackedData
    chosen: Sequence[Example]
    uncut: Sequence[str]  # warnings about texts that were not cut
    unread: tuple[int, int]  # number of truncated texts, and number of words that are cut off in them
    engine: Attack
    resources: AttackResources  # what constraints may ask for
    sources: Mapping[str, str]  # hashes of the files of substitutes

    @property
    def identity(self) -> dict[str, Any]:
        """Return the content of ``attack.json``: everything that decides a result."""
        return {
            "plan": self.plan.table(),
            "victim": self.named.identity,
            "data": self.data._asdict(),
            "candidates": self.sources,
            "constraints": named_apart(dict.fromkeys(pair for part in self.engine.constraints for pair in part.hashes.items())),
            "segmentation": self.named.cut_by,
            **({"unread": list(self.unread)} if self.unread[0] else {}),
            **({} if self.resources.known_words is not None else {"common_words": len(self.resources.common_words)}),
            **({"segmentation_weights": cut.weights} if isinstance(cut := self.named.cut, LatticeCutter) else {}),
            "language_model": self.nats.identity if self.nats is not None else {},
            "sememekit": __version__,
        }


def attack_parts(
    plan: AttackPlan,
    named: NamedVictim,
    nats: AttackLanguageModel | None,
    data: AttackedData,
    examples: Sequence[Example],
    chosen: Sequence[Example],
    progress: Progress,
) -> AttackParts:
    """The parts of an attack on the ``chosen`` of some examples, with their substitutes. Raises DataError as ``check_cut``."""
    uncut = check_cut(named, chosen, data.path)
    progress("substitutes", 0, None)
    if isinstance(named.cut, LatticeCutter):
        named.cut.ahead(field for example in examples for field in example.fields)
    words, opened = words_of(chosen, named.cut), plan.attack.open_vocabulary
    if opened:
        lookup = plan.candidates.build(AttackResources(None, (), data.fields, nats))
        new = {*words}.union(*lookup.table(words).values())
        named = named.with_more_words(new, lookup.resources.lexicons(opened), plan.attack)
    victim = named.victim
    frequent = frequent_words(words_of(examples, named.cut) if victim.words is None else victim.words)
    known = frozenset(victim.words) if plan.attack.known_words and victim.words is not None else None
    common = frequent if victim.words is None and plan.attack.known_words and len(frequent) >= LEAST_WORDS else ()
    resources = AttackResources(known, frequent, data.fields, nats, common)
    candidates = plan.candidates.build(resources)
    substitutes = candidates.table(words)
    resources = replace(resources, words=frozenset(words).union(*substitutes.values()))
    engine = Attack(
        victim,
        plan.goal.build(victim.labels),
        plan.search.build(),
        build_constraints(plan, resources),
        substitutes,
        plan.attack,
        named.cut,
        named.reads,
    )
    progress("substitutes", len(substitutes), len(substitutes))
    return AttackParts(plan, named, nats, data, chosen, uncut, _unread(named, chosen), engine, resources, candidates.hashes)


class OpenAttack(NamedTuple):
    """An attack and the folder of its results."""

    folder: AttackFolder
    parts: AttackParts

    def left(self) -> list[Example]:
        """The remaining examples: without a result, or with a failure of the victim."""
        done = self.folder.results()
        return [example for example in self.parts.chosen if example.index not in done or done[example.index].broken]

    def check_victim(self) -> None:
        """Raise CheckpointError if a function answers finished examples differently; other victims have a hash of weights."""
        named = self.parts.named
        if named.identity["kind"] != "function" or not self.left():
            return
        done = [result for _, result in sorted(self.folder.results().items()) if result.probabilities and not result.broken]
        numbers = {round(place * (len(done) - 1) / (ASKED_AGAIN - 1)) for place in range(ASKED_AGAIN)} if done else set()
        picked = [done[number] for number in sorted(numbers)]
        for result, [answer] in zip(picked, named.victim.ask([[one.fields] for one in picked]), strict=True):
            stored = result.probabilities or ()
            if isinstance(answer, str) or (
                len(stored) == len(answer) and all(abs(a - b) <= SAME for a, b in zip(stored, answer.tolist(), strict=True))
            ):
                continue
            before, now = (", ".join(f"{value:.4f}" for value in row) for row in (stored, answer))
            raise CheckpointError(
                f"--resume: {self.folder.path} was begun with another victim: {named.victim.name} gave example "
                f"{result.index} ({result.fields[-1][:40]!r}) {before}, and now gives it {now}; restore the victim as it was, "
                "or start anew with another --out"
            )

    def check_company(self) -> None:
        """Query some texts singly and as a batch. DataError if an answer depends on its batch or changes between calls:
        successes would be chance. These queries are not counted."""
        victim = self.parts.named.victim
        texts = list(dict.fromkeys(example.fields for example in self.left()))[:IN_COMPANY]
        alone = [victim.alone(text) for text in texts]
        counted = victim.calls, victim.texts_asked
        together = [answer for [answer] in victim.ask([[text] for text in texts])]
        victim.calls, victim.texts_asked = counted
        for text, one, other in zip(texts, alone, together, strict=True):
            if isinstance(one, str) or isinstance(other, str):
                continue  # told with the example
            if (gap := float(abs(one - other).max())) > SAME:
                raise DataError(
                    f"the victim {victim.name} gives {text[-1][:40]!r} other probabilities when it is asked again among other "
                    f"texts (they differ by {gap:.4f}, allowed: {SAME}); put a torch model into evaluation mode "
                    "(model.eval()), fix its random numbers, and pad on the right or mask the padding"
                )

    def run(self, should_stop: Callable[[], bool], progress: Progress) -> bool:
        """Attack the unfinished examples; return whether a signal came. Raises DataError as ``check_company``."""
        self.check_company()
        left = self.left()
        finished, total = len(self.parts.chosen) - len(left), len(self.parts.chosen)
        progress("examples", finished, total)
        for result in self.parts.engine.run(left, should_stop):
            self.folder.append(result)
            finished += 1
            progress("examples", finished, total)
        if finished < total:
            return True
        self.folder.finish()
        return False

    def report(self, seconds: float, stopped: bool, judge: NamedVictim | None) -> tuple[AttackReport, list[ExampleResult]]:
        """Return the report after ``seconds`` of this call, and the result of each example. ``judge``: a second classifier."""
        parts = self.parts
        plan, named, nats = parts.plan, parts.named, parts.nats
        results = [result for _, result in sorted(self.folder.results().items())]
        measured, before, after = proxies(results, judge, parts.engine.constraints, nats, named.cut)
        coverage = coverage_of(result.space for result in results if result.space is not None)
        unfinished = f"unfinished: the {len(results):,} examples done first are the quick ones, so these rates are no estimate"
        rates = attack_rates(results, query_budget=plan.attack.query_budget)
        doubts = list(warnings(plan, coverage, results))
        if parts.unread[0]:
            doubts.append(
                f"the victim reads {parts.unread[0]:,} of {len(parts.chosen):,} texts only in part, since they are longer than "
                f"its model: the {parts.unread[1]:,} words behind the cut are not attacked and not counted"
            )
        if not stopped:  # what the victim has wrong is done first
            doubts += doubtful_accuracy(named, results, rates.accuracy)
        refused, names = self._refused(results), [part.name for part in plan.constraints]
        report = AttackReport(
            folder=str(self.folder.path),
            victim=named.victim.name,
            data=parts.data.path,
            preset=plan.attack.preset,
            goal=plan.goal.name,
            search=plan.search.name,
            candidates=plan.candidates.name,
            counting=plan.attack.counting,
            query_budget=plan.attack.query_budget,
            segmentation=named.cut_by,
            texts_cut=parts.unread[0],
            words_cut=parts.unread[1],
            notes=tuple(notes(plan, named, [part.told for part in parts.engine.constraints if part.told])),
            warnings=(*parts.uncut, *doubts, *([unfinished] if stopped else [])),
            coverage=coverage,
            rates=rates,
            perplexity_before=before,
            perplexity_after=after,
            reasons=dict(Counter(_reason(result) for result in results if result.reason).most_common()),
            queries=sum(result.queries for result in results),
            texts_asked=named.victim.texts_asked,
            calls=named.victim.calls,
            seconds=seconds,
            stopped=stopped,
            resume_command=self.folder.resume_command,
            signature=self.folder.signature,
            refused_by_any=refused.pop("any", None),
            refused_by_standard=refused,
            refused_substitutes=dict(zip(names, coverage.refused, strict=False)),
            proxies=measured,
            targeted=any(result.target is not None for result in results),
        )
        return report, results

    def _refused(self, results: Iterable[ExampleResult]) -> dict[str, int]:
        """Count the successes that the preset ``standard`` would refuse, for each of its constraints that is off."""
        engine, plan = self.parts.engine, self.parts.plan
        table = plan.table()
        table["attack"]["constraints"] = "standard"
        strict, names = read_attack_plan(table, "standard"), {part.name for part in plan.constraints}
        checks = {part.name: part.build(self.parts.resources) for part in strict.constraints if part.name not in names}
        found = dict.fromkeys([*checks, "any"], 0) if checks else {}
        for result in results:
            if not checks or result.adversarial is None:
                continue
            space = changes_of(result, engine.cut)
            refused = [name for name, check in checks.items() if check.narrow(space).positions != space.positions]
            for name in [*refused, *(["any"] if refused else [])]:
                found[name] += 1
        return found


def refuse_no_result(report: AttackReport, results: Sequence[ExampleResult], *, kept: bool = True, typed: bool = True) -> None:
    """Raise DataError if the victim failed on every example, or no correctly labelled example could be changed.

    ``kept``: the folder of the attack stays, so the message names it; ``typed``: it was a command that can be resumed."""
    asked = [result for result in results if result.queries or result.outcome == "error"]
    see = f"; see {report.folder}" if kept else ""
    if asked and all(result.outcome == "error" for result in asked):
        if typed and any(result.broken for result in asked):
            see += f"; repair the victim, then: {report.resume_command}"
        raise DataError(f"the attack on {report.victim} ended in an error on every example: {asked[0].reason}{see}")
    if not report.rates.attackable and (broken := Counter(result.reason for result in results if result.broken)):
        [(reason, _)] = broken.most_common(1)
        told = f"an error on {broken.total():,} of {len(results):,} examples and had nothing to try on the others"
        again = f"; repair the victim, then: {report.resume_command}" if typed else ""
        raise DataError(f"the attack on {report.victim} ended in {told} (most frequent: {reason}){see}{again}")
    if report.rates.untried and not report.rates.attackable:
        why = min(report.reasons, key=lambda reason: reason.startswith(("skipped: classified wrongly", "error")))
        usual = "give candidates in the language of the texts (--source, --vectors), or looser --constraints"
        remedy = "raise this limit" if why.startswith("skipped: more") else usual
        raise DataError(f"the attack on {report.victim} had nothing to try ({why}); {remedy}, with another --out{see}")


def _reason(result: ExampleResult) -> str:
    """Return outcome and reason, without an example's own number at the end."""
    reason = result.reason if result.outcome == "error" else re.sub(r" \([\d,]+\)$", "", result.reason)
    return f"{result.outcome}: {reason}"


def _unread(named: NamedVictim, examples: Sequence[Example]) -> tuple[int, int]:
    """Count the texts that the victim truncates, and the words that are cut off, which no attack can use."""
    behind = []
    for example in examples if named.reads is not None else ():
        ends = named.reads(example.fields)  # type: ignore[misc]
        with suppress(DataError):  # a text that cannot be cut is an error of its own later on
            behind.append(sum(word.begin >= ends[word.field] for word in Document.read(example.fields, named.cut).words))
    return sum(map(bool, behind)), sum(behind)


def check_labels(named: NamedVictim, examples: Sequence[Example], data: str) -> None:
    """Raise DataError if no example has a label of the victim, since every example would end in an error."""
    found = sorted({example.label for example in examples} - {NO_LABEL})
    if not found or set(found) & set(named.victim.labels):
        return
    if named.identity["kind"] == "run":
        remedy = "write the labels of the run into the file"
    else:
        remedy = "name the labels of the file in the order of the victim's columns: --labels A,B"
    raise DataError(
        f"{data}: its labels are {', '.join(found[:10])}, and the victim has none of them: {', '.join(named.victim.labels)}; "
        f"{remedy}"
    )


def check_cut(named: NamedVictim, examples: Sequence[Example], data: str) -> list[str]:
    """Warn about unsegmented Chinese that would be read as one word; DataError if ``UNCUT_SHARE`` of the examples have it."""
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
