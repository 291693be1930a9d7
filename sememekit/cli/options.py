"""The flags that mean the same in every subcommand, and what the shell completes for them.

A flag that is not given is ``None`` and is not passed on: its default stands in the function that the subcommand calls.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

DeviceName = Literal["auto", "cpu", "cuda"]
DtypeName = Literal["float32", "tf32", "bfloat16"]
ErrorPolicy = Literal["strict", "replace", "skip"]


def complete_decoder(incomplete: str) -> list[str]:
    """Names of the decoders; the table is read, no decoder is imported."""
    from sememekit.decoders import DECODERS

    return [name for name in sorted(DECODERS) if name.startswith(incomplete)]


def complete_encoder(incomplete: str) -> list[str]:
    """Names of the encoders."""
    from sememekit.encoders import ENCODERS

    return [name for name in sorted(ENCODERS) if name.startswith(incomplete)]


def complete_task(incomplete: str) -> list[str]:
    """Names of the tasks."""
    from sememekit.tasks import TASKS

    return [name for name in sorted(TASKS) if name.startswith(incomplete)]


def complete_recipe(incomplete: str) -> list[str]:
    """Names of the shipped recipes."""
    from sememekit.config import recipe_names

    return [name for name in recipe_names() if name.startswith(incomplete)]


Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Seed of everything random; same seed, same result.")]
Device = Annotated[DeviceName | None, typer.Option("--device", help="Where to compute; auto takes CUDA when it is there.")]
Dtype = Annotated[DtypeName | None, typer.Option("--dtype", help="Numbers in matrix products; sums stay in float32.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Figure = Annotated[
    Path | None,
    typer.Option("--figure", metavar="FILE.{png,svg}", help="Also write the chart alone, for a paper.", show_default=False),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks on stderr.")]
TrustCode = Annotated[
    bool, typer.Option("--trust-code", help="Load code that RUN or other folders name; only where you trust their maker.")
]
"""Read in ``program.py``; a name that is typed on the command line is trusted without it."""
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained model.", show_default=False)]
ERRORS_HELP = "What to do with bytes that are not valid text."
Errors = Annotated[ErrorPolicy | None, typer.Option("--errors", help=ERRORS_HELP)]
Split = Annotated[str | None, typer.Option("--split", help="Which part of the data: train, valid or test.")]
EvaluationData = Annotated[
    Path | None, typer.Option("--data", help="Prepared data to use instead of that of the training.", show_default=False)
]
Which = Annotated[Literal["best", "last"] | None, typer.Option("--which", help="The best weights by validation, or the last.")]
Recipe = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        metavar="NAME|FILE",
        help="A shipped recipe (see 'sememekit recipes list'), a .toml file of yours, or a row of it, FILE.toml:ROW.",
        autocompletion=complete_recipe,
    ),
]
Task = Annotated[str | None, typer.Option("--task", help="What to learn.", autocompletion=complete_task)]
Encoder = Annotated[
    str | None,
    typer.Option("--encoder", help="What reads the context: a name or package.module:Class.", autocompletion=complete_encoder),
]
Decoder = Annotated[
    str | None,
    typer.Option("--decoder", help="What predicts the word: a name or package.module:Class.", autocompletion=complete_decoder),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SLOT.KEY=VALUE", help="Change one setting; may be repeated.", show_default=False),
]


def given(**options: Any) -> dict[str, Any]:
    """The options that were given, so that the others keep the default of the function that is called."""
    return {name: value for name, value in options.items() if value is not None}


def example(*lines: str) -> str:
    """The epilog of a help page. Examples are lines that work when they are typed."""
    title = "Example:" if len(lines) == 1 else "Examples:"
    return "\n\n".join([title, *(f"  {line}".replace("[", "\\[") for line in lines)])
