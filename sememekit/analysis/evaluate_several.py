"""``sememekit evaluate-ppl RUN RUN2`` and ``--overlay``: perplexities of one text side by side, with paired intervals."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sememekit.analysis.evaluate_ppl import PerplexityReport, given_graph, report_of
from sememekit.analysis.scored_runs import RunText, TextReading, open_texts, score_texts
from sememekit.analysis.signatures import of_text
from sememekit.analysis.word_groups import WordKind, kinds_of, reads_graph
from sememekit.config import Record
from sememekit.errors import ConfigError, GraphError
from sememekit.measure import Tally
from sememekit.measure.intervals import RESAMPLES, Interval, interval, ratio_difference_intervals
from sememekit.progress import Progress, silent
from sememekit.protocols.adaptation import Adaptation
from sememekit.runs.run import Run
from sememekit.sememes import SememeGraph
from sememekit.sememes.overlay import ChangedSense
from sememekit.sememes.statistics import counts_of_added


class PerplexityChange(Record):
    """A model against the first one of a comparison, on the same predictions.

    Attributes:
        perplexity: its perplexity minus that of the first; None where there is nothing to compare.
        nats: the difference of the mean nats with its 95 % paired bootstrap interval over sentences.
        relative: the same as a change of the perplexity, exp(difference of nats) - 1: -0.05 is 5 % less.
        excludes_zero: whether the interval leaves zero out.
    """

    perplexity: float | None
    nats: Interval
    relative: Interval
    excludes_zero: bool | None


class ComparedWords(Record):
    """The predictions of one kind of words under every model.

    Attributes:
        grouping: "all", "senses", "sememes" or "change".
        tokens: predictions of them.
        share: of all predictions, 0 to 1.
        perplexities: of each model; None where no target is of this kind.
        changes: of each model but the first, against the first.
        of_which: whether these targets are counted in another row of the grouping, too.
    """

    grouping: str
    name: str
    tokens: int
    share: float
    perplexities: tuple[float | None, ...]
    changes: tuple[PerplexityChange, ...]
    of_which: bool


class PerplexityComparison(Record):
    """Report of ``evaluate-ppl`` on several runs.

    Attributes:
        reports: what it finds of each run by itself, in the order given.
        signature: that all of them have, without how a lattice sums its paths, which each report has.
        graph: fingerprint of the sememe graph that words are grouped by, or None.
        unit: what was resampled, in words; ``units`` is how many there are and ``resamples`` how often they were drawn.
        rows: the whole text first, then the groups that were asked for.
    """

    reports: tuple[PerplexityReport, ...]
    split: str
    signature: str
    graph: str | None
    unit: str
    units: int
    resamples: int
    rows: tuple[ComparedWords, ...]


class OverlayComparison(PerplexityComparison):
    """Report of ``evaluate-ppl --overlay``: the run as it was trained, then with the changes.

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


def compare_ppl(
    runs: Sequence[Run],
    *,
    split: str = "test",
    by: Sequence[str] = (),
    data: Path | None = None,
    graph: Path | None = None,
    batch_size: int | None = None,
    adaptation: Adaptation | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> PerplexityComparison:
    """Perplexities of several models on one text, and by how much each differs from the first.

    Words are grouped by one graph for all: the given one, otherwise that of the runs, of which some may have none.

    Args:
        runs: two or more.
        seed: of the bootstrap.
        split, by, data, graph, batch_size, adaptation, progress: as ``evaluate_ppl`` takes them.

    Raises:
        ConfigError: one run, runs whose signatures or dtypes differ, or graphs that differ where words are grouped.
        CheckpointError, DataError, GraphError: as ``evaluate_ppl``.
    """
    if len(runs) < 2:
        raise ConfigError("a comparison takes two runs or more: sememekit evaluate-ppl RUN RUN2")
    text = TextReading(split, data, batch_size, adaptation)
    texts = open_texts(runs, text, "evaluate-ppl RUN RUN2", grouped=bool(by))
    used = _common_graph(runs, graph) if any(map(reads_graph, by)) else None
    kinds = kinds_of(by, runs, used)
    score_texts(texts, kinds, progress)
    reports = [report_of(one, used or one.run.graph, kinds) for one in texts]
    return PerplexityComparison(**_side_by_side(texts, reports, kinds, used, seed))


def evaluate_overlay(
    run: Run,
    overlay: Path,
    *,
    seed: int = 0,
    progress: Progress = silent,
    split: str = "test",
    by: Sequence[str] = (),
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
    after = run.with_overlay(overlay)
    changes, before = after.changed_senses, run.graph
    if before is None:  # the overlay was refused already
        raise GraphError(f"{run} has no sememe graph")
    used = before if graph is None else given_graph(graph, run)
    texts = open_texts([run, after], TextReading(split, data, batch_size), "evaluate-ppl --overlay", grouped=True)
    kinds = [*_changed_kinds(changes, before.words), *kinds_of(by, [run], used)]
    score_texts(texts, kinds, progress)
    return OverlayComparison(
        **_side_by_side(texts, [report_of(one, one.run.graph) for one in texts], kinds, used, seed),
        overlay=str(overlay),
        changes=changes,
        sememe_counts=counts_of_added(before, run.vocabulary.counts, changes, overlay, run.path),
    )


def _changed_kinds(changes: Sequence[ChangedSense], words: Sequence[str]) -> list[WordKind]:
    names = list(dict.fromkeys(change.word for change in changes))
    array = np.array(words, dtype=object)
    every = np.isin(array, names)
    together = [WordKind("change", f"the {len(names)} changed words", every, True)] if len(names) > 1 else []
    return [
        *(WordKind("change", name, array == name) for name in names),
        *together,
        WordKind("change", "all other words", ~every),
    ]


def _side_by_side(
    texts: Sequence[RunText],
    reports: Sequence[PerplexityReport],
    kinds: Sequence[WordKind],
    graph: SememeGraph | None,
    seed: int,
) -> dict[str, Any]:
    """The fields of a comparison: the whole text, then each kind of words; sentences are drawn once for all rows."""
    listed = [("all", "all words", False), *((kind.grouping, kind.name, kind.of_which) for kind in kinds)]
    sums = [[one.sums.units(place) for one in texts] for place in range(len(listed))]
    estimates = iter(ratio_difference_intervals([(side, sides[0]) for sides in sums for side in sides[1:]], seed=seed))
    total, rows = reports[0].tokens, []
    for (grouping, name, of_which), sides in zip(listed, sums, strict=True):
        tallies = [Tally(float(nats.sum()), int(counts.sum())) for nats, counts in sides]
        first, *others = perplexities = [tally.perplexity if tally.count else None for tally in tallies]
        rows.append(
            ComparedWords(
                grouping=grouping,
                name=name,
                tokens=tallies[0].count,
                share=tallies[0].count / total,
                perplexities=tuple(perplexities),
                changes=tuple(_change(first, other, interval(next(estimates))) for other in others),
                of_which=of_which,
            )
        )
    return {
        "reports": tuple(reports),
        "split": reports[0].split,
        "signature": of_text(reports[0].signature),
        "graph": None if graph is None else graph.fingerprint,
        "unit": texts[0].scoring.unit,
        "units": texts[0].scoring.num_units,
        "resamples": RESAMPLES,
        "rows": tuple(rows),
    }


def _change(first: float | None, other: float | None, nats: Interval) -> PerplexityChange:
    relative = {name: None if value is None else math.expm1(value) for name, value in nats.model_dump().items()}
    return PerplexityChange(
        perplexity=None if first is None or other is None else other - first,
        nats=nats,
        relative=Interval(**relative),
        excludes_zero=nats.leaves_zero_out,
    )


def _common_graph(opened: Sequence[Run], given: Path | None) -> SememeGraph | None:
    if given is not None:
        return given_graph(given, opened[0])
    own = {str(loaded.path): loaded.graph for loaded in opened if loaded.graph is not None}
    if len({graph.fingerprint for graph in own.values()}) > 1:
        raise ConfigError(
            f"--by: {' and '.join(own)} have different sememe graphs, so that their groups are not the same words; give the "
            f"one to group by: --graph {next(iter(own))}/graph.json"
        )
    return next(iter(own.values()), None)
