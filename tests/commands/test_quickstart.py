"""The quickstart at toy size: what it leaves, what it says, and how it goes on."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app
from sememekit.config import apply_overrides, load_recipe
from sememekit.errors import ConfigError, DataError, TrainingError
from sememekit.files import sealed
from sememekit.jobs import quickstart as module
from sememekit.jobs.quickstart import (
    CONTEXTS,
    LATTICE,
    MODELS,
    _alone,
    _begin,
    _finished,
    _in_words_of_quickstart,
    _next_commands,
    quickstart,
)
from sememekit.jobs.quickstart_text import Drawn
from sememekit.jobs.trainings import Trained, _stopped_before_it_began, train_all
from sememekit.reports.quickstart import ModelRow, QuickstartReport, TextSummary, parts, report_page
from sememekit.signals import STOPPING
from sememekit.training import RunFolder
from tests.commands.processes import play_processes
from tests.pages import check_page

WORDS = (
    *("去年/t", "美国/ns", "贸易/n", "中国/ns", "政府/n", "坚持/v", "改革/v", "开放/v", "的/u"),
    *("他/r", "每天/r", "学习/v", "估计/v", "为/p", "初步/d", "经济/n", "今天/t", "在/p"),
)
TOY = (
    "task.embedding_size=6",
    "encoder.hidden_size=6",
    "encoder.num_layers=1",
    "task.batch_size=4",
    "optimizer.learning_rate=0.01",
    "schedule.epochs=2",
    "run.stall_epochs=0",
)


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagged month of random sentences."""
    draw = random.Random(1)
    lines = [" ".join([*draw.choices(WORDS, k=12), "５/m", "个/q", "。/w"]) for _ in range(300)]
    path = tmp_path_factory.mktemp("month") / "month.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def row(name: str, perplexity: float) -> ModelRow:
    return ModelRow(
        name=name,
        run=name,
        parameters=100,
        epochs=2,
        best_epoch=2,
        ended_because="2 epochs done",
        valid_by_epoch=(300.0, perplexity),
        best_valid=perplexity,
        test_perplexity=perplexity,
        per_character=None,
        bits_per_byte=None,
        tokens=10,
        training_seconds=1.0,
        tokens_per_second=10.0,
        signature="protocol:1",
    )


def test_the_recipes_are_twins() -> None:
    softmax, sdlm = (load_recipe(f"quickstart/{name}") for name in MODELS)
    assert {slot for slot in sdlm if sdlm[slot] != softmax.get(slot)} == {"graph", "decoder"}


@pytest.mark.parametrize(("sememes", "said"), [(90.0, "10.0 % lower"), (110.0, "10.0 % higher")])
def test_the_verdict_is_honest_either_way(sememes: float, said: str) -> None:
    report = QuickstartReport(out="x", models=(row("softmax", 100.0), row("sdlm", sememes)), seconds=1.0)
    assert said in str([*parts(report)][1])


def test_a_page_without_much_is_a_page() -> None:
    html = report_page(QuickstartReport(out="x", models=(row("softmax", 100.0), row("sdlm", 100.0)), seconds=1.0))
    assert "<svg" in html
    check_page(html)


def test_wrong_folders_and_shares_are_errors(tmp_path: Path, month: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(ConfigError, match="files that quickstart did not write"):
        quickstart(tmp_path / "mine", fresh=True)
    assert (tmp_path / "mine" / "thesis.tex").exists()
    with pytest.raises(ConfigError, match="files that quickstart did not write"):
        quickstart(tmp_path / "mine" / "thesis.tex", month=month)
    for share in (0.0, 1.01):
        with pytest.raises(ConfigError, match=rf"the share must lie above 0 and be 1 at most, given {share:g}"):
            quickstart(tmp_path / "out", share=share, month=month)
    with pytest.raises(DataError, match="no such file"):
        quickstart(tmp_path / "out", month=tmp_path / "absent.txt")
    assert not (tmp_path / "out").exists()


def test_a_wrong_setting_is_found_before_anything_is_done(tmp_path: Path, month: Path) -> None:
    with pytest.raises(ConfigError, match="hiden_size"):
        quickstart(tmp_path / "out", month=month, overrides=["encoder.hiden_size=6"])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["settings.json", "text/month.txt", "report.html", "quickstart.json"])
def test_its_files_are_written_whole_or_not_at_all(
    tmp_path: Path, month: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Killed just before the rename of a file, it leaves nothing of that name, and the same command goes on."""

    class KilledError(BaseException):
        pass

    real, out = os.replace, tmp_path / "out"

    def replace(source: Path, target: Path) -> None:
        if Path(target) == out / name:
            raise KilledError
        real(source, target)

    trained: dict[str, Trained] = {}
    monkeypatch.setattr("sememekit.jobs.quickstart.train_all", lambda *rest, **more: trained)
    monkeypatch.setattr("sememekit.jobs.quickstart.CONTEXTS", ())
    monkeypatch.setattr("sememekit.jobs.quickstart.Run.open", lambda *rest, **more: None)
    monkeypatch.setattr("sememekit.jobs.quickstart.evaluate_explanations", lambda *rest, **more: None)
    monkeypatch.setattr("sememekit.jobs.quickstart.report_page", lambda report: "a page")
    with monkeypatch.context() as killed:
        killed.setattr("sememekit.files.writing.os.replace", replace)
        with pytest.raises(KilledError):
            quickstart(out, share=0.5, month=month, overrides=TOY)
    assert not (out / name).exists()
    report = quickstart(out, share=0.5, month=month, overrides=TOY)
    assert (out / name).is_file()
    assert not report.already_done
    (out / "report.html").unlink()
    assert quickstart(out, share=0.5, month=month, overrides=TOY).already_done
    assert (out / "report.html").is_file()


def test_a_report_that_was_changed_is_made_again(tmp_path: Path) -> None:
    models = (row("softmax", 100.0), row("sdlm", 90.0))
    report = QuickstartReport(out=str(tmp_path), models=models, seconds=2.5, next_commands=())
    path = tmp_path / "quickstart.json"
    path.write_bytes(sealed(json.loads(report.model_dump_json())))
    assert _finished(tmp_path) == report.model_copy(update={"already_done": True})
    path.write_bytes(path.read_bytes().replace(b"2.5", b"1.5"))
    assert _finished(tmp_path) is None


def test_the_job_in_little_has_every_part_of_its_report(tmp_path: Path, month: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All three models are trained in threads, one epoch each; the page is drawn elsewhere."""
    out, told, asked = tmp_path / "out", list[tuple[Any, ...]](), dict[str, Any]()
    sizes = ("task.embedding_size=6", "task.sub_size=4", "task.batch_size=8", "task.num_chunks=40", "encoder.hidden_size=6")
    evaluate = module.evaluate_explanations

    def smaller(out: Path, tables: dict[str, Any], *rest: Any) -> dict[str, Trained]:
        return train_all(out, {**tables, LATTICE: apply_overrides(tables[LATTICE], [*sizes, "schedule.epochs=1"])}, *rest)

    def evaluated(run: Any, *, progress: Any, **given: Any) -> Any:
        asked.update(given)
        return evaluate(run, progress=progress, **given)

    play_processes(monkeypatch)
    monkeypatch.setattr("sememekit.jobs.quickstart_text.LEAST_CHARACTERS", 1000)
    monkeypatch.setattr(module, "train_all", smaller)
    monkeypatch.setattr(module, "evaluate_explanations", evaluated)
    monkeypatch.setattr(module, "report_page", lambda report: "a page")
    overrides = [*TOY, "schedule.epochs=1", "task.batch_size=16"]
    began, spent = time.perf_counter(), time.process_time()
    report = quickstart(out, share=0.5, month=month, overrides=overrides, device="cpu", progress=lambda *one: told.append(one))
    seconds, spent = time.perf_counter() - began, time.process_time() - spent
    assert [one[1:] for one in told if one[0] == "text and graph"] == [(done, 3) for done in range(4)]
    stages = {
        *(f"{verb} {name}" for verb in ("train", "test") for name in (*MODELS, LATTICE)),
        "text and graph",
        "explanations",
    }
    assert {one[0] for one in told} == stages
    assert report.text == TextSummary(
        month="month.txt",
        paragraphs=153,
        paragraphs_of_month=300,
        tokens={"train": 1605, "valid": 225, "test": 465},
        vocabulary=22,
        unknown_rate=0.0,
        annotated=1.0,
    )
    assert (report.out, report.page, report.stopped, report.already_done) == (str(out), str(out / "report.html"), False, False)
    for model, name in zip(report.models, MODELS, strict=True):
        (epoch,) = RunFolder.open(out / name).epochs()
        assert (model.name, model.run, model.tokens, model.epochs, model.best_epoch) == (name, str(out / name), 464, 1, 1)
        assert model.valid_by_epoch == (epoch["valid"]["perplexity"],) == (model.best_valid,)
        assert (model.training_seconds, model.tokens_per_second) == (epoch["seconds"], epoch["tokens_per_second"])
        assert model.test_perplexity != model.best_valid
    assert [model.parameters for model in report.models] == [490, 1016]
    for explanations, name, sememes in ((report.explanations, "sdlm", 8), (report.softmax_guesses, "softmax", 0)):
        read = ["".join(word.word for word in one.context) for one in explanations]
        assert read == [context.replace(" ", "") for context in CONTEXTS]
        assert {one.run for one in explanations} == {str(out / name)}
        assert {(len(one.words), len(one.sememes)) for one in explanations} == {(5, sememes)}
    assert asked == {"tops": (5,), "contexts": 4000}
    assert report.scores is not None
    assert {score.top for score in report.scores.rankings} == {5}
    assert report.lattice is not None
    assert (report.lattice.run, report.lattice.epochs, report.no_lattice) == (str(out / LATTICE), 1, "")
    assert report.cpu_seconds.keys() == {"text and graph", *MODELS, LATTICE, "results"}
    assert min(report.cpu_seconds.values()) > 0
    assert report.cpu_seconds["text and graph"] + report.cpu_seconds["results"] < spent
    assert 0 < report.seconds <= seconds
    assert report.next_commands == _next_commands(out, CONTEXTS, "上海市体育局召开会议")
    assert (out / "report.html").read_text(encoding="utf-8") == "a page"
    (out / "report.html").unlink()
    assert quickstart(out, share=0.5, month=month, overrides=overrides) == report.model_copy(update={"already_done": True})
    assert (out / "report.html").read_text(encoding="utf-8") == "a page"


def test_what_to_type_next_depends_on_what_there_is() -> None:
    first, *rest = commands = _next_commands(Path("my out"), ["今天 在"], "我的小说")
    assert first == "sememekit serve 'my out/sdlm'"
    assert rest == [
        "sememekit explain 'my out/sdlm' \"今天 在\" --html why.html",
        "sememekit evaluate-ppl 'my out/sdlm' --by senses",
        "echo '我的小说' | sememekit segment --model 'my out/lattice'",
        "sememekit train --recipe quickstart/sdlm --data 'my out/data' --graph 'my out/data.graph' --out 'my out/mine' "
        "--set decoder.num_bases=5",
    ]
    assert _next_commands(Path("my out"), [], "") == (first, commands[2], commands[4])


@pytest.mark.slow
def test_an_error_in_training_comes_home(tmp_path: Path, month: Path) -> None:
    with pytest.raises(ConfigError, match="must be equal"):
        quickstart(tmp_path / "out", share=1.0, month=month, overrides=[*TOY, "encoder.hidden_size=5"])


@pytest.mark.slow
def test_the_whole_job(tmp_path: Path, month: Path, real_charts: None) -> None:
    out = tmp_path / "out"
    stages: set[str] = set()
    report = quickstart(
        out, share=1.0, month=month, overrides=TOY, device="cpu", progress=lambda stage, done, total: stages.add(stage)
    )
    assert [model.name for model in report.models] == list(MODELS)
    assert len({model.signature for model in report.models}) == 1
    assert all(len(model.valid_by_epoch) == model.epochs == 2 for model in report.models)
    assert stages == {"text and graph", "explanations", *(f"{verb} {name}" for verb in ("train", "test") for name in MODELS)}
    assert report.scores is not None
    assert report.scores.positions > 100
    assert {score.top for score in report.scores.rankings} == {5}
    assert len(report.explanations) == len(CONTEXTS) == 3
    assert [command.split()[1] for command in report.next_commands] == ["serve", "explain", "evaluate-ppl", "train"]
    page = check_page((out / "report.html").read_text(encoding="utf-8"))
    shown = ("plain softmax", "改革", "国家", "gain (probability minus mean)")
    assert [word for word in shown if word not in page.text] == []
    assert "Validation perplexity by epoch: " in (out / "report.html").read_text(encoding="utf-8")
    (any_of_rise,) = (score.any.value for score in report.scores.rankings if score.ranking == "rise")
    assert any_of_rise is not None
    assert f"In {100 * any_of_rise:.0f} % of {report.scores.positions:,} positions" in page.text
    again = quickstart(out, share=1.0, month=month, overrides=TOY)
    assert again == report.model_copy(update={"already_done": True})
    (out / "quickstart.json").unlink()  # as if it had been killed after training
    before = (out / "sdlm" / "metrics.jsonl").read_bytes()
    resumed = quickstart(out, share=1.0, month=month, overrides=TOY, device="cpu")
    assert (out / "sdlm" / "metrics.jsonl").read_bytes() == before
    assert [model.test_perplexity for model in resumed.models] == [model.test_perplexity for model in report.models]


@pytest.mark.slow
def test_the_command_prints_a_table_and_what_to_type_next(tmp_path: Path) -> None:
    flags = [part for override in TOY for part in ("--set", override)]
    out = str(tmp_path / "out")
    result = CliRunner().invoke(app, ["quickstart", "--out", out, "--share", "0.01", "--device", "cpu", *flags])
    assert result.exit_code == 0, result.stderr
    assert "test perplexity" in result.stdout
    assert result.stdout.count("  sememekit ") == 4
    figure = tmp_path / "curves.png"
    shown = CliRunner().invoke(app, ["quickstart", "--out", out, "--share", "0.01", *flags, "--json", "--figure", str(figure)])
    assert "finished already" in shown.stderr
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert {"models", "explanations", "next_commands", "page"} <= set(json.loads(shown.stdout))


def test_the_advice_of_training_is_put_into_words_that_quickstart_knows() -> None:
    command = "sememekit quickstart --out tour --share 0.02 --set run.stall_epochs=2"
    told = "stuck; change the rate (--set optimizer.learning_rate=5, or 80), or wait longer (--resume --set run.stall_epochs=8)"
    error = _in_words_of_quickstart(TrainingError(told), command)
    assert isinstance(error, TrainingError)
    assert "(--fresh --set optimizer.learning_rate=5, or 80)" in str(error)
    assert f"({command} --set run.stall_epochs=8)" in str(error)
    assert "--resume" not in str(error)


def test_what_was_begun_with_other_settings_or_another_text_is_not_continued(tmp_path: Path) -> None:
    one, other = (Drawn("plain", tmp_path / "mine.txt", 1.0, [line], 1) for line in ("one", "other"))
    settings = {"seed": 1, "segmenter": None}
    _begin(tmp_path, settings, one, "the command", fresh=False)
    (tmp_path / "sdlm").mkdir()
    (tmp_path / "quickstart.json").touch()
    _begin(tmp_path, settings, one, "the command", fresh=False)
    with pytest.raises(ConfigError, match=r"other settings than seed 2; .*: the command --fresh$"):
        _begin(tmp_path, {**settings, "seed": 2}, other, "the command", fresh=False)
    with pytest.raises(ConfigError, match=r"another text than .*mine\.txt has now; .*: the command --fresh$"):
        _begin(tmp_path, settings, other, "the command", fresh=False)
    assert {path.name for path in tmp_path.iterdir()} == {"quickstart.json", "sdlm", "settings.json"}
    _begin(tmp_path, settings, other, "the command", fresh=True)
    assert {path.name for path in tmp_path.iterdir()} == {"settings.json"}
    (tmp_path / "data").mkdir()
    _begin(tmp_path, settings, other, "the command", fresh=True)
    assert not (tmp_path / "data").exists(), "with equal settings, too"


def test_what_a_resumed_run_may_change_needs_no_fresh_start(
    tmp_path: Path, month: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sememekit.jobs.quickstart._go_on", lambda *rest: QuickstartReport(out="x", seconds=1.0))
    quickstart(tmp_path / "out", share=0.5, month=month, overrides=TOY)
    (tmp_path / "out" / "sdlm").mkdir()
    quickstart(tmp_path / "out", share=0.5, month=month, overrides=[*TOY, "run.report_every=8"])
    with pytest.raises(ConfigError, match=r"other settings than overrides \["):
        quickstart(tmp_path / "out", share=0.5, month=month, overrides=[*TOY, "encoder.dropout=0.1"])


def test_a_call_that_was_refused_before_it_trained_binds_no_later_one(tmp_path: Path) -> None:
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text(f"{name}\n" * 80, encoding="utf-8")
        with pytest.raises(DataError, match=r"gives \d+ training words"):
            quickstart(tmp_path / "out", text=tmp_path / name, segmenter="none")
        assert (tmp_path / "out" / "text" / "lines.txt").read_text(encoding="utf-8") == f"{name}\n" * 80


def test_a_quickstart_that_was_killed_in_its_first_moment_left_a_folder_of_its_own(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    for _ in range(2):
        with _alone(out):
            (out / ".settings.json.writing").touch()
    assert {path.name for path in out.iterdir()} == {".lock", ".settings.json.writing"}


def test_two_at_once_do_not_write_one_folder(tmp_path: Path) -> None:
    """The second would remove what the first one writes."""
    (tmp_path / "one.txt").write_text("one\n" * 80, encoding="utf-8")
    with _alone(tmp_path / "out"), pytest.raises(ConfigError, match=r"is being written by another quickstart \(process"):
        quickstart(tmp_path / "out", text=tmp_path / "one.txt")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".lock"]


def test_a_signal_before_training_ends_with_the_command_that_goes_on(
    tmp_path: Path, month: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*rest: object, **extra: object) -> None:
        signal.raise_signal(signal.SIGTERM)
        pytest.fail("the signal is obeyed at once")

    monkeypatch.setattr("sememekit.jobs.quickstart_text.preprocess", interrupted)
    before = signal.getsignal(signal.SIGTERM)
    report = quickstart(tmp_path / "out", share=0.5, month=month, overrides=TOY)
    assert report.stopped
    assert report.next_commands[0].startswith(f"sememekit quickstart --out {tmp_path / 'out'} --share 0.5 --set ")
    assert signal.getsignal(signal.SIGTERM) == before


def test_once_a_signal_stopped_it_no_further_one_ends_the_program_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that loaded torch takes some tenths of a second to end after the last line is printed."""
    text = tmp_path / "one.txt"
    text.write_text("去年 美国 贸易\n" * 400, encoding="utf-8")
    before = {number: signal.getsignal(number) for number in STOPPING}
    monkeypatch.setattr("sememekit.jobs.quickstart_text.preprocess", lambda *rest, **extra: signal.raise_signal(signal.SIGTERM))
    try:
        result = CliRunner().invoke(app, ["quickstart", "--out", str(tmp_path / "out"), "--text", str(text)])
        assert (result.exit_code, "go on with: sememekit quickstart" in result.stderr) == (75, True)
        assert {signal.getsignal(number) for number in before} == {signal.SIG_IGN}
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_model_that_was_stopped_while_it_was_loading_has_a_report() -> None:
    report = _stopped_before_it_began(Path("out/sdlm")).report
    assert (report.run, report.stopped, report.epochs) == ("out/sdlm", True, 0)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment", ["program", "children", "training"])
def test_signals_to_the_process_and_its_group_at_any_moment(tmp_path: Path, number: signal.Signals, moment: str) -> None:
    """A terminal, ``timeout`` and Slurm send signals to all processes, and to the first once more."""
    out = tmp_path / "out"
    flags = [part for override in (*TOY, "schedule.epochs=40", "run.report_every=1") for part in ("--set", override)]
    command = [sys.executable, "-m", "sememekit", "quickstart", "--out", str(out), "--share", "0.02", "--device", "cpu", *flags]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    wanted = {"program": [], "children": [out / "data.graph"], "training": [out / name / "metrics.jsonl" for name in MODELS]}
    while process.poll() is None and not all(path.is_file() for path in wanted[moment]):
        time.sleep(0.02)
    time.sleep(1.5)  # while the program loads, while the children load, in the middle of an epoch
    for _ in range(3):
        os.killpg(process.pid, number)
        process.send_signal(number)
        time.sleep(0.2)
    error = process.communicate(timeout=240)[1]
    assert process.returncode == 75, error
    assert error.startswith("stopped by a signal")
    assert error.count("\n") == 1, error


@pytest.mark.slow
def test_a_signal_stops_both_models_and_the_same_command_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    flags = [part for override in (*TOY, "schedule.epochs=40", "run.report_every=1") for part in ("--set", override)]
    command = [sys.executable, "-m", "sememekit", "quickstart", "--out", str(out), "--share", "0.02", "--device", "cpu", *flags]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        metrics = [out / name / "metrics.jsonl" for name in MODELS]
        while process.poll() is None and not all(path.is_file() and path.stat().st_size > 1000 for path in metrics):
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert "go on with: sememekit quickstart" in process.communicate(timeout=240)[1]
    assert process.returncode == 75
    assert not (out / "quickstart.json").exists()
    steps = [max(json.loads(line)["step"] for line in path.read_text().splitlines()) for path in metrics]
    result = CliRunner().invoke(app, command[3:])
    assert result.exit_code == 0, result.stderr
    for path, step in zip(metrics, steps, strict=True):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert [line["step"] for line in lines if line["kind"] == "StepReport"] == list(range(1, lines[-1]["step"] + 1))
        assert lines[-1]["step"] > step
