"""The folder of an attack on disk, and two of them compared.

    OUT/
      attack.json     victim, data, settings, and the hashes of all files that decide a result
      examples.jsonl  one line an example, added as soon as it is finished; in the order of the data once all are
      report.json     the numbers
      report.html     the same for people, with every change marked

Each line ends with a hash of itself and of plan and victim, so that --resume takes no line that was changed or is of another
attack. A line that a killed process left incomplete is dropped on --resume; its example is attacked again with the same result.
Examples on which the victim failed are attacked again, too. If an example has two lines, the last counts."""

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, final

from sememekit.attack import ExampleResult
from sememekit.attack.report import AttackComparison, AttackReport
from sememekit.attack.victim import SAME
from sememekit.config import named_in, record_of
from sememekit.errors import CheckpointError, DataError
from sememekit.files import is_there, opening, read_sealed, refuse_odd_files, replace_file, sealed, typed
from sememekit.measure.attack_rates import NOT_TURNED, UNDER_ATTACK, paired_differences

FORMAT: Final = 4
_SEAL: Final = b',"sha256":"'  # before the hash at the end of a line
_ANEW: Final = "take the folder from a copy, or attack anew with another --out"
_FREE_NAMES: Final = frozenset({"plan.attack.together", "plan.attack.batch_size"})
"""Settings that a resumed attack may change, since they decide no result."""
_WRITTEN: Final = "written"  # key of report.json: SHA-256 of attack.json, bytes of examples.jsonl, and their SHA-256


@final
class AttackFolder:
    """Results of one attack; ``create`` a new folder, or ``open`` an existing one."""

    def __init__(self, path: Path, identity: dict[str, Any]) -> None:
        self.path, self.identity = path, identity
        self._lines = path / "examples.jsonl"

    @classmethod
    def create(cls, path: Path, identity: Mapping[str, Any]) -> "AttackFolder":
        """Start a folder; errors as ``check_free``."""
        cls.check_free(path)
        path.mkdir(parents=True, exist_ok=True)
        stamped = {**identity, "format": FORMAT}
        replace_file(path / "attack.json", sealed(stamped))
        return cls(path, stamped)

    @staticmethod
    def check_free(path: Path) -> None:
        """Raise CheckpointError if something exists there."""
        leftovers = {".attack.json.writing"}
        if path.exists() and (not path.is_dir() or any(entry.name not in leftovers for entry in path.iterdir())):
            raise CheckpointError(f"{path} exists already; go on with --resume, choose another --out, or delete it first")

    @classmethod
    def open(cls, path: Path) -> "AttackFolder":
        """Open the folder of an attack; CheckpointError if it is not one."""
        file = path / "attack.json"
        with opening(file, CheckpointError):
            if not path.exists():
                make = typed("sememekit", "attack", "VICTIM", "--data", "FILE", "--out", path)
                raise CheckpointError(f"{path} does not exist; make one with: {make}")
            if not is_there(file, CheckpointError):
                raise CheckpointError(f"{path} has no attack.json; give a folder that 'sememekit attack --out' wrote")
            refuse_odd_files(path, CheckpointError)
        identity = _unsealed(file, _ANEW)
        if identity.get("format") != FORMAT:
            raise CheckpointError(f"{file} is not of format {FORMAT}; open it with the version that wrote it")
        return cls(path, identity)

    @cached_property
    def seal(self) -> str:
        """SHA-256 of what lines of results depend on: the plan without free settings, and the victim without its name."""
        victim = {name: value for name, value in self.identity["victim"].items() if name != "name"}
        flat = _flat({"plan": self.identity["plan"], "victim": victim})
        return sha256(json.dumps({name: flat[name] for name in sorted({*flat} - _FREE_NAMES)}).encode()).hexdigest()

    @property
    def resume_command(self) -> str:
        """The command that resumes the attack, with the options that name or trust its code."""
        code = code_names(self.identity)
        victim = [str(code.pop("victim"))] if "victim" in code else []
        return typed("sememekit", "attack", *victim, "--out", self.path, "--resume", *(["--trust-code"] if code else []))

    def refuse_code(self, given: Iterable[str], *, trust: bool) -> None:
        """Raise CheckpointError if attack.json names code that is not named on the command line as well.

        ``given`` are the names that the command line repeats; ``trust`` takes all (--trust-code)."""
        if trust:
            return
        allowed = set(given)
        for place, name in code_names(self.identity).items():
            if name not in allowed:
                raise CheckpointError(
                    f"--resume: {self.path}/attack.json names {name!r} as its {place}, which would be imported and run; if you "
                    "know who wrote the folder, add --trust-code, or repeat the name on the command line"
                )

    def check(self, identity: Mapping[str, Any]) -> None:
        """Refuse, with CheckpointError, to resume with other settings or files; names the first that differs."""
        stored, given = _flat(self.identity), _flat(identity)
        names = {*stored, *given} - {"format"}
        for name in sorted(names, key=lambda name: (not name.endswith(".name"), name)):  # another part has other settings
            if name in _FREE_NAMES:
                continue
            if stored.get(name) != given.get(name):
                raise CheckpointError(
                    f"--resume: {self.path} was begun with {name} = {stored.get(name)!r}, and now it is {given.get(name)!r}; "
                    "leave it as it was, or start anew with another --out"
                )

    def _report(self) -> dict[str, Any] | None:
        """Return the content of ``report.json``, or None without one. Raises CheckpointError: it is not as it was written."""
        return _unsealed(path, self._anew) if (path := self.path / "report.json").exists() else None

    @property
    def _anew(self) -> str:
        return f"delete it to write it anew, with: {self.resume_command}"

    def report(self) -> AttackReport:
        """Return the report of a finished attack. CheckpointError: unfinished, damaged, or not of the other files."""
        self.results()
        if (report := self._report()) is None or report["stopped"]:
            raise CheckpointError(
                f"{self.path} is unfinished, and easy examples are done first, so that its rates are too high; finish it: "
                f"{self.resume_command}"
            )
        del report[_WRITTEN]
        return record_of(AttackReport, report, self.path / "report.json", lambda why: CheckpointError(f"{why}; {self._anew}"))

    @property
    def signature(self) -> str:
        """Return as one line everything that must agree before two rates can be compared: all settings and files except the
        victim, plus whether substitutes are limited to the victim's words. Files count by name and content, not by folder."""
        flat = _flat({key: value for key, value in self.identity.items() if key not in ("victim", "data", "unread")})
        deciding = {name: _without_folder(value) for name, value in flat.items() if name not in _FREE_NAMES}
        settings = sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()
        attack = self.identity["plan"]["attack"]
        parts = {
            "metric": "attack-success-rate",
            "data": self.identity["data"]["sha256"][:8],
            "examples": f"{attack.get('limit') or 'all'}-{attack.get('sample', 'first')}-{attack.get('seed', 0)}",
            "budget": attack.get("query_budget") or "none",
            "settings": settings[:8],
            "version": self.identity.get("sememekit", "unknown"),
        }
        if attack.get("known_words", True) and self.identity["victim"].get("words") == "none":
            parts["known_words"] = "off"
            if "common_words" in self.identity["plan"].get("constraints", {}):
                parts["common_words"] = "file" if self.identity.get("common_words") else "off"
        if unread := self.identity.get("unread"):
            parts["unread"] = "{}/{}".format(*unread)
        return "|".join(f"{name}:{value}" for name, value in parts.items())

    @property
    def query_budget(self) -> int:
        """The most queries of an example; 0 for no limit."""
        return int(self.identity["plan"]["attack"]["query_budget"])

    def results(self) -> dict[int, ExampleResult]:
        """Every finished example by its number. Raises DataError: a line in the middle is no result. Raises CheckpointError:
        attack.json or the lines differ from ``report.json``."""
        if (report := self._report()) is not None:
            size = report[_WRITTEN][1]
            names = ("attack.json", "examples.jsonl", "examples.jsonl")
            for name, stored, found in zip(names, report[_WRITTEN], self._written(size), strict=True):
                if stored != found:
                    raise CheckpointError(
                        f"{self.path}/{name} does not match report.json beside it: one of the two was changed after writing; "
                        + _ANEW
                    )
        return whole_results(self._lines, self.seal)

    def _written(self, size: int | None = None) -> tuple[str, int, str]:
        """SHA-256 of attack.json, and size and SHA-256 of the lines, or of their first ``size`` bytes."""
        lines = self._lines.read_bytes()[:size] if self._lines.exists() else b""
        identity = (self.path / "attack.json").read_bytes()
        return sha256(identity).hexdigest(), len(lines), sha256(lines).hexdigest()

    def drop_torn_line(self) -> None:
        """Remove an incomplete last line; errors as ``results``."""
        self.results()
        if self._lines.exists():
            data = self._lines.read_bytes()
            whole = data.rfind(b"\n") + 1
            if whole < len(data):
                replace_file(self._lines, data[:whole])

    def append(self, result: ExampleResult) -> None:
        append_result(self._lines, result, self.seal)

    def finish(self) -> None:
        """Sort the lines in the order of the data, so that the file does not depend on the order of finishing."""
        results = self.results()
        lines = b"".join(_line(results[index], self.seal) for index in sorted(results))
        (self.path / "report.json").unlink(missing_ok=True)
        replace_file(self._lines, lines)

    def write_report(self, report: AttackReport, page: str = "") -> None:
        """Write the report, and for a finished attack the page."""
        plain = json.loads(report.model_dump_json())
        replace_file(self.path / "report.json", sealed({**plain, _WRITTEN: self._written()}))
        if page:
            replace_file(self.path / "report.html", page.encode())


def append_result(path: Path, result: ExampleResult, seal: str) -> None:
    """Add a line to a file of results of the attack with this ``seal``."""
    with path.open("ab") as stream:
        stream.write(_line(result, seal))


def _line(result: ExampleResult, seal: str) -> bytes:
    fields = result.model_dump_json().encode().removesuffix(b"}")
    return fields + _SEAL + sha256(seal.encode() + fields).hexdigest().encode() + b'"}\n'


def whole_results(path: Path, seal: str) -> dict[int, ExampleResult]:
    """Return the results of a file by example, without a torn last line; empty without a file. DataError: a line is no result,
    was changed, or is of an attack with another ``seal``."""
    found = {}
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1] if path.exists() else (), start=1):
        fields = line.rpartition(_SEAL)[0]
        try:
            result = ExampleResult.model_validate_json(fields + b"}")
        except ValueError as error:
            raise DataError(f"{path}:{number}: no result of an attack ({str(error).splitlines()[0]})") from None
        if _line(result, seal) != line + b"\n":
            raise DataError(
                f"{path}:{number}: not as this attack wrote it; delete the line and report.json beside it, and --resume "
                f"attacks its example again; or {_ANEW}"
            )
        found[result.index] = result
    return found


HUGGING_FACE: Final = "hf:"  # prefix of the folder of a victim model


def code_names(identity: Mapping[str, Any]) -> dict[str, str]:
    """Return part -> name for all code of an attack from outside sememekit, which is every name with a colon."""
    names = {"victim": (identity.get("victim") or {}).get("name")}
    if isinstance(names["victim"], str) and (Path(names["victim"]).exists() or names["victim"].startswith(HUGGING_FACE)):
        names = {}  # a run folder whose path has a colon, or weights of a model, which are no code
    names |= named_in(identity.get("plan") or {})
    return {place: name for place, name in names.items() if isinstance(name, str) and ":" in name}


def _unsealed(path: Path, advice: str) -> dict[str, Any]:
    """Read a JSON file of the folder and check its checksum. Raises CheckpointError, with ``advice``: it was changed."""
    return read_sealed(path, lambda why: CheckpointError(f"{why}; {advice}"))


def _without_folder(value: Any) -> Any:
    """Return the value with file names in place of paths."""
    if isinstance(value, list | tuple):
        return [_without_folder(one) for one in value]
    return value.rpartition("/")[2] if isinstance(value, str) else value


def _flat(tree: Any, name: str = "") -> dict[str, Any]:
    if isinstance(tree, Mapping) and tree:
        parts: dict[str, Any] = {}
        for key, value in tree.items():
            parts |= _flat(value, f"{name}.{key}" if name else str(key))
        return parts
    return {name: json.loads(json.dumps(tree))}


def compare_attacks(first: Path, second: Path) -> AttackComparison:
    """Paired differences between two finished attacks on the same data, the first minus the second. Raises CheckpointError: a
    folder is no attack, or is unfinished (successes end first, so its examples are not a sample). Raises DataError: the attacks
    differ both in the file and in the texts and labels, or have no common example."""
    folders = [AttackFolder.open(path) for path in (first, second)]
    for folder in folders:
        folder.report()
    sides = [folder.results() for folder in folders]
    hashes = [folder.identity["data"]["sha256"] for folder in folders]
    both = sides[0].keys() & sides[1].keys()
    same = all((sides[0][one].fields, sides[0][one].label) == (sides[1][one].fields, sides[1][one].label) for one in both)
    if hashes[0] != hashes[1] and not same:  # texts of a list have another hash than those of a file
        if both and all(sides[0][one].fields == sides[1][one].fields for one in both):
            labels = [", ".join(sorted({side[one].label for one in both})) for side in sides]
            told = f"other label names: {labels[0]} against {labels[1]}" if labels[0] != labels[1] else "other true labels"
            raise DataError(f"{first} and {second}: same texts, {told}; attack again with one set of labels (names=, --labels)")
        names = " and ".join(str(folder.identity["data"]["path"]) for folder in folders)
        raise DataError(f"{first} and {second} attacked different data ({names}); pairs need the same examples")
    common = [
        index for index in sides[0] if index in sides[1] and "error" not in (sides[0][index].outcome, sides[1][index].outcome)
    ]
    if not common:
        raise DataError(f"{first} and {second} have no finished example in common")
    budgets = tuple(folder.query_budget for folder in folders)
    targeted = any(result.target is not None for side in sides for result in side.values())
    survived_as = NOT_TURNED if targeted else UNDER_ATTACK
    return AttackComparison(
        first=str(first),
        second=str(second),
        common=len(common),
        only_one=len({*sides[0], *sides[1]}) - len(common),
        unlike=_unlike(folders[0].identity, folders[1].identity) | _other_answers(*sides),
        rows=tuple(paired_differences(sides[0], sides[1], budgets=(budgets[0], budgets[1]), survived_as=survived_as)),
    )


def _other_answers(first: Mapping[int, ExampleResult], second: Mapping[int, ExampleResult]) -> dict[str, tuple[str, str]]:
    """Return a row in which the two victims answer differently on the same text, since two functions can share a name."""
    pairs = [(first[one].probabilities, second[one].probabilities) for one in first.keys() & second.keys()]
    known = [(one, two) for one, two in pairs if one is not None and two is not None and len(one) == len(two)]
    moved = sum(any(abs(a - b) > SAME for a, b in zip(one, two, strict=True)) for one, two in known)
    return {"victim.probabilities": ("as stored", f"other ones for {moved:,} of {len(known):,} texts")} if moved else {}


def _unlike(first: Mapping[str, Any], second: Mapping[str, Any], name: str = "") -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for key in dict.fromkeys((*first, *second)):
        one, two, path = first.get(key), second.get(key), f"{name}.{key}" if name else key
        if isinstance(one, Mapping) and isinstance(two, Mapping):
            found |= _unlike(one, two, path)
        elif one != two:
            found[path] = ("–" if one is None else str(one), "–" if two is None else str(two))
    return found
