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
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from enum import Enum
from functools import partial, wraps
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest

from sememekit.analysis.clusters import ClustersReport
from sememekit.analysis.evaluate import LabelMetrics, MetricsReport, WrittenMetrics
from sememekit.analysis.evaluate_ppl import PerplexityComparison, PerplexityReport
from sememekit.analysis.extended_words import NewWordsReport
from sememekit.analysis.predict import LabelPrediction
from sememekit.analysis.score import OverlaidToken, ScoredToken
from sememekit.analysis.segmentation import SegmentationReport
from sememekit.analysis.senses.evaluation import SenseScores
from sememekit.analysis.senses.tagging import SenseTag, TaggedToken
from sememekit.analysis.written_texts import BaselineReport, ComparisonReport
from sememekit.attack.report import AttackComparison, AttackReport
from sememekit.claims.claims import load_claims
from sememekit.claims.verdict import ClaimResult
from sememekit.commands._program import app
from sememekit.commands.doctor import Check, DoctorReport
from sememekit.data.signature import ChunksSummary, ExamplesSummary, Signature, SourceFile
from sememekit.jobs.cluster_update import ClusterUpdateReport
from sememekit.jobs.seeds import SeedsReport
from sememekit.jobs.study import TrialReport
from sememekit.jobs.sweep import SweepReport
from sememekit.jobs.train import TrainReport
from sememekit.prepare.overlap import Overlap
from sememekit.prepare.settings import PreprocessReport, PreprocessSettings
from sememekit.reports.run import RunReport
from sememekit.reports.table import Views
from sememekit.runs.extend import ExtendReport
from sememekit.runs.generation import GenerateReport
from sememekit.runs.sharing import ShareReport
from sememekit.runs.slots import Setting, SettingsTable, SlotInfo
from sememekit.runs.writing import Found, WrittenText
from sememekit.sememes.formats.open_lexicon import Fault
from sememekit.sememes.lookup import AnnotationReport, CheckReport, LookupReport, LookupSense
from sememekit.sememes.lookup import ChangeReport as Changed
from sememekit.sememes.searching import DiffReport, DumpReport, PairsReport, SearchReport
from sememekit.sememes.statistics import GraphReport
from sememekit.sememes.suggesting import SuggestReport, WordSuggestions
from sememekit.signals import Stopped, stop_signals
from sememekit.tasks.vectors import VectorCoverage
from sememekit.text.reading import TextFaults
from sememekit.training import ChangeReport, EpochReport, StepReport, StopReport
from tests.reports.samples import drawn, filled, fresh
from tests.reports.test_terminal import compared
from tests.reports.test_terminal import seeds as several

EXPECTED = Path(__file__).with_name("outputs.txt")
HEAD = "==== "
Played = Callable[[], Mapping[str, Any]]
"""Name of a function -> the record that it returns, or a function that is called in its place."""

EPOCH = EpochReport(
    epoch=2, step=10, train_nats=6.25, valid={"perplexity": 345.678, "nats": 5.0, "rouge1": 0.25}, rate=20.0, best=True,
    rate_cut=True, finished="epochs done", seconds=2.0, tokens_per_second=4321.0, estimated=True, averaged=True,
    averaging_begins=True,
)  # fmt: skip
STEP = StepReport(epoch=1, batch=5, num_batches=10, step=5, nats=6.5, rate=20.0, tokens_per_second=4321.0)
ACCURACY = EpochReport(
    epoch=1, step=10, train_nats=0.5, valid={"accuracy": 0.25}, rate=20.0, best=False, rate_cut=False, finished="",
    seconds=2.0, tokens_per_second=43.0,
)  # fmt: skip
Named = partial(SimpleNamespace, model_dump=lambda mode: {"mode": mode})
RECIPES = (
    Named(name="own/first", summary="the first", cost=None, claim=None),
    Named(
        name="own/a-name-that-is-never-broken" * 3, summary="another", cost="3 h",
        claim=SimpleNamespace(metric="perplexity", value=120.0, tolerance=2.5, place="Table 4"),
    ),
)  # fmt: skip

CLAIMS = [next(one for one in load_claims().values() if (one[1].small is None) is bare) for bare in (False, True)]
"""The first claim that has small models, and the first that has none."""


def trained(bare: bool = False, silent: bool = False, **given: Any) -> dict[str, Any]:
    def train(table: Any, out: Any, *, on_report: Any, on_remark: Any, **options: Any) -> TrainReport:
        change = ChangeReport(epoch=1, step=7, values={"moved_words": 0.125, "gone": 3})
        reports = (STEP, ACCURACY if bare else EPOCH, change, StopReport(epoch=2, step=11, checkpoint="last"))
        for report in () if silent else reports:
            on_report(report)
        on_remark("a remark of the training")
        vectors = None if bare else filled(VectorCoverage, outside="random")
        rest = {"metric": "perplexity", "stopped": False, "vectors": vectors, **given}
        return filled(TrainReport, many=2, bare=bare, **rest)

    return {"sememekit.jobs.train.train": train}


def seeds(**given: Any) -> dict[str, Any]:
    def train_seeds(table: Any, out: Any, numbers: Any, *, on_report: Any, on_remark: Any, **options: Any) -> SeedsReport:
        on_report("seed-1", EPOCH)
        on_report("seed-2", STEP)
        on_remark("a remark of the trainings")
        ended = ({"finished": "epochs done"}, {"finished": "", "best_valid": None})
        runs = tuple(filled(TrainReport, vectors=None, **one) for one in ended)
        rest = {"metric": "in_cluster_perplexity", "stopped": False, **given}
        return filled(SeedsReport, runs=runs, seeds=numbers, table={"a": 1}, **rest)

    return {"sememekit.jobs.seeds.train_seeds": train_seeds}


def swept(why: str = "", best: str | None = "s/best.toml", **given: Any) -> dict[str, Any]:
    settings = {"encoder.hidden_size": 4, "optimizer.clip": 0.123456}
    done = TrialReport(
        number=1, run="s/trial-0001", settings=settings, state="failed" if why else "done", valid=None if why else 0.5,
        epochs=3, cpu_seconds=61.6, why=why,
    )  # fmt: skip
    other = done.model_copy(update={"number": 2, "valid": 1234.5678, "state": "pruned", "why": ""})
    trials = (done,) if why else (done, other)

    def sweep(table: Any, out: Any, over: Any, *, on_trial: Any, **options: Any) -> SweepReport:
        on_trial(trials[0])
        rest = {"metric": "perplexity", "exhausted": True, "stopped": False, **given}
        return SweepReport(out=str(out), budget="3 trials", cpu_minutes=1.25, trials=trials, best=best, **rest)

    return {"sememekit.jobs.sweep.sweep": sweep}


def prepared(unknown: int = 1_001, rate: float = 0.01, **given: Any) -> dict[str, Any]:
    def labelled(names: tuple[str, ...] | None) -> ExamplesSummary:
        made = filled(ExamplesSummary, many=2, labels=names, texts=("premise", "hypothesis"))
        splits = {
            name: one.model_copy(update={"of_label": dict.fromkeys(names or (), 3), "examples": 4 + number})
            for number, (name, one) in enumerate(zip(("train", "test"), made.splits.values(), strict=True))
        }
        return made.model_copy(update={"splits": splits, "left_out": {"none": 1234, "empty text": 1}})

    signature = filled(Signature, many=2)
    rates = {"train": 0.0, "test": rate}
    splits = {
        name: one.model_copy(update={"unknown_rate": rates[name], "unknown": unknown * (name == "test"), "tokens": 1_000})
        for name, one in zip(rates, signature.splits.values(), strict=True)
    }
    values = {"splits": splits, "examples": labelled(("yes", "no")), "chunks": filled(ChunksSummary), "vocabulary_splits": ()}
    values["faults"] = filled(TextFaults)
    signature = signature.model_copy(update={**values, **given})
    overlap = {
        "valid": Overlap(unit="examples", shared=199, of=10_000),
        "test": Overlap(unit="n-grams", shared=20, of=1_000),
        "other": Overlap(unit="examples", shared=3_000, of=6_000),
    }
    made = PreprocessReport(folder="d", signature=signature, overlap=overlap)
    return {"sememekit.jobs.preprocess.preprocess": made}


def untrained() -> dict[str, Any]:
    """Data of which train has an ``<unk>``, with more unknown than known words."""
    made = prepared(vocabulary_splits=("train",))["sememekit.jobs.preprocess.preprocess"]
    splits = {name: one.model_copy(update={"unknown_rate": 0.5}) for name, one in made.signature.splits.items()}
    whole = tuple(filled(SourceFile, split=split) for split in ("test", "all"))
    values = {"splits": splits, "sources": whole, "examples": None, "faults": TextFaults(policy="strict")}
    signature = made.signature.model_copy(update=values)
    return {"sememekit.jobs.preprocess.preprocess": made.model_copy(update={"signature": signature, "overlap": {}})}


def graph(names: int, structure: bool = True, **given: Any) -> dict[str, Any]:
    report = filled(GraphReport, many=2)
    values: dict[str, Any] = {"words_without_annotation": tuple(f"word{number}" for number in range(names))}
    values |= {} if structure else {"edges_by_depth": {}, "edges_by_role": {}}
    statistics = report.statistics.model_copy(update=values)
    return {
        "sememekit.jobs.build_sememe_graph.build_sememe_graph": report.model_copy(update={"statistics": statistics, **given}),
        "sememekit.analysis.suggestions.suggest_for": lambda *given: "suggestions",
        "sememekit.sememes.suggesting.write_suggestions": None,
    }


def updated(**given: Any) -> dict[str, Any]:
    def cluster_update(run: Any, *, on_report: Any, **options: Any) -> ClusterUpdateReport:
        on_report(STEP)
        on_report(EPOCH)
        return filled(ClusterUpdateReport, **{"stopped": False, "written": "w/run", **given})

    return {"sememekit.jobs.cluster_update.cluster_update": cluster_update}


def extended(words: int, **given: Any) -> dict[str, Any]:
    refused = {"known": tuple(f"w{number}" for number in range(words)), "empty": ("x",)}
    dropped = tuple(f"s{number}" for number in range(words))
    return {
        "sememekit.runs.extend.extend": filled(
            ExtendReport, many=2, refused=refused, dropped_sememes=dropped, written="r/2", **given
        )
    }


def shared(**given: Any) -> dict[str, Any]:
    report = filled(ShareReport, many=2, **given)
    return {
        "sememekit.runs.sharing.push_run": report,
        "sememekit.runs.sharing.pull_run": report,
        "sememekit.reports.card.model_card": "# A card\n\nof a run\n\n",
    }


def claims() -> dict[str, Any]:
    found = [filled(ClaimResult, many=2, name=f"claim-{number}", verdict="holds", paper=paper)
             for number, paper in enumerate(("one", "other", "one"))]  # fmt: skip
    return {
        "sememekit.jobs.reproduce.reproduce": lambda names, *rest, say, **options: [say("a step"), found][1],
        "sememekit.commands.reproduce.load_claims": {f"claim-{number}": one for number, one in enumerate(CLAIMS)},
        "sememekit.jobs.reproduce.trials_of": "the trials",
        "sememekit.jobs.reproduce.timings_for": "the timings",
        "sememekit.claims.chain.shell_script": "set -e\ntrain\n",
        "sememekit.claims.verdict.judge": lambda name, *rest, **options: found[0].model_copy(update={"name": name}),
        "sememekit.reports.ledger.into_page": "the page with the ledger",
        "sememekit.jobs.reproduce.judged": found,
        "sememekit.jobs.reproduce.uncounted": ["a result that does not count"],
    }


def stopped_claims() -> dict[str, Any]:
    def reproduce(*given: Any, **options: Any) -> None:
        raise Stopped

    return {"sememekit.jobs.reproduce.reproduce": reproduce}


def compared_attacks() -> dict[str, Any]:
    return {
        "sememekit.attack.folder.compare_attacks": filled(AttackComparison, many=2),
        "sememekit.reports.attack.charts_of": ["a chart"],
        "sememekit.reports.charts.write_figure": None,
    }


def resumed(candidates: str) -> dict[str, Any]:
    stored = SimpleNamespace(identity={"plan": {"candidates": {"name": candidates}}})
    return {**attacked(), "sememekit.attack.folder.AttackFolder.open": stored}


def segmented(*lines: str) -> dict[str, Any]:
    return {
        "sememekit.runs.run.Run.open": "the run",
        "sememekit.runs.lattices.open_reader": "the reader",
        "sememekit.runs.lattices.segment_raw": lambda reader, source, **options: source.read() and list(lines),
        "sememekit.data.segmenters.segmenter_for": SimpleNamespace(segment=str.split),
    }


def attacked(**given: Any) -> dict[str, Any]:
    refused: dict[str, Any] = {"refused_by_standard": {"names": 1_234_019}, "refused_substitutes": {"names": 1_234_027}}
    report = filled(AttackReport, many=2, refused_by_any=1_234_003, **refused, **{"stopped": False, **given})
    return {
        "sememekit.jobs.attack.attack": report,
        "sememekit.reports.attack.rate": report,
        "sememekit.reports.attack.rate_rows": [("outcomes", "success 3"), ("queries", 1234.5)],
        "sememekit.reports.attack.charts_of": ["a chart"] if report.stopped is False and report.preset else [],
        "sememekit.reports.charts.write_figure": None,
    }


def touring(**given: Any) -> dict[str, Any]:
    report = drawn("quickstart")[0].model_copy(update={"stopped": False, "already_done": False, **given})
    views = Views(parts=lambda shown: [f"the tour in {shown.out}"], page=None, charts=None)
    return {"sememekit.jobs.quickstart.quickstart": report, "sememekit.reports.quickstart.VIEWS": views}


def looked_up(**given: Any) -> dict[str, Any]:
    return {"sememekit.sememes.lookup.lookup": filled(LookupReport, many=2, **{"senses": filled_senses(), **given})}


def filled_senses() -> tuple[LookupSense, ...]:
    return (filled(LookupSense, many=2, tree=()),)


def annotated(senses: int) -> dict[str, Any]:
    return {"sememekit.sememes.lookup.annotation": filled(AnnotationReport, many=senses, word="w")}


def searched(**given: Any) -> dict[str, Any]:
    report = filled(SearchReport, many=2, **given)
    return {f"sememekit.sememes.searching.{name}": report for name in ("words_with", "similar_words")}


def questioned(**given: Any) -> dict[str, Any]:
    """The answers to the other questions of lookup."""
    faults = (filled(Fault, many=2), filled(Fault, many=2))
    return {
        "sememekit.sememes.lookup.add_change": filled(Changed, many=2),
        "sememekit.sememes.lookup.check_open_lexicon": filled(CheckReport, many=2, faults=faults, **given),
        "sememekit.sememes.searching.dump_lexicons": filled(DumpReport, many=2, **given),
        "sememekit.sememes.searching.diff_lexicons": filled(DiffReport, many=2),
        "sememekit.sememes.searching.read_pairs": ["the pairs"],
        "sememekit.sememes.searching.similarity": filled(PairsReport, many=2),
        "sememekit.analysis.suggestions.suggest_for": suggested(1, "a")["sememekit.sememes.suggesting.suggest"],
        "sememekit.analysis.suggestions.vectors_at": "the vectors",
    }


def suggested(known: int, without: str) -> dict[str, Any]:
    made = [filled(WordSuggestions, many=2) for _ in range(known)]
    made += [filled(WordSuggestions, many=2, word=word, sememes=()) for word in without]
    return {
        "sememekit.sememes.suggesting.suggest": filled(SuggestReport, many=2, words=tuple(made)),
        "sememekit.sememes.suggesting.write_suggestions": None,
        "sememekit.sememes.suggesting.write_changes": None,
        "sememekit.sememes.graph.graph_at": "the graph",
    }


def of_words(cut: int = 0) -> dict[str, Any]:
    one = filled(PerplexityReport, many=2, bare=cut > 0, cut_sources=cut)
    several = filled(PerplexityComparison, many=2, reports=(one,) * 2)
    return {
        "sememekit.analysis.evaluate_ppl.evaluate_ppl": one,
        "sememekit.analysis.evaluate_ppl.compare_ppl": several,
        "sememekit.runs.run.Run.open": lambda run, **options: str(run),
    }


def scored(overlaid: bool = False, rows: bool = True) -> dict[str, Any]:
    kind = partial(OverlaidToken, nats_overlay=0.5) if overlaid else ScoredToken
    made = [
        kind(sentence=1, position=1, token="a", read_as="a", nats=None),
        kind(sentence=1, position=2, token="b", read_as="<unk>", nats=1.25),
    ]
    return {
        "sememekit.runs.run.Run.open": SimpleNamespace(of_run={"run": "r", "checkpoint": "best"}),
        "sememekit.analysis.score.score": lambda run, lines, **options: [*lines] and (made if rows else []),
    }


class Labelled:
    """Predictions for the lines 3 and 6 of a file of eight, of which the first is a header."""

    def __init__(self, header: bool, added: str) -> None:
        run = SimpleNamespace(of_run={"run": "r", "checkpoint": "best"})
        self.classifier = SimpleNamespace(run=run, labels=("yes", "no"))
        self.header, self.added, self.lines = header, set(added.split()), 0

    def __iter__(self) -> Iterator[LabelPrediction]:
        for line, label in ((3, "yes"), (6, "no")):
            self.lines = line
            yield LabelPrediction(line=line, label=label, probabilities={"yes": 0.75, "no": 0.25})
        self.lines = 8


def labelled(header: bool = True, added: str = "") -> dict[str, Any]:
    return {
        "sememekit.runs.run.Run.open": "the run",
        "sememekit.analysis.predict.predict": lambda *given, **options: Labelled(header, added),
    }


def tagged(rows: int = 3) -> dict[str, Any]:
    senses = tuple(
        SenseTag(number=number, label="l", sememes=("a|x", "b"), probability=share) for number, share in ((2, 0.75), (1, 0.25))
    )
    word = TaggedToken(sentence=1, position=1, token="w", read_as="w", nats=None, senses=senses)
    other = word.model_copy(update={"position": 2, "token": "v", "nats": 1.25, "senses": ()})
    bare = other.model_copy(update={"sentence": 3, "position": 1, "nats": None})
    head = SimpleNamespace(model_dump_json=lambda: '{"run": "r"}', sentences=lambda: ["first", "second"])
    return {
        "sememekit.notebook.run.load_run": "the run",
        "sememekit.analysis.senses.tagging.header_of": head,
        "sememekit.analysis.senses.tagging.tag": lambda run, lines, **options: [*lines] and [word, other, bare][:rows],
    }


class Loaded(SimpleNamespace):
    """A run of one kind, which tells how it is asked."""

    def __str__(self) -> str:
        return "r"

    def explain(self, *texts: Any, **options: Any) -> SimpleNamespace:
        told = [*map(shown, texts), *(f"{name}={shown(value)}" for name, value in sorted(options.items()))]
        views = Views(page=None, parts=lambda report: [f"asked for {', '.join(told)}"], charts=lambda report: ["a chart"])
        return SimpleNamespace(report=filled(RunReport), views=views, save=lambda page: page.write_text("a page"))

    analyze = explain


def loaded(kind: str, **given: Any) -> dict[str, Any]:
    values = {"many": 2, **given}
    return {
        "sememekit.notebook.run.load_run": Loaded(kinds={kind}),
        "sememekit.analysis.evaluate.evaluate": filled(
            WrittenMetrics if kind == "texts" else LabelMetrics if kind == "labels" else MetricsReport, bare=True, **values
        ),
        "sememekit.analysis.senses.evaluation.evaluate_senses": filled(SenseScores, many=2),
        "sememekit.analysis.segmentation.evaluate_segmentation": filled(SegmentationReport, many=2),
        "sememekit.analysis.explanations.evaluation.evaluate_explanations": drawn("explanation_scores")[0],
        "sememekit.runs.writing.words_read": 5,
        "sememekit.reports.charts.write_figure": None,
    }


def of_seeds(kind: type[Any] = LabelMetrics) -> dict[str, Any]:
    return {
        "sememekit.training.checkpoint.seed_runs": [Path("r/seed-1")],
        "sememekit.analysis.evaluate.evaluate_seeds": several(kind, bare=True),
        "sememekit.analysis.evaluate_ppl.evaluate_ppl": None,
    }


def leading() -> dict[str, Any]:
    return {"sememekit.analysis.written_texts.baseline": filled(BaselineReport, many=2)}


def compared_texts() -> dict[str, Any]:
    return {"sememekit.analysis.written_texts.compare_texts": filled(ComparisonReport, many=2)}


def written(*read: int) -> dict[str, Any]:
    found = Found(text="a b", words=("a", "b"), score=-1.0, nats=2.0, ended=True)
    rows = [
        WrittenText(line=line, best=found, others=(), unknown=(), source_words=9, read_words=words)
        for line, words in enumerate(read, start=1)
    ]
    writer = SimpleNamespace(task="the task")
    return {
        "sememekit.runs.run.Run.open": Loaded(kinds={"texts"}),
        "sememekit.runs.writing.load_writer": writer,
        "sememekit.runs.writing.search_of": "the search",
        "sememekit.runs.writing.write_texts": lambda writer, lines, *rest: [*lines] and rows,
    }


def generated() -> dict[str, Any]:
    report = GenerateReport(prompt=("a",), tokens=("b",), text="a b", nats=1.0, seed=1)
    return {"sememekit.runs.run.Run.open": Loaded(kinds={"words"}), "sememekit.runs.generation.generate": report}


class Listening:
    """A socket that listens on a port, and what a server needs besides: runs, a worker and a folder."""

    def __init__(self) -> None:
        self.runs = dict.fromkeys(("r", "q"), self)

    def __enter__(self) -> Listening:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to close."""

    def setsockopt(self, *option: int) -> None:
        print("option of the socket:", *map(int, option), file=sys.stderr)

    def getsockname(self) -> tuple[str, int]:
        return "address", 8701

    def load(self) -> None:
        print("a run is read", file=sys.stderr)

    def close(self) -> None:
        print("the worker is closed", file=sys.stderr)


def served(error: OSError | None = None) -> dict[str, Any]:
    def listen(*given: Any, **options: Any) -> Listening:
        if error is not None:
            raise error
        return Listening()

    bench = Listening()
    return {
        "sememekit.commands.serve.find_spec": "there",
        "sememekit.commands.serve.run_server": None,
        "sememekit.serve.app.make_app": "the app",
        "sememekit.serve.runs.Bench": lambda *given: bench,
        "sememekit.serve.runs.quickstart_runs": ["the runs of the quickstart"],
        "sememekit.serve.worker.Worker": Listening(),
        "secrets.token_urlsafe": lambda size: f"token of {size} bytes",
        "socket.create_server": listen,
        "webbrowser.open": None,
        "sememekit.commands.serve.TemporaryDirectory": lambda prefix: nullcontext(f"{prefix}folder"),
    }


def unserved(name: str) -> dict[str, Any]:
    return {**served(), "sememekit.commands.serve.find_spec": lambda module: None if module == name else module}


def clustered(empty: int, saved: str) -> dict[str, Any]:
    return {
        "sememekit.analysis.clusters.clusters": filled(ClustersReport, many=2, empty_clusters=empty, saved=saved),
    }


def checked(*statuses: str) -> dict[str, Any]:
    checks = [Check(name=f"check {n}", status=one, detail="[a] detail\x1b", fix="a fix" * (one != "ok"))
              for n, one in enumerate(statuses)]  # fmt: skip
    return {"sememekit.commands.doctor.doctor": DoctorReport(status=statuses[-1], checks=checks)}


def settings_of(rows: int) -> dict[str, Any]:
    usual = {"usual": "sdlm", "variants": {"softmax": "the plain one", "sdlm": "with sememes"}}
    slot = filled(SlotInfo, many=2, slot="decoder", summary="The layer.", **usual)
    one = {"type": "a number", "key": "tied", "default": 0.5}
    table = filled(SettingsTable, settings=tuple(filled(Setting, many=2, **one) for _ in range(rows)), summary="The layer.")
    return {
        "sememekit.runs.slots.settings_slots": (slot, slot.model_copy(update={"variants": {}})),
        "sememekit.runs.slots.slot_info": slot,
        "sememekit.runs.slots.has_variants": lambda name: name == "decoder",
        "sememekit.runs.slots.settings_table": table,
    }


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


def shown(value: Any) -> str:
    """An argument of a played function, without what stands nowhere else: tables, functions and objects."""
    if isinstance(value, PreprocessSettings):
        return "settings" + shown({key: each for key, each in value.model_dump().items() if each})
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, str | int | float | None):
        return repr(value)
    if isinstance(value, Path):
        return f"Path {value}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {shown(each)}" for key, each in sorted(value.items())) + "}"
    return "function" if callable(value) else type(value).__name__


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


def expected() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in EXPECTED.read_text("utf-8").splitlines():
        if line.startswith(HEAD):
            found[line.removeprefix(HEAD)] = []
        else:
            list(found.values())[-1].append(line)
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_command_prints_and_calls_as_before(name: str) -> None:
    assert [*lines(name)] == expected()[name], f"on purpose? then: python -m {__spec__.name}, and read the difference"


if __name__ == "__main__":
    EXPECTED.write_text("".join(f"{line}\n" for name in CASES for line in (HEAD + name, *lines(name))), "utf-8")
    sys.exit()
