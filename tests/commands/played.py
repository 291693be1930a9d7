"""Functions that commands call, played: each returns a made-up record, so that nothing is trained."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import Enum
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sememekit.analysis.clusters import ClustersReport
from sememekit.analysis.evaluate import LabelMetrics, MetricsReport, WrittenMetrics
from sememekit.analysis.evaluate_ppl import PerplexityComparison, PerplexityReport
from sememekit.analysis.predict import LabelPrediction
from sememekit.analysis.score import OverlaidToken, ScoredToken
from sememekit.analysis.segmentation import SegmentationReport
from sememekit.analysis.senses.evaluation import SenseScores
from sememekit.analysis.senses.tagging import SenseTag, TaggedToken
from sememekit.analysis.written_texts import BaselineReport, ComparisonReport
from sememekit.attack.report import AttackComparison, AttackReport
from sememekit.claims.claims import load_claims
from sememekit.claims.verdict import ClaimResult
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
from sememekit.signals import Stopped
from sememekit.tasks.vectors import VectorCoverage
from sememekit.text.reading import TextFaults
from sememekit.training import ChangeReport, EpochReport, StepReport, StopReport
from tests.reports.samples import drawn, filled
from tests.reports.test_terminal import seeds as several

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
        "sememekit.jobs.reproduce.differing": {"claim-0": {"decoder.samples": ("0", "1000")}},
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


def shown(value: Any) -> str:
    """Return an argument of a played function as text: functions and objects by their kind alone."""
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
        "sememekit.serve.server.run_server": None,
        "sememekit.serve.app.make_app": "the app",
        "sememekit.serve.runs.Bench": lambda *given: bench,
        "sememekit.serve.gate.reachable": lambda host: host.replace("0.0.0.0", "192.0.2.7"),
        "sememekit.serve.runs.quickstart_runs": [Path("the runs of the quickstart")],
        "sememekit.serve.worker.Worker": Listening(),
        "secrets.token_urlsafe": lambda size: f"token of {size} bytes",
        "socket.create_server": listen,
        "webbrowser.open": None,
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
