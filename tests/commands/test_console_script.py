"""A command in its process: streams, signals, remarks and the end; and how commands are made of their files."""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from sememekit.commands import _program, _with_parent
from sememekit.commands._completion import complete_source
from sememekit.commands._options import LEXICON, example, option, paragraphs
from sememekit.commands._printing import open_closed_streams, remark, use_utf8_in_pipes
from sememekit.commands._program import (
    LONGEST_MESSAGE,
    PANELS,
    _complain,
    _end_at_once,
    _made,
    _options_read_here,
    _remarks,
    app,
    main,
)
from sememekit.commands._typed_table import typed_table
from sememekit.errors import TrainingError
from sememekit.files import RunWarning
from sememekit.jobs.train import TrainReport
from sememekit.signals import stop_signals
from tests.commands import test_defaults, test_flags
from tests.reports.samples import filled

runner = CliRunner()


def test_a_command_that_is_made_anew_has_its_options_and_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests find it made already."""
    _made.cache_clear()
    _options_read_here.cache_clear()
    leaves = dict(test_flags.commands(typer.main.get_command(app), "sememekit"))
    monkeypatch.setattr(test_flags, "LEAVES", leaves)
    monkeypatch.setattr(test_defaults, "LEAVES", leaves)
    assert test_flags.describe() == test_flags.FROZEN.read_text(encoding="utf-8").splitlines()
    assert test_defaults.described() == test_defaults.FROZEN.read_text(encoding="utf-8").splitlines()
    trust, debug = _options_read_here()
    assert [(one.opts, one.default, one.expose_value) for one in (trust, debug)] == [
        (["--trust-code"], False, False),
        (["--debug"], False, False),
    ]
    trusting = {name for name, command in leaves.items() if trust in command.params}
    assert trusting == {f"sememekit {name}" for name in _program.TRUSTING}
    assert {name for name in leaves if debug in leaves[name].params} == set(leaves)
    assert {name: _made(name).rich_help_panel for name in PANELS} == PANELS


def test_the_examples_of_a_help_page_stand_under_a_title() -> None:
    assert example("sememekit a") == "Example:\n\n  sememekit a"
    assert example("sememekit a", "sememekit b [x]") == "Examples:\n\n  sememekit a\n\n  sememekit b \\[x]"


def test_a_docstring_becomes_a_line_for_each_paragraph() -> None:
    assert paragraphs("First\n    line.\n\n    Second\n    one.") == "First line.\n\nSecond one."
    assert paragraphs(None) == ""


def test_an_option_completes_the_variants_of_its_kind_or_its_placeholder() -> None:
    assert option("--engine", "Engine.", "engine").autocompletion("da") == ["dask"]
    assert option("--source", "Lexicon.", metavar=LEXICON).autocompletion is complete_source
    assert option("--out", "Folder.").autocompletion is None


@pytest.mark.parametrize(
    ("encoder", "values", "table"),
    [
        ("hf:models/bert", {}, {"encoder": {"name": "hf", "path": "models/bert"}}),
        ("hf:models/bert", {"encoder.path": "other"}, {"encoder": {"name": "hf", "path": "other"}}),
        ("hf", {}, {"encoder": {"name": "hf"}}),
        ("gru", {"run.seed": 3, "data.path": None}, {"encoder": {"name": "gru"}, "run": {"seed": 3}}),
        (None, {"data.path": Path("d"), "a.b.c": [Path("x"), 1]}, {"data": {"path": "d"}, "a": {"b": {"c": ["x", "1"]}}}),
    ],
)
def test_the_folder_of_a_model_may_stand_in_the_name_of_its_encoder(
    encoder: str | None, values: dict[str, Any], table: dict[str, Any]
) -> None:
    assert typed_table(None, None, {"encoder": encoder}, values) == table


class Wrapped(io.TextIOWrapper):
    """A stream of ASCII, on a terminal or not."""

    def __init__(self, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="ascii")
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize("terminal", [False, True])
def test_a_pipe_is_utf8_and_a_terminal_keeps_its_encoding(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", out := Wrapped(terminal))
    monkeypatch.setattr(sys, "stderr", err := Wrapped(terminal))
    use_utf8_in_pipes()
    found = [(stream.encoding, stream.errors) for stream in (out, err)]
    monkeypatch.undo()
    assert found == ([("ascii", "replace")] * 2 if terminal else [("utf-8", "surrogateescape"), ("utf-8", "backslashreplace")])


def test_streams_that_are_closed_are_opened_and_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stdout", None)
    stderr = sys.stderr
    open_closed_streams()
    opened = [sys.stdin, sys.stdout]
    kept = sys.stderr
    monkeypatch.undo()
    with opened[0] as stdin, opened[1] as stdout:
        assert kept is stderr
        assert stdin.read() == ""
        assert stdout.write("lost") == 4
        assert [os.get_inheritable(stream.fileno()) for stream in opened] == [True, True], "a process of it has them, too"


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_reader_of_messages_that_left_ends_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[Any] = []
    monkeypatch.setattr("sememekit.commands._printing.leave_the_pipe", left.append)
    monkeypatch.setattr("sememekit.commands._program.leave_the_pipe", left.append)
    stderr = Broken()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stderr)
        remark("a remark", quiet=True)
        assert left == []
        remark("a remark", quiet=False)
        assert _complain("an error", 75, debug=False) == 75
    assert left == [stderr, stderr]


def test_a_message_is_cut_where_it_is_longer_than_the_longest(capsys: pytest.CaptureFixture[str]) -> None:
    longest, half = "x" * LONGEST_MESSAGE, LONGEST_MESSAGE // 2
    assert _complain(longest, 1, debug=False) == 1
    assert capsys.readouterr().err == f"sememekit: error: {longest}\n"
    _complain(f"{longest}\n y", 1, debug=False)
    assert capsys.readouterr().err == f"sememekit: error: {'x' * half} ... {'x' * (half - 2)} y\n"


@pytest.mark.parametrize("arguments", [[], ["-q"], ["--quiet"]])
def test_a_remark_of_ours_is_told_once_and_other_warnings_go_where_they_went(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    others: list[tuple[str, type[Warning]]] = []
    monkeypatch.setattr(
        warnings, "showwarning", lambda message, category, *rest, **more: others.append((str(message), category))
    )
    with _remarks(arguments):
        warnings.simplefilter("always")
        for text in ("first", "first", "second"):
            warnings.warn(text, RunWarning, stacklevel=1)
        warnings.warn("another", UserWarning, stacklevel=1)
    assert others == [("another", UserWarning)]
    told = "" if arguments else "sememekit: remark: first\nsememekit: remark: second\n"
    assert capsys.readouterr().err == told


@pytest.fixture
def handler() -> Any:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("handler")
@pytest.mark.parametrize("torch", [True, False])
def test_the_console_script_sets_the_process_up_and_ends_it(torch: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []
    monkeypatch.setattr(_program, "open_closed_streams", lambda: done.append("streams"))
    monkeypatch.setattr(_program, "_end_at_once", done.append)
    monkeypatch.setattr(sys, "argv", ["sememekit", "recipes", "list", "zzz"])
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "0")
    monkeypatch.delenv("THP_MEM_ALLOC_ENABLE")
    if torch:
        monkeypatch.setitem(sys.modules, "torch", sys)
    else:
        monkeypatch.delitem(sys.modules, "torch", raising=False)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with pytest.raises(SystemExit) as end:
        main()
    assert (end.value.code, done) == (1, ["streams", 1] if torch else ["streams"])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert os.environ["THP_MEM_ALLOC_ENABLE"] == "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["THP_MEM_ALLOC_ENABLE"] = "0"
    with pytest.raises(SystemExit):
        main()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN, "as nohup left it"
    assert os.environ["THP_MEM_ALLOC_ENABLE"] == "0", "as the shell has it"


@pytest.mark.parametrize("error", [None, OSError, ValueError])
def test_a_process_ends_after_its_threads_its_handlers_and_its_last_line(
    error: type[Exception] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[Any] = []

    def flush() -> None:
        done.append("flush")
        if error is not None:
            raise error

    with monkeypatch.context() as patch:
        patch.setattr("threading._shutdown", lambda: done.append("threads"))
        patch.setattr("atexit._run_exitfuncs", lambda: done.append("handlers"))
        patch.setattr("os._exit", done.append)
        patch.setattr(sys, "stdout", SimpleNamespace(flush=flush))
        _end_at_once(3)  # returns here alone, as the exit is played
    assert done == ["threads", "handlers", "flush", 3]


def test_a_process_ends_with_1_when_the_pipe_of_its_parent_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []
    monkeypatch.setattr("os.read", lambda *given: done.append(given) or b"")
    monkeypatch.setattr("os._exit", done.append)
    _with_parent._end_with_parent()
    monkeypatch.undo()
    assert done == [(0, 1), 1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("attack r --data t.tsv --out a --html p.html", "--html needs --compare; an attack always writes OUT/report.html"),
        ("attack --out a", "name a VICTIM and --data FILE, or --resume an attack in --out, or --compare two"),
        ("attack r --out a", "name a VICTIM and --data FILE, or --resume an attack in --out, or --compare two"),
        (
            "attack r --ratings s.json --out a",
            "--ratings takes --out, the folder of a finished attack, and no VICTIM; leave it out",
        ),
        ("attack --compare a b --device cpu", "--compare takes two folders of finished attacks, and no --device; leave it out"),
        ("extend r --against q", "--against needs --data: sememekit preprocess DATASET SOURCE --vocabulary RUN2 --out DATA"),
        ("extend r --words w", "give --words FILE and --out RUN2, or --against RUN2 and --data DATA"),
        ("extend r --out w", "give --words FILE and --out RUN2, or --against RUN2 and --data DATA"),
        ("extend r --words w --out x --split valid", "--split: this is for --against RUN2; leave it out"),
        ("extend r --against q --words w --prior 0.5", "--words and --prior: this is for --words FILE; leave it out"),
        ("train --engine local --out r", "--engine is where several seeds are trained; add --seeds 1,2,3"),
        ("train --jobs 2 --out r", "--jobs is how many of several seeds are trained at a time; add --seeds 1,2,3"),
        ("train --seed 1 --seeds 2 --out r", "--seed and --seeds exclude each other"),
        ("train --data d", "missing option '--out': the folder of the run"),
        ("sweep --over a=1 --trials 2", "missing option '--out': the folder of the sweep"),
        ("predict r --side english", "--lemmas and --side are for --open-vocabulary FORMAT:PATH; add it, or leave them out"),
        ("predict r --lemmas wordnet", "--lemmas and --side are for --open-vocabulary FORMAT:PATH; add it, or leave them out"),
    ],
)
def test_lines_that_lack_a_part_are_usage_errors(arguments: str, told: str) -> None:
    result = runner.invoke(app, arguments.split())
    command = arguments.partition(" ")[0]
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"sememekit: error: {told}; see 'sememekit {command} --help'\n"


def test_several_seeds_are_not_for_torchrun() -> None:
    result = runner.invoke(app, ["train", "--data", "d", "--out", "r", "--seeds", "1,2"], env={"WORLD_SIZE": "2"})
    told = "--seeds starts processes of its own, and torchrun started this one; take one of the two"
    assert (result.exit_code, result.stderr) == (2, f"sememekit: error: {told}; see 'sememekit train --help'\n")


@pytest.mark.parametrize(
    ("ranks", "result", "code", "stdout", "stderr"),
    [
        ({"leads": False}, {}, 0, False, ""),
        ({"leads": False}, {"stopped": True}, 75, False, ""),
        ({"leads": True}, {}, 0, True, "sememekit: remark: of a run\na remark\n"),
        ({"leads": False, "speaks": False}, None, 1, False, ""),
        ({"leads": False, "speaks": True}, None, 1, False, "sememekit: error: no memory\n"),
    ],
)
def test_the_first_process_of_torchrun_prints_and_one_tells_of_a_failure(
    ranks: dict[str, bool],
    result: dict[str, Any] | None,
    code: int,
    stdout: bool,
    stderr: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[dict[str, Any]] = []
    group = SimpleNamespace(leads=ranks["leads"], restarts=1, size=2, noted=lambda what: called.append({"noted": what}) or True)
    group.speaks_of_failure = lambda: ranks["speaks"]

    @contextmanager
    def joined() -> Any:
        yield group

    def train(table: Any, out: Path, *, resume: bool, ranks: Any, on_remark: Any, **told: Any) -> TrainReport:
        called.append({"resume": resume, "ranks": ranks is group})
        if result is None:
            raise TrainingError("no memory")
        warnings.warn("of a run", RunWarning, stacklevel=1)
        on_remark("a remark")
        return filled(TrainReport, vectors=None, **{"metric": "perplexity", "stopped": False, **result})

    def stopping(**options: bool) -> Any:
        called.append(options)
        return stop_signals(**options)

    monkeypatch.setattr("sememekit.commands.train.stop_signals", stopping)
    monkeypatch.setattr("sememekit.ranks.joined", joined)
    monkeypatch.setattr("sememekit.jobs.train.train", train)
    done = runner.invoke(app, ["train", "--data", "d", "--out", "r"], env={"WORLD_SIZE": "2"})
    assert (done.exit_code, done.stdout != "", done.stderr) == (code, stdout, stderr)
    assert called == [{"noted": "begun r"}, {"patient": True, "lasting": True}, {"resume": True, "ranks": True}]


@pytest.mark.parametrize(("restarts", "first", "resumed"), [(0, True, False), (1, True, True), (1, False, False)])
def test_a_restarted_process_goes_on_where_it_began(
    restarts: int, first: bool, resumed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[bool] = []
    group = SimpleNamespace(leads=True, restarts=restarts, size=1, noted=lambda what: first)

    @contextmanager
    def joined() -> Any:
        yield group

    def train(table: Any, out: Path, *, resume: bool, should_stop: Any, **told: Any) -> TrainReport:
        called.append(resume)
        return filled(TrainReport, vectors=None, metric="perplexity", stopped=False)

    monkeypatch.setattr("sememekit.ranks.joined", joined)
    monkeypatch.setattr("sememekit.jobs.train.train", train)
    assert runner.invoke(app, ["train", "--data", "d", "--out", "r", "-q"], env={"WORLD_SIZE": "1"}).stderr == ""
    assert called == [resumed]
