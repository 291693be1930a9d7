"""A page of every kind, with words, names and numbers as long as they come: records are filled by the types of their fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
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
"""Number of times each field was filled. Its numbers follow from its name, so that no other field moves them; hardly two are
equal, so that a figure of a page tells which field it shows."""
LONG = "Donaudampfschifffahrtsgesellschaft"
WORDS = ("中华人民共和国", LONG, "上海", "Donaukanal", "internationalization", "一九九七年")


def fresh() -> None:
    """Let the next record have the numbers of the first."""
    _TIMES.clear()


def filled(kind: type[R], *, many: int = 6, bare: bool = False, **given: Any) -> R:
    """A record of a class with every field filled, but for those given; lists of ``many`` items. Fields that
    may be lacking are lacking in a ``bare`` one.
    """
    fields = kind.model_fields.items()
    return kind(
        **{
            name: given[name] if name in given else _value(field.annotation, f"{kind.__name__}.{name}", many, bare)
            for name, field in fields
        }
    )


def _value(kind: Any, field: str, many: int, bare: bool) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        if bare and NoneType in parts:
            return None
        return _value(next(part for part in parts if part is not NoneType), field, many, bare)
    if origin is Literal:
        return parts[-1 if bare else 0]
    if origin is tuple and parts[-1] is not Ellipsis:
        return tuple(_value(part, field, many, bare) for part in parts)
    if origin in (tuple, list):
        return tuple(_value(parts[0], field, many, bare) for _ in range(many))
    if origin is dict:
        return {str(_value(parts[0], field, many, bare)) + str(n): _value(parts[1], field, many, bare) for n in range(2)}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return filled(kind, many=many, bare=bare)
    _TIMES[field] += 1
    number = crc32(f"{field} {_TIMES[field]}".encode())
    return {
        bool: not bare,
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
    found = {name: drawn(name)[1] for name in MAKERS}
    results = [filled(ExampleResult, adversarial=(LONG, LONG)) for _ in range(2)]
    items = [Item(f"item-{LONG}-{number}", result, bool(number)) for number, result in enumerate(results)]
    sheet = templates.render("ratings", items=items, answers=ANSWERS, labels=("for", "against"), key="attack")
    return found | {"ratings": sheet}


@cache
def drawn(name: str) -> tuple[Any, str]:
    """The records that a template is given, and the page. No page is drawn before a test asks for it."""
    fresh()
    return MAKERS[name]()


def _analysis() -> tuple[Any, str]:
    analysed = filled(Analysis)
    return analysed, analysis.analysis_page(analysed)


def _attack() -> tuple[Any, str]:
    refused: dict[str, Any] = {"refused_by_standard": {"names": 1_234_019}, "refused_substitutes": {"names": 1_234_027}}
    attacked = filled(AttackReport, refused_by_any=1_234_003, **refused)
    outcomes = {"success": 1_234_037, "failed": 1_234_053}
    attacked = attacked.model_copy(update={"rates": attacked.rates.model_copy(update={"outcomes": outcomes})})
    results = _attacked()
    return (attacked, results), attack.report_page(attacked, results)


def _attack_comparison() -> tuple[Any, str]:
    compared = filled(AttackComparison)
    return compared, attack.comparison_page(compared)


def _embeddings() -> tuple[Any, str]:
    embedded = filled(EmbeddingsReport)
    return embedded, templates.render("embeddings", report=embedded)


def _explained() -> Explanation:
    return filled(Explanation, no_senses=None, min_count=2_000_000, asked=None)


def _explanation() -> tuple[Any, str]:
    explained = _explained()
    return explained, explanation.words_page(explained)


def _scores() -> ExplanationScores:
    rankings = tuple(filled(RankingScore, ranking=name, top=5) for name in ("rise", "gates", FREQUENCY, RANDOM))
    bands = tuple(filled(BandScores, scores=rankings) for _ in range(4))
    recalls = tuple(filled(SememeRecall, ranking=one.ranking, top=one.top) for one in rankings)
    sememes = tuple(filled(SememeBand, scores=recalls) for _ in range(4))
    return filled(ExplanationScores, rankings=rankings, words=bands, sememes=sememes)


def _explanation_scores() -> tuple[Any, str]:
    scores = _scores()
    return scores, metrics.scores_page(scores)


def _label_explanation() -> tuple[Any, str]:
    labelled = filled(LabelExplanation)
    return labelled, explanation.label_page(labelled)


def _labels() -> tuple[Any, str]:
    report = filled(LabelAnalysis)
    return report, analysis.label_page(report)


def _lattice() -> tuple[Any, str]:
    seen = filled(LatticeExplanation, sentences=(sentence(),))
    return seen, explanation.shown(seen).html


def _ledger() -> tuple[Any, str]:
    claims = [filled(ClaimResult, name=f"claim-of-{LONG}-{number}", verdict="holds") for number in range(3)]
    return claims, ledger.ledger_page(ledger.ledger(claims))


def _parts() -> tuple[Any, str]:
    side = filled(Side, curves=(((1.0, 2.0, 300.0), (2.0, 4.0, 250.0)),))
    compared = filled(RunsComparison, figure="perplexity", sides=(side, side))
    return compared, perplexity.runs_page(compared)


def _quickstart() -> tuple[Any, str]:
    rows = tuple(filled(SegmentationRow, name=name) for name in (MODEL, "words of the lexicon"))
    found = filled(quickstart.LatticeFound, sentences=(sentence(), sentence()), rows=rows)
    models = tuple(filled(quickstart.ModelRow, name=name) for name in ("softmax", "sdlm"))
    both = (_explained(),) * 2
    rest: dict[str, Any] = {
        "explanations": both,
        "softmax_guesses": both,
        "lattice": found,
        "scores": _scores(),
        "models": models,
    }
    report = filled(quickstart.QuickstartReport, no_lattice="", **rest)
    return report, quickstart.report_page(report)


def _run() -> tuple[Any, str]:
    plan = {"task": {"name": "language_model", "input_dropout": 0.5}}
    return _metrics(), run.run_page(f"runs-{LONG}", plan, _metrics())


def _written_explanation() -> tuple[Any, str]:
    written = filled(WritingExplanation, source=tuple(WORDS * 4), unknown=(), no_senses=None)
    shares = (0.7, *(0.3 / 23,) * 23)
    whole = written.model_copy(update={"words": tuple(word.model_copy(update={"attention": shares}) for word in written.words)})
    return whole, explanation.text_page(whole)


MAKERS: dict[str, Callable[[], tuple[Any, str]]] = {
    "analysis": _analysis,
    "attack": _attack,
    "attack_comparison": _attack_comparison,
    "embeddings": _embeddings,
    "explanation": _explanation,
    "explanation_scores": _explanation_scores,
    "label_explanation": _label_explanation,
    "labels": _labels,
    "lattice": _lattice,
    "ledger": _ledger,
    "parts": _parts,
    "quickstart": _quickstart,
    "run": _run,
    "written_explanation": _written_explanation,
}
"""Name of a template -> what draws its page."""
