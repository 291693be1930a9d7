"""All that a command prints, and how it calls the function behind it: ``outputs.txt`` has both.

The functions are played by ones that return made-up records, so that nothing is trained and no number depends on the machine.
Each line is typed as it stands, with ``--quiet`` and with ``--json``; hints are printed as on a terminal. After a change on
purpose, write the file anew and read the difference before it is accepted:

    python -m tests.commands.test_outputs
"""

from __future__ import annotations

import inspect
import io
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import wraps
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest

from sememekit.analysis.evaluate_ppl import PerplexityReport
from sememekit.analysis.extended_words import NewWordsReport
from sememekit.commands._program import app
from sememekit.reports.run import RunReport
from sememekit.signals import stop_signals
from sememekit.text.reading import TextFaults
from tests.commands.played import (
    RECIPES,
    annotated,
    attacked,
    checked,
    claims,
    clustered,
    compared_attacks,
    compared_texts,
    extended,
    generated,
    graph,
    labelled,
    leading,
    loaded,
    looked_up,
    of_seeds,
    of_words,
    prepared,
    questioned,
    resumed,
    scored,
    searched,
    seeds,
    segmented,
    served,
    settings_of,
    shared,
    shown,
    stopped_claims,
    suggested,
    swept,
    tagged,
    touring,
    trained,
    unserved,
    untrained,
    updated,
    written,
)
from tests.pinned import pin, pinned
from tests.reports.samples import filled, fresh
from tests.reports.test_terminal import compared

EXPECTED = Path(__file__).with_name("outputs.txt")
Played = Callable[[], Mapping[str, Any]]
"""Name of a function -> the record that it returns, or a function that is called in its place."""

CASES: dict[str, tuple[str, Played]] = {
    "train": ("train --data d --out r", trained),
    "train a classifier": (
        "train --task nli --data d --out r --resume --track wandb",
        lambda: trained(True, metric="accuracy", stopped=True, finished="", remarks=()),
    ),
    "train on": ("train --data d --out r --resume", lambda: trained(remarks=())),
    "train on, ended": ("train --out r --resume", lambda: trained(silent=True, remarks=())),
    "train lattices": ("train --task lattice --data d --out r", lambda: trained(remarks=(), vectors=None)),
    "train by steps": ("train --data d --out r --verbose", lambda: trained(remarks=())),
    "train --seeds": ("train --data d --out r --seeds 1,2", seeds),
    "train --seeds, stopped": ("train --data d --out r --seeds 1,2 --jobs 3 --engine dask:x", lambda: seeds(stopped=True)),
    "sweep": ("sweep --data d --out s --over encoder.hidden_size=4,6 --trials 3", swept),
    "sweep, stopped": (
        "sweep --data d --out s --over optimizer.clip=1,2 --cpu-minutes 2 --no-pruning --jobs 1 --epochs 3",
        lambda: swept(best=None, stopped=True, exhausted=False, metric="validation"),
    ),
    "sweep, failed": ("sweep --data d --out s --over optimizer.clip=1,2 --trials 3", lambda: swept(why="no memory", best=None)),
    "sweep of own code": ("sweep --decoder mine:Own --data d --out s --over optimizer.clip=1,2 --trials 3", swept),
    "preprocess": ("preprocess plain text --out d --min-count 2 --hold-out 0.1 --vocabulary r", prepared),
    "preprocess bare": (
        "preprocess plain text --out d",
        lambda: prepared(
            unknown=1_000,
            rate=0.0099,
            examples=None,
            chunks=None,
            lexicon_coverage=None,
            vocabulary_splits=("train",),
            faults=TextFaults(policy="strict"),
        ),
    ),
    "preprocess, unknown": ("preprocess plain text --out d --vocabulary r", untrained),
    "preprocess wikitext, unknown": ("preprocess wikitext text --out d --vocabulary r", untrained),
    "build-sememe-graph": ("build-sememe-graph --source open --data d --out g", lambda: graph(11)),
    "build-sememe-graph, flat": ("build-sememe-graph --source open --data d --out g", lambda: graph(10, structure=False)),
    "build-sememe-graph, all known": (
        "build-sememe-graph --source open --data d --out g --unannotated u.tsv --drop-edges 0.5",
        lambda: graph(0, history=(), lexicons=()),
    ),
    "build-sememe-graph --unannotated": (
        "build-sememe-graph --source open --data d --out g --unannotated u.tsv --side english",
        lambda: graph(1),
    ),
    "cluster-update": ("cluster-update r --epochs 2 --running-passes 1 --out w/run", lambda: updated(statistics="running")),
    "cluster-update in place": (
        "cluster-update r",
        lambda: updated(trained=None, orphaned_words=0, objective_fell=True, statistics="exact"),
    ),
    "cluster-update, stopped": ("cluster-update r --epochs 1", lambda: updated(objective_fell=False, stopped=True)),
    "extend": ("extend r --words w.tsv --out r/2", lambda: extended(11, counted=True, calibrated=True)),
    "extend, equal": (
        "extend r --words w.tsv --out r/2 --prior 0.25",
        lambda: extended(10, counted=False, calibrated=False),
    ),
    "extend a classifier": ("extend r --words w.tsv --out r/2", lambda: extended(0, shares=())),
    "extend --against": (
        "extend r --against r/2 --data d",
        lambda: {"sememekit.analysis.extended_words.compare_extended": filled(NewWordsReport, many=2)},
    ),
    "clusters": ("clusters r", lambda: clustered(0, "")),
    "clusters of words": ('clusters r --words "be iraq" --save c.json --members 3 --top 4', lambda: clustered(2, "c.json")),
    "push": ("push r to-share", lambda: shared(target="to-share")),
    "push to the hub": ("push r hf://a/b --public --name n", lambda: shared(target="hf://a/b", remarks=())),
    "push --card -": ("push r --card -", shared),
    "push --card": ("push r --card README.md", shared),
    "pull": ("pull to-share --out runs/p", shared),
    "report": ("report r", lambda: {"sememekit.reports.run.report": filled(RunReport)}),
    "report --figure": ("report r --figure f.svg", lambda: {"sememekit.reports.run.report": filled(RunReport)}),
    "reproduce run": ("reproduce run claim-0 --out o --jobs 2", claims),
    "reproduce report": ("reproduce report --out o", claims),
    "reproduce run, all": ("reproduce run --tiny --seeds 2 --root r", claims),
    "reproduce run, stopped": ("reproduce run claim-0 --out o", stopped_claims),
    "reproduce show": ("reproduce show claim-0 --out o --tiny", claims),
    "reproduce list": ("reproduce list", claims),
    "reproduce list of a word": ("reproduce list claim-1", claims),
    "reproduce list of no word": ("reproduce list zzz", claims),
    "reproduce report with pages": ("reproduce report --from r claim-1 --html p.html --markdown p.md --tiny", claims),
    "reproduce report --into": ("reproduce report --out o --into p.md", claims),
    "reproduce report --into, a word": ("reproduce report claim --out o --into p.md", claims),
    "reproduce report without results": ("reproduce report --out none", claims),
    "reproduce report --from nothing": ("reproduce report --from none", claims),
    "attack --compare": ("attack --compare a/1 b/1 --figure f.svg", compared_attacks),
    "attack --compare --html": (
        "attack --compare a/1 b/1 --html p.html --figure f.svg",
        lambda: {**compared_attacks(), "sememekit.reports.attack.charts_of": []},
    ),
    "attack --compare, of two names": ("attack --compare a/1 b/2", compared_attacks),
    "attack --resume": ("attack --out a --resume --source open --vectors v", lambda: resumed("embedding")),
    "attack --resume, of sememes": ("attack --out a --resume --source open --lemmas wordnet", lambda: resumed("sememe")),
    "attack in Chinese": (
        "attack r --data t --out a --segmenter fmm --lexicon open --open-vocabulary open --lemmas l --judge q --lm m --logits",
        attacked,
    ),
    "segment": ("segment --segmenter none < a b\\n\\nc", segmented),
    "segment without an end": ("segment --segmenter none < a b", segmented),
    "segment --model": ("segment --model r --decode posterior --device cpu < ab", lambda: segmented("a b\n", "\n")),
    "segment --model without words": ("segment --model r < ab", lambda: segmented(" \n", "\n")),
    "segment --model --hmm": ("segment --model r --hmm < ab", segmented),
    "segment --model --segmenter": ("segment --model r --segmenter fmm < ab", segmented),
    "segment with pieces": ("segment --model g < ab", segmented),
    "segment with no pieces": ("segment --model none < ab", segmented),
    "segment --which": ("segment --which last < ab", segmented),
    "segment --device": ("segment --device cpu < ab", segmented),
    "segment a file": ("segment g", segmented),
    "attack": ("attack r --data t.tsv --out a --figure f.svg --seed 3 --labels 'no, yes'", attacked),
    "attack, stopped": ("attack r --data t.tsv --out a --workers 2", lambda: attacked(stopped=True, preset="")),
    "attack without chart": ("attack r --data t.tsv --out a --figure f.svg", lambda: attacked(preset="", warnings=())),
    "attack --ratings": ("attack --out a --ratings one.json", attacked),
    "quickstart": ("quickstart --out q --share 0.5", touring),
    "quickstart again": ("quickstart --out q", lambda: touring(already_done=True)),
    "quickstart, stopped": ("quickstart --out q --fresh", lambda: touring(stopped=True, next_commands=("this line", "other"))),
    "lookup": ("lookup w", looked_up),
    "lookup, unknown": ("lookup w --source open", lambda: looked_up(senses=())),
    "lookup, unknown and alone": ("lookup w --source open", lambda: looked_up(senses=(), nearest=())),
    "lookup --similar": ("lookup w --similar --top 3", searched),
    "lookup --sememe": ("lookup --sememe a --sememe b", searched),
    "lookup --sememe, none": ("lookup --sememe a --side english", lambda: searched(senses=(), asked=("a", "b"))),
    "lookup --suggest": ("lookup --suggest w v", lambda: suggested(1, "abcdefghijk")),
    "lookup --suggest --dump": ("lookup --suggest w --dump s.tsv --top 2", lambda: suggested(2, "")),
    "lookup --suggest --overlay": ("lookup --suggest w --graph g --overlay o.txt", lambda: suggested(2, "v")),
    "lookup --suggest, nothing": ("lookup --suggest w", lambda: suggested(0, "abcdefghijk")),
    "lookup --graph": ("lookup w --graph g", lambda: annotated(2)),
    "lookup --graph --overlay": ("lookup w --graph g --overlay o.txt", lambda: annotated(1)),
    "lookup --change": ('lookup --change w "+a -b" --graph r --overlay o.txt', questioned),
    "lookup --change of a lexicon": ('lookup --change w "+a" --graph g', questioned),
    "lookup --change of open": ('lookup --change w "+a" --side english', questioned),
    "lookup --dump": ("lookup --source list:a --source open --dump d.tsv", lambda: questioned(renamed=1_200)),
    "lookup --dump, named well": ("lookup --dump d.tsv", lambda: questioned(renamed=0)),
    "lookup --diff": ("lookup --diff table:d.tsv --top 1", questioned),
    "lookup --pairs": ("lookup --pairs p.tsv --source open", questioned),
    "lookup two words": ("lookup w v --graph g", questioned),
    "lookup --check": ("lookup --check", lambda: questioned(ok=True)),
    "lookup --check, with faults": ("lookup --check", lambda: questioned(ok=False)),
    "lookup --suggest --vectors": ("lookup --suggest w --vectors v.txt", questioned),
    "lookup --suggest of data": ("lookup --suggest --unannotated-of r --source open --top 4", questioned),
    "lookup --overlay of a lexicon": ("lookup w --overlay o.txt", questioned),
    "lookup --side of a graph": ("lookup w --graph g --side english", questioned),
    "lookup --suggest --side, --graph": ("lookup --suggest w --vectors v --graph g --side english", questioned),
    "lookup --graph --source": ("lookup w --graph g --source open", questioned),
    "evaluate-ppl": ("evaluate-ppl r --by senses --batch-size 1", of_words),
    "evaluate-ppl, cut": ("evaluate-ppl r --split valid", lambda: of_words(cut=1200)),
    "evaluate-ppl of two": ("evaluate-ppl r q --by senses --names a,b", of_words),
    "evaluate-ppl --overlay": ("evaluate-ppl r --overlay o.txt", lambda: of_words(cut=12)),
    "compare": (
        "compare a b --csv c.csv --latex t.tex --figure f.svg",
        lambda: {
            "sememekit.analysis.compare_runs.compare": compared("perplexity", bare=False),
            "sememekit.reports.charts.write_figure": None,
        },
    ),
    "evaluate-ppl of seeds": ("evaluate-ppl r --dtype float32", lambda: of_seeds(PerplexityReport)),
    "evaluate-ppl of seeds and others": ("evaluate-ppl q r", of_seeds),
    "evaluate-ppl --overlay of seeds": ("evaluate-ppl r --overlay o.txt", of_seeds),
    "evaluate-ppl --csv of one": ("evaluate-ppl r --csv c.csv", of_words),
    "evaluate-ppl --latex of one": ("evaluate-ppl r --latex t.tex", of_words),
    "evaluate-ppl --csv": ("evaluate-ppl r --csv c.csv --by senses --by senses", of_words),
    "evaluate-ppl --names": ("evaluate-ppl r q --names a,b,c", of_words),
    "evaluate-ppl --names, --overlay": ("evaluate-ppl r --overlay o.txt --names a", of_words),
    "evaluate-ppl --caption": ("evaluate-ppl r --by senses --caption Table", of_words),
    "evaluate-ppl --overlay of two": ("evaluate-ppl r q --overlay o.txt", of_words),
    "evaluate-ppl --overlay --cache": ("evaluate-ppl r --overlay o.txt --cache", of_words),
    "eval": ("eval r --split valid", lambda: loaded("words")),
    "eval of a classifier": ("eval r --data d --dtype tf32", lambda: loaded("labels")),
    "eval of texts": ("eval r --set task.search.beam_size=3 --texts t.jsonl", lambda: loaded("texts", cut_sources=0)),
    "eval of texts, cut": ("eval r", lambda: loaded("texts", cut_sources=1, examples=1)),
    "eval --senses": ("eval r --senses gold --method lift --source open", lambda: loaded("words")),
    "eval --senses --split": ("eval r --senses gold --split test", lambda: loaded("words")),
    "eval --senses of a model elsewhere": ("eval hf:m --senses gold --data d --source open", lambda: loaded("words")),
    "eval of a model elsewhere": ("eval hf:m --split valid", lambda: loaded("words")),
    "eval --source": ("eval r --source open", lambda: loaded("words")),
    "eval --method": ("eval r --method lift", lambda: loaded("words")),
    "eval --words": ("eval r --words text", lambda: loaded("lattices")),
    "eval --segmentation": (
        "eval r --segmentation gold --words text --lexicon open --marks given --decode posterior",
        lambda: loaded("lattices"),
    ),
    "eval --segmentation --data": ("eval r --segmentation gold --data d", lambda: loaded("lattices")),
    "eval --explanations": (
        "eval r --explanations --top 1 --top 5 --contexts 3 --html p.html --figure f.svg",
        lambda: loaded("words"),
    ),
    "eval --explanations --texts": ("eval r --explanations --texts t", lambda: loaded("words")),
    "eval --top": ("eval r --top 1", lambda: loaded("words")),
    "eval --lead": ("eval r --lead 3-words", lambda: loaded("words")),
    "eval --baseline": ("eval d --baseline lead --lead 3-words --rouge duc --split valid", leading),
    "eval of seeds": ("eval r", of_seeds),
    "eval of seeds --decode": ("eval r --decode posterior", of_seeds),
    "explain": ("explain r 'a b' --top 3 --html p.html --figure f.svg", lambda: loaded("words")),
    "explain --word": ("explain r 'a b' --word w --right c --overlay o.txt", lambda: loaded("words")),
    "explain --right": ("explain r 'a b' --right c", lambda: loaded("words")),
    "explain lines": ("explain r < a\\nb", lambda: loaded("words")),
    "explain nothing": ("explain r", lambda: loaded("words")),
    "explain a pair": ("explain r a b --label yes", lambda: loaded("labels")),
    "explain two texts": ("explain r a b", lambda: loaded("words")),
    "explain a file": ("explain r g", lambda: loaded("words")),
    "explain a text": ("explain r a --apart", lambda: loaded("texts")),
    "explain a sentence": ("explain r a", lambda: loaded("lattices")),
    "explain a sentence --split": ("explain r a --split valid", lambda: loaded("lattices")),
    "explain --embeddings": ("explain r 'a b' --embeddings --split valid --data d", lambda: loaded("lattices")),
    "explain of a model elsewhere": ("explain hf:m a --source open", lambda: loaded("words")),
    "explain --data of a model elsewhere": ("explain hf:m a --data d", lambda: loaded("words")),
    "explain --word of a model elsewhere": ("explain hf:m a --word w", lambda: loaded("words")),
    "explain --overlay of a model elsewhere": ("explain hf:m a --overlay o.txt", lambda: loaded("words")),
    "analyze": ("analyze r q --contexts 9 --seed 3 --html p.html --figure f.svg", lambda: loaded("words")),
    "analyze a classifier": ("analyze r", lambda: loaded("labels")),
    "analyze --figure of a classifier": ("analyze r --figure f.svg", lambda: loaded("labels")),
    "compare texts": ("compare g g --by duc --seed 2", compared_texts),
    "compare texts without a metric": ("compare g g", compared_texts),
    "compare three texts": ("compare g g g --by duc", compared_texts),
    "compare texts --split": ("compare g g --by duc --split valid --device cpu", compared_texts),
    "compare runs --by": ("compare r r --by duc", compared_texts),
    "score": ("score r < a b", scored),
    "score --overlay": ("score r --overlay o.txt --carry --segment < a b", lambda: scored(overlaid=True)),
    "score nothing": ("score r < a b", lambda: scored(rows=False)),
    "predict": ("predict r < a", labelled),
    "predict a file": ("predict r g --open-vocabulary open", lambda: labelled(False, "w v")),
    "predict -": ("predict r - --open-vocabulary open --lemmas wordnet --side english < a", labelled),
    "predict a text": ("predict r 'a text'", labelled),
    "predict a long text": (f"predict r {'a' * 300}", labelled),
    "tag": ("tag r < w v", tagged),
    "tag words": ("tag r --words w,,v --method lift --no-surprisal < w v", tagged),
    "tag --format conllu": ("tag r --format conllu < w v", tagged),
    "tag --format jsonl": ("tag r --format jsonl < w v", tagged),
    "tag nothing": ("tag r < w", lambda: tagged(0)),
    "tag no such word": ("tag r --words x < w", lambda: tagged(0)),
    "tag with a model elsewhere": ("tag hf:m --source open < w", tagged),
    "generate": ("generate r a --num-tokens 3 --top-k 2 --stop b", generated),
    "generate several": ("generate r --num-samples 2 --seed 5 < a\\nb", generated),
    "generate from nothing": ("generate r", generated),
    "generate --beam": ("generate r a --beam 2", generated),
    "generate --beam --top-k": ("generate r a --beam 2 --top-k 3", generated),
    "generate from a file name": ("generate r g", generated),
    "generate --input": ("generate r --input g", generated),
    "generate texts": ("generate r --set task.search.beam_size=3 --apart < a\\nb", lambda: written(9, 9)),
    "generate texts, cut": ("generate r --errors skip --input - < a\\nb\\nc", lambda: written(9, 4, 5)),
    "generate one text": ("generate r a", lambda: written(8)),
    "generate no text": ("generate r --input g", lambda: written()),
    "generate a text from a file name": ("generate r g", lambda: written(9)),
    "generate a text and a file": ("generate r a --input g", lambda: written(9)),
    "generate texts --top-k": ("generate r a --top-k 3", lambda: written(9)),
    "serve": ("serve", served),
    "serve to others": ("serve r q --host 0.0.0.0 --port 80 --source table:a --save s --device cpu", served),
    "serve by IPv6": ("serve r --host ::1 --token t --no-browser", served),
    "serve on a busy port": ("serve r", lambda: served(OSError(98, "Address already in use"))),
    "serve without FastAPI": ("serve r", lambda: unserved("fastapi")),
    "serve without uvicorn": ("serve r", lambda: unserved("uvicorn")),
    "doctor": ("doctor", lambda: checked("ok", "warn")),
    "doctor, failing": ("doctor --folder f", lambda: checked("ok", "warn", "fail")),
    "recipes list": ("recipes list", lambda: {"sememekit.commands.recipes.list_recipes": RECIPES}),
    "settings": ("settings", lambda: settings_of(2)),
    "settings decoder": ("settings decoder", lambda: settings_of(2)),
    "settings decoder sdlm": ("settings decoder sdlm", lambda: settings_of(2)),
    "settings schedule": ("settings schedule", lambda: settings_of(1)),
    "settings, none": ("settings decoder softmax", lambda: settings_of(0)),
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


REFUSED: dict[str, Played] = {
    "quickstart --out q --figure f.bmp": touring,
    "analyze r --figure f.bmp": lambda: loaded("words"),
    "analyze r --html own": lambda: loaded("words"),
    "explain r a --figure f.bmp": lambda: loaded("words"),
    "explain r a --html own": lambda: loaded("words"),
    "eval r --explanations --figure f.bmp": lambda: loaded("words"),
    "eval r --explanations --html own": lambda: loaded("words"),
    "attack r --data t.tsv --out a --figure f.bmp": attacked,
    "attack --compare a b --html own": compared_attacks,
    "clusters r --html own": lambda: clustered(0, ""),
    "compare a b --csv own": of_words,
    "compare a b --latex own": of_words,
    "compare a b --html own": of_words,
    "compare a b --figure f.bmp": of_words,
    "evaluate-ppl r --by senses --csv own": of_words,
    "evaluate-ppl r --by senses --latex own": of_words,
    "reproduce report --out o --html own": claims,
    "reproduce report --out o --markdown own": claims,
    "push r --card own": shared,
}
"""Lines that would write over a file of another kind, or a figure in a form that is none."""
CASES |= {f"no output: {line}": (line, played) for line, played in REFUSED.items()}


def original(name: str) -> Any:
    """The function of a name such as ``sememekit.runs.run.Run.open``, whose options the command may look at."""
    found = resolve_name(name)
    return found if inspect.isfunction(found) else getattr(found, "__func__", found)


def typed(
    arguments: list[str],
    played: Mapping[str, Any],
    patch: pytest.MonkeyPatch,
    stdin: str = "",
    stdout: io.StringIO | None = None,
) -> tuple[int, list[str], str, str]:
    """The exit code of a line, the calls of the played functions, and what stands on stdout and on stderr."""
    calls = []

    def play(name: str, result: Any) -> Callable[..., Any]:
        def call(*given: Any, **options: Any) -> Any:
            named = [f"{key}={shown(value)}" for key, value in sorted(options.items())]
            calls.append(f"{name.rpartition('.')[2]}({', '.join([*map(shown, given), *named])})")
            return result(*given, **options) if callable(result) else result

        return wraps(original(name))(call)

    for name in ("commands.attack", "commands.quickstart", "commands.reproduce", "commands.sweep", "commands.train", "signals"):
        patch.setattr(f"sememekit.{name}.stop_signals", play("sememekit.signals.stop_signals", stop_signals))
    for name, result in played.items():
        patch.setattr(name, result if name.endswith("VIEWS") else play(name, result))
    patch.setattr("sememekit.commands._progress.sys", SimpleNamespace(stderr=io.StringIO()))  # no bars: they tell the time
    patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
    out, err = stdout or io.StringIO(), Terminal()
    with redirect_stdout(out), redirect_stderr(err):
        code = app(arguments, standalone_mode=False)
    return code, calls, out.getvalue(), err.getvalue()


def lines(name: str) -> Iterator[str]:
    """A line as it stands, with ``--quiet`` and with ``--json``."""
    (line, _, stdin), played = CASES[name][0].partition(" < "), CASES[name][1]
    plain = 0, "", ""
    for flag in ("", "--quiet", "--json"):
        arguments = [*shlex.split(line), *([flag] if flag else [])]
        fresh()
        with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
            patch.chdir(folder)
            for made in ("o", "r"):
                Path(made).mkdir()
            Path("g").touch()
            Path("own").write_text("a file of mine")
            code, calls, out, err = typed(arguments, played(), patch, stdin.replace("\\n", "\n"))
            files = sorted(path.name for path in Path(folder).iterdir() if path.name not in ("o", "r", "g", "own"))
        if f"no such option: {flag}" in err:
            continue
        if flag and (code, out, err) == plain:
            yield f"with {flag}: the same"
            continue
        yield f"{f'with {flag}' if flag else f'$ sememekit {CASES[name][0]}'}: exit {code}{f', files {files}' if files else ''}"
        yield from calls if not flag else ()
        if flag == "--json" and out.startswith("{"):
            yield from (f"[JSON of {', '.join(json.loads(one))}]" for one in out.splitlines())
        elif flag and out == plain[1]:
            yield "[the same result]"
        else:
            yield from (f"| {one}".rstrip() for one in out.splitlines())
        plain = plain if flag else (code, out, err)
        yield from (f"2 {one}" for one in err.splitlines())


@pytest.mark.parametrize("name", CASES)
def test_a_command_prints_and_calls_as_before(name: str) -> None:
    assert [*lines(name)] == pinned(EXPECTED)[name], f"on purpose? then: python -m {__spec__.name}, and read the difference"


if __name__ == "__main__":
    pin(EXPECTED, CASES, lines)
    sys.exit()
