"""The steps of the quickstart before and after training: the text that is used, and what is said of each model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sememekit.analysis.evaluate import PerplexityReport
from sememekit.commands.build_sememe_graph import build_sememe_graph
from sememekit.commands.preprocess import preprocess
from sememekit.corpora.peoples_daily import PeoplesDaily
from sememekit.data.prepared import PreparedData
from sememekit.errors import DataError
from sememekit.files import replace_file
from sememekit.prepare.settings import PreprocessSettings
from sememekit.reports.quickstart import ModelRow, TextSummary
from sememekit.runs.train_report import TrainReport
from sememekit.sememes import SememeGraph
from sememekit.training import EpochReport


def prepare_text(out: Path, month_file: str, share: float, seed: int) -> Path:
    """The part of the month that is used, as a tagged month of its own; each paragraph is in with the same chance.

    Raises:
        DataError: there is no month, or nothing of it was chosen.
    """
    corpus = PeoplesDaily.open(Path(month_file) if month_file else None)
    month = corpus.sources()[0].path
    paragraphs = [line for line in month.read_bytes().splitlines() if line.strip()]
    drawn = np.random.PCG64(seed).random_raw(len(paragraphs)) / 2.0**64
    chosen = [line for line, chance in zip(paragraphs, drawn, strict=True) if chance < share]
    if not chosen:
        raise DataError(f"{month}: a share of {share:g} of its {len(paragraphs)} paragraphs is none; use more")
    path = out / "text" / "month.txt"
    path.parent.mkdir(exist_ok=True)
    replace_file(path, b"\n".join(chosen) + b"\n")
    counts = {"paragraphs": len(chosen), "paragraphs_of_month": len(paragraphs), "month": month.name}
    replace_file(out / "text" / "counts.json", json.dumps(counts).encode() + b"\n")
    return path


def prepare_data(out: Path, text: Path, seed: int) -> PreparedData:
    folder = out / "data"
    try:
        return PreparedData.open(folder)
    except DataError:
        chosen = PreprocessSettings(lexicon="open", seed=seed, force=True)  # a torn folder is ours, too
        preprocess("peoples-daily", text, folder, chosen)
    return PreparedData.open(folder)


def prepare_graph(out: Path, data: PreparedData) -> SememeGraph:
    path = out / "data.graph"
    if not path.is_file():
        build_sememe_graph(["open"], data.folder, path)
    graph = SememeGraph.load(path)
    graph.check_vocabulary(data.vocabulary)
    return graph


def epochs_of(run: Path) -> list[EpochReport]:
    """The finished epochs of a run, those of earlier calls included."""
    lines = (json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    epochs = [line for line in lines if line.pop("kind") == "EpochReport"]
    return [EpochReport(**epoch) for epoch in epochs]


def model_row(name: str, report: TrainReport, measured: PerplexityReport, epochs: Sequence[EpochReport]) -> ModelRow:
    seconds = sum(epoch.seconds for epoch in epochs)
    return ModelRow(
        name=name,
        run=report.run,
        parameters=report.parameters,
        epochs=report.epochs,
        best_epoch=report.best_epoch,
        ended_because=report.finished,
        valid_by_epoch=tuple(epoch.valid["perplexity"] for epoch in epochs),
        best_valid=min(epoch.valid["perplexity"] for epoch in epochs),
        test_perplexity=measured.perplexity,
        per_character=measured.per_character,
        bits_per_byte=measured.bits_per_byte,
        tokens=measured.tokens,
        training_seconds=seconds,
        tokens_per_second=sum(epoch.seconds * epoch.tokens_per_second for epoch in epochs) / seconds,
        signature=measured.signature,
    )


def text_summary(text: Path, data: PreparedData) -> TextSummary:
    counts = json.loads((text.parent / "counts.json").read_text(encoding="utf-8"))
    splits = data.signature.splits
    return TextSummary(
        **counts,
        tokens={name: split.tokens for name, split in splits.items()},
        vocabulary=len(data.vocabulary),
        unknown_rate=sum(split.unknown for split in splits.values()) / sum(split.tokens for split in splits.values()),
    )
