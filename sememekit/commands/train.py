"""``sememekit train``: train a model from options and a recipe, into a run folder."""

import json as json_module
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememekit.commands import _options as shared
from sememekit.commands._options import fail_usage, option, variant_option
from sememekit.commands._printing import hint, leave_stopped, print_fields, print_json, print_table, remark, say
from sememekit.commands._progress import TrainingProgress, epoch_line, progress_bars
from sememekit.commands._typed_table import check_vectors, typed_table
from sememekit.config import settings_typed_as_options
from sememekit.decoders import DECODERS
from sememekit.encoders import ENCODERS
from sememekit.files import RunWarning, typed
from sememekit.signals import FAILED, STOPPED, stop_signals
from sememekit.tasks import TASKS

if TYPE_CHECKING:
    from sememekit.ranks import Ranks
    from sememekit.training import Report

EXAMPLES = (
    "sememekit train --recipe quickstart/softmax --out runs/softmax",
    "sememekit train --decoder sdlm --data data/pd --graph pd.graph --out runs/sdlm",
    "sememekit train --task nli --encoder bilstm --data data/snli --out runs/nli",
    "sememekit train --task headline --data data/headlines --out runs/headlines",
    "sememekit train --out runs/softmax --resume",
    "sememekit train --data data/pd --out runs/three --seeds 1,2,3",
    "sememekit train --from runs/sdlm --recipe mixture/finetune --out runs/tuned",
)

FORMER = settings_typed_as_options()  # options of other programs -> our setting


class TrackerName(StrEnum):
    """The values of ``--track``."""

    tensorboard = "tensorboard"
    wandb = "wandb"
    mlflow = "mlflow"


def _any_of(names: Mapping[str, str]) -> str:
    return f"{', '.join(names)} or package.module:Class."


def command(
    recipe: shared.Recipe = None,
    task: Annotated[str | None, variant_option("task", f"Task: {_any_of(TASKS)}")] = None,
    encoder: Annotated[str | None, variant_option("encoder", f"Encoder: {_any_of(ENCODERS)} hf:PATH of Hugging Face.")] = None,
    decoder: Annotated[str | None, variant_option("decoder", f"Output layer: {_any_of(DECODERS)}")] = None,
    data: Annotated[Path | None, option("--data", "Prepared data.")] = None,
    graph: Annotated[Path | None, option("--graph", "Sememe graph.")] = None,
    vectors: Annotated[Path | None, option("--vectors", "Pretrained word vectors of a classifier (GloVe text format).")] = None,
    clusters: Annotated[Path | None, option("--clusters", "Word clusters.")] = None,
    augment: Annotated[Path | None, option("--augment", "Adversarial training: examples.jsonl of an attack on train.")] = None,
    out: Annotated[Path | None, option("--out", "Folder of the run.")] = None,
    start_from: Annotated[Path | None, option("--from", "Start from the best weights and the plan of this run.")] = None,
    overrides: shared.Overrides = None,
    resume: Annotated[bool, option("--resume", "Continue the run in --out where it stopped.")] = False,
    print_plan: Annotated[bool, option("--print-plan", "Print every setting as JSON and train nothing.")] = False,
    seed: shared.SeedIfGiven = None,
    seeds: Annotated[str | None, option("--seeds", "Train with several seeds, OUT/seed-N each.", metavar="N,N,...")] = None,
    jobs: Annotated[int | None, option("--jobs", "With --seeds: processes, one thread each.", min=1, show_default="2")] = None,
    engine: shared.EngineIfGiven = None,
    device: shared.DeviceIfGiven = None,
    dtype: shared.DtypeIfGiven = None,
    track: Annotated[
        list[TrackerName] | None,
        option("--track", "Also send learning curves to this service; may be repeated. TensorBoard needs no option."),
    ] = None,
    json: shared.Json = False,
    quiet: shared.Quiet = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="A line for each step, in place of the bar.")] = False,
) -> None:
    """Train a model and write its run folder, which the other commands read.

    A signal stops the run after the current step with a checkpoint and exit code 75; --resume continues there. --seeds trains
    several runs and prints their mean and standard deviation, also in OUT/seeds.json. --from starts a new run from the plan
    and best weights of a finished one; options override the plan, and epochs worse than the start are discarded.
    "torchrun --nproc_per_node=N -m sememekit train ..." trains one model in N processes."""
    if seeds is None and jobs is not None:
        fail_usage("--jobs is how many of several seeds are trained at a time; add --seeds 1,2,3")
    if seeds is None and engine is not None:
        fail_usage("--engine is where several seeds are trained; add --seeds 1,2,3")
    if seeds is not None and seed is not None:
        fail_usage("--seed and --seeds exclude each other")
    below = None
    if start_from is not None:
        from sememekit.runs.start_from import table_of_run

        below = table_of_run(start_from)
    values: dict[str, Any] = {"data.path": data, "graph.path": graph, "clusters.path": clusters, "task.vectors": vectors}
    values |= {"data.augment": augment, "run.seed": seed, "run.device": device, "run.dtype": dtype, "run.track": track}
    table = typed_table(recipe, overrides, {"task": task, "encoder": encoder, "decoder": decoder}, values, below)
    check_vectors(vectors, table)
    if print_plan:
        from sememekit.runs.plan import read_plan
        from sememekit.runs.start_from import with_earlier_epochs

        plan = read_plan(with_earlier_epochs(table), recipe or "the command line")
        say(json_module.dumps(plan.table(), ensure_ascii=False, indent=2))
        return
    if out is None:
        fail_usage("missing option '--out': the folder of the run")
    if seeds is not None:
        if "WORLD_SIZE" in os.environ:
            fail_usage("--seeds starts processes of its own, and torchrun started this one; take one of the two")
        _command_seeds(table, out, seeds, jobs, engine or "local", resume=resume, json=json, quiet=quiet)
        return
    if resume:
        from sememekit.jobs.seeds import check_one_run

        check_one_run(out)
    with ExitStack() as held:
        ranks = held.enter_context(_ranks()) if "WORLD_SIZE" in os.environ else None
        follows = ranks is not None and not ranks.leads
        quiet = quiet or follows
        hint(f"metrics: {out}/metrics.jsonl", quiet)
        show = TrainingProgress(held.enter_context(progress_bars(quiet or verbose)), quiet, verbose)  # before torch is imported
        trained: list[Any] = []

        def reported(report: Any) -> None:
            trained.append(report)
            show(report)

        told: dict[str, Any] = {"on_report": reported, "on_step": show.at, "on_remark": lambda text: remark(text, quiet)}
        again = ranks is not None and ranks.restarts > 0 and ranks.noted(f"begun {out}")
        asked_to_stop = held.enter_context(stop_signals(patient=ranks is not None and ranks.size > 1, lasting=True))
        from sememekit.jobs.train import train

        report = train(table, out, resume=resume or again, ranks=ranks, should_stop=asked_to_stop, **told)
    if follows:
        if report.stopped:
            raise typer.Exit(STOPPED)
        return
    if json:
        print_json(report)
    else:
        unit = "examples" if report.metric == "accuracy" else "tokens"
        shown = {f"{unit}_per_second" if name == "tokens_per_second" else name: value for name, value in dict(report).items()}
        shown["vectors"] = report.vectors.sentence() if report.vectors is not None else None
        shown["remarks"] = "; ".join(report.remarks) or None
        print_fields(f"Trained: {out}", shown)
    if report.stopped:
        tracked = [part for name in track or () for part in ("--track", name)]
        leave_stopped(f"go on with: {typed('sememekit', 'train', '--out', out, '--resume', *tracked)}")
    if resume and not trained:
        more = typed("sememekit", "train", "--out", out, "--resume", "--set", "schedule.epochs=N")
        remark(f"the run had ended before, and nothing was trained; where its schedule allows more epochs: {more}", quiet)
    from sememekit.runs.plan import variant

    kinds = variant("task", str(table.get("task", {}).get("name", "language_model"))).kinds
    command_name = "evaluate-ppl" if {"words", "lattices"} & kinds else "eval"
    hint(f"page: {out}/report.html; next: {typed('sememekit', command_name, out)}", quiet)


@contextmanager
def _ranks() -> Iterator["Ranks"]:
    """Return the processes of torchrun. Only the first prints, and only one reports a failure."""
    from sememekit.ranks import joined

    with joined() as ranks:
        if not ranks.leads:
            warnings.simplefilter("ignore", RunWarning)
        try:
            yield ranks
        except Exception:
            if not ranks.speaks_of_failure():
                raise typer.Exit(FAILED) from None
            raise


def _command_seeds(
    table: Mapping[str, Any], out: Path, seeds: str, jobs: int | None, engine: str, *, resume: bool, json: bool, quiet: bool
) -> None:
    def show(run: str, report: "Report") -> None:
        if type(report).__name__ == "EpochReport":
            remark(f"{run}: {epoch_line(report)}", quiet)

    with progress_bars(quiet) as progress, stop_signals(patient=True, lasting=True) as asked_to_stop:
        told: dict[str, Any] = {"progress": progress, "on_report": show, "on_remark": lambda text: remark(text, quiet)}
        told["should_stop"] = asked_to_stop
        from sememekit.jobs.seeds import of_engine, train_seeds

        report = train_seeds(table, out, read_seeds(seeds), jobs=jobs or 2, engine=engine, resume=resume, **told)
    if json:
        print_json(report, without={"table"})
    else:
        metric = f"best validation {report.metric.replace('_', ' ')}"
        rows: list[tuple[object, ...]] = [
            (str(seed), run.best_valid, run.best_epoch, run.epochs, run.finished or "stopped")
            for seed, run in zip(report.seeds, report.runs, strict=True)
        ]
        rows += [("mean", report.mean, "", "", ""), ("sd", report.sd, "", "", "")]
        print_table(f"Trained: {report.out}/seed-N", ("seed", metric, "of epoch", "epochs", "ended"), rows)
    if report.stopped:
        again = typed("sememekit", "train", "--out", out, "--seeds", seeds, "--resume") + of_engine(engine)
        leave_stopped(f"go on with: {again}")


def read_seeds(text: str) -> tuple[int, ...]:
    """The seeds of ``--seeds 1,2,3``; a wrong one is a usage error."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) <= 20 for part in parts):
        fail_usage(f"--seeds {text!r}: expected numbers with commas between, such as 1,2,3")
    seeds = tuple(int(part) for part in parts)
    if len(set(seeds)) < len(seeds):
        fail_usage(f"--seeds {text}: a seed is given twice")
    return seeds
