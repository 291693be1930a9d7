"""The command line program: its subcommands, one line for each error, exit codes, and broken pipes."""

import atexit
import errno
import os
import re
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from sememekit import __version__
from sememekit.commands._extra_argument import given_without_option, instead_of_extra, unquoted_changes
from sememekit.commands._printing import leave_the_pipe, open_closed_streams, remark, say, shown, use_utf8_in_pipes
from sememekit.errors import SememekitError
from sememekit.files import RunWarning, typed
from sememekit.signals import FAILED, INTERRUPTED, USAGE

LONGEST_MESSAGE = 1000  # longest error message in characters

_PANELS: Final = {
    "Start": "quickstart doctor",
    "Data and lexicon": "preprocess segment lookup build-sememe-graph",
    "Train": "train extend sweep recipes settings cluster-update",
    "Measure": "evaluate-ppl eval score compare reproduce",
    "Use and look inside": "serve predict generate tag explain analyze clusters report",
    "Share": "push pull",
    "Attack": "attack",
}
PANELS: Final = {name: panel for panel, names in _PANELS.items() for name in names.split()}
"""Every subcommand, and the panel of the help page that it stands in; ``commands/NAME.py`` has it, with ``_`` for ``-``."""

FORMER_NAMES: Final = {
    "baseline": ("eval", "--baseline", "lead"),
    "evaluate-explanations": ("eval", "--explanations"),
    "card": ("push", "--card", "-"),
}
"""Former subcommands -> their present names; they still run but are not listed."""

TRUSTING: Final = frozenset(
    {"preprocess", "segment", "train", "extend", "sweep", "cluster-update", "evaluate-ppl", "eval", "score", "predict"}
    | {"generate", "recipes validate", "compare", "explain", "tag", "analyze", "clusters"}
    | {"push", "pull", "serve"}
)
"""Subcommands with ``--trust-code``, which is read here like ``--debug``; code named on the command line is always trusted."""

_COMPLETE: Final = "_SEMEMEKIT_COMPLETE"  # the shell sets this variable when it asks for completions

_NO_MEMORY = ("DefaultCPUAllocator", "torage size calculation overflowed", "integer multiplication overflow")
"""Messages of torch on the CPU when memory runs out."""


class Program(TyperGroup):
    """A group of subcommands with our exit codes."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Parse, run, and leave with an exit code; without ``standalone_mode`` return that code."""
        arguments = list(sys.argv[1:] if args is None else args)
        arguments[:1] = FORMER_NAMES.get("".join(arguments[:1]), arguments[:1])
        use_utf8_in_pipes()
        with _remarks(arguments), _trust(arguments), _typed_words():
            code = self._run(arguments, {**extra, "prog_name": "sememekit"})
        if standalone_mode:
            sys.exit(code)
        return code

    def _run(self, arguments: list[str], extra: dict[str, Any]) -> int:
        debug = "--debug" in arguments
        if (not arguments and _COMPLETE not in os.environ) or not {"--help", "-h"}.isdisjoint(arguments):
            from sememekit.commands._help import draw_help

            draw_help()
        try:
            if not arguments:
                super().main(["--help"], standalone_mode=False, **extra)
                return USAGE
            result = super().main(arguments, standalone_mode=False, **extra)
            sys.stdout.flush()
            return result if isinstance(result, int) else 0
        except BrokenPipeError:
            return leave_the_pipe(sys.stdout)
        except typer.TyperException as error:
            return _complain(_usage_message(error, arguments), USAGE, debug=False)
        except SememekitError as error:
            return _complain(str(error), FAILED, debug)
        except OSError as error:
            return _complain(_system_message(error), FAILED, debug)
        except Exception as error:
            return _complain(_unexpected_message(error), FAILED, debug)

    def invoke(self, ctx: Any) -> Any:
        """Run the subcommand; a closed pipe, as from ``head``, is not an error."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            raise typer.Exit(leave_the_pipe(sys.stdout)) from None
        except KeyboardInterrupt:
            goes_on = "; the same command continues where it stopped" if ctx.invoked_subcommand == "preprocess" else ""
            remark(f"sememekit: interrupted{goes_on}", quiet=False)
            raise typer.Exit(INTERRUPTED) from None
        return result


def _module_of(name: str) -> ModuleType:
    return import_module(f"sememekit.commands.{name.replace('-', '_')}")


def _summary(name: str) -> str:
    """Return the help of a subcommand from its source, since importing all of them takes twice as long as typer itself."""
    source = (Path(__file__).parent / f"{name.replace('-', '_')}.py").read_text("utf-8")
    of_function, of_group = r'^def command\(.*?^    """(.*?)"""', r'^command = typer\.Typer\(\s*help="([^"]*)"'
    found = re.search(of_function, source, re.DOTALL | re.MULTILINE) or re.search(of_group, source, re.MULTILINE)
    return cleandoc(found[1]) if found else _module_of(name).__doc__ or ""


@cache
def _made(name: str) -> Any:
    """Return a subcommand; KeyError if there is none. Its module is imported when it is first asked for."""
    panel, module, app = PANELS[name], _module_of(name), typer.Typer(add_completion=False)
    from sememekit.commands._options import example, paragraphs

    made: Any
    if isinstance(module.command, typer.Typer):
        app.add_typer(module.command, name=name, rich_help_panel=panel)
        made = typer.main.get_group(app).commands[name]
    else:
        told, shown_lines = paragraphs(module.command.__doc__), example(*module.EXAMPLES)
        app.command(name, help=told, epilog=shown_lines, rich_help_panel=panel)(module.command)
        made = typer.main.get_command(app)
        settings = {option: f"is a setting: --set {key}=VALUE" for option, key in getattr(module, "FORMER", {}).items()}
        made.former = {**settings, **getattr(module, "NO_OPTIONS", {})}
    _add_options(made, name)
    return made


class _Subcommands(Mapping[str, Any]):
    """The subcommands by name, each made when it is used first."""

    def __getitem__(self, name: str) -> Any:
        return _made(name)

    def __iter__(self) -> Iterator[str]:
        return iter(PANELS)

    def __len__(self) -> int:
        return len(PANELS)


def _add_options(command: Any, name: str) -> None:
    """Add the options that this module reads to a command, or to all commands of a group."""
    for inner, found in getattr(command, "commands", {}).items():
        _add_options(found, f"{name} {inner}")
    if not hasattr(command, "commands"):
        command.params.extend(_options_read_here()[0 if name in TRUSTING else 1 :])


@cache
def _options_read_here() -> list[Any]:
    from sememekit.commands._options import Debug, TrustCode

    def with_options(trust_code: TrustCode = False, debug: Debug = False) -> None:
        """Declare the options; nobody calls it."""

    app = typer.Typer(add_completion=False)
    app.command()(with_options)
    options = typer.main.get_command(app).params
    for option in options:
        option.expose_value = False
    return list(options)


class _Sememekit(Program):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Subcommands()  # type: ignore[assignment]  # nothing is ever added to it

    def list_commands(self, ctx: Any) -> list[str]:
        return list(PANELS)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._list_only()
        super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete the name of a subcommand; the subcommand itself completes what follows."""
        self._list_only()
        return super().shell_complete(ctx, incomplete)

    def _list_only(self) -> None:
        """Have names and summaries of the subcommands in place of the subcommands, which import what they need."""
        self.commands = {name: TyperCommand(name, help=_summary(name), rich_help_panel=panel) for name, panel in PANELS.items()}


app = typer.Typer(
    name="sememekit",
    cls=_Sememekit,
    epilog="Start with: sememekit quickstart",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"sememekit {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Language models that know what words are made of: sememes."""


def _typed_words() -> AbstractContextManager[None]:
    if _COMPLETE not in os.environ:
        return nullcontext()
    from sememekit.commands._completion import words_of_bash

    return words_of_bash()


def _trust(arguments: Sequence[str]) -> AbstractContextManager[None]:
    """Trust the code named on the command line, as in ``--set decoder.name=my_lab.layers:Mine``, or all code."""
    typed = {name for argument in arguments for name in (argument, argument.rpartition("=")[2]) if ":" in name}
    if "--trust-code" not in arguments and not typed:
        return nullcontext()
    from sememekit.config import trusting_code

    return trusting_code("--trust-code" in arguments or typed)


@contextmanager
def _remarks(arguments: Sequence[str]) -> Iterator[None]:
    """Print each ``RunWarning`` of the block once, as a line on stderr; nothing with ``--quiet``."""
    said: set[str] = set()
    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if not issubclass(category, RunWarning):
            before(message, category, *rest, **more)
        elif str(message) not in said and not {"--quiet", "-q"} & set(arguments):
            said.add(str(message))
            print("sememekit: remark:", shown(str(message)), file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", RunWarning)
        warnings.showwarning = show
        yield


def _complain(message: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    line = " ".join(message.split())
    if len(line) > LONGEST_MESSAGE:  # a message that quotes a broken file can be as long as the file
        line = f"{line[: LONGEST_MESSAGE // 2]} ... {line[-LONGEST_MESSAGE // 2 :]}"
    try:
        print("sememekit: error:", shown(line), file=sys.stderr, flush=True)
    except OSError:  # where nobody can be told, the code still says it
        leave_the_pipe(sys.stderr)
    return code


def _usage_message(error: typer.TyperException, arguments: Sequence[str]) -> str:
    message = error.format_message().replace("Value error, ", "").removeprefix("Invalid value: ")
    context = getattr(error, "ctx", None)
    given = arguments[0] if arguments and arguments[0] in PANELS else ""  # an error of the parser has no context
    command = context.command_path if context is not None else f"sememekit {given}".rstrip()
    former = getattr(context.command, "former", {}) if context is not None else {}
    if (told := former.get(getattr(error, "option_name", ""))) is not None:
        message = f"{error.option_name} {told}"  # type: ignore[attr-defined]
    extra = re.fullmatch(r"Got unexpected extra argument\(s\) \((.*)\)", message)
    if extra and context is not None and (told := instead_of_extra(context.command, extra[1], arguments)):
        message = f"got unexpected extra argument(s) ({extra[1]}); {told}"
    if given == "lookup" and (told := unquoted_changes(arguments)):
        message = told
    missing = re.fullmatch(r"Missing option '(--[\w-]+)'\.", message)
    if missing and context is not None and (told := given_without_option(context, missing[1], arguments)):
        message = f"missing option '{missing[1]}'; {told}"
    return f"{message[:1].lower()}{message[1:].rstrip('.')}; see '{command} --help'"


def _system_message(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        reason += "; make room and repeat the command, a training with --resume: what was whole before is whole still"
    if error.errno == errno.EROFS:
        reason += "; choose another folder for what is written (--out)"
    if error.errno == errno.EACCES and isinstance(error.filename, str):
        name, folder = error.filename, os.path.dirname(error.filename) or "."
        there = os.path.lexists(name)  # such as the lock of a run; what cannot be read has nothing to do with the folder
        if os.access(folder, os.R_OK | os.X_OK) and not os.access(folder, os.W_OK) and (not there or os.access(name, os.R_OK)):
            own = os.stat(folder).st_uid == getattr(os, "geteuid", lambda: -1)()  # chmod is refused to others
            rights = f", or: {typed('chmod', *(['-R'] if there else []), 'u+w', folder)}" if own else ""
            return f"{name}: permission denied, as you cannot write in {folder}; give another place{rights}"
    return f"{reason[:1].lower()}{reason[1:]}: {error.filename}" if error.filename is not None else reason


_UTF8 = "rename it (names of old Chinese archives: convmv -f gbk -t utf8 --notest NAME), and see that the locale is UTF-8"


def _unexpected_message(error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":  # bytes of another encoding
        rest = re.split(r'["\s/]', error.object[error.start :], maxsplit=1)[0]
        name = rest.encode("utf-8", "surrogatepass" if re.search("[\ud800-\udc7f\udd00-\udfff]", rest) else "surrogateescape")
        return f"a name with {name.decode(errors='backslashreplace')} is not UTF-8, and cannot be written into a file; {_UTF8}"
    if type(error).__name__ == "OutOfMemoryError":
        return "out of memory on the device; use a smaller batch, a smaller model or --device cpu"
    if (lone := re.search(r"(\\ud\w{3})'.* surrogates not allowed", str(error))) is not None:
        return f"a name or text with {lone[1]} is not UTF-8 and cannot be written as JSON; {_UTF8}"
    if "embedded null" in str(error):
        return "a name has a NUL byte in it, which no file has; give another name"
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(sign in str(error) for sign in _NO_MEMORY)):
        return "out of memory; use a smaller batch (--set task.batch_size=N), a smaller model or a machine with more"
    told = f"{type(error).__name__}: {error}"
    if (place := _place_in_own_code(error)) is not None:
        return f"{told}, in {place}, which is no part of sememekit; run again with --debug to see how it was called"
    return f"{told}; this is a bug; run again with --debug and report what it prints"


def _place_in_own_code(error: Exception) -> str | None:
    """File, line and function of the innermost call of code that is neither ours nor installed, such as a user's class."""
    import sysconfig

    installed = [Path(__file__).parents[1], *(Path(path) for path in sysconfig.get_paths().values())]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_file() and not any(path.is_relative_to(folder) for folder in installed):
            return f"{path}:{frame.lineno} ({frame.name})"
    return None


def main() -> None:
    """The console script."""
    open_closed_streams()
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # so __main__ left it, for the time of the imports
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Large tensors in large pages: torch asks the system for them where this is set before its first tensor. A gradient of
    # 44,000 x 512 is then written in less than half the time (docs/results/self-organized.md).
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    try:
        typer.main.get_command(app)()
    except SystemExit as end:
        if "torch" in sys.modules and isinstance(end.code, int):
            _end_at_once(end.code)
        raise


def _end_at_once(code: int) -> NoReturn:
    """Exit after threads and exit handlers, without freeing the objects of torch one by one, which takes 0.4 CPU seconds."""
    threading._shutdown()  # type: ignore[attr-defined]  # as the interpreter does before its exit handlers
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):  # a closed stream was reported before; stderr has no buffer
        sys.stdout.flush()
    os._exit(code)
