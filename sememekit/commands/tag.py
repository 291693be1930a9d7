"""The subcommand tag; the plain function is ``sememekit.analysis.senses.tagging.tag``."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from sememekit.commands import _options as shared
from sememekit.commands._input import input_name, lines_of, some
from sememekit.commands._options import argument, option
from sememekit.commands._printing import say

if TYPE_CHECKING:
    from sememekit.analysis.senses.tagging import TaggedToken

EXAMPLES = (
    "echo 我 吃 苹果 | sememekit tag quickstart/sdlm",
    "sememekit tag quickstart/sdlm quickstart/text/gold.txt --words 的,经济",
)

COLUMNS = ("sentence", "position", "token", "nats", "sense", "probability", "sememes", "senses")


def command(
    run: shared.RunOrPublished,
    file: Annotated[Path | None, argument("[FILE]", "Sentence a line, raw or cut. Default: stdin.")] = None,
    words: Annotated[str | None, option("--words", "Tag these words alone.", metavar="WORD,WORD,...")] = None,
    method: shared.SenseMethod = None,
    sources: shared.SenseSources = None,
    surprisal: Annotated[bool, option("--surprisal/--no-surprisal", "Give the surprisal of words; it takes longest.")] = True,
    form: Annotated[Literal["tsv", "jsonl", "conllu"], option("--format", "Format of the output.")] = "tsv",
    which: shared.Which = "best",
    errors: shared.Errors = "strict",
    device: shared.Device = "auto",
    quiet: shared.Quiet = False,
) -> None:
    """Tag each word of a text with its senses, their probabilities and sememes, and its surprisal (nats).

    The first lines name the run, the method, and the accuracy of the method if 'eval RUN --senses GOLD' measured it."""
    from sememekit.analysis.senses.tagging import header_of, tag
    from sememekit.notebook.run import load_run
    from sememekit.runs.published import is_published

    loaded = load_run(run, which=which, device=device, sources=sources if is_published(run) else None)
    chosen = [word for word in re.split("[,，]", words or "") if word.strip()]
    given, whole, how = lines_of(file, errors), form == "conllu", method or "combined"
    rows = tag(loaded, given, method=how, sources=sources or (), words=chosen, whole=whole, surprisal=surprisal)
    rows = some(rows, f"no words are in {input_name(file)}, so nothing is tagged; give a sentence a line")
    header = header_of(loaded, how, sources or ())
    lines = [header.model_dump_json()] if form == "jsonl" else [f"# {line}" for line in header.sentences()]
    for line in chain(lines, _FORMATS[form](rows)):
        say(line)


def _tsv(rows: Iterable["TaggedToken"]) -> Iterator[str]:
    yield "\t".join(COLUMNS)
    for row in rows:
        best = row.senses[0] if row.senses else None
        own = ("", "", "") if best is None else (best.number, f"{best.probability:.4f}", " ".join(best.sememes))
        every = "; ".join(f"{one.number} {one.probability:.4f} {' '.join(one.sememes)}" for one in row.senses)
        nats = "" if row.nats is None else f"{row.nats:.4f}"
        yield "\t".join(map(str, (row.sentence, row.position, row.token, nats, *own, every)))


def _conllu(rows: Iterable["TaggedToken"]) -> Iterator[str]:
    """Yield a token of CoNLL-U for each row, with --words also for other words, so that sentences are complete."""
    for number, tokens in groupby(rows, key=lambda row: row.sentence):
        yield f"# sent_id = {number}"
        for row in tokens:
            yield "\t".join([str(row.position), row.token, *["_"] * 7, _misc(row)])
        yield ""


def _misc(row: "TaggedToken") -> str:
    best = row.senses[0] if row.senses else None
    parts = [] if row.nats is None else [f"Nats={row.nats:.4f}"]
    if best is not None:
        parts += [f"P={best.probability:.4f}", f"Sememes={','.join(best.sememes)}".replace("|", "\\p"), f"Sense={best.number}"]
    return "|".join(parts) or "_"


_FORMATS = {"tsv": _tsv, "jsonl": lambda rows: (row.model_dump_json() for row in rows), "conllu": _conllu}
