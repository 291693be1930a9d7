"""The command line: parse, call one function of ``sememekit.commands``, render, leave with an exit code.

A subcommand imports what it needs when it is called, so that help and completion answer at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from sememekit import __version__
from sememekit.cli import analysis, attacking, clusters, data, evaluation, lexicons, recipes, start, training
from sememekit.cli.program import Program

app = typer.Typer(
    name="sememekit",
    cls=Program,
    help="Language models that know what words are made of: sememes.",
    epilog="Start with: sememekit quickstart",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"sememekit {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Language models that know what words are made of: sememes."""


for module in (start, data, lexicons, training, evaluation, analysis, clusters, attacking, recipes):
    module.register(app)


def main() -> None:
    """The console script."""
    typer.main.get_command(app)()


__all__ = ["app", "main"]
