"""The subcommand eval; the plain functions are ``evaluate`` and ``evaluate_segmentation`` in ``sememekit.analysis``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from sememekit.commands import _options as shared
from sememekit.commands._explanations import Contexts, Tops, score_explanations
from sememekit.commands._options import SenseMethod, SenseSources, given, option, refuse
from sememekit.commands._printing import in_per_cent, print_fields, print_json, print_table, remark, say
from sememekit.commands._progress import progress_bars
from sememekit.commands._run_kinds import Way, choose, open_run
from sememekit.figures import percent, percent_interval

if TYPE_CHECKING:
    from sememekit.analysis.evaluate import LabelMetrics, MetricsReport
    from sememekit.analysis.segmentation import SegmentationReport
    from sememekit.analysis.senses.evaluation import SenseScores
    from sememekit.runs.run import Run as LoadedRun

MarksName = Literal["found", "given"]

EXAMPLES = (
    "sememekit eval runs/sdlm --split valid --json",
    "sememekit eval runs/sdlm --senses gold.tsv",
    "sememekit eval runs/sdlm --explanations --html scores.html",
)


def command(
    run: shared.Run,
    split: shared.TestUnlessGiven = None,
    data: shared.EvaluationData = None,
    overrides: shared.SearchOverrides = None,
    texts: shared.Texts = None,
    segmentation: Annotated[
        Path | None,
        option("--segmentation", "Score the segmentation of a lattice model against this segmented text.", metavar="GOLD"),
    ] = None,
    words: Annotated[
        Path | None,
        option(
            "--words", "With --segmentation: segmented text whose words the maximum-matching baseline knows.", metavar="TEXT"
        ),
    ] = None,
    lexicon: Annotated[
        str | None, option("--lexicon", "With --segmentation: lexicon of the maximum-matching baseline.", metavar="FORMAT:PATH")
    ] = None,
    marks: Annotated[
        MarksName | None,
        option("--marks", "With --segmentation: numbers, Latin words and punctuation are found (default), or given."),
    ] = None,
    decode: shared.Decode = None,
    senses: Annotated[
        Path | None,
        option("--senses", "Score tagged senses against gold: lines of SememeWSD, a table or CoNLL-U.", metavar="GOLD"),
    ] = None,
    method: SenseMethod = None,
    sources: SenseSources = None,
    explanations: Annotated[
        bool, option("--explanations", "Score the sememes that explain lists against those of the next word.")
    ] = False,
    tops: Tops = None,
    mean: shared.MeanIfGiven = None,
    contexts: Contexts = None,
    seed: shared.SeedIfGiven = None,
    html: shared.Html = None,
    figure: shared.Figure = None,
    baseline: Annotated[
        Literal["lead"] | None, option("--baseline", "Instead: ROUGE of the beginning of each source; RUN is prepared pairs.")
    ] = None,
    lead: Annotated[
        str | None,
        option("--lead", "With --baseline: N-words, N-bytes or N-characters (default: by data set).", metavar="N-UNIT"),
    ] = None,
    rouge: Annotated[
        list[str] | None,
        option("--rouge", "With --baseline: gigaword, duc, lcsts-characters or lcsts-words; may be repeated."),
    ] = None,
    which: shared.Which = "best",
    device: shared.Device = "auto",
    dtype: shared.Dtype = None,
    json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Metrics of the task: accuracy, ROUGE or BLEU, perplexity, word segmentation, senses, explanations.

    --senses compares the senses that every method tags with those that people gave (docs/senses.md), and stores the accuracy
    beside RUN for tag. --explanations: how often the sememes that explain lists are those of the next word, against rankings by
    raw gates, by training frequency and at random, with 95 % intervals over sentences (docs/explaining.md).

    RUN may be a folder that train --seeds wrote: then the metrics of each seed, with mean and standard deviation.
    """
    if baseline is not None:
        _lead(run, json, lead=lead, rouge_by=rouge or (), texts=texts, **given(split=split))
        return
    refuse({"lead": lead, "rouge": rouge}, "only together with --baseline lead")
    own = {"top": tops, "mean": mean, "contexts": contexts, "seed": seed, "html": html, "figure": figure}
    if explanations:
        refuse({"senses": senses, "dtype": dtype, "set": overrides, "texts": texts}, "not together with --explanations")
        chosen = html, figure, tops, mean or "counts", contexts, 1 if seed is None else seed
        score_explanations(run, split or "test", data, *chosen, which, device, json, quiet)
        return
    refuse(own, "only together with --explanations")
    from sememekit.training.checkpoint import seed_runs

    if not (run / "plan.json").is_file() and (seeds := seed_runs(run)):
        only = {"set": overrides, "texts": texts, "segmentation": segmentation, "words": words, "lexicon": lexicon}
        only |= {"senses": senses, "source": sources, "method": method}
        refuse(only | {"marks": marks, "decode": decode}, f"eval takes it with one run, such as {seeds[0]}")
        _seeds(run, json, quiet, which=which, device=device, **given(split=split, data=data, dtype=dtype))
        return
    loaded = open_run(run)
    way, typed = choose("eval", loaded, WAYS, locals())
    with progress_bars(quiet or json) as show:
        report, print_report = way.call(
            loaded, progress=show, which=which, device=device, **typed, **given(split=split, data=data, dtype=dtype)
        )
    print_json(report) if json else print_report(report)
    if getattr(report, "cut_sources", 0):
        from sememekit.runs.writing import told_of_cut, words_read

        most = words_read(loaded, report.source_words)
        remark(told_of_cut(report.cut_sources, report.examples, most), quiet)


def _lead(data: Path, json: bool, **options: Any) -> None:
    """ROUGE of the beginning of each source as a headline."""
    from sememekit.analysis.lead_baseline import baseline

    report = baseline(data, **options)
    if json:
        print_json(report)
        return
    rows = [
        (f"{metric} ({scores.name})", *in_per_cent((found.value, found.low, found.high)))
        for scores in report.scores
        for metric, found in (("ROUGE-1", scores.rouge1), ("ROUGE-2", scores.rouge2), ("ROUGE-L", scores.rougeL))
    ]
    title = f"The first {report.lead.replace('-', ' ')} of {report.examples:,} sources ({data}, {report.split}), in per cent"
    print_table(title, ("", "score", "from", "to"), rows)
    for scores in report.scores:
        say(scores.signature)


def _seeds(folder: Path, json: bool, quiet: bool, **options: Any) -> None:
    """A row for each seed, then mean and standard deviation."""
    from functools import partial

    from sememekit.analysis.evaluate import evaluate
    from sememekit.analysis.evaluate_seeds import evaluate_metrics_of_seeds

    with progress_bars(quiet or json) as show:
        report = evaluate_metrics_of_seeds(folder, partial(evaluate, progress=show, **options))
    if json:
        print_json(report)
        return
    rows: list[tuple[object, ...]] = [
        (str(seed), *(one.values[place] for one in report.figures.values()), found.checkpoint)
        for place, (seed, found) in enumerate(zip(report.seeds, report.reports, strict=True))
    ]
    rows += [(name, *(getattr(one, name) for one in report.figures.values())) for name in ("mean", "sd")]
    columns = ("seed", *(name.replace("_", " ") for name in report.figures), "checkpoint")
    print_table(f"Metrics of {report.run} on {report.split}", columns, rows)
    if report.signature is not None:
        say(f"signature: {report.signature}")


def _metrics(run: LoadedRun, **options: Any) -> tuple[Any, Callable[[Any], None]]:
    from sememekit.analysis.evaluate import evaluate

    return evaluate(run, **options), _print_metrics


def _words(run: LoadedRun, *, senses: Path | None = None, **options: Any) -> tuple[Any, Callable[[Any], None]]:
    if senses is None:
        refuse({"source": options.get("sources"), "method": options.get("method")}, "only together with --senses GOLD")
        return _metrics(run, **options)
    refuse({name: options.get(name) for name in ("split", "data", "dtype")}, "eval --senses reads GOLD alone; leave this out")
    from sememekit.analysis.senses.evaluation import evaluate_senses

    return evaluate_senses(run, senses, **options), _print_senses


def _lattice(
    run: LoadedRun,
    *,
    segmentation: Path | None = None,
    words: Path | None = None,
    lexicon: str | None = None,
    marks: str | None = None,
    decode: str | None = None,
    **options: Any,
) -> tuple[Any, Callable[[Any], None]]:
    if segmentation is None:
        refuse({"words": words, "lexicon": lexicon, "marks": marks, "decode": decode}, "only together with --segmentation GOLD")
        return _metrics(run, **options)
    from sememekit.analysis.segmentation import evaluate_segmentation

    others = {name: options.get(name) for name in ("split", "data", "dtype")}
    refuse(others, "eval --segmentation GOLD reads the text of GOLD as it is; leave this out")
    chosen = given(words=words, lexicon=lexicon, marks=marks, decoding=decode)
    return evaluate_segmentation(run, segmentation, **chosen, **options), _print_segmentation


def _print_metrics(report: MetricsReport) -> None:
    from sememekit.analysis.evaluate import LabelMetrics, WrittenMetrics

    title = f"Metrics of {report.run} on {report.split}"
    match report:
        case LabelMetrics():
            per_example = {"nats an example": report.nats / report.examples}
            fields = {name: getattr(report, name) for name in ("checkpoint", "accuracy", "examples", "macro_f1")}
            print_fields(title, fields | per_example)
            say(f"signature: {report.signature}\n")
            _print_classes(report)
        case WrittenMetrics():
            names = ("perplexity", "nats", "tokens", "examples", "checkpoint_by", "words")
            replaced = "unknown:replace" in report.search.split("|")
            unknown = {"unknown, replaced by words of the source" if replaced else "unknown": report.unknown}
            parts = {f"{name} perplexity": value for name, value in report.parts.items()}
            print_fields(title, {name: getattr(report, name) for name in names} | unknown | parts)
            say(f"signature: {report.perplexity_signature}\n")
            for scores in report.scores:
                rows = [(one.name, *in_per_cent((one.value, one.low, one.high))) for one in scores.values]
                print_table(f"{scores.preset}, in per cent", ("", "score", "from", "to"), rows)
                say(f"signature: {scores.signature}\n")
        case _:
            print_fields(title, report, skip=("run", "split"))


def _print_classes(found: LabelMetrics) -> None:
    if found.vectors is not None:
        say(f"vectors: {found.vectors.sentence()}")
    between = f"between {percent(found.accuracy_low, 2)} and {percent(found.accuracy_high, 2)} ({found.interval})"
    say(f"accuracy {percent(found.accuracy, 2)}, {between}\n")
    rows = [(one.label, one.precision, one.recall, one.f1, one.support) for one in found.classes]
    print_table("By label", ("label", "precision", "recall", "F1", "examples"), rows)
    confusion = [(label, *row) for label, row in zip(found.labels, found.confusion, strict=True)]
    print_table("What an example is (row), and what it was called (column)", ("", *found.labels), confusion)


def _print_segmentation(report: SegmentationReport) -> None:
    columns = ["segmentation", "precision", "recall", "F1", "95 %", "words", "F1 of the model minus this", "95 %"]
    with_new = report.rows[0].new_recall is not None
    rows = []
    for row in report.rows:
        interval = None if row.f1_low is None else f"{row.f1_low:.4f} to {row.f1_high:.4f}"
        cells: list[object] = [row.name, f"{row.precision:.4f}", f"{row.recall:.4f}", f"{row.f1:.4f}", interval, row.words]
        if row.difference is None:
            cells += [None, None]
        else:
            limits = None if row.difference_low is None else f"{row.difference_low:+.4f} to {row.difference_high:+.4f}"
            cells += [f"{row.difference:+.4f}", limits]
        recall = None if row.new_recall is None else f"{row.new_recall:.4f}"
        rows.append([*cells, recall] if with_new else cells)
    first = report.rows[0]
    known = "" if report.marks == "found" else ", marks given"
    title = f"Words of {report.gold} found by {report.run} ({report.decoding}, {report.marginal}{known})"
    print_table(title, [*columns, "recall of new words"] if with_new else columns, rows)
    few = "no intervals of fewer than ten sentences"
    intervals = few if first.f1_low is None else "intervals: bootstrap over sentences"
    say(f"{first.sentences:,} sentences, {first.gold_words:,} gold words; {intervals}")


def _print_senses(report: SenseScores) -> None:
    rows = []
    for row in report.rows:
        cells = [percent_interval(one.value, one.low, one.high) for one in (row.micro, row.macro)]
        above = row.above_random
        rows.append((row.name, *cells, percent_interval(above.value, above.low, above.high, sign="+")))
    title = f"Senses of {report.gold} tagged by {report.run}"
    print_table(title, ("method", "micro", "macro over words", "micro minus at random"), rows)
    columns = ("word", "senses", "targets", *report.words[0].accuracy)
    cells_of = [(one.word, one.senses, one.targets, *(percent(x, 0) for x in one.accuracy.values())) for one in report.words]
    print_table("By word", columns, cells_of)
    say(f"{report.targets:,} targets; intervals: 95 %, bootstrap over targets, of macro over words")
    for one in report.left_out:
        say(f"left out: {one.count:,} {one.cause}; the first: {one.first}")
    if not report.stored:
        say("the folder of the run cannot be written, so tag will not know this measurement")


WAYS = (
    Way("texts", "a model of headlines or dialogue", frozenset({"overrides", "texts"}), _metrics),
    Way("lattices", "a lattice model", frozenset({"segmentation", "words", "lexicon", "marks", "decode"}), _lattice),
    Way("labels", "a classifier", frozenset(), _metrics),
    Way("words", "a model that predicts words", frozenset({"senses", "method", "sources"}), _words),
)
