"""``sememekit evaluate-ppl RUN --overlay FILE``: what a change of annotation does to a trained model, without training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sememekit.analysis.evaluate_ppl import TextReading, given_graph, measure_ppl
from sememekit.analysis.evaluate_several import Kind, PerplexityComparison, comparison, kinds_by
from sememekit.analysis.text_nats import TextNats
from sememekit.analysis.word_groups import Grouping
from sememekit.errors import GraphError
from sememekit.progress import Progress, silent
from sememekit.runs.run import Run
from sememekit.sememes.overlay import ChangedSense
from sememekit.sememes.statistics import counts_of_added


class OverlayComparison(PerplexityComparison):
    """What ``evaluate-ppl --overlay`` found: the run as it was trained, then with the changes.

    Attributes:
        changes: the senses that differ.
        sememe_counts: sememe that was added -> how often the words that had it before occur in the text that the vocabulary was
            counted in.
    """

    overlay: str
    changes: tuple[ChangedSense, ...]
    sememe_counts: dict[str, int]

    @property
    def absent(self) -> tuple[str, ...]:
        """Changed words that the text does not have."""
        return tuple(row.name for row in self.rows if row.grouping == "change" and not row.tokens)


def evaluate_overlay(
    run: Run,
    overlay: Path,
    *,
    seed: int = 0,
    progress: Progress = silent,
    split: str = "test",
    by: Sequence[Grouping] = (),
    data: Path | None = None,
    graph: Path | None = None,
    batch_size: int | None = None,
) -> OverlayComparison:
    """The perplexity of the words that an overlay changes and of all others, before and after, on the same predictions.

    All weights stay as they were trained: the gate and the weights of bases of each sememe, the bias of each sense. What
    changes is which gates a sense is multiplied by, C of its new number of sememes, and so the normaliser of every prediction.
    A sememe encoder reads the new sum of the sememes of the word.

    Args:
        overlay: a file that ``lookup --change`` wrote.
        seed: of the bootstrap.
        split, by, data, graph, batch_size, progress: as ``evaluate_ppl`` takes them; the graph for ``by`` is that before.

    Raises:
        ConfigError: the model reads no graph, was built from one once, or never trained a sememe that is added.
        CheckpointError, DataError, GraphError: as ``evaluate_ppl`` and ``sememes.overlay.apply_changes``.
    """
    sides = [run, run.with_overlay(overlay)]
    changes = sides[1].changed_senses
    before = run.graph
    if before is None:  # the overlay was refused already
        raise GraphError(f"{run} has no sememe graph")
    used = before if graph is None else given_graph(graph, run)
    prepared = run.data(data)
    reports, texts = [], []
    for loaded in sides:
        texts.append(TextNats(prepared, split))
        reports.append(measure_ppl(loaded, TextReading(split, data, batch_size), progress=progress, found=texts[-1]))
    kinds = [*_changed_kinds(changes, before.words), *(kind for one in by for kind in kinds_by(one, run.train_counts, used))]
    return OverlayComparison(
        **dict(comparison(reports, texts, kinds, used, seed)),
        overlay=str(overlay),
        changes=changes,
        sememe_counts=counts_of_added(before, run.vocabulary.counts, changes, overlay, run.path),
    )


def _changed_kinds(changes: Sequence[ChangedSense], words: Sequence[str]) -> list[Kind]:
    names = list(dict.fromkeys(change.word for change in changes))
    array = np.array(words, dtype=object)
    every = np.isin(array, names)
    together: list[Kind] = [("change", f"the {len(names)} changed words", every, True)] if len(names) > 1 else []
    return [
        *(("change", name, array == name, False) for name in names),
        *together,
        ("change", "all other words", ~every, False),
    ]
