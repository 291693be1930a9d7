"""``sememekit evaluate-ppl``: the perplexity of a text under a trained model, by one protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sememekit.analysis.signatures import PAIRS, SENTENCES, perplexity_signature
from sememekit.analysis.text_nats import SentenceNats
from sememekit.analysis.word_groups import Grouping, GroupPerplexity, WordNats, reads_graph
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, GraphError
from sememekit.measure import Perplexity, Tally, perplexity_of
from sememekit.progress import Progress, silent
from sememekit.protocols.adaptation import Adaptation, AdaptationReport, make_scorer
from sememekit.runs.run import OfRun, Run, Which
from sememekit.runs.writing import words_read
from sememekit.sememes import SememeGraph
from sememekit.tasks.base import SentencePredictor, WordPredictor, declares, require
from sememekit.tasks.writing import TextWriter


@dataclass(frozen=True)
class TextReading:
    """Which text is scored, and how it is read; see ``evaluate_ppl``."""

    split: str = "test"
    data: Path | None = None
    batch_size: int | None = None
    adaptation: Adaptation | None = None


class PerplexityReport(OfRun, Perplexity):
    """What ``evaluate-ppl`` found; see docs/perplexity.md.

    Attributes:
        size_of: which text ``per_character`` and ``bits_per_byte`` divide by: ``source`` is the text before normalisation,
            ``tokens`` is the words as given, ``<unk>`` and the like spelled out.
        graph: fingerprint of the sememe graph of the run, or of the one that was given for grouping.
        signature: one line; numbers whose signatures are equal can be compared.
        groups: "senses", "sememes" or both, as far as asked for: a row for each kind of target word.
        parts: perplexity of each term of the loss by its name, such as "cluster" and "in_cluster", where the decoder has terms
            and the model stays as it was trained; their product is the perplexity.
        adaptation: how a cache or dynamic evaluation read the text, where that was asked for.
        marginal: for models of whole sentences, what is summed over and by which rule states merge.
        cut_sources: of pairs, how many sources had more words than the model reads (``task.read_words``).
    """

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
    cut_sources: int | None = None


def evaluate_ppl(
    run: Path | Run,
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
    progress: Progress = silent,
) -> PerplexityReport:
    """Perplexity of a text under a trained model.

    Every token of the split but the very first is predicted once; the state starts at zero and is carried on, in as many
    columns as ``batch_size`` says. Special tokens and ``<unk>`` count as any other word.

    ``by`` groups target words by their number of senses (Table 2, Gu et al. 2018), by the mean number of sememes of their
    senses (Table 3), where words without annotation have a row of their own, by their count in the training text, or by sememes
    among words of like counts. ``batch_size`` None is that of the training, or
    1 for an ``adaptation``: a cache, dynamic evaluation, or both, which learn from the text. The run stays as it is; dynamic
    evaluation keeps statistics of gradients in its folder. Other arguments as ``sememekit evaluate-ppl --help``.

    Raises:
        ConfigError: the task predicts no words, or ``by`` is given and there is no graph.
        DataError: the data are absent, lack the split, or have another vocabulary.
        GraphError: the graph is of another vocabulary.
    """
    loaded = Run.open(run, which=which, device=device, dtype=dtype)
    given = None if graph is None else given_graph(graph, loaded)
    return measure_ppl(loaded, TextReading(split, data, batch_size, adaptation), by, given, progress)


def measure_ppl(
    loaded: Run,
    text: TextReading,
    by: Sequence[Grouping] = (),
    graph: SememeGraph | None = None,
    progress: Progress = silent,
    found: WordNats | SentenceNats | None = None,
) -> PerplexityReport:
    """``evaluate_ppl`` of an opened run; ``graph`` goes before its own, and ``found`` is given what was scored: of words, or of
    sentences for a model of these."""
    run, split, adaptation = loaded.path, text.split, text.adaptation
    if declares(loaded.task, SentencePredictor):
        if by or adaptation is not None or text.batch_size is not None or isinstance(found, WordNats):
            raise ConfigError(
                f"{run} scores whole sentences, not single words, so that --by, --overlay, --cache, --dynamic and --batch-size "
                "do not apply; leave them out"
            )
        return _sentence_perplexity(loaded, loaded.task, text, progress, found if isinstance(found, SentenceNats) else None)
    used_graph = graph or loaded.graph
    found = found if isinstance(found, WordNats) else WordNats(len(loaded.vocabulary))
    if used_graph is None and (needing := [one for one in by if reads_graph(one)]):
        raise GraphError(f"--by {needing[0]} needs a sememe graph, and {run} has none; give one with --graph FILE")
    if declares(loaded.task, TextWriter):
        if adaptation is not None or text.batch_size is not None:
            raise ConfigError(
                f"{run} reads pairs, not a running text, so that --cache, --dynamic and --batch-size do not apply; leave them "
                "out"
            )
        return _pair_perplexity(loaded, loaded.task, text, by, used_graph, found, progress)
    task = require(loaded.task, WordPredictor, "evaluate-ppl")
    prepared = loaded.data(text.data)
    tokens = prepared.tokens(split)
    columns = columns_of(task, len(tokens), text)
    with loaded.autocast():
        reader = make_scorer(task, prepared, run, adaptation or Adaptation(), loaded.settings.dtype, columns, progress)
        for scored in reader.segments(tokens, columns, partial(progress, "tokens")):
            found.add(scored)
        adapted = None if adaptation is None else reader.report(tokens, columns, progress)
    if reader.dynamic is not None and not np.isfinite(found.total.perplexity):
        raise ConfigError(
            f"dynamic evaluation diverged: the perplexity of {split} is not finite at a rate of "
            f"{reader.dynamic.rate:g}; use a smaller --set dynamic.rate, or find one with --tune"
        )
    return _report(
        loaded,
        prepared,
        split,
        found.total,
        perplexity_signature(prepared, split, found.total.count, columns, reader.signature()),
        graph=used_graph,
        groups=found.groups(by, loaded.train_counts, used_graph),
        parts=found.parts() if adaptation is None else None,
        adaptation=adapted,
    )


def columns_of(task: WordPredictor, num_tokens: int, text: TextReading) -> int:
    """The columns that a text of so many tokens is read in; never more than predictions."""
    usual = task.evaluation_batch_size if text.adaptation is None else 1
    return min(text.batch_size or usual, max(num_tokens - 1, 1))


def _report(
    loaded: Run,
    data: PreparedData,
    split: str,
    total: Tally,
    signature: str,
    *,
    graph: SememeGraph | None,
    sized: bool = True,
    **more: Any,
) -> PerplexityReport:
    """The report of ``total``; characters and bytes are those of the whole split, where it is ``sized`` by them."""
    size = data.signature.splits[split]
    return PerplexityReport(
        **perplexity_of(total, *((size.characters, size.bytes) if sized else ())).model_dump(),
        run=str(loaded.path),
        checkpoint=loaded.snapshot,
        split=split,
        data=str(data.folder),
        size_of=data.signature.size_of,
        graph=graph.fingerprint if graph is not None else None,
        dtype=loaded.settings.dtype,
        signature=signature,
        **more,
    )


def _sentence_perplexity(
    loaded: Run, task: SentencePredictor, text: TextReading, progress: Progress, found: SentenceNats | None
) -> PerplexityReport:
    """Perplexity under a model of whole sentences: every token is predicted, end marks too, and no state is carried."""
    prepared, split = loaded.data(text.data), text.split
    found = found or SentenceNats(task.sentence_lengths(prepared, split))
    with loaded.autocast():
        for numbers, nats in task.sentence_nats(prepared, split, partial(progress, "tokens")):
            found.add(numbers, nats)
    total = found.total
    signature = perplexity_signature(prepared, split, total.count, 0, {**SENTENCES, "marginal": task.marginal})
    return _report(loaded, prepared, split, total, signature, graph=loaded.graph, marginal=task.marginal)


def _pair_perplexity(
    loaded: Run,
    task: TextWriter,
    text: TextReading,
    by: Sequence[Grouping],
    graph: SememeGraph | None,
    found: WordNats,
    progress: Progress,
) -> PerplexityReport:
    """Perplexity of the targets of pairs, ends included. Characters and bytes of targets alone are not known."""
    prepared, split = loaded.data(text.data), text.split
    with loaded.autocast():
        for scored in task.score_pairs(prepared, split, partial(progress, "pairs")):
            found.add(scored)
    signature = perplexity_signature(prepared, split, found.total.count, 1, PAIRS)
    groups, parts = found.groups(by, loaded.train_counts, graph), found.parts()
    lengths = prepared.examples(split).lengths()[:, 0].tolist()
    return _report(
        loaded,
        prepared,
        split,
        found.total,
        signature,
        graph=graph,
        sized=False,
        groups=groups,
        parts=parts,
        cut_sources=sum(words_read(loaded, length) < length for length in lengths),
    )


def given_graph(path: Path, loaded: Run) -> SememeGraph:
    """The graph of a file, which must be of the vocabulary of the run. Raises GraphError: it is not, or cannot be used."""
    graph = SememeGraph.load(path)
    graph.check_vocabulary(loaded.vocabulary)
    return graph
