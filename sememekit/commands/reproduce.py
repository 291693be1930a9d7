"""``sememekit reproduce``: test the claims of the five papers at a small size, with a verdict by a rule."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sememekit.claims.claims import MOST_SEEDS, load_claims, paper_of
from sememekit.commands._completion import completing
from sememekit.commands._options import Engine, Html, Json, Quiet, Word, argument, example, has_word, option
from sememekit.commands._printing import leave_stopped, print_json, print_table, remark, say
from sememekit.errors import ConfigError, DataError
from sememekit.files import PAGE, check_output, read_text, replace_file, write_output
from sememekit.signals import Stopped, stop_signals

if TYPE_CHECKING:
    from sememekit.claims.verdict import ClaimResult

complete_claim = completing(load_claims)
_CLAIM = argument("[CLAIM]...", "Claims: their names in 'reproduce list'.", autocompletion=complete_claim)
Claims = Annotated[list[str] | None, _CLAIM]
Out = Annotated[Path, option("--out", "Folder of prepared data, runs and results; unfinished work continues.")]
Root = Annotated[Path | None, option("--root", "Folder of corpora and lexicons. Default: $SEMEMEKIT_DATA.")]
Tiny = Annotated[bool, option("--tiny", "A tenth of the text and one epoch: only tests the commands.")]

Seeds = Annotated[int | None, option("--seeds", "Seeds of each model. Default: as the claim says.", min=1, max=MOST_SEEDS)]

command = typer.Typer(
    help="Test the claims of the five papers, and print a verdict for each.",
    epilog=example("sememekit reproduce list", "sememekit reproduce run sdlm-below-softmax --tiny --root CORPORA"),
)
DEFAULT_OUT = Path("reproduced")


@command.command("list", epilog=example("sememekit reproduce list", "sememekit reproduce list sdlm"))
def list_all(word: Word = None, json: Json = False) -> None:
    """List all claims, with the printed values and whether there is a small protocol; with a WORD only its claims.

    'reproduce show CLAIM' names the corpora that a claim needs below --root. docs/results/tables.md leads from each table of a
    paper to its claims."""
    from sememekit.claims.verdict import judge
    from sememekit.reports.ledger import ledger

    everything = load_claims()
    claims = {name: everything[name] for name in _with_word(word)}
    if json:
        print_json(ledger([judge(name, claim, [], [], paper=paper_of(file, claim)) for name, (file, claim) in claims.items()]))
        return
    rows = []
    for name, (_, claim) in claims.items():
        printed = f"{claim.published[0]:g} → {claim.published[1]:g}" if claim.published else ""
        small = f"{claim.small[0]}, {claim.small[1]}" if claim.small else "none"
        rows.append((name, claim.statement, claim.source, printed, small))
    print_table("", ("claim", "what the paper says", "source", "printed", "small models"), rows, numeric=5, names=True)


@command.command("show", epilog=example("sememekit reproduce show sdlm-below-softmax"))
def show(
    claim: Annotated[str, argument("CLAIM", "Name in 'reproduce list'.", autocompletion=complete_claim)],
    out: Out = DEFAULT_OUT,
    root: Root = None,
    seeds: Seeds = None,
    tiny: Tiny = False,
) -> None:
    """Print the commands of a claim as a shell script, without running them; its head names the files needed below --root."""
    from sememekit.claims.chain import shell_script
    from sememekit.jobs.reproduce import corpora_in, differing, timings_for, trials_of
    from sememekit.reports.ledger import differing_text

    trials = trials_of([claim], out, root, seeds, tiny, must_exist=False)
    for also in filter(None, differing([claim]).values()):
        say(f"# its models also differ in {differing_text(also)}")
    script = shell_script(trials, timings_for([claim], out, root, tiny))
    say("".join(f"# needs {path}\n" for path in corpora_in(script, root)) + script, end="")


@command.command("run", epilog=example("sememekit reproduce run sdlm-below-softmax --root CORPORA"))
def run(
    claims: Claims = None,
    out: Out = DEFAULT_OUT,
    root: Root = None,
    seeds: Seeds = None,
    jobs: Annotated[int, option("--jobs", "Trials at a time; above 1, each has one thread.", min=1)] = 1,
    engine: Engine = "local",
    tiny: Tiny = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run claims from text to verdict (default: every claim with a protocol). The same command continues a stopped run."""
    from sememekit.jobs.reproduce import reproduce
    from sememekit.reports.ledger import ledger

    names = claims or [name for name, (_, claim) in load_claims().items() if claim.small]
    with stop_signals(patient=True, lasting=True) as asked_to_stop:
        try:
            found = reproduce(
                names,
                out,
                root,
                seeds=seeds,
                tiny=tiny,
                jobs=jobs,
                engine=engine,
                say=lambda line: remark(line, quiet),
                asked_to_stop=asked_to_stop,
            )
        except Stopped:
            leave_stopped("type the same command to go on")
    print_json(ledger(found)) if json else _print(found)


@command.command(
    "report",
    epilog=example(
        "sememekit reproduce report --html ledger.html", "sememekit reproduce report sdlm --from docs/results/claims"
    ),
)
def report(
    out: Out = DEFAULT_OUT,
    results: Annotated[
        Path | None, option("--from", "Folder of results, JSON files as in OUT/results; nothing else is read.")
    ] = None,
    html: Html = None,
    markdown: Annotated[Path | None, option("--markdown", "Also write the ledger as Markdown.")] = None,
    into: Annotated[Path | None, option("--into", "Also write the ledger into this Markdown page, between its marks.")] = None,
    tiny: Annotated[bool, option("--tiny", "Read the results of 'run --tiny', which decide no claim.")] = False,
    word: Word = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the claims, or those with a WORD, with the verdict from the existing results."""
    from sememekit.jobs.reproduce import judged, uncounted
    from sememekit.reports import ledger as reports
    from sememekit.reports.pages import write_page

    if word is not None and into is not None:
        raise ConfigError(f"--into {into}: it writes the whole ledger; leave {word!r} out, or write it with --markdown")
    check_output(html, PAGE)
    check_output(markdown, reports.MARKDOWN)
    given, where = ("--out", out) if results is None else ("--from", results)
    if not where.is_dir():
        raise DataError(f"{given} {where}: no such folder; 'sememekit reproduce run --out DIR' writes results into DIR/results")
    folder = results or out / "results"
    page = read_text(into, DataError) if into is not None and into.exists() else ""
    found = reports.ledger(judged(out, _with_word(word), tiny, folder))
    for line in uncounted(folder, tiny):
        remark(line, quiet)
    if html is not None:
        write_page(html, reports.ledger_page(found))
    if markdown is not None:
        write_output(markdown, reports.markdown(found).encode(), reports.MARKDOWN)
    if into is not None:
        replace_file(into, reports.into_page(page, found, str(into)).encode())
    if json:
        print_json(found)
        return
    _print(found.claims)
    say(", ".join(f"{verdict}: {count}" for verdict, count in found.counts.items()))


def _with_word(word: str | None) -> list[str]:
    """The claims that have a word in name, statement, source or paper. Raises ConfigError: none has."""
    claims = load_claims()
    found = [name for name, (file, claim) in claims.items() if has_word(word, name, claim.statement, claim.source, file.paper)]
    if not found:
        raise ConfigError(
            f"no claim has {word!r} in its name, statement, source or paper; 'sememekit reproduce list' shows all {len(claims)}"
        )
    return found


def _print(found: Sequence["ClaimResult"]) -> None:
    from sememekit.reports.ledger import COLUMNS, DETAILS, by_paper, details, differing_text, remarks, row

    for paper, claims in by_paper(found):
        cells = [(claim.name, *row(claim)[1:], *details(claim)[2:-1]) for claim in claims]
        print_table(paper, (*COLUMNS, *DETAILS[2:-1]), cells, numeric=6)
        for claim in claims:
            also = [f"Its models also differ in {differing_text(claim.also)}."] if claim.also else []
            for line in (*remarks(claim), *also):
                say(f"{claim.name}: {line}")
