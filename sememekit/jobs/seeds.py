"""Train one plan with several seeds in parallel, each in a run folder."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from pydantic import ConfigDict, Field

from sememekit.config import Record, check_table, merge_tables
from sememekit.engines.base import engine_of
from sememekit.errors import CheckpointError
from sememekit.files import read_sealed, replace_file, sealed, typed
from sememekit.jobs.train import TrainReport
from sememekit.jobs.trainings import train_all
from sememekit.progress import Progress, silent
from sememekit.runs.build import sources_of
from sememekit.runs.plan import read_plan
from sememekit.signals import stop_signals
from sememekit.training import Report, RunFolder
from sememekit.training.checkpoint import seed_runs

SEEDS: Final = "seeds.json"
JOBS: Final = 2  # default number of processes at a time; each computes with one thread
_TRAINED_ALIKE: Final = ("task", "encoder", "decoder", "optimizer", "schedule")
"""Slots of a plan that decide the model; other slots have paths and running settings."""


class SeedsReport(Record):
    """The results of training one plan with several seeds, stored as ``OUT/seeds.json``."""

    model_config = ConfigDict(allow_inf_nan=True)

    out: str
    """The folder of the runs, ``seed-N`` for seed N."""
    metric: str
    """The primary metric; ``mean`` and ``sd`` (n - 1; None for one seed) are over its best validation values."""
    mean: float | None
    sd: float | None
    seeds: tuple[int, ...]
    """The given seeds, then finished seeds of earlier calls with the same plan."""
    runs: tuple[TrainReport, ...]
    """A report for each seed."""
    stopped: bool
    """True if a signal stopped a run, with checkpoints to resume from."""
    table: dict[str, Any] = Field(default_factory=dict)
    """The plan without the seed, also for seeds added later."""


def train_seeds(
    table: Mapping[str, Any],
    out: Path,
    seeds: Sequence[int],
    *,
    jobs: int = JOBS,
    engine: str = "local",
    resume: bool = False,
    progress: Progress = silent,
    on_report: Callable[[str, Report], None] = lambda run, report: None,
    on_remark: Callable[[str], None] = lambda text: None,
    should_stop: Callable[[], bool] | None = None,
) -> SeedsReport:
    """Train one plan with several seeds into ``out/seed-N``; also writes ``out/seeds.json``.

    ``table``, ``on_remark`` and ``should_stop`` are as ``train`` takes them, ``progress`` and ``on_report`` as in
    ``train_all``; ``jobs`` processes run in parallel on ``engine``. ``resume`` continues runs that have begun, with which the
    table must agree, and begins the others with the same plan. The report keeps finished seeds of earlier calls with this plan.

    Raises ConfigError: a bad table. Raises CheckpointError: a run exists, or there is none to resume. Raises errors of
    ``train`` for the first seed that failed, with its folder; the other seeds were stopped with checkpoints."""
    engine_of(engine)  # a wrong name is told before there is a folder
    begun = [seed for seed in seeds if (out / f"seed-{seed}" / "plan.json").is_file()]
    if not resume and (there := sorted(path.parent for path in out.glob("seed-*/plan.json"))):
        raise CheckpointError(f"{there[0]} exists already; continue with --resume, choose another --out, or delete {out} first")
    kept = out / SEEDS
    if resume and not kept.is_file():
        raise CheckpointError(f"{kept} is missing, so there is nothing to resume; leave --resume out to begin")
    before = read_sealed(kept, _changed) if resume else {"table": {}}
    for run in seed_runs(out) if resume else ():
        RunFolder.open(run).metrics()  # what was changed is found before anything is trained, also of other seeds
    stored = before.get("table")
    if not isinstance(stored, dict):
        raise _changed(f"{kept} has no table of settings")
    check_table(stored, str(kept))
    if isinstance(stored.get("run"), dict):
        stored["run"].pop("track", None)  # who resumes sends nothing to others unless --track is given again
    whole = {**({"claim": stored["claim"]} if "claim" in stored else {}), **merge_tables(stored, table)}
    whole["run"] = {"threads": 1, **whole.get("run", {})}
    plan = read_plan(whole, "the plan").table()
    for seed in seeds:
        read_plan(_with_seed(whole, seed), "the plan")  # a seed that none can have is told before there is a folder
    if not resume:
        sources_of(read_plan(whole, "the plan"))  # what every seed lacks is told before there is a folder
    tables = {f"seed-{seed}": _with_seed(table if seed in begun else whole, seed) for seed in seeds}
    with stop_signals(patient=True) if should_stop is None else nullcontext(should_stop) as asked_to_stop:
        if not resume:
            out.mkdir(parents=True, exist_ok=True)
            replace_file(kept, sealed(_report(out, whole, (), ())))
        again = typed("sememekit", "train", "--seeds", ",".join(map(str, seeds)), "--out", out, "--resume") + of_engine(engine)
        trained = train_all(
            out, tables, again, progress, on_report, asked_to_stop, at_once=jobs, engine=engine, on_remark=on_remark
        )
    runs = dict(zip(seeds, (one.report for one in trained.values()), strict=True))
    runs |= _of_earlier_calls(out, seeds, before, plan, on_remark)
    report = _report(out, whole, tuple(runs), tuple(runs.values()))
    replace_file(kept, sealed(report))
    return report


def _of_earlier_calls(
    out: Path, seeds: Sequence[int], before: Mapping[str, Any], plan: Mapping[str, Any], on_remark: Callable[[str], None]
) -> dict[int, TrainReport]:
    """seed -> report of finished runs with other seeds and the same plan, from the earlier ``seeds.json``."""
    told = dict(zip(before.get("seeds", ()), before.get("runs", ()), strict=False))
    found, left_out = dict[int, TrainReport](), []
    for run in seed_runs(out):
        seed = int(run.name.removeprefix("seed-"))
        if seed in seeds:
            continue
        try:
            report = TrainReport.model_validate({**told[seed], "run": str(run)})
        except (KeyError, TypeError, ValueError):  # there is none, or another version wrote it
            report = None
        own = RunFolder.open(run).plan
        check_table(own, f"{run}/plan.json")
        if report is not None and not report.stopped and all(own.get(slot) == plan.get(slot) for slot in _TRAINED_ALIKE):
            found[seed] = report
        else:
            left_out.append(seed)
    if left_out:
        named = ",".join(map(str, sorted({*seeds, *found, *left_out})))
        on_remark(
            f"left out of {SEEDS}: {', '.join(f'seed-{seed}' for seed in left_out)}, which this call did not train and "
            f"that are unfinished, of other settings or not in the {SEEDS} of before; to have all: "
            + typed("sememekit", "train", "--out", out, "--seeds", named, "--resume")
        )
    return found


def check_one_run(out: Path) -> None:
    """Raise CheckpointError if ``out`` is a folder of several seeds and not one run."""
    if not (out / "plan.json").is_file() and (runs := seed_runs(out)):
        named = ",".join(run.name.removeprefix("seed-") for run in runs)
        raise CheckpointError(
            f"{out} holds runs of {len(runs)} seeds; go on with all of them: "
            f"{typed('sememekit', 'train', '--out', out, '--seeds', named, '--resume')}, or with one: "
            f"{typed('sememekit', 'train', '--out', runs[0], '--resume')}"
        )


def of_engine(engine: str) -> str:
    """Return the option for a command to type."""
    return "" if engine == "local" else f" --engine {engine}"


def _with_seed(table: Mapping[str, Any], seed: int) -> dict[str, Any]:
    return {**table, "run": {**table.get("run", {}), "seed": seed}}


def _report(out: Path, table: Mapping[str, Any], seeds: tuple[int, ...], runs: tuple[TrainReport, ...]) -> SeedsReport:
    values = [run.best_valid for run in runs if run.best_valid is not None]
    return SeedsReport(
        out=str(out),
        metric=next((run.metric for run in runs if run.metric), ""),
        mean=statistics.fmean(values) if values else None,
        sd=statistics.stdev(values) if len(values) > 1 else None,
        seeds=seeds,
        runs=runs,
        stopped=any(run.stopped for run in runs),
        table=dict(table),
    )


def _changed(why: str) -> CheckpointError:
    return CheckpointError(f"{why}; copy it again from where it came, or remove it and begin with another --out")
