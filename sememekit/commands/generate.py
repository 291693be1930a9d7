"""The subcommand generate; the plain functions are in ``sememekit.runs``: ``generation`` and ``writing``."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from sememekit.commands import _options as shared
from sememekit.commands._input import input_name, lines_of, remark_file_name, some
from sememekit.commands._options import ErrorPolicy, argument, choose, option, refuse
from sememekit.commands._printing import print_json, remark, say
from sememekit.errors import ConfigError
from sememekit.files import typed

if TYPE_CHECKING:
    from sememekit.runs.generation import GenerateReport
    from sememekit.runs.run import Run as LoadedRun

EXAMPLES = (
    'sememekit generate quickstart/sdlm "去年 美国" --num-tokens 30 --seed 1',
    "sememekit generate runs/headlines --input articles.txt --json",
)

NO_OPTIONS = {"--overlay": "is no option of generate: what a changed annotation does is measured by score and explain"}
"""Foreign options -> what to type instead."""


def command(
    run: shared.Run,
    prompt: Annotated[str | None, argument("[PROMPT]", "Prompt: words separated by spaces.")] = None,
    num_tokens: Annotated[int | None, option("--num-tokens", "How many words to generate.", min=1, show_default="30")] = None,
    temperature: Annotated[float | None, option("--temperature", "0 is greedy.", min=0.0, show_default="1")] = None,
    top_k: Annotated[int | None, option("--top-k", "Sample from the top k words; 0: all.", min=0, show_default="0")] = None,
    top_p: Annotated[
        float | None, option("--top-p", "Sample from the top words that have this share together.", max=1.0, show_default="1")
    ] = None,
    stop: Annotated[list[str] | None, option("--stop", "Stop after this word; repeatable.", metavar="WORD")] = None,
    beam: Annotated[int | None, option("--beam", "Beam size: search for the best text, draw nothing.", min=1)] = None,
    num_samples: Annotated[
        int | None, option("--num-samples", "Texts for each prompt, with seeds from --seed on.", min=1, show_default="1")
    ] = None,
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
    """Generate text from a prompt or each line of stdin; headline and dialogue models write a text for each line of --input.

    The output of --input has a text a line, with --json an object a line; --set task.search.KEY=VALUE changes the search."""
    from sememekit.runs.generation import generate, stream_words
    from sememekit.runs.run import Run as LoadedRun

    loaded = LoadedRun.open(run, which=which, device=device)
    takers: dict[str, list[Any]] = {"texts": ["input_file", "overrides", "apart", "errors"], "words": [generate, "num_samples"]}
    instead = "its texts are searched for: change the search with --set task.search.KEY=VALUE"
    options: dict[str, Any] = {"input_file": input_file, "overrides": overrides, "apart": apart, "errors": errors, "seed": seed}
    options |= {"num_tokens": num_tokens, "temperature": temperature, "top_k": top_k, "top_p": top_p, "stop": stop}
    options |= {"beam": beam, "unknown": unknown, "num_samples": num_samples}
    kind, given = choose("generate", loaded, takers, options, instead if "texts" in loaded.kinds else "leave it out")
    if prompt is not None:
        lines = f"its lines: --input {typed(prompt)}" if kind == "texts" else "give the words to begin with"
        remark_file_name(prompt, lines)
    if kind == "texts":
        _texts(loaded, prompt, json=json, **given)
        return
    if beam is not None:
        drawn = {"temperature": temperature, "top-k": top_k, "top-p": top_p, "num-samples": num_samples}
        refuse(drawn, "a beam draws nothing; leave this or --beam out")
    samples = given.pop("num_samples", 1)
    for line in [prompt] if prompt is not None or sys.stdin.isatty() else [*lines_of(None, "strict")] or [""]:
        for number in range(samples):
            own = {**given, "seed": (1 if seed is None else seed) + number}
            if sys.stdout.isatty() and not json and beam is None:
                _stream(stream_words(loaded, line or "", **own), line or "")
                continue
            report = generate(loaded, line or "", **own)
            print_json(report) if json else say(report.text)


def _stream(words: Iterator["str | GenerateReport"], prompt: str) -> None:
    """Print each word as soon as it is drawn."""
    from sememekit.text.vocabulary import END, STOP

    say(prompt, end=" " if prompt else "")
    for word in words:
        if not isinstance(word, str):  # the report comes last
            break
        say("" if word in (END, STOP) else word, end="\n" if word in (END, STOP) else " ", flush=True)
    say()


def _texts(
    run: "LoadedRun",
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
    nothing = f"no line in {input_name(input_file)}, so nothing is written; give a text a line"
    for written in some(write_texts(writer, lines, search_of(writer.task, overrides or []), name), nothing):
        print_json(written) if json else say(written.best.text)
        sources, cut = written.line, cut + (written.read_words < written.source_words)
        most = max(most, written.read_words)
    if cut:
        remark(told_of_cut(cut, sources, most), quiet=False)
