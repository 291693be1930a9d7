"""``sememekit evaluate-ppl`` and ``eval``: how good a trained model is, by one protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from sememekit.analysis.judge_writing import WrittenReport, judge_writing
from sememekit.config import Record
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, GraphError
from sememekit.measure import PROTOCOL_VERSION, Perplexity, Tally, perplexity_of
from sememekit.measure.classes import Accuracy
from sememekit.progress import Progress
from sememekit.protocols.adaptation import Adaptation, AdaptationReport, make_reader
from sememekit.runs.run import Run, Which
from sememekit.sememes import SememeGraph
from sememekit.tasks.base import LabelPredictor, SentencePredictor, WordPredictor, declares, require
from sememekit.tasks.vectors import VectorCoverage
from sememekit.tasks.writing import TextWriter

Grouping = Literal["senses", "sememes"]

SEMEME_BINS = ((1, 2), (2, 4), (4, 7), (7, 14))
"""[from, to) of Table 3, Gu et al. 2018, in sememes a sense."""


class GroupPerplexity(Record):
    """Perplexity of the target words of one kind: exp of the mean nats over those targets alone.

    Attributes:
        name: which words.
        perplexity, nats, tokens: as in the whole report; the perplexity is None where no target is of this kind.
        share: tokens of all predicted tokens, 0 to 1.
        of_which: whether these targets are counted in another row, too; the other rows together are the whole text.
    """

    name: str
    perplexity: float | None
    nats: float
    tokens: int
    share: float
    of_which: bool = False


class PerplexityReport(Perplexity):
    """What ``evaluate-ppl`` found; see docs/perplexity.md.

    Attributes:
        run, checkpoint: the run folder and its snapshot.
        split: which part of the data.
        data: the prepared-data folder.
        size_of: which text ``per_character`` and ``bits_per_byte`` divide by: ``source`` is the text before normalisation,
            ``tokens`` is the words as given, ``<unk>`` and the like spelled out.
        graph: fingerprint of the sememe graph of the run, or of the one that was given for grouping.
        dtype: of matrix products.
        signature: one line; numbers whose signatures are equal can be compared.
        groups: "senses", "sememes" or both, as far as asked for: a row for each kind of target word.
        parts: perplexity of each term of the loss by its name, such as "cluster" and "in_cluster", where the decoder has terms
            and the model stays as it was trained; their product is the perplexity.
        adaptation: how a cache or dynamic evaluation read the text, where that was asked for.
        marginal: for models of whole sentences, what is summed over and by which rule states merge.
    """

    run: str
    checkpoint: str
    split: str
    data: str
    size_of: str
    graph: str | None
    dtype: str
    signature: str
    groups: dict[Grouping, tuple[GroupPerplexity, ...]] | None = None
    parts: dict[str, float] | None = None
    adaptation: AdaptationReport | None = None
    marginal: str | None = None


class MetricsReport(Record):
    """What ``eval`` found; as JSON one flat object, each metric under its usual name.

    Attributes:
        run, checkpoint: the run folder and its snapshot.
        split: which part of the data.
        metrics: name -> value, as the task calls them.
    """

    model_config = ConfigDict(allow_inf_nan=True)

    run: str
    checkpoint: str
    split: str
    metrics: dict[str, float] = Field(default_factory=dict)

    @model_serializer(mode="wrap")
    def _flat(self, fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        table = fields(self)
        return table | table.pop("metrics")


class LabelMetrics(Accuracy, MetricsReport):
    """What ``eval`` found of a classifier.

    Attributes:
        nats: of the right labels, summed.
        labels: their names, in the order of the confusion matrix.
        vectors: how much of the text has a vector in the file that the model began with, where there was one.
    """

    nats: float
    labels: tuple[str, ...]
    vectors: VectorCoverage | None


class WrittenMetrics(WrittenReport, MetricsReport):
    """What ``eval`` found of a model that writes texts; ``metrics`` are the first of the ``scores``.

    Attributes:
        signature: of these metrics.
        perplexity_signature: as ``evaluate-ppl`` has it.
    """

    signature: str
    perplexity_signature: str


def evaluate_ppl(
    run: Path,
    *,
    split: str = "test",
    by: Sequence[Grouping] = (),
    data: Path | None = None,
    graph: Path | None = None,
    batch_size: int | None = None,
    device: str = "auto",
    dtype: str | None = None,
    which: Which = "best",
    adaptation: Adaptation | None = None,
    progress: Progress | None = None,
) -> PerplexityReport:
    """Perplexity of a text under a trained model.

    Every token of the split but the very first is predicted once; the state starts at zero and is carried on, in as many
    columns as ``batch_size`` says. Special tokens and ``<unk>`` count as any other word.

    Args:
        run: the run folder.
        split: of the prepared data.
        by: also by the number of senses of the target word (Table 2, Gu et al. 2018), by the mean number of sememes of its
            senses (Table 3), or both. Words without annotation have a row of their own.
        data: prepared data in place of that of the training; it must have the same vocabulary.
        graph: the sememe graph to group by, for runs that have none.
        batch_size: columns; 1 reads the text from end to end. None for what the run was trained with, or 1 for an adaptation.
        device: ``auto``, ``cpu`` or ``cuda``.
        dtype: of matrix products; None for that of the training.
        which: the best weights by validation, or the last.
        adaptation: a cache, dynamic evaluation, or both; they learn from the text, and the run stays as it is. Statistics of
            gradients that dynamic evaluation needs are kept in the run folder.
        progress: called with ("tokens", done, total), and with other stages of an adaptation.

    Raises:
        CheckpointError: no run, or a torn one.
        ConfigError: the task predicts no words, or ``by`` is given and there is no graph.
        DataError: the data are absent, lack the split, or have another vocabulary.
        GraphError: the graph is of another vocabulary.
    """
    loaded = Run.open(run, which=which, device=device, dtype=dtype)
    if declares(loaded.task, SentencePredictor):
        if by or adaptation is not None or batch_size is not None:
            raise ConfigError(
                f"{run} gives whole sentences a probability, so that words have no groups, and there is no stream to learn "
                "from and no columns; leave out --by, --cache, --dynamic and --batch-size"
            )
        return _sentence_perplexity(loaded, loaded.task, split, data, progress)
    if declares(loaded.task, TextWriter):
        if adaptation is not None or batch_size is not None:
            raise ConfigError(
                f"{run} reads pairs, so that there is no stream to learn from and no columns; leave out --cache, --dynamic and "
                "--batch-size"
            )
        used_graph = _graph_for(loaded, graph, by)
        return _pair_perplexity(loaded, loaded.task, split, data, by, used_graph, progress)
    task = require(loaded.task, WordPredictor, "evaluate-ppl")
    prepared = loaded.data(data)
    tokens = prepared.tokens(split)
    used_graph = _graph_for(loaded, graph, by)
    num_words = len(loaded.vocabulary)
    nats_of, count_of = np.zeros(num_words), np.zeros(num_words, dtype=np.int64)
    part_nats: dict[str, float] = {}
    usual = task.evaluation_batch_size if adaptation is None else 1
    columns = min(batch_size or usual, max(len(tokens) - 1, 1))
    show = progress or (lambda stage, done, total: None)
    with loaded.autocast():
        reader = make_reader(task, prepared, loaded.path, adaptation or Adaptation(), loaded.settings.dtype, columns, show)
        for scored in reader.chunks(tokens, columns, partial(show, "tokens")):
            targets = scored.targets[scored.mask].cpu().numpy()
            nats_of += np.bincount(targets, scored.nats[scored.mask].double().cpu().numpy(), minlength=num_words)
            count_of += np.bincount(targets, minlength=num_words)
            for name, part in scored.parts.items():
                part_nats[name] = part_nats.get(name, 0.0) + float(part[scored.mask].double().sum())
        adapted = None if adaptation is None else reader.report(tokens, columns, show)
    total = Tally(float(nats_of.sum()), int(count_of.sum()))
    if reader.dynamic is not None and not np.isfinite(total.perplexity):
        raise ConfigError(
            f"the steps of dynamic evaluation led away: the perplexity of {split} is not finite at a rate of "
            f"{reader.dynamic.rate:g}; use a smaller --set dynamic.rate, or find one with --tune"
        )
    size = prepared.signature.splits[split]
    return PerplexityReport(
        **perplexity_of(total, size.characters, size.bytes).model_dump(),
        run=str(run),
        checkpoint=loaded.snapshot,
        split=split,
        data=str(prepared.folder),
        size_of=prepared.signature.size_of,
        graph=used_graph.fingerprint if used_graph is not None else None,
        dtype=loaded.settings.dtype,
        signature=perplexity_signature(prepared, split, total.count, columns, reader.signature()),
        groups=_tables(used_graph, by, nats_of, count_of),
        parts={name: Tally(nats, total.count).perplexity for name, nats in part_nats.items()}
        if part_nats and adaptation is None
        else None,
        adaptation=adapted,
    )


def _sentence_perplexity(
    loaded: Run, task: SentencePredictor, split: str, data: Path | None, progress: Progress | None
) -> PerplexityReport:
    """Perplexity under a model of whole sentences: every token is predicted, end marks too, and no state is carried."""
    prepared = loaded.data(data)
    show = None if progress is None else partial(progress, "tokens")
    with loaded.autocast():
        nats = sum(float(part.sum()) for _, part in task.sentence_nats(prepared, split, show))
    total, size = Tally(nats, len(prepared.tokens(split))), prepared.signature.splits[split]
    reading = {"columns": "none", "state": "sentence", "marginal": task.marginal}
    return PerplexityReport(
        **perplexity_of(total, size.characters, size.bytes).model_dump(),
        run=str(loaded.path),
        checkpoint=loaded.snapshot,
        split=split,
        data=str(prepared.folder),
        size_of=prepared.signature.size_of,
        graph=loaded.graph.fingerprint if loaded.graph is not None else None,
        dtype=loaded.settings.dtype,
        signature=perplexity_signature(prepared, split, total.count, 0, reading),
        marginal=task.marginal,
    )


PAIRS = {"columns": "pairs", "state": "source", "eos": "predicted"}
"""In the signature of pairs: predicted are the words of targets and their ends, each from the source and those before it."""


def _pair_perplexity(
    loaded: Run,
    task: TextWriter,
    split: str,
    data: Path | None,
    by: Sequence[Grouping],
    graph: SememeGraph | None,
    progress: Progress | None,
) -> PerplexityReport:
    """Perplexity of the targets of pairs, ends included. Characters and bytes of targets alone are not known."""
    prepared = loaded.data(data)
    num_words = len(loaded.vocabulary)
    nats_of, count_of = np.zeros(num_words), np.zeros(num_words, dtype=np.int64)
    part_nats: dict[str, float] = {}
    with loaded.autocast():
        for scored in task.score_pairs(prepared, split, None if progress is None else partial(progress, "pairs")):
            targets = scored.targets.cpu().numpy()
            nats_of += np.bincount(targets, scored.nats.double().cpu().numpy(), minlength=num_words)
            count_of += np.bincount(targets, minlength=num_words)
            for name, part in scored.parts.items():
                part_nats[name] = part_nats.get(name, 0.0) + float(part.double().sum())
    total = Tally(float(nats_of.sum()), int(count_of.sum()))
    return PerplexityReport(
        **perplexity_of(total).model_dump(),
        run=str(loaded.path),
        checkpoint=loaded.snapshot,
        split=split,
        data=str(prepared.folder),
        size_of=prepared.signature.size_of,
        graph=graph.fingerprint if graph is not None else None,
        dtype=loaded.settings.dtype,
        signature=perplexity_signature(prepared, split, total.count, 1, PAIRS),
        groups=_tables(graph, by, nats_of, count_of),
        parts={name: Tally(nats, total.count).perplexity for name, nats in part_nats.items()} or None,
    )


def evaluate(
    run: Path,
    *,
    split: str = "test",
    data: Path | None = None,
    device: str = "auto",
    dtype: str | None = None,
    which: Which = "best",
    overrides: Sequence[str] = (),
    texts: Path | None = None,
    progress: Progress | None = None,
) -> MetricsReport:
    """The metrics of the task: ``LabelMetrics``, ``WrittenMetrics``, or of any other task what it names.

    Args and errors as ``evaluate_ppl``; ``overrides`` and ``texts`` as ``judge_writing``, and refused for other tasks.
    """
    loaded = Run.open(run, which=which, device=device, dtype=dtype)
    prepared = loaded.data(data)
    if (overrides or texts is not None) and not declares(loaded.task, TextWriter):
        given = "--set" if overrides else "--texts"
        raise ConfigError(f"{given}: {run} writes no texts; this is for runs of --task headline or dialogue, leave it out")
    where: dict[str, str] = {"run": str(run), "checkpoint": loaded.snapshot, "split": split}
    with loaded.autocast():
        if declares(loaded.task, TextWriter):
            show = progress or (lambda stage, done, total: None)
            judged = judge_writing(loaded, loaded.task, prepared, split, overrides=overrides, texts=texts, progress=show)
            main = judged.scores[0]
            return WrittenMetrics(
                **where,
                **dict(judged),
                metrics={score.name: score.value for score in main.values},
                signature=main.signature,
                perplexity_signature=perplexity_signature(prepared, split, judged.tokens, 1, PAIRS),
            )
        if declares(loaded.task, LabelPredictor):
            accuracy, nats = loaded.task.judge(prepared, split)
            vectors = loaded.task.vector_coverage(prepared, split)
            return LabelMetrics(**where, **dict(accuracy), nats=nats, labels=tuple(loaded.task.labels), vectors=vectors)
        return MetricsReport(**where, metrics=loaded.task.evaluate(prepared, split))


def perplexity_signature(
    data: PreparedData, split: str, tokens: int, columns: int, adaptation: Mapping[str, str] | None = None
) -> str:
    """One line of all that must agree before two perplexities can be compared, as ``name:value|name:value``.

    The text is named by the start of the SHA-256 of its ids, the vocabulary by its fingerprint. ``chunk:any`` says that the
    value does not depend on how many tokens are read at once, ``log_shift:none`` that nothing is added to a probability.
    ``adaptation`` has what a cache or dynamic evaluation adds or puts in the place of another part; a model that stays as it
    was trained has none of it.
    """
    signature, size = data.signature, data.signature.splits[split]
    parts = {
        "protocol": PROTOCOL_VERSION,
        "data": signature.dataset,
        "split": split,
        "text": size.sha256[:12],
        "tokens": tokens,
        "vocabulary": f"{signature.vocabulary}/{signature.vocabulary_size}",
        "unk": f"{size.unknown_rate:.4f}",
        "segmenter": signature.segmenter,
        "lexicon": signature.lexicon[:12] if signature.lexicon else "none",
        "eos": "predicted" if signature.end_of_sentence else "none",
        "columns": columns,
        "state": "carried",
        "chunk": "any",
        "log_shift": "none",
        **(adaptation or {}),
    }
    return "|".join(f"{name}:{str(value).replace('|', '/')}" for name, value in parts.items())


def _graph_for(loaded: Run, given: Path | None, by: Sequence[Grouping]) -> SememeGraph | None:
    graph = loaded.graph
    if given is not None:
        graph = SememeGraph.load(given)
        graph.check_vocabulary(loaded.vocabulary)
    if by and graph is None:
        raise GraphError(f"--by {by[0]} needs a sememe graph, and {loaded.path} has none; give one with --graph FILE")
    return graph


def _tables(
    graph: SememeGraph | None,
    by: Sequence[Grouping],
    nats_of: npt.NDArray[np.float64],
    count_of: npt.NDArray[np.int64],
) -> dict[Grouping, tuple[GroupPerplexity, ...]] | None:
    """The table of each grouping that was asked for, in that order."""
    if graph is None or not by:
        return None
    return {one: tuple(_groups(graph, one, nats_of, count_of)) for one in by}


def _groups(
    graph: SememeGraph, by: Grouping, nats_of: npt.NDArray[np.float64], count_of: npt.NDArray[np.int64]
) -> Iterator[GroupPerplexity]:
    """The rows of Table 2 or 3: annotated words by bin, words without annotation, and how much of the bins rules gave."""
    total = int(count_of.sum())

    def row(name: str, chosen: npt.NDArray[np.bool_], of_which: bool = False) -> GroupPerplexity:
        tally = Tally(float(nats_of[chosen].sum()), int(count_of[chosen].sum()))
        perplexity = tally.perplexity if tally.count else None
        share = tally.count / total
        return GroupPerplexity(
            name=name, perplexity=perplexity, nats=tally.nats, tokens=tally.count, share=share, of_which=of_which
        )

    annotated, num_senses = graph.annotated, np.diff(graph.sense_offsets)
    if by == "senses":
        yield row("one sense", annotated & (num_senses == 1))
        yield row("several senses", annotated & (num_senses > 1))
    else:
        sizes = np.diff(graph.set_offsets)[graph.sense_set]
        mean_sememes = np.add.reduceat(sizes, graph.sense_offsets[:-1]) / num_senses
        for low, high in SEMEME_BINS:
            yield row(f"[{low}, {high}) sememes", annotated & (mean_sememes >= low) & (mean_sememes < high))
        beyond = annotated & (mean_sememes >= SEMEME_BINS[-1][1])
        if beyond.any():
            yield row(f"{SEMEME_BINS[-1][1]} sememes or more", beyond)
    yield row("no annotation", ~annotated)
    by_rule = np.array([entry.is_annotated and not entry.is_from_lexicon for entry in graph.entries()], dtype=np.bool_)
    yield row("special tokens and punctuation by rule (counted above)", by_rule, of_which=True)
