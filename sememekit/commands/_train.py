"""The subcommand train: from flags to one plain table, and reports on their way out."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated, Any

import typer

from sememekit.commands._exit import STOPPED, fail_usage
from sememekit.commands._options import (
    Debug,
    DeviceIfGiven,
    Dtype,
    Json,
    Overrides,
    Quiet,
    Recipe,
    SeedIfGiven,
    TrustCode,
    given,
    names_of,
)
from sememekit.commands._render import hint, print_fields, print_json, remark, say, training_progress

EXAMPLES = (
    "sememekit train --data data/pd --out runs/softmax --set schedule.epochs=10",
    "sememekit train --decoder sdlm --data data/pd --graph pd.graph --out runs/sdlm",
    "sememekit train --task nli --encoder bilstm --data data/snli --out runs/nli",
    "sememekit train --task headline --data data/headlines --out runs/headlines",
    "sememekit train --out runs/sdlm --resume",
    "sememekit train --from runs/sdlm --recipe mixture/finetune --out runs/tuned",
)


def command(
    recipe: Recipe = None,
    task: Annotated[str | None, typer.Option("--task", help="What to learn.", autocompletion=names_of("tasks:TASKS"))] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            help="What reads the context: a name or package.module:Class.",
            autocompletion=names_of("encoders:ENCODERS"),
        ),
    ] = None,
    decoder: Annotated[
        str | None,
        typer.Option(
            "--decoder",
            help="What predicts the word: a name or package.module:Class.",
            autocompletion=names_of("decoders:DECODERS"),
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option("--data", help="Prepared data.", show_default=False)] = None,
    graph: Annotated[Path | None, typer.Option("--graph", help="Sememe graph.", show_default=False)] = None,
    vectors: Annotated[
        Path | None, typer.Option("--vectors", help="Word vectors that a classifier of texts begins with.", show_default=False)
    ] = None,
    clusters: Annotated[Path | None, typer.Option("--clusters", help="Word clusters.", show_default=False)] = None,
    augment: Annotated[
        Path | None,
        typer.Option(
            "--augment", help="What fooled another model, to learn from as well (examples.jsonl).", show_default=False
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the run.", show_default=False)] = None,
    start_from: Annotated[
        Path | None,
        typer.Option("--from", help="Begin with the best weights and the plan of this run.", show_default=False),
    ] = None,
    overrides: Overrides = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out where it stopped.")] = False,
    print_plan: Annotated[bool, typer.Option("--print-plan", help="Print every setting as JSON and train nothing.")] = False,
    seed: SeedIfGiven = None,
    device: DeviceIfGiven = None,
    dtype: Dtype = None,
    json: Json = False,
    quiet: Quiet = False,
    trust_code: TrustCode = False,
    debug: Debug = False,
) -> None:
    """Train a model; the folder that it leaves is all that the other commands need.

    A signal ends the run after the current step with a checkpoint and exit code 75; --resume goes on from there.
    --from makes a new run of a finished one: its plan, with the recipe, the flags and --set on top; no epoch that is
    worse than the start is kept.
    """
    named = given(task=task, encoder=encoder, decoder=decoder)
    keys = given(
        data=data, graph=graph, clusters=clusters, vectors=vectors, augment=augment, seed=seed, device=device, dtype=dtype
    )
    table = training_table(recipe, named, keys, overrides or [], start_from)
    if print_plan:
        from sememekit.runs.plan import read_plan

        say(json_module.dumps(read_plan(table, recipe or "the command line").table(), ensure_ascii=False, indent=2))
        return
    if out is None:
        fail_usage("missing option '--out': the folder of the run")
    from sememekit.commands.train import train

    hint(f"metrics: {out}/metrics.jsonl", quiet)
    with training_progress(quiet) as show:
        report = train(table, out, resume=resume, on_report=show, on_remark=lambda text: remark(text, quiet))
    if json:
        print_json(report)
    else:
        unit = "examples" if report.metric == "accuracy" else "tokens"
        shown = {f"{unit}_per_second" if name == "tokens_per_second" else name: value for name, value in dict(report).items()}
        shown["vectors"] = report.vectors.sentence() if report.vectors is not None else None
        shown["remarks"] = "; ".join(report.remarks) or None
        print_fields(f"Trained: {out}", shown)
    if report.stopped:
        remark(f"stopped by a signal; go on with: sememekit train --out {out} --resume", quiet=False)
        raise typer.Exit(STOPPED)
    streams = table.get("task", {}).get("name", "language_model") == "language_model"
    hint(f"page: {out}/report.html; next: sememekit {'evaluate-ppl' if streams else 'eval'} {out}", quiet)


_PLACES = {
    "data": ("data", "path"),
    "graph": ("graph", "path"),
    "clusters": ("clusters", "path"),
    "vectors": ("task", "vectors"),
    "augment": ("data", "augment"),
}
"""Where a flag's value goes; that of another flag goes to ``run`` under its own name."""


def training_table(
    recipe: str | None,
    variants: dict[str, str],
    keys: dict[str, Any],
    overrides: list[str],
    start_from: Path | None = None,
) -> dict[str, Any]:
    """The plain table of a run: the recipe, then the flags that name variants and things, then each override.

    Args:
        recipe: name or path, or None to start from nothing: a slot that is not named takes its usual variant.
        variants: slot -> name, of the flags that were given; another name than the recipe's replaces its table whole.
        keys: ``data``, ``graph``, ``clusters``, ``vectors``, ``augment``, ``seed``, ``device`` and ``dtype``, as far as given.
        overrides: ``slot.key=value``, applied last; a variant that they choose is chosen before any key is set.
        start_from: a run whose plan lies under the recipe.
    """
    from sememekit.config import apply_overrides, choose_variant, load_recipe, merge_tables, named_variants

    table = load_recipe(recipe) if recipe is not None else {}
    if start_from is not None:
        from sememekit.runs.training import table_of_run

        table = merge_tables(table_of_run(start_from), table)
    for slot, name in {**variants, **named_variants(overrides)}.items():
        table = choose_variant(table, slot, name)
    for name, value in keys.items():
        slot, key = _PLACES.get(name, ("run", name))
        table[slot] = {**table.get(slot, {}), key: str(value) if isinstance(value, Path) else value}
    return apply_overrides(table, overrides)
