"""``sememekit attack``: adversarial attacks on classifiers, and paired comparisons of two attacks."""

import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememekit.commands import _options as shared
from sememekit.commands._options import argument, fail_usage, option, others_typed, variant_option
from sememekit.commands._printing import check_outputs, give_out, hint, leave_stopped, print_json, print_table, remark
from sememekit.commands._progress import progress_bars
from sememekit.commands._typed_table import typed_table
from sememekit.files import typed
from sememekit.signals import stop_signals

if TYPE_CHECKING:
    from sememekit.attack.report import AttackReport

EXAMPLES = (
    "sememekit attack runs/sst2 --data test.tsv --source table:en.tsv --out a/1",
    "sememekit attack mine:predict --data x.tsv --source open",
    "sememekit attack --out a/1 --resume",
    "sememekit attack --compare a/1 a/2",
)
FORMER = {
    f"--{name}": f"attack.{name.replace('-', '_')}" for name in ("limit", "sample", "query-budget", "counting", "batch-size")
}
"""Options of other programs -> our setting."""


def command(
    context: typer.Context,
    victim: Annotated[str | None, argument("[VICTIM]", "Run of a classifier; hf:PATH; or module:name.")] = None,
    data: Annotated[Path | None, option("--data", "Labelled texts: .tsv, .csv, .jsonl, or s1.SPLIT beside s2, labels.")] = None,
    out: Annotated[Path | None, option("--out", "Folder for the results (default: only printed).")] = None,
    recipe: shared.Recipe = None,
    goal: Annotated[str | None, variant_option("goal", "Goal: untargeted or targeted.")] = None,
    search: Annotated[str | None, variant_option("search", "Search: genetic, pso, greedy, beam, random or exhaustive.")] = None,
    candidates: Annotated[str | None, variant_option("candidates", "Substitutes: sememe, embedding, wordnet or table.")] = None,
    sources: Annotated[
        list[str] | None, option("--source", "Lexicon of sememe candidates, or of parts of speech.", metavar=shared.LEXICON)
    ] = None,
    lemmas: shared.Lemmas = None,
    vectors: Annotated[Path | None, option("--vectors", "Word vectors: embedding candidates, constraint similarity.")] = None,
    lm: Annotated[Path | None, option("--lm", "Language model (a run) of constraints; also reports perplexity.")] = None,
    judge: Annotated[
        str | None, option("--judge", "Second classifier: its labels of changed texts are a proxy.", metavar="VICTIM")
    ] = None,
    constraints: Annotated[
        str | None,
        option("--constraints", "standard (fewest changes of meaning), loose (as published), or none.", metavar="PRESET"),
    ] = None,
    opposites: Annotated[
        list[Path] | None, option("--opposites", "Pairs of words that must not replace each other; repeatable.", metavar="FILE")
    ] = None,
    paraphrases: Annotated[
        list[Path] | None, option("--paraphrases", "Only these pairs may replace each other; repeatable.", metavar="FILE")
    ] = None,
    segmenter: Annotated[
        str | None, option("--segmenter", "Segmenter of Chinese texts: characters, fmm, jieba or RUN.")
    ] = None,
    lexicon: Annotated[str | None, option("--lexicon", "Lexicon of the segmenter (fmm, jieba).", metavar="FORMAT:PATH")] = None,
    open_vocabulary: shared.OpenVocabulary = None,
    labels: Annotated[str | None, option("--labels", "Labels of a function in the order of its columns, with commas.")] = None,
    logits: Annotated[bool, option("--logits", "The victim returns logits, not probabilities.")] = False,
    overrides: shared.Overrides = None,
    resume: Annotated[bool, option("--resume", "Continue the attack in --out where it stopped.")] = False,
    trust_code: shared.TrustCode = False,
    folders: Annotated[
        tuple[Path, Path] | None, option("--compare", "Compare two finished attacks instead of running one.", metavar="DIR DIR")
    ] = None,
    ratings: Annotated[
        list[Path] | None,
        option("--ratings", "Filled rating sheets of --out: report how valid its successes are.", metavar="FILE"),
    ] = None,
    html: Annotated[Path | None, option("--html", "With --compare, also write a page.")] = None,
    figure: shared.Figure = None,
    which: shared.Which = "best",
    seed: shared.SeedIfGiven = None,
    device: shared.Device = "auto",
    workers: Annotated[int, option("--workers", "Processes among which the examples are divided.", min=1)] = 1,
    engine: shared.Engine = "local",
    json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Adversarial attack on a classifier by replacing words: success rate, queries and changes, with intervals.

    A signal stops the attack with exit code 75; finished examples are kept, and --resume continues."""
    check_outputs(None, figure)
    if folders is not None:
        if others := others_typed(context, {"folders", "html", "figure", "json", "quiet"}):
            fail_usage(f"--compare takes two folders of finished attacks, and no {' or '.join(others)}; leave it out")
        from sememekit.attack.folder import compare_attacks
        from sememekit.reports.attack import comparison_views
        from sememekit.reports.table import Shown

        check_outputs(html)
        attacks = {str(one) if folders[0].name == folders[1].name else one.name: one for one in folders}
        give_out(Shown(compare_attacks(*folders), comparison_views(attacks)), html, None, json=json, quiet=quiet)
        _draw(figure, attacks, quiet)
        return
    if html is not None:
        fail_usage("--html needs --compare; an attack always writes OUT/report.html")
    if out is None and (resume or ratings):
        if resume and victim is not None:
            fail_usage(f"what is resumed is named by --out: {typed('sememekit', 'attack', '--out', victim, '--resume')}")
        fail_usage("missing option '--out': the folder of the attack")
    if ratings and out is not None:
        if others := others_typed(context, {"out", "ratings", "json", "quiet"}):
            fail_usage(f"--ratings takes --out, the folder of a finished attack, and no {' or '.join(others)}; leave it out")
        from sememekit.reports.attack import rate

        _print_report(rate(out, ratings), out, json=json, quiet=quiet)
        return
    if not resume and None in (victim, data):
        fail_usage("name a VICTIM and --data FILE, or --resume an attack in --out, or --compare two")
    from sememekit.jobs.attack import attack

    named = {"goal": goal, "search": search, "candidates": candidates}
    values: dict[str, Any] = {
        "attack.constraints": constraints,
        "attack.segmenter": segmenter,
        "attack.lexicon": lexicon,
        "attack.open_vocabulary": open_vocabulary,
        "attack.open_lemmas": lemmas if open_vocabulary else None,
        "attack.seed": seed,
    }
    values |= {"constraints.opposites.files": opposites, "constraints.paraphrases.files": paraphrases}
    of_candidates = {
        ("sememe", "sources", "part_of_speech.sources"): sources,
        ("sememe", "lemmas", "part_of_speech.lemmas"): lemmas,
        ("embedding", "path", "similarity.path"): vectors,
    }
    table = _table(partial(typed_table, recipe, overrides, named), values, of_candidates, out if resume else None)
    printed_by_victim = redirect_stdout(sys.stderr)  # which is no result
    with TemporaryDirectory() as scratch:
        folder = out or Path(scratch) / "attack"
        with progress_bars(quiet) as show, stop_signals(lasting=True) as asked_to_stop, printed_by_victim:
            report = attack(
                victim,
                data,
                folder,
                table=table,
                labels=[name.strip() for name in labels.split(",")] if labels else [],
                logits=logits,
                language_model=lm,
                judge=judge or "",
                resume=resume,
                trust_code=trust_code,
                which=which,
                device=device,
                workers=workers,
                engine=engine,
                keep=out is not None,
                progress=show,
                asked_to_stop=asked_to_stop,
            )
        _print_report(report, out, json=json, quiet=quiet)
        if report.stopped:
            leave_stopped(f"go on with: {report.resume_command}" if out else "stopped; results are kept with --out DIR alone")
        _draw(figure, {"success rate": folder}, quiet)
    if out is None:
        hint("nothing was kept: --out DIR keeps the texts, a page and a sheet to rate the successes blind", quiet)
        return
    hint(f"next: open {out}/report.html, or rate its successes blind in {out}/ratings.html; then --ratings FILE", quiet)


def _table(
    make: Callable[..., Any], values: Mapping[str, Any], of_candidates: Mapping[tuple[str, str, str], Any], resumed: Path | None
) -> dict[str, Any]:
    """Return the typed options as a table; ``of_candidates`` are keys of one kind of candidates, or else of a constraint."""
    from sememekit.attack.folder import AttackFolder
    from sememekit.config import USUAL_VARIANTS

    stored = AttackFolder.open(resumed).identity["plan"] if resumed is not None else {}
    typed = make(values)
    chosen = {"name": USUAL_VARIANTS["candidates"], **stored.get("candidates", {}), **typed.get("candidates", {})}["name"]
    more = {
        f"candidates.{key}" if chosen == candidates else f"constraints.{constraint}": value
        for (candidates, key, constraint), value in of_candidates.items()
    }
    table: dict[str, Any] = make({**values, **more})
    return table


def _draw(figure: Path | None, folders: Mapping[str, Path], quiet: bool) -> None:
    if figure is None:
        return
    from sememekit.reports.attack import charts_of
    from sememekit.reports.charts import write_figure

    if drawn := charts_of(folders):
        write_figure(drawn, figure)
    remark(f"figure: {figure}" if drawn else "no figure: there was no example with something to try", quiet)


def _print_report(report: "AttackReport", out: Path | None, *, json: bool, quiet: bool) -> None:
    from sememekit.reports.attack import rate_rows

    for warning in report.warnings:
        remark(f"warning: {warning}", quiet=False)
    if json:
        print_json(report)
        return
    print_table(f"Attack on {report.victim} in {out}" if out else f"Attack on {report.victim}", ("", ""), rate_rows(report))
    how = f"goal {report.goal}, search {report.search}, candidates {report.candidates}"
    for note in (f"{report.preset}; {how}" if report.preset else how, *report.notes, f"signature: {report.signature}"):
        remark(note, quiet)
