"""``sememekit push``: a run with its model card to a folder or to the Hugging Face hub."""

from pathlib import Path
from typing import Annotated

import typer

from sememekit.commands._options import Json, Quiet, Run, Which, argument, option
from sememekit.commands._printing import hint, print_fields, print_json, remark, say
from sememekit.errors import ConfigError
from sememekit.files import CARD, check_output, typed, write_output

EXAMPLES = (
    "sememekit push quickstart/sdlm to-share",
    "sememekit push quickstart/sdlm hf://owner/name",
    "sememekit push quickstart/sdlm --card README.md",
)


def command(
    run: Run,
    target: Annotated[str | None, argument("[FOLDER|hf://OWNER/NAME]", "Folder to make, or repository of the hub.")] = None,
    card: Annotated[str | None, option("--card", "Write the model card alone; - prints it.", metavar="FILE")] = None,
    out: Annotated[Path | None, typer.Option("--out", hidden=True, help="Former option: FILE of --card.")] = None,
    name: Annotated[str | None, option("--name", "Name in the card. Default: the folder of the run.")] = None,
    public: Annotated[bool, option("--public", "Make a new repository public. Default: private.")] = False,
    which: Which = "best",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Share a run: weights as safetensors, plan as JSON, vocabulary and other files, and a model card.

    sememekit pull makes it a run again, without the optimiser state. --card writes the card alone, in Markdown: figures, data,
    sememes, settings and versions; you add the licence."""
    if (card is None) == (target is None):
        raise ConfigError("push takes FOLDER or hf://OWNER/NAME, or --card FILE for the model card alone")
    from sememekit.reports.card import model_card
    from sememekit.runs.sharing import push_run

    if card is not None:
        file = out or (None if card == "-" else Path(card))
        check_output(file, CARD)
        text = model_card(run, name, which=which)
        if file is None:
            say(text.rstrip("\n"))
            return
        write_output(file, text.encode(), CARD)
        hint(f"next: name a licence in {file}, and pass the run on with: {typed('sememekit', 'push', run, 'FOLDER')}", quiet)
        return
    assert target is not None
    report = push_run(run, target, model_card(run, name, which=which), which=which, public=public)
    if json:
        print_json(report)
        return
    print_fields(f"Pushed: {report.target}", report, skip=("target", "remarks"))
    for told in report.remarks:
        remark(told, quiet)
    hint(f"next, elsewhere: {typed('sememekit', 'pull', report.target, '--out', 'runs/pulled')}", quiet)
