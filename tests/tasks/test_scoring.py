"""Task.scored: the values of a split unit by unit, for every kind of task, add up to the figure that the task names."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from sememekit.analysis.compare_runs import compare
from sememekit.analysis.evaluate_ppl import evaluate_ppl
from sememekit.config import trusting_code
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError
from sememekit.jobs.train import train
from sememekit.progress import OneStage
from sememekit.runs.run import Run
from sememekit.tasks.base import Task
from sememekit.tasks.scoring import Scoring, UnitScores
from tests.small_examples import ExamplePlace
from tests.small_run import Place
from tests.tasks.test_own_task import WordAfterNext, table

HERE = "tests.tasks.test_scoring"


def read(task: Task, data: PreparedData, split: str = "test") -> tuple[Scoring, list[UnitScores]]:
    scoring = task.scored(data, split)
    assert scoring is not None
    told: list[tuple[int, int]] = []
    parts = list(scoring.chunks(lambda done, total: told.append((done, total))))
    assert told[-1][0] == told[-1][1]
    assert set(np.concatenate([part.units for part in parts])) == set(range(scoring.num_units)), "every unit, and no other"
    return scoring, parts


@pytest.mark.parametrize("name", ["softmax", "ending", "headlines"])
def test_words_have_nats_of_their_own(name: str, request: pytest.FixtureRequest) -> None:
    run = Run.open(request.getfixturevalue(name), device="cpu")
    scoring, parts = read(run.task, run.data())
    metrics = run.task.evaluate(run.data(), "test")
    assert sum(part.values.sum() for part in parts) == pytest.approx(metrics["nats"])
    assert sum(part.counts.sum() for part in parts) == metrics["tokens"]
    assert all(part.words is not None and len(part.words) == len(part.values) for part in parts)
    assert ("by" in scoring.without, scoring.figure) == (False, "perplexity")


def test_sentences_have_nats_as_a_whole(tmp_path: Path) -> None:
    place = Place(tmp_path, end_of_sentence=True, segmenter="characters", chunks=30, chunk_length=2)
    plan = {
        "data": {"path": str(tmp_path / "data")},
        "task": {"name": "lattice", "embedding_size": 8, "sub_size": 6, "longest_chunk": 2},
        "encoder": {"name": "lattice_lstm", "hidden_size": 8},
        "schedule": {"epochs": 1},
        "run": {"threads": 1, "device": "cpu"},
    }
    train(plan, tmp_path / "run")
    run = Run.open(tmp_path / "run", device="cpu")
    parts = read(run.task, place.data)[1]
    metrics = run.task.evaluate(place.data, "test")
    assert sum(part.values.sum() for part in parts) == pytest.approx(metrics["nats"])
    assert sum(part.counts.sum() for part in parts) == metrics["tokens"]
    assert all(part.words is None for part in parts)
    with pytest.raises(ConfigError, match=r"scores whole sentences, not single words; leave out --by, --overlay, --cache"):
        evaluate_ppl(run, by=["frequency"])


def test_labels_are_right_or_wrong(tmp_path: Path) -> None:
    place = ExamplePlace(tmp_path)
    train(place.table(schedule__epochs=1), tmp_path / "run")
    run = Run.open(tmp_path / "run", device="cpu")
    scoring, (part,) = read(run.task, place.pairs)
    assert part.values.mean() == run.task.evaluate(place.pairs, "test")["accuracy"]
    assert (scoring.figure, scoring.num_units) == ("accuracy", len(place.pairs.examples("test")))


class ScoredWindows(WordAfterNext):
    """A task of somebody's own whose units are windows."""

    def scored(self, data: PreparedData, split: str, batch_size: int | None = None) -> Scoring:
        words = self._windows(data.tokens(split))

        def chunks(progress: OneStage) -> Iterator[UnitScores]:
            for unit in range(words.shape[1]):
                with torch.no_grad():
                    loss = self.loss(torch.from_numpy(words[:, unit : unit + 1].copy()), ())
                yield UnitScores(np.array([unit]), np.array([float(loss.nats)]), np.array([loss.count]))

        return Scoring(chunks, "windows", words.shape[1], how="reads windows", without=("by", "batch_size"))


def test_a_task_of_ones_own_is_evaluated_and_compared(place: Place, tmp_path: Path) -> None:
    for seed in ("1", "2"):
        train({**table(place, f"{HERE}:ScoredWindows"), "run": {"threads": 1, "seed": int(seed)}}, tmp_path / seed)
    with trusting_code():
        report = evaluate_ppl(tmp_path / "1", device="cpu")
        metrics = Run.open(tmp_path / "1", device="cpu").task.evaluate(place.data, "test")
        assert report.perplexity == pytest.approx(metrics["perplexity"], rel=1e-6)
        compared = compare([str(tmp_path / "1"), str(tmp_path / "2")], device="cpu")
        with pytest.raises(ConfigError, match="reads windows; leave out --by, --batch-size"):
            evaluate_ppl(tmp_path / "1", device="cpu", batch_size=2)
    assert compared.unit == "windows"
    assert compared.sides[0].measures[0].values == pytest.approx((report.perplexity,))
    assert math.isfinite(compared.sides[1].measures[0].difference.sentences.high)  # type: ignore[union-attr, arg-type]


def test_a_grouping_that_is_none_is_refused(softmax: Path) -> None:
    with pytest.raises(ConfigError, match=r"--by 'sense' \(did you mean 'senses'\?\): allowed are senses, sememes, frequency"):
        evaluate_ppl(softmax, by=["sense"], device="cpu")
