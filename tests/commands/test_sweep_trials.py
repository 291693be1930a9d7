"""The trials of a sweep without any training: how each ends, which settings come next, when the budget is spent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from sememekit.config import load_recipe
from sememekit.errors import ConfigError, DataError, TrainingError
from sememekit.jobs import study as module
from sememekit.jobs.space import read_spaces
from sememekit.jobs.study import Study, TrialReport
from sememekit.jobs.sweep import _check_same, sweep
from sememekit.jobs.train import Position, TrainReport
from sememekit.jobs.trainings import Failed, Message, Trained
from sememekit.tasks.base import PrimaryMetric
from sememekit.training import EpochReport, RunFolder
from tests.small_run import Place
from tests.training.test_checkpoint import Tied, trainer_state

pytest.importorskip("optuna", reason="the extra 'sweep' is not installed")
SIZES = "encoder.hidden_size=6,8,12,24"
PERPLEXITY = PrimaryMetric("perplexity", lower_is_better=True)
ACCURACY = PrimaryMetric("accuracy", lower_is_better=False)


def opened(place: Place, out: Path, over: str = SIZES, **more: Any) -> Study:
    out.mkdir(parents=True, exist_ok=True)
    given = {"seed": 1, "trials": 9, "cpu_seconds": None, "pruning": True, **more}
    return Study(out, given.pop("table", place.table()), read_spaces([over]), **given)


def position(metric: PrimaryMetric | None = PERPLEXITY) -> Position:
    return Position(1, 0, 10, 3, metric)


def epoch(number: int, value: float, cpu_seconds: float = 2.0, finished: str = "") -> EpochReport:
    valid = {"perplexity": value, "accuracy": value}
    return EpochReport(number, 10 * number, 1.0, valid, 1.0, True, False, finished, 1.0, 1.0, cpu_seconds=cpu_seconds)


def trained(cpu_seconds: float, metric: PrimaryMetric = PERPLEXITY, stopped: bool = False) -> Trained:
    return Trained(TrainReport.model_construct(stopped=stopped, metric=metric.name), cpu_seconds)


def begin(study: Study) -> str:
    """Begin the next trial, and return its name."""
    trial = study._ask()
    name = module.run_name(trial.number)
    study.running[name] = trial
    return name


def take(study: Study, name: str, *messages: Message) -> list[bool]:
    """Give messages of a trial to the study; return whether each one stops the trial."""
    return [study._take(name, message) for message in messages]


@pytest.mark.parametrize(
    ("messages", "stops", "told"),
    [
        ((epoch(1, 30.0), epoch(2, 20.0), epoch(3, 25.0), trained(7.5)), [False] * 4, ("done", 20.0, 3, 7.5)),
        ((epoch(1, 30.0), epoch(2, 20.0), trained(3.5)), [False] * 3, ("done", 20.0, 2, 4.0)),
        ((trained(1.5),), [False], ("failed", None, 0, 1.5)),
        ((epoch(1, 30.0), trained(2.5, stopped=True)), [False] * 2, ("unfinished", 30.0, 1, 2.5)),
        ((epoch(1, 30.0), Failed(TrainingError("the loss is not finite"), 4.5)), [False] * 2, ("failed", None, 1, 4.5)),
        ((Failed(ConfigError("too wide"), 0.5),), [False], ("failed", None, 0, 0.5)),
        ((epoch(1, 30.0, 50.0), trained(60.0, stopped=True)), [True, False], ("stopped", 30.0, 1, 60.0)),
        ((epoch(1, 30.0, 49.5), epoch(2, 20.0, 0.25), trained(49.75)), [False] * 3, ("done", 20.0, 2, 49.75)),
    ],
    ids=["best of epochs", "killed", "no epoch", "a signal", "diverged", "refused", "out of time", "in time"],
)
def test_the_state_of_a_trial_is_how_it_ended(
    place: Place, tmp_path: Path, messages: tuple[Message, ...], stops: list[bool], told: tuple[Any, ...]
) -> None:
    """CPU seconds are at least the sum over epochs; 50 of them are the budget. A refused training tells no position."""
    study = opened(place, tmp_path, trials=None, cpu_seconds=50.0)
    name = begin(study)
    assert study.running[name].params == {"encoder.hidden_size": 6}, "the plan as it is"
    places = [] if isinstance(messages[0], Failed) else [position(None), position(), position()]
    assert take(study, name, *places, *messages) == [False] * len(places) + stops
    assert study.running == {}
    why = str(messages[-1].error) if isinstance(messages[-1], Failed) else ""
    state, valid, epochs, seconds = told
    (report,) = opened(place, tmp_path).reports()
    assert report == TrialReport(
        number=1,
        run=str(tmp_path / "trial-0001"),
        settings={"encoder.hidden_size": 6},
        state=state,
        valid=valid,
        epochs=epochs,
        cpu_seconds=seconds,
        why=why,
    )
    assert study.spent() == seconds
    assert study.metric_name() == ("validation" if why and not epochs else "perplexity")


def test_an_error_of_data_ends_the_sweep_and_names_the_trial(place: Place, tmp_path: Path) -> None:
    study = opened(place, tmp_path)
    with pytest.raises(DataError, match=r"trial-0001: the split is gone$"):
        take(study, begin(study), Failed(DataError("the split is gone"), 1.0))


@pytest.mark.parametrize(
    ("metric", "worse", "better", "pruning"),
    [(PERPLEXITY, 90.0, 5.0, True), (ACCURACY, 0.1, 0.9, True), (PERPLEXITY, 90.0, 5.0, False)],
)
def test_a_trial_is_pruned_if_it_is_worse_than_the_median_of_four(
    place: Place, tmp_path: Path, metric: PrimaryMetric, worse: float, better: float, pruning: bool
) -> None:
    study = opened(place, tmp_path, "optimizer.learning_rate=0.1..4.0", pruning=pruning)
    for value in (30.0, 20.0, 40.0, 20.0) if metric is PERPLEXITY else (0.3, 0.2, 0.4, 0.2):
        name = begin(study)
        assert take(study, name, position(metric), epoch(1, worse), epoch(2, value), trained(4.0, metric)) == [False] * 4
    last, good, bad = begin(study), begin(study), begin(study)
    assert take(study, last, position(metric), epoch(2, worse, finished="2 epochs done"), trained(4.0, metric)) == [False] * 3
    assert take(study, good, position(metric), epoch(2, better)) == [False, False]
    assert take(study, bad, position(metric), epoch(2, worse)) == [False, pruning]
    take(study, good, trained(4.0, metric))
    take(study, bad, trained(4.0, metric, stopped=True))
    reports = {report.number: report for report in study.reports()}
    assert (study.reports()[0].number, reports[6].valid, reports[6].state) == (6, better, "done")
    assert (reports[7].valid, reports[7].state) == (worse, "pruned" if pruning else "unfinished")
    assert (reports[5].valid, reports[5].state) == (worse, "done")
    assert study.metric_name() == metric.name


def test_a_stopped_trial_goes_on_and_one_without_settings_is_given_up(place: Place, tmp_path: Path) -> None:
    first = opened(place, tmp_path)
    name = begin(first)
    take(first, name, position(), epoch(1, 30.0), trained(2.5, stopped=True))
    first.study.ask()  # killed before its settings were stored
    second = opened(place, tmp_path)
    (trial,) = second._unfinished()
    assert (trial.number, trial.params) == (0, {"encoder.hidden_size": 6})
    assert [report.state for report in second.reports()] == ["unfinished", "failed"]
    lines = [{"kind": "EpochReport", **vars(epoch(number, 30.0 / number))} for number in (1, 2)]
    del lines[1]["cpu_seconds"]  # of an earlier version
    folder = RunFolder.create(tmp_path / name, {}, {}, {})
    for line in lines:
        folder.append_metrics(line)
    folder.save(20, Tied(1.0), trainer_state(20), best=True)
    second.running[name] = trial
    take(second, name, position(), epoch(2, 15.0, 0.5), epoch(3, 10.0, 0.5), trained(0.75))
    (report, _) = second.reports()
    assert (report.state, report.valid, report.epochs, report.cpu_seconds) == ("done", 10.0, 3, 2.5 + 1.0)


@pytest.mark.parametrize(
    ("over", "sizes", "first"),
    [
        ("encoder.hidden_size=4,6", {"encoder__hidden_size": 6}, {"encoder.hidden_size": 6}),
        ("encoder.hidden_size=4,6", {"encoder__hidden_size": 5}, None),
        ("encoder.hidden_size,task.embedding_size=4,6", {}, {"encoder.hidden_size,task.embedding_size": 6}),
        ("encoder.hidden_size,task.embedding_size=4,6", {"encoder__hidden_size": 4}, None),
        ("graph.none=4,6", {}, None),
    ],
)
def test_the_plan_itself_is_the_first_trial_if_it_lies_within(
    place: Place, tmp_path: Path, over: str, sizes: dict[str, int], first: dict[str, int] | None
) -> None:
    study = opened(place, tmp_path, over, table=place.table(**sizes))
    waiting = [trial.system_attrs["fixed_params"] for trial in study.study.trials]
    assert waiting == ([] if first is None else [first])
    assert (study.reports(), study._waiting()) == ([], len(waiting))


def test_the_budget_counts_trials_that_began_and_ends_with_the_last_combination(place: Place, tmp_path: Path) -> None:
    study = opened(place, tmp_path / "few", trials=2)
    seen = []
    for _ in range(3):
        seen.append((study.is_spent(), study.is_exhausted()))
        take(study, begin(study), position(), epoch(1, 9.0), trained(2.0))
    assert seen == [(False, False), (False, False), (True, False)]
    study = opened(place, tmp_path / "all", trials=9)
    while not study.is_spent():
        take(study, begin(study), position(), epoch(1, 9.0), trained(2.0))
    assert study.is_exhausted()
    assert sorted(report.settings["encoder.hidden_size"] for report in study.reports()) == [6, 8, 12, 24]
    study = opened(place, tmp_path / "time", trials=None, cpu_seconds=4.0)
    for seconds, spent in ((1.5, False), (2.5, True)):
        take(study, begin(study), position(), epoch(1, 9.0, 0.0), trained(seconds))
        assert study.is_spent() == spent


def test_the_number_of_a_trial_is_the_seed_of_its_proposal(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []
    sampler = module.import_optuna().samplers.TPESampler

    def seeded(**given: int) -> Any:
        seeds.extend([given["seed"]] if given else [])
        return sampler(**given)

    monkeypatch.setattr("optuna.samplers.TPESampler", seeded)
    for seed in (3, 42_949):
        study = opened(place, tmp_path / str(seed), "optimizer.learning_rate=0.1..1.0", seed=seed)
        for _ in range(2):
            begin(study)
    assert seeds == [300_009, 300_010, 61_551, 61_552], "below 2 to the power of 32"


class Played:
    """Trainings that end as soon as they are looked at, the first one first."""

    stopping = False

    def __init__(self, engine: str, jobs: int, out: Path) -> None:
        self.running: dict[str, Future[Any]] = {}
        self.given: list[tuple[Any, ...]] = [(engine, jobs, out)]

    def __enter__(self) -> Played:
        return self

    def __exit__(self, *exception: object) -> None: ...

    def begin(self, name: str, table: dict[str, Any], run: Path) -> None:
        self.running[name] = Future()
        self.given.append((name, table["encoder"]["hidden_size"], table["run"]["threads"], run, len(self.running)))

    def stop(self, *names: str) -> None:
        self.given.append(("stop", *names))

    def messages(
        self, begin_more: Callable[[], None], asked_to_stop: Callable[[], bool], go_on: str
    ) -> Iterator[tuple[str, Message]]:
        begin_more()
        while self.running:
            name = next(iter(self.running))
            yield name, position()
            yield name, Position(2, 5, 10, 3, PERPLEXITY)
            yield name, epoch(1, 10.0 * len(self.given), 20.0)
            del self.running[name]
            yield name, trained(25.0, stopped=self.given[-1] == ("stop", name))
            begin_more()


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[Played]:
    """The trainings of each sweep, which are played."""
    made: list[Played] = []

    def make(*given: Any) -> Played:
        made.append(Played(*given))
        return made[-1]

    monkeypatch.setattr(module, "Trainings", make)
    return made


def test_trials_run_side_by_side_and_each_end_is_told(place: Place, tmp_path: Path, played: list[Played]) -> None:
    table = place.table(claim={"paper": "none"})
    table["run"] = {"device": "cpu"}
    told: list[tuple[str, int, int]] = []
    ended: list[TrialReport] = []
    options: dict[str, Any] = {"progress": lambda *one: told.append(one), "on_trial": ended.append}
    out = tmp_path / "new" / "sweep"
    report = sweep(table, out, [SIZES], trials=3, jobs=2, **options)
    names = [f"trial-000{number}" for number in (1, 2, 3)]
    (trainings,) = played
    assert trainings.given[0] == ("local", 2, out)
    assert [given[0] for given in trainings.given[1:]] == names
    assert [given[2:] for given in trainings.given[1:]] == [
        (1, out / name, min(number, 2)) for number, name in enumerate(names, 1)
    ]
    assert told == [
        one for name in names for one in ((f"train {name}", 0, 30), (f"train {name}", 15, 30), (f"train {name}", 1, 1))
    ]
    assert [(one.number, one.state, one.valid, one.cpu_seconds) for one in ended] == [
        (1, "done", 30.0, 25.0),
        (2, "done", 40.0, 25.0),
        (3, "done", 40.0, 25.0),
    ]
    assert report.trials == tuple(ended)
    assert (report.out, report.budget, report.metric, report.cpu_minutes) == (str(out), "3 trials", "perplexity", 1.25)
    assert (report.best, report.stopped, report.exhausted) == (str(out / "best.toml"), False, False)
    best = load_recipe(str(out / "best.toml"))
    assert best == {slot: keys for slot, keys in table.items() if slot not in ("claim", "run")}
    assert (
        (out / "best.toml")
        .read_text(encoding="utf-8")
        .startswith("# Best of 3 trials of a sweep: trial 1, validation perplexity 30.00.\n")
    )
    assert (out / "report.json").read_text(encoding="utf-8").endswith("}\n")


def test_a_budget_in_minutes_stops_the_running_trial_and_begins_no_other(
    place: Place, tmp_path: Path, played: list[Played]
) -> None:
    report = sweep(place.table(), tmp_path / "sweep", [SIZES], cpu_minutes=0.5, jobs=1)
    assert [(trial.number, trial.state) for trial in report.trials] == [(1, "done"), (2, "stopped")]
    assert (report.budget, report.cpu_minutes) == ("0.5 CPU minutes", 50 / 60)
    assert [given[0] for given in played[0].given[1:]] == ["trial-0001", "trial-0002", "stop"]


def test_a_sweep_has_one_budget(place: Place, tmp_path: Path) -> None:
    for budget in ({}, {"trials": 1, "cpu_minutes": 1.0}):
        with pytest.raises(ConfigError, match="a sweep has one budget: trials or cpu_minutes"):
            sweep(place.table(), tmp_path / "sweep", [SIZES], **budget)
    with pytest.raises(DataError, match="absent"):
        sweep(place.table(data__path=str(tmp_path / "absent")), tmp_path / "sweep", [SIZES], trials=1)
    with pytest.raises(ConfigError, match="unknown engine"):
        sweep(place.table(), tmp_path / "sweep", [SIZES], trials=1, engine="none")
    assert not (tmp_path / "sweep").exists()


def test_a_folder_is_of_one_sweep(tmp_path: Path) -> None:
    said = {"table": {"run": {"threads": 1}}, "over": ["a.b=1,2"], "seed": 1, "pruning": True, "budget": "1 trial"}
    (tmp_path / "sweep").mkdir()
    for out in (tmp_path / "new", tmp_path / "sweep"):
        _check_same(out, said)
        (tmp_path / "sweep" / ".lock").touch()
    _check_same(tmp_path / "sweep", said)
    for name in ("file", "other/file"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
        with pytest.raises(ConfigError, match=f"{name.partition('/')[0]} holds files that sweep did not write"):
            _check_same(tmp_path / name.partition("/")[0], said)
    (tmp_path / "sweep" / "sweep.json").write_text(json.dumps(said), encoding="utf-8")
    _check_same(tmp_path / "sweep", {**said, "budget": "9 trials"})
    other = {**said, "table": {"run": {"threads": 2}}, "over": ["a.b=1,3", "c.d=1,2"], "seed": 2, "pruning": False}
    with pytest.raises(ConfigError) as told:
        _check_same(tmp_path / "sweep", other)
    assert str(told.value) == (
        f"{tmp_path / 'sweep'} is a sweep with other settings: run.threads is 1 there, given 2; --over is a.b=1,2 there, given "
        "a.b=1,3 c.d=1,2; --seed is 1 there, given 2; pruning is True there, given False; choose another --out, or type the "
        "command as before (only the budget may change)"
    )
    (tmp_path / "sweep" / "sweep.json").write_text(json.dumps({**said, "table": {"run": 1}}), encoding="utf-8")
    with pytest.raises(DataError, match="has no table of settings"):
        _check_same(tmp_path / "sweep", said)
