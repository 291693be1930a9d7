"""Attack a classifier."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from sememekit.attack import read_attack_plan
from sememekit.attack.folder import AttackFolder, code_names
from sememekit.attack.report import AttackReport
from sememekit.config import merge_tables, trusted_code
from sememekit.engines.base import engine_of
from sememekit.errors import ConfigError
from sememekit.progress import Progress, silent
from sememekit.reports.attack import report_page, write_sheets
from sememekit.runs.attacks.on_engine import AttackCall, gather, run_on_engine
from sememekit.runs.attacks.running import OpenAttack, refuse_no_result
from sememekit.runs.attacks.victims import is_function
from sememekit.runs.run import Which
from sememekit.signals import StopRequest, stop_signals


def attack(
    victim: str | None = None,
    data: Path | None = None,
    out: Path | None = None,
    *,
    table: Mapping[str, Any] | None = None,
    labels: Sequence[str] = (),
    logits: bool = False,
    language_model: Path | None = None,
    resume: bool = False,
    trust_code: bool = False,
    which: Which = "best",
    device: str = "auto",
    workers: int = 1,
    engine: str = "local",
    progress: Progress = silent,
    asked_to_stop: StopRequest | None = None,
) -> AttackReport:
    """Attack a classifier: success rate, queries and changes, with intervals.

    Args:
        victim: a run folder, ``hf:PATH``, ``module:name`` or a file of joblib or pickle; see ``open_victim``.
        data: labelled texts; see ``read_examples``.
        table: goal, search, candidates, constraints and attack, as a recipe has them.
        logits: the victim gives logits.
        language_model: a run for constraints that need one, and for the perplexity of the changed texts.
        resume: continue the attack in ``out``; arguments must agree with the stored ones.
        trust_code: import code that only folders name.
        workers, engine: number of processes, and where they run, as in ``--engine``.
        asked_to_stop: whether a signal came (default: signals are watched here).

    Raises:
        ConfigError, DataError, CheckpointError: something cannot be used, or the victim failed on every example.
    """
    if out is None:
        raise ConfigError("attack needs --out DIR, a folder for the results")
    engine_of(engine)  # a wrong name is told before the victim is opened
    folder = AttackFolder.open(out) if resume else None
    if folder is None:
        AttackFolder.check_free(out)  # and so is a folder that is taken
    else:
        named_here = code_names({"victim": {"name": victim}, "plan": table or {}})
        folder.refuse_code(named_here.values(), trust=trust_code)
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
    report, results = begun.report(time.perf_counter() - start, stopped)
    if trust_code and not report.resume_command.endswith(" --trust-code"):
        report = report.model_copy(update={"resume_command": f"{report.resume_command} --trust-code"})
    folder.write_report(report, "" if stopped else report_page(report, results))
    if not stopped:
        refuse_no_result(report, results)
        write_sheets(folder, results)
    return report
