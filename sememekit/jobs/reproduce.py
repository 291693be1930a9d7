"""Test claims of papers at a small size: the needed runs, and the verdicts."""

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from sememekit.claims.chain import Timing, Trial, result_names, steps_of, timing_names, timings_of
from sememekit.claims.claims import MOST_SEEDS, ClaimFile, PaperClaim, differences, load_claims, paper_of, settings_of
from sememekit.claims.results import read_results, read_times
from sememekit.claims.verdict import ClaimResult, judge
from sememekit.config import apply_overrides, load_recipe, nearest
from sememekit.engines.base import open_engine
from sememekit.errors import ConfigError, DataError
from sememekit.files import read_object, refuse_odd_files
from sememekit.jobs.trials import run_timing, run_trials
from sememekit.reports.ledger import differing_text
from sememekit.runs.plan import read_plan


def reproduce(
    names: Sequence[str],
    out: Path,
    root: Path | None = None,
    *,
    seeds: int | None = None,
    tiny: bool = False,
    jobs: int = 1,
    engine: str = "local",
    say: Callable[[str], None],
    asked_to_stop: Callable[[], bool],
) -> list[ClaimResult]:
    """Run claims from text to verdict; arguments as ``reproduce run --help``.

    Raises ConfigError: an unknown claim, or one without a small protocol. Raises DataError: no corpora. See ``run_trials``."""
    trials = trials_of(names, out, root, seeds, tiny)
    for name, also in differing(names).items():
        if also:
            say(f"{name}: its models also differ in {differing_text(also)}")
    numbers = {trial.name: number for number, trial in enumerate(trials, start=1)}

    def show(trial: Trial, line: str) -> None:
        begun = f"trial {numbers[trial.name]} of {len(trials)}: {trial.name}"
        say((f"  {trial.name}: {line}" if jobs > 1 else f"  {line}") if line else begun)

    with ExitStack() as held:
        opened = held.enter_context(open_engine(engine, jobs, out)) if engine != "local" else None
        run_trials(trials, jobs, show, asked_to_stop, opened)
    for timing in timings_for(names, out, root, tiny):
        if not timing.result.is_file():
            say(f"time of an update, interleaved: {' and '.join(timing.arms)}")
            run_timing(timing, lambda line: say(f"  {line}"), asked_to_stop)
    return judged(out, names, tiny)


def judged(out: Path, names: Sequence[str], tiny: bool = False, results: Path | None = None) -> list[ClaimResult]:
    """Return the verdicts from the results below ``out`` or in ``results``. Raises ConfigError: an unknown claim. Raises
    DataError: an unreadable result, or results on different data."""
    folder, found, claims = results or out / "results", [], load_claims()
    for name in names:
        file, claim = _claim(name, claims)
        if claim.small is None:
            found.append(judge(name, claim, [], [], paper=paper_of(file, claim)))
            continue
        runs = read_results(folder / name for name in result_names(file, claim, MOST_SEEDS, tiny)).values()
        baseline, other, without = ([run for run in runs if run.arm == arm] for arm in (*claim.small, claim.without))
        timings = [] if tiny else [read_times(folder / name) for name in timing_names(file, claim)]
        higher, paper = file.arm[claim.small[0]].higher, paper_of(file, claim)
        judgement = judge(name, claim, baseline, other, timings, higher, paper, without)
        if baseline and other:
            sides = (settings_of(file, side[0].arm, side[0].plan) for side in (baseline, other))
            judgement = judgement.model_copy(update={"also": differences(name, claim, *sides)})
        found.append(judgement)
    return found


def differing(names: Sequence[str]) -> dict[str, dict[str, tuple[str, str]]]:
    """Return for each claim the settings beside its own in which its models differ, by the recipes of today. Raises
    ConfigError: the claim does not name one."""
    found, claims = {}, load_claims()
    for name in names:
        file, claim = _claim(name, claims)
        if claim.small:
            arms = [file.arm[arm] for arm in claim.small]
            plans = [read_plan(apply_overrides(load_recipe(arm.recipe), arm.set), arm.recipe).table() for arm in arms]
            sides = (settings_of(file, arm, plan) for arm, plan in zip(claim.small, plans, strict=True))
            found[name] = differences(name, claim, *sides)
    return found


def uncounted(folder: Path, tiny: bool) -> list[str]:
    """List what the table leaves out: unreadable files, results of other settings (an older recipe), tiny results."""
    there = {file.name for file in folder.glob("*.json")}
    if not there:
        raise DataError(f"no results in {folder}; 'sememekit reproduce run --out DIR' writes them into DIR/results")
    refuse_odd_files(folder, DataError)
    known, small = set[str](), set[str]()
    for file, claim in load_claims().values():
        if claim.small:
            small |= {*result_names(file, claim, MOST_SEEDS, tiny=True)}
            known |= {*result_names(file, claim, MOST_SEEDS), *timing_names(file, claim)}
    others, unreadable = there - known - small, set[str]()
    for name in others:
        try:
            read_object(folder / name, DataError)
        except DataError:
            unreadable.add(name)
    left_out = {
        "of other settings than the claims have now": others - unreadable,
        "no JSON object": unreadable,
        "tiny, as --tiny shows them": set() if tiny else there & small,
    }
    return [f"{len(names):,} not counted in {folder}, {why}: {_named(names)}" for why, names in left_out.items() if names]


def _named(files: Collection[str]) -> str:
    names = sorted(name.removesuffix(".json") for name in files)
    return f"{', '.join(names[:5])}{' and more' if len(names) > 5 else ''}"


def timings_for(names: Sequence[str], out: Path, root: Path | None, tiny: bool) -> list[Timing]:
    """Return the timings of all claims, done or not, without repetition; tiny models are not timed."""
    claims, corpora = load_claims(), _corpora(root).absolute()
    chosen = [_claim(name, claims) for name in names if not tiny]
    timings = (timing for file, claim in chosen for timing in timings_of(file, claim, out, corpora))
    return list({timing.name: timing for timing in timings}.values())


def corpora_in(script: str, root: Path | None) -> list[str]:
    """Return the files and folders of corpora that a script of ``reproduce show`` names, in their order."""
    return list(dict.fromkeys(re.findall(re.escape(str(_corpora(root).absolute())) + r"/[^\s':]+", script)))


def _corpora(root: Path | None) -> Path:
    return root or Path(os.environ.get("SEMEMEKIT_DATA", "") or "CORPORA")


def trials_of(
    names: Sequence[str], out: Path, root: Path | None, seeds: int | None, tiny: bool, must_exist: bool = True
) -> list[Trial]:
    """Return the trials of all claims without repetition, sorted by seed, so that every claim has a first result early."""
    folder, claims = _corpora(root), load_claims()
    chosen = [(name, *_claim(name, claims)) for name in names]
    for name, _, claim in chosen:
        if claim.small is None:
            raise ConfigError(
                f"claim {name} has no small protocol: {claim.why_not}; 'sememekit reproduce list' shows which claims have one"
            )
    if must_exist and not folder.is_dir():
        raise DataError(f"no folder {str(folder)!r} of corpora; name the folder with --root DIR, or in SEMEMEKIT_DATA")
    steps = (steps_of(file, claim, out, folder.absolute(), seeds or 0, tiny) for _, file, claim in chosen)
    found = {trial.name: trial for trials in steps for trial in trials}
    return sorted(found.values(), key=lambda trial: trial.seed)


def _claim(name: str, claims: Mapping[str, tuple[ClaimFile, PaperClaim]]) -> tuple[ClaimFile, PaperClaim]:
    if name not in claims:
        raise ConfigError(f"unknown claim {name!r}{nearest(name, claims)}; 'sememekit reproduce list' shows all {len(claims)}")
    return claims[name]
