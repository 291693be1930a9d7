"""``sememekit evaluate-ppl``: the perplexity of a text under trained models, by one protocol, with paired intervals."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sememekit.analysis.scored_runs import RunText, TextReading, of_text, open_texts, score_texts
from sememekit.analysis.word_groups import WordKind, changed_kinds, kinds_of, read_labels, reads_graph
from sememekit.config import Record
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError
from sememekit.measure import Perplexity, Tally, perplexity_of
from sememekit.measure.intervals import RESAMPLES, Interval, ratio_difference_intervals
from sememekit.measure.sides import SCALES
from sememekit.progress import Progress, silent
from sememekit.protocols.adaptation import Adaptation, AdaptationReport
from sememekit.runs.run import OfRun, Run, Which
from sememekit.runs.writing import words_read
from sememekit.sememes import SememeGraph
from sememekit.sememes.overlay import ChangedSense
from sememekit.sememes.statistics import counts_of_added


class GroupPerplexity(Record):
    """Perplexity of the target words of one kind: exp of the mean nats over those targets alone."""

    name: str
    perplexity: float | None
    """Perplexity of these targets; None if no target is of this kind."""
    nats: float
    tokens: int
    share: float
    """Share of all predicted tokens, 0 to 1."""
    of_which: bool = False
    """True if these targets are also counted in another row; all other rows add up to the whole text."""


class PerplexityReport(OfRun, Perplexity):
    """Report of ``evaluate-ppl``; see docs/perplexity.md."""

    split: str
    data: str
    size_of: str
    """The text whose size divides ``per_character`` and ``bits_per_byte``: ``source`` is the text before normalisation,
    ``tokens`` the words as given, with special tokens such as ``<unk>`` spelled out."""
    graph: str | None
    """Fingerprint of the sememe graph of the run, or of the graph given for grouping."""
    dtype: str
    signature: str
    """One line; perplexities with equal signatures can be compared."""
    groups: dict[str, tuple[GroupPerplexity, ...]] | None = None
    """For each requested grouping ("senses", "sememes", ...) a row for each kind of target word."""
    parts: dict[str, float] | None = None
    """Perplexity of each term of the loss by its name, such as "cluster" and "in_cluster", where the decoder has terms and the
    model stays as it was trained; their product is the perplexity."""
    adaptation: AdaptationReport | None = None
    """Settings of the cache or dynamic evaluation, if one was used."""
    marginal: str | None = None
    """For lattice models, the segmentations that are summed, and the rule that merges states."""
    unigram: float | None = None
    """Baseline: perplexity of the add-one unigram model of the training text; None if the data have no training text."""
    cut_sources: int | None = None
    """For pairs, the number of sources with more words than the model reads (``task.read_words``)."""


def evaluate_ppl(
    run: Path | Run,
    *,
    split: str = "test",
    by: Sequence[str] = (),
    data: Path | None = None,
    graph: Path | None = None,
    labels: Path | None = None,
    batch_size: int | None = None,
    device: str = "auto",
    dtype: str | None = None,
    which: Which = "best",
    adaptation: Adaptation | None = None,
    progress: Progress = silent,
) -> PerplexityReport:
    """Perplexity of a text under a trained model.

    Every token of the split except the first is predicted once, in ``batch_size`` columns. The state starts at zero and is
    carried on. Special tokens and ``<unk>`` count like any other word.

    ``by`` groups target words by ``senses`` and ``sememes`` (Tables 2 and 3, Gu et al. 2018), ``frequency`` or
    ``sememes-at-frequency``, and sentences by ``labels`` (docs/perplexity.md). ``batch_size`` None is the batch size of the
    training, or 1 with an ``adaptation`` (cache, dynamic evaluation, or both). The run is not changed; dynamic evaluation
    stores gradient statistics in its folder. Other arguments as ``sememekit evaluate-ppl --help``. Raises ConfigError: the task
    predicts no words, or ``by`` is given and there is no graph. Raises DataError: the data are absent, lack the split, or have
    another vocabulary. Raises GraphError: the graph is of another vocabulary."""
    loaded = Run.open(run, which=which, device=device, dtype=dtype)
    texts = open_texts([loaded], TextReading(split, data, batch_size, adaptation), "evaluate-ppl", grouped=bool(by))
    used = _common_graph([loaded], graph)
    kinds = kinds_of(by, [loaded], used, read_labels(labels, by, texts[0].data, split, texts[0].scoring))
    score_texts(texts, kinds, progress)
    return report_of(texts[0], used, kinds)


def report_of(scored: RunText, graph: SememeGraph | None, kinds: Sequence[WordKind] = ()) -> PerplexityReport:
    """Return the report of one scored text, with a table for each grouping of the ``kinds``. Figures per character and byte
    divide by the size of the whole split. Pairs lack these figures, since the size of their targets is unknown."""
    loaded, data, scoring, sums = scored.run, scored.data, scored.scoring, scored.sums
    split, total, lengths = scored.text.split, sums.total, scoring.source_lengths
    size = data.signature.splits[split]
    groups: dict[str, tuple[GroupPerplexity, ...]] = {}
    for place, kind in enumerate(kinds, start=1):
        nats, counts = sums.units[place]
        tally = sums.of(kind.words) if kind.units is None else Tally(float(nats.sum()), int(counts.sum()))
        row = GroupPerplexity(
            name=kind.name,
            perplexity=tally.perplexity if tally.count else None,
            nats=tally.nats,
            tokens=tally.count,
            share=tally.count / total.count,
            of_which=kind.of_which,
        )
        groups[kind.grouping] = (*groups.get(kind.grouping, ()), row)
    return PerplexityReport(
        **dict(perplexity_of(total, *((size.characters, size.bytes) if lengths is None else ()))),
        **loaded.of_run,
        split=split,
        data=str(data.folder),
        size_of=data.signature.size_of,
        graph=graph.fingerprint if graph is not None else None,
        dtype=loaded.settings.dtype,
        signature=scored.signature,
        groups=groups or None,
        parts=sums.parts,
        adaptation=scored.adaptation,
        marginal=scoring.reading.get("marginal"),
        unigram=baseline_of(loaded, data, split, "perplexity"),
        cut_sources=None if lengths is None else sum(words_read(loaded, length) < length for length in lengths.tolist()),
    )


def baseline_of(run: Run, data: PreparedData, split: str, metric: str) -> float | None:
    """Return the metric of the unigram model of train, or of its most frequent label; None if the data have no train."""
    return run.task.unigram_baseline(data, split).get(metric) if "train" in data.splits else None


class PerplexityChange(Record):
    """Difference of a model from the first one of a comparison, on the same predictions."""

    perplexity: float | None
    """Its perplexity minus the first model's; None if there is nothing to compare."""
    nats: Interval
    """The difference of the mean nats, with its 95 % interval by a paired bootstrap over sentences."""
    relative: Interval
    """The relative change of the perplexity, exp(difference of nats) - 1: -0.05 is 5 % less."""
    excludes_zero: bool | None
    """True if the interval excludes zero."""


class ComparedWords(Record):
    """The predictions of one kind of words under every model."""

    grouping: str
    """"all", "senses", "sememes" or "change"."""
    name: str
    tokens: int
    share: float
    """The share of all predictions, 0 to 1."""
    perplexities: tuple[float | None, ...]
    """A perplexity for each model; None if no target is of this kind."""
    changes: tuple[PerplexityChange, ...]
    """For each model but the first, its difference from the first."""
    of_which: bool
    """True if these targets are also counted in another row of the grouping."""


class PerplexityComparison(Record):
    """Report of ``evaluate-ppl`` on several runs."""

    reports: tuple[PerplexityReport, ...]
    """The report of each run alone, in the order given."""
    split: str
    signature: str
    """Signature of all reports; the rule by which a lattice sums its paths is only in each report."""
    graph: str | None
    """Fingerprint of the sememe graph that words are grouped by, or None."""
    unit: str
    """Name of the unit that the bootstrap draws; ``units`` is their number, ``resamples`` the number of draws."""
    units: int
    resamples: int
    rows: tuple[ComparedWords, ...]
    """The whole text first, then the groups that were asked for."""


class OverlayComparison(PerplexityComparison):
    """Report of ``evaluate-ppl --overlay``: the run as it was trained, then with the changes."""

    overlay: str
    changes: tuple[ChangedSense, ...]
    sememe_counts: dict[str, int]
    """Added sememe -> count of the words that have it, in the text of the vocabulary."""

    @property
    def absent(self) -> tuple[str, ...]:
        """Return the changed words that do not occur in the text."""
        return tuple(row.name for row in self.rows if row.grouping == "change" and not row.tokens)


def compare_ppl(
    runs: Sequence[Run],
    text: TextReading | None = None,
    *,
    overlay: Path | None = None,
    by: Sequence[str] = (),
    graph: Path | None = None,
    labels: Path | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> PerplexityComparison:
    """Compare the perplexities of several models on one text, or of one run with and without an ``overlay``; differences are
    from the first, and all rows share the bootstrap draws.

    One graph groups the words for all models (default: the graph of the runs; with an overlay, before the change).

    With an overlay, a file that ``lookup --change`` wrote, all weights stay as they were trained (docs/lexicons.md has what
    changes). The result is an ``OverlayComparison``.

    Raises ConfigError: one run, runs with different signatures or dtypes, or groups by different graphs; for an overlay, the
    model reads no graph, read it only when it was built, or never trained an added sememe. Raises CheckpointError, DataError,
    GraphError: as ``evaluate_ppl`` and ``sememes.overlay.apply_changes``."""
    first, changes, command, text = runs[0], tuple[ChangedSense, ...](), "evaluate-ppl RUN RUN2", text or TextReading()
    if overlay is not None:
        runs, command = [first, first.with_overlay(overlay)], "evaluate-ppl --overlay"
        changes = runs[1].changed_senses
    if len(runs) < 2:
        raise ConfigError("a comparison takes two runs or more: sememekit evaluate-ppl RUN RUN2")
    texts = open_texts(runs, text, command, grouped=bool(by or changes))
    used = _common_graph([first] if changes else runs, graph) if changes or any(map(reads_graph, by)) else None
    kinds = kinds_of(by, runs, used, read_labels(labels, by, texts[0].data, text.split, texts[0].scoring))
    if changes and first.graph is not None:
        kinds = [*changed_kinds(changes, first.graph.words), *kinds]
    score_texts(texts, kinds, progress)
    reports = [report_of(one, one.run.graph) if changes else report_of(one, used or one.run.graph, kinds) for one in texts]
    listed: list[dict[str, Any]] = [{"grouping": "all", "name": "all words", "of_which": False}]
    listed += [{"grouping": kind.grouping, "name": kind.name, "of_which": kind.of_which} for kind in kinds]
    sums = [[one.sums.units[place] for one in texts] for place in range(len(listed))]
    estimates = iter(ratio_difference_intervals([(side, sides[0]) for sides in sums for side in sides[1:]], seed=seed))
    total, rows = reports[0].tokens, []
    for words, sides in zip(listed, sums, strict=True):
        tallies = [Tally(float(nats.sum()), int(counts.sum())) for nats, counts in sides]
        own, *others = perplexities = [tally.perplexity if tally.count else None for tally in tallies]
        found, apart = tuple(perplexities), tuple(_change(own, other, next(estimates)) for other in others)
        count = tallies[0].count
        rows.append(ComparedWords(**words, tokens=count, share=count / total, perplexities=found, changes=apart))
    compared = PerplexityComparison(
        reports=tuple(reports),
        split=text.split,
        signature=of_text(reports[0].signature),
        graph=None if used is None else used.fingerprint,
        unit=texts[0].scoring.unit,
        units=texts[0].scoring.num_units,
        resamples=RESAMPLES,
        rows=tuple(rows),
    )
    if overlay is None or first.graph is None:
        return compared
    counts = counts_of_added(first.graph, first.vocabulary.counts, changes, overlay, first.path)
    return OverlayComparison(**dict(compared), overlay=str(overlay), changes=changes, sememe_counts=counts)


def _change(first: float | None, other: float | None, nats: Interval) -> PerplexityChange:
    apart, relative = None if first is None or other is None else other - first, SCALES["perplexity"].shown(nats)
    return PerplexityChange(perplexity=apart, nats=nats, relative=relative, excludes_zero=nats.leaves_zero_out)


def _common_graph(opened: Sequence[Run], given: Path | None) -> SememeGraph | None:
    """Return the given graph, or the runs'. Raises GraphError: it is of another vocabulary, or cannot be used."""
    if given is not None:
        graph = SememeGraph.load(given)
        graph.check_vocabulary(opened[0].vocabulary)
        return graph
    own = {str(loaded.path): loaded.graph for loaded in opened if loaded.graph is not None}
    if len({graph.fingerprint for graph in own.values()}) > 1:
        raise ConfigError(
            f"--by: {' and '.join(own)} have different sememe graphs, so that their groups are not the same words; give the "
            f"one to group by: --graph {next(iter(own))}/graph.json"
        )
    return next(iter(own.values()), None)
