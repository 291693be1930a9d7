"""Losses of the first ten steps, written down: a change of the mathematics, the start or the order of the data shows here.

Where a change is meant, write the numbers anew with ``python -m tests.golden`` and say so in the message of the commit. The
tolerance outlives another BLAS.
"""

from __future__ import annotations

import json

import pytest

from tests.golden import FILE, Places, cases

GOLDEN = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return Places(tmp_path_factory.mktemp("golden"))


def test_every_family_is_written_down() -> None:
    assert list(GOLDEN) == list(cases())


@pytest.mark.parametrize("case", list(cases()))
def test_ten_steps(places: Places, case: str) -> None:
    found = places.losses(case)
    assert found == pytest.approx(GOLDEN[case], abs=1e-4), found
