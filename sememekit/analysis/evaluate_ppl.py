"""``sememekit evaluate-ppl``: the perplexity of a text under a trained model, by one protocol."""

from collections.abc import Sequence
from pathlib import Path

from sememekit.analysis.scored_runs import RunText, TextReading, open_texts, score_texts
from sememekit.analysis.word_groups import WordKind, kinds_of
from sememekit.config import Record
from sememekit.measure import Perplexity, perplexity_of
from sememekit.progress import Progress, silent
from sememekit.protocols.adaptation import Adaptation, AdaptationReport
from sememekit.runs.run import OfRun, Run, Which
from sememekit.runs.writing import words_read
from sememekit.sememes import SememeGraph


class GroupPerplexity(Record):
    """Perplexity of the target words of one kind: exp of the mean nats over those targets alone.

    Attributes:
        perplexity: None where no target is of this kind.
        share: tokens of all predicted tokens, 0 to 1.
        of_which: whether these targets are counted in another row, too; the other rows together are the whole text.
    """

    name: str
    perplexity: float | None
    nats: float
    tokens: int
    share: float
    of_which: bool = False


class PerplexityReport(OfRun, Perplexity):
    """Report of ``evaluate-ppl``; see docs/perplexity.md.

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
    groups: dict[str, tuple[GroupPerplexity, ...]] | None = None
    parts: dict[str, float] | None = None
    adaptation: AdaptationReport | None = None
    marginal: str | None = None
    cut_sources: int | None = None


def evaluate_ppl(
    run: Path | Run,
    *,
    split: str = "test",
    by: Sequence[str] = (),
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
    texts = open_texts([loaded], TextReading(split, data, batch_size, adaptation), "evaluate-ppl", grouped=bool(by))
    used = loaded.graph if graph is None else given_graph(graph, loaded)
    kinds = kinds_of(by, [loaded], used)
    score_texts(texts, kinds, progress)
    return report_of(texts[0], used, kinds)


def report_of(scored: RunText, graph: SememeGraph | None, kinds: Sequence[WordKind] = ()) -> PerplexityReport:
    """Return the report of one scored text, with a table for each grouping of the ``kinds``. Perplexities by character and byte
    divide by the whole split; pairs have none, since the size of their targets alone is unknown."""
    loaded, data, scoring, sums = scored.run, scored.data, scored.scoring, scored.sums
    split, total, lengths = scored.text.split, sums.total, scoring.source_lengths
    size = data.signature.splits[split]
    groups: dict[str, tuple[GroupPerplexity, ...]] = {}
    for kind in kinds:
        tally = sums.of(kind.words)
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
        run=str(loaded.path),
        checkpoint=loaded.snapshot,
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
        cut_sources=None if lengths is None else sum(words_read(loaded, length) < length for length in lengths.tolist()),
    )


def given_graph(path: Path, loaded: Run) -> SememeGraph:
    """The graph of a file, which must be of the vocabulary of the run. Raises GraphError: it is not, or cannot be used."""
    graph = SememeGraph.load(path)
    graph.check_vocabulary(loaded.vocabulary)
    return graph
