"""``sememekit quickstart``: a tour in minutes, from a newspaper or your text to models and a page about them."""

from pathlib import Path
from typing import Annotated

from sememekit.commands import _options as shared
from sememekit.commands._options import option, segmenter_option
from sememekit.commands._printing import check_outputs, give_out, leave_stopped, print_json, remark
from sememekit.commands._progress import progress_bars
from sememekit.signals import stop_signals

EXAMPLES = (
    "sememekit quickstart",
    "sememekit quickstart --text novel.txt --out novel",
    "sememekit quickstart --source hownet2000:glossary.dat --out tour",
)


def command(
    out: Annotated[Path, option("--out", "Folder to write into.")] = Path("quickstart"),
    text: Annotated[Path | None, option("--text", "Your text in place of the newspaper: UTF-8, a paragraph a line.")] = None,
    sources: shared.SourcesOrOpen = None,
    segmenter: Annotated[str | None, segmenter_option("none, or fmm")] = None,
    share: Annotated[
        float | None,
        option("--share", "Fraction of the lines. Default: 0.34 of the month, or 2 MB of a text.", min=0.0, max=1.0),
    ] = None,
    overrides: shared.Overrides = None,
    fresh: Annotated[bool, option("--fresh", "Start over, and delete what is in the folder.")] = False,
    seed: shared.Seed = 1,
    device: shared.Device = "auto",
    figure: shared.Figure = None,
    json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Tour in minutes: a softmax and a sememe model compared and explained, and words found in raw characters.

    A second call shows finished steps and continues with the others. --set changes both models that are compared. Text is cut
    at its blanks; if most sentences are Chinese without blanks, by the words of the lexicon (--segmenter fmm)."""
    with stop_signals(patient=True, lasting=True) as asked_to_stop:  # loading torch takes seconds, in which one may come
        from sememekit.jobs.quickstart import quickstart
        from sememekit.reports.quickstart import VIEWS
        from sememekit.reports.table import Shown

        check_outputs(None, figure)
        with progress_bars(quiet) as show:
            report = quickstart(
                out,
                text=text,
                sources=sources or (),
                segmenter=segmenter,
                seed=seed,
                share=share,
                overrides=overrides or (),
                device=device,
                fresh=fresh,
                progress=show,
                asked_to_stop=asked_to_stop,
            )
    if report.stopped:
        if json:
            print_json(report)
        leave_stopped(f"go on with: {report.next_commands[0]}")
    if report.already_done:
        remark(f"{out} is finished already; --fresh starts over", quiet)
    give_out(Shown(report, VIEWS), None, figure, json=json, quiet=quiet)
