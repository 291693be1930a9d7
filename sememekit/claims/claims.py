"""The files of claims, ``resources/claims/PAPER.toml``: reading, and a check for unknown names."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field

from sememekit.config import Settings, nearest, read_settings, resources_folder
from sememekit.errors import ConfigError
from sememekit.files import read_text

MOST_SEEDS: Final = 20  # largest number of seeds of a model for which results are searched


class DataSet(Settings):
    """A training text, and the commands that prepare it."""

    about: str
    """The text and its size, in one sentence."""
    files: Mapping[str, str] = Field(default_factory=dict)
    """Name in ``{text}`` -> path below ``{root}``; copied before ``prepare``."""
    lines: Mapping[str, int] = Field(default_factory=dict)
    """Name in ``{text}`` -> how many lines of the file are taken (default: all), the last ones for a negative number."""
    prepare: str
    """The subcommand that prepares it, with ``{text}``, ``{root}`` and ``{data}``."""
    graph: str = ""
    """The subcommand that builds its sememe graph, with ``{root}``, ``{data}`` and ``{graph}``; empty for none."""
    clusters: tuple[str, ...] = ()
    """The subcommands that learn word clusters for it, with ``{root}``, ``{text}``, ``{data}`` and their folder ``{clusters}``.
    The last word of each is its output; the last output is the file of clusters. Empty for none."""


class Arm(Settings):
    """A model that is trained for one or more claims."""

    data: str
    """The data set, ``[data.NAME]``."""
    recipe: str
    """The value of ``train --recipe``."""
    set: tuple[str, ...] = ()
    """``slot.key=value``, as ``train --set`` takes them."""
    graph: bool = False
    """True if training and evaluation use the graph of the data."""
    clusters: bool = False
    """True if training uses the word clusters of the data."""
    vectors: str = ""
    """Pretrained word vectors, a path below ``{root}``; empty for none."""
    augment: str = ""
    """The subcommand that attacks a first model on training examples, with the names of ``evaluate``; its successes are added
    to training. The first model is of the arm with the same training without them. Empty for none."""
    evaluate: str | tuple[str, ...] = "evaluate-ppl {run}"
    """The subcommand that measures the trained model, with ``{run}``, ``{root}``, ``{text}``, ``{data}``, ``{graph}``,
    ``{seed}`` and ``{out}``, a folder that it may write; ``--json`` is added. In a list of subcommands the last one measures;
    the last word of each other is its output, below the folder ``{steps}``."""
    higher: bool = False
    """True if a higher validation metric of the schedule is better."""


def trained_by(arm: Arm, augmented: bool = True) -> tuple[object, ...]:
    """Return everything that determines the training of an arm (or its training without ``augment``)."""
    return arm.data, arm.recipe, arm.set, arm.graph, arm.vectors, arm.clusters, arm.augment if augmented else ""


class PaperClaim(Settings):
    """One claim of a paper that a comparison of two models can support or contradict."""

    statement: str
    """The paper's statement on ``other`` against ``baseline``."""
    source: str
    """The place in the paper."""
    metric: str = "test perplexity"
    value: str = "perplexity"
    """Place of the metric in the output of ``evaluate``: keys with dots; in lists the ``name`` or number of an entry."""
    baseline_value: str = ""
    """Place in the output of the baseline's ``evaluate`` (default: ``value``). For a baseline that the same command measures
    beside the model; ``small`` then names one arm twice."""
    over: str = ""
    """The divisor of ``value``, for claims that a group gains more than another; empty for none."""
    note: str = ""
    """A caveat for the ledger, such as a weak baseline."""
    better: Literal["lower", "higher", "equal"] = "lower"
    """The paper's ordering of the values of ``other`` and ``baseline``."""
    margin: float = Field(default=0.01, gt=0.0)
    """For ``equal``: the relative difference that still counts as equal."""
    published: tuple[float, float] | None = None
    """The printed values of (baseline, other)."""
    paper: tuple[str, str] | None = None
    """The recipes of (baseline, other) at the size of the paper."""
    small: tuple[str, str] | None = None
    """The models (baseline, other) at small size; None if no protocol fits a CPU."""
    without: str = ""
    """The arm with neither of two annotations, for a claim whose baseline is a control; it shows what the control does alone.
    Required if both models differ in their annotations only (``is_control``), but for claims of equality."""
    without_value: str = ""
    """Place in the output of the ``evaluate`` of ``without`` (default: ``value``)."""
    about: tuple[str, ...] = ()
    """Settings that the claim is about, by their keys in ``settings_of``: the only ones in which both models may differ."""
    also: tuple[str, ...] = ()
    """Further settings in which both models differ; the ledger names them with their values."""
    after_cut: str = ""
    """The arm with the update cost of ``other`` after the first rate cut; empty if a cut changes nothing."""
    validated: bool = True
    """True if validation measures the metric of the claim, so that equal time can be judged."""
    seeds: int = Field(default=3, ge=1)
    """Seeds of each arm at small size."""
    why_not: str = ""
    """Reason for no small protocol."""


class ClaimFile(Settings):
    """One file: a paper, its data sets, the models compared, and its claims.

    A data set or an arm may name another of the file as its ``base``, from which it inherits missing keys."""

    paper: str
    """Authors, year and title."""
    own: bool = False
    """True if the file is for none of the five papers."""
    tiny: tuple[str, ...] = ()
    """Overrides ``slot.key=value`` for ``--tiny``, with which any arm trains in seconds."""
    data: Mapping[str, DataSet] = Field(default_factory=dict)
    arm: Mapping[str, Arm] = Field(default_factory=dict)
    claim: Mapping[str, PaperClaim] = Field(default_factory=dict)


def is_control(file: ClaimFile, claim: PaperClaim) -> bool:
    """Return whether the baseline is a control: both models read annotations, and differ in these alone."""
    baseline, other = (_annotations(file, file.arm[name]) for name in claim.small) if claim.small else ((), ())
    alone = claim.better != "equal" and {*claim.about} <= {"graph", "evaluate"}
    return alone and any(baseline) and any(other) and baseline != other


def _annotations(file: ClaimFile, arm: Arm) -> tuple[object, ...]:
    """Return the command that builds the graph of an arm, and the sources of further annotations; both may be empty."""
    return file.data[arm.data].graph if arm.graph else "", re.findall(r"--source (\S+)", str(arm.evaluate))


def settings_of(file: ClaimFile, arm_name: str, plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything that two models may differ in, flat: ``decoder.samples`` and the like of a plan, and the data, the
    graph (empty without one), vectors, clusters, attacks and commands before the measurement (``evaluate``) of an arm.

    The measurement itself is compared by the signatures of results."""
    arm = file.arm[arm_name]
    data = file.data[arm.data]
    found: dict[str, Any] = {"data": data.model_dump_json(include={"files", "lines", "prepare"})}
    found |= {"graph": data.graph if arm.graph else "", "evaluate": () if isinstance(arm.evaluate, str) else arm.evaluate[:-1]}
    found |= {key: getattr(arm, key) for key in ("vectors", "clusters", "augment")}
    slots = {slot: keys for slot, keys in plan.items() if slot not in {"claim", "data", "graph", "clusters"}}
    return found | {f"{slot}.{key}": value for slot, keys in slots.items() for key, value in keys.items()}


def differences(
    name: str, claim: PaperClaim, baseline: Mapping[str, Any], other: Mapping[str, Any]
) -> dict[str, tuple[str, str]]:
    """Return the settings of ``claim.also``, with the values of both models, from ``settings_of`` of each.

    A setting that only one of two output layers, encoders or tasks has belongs to the choice of it. Raises ConfigError: the
    models also differ in a setting that the claim does not name."""
    shared = [key for key in baseline if key in other and baseline[key] != other[key]]
    differ = {key: (str(baseline[key]), str(other[key])) for key in shared}
    declared = {*claim.about, *claim.also}
    undeclared = [f"{key} ({one} against {two})" for key, (one, two) in differ.items() if key not in declared]
    if undeclared:
        raise ConfigError(
            f"[claim.{name}]: its two models also differ in {', '.join(undeclared)}; name these keys in 'also', or in 'about' "
            "if the claim is about them, or give both models one value"
        )
    return {key: differ[key] for key in claim.also if key in differ}


def paper_of(file: ClaimFile, claim: PaperClaim) -> str:
    """Return the paper of a claim; empty for controls and for claims of none of the five papers."""
    return "" if file.own or claim.source.startswith(("not a claim of the paper", "no claim of the papers")) else file.paper


def claims_folder() -> Path:
    """Return the folder of the claims that ship with sememekit."""
    return resources_folder() / "claims"


def load_claims(folder: Path | None = None) -> dict[str, tuple[ClaimFile, PaperClaim]]:
    """Every claim by its name, in the order of files and claims, with its file. Raises ConfigError: a file that is no TOML, has
    an unknown key or names an unknown model or data set; or two claims of one name."""
    claims: dict[str, tuple[ClaimFile, PaperClaim]] = {}
    places: dict[str, Path] = {}
    for path in sorted((folder or claims_folder()).glob("*.toml")):
        try:
            table = tomllib.loads(read_text(path, ConfigError))
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{path}: not TOML: {error}; correct the file, then type: sememekit reproduce list") from None
        for kind in ("data", "arm"):
            if isinstance(table.get(kind), dict):
                table[kind] = {name: _with_base(table[kind], (name,), f"{path}: [{kind}.{{}}]") for name in table[kind]}
        file = read_settings(ClaimFile, table, str(path))
        for problem in _problems(file):
            raise ConfigError(f"{path}: {problem}")
        for name, claim in file.claim.items():
            if name in claims:
                raise ConfigError(f"{path}: [claim.{name}] is a name that {places[name]} has, too; rename one of them")
            claims[name], places[name] = (file, claim), path
    return claims


def _with_base(entries: Mapping[str, Any], chain: tuple[str, ...], place: str) -> Any:
    """Return the last entry of a chain of bases, merged over all its bases."""
    entry = entries[chain[-1]]
    if not isinstance(entry, dict) or "base" not in entry:
        return entry
    base, where = entry["base"], place.format(chain[-1])
    if base not in entries:
        raise ConfigError(f"{where}: no base {base!r}{nearest(str(base), entries)}; allowed: {', '.join(entries)}")
    if base in chain:
        raise ConfigError(f"{where}: bases form a circle: {' -> '.join([*chain, base])}; let one of them have no base")
    below = _with_base(entries, (*chain, base), place)
    return {**below, **{key: value for key, value in entry.items() if key != "base"}}


def _problems(file: ClaimFile) -> Iterator[str]:
    for name, arm in file.arm.items():
        if arm.data not in file.data:
            yield f"[arm.{name}]: no data set {arm.data!r}{nearest(arm.data, file.data)}; there are {', '.join(file.data)}"
        elif arm.graph and not file.data[arm.data].graph:
            yield f"[arm.{name}]: graph = true, but [data.{arm.data}] has no key 'graph', the command that builds one; add it"
        elif arm.clusters and not file.data[arm.data].clusters:
            yield f"[arm.{name}]: clusters = true, but [data.{arm.data}] has no key 'clusters', what learns them; add it"
        elif arm.augment and all(trained_by(other) != trained_by(arm, augmented=False) for other in file.arm.values()):
            yield f"[arm.{name}]: it has a key 'augment', and no arm is trained as it is without one; add the arm to attack"
    for name, claim in file.claim.items():
        absent = [arm for arm in (*(claim.small or ()), claim.without) if arm and arm not in file.arm]
        for arm_name in absent:
            yield f"[claim.{name}]: no arm {arm_name!r}{nearest(arm_name, file.arm)}; there are {', '.join(file.arm)}"
        if not absent and not claim.without and is_control(file, claim):
            yield (
                f"[claim.{name}]: its baseline is a control, and it has no key 'without'; name the arm with neither of both "
                "annotations, so that the ledger can say what the control does alone"
            )
        if claim.small and claim.small[0] != claim.small[1] and not claim.about:
            yield f"[claim.{name}]: it has no key 'about'; name the settings that the claim is about, such as 'decoder.name'"
        if claim.after_cut and claim.after_cut not in file.arm:
            yield f"[claim.{name}]: after_cut = {claim.after_cut!r} is no arm{nearest(claim.after_cut, file.arm)}"
        elif claim.after_cut and claim.small and trained_by(file.arm[claim.after_cut]) == trained_by(file.arm[claim.small[1]]):
            yield f"[claim.{name}]: after_cut = {claim.after_cut!r} is trained as {claim.small[1]!r} is; leave it out"
        if claim.small is None and not claim.why_not:
            yield f"[claim.{name}]: it has no key 'small' and no key 'why_not'; add the two models, or the reason for none"
