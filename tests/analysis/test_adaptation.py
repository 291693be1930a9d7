"""evaluate-ppl with a cache, with dynamic evaluation and with both, on a trained model of a few hundred numbers."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest

from sememekit.analysis.evaluate_ppl import PerplexityReport, evaluate_ppl
from sememekit.errors import ConfigError
from sememekit.protocols.adaptation import DYNAMIC_TUNING_TOKENS, Adaptation, Tuning, read_adaptation
from sememekit.protocols.cache import CacheGrid, CacheSettings
from sememekit.protocols.dynamic import DynamicGrid, DynamicSettings, dynamic_settings

CACHE = CacheSettings(theta=0.5, weight=0.15, window=20)
STEPS = DynamicSettings(rate=0.002, decay=0.01, epsilon=0.001)


@pytest.fixture
def run(softmax: Path, tmp_path: Path) -> Path:
    """Return a copy of the run, since statistics are written beside it."""
    return Path(shutil.copytree(softmax, tmp_path / "run"))


def ask(run: Path, tuning: Tuning | None = None, **changes: object) -> PerplexityReport:
    return evaluate_ppl(run, adaptation=Adaptation(tuning=tuning, **changes), device="cpu")


def test_a_cache_reads_one_column_and_says_so(run: Path) -> None:
    report = ask(run, cache=CACHE)
    static = evaluate_ppl(run, batch_size=1, device="cpu")
    assert report.adaptation is not None
    assert report.adaptation.static_perplexity == pytest.approx(static.perplexity, rel=1e-12)
    assert report.perplexity != static.perplexity
    assert report.signature == static.signature + "|cache:theta=0.5,lambda=0.15,window=20,start=history"
    assert not (run / "gradient-statistics.safetensors").exists()
    assert PerplexityReport.model_validate_json(report.model_dump_json()) == report


def test_steps_are_in_the_signature_and_the_run_keeps_its_weights(run: Path) -> None:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    report = ask(run, dynamic=STEPS)
    assert report.adaptation is not None
    assert "|chunk:5|" in report.signature
    batches = report.adaptation.statistics_batches
    assert report.signature.endswith(f"|dynamic:krause,rate=0.002,lambda=0.01,epsilon=0.001,statistics={batches}")
    assert report.perplexity != report.adaptation.static_perplexity
    after = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert after.keys() - before.keys() == {run / "gradient-statistics.safetensors"}
    assert {path: after[path] for path in before} == before
    stages: list[str] = []
    again = evaluate_ppl(
        run, adaptation=Adaptation(dynamic=STEPS), device="cpu", progress=lambda stage, done, total: stages.append(stage)
    )
    assert again.model_dump(exclude={"run"}) == report.model_dump(exclude={"run"})
    assert "batches for gradient statistics" not in stages
    assert {"tokens", "tokens, as trained"} <= set(stages)


def test_both_scalings_give_the_same_when_their_numbers_are_converted(run: Path) -> None:
    older = STEPS.model_copy(update={"scaling": "mos", "rate": 0.02, "decay": 0.08, "epsilon": 0.01})
    one = ask(run, dynamic=older)
    assert one.adaptation is not None
    assert one.adaptation.exact is not None
    assert one.adaptation.exact.scaling == "krause"
    other = ask(run, dynamic=one.adaptation.exact)
    assert one.perplexity == pytest.approx(other.perplexity, rel=1e-12)
    assert "|dynamic:mos,rate=0.02,lambda=0.08" in one.signature


def test_a_cache_on_an_adapting_model(run: Path) -> None:
    both = ask(run, cache=CACHE, dynamic=STEPS)
    assert "|cache:" in both.signature
    assert "|dynamic:" in both.signature
    assert len({both.perplexity, ask(run, cache=CACHE).perplexity, ask(run, dynamic=STEPS).perplexity}) == 3


def test_groups_still_share_out_the_whole(place: object, sdlm: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(sdlm, tmp_path / "run"))
    report = evaluate_ppl(run, by=["senses"], adaptation=Adaptation(cache=CACHE, dynamic=STEPS), device="cpu")
    assert report.groups is not None
    assert sum(group.nats for group in report.groups["senses"] if not group.of_which) == pytest.approx(report.nats)


def test_tuning_reads_the_validation_split_and_its_best_is_used(run: Path) -> None:
    grid = Tuning(
        tokens=80,
        cache=CacheGrid(thetas=(0.1, 1.0), weights=(0.1, 0.3), windows=(10, 40)),
        dynamic=DynamicGrid(rates=(1.0, 3.0), decays=(1.0,)),
    )
    report = ask(run, grid, cache=CACHE, dynamic=STEPS)
    assert report.adaptation is not None
    found = report.adaptation.tuning
    assert found is not None
    assert found.dynamic is not None
    assert found.cache is not None
    assert (found.split, found.tokens, len(found.dynamic), len(found.cache)) == ("valid", 80, 2, 8)
    assert report.adaptation.cache == found.cache[0].settings
    assert report.adaptation.dynamic == found.dynamic[0].settings
    assert found.cache[0].perplexity == min(point.perplexity for point in found.cache)
    assert set(found.at_the_edge) == {"dynamic rate", "theta", "lambda", "window"}, "of two values each is at an edge"
    untuned = ask(run, cache=found.cache[0].settings, dynamic=found.dynamic[0].settings)
    assert untuned.perplexity == report.perplexity
    assert untuned.signature == report.signature


def test_what_cannot_be_done_is_said(run: Path) -> None:
    with pytest.raises(ConfigError, match=r"something to tune.*--cache.*--dynamic"):
        ask(run, Tuning())
    with pytest.raises(ConfigError, match=r"diverged.*not finite at a rate of 1e\+30.*smaller --set dynamic.rate"):
        ask(run, dynamic=STEPS.model_copy(update={"rate": 1e30}))


def test_settings_that_lead_away_are_never_the_best(run: Path) -> None:
    grid = Tuning(dynamic=DynamicGrid(rates=(1.0, 1e33), decays=(1.0,)))
    report = ask(run, grid, dynamic=STEPS)
    assert report.adaptation is not None
    assert report.adaptation.tuning is not None
    assert report.adaptation.tuning.dynamic is not None
    assert [point.perplexity is None for point in report.adaptation.tuning.dynamic] == [False, True]
    assert math.isfinite(report.perplexity)
    assert PerplexityReport.model_validate_json(report.model_dump_json()) == report
    with pytest.raises(ConfigError, match="no rate of the grid around 1e"):
        ask(run, grid, dynamic=STEPS.model_copy(update={"rate": 1e30}))


def test_settings_that_were_given_are_kept_and_the_others_tuned() -> None:
    typed = [
        "cache.theta=0.5",
        "cache.start=full-window",
        "dynamic.rate=0.01",
        "dynamic.statistics_tokens=220",
        "tune.tokens=60",
    ]
    found = read_adaptation(typed, cache=True, dynamic=True, tune=True)
    assert found == Adaptation(
        cache=CacheSettings(theta=0.5, start="full-window"),
        dynamic=dynamic_settings(rate=0.01),
        tuning=Tuning(tokens=60, cache=CacheGrid(thetas=(0.5,), start="full-window"), dynamic=DynamicGrid(rates=(1.0,))),
        statistics_tokens=220,
    )
    assert read_adaptation() is None
    assert read_adaptation(cache=True) == Adaptation(cache=CacheSettings())
    assert read_adaptation(dynamic=True, tune=True) == Adaptation(dynamic=DynamicSettings(), tuning=Tuning())
    given = {"theta": 0.3, "weight": 0.2, "window": 7}
    found = read_adaptation([f"cache.{key}={value}" for key, value in given.items()], cache=True, tune=True)
    assert found is not None
    assert found.tuning is not None
    assert found.tuning.cache == CacheGrid(thetas=(0.3,), weights=(0.2,), windows=(7,))


@pytest.mark.parametrize(
    ("typed", "flags", "message"),
    [
        (["cache.theta=0.3"], {"dynamic": True}, r"^--set cache.theta: of no use without --cache"),
        (["dynamic.rate=1"], {"cache": True}, r"^--set dynamic.rate: of no use without --dynamic"),
        (["tune.tokens=9"], {"cache": True}, r"^--set tune.tokens: of no use without --tune"),
        ([], {"tune": True}, r"^--tune: of no use without --cache, --dynamic or both"),
        (["tune.tokens=1"], {"cache": True, "tune": True}, r"--set tune: key 'tokens'.*2.*given 1"),
    ],
)
def test_a_setting_without_its_flag_is_refused(typed: list[str], flags: dict[str, bool], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_adaptation(typed, **flags)


def test_steps_are_tuned_on_the_first_tokens_and_a_cache_alone_on_all(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert DYNAMIC_TUNING_TOKENS == 30_000
    monkeypatch.setattr("sememekit.protocols.adaptation.DYNAMIC_TUNING_TOKENS", 50)
    small = Tuning(
        cache=CacheGrid(thetas=(0.1,), weights=(0.1,), windows=(9,)), dynamic=DynamicGrid(rates=(1.0,), decays=(1.0,))
    )
    seen: list[tuple[str, int, int]] = []
    found = {
        name: evaluate_ppl(
            run,
            adaptation=Adaptation(tuning=small, statistics_tokens=220, **how),
            device="cpu",
            progress=lambda *told: seen.append(told),
        )
        for name, how in (("cache", {"cache": CACHE}), ("steps", {"dynamic": STEPS}))
    }
    reports = {name: one.adaptation.tuning for name, one in found.items() if one.adaptation and one.adaptation.tuning}
    static = evaluate_ppl(run, split="valid", batch_size=1, device="cpu")
    assert {name: one.tokens for name, one in reports.items()} == {"cache": static.tokens + 1, "steps": 50}
    assert reports["cache"].static_perplexity == pytest.approx(static.perplexity, rel=1e-12)
    assert reports["cache"].dynamic is None
    assert reports["steps"].cache is None
    assert reports["cache"].at_the_edge == reports["steps"].at_the_edge == (), "one value has no edges"
    assert ("tokens for tuning the cache", static.tokens, static.tokens) in seen
    assert ("settings of the steps", 1, 1) in seen
    assert found["steps"].adaptation is not None
    assert found["steps"].adaptation.statistics_batches == 1, "220 tokens in 100 columns are two rows"
