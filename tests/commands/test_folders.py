"""Commands handle folders of strangers, foreign files at their outputs, full disks and too little memory."""

from __future__ import annotations

import errno
import shutil
import sys
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app
from sememekit.files import RunWarning
from sememekit.training import RunFolder
from tests.commands.refusals import refusal
from tests.commands.test_program import failing

runner = CliRunner()
CODE = """
from pathlib import Path
Path("executed").write_text("")
from sememekit.decoders.softmax import Softmax
class Mine(Softmax):
    pass
"""


@pytest.fixture
def run(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a run, in the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    return Path(shutil.copytree(models / "softmax", tmp_path / "run"))


def test_code_of_a_folder_needs_trust_or_to_be_typed(run: Path, tmp_path: Path) -> None:
    Path("lab_cli_trust.py").write_text(CODE)
    folder = RunFolder.open(run)
    settings = {key: value for key, value in folder.plan["decoder"].items() if key != "name"}
    folder.replace_plan({**folder.plan, "decoder": {"name": "lab_cli_trust:Mine", **settings}})
    text = tmp_path / "t.txt"
    text.write_text("今天 中国\n", encoding="utf-8")
    for command in (
        ["evaluate-ppl", str(run)],
        ["eval", str(run)],
        ["explain", str(run), "今天"],
        ["score", str(run), str(text)],
        ["generate", str(run)],
        ["analyze", str(run)],
        ["clusters", str(run)],
        ["cluster-update", str(run)],
        ["train", "--out", str(run), "--resume"],
        ["train", "--from", str(run), "--out", "other"],
    ):
        assert "names code to be run, decoder.name = 'lab_cli_trust:Mine'" in refusal(*command)
    assert not Path("executed").exists()
    assert not Path("other").exists()
    trusted = runner.invoke(app, ["evaluate-ppl", str(run), "--trust-code", "--json"])
    assert (trusted.exit_code, trusted.stderr) == (0, "")
    assert Path("executed").exists()
    typed = ["train", "--out", str(run), "--resume", "--decoder", "lab_cli_trust:Mine", "--quiet"]
    assert runner.invoke(app, typed).exit_code == 0
    assert runner.invoke(app, ["report", str(run)]).exit_code == 0, "it imports nothing"


def test_code_of_a_recipe_needs_trust_or_to_be_typed(run: Path, models: Path) -> None:
    Path("lab_cli_recipe.py").write_text(CODE)
    Path("mine.toml").write_text(
        '[decoder]\nname = "lab_cli_recipe:Mine"\n[row.cut]\n[row.cut.attack]\nsegmenter = "lab_cli_recipe:Cut"\n'
        '[row.held]\n[row.held.constraints."lab_cli_recipe:Held"]\n'
    )
    data = ["--data", str(models / "data"), "--out", "own"]
    recipe = ["train", "--recipe", "mine.toml", *data, "--print-plan"]
    attack = ["attack", "run", "--data", "x.tsv", "--out", "a", "--recipe"]
    for command, name in (
        (recipe, "decoder.name = 'lab_cli_recipe:Mine'"),
        (["sweep", *recipe[1:-1], "--over", "task.input_dropout=0.1,0.2", "--trials", "1"], "decoder.name = "),
        ([*attack, "mine.toml:cut"], "decoder.name = "),
        ([*attack, "mine.toml:held"], "decoder.name = "),
    ):
        assert f"names code to be run, {name}" in refusal(*command)
    Path("other.toml").write_text(Path("mine.toml").read_text().partition("\n[row")[2].join(["[row", ""]))
    assert "attack.segmenter = 'lab_cli_recipe:Cut'" in refusal(*attack, "other.toml:cut")
    assert "constraints.lab_cli_recipe:Held = " in refusal(*attack, "other.toml:held")
    checked = runner.invoke(app, ["recipes", "validate", "mine.toml"])
    assert (checked.exit_code, "names code to be run" in checked.output) == (1, True)
    assert not Path("executed").exists()
    assert runner.invoke(app, [*recipe, "--decoder", "lab_cli_recipe:Mine"]).exit_code == 0
    assert runner.invoke(app, [*recipe, "--trust-code"]).exit_code == 0
    assert Path("executed").exists()


def test_a_class_of_the_working_folder_is_trained(run: Path, models: Path) -> None:
    Path("lab_cli_own.py").write_text(CODE)
    done = runner.invoke(
        app, ["train", "--data", str(models / "data"), "--out", "own", "--decoder", "lab_cli_own:Mine", "--print-plan"]
    )
    assert (done.exit_code, done.stderr) == (0, "")
    for name in ("os:system", ":", "sys:exit"):
        assert "decoder" in refusal("train", "--data", str(models / "data"), "--out", "own", "--decoder", name)
    for segmenter in ("sys:exit", "os:system"):
        text = str(models / "text.txt")
        assert "no segmenter" in refusal("preprocess", "plain", text, "--segmenter", segmenter, "--out", "cut")


def test_outputs_replace_no_foreign_files(run: Path, models: Path) -> None:
    thesis = Path("thesis.txt")
    thesis.write_text("my thesis\n")
    source = ["--source", f"hownet2000:{models / 'lexicon.tsv'}", "--data", str(models / "data")]
    explain = ["explain", str(run), "今天", "--html"]
    for command in (
        ["build-sememe-graph", *source, "--out"],
        explain,
        ["report", str(run), "--html"],
        ["analyze", str(run), "--html"],
    ):
        assert "is not replaced" in refusal(*command, "thesis.txt")
        assert "a folder" in refusal(*command, str(run))
        assert "no regular file" in refusal(*command, "/dev/null")
    assert thesis.read_text() == "my thesis\n"
    assert not Path("/dev/null").is_file()
    for _ in range(2):
        assert runner.invoke(app, [*explain, "page.html"]).exit_code == 0
        assert runner.invoke(app, ["build-sememe-graph", *source, "--out", "g.graph"]).exit_code == 0
    assert "is not replaced" in refusal(*explain, "g.graph")


@pytest.mark.parametrize(
    "arguments",
    [
        ["preprocess", "plain", "text.txt", "--out", "taken"],
        ["preprocess", "plain", "text.txt", "--out", "taken", "--force"],
        ["train", "--data", "DATA", "--out", "taken"],
        ["train", "--data", "DATA", "--out", "taken", "--resume"],
        ["sweep", "--data", "DATA", "--out", "taken", "--over", "task.input_dropout=0.1,0.2", "--trials", "1"],
        ["quickstart", "--text", "text.txt", "--out", "taken"],
        ["quickstart", "--text", "text.txt", "--out", "taken", "--fresh"],
        ["attack", "mine:predict", "--labels", "a,b", "--data", "x.tsv", "--source", "open", "--out", "taken"],
    ],
    ids=lambda arguments: arguments[0] + (arguments[-1] if arguments[-1] in ("--force", "--resume", "--fresh") else ""),
)
def test_a_folder_of_other_files_is_left_alone(run: Path, models: Path, arguments: list[str]) -> None:
    """One rule for every command that writes a folder: what it did not write stays, whatever is typed."""
    Path("taken").mkdir()
    Path("taken/mine.txt").write_text("mine", encoding="utf-8")
    Path("text.txt").write_text("今天 的 工人 看 电影 。\n" * 80, encoding="utf-8")
    Path("x.tsv").write_text("good film\ta\nbad film\tb\n", encoding="utf-8")
    Path("mine.py").write_text("def predict(texts):\n    return [[0.4, 0.6] for _ in texts]\n", encoding="utf-8")
    told = refusal(*(str(models / "data") if word == "DATA" else word for word in arguments))
    assert "taken" in told
    assert [entry.name for entry in Path("taken").iterdir() if entry.name != ".lock"] == ["mine.txt"]
    assert Path("taken/mine.txt").read_text(encoding="utf-8") == "mine"


def test_figures_are_drawn_where_there_is_a_chart_and_refused_elsewhere(run: Path) -> None:
    Path("mine.svg").write_text("<svg/>")
    for command in (["report", str(run)], ["analyze", str(run)]):
        assert "must end in .png, .svg or .pdf" in refusal(*command, "--figure", "one.jpg")
        assert "is not replaced" in refusal(*command, "--figure", "mine.svg")
        result = runner.invoke(app, [*command, "--figure", f"{command[0]}.svg"])
        assert (result.exit_code, "figure: " in result.stderr) == (0, True)
        assert Path(f"{command[0]}.svg").read_text().startswith("<?xml")
    assert "there is nothing to draw here" in refusal("explain", str(run), "今天", "--figure", "one.svg"), "it has no sememes"


@pytest.mark.parametrize(
    ("error", "fragment"),
    [
        (
            RuntimeError(
                "[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you asked to allocate "
                "42949672960 bytes. Error code 12"
            ),
            "out of memory; use a smaller batch",
        ),
        (OSError(errno.ENOSPC, "No space left on device", "run/x"), "what was whole before is whole still: run/x"),
    ],
)
def test_too_little_memory_and_disk_are_told_with_a_remedy(error: Exception, fragment: str) -> None:
    result = runner.invoke(failing(error), ["work"])
    assert result.exit_code == 1
    assert fragment in result.stderr
    assert "bug" not in result.stderr


def test_a_remark_about_a_folder_is_one_line_unless_quiet(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = RunFolder.open

    def remarking(path: Path) -> RunFolder:
        warnings.warn(f"{path} is old", RunWarning, stacklevel=2)
        return opened(path)

    monkeypatch.setattr(RunFolder, "open", remarking)
    result = runner.invoke(app, ["evaluate-ppl", str(run), "--json"])
    assert result.exit_code == 0
    assert result.stderr == f"sememekit: remark: {run} is old\n"
    assert result.stderr.count("\n") == 1
    assert runner.invoke(app, ["evaluate-ppl", str(run), "--json", "--quiet"]).stderr == ""
    assert issubclass(RunWarning, UserWarning)
