"""Several processes train as one does: losses, weights, averages, clusters and decisions, in float64 to 1e-10."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from sememekit.errors import ConfigError
from sememekit.ranks import ALONE, Ranks
from sememekit.runs.training import open_training
from sememekit.training.snapshots import read_snapshot, write_snapshot
from tests.distributed.cases import CASES, STEPS, go_on, outcome, trainer_of
from tests.distributed.launch import finish, start
from tests.golden import Places

FEW = (
    "sampled",
    "columns in parts",
    "clusters in parts",
    "averaged Adam",
    "transformer",
    "headline sdlm",
    "lattice, a loss per sentence",
    "fewer examples than ranks",
    "sampled words, fewer examples than ranks",
)
"""One case of each kind of task, of statistics and of what is divided, for two processes; the slow tests have them all."""
SIZES = [2, pytest.param(4, marks=pytest.mark.slow)]
TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}
ANOTHER_ORDER = {
    "headline self_organized": "occurrences in rows count rank after rank",
    "clusters in parts": "one process counts the occurrences of a part before those of the next, several all along the text",
}
"""Cases whose statistics of words and clusters add up the same occurrences in another order, and why."""


class Trained:
    """The result of a training by several processes."""

    def __init__(self, folder: Path, size: int, cases: Sequence[str]) -> None:
        self.folder, self.size = folder, size
        places = Places(folder)
        self.tables = {name: table(places) for name, table in CASES.items()}
        (folder / "tables.json").write_text(json.dumps({"tables": self.tables, "cases": cases}), encoding="utf-8")
        half = trainer_of(self.tables["sampled"], ALONE)
        go_on(half, 5)
        with half.average.averaged_weights():
            write_snapshot(folder / "of-one", half.task, half.state())
        done = finish(start(["-m", "tests.distributed.worker", str(folder)], size))
        assert [code for code, _, _ in done] == [0] * size, "\n".join(err for _, _, err in done)[-5000:]
        self.found: dict[str, Any] = torch.load(folder / f"found-{size}.pt")

    def alone(self, name: str, until: int = STEPS, dtype: torch.dtype = torch.float64) -> dict[str, Any]:
        """Return the outcome of the case in this process."""
        trainer = trainer_of(self.tables[name], ALONE, dtype)
        return outcome(trainer, go_on(trainer, until))


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, bool], Trained]:
    """Return a function that trains every case or only ``FEW`` in a number of processes, each choice once."""

    @cache
    def train(size: int, every: bool) -> Trained:
        return Trained(tmp_path_factory.mktemp("ranks"), size, [*CASES] if every else FEW)

    return train


@pytest.fixture(params=SIZES)
def trained(request: pytest.FixtureRequest, trainings: Callable[[int, bool], Trained]) -> Trained:
    """Two processes have trained ``FEW``; "2, all" of them and four have trained every case."""
    return trainings(int(str(request.param)[0]), request.param != 2)


def assert_alike(found: dict[str, Any], wanted: dict[str, Any], **tolerance: float) -> None:
    tolerance = tolerance or TOLERANCE
    assert found["losses"] == pytest.approx(wanted["losses"], rel=tolerance["rtol"], abs=tolerance["atol"])
    assert len(found["losses"]) > 1
    assert found["weights"].keys() == wanted["weights"].keys()
    for name, tensor in wanted["weights"].items():
        torch.testing.assert_close(found["weights"][name], tensor, **tolerance, msg=lambda text, name=name: f"{name}: {text}")
    assert found["history"] == pytest.approx(wanted["history"], rel=1e-8)
    assert found["rate"] == wanted["rate"]


@pytest.mark.parametrize(
    ("trained", "name"),
    [
        *((2, name) for name in FEW),
        *(pytest.param("2, all", name, marks=pytest.mark.slow) for name in CASES if name not in FEW),
        *(pytest.param(4, name, marks=pytest.mark.slow) for name in CASES),
    ],
    indirect=["trained"],
)
def test_a_case_in_double_precision(trained: Trained, name: str) -> None:
    found, wanted = trained.found[name], trained.alone(name)
    if name in ANOTHER_ORDER:
        for statistics in ("decoder.scores", "mean decoder.scores"):
            scores = wanted["weights"][statistics]
            torch.testing.assert_close(found["weights"][statistics], scores, rtol=1e-4, atol=1e-4)
            found = {**found, "weights": {**found["weights"], statistics: scores}}
    assert_alike(found, wanted)


def test_a_case_in_single_precision(trained: Trained) -> None:
    assert_alike(trained.found["float32"], trained.alone("sampled", dtype=torch.float32), rtol=1e-5, atol=1e-5)


def test_one_process_goes_on_where_several_stopped_and_the_other_way_round(trained: Trained) -> None:
    whole = trained.alone("sampled", 12)
    table = trained.tables["sampled"]
    one = trainer_of(table, ALONE)
    one.restore(read_snapshot(trained.folder / "of-several", with_trainer=True))
    for found in (outcome(one, go_on(one, 12)), trained.found["resumed from one"]):
        assert len(found["losses"]) == 7
        assert_alike(found, {**whole, "losses": whole["losses"][5:]})


@pytest.mark.slow
@pytest.mark.parametrize(("trained", "size"), [(2, 3), (2, 4)], indirect=["trained"])
def test_another_number_of_processes_goes_on(trained: Trained, size: int) -> None:
    arguments = ["-m", "tests.distributed.worker", str(trained.folder), str(trained.folder / "of-several")]
    done = finish(start(arguments, size))
    assert [code for code, _, _ in done] == [0] * size, "\n".join(err for _, _, err in done)[-5000:]
    found, whole = torch.load(trained.folder / f"found-{size}.pt")["resumed"], trained.alone("sampled", 12)
    assert len(found["losses"]) == 7
    assert_alike(found, {**whole, "losses": whole["losses"][5:]})


def test_clusters_in_parts_are_those_of_whole_batches(trained: Trained) -> None:
    """Several processes share the occurrences of a step in the order of the text, however it was divided."""
    table = trained.tables["clusters in parts"]
    whole = {key: value for key, value in table["task"].items() if key != "small_batch_size"}
    trainer = trainer_of({**table, "task": whole}, ALONE)
    assert_alike(trained.found["clusters in parts"], outcome(trainer, go_on(trainer, STEPS)))


def test_a_batch_of_fewer_than_the_processes_leaves_no_run(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ranks, "wait", lambda ranks: None)  # the others of these ranks are not there
    table = {**trained.tables["mos"], "task": {**trained.tables["mos"]["task"], "batch_size": 2}}
    with (
        pytest.raises(ConfigError, match=r"task\.batch_size=2 cannot be divided among 3 processes"),
        open_training(table, tmp_path / "run", resume=False, on_remark=print, ranks=Ranks(0, 3)),
    ):
        pass
    assert not (tmp_path / "run").exists()


def test_as_many_processes_go_on_with_the_same_bits_dropout_included(trained: Trained) -> None:
    straight, resumed = trained.found["straight"], trained.found["resumed"]
    assert straight["losses"] == resumed["losses"]
    for name, tensor in straight["weights"].items():
        assert torch.equal(tensor, resumed["weights"][name]), name


def test_ranks_with_unequal_numbers_of_parts_draw_the_same_words_and_go_on_with_the_same_bits(trained: Trained) -> None:
    straight, resumed = trained.found["straight in parts"], trained.found["resumed in parts"]
    assert straight["losses"] == resumed["losses"]
    for name, tensor in straight["weights"].items():
        assert torch.equal(tensor, resumed["weights"][name]), name


def test_each_rank_drops_other_numbers(trained: Trained) -> None:
    masks = [tuple(mask) for mask in trained.found["masks"]]
    assert len(set(masks)) == trained.size


def test_what_ranks_tell_each_other(trained: Trained) -> None:
    found, size = trained.found["gathered"], trained.size
    wanted = [rank for rank in range(size) for _ in range(rank)]
    assert found["columns"].tolist() == [wanted, wanted]
    assert torch.equal(found["one alone"], torch.ones(2, 3))
    assert found["nobody"] is None
    large, small, flipped = found["sums"]
    total = size * (size + 1) // 2
    assert large.tolist() == [total, total]
    assert small.tolist() == [total - size, size]
    assert torch.equal(flipped, torch.full((3, 2), float(size)))
    assert (found["leader"], found["numbers"], found["any"]) == ("rank 0", [size, total - size], [False, True])
