"""The uses in the docstrings of the notebook's tables run as they stand."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from sememekit.notebook import attacks
from sememekit.reports import table


@pytest.mark.parametrize("module", [table, attacks])
def test_the_uses_in_docstrings(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
