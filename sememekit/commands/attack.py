"""``sememekit attack``: how easily a classifier is fooled, counted fairly; and what differs between two attacks."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from sememekit import __version__
from sememekit.attack import (
    Attack,
    AttackPlan,
    AttackResources,
    Cutter,
    Document,
    Example,
    ExampleFile,
    ExampleResult,
    build_candidates,
    build_constraints,
    build_goal,
    build_search,
    choose_examples,
    read_attack_plan,
    read_examples,
    words_of,
)
from sememekit.attack.constraints.opposites import Opposites
from sememekit.attack.folder import AttackFolder, code_names
from sememekit.attack.report import AttackReport, Comparison
from sememekit.config import merge_tables, trusting_code
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.files import PAGE, check_output, write_output
from sememekit.measure.attack_coverage import coverage_of
from sememekit.measure.attack_rates import attack_rates, paired_differences
from sememekit.progress import Progress
from sememekit.reports.attack import comparison_page, report_page
from sememekit.runs.attack_notes import check_cut, notes, warnings
from sememekit.runs.victims import NamedVictim, SentenceNats, is_function, open_victim
from sememekit.training.signals import stop_signals


def attack(
    victim: str | None = None,
    data: Path | None = None,
    out: Path | None = None,
    *,
    table: Mapping[str, Any] | None = None,
    labels: Sequence[str] = (),
    language_model: Path | None = None,
    resume: bool = False,
    trust_code: bool = False,
    which: Literal["best", "last"] = "best",
    device: str = "auto",
    progress: Progress = lambda stage, done, total: None,
) -> AttackReport:
    """Attack a classifier.

    Args:
        victim: a run folder or ``module:function``; see ``open_victim``.
        data: labelled texts; see ``read_examples``.
        out: folder of the results, new or empty; with ``resume`` one to go on with.
        table: goal, search, candidates, constraints and attack, as a recipe has them.
        labels: names of the victim's labels, where it does not tell.
        language_model: a run of ours that ranks substitutes, where the constraint asks, and judges what the changes cost.
        resume: go on with ``out``; what is not given is as it was, and what is given must be as it was.
        trust_code: import and call what folders name although the call does not name it: a run its own classes, and with
            ``resume`` what ``out`` names.
        which, device: of the runs.
        progress: called with (stage, done, total).

    Raises:
        ConfigError, DataError, CheckpointError: something cannot be used. Also when the victim failed on every example that it
            was asked about: that is no result.
    """
    if out is None:
        raise ConfigError("attack needs --out DIR, a folder for the results")
    folder = AttackFolder.open(out) if resume else None
    if folder is not None:
        folder.check_format()
        named_here = code_names({"victim": {"name": victim}, "plan": table or {}})
        folder.refuse_code(named_here.values(), trust=trust_code)
    stored = folder.identity if folder is not None else {}
    victim = victim or stored.get("victim", {}).get("name")
    given_data = str(data) if data is not None else stored.get("data", {}).get("path")
    model = str(language_model) if language_model is not None else stored.get("language_model", {}).get("run", "")
    if not victim or not given_data:
        raise ConfigError("attack needs a victim and --data FILE: sememekit attack RUN --data test.tsv --out DIR")
    plan = read_attack_plan(merge_tables(stored.get("plan", {}), table or {}), "the attack")
    with trusting_code(trust_code):
        named = open_victim(
            victim,
            labels=labels or (stored.get("victim", {}).get("labels", ()) if folder is not None and is_function(victim) else ()),
            batch_size=plan.attack.batch_size,
            which=which,
            device=device,
            segmenter=plan.attack.segmenter,
            lexicon=plan.attack.lexicon,
        )
        nats = SentenceNats(Path(model), device) if model else None
    examples = read_examples(Path(given_data))
    if named.num_fields is not None and named.num_fields != len(examples.field_names):
        raise DataError(
            f"{given_data} has {len(examples.field_names)} text(s) an example ({', '.join(examples.field_names)}), and the run "
            f"{victim} takes {named.num_fields}"
        )
    spelled = [replace(example, label=named.spelled.get(example.label, example.label)) for example in examples.examples]
    chosen = choose_examples(spelled, plan.attack.limit, plan.attack.sample, plan.attack.seed)
    uncut = check_cut(named, chosen, given_data)
    progress("substitutes", 0, None)
    ready, sources = _prepare(plan, named, examples, chosen, nats)
    progress("substitutes", len(ready.table), len(ready.table))
    identity = {
        "plan": plan.table(),
        "victim": named.identity,
        "data": {"path": given_data, "sha256": examples.sha256, "fields": list(examples.field_names)},
        "candidates": sources,
        "constraints": {name: digest for part in ready.constraints for name, digest in part.sources().items()},
        "segmentation": named.cut_by,
        "language_model": {"run": model, "snapshot": nats.snapshot} if nats is not None else {},
        "sememekit": __version__,
    }
    if folder is None:
        folder = AttackFolder.create(out, identity)
    else:
        folder.check(identity)
        folder.drop_torn_line()
    began = time.perf_counter()
    with stop_signals() as asked_to_stop:
        stopped = _run(ready, chosen, folder, asked_to_stop, progress)
    return _report(folder, ready, plan, named, nats, given_data, uncut, time.perf_counter() - began, stopped, trust_code)


def _prepare(
    plan: AttackPlan, named: NamedVictim, examples: ExampleFile, chosen: Sequence[Example], nats: SentenceNats | None
) -> tuple[Attack, dict[str, str]]:
    """All parts of the attack, and the hashes of what the substitutes came from."""
    victim, words = named.victim, words_of(chosen, named.cut)
    if victim.words is not None:
        frequent = tuple(word for word in victim.words if word[:1].isalnum())
    else:
        frequent = tuple(dict.fromkeys(word.lower() for word in words_of(examples.examples, named.cut) if word[:1].isalnum()))
    known = frozenset(victim.words) if plan.attack.known_words and victim.words is not None else None
    resources = AttackResources(known, frequent, examples.field_names, nats)
    candidates = build_candidates(plan, resources)
    substitutes = candidates.table(words)
    ready = Attack(
        victim,
        build_goal(plan, victim.labels),
        build_search(plan),
        build_constraints(plan, resources),
        substitutes,
        plan.attack,
        named.cut,
    )
    return ready, candidates.sources()


def _run(
    ready: Attack, chosen: Sequence[Example], folder: AttackFolder, should_stop: Callable[[], bool], progress: Progress
) -> bool:
    """Attack what is not finished yet; whether a signal came in between."""
    done = folder.results()
    left = [example for example in chosen if example.index not in done]
    finished, total = len(chosen) - len(left), len(chosen)
    progress("examples", finished, total)
    for result in ready.run(left, should_stop):
        folder.append(result)
        finished += 1
        progress("examples", finished, total)
    if finished < total:
        return True
    folder.finish()
    return False


def _report(
    folder: AttackFolder,
    ready: Attack,
    plan: AttackPlan,
    named: NamedVictim,
    nats: SentenceNats | None,
    data: str,
    uncut: list[str],
    seconds: float,
    stopped: bool,
    trust_code: bool,
) -> AttackReport:
    results = [result for _, result in sorted(folder.results().items())]
    before, after = _perplexities(results, nats, named.cut) if nats is not None else (None, None)
    coverage = coverage_of(result.space for result in results if result.space is not None)
    opposites = sum(part.num_pairs for part in ready.constraints if isinstance(part, Opposites))
    report = AttackReport(
        folder=str(folder.path),
        victim=named.victim.name,
        data=data,
        preset=plan.attack.preset,
        goal=plan.goal.name,
        search=plan.search.name,
        candidates=plan.candidates.name,
        counting=plan.attack.counting,
        query_budget=plan.attack.query_budget,
        segmentation=named.cut_by,
        notes=tuple(notes(plan, named, opposites)),
        warnings=(*uncut, *warnings(plan, coverage), *([_unfinished(len(results))] if stopped else [])),
        coverage=coverage,
        rates=attack_rates(results, query_budget=plan.attack.query_budget),
        perplexity_before=before,
        perplexity_after=after,
        reasons=dict(Counter(_reason(result) for result in results if result.reason).most_common()),
        queries=sum(result.queries for result in results),
        texts_asked=named.victim.texts_asked,
        calls=named.victim.calls,
        seconds=seconds,
        stopped=stopped,
        resume_command=_trusting(folder.resume_command) if trust_code else folder.resume_command,
    )
    folder.write("report.json", (report.model_dump_json(indent=1) + "\n").encode())
    if stopped:
        return report
    folder.write("report.html", report_page(report, results).encode())
    asked = [result for result in results if result.queries or result.outcome == "error"]
    if asked and all(result.outcome == "error" for result in asked):
        raise DataError(
            f"the attack on {report.victim} ended in an error on every example: {asked[0].reason}; see {folder.path}"
        )
    return report


def _trusting(command: str) -> str:
    return command if command.endswith(" --trust-code") else f"{command} --trust-code"


def _unfinished(done: int) -> str:
    return f"unfinished: the {done:,} examples that are done first are the quick ones, so these rates are no estimate"


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
    totals = [nats.totals(side) for side in sentences]
    before, after = (math.exp(min(total / count, 700)) if count else None for total, count in totals)
    return before, after


def compare(first: Path, second: Path, *, html: Path | None = None) -> Comparison:
    """Paired differences between two finished attacks on the same data, the first minus the second.

    Raises:
        CheckpointError: a folder is no attack, or an unfinished one: successes end first, so what is done already is no sample.
        ConfigError: ``html`` is there already and is no page of sememekit.
        DataError: they are not on the same data, or have no example in common.
    """
    if html is not None:
        check_output(html, PAGE)
    folders = [AttackFolder.open(path) for path in (first, second)]
    for folder in folders:
        if not folder.finished:
            raise CheckpointError(
                f"{folder.path} is unfinished, and the examples that are done already are the easy ones; "
                f"finish it: {folder.resume_command}"
            )
    hashes = [folder.identity["data"]["sha256"] for folder in folders]
    if hashes[0] != hashes[1]:
        names = " and ".join(str(folder.identity["data"]["path"]) for folder in folders)
        raise DataError(f"{first} and {second} attacked different data ({names}); pairs need the same examples")
    sides = [folder.results() for folder in folders]
    common = [
        index for index in sides[0] if index in sides[1] and "error" not in (sides[0][index].outcome, sides[1][index].outcome)
    ]
    if not common:
        raise DataError(f"{first} and {second} have no finished example in common")
    budgets = tuple(folder.query_budget for folder in folders)
    comparison = Comparison(
        first=str(first),
        second=str(second),
        common=len(common),
        only_one=len({*sides[0], *sides[1]}) - len(common),
        unlike=_unlike(folders[0].identity, folders[1].identity),
        rows=tuple(paired_differences(sides[0], sides[1], budgets=(budgets[0], budgets[1]))),
    )
    if html is not None:
        write_output(html, comparison_page(comparison).encode(), PAGE)
    return comparison


def _unlike(first: Mapping[str, Any], second: Mapping[str, Any], name: str = "") -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for key in dict.fromkeys((*first, *second)):
        one, two, path = first.get(key), second.get(key), f"{name}.{key}" if name else key
        if isinstance(one, Mapping) and isinstance(two, Mapping):
            found |= _unlike(one, two, path)
        elif one != two:
            found[path] = ("–" if one is None else str(one), "–" if two is None else str(two))
    return found
