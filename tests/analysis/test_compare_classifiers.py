"""compare of classifiers: accuracies on the same examples, with differences in points."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
import statistics
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from sememekit.analysis.compare_runs import TEST, RunsComparison, _tested, compare
from sememekit.analysis.evaluate import LabelMetrics, MetricsReport, evaluate, evaluate_seeds
from sememekit.commands._program import app
from sememekit.errors import ConfigError
from sememekit.jobs.train import train
from sememekit.measure.intervals import Interval, rate_difference, seed_difference
from sememekit.measure.sides import SCALES
from sememekit.reports.perplexity import csv_text, curves, latex_text, rows
from sememekit.runs.classifier import load_classifier
from sememekit.training import RunFolder
from tests.small_examples import ExamplePlace

runner = CliRunner()


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> ExamplePlace:
    return ExamplePlace(tmp_path_factory.mktemp("examples"))


@pytest.fixture(scope="module")
def seeds(examples: ExamplePlace, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two classifiers of pairs with two seeds each; the first learns for an epoch, the second for eight."""
    folder = tmp_path_factory.mktemp("classifiers")
    for name, epochs in (("brief", 1), ("long", 8)):
        for seed in (1, 2):
            table = examples.table(schedule__epochs=epochs, run__seed=seed, encoder__hidden_size=12, task__embedding_size=12)
            table["optimizer"] = {"name": "adam", "learning_rate": 0.03, "clip": 5.0}
            train(table, folder / name / f"seed-{seed}")
    return {name: folder / name for name in ("brief", "long")}


@pytest.fixture(scope="module")
def report(seeds: dict[str, Path]) -> RunsComparison:
    return compare([str(seeds["brief"]), str(seeds["long"])], device="cpu")


def accuracy_of_run(run: str | Path) -> LabelMetrics:
    found = evaluate(Path(run), device="cpu")
    assert isinstance(found, LabelMetrics)
    return found


def right(run: Path, examples: ExamplePlace) -> np.ndarray:
    """(n,) ones where the label of a test example is the right one, asked for one example after the other."""
    classifier = load_classifier(run)
    split = examples.pairs.examples("test")
    chosen = [classifier.task.probabilities([split.texts(number)]).argmax() for number in range(len(split))]
    return (np.array(chosen) == split.labels).astype(np.float64)


def test_accuracies_are_those_of_eval(report: RunsComparison) -> None:
    assert report.figure == "accuracy"
    for side in report.sides:
        alone = [accuracy_of_run(run) for run in side.runs]
        measure = side.measures[0]
        assert list(measure.values) == [one.accuracy for one in alone]
        assert measure.mean == pytest.approx(statistics.fmean(one.accuracy for one in alone))
        assert measure.sd == pytest.approx(statistics.stdev(one.accuracy for one in alone))
        assert {one.signature for one in alone} == {report.signature}
    assert (report.unit, report.units) == ("examples", 20)


def test_two_single_runs_have_newcombes_interval(seeds: dict[str, Path], examples: ExamplePlace) -> None:
    brief, long = seeds["brief"] / "seed-1", seeds["long"] / "seed-2"
    found = compare([str(brief), str(long)], device="cpu").sides[1].measures[0].difference
    assert found is not None
    one, other = right(long, examples), right(brief, examples)
    assert one.mean() != other.mean(), "otherwise nothing is compared"
    expected = rate_difference((one, np.ones(20)), (other, np.ones(20)))
    assert found.sentences == expected
    for unknown in (found.seeds, found.both):
        assert unknown is not None
        assert unknown.model_dump() == {"value": pytest.approx(expected.value), "low": None, "high": None}


def test_several_seeds_have_students_interval(report: RunsComparison) -> None:
    first, second = (side.measures[0] for side in report.sides)
    found = second.difference
    assert found is not None
    by_hand = seed_difference(first.values, second.values)
    assert list(found.seeds.model_dump().values()) == pytest.approx([by_hand.value, by_hand.low, by_hand.high])
    assert found.seeds.value == pytest.approx(second.mean - first.mean)


def test_several_seeds_have_limits_over_examples_that_tell_the_sides_apart() -> None:
    """Drawn examples: sides that label all alike are not known to be alike, so no difference is reported."""
    source = np.random.default_rng(0)
    hits = (source.random((400, 4)) < (0.6, 0.62, 0.7, 0.71)).astype(np.float64)
    same = np.concatenate([hits[:, :2], hits[:, 1::-1]], axis=1)
    for right, known in ((hits, True), (same, False)):
        found = _tested(TEST, SCALES["accuracy"], right, np.ones_like(right), [[0, 1], [2, 3]])[1].difference
        assert found is not None
        assert found.sentences is not None
        apart = right[:, 2:].mean(axis=1) - right[:, :2].mean(axis=1)
        assert found.sentences.value == pytest.approx(apart.mean())
        assert found.both is not None
        if not known:
            assert (found.sentences.low, found.sentences.high, found.both.low) == (None, None, None)
            continue
        half = 1.96 * apart.std() / math.sqrt(len(apart))
        assert [found.sentences.low, found.sentences.high] == pytest.approx(
            [apart.mean() - half, apart.mean() + half], abs=0.005
        )
        assert found.both.high - found.both.low > 2 * half  # type: ignore[operator]


def test_equal_updates_take_the_highest_accuracy(report: RunsComparison) -> None:
    updates = [side.measures[1] for side in report.sides]
    steps = {record["step"] for run in report.sides[0].runs for record in RunFolder.open(Path(run)).epochs()}
    assert {one.budget for one in updates} == {float(max(steps))}
    for run, value in zip(report.sides[1].runs, updates[1].values, strict=True):
        within = [record for record in RunFolder.open(Path(run)).epochs() if record["step"] <= updates[0].budget]
        assert value == max(record["valid"]["accuracy"] for record in within)
    full = compare([str(run) for run in reversed(report.sides[1].runs)], device="cpu")
    for side in full.sides:
        reached = [record["valid"]["accuracy"] for record in RunFolder.open(Path(side.runs[0])).epochs()]
        assert len(set(reached)) > 1
        assert side.measures[1].values == (max(reached),)


def test_what_is_shown_is_per_cent_and_points(report: RunsComparison) -> None:
    second = report.sides[1].measures[0]
    assert second.difference is not None
    shown = rows(report)[1]
    assert shown[3] == f"{100 * second.mean:.2f}"
    assert shown[5] == f"{100 * second.difference.seeds.value:+.2f}"
    latex = latex_text(report)
    assert r"model & seeds & accuracy in \% & change in points & 95\,\% interval" in latex
    assert rf"{100 * second.mean:.2f} $\pm$ {100 * second.sd:.2f}" in latex
    line = list(csv.DictReader(io.StringIO(csv_text(report))))[1]
    assert [float(value) for value in line["accuracies"].split()] == list(second.values)
    assert float(line["seeds_low"]) == second.difference.seeds.low
    assert {"examples_low", "examples_high"} < line.keys()
    drawn = curves(report)[0]
    assert (drawn.y, drawn.scale) == ("accuracy", "percent")
    own = report.sides[1].curves
    assert drawn.lines[1].points[2][1] == pytest.approx((own[0][2][2] + own[1][2][2]) / 2)


def test_latex_has_the_interval_over_seeds_where_that_over_examples_is_not_known(report: RunsComparison) -> None:
    first, second = report.sides
    found = second.measures[0].difference
    assert found is not None
    for low, said in ((None, "seeds"), (-0.1, "examples and seeds")):
        both = Interval(value=found.seeds.value, low=low, high=low and 0.3)
        measure = second.measures[0].model_copy(update={"difference": found.model_copy(update={"both": both})})
        other = second.model_copy(update={"measures": (measure, *second.measures[1:])})
        latex = latex_text(report.model_copy(update={"sides": (first, other)}))
        assert f"% test at the best checkpoint: interval over {said}\n" in latex
        assert ("$[-10.00, +30.00]$" in latex) is (low is not None)


def test_what_is_typed(seeds: dict[str, Path], tmp_path: Path) -> None:
    sides = [str(seeds["brief"]), str(seeds["long"])]
    done = runner.invoke(app, ["compare", *sides, "--figure", str(tmp_path / "a.svg"), "--device", "cpu"])
    assert done.exit_code == 0, done.stderr
    for text in ("accuracy in %", "change in points", "2,000 draws of 20 examples", "signature: metric:accuracy|data:snli"):
        assert text in done.stdout
    printed = json.loads(runner.invoke(app, ["compare", *sides, "--json", "--device", "cpu"]).stdout)
    assert printed["figure"] == "accuracy"


def test_what_is_refused(seeds: dict[str, Path], examples: ExamplePlace, softmax: Path, tmp_path: Path) -> None:
    brief, long = str(seeds["brief"]), str(seeds["long"])
    with pytest.raises(ConfigError, match=r"seed-1 is a classifier and .*softmax is not.*compare models of one task"):
        compare([str(softmax), brief], device="cpu")
    with pytest.raises(ConfigError, match=r"labels examples, one by one; leave out --batch-size"):
        compare([brief, long], batch_size=1, device="cpu")
    train(examples.table("classification", schedule__epochs=1), tmp_path / "reviews")
    train(examples.table(schedule__epochs=1, run__dtype="bfloat16"), tmp_path / "half")
    with pytest.raises(ConfigError, match=r"seed-1 and .*half cannot .* dtype is float32 and bfloat16; add --dtype float32"):
        compare([brief, str(tmp_path / "half"), long], device="cpu")
    with pytest.raises(ConfigError, match=r"dtype is float32 and bfloat16; add --dtype float32"):
        compare([f"{brief}/seed-1", str(tmp_path / "half")], device="cpu")
    with pytest.raises(ConfigError, match=r"data is snli and sst2; .*evaluate each alone: sememekit eval RUN"):
        compare([brief, str(tmp_path / "reviews")], device="cpu")


def test_eval_of_a_folder_of_seeds(seeds: dict[str, Path]) -> None:
    folder = seeds["long"]
    alone = [accuracy_of_run(folder / f"seed-{seed}") for seed in (1, 2)]
    done = runner.invoke(app, ["eval", str(folder), "--device", "cpu", "--json"])
    assert done.exit_code == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["reports"] == [json.loads(one.model_dump_json()) for one in alone]
    for name, values in (("accuracy", [one.accuracy for one in alone]), ("macro_f1", [one.macro_f1 for one in alone])):
        found = printed["figures"][name]
        assert found["values"] == values
        assert (found["mean"], found["sd"]) == pytest.approx((statistics.fmean(values), statistics.stdev(values)))
    shown = runner.invoke(app, ["eval", str(folder), "--device", "cpu"]).stdout
    for text in ("macro f1", "mean", f"signature: {alone[0].signature}"):
        assert text in shown
    refused = runner.invoke(app, ["eval", str(folder), "--words", "gold.txt"])
    assert (refused.exit_code, f"--words: eval takes it with one run, such as {folder}/seed-1" in refused.stderr) == (1, True)


def test_perplexities_of_seeds_have_a_geometric_mean_and_other_figures_a_plain_one(softmax: Path, tmp_path: Path) -> None:
    for seed in (1, 2):
        shutil.copytree(softmax, tmp_path / f"seed-{seed}")
    figures = [
        {"perplexity": 4.0, "share": 0.2, "nats": 3.0, "tokens": 7},
        {"perplexity": 9.0, "share": 0.4, "nats": 5.0, "tokens": 7},
    ]

    def read(run: Path) -> MetricsReport:
        where = {"run": str(run), "checkpoint": "step-1", "split": "test"}
        return MetricsReport(**where, metrics=figures[int(run.name[-1]) - 1])  # type: ignore[arg-type]

    def other_texts(run: Path) -> MetricsReport:
        return labels.model_copy(update={"run": str(run), "signature": f"metric:accuracy|text:{run.name}"})

    labels = LabelMetrics.model_construct(split="test", checkpoint="step-1", accuracy=0.5, macro_f1=0.5, metrics={})
    with pytest.raises(ConfigError, match=r"seed-1 and .*seed-2 cannot be compared .*text is seed-1 and seed-2; evaluate each"):
        evaluate_seeds(tmp_path, other_texts)
    found = evaluate_seeds(tmp_path, read).figures
    assert {name: one.mean for name, one in found.items()} == pytest.approx({"perplexity": 6.0, "share": 0.3})
