"""``sememekit quickstart``: the main job in minutes, from newspaper or an own text to models and a page about them."""

from __future__ import annotations

import json as json_module
import shlex
import time
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememekit.commands._exit import STOPPED
from sememekit.commands._options import Device, Figure, Json, Overrides, Quiet, Seed, SourcesOrOpen, option, segmenter_option
from sememekit.commands._printing import check_outputs, print_json, print_table, remark, say, write_charts
from sememekit.commands._progress import progress_bars
from sememekit.config import apply_overrides, load_recipe
from sememekit.errors import ConfigError, SememekitError
from sememekit.files import replace_file, sealed
from sememekit.progress import Progress, silent

if TYPE_CHECKING:
    from sememekit.commands.quickstarting.folder import QuickstartSettings
    from sememekit.reports.quickstart import QuickstartReport
    from sememekit.signals import StopRequest

EXAMPLES = (
    "sememekit quickstart",
    "sememekit quickstart --text novel.txt --out novel",
    "sememekit quickstart --source hownet2000:glossary.dat --out tour",
)


def command(
    out: Annotated[Path, option("--out", "Folder to write into.")] = Path("quickstart"),
    text: Annotated[
        Path | None,
        option(
            "--text", "A text of yours in place of the newspaper: UTF-8, a sentence or paragraph a line.", show_default=False
        ),
    ] = None,
    sources: SourcesOrOpen = None,
    segmenter: Annotated[str | None, segmenter_option("none, or fmm")] = None,
    share: Annotated[
        float | None,
        option(
            "--share",
            "Fraction of the month's paragraphs, or of the text's lines. Default: 0.34 of the month; of a text, "
            "what trains in the same time.",
            min=0.0,
            max=1.0,
            show_default=False,
        ),
    ] = None,
    overrides: Overrides = None,
    fresh: Annotated[bool, option("--fresh", "Start over, and delete what is in the folder.")] = False,
    seed: Seed = 1,
    device: Device = "auto",
    figure: Figure = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Tour in minutes: a softmax and a sememe model compared and explained, and words found in raw characters.

    Called again it shows what is finished, and goes on with what is not. --set changes both models that are compared. A text
    is cut at its blanks; where most of its sentences are Chinese without blanks, by the words of the lexicon (--segmenter fmm).
    """
    from sememekit.signals import Stopped, stop_signals

    with stop_signals(patient=True, lasting=True) as asked_to_stop:
        try:
            with asked_to_stop.at_once():  # loading torch takes seconds, in which a signal may come
                from sememekit.reports.quickstart import charts, columns, how_it_was_made, rows, verdict, words_of_lattice
                from sememekit.reports.quickstart import truth_of_explanations as truth

                check_outputs(None, figure)
                with progress_bars(quiet) as show:
                    report = quickstart(
                        out,
                        text=text,
                        sources=sources or (),
                        segmenter=segmenter,
                        seed=seed,
                        share=share,
                        overrides=overrides or (),
                        device=device,
                        fresh=fresh,
                        progress=show,
                        asked_to_stop=asked_to_stop,
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
    if report.scores is not None:
        say(truth(report.scores))
    if report.lattice is not None:
        say(f"\nWords that a lattice model found in {report.lattice.characters:,} characters without blanks:\n")
        for line in words_of_lattice(report.lattice):
            say(f"  {line}")
    say(f"\nSee {report.page} for learning curves and predictions explained. Type next:\n")
    for command in report.next_commands:
        say(f"  {command}")


def quickstart(
    out: Path = Path("quickstart"),
    *,
    text: Path | None = None,
    sources: Sequence[str] = (),
    segmenter: str | None = None,
    seed: int = 1,
    share: float | None = None,
    overrides: Sequence[str] = (),
    month: Path | None = None,
    device: str = "auto",
    fresh: bool = False,
    progress: Progress = silent,
    asked_to_stop: StopRequest | None = None,
) -> QuickstartReport:
    """Prepare a text, build its sememe graph, train two models on words and one on characters, measure and explain them.

    The models that are compared are the recipes ``quickstart/softmax`` and ``quickstart/sdlm``: equal in data, size, dropout,
    optimiser, rate, schedule and seed. A text of fewer words than the usual part of the month is read more often.
    ``quickstart/lattice`` finds words in the characters of a Chinese text. Each is trained in a process and a thread of its
    own, the lattice when one of the others is done, so a script that calls this needs ``if __name__ == "__main__"``. A folder
    that is finished is shown again; an interrupted one continues.

    Args:
        out: the folder to write.
        text: an own text in place of the month: UTF-8, a sentence or paragraph a line, 60 lines and 1,000 words at least.
        sources: lexicons of the graph, as ``build-sememe-graph --source`` takes them. Default: the open one.
        segmenter: of an own text. Unless given, text is cut at its blanks, or, where most sentences are Chinese without blanks
            between words, by the words of ``sources`` (``fmm``).
        share: of the month's paragraphs or the text's lines; None for 0.34 of the month, and of a text for 2 MB at most.
        seed, overrides, month: as in ``QuickstartSettings``.
        device: ``auto``, ``cpu`` or ``cuda``.
        fresh: throw away what an earlier quickstart left in ``out``.
        progress: called as (stage, done, total).
        asked_to_stop: tells of signals; these are watched here unless it is given.

    Raises:
        ConfigError: ``out`` holds something else or was begun with other settings, or an option is out of range.
        DataError: there is no text to read, or too little of it.
        TrainingError: a model could not be trained.
    """
    from sememekit.commands.quickstarting import folder
    from sememekit.commands.quickstarting.text import usual_share
    from sememekit.reports.quickstart import QuickstartReport
    from sememekit.signals import Stopped, stop_signals

    usual = folder.QuickstartSettings()
    if segmenter and text is None:
        raise ConfigError("quickstart --segmenter: the newspaper is cut into words already; use it with --text FILE")
    share_here = usual_share(text, usual.share)
    settings = folder.QuickstartSettings(
        seed=seed,
        share=share_here if share is None else share,
        overrides=tuple(overrides),
        month=str(month or ""),
        text=str(text or ""),
        sources=tuple(sources) or usual.sources,
        segmenter=segmenter or "",
    )
    if not 0.0 < settings.share <= 1.0:
        raise ConfigError(f"quickstart: the share must lie above 0 and be 1 at most, given {settings.share:g}")
    again = folder.command_of(out, settings, share_here)
    began = time.perf_counter()
    with stop_signals(patient=True) if asked_to_stop is None else nullcontext(asked_to_stop) as asked:
        try:
            with asked.at_once():
                return _quickstart(out, settings, again, device, fresh, progress, asked)
        except Stopped:
            seconds = time.perf_counter() - began
            return QuickstartReport(out=str(out), stopped=True, seconds=seconds, next_commands=(again,))


def _quickstart(
    out: Path,
    settings: QuickstartSettings,
    again: str,
    device: str,
    fresh: bool,
    progress: Progress,
    asked_to_stop: StopRequest,
) -> QuickstartReport:
    from sememekit.commands.quickstarting import folder
    from sememekit.runs.plan import read_plan

    tables = {name: _table(out, name, settings, device) for name in folder.MODELS}
    for name, table in tables.items():
        read_plan(table, f"quickstart/{name}")  # so that a wrong setting is found now
    folder.check(out)
    with folder.alone(out):
        folder.begin(out, settings, again, fresh=fresh)
        return _go_on(out, settings, again, device, tables, progress, asked_to_stop)


def _go_on(
    out: Path,
    settings: QuickstartSettings,
    again: str,
    device: str,
    tables: dict[str, dict[str, Any]],
    progress: Progress,
    asked_to_stop: StopRequest,
) -> QuickstartReport:
    """What is not done yet, in a folder that is begun and held."""
    from sememekit.analysis.evaluate_ppl import evaluate_ppl
    from sememekit.commands.quickstarting import folder, steps
    from sememekit.commands.quickstarting import text as texts
    from sememekit.commands.trainings.processes import train_all
    from sememekit.reports.quickstart import QuickstartReport, report_page
    from sememekit.signals import Stopped

    done = folder.finished(out)
    if done is not None:
        if not (out / folder.PAGE).is_file():
            replace_file(out / folder.PAGE, report_page(done).encode())
        return done.model_copy(update={"already_done": True})
    began, spent, own = time.perf_counter(), time.process_time(), bool(settings.text)
    stage = partial(progress, "text and graph")
    stage(0, 4)
    if own:
        text = texts.prepare_own_text(out, Path(settings.text), settings.share, settings.seed, again)
    else:
        text = texts.prepare_month(out, settings.month, settings.share, settings.seed, again)
    stage(1, 4)
    data = texts.prepare_words(out, text, settings.sources, settings.segmenter, settings.share, settings.seed)
    stage(2, 4)
    graph = steps.prepare_graph(out, data, settings.sources)
    stage(3, 4)
    characters, no_lattice = texts.prepare_characters(out, text, data)
    stage(4, 4)
    tokens = data.signature.splits["train"].tokens
    tables = {name: steps.schedule_for(table, tokens, settings.overrides) for name, table in tables.items()}
    if characters is not None:
        tables[folder.LATTICE] = _table(out, folder.LATTICE, settings, device)
    cpu_seconds = {"text and graph": time.process_time() - spent}
    with asked_to_stop.patiently():
        trained = train_all(
            out,
            tables,
            again,
            progress,
            lambda name, report: None,
            asked_to_stop,
            in_words=lambda name, error: _in_words_of_quickstart(error, again),
        )
    if any(one.report.stopped for one in trained.values()):
        raise Stopped
    cpu_seconds |= {name: one.cpu_seconds for name, one in trained.items()}
    spent, rows = time.process_time(), []
    for name, one in trained.items():
        if name != folder.LATTICE:
            measured = evaluate_ppl(out / name, device=device, progress=_renamed(progress, f"test {name}"))
            rows.append(steps.model_row(name, one, measured, steps.epochs_of(out / name)))
    contexts = steps.contexts_of(data, own=own)
    explanations, guesses = steps.explained(out, contexts, device)
    scores = steps.explanation_scores(out, data, graph, device, _renamed(progress, "explanations"))
    lattice = None
    if folder.LATTICE in trained:
        found = trained[folder.LATTICE]
        lattice = steps.words_found(out, folder.LATTICE, found, own=own, device=device, progress=progress)
    cpu_seconds["results"] = time.process_time() - spent
    finished = QuickstartReport(
        out=str(out),
        text=texts.text_summary(text, data, graph),
        senses=graph.num_senses,
        sememes=graph.num_sememes,
        models=tuple(rows),
        explanations=tuple(explanations),
        softmax_guesses=tuple(guesses),
        scores=scores,
        lattice=lattice,
        no_lattice=no_lattice,
        page=str(out / folder.PAGE),
        seconds=time.perf_counter() - began,
        cpu_seconds=cpu_seconds,
        next_commands=_next_commands(out, contexts, lattice is not None),
    )
    replace_file(out / folder.PAGE, report_page(finished).encode())
    # the last: with it all is done
    replace_file(out / folder.REPORT, sealed(json_module.loads(finished.model_dump_json())))
    return finished


def _table(out: Path, name: str, settings: QuickstartSettings, device: str) -> dict[str, Any]:
    """The recipe of a model with the data, graph, seed and device at hand; overrides are for the two that are compared."""
    table = load_recipe(f"quickstart/{name}")
    lattice = table["task"]["name"] == "lattice"
    table["data"] = {**table["data"], "path": str(out / ("characters" if lattice else "data"))}
    if "graph" in table:
        table["graph"] = {**table["graph"], "path": str(out / "data.graph")}
    table["run"] = {**table.get("run", {}), "seed": settings.seed, "device": device}
    return table if lattice else apply_overrides(table, settings.overrides)


def _renamed(progress: Progress, stage: str) -> Progress:
    return lambda _, done, total: progress(stage, done, total)


def _next_commands(out: Path, contexts: Sequence[str], lattice: bool) -> tuple[str, ...]:
    sdlm = shlex.quote(str(out / "sdlm"))
    explain = (f'sememekit explain {sdlm} "{contexts[0]}" --html why.html',) if contexts else ()
    segment = (f"echo 上海市体育局召开会议 | sememekit segment --model {shlex.quote(str(out / 'lattice'))}",) if lattice else ()
    train = ["sememekit", "train", "--recipe", "quickstart/sdlm", "--data", str(out / "data")]
    train += ["--graph", str(out / "data.graph"), "--out", str(out / "mine"), "--set", "decoder.num_bases=5"]
    return (*explain, f"sememekit evaluate-ppl {sdlm} --by senses", *segment, shlex.join(train))


def _in_words_of_quickstart(error: SememekitError, command: str) -> SememekitError:
    """The error with the options of quickstart, which resumes by itself and starts again with ``--fresh``."""
    told = str(error).replace("--resume --set ", f"{command} --set ")
    for slot in ("optimizer", "schedule", "decoder", "encoder", "task"):
        told = told.replace(f"(--set {slot}.", f"(--fresh --set {slot}.")
    return type(error)(told)
