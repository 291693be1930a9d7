"""A page of every kind, with words, names and numbers as long as they come: records are filled by the types of their fields."""

from __future__ import annotations

from collections import Counter
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin
from zlib import crc32

from pydantic import BaseModel

from sememekit.analysis.analyze import Analysis
from sememekit.analysis.analyze_labels import LabelAnalysis
from sememekit.analysis.compare_runs import RunsComparison, Side
from sememekit.analysis.explanations.evaluation import ExplanationScores
from sememekit.analysis.explanations.label import LabelExplanation
from sememekit.analysis.explanations.lattice import (
    EmbeddingsReport,
    LatticeEdge,
    LatticeExplanation,
    LatticeSentence,
    LatticeToken,
)
from sememekit.analysis.explanations.scores import FREQUENCY, RANDOM, BandScores, RankingScore, SememeBand, SememeRecall
from sememekit.analysis.explanations.words import Explanation
from sememekit.analysis.explanations.written_text import WritingExplanation
from sememekit.analysis.segmentation import MODEL, SegmentationRow
from sememekit.attack import ExampleResult
from sememekit.attack.ratings import ANSWERS, Item
from sememekit.attack.report import AttackComparison, AttackReport
from sememekit.claims.verdict import ClaimResult
from sememekit.reports import (
    analysis,
    attack,
    explanation,
    ledger,
    metrics,
    perplexity,
    quickstart,
    run,
)
from sememekit.reports import pages as templates

R = TypeVar("R", bound=BaseModel)
_TIMES: Counter[str] = Counter()
"""How often each field was filled: its numbers are those of its name, so that no other field moves them, and hardly two are
equal, so that a figure of a page tells which field it shows."""
LONG = "Donaudampfschifffahrtsgesellschaft"
WORDS = ("中华人民共和国", LONG, "上海", "Donaukanal", "internationalization", "一九九七年")


def filled(kind: type[R], **given: Any) -> R:
    """A record of a class with every field filled, but for those given."""
    fields = kind.model_fields.items()
    return kind(**{name: given.get(name, _value(field.annotation, f"{kind.__name__}.{name}")) for name, field in fields})


def _value(kind: Any, field: str) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _value(next(part for part in parts if part is not NoneType), field)
    if origin is Literal:
        return parts[0]
    if origin is tuple and parts[-1] is not Ellipsis:
        return tuple(_value(part, field) for part in parts)
    if origin in (tuple, list):
        return tuple(_value(parts[0], field) for _ in range(6))
    if origin is dict:
        return {str(_value(parts[0], field)) + str(number): _value(parts[1], field) for number in range(2)}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return filled(kind)
    _TIMES[field] += 1
    number = crc32(f"{field} {_TIMES[field]}".encode())
    return {
        bool: True,
        int: 1_000_000 + number % 8_999_993,
        float: 0.05 + 0.9 * number / 2**32,
        str: WORDS[number % len(WORDS)],
    }[kind]


def sentence() -> LatticeSentence:
    """A lattice over thirty characters, which is wider than any screen."""
    tokens = tuple(LatticeToken(text=letter, read_as=letter, known=True, boundary=0.5) for letter in "上海市体育局召开会议" * 3)
    edges = tuple(
        LatticeEdge(begin=place, end=place + 2, copy_number=1, text="上海", probability=0.4, listed=True, best=place % 2 == 0)
        for place in range(len(tokens) - 1)
    )
    return LatticeSentence(tokens=tokens, edges=edges, viterbi=("上海",) * 15, posterior=("上海市",) * 10, nats=123.4)


def _attacked() -> list[ExampleResult]:
    change = {"field": 0, "place": 0, "begin": 0, "old": LONG, "new": f"{LONG}en"}
    text, other = f"{LONG} {'was a very good film and ' * 12}", f"{LONG}en {'was a very good film and ' * 12}"
    return [
        filled(ExampleResult, index=number, fields=(text,), outcome=outcome, probabilities=(0.2, 0.8), adversarial=(other,),
               adversarial_probabilities=(0.7, 0.3), changes=(change,), queries=50 * number)
        for number, outcome in enumerate(("success", "failed", "success", "skipped"), start=1)
    ]  # fmt: skip


def _metrics() -> list[dict[str, Any]]:
    parts = {"cluster_perplexity": 21.0, "in_cluster_perplexity": 9.9}
    moved = {**parts, "moved_words": 0.3, "moved_frequency": 0.2, "orphaned_words": 3}
    records: list[dict[str, Any]] = []
    for epoch in range(1, 13):
        valid = {"perplexity": 3000.0 / epoch, **parts, "nats": 98765.4, "tokens": 12345}
        records.append({"kind": "ChangeReport", "step": epoch * 1000 - 500, "values": moved})
        records.append(
            {"kind": "EpochReport", "epoch": epoch, "step": epoch * 1000, "train_nats": 8.0 / epoch, "valid": valid}
            | {
                "best": True,
                "rate": 20.0 / epoch,
                "tokens_per_second": 12345.6,
                "finished": "epochs done" if epoch == 12 else "",
            }
        )
    return [*records, {"kind": "ClusterUpdate", "step": 12500, "values": moved}]


def pages() -> dict[str, str]:
    """Name of a template -> a page that it gives."""
    found = {name: page for name, (_, page) in drawn().items()}
    results = [filled(ExampleResult, adversarial=(LONG, LONG)) for _ in range(2)]
    items = [Item(f"item-{LONG}-{number}", result, bool(number)) for number, result in enumerate(results)]
    sheet = templates.render("ratings", items=items, answers=ANSWERS, labels=("for", "against"), key="attack")
    return found | {"ratings": sheet}


@cache
def drawn() -> dict[str, tuple[Any, str]]:
    """Name of a template -> the records that it is given, and the page."""
    source = tuple(WORDS * 4)
    shares = (0.7, *(0.3 / 23,) * 23)
    explained = filled(Explanation, no_senses=None, min_count=2_000_000, asked=None)
    rankings = tuple(filled(RankingScore, ranking=name, top=5) for name in ("rise", "gates", FREQUENCY, RANDOM))
    bands = tuple(filled(BandScores, scores=rankings) for _ in range(4))
    recalls = tuple(filled(SememeRecall, ranking=one.ranking, top=one.top) for one in rankings)
    sememes = tuple(filled(SememeBand, scores=recalls) for _ in range(4))
    scores = filled(ExplanationScores, rankings=rankings, words=bands, sememes=sememes)
    written = filled(WritingExplanation, source=source, unknown=(), no_senses=None)
    words = tuple(word.model_copy(update={"attention": shares}) for word in written.words)
    rows = tuple(filled(SegmentationRow, name=name) for name in (MODEL, "words of the lexicon"))
    found = filled(quickstart.LatticeFound, sentences=(sentence(), sentence()), rows=rows)
    models = tuple(filled(quickstart.ModelRow, name=name) for name in ("softmax", "sdlm"))
    both = (explained, explained)
    rest = {"explanations": both, "softmax_guesses": both, "lattice": found, "scores": scores, "models": models}
    report = filled(quickstart.QuickstartReport, no_lattice="", **rest)
    seen = filled(LatticeExplanation, sentences=(sentence(),))
    claims = [filled(ClaimResult, name=f"claim-of-{LONG}-{number}", verdict="holds") for number in range(3)]
    analysed, compared, embedded = filled(Analysis), filled(AttackComparison), filled(EmbeddingsReport)
    refused = {"refused_by_standard": {"names": 1_234_019}, "refused_substitutes": {"names": 1_234_027}}
    attacked = filled(AttackReport, refused_by_any=1_234_003, **refused)
    outcomes = {"success": 1_234_037, "failed": 1_234_053}
    attacked = attacked.model_copy(update={"rates": attacked.rates.model_copy(update={"outcomes": outcomes})})
    labelled, labels_report = filled(LabelExplanation), filled(LabelAnalysis)
    whole = written.model_copy(update={"words": words})
    side = filled(Side, curves=(((1.0, 2.0, 300.0), (2.0, 4.0, 250.0)),))
    models_compared = filled(RunsComparison, figure="perplexity", sides=(side, side))
    plan = {"task": {"name": "language_model", "input_dropout": 0.5}}
    return {
        "analysis": (analysed, analysis.analysis_page(analysed)),
        "attack": ((attacked, _attacked()), attack.report_page(attacked, _attacked())),
        "attack_comparison": (compared, attack.comparison_page(compared)),
        "embeddings": (embedded, templates.render("embeddings", report=embedded)),
        "explanation": (explained, explanation.words_page(explained)),
        "explanation_scores": (scores, metrics.scores_page(scores)),
        "label_explanation": (labelled, explanation.label_page(labelled)),
        "labels": (labels_report, analysis.label_page(labels_report)),
        "lattice": (seen, explanation.shown(seen).html),
        "ledger": (claims, ledger.ledger_page(ledger.ledger(claims))),
        "parts": (models_compared, perplexity.runs_page(models_compared)),
        "quickstart": (report, quickstart.report_page(report)),
        "run": (_metrics(), run.run_page(f"runs-{LONG}", plan, _metrics())),
        "written_explanation": (whole, explanation.text_page(whole)),
    }
