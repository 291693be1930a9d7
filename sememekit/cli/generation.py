"""The subcommand generate: text that goes on from a prompt, or a text for each text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sememekit.cli.lines import lines_of
from sememekit.cli.options import (
    Debug,
    Device,
    Errors,
    Json,
    Run,
    Seed,
    TrustCode,
    Which,
    given,
)
from sememekit.cli.render import print_json, say
from sememekit.cli.writing import Apart, Lexicon, SearchOverrides, generate_texts, refuse
from sememekit.errors import ConfigError


def generate(
    run: Run,
    prompt: Annotated[str | None, typer.Argument(metavar="[PROMPT]", help="Words to begin with, a space between them.")] = None,
    num_tokens: Annotated[int | None, typer.Option("--num-tokens", min=1, help="How many words to add.")] = None,
    temperature: Annotated[float | None, typer.Option("--temperature", min=0.0, help="0 takes the likeliest word.")] = None,
    top_k: Annotated[int | None, typer.Option("--top-k", min=0, help="Draw among so many likeliest words; 0 for all.")] = None,
    unknown: Annotated[bool, typer.Option("--unknown", help="Let <unk> be drawn.")] = False,
    texts: Annotated[
        Path | None,
        typer.Option("--input", help="For headline, dialogue: a text a line; stdin unless given.", show_default=False),
    ] = None,
    overrides: SearchOverrides = None,
    apart: Apart = False,
    lexicon: Lexicon = None,
    which: Which = None,
    errors: Errors = None,
    seed: Seed = None,
    device: Device = None,
    json: Json = False,
    trust_code: TrustCode = False,
    debug: Debug = False,
) -> None:
    """Go on from a prompt, word by word; or, with a model of headlines or dialogue, write a text for each line
    of --input.

    Then there is a text a line on stdout, with --json an object a line; --set task.search.KEY=VALUE changes the search.
    """
    from sememekit.runs.run import Run

    if "texts" in Run.open(run).kinds:
        drawn = {"num_tokens": num_tokens, "temperature": temperature, "top_k": top_k, "unknown": unknown, "seed": seed}
        refuse(drawn, "texts are searched for, not drawn; change the search with --set task.search.KEY=VALUE")
        if prompt is not None and texts is not None:
            raise ConfigError("give the text itself or --input FILE, not both")
        lines = [prompt] if prompt is not None else lines_of(texts, errors or "strict")
        name = "the text, line" if prompt is not None else f"{texts or 'stdin'}, line"
        options = given(which=which, device=device)
        generate_texts(run, lines, name, overrides=overrides or [], apart=apart, lexicon=lexicon, json=json, options=options)
        return
    only = {"input": texts, "set": overrides, "apart": apart, "lexicon": lexicon, "errors": errors}
    refuse(only, "this is for runs of --task headline or dialogue; leave it out")
    from sememekit.commands.generate import generate as command

    options = given(num_tokens=num_tokens, temperature=temperature, top_k=top_k, which=which, seed=seed, device=device)
    report = command(run, prompt or "", unknown=unknown, **options)
    if json:
        print_json(report)
    else:
        say(report.text)
