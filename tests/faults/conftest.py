"""One process that forks children and one small run of two kinds, for all fast tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.faults.child import Commands
from tests.faults.corrupt import Damage
from tests.faults.hostile import Stage


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    if sys.platform != "linux":
        pytest.skip("faults are put in through /proc and pidfd, which Linux alone has")
    with Commands(tmp_path_factory.mktemp("commands")) as found:
        yield found


@pytest.fixture(scope="session")
def damage(commands: Commands, tmp_path_factory: pytest.TempPathFactory) -> Damage:
    """A language model with sememes, its data and its graph, to be damaged."""
    return Damage(commands, tmp_path_factory.mktemp("damage"), "sdlm")


@pytest.fixture(scope="session")
def stage(commands: Commands, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(commands, tmp_path_factory.mktemp("stage"))
