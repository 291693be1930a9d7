"""``train`` in several processes as a person starts it: one writer, one sentence where one is killed, and going on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sememekit.errors import ConfigError
from sememekit.jobs.train import train
from sememekit.ranks import ALONE, Ranks, joined
from sememekit.tasks.base import take_part
from sememekit.training import EpochReport
from tests.distributed.launch import ROOT, finish, start
from tests.golden import Places
from tests.training.toy import Toy

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
EPOCHS = 3


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return Places(tmp_path_factory.mktemp("processes"))


@pytest.fixture(scope="module")
def straight(places: Places) -> list[float]:
    """Validation of each epoch of one process that never stops."""
    reports: list[Any] = []
    train(places.words.table(schedule__epochs=EPOCHS), places.folder / "straight", on_report=reports.append)
    return [report.valid["perplexity"] for report in reports if isinstance(report, EpochReport)]


def typed(places: Places, out: Path) -> list[str]:
    """``train`` of the same model, whose output layer ends a process."""
    table = places.words.table(schedule__epochs=EPOCHS, run__checkpoint_every=10)
    parts = [
        (slot, key, value) for slot, keys in table.items() if slot not in ("data", "decoder") for key, value in keys.items()
    ]
    flags = [flag for slot, key, value in parts for flag in ("--set", f"{slot}.{key}={value}")]
    layer = ["--decoder", "tests.distributed.ending:Ending"]
    return ["-m", "sememekit", "train", "--data", table["data"]["path"], "--out", str(out), *layer, *flags]


def records(out: Path, kind: str) -> list[dict[str, Any]]:
    lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] == kind]


def assert_whole(out: Path, straight: list[float]) -> None:
    """Every epoch was reported once, with the figures of one process."""
    epochs = records(out, "EpochReport")
    assert [record["epoch"] for record in epochs] == list(range(1, EPOCHS + 1))
    assert [record["valid"]["perplexity"] for record in epochs] == pytest.approx(straight, rel=1e-5)
    named = json.loads((out / "checkpoints" / "pointer.json").read_text(encoding="utf-8"))
    assert {path.name for path in (out / "checkpoints").iterdir()} == {"pointer.json", named["last"], named["best"]}


@pytest.mark.slow
def test_torchrun_goes_on_from_the_last_checkpoint_when_a_rank_is_killed(
    places: Places, straight: list[float], tmp_path: Path
) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "--max-restarts=1"]
    environment = {**os.environ, "ENDING": "1 45 SIGKILL", "OMP_NUM_THREADS": "1"}
    command = [*torchrun, *typed(places, tmp_path / "run")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stderr.count("sememekit: error:") == 1
    assert "another process of this training ended" in done.stderr
    assert done.stdout.count("Trained:") == 1
    assert_whole(tmp_path / "run", straight)


def test_a_signal_to_one_rank_stops_all_with_one_checkpoint(places: Places, straight: list[float], tmp_path: Path) -> None:
    done = finish(start(typed(places, tmp_path / "run"), 2, ENDING="1 37 SIGTERM"))
    assert [code for code, _, _ in done] == [75, 75], done
    (leader, follower) = done
    assert "stopped by a signal; go on with" in leader[2]
    assert follower[1:] == ("", "")
    assert [record["step"] for record in records(tmp_path / "run", "StopReport")] == [37]
    table = places.words.table(schedule__epochs=EPOCHS, run__checkpoint_every=10)
    layer = {"decoder": {**table["decoder"], "name": "tests.distributed.ending:Ending"}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENDING", "none 0 SIGTERM")
        train({**table, **layer}, tmp_path / "run", resume=True)
    assert_whole(tmp_path / "run", straight)


@pytest.mark.slow
def test_a_killed_rank_ends_all_with_one_sentence(places: Places, tmp_path: Path) -> None:
    done = finish(start([*typed(places, tmp_path / "run"), "--quiet"], 3, ENDING="1 45 SIGKILL"))
    assert [code for code, _, _ in done] == [1, -9, 1]
    (sentence,) = "".join(err for _, _, err in done).splitlines()
    assert "another process of this training ended" in sentence
    assert f"--nproc_per_node=3 -m sememekit train --out {tmp_path / 'run'} --resume" in sentence


@pytest.mark.slow
def test_what_is_wrong_for_all_ranks_is_said_once(places: Places, tmp_path: Path) -> None:
    command = [*typed(places, tmp_path / "run"), "--set", "task.batch_size=1"]
    done = finish(start(command, 2, ENDING="0 0 SIGTERM"))
    assert [code for code, _, _ in done] == [1, 1]
    (sentence,) = "".join(err for _, _, err in done).splitlines()
    assert "task.batch_size=1 cannot be divided among 2 processes" in sentence


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"WORLD_SIZE": "2"}, r"WORLD_SIZE=2 is set and RANK, MASTER_ADDR, MASTER_PORT not; .*torchrun"),
        ({"WORLD_SIZE": "two"}, r"WORLD_SIZE='two' in the environment is no whole number; start with torchrun"),
        ({"WORLD_SIZE": "2", "RANK": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}, r"RANK=2 .* a rank is 0 to 1"),
        (
            {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "port"},
            r"cannot meet the other 1 processes at 127\.0\.0\.1:port",
        ),
    ],
)
def test_an_environment_that_is_not_of_torchrun(environment: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message), joined(environment):
        pass


@pytest.mark.parametrize("environment", [{}, {"WORLD_SIZE": "1"}, {"RANK": "0", "WORLD_SIZE": "1"}])
def test_one_process_needs_no_other(environment: dict[str, str]) -> None:
    with joined(environment) as ranks:
        assert ranks is ALONE


def test_a_task_that_cannot_be_divided_is_refused() -> None:
    task = Toy()
    take_part(task, ALONE)
    with pytest.raises(
        ConfigError,
        match=r"toy:Toy does not divide its batches, and 2 processes were started; .*derive the class from Divided",
    ):
        take_part(task, Ranks(0, 2))


@pytest.mark.parametrize(("count", "size"), [(20, 2), (5, 2), (5, 4), (7, 7)])
def test_columns_and_examples_are_shared_out_whole(count: int, size: int) -> None:
    import numpy as np

    ranks = [Ranks(rank, size) for rank in range(size)]
    numbers = np.arange(count)
    columns = [numbers[rank.columns(count)] for rank in ranks]
    assert np.concatenate(columns).tolist() == numbers.tolist()
    assert {len(part) for part in columns} <= {count // size, -(-count // size)}
    assert sorted(np.concatenate([rank.of(numbers) for rank in ranks]).tolist()) == numbers.tolist()
