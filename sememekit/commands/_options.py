"""The arguments and options that more than one subcommand has, and what the shell completes for them.

An option whose type ends in ``IfGiven`` is None unless it is typed: for commands that lay what is typed over a recipe or a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

if TYPE_CHECKING:
    from sememekit.config import Settings

S = TypeVar("S", bound="Settings")

DeviceName = Literal["auto", "cpu", "cuda"]
ErrorPolicy = Literal["strict", "replace", "skip"]
WhichName = Literal["best", "last"]


def variant(flag: str, help_text: str, *tables: str) -> Any:
    """An option that takes the name of a variant, which the shell completes; ``tables`` as of ``names_of``."""
    return typer.Option(flag, help=help_text, autocompletion=names_of(*tables))


def names_of(*tables: str) -> Callable[[str], list[str]]:
    """A function that completes the names of tables of variants, each given as ``room:TABLE``; no variant is imported."""

    def complete(incomplete: str) -> list[str]:
        found: set[str] = set()
        for table in tables:
            module, _, name = table.partition(":")
            found.update(getattr(import_module(f"sememekit.{module}"), name))
        return [name for name in sorted(found) if name.startswith(incomplete)]

    return complete


def complete_recipe(incomplete: str) -> list[str]:
    """Names of the shipped recipes."""
    from sememekit.config import recipe_names

    return [name for name in recipe_names() if name.startswith(incomplete)]


_SEED = typer.Option("--seed", min=0, help="Seed of everything random; same seed, same result.")
_DEVICE = typer.Option("--device", help="Where to compute; auto takes CUDA when it is there.")
_ERRORS = typer.Option("--errors", help="What to do with bytes that are not valid text.")
_SPLIT = typer.Option("--split", help="Split of the data: train, valid or test.")

Seed = Annotated[int, _SEED]
SeedIfGiven = Annotated[int | None, _SEED]
Device = Annotated[DeviceName, _DEVICE]
DeviceIfGiven = Annotated[DeviceName | None, _DEVICE]
Dtype = Annotated[
    Literal["float32", "tf32", "bfloat16"] | None,
    typer.Option("--dtype", help="Precision of matrix products; sums stay in float32."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks on stderr.")]
TrustCode = Annotated[
    bool, typer.Option("--trust-code", help="Load code that RUN or other folders name; only where you trust their maker.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained model.", show_default=False)]
Which = Annotated[WhichName, typer.Option("--which", help="Checkpoint: the best by validation, or the last.")]
Split = Annotated[str, _SPLIT]
SplitIfGiven = Annotated[str | None, _SPLIT]
EvaluationData = Annotated[
    Path | None, typer.Option("--data", help="Prepared data in place of those of the training.", show_default=False)
]
Overlay = Annotated[
    Path | None,
    typer.Option("--overlay", help="Changed annotation, of 'lookup --change'; nothing is trained.", show_default=False),
]
Texts = Annotated[
    Path | None,
    typer.Option("--texts", help="File for the texts that are scored, for the command compare.", show_default=False),
]
Figure = Annotated[
    Path | None,
    typer.Option("--figure", metavar="FILE.{png,svg}", help="Also write the chart alone, for a paper.", show_default=False),
]
Html = Annotated[
    Path | None, typer.Option("--html", help="Also write an HTML page (one file, no network).", show_default=False)
]

Errors = Annotated[ErrorPolicy, _ERRORS]
ErrorsIfGiven = Annotated[ErrorPolicy | None, _ERRORS]
SEGMENTER_HELP = "characters, english, english-cased, fmm, gigaword, jieba, none, sentencepiece or package.module:Class."
Segmenter = Annotated[
    str | None,
    typer.Option("--segmenter", help=SEGMENTER_HELP, autocompletion=names_of("text.segmenters:SEGMENTERS")),
]
SegmenterLexicons = Annotated[
    list[str] | None,
    typer.Option(
        "--lexicon",
        metavar="FORMAT:PATH",
        help="Lexicon of the segmenter: none, or as --source. May be repeated: the words of all.",
        show_default=False,
    ),
]
DataLexicon = Annotated[
    str | None,
    typer.Option(
        "--lexicon",
        metavar="FORMAT:PATH",
        help="Words that the segmenter of the training data knew, for a run without lexicon.txt.",
    ),
]
Hmm = Annotated[bool, typer.Option("--hmm", help="Let jieba find words outside its dictionary (hidden Markov model).")]
Decode = Annotated[
    Literal["viterbi", "posterior"] | None,
    typer.Option("--decode", help="Lattice models: the most probable path, or the most probable answer at each place."),
]
Apart = Annotated[bool, typer.Option("--apart", help="For headline, dialogue: the text is segmented already.")]

Sources = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        metavar="FORMAT:PATH",
        help="Lexicon with senses and sememes: open, function-words, or hownet, hownet2000, list, table, openhownet, wordnet, "
        "dictionary (wordnet, cedict or a file), random and single (another source) with a path. "
        "May be repeated: the first source that knows a word has it.",
        show_default=False,
    ),
]
Side = Annotated[
    Literal["chinese", "english"],
    typer.Option("--side", help="Language of the words that are read from hownet, openhownet."),
]

Recipe = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        metavar="NAME|FILE",
        help="A shipped recipe (see 'sememekit recipes list'), a .toml file of yours, or a row of it, FILE.toml:ROW.",
        autocompletion=complete_recipe,
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SLOT.KEY=VALUE", help="Change one setting; may be repeated.", show_default=False),
]
SearchOverrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="task.search.KEY=VALUE",
        help="Beam search of headlines and dialogue.",
        show_default=False,
    ),
]


def given(**options: Any) -> dict[str, Any]:
    """The options that were typed: what is laid over a recipe or a run."""
    return {name: value for name, value in options.items() if value is not None}


def read_options(kind: type[S], options: Mapping[str, Any]) -> S:
    """Settings out of the options of the same names; what was not typed keeps its default there.

    Args:
        kind: the class of the settings.
        options: the ``locals()`` of a command.
    """
    typed = {name: options[name] for name in kind.model_fields if options.get(name) is not None}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in typed.items()})


def example(*lines: str) -> str:
    """The epilog of a help page. Examples are lines that work when they are typed."""
    title = "Example:" if len(lines) == 1 else "Examples:"
    return "\n\n".join([title, *(f"  {line}".replace("[", "\\[") for line in lines)])
