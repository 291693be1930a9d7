"""Arguments and options of several subcommands, with their completions.

An option with a type ``...IfGiven`` is None by default, for commands in which typed options override a recipe or run."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn

import typer

from sememekit.commands._completion import (
    complete_recipe,
    complete_search_setting,
    complete_setting,
    complete_source,
    complete_split,
    names_of,
)
from sememekit.config import LARGEST_SEED
from sememekit.config.tables import USUAL_VARIANTS
from sememekit.errors import ConfigError

if TYPE_CHECKING:
    from sememekit.runs.run import Run as LoadedRun
    from sememekit.tasks.base import Kind

LEXICON = "FORMAT:PATH"  # placeholder for a lexicon in the help

DeviceName = Literal["auto", "cpu", "cuda", "mps"]
ErrorPolicy = Literal["strict", "replace", "skip"]
WhichName = Literal["best", "last"]


def argument(metavar: str, help_text: str, **more: Any) -> Any:
    """A positional argument."""
    return typer.Argument(metavar=metavar, help=help_text, **more)


_COMPLETIONS: Final = {
    LEXICON: complete_source,
    "NAME|FILE": complete_recipe,
    "SLOT.KEY=VALUE": complete_setting,
    "task.search.KEY=VALUE": complete_search_setting,
}
"""Placeholder -> its completion."""


def option(flag: str, help_text: str, kind: str = "", **more: Any) -> Any:
    """An option, with the completion of its placeholder or of the variants of a ``kind``."""
    completion = names_of(kind) if kind else _COMPLETIONS.get(more.get("metavar", ""))
    return typer.Option(flag, help=help_text, **{"autocompletion": completion, **more})


def variant_option(slot: str, told: str) -> Any:
    """The option that chooses the variant of a slot."""
    return option(f"--{slot}", told, slot, show_default=USUAL_VARIANTS[slot])


Word = Annotated[str | None, argument("[WORD]", "Only entries with these words, such as 'Gu, Table 4'.")]


def has_word(word: str | None, *texts: str) -> bool:
    """Return a test whether each of the comma-separated words is a prefix of a word in the texts, ignoring case."""
    parts = [rf"(?<![a-z]){re.escape(part.strip().casefold())}(?!\d)" for part in (word or "").split(",")]
    return word is None or all(re.search(part, " ".join(texts).casefold()) for part in parts)


_ENGINE_HELP = "Where processes run: local, dask:tcp://HOST:PORT, or slurm:KEY=VALUE,... (docs/scale.md)."
Engine = Annotated[str, option("--engine", _ENGINE_HELP, "engine")]
EngineIfGiven = Annotated[str | None, option("--engine", _ENGINE_HELP, "engine", show_default="local")]

_SEED = option("--seed", "Random seed; the same seed gives the same result.", min=0, max=LARGEST_SEED)
_DEVICE = option("--device", "Where to compute; auto takes CUDA when it is there.")
_ERRORS = option("--errors", "Policy for bytes that are not valid text.")
_SPLIT = option("--split", "Split of the data: train, valid or test.", autocompletion=complete_split)

_MEAN = option("--mean", "Mean that the gain is measured from: over word counts (default), or a split.", metavar="counts|SPLIT")

Seed = Annotated[int, _SEED]
SeedIfGiven = Annotated[int | None, option("--seed", _SEED.help, min=0, max=LARGEST_SEED, show_default="1")]
Device = Annotated[DeviceName, _DEVICE]
DeviceIfGiven = Annotated[DeviceName | None, option("--device", _DEVICE.help, show_default="auto")]
DtypeName = Literal["float32", "tf32", "bfloat16"]
_DTYPE = "Precision of matrix products; sums stay in float32."
Dtype = Annotated[DtypeName | None, option("--dtype", _DTYPE, show_default="as the run")]
DtypeIfGiven = Annotated[DtypeName | None, option("--dtype", _DTYPE, show_default="float32")]
Json = Annotated[bool, option("--json", "Print one JSON object on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks on stderr.")]
TrustCode = Annotated[bool, option("--trust-code", "Load code that RUN or other folders name; only if you trust their author.")]
Debug = Annotated[bool, option("--debug", "Show the traceback of an error.")]

Run = Annotated[Path, argument("RUN", "Folder of a trained model.")]
RunOrPublished = Annotated[Path, argument("RUN", "Folder of a trained model; or hf:PATH, a causal or masked model.")]
Which = Annotated[WhichName, option("--which", "Checkpoint: the best by validation, or the last.")]
Split = Annotated[str, _SPLIT]
SplitIfGiven = Annotated[str | None, _SPLIT]
TestUnlessGiven = Annotated[str | None, option("--split", _SPLIT.help, autocompletion=complete_split, show_default="test")]
EvaluationData = Annotated[Path | None, option("--data", "Prepared data to use (default: the training data).")]
BatchSize = Annotated[int | None, option("--batch-size", "Batch size: columns of the text; 1 is the exact stream.", min=1)]
Overlay = Annotated[Path | None, option("--overlay", "Changed annotations: a file of 'lookup --change'; nothing is trained.")]
Texts = Annotated[Path | None, option("--texts", "Write the texts that are scored to a file, for the command compare.")]
Mean = Annotated[str, _MEAN]
MeanIfGiven = Annotated[str | None, _MEAN]
Figure = Annotated[Path | None, option("--figure", "Also write the chart alone, for a paper.", metavar="FILE.{png,svg,pdf}")]
Html = Annotated[Path | None, option("--html", "Also write an HTML page (one file, no network).")]

Errors = Annotated[ErrorPolicy, _ERRORS]
ErrorsIfGiven = Annotated[ErrorPolicy | None, option("--errors", _ERRORS.help, show_default="strict")]
SEGMENTER_HELP = (
    "characters, english, english-cased, fmm, gigaword, jieba, none, sentencepiece, hf:PATH (tokenizer of a model) or "
    "package.module:Class."
)


def segmenter_option(usual: str) -> Any:
    """Return the option that chooses the segmenter; ``usual`` describes the default."""
    return option("--segmenter", SEGMENTER_HELP, "segmenter", show_default=usual)


SegmenterLexicons = Annotated[
    list[str] | None, option("--lexicon", "Lexicon of the segmenter, as for --source, or none; repeatable.", metavar=LEXICON)
]
Hmm = Annotated[bool, option("--hmm", "Let jieba find words outside its dictionary (hidden Markov model).")]
Decode = Annotated[
    Literal["viterbi", "posterior"] | None, option("--decode", "Lattices: best segmentation, or best word at each position.")
]
Apart = Annotated[bool, option("--apart", "For headline, dialogue: the text is pre-tokenized, words between blanks.")]

_SOURCE_HELP = (
    "Lexicon with senses and sememes: open, function-words, or hownet, hownet2000, list, table, openhownet, wordnet, "
    "dictionary (wordnet, cedict or a file), random, single, shuffled and bare (another source) with a path. "
    "May be repeated: the first source that knows a word gives its senses."
)
Sources = Annotated[list[str] | None, option("--source", _SOURCE_HELP, metavar=LEXICON)]
SourcesOrOpen = Annotated[list[str] | None, option("--source", _SOURCE_HELP, metavar=LEXICON, show_default="open")]
Side = Annotated[Literal["chinese", "english"], option("--side", "Language of the words read from hownet, openhownet.")]

Lemmas = Annotated[str | None, option("--lemmas", "Base forms: lines of lemma TAB form, or wordnet.", metavar="FILE|wordnet")]

OpenVocabulary = Annotated[
    list[str] | None, option("--open-vocabulary", "Read unknown words by the sememes of this lexicon.", metavar=LEXICON)
]

SenseMethod = Annotated[
    Literal["combined", "substitution", "usual", "share", "lift"] | None,
    option("--method", "How senses are tagged (docs/senses.md).", show_default="combined"),
]
SenseSources = Annotated[list[str] | None, option("--source", "Lexicon for unannotated words; repeatable.", metavar=LEXICON)]

Recipe = Annotated[
    str | None, option("--recipe", "A recipe of 'recipes list', a .toml file, or its row FILE.toml:ROW.", metavar="NAME|FILE")
]
Overrides = Annotated[
    list[str] | None, option("--set", "Change a setting of 'sememekit settings'; repeatable.", metavar="SLOT.KEY=VALUE")
]
SearchOverrides = Annotated[
    list[str] | None, option("--set", "Beam search of headlines and dialogue.", metavar="task.search.KEY=VALUE")
]


def fail_usage(message: str) -> NoReturn:
    """End with a usage error, for rules that involve several flags."""
    raise typer.BadParameter(message)


def given(**options: Any) -> dict[str, Any]:
    """Return the typed options, which override a recipe, a run or the default of a function; None is left out."""
    return {name: value for name, value in options.items() if value is not None}


def others_typed(context: typer.Context, allowed: Collection[str]) -> list[str]:
    """Return the typed options and arguments that are not ``allowed``, except options of every command."""
    found, left_out = [], {*allowed, "debug", "trust_code"}
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE" and parameter.name not in left_out:
            found.append(parameter.opts[0] if parameter.opts[0].startswith("-") else (parameter.name or "").upper())
    return found


def refuse(options: Mapping[str, Any], reason: str) -> None:
    """Raise ConfigError for the first typed option that has no meaning here."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise ConfigError(f"--{name}: {reason}")


def example(*lines: str) -> str:
    """Return the epilog of a help page with examples that work as typed."""
    title = "Example:" if len(lines) == 1 else "Examples:"
    return "\n\n".join([title, *(f"  {line}".replace("[", "\\[") for line in lines)])


def paragraphs(docstring: str | None) -> str:
    """A docstring with one line for each paragraph, which the terminal wraps."""
    return "\n\n".join(" ".join(part.split()) for part in cleandoc(docstring or "").split("\n\n"))


_SPELLED: Final = {"overrides": "--set", "other": "TEXT2", "input_file": "--input", "sources": "--source"}
"""Parameter -> option, if their names differ."""


def choose(
    command: str, run: LoadedRun, takers: Mapping[Any, Sequence[Any]], options: Mapping[str, Any], instead: str = "leave it out"
) -> tuple[Kind, dict[str, Any]]:
    """Return the kind of a run for a command, and the options of that kind, without reading weights.

    ``takers``: for each kind its functions, whose keyword-only arguments are its options, and names of further options. The
    first kind of the run is taken, or else the last kind, for its error message. ``options``: typed options by name; None and
    False mean not typed. ``progress`` is dropped if no function takes it. Raises ConfigError: an option was typed that this
    kind does not take; ``instead`` says what to type in its place."""
    from sememekit.runs.plan import KIND_NAMES

    names = {kind: {name for one in taken for name in _options_of(one)} for kind, taken in takers.items()}
    own = next((kind for kind in takers if kind in run.kinds), [*takers][-1])
    special = set[str]().union(*names.values())
    typed = {name: value for name, value in options.items() if name in special and value is not None and value is not False}
    for name in typed.keys() - names[own] - {"progress"}:
        takes = " or ".join(KIND_NAMES[kind] for kind in takers if name in names[kind])
        flag = _SPELLED.get(name, f"--{name.replace('_', '-')}")
        advice = "put the whole text into quotes" if name == "other" else instead
        raise ConfigError(f"{flag}: {command} takes it with {takes}, and {run} is {KIND_NAMES[own]}; {advice}")
    return own, {name: value for name, value in typed.items() if name in names[own]}


def _options_of(taker: str | Callable[..., Any]) -> list[str]:
    if isinstance(taker, str):
        return [taker]
    return [one.name for one in signature(taker).parameters.values() if one.kind is Parameter.KEYWORD_ONLY]
