"""The rules of the schedule one by one, on figures alone: no model is trained."""

from __future__ import annotations

from typing import Any

import pytest

from sememekit.tasks.base import PrimaryMetric
from sememekit.training.schedule import Schedule, Verdict, reopen
from sememekit.training.settings import OptimizerSettings, RunSettings, ScheduleSettings
from sememekit.training.state import Ending, TrainingState

PERPLEXITY = PrimaryMetric("perplexity", lower_is_better=True)
ACCURACY = PrimaryMetric("accuracy", lower_is_better=False)


def rules(metric: PrimaryMetric = PERPLEXITY, baseline: float = 100.0, **changes: Any) -> Schedule:
    tables: dict[str, dict[str, Any]] = {"schedule": {"epochs": 9, "factor": 0.5}, "optimizer": {}, "run": {"stall_epochs": 0}}
    for path, value in changes.items():
        slot, _, key = path.partition("__")
        tables[slot][key] = value
    return Schedule(
        ScheduleSettings(**tables["schedule"]),
        OptimizerSettings(**{"learning_rate": 8.0, **tables["optimizer"]}),
        RunSettings(**tables["run"]),
        metric,
        baseline,
    )


def state(epoch: int = 3, **changes: Any) -> TrainingState:
    """Return the state after an epoch of 10 predictions and 20 nats, with a best of 50 in the first epoch."""
    known: dict[str, Any] = {"rate": 8.0, "best": 50.0, "best_epoch": 1, "history": [50.0, 60.0], "nats": 20.0, "count": 10}
    return TrainingState(epoch=epoch, **{**known, **changes})


def test_a_better_value_is_the_best_and_nothing_is_cut() -> None:
    progress = state(since_best=2)
    assert rules().decide(progress, 49.0) == Verdict(best=True, rate_cut=False, averaging_begins=False, stuck="")
    assert (progress.best, progress.best_epoch, progress.since_best, progress.rate) == (49.0, 3, 0, 8.0)
    assert progress.history == [50.0, 60.0, 49.0]
    assert progress.finished is None


def test_an_equal_value_is_no_better() -> None:
    progress = state(since_best=2)
    assert rules().decide(progress, 50.0) == Verdict(best=False, rate_cut=True, averaging_begins=False, stuck="")
    assert (progress.best, progress.best_epoch, progress.since_best, progress.rate) == (50.0, 1, 3, 4.0)


def test_a_value_within_the_threshold_is_the_best_and_no_improvement() -> None:
    for value, since, rate in ((48.0, 1, 4.0), (47.0, 0, 8.0)):
        progress = state()
        assert rules(schedule__threshold=0.05).decide(progress, value).best
        assert (progress.best, progress.since_best, progress.rate) == (value, since, rate)


@pytest.mark.parametrize(("grace", "factor", "cut"), [(2, 0.5, True), (3, 0.5, False), (2, 1.0, False)])
def test_the_rate_is_cut_after_the_grace_by_a_factor_below_one(grace: int, factor: float, cut: bool) -> None:
    progress = state()
    assert rules(schedule__grace=grace, schedule__factor=factor).decide(progress, 70.0).rate_cut == cut
    assert progress.rate == (4.0 if cut else 8.0)


def test_epochs_of_the_grace_do_not_count_towards_the_end() -> None:
    """A run that stands still at the full rate is cut first, and ends ``stop_after`` epochs later."""
    schedule, progress = rules(schedule__grace=5, schedule__stop_after=3), state()
    ends = []
    for epoch in range(3, 9):
        progress.epoch = epoch
        schedule.decide(progress, 60.0)
        ends.append((progress.since_best, progress.rate, progress.finished))
    held = [(0, 8.0, None)] * 3
    assert ends == [*held, (1, 4.0, None), (2, 2.0, None), (3, 1.0, Ending.PATIENCE)]


@pytest.mark.parametrize(
    ("averaging", "already", "value", "begins", "then"),
    [
        ("triggered", False, 51.0, True, True),
        ("triggered", False, 50.0, False, False),
        ("triggered", True, 51.0, False, True),
        ("never", False, 51.0, False, False),
        ("from_start", True, 40.0, False, True),
    ],
)
def test_averaging_begins_once_when_it_is_triggered(
    averaging: str, already: bool, value: float, begins: bool, then: bool
) -> None:
    progress = state(averaging=already)
    schedule = rules(optimizer__averaging=averaging, optimizer__trigger=1)
    assert schedule.decide(progress, value).averaging_begins == begins
    assert progress.averaging == then


def test_the_history_that_triggers_is_that_before_the_epoch() -> None:
    assert not rules(optimizer__averaging="triggered", optimizer__trigger=2).decide(state(), 51.0).averaging_begins
    progress = state()
    rules(schedule__stop_non_monotone=2).decide(progress, 51.0)
    assert progress.finished is None


@pytest.mark.parametrize(
    ("changes", "value", "ending"),
    [
        ({"schedule__epochs": 3}, 40.0, Ending.EPOCHS),
        ({"schedule__epochs": 4}, 40.0, None),
        ({"schedule__stop_after": 3}, 60.0, Ending.PATIENCE),
        ({"schedule__stop_after": 4}, 60.0, None),
        ({"schedule__stop_after": 1}, 40.0, None),
        ({"schedule__minimum_rate": 4.5}, 60.0, Ending.RATE),
        ({"schedule__minimum_rate": 4.0}, 60.0, None),
        ({"schedule__minimum_rate": 9.0}, 40.0, None),
        ({"schedule__stop_non_monotone": 1}, 51.0, Ending.NON_MONOTONE),
        ({"schedule__stop_non_monotone": 1}, 50.0, None),
        ({"schedule__epochs": 3, "schedule__stop_after": 1}, 60.0, Ending.PATIENCE),
        ({"schedule__epochs": 3, "schedule__minimum_rate": 9.0}, 60.0, Ending.RATE),
        ({"schedule__epochs": 3, "schedule__stop_non_monotone": 1}, 51.0, Ending.NON_MONOTONE),
        ({"schedule__epochs": 3, "optimizer__learning_rate": 1e9}, 60.0, Ending.NO_RATE),
        ({"schedule__stop_after": 1, "schedule__minimum_rate": 9.0}, 60.0, Ending.RATE),
        ({"schedule__minimum_rate": 9.0, "schedule__stop_non_monotone": 1}, 60.0, Ending.RATE),
    ],
)
def test_a_run_ends_by_the_first_rule_that_says_so(changes: dict[str, Any], value: float, ending: Ending | None) -> None:
    progress = state(since_best=2)
    rules(**changes).decide(progress, value)
    assert progress.finished == ending


@pytest.mark.parametrize(
    ("metric", "baseline", "value", "near"),
    [
        (PERPLEXITY, 100.0, 75.0, True),
        (PERPLEXITY, 100.0, 74.9, False),
        (ACCURACY, 0.75, 1.0, True),
        (ACCURACY, 0.75, 1.01, False),
        (ACCURACY, 0.6, 0.0, True),
    ],
)
def test_a_run_is_stuck_after_some_epochs_near_word_frequencies(
    metric: PrimaryMetric, baseline: float, value: float, near: bool
) -> None:
    schedule = rules(metric, baseline, run__stall_epochs=2, run__stall_ratio=0.75)
    for stalled, stuck in ((0, False), (1, near)):
        progress = state(stalled=stalled, best=None, best_epoch=0)
        told = schedule.decide(progress, value).stuck
        assert progress.stalled == (stalled + 1 if near else -1)
        assert bool(told) == stuck
        assert not stuck or told.startswith(f"training is stuck: after 3 epochs validation {metric.name} is {value:.4g}, and a")
        assert not stuck or told.endswith("--set run.stall_epochs=4)")
    progress = state(stalled=-1)
    assert rules(metric, baseline, run__stall_epochs=1).decide(progress, baseline).stuck == "", "it left once"
    assert progress.stalled == -1
    progress = state()
    assert rules(metric, baseline).decide(progress, baseline).stuck == "", "it is not asked"
    assert progress.stalled == 0


def test_labels_that_cost_what_their_shares_do_are_not_learned() -> None:
    """A loss that began far above the loss of label frequencies, here ln 2, and came back to it is stuck."""
    schedule = rules(PrimaryMetric("accuracy", lower_is_better=False), 0.5, run__stall_epochs=1, run__stall_ratio=0.75)
    for nats, fits in ((6.9, False), (4.1, False), (4.0, True)):  # of 10 examples: ln 2 + ln 0.75 = 0.405 each
        progress = state(best=0.52, best_epoch=2, nats=nats, first_nats=5.0)
        verdict = schedule.decide(progress, 0.5)
        assert (progress.finished == Ending.OVER_FITS) is fits
        assert (verdict.stuck == "") is fits


@pytest.mark.parametrize(
    ("rate", "advice"),
    [
        (8.0, "change the rate (--set optimizer.learning_rate=2, or 32)"),
        (2.0, "the rate was cut from 8 to 2 meanwhile: start again with another one (--set optimizer.learning_rate=32), hold "
         "it at first (--set schedule.grace=3)"),
    ],
)  # fmt: skip
def test_what_a_stuck_run_is_told_of_its_rate(rate: float, advice: str) -> None:
    schedule = rules(run__stall_epochs=1, schedule__factor=1.0)
    assert advice in schedule.decide(state(rate=rate, best=None), 99.0).stuck


@pytest.mark.parametrize(
    ("metric", "best_epoch", "nats", "first_nats", "fits"),
    [
        # ln 100 + ln 0.75 = 4.317 nats
        (PERPLEXITY, 2, 43.1, 0.0, True),
        (PERPLEXITY, 2, 43.3, 0.0, False),
        (PERPLEXITY, 3, 43.1, 0.0, False),
        # 5 + ln 0.75 = 4.712 nats
        (PrimaryMetric("loss", lower_is_better=True), 2, 47.1, 5.0, True),
        (PrimaryMetric("loss", lower_is_better=True), 2, 47.2, 5.0, False),
    ],
)
def test_a_run_over_fits_that_learned_its_text_and_was_better_before(
    metric: PrimaryMetric, best_epoch: int, nats: float, first_nats: float, fits: bool
) -> None:
    schedule = rules(metric, run__stall_epochs=1, run__stall_ratio=0.75)
    progress = state(best=90.0 if best_epoch < 3 else None, best_epoch=best_epoch, nats=nats, first_nats=first_nats)
    verdict = schedule.decide(progress, 95.0)
    assert progress.finished == (Ending.OVER_FITS if fits else None)
    assert (verdict.stuck == "") == fits


@pytest.mark.parametrize(
    ("finished", "changes", "then"),
    [
        (Ending.EPOCHS, {"schedule__epochs": 4}, None),
        (Ending.EPOCHS, {"schedule__epochs": 3}, Ending.EPOCHS),
        (Ending.PATIENCE, {"schedule__stop_after": 3}, None),
        (Ending.PATIENCE, {"schedule__stop_after": 2}, Ending.PATIENCE),
        (Ending.PATIENCE, {"schedule__stop_after": 0}, None),
        (Ending.PATIENCE, {"schedule__stop_after": 3, "schedule__epochs": 3}, Ending.EPOCHS),
        (Ending.PATIENCE, {"schedule__stop_after": 3, "run__stall_epochs": 4}, Ending.OVER_FITS),
        (Ending.OVER_FITS, {"run__stall_epochs": 5}, None),
        (Ending.OVER_FITS, {"run__stall_epochs": 4}, Ending.OVER_FITS),
        (Ending.OVER_FITS, {"run__stall_epochs": 5, "schedule__stop_after": 2}, Ending.PATIENCE),
        (Ending.OVER_FITS, {"run__stall_epochs": 5, "schedule__epochs": 3}, Ending.EPOCHS),
        (Ending.OVER_FITS, {"run__stall_epochs": 0}, None),
        (Ending.RATE, {}, Ending.RATE),
        (Ending.NON_MONOTONE, {}, Ending.NON_MONOTONE),
        (None, {}, None),
    ],
)
def test_a_finished_run_goes_on_where_the_schedule_allows_more(
    finished: Ending | None, changes: dict[str, Any], then: Ending | None
) -> None:
    schedule, progress = rules(**changes), state(finished=finished, since_best=2, stalled=4)
    reopen(progress, schedule.schedule, schedule.run)
    assert (progress.finished, progress.epoch) == (then, 4 if finished and not then else 3)


@pytest.mark.parametrize(
    "changes",
    [{"stop_after": 2}, {"factor": 0.5, "minimum_rate": 3.0}, {"stop_non_monotone": 1, "factor": 1.0}, {"factor": 1.0}],
    ids=["patience", "rate", "non-monotone", "epochs"],
)
def test_more_epochs_later_are_the_same_as_more_at_once(changes: dict[str, Any]) -> None:
    ends = []
    for epochs in ((7,), *((first, 7) for first in range(1, 7))):
        progress, done = state(1, best=None, best_epoch=0, history=[]), 0
        for most in epochs:
            each = rules(**{f"schedule__{key}": value for key, value in {"epochs": most, **changes}.items()})
            reopen(progress, each.schedule, each.run)
            while not progress.finished:
                done = progress.epoch
                each.decide(progress, [90.0, 80.0, 81.0, 82.0, 70.0, 69.0, 68.0][done - 1])
                progress.epoch += not progress.finished
        ends.append((done, progress.best, progress.finished))
    assert len(set(ends)) == 1


@pytest.mark.parametrize(
    ("first", "changes"),
    [
        ({"schedule__stop_after": 2}, {"schedule__factor": 0.5, "schedule__minimum_rate": 3.0}),
        ({"schedule__stop_after": 4}, {"schedule__factor": 1.0, "schedule__stop_non_monotone": 3}),
        ({"schedule__stop_after": 2, "schedule__epochs": 4}, {"schedule__epochs": 4}),
        ({"schedule__stop_after": 4}, {"run__stall_epochs": 6}),
    ],
    ids=["rate", "non-monotone", "epochs", "over-fits"],
)
def test_waiting_longer_later_is_the_same_as_at_once(first: dict[str, Any], changes: dict[str, Any]) -> None:
    values, ends = [100.0, 90.0, 95.0, 96.0, 97.0, 98.0, 99.0, 100.0, 101.0], []
    for waits in (({"schedule__stop_after": 9},), (first, {"schedule__stop_after": 9})):
        progress, done = state(1, best=None, best_epoch=0, history=[]), 0
        for wait in waits:
            each = rules(baseline=80.0, **{**changes, **wait})
            reopen(progress, each.schedule, each.run)
            while not progress.finished:
                done = progress.epoch
                each.decide(progress, values[done - 1])
                progress.epoch += not progress.finished
        ends.append((done, progress.best, progress.finished))
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("rate", "decay", "nothing"), [(1.7e-7, 1.0, False), (1.5e-7, 1.0, True), (1.7e-7, 0.9, True), (1e-9, 1.0, True)]
)
def test_a_rate_below_a_hundred_millionth_of_the_first_ends_the_run(rate: float, decay: float, nothing: bool) -> None:
    """The next cut halves it: 8e-8 is the limit."""
    progress = state(rate=rate)
    verdict = rules(schedule__decay=decay).decide(progress, 60.0)
    assert (verdict.rate_cut, verdict.stuck) == (True, "")
    assert progress.finished == (Ending.NO_RATE if nothing else None)


@pytest.mark.parametrize(
    ("metric", "best", "learned"),
    [
        (PERPLEXITY, 99.0, True),
        (PERPLEXITY, 100.0, False),
        (PERPLEXITY, None, False),
        (ACCURACY, 101.0, True),
        (ACCURACY, 0.0, False),
    ],
)
def test_a_rate_cut_to_nothing_before_anything_was_learned_is_an_error(
    metric: PrimaryMetric, best: float | None, learned: bool
) -> None:
    value = 150.0 if metric.lower_is_better else -1.0
    for epoch in (3, 9):
        progress = state(epoch, rate=1e-9, best=best)
        stuck = rules(metric).decide(progress, value).stuck
        assert (stuck == "") == learned
        if not learned:
            assert stuck.startswith("the rate was cut from 8 to nothing (")
            assert f") in {epoch} epochs, and the best validation {metric.name} is " in stuck
            assert f"(--set schedule.grace={epoch})" in stuck
            assert "learning_rate" not in stuck, "a lower rate is no remedy"
    assert rules(metric).decide(state(rate=8.0, best=best), value).stuck == ""
