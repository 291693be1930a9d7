"""``sememekit explain`` for models that write a text for a source: sememes and attention of each written word."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sememekit.analysis.explanations.sememe_mass import COUNTS, MIN_COUNT
from sememekit.analysis.explanations.sememes import SememeReader, SememeViews, SenseShare, check_numbers, senses_of, views
from sememekit.config import Record
from sememekit.decoders.base import Sensed
from sememekit.progress import Progress, silent
from sememekit.runs.run import OfRun, Run
from sememekit.runs.uncut import refuse_unknown
from sememekit.runs.writing import Writer, describe_search, load_writer, search_of, words_read
from sememekit.sememes.overlay import ChangedSense
from sememekit.tasks.base import require
from sememekit.tasks.writing import TextWriter, hypothesis_words

TOP_SEMEMES = 5  # sememes of a word, as in Table 6, Gu et al. 2018


class WrittenWord(SememeViews):
    """A word of the written text; views for its place before it is known (Table 6, Gu et al. 2018), empty without senses."""

    word: str
    """The word as it is shown; ``read_as`` is the word of the vocabulary, if it differs."""
    read_as: str
    """The word of the vocabulary."""
    probability: float
    """p(word | source, words before)."""
    attention: tuple[float, ...]
    """Weight of each word of the source, in its order; they sum to one."""
    senses: tuple[SenseShare, ...] = ()
    """Senses of the word, by falling share; empty for models without senses."""


class WritingExplanation(OfRun):
    """The text that a model wrote for a source, and why."""

    decoder: str
    """Name of the output layer."""
    source: tuple[str, ...]
    """The words of the source; ``unknown`` has the source words that the model does not know."""
    unknown: tuple[str, ...]
    """Source words that the model does not know."""
    read_words: int
    """Number of source words, from the first, that the model read (``task.read_words``)."""
    words: tuple[WrittenWord, ...]
    """The words of the written text."""
    nats: float
    """Summed negative log-probability of the text."""
    ended: bool
    """True if the model predicted the end of the text."""
    search: str
    """The search that found the text, with its settings."""
    mean: str | None = None
    """The text or counts of the mean masses; None without masses."""
    min_count: int = MIN_COUNT
    """Sememes of fewer tokens are uncertain."""
    no_senses: str | None
    """The reason if there are no sememes, otherwise None."""


class RereadWord(Record):
    """A word of the text by the original run: p(word | source, words before), before and after the overlay."""

    word: str
    probability_before: float
    probability_after: float


class ChangedPlace(Record):
    """A word with changed senses at a place of the original text, before and after; ranks are among all words, from 1."""

    place: int
    """Position in the text, from 1; ``written`` is the word there."""
    written: str
    word: str
    """The word whose annotation is changed."""
    probability_before: float
    probability_after: float
    rank_before: int
    rank_after: int


class OverlayWriting(WritingExplanation):
    """The text that a model wrote with an overlay, and the differences from the original run."""

    overlay: str
    before: WritingExplanation
    """The explanation of the run as it was trained."""
    changes: tuple[ChangedSense, ...]
    text: tuple[RereadWord, ...]
    """Each word of the text of ``before``, under both models."""
    changed_words: tuple[ChangedPlace, ...]
    """The changed words at each place of ``text``, by falling difference of their probabilities."""


def explain_writing(
    run: Path | Run,
    text: str,
    *,
    top_sememes: int = TOP_SEMEMES,
    min_count: int = MIN_COUNT,
    mean: str = COUNTS,
    data: Path | None = None,
    apart: bool = False,
    overlay: Path | None = None,
    progress: Progress = silent,
) -> WritingExplanation:
    """Write a text for the source ``text``, with the expected sememes and the attention of each word; with an ``overlay`` an
    ``OverlayWriting``, which also has the text of the original run under both models.

    Arguments as ``sememekit explain --help``; ``progress`` as in ``explain``. Raises ConfigError: the run writes no texts,
    ``top_sememes`` is below 1, a split is unknown, or the overlay does not fit the run. Raises GraphError: words or sememes of
    the overlay do not fit. Raises DataError: an empty or too long text, absent data of the split, or no overlay file."""
    check_numbers(top_sememes=top_sememes, min_count=min_count)
    writer = load_writer(run, apart=apart, command="explain")
    source = writer.read(text, "explain")
    refuse_unknown(writer.run, source, "explain", apart=apart)
    writer.warn_uncut([word for word in source if word not in writer.run.vocabulary])
    given = (source, top_sememes, min_count, mean, data, progress)
    if overlay is None:
        return _written(writer, str(run), *given)
    changed = writer.run.with_overlay(overlay)
    other = writer._replace(run=changed, task=require(changed.task, TextWriter, "explain"))
    before, after = _written(writer, str(run), *given), _written(other, f"{run} with {overlay}", *given)
    reread, places = _reread(before, changed.changed_senses, (writer, other), writer.run.vocabulary.encode(source))
    return OverlayWriting(
        **dict(after),
        overlay=str(overlay),
        before=before,
        changes=changed.changed_senses,
        text=tuple(reread),
        changed_words=tuple(sorted(places, key=lambda one: -abs(one.probability_after - one.probability_before))),
    )


@torch.no_grad()
def _reread(
    before: WritingExplanation, changes: Sequence[ChangedSense], writers: Sequence[Writer], source: NDArray[np.integer]
) -> tuple[list[RereadWord], list[ChangedPlace]]:
    """Return the text of ``before`` under both models: its words, and the changed words at each place."""
    if not before.words:
        return [], []
    vocabulary = writers[0].run.vocabulary
    changed = list(dict.fromkeys(sense.word for sense in changes))
    words, asked = ([vocabulary.id(name) for name in names] for names in ([word.read_as for word in before.words], changed))
    own, others = [], []
    for writer in writers:
        with writer.run.autocast():
            reread = writer.task.teacher_forced(source, words)
            log_probs_PV = writer.task.decoder.log_probs(reread.contexts).double()
        own.append(reread.nats.double().neg().exp().tolist())
        values_PC = log_probs_PV[:, asked]
        ranks_PC = ranks_among(log_probs_PV, values_PC)
        others.append(list(zip(values_PC.exp().flatten().tolist(), ranks_PC.flatten().tolist(), strict=True)))
    text = [
        RereadWord(word=word.word, probability_before=first, probability_after=second)
        for word, first, second in zip(before.words, *own, strict=True)
    ]
    where = [(place, word.word, name) for place, word in enumerate(before.words, start=1) for name in changed]
    places = []
    for (place, written, name), (first, rank), (second, later) in zip(where, *others, strict=True):
        probabilities = {"probability_before": first, "probability_after": second}
        ranks = {"rank_before": rank, "rank_after": later}
        places.append(ChangedPlace(place=place, written=written, word=name, **probabilities, **ranks))
    return text, places


def ranks_among(log_probs_PV: Tensor, values_PC: Tensor) -> Tensor:
    """(P, C) the rank of each value in its row of all words, from 1; no table of P x C x V is made, as C may be thousands."""
    not_above_PC = torch.searchsorted(log_probs_PV.sort(dim=1).values, values_PC.contiguous(), right=True)
    return log_probs_PV.shape[1] + 1 - not_above_PC


def _written(
    writer: Writer, run: str, source: list[str], top_sememes: int, min_count: int, mean: str, data: Path | None, show: Progress
) -> WritingExplanation:
    ids, search = writer.run.vocabulary.encode(source), search_of(writer.task).model_copy(update={"num_best": 1})
    with writer.run.autocast():
        best = writer.task.write([ids], search)[0][0]
        reread = writer.task.teacher_forced(ids, best.words)
    shown = hypothesis_words(writer.run.vocabulary, best, source, search)
    words, reader = [], None
    for place, (number, word) in enumerate(zip(best.words, shown, strict=True)):
        context = reread.contexts[place]
        found, senses = SememeViews(), tuple[SenseShare, ...]()
        if isinstance(writer.task.decoder, Sensed) and writer.run.graph is not None:
            with torch.no_grad():
                attribution = writer.task.decoder.sense_attribution(context, torch.tensor([number], device=context.device))
            if reader is None:
                reader = SememeReader(writer.run, writer.task, torch.zeros_like(context), mean, data, partial(show, "mean"))
            sememes = reader.read(context, attribution)
            found, senses = views(sememes, top_sememes), senses_of(writer.run.graph, attribution.word_senses[0], sememes)
        probability, attention = float(reread.nats[place].double().neg().exp()), tuple(reread.weights[place].double().tolist())
        read_as = writer.run.vocabulary.token(number)
        words.append(
            WrittenWord(**dict(found), word=word, read_as=read_as, probability=probability, attention=attention, senses=senses)
        )
    decoder = writer.run.plan.decoder.name if writer.run.plan.decoder else ""
    has_senses = any(word.sememes for word in words)
    return WritingExplanation(
        run=run,
        checkpoint=writer.run.snapshot,
        decoder=decoder,
        source=tuple(source),
        unknown=tuple(dict.fromkeys(word for word in source if word not in writer.run.vocabulary)),
        read_words=words_read(writer.run, len(source)),
        words=tuple(words),
        nats=best.nats,
        ended=best.ended,
        search=describe_search(search),
        mean=None if reader is None else reader.mean,
        min_count=min_count,
        no_senses=None if has_senses or not words else f"the output layer {decoder!r} knows of no senses or sememes",
    )
