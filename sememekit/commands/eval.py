"""The subcommand eval; the plain functions are ``evaluate`` and ``evaluate_segmentation`` in ``sememekit.analysis``."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from sememekit.commands import _options as shared
from sememekit.commands._options import SenseMethod, SenseSources, choose, given, option, refuse
from sememekit.commands._printing import check_outputs, give_out, print_json, print_parts, remark
from sememekit.commands._progress import progress_bars

MarksName = Literal["found", "given"]

EXAMPLES = (
    "sememekit eval quickstart/sdlm --split valid --json",
    "sememekit eval quickstart/sdlm --senses gold.tsv",
    "sememekit eval quickstart/sdlm --explanations --html scores.html",
)


def command(
    run: shared.RunOrPublished,
    split: shared.TestUnlessGiven = None,
    data: shared.EvaluationData = None,
    overrides: shared.SearchOverrides = None,
    texts: shared.Texts = None,
    segmentation: Annotated[
        Path | None, option("--segmentation", "Score the words that a lattice model finds.", metavar="GOLD")
    ] = None,
    words: Annotated[Path | None, option("--words", "With --segmentation: text for maximum matching.", metavar="TEXT")] = None,
    lexicons: Annotated[
        list[str] | None, option("--lexicon", "With --segmentation: lexicon to match; repeatable.", metavar="FORMAT:PATH")
    ] = None,
    marks: Annotated[
        MarksName | None, option("--marks", "With --segmentation: numbers, Latin, marks by rule or not.", show_default="found")
    ] = None,
    decode: shared.Decode = None,
    senses: Annotated[Path | None, option("--senses", "Score senses: SememeWSD, a table or CoNLL-U.", metavar="GOLD")] = None,
    method: SenseMethod = None,
    sources: SenseSources = None,
    explanations: Annotated[bool, option("--explanations", "Score the sememes listed by explain.")] = False,
    tops: Annotated[list[int] | None, option("--top", "Score the top k; repeatable.", min=1, show_default="1, 5, 10")] = None,
    mean: shared.MeanIfGiven = None,
    contexts: Annotated[int | None, option("--contexts", "Sample sentences, N positions at most.", min=1)] = None,
    seed: shared.SeedIfGiven = None,
    html: shared.Html = None,
    figure: shared.Figure = None,
    baseline: Annotated[Literal["lead"] | None, option("--baseline", "Score the lead; RUN is prepared pairs.")] = None,
    lead: Annotated[str | None, option("--lead", "Lead: N-words, N-bytes or N-characters.", metavar="N-UNIT")] = None,
    rouge: Annotated[list[str] | None, option("--rouge", "ROUGE rules: gigaword, duc, lcsts-characters, lcsts-words.")] = None,
    which: shared.Which = "best",
    device: shared.Device = "auto",
    dtype: shared.Dtype = None,
    json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Metrics of the task: accuracy, ROUGE or BLEU, perplexity, word segmentation, senses, explanations.

    --senses scores every tagging method on senses that people tagged (docs/senses.md), and stores the accuracy beside RUN for
    tag. --explanations scores how often the next word has the sememes that explain lists; baselines: raw gates, training
    frequency and random order, with 95 % intervals over sentences (docs/explaining.md).

    RUN may be a folder of train --seeds: this prints the metrics of each seed, with mean and standard deviation."""
    from sememekit.notebook.run import load_run
    from sememekit.reports.metrics import parts
    from sememekit.runs.published import is_published

    report: Any
    if baseline is not None:
        from sememekit.analysis.written_texts import baseline as lead_baseline

        report = lead_baseline(run, lead=lead, rouge_by=rouge or (), texts=texts, **given(split=split))
        print_json(report) if json else print_parts(parts(report))
        return
    refuse({"lead": lead, "rouge": rouge}, "only together with --baseline lead")
    own = {"top": tops, "mean": mean, "contexts": contexts, "seed": seed, "html": html, "figure": figure}
    if explanations:
        refuse({"senses": senses, "dtype": dtype, "set": overrides, "texts": texts}, "not together with --explanations")
        from sememekit.analysis.explanations.evaluation import evaluate_explanations
        from sememekit.reports.metrics import VIEWS
        from sememekit.reports.table import Shown

        check_outputs(html, figure)
        chosen = given(split=split, tops=tops, mean=mean, data=data, contexts=contexts, seed=seed)
        with progress_bars(quiet) as show:
            loaded = load_run(run, which=which, device=device, sources=sources, data=data)
            report = evaluate_explanations(loaded, progress=show, **chosen)
        give_out(Shown(report, VIEWS), html, figure, json=json, quiet=quiet)
        return
    refuse(own, "only together with --explanations")
    from sememekit.analysis.evaluate import evaluate, evaluate_seeds
    from sememekit.training.checkpoint import seed_runs

    if not (run / "plan.json").is_file() and (seeds := seed_runs(run)):
        only: dict[str, object] = {"set": overrides, "texts": texts, "segmentation": segmentation, "words": words}
        only |= {"lexicon": lexicons, "senses": senses, "source": sources, "method": method}
        refuse(only | {"marks": marks, "decode": decode}, f"eval takes it with one run, such as {seeds[0]}")
        with progress_bars(quiet or json) as show:
            usual = {"which": which, "device": device, "progress": show, **given(split=split, data=data, dtype=dtype)}
            report = evaluate_seeds(run, partial(evaluate, **usual))
        print_json(report) if json else print_parts(parts(report))
        return
    if published := is_published(run):
        refuse({"split": split or senses is None}, f"{run} is scored by --senses GOLD, or by --explanations")
    loaded = load_run(run, which=which, device=device, dtype=dtype, sources=sources if published else None, data=data)
    of_gold = {"words": words, "lexicon": lexicons, "marks": marks, "decode": decode}
    options = {"overrides": overrides, "texts": texts, "senses": senses, "method": method, "sources": sources}
    _, typed = choose("eval", loaded, _TAKERS, {**options, "segmentation": segmentation, **of_gold})
    usual = given(split=split, data=None if published else data, dtype=dtype)
    refuse({"source": sources} if senses is None else {}, "only together with --senses GOLD or --explanations")
    refuse({"method": method} if senses is None else {}, "only together with --senses GOLD")
    refuse(of_gold if segmentation is None else {}, "only together with --segmentation GOLD")
    with progress_bars(quiet or json) as show:
        if senses is not None:
            from sememekit.analysis.senses.evaluation import evaluate_senses

            refuse(usual, "eval --senses reads GOLD alone; leave this out")
            report = evaluate_senses(loaded, senses, **given(method=method, sources=sources), progress=show)
        elif segmentation is not None:
            from sememekit.analysis.segmentation import evaluate_segmentation

            refuse(usual, "eval --segmentation GOLD reads the text of GOLD as it is; leave this out")
            chosen = given(words=words, lexicons=lexicons, marks=marks, decoding=decode)
            report = evaluate_segmentation(loaded, segmentation, **chosen, progress=show)
        else:
            report = evaluate(loaded, **typed, **usual, progress=show)
    print_json(report) if json else print_parts(parts(report))
    if getattr(report, "cut_sources", 0):
        from sememekit.runs.writing import told_of_cut, words_read

        remark(told_of_cut(report.cut_sources, report.examples, words_read(loaded, report.source_words)), quiet)


_TAKERS: Final = {
    "texts": ("overrides", "texts"),
    "lattices": ("segmentation", "words", "lexicon", "marks", "decode"),
    "labels": (),
    "words": ("senses", "method", "sources"),
}
"""Kind of run -> options for this kind only."""
