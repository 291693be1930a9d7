"""Two processes train every module together (gloo)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_two_processes_have_the_gradients_and_clusters_of_one(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.nn.ddp_worker", str(tmp_path / "meeting")]
    root = Path(__file__).resolve().parents[2]
    both = [subprocess.Popen([*command, str(rank)], cwd=root, stderr=subprocess.PIPE, text=True) for rank in range(2)]
    told = [process.communicate(timeout=270)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], "\n".join(told)[-3000:]
