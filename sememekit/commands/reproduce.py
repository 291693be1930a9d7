"""``sememekit reproduce``: the claims of the five papers, tried at a small size and judged by a rule."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sememekit.commands._exit import STOPPED
from sememekit.commands._options import Engine, Html, Json, Quiet, Word, example, has_word, option
from sememekit.commands._printing import print_json, print_table, remark, say
from sememekit.config import nearest
from sememekit.errors import ConfigError, DataError

if TYPE_CHECKING:
    from sememekit.claims.chain import Timing, Trial
    from sememekit.claims.claims import ClaimFile, PaperClaim
    from sememekit.claims.verdict import ClaimResult


def complete_claim(incomplete: str) -> list[str]:
    """Names of the claims."""
    from sememekit.claims.claims import load_claims

    return [name for name in load_claims() if name.startswith(incomplete)]


_CLAIM = typer.Argument(metavar="[CLAIM]...", help="Claims, as 'reproduce list' names them.", autocompletion=complete_claim)
Claims = Annotated[list[str] | None, _CLAIM]
Out = Annotated[Path, option("--out", "Folder of prepared data, runs and results; unfinished work continues.")]
Root = Annotated[Path | None, option("--root", "Folder of corpora and lexicons. Default: $SEMEMEKIT_DATA.")]
Tiny = Annotated[bool, option("--tiny", "A tenth of the text and one epoch: tries the commands, shows nothing else.")]
_MOST_SEEDS = 20
"""Results are looked for up to this seed."""

Seeds = Annotated[int | None, option("--seeds", "Seeds of each model. Default: as the claim says.", min=1, max=_MOST_SEEDS)]

command = typer.Typer(
    help="Try the claims of the five papers, and say which hold.",
    epilog=example("sememekit reproduce list", "sememekit reproduce run sdlm-below-softmax --tiny --root CORPORA"),
)
DEFAULT_OUT = Path("reproduced")


@command.command("list", epilog=example("sememekit reproduce list", "sememekit reproduce list sdlm"))
def list_all(word: Word = None, json: Json = False) -> None:
    """All claims, with what the paper printed and whether there is a small protocol; with a WORD those that have it."""
    from sememekit.claims.claims import paper_of
    from sememekit.claims.verdict import judge
    from sememekit.reports.ledger import ledger

    everything = _claims()
    claims = {
        name: (file, claim)
        for name, (file, claim) in everything.items()
        if has_word(word, name, claim.statement, claim.source, file.paper)
    }
    if not claims:
        raise ConfigError(
            f"no claim has {word!r} in its name, statement, source or paper; 'sememekit reproduce list' shows all "
            f"{len(everything)}"
        )
    if json:
        print_json(ledger([judge(name, claim, [], [], paper=paper_of(file, claim)) for name, (file, claim) in claims.items()]))
        return
    rows = []
    for name, (_, claim) in claims.items():
        printed = f"{claim.published[0]:g} → {claim.published[1]:g}" if claim.published else ""
        small = f"{claim.small[0]}, {claim.small[1]}" if claim.small else "none"
        rows.append((name, claim.statement, claim.source, printed, small))
    print_table("", ("claim", "what the paper says", "source", "printed", "small models"), rows, numeric=5)


@command.command("show", epilog=example("sememekit reproduce show sdlm-below-softmax"))
def show(
    claim: Annotated[str, typer.Argument(metavar="CLAIM", help="As 'reproduce list' names it.", autocompletion=complete_claim)],
    out: Out = DEFAULT_OUT,
    root: Root = None,
    seeds: Seeds = None,
    tiny: Tiny = False,
) -> None:
    """The commands of a claim as a shell script; nothing is run."""
    from sememekit.claims.chain import shell_script

    trials = _trials([claim], out, root, seeds, tiny, must_exist=False)
    say(shell_script(trials, _timings([claim], out, root, tiny)), end="")


@command.command("run", epilog=example("sememekit reproduce run sdlm-below-softmax --root CORPORA"))
def run(
    claims: Claims = None,
    out: Out = DEFAULT_OUT,
    root: Root = None,
    seeds: Seeds = None,
    jobs: Annotated[int, option("--jobs", "Trials at a time; more than one compute with one thread each.", min=1)] = 1,
    engine: Engine = "local",
    tiny: Tiny = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run claims from text to verdict (default: every claim with a protocol). The same command continues a stopped run."""
    from sememekit.commands.reproducing.trials import run_timing, run_trials
    from sememekit.engines.base import open_engine
    from sememekit.reports.ledger import ledger
    from sememekit.signals import Stopped, stop_signals

    names = claims or [name for name, (_, claim) in _claims().items() if claim.small]
    trials = _trials(names, out, root, seeds, tiny)
    numbers = {trial.name: number for number, trial in enumerate(trials, start=1)}

    def show(trial: Trial, line: str) -> None:
        if line:
            remark(f"  {trial.name}: {line}" if jobs > 1 else f"  {line}", quiet)
        else:
            remark(f"trial {numbers[trial.name]} of {len(trials)}: {trial.name}", quiet)

    with ExitStack() as held, stop_signals(patient=True, lasting=True) as asked_to_stop:
        opened = held.enter_context(open_engine(engine, jobs, out)) if engine != "local" else None
        try:
            run_trials(trials, jobs, show, asked_to_stop, opened)
            for timing in _timings(names, out, root, tiny):
                if timing.result.is_file():
                    continue
                remark(f"time of an update, interleaved: {' and '.join(timing.arms)}", quiet)
                run_timing(timing, lambda line: remark(f"  {line}", quiet), asked_to_stop)
        except Stopped:
            remark("stopped by a signal; type the same command to go on", quiet=False)
            raise typer.Exit(STOPPED) from None
    found = judged(out, names, tiny)
    if json:
        print_json(ledger(found))
    else:
        _print(found)


@command.command(
    "report",
    epilog=example("sememekit reproduce report --html ledger.html", "sememekit reproduce report --from docs/results/claims"),
)
def report(
    out: Out = DEFAULT_OUT,
    results: Annotated[
        Path | None, option("--from", "Folder of results, JSON files as in OUT/results; nothing else is read.")
    ] = None,
    html: Html = None,
    markdown: Annotated[Path | None, option("--markdown", "Also write it as Markdown.")] = None,
    into: Annotated[
        Path | None, option("--into", "Also write it into this page of Markdown, between the marks that the page has.")
    ] = None,
    tiny: Annotated[bool, option("--tiny", "Read the results of 'run --tiny', which say nothing of the claims.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Every claim with its verdict, from the results that are there."""
    from sememekit.files import PAGE, check_output, replace_file
    from sememekit.reports import ledger as reports
    from sememekit.reports.pages import write_page

    if html is not None:
        check_output(html, PAGE)
    if markdown is not None:
        _check_markdown(markdown)
    given, where = ("--out", out) if results is None else ("--from", results)
    if not where.is_dir():
        raise DataError(f"{given} {where}: no such folder; 'sememekit reproduce run --out DIR' writes results into DIR/results")
    folder = results or out / "results"
    page = None if into is None else _page(into)
    found = reports.ledger(judged(out, list(_claims()), tiny, folder))
    for line in _remarks(folder, tiny):
        remark(line, quiet)
    if html is not None:
        write_page(html, reports.ledger_page(found))
    if markdown is not None:
        replace_file(markdown, reports.markdown(found).encode())
    if into is not None and page is not None:
        replace_file(into, reports.into_page(page, found, str(into)).encode())
    if json:
        print_json(found)
        return
    _print(found.claims)
    say(", ".join(f"{verdict}: {count}" for verdict, count in found.counts.items()))


def judged(out: Path, names: Sequence[str], tiny: bool = False, results: Path | None = None) -> list[ClaimResult]:
    """The verdicts on claims by the results below ``out``, or in the folder ``results``. Raises ConfigError: an unknown claim.
    Raises DataError: a result that cannot be read, or results of unlike data."""
    from sememekit.claims.claims import paper_of
    from sememekit.claims.results import read_results, read_times
    from sememekit.claims.verdict import judge

    found, claims = [], _claims()
    for name in names:
        file, claim = _claim(name, claims)
        if claim.small is None:
            found.append(judge(name, claim, [], [], paper=paper_of(file, claim)))
            continue
        files = _result_files(file, claim, results or out / "results", tiny)
        runs = read_results(files).values()
        baseline, other = ([run for run in runs if run.arm == arm] for arm in claim.small)
        timings = [] if tiny else [read_times(path) for path in _time_files(file, claim, results or out / "results")]
        found.append(judge(name, claim, baseline, other, timings, file.arm[claim.small[0]].higher, paper_of(file, claim)))
    return found


def _result_files(file: ClaimFile, claim: PaperClaim, folder: Path, tiny: bool) -> list[Path]:
    """The files that the results of a claim are in, whether they are there or not."""
    from sememekit.claims.chain import result_names

    return [folder / name for name in result_names(file, claim, seeds=_MOST_SEEDS, tiny=tiny)]


def _time_files(file: ClaimFile, claim: PaperClaim, folder: Path) -> list[Path]:
    """The files that have the times of updates for the claim, whether they are there or not."""
    from sememekit.claims.chain import timing_names

    return [folder / f"{name}.json" for name in timing_names(file, claim)]


def _remarks(folder: Path, tiny: bool) -> list[str]:
    """What the table does not count: files that cannot be read, results of other settings, as where a recipe was changed since,
    and tiny results."""
    from sememekit.files import read_object, refuse_odd_files

    there = {file.name for file in folder.glob("*.json")}
    if not there:
        return [f"there are no results in {folder}"]
    refuse_odd_files(folder, DataError)
    known, small = set[str](), set[str]()
    for file, claim in _claims().values():
        if claim.small:
            small |= {path.name for path in _result_files(file, claim, folder, tiny=True)}
            known |= {path.name for path in _result_files(file, claim, folder, tiny=False)}
            known |= {path.name for path in _time_files(file, claim, folder)}
    unreadable = set[str]()
    for name in there - known - small:
        try:
            read_object(folder / name, DataError)
        except DataError:
            unreadable.add(name)
    found = []
    if others := there - known - small - unreadable:
        are = "is" if len(others) == 1 else "are"
        settings = f"{are} of other settings than the claims have now and {are} not counted"
        found.append(f"{_results(len(others))} in {folder} {settings}: {_named(others)}")
    if unreadable:
        is_no = "file is no JSON object and is" if len(unreadable) == 1 else "files are no JSON objects and are"
        found.append(f"{len(unreadable)} {is_no} not counted, in {folder}: {_named(unreadable)}")
    if not tiny and (number := len(there & small)):
        one = number == 1
        found.append(
            f"{_results(number, 'tiny ')} {'is' if one else 'are'} not counted; see {'it' if one else 'them'} with --tiny"
        )
    return found


def _results(number: int, kind: str = "") -> str:
    return f"{number} {kind}result{'' if number == 1 else 's'}"


def _named(files: Collection[str]) -> str:
    names = sorted(name.removesuffix(".json") for name in files)
    return f"{', '.join(names[:5])}{' and more' if len(names) > 5 else ''}"


def _timings(names: Sequence[str], out: Path, root: Path | None, tiny: bool) -> list[Timing]:
    """The timings of all claims, done or not, each once; tiny models are not timed."""
    from sememekit.claims.chain import timings_of

    claims = _claims()
    chosen = [_claim(name, claims) for name in names]
    corpora = _corpora(root).absolute()
    timings = (timing for file, claim in chosen if not tiny for timing in timings_of(file, claim, out, corpora))
    return list({timing.name: timing for timing in timings}.values())


def _corpora(root: Path | None) -> Path:
    return root or Path(os.environ.get("SEMEMEKIT_DATA", "") or "CORPORA")


def _trials(
    names: Sequence[str], out: Path, root: Path | None, seeds: int | None, tiny: bool, must_exist: bool = True
) -> list[Trial]:
    """The trials of all claims, each once: seed by seed, so that a first answer on every claim comes early."""
    from sememekit.claims.chain import steps_of

    folder = _corpora(root)
    claims = _claims()
    chosen = [(name, *_claim(name, claims)) for name in names]
    for name, _, claim in chosen:
        if claim.small is None:
            raise ConfigError(
                f"claim {name} has no small protocol: {claim.why_not}; 'sememekit reproduce list' shows which claims have one"
            )
    if must_exist and not folder.is_dir():
        raise DataError(f"no folder {str(folder)!r} of corpora; name the folder with --root DIR, or in SEMEMEKIT_DATA")
    found = {
        trial.name: trial
        for _, file, claim in chosen
        for trial in steps_of(file, claim, out, folder.absolute(), seeds or 0, tiny)
    }
    return sorted(found.values(), key=lambda trial: trial.seed)


def _claims() -> dict[str, tuple[ClaimFile, PaperClaim]]:
    from sememekit.claims.claims import load_claims

    return load_claims()


def _claim(name: str, claims: Mapping[str, tuple[ClaimFile, PaperClaim]]) -> tuple[ClaimFile, PaperClaim]:
    if name not in claims:
        raise ConfigError(f"unknown claim {name!r}{nearest(name, claims)}; 'sememekit reproduce list' shows all {len(claims)}")
    return claims[name]


def _page(path: Path) -> str:
    """The page of ``--into``."""
    from sememekit.files import read_text
    from sememekit.reports.ledger import BEGIN, END

    if not path.exists():
        raise DataError(
            f"--into {path}: no such file; make it with these two lines, between which the ledger goes: {BEGIN} and {END}"
        )
    return read_text(path, DataError)


def _check_markdown(path: Path) -> None:
    if path.suffix != ".md":
        raise ConfigError(f"--markdown {path}: the name must end in .md; give --markdown {path.with_suffix('.md')}")
    if path.is_file() and not path.read_bytes().startswith(b"# Claims\n"):
        raise ConfigError(
            f"--markdown {path}: the file is there already and is no ledger of claims (its first line is not '# Claims'); give "
            "another name, or --into for a page with the two marks"
        )


def _print(found: Sequence[ClaimResult]) -> None:
    from sememekit.reports.ledger import COLUMNS, DETAILS, by_paper, details, row

    for paper, claims in by_paper(found):
        cells = [(claim.name, *row(claim)[1:], *details(claim)[2:]) for claim in claims]
        print_table(paper, (*COLUMNS, *DETAILS[2:]), cells, numeric=6)
