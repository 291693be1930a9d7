"""The subcommand attack."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sememekit.commands._exit import STOPPED, fail_usage
from sememekit.commands._options import (
    Debug,
    Device,
    Json,
    Overrides,
    Quiet,
    Recipe,
    SeedIfGiven,
    TrustCode,
    Which,
    given,
    names_of,
)
from sememekit.commands._render import hint, print_json, print_table, progress_bars, remark, say

EXAMPLES = (
    "sememekit attack runs/sst2 --data test.tsv --source table:en.tsv --out a/1",
    "sememekit attack mine:predict --labels no,yes --data x.tsv --source open --out a",
    "sememekit attack --out a/1 --resume",
    "sememekit attack --compare a/1 a/2",
)


def command(
    victim: Annotated[
        str | None,
        typer.Argument(metavar="[VICTIM]", help="Run of a classifier, or module:function: texts -> probabilities."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="Labelled texts: .tsv, .jsonl, or s1.SPLIT beside s2 and labels.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the results.", show_default=False)] = None,
    recipe: Recipe = None,
    goal: Annotated[
        str | None,
        typer.Option("--goal", help="untargeted or targeted.", autocompletion=names_of("attack.plan:GOALS")),
    ] = None,
    search: Annotated[
        str | None,
        typer.Option(
            "--search",
            help="genetic, pso, greedy, beam, random, exhaustive.",
            autocompletion=names_of("attack.searches:SEARCHES"),
        ),
    ] = None,
    candidates: Annotated[
        str | None,
        typer.Option(
            "--candidates",
            help="sememe, embedding, wordnet or table.",
            autocompletion=names_of("attack.candidates:CANDIDATES"),
        ),
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option("--source", metavar="FORMAT:PATH", help="Lexicon of sememe candidates; may be repeated."),
    ] = None,
    lemmas: Annotated[
        Path | None, typer.Option("--lemmas", help="Lemma TAB form lines, for inflected sememe candidates.")
    ] = None,
    vectors: Annotated[Path | None, typer.Option("--vectors", help="Word vectors of embedding candidates.")] = None,
    lm: Annotated[
        Path | None, typer.Option("--lm", help="Run of a language model: it ranks substitutes and judges the changes.")
    ] = None,
    opposites: Annotated[
        list[Path] | None,
        typer.Option("--opposites", metavar="FILE", help="Pairs of words that must not stand for each other; may be repeated."),
    ] = None,
    paraphrases: Annotated[
        list[Path] | None,
        typer.Option("--paraphrases", metavar="FILE", help="Pairs of words that alone may stand for each other; likewise."),
    ] = None,
    segmenter: Annotated[
        str | None,
        typer.Option("--segmenter", help="Cuts the Chinese texts of a function: characters, fmm, jieba; a run has its own."),
    ] = None,
    lexicon: Annotated[
        str | None, typer.Option("--lexicon", metavar="FORMAT:PATH", help="Words that this segmenter knows.")
    ] = None,
    labels: Annotated[
        str | None, typer.Option("--labels", help="Names of a function's labels in order, commas between.")
    ] = None,
    overrides: Overrides = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the attack in --out where it stopped.")] = False,
    trust_code: TrustCode = False,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--compare", metavar="DIR DIR", help="Instead: paired differences between two finished attacks."),
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="With --compare, also write a page.")] = None,
    which: Which = "best",
    seed: SeedIfGiven = None,
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Try to fool a classifier by exchanging words; success, queries and changes with intervals.

    A signal ends it with everything that is finished on disk and exit code 75; --resume goes on from there.
    """
    if compare is not None:
        if victim is not None or data is not None or resume:
            fail_usage("--compare takes two folders of finished attacks, and no victim, --data or --resume")
        _compare(compare, html, json)
        return
    if html is not None:
        fail_usage("--html goes with --compare; an attack writes OUT/report.html by itself")
    if out is None:
        fail_usage("missing option '--out': a folder for the results")
    if not resume and (victim is None or data is None):
        fail_usage("name a VICTIM and --data FILE, or --resume an attack in --out, or --compare two")
    from sememekit.config import apply_overrides

    named = given(goal=goal, search=search, candidates=candidates)
    things = given(sources=sources, lemmas=lemmas, vectors=vectors)
    table = attack_table(recipe, named, things, seed, [])
    for name, files in given(opposites=opposites, paraphrases=paraphrases).items():
        lists = {**table.get("constraints", {}).get(name, {}), "files": [str(file) for file in files]}
        table["constraints"] = {**table.get("constraints", {}), name: lists}
    cutting = given(segmenter=segmenter, lexicon=lexicon)
    if cutting:
        table["attack"] = {**table.get("attack", {}), **cutting}
    table = apply_overrides(table, overrides or [])
    from sememekit.commands.attack import attack
    from sememekit.reports.attack import rate_rows

    names = [name.strip() for name in labels.split(",")] if labels else []
    with progress_bars(quiet) as show:
        report = attack(
            victim,
            data,
            out,
            table=table,
            labels=names,
            language_model=lm,
            resume=resume,
            trust_code=trust_code,
            which=which,
            device=device,
            progress=show,
        )
    for warning in report.warnings:
        remark(f"warning: {warning}", quiet=False)
    if json:
        print_json(report)
    else:
        print_table(f"Attack on {report.victim} in {out}", ("", ""), rate_rows(report))
        how = f"goal {report.goal}, search {report.search}, candidates {report.candidates}"
        remark(f"{report.preset}; {how}" if report.preset else how, quiet)
        for note in report.notes:
            remark(note, quiet)
    if report.stopped:
        remark(f"stopped by a signal; go on with: {report.resume_command}", quiet=False)
        raise typer.Exit(STOPPED)
    hint(f"next: open {out}/report.html, or compare with: sememekit attack --compare {out} OTHER", quiet)


def attack_table(
    recipe: str | None, variants: dict[str, str], things: dict[str, Any], seed: int | None, overrides: list[str]
) -> dict[str, Any]:
    """The plain table of an attack: the recipe, then the flags that name variants and things, then each override.

    Args:
        recipe: name or path, or None: untargeted, genetic, sememe.
        variants: slot -> name, of the flags that were given; another name than the recipe's replaces its table whole.
        things: ``sources``, ``lemmas`` and ``vectors``, as far as given.
        seed: of everything random, or None.
        overrides: ``slot.key=value``, applied last; a variant that they choose is chosen before any key is set.
    """
    from sememekit.config import apply_overrides, choose_variant, load_recipe, named_variants

    table = load_recipe(recipe) if recipe is not None else {}
    for slot, name in {**variants, **named_variants(overrides)}.items():
        table = choose_variant(table, slot, name)
    for name, value in things.items():
        key = "path" if name == "vectors" else name
        table["candidates"] = {**table.get("candidates", {}), key: str(value) if isinstance(value, Path) else value}
    if seed is not None:
        table["attack"] = {**table.get("attack", {}), "seed": seed}
    return apply_overrides(table, overrides)


def _compare(folders: tuple[Path, Path], html: Path | None, json: bool) -> None:
    from sememekit.commands.attack import compare
    from sememekit.reports.attack import comparison_rows

    found = compare(*folders, html=html)
    if json:
        print_json(found)
        return
    title = f"{found.first} against {found.second}: {found.common:,} examples in common"
    print_table(title, ("", "first", "second", "first minus second (95 %)", ""), comparison_rows(found))
    if found.only_one:
        say(f"left out: {found.only_one:,} examples that one side lacks or that ended in an error")
    rows = [(name, one, two) for name, (one, two) in found.unlike.items()]
    print_table("What differs", ("setting", "first", "second"), rows, numeric=3)
