"""``sememekit evaluate-ppl RUN RUN2``: the perplexities of several models on one text, with paired intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sememekit.analysis.evaluate_ppl import PerplexityReport, TextReading, columns_of, given_graph, measure_ppl
from sememekit.analysis.signatures import PAIRS, SENTENCES, of_text, perplexity_signature
from sememekit.analysis.text_nats import SentenceNats, TextNats
from sememekit.analysis.word_groups import Grouping, reads_counts, reads_graph, word_kinds
from sememekit.config import Record
from sememekit.errors import ConfigError
from sememekit.measure import Tally
from sememekit.measure.intervals import RESAMPLES, Interval, interval, ratio_difference_intervals
from sememekit.progress import Progress, silent
from sememekit.protocols.adaptation import Adaptation
from sememekit.runs.run import Run
from sememekit.sememes import SememeGraph
from sememekit.tasks.base import SentencePredictor, WordPredictor, declares, require
from sememekit.tasks.writing import TextWriter

Kind = tuple[str, str, npt.NDArray[np.bool_], bool]
"""Grouping, name, (V,) words of this kind, and whether other rows count them, too."""


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
    """What ``evaluate-ppl`` found of several runs.

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


def compare_ppl(
    runs: Sequence[Run],
    *,
    split: str = "test",
    by: Sequence[Grouping] = (),
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
    check_all_comparable(runs, text)
    used = _common_graph(runs, graph) if any(map(reads_graph, by)) else None
    reports, texts = score_all(runs, text, by, used, progress)
    kinds = [kind for one in by for kind in kinds_by(one, _common_counts(runs, one), used)]
    return comparison(reports, texts, kinds, used, seed)


def check_all_comparable(runs: Sequence[Run], text: TextReading, command: str = "evaluate-ppl RUN RUN2") -> None:
    """Refuse, before a text is read, runs whose figures would not be of the same text by the same rule.

    Raises:
        ConfigError: signatures or dtypes that differ, or a run that gives texts no probability.
    """
    first, *others = (_signed(loaded, text, command) for loaded in runs)
    for other in others:
        check_comparable(first, other)


def score_all(
    runs: Sequence[Run],
    text: TextReading,
    by: Sequence[Grouping] = (),
    graph: SememeGraph | None = None,
    progress: Progress = silent,
) -> tuple[list[PerplexityReport], list[TextNats | SentenceNats]]:
    """What ``evaluate-ppl`` finds of each run, and its nats sentence by sentence; the sentences are the same for all.

    Raises:
        ConfigError: signatures that differ.
    """
    reports: list[PerplexityReport] = []
    found: list[TextNats | SentenceNats] = []
    for loaded in runs:
        data, task = loaded.data(text.data), loaded.task
        if declares(task, SentencePredictor):
            found.append(SentenceNats(task.sentence_lengths(data, text.split)))
        else:
            found.append(TextNats(data, text.split))
        reports.append(measure_ppl(loaded, text, by, graph, progress, found[-1]))
        check_comparable(*((one.run, f"{of_text(one.signature)}|dtype:{one.dtype}") for one in (reports[0], reports[-1])))
    return reports, found


def _signed(loaded: Run, text: TextReading, command: str) -> tuple[str, str]:
    """The folder of a run, and its signature as far as it is known before the text is read, with the dtype. Raises ConfigError:
    a task that gives words no probability.
    """
    prepared, task = loaded.data(text.data), loaded.task
    num_tokens, reading = len(prepared.tokens(text.split)), None
    if declares(task, TextWriter):
        columns, reading = 1, PAIRS
    elif declares(task, SentencePredictor):
        columns, reading = 0, SENTENCES
    else:
        columns = columns_of(require(task, WordPredictor, command), num_tokens, text)
    signature = perplexity_signature(prepared, text.split, num_tokens, columns, reading)
    return str(loaded.path), f"{signature}|dtype:{loaded.settings.dtype}"


def check_comparable(first: tuple[str, str], other: tuple[str, str]) -> None:
    """Refuse two runs whose figures are not of the same text by the same rule.

    Args:
        first, other: folder and signature with dtype.

    Raises:
        ConfigError: naming all that differs, and for columns and dtype the option that makes them agree.
    """
    sides = [dict(part.split(":", 1) for part in signature.split("|")) for _, signature in (first, other)]
    names = [name for name in {**sides[0], **sides[1]} if sides[0].get(name) != sides[1].get(name)]
    if not names:
        return
    differing = "; ".join(f"{name} is {sides[0].get(name, 'none')} and {sides[1].get(name, 'none')}" for name in names)
    options = {"columns": "--batch-size", "dtype": "--dtype"}
    advice = f"evaluate each by itself: sememekit {'eval' if 'metric' in sides[0] else 'evaluate-ppl'} RUN"
    if "state" in names and SENTENCES["state"] in (sides[0]["state"], sides[1]["state"]):
        advice += "; beside lattices belongs a plain LSTM over sentences: --task lattice --set task.longest_chunk=1"
    if options.keys() >= set(names):
        advice = "add " + " ".join(f"{options[name]} {sides[0][name]}" for name in names)
    raise ConfigError(f"{first[0]} and {other[0]} cannot be compared in one table: {differing}; {advice}")


def comparison(
    reports: Sequence[PerplexityReport],
    texts: Sequence[TextNats | SentenceNats],
    kinds: Iterable[Kind],
    graph: SememeGraph | None,
    seed: int,
) -> PerplexityComparison:
    """The table of what was scored: the whole text, then each kind of words; sentences are drawn once for all rows."""
    listed = [("all", "all words", None, False), *kinds]
    sums = [[text.sums(words) for text in texts] for _, _, words, _ in listed]
    pairs = [(side, sides[0]) for sides in sums for side in sides[1:]]
    estimates = iter(ratio_difference_intervals(pairs, seed=seed))
    total, rows = reports[0].tokens, []
    for (grouping, name, _, of_which), sides in zip(listed, sums, strict=True):
        tallies = [Tally(float(nats.sum()), int(counts.sum())) for nats, counts in sides]
        perplexities = tuple(tally.perplexity if tally.count else None for tally in tallies)
        changes = []
        for value in perplexities[1:]:
            nats = interval(next(estimates))
            between = None if value is None or perplexities[0] is None else value - perplexities[0]
            apart = None if nats.low is None or nats.high is None else nats.low > 0 or nats.high < 0
            changes.append(PerplexityChange(perplexity=between, nats=nats, relative=_relative(nats), excludes_zero=apart))
        rows.append(
            ComparedWords(
                grouping=grouping,
                name=name,
                tokens=tallies[0].count,
                share=tallies[0].count / total,
                perplexities=perplexities,
                changes=tuple(changes),
                of_which=of_which,
            )
        )
    return PerplexityComparison(
        reports=tuple(reports),
        split=reports[0].split,
        signature=of_text(reports[0].signature),
        graph=None if graph is None else graph.fingerprint,
        unit=texts[0].unit,
        units=len(sums[0][0][0]),
        resamples=RESAMPLES,
        rows=tuple(rows),
    )


def _relative(nats: Interval) -> Interval:
    """A change of mean nats as a change of the perplexity; no value stays none."""
    values = {name: None if value is None else math.expm1(value) for name, value in nats.model_dump().items()}
    return Interval(**values)


def kinds_by(by: Grouping, train_counts: npt.NDArray[np.int64], graph: SememeGraph | None) -> list[Kind]:
    """The kinds of words of a grouping, with its name."""
    return [(by, name, words, of_which) for name, words, of_which in word_kinds(by, train_counts, graph)]


def _common_counts(runs: Sequence[Run], by: Grouping) -> npt.NDArray[np.int64]:
    """Return the training counts of all runs, (V,). Raises ConfigError where words are sorted by counts that differ."""
    counts = runs[0].train_counts
    for other in runs[1:]:
        if reads_counts(by) and not np.array_equal(counts, other.train_counts):
            raise ConfigError(
                f"--by {by}: {runs[0].path} and {other.path} were trained on texts with other counts of words, so that their "
                "bands are not the same words; measure each alone"
            )
    return counts


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
