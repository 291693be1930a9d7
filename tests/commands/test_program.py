"""The behaviour of every subcommand: exit codes, one line for an error, stdout apart from stderr, quiet broken pipes."""

from __future__ import annotations

import errno
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from sememekit.commands._printing import print_json
from sememekit.commands._program import Program, _unexpected_message, app
from sememekit.errors import DataError
from sememekit.figures import percent
from sememekit.sememes.lookup import LookupReport

runner = CliRunner()


def failing(error: BaseException) -> typer.Typer:
    """A program with one subcommand that raises."""
    scratch = typer.Typer(cls=Program, pretty_exceptions_enable=False)

    @scratch.callback()
    def root() -> None:
        """A program."""

    @scratch.command()
    def work(debug: bool = False) -> None:
        """Fail."""
        print("a result")
        raise error

    return scratch


def one_line(result: Result) -> str:
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.startswith("sememekit: error: ")
    return result.stderr


class OutOfMemoryError(RuntimeError):
    """An error with the name of torch's own."""


@pytest.mark.parametrize(
    ("error", "code", "fragment"),
    [
        (DataError("corpus.txt:3: bad\nline"), 1, "corpus.txt:3: bad line"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "x.txt"), 1, "no such file or directory: x.txt"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, "o space left on device; make room and repeat the command"),
        (OSError(errno.EROFS, "Read-only file system", "r"), 1, "choose another folder for what is written (--out): r"),
        (MemoryError(), 1, "out of memory"),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
            1,
            "out of memory; use a smaller",
        ),
        (RuntimeError("Storage size calculation overflowed with sizes=[8000000000, 2000000000]"), 1, "out of memory; use a"),
        (OutOfMemoryError("CUDA out of memory"), 1, "--device cpu"),
        (ZeroDivisionError("division by zero"), 1, "(work), which is no part of sememekit; run again with --debug"),
        (typer.BadParameter("give either this or that"), 2, "give either this or that"),
    ],
)
def test_an_error_is_one_line_on_stderr(error: Exception, code: int, fragment: str) -> None:
    result = runner.invoke(failing(error), ["work"])
    assert result.exit_code == code
    assert fragment in one_line(result)
    assert result.stdout == "a result\n"


def test_a_folder_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    error = PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "run"))
    assert f"error: permission denied: {tmp_path}/run" in one_line(runner.invoke(failing(error), ["work"])), "not the folder"
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    told = f"run: permission denied, as you cannot write in {tmp_path}; give another place"
    assert f"{told}, or: chmod u+w {tmp_path}" in one_line(runner.invoke(failing(error), ["work"]))
    (tmp_path / "run").touch()
    assert f"{told}, or: chmod -R u+w {tmp_path}" in one_line(runner.invoke(failing(error), ["work"])), "its rights, too"
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(tmp_path).st_uid + 1)
    assert one_line(runner.invoke(failing(error), ["work"])).rstrip().endswith(told), "chmod is for the owner"
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK and Path(path) == tmp_path)
    assert f"error: permission denied: {tmp_path}/run" in one_line(runner.invoke(failing(error), ["work"])), "a file to read"


def test_an_error_of_our_own_code_is_a_bug() -> None:
    with pytest.raises(ValueError, match="format") as caught:
        percent("no number")  # type: ignore[arg-type]
    error = caught.value
    assert "test_program.py" in _unexpected_message(error), "which called it"
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next  # as if nobody else had
    assert _unexpected_message(error).endswith("; this is a bug; run again with --debug and report what it prints")


def test_a_message_that_quotes_a_whole_file_is_cut_in_the_middle() -> None:
    result = runner.invoke(failing(DataError("start " + "字" * 5000 + " end")), ["work"])
    assert len(one_line(result)) < 1100
    assert "start 字" in result.stderr
    assert result.stderr.endswith("字 end\n")


def test_debug_shows_the_traceback_too() -> None:
    result = runner.invoke(failing(DataError("bad")), ["work", "--debug"])
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert result.stderr.endswith("sememekit: error: bad\n")


@pytest.mark.parametrize(("error", "code"), [(BrokenPipeError(), 0), (typer.Exit(75), 75)])
def test_a_closed_pipe_and_a_stop_say_nothing(error: BaseException, code: int) -> None:
    result = runner.invoke(failing(error), ["work"])
    assert (result.exit_code, result.stderr) == (code, "")


def test_an_interrupt_is_said() -> None:
    result = runner.invoke(failing(KeyboardInterrupt()), ["work"])
    assert (result.exit_code, result.stderr) == (130, "sememekit: interrupted\n")


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["trian"], "Did you mean 'train'"),
        (["train", "--decodr", "sdlm"], "--decoder"),
        (["recipes", "lst"], "Did you mean 'list'"),
        (["recipes"], "missing command"),
        (["train", "--device", "gpu"], "'cuda'"),
        (["train"], "--out"),
        (["lookup"], "give one of WORD, --sememe"),
        (["lookup", "词", "--pairs", "p.tsv"], "and not WORD with --pairs"),
        (["lookup", "--sememe", "a", "--dump", "f"], "and not --sememe with --dump"),
        (["lookup", "--check", "--similar"], "--similar needs a WORD"),
        (["lookup", "--diff", "open", "--source", "open", "--source", "list:x"], "merge several with --dump first"),
        (["lookup", "--change", "会议", "-地方", "+人"], "in one pair of quotation marks: --change '会议' '-地方 +人'"),
        (["lookup", "--change", "a#1", "+b", "-c"], "in one pair of quotation marks: --change 'a#1' '+b -c'"),
        (["lookup", "--change", "a", "+b", "+c", "+d", "--graph", "g"], "quotation marks: --change a '+b +c +d'"),
        (["lookup", "--change", "a", "+b -c", "+d e"], "quotation marks: --change a '+b -c +d e'"),
        (["lookup", "--change", "a", "--graph", "g"], "two values, and --graph was taken for one; give both: --change WORD"),
        (["lookup", "--change", "--graph", "g"], "two values, and --graph was taken for one"),
        (["lookup", "--check", "--source", "list:x"], "--check is of the open lexicon alone; leave --source out"),
        (["lookup", "--check", "--side", "english"], "--check is of the open lexicon alone; leave --side out"),
        (["lookup", "--change", "a"], "requires 2 arguments"),
        (["lookup", "--change"], "requires 2 arguments"),
        (
            ["lookup", "词", "--graph", ".", "--side", "english"],
            "--side is of lexicons, and a graph has its words; leave it out",
        ),
        (["lookup", "词", "--top", "3"], "--top needs --sememe, --similar, --suggest or --diff"),
        (
            ["lookup", "词", "--overlay", "o.txt"],
            "--overlay needs --change, or WORD or --suggest with --graph; a trained run reads an overlay with: ",
        ),
        (["attack", "--compare", "a", "b", "--source", "open", "--search", "pso"], "and no --search or --source; leave it out"),
        (["attack", "run", "--compare", "a", "b"], "and no VICTIM"),
        (["explain"], "RUN"),
        (["generate", "run", "--num-tokens", "none"], "--num-tokens"),
        (["generate", "run", "--seed", "99999999999999999999"], "less than or equal to 8796093022207"),
        (["preprocess", "plain"], "--out"),
        (["build-sememe-graph", "--data", "d", "--out", "o"], "--source"),
    ],
)
def test_a_wrong_command_line_exits_with_2_and_says_where_help_is(arguments: list[str], fragment: str) -> None:
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2
    assert fragment in one_line(result)
    assert "--help'" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("train --resume run", "what is resumed is named by --out: sememekit train --out run --resume"),
        ("train run", "run is a run, which is named by an option: --out run --resume or --from run"),
        ("train data --out x", "data is prepared data, which is named by an option: --data data"),
        ("eval run data", "data is prepared data, which is named by an option: --data data"),
        ("sweep sweep", "sweep is a sweep, which is named by an option: --out sweep"),
        ("train pd.graph run", "pd.graph is a sememe graph, which is named by an option: --graph pd.graph"),
        ("quickstart novel.txt", "novel.txt is a text, which is named by an option: --text novel.txt"),
        ("train --out run data --resume", "data is prepared data, which is named by an option: --data data"),
        ("train --out=run data --resume", "data is prepared data, which is named by an option: --data data"),
        ("attack attacks/1 --resume", "what is resumed is named by --out: sememekit attack --out attacks/1 --resume"),
        ("attack --resume", "missing option '--out': the folder of the attack"),
        ("attack run novel.txt --out x", "novel.txt is a text, which is named by an option: --data novel.txt"),
        ("train small/sdlm --data data", "small/sdlm is a recipe, which is named by an option: --recipe small/sdlm"),
        ("train mine.toml --data data", "mine.toml is a recipe, which is named by an option: --recipe mine.toml"),
        ("preprocess plain novel.txt data", "missing option '--out'; if data is meant: --out data; see"),
        ("preprocess plain novel.txt --lower data", "missing option '--out'; if data is meant: --out data; see"),
        ("preprocess plain novel.txt", "missing option '--out'; see"),
        ("preprocess plain novel.txt data more", "missing option '--out'; see"),
        (
            "preprocess plain a.txt novel.txt --out x",
            "(novel.txt); several files of plain are named by a pattern in quotation marks",
        ),
        ("train --epochs 4", "--epochs is a setting: --set schedule.epochs=VALUE; see 'sememekit train --help'"),
        ("train --batch_size 4", "--batch_size is a setting: --set task.batch_size=VALUE"),
        ("sweep --lr 4", "--lr is a setting: --set optimizer.learning_rate=VALUE"),
        ("lookup --change a +b --out o.txt", "--out is no option of lookup: --change writes the file of --overlay"),
        ("eval run novel.txt", "got unexpected extra argument(s) (novel.txt); see 'sememekit eval --help'"),
        (f"eval run {'字' * 90}", f"got unexpected extra argument(s) ({'字' * 90}); see 'sememekit eval --help'"),
        ("sweep --resume --out s", "--resume is no option of sweep: the same command continues the sweep in --out"),
    ],
)
def test_a_folder_without_its_option_is_told_the_option(
    arguments: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("run/plan.json", "data/signature.json", "sweep/sweep.json", "novel.txt", "mine.toml"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    Path("pd.graph").write_text('{"format": "sememekit sememe graph"')
    result = runner.invoke(app, arguments.split())
    assert result.exit_code == 2
    assert told in one_line(result)


def test_no_arguments_show_help_and_exit_with_2() -> None:
    result = runner.invoke(app, [])
    assert result.exit_code == 2
    assert "Usage" in result.stdout


def test_the_version_is_printed() -> None:
    from sememekit import __version__

    result = runner.invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"sememekit {__version__}\n")


def test_help_and_completion_import_neither_torch_nor_numpy() -> None:
    """A process of its own runs them, as any other test may have imported torch already."""
    script = """
import os, sys
from typer.testing import CliRunner
from sememekit.commands._program import app
runner = CliRunner()
for arguments in ([], ["--help"], ["train", "--help"], ["recipes", "list"], ["train", "--print", "--out"], ["no-such"]):
    runner.invoke(app, arguments)
for line in ("train --decoder ", "train --encoder ", "train --task ", "train --recipe ", "recipes show ", ""):
    environment = {"_SEMEMEKIT_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "sememekit " + line}
    print(runner.invoke(app, [], env=environment, prog_name="sememekit").stdout)
loaded = {name.partition(".")[0] for name in sys.modules} & {"torch", "numpy", "jieba", "sentencepiece"}
sys.exit(f"imported: {sorted(loaded)}" if loaded else 0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("softmax", "sdlm", "lstm", "gru", "language_model", "ours/pd-softmax", "preprocess"):
        assert name in done.stdout


@pytest.mark.parametrize("words", ["recipes show ours/pd-softmax", "recipes list", "recipes --help"])
def test_a_reader_that_leaves_early_is_no_error(words: str) -> None:
    """Lines, a table and a page of help: rich draws the latter two."""
    script = "import sys; sys.stdin.read(); from sememekit.commands._program import main; main()"
    command = [sys.executable, "-c", script, *words.split()]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()  # before the first byte is written: that waits for the end of its input
    _, complaint = process.communicate()
    assert (process.returncode, complaint) == (0, b"")


def shell(line: str, **environment: str) -> tuple[int, bytes, bytes]:
    """Exit code, stdout and stderr of a line in which SK is the program."""
    line = line.replace("SK", f"{shlex.quote(sys.executable)} -m sememekit")
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=False, env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr


def test_streams_that_the_shell_closed_are_empty_ones() -> None:
    assert shell("SK recipes list >&-") == (0, b"", b"")
    assert shell("SK report nowhere 2>&-") == (1, b"", b""), "an error goes nowhere, and not among the results"
    code, _, complaint = shell("SK segment --segmenter none <&-")
    assert b"this is a bug" not in complaint
    assert code in (0, 1)
    assert shell("SK report nowhere 2>/dev/full") == (1, b"", b"")
    assert shell("SK report --nonsense 2>/dev/full") == (2, b"", b"")


def test_a_name_that_is_not_utf8_is_shown_escaped() -> None:
    """The name is 你好 in GBK, given in a locale of UTF-8."""
    code, printed, complaint = shell(r"SK report $'\xc4\xe3\xba\xc3'", PYTHONUTF8="1")
    assert (code, printed) == (1, b"")
    assert complaint.startswith(rb"sememekit: error: \udcc4\udce3\udcba\udcc3")
    result = runner.invoke(
        failing(UnicodeEncodeError("utf-8", "a/\udcc4\udce3.txt/b", 2, 3, "surrogates not allowed")), ["work"]
    )
    assert result.exit_code == 1
    assert r"a name with \xc4\xe3.txt is not UTF-8" in one_line(result)
    result = runner.invoke(failing(UnicodeEncodeError("utf-8", "a\ud800", 1, 2, "surrogates not allowed")), ["work"])
    assert r"a name with \xed\xa0\x80 is not UTF-8" in one_line(result)


@pytest.mark.parametrize(("word", "told"), [("p\udcff", r"\udcff"), ("p\ud800", r"\ud800")])
def test_a_name_that_is_not_utf8_is_no_json(word: str, told: str) -> None:
    def work() -> None:
        print_json(LookupReport.model_construct(word=word))

    with pytest.raises(Exception, match="surrogates not allowed") as caught:
        work()
    result = runner.invoke(failing(caught.value), ["work"])
    assert result.exit_code == 1
    assert f"a name or text with {told} is not UTF-8 and cannot be written as JSON; rename it" in one_line(result)


def test_an_interrupt_during_the_imports_shows_no_traceback() -> None:
    """The program is stopped where it would import its commands."""
    script = (
        "import os, signal, sys\n"
        "class Stop:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'sememekit.commands._program': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Stop())\n"
        "import sememekit.__main__"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


def test_a_command_with_torch_ends_its_threads_and_handlers_and_keeps_its_exit_code(tmp_path: Path) -> None:
    code = (
        "import atexit, sys, threading, torch; atexit.register(print, 'handler'); "
        "threading.Thread(target=lambda: (threading.main_thread().join(), print('thread'))).start(); "
        "class_ = type('Late', (), {'__del__': lambda self: print('freed')}); sys.kept = class_(); "
        "sys.argv = ['sememekit', *{words}]; from sememekit.__main__ import main; main()"
    )
    for words, expected in ((["--version"], 0), (["explain", str(tmp_path / "absent"), "x"], 1), (["explain"], 2)):
        script = code.replace("{words}", repr(words))
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == expected, done.stderr
        assert done.stdout.splitlines()[-2:] == ["thread", "handler"], "and nothing is freed one by one"


def test_the_search_for_garbage_is_as_usual_after_the_imports() -> None:
    code = (
        "import gc; usual = gc.get_threshold(); import sememekit.__main__; assert gc.get_threshold() != usual; "
        "kept = [[] for _ in range(400_001)]; assert gc.get_threshold() == usual; assert not gc.callbacks"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "typed", [{}, {"_SEMEMEKIT_COMPLETE": "complete_bash", "COMP_WORDS": "sememekit\nex", "COMP_CWORD": "1"}]
)
def test_the_list_of_subcommands_is_shown_without_importing_them(typed: dict[str, str]) -> None:
    code = (
        "import sys; sys.argv[1:] = ['--help'] if not sys.argv[1:] else []; "
        "from sememekit.commands._program import app; import typer; command = typer.main.get_command(app)\n"
        "try:\n    command()\n"
        "except SystemExit:\n    pass\n"
        "print([name for name in sys.modules if name in ('torch', 'sememekit.config', 'sememekit.commands.explain')])"
    )
    arguments = ["completing"] if typed else []
    shown = subprocess.run(
        [sys.executable, "-c", code, *arguments], env={**os.environ, **typed}, capture_output=True, text=True, check=True
    )
    *lines, imported = shown.stdout.splitlines()
    assert any("explain" in line for line in lines)
    assert imported == "[]"
