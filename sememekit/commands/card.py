"""The subcommand card; the plain function is ``sememekit.reports.card.model_card``."""

from pathlib import Path
from typing import Annotated

from sememekit.commands._options import Quiet, Run, option
from sememekit.commands._printing import hint, say
from sememekit.files import typed

EXAMPLES = ("sememekit card runs/sdlm --out README.md",)


def command(
    run: Run,
    out: Annotated[Path | None, option("--out", "File to write in place of standard output.")] = None,
    name: Annotated[str | None, option("--name", "Name of the model. Default: the folder.", metavar="NAME")] = None,
    quiet: Quiet = False,
) -> None:
    """Write a model card in Markdown: figures, data, sememes, settings and versions; the licence is left to you."""
    from sememekit.files import CARD, check_output, write_output
    from sememekit.reports.card import model_card

    if out is not None:
        check_output(out, CARD)
    card = model_card(run, name)
    if out is None:
        say(card.rstrip("\n"))
        return
    write_output(out, card.encode(), CARD)
    hint(f"next: name a licence in {out}, and pass the run on with: {typed('sememekit', 'push', run, 'FOLDER')}", quiet)
