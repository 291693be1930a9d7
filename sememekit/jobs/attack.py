"""Attack a classifier, here or with its examples divided among the processes of an engine.

Like the command, each process opens victim, substitutes and constraints for all examples, and attacks a share of the examples.
So each result depends on its example alone. Results are lines of ``OUT/.parts/NUMBER.jsonl``, kept if a process is lost."""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from sememekit.attack import check_parts, choose_examples, read_attack_plan, read_examples
from sememekit.attack.folder import AttackFolder, append_result, code_names, whole_results
from sememekit.attack.report import AttackReport
from sememekit.config import merge_tables, trusted_code, trusting_code
from sememekit.engines.base import engine_of, open_engine
from sememekit.errors import ConfigError, DataError
from sememekit.files import opening
from sememekit.progress import Progress, silent
from sememekit.reports.attack import report_page, write_sheets
from sememekit.runs.attacks.language_model import AttackLanguageModel
from sememekit.runs.attacks.proxies import check_judge
from sememekit.runs.attacks.running import AttackedData, AttackParts, OpenAttack, attack_parts, check_labels, refuse_no_result
from sememekit.runs.attacks.victims import check_kind, is_function, open_victim
from sememekit.runs.run import Which
from sememekit.signals import StopRequest, stop_signals

_SHARES: Final = ".parts"
_STOP: Final = "stop"
_EXAMPLES: Final = 32  # number of examples of a share, which bounds the waiting time for a slow process


class AttackCall(NamedTuple):
    """The arguments of an attack as plain values. ``table`` is the plan's table as text, so that calls can be compared."""

    victim: str
    data: str
    table: str
    labels: tuple[str, ...]
    logits: bool
    language_model: str
    which: Which
    device: str
    trust: bool
    trusted: frozenset[str] | None
    folder: str

    def open(self, progress: Progress = silent) -> AttackParts:
        """Open the victim, read the examples, and look substitutes up. Raises ConfigError, DataError, CheckpointError."""
        plan = read_attack_plan(json.loads(self.table), "the attack")
        with trusting_code(True if self.trusted is None else self.trusted), trusting_code(self.trust):
            check_kind(self.victim)  # a run that is no classifier needs no lexicon
            check_parts(plan, language_model=bool(self.language_model))
            with opening(Path(self.data), DataError):  # a wrong name is told before the victim is opened
                os.stat(self.data)
            where: dict[str, Any] = {"which": self.which, "device": self.device}
            where["examples"] = lambda: read_examples(Path(self.data))[0]
            named = open_victim(self.victim, plan.attack, labels=self.labels, logits=self.logits, **where)
            nats = AttackLanguageModel(self.language_model, self.device) if self.language_model else None
        examples, file = read_examples(Path(self.data), named.kind)
        chosen = choose_examples(examples, plan.attack.limit, plan.attack.sample, plan.attack.seed)
        check_labels(named, chosen, self.data)
        data = AttackedData(self.data, file.sha256, file.texts)
        return attack_parts(plan, named, nats, data, examples, chosen, progress)


class Share(NamedTuple):
    """The numbers of some examples, for one process of an engine; ``sha256`` is the hash of the data that the command read,
    ``seal`` the hash of the folder of the attack."""

    call: AttackCall
    sha256: str
    numbers: tuple[int, ...]
    path: Path
    seal: str

    def run(self) -> tuple[int, int]:
        """Attack the examples that the file of the share lacks; return the number of queried texts and of calls.

        Raises DataError: the data differ from the data of the command."""
        os.chdir(self.call.folder)
        with redirect_stdout(sys.stderr):  # what a victim prints is no result
            opened = _opened(self.call)
            if opened.data.sha256 != self.sha256:
                raise DataError(f"{self.call.data}: changed while the attack ran; start anew with another --out")
            victim, missing = opened.engine.victim, set(self.numbers) - set(whole_results(self.path, self.seal))
            before = victim.texts_asked, victim.calls
            left = [example for example in opened.chosen if example.index in missing]
            for result in opened.engine.run(left, self.path.with_name(_STOP).exists):
                append_result(self.path, result, self.seal)
        return victim.texts_asked - before[0], victim.calls - before[1]


_opened = lru_cache(maxsize=1)(AttackCall.open)  # the attack of this process


def run_on_engine(
    begun: OpenAttack, call: AttackCall, engine: str, workers: int, should_stop: Callable[[], bool], progress: Progress
) -> bool:
    """Attack the unfinished examples on an engine; return whether a signal came.

    Raises EngineError: a process was lost; ``--resume`` continues from there."""
    folder = begun.folder.path / _SHARES
    folder.mkdir()
    left = [example.index for example in begun.left()]
    total = len(begun.parts.chosen)
    done = total - len(left)
    seal, size = begun.folder.seal, max(1, min(_EXAMPLES, -(-len(left) // workers)))
    tasks = [
        Share(call, begun.parts.data.sha256, tuple(left[first : first + size]), folder.absolute() / f"{first}.jsonl", seal)
        for first in range(0, len(left), size)
    ]

    def look() -> None:
        if should_stop():
            (folder / _STOP).touch()
        progress("examples", done + sum(path.read_bytes().count(b"\n") for path in folder.glob("*.jsonl")), total)

    try:
        with open_engine(engine, workers, folder) as opened:
            for _, (texts, calls) in opened.map(Share.run, tasks, look):
                begun.parts.named.victim.texts_asked += texts
                begun.parts.named.victim.calls += calls
    finally:
        found = gather(begun)
    progress("examples", done + found, total)
    if done + found < total:
        return True
    begun.folder.finish()
    return False


def gather(begun: OpenAttack) -> int:
    """Move the results of all shares, also of a killed attack, into the folder of the attack; return their number."""
    folder, taken = begun.folder.path / _SHARES, set[int]()
    if not folder.exists():
        return 0
    wanted = {example.index for example in begun.left()}
    for path in sorted(folder.glob("*.jsonl")):
        for number, result in whole_results(path, begun.folder.seal).items():
            if number in wanted - taken:
                begun.folder.append(result)
                taken.add(number)
    shutil.rmtree(folder)
    return len(taken)


def attack(
    victim: str | None = None,
    data: Path | None = None,
    out: Path | None = None,
    *,
    table: Mapping[str, Any] | None = None,
    labels: Sequence[str] = (),
    logits: bool = False,
    language_model: Path | None = None,
    judge: str = "",
    resume: bool = False,
    trust_code: bool = False,
    which: Which = "best",
    device: str = "auto",
    workers: int = 1,
    engine: str = "local",
    keep: bool = True,
    progress: Progress = silent,
    asked_to_stop: StopRequest | None = None,
) -> AttackReport:
    """Attack a classifier: success rate, queries and changes, with intervals.

    ``victim`` is named as for ``open_victim``; so is ``judge``, a second classifier, whose labels of the changed texts are a
    proxy of validity. ``logits``: the victim gives logits. ``data`` has labelled texts for ``read_examples``, ``table`` goal,
    search, candidates, constraints and attack, as a recipe has them. ``language_model``: a run for constraints that need one,
    and for the perplexity of the changed texts. ``resume`` continues the attack in ``out``; arguments must agree with the
    stored ones. ``trust_code`` imports code that is named only in folders. ``workers`` processes run on ``engine``.
    ``keep`` false: ``out`` is removed later, so no message and no key of the report names it.
    ``asked_to_stop``: whether a signal came (default: signals are watched here).

    Raises ConfigError, DataError, CheckpointError: something cannot be used, or the victim failed on every example."""
    if out is None:
        raise ConfigError("attack needs --out DIR, a folder for the results")
    engine_of(engine)  # a wrong name is told before the victim is opened
    folder = AttackFolder.open(out) if resume else None
    if folder is None:
        AttackFolder.check_free(out)  # and so is a folder that is taken
    else:
        folder.refuse_code(code_names({"victim": {"name": victim}, "plan": table or {}}).values(), trust=trust_code)
    stored: Mapping[str, Any] = folder.identity if folder is not None else {}  # of a resumed attack: for what is not given
    before = stored.get("victim", {})
    name = victim or before.get("name")
    path = str(data) if data is not None else stored.get("data", {}).get("path")
    if not name or not path:
        raise ConfigError("attack needs a victim and --data FILE: sememekit attack RUN --data test.tsv --out DIR")
    plan = read_attack_plan(merge_tables(stored.get("plan", {}), table or {}), "the attack")
    call = AttackCall(
        victim=name,
        data=path,
        table=json.dumps(plan.table(), sort_keys=True),
        labels=tuple(labels or (before.get("labels", ()) if is_function(name) else ())),
        logits=logits or bool(before.get("logits", False)),
        language_model=str(language_model or stored.get("language_model", {}).get("run", "")),
        which=which,
        device=device,
        trust=trust_code,
        trusted=trusted_code(),
        folder=os.getcwd(),
    )
    parts = call.open(progress)
    opened = open_victim(judge, device=device) if judge else None
    if opened is not None:
        check_judge(opened, parts.named)
    if folder is None:
        folder = AttackFolder.create(out, parts.identity)
    else:
        folder.check(parts.identity)
        folder.drop_torn_line()
    begun = OpenAttack(folder, parts)
    if resume:
        gather(begun)
        begun.check_victim()
    start = time.perf_counter()
    with stop_signals() if asked_to_stop is None else nullcontext(asked_to_stop) as asked:
        if workers == 1 and engine == "local":
            stopped = begun.run(asked, progress)
        else:
            stopped = run_on_engine(begun, call, engine, workers, asked, progress)
        if stopped:
            asked.settle()
    report, results = begun.report(time.perf_counter() - start, stopped, opened)
    if not keep:
        report = report.model_copy(update={"folder": "", "resume_command": ""})
    elif trust_code and not report.resume_command.endswith(" --trust-code"):
        report = report.model_copy(update={"resume_command": f"{report.resume_command} --trust-code"})
    folder.write_report(report, "" if stopped else report_page(report, results))
    if not stopped:
        refuse_no_result(report, results, kept=keep, typed=keep)
        write_sheets(folder, results)
    return report
