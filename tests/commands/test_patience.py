"""Commands that train several models at once: any number of signals is one request to stop."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sememekit import signals
from sememekit.jobs.quickstart import quickstart
from sememekit.jobs.seeds import train_seeds
from sememekit.jobs.sweep import sweep
from sememekit.signals import Stopped, StopRequest
from tests.small_run import Place


def signalled(asked: Callable[[], bool]) -> None:
    """Send two signals."""
    assert not asked()
    for _ in range(2):
        signal.raise_signal(signal.SIGTERM)
    assert asked()


def at_quickstart(place: Place, out: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    def go_on(*given: Any) -> None:
        asked: StopRequest = given[-1]
        with asked.patiently():
            signalled(asked)
        raise Stopped

    monkeypatch.setattr("sememekit.jobs.quickstart._go_on", go_on)
    text = place.folder / "text" / "train.txt"
    return quickstart(out, text=text, overrides=["run.device=cpu"]).stopped


def at_seeds(place: Place, out: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Without a setting each process has one thread."""
    asked_with: list[dict[str, Any]] = []

    def train_all(out: Path, tables: Any, command: str, progress: Any, on_report: Any, asked: Any, **more: Any) -> Any:
        signalled(asked)
        asked_with.append({"threads": [table["run"]["threads"] for table in tables.values()], "command": command, **more})
        return {}

    monkeypatch.setattr("sememekit.jobs.seeds.train_all", train_all)
    table = place.table(run={})
    table["run"] = {"device": "cpu"}
    with pytest.raises(ValueError, match="zip"):
        train_seeds(table, out, (3,))
    (given,) = asked_with
    del given["on_remark"]
    command = f"sememekit train --seeds 3 --out {out} --resume"
    assert given == {"threads": [1], "command": command, "at_once": 2, "engine": "local"}
    return True


def at_sweep(place: Place, out: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    pytest.importorskip("optuna", reason="the extra 'sweep' is not installed")

    def run(self: Any, jobs: int, engine: str, progress: Any, asked: Callable[[], bool], on_trial: Any) -> bool:
        signalled(asked)
        return asked()

    monkeypatch.setattr("sememekit.jobs.study.Study.run", run)
    return sweep(place.table(), out, ["encoder.hidden_size=4,6"], trials=1).stopped


@pytest.mark.parametrize("command", [at_quickstart, at_seeds, at_sweep])
def test_a_second_signal_is_the_same_request(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Callable[..., bool]
) -> None:
    """The second comes long after the first."""
    monkeypatch.setattr(signals, "SAME_SIGNAL", -1.0)
    others: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: others.append(number))
    try:
        assert command(place, tmp_path / "out", monkeypatch)
        assert others == []
        signal.raise_signal(signal.SIGTERM)
        assert others == [signal.SIGTERM], "the handler of before is back"
    finally:
        signal.signal(signal.SIGTERM, before)
