"""What generate, explain and eval do for runs that write a text for a text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememekit.cli.render import per_cent, print_fields, print_json, print_table, remark, result_console, say
from sememekit.errors import ConfigError

if TYPE_CHECKING:
    from sememekit.analysis.explain_writing import WritingExplanation

Apart = Annotated[bool, typer.Option("--apart", help="For headline, dialogue: the words are apart already.")]
SearchOverrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="task.search.KEY=VALUE", help="Change the search of a model of headlines or dialogue."),
]
Lexicon = Annotated[
    str | None, typer.Option("--lexicon", metavar="FORMAT:PATH", help="Words that the segmenter of the training data knew.")
]


def refuse(options: dict[str, Any], reason: str) -> None:
    """Refuse flags that were given and mean nothing here.

    Raises:
        ConfigError: naming the first.
    """
    for name, value in options.items():
        if value is not None and value is not False:
            raise ConfigError(f"--{name.replace('_', '-')}: {reason}")


def generate_texts(
    run: Path,
    lines: Iterable[str],
    name: str,
    *,
    overrides: list[str],
    apart: bool,
    lexicon: str | None,
    json: bool,
    options: dict[str, Any],
) -> None:
    """A text for each line on stdout, as it is found: plain, or with scores as a JSON object a line."""
    from sememekit.runs import writing as command

    writer = command.load_writer(run, apart=apart, lexicon=lexicon, **options)
    search = command.search_of(writer.task, overrides)
    for written in command.write_texts(writer, lines, search, name):
        if json:
            print_json(written)
        else:
            say(written.best.text)


def print_written_scores(metrics: dict[str, Any]) -> None:
    """Perplexity, then each kind of score with its intervals and its signature."""
    parts = {f"{name} perplexity": value for name, value in metrics["parts"].items()}
    names = ("perplexity", "nats", "tokens", "examples", "checkpoint_by", "words", "unknown")
    fields = {name: metrics[name] for name in names} | parts
    print_fields(f"Metrics of {metrics['run']} on {metrics['split']}", fields)
    say(f"signature: {metrics['perplexity_signature']}\n")
    for scores in metrics["scores"]:
        rows = [(item["name"], *(per_cent(item[key]) for key in ("value", "low", "high"))) for item in scores["values"]]
        print_table(f"{scores['preset']}, in per cent", ("", "score", "from", "to"), rows)
        say(f"signature: {scores['signature']}\n")


def explain_text(
    run: Path, text: str, html: Path | None, figure: Path | None, *, json: bool, quiet: bool, options: dict[str, Any]
) -> None:
    """What a run writes for a text, and why, on stdout and as a page."""
    from sememekit.analysis import explain_writing as command
    from sememekit.reports.charts import check_figure, write_figure
    from sememekit.reports.written_explanation import charts, write_page

    if figure is not None:
        check_figure(figure)
    explanation = command.explain_writing(run, text, **options)
    if html is not None:
        write_page(explanation, html)
        remark(f"page: {html}", quiet)
    if figure is not None:
        write_figure(charts(explanation), figure)
        remark(f"figure: {figure}", quiet)
    if json:
        print_json(explanation)
    else:
        _print_explanation(explanation)


def _print_explanation(explanation: WritingExplanation) -> None:
    from rich.markup import escape

    from sememekit.analysis.explain_writing import remarks

    console = result_console()
    source = " ".join(f"[red]{escape(word)}[/]" if word in explanation.unknown else escape(word) for word in explanation.source)
    console.print(source, soft_wrap=True)
    console.print(f"→ {escape(' '.join(word.word for word in explanation.words))}", soft_wrap=True)
    for line in remarks(explanation):
        console.print(escape(line), style="dim", soft_wrap=True)
    has_sememes, rows = explanation.no_senses is None, []
    for word in explanation.words:
        place = word.attention.index(max(word.attention))
        cells = [word.word, f"{explanation.source[place]} {word.attention[place]:.2f}"]
        if has_sememes:
            cells += ["  ".join(f"{gate.name} {gate.gate:.2f}" for gate in gates) for gates in (word.sememes, word.raised)]
        rows.append((*cells, f"{word.probability:.1%}"))
    sememes = ["strongest sememes", "raised most"] if has_sememes else []
    columns = ["word", "looked at most", *sememes, "probability"]
    print_table("", columns, rows, numeric=len(columns) - 1)
