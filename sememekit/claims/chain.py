"""Command lines of a claim: its steps in order, with their results."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal

from sememekit.claims.claims import Arm, ClaimFile, DataSet, PaperClaim, trained_by
from sememekit.config import load_recipe

TINY_SHARE = 10  # with ``--tiny`` a text is cut to this fraction of its lines, or to ``TINY_LINES`` if its length is not stated
TINY_LINES = 400


@dataclass(frozen=True)
class Step:
    """One command of sememekit, or a copy of texts."""

    # ``copy``, ``prepare``, ``graph``, ``clusters``, ``train`` (also of a model that gives clusters), ``extend`` (what comes
    # before a measurement) or ``evaluate``
    kind: Literal["copy", "prepare", "graph", "clusters", "train", "extend", "evaluate"]
    # the subcommand with its arguments; for ``copy`` triples (source, target, lines): the first lines, the last for a negative
    # number, all for 0
    words: tuple[str, ...]
    made: Path  # the output of the step; steps with an existing output are not repeated

    def shell(self) -> str:
        """Return the step as a command to type."""
        if self.kind != "copy":
            return shlex.join(["sememekit", *self.words])
        parts = [self.words[index : index + 3] for index in range(0, len(self.words), 3)]
        lines = [f"mkdir -p {shlex.quote(str(self.made))}"]
        for source, target, count in parts:
            number = int(count)
            part = f"head -n {number}" if number > 0 else f"tail -n {-number}" if number else "cat"
            read = f"xz -dc {shlex.quote(source)} | {part}" if unpacked(source, target) else f"{part} {shlex.quote(source)}"
            lines.append(f"{read} > {shlex.quote(target)}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Trial:
    """One model with one seed, and its files below the folder of all results."""

    name: str  # from model, size and seed, with a digest of its parts
    arm: str
    seed: int
    tiny: bool
    steps: tuple[Step, ...]
    shown: tuple[str, ...]  # the steps as commands to type, with the folders ``reproduced`` and ``CORPORA``
    root: Path  # the folder of corpora and lexicons
    run: Path  # the folder of its training, shared by models that differ only in measurement
    result: Path  # result file for each arm


@dataclass(frozen=True)
class Timing:
    """The two models of a claim; their first epochs are trained interleaved to time updates."""

    name: str  # of both models, with a digest of their parts
    arms: tuple[str, str]  # names of (baseline, other), as they are trained
    steps: tuple[Step, ...]  # the steps that prepare the data
    trains: tuple[tuple[str, ...], tuple[str, ...]]  # commands for one epoch of each, without the run folder
    result: Path  # the result file


def unpacked(source: str, target: str) -> bool:
    """Return whether a copy reads lines from a file packed by ``xz``."""
    return source.endswith(".xz") and not target.endswith(".xz")


def steps_of(file: ClaimFile, claim: PaperClaim, out: Path, root: Path, seeds: int = 0, tiny: bool = False) -> list[Trial]:
    """Return the trials of a claim at small size: both models and ``without`` with every seed; claims share trials.

    The claim has a small protocol. ``out`` and ``root`` are the folders of results, and of corpora and lexicons (``{root}`` in
    the file); ``seeds`` 0 is the claim's number. ``tiny``: a tenth of the text, one epoch, tiny layers, to test commands."""
    trials = []
    for arm, seed, (name, run) in _names(file, claim, seeds, tiny):
        steps, typed = (_steps(file, arm, seed, (name, run), *at, tiny) for at in ((out, root), (SHOWN_OUT, SHOWN_ROOT)))
        shown, places = tuple(step.shell() for step in typed), (root, out / "runs" / run, out / "results" / f"{name}.json")
        trials.append(Trial(name, arm, seed, tiny, steps, shown, *places))
    return trials


def result_names(file: ClaimFile, claim: PaperClaim, seeds: int = 0, tiny: bool = False) -> list[str]:
    """The names of the files that ``steps_of`` writes results to, in the same order."""
    return [f"{name}.json" for _, _, (name, _) in _names(file, claim, seeds, tiny)]


def timings_of(file: ClaimFile, claim: PaperClaim, out: Path, root: Path) -> list[Timing]:
    """Return the update timings of the claim's two models, and of the baseline and the other model after a rate cut.

    A claim on one model has no timing; claims with equally trained models share one. See ``steps_of``."""
    timings = []
    for name, arms in _timed(file, claim).items():
        steps: dict[Step, None] = {}
        trains = []
        for name_of_arm in arms:
            arm = file.arm[name_of_arm]
            places = _places(file, arm, out, root, tiny=False)
            before, augment = _augment_steps(file, arm, 1, out, places, tiny=False)
            steps |= dict.fromkeys([*_data_steps(file.data[arm.data], arm, places, tiny=False), *before])
            trains.append((*_train_words(file, arm, 1, places, tiny=False), *augment, "--set", "schedule.epochs=1"))
        timings.append(Timing(name, arms, tuple(steps), (trains[0], trains[1]), out / "results" / f"{name}.json"))
    return timings


def timing_names(file: ClaimFile, claim: PaperClaim) -> list[str]:
    """Return the files of a claim's timings: none for one model; a second only if ``after_cut`` has another cost."""
    return [f"{name}.json" for name in _timed(file, claim)]


def _timed(file: ClaimFile, claim: PaperClaim) -> dict[str, tuple[str, str]]:
    """Return the names of a claim's timings and the two models of each, as they are trained."""
    assert claim.small is not None
    baseline, *others = (_trained_as(file, file.arm[arm]) for arm in (*claim.small, claim.after_cut) if arm)
    pairs = [(baseline, other) for other in others if other != baseline]
    digests = {arm: _digest_of(file, arm, tiny=False) for pair in pairs for arm in pair}
    return {f"time-{one}-{other}-small-{_digest(digests[one], digests[other])}": (one, other) for one, other in pairs}


def _names(file: ClaimFile, claim: PaperClaim, seeds: int, tiny: bool) -> list[tuple[str, int, tuple[str, str]]]:
    """Return (arm, seed, names) of each trial: its name, and the name of its run, which may be shared."""
    assert claim.small is not None
    count = seeds or (1 if tiny else claim.seeds)
    arms = [(arm, _trained_as(file, file.arm[arm])) for arm in (*claim.small, claim.without) if arm]
    digests = {name: _digest_of(file, name, tiny) for pair in arms for name in pair}  # once: recipes are read for it
    size = "tiny" if tiny else "small"
    return [
        (arm, seed, (f"{arm}-{size}-{seed}-{digests[arm]}", f"{run}-{size}-{seed}-{digests[run]}"))
        for seed in range(1, count + 1)
        for arm, run in arms
    ]


def _digest_of(file: ClaimFile, arm_name: str, tiny: bool) -> str:
    arm = file.arm[arm_name]
    unset = {key for key in ("vectors", "clusters", "augment") if not getattr(arm, key)}  # results of before keep their names
    data = file.data[arm.data]
    clusters = _clusters_from(data) if arm.clusters else ()
    made_of = (arm.model_dump_json(exclude=unset), _text_from(data), *clusters, _settings(arm.recipe))
    return _digest(*made_of, *(file.tiny if tiny else ()))


def _text_from(data: DataSet) -> str:
    return data.model_dump_json(exclude={"clusters"})


def _clusters_from(data: DataSet) -> tuple[str, ...]:
    """Describe the sources of its clusters: the commands, and the settings of their recipes."""
    words = [word for command in data.clusters for word in shlex.split(command)]
    return (*data.clusters, *(_settings(recipe) for option, recipe in pairwise(words) if option == "--recipe"))


def _trained_as(file: ClaimFile, arm: Arm, augmented: bool = True) -> str:
    """Return the first arm of the file with the same data, settings and resources (or the same but ``augment``)."""
    return next(name for name, other in file.arm.items() if trained_by(other) == trained_by(arm, augmented))


SHOWN_OUT, SHOWN_ROOT = Path("reproduced"), Path("CORPORA")  # folders in stored commands, which hide the machine's paths


def _steps(
    file: ClaimFile, arm_name: str, seed: int, names: Sequence[str], out: Path, root: Path, tiny: bool
) -> tuple[Step, ...]:
    arm = file.arm[arm_name]
    places = _places(file, arm, out, root, tiny)
    name, run = (out / "runs" / each for each in names)
    before, augment = _augment_steps(file, arm, seed, out, places, tiny)
    train = Step("train", (*_train_words(file, arm, seed, places, tiny), *augment, "--out", str(run)), run)
    steps = [*_data_steps(file.data[arm.data], arm, places, tiny), *before, train]
    *first, measuring = (arm.evaluate,) if isinstance(arm.evaluate, str) else arm.evaluate
    places |= {"seed": Path(str(seed)), "steps": name.with_suffix(".steps")}
    for command in first:
        words = _filled(command, {**places, "run": run})
        steps.append(Step("train" if words[0] == "train" else "extend", words, Path(words[-1])))
    return (*steps, _measure(measuring, places, run, name.with_suffix(".json")))


def _measure(command: str, places: dict[str, Path], run: Path, measured: Path) -> Step:
    filled = _filled(command, {**places, "run": run, "out": folder_of(measured)})
    if filled[0] == "attack":  # stored results are of this preset, which was called standard
        filled = (*filled, "--constraints", "loose")
    return Step("evaluate", (*filled, "--json"), measured)


def _augment_steps(
    file: ClaimFile, arm: Arm, seed: int, out: Path, places: dict[str, Path], tiny: bool
) -> tuple[list[Step], tuple[str, ...]]:
    """Return the steps that train and attack the first model, and the option that adds the adversarial examples to training."""
    if not arm.augment:
        return [], ()
    first = _trained_as(file, arm, augmented=False)
    run = out / "runs" / f"{first}-{'tiny' if tiny else 'small'}-{seed}-{_digest_of(file, first, tiny)}"
    train = Step("train", (*_train_words(file, arm, seed, places, tiny), "--out", str(run)), run)
    attack = _measure(arm.augment, places, run, run.with_name(f"{run.name}-augment-{_digest(arm.augment)}.json"))
    return [train, attack], ("--augment", str(folder_of(attack.made) / "examples.jsonl"))


def folder_of(measured: Path) -> Path:
    """Return the output folder of the command with result ``measured``."""
    return measured.with_suffix(".out")


def _places(file: ClaimFile, arm: Arm, out: Path, root: Path, tiny: bool) -> dict[str, Path]:
    """Return the paths of an arm's texts, data, graph and clusters; ``root`` is the folder of corpora."""
    data = file.data[arm.data]
    digest = _digest(_text_from(data))
    folder = out / "data" / f"{arm.data}-{'tiny' if tiny else 'small'}-{digest}"
    clusters = f"clusters-{_digest(*_clusters_from(data))}"
    names = {"text": "text", "data": "data", "graph": "data.graph", "clusters": clusters}
    return {"root": root, **{place: folder / name for place, name in names.items()}}


def _data_steps(data: DataSet, arm: Arm, places: dict[str, Path], tiny: bool) -> list[Step]:
    steps: list[Step] = []
    if data.files:
        words = []
        for name, source in data.files.items():
            lines = data.lines.get(name, 0)
            if tiny:
                lines = (max(1, abs(lines) // TINY_SHARE) if lines else TINY_LINES) * (-1 if lines < 0 else 1)
            words += [str(places["root"] / source), str(places["text"] / name), str(lines)]
        steps.append(Step("copy", tuple(words), places["text"]))
    steps.append(Step("prepare", _filled(data.prepare, places), places["data"]))
    if arm.graph:
        steps.append(Step("graph", _filled(data.graph, places), places["graph"]))
    for command in data.clusters if arm.clusters else ():
        filled = _filled(command, places)
        steps.append(Step("train" if filled[0] == "train" else "clusters", filled, Path(filled[-1])))
    return steps


def _train_words(file: ClaimFile, arm: Arm, seed: int, places: dict[str, Path], tiny: bool) -> tuple[str, ...]:
    """Return the command of a training, without the run folder."""
    words = ["train", "--recipe", arm.recipe, "--data", str(places["data"])]
    words += ["--graph", str(places["graph"])] if arm.graph else []
    words += ["--vectors", str(places["root"] / arm.vectors)] if arm.vectors else []
    words += ["--clusters", _filled(file.data[arm.data].clusters[-1], places)[-1]] if arm.clusters else []
    for override in (*arm.set, *(file.tiny if tiny else ())):
        words += ["--set", override]
    return (*words, "--seed", str(seed))


def _filled(template: str, places: dict[str, Path]) -> tuple[str, ...]:
    """Fill the words of a template with paths; a path with blanks stays one word."""
    return tuple(word.format(**places) for word in shlex.split(template))


_NOT_SET: Final = {"claim", "data", "graph", "clusters"}  # tables of a recipe that are no settings: printed value, and paths


def _settings(recipe: str) -> str:
    """Return the settings of a recipe without claim and data; a changed recipe is another trial."""
    table = _shipped(recipe) if ".toml" not in recipe else load_recipe(recipe)
    return json.dumps({slot: table[slot] for slot in sorted(table) if slot not in _NOT_SET}, sort_keys=True)


_shipped = cache(load_recipe)  # a recipe of sememekit, cached, since claims read the same recipes some hundred times


def _digest(*parts: str) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()[:8]


TURNS: Final = 3  # number of timings of the updates of each of two models


def shell_script(trials: Sequence[Trial], timings: Sequence[Timing] = ()) -> str:
    """Return the steps of the trials as a shell script, without repetition; then the interleaved timings of both models."""
    lines = ["set -e", *dict.fromkeys(step.shell() for trial in trials for step in trial.steps)]
    for timing in timings:
        place = timing.result.parents[1] / timing.name
        lines.append("# the time of an update: cpu_seconds over step in metrics.jsonl, the least of each model")
        lines.append(f"for turn in {' '.join(str(turn + 1) for turn in range(TURNS))}; do")
        for arm, words in zip(timing.arms, timing.trains, strict=True):
            lines.append(f"  {shlex.join(['sememekit', *words, '--out', str(place / arm)])}-$turn")
        lines.append("done")
    return "\n".join(lines) + "\n"
