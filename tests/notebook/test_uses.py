"""The uses in the docstrings of the notebook's tables run as they stand."""

from __future__ import annotations

import doctest

from sememekit.notebook import shown


def test_the_uses_in_docstrings() -> None:
    found = doctest.testmod(shown)
    assert found.attempted > 0
    assert found.failed == 0
