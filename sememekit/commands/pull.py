"""The subcommand pull; the plain function is ``sememekit.runs.sharing.pull_run``."""

from pathlib import Path
from typing import Annotated

from sememekit.commands._options import Json, Quiet, argument, option
from sememekit.commands._printing import hint, print_fields, print_json
from sememekit.files import typed

EXAMPLES = ("sememekit pull to-share --out runs/pulled", "sememekit pull hf://owner/name --out runs/pulled")


def command(
    source: Annotated[str, argument("FOLDER|hf://OWNER/NAME", "Output of 'sememekit push'.")],
    out: Annotated[Path, option("--out", "Folder of the run to make.")],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a run from the output of sememekit push. It can be used and trained further (train --from), but not resumed."""
    from sememekit.runs.sharing import pull_run

    report = pull_run(source, out)
    if json:
        print_json(report)
        return
    print_fields(f"Pulled: {out}", report, skip=("remarks",))
    hint(f"next: {typed('sememekit', 'push', out, '--card', '-')}", quiet)
