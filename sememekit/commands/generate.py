"""The subcommand generate; the plain functions are in ``sememekit.runs``: ``generation`` and ``writing``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememekit.commands import _options as shared
from sememekit.commands._input import input_name, lines_of, remark_file_name
from sememekit.commands._options import ErrorPolicy, option
from sememekit.commands._printing import print_json, remark, say
from sememekit.commands._run_kinds import choose
from sememekit.errors import ConfigError
from sememekit.files import typed

if TYPE_CHECKING:
    from sememekit.runs.run import Run as LoadedRun

EXAMPLES = (
    'sememekit generate runs/sdlm "去年 美国" --num-tokens 30 --seed 1',
    "sememekit generate runs/headlines --input articles.txt --json",
)

NO_OPTIONS = {"--overlay": "is no option of generate: what a changed annotation does is measured by score and explain"}
"""What is typed as an option and is none, and what to do."""


def command(
    run: shared.Run,
    prompt: Annotated[str | None, typer.Argument(metavar="[PROMPT]", help="Prompt: words separated by spaces.")] = None,
    num_tokens: Annotated[int | None, option("--num-tokens", "How many words to generate.", min=1, show_default="30")] = None,
    temperature: Annotated[float | None, option("--temperature", "0 is greedy.", min=0.0, show_default="1")] = None,
    top_k: Annotated[int | None, option("--top-k", "Sample from the top k words; 0: all.", min=0, show_default="0")] = None,
    unknown: Annotated[bool, option("--unknown", "Allow <unk> in the output.")] = False,
    input_file: Annotated[Path | None, option("--input", "Headline, dialogue: file with a text a line; - for stdin.")] = None,
    overrides: shared.SearchOverrides = None,
    apart: shared.Apart = False,
    which: shared.Which = "best",
    errors: shared.ErrorsIfGiven = None,
    seed: shared.SeedIfGiven = None,
    device: shared.Device = "auto",
    json: shared.Json = False,
) -> None:
    """Generate text from a prompt; with a model of headlines or dialogue, write a text for each line of --input.

    Then there is a text a line on stdout, with --json an object a line; --set task.search.KEY=VALUE changes the search.
    """
    from sememekit.runs.generation import generate
    from sememekit.runs.run import Run as LoadedRun

    loaded = LoadedRun.open(run, which=which, device=device)
    takers: dict[str, list[Any]] = {"texts": ["input_file", "overrides", "apart", "errors"], "words": [generate]}
    instead = "its texts are searched for: change the search with --set task.search.KEY=VALUE"
    kind, given = choose("generate", loaded, takers, locals(), instead if "texts" in loaded.kinds else "leave it out")
    if prompt is not None:
        lines = f"its lines: --input {typed(prompt)}" if kind == "texts" else "give the words to begin with"
        remark_file_name(prompt, lines)
    if kind == "texts":
        _texts(loaded, prompt, json=json, which=which, device=device, **given)
        return
    report = generate(loaded, prompt or "", **given)
    print_json(report) if json else say(report.text)


def _texts(
    run: LoadedRun,
    prompt: str | None,
    *,
    json: bool,
    input_file: Path | None = None,
    overrides: list[str] | None = None,
    errors: ErrorPolicy = "strict",
    **options: Any,
) -> None:
    from sememekit.runs.writing import load_writer, search_of, told_of_cut, write_texts

    if prompt is not None and input_file is not None:
        raise ConfigError("give the text itself or --input FILE, not both")
    writer = load_writer(run, **options)
    lines = [prompt] if prompt is not None else lines_of(input_file, errors)
    name = "the text, line" if prompt is not None else f"{input_name(input_file)}, line"
    sources, cut, most = 0, 0, 0
    for written in write_texts(writer, lines, search_of(writer.task, overrides or []), name):
        print_json(written) if json else say(written.best.text)
        sources, cut = written.line, cut + (written.read_words < written.source_words)
        most = max(most, written.read_words)
    if not sources:
        remark(f"no line in {input_name(input_file)}, so nothing is written", quiet=False)
    if cut:
        remark(told_of_cut(cut, sources, most), quiet=False)
