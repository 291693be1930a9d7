"""The subcommand extend; the plain functions are ``extend`` and ``compare_extended`` of ``runs`` and ``analysis``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememekit.commands import _options as shared
from sememekit.commands._options import fail_usage, option, others_typed
from sememekit.commands._printing import hint, print_fields, print_json, print_table, remark, say
from sememekit.commands._progress import progress_bars
from sememekit.figures import percent
from sememekit.files import typed

if TYPE_CHECKING:
    from sememekit.runs.extend import ExtendReport

EXAMPLES = (
    "sememekit extend quickstart/sdlm --words new.tsv --out runs/more",
    "sememekit extend quickstart/sdlm --against runs/more --data data/more",
)


def command(
    context: typer.Context,
    run: shared.Run,
    words: Annotated[Path | None, option("--words", "New words, or a table: word, sememes, count.", metavar="FILE")] = None,
    out: Annotated[Path | None, option("--out", "The new run folder.", metavar="RUN2")] = None,
    sources: shared.SourcesOrOpen = None,
    side: shared.Side = "chinese",
    lemmas: shared.Lemmas = None,
    prior: Annotated[float, option("--prior", "Share of p(<unk>) for new words without counts (0 to 1).")] = 0.5,
    against: Annotated[list[Path] | None, option("--against", "Compare RUN with RUN2 on --data.", metavar="RUN2")] = None,
    data: shared.EvaluationData = None,
    split: shared.Split = "test",
    which: shared.Which = "best",
    device: shared.Device = "auto",
    json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Give a trained model new words without training: their vectors come from their sememes and characters.

    Old words keep their vectors, and the probabilities of all words sum to one. New words take probability from <unk>. A word
    without sememes in FILE gets its sememes from --source; without any, only its characters count.

    With --against: perplexity of a text with the new words, under RUN (where they share <unk>) and under RUN2."""
    with_words = {"--words", "--out", "--source", "--side", "--lemmas", "--prior", "--which"}
    if unread := [name for name in others_typed(context, ()) if name in (with_words if against else {"--split"})]:
        fail_usage(f"{' and '.join(unread)}: this is for {'--words FILE' if against else '--against RUN2'}; leave it out")
    if against:
        from sememekit.analysis.extended_words import compare_extended

        if data is None:
            fail_usage("--against needs --data: sememekit preprocess DATASET SOURCE --vocabulary RUN2 --out DATA")
        with progress_bars(quiet) as show:
            found = compare_extended(run, against, data, split=split, device=device, progress=show)
        if json:
            print_json(found)
            return
        columns = ("", "perplexity", "new words", "all others", "1 / rank", "among new words")
        rows = [tuple(dict(row).values()) for row in found.rows]
        print_table(f"{found.data}, {found.split}: {found.words:,} new words", columns, rows)
        say(f"{found.tokens:,} tokens, of which {found.new_tokens:,} are new words; ranks are of these")
        return
    if words is None or out is None:
        fail_usage("give --words FILE and --out RUN2, or --against RUN2 and --data DATA")
    from sememekit.runs.extend import extend

    options: dict[str, Any] = {"sources": sources or (), "side": side, "lemmas": lemmas}
    options |= {"prior": prior, "data": data, "which": which}
    with progress_bars(quiet) as show:
        report = extend(run, words, out, device=device, progress=show, **options)
    print_json(report) if json else _print_extended(report, quiet)


def _print_extended(report: "ExtendReport", quiet: bool) -> None:
    shares = "by counts" if report.counted else "equal"
    within = f"within {100 * (report.calibration_error or 0.0):.2g} %"
    met = f"met in the mean over {report.contexts:,} contexts, {within}" if report.calibrated else "not met: no bias a word"
    fields = {
        "words added": len(report.words),
        "of them without sememes": len(report.unannotated),
        **{f"left out: {cause}": len(words) for cause, words in report.refused.items()},
        "predicted from": f"{report.features:,} features: sememes, characters, count",
        "predicted": ", ".join(report.predicted),
        "shares of <unk>": f"{shares}, {percent(1.0 - report.unknown_share)} together, {met}" if report.shares else None,
        "vocabulary": f"{report.of_vocabulary} -> {report.vocabulary}",
    }
    print_fields(f"{report.written}: {report.run} with more words", fields)
    for cause, words in report.refused.items():
        remark(f"{cause}: {' '.join(words[:10])}{' ...' if len(words) > 10 else ''}", quiet)
    for what, some in (
        (f"the run's segmenter cuts {len(report.cut_apart):,} of them apart where they stand alone", report.cut_apart),
        ("sememes that the graph does not know", report.dropped_sememes),
    ):
        if some:
            remark(f"{what}: {' '.join(some[:10])}{' ...' if len(some) > 10 else ''}", quiet)
    prepare = "preprocess", "plain", "TEXT", "--vocabulary", report.written, "--out", "DATA"
    hint(f"next: {typed('sememekit', *(prepare if report.shares else ('predict', report.written, 'TEXTS')))}", quiet)
