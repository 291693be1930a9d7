"""Subcommands that ask a trained model: evaluate-ppl, eval, predict, explain, score, generate."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from sememekit.cli.adaptation import (
    Cache,
    CachePreset,
    CacheStart,
    Dynamic,
    DynamicDecay,
    DynamicEpsilon,
    DynamicPreset,
    DynamicRate,
    DynamicSegment,
    Lambda,
    Scaling,
    StatisticsTokens,
    Theta,
    Tune,
    TuneTokens,
    Window,
    adaptation_of,
    print_adaptation,
)
from sememekit.cli.explanation import print_explanation
from sememekit.cli.generation import generate
from sememekit.cli.label_explanation import explain_label
from sememekit.cli.lines import lines_of
from sememekit.cli.options import (
    Debug,
    Device,
    Dtype,
    Errors,
    EvaluationData,
    Json,
    Quiet,
    Run,
    Split,
    TrustCode,
    Which,
    example,
    given,
)
from sememekit.cli.render import print_fields, print_json, print_table, progress_bars, remark, say
from sememekit.cli.segmentation import (
    Decode,
    Embeddings,
    Gold,
    MatchingLexicon,
    WordsOf,
    explain_lattice,
    judge_segmentation,
)
from sememekit.cli.writing import Apart, Lexicon, SearchOverrides, explain_text, print_written_scores, refuse
from sememekit.errors import ConfigError


class Grouping(StrEnum):
    """What ``--by`` takes."""

    senses = "senses"
    sememes = "sememes"


def register(app: typer.Typer) -> None:
    """Add these subcommands to the program."""
    examples = example(
        "sememekit evaluate-ppl runs/sdlm --by senses",
        "sememekit evaluate-ppl runs/sdlm --cache --tune",
        "sememekit evaluate-ppl runs/mos --dynamic --dynamic-preset mos-ptb",
    )
    app.command("evaluate-ppl", epilog=examples)(evaluate_ppl)
    app.command("eval", epilog=example("sememekit eval runs/sdlm --split valid --json"))(evaluate)
    app.command(epilog=example("sememekit predict runs/sst2 reviews.txt --json"))(predict)
    app.command(
        epilog=example(
            'sememekit explain runs/sdlm "去年 美国 贸易 逆差 初步 估计 为" --html why.html',
            'sememekit explain runs/nli "A man sleeps." "He is awake." --html why.html',
        )
    )(explain)
    app.command(epilog=example("echo 去年 美国 贸易 逆差 | sememekit score runs/sdlm"))(score)
    app.command(
        epilog=example(
            'sememekit generate runs/sdlm "去年 美国" --num-tokens 30 --seed 1',
            "sememekit generate runs/headlines --input articles.txt --json",
        )
    )(generate)


def evaluate_ppl(
    run: Run,
    split: Split = None,
    by: Annotated[
        list[Grouping] | None,
        typer.Option("--by", help="Also by the number of senses or of sememes of a word; may be repeated."),
    ] = None,
    data: EvaluationData = None,
    graph: Annotated[Path | None, typer.Option("--graph", help="Sememe graph for --by, where the run has none.")] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", min=1, help="Columns the text is read in; 1 reads it from end to end.")
    ] = None,
    which: Which = None,
    cache: Cache = False,
    cache_preset: CachePreset = None,
    theta: Theta = None,
    lambda_: Lambda = None,
    window: Window = None,
    cache_start: CacheStart = None,
    dynamic: Dynamic = False,
    dynamic_preset: DynamicPreset = None,
    scaling: Scaling = None,
    dynamic_rate: DynamicRate = None,
    dynamic_decay: DynamicDecay = None,
    dynamic_epsilon: DynamicEpsilon = None,
    dynamic_segment: DynamicSegment = None,
    statistics_tokens: StatisticsTokens = None,
    tune: Tune = False,
    tune_tokens: TuneTokens = None,
    device: Device = None,
    dtype: Dtype = None,
    json: Json = False,
    quiet: Quiet = False,
    trust_code: TrustCode = False,
    debug: Debug = False,
) -> None:
    """Perplexity under the one protocol of docs/perplexity.md, with its signature.

    With --cache or --dynamic the model learns from the text as it reads; the run stays as it is.
    """
    from sememekit.analysis.evaluate import evaluate_ppl as command

    adaptation = adaptation_of(
        cache={"preset": cache_preset, "theta": theta, "weight": lambda_, "window": window, "start": cache_start},
        dynamic={
            "preset": dynamic_preset,
            "scaling": scaling,
            "rate": dynamic_rate,
            "decay": dynamic_decay,
            "epsilon": dynamic_epsilon,
            "segment": dynamic_segment,
        },
        with_cache=cache,
        with_dynamic=dynamic,
        tune=tune,
        tune_tokens=tune_tokens,
        statistics_tokens=statistics_tokens,
    )
    groupings = list(dict.fromkeys(one.value for one in by)) if by else None
    options = given(
        split=split, by=groupings, data=data, graph=graph, batch_size=batch_size, which=which, device=device, dtype=dtype
    )
    options |= given(adaptation=adaptation)
    with progress_bars(quiet) as show:
        report = command(run, progress=show, **options)
    if json:
        print_json(report)
        return
    skipped = ("run", "split", "graph", "signature", "groups", "adaptation")
    print_fields(f"Perplexity of {run} on {report.split}", report, skip=skipped)
    if report.adaptation is not None:
        print_adaptation(report.adaptation)
    for grouping, groups in (report.groups or {}).items():
        rows = [(group.name, group.perplexity, group.tokens, f"{group.share:.1%}") for group in groups]
        print_table(f"By {grouping} of the word", ("words", "perplexity", "tokens", "share"), rows)
    say(f"signature: {report.signature}")


def evaluate(
    run: Run,
    split: Split = None,
    data: EvaluationData = None,
    overrides: SearchOverrides = None,
    texts: Annotated[
        Path | None, typer.Option("--texts", help="For headline, dialogue: file for what was written.", show_default=False)
    ] = None,
    segmentation: Gold = None,
    words: WordsOf = None,
    lexicon: MatchingLexicon = None,
    decode: Decode = None,
    which: Which = None,
    device: Device = None,
    dtype: Dtype = None,
    json: Json = False,
    quiet: Quiet = False,
    trust_code: TrustCode = False,
    debug: Debug = False,
) -> None:
    """Whatever the metrics of the task are, by their usual names."""
    if segmentation is not None:
        others = {"split": split, "data": data, "dtype": dtype, "texts": texts, "set": overrides}
        refuse(others, "eval --segmentation GOLD reads the text of GOLD as it is; leave this out")
        options = given(words=words, lexicon=lexicon, decoding=decode, which=which, device=device)
        judge_segmentation(run, segmentation, json=json, **options)
        return
    refuse({"words": words, "lexicon": lexicon, "decode": decode}, "only together with --segmentation GOLD")
    from sememekit.analysis.evaluate import evaluate as command

    options = given(split=split, data=data, which=which, device=device, dtype=dtype, overrides=overrides, texts=texts)
    with progress_bars(quiet) as show:
        report = command(run, progress=show, **options)
    metrics = report.model_dump()
    if json:
        print_json(report)
    elif "search" in metrics:
        print_written_scores(metrics)
    else:
        print_fields(f"Metrics of {run} on {report.split}", report, skip=("run", "split", "vectors", *_TABLES))
        if "vectors" in metrics:
            from sememekit.tasks.vectors import VectorCoverage

            say(f"vectors: {VectorCoverage.model_validate(metrics['vectors']).sentence()}")
        if "confusion" in metrics:
            _print_classes(metrics)


_TABLES = ("classes", "confusion", "labels", "interval", "accuracy_low", "accuracy_high")


def _print_classes(metrics: dict[str, Any]) -> None:
    """The interval, the scores of each class and the confusion matrix."""
    low, high = metrics["accuracy_low"], metrics["accuracy_high"]
    say(f"accuracy {metrics['accuracy']:.2%}, between {low:.2%} and {high:.2%} ({metrics['interval']})\n")
    rows = [tuple(scores[key] for key in ("label", "precision", "recall", "f1", "support")) for scores in metrics["classes"]]
    print_table("By label", ("label", "precision", "recall", "F1", "examples"), rows)
    rows = [(label, *row) for label, row in zip(metrics["labels"], metrics["confusion"], strict=True)]
    print_table("What an example is (row), and what it was called (column)", ("", *metrics["labels"]), rows)


def predict(
    run: Run,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A text a line, or a pair with TAB between; stdin unless given.")
    ] = None,
    which: Which = None,
    errors: Errors = None,
    device: Device = None,
    json: Json = False,
    trust_code: TrustCode = False,
    debug: Debug = False,
) -> None:
    """The label of each line and the probability of every label, TAB between; a header names the columns.

    A blank line of the input is a blank line of the output, so that line N of the file is line N + 1 of the table.
    """
    from sememekit.commands.predict import PredictionReport
    from sememekit.commands.predict import predict as command

    read = 0

    def counted() -> Iterator[str]:
        nonlocal read
        for line in lines_of(file, errors or "strict"):
            read += 1
            yield line

    classifier, predictions = command(run, counted(), **given(which=which, device=device))
    if json:
        checkpoint, labels = classifier.run.snapshot, classifier.labels
        print_json(PredictionReport(run=str(run), checkpoint=checkpoint, labels=labels, predictions=tuple(predictions)))
        return
    first = next(predictions, None)  # the first lines are read before anything is written
    say("label", *classifier.labels, sep="\t")
    written = 0
    for row in predictions if first is None else chain([first], predictions):
        say("\n" * (row.line - written - 1), end="")
        say(row.label, *(f"{value:.6f}" for value in row.probabilities.values()), sep="\t")
        written = row.line
    say("\n" * (read - written), end="")


def explain(
    run: Run,
    context: Annotated[
        str,
        typer.Argument(
            metavar="CONTEXT",
            help="Words before the one to predict, the text to write a headline for, or a raw sentence for a lattice model.",
        ),
    ],
    other: Annotated[
        str | None, typer.Argument(metavar="[TEXT2]", help="For pairs with a label: the second text.", show_default=False)
    ] = None,
    top: Annotated[int | None, typer.Option("--top", min=1, help="How many words to show.")] = None,
    label: Annotated[
        str | None, typer.Option("--label", help="For classifiers: the label to explain; the likeliest unless given.")
    ] = None,
    top_sememes: Annotated[int | None, typer.Option("--top-sememes", min=1, help="How many sememes to show.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Also write a page that needs nothing else.")] = None,
    apart: Apart = False,
    lexicon: Lexicon = None,
    embeddings: Embeddings = False,
    split: Split = None,
    data: EvaluationData = None,
    which: Which = None,
    device: Device = None,
    json: Json = False,
    quiet: Quiet = False,
    trust_code: TrustCode = False,
    debug: Debug = False,
) -> None:
    """Why the model expects these words: senses with their share of each word, sememes with their gates.

    Of a model of headlines or dialogue: what it writes for the text, with sememes and attention of each word. Of a lattice
    model: the chunks of a raw sentence with their posteriors, as a picture with --html; with --embeddings the contexts in
    --split (valid unless given) where each embedding of the words wins. Of a classifier: the label of a text, or of a pair
    (explain RUN PREMISE HYPOTHESIS), and by how much each word and each sememe moved it.
    """
    from sememekit.analysis.explain_label import is_label_run
    from sememekit.files import PAGE, check_output
    from sememekit.runs.writing import is_writer

    if html is not None:
        check_output(html, PAGE)
    if is_label_run(run):
        refuse({"top": top}, "a text has the words that it has; leave it out")
        refuse({"apart": apart, "lexicon": lexicon}, "this is for runs of --task headline or dialogue; leave it out")
        refuse({"embeddings": embeddings, "split": split, "data": data}, "this is for lattice models; leave it out")
        texts = [context] if other is None else [context, other]
        options = given(top_sememes=top_sememes, label=label, which=which, device=device)
        explain_label(run, texts, html, json=json, quiet=quiet, options=options)
        return
    refuse({"label": label}, "this is for runs of --task nli or classification; leave it out")
    if other is not None:
        raise ConfigError(f"explain takes one text for this run, and got another: {other[:60]!r}; leave it out or quote both")
    if is_writer(run):
        refuse({"top": top}, "a written text has the words that it has; leave it out")
        refuse({"embeddings": embeddings, "split": split, "data": data}, "this is for lattice models; leave it out")
        options = given(top_sememes=top_sememes, lexicon=lexicon, which=which, device=device)
        explain_text(run, context, html, json=json, quiet=quiet, options={"apart": apart, **options})
        return
    refuse({"apart": apart, "lexicon": lexicon}, "this is for runs of --task headline or dialogue; leave it out")
    from sememekit.runs.lattices import is_lattice_run

    if is_lattice_run(run):
        refuse({"top": top, "top-sememes": top_sememes}, "this is for models that predict words; leave it out")
        options = given(split=split, data=data, which=which, device=device)
        explain_lattice(run, context, html=html, json=json, quiet=quiet, embeddings=embeddings, **options)
        return
    refuse({"embeddings": embeddings, "split": split, "data": data}, "this is for lattice models; leave it out")
    from sememekit.analysis import explain as command
    from sememekit.reports.explanation import write_page

    explanation = command.explain(run, context, **given(top=top, top_sememes=top_sememes, which=which, device=device))
    if html is not None:
        write_page(explanation, html)
        remark(f"page: {html}", quiet)
    if json:
        print_json(explanation)
    else:
        print_explanation(explanation)


def score(
    run: Run,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="Sentences, one a line, words apart; for headline, dialogue: source TAB target. Stdin unless given.",
        ),
    ] = None,
    carry: Annotated[bool, typer.Option("--carry", help="Read the lines as one text, as evaluate-ppl does.")] = False,
    segment: Annotated[bool, typer.Option("--segment", help="Cut the lines as the data of the run were cut.")] = False,
    lexicon: Annotated[
        str | None, typer.Option("--lexicon", metavar="FORMAT:PATH", help="Words that the segmenter of --segment knows.")
    ] = None,
    which: Which = None,
    errors: Errors = None,
    device: Device = None,
    trust_code: TrustCode = False,
    debug: Debug = False,
) -> None:
    """Nats of every word, as lines of sentence, position, word, nats and the word as the model reads it, TAB between.

    Nats are empty where there is nothing to predict the word from. A model of headlines or dialogue scores the words of the
    target and its end, given the source.
    """
    from sememekit.analysis.score import score as command

    lines = lines_of(file, errors or "strict")
    for row in command(run, lines, carry=carry, segment=segment, **given(lexicon=lexicon, which=which, device=device)):
        nats = "" if row.nats is None else f"{row.nats:.6f}"
        say(row.sentence, row.position, row.token, nats, row.read_as, sep="\t")
