"""compare of language models: differences over sentences and over seeds, equal budgets, and the table as files."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
import statistics
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sememekit.analysis.compare_runs import RunsComparison, compare, runs_of
from sememekit.analysis.evaluate_ppl import compare_ppl, evaluate_ppl
from sememekit.commands._program import app
from sememekit.errors import CheckpointError, ConfigError
from sememekit.jobs.train import train
from sememekit.measure.intervals import seed_difference
from sememekit.reports.perplexity import csv_text, curves, latex_text, rows
from sememekit.runs.run import Run
from sememekit.tasks.base import Task
from sememekit.tasks.language_model import LanguageModel
from sememekit.training import RunFolder
from tests.faults.fitted import fit
from tests.pages import check_page
from tests.small_run import Place

runner = CliRunner()


@pytest.fixture(scope="module")
def seeds(place: Place, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two models with two seeds each, the second better and twice as long, in folders as train --seeds makes them; each
    epoch counts as one second, since times of tiny models differ by what else the machine does."""
    folder = tmp_path_factory.mktemp("seeds")
    for name, changes in (("slow", {"optimizer__learning_rate": 0.5}), ("fast", {"schedule__epochs": 4})):
        for seed in (1, 2):
            train(place.table(run__seed=seed, **changes), folder / name / f"seed-{seed}")
            metrics = folder / name / f"seed-{seed}" / "metrics.jsonl"
            metrics.write_text(re.sub(r'"cpu_seconds": [^,}]+', '"cpu_seconds": 1.0', metrics.read_text()))
            fit(metrics.parent)
    return {name: folder / name for name in ("slow", "fast")}


@pytest.fixture(scope="module")
def report(seeds: dict[str, Path]) -> RunsComparison:
    return compare([str(seeds["slow"]), str(seeds["fast"])], device="cpu")


def test_perplexities_are_those_of_evaluate_ppl(report: RunsComparison) -> None:
    for side in report.sides:
        alone = [evaluate_ppl(Path(run), device="cpu") for run in side.runs]
        measure = side.measures[0]
        assert measure.values == pytest.approx([one.perplexity for one in alone], rel=1e-12)
        assert measure.mean == pytest.approx(statistics.geometric_mean(one.perplexity for one in alone))
        assert measure.sd == pytest.approx(statistics.stdev(one.perplexity for one in alone))
        assert {one.signature for one in alone} == {report.signature}
    assert [side.seeds for side in report.sides] == [(1, 2), (1, 2)]
    assert report.sides[0].measures[0].difference is None


def test_one_run_a_side_has_the_interval_of_evaluate_ppl(seeds: dict[str, Path]) -> None:
    """Both draw the same bootstrap samples, and so have the same limits."""
    pair = [seeds["slow"] / "seed-1", seeds["fast"] / "seed-1"]
    ours = compare([str(run) for run in pair], device="cpu").sides[1].measures[0].difference
    theirs = compare_ppl([Run.open(run, device="cpu") for run in pair]).rows[0].changes[0].relative
    assert ours is not None
    assert ours.sentences is not None
    assert ours.sentences.model_dump() == pytest.approx(theirs.model_dump(), rel=1e-9)
    for unknown in (ours.seeds, ours.both):
        assert unknown is not None
        assert (unknown.value, unknown.low, unknown.high) == (pytest.approx(theirs.value), None, None)


def test_the_intervals_over_seeds_are_students_and_those_over_both_hold_more(report: RunsComparison) -> None:
    first, second = (side.measures[0] for side in report.sides)
    found = second.difference
    assert found is not None
    by_hand = seed_difference(*([math.log(value) for value in side.values] for side in (first, second)))
    expected = [math.expm1(value) for value in (by_hand.value, by_hand.low, by_hand.high)]
    assert list(found.seeds.model_dump().values()) == pytest.approx(expected, rel=1e-9)
    assert found.seeds.value == pytest.approx(second.mean / first.mean - 1)
    sentences, both = (one.model_dump() for one in (found.sentences, found.both) if one is not None)
    assert sentences["value"] == both["value"] == pytest.approx(found.seeds.value)
    assert both["low"] < sentences["low"] < both["value"] < sentences["high"] < both["high"]


def test_equal_budgets_are_read_from_the_curves(report: RunsComparison) -> None:
    slow, fast = report.sides
    updates = [side.measures[1] for side in report.sides]
    assert updates[0].measure == "validation, equal updates"
    assert {one.budget for one in updates} == {60.0}, "two epochs of 30 updates; the other side has four"
    for side, measure in zip(report.sides, updates, strict=True):
        for run, value in zip(side.runs, measure.values, strict=True):
            epochs = RunFolder.open(Path(run)).epochs()
            assert value == pytest.approx(min(record["valid"]["perplexity"] for record in epochs[:2]), rel=1e-12)
    timed = [side.measures[2] for side in report.sides]
    assert (report.time, timed[0].measure) == ("CPU", "validation, equal CPU time")
    assert timed[0].budget == pytest.approx(min(sum(run[-1][1] for run in side.curves) / 2 for side in (slow, fast)))
    assert timed[1].difference is not None
    assert timed[1].difference.both is None


def test_a_run_that_had_no_epoch_by_then_has_no_value_at_equal_time(
    seeds: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The value of its first epoch would credit the run with time that it did not have."""
    original = RunFolder.epochs

    def slower(self: RunFolder) -> list[dict[str, Any]]:
        times = 1_000 if self.path.parent.name == "slow" else 1
        return [{**record, "cpu_seconds": times * record["cpu_seconds"]} for record in original(self)]

    monkeypatch.setattr(RunFolder, "epochs", slower)
    sides = [str(seeds["fast"]), str(seeds["slow"])]
    found = compare(sides, device="cpu")
    one, other = (side.measures[2] for side in found.sides)
    assert one.mean is not None
    assert (other.values, other.mean, other.sd) == ((), None, None)
    assert other.difference is not None
    assert other.difference.seeds.model_dump() == {"value": None, "low": None, "high": None}
    assert any(sides[1] in remark and "validated nothing" in remark for remark in found.remarks)
    assert rows(found)[-1][3:] == ("none by then", "", "–", "–", "–", "–")
    assert csv_text(found).splitlines()[-1].split(",")[4:9] == ["1 2", "", "", "", ""]
    assert "& 2 & -- & -- & -- " in latex_text(found)


def test_a_side_that_took_little_longer_is_named(seeds: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds of one model whose CPU times differ by chance: the faster one counts to its end, the other lacks an epoch."""
    original, factor = RunFolder.epochs, {"seed-1": 1.0, "seed-2": 1.05}

    def timed(self: RunFolder) -> list[dict[str, Any]]:
        return [{**record, "cpu_seconds": factor[self.path.name]} for record in original(self)]

    monkeypatch.setattr(RunFolder, "epochs", timed)
    sides = [str(seeds["fast"] / name) for name in factor]
    found = compare(sides, device="cpu")
    assert [f"{sides[1]} took 5 % longer than the fastest side, which may be chance" in one for one in found.remarks] == [True]
    ends = [[point[2] for point in side.curves[0]] for side in found.sides]
    assert [side.measures[2].values for side in found.sides] == [(min(ends[0]),), (min(ends[1][:-1]),)]
    factor["seed-2"] = 1.2
    assert not compare(sides, device="cpu").remarks


def test_a_run_without_cpu_time_is_refused(seeds: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    original = RunFolder.epochs
    monkeypatch.setattr(RunFolder, "epochs", lambda self: [{**one, "cpu_seconds": 0.0} for one in original(self)])
    with pytest.raises(CheckpointError, match=r"seed-1 has no CPU seconds of each epoch in its metrics.jsonl.*--resume"):
        compare([str(seeds["slow"]), str(seeds["fast"])], device="cpu")


def test_what_a_side_may_be(seeds: dict[str, Path], tmp_path: Path) -> None:
    slow = seeds["slow"]
    both = [slow / "seed-1", slow / "seed-2"]
    assert runs_of(str(slow)) == runs_of(slow) == both
    assert runs_of(str(slow / "seed-2")) == [slow / "seed-2"]
    assert runs_of(f"{slow / 'seed-2'},{slow / 'seed-1'}") == both[::-1]
    with pytest.raises(CheckpointError, match=r"nowhere does not exist; give runs of 'sememekit train'"):
        runs_of("nowhere")
    with pytest.raises(CheckpointError, match="is no run folder, and no folder of runs seed-1"):
        runs_of(str(tmp_path))


def test_a_refusal_names_the_command_that_was_typed(seeds: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LanguageModel, "kinds", frozenset())
    monkeypatch.setattr(LanguageModel, "scored", Task.scored)
    with pytest.raises(ConfigError, match=r"^compare needs a model that predicts words, and this run has the task lan"):
        compare([str(seeds["slow"]), str(seeds["fast"])])


def test_what_is_refused(seeds: dict[str, Path], ending: Path) -> None:
    slow, fast = str(seeds["slow"]), str(seeds["fast"])
    with pytest.raises(ConfigError, match="two models or more"):
        compare([slow])
    with pytest.raises(ConfigError, match="two models or more"):
        compare(slow)
    with pytest.raises(ConfigError, match=r"a run is given twice: .*seed-1; name each once"):
        compare([slow, f"{slow}/seed-1"])
    with pytest.raises(ConfigError, match=r"cannot be compared in one table: .*text is"):
        compare([slow, str(ending)], device="cpu")
    assert compare([slow, fast], batch_size=1, device="cpu").signature.split("columns:")[1].startswith("1|")


def test_runs_of_one_side_that_are_of_two_models_are_remarked_on(seeds: dict[str, Path]) -> None:
    slow, fast = seeds["slow"], seeds["fast"]
    mixed = f"{slow}/seed-1,{fast}/seed-2"
    (remark,) = compare([mixed, f"{slow}/seed-2"], device="cpu").remarks
    assert remark == f"the runs of {mixed} differ in more than the seed: optimizer.learning_rate, schedule.epochs"


def test_a_run_and_its_copy_are_not_two_seeds(seeds: dict[str, Path], tmp_path: Path) -> None:
    copy = shutil.copytree(seeds["slow"] / "seed-1", tmp_path / "copy")
    twice = f"{seeds['slow']}/seed-1,{copy}"
    remarks = compare([twice, str(seeds["fast"])], device="cpu").remarks
    told = f"runs of {twice} have the same seed (1), and trainings alike in all else are equal: then the deviation and the"
    assert [remark[: len(told)] for remark in remarks if "seed" in remark] == [told]


def shown_limits(found: Any) -> str:
    return f"$[{100 * found.low:+.2f}, {100 * found.high:+.2f}]$"


def test_the_last_checkpoints_are_not_called_the_best(seeds: dict[str, Path]) -> None:
    last = compare([str(seeds["slow"]), str(seeds["fast"])], device="cpu", which="last")
    assert {side.measures[0].measure for side in last.sides} == {"at the last checkpoint"}
    assert rows(last)[0][0] == "test at the last checkpoint"
    assert csv_text(last).splitlines()[1].startswith("test at the last checkpoint,")
    assert "% test at the last checkpoint: interval over sentences and seeds\n" in latex_text(last)


def test_the_table_as_csv_and_latex(report: RunsComparison) -> None:
    lines = list(csv.DictReader(io.StringIO(csv_text(report))))
    assert [line["measure"] for line in lines[::2]] == [
        "test at the best checkpoint",
        "validation, equal updates",
        "validation, equal CPU time",
    ]
    second = report.sides[1].measures[0]
    assert float(lines[1]["mean"]) == second.mean
    assert [float(value) for value in lines[1]["perplexities"].split()] == list(second.values)
    assert second.difference is not None
    assert second.difference.both is not None
    assert float(lines[1]["both_high"]) == second.difference.both.high
    assert lines[0]["difference"] == lines[3]["both_low"] == ""
    latex = latex_text(report)
    assert latex.startswith("% sememekit compare ")
    assert latex.count(r"\midrule") == 3
    assert rf"{second.mean:.2f} $\pm$ {second.sd:.2f}" in latex
    over_seeds, over_both, over_text = (getattr(second.difference, name) for name in ("seeds", "both", "sentences"))
    assert shown_limits(over_both) in latex
    assert shown_limits(over_seeds) not in latex
    assert "% test at the best checkpoint: interval over sentences and seeds\n" in latex
    assert "% validation, equal updates (60 updates): interval over seeds\n" in latex
    single = [side.model_copy(update={"runs": side.runs[:1]}) for side in report.sides]
    assert shown_limits(over_text) in latex_text(report.model_copy(update={"sides": single}))
    assert r"95\,\% interval" in latex
    shown = rows(report)
    assert [row[0] for row in shown] == [
        "test at the best checkpoint", "", "validation, equal updates (60 updates)", "", shown[4][0], ""
    ]  # fmt: skip
    assert shown[1][5] == f"{100 * second.difference.seeds.value:+.2f}"  # type: ignore[operator]


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.0312, "0.031 s"), (2.0, "2 s"), (9.87, "9.9 s"), (12.3, "12 s"), (1234.5, "1,234 s")]
)
def test_the_time_of_short_runs_is_shown(report: RunsComparison, seconds: float, shown: str) -> None:
    first = report.sides[0]
    timed = first.measures[2].model_copy(update={"budget": seconds})
    side = first.model_copy(update={"measures": (*first.measures[:2], timed)})
    brief = report.model_copy(update={"sides": (side, *report.sides[1:])})
    assert [row[0] for row in rows(brief)][4] == f"validation, equal CPU time ({shown})"
    assert f"validation, equal CPU time ({shown})" in latex_text(brief)


def test_the_curves_are_means_over_seeds_by_updates_and_by_time(report: RunsComparison) -> None:
    by_updates, by_time = curves(report)
    assert (by_updates.x, by_time.x) == ("training step", "seconds of training, CPU")
    line = by_updates.lines[1]
    assert line.name == "fast"
    assert [x for x, _ in line.points] == [30.0, 60.0, 90.0, 120.0]
    own = report.sides[1].curves
    assert line.points[2][1] == pytest.approx(math.sqrt(own[0][2][2] * own[1][2][2]))
    assert by_time.lines[1].points[-1][0] == pytest.approx((own[0][-1][1] + own[1][-1][1]) / 2)
    with pytest.raises(ConfigError, match="a chart has 4 lines at most, and there are 5 models"):
        curves(report.model_copy(update={"sides": report.sides * 3}).model_copy(update={"sides": (report.sides * 3)[:5]}))


def test_what_is_typed_and_what_is_written(seeds: dict[str, Path], tmp_path: Path) -> None:
    slow, fast = str(seeds["slow"]), str(seeds["fast"])
    files = ["--csv", str(tmp_path / "t.csv"), "--latex", str(tmp_path / "t.tex"), "--figure", str(tmp_path / "t.svg")]
    files += ["--html", str(tmp_path / "t.html")]
    for _ in range(2):  # files of its own kind are replaced
        done = runner.invoke(app, ["compare", slow, fast, *files, "--device", "cpu"])
        assert done.exit_code == 0, done.stderr
    assert "validation, equal updates" in done.stdout
    assert "signature: protocol" in done.stdout
    assert (tmp_path / "t.csv").read_text(encoding="utf-8").startswith("measure,budget,side,seeds,")
    assert b"<svg" in (tmp_path / "t.svg").read_bytes()
    page = check_page((tmp_path / "t.html").read_text(encoding="utf-8"))
    assert re.search(
        r"Perplexity on test at the best checkpoint: slow [\d.]+, fast [\d.]+ \([-+][\d.]+ %; 95 % over", page.text
    )
    printed = runner.invoke(app, ["compare", slow, fast, "--json", "--device", "cpu"])
    assert len(json.loads(printed.stdout)["sides"]) == 2
    (tmp_path / "mine.csv").write_text("a,b\n")
    for typed, code, message in (
        ((slow, fast, "--csv", str(tmp_path / "mine.csv")), 1, "is not a table that compare wrote"),
        ((slow, fast, "--by", "bleu"), 1, "--by bleu: it is for two files of 'eval --texts'"),
        ((str(tmp_path / "mine.csv"), slow), 2, "or bleu; given 2 and no --by"),
        ((str(tmp_path / "mine.csv"), slow, "--by", "blue"), 1, "--by 'blue' (did you mean 'bleu'?): allowed are gigaword"),
        ((str(tmp_path / "mine.csv"), slow, "--by", "bleu", "--latex", "x.tex"), 2, "--latex is for runs"),
    ):
        failed = runner.invoke(app, ["compare", *typed])
        assert (failed.exit_code, message in failed.stderr) == (code, True), failed.stderr
