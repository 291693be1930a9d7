"""Messages of trainings in other processes: they arrive as they were sent, and a foreign file among them is refused."""

from __future__ import annotations

import math
import pickle
from pathlib import Path

import pytest

from sememekit.errors import TrainingError
from sememekit.jobs.train import Position
from sememekit.jobs.trainings import Told, read_message, write_message
from sememekit.tasks.base import PrimaryMetric
from sememekit.training.metrics import ChangeReport, EpochReport, StepReport, StopReport

TOLD: list[Told] = [
    StepReport(epoch=1, batch=2, num_batches=3, step=2, nats=math.inf, rate=0.1, tokens_per_second=5.0, estimated=True),
    EpochReport(1, 2, 5.5, {"perplexity": 9.5, "nats": math.inf}, 0.1, True, False, "", 1.5, 20.0, metric="perplexity"),
    ChangeReport(epoch=1, step=2, values={"moved_words": 0.25}),
    StopReport(epoch=1, step=2, checkpoint="step-00000002"),
    Position(1, 0, 3, 2, PrimaryMetric("accuracy", lower_is_better=False)),
    Position(1, 0, 0, 2),
    "a remark of 一 line",
]


def test_a_message_arrives_as_it_was_sent(tmp_path: Path) -> None:
    for message in TOLD:
        write_message(tmp_path, message)
    found = [read_message(path) for path in sorted(tmp_path.glob("*.message"))]
    assert found == TOLD
    assert [type(one) for one in found] == [type(one) for one in TOLD]


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps("a remark"),
        b"",
        b"[]",
        b'["Absent", 1]',
        b'["Position", [1, 2]]',
        b'["StopReport", {"epoch": "x"}]',
        b'[["str"], "x"]',
        b"[" * 100_000,
    ],
)
def test_a_foreign_file_among_messages_is_refused_and_never_unpickled(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "0.message").write_bytes(content)
    with pytest.raises(TrainingError, match=r"0\.message: no message of a training, .* remove it"):
        read_message(tmp_path / "0.message")
