"""The subcommand quickstart."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sememekit.commands._exit import STOPPED
from sememekit.commands._options import Debug, DeviceIfGiven, Figure, Json, Overrides, Quiet, SeedIfGiven, given
from sememekit.commands._render import print_json, print_table, progress_bars, remark, say

EXAMPLES = ("sememekit quickstart", "sememekit quickstart --out tour")


def command(
    out: Annotated[Path, typer.Option("--out", help="Folder to write into.")] = Path("quickstart"),
    share: Annotated[
        float | None, typer.Option("--share", min=0.0, max=1.0, help="Share of the month of newspaper to learn from.")
    ] = None,
    overrides: Overrides = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over, and delete what is in the folder.")] = False,
    seed: SeedIfGiven = None,
    device: DeviceIfGiven = None,
    figure: Figure = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """The main job in minutes: data, graph, a softmax and a sememe model, both measured, three predictions explained.

    Called again it shows what is finished, and goes on with what is not. --set changes both models alike.
    """
    from sememekit.training.signals import Stopped, stop_signals

    options = given(share=share, overrides=overrides, seed=seed, device=device)
    with stop_signals(patient=True, lasting=True) as asked_to_stop:
        try:
            with asked_to_stop.at_once():  # loading torch takes seconds, in which a signal may come
                from sememekit.commands.quickstart import quickstart
                from sememekit.reports.charts import check_figure, write_figure
                from sememekit.reports.quickstart import charts, columns, how_it_was_made, rows, verdict

                if figure is not None:
                    check_figure(figure)
                with progress_bars(quiet) as show:
                    report = quickstart(out, fresh=fresh, progress=show, **options)
        except Stopped:
            remark("stopped by a signal before anything was begun; type the same command again", quiet=False)
            raise typer.Exit(STOPPED) from None
    if json:
        print_json(report)
    if report.stopped:
        remark(f"stopped by a signal; go on with: {report.next_commands[0]}", quiet=False)
        raise typer.Exit(STOPPED)
    if figure is not None:
        write_figure(charts(report), figure)
        remark(f"figure: {figure}", quiet)
    if report.already_done:
        remark(f"{out} is finished already; --fresh starts over", quiet)
    if json:
        return
    print_table("Test perplexity with and without sememes", columns(report.models), rows(report.models))
    for line in (verdict(report.models), *how_it_was_made(report)):
        say(line)
    say(f"\nSee {report.page} for learning curves and three predictions explained. Type next:\n")
    for command in report.next_commands:
        say(f"  {command}")
