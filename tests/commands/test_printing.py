"""Output for people and scripts: TOML that reads back, bars on a terminal alone, numbers."""

from __future__ import annotations

import ast
import io
import json
import re
import tomllib
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sememekit.commands._printing import hint, print_json, print_table, remark, result_console, say
from sememekit.commands._program import _remarks, app
from sememekit.commands._progress import ProgressLines, TrainingProgress, epoch_line, progress_bars
from sememekit.config import load_recipe, recipe_names
from sememekit.figures import format_value
from sememekit.files import RunWarning
from sememekit.jobs.recipes import toml_text
from sememekit.jobs.train import Position, TrainReport
from sememekit.training import EpochReport, StepReport, StopReport

KEYS = st.text("abc_", min_size=1, max_size=4)
VALUES = st.one_of(
    st.integers(-(2**60), 2**60),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=6),
    st.lists(st.integers(-5, 5), max_size=3),
)
TABLES = st.dictionaries(KEYS, st.one_of(VALUES, st.dictionaries(KEYS, VALUES, max_size=3)), max_size=4)


@given(st.dictionaries(KEYS, TABLES, max_size=4))
def test_a_table_printed_as_toml_reads_back(table: dict) -> None:
    assert tomllib.loads(toml_text(table)) == table


def test_toml_has_characters_as_they_are_and_a_line_between_tables() -> None:
    """A table of tables alone has no line of its own; an empty table has."""
    table = {"word": "贸易\x7f", "a": {"b": {"c": 1, "d": {}}, "e": {"f": [1, 2]}}}
    assert toml_text(table) == 'word = "贸易\\u007f"\n\n[a.b]\nc = 1\n\n[a.b.d]\n\n[a.e]\nf = [1, 2]'


def test_every_recipe_printed_as_toml_reads_back() -> None:
    for name in recipe_names():
        recipe = load_recipe(name)
        assert tomllib.loads(toml_text(recipe)) == recipe


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


STEP = StepReport(epoch=1, batch=5, num_batches=10, step=5, nats=6.5, rate=20.0, tokens_per_second=4321.0)
EPOCH = EpochReport(
    epoch=1,
    step=10,
    train_nats=6.25,
    valid={"perplexity": 345.678},
    rate=20.0,
    best=True,
    rate_cut=False,
    finished="",
    seconds=2.0,
    tokens_per_second=4321.0,
)


def show_everything(quiet: bool) -> None:
    with progress_bars(quiet) as show:
        show("reading", 1, None)
        show("reading", 2, 10)
        show("reading", 10, 10)
    with progress_bars(quiet) as show:
        report = TrainingProgress(show, quiet, verbose=False)
        report.at(Position(1, 0, 0, 3))
        report.at(Position(1, 1, 4, 3))
        report.at(Position(1, 2, 4, 3))
        report(STEP)
        report(EPOCH)
        report(StopReport(epoch=2, step=11, checkpoint="last"))


def test_progress_is_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    stderr = Terminal()
    monkeypatch.setattr("sys.stderr", stderr)
    show_everything(quiet=False)
    hint("next: this", quiet=False)
    shown = stderr.getvalue()
    for text in (
        "reading",
        "100 %",
        "getting ready",
        "epoch 1 of 3, batch 2 of 4",
        "valid perplexity 345.68",
        "4,321 tokens a second",
        "best so far",
        "next: this",
    ):
        assert text in shown


@pytest.mark.parametrize(("verbose", "lines"), [(False, 2), (True, 4)])
def test_a_log_file_says_every_half_a_minute_where_a_training_is(
    verbose: bool, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter(16.0 * step for step in range(9))
    monkeypatch.setattr(ProgressLines.__init__, "__defaults__", (lambda: next(times),))
    with progress_bars(quiet=verbose) as show:
        report = TrainingProgress(show, quiet=False, verbose=verbose)
        for batch in range(5):
            report.at(Position(2, batch, 1200, 3))
            if batch == 1:
                report(STEP)
    shown = [line for line in capsys.readouterr().err.splitlines() if "batch" in line]
    assert len(shown) == lines
    where = f"epoch 2 of 3, batch {4 if verbose else 3} of 1,200, loss 6.500, 4,321 a second, rate 20"
    assert shown[-1] == (where if verbose else f"training: 33 %, {where}, about 10:39:12 left")


def test_a_log_file_has_the_stages_at_hand_every_half_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter((0.0, 10.0, 29.0, 30.0, 45.0, 61.0, 62.0))
    lines = ProgressLines(now=lambda: next(times, 1000.0))
    lines("reading", 100, None)  # at 10 s
    lines("train softmax", 1, 8)  # at 29 s
    assert capsys.readouterr().err == ""
    lines("train sdlm", 1, 10)  # at 30 s
    assert capsys.readouterr().err == "reading: 100; train softmax: 12 %; train sdlm: 10 %\n"
    lines("train softmax", 8, 8)  # at 45 s
    lines("reading", 1200, None)  # at 61 s
    assert capsys.readouterr().err == "reading: 1,200; train sdlm: 10 %\n"
    lines("train sdlm", 10, 10)
    lines("reading", 1200, 1200)
    assert capsys.readouterr().err == "", "nothing is at hand"


@pytest.mark.parametrize(("stderr", "quiet"), [(io.StringIO(), False), (Terminal(), True)])
def test_without_a_terminal_or_when_quiet_nothing_is_drawn(
    monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO, quiet: bool
) -> None:
    monkeypatch.setattr("sys.stderr", stderr)
    show_everything(quiet)
    hint("next: this", quiet)
    remark("a remark", quiet)
    lines = stderr.getvalue().splitlines()
    if quiet:
        assert lines == []
        return
    assert lines.pop() == "a remark"
    assert len(lines) == 1, "a log file has a line an epoch"
    with progress_bars(quiet=False) as show:
        assert isinstance(show, ProgressLines)
    assert lines[0].startswith("epoch 1: training loss 6.250 nats/token, valid perplexity 345.68; 4,321 tokens a second; ")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567, "1,234,567"),
        (0.123456, "0.1235"),
        (1234.5678, "1,234.57"),
        (True, "yes"),
        (None, "–"),
        ({"a": 1000, "b": 0.5}, "a 1,000, b 0.5"),
        (("x", 2), "x, 2"),
    ],
)
def test_values_as_people_read_them(value: object, text: str) -> None:
    assert format_value(value) == text


HOSTILE = "苹果\x1b[31m\x1b]0;title\x07\x9b2J\u202e\x7f"


class BareTerminal(Terminal):
    encoding = "utf-8"


def test_controls_are_shown_on_a_terminal_and_stay_bytes_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, pipe = BareTerminal(), io.StringIO()
    monkeypatch.setattr("sys.stdout", terminal)
    say(1, HOSTILE, sep="\t")
    assert terminal.getvalue() == "1\t苹果␛[31m␛]0;title␇\ufffd2J\ufffd␡\n"
    monkeypatch.setattr("sys.stdout", pipe)
    say(1, HOSTILE, sep="\t")
    assert pipe.getvalue() == f"1\t{HOSTILE}\n"


def test_tables_and_consoles_show_controls_whoever_made_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = BareTerminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    print_table(HOSTILE, (HOSTILE, "n"), [(HOSTILE, 1)])
    result_console().print(HOSTILE, soft_wrap=True)
    printed = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue().replace("\x1b[31m\x1b]", "OBEYED"))
    assert "OBEYED" not in printed
    assert not set(printed) & set("\x1b\x07\x9b\u202e\x7f")
    assert printed.count("␛]0;title") == 4


def test_remarks_and_errors_show_controls(capsys: pytest.CaptureFixture[str]) -> None:
    remark(HOSTILE, quiet=False)
    assert "\x1b" not in capsys.readouterr().err
    assert app(["evaluate-ppl", "no\x1b[31mrun"], standalone_mode=False) == 1
    assert "no␛[31mrun" in capsys.readouterr().err


def test_remarks_of_libraries_and_json_obey_no_control(capsys: pytest.CaptureFixture[str]) -> None:
    with _remarks([]):
        warnings.warn(f"a run called {HOSTILE}", RunWarning, stacklevel=1)
    assert not set(capsys.readouterr().err) & set("\x1b\x07\x9b\u202e\x7f")
    print_json(TrainReport.model_construct(run=HOSTILE))
    printed = capsys.readouterr().out
    assert not set(printed) & set("\x1b\x07\x9b\u202e\x7f")
    assert json.loads(printed)["run"] == HOSTILE


def test_results_are_printed_by_the_function_that_shows_controls() -> None:
    """A bare print in a subcommand would let a word of a corpus talk to the terminal."""
    bare = []
    for path in sorted((Path(__file__).parents[2] / "sememekit" / "commands").rglob("*.py")):
        if path.name not in ("_printing.py", "_program.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
            bare += [f"{path.name}:{node.lineno}" for node in calls if ast.unparse(node.func) in ("print", "sys.stdout.write")]
    assert bare == [], "use sememekit.commands._printing.say"


def test_the_title_of_a_table_stands_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("Perplexity of runs/zh_sdlm on test, a title that is wider than its table", ("", ""), [("a", 1)])
    assert capsys.readouterr().out.splitlines()[0].endswith("that is wider than its table")


def test_an_epoch_is_told_without_sums_and_with_shares_of_rouge_in_per_cent() -> None:
    valid = {"perplexity": 2.3e123, "nats": 42900.89, "tokens": 6655.0, "rouge1": 0.0088}
    line = epoch_line(replace(EPOCH, valid=valid))
    assert "training loss 6.250 nats/token, valid perplexity 2.3e+123, rouge1 0.88 %;" in line
    assert "42,900" not in line
    assert "6,655" not in line


def test_the_time_left_is_that_of_all_epochs_and_their_validations(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    lines = ProgressLines(now=lambda: now[0])

    def at(seconds: float, done: int | None) -> str:
        now[0] = seconds
        lines("training", done or 0, None if done is None else 30)
        return capsys.readouterr().err

    assert at(31.0, None) == "training: 0\n", "what came before the first step is no training"
    assert at(40.0, 1) == ""
    assert at(70.0, 11) == "training: 37 %, about 0:00:57 left\n"
    assert at(104.0, 17) == "training: 57 %, about 0:00:52 left\n", "a validation took some of the seconds"


def test_a_resumed_run_counts_what_it_does_itself(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter((0.0, 3.0, 33.0))
    lines = ProgressLines(now=lambda: next(times))
    lines("training", 601, 1222)
    lines("training", 611, 1222)
    assert capsys.readouterr().err == "training: 50 %, about 0:30:33 left\n"
