"""``sememekit push``: a run with its model card to a folder or to the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sememekit.commands._options import Json, Quiet, Run, Which, WhichName, option
from sememekit.commands._printing import hint, print_fields, print_json, remark
from sememekit.files import typed

if TYPE_CHECKING:
    from sememekit.runs.sharing import ShareReport

EXAMPLES = ("sememekit push runs/sdlm to-share", "sememekit push runs/sdlm hf://owner/name")


def command(
    run: Run,
    target: Annotated[str, typer.Argument(metavar="FOLDER|hf://OWNER/NAME", help="Folder to make, or repository of the hub.")],
    name: Annotated[str | None, option("--name", "Name in the card. Default: the folder of the run.")] = None,
    public: Annotated[bool, option("--public", "Make a new repository public. Default: private.")] = False,
    which: Which = "best",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Pass a run on: weights as safetensors, plan as JSON, what the run keeps, and a model card.

    sememekit pull makes a run of it again. The state of the optimiser is not part of it.
    """
    report = push(run, target, name=name, which=which, public=public)
    if json:
        print_json(report)
        return
    print_fields(f"Pushed: {report.target}", report, skip=("target", "remarks"))
    for text in report.remarks:
        remark(text, quiet)
    hint(f"next, elsewhere: {typed('sememekit', 'pull', report.target, '--out', 'runs/pulled')}", quiet)


def push(run: Path, target: str, *, name: str | None = None, which: WhichName = "best", public: bool = False) -> ShareReport:
    """Write a run with its card to a folder, or to ``hf://owner/name``; errors as ``runs.sharing.push_run``."""
    from sememekit.reports.card import model_card
    from sememekit.runs.sharing import push_run

    return push_run(run, target, model_card(run, name, which=which), which=which, public=public)
