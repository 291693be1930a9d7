"""The steps of the quickstart around training: the graph, and what is measured and shown of each model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from sememekit.analysis.evaluate_ppl import PerplexityReport
from sememekit.analysis.explanations.evaluation import ExplanationScores, evaluate_explanations
from sememekit.analysis.explanations.lattice import explain_lattice
from sememekit.analysis.explanations.words import Explanation, explain
from sememekit.analysis.segmentation import SegmentationRow, evaluate_segmentation
from sememekit.config import apply_overrides, load_recipe
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError
from sememekit.jobs.build_sememe_graph import build_sememe_graph
from sememekit.jobs.trainings import Trained
from sememekit.progress import Progress
from sememekit.reports.quickstart import LatticeFound, ModelRow
from sememekit.runs.run import Run
from sememekit.sememes import SememeGraph
from sememekit.text.vocabulary import UNKNOWN
from sememekit.training import metrics

CONTEXTS: Final = ("去年 美国 贸易 逆差 初步 估计 为 <N>", "中国 政府 坚持 改革 开放 的", "国家 主席 今天 在 人民 大会堂")
"""What is explained of the newspaper; the first is that of Table 5, Gu et al. 2018."""

RAW: Final = ("上海市体育局召开会议", "去年美国贸易逆差初步估计", "中国政府坚持改革开放")
"""What the lattice model of the newspaper cuts."""

_CONTEXT_WORDS: Final = 6
_RAW_CHARACTERS: Final = 16

MOST_EPOCHS: Final = 15
USUAL_WORDS: Final = 320_000
"""A text of fewer words is read more often, so that there are as many steps, up to ``MOST_EPOCHS`` times."""


def prepare_graph(out: Path, data: PreparedData, sources: Sequence[str]) -> SememeGraph:
    """The sememe graph. Raises ConfigError: it knows no word of the text."""
    path = out / "data.graph"
    if not path.is_file():
        build_sememe_graph(sources, data.folder, path)
    graph = SememeGraph.load(path)
    graph.check_vocabulary(data.vocabulary)
    words = [data.vocabulary.token(int(index)) for index in np.flatnonzero(graph.annotated)]
    if not any(any(character.isalpha() for character in word) and not word.startswith("<") for word in words):
        raise ConfigError(
            f"quickstart: --source {' --source '.join(sources)} knows no word of the text; give a lexicon of its language, "
            "as in --source hownet2000:glossary.dat ('sememekit lookup --help' names the formats)"
        )
    return graph


def schedule_for(table: dict[str, Any], tokens: int, overrides: Sequence[str]) -> dict[str, Any]:
    """The table of a model with epochs for a text of ``tokens`` words, and the decay that ends them at the same rate.

    It also waits longer for a model to leave the frequencies of words, whose epochs are short. What was given with ``--set``
    stays as it is.
    """
    usual = load_recipe("quickstart/softmax")["schedule"]  # whatever --set makes of it
    epochs = min(MOST_EPOCHS, round(usual["epochs"] * USUAL_WORDS / tokens))
    if epochs <= usual["epochs"]:
        return table
    decay = round(usual["decay"] ** ((usual["epochs"] - 1) / (epochs - 1)), 4)
    given = {override.partition("=")[0].strip() for override in overrides}
    new = {"schedule.epochs": epochs, "schedule.decay": decay, "run.stall_epochs": max(4, epochs // 2)}
    return apply_overrides(table, [f"{key}={value}" for key, value in new.items() if key not in given])


def model_row(out: Path, name: str, trained: Trained, measured: PerplexityReport) -> ModelRow:
    """The row of a trained model in the table that compares them, with the epochs of earlier calls."""
    report, epochs = trained.report, metrics.epochs(out / name / "metrics.jsonl")
    seconds, valid = sum(epoch["seconds"] for epoch in epochs), tuple(epoch["valid"]["perplexity"] for epoch in epochs)
    return ModelRow(
        name=name,
        run=report.run,
        parameters=report.parameters,
        epochs=report.epochs,
        best_epoch=report.best_epoch,
        ended_because=report.finished,
        valid_by_epoch=valid,
        best_valid=min(valid),
        test_perplexity=measured.perplexity,
        per_character=measured.per_character,
        bits_per_byte=measured.bits_per_byte,
        tokens=measured.tokens,
        training_seconds=seconds,
        tokens_per_second=metrics.tokens_per_second(epochs),
        signature=measured.signature,
    )


def contexts_of(data: PreparedData, *, own: bool) -> tuple[str, ...]:
    """Return the contexts to explain: fixed ones of the newspaper, or the beginnings of three test sentences of an own text."""
    if not own:  # another month may have none of their words
        return tuple(context for context in CONTEXTS if any(word in data.vocabulary for word in context.split()))
    words = data.vocabulary.decode(data.tokens("test"))
    sentences = [sentence.split() for sentence in " ".join([*words, ""]).split(f" {words[-1]} ")]
    begins = [sentence[:_CONTEXT_WORDS] for sentence in sentences if len(sentence) > _CONTEXT_WORDS]
    found = [" ".join(begin) for begin in begins if UNKNOWN not in begin]
    return tuple(found[:: max(1, len(found) // 3)][:3])


def explained(out: Path, contexts: Sequence[str], device: str) -> tuple[list[Explanation], list[Explanation]]:
    """The explanations of the sememe model, and what the softmax model expects in the same contexts."""
    explanations, guesses = [], []
    for context in contexts:
        explanations.append(explain(Run.open(out / "sdlm", device=device), context, top=5, top_sememes=8))
        guesses.append(explain(Run.open(out / "softmax", device=device), context, top=5))
    return explanations, guesses


def explanation_scores(
    out: Path, data: PreparedData, graph: SememeGraph, device: str, progress: Progress
) -> ExplanationScores | None:
    """Score the explanations of the sememe model on a sample of the test text; None if a lexicon has none of its words."""
    entries = list(graph.entries())
    if not any(entries[word].is_from_lexicon for word in np.unique(data.tokens("test"))):
        return None
    return evaluate_explanations(Run.open(out / "sdlm", device=device), tops=(5,), contexts=4000, progress=progress)


def words_found(out: Path, name: str, trained: Trained, *, own: bool, device: str, progress: Progress) -> LatticeFound:
    """Find words in characters with a trained lattice model: a picture, some sentences, and F1 if the words are known."""
    gold, run = out / "text" / "gold.txt", out / name
    lines = gold.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    known = any(" " in line for line in lines)
    rows: tuple[SegmentationRow, ...] = ()
    if known:
        rows = evaluate_segmentation(
            Run.open(run, device=device), gold, progress=lambda _, *done: progress(f"test {name}", *done)
        ).rows
    raw = ["".join(line.split())[:_RAW_CHARACTERS] for line in lines]
    shown = raw[:: max(1, len(raw) // 3)][:3] if own else RAW
    return LatticeFound(
        run=str(run),
        characters=PreparedData.open(out / "characters").signature.splits["train"].characters,
        epochs=trained.report.epochs,
        training_seconds=sum(epoch["seconds"] for epoch in metrics.epochs(run / "metrics.jsonl")),
        sentences=tuple(explain_lattice(Run.open(run, device=device), text).sentences[0] for text in shown),
        rows=rows,
    )
