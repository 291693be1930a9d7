"""``sememekit build-sememe-graph``: lexicons and a prepared-data folder in, one graph file out."""

from pathlib import Path
from typing import Annotated

from sememekit.commands._options import Json, Lemmas, Quiet, Seed, Side, Sources, fail_usage, option
from sememekit.commands._printing import hint, print_fields, print_json, remark
from sememekit.figures import percent
from sememekit.files import typed

EXAMPLES = ("sememekit build-sememe-graph --source open --data quickstart/data --out w.graph",)
NUM_WORDS_SHOWN = 10  # unannotated words to name; --unannotated FILE.tsv has all


def command(
    data: Annotated[Path, option("--data", "Prepared data whose words get sememes.")],
    out: Annotated[Path, option("--out", "File to write.")],
    sources: Sources = None,
    side: Side = "chinese",
    lemmas: Lemmas = None,
    defining_words: Annotated[int, option("--defining-words", "Number of sememes for the source 'dictionary'.", min=1)] = 2000,
    drop_edges: Annotated[float, option("--drop-edges", "Share of annotations to remove at random.", min=0.0, max=1.0)] = 0.0,
    yes_download: Annotated[bool, option("--yes-download", "Allow openhownet to download its data.")] = False,
    unannotated: Annotated[
        Path | None, option("--unannotated", "Write unknown words: count, suggested sememes, example.", metavar="FILE.tsv")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Give each word of the data its senses and their sememes, and print the coverage.

    Give at least one --source."""
    from sememekit.jobs.build_sememe_graph import build_sememe_graph

    if not sources:
        fail_usage("missing option '--source': name at least one, for example --source open")
    report = build_sememe_graph(
        sources,
        data,
        out,
        drop_edges=drop_edges,
        seed=seed,
        side=side,
        lemmas=lemmas,
        defining_words=defining_words,
        yes_download=yes_download,
    )
    if unannotated is not None and report.statistics.words_without_annotation:
        from sememekit.analysis.suggestions import suggest_for
        from sememekit.sememes.suggesting import write_suggestions

        write_suggestions(unannotated, suggest_for(data, sources, side))
    if json:
        print_json(report, without=None if unannotated else {"statistics": {"words_without_annotation"}})
        return
    fields = report.statistics.model_dump()
    without = fields.pop("words_without_annotation")
    by_depth, by_role = fields.pop("edges_by_depth"), fields.pop("edges_by_role")
    shares = {name: percent(value, 2) for name, value in fields.items() if name.endswith("_coverage")}
    print_fields(f"Sememe graph in {out}", fields | shares)
    for use in report.lexicons:
        remark(f"{use.source}: {use.words_used:,} words, {use.tokens_used:,} running tokens", quiet)
    if by_depth:
        depths = ", ".join(f"{name} {count:,}" for name, count in by_depth.items())
        remark(f"edges by the depth of the sememe in the definition: {depths}; by its role: {len(by_role)} classes", quiet)
    else:
        remark("no structure: none of these sources has definitions, so edges have no depth and no role", quiet)
    for line in report.history:
        remark(line, quiet)
    if without:
        shown, rest = " ".join(without[:NUM_WORDS_SHOWN]), len(without) - NUM_WORDS_SHOWN
        more = f", and {rest:,} more (--unannotated FILE.tsv has all)" if rest > 0 else ""
        remark(f"words without annotation: {shown}{more}", quiet)
    train = typed("sememekit", "train", "--decoder", "sdlm", "--data", data, "--graph", out, "--out", "runs/sdlm")
    hint(f"next: {train}", quiet)
