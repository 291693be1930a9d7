"""The subcommand analyze; the plain functions are in ``sememekit.analysis``."""

from pathlib import Path
from typing import Annotated, Any

from sememekit.commands import _options as shared
from sememekit.commands._options import argument, choose, option
from sememekit.commands._printing import check_outputs, give_out
from sememekit.commands._progress import progress_bars

EXAMPLES = ("sememekit analyze quickstart/softmax quickstart/sdlm --html analysis.html", "sememekit analyze runs/nli")


def command(
    run: shared.Run,
    other: Annotated[Path | None, argument("RUN2", "Second run, with the same vocabulary.")] = None,
    html: shared.Html = None,
    figure: shared.Figure = None,
    split: shared.Split = "test",
    data: shared.EvaluationData = None,
    contexts: Annotated[int | None, option("--contexts", "Contexts (default: all) or examples (200) to sample.", min=2)] = None,
    memory: Annotated[float | None, option("--memory", "Memory for the matrix (GiB).", min=0.0, show_default="2")] = None,
    cases: Annotated[int | None, option("--cases", "Cases shown where each run does better.", min=1, show_default="6")] = None,
    top: Annotated[int | None, option("--top", "Top-k words to show (default: 4; classifiers: 12).", min=1)] = None,
    which: shared.Which = "best",
    seed: shared.Seed = 1,
    device: shared.Device = "auto",
    json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Rank of the log-probabilities, divergence of the predictions, and where two models differ.

    For classifiers: accuracy by kinds of examples, and the words and sememes that move decisions most, found by removing one at
    a time in --contexts examples (default: 200)."""
    check_outputs(html, figure)
    from sememekit.notebook.run import ANALYZERS, load_run

    loaded = load_run(run, which=which, device=device)
    takers: dict[str, list[Any]] = {"labels": [ANALYZERS["labels"]], "words": [ANALYZERS["words"], "figure"]}
    with progress_bars(quiet) as show:
        options: dict[str, Any] = {"split": split, "data": data, "contexts": contexts, "memory": memory, "cases": cases}
        options |= {"top": top, "seed": seed, "figure": figure, "progress": show}
        _, typed = choose("analyze", loaded, takers, options)
        typed.pop("figure", None)
        shown = loaded.analyze(other, **typed)
    give_out(shown, html, figure, json=json, quiet=quiet)
