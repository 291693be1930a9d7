"""The rule of verdicts, on figures made for each of them."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path

import pytest

from sememekit.claims.claims import PaperClaim
from sememekit.claims.results import Point, RunResult, UpdateTimes, read_results
from sememekit.claims.verdict import judge
from sememekit.errors import DataError
from sememekit.files import sealed
from sememekit.reports.ledger import details, ledger, ledger_page, markdown, row


def run(arm: str, seed: int, value: float, cpu: float = 60.0, signature: str = "text:a", tiny: bool = False) -> RunResult:
    curve = [
        Point(epoch=epoch, step=10 * epoch, cpu_seconds=cpu * epoch / 4, valid=value + 8.0 / 2**epoch) for epoch in (1, 2, 3, 4)
    ]
    measured = {"perplexity": value, "groups": {"senses": [{"name": "one sense", "perplexity": value / 2}]}}
    return RunResult(
        trial=f"{arm}-{seed}",
        arm=arm,
        seed=seed,
        tiny=tiny,
        commands=(),
        plan={},
        signature=signature,
        measured=measured,
        curve=tuple(curve),
        finished="",
        versions={},
    )


def claim(**keys: object) -> PaperClaim:
    table = {"statement": "s", "source": "t", "published": (100.0, 90.0), "small": ("a", "b")}
    return PaperClaim.model_validate(table | keys)


def three(arm: str, *values: float, cpu: float = 60.0) -> list[RunResult]:
    return [run(arm, seed, value, cpu) for seed, value in enumerate(values, start=1)]


@pytest.mark.parametrize(
    ("other", "verdict"),
    [
        ((90.0, 91.0, 92.0), "holds"),
        ((97.0, 97.5, 98.0), "holds in direction"),
        ((92.0, 100.0, 107.0), "inconclusive"),
        ((110.0, 111.0, 112.0), "contradicted"),
    ],
)
def test_the_four_verdicts_of_a_lower_value(other: tuple[float, ...], verdict: str) -> None:
    found = judge("x", claim(), three("a", 99.5, 100.0, 100.5), three("b", *other))
    assert found.verdict == verdict
    assert found.means == pytest.approx([math.prod(values) ** (1 / 3) for values in ((99.5, 100.0, 100.5), other)])
    assert found.effect is not None
    assert found.means is not None
    assert found.means[1] / found.means[0] - 1 == pytest.approx(found.effect[0]), "both columns of a row are of one thing"
    assert found.published == pytest.approx(-0.1)


def test_a_group_can_be_judged_by_what_it_has_over_another() -> None:
    """The perplexity of one sense is half of the whole in each result here: divided by it nothing is left of a difference."""
    one = "groups.senses.one sense.perplexity"
    found = judge("x", claim(over=one, note="weak"), three("a", 99.0, 100.0, 101.0), three("b", 89.0, 90.0, 91.0))
    assert found.means == pytest.approx((2.0, 2.0))
    assert found.effect is not None
    assert found.effect[0] == pytest.approx(0.0)
    assert f"- `{found.name}`: weak" in markdown(ledger([found]))
    assert "weak" in ledger_page(ledger([found]))


@pytest.mark.parametrize(
    ("alone", "standing", "sentence"),
    [
        ((110.0, 111.0, 112.0), "control", "The control alone is better than nothing, -9.9 % ("),
        ((90.0, 91.0, 92.0), "none", "This is no control, since it is worse than nothing, +9.9 % ("),
        ((99.0, 100.0, 101.0), "inconclusive", "It is inconclusive whether the control does anything, +0.0 % ("),
    ],
)
@pytest.mark.parametrize("better", ["lower", "higher"])
def test_a_control_is_judged_by_the_model_without_it(
    alone: tuple[float, ...], standing: str, sentence: str, better: str
) -> None:
    """The claim holds in all three cases; where the control is worse than nothing its verdict says so."""
    sides = three("a", 99.0, 100.0, 101.0), three("b", 89.0, 90.0, 91.0), three("c", *alone)
    if better == "higher":
        sides = tuple(  # type: ignore[assignment]
            [run.model_copy(update={"measured": {"perplexity": 1e4 / run.measured["perplexity"]}}) for run in side]
            for side in sides
        )
    found = judge("x", claim(better=better, published=None, without="c"), *sides[:2], without=sides[2])
    assert found.verdict == "holds"
    assert found.control is not None
    assert (found.control.without, found.control.standing) == ("c", standing)
    assert row(found)[1] == ("holds (no control)" if standing == "none" else "holds")
    text = markdown(ledger([found]))
    if better == "lower":
        assert f"- `x`: {sentence}" in text
        assert "against `c`; `other` has " in text
    assert (f"**{row(found)[1]}**" in text, "no control" in ledger_page(ledger([found]))) == (True, standing == "none")
    assert judge("x", claim(without="c"), *sides[:2]).control is None, "no result of the third model"


def test_settings_in_which_models_differ_stand_in_the_ledger() -> None:
    found = judge("x", claim(), three("a", 1.0, 2.0), three("b", 1.0, 2.0))
    named = found.model_copy(update={"also": {"optimizer.learning_rate": ("0.01", "0.02"), "decoder.samples": ("0", "1000")}})
    assert details(named)[-1] == "optimizer.learning_rate 0.02 against 0.01, decoder.samples 1000 against 0"
    assert (details(found)[-1], details(named)[-1] in markdown(ledger([named]))) == ("", True)


def test_a_claim_of_a_higher_value_is_judged_the_other_way_round() -> None:
    higher = claim(better="higher", published=(100.0, 110.0))
    assert judge("x", higher, three("a", 99.5, 100.0, 100.5), three("b", 110.0, 111.0, 112.0)).verdict == "holds"
    assert judge("x", higher, three("a", 99.5, 100.0, 100.5), three("b", 90.0, 91.0, 92.0)).verdict == "contradicted"


@pytest.mark.parametrize(
    ("better", "published", "value", "verdict"),
    [
        ("higher", (100.0, 150.0), 124.0, "holds in direction"),
        ("higher", (100.0, 150.0), 126.0, "holds"),
        ("lower", (100.0, 50.0), 74.0, "holds"),
        ("lower", (100.0, 50.0), 76.0, "holds in direction"),
    ],
)
def test_half_of_a_published_difference_is_half_of_its_per_cent(
    better: str, published: tuple[float, float], value: float, verdict: str
) -> None:
    """Half of the logarithm is another number where differences are large."""
    other = three("b", value - 0.01, value, value + 0.01)
    assert judge("x", claim(better=better, published=published), three("a", 99.99, 100.0, 100.01), other).verdict == verdict


@pytest.mark.parametrize(("value", "verdict"), [(90.2, "equal"), (109.8, "equal"), (89.8, "differs"), (110.2, "differs")])
def test_a_margin_is_as_wide_below_as_above(value: float, verdict: str) -> None:
    other = three("b", value - 0.01, value, value + 0.01)
    assert judge("x", claim(better="equal", margin=0.1), three("a", 99.99, 100.0, 100.01), other).verdict == verdict


@pytest.mark.parametrize(
    ("other", "verdict"),
    [((100.1, 100.2, 99.9), "equal"), ((103.0, 103.1, 102.9), "differs"), ((99.0, 101.5, 101.0), "undecided")],
)
def test_equal_is_a_margin_around_no_difference(other: tuple[float, ...], verdict: str) -> None:
    assert judge("x", claim(better="equal", margin=0.01), three("a", 100.0, 100.1, 99.9), three("b", *other)).verdict == verdict


@pytest.mark.parametrize("lowest", [0.0, -0.1])
def test_values_that_have_no_ratio_are_told_and_not_judged(lowest: float) -> None:
    """A success rate can be 0; its logarithm once stood for a difference of 100 %."""
    found = judge("x", claim(metric="success rate"), three("a", 0.5, 0.5, 0.5), three("b", 0.5, 0.5, lowest))
    assert (found.verdict, found.effect) == ("not run", None)
    assert (
        found.why == f"success rate is 0.5, 0.5, 0.5 and 0.5, 0.5, {lowest:g}: of values that are not above 0 there is no ratio"
    )
    assert row(found)[2] == found.why


def test_a_training_that_two_arms_share_is_counted_once() -> None:
    """One training is measured in two ways under two names."""
    one = three("a", 100.0, 101.0)
    other = [run.model_copy(update={"arm": "b", "trial": f"b-{run.seed}"}) for run in one]
    assert judge("x", claim(), one, other).cpu_minutes == pytest.approx(2.0)


def test_one_seed_a_side_shows_nothing() -> None:
    found = judge("x", claim(), three("a", 100.0), three("b", 50.0))
    assert found.verdict == "inconclusive"
    assert found.effect is not None
    assert found.effect[1:] == (None, None)


def test_without_runs_it_says_of_which_arm() -> None:
    found = judge("x", claim(), three("a", 100.0), [])
    assert (found.verdict, found.why) == ("not run", "no run of b")
    none = judge("x", claim(small=None, why_not="too large"), [], [])
    assert (none.verdict, none.why) == ("not run", "too large")


def test_a_baseline_that_stands_beside_the_model_is_read_there() -> None:
    """One result for each seed has a model and a baseline without any; its training is counted once."""
    found_by = [{"name": "model", "f1": 0.8}, {"name": "matching, 5 words", "f1": 0.5}]
    runs = [each.model_copy(update={"measured": {"rows": found_by}}) for each in three("a", 1.0, 2.0, 3.0)]
    found = judge(
        "x",
        claim(
            value="rows.model.f1", baseline_value="rows.matching, 5 words.f1", better="higher", published=None, small=("a", "a")
        ),
        runs,
        runs,
    )
    assert found.means == pytest.approx((0.5, 0.8))
    assert found.verdict == "holds"
    assert found.effect == pytest.approx((0.6, 0.6, 0.6))
    assert found.cpu_minutes == pytest.approx(sum(each.curve[-1].cpu_seconds for each in runs) / 60)
    assert details(found)[6] == "", "there are no updates of the baseline to time"


def test_a_baseline_without_seeds_adds_nothing_to_what_is_known_of_the_spread() -> None:
    """Student's interval for one sample: t of two degrees of freedom is 4.303 for 95 %."""
    runs = [
        each.model_copy(update={"measured": {"rows": [{"name": "model", "f1": f1}, {"name": "lexicon", "f1": 0.5}]}})
        for each, f1 in zip(three("a", 1.0, 2.0, 3.0), (0.52, 0.55, 0.56), strict=True)
    ]
    table = {"value": "rows.model.f1", "baseline_value": "rows.lexicon.f1", "better": "higher", "published": None}
    found = judge("x", claim(**table, small=("a", "a")), runs, runs)
    logs = [math.log(f1 / 0.5) for f1 in (0.52, 0.55, 0.56)]
    half = 4.302653 * statistics.stdev(logs) / math.sqrt(3)
    mean = statistics.fmean(logs)
    assert found.effect == pytest.approx([math.expm1(value) for value in (mean, mean - half, mean + half)], rel=1e-5)


def test_the_effect_is_a_ratio_of_means_of_logarithms() -> None:
    found = judge("x", claim(), three("a", 100.0, 200.0), three("b", 50.0, 100.0))
    assert found.effect is not None
    assert found.effect[0] == pytest.approx(-0.5)


def times(baseline: tuple[float, ...], other: tuple[float, ...]) -> list[UpdateTimes | None]:
    return [UpdateTimes(arms=("a", "b"), baseline=baseline, other=other, versions={})]


def test_at_equal_time_the_slower_model_is_read_when_the_faster_one_ends() -> None:
    """The interleaved times decide, whatever the trainings took: four times an update, so after epoch 1."""
    baseline, slow = three("a", 95.0, 95.5, 96.0, cpu=1000.0), three("b", 90.0, 90.5, 91.0)
    found = judge("x", claim(), baseline, slow, times((1.5, 1.0, 9.0), (4.0, 7.0, 5.0)))
    assert found.cost == 4.0
    assert found.at_equal_time is not None
    expected = [math.log((value + 4.0) / (base + 0.5)) for value, base in ((90.0, 95.0), (90.5, 95.5), (91.0, 96.0))]
    assert found.at_equal_time[0] == pytest.approx(math.expm1(sum(expected) / 3))
    assert (found.verdict, found.verdict_at_equal_time) == ("holds", "holds in direction")


def test_without_measured_times_nothing_is_said_of_equal_time() -> None:
    found = judge("x", claim(), three("a", 95.0, 95.5, 96.0), three("b", 90.0, 90.5, 91.0))
    assert (found.verdict, found.cost, found.at_equal_time, found.verdict_at_equal_time) == ("holds", None, None, "not run")
    assert details(found)[6] == "not measured"


def test_updates_that_cost_more_after_a_cut_are_counted_as_such() -> None:
    """Two epochs at the first rate cost 2 each, two after the cut 5: in the 4 epochs of the baseline it has finished two."""
    baseline, other = three("a", 95.0, 95.5, 96.0), three("b", 90.0, 90.5, 91.0)
    curve = tuple(point.model_copy(update={"rate": 1.0 if point.epoch < 3 else 0.5}) for point in other[0].curve)
    cut = [
        run.model_copy(
            update={
                "curve": tuple(
                    here.model_copy(update={"rate": rated.rate}) for here, rated in zip(run.curve, curve, strict=True)
                )
            }
        )
        for run in other
    ]
    both = [*times((1.0,), (2.0,)), *times((1.0,), (5.0,))]
    found = judge("x", claim(after_cut="c"), baseline, cut, both)
    assert (found.cost, found.cost_after_cut) == (2.0, 5.0)
    assert "2.00, then 5.00" in details(found)
    assert found.at_equal_time is not None
    expected = [math.log((value + 2.0) / (base + 0.5)) for value, base in ((90.0, 95.0), (90.5, 95.5), (91.0, 96.0))]
    assert found.at_equal_time[0] == pytest.approx(math.expm1(sum(expected) / 3))

    cheap = judge("x", claim(after_cut="c"), baseline, cut, times((1.0,), (0.5,)))
    assert (cheap.cost, cheap.cost_after_cut) == (0.5, 1.0), "one timing: from the cut on it costs what the baseline does"
    assert judge("x", claim(after_cut="c"), baseline, cut, [*times((1.0,), (2.0,)), None]).at_equal_time is None
    assert judge("x", claim(after_cut="c"), baseline, other, both).at_equal_time is None, "rates are not known"


def test_a_model_that_has_validated_nothing_when_the_faster_one_ends_has_no_verdict_at_equal_time() -> None:
    """The faster model needs four epochs; one epoch of the other takes as long as 4.1."""
    found = judge("x", claim(), three("a", 95.0, 95.5, 96.0), three("b", 60.0, 60.5, 61.0), times((1.0,), (4.1,)))
    assert (found.verdict, found.cost, found.at_equal_time, found.verdict_at_equal_time) == ("holds", 4.1, None, "not run")


def test_what_no_epoch_is_validated_by_has_no_verdict_at_equal_time() -> None:
    found = judge("x", claim(validated=False), three("a", 95.0), three("b", 90.0), times((1.0,), (4.0,)))
    assert (found.cost, found.at_equal_time, found.verdict_at_equal_time) == (4.0, None, "not run")


def test_a_group_is_found_by_its_name_and_a_missing_one_is_said() -> None:
    grouped = claim(value="groups.senses.one sense.perplexity")
    found = judge("x", grouped, three("a", 100.0, 101.0), three("b", 90.0, 91.0))
    assert found.means == pytest.approx((math.sqrt(50 * 50.5), math.sqrt(45 * 45.5)))
    with pytest.raises(DataError, match=r"no number 'groups\.senses\.two\.perplexity'"):
        judge("x", claim(value="groups.senses.two.perplexity"), three("a", 1.0), three("b", 1.0))


def test_an_entry_without_a_name_is_found_by_its_number() -> None:
    found = run("a", 1, 2.0).model_copy(update={"measured": {"runs": [{"rank": 7}, {"rank": 9}]}})
    assert (found.value("runs.0.rank"), found.value("runs.1.rank")) == (7.0, 9.0)
    for path in ("runs.2.rank", "runs.-1.rank", "runs.first.rank"):
        with pytest.raises(DataError, match="has no number"):
            found.value(path)


def test_results_of_unlike_data_are_refused() -> None:
    with pytest.raises(DataError, match=r"a-1 and b-1 were not measured on the same data .*reproduce run x"):
        judge("x", claim(), [run("a", 1, 100.0)], [run("b", 1, 100.0, signature="text:b")])


def test_a_tiny_run_marks_the_claim() -> None:
    assert judge("x", claim(), [run("a", 1, 100.0, tiny=True)], three("b", 100.0)).tiny


def test_a_figure_that_was_typed_into_a_result_is_refused(tmp_path: Path) -> None:
    whole, path = json.loads(run("a", 1, 9.0).model_dump_json()), tmp_path / "a-1.json"
    path.write_bytes(sealed(whole))
    assert read_results([path])["a-1"] == run("a", 1, 9.0)
    changed = path.read_bytes().replace(b'"perplexity": 9.0', b'"perplexity": 8.0')
    assert changed != path.read_bytes()
    path.write_bytes(changed)
    with pytest.raises(DataError, match=r"a-1\.json does not match its own checksum.*sememekit reproduce run"):
        read_results([path])
    path.write_text(json.dumps(whole), encoding="utf-8")
    with pytest.raises(DataError, match=r"a-1\.json does not match its own checksum"):
        read_results([path])  # without a checksum anything could be typed
    path.write_bytes(sealed({**whole, "seed": "one"}))
    with pytest.raises(DataError, match=r"a-1\.json is not what sememekit wrote \(key 'seed': .*sememekit reproduce run"):
        read_results([path])
