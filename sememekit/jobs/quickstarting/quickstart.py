"""From a text to models that are compared and explained, in minutes."""

import json
import shlex
import time
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from sememekit.analysis.evaluate_ppl import evaluate_ppl
from sememekit.config import apply_overrides, load_recipe
from sememekit.errors import ConfigError, SememekitError
from sememekit.files import replace_file, sealed
from sememekit.jobs.quickstarting import folder, steps
from sememekit.jobs.quickstarting import text as texts
from sememekit.jobs.quickstarting.folder import QuickstartSettings
from sememekit.jobs.trainings import train_all
from sememekit.progress import Progress, silent
from sememekit.reports.quickstart import QuickstartReport, report_page
from sememekit.runs.plan import read_plan
from sememekit.signals import Stopped, StopRequest, stop_signals


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

    Args, beside those of ``quickstart --help``:
        text: 60 lines and 1,000 words at least.
        share: None for 0.34 of the month, and of a text for 2 MB at most.
        month: as in ``QuickstartSettings``.
        asked_to_stop: tells of signals; these are watched here unless it is given.

    Raises:
        ConfigError: ``out`` holds something else or was begun with other settings, or an option is out of range.
        DataError: there is no text to read, or too little of it.
        TrainingError: a model could not be trained.
    """
    usual = folder.QuickstartSettings()
    if segmenter and text is None:
        raise ConfigError("quickstart --segmenter: the newspaper is cut into words already; use it with --text FILE")
    share_here = texts.usual_share(text, usual.share)
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
    tables = {name: _table(out, name, settings, device) for name in folder.MODELS}
    with stop_signals(patient=True) if asked_to_stop is None else nullcontext(asked_to_stop) as asked:
        try:
            with asked.at_once():
                for name, table in tables.items():
                    read_plan(table, f"quickstart/{name}")  # so that a wrong setting is found now
                with folder.alone(out):
                    folder.begin(out, settings, again, fresh=fresh)
                    return _go_on(out, settings, again, device, tables, progress, asked)
        except Stopped:
            seconds = time.perf_counter() - began
            return QuickstartReport(out=str(out), stopped=True, seconds=seconds, next_commands=(again,))


def _go_on(
    out: Path,
    settings: QuickstartSettings,
    again: str,
    device: str,
    tables: dict[str, dict[str, Any]],
    progress: Progress,
    asked_to_stop: StopRequest,
) -> QuickstartReport:
    """Run the steps that remain in a folder that is begun and locked."""
    done = folder.finished(out)
    if done is not None:
        if not (out / folder.PAGE).is_file():
            replace_file(out / folder.PAGE, report_page(done).encode())
        return done.model_copy(update={"already_done": True})
    began, spent, own = time.perf_counter(), time.process_time(), bool(settings.text)
    stage = partial(progress, "text and graph")
    stage(0, 4)
    text = texts.draw(out, settings, again)
    stage(1, 4)
    data = texts.prepare_words(out, text, settings)
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
        try:
            trained = train_all(out, tables, again, progress, lambda name, report: None, asked_to_stop)
        except SememekitError as error:
            raise _in_words_of_quickstart(error, again) from None
    if any(one.report.stopped for one in trained.values()):
        raise Stopped
    cpu_seconds |= {name: one.cpu_seconds for name, one in trained.items()}
    spent, rows = time.process_time(), []
    for name, one in trained.items():
        if name != folder.LATTICE:
            measured = evaluate_ppl(out / name, device=device, progress=_renamed(progress, f"test {name}"))
            rows.append(steps.model_row(out, name, one, measured))
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
    replace_file(out / folder.REPORT, sealed(json.loads(finished.model_dump_json())))
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
    return (f"sememekit serve {sdlm}", *explain, f"sememekit evaluate-ppl {sdlm} --by senses", *segment, shlex.join(train))


def _in_words_of_quickstart(error: SememekitError, command: str) -> SememekitError:
    """Return the error with the options of quickstart, which resumes automatically and starts again with ``--fresh``."""
    told = str(error).replace("--resume --set ", f"{command} --set ")
    for slot in ("optimizer", "schedule", "decoder", "encoder", "task"):
        told = told.replace(f"(--set {slot}.", f"(--fresh --set {slot}.")
    return type(error)(told)
