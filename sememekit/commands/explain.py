"""The subcommand explain; the plain functions are in ``sememekit.analysis.explanations``, one for each kind of run."""

from typing import Annotated, Any, Final

from sememekit.commands import _options as shared
from sememekit.commands._input import lines_of, remark_file_name
from sememekit.commands._options import argument, choose, fail_usage, option, refuse
from sememekit.commands._printing import check_outputs, give_out, hint
from sememekit.commands._progress import progress_bars

EXAMPLES = (
    'sememekit explain quickstart/sdlm "去年 美国 贸易 逆差 为" --html why.html',
    'sememekit explain quickstart/sdlm "他" --word 打 --right "电话 给 我"',
    'sememekit explain runs/nli "A man sleeps." "He is awake." --html why.html',
)


def command(
    run: shared.RunOrPublished,
    context: Annotated[str | None, argument("[CONTEXT]", "Context, source text, text to label, or raw sentence.")] = None,
    other: Annotated[str | None, argument("[TEXT2]", "Pairs: second text.")] = None,
    top: Annotated[int | None, option("--top", "How many words to show.", min=1, show_default="10")] = None,
    label: Annotated[str | None, option("--label", "Label to explain.", show_default="the most probable")] = None,
    top_sememes: Annotated[
        int | None, option("--top-sememes", "Sememes to show.", min=1, show_default="12; of written texts 5")
    ] = None,
    min_count: Annotated[int | None, option("--min-count", "Grey out rarer sememes.", min=1, show_default="10")] = None,
    mean: shared.MeanIfGiven = None,
    html: shared.Html = None,
    figure: shared.Figure = None,
    overlay: shared.Overlay = None,
    sources: shared.SenseSources = None,
    word: Annotated[str | None, option("--word", "Also show the senses of this word after CONTEXT.", metavar="WORD")] = None,
    right: Annotated[str | None, option("--right", "With --word: the words after it.", metavar="TEXT")] = None,
    apart: shared.Apart = False,
    embeddings: Annotated[bool, option("--embeddings", "Lattices: contexts of each embedding of these words.")] = False,
    split: shared.SplitIfGiven = None,
    data: shared.EvaluationData = None,
    which: shared.Which = "best",
    device: shared.Device = "auto",
    json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Explain a prediction: top-k words, senses, sememes that become more probable; labels, texts, segmentations.

    Sememes are ranked by the gain in the probability that the next word has them, over its mean (docs/explaining.md). Headline
    and dialogue models: the written text, with sememes and attention of each word. Lattice models: the chunks of a raw sentence
    with their posteriors, as a picture with --html; with --embeddings the contexts in --split (default: valid) where each
    embedding of the words wins. Classifiers: the label of a text, or of a pair (explain RUN PREMISE HYPOTHESIS), and the
    influence of each word and sememe on it."""
    check_outputs(html, figure)
    from sememekit.notebook.run import EXPLAINERS, load_run
    from sememekit.runs.published import is_published

    if is_published(run):
        refuse({"overlay": overlay}, f"changes the graph that a run keeps, and {run} keeps none; leave it out")
        instead = f"sememekit tag {run} --words WORD --source LEXICON"
        refuse({"word": word, "right": right}, f"takes a run; for {run} type: {instead}")
        mean = "valid" if mean is None and data is None else mean  # the few words that ship have no useful counts
    loaded = load_run(run, which=which, device=device, sources=sources, data=data)
    takers = {kind: [*functions, *_FURTHER.get(kind, ())] for kind, functions in EXPLAINERS.items()}
    if context is None:
        hint("type a text a line; Ctrl-D ends", quiet)
    given: dict[str, Any] = {"other": other, "top": top, "label": label, "top_sememes": top_sememes, "min_count": min_count}
    given |= {"mean": mean, "figure": figure, "overlay": overlay, "word": word, "right": right, "apart": apart}
    given |= {"embeddings": embeddings, "split": split, "data": data}
    shown = None
    for text in [context] if context is not None else lines_of(None, "strict"):
        with progress_bars(quiet) as show:
            kind, typed = choose("explain", loaded, takers, {**given, "progress": show})
            if kind == "lattices" and not embeddings:
                refuse({name: typed.get(name) for name in ("split", "data")}, "only together with --embeddings")
                typed.pop("progress")
            if word is None:
                refuse({"right": right}, "only together with --word WORD, after which this text comes")
            remark_file_name(text, "explain takes one text", quiet)
            texts = [text, *filter(None, [typed.pop("other", None)])]
            shown = loaded.explain(*texts, **{name: value for name, value in typed.items() if name != "figure"})
        give_out(shown, html, figure, json=json, quiet=quiet)
    if shown is None:
        fail_usage("there is nothing to explain; give CONTEXT in quotes, or a text a line on stdin")


_FURTHER: Final = {"labels": ("other",), "texts": ("figure",), "lattices": ("embeddings",), "words": ("figure",)}
"""Kind of run -> its options."""
