"""``sememekit eval`` for models that write a text for a text: perplexity, and ROUGE or BLEU of what a beam search finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sememekit.analysis.written_texts import write_texts_file
from sememekit.config import Record
from sememekit.data.examples import Original
from sememekit.data.prepared import PreparedData
from sememekit.files import TEXTS, check_output
from sememekit.measure.bleu import BleuSettings, dialogue_bleu
from sememekit.measure.intervals import Estimate, interval
from sememekit.measure.rouge import METRICS, rouge
from sememekit.measure.scored import tallies
from sememekit.progress import Progress, silent
from sememekit.runs.run import Run
from sememekit.runs.writing import describe_search, search_of, words_read
from sememekit.search import SEARCH, BeamSettings
from sememekit.tasks.headline import rouge_settings
from sememekit.tasks.writing import TextWriter, hypothesis_words, originals_of

SEARCH_OF_DATASETS: Final[Mapping[str, Mapping[str, Any]]] = {"duc": {"min_length": 30, "max_length": 30}}
"""Data set -> what its rules say about the search: exactly 30 words and no end for DUC-2004 (Sec. 5.1, Shen et al. 2017)."""


class Score(Record):
    """A metric with its 95 % bootstrap interval over the examples, 0 to 1; no limits of few examples."""

    name: str
    value: float
    low: float | None
    high: float | None


class Scores(Record):
    """Metrics of one kind.

    Attributes:
        signature: one line; scores with equal signatures can be compared.
    """

    preset: str
    signature: str
    values: tuple[Score, ...]


class WrittenReport(Record):
    """Metrics of a model that writes texts on a split.

    Attributes:
        perplexity: per word of the targets, ends included; ``nats`` and ``tokens`` are what it was made of.
        parts: perplexity of each term of the loss; their product is the perplexity.
        checkpoint_by: what the best weights of the run were chosen by.
        words: mean length of the best texts.
        unknown: share of ``<unk>`` among the words that the search chose. With ``task.search.unknown=replace`` these have given
            way to words of the source in the texts that are scored; it says how many words of them were copied so.
        cut_sources: how many sources had more words than the model reads (``task.read_words``).
        source_words, read_words: how many words all sources have, and how many of them the model read.
        scores: for each kind of scoring, the metrics.
    """

    perplexity: float
    nats: float
    tokens: int
    parts: dict[str, float]
    examples: int
    checkpoint_by: str
    search: str
    words: float
    unknown: float
    cut_sources: int
    source_words: int
    read_words: int
    scores: tuple[Scores, ...]


def evaluate_writing(
    loaded: Run,
    task: TextWriter,
    data: PreparedData,
    split: str,
    *,
    overrides: Sequence[str] = (),
    texts: Path | None = None,
    progress: Progress = silent,
) -> WrittenReport:
    """Perplexity of a split, and its texts against their references.

    Args:
        data: pairs with references.
        overrides: ``task.search.KEY=VALUE``, over what the run and the rules of the data set say.
        texts: file to write what was found to, a JSON object a line: source, texts, references.
        progress: called as ("texts", done, total).

    Raises:
        ConfigError: an override of something else, or another file where the texts go.
        DataError: data of another kind or without references.
    """
    search = search_of(task, overrides, SEARCH_OF_DATASETS.get(data.signature.dataset), data.signature.dataset)
    originals = list(originals_of(data, split))
    whole, parts = tallies(task.score_pairs(data, split))
    examples = data.examples(split)
    sources = [examples.text(index, 0) for index in range(len(examples))]
    lengths = [len(source) for source in sources]
    read = [words_read(loaded, length) for length in lengths]
    if texts is not None:
        check_output(texts, TEXTS)
    found = task.write(sources, search, lambda done, total: progress("texts", done, total))
    written = [
        [" ".join(hypothesis_words(task.vocabulary, item, own.source, search)) for item in best]
        for best, own in zip(found, originals, strict=True)
    ]
    best_words = [word for best in found if best for word in best[0].words]
    if texts is not None:
        write_texts_file(texts, [" ".join(own.source) for own in originals], written, [own.references for own in originals])
    return WrittenReport(
        perplexity=whole.perplexity,
        nats=whole.nats,
        tokens=whole.count,
        parts={name: tally.perplexity for name, tally in parts.items()},
        examples=len(examples),
        checkpoint_by=loaded.plan.table()["task"]["checkpoint_by"],
        search=describe_search(search),
        words=len(best_words) / len(found),
        unknown=sum(word == task.vocabulary.unknown_id for word in best_words) / max(len(best_words), 1),
        cut_sources=sum(own < length for own, length in zip(read, lengths, strict=True)),
        source_words=sum(lengths),
        read_words=sum(read),
        scores=tuple(_scores(task, data, split, written, originals, search)),
    )


def _scores(
    task: TextWriter,
    data: PreparedData,
    split: str,
    written: Sequence[Sequence[str]],
    originals: Sequence[Original],
    search: BeamSettings,
) -> Iterator[Scores]:
    references = [own.references for own in originals]
    place = f"data:{data.signature.dataset}|split:{split}|examples:{len(originals)}"
    if task.scored_with == "bleu":
        settings = BleuSettings(top=min(BleuSettings().top, search.num_best))
        bleu = dialogue_bleu([best or [""] for best in written], references, settings)
        named = [
            (f"bleu{order}_{side}", value)
            for side in ("precision", "recall")
            for order, value in enumerate(getattr(bleu, side), 1)
        ]
        yield _signed("bleu", bleu.signature, place, search, named)
        return
    firsts = [best[0] if best else "" for best in written]
    for preset, kind in rouge_settings(data):
        report = rouge(firsts, references, kind)
        named = [(name, getattr(report, name)) for name in METRICS]
        yield _signed(preset, report.signature, place, search, named)


def _signed(preset: str, signature: str, place: str, search: BeamSettings, named: Sequence[tuple[str, Estimate]]) -> Scores:
    values = tuple(Score(name=name, **interval(item).model_dump()) for name, item in named)
    return Scores(preset=preset, signature=f"{signature}|{place}|{describe_search(search)}|search:{SEARCH}", values=values)
