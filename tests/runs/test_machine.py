"""A run describes the machine that trained it."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from sememekit.analysis.compare_runs import remarks_of_machines
from sememekit.runs.build import processor, versions


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("processor\t: 0\nmodel name\t: Fast 9000: two cores\nmodel name\t: Other\n", "Fast 9000: two cores"),
        ("processor\t: 0\nmodel name\t: \n", None),
        ("", None),
    ],
)
def test_the_processor_is_named_as_linux_names_it(tmp_path: Path, text: str, name: str | None) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert processor(tmp_path / "cpuinfo") == (name or platform.processor() or platform.machine())


def test_without_such_a_file_python_names_it(tmp_path: Path) -> None:
    assert processor(tmp_path / "none") == (platform.processor() or platform.machine())
    assert versions()["processor"] == processor()


def test_runs_of_two_machines_are_remarked_on() -> None:
    one, two, gpu = {"processor": "A", "cuda": None}, {"processor": "B"}, {"processor": "A", "cuda": "G"}
    assert remarks_of_machines([one, one]) == []
    assert remarks_of_machines([{}, {}]) == []
    (remark,) = remarks_of_machines([two, one, gpu, {}])
    assert remark == "trained on A, B, G, an unnamed processor: at equal time these machines are compared, too"
