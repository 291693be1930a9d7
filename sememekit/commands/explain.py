"""The subcommand explain; the plain functions are in ``sememekit.analysis.explanations``, one for each kind of run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememekit.commands import _options as shared
from sememekit.commands._input import remark_file_name
from sememekit.commands._options import option, refuse
from sememekit.commands._page_and_figure import Result, check_outputs, give_out
from sememekit.commands._progress import progress_bars
from sememekit.commands._run_kinds import Way, choose, open_run

if TYPE_CHECKING:
    from sememekit.runs.run import Run as LoadedRun

EXAMPLES = (
    'sememekit explain runs/sdlm "去年 美国 贸易 逆差 初步 估计 为" --html why.html',
    'sememekit explain runs/sdlm "他" --word 打 --right "电话 给 我"',
    'sememekit explain runs/nli "A man sleeps." "He is awake." --html why.html',
)


def command(
    run: shared.Run,
    context: Annotated[
        str,
        typer.Argument(
            metavar="CONTEXT",
            help="Context of a language model, source text of headlines, or raw sentence for a lattice model.",
        ),
    ],
    other: Annotated[
        str | None, typer.Argument(metavar="[TEXT2]", help="Classifiers of pairs: the second text.", show_default=False)
    ] = None,
    top: Annotated[int | None, option("--top", "How many words to show.", min=1, show_default="10")] = None,
    label: Annotated[
        str | None, option("--label", "For classifiers: the label to explain; the most probable unless given.")
    ] = None,
    top_sememes: Annotated[
        int | None, option("--top-sememes", "How many sememes to show.", min=1, show_default="12; of written texts 5")
    ] = None,
    min_count: Annotated[
        int | None,
        option("--min-count", "Sememes that fewer running words have are grey.", min=1, show_default="10"),
    ] = None,
    mean: shared.MeanIfGiven = None,
    html: shared.Html = None,
    figure: shared.Figure = None,
    overlay: shared.Overlay = None,
    word: Annotated[
        str | None, option("--word", "Language models: also tell the senses of this word after CONTEXT.", metavar="WORD")
    ] = None,
    right: Annotated[
        str | None, option("--right", "With --word: the words after it, between blanks.", metavar="TEXT", show_default="none")
    ] = None,
    apart: shared.Apart = False,
    embeddings: Annotated[
        bool,
        option(
            "--embeddings",
            "Lattice models: CONTEXT is words; show contexts where each of their embeddings has the largest posterior.",
        ),
    ] = False,
    split: shared.SplitIfGiven = None,
    data: shared.EvaluationData = None,
    which: shared.Which = "best",
    device: shared.Device = "auto",
    json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Explain a prediction: top-k words, senses, sememes that it makes more probable; labels, texts, segmentations.

    Sememes are ranked by how far the probability that the next word has them rises above its mean (docs/explaining.md).
    Of a model of headlines or dialogue: what it writes for the text, with sememes and attention of each word. Of a lattice
    model: the chunks of a raw sentence with their posteriors, as a picture with --html; with --embeddings the contexts in
    --split (valid unless given) where each embedding of the words wins. Of a classifier: the label of a text, or of a pair
    (explain RUN PREMISE HYPOTHESIS), and by how much each word and each sememe moved it.
    """
    check_outputs(html, figure)
    loaded = open_run(run)
    way, typed = choose("explain", loaded, WAYS, locals())
    remark_file_name(context, "explain takes one text", quiet)
    result = way.call(loaded, context, quiet=quiet, which=which, device=device, **typed)
    give_out(result, html, figure, json=json, quiet=quiet)


def _label(run: LoadedRun, text: str, *, quiet: bool, other: str | None = None, **options: Any) -> Result:
    from sememekit.analysis.explanations.label import explain_label
    from sememekit.commands._explanations import print_label
    from sememekit.reports.labels import explanation_page

    return Result(explain_label(run, [text] if other is None else [text, other], **options), explanation_page, print_label)


def _text(run: LoadedRun, text: str, *, quiet: bool, figure: Path | None = None, **options: Any) -> Result:
    from sememekit.analysis.explanations.written_text import explain_writing
    from sememekit.commands._explanations import print_text
    from sememekit.reports.written_explanation import charts, explanation_page

    with progress_bars(quiet) as show:
        found = explain_writing(run, text, progress=show, **options)
    return Result(found, explanation_page, print_text, charts)


def _lattice(run: LoadedRun, text: str, *, quiet: bool, embeddings: bool = False, **options: Any) -> Result:
    from sememekit.analysis.explanations.lattice import explain_embeddings, explain_lattice
    from sememekit.commands._explanations import print_embeddings, print_lattice
    from sememekit.reports.lattice import embeddings_page, lattice_page

    if embeddings:
        with progress_bars(quiet) as show:
            uses = explain_embeddings(run, text.split(), progress=show, **options)
        return Result(uses, embeddings_page, print_embeddings)
    refuse({name: options.get(name) for name in ("split", "data")}, "only together with --embeddings")
    return Result(explain_lattice(run, text, **options), lattice_page, print_lattice)


def _words(run: LoadedRun, text: str, *, quiet: bool, **options: Any) -> Result:
    from sememekit.analysis.explanations.words import explain
    from sememekit.commands._explanations import print_words
    from sememekit.reports.explanation import explanation_page

    if "word" not in options:
        refuse({"right": options.get("right")}, "only together with --word WORD, after which this text comes")
    with progress_bars(quiet) as show:
        found = explain(run, text, progress=show, **options)
    return Result(found, explanation_page, print_words)


MEANS = frozenset({"min_count", "mean", "data"})
"""Of models with sememes in the output layer."""

WAYS = (
    Way("labels", "a classifier", frozenset({"other", "label", "top_sememes"}), _label),
    Way(
        "texts",
        "a model of headlines or dialogue",
        MEANS | {"top_sememes", "overlay", "apart", "figure"},
        _text,
    ),
    Way("lattices", "a lattice model", frozenset({"embeddings", "split", "data"}), _lattice),
    Way("words", "a model that predicts words", MEANS | {"top", "top_sememes", "overlay", "word", "right"}, _words),
)
