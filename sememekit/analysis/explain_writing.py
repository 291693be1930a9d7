"""``sememekit explain`` for models that write a text for a text: for each word the sememes and where the attention looked."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import torch

from sememekit.analysis.explain_sememes import SememeReader, SememeViews, SenseShare, check_numbers, senses_of, views
from sememekit.analysis.sememe_mass import COUNTS, MIN_COUNT
from sememekit.progress import Progress, silent
from sememekit.runs.run import OfRun, Run, Which
from sememekit.runs.writing import describe_search, load_writer, search_of, words_read
from sememekit.tasks.writing import hypothesis_words
from sememekit.training import autocast

TOP_SEMEMES = 5
"""Of Table 6, Gu et al. 2018."""


class WrittenWord(SememeViews):
    """One word of the text that was written.

    Attributes:
        word: as it is shown; ``read_as`` is the word of the vocabulary where another stands in its place.
        probability: p(word | source, words before).
        attention: weight of each word of the source, in its order; they sum to one.
        expected, sememes, raised: as in ``SememeViews``, for the word at this place before it is known (Table 6, Gu et al.
            2018); empty for models without senses.
        senses: of the word, by falling share; likewise.
    """

    word: str
    read_as: str
    probability: float
    attention: tuple[float, ...]
    senses: tuple[SenseShare, ...] = ()


class WritingExplanation(OfRun):
    """What a model wrote for a text, and why.

    Attributes:
        source: the words of the text; ``unknown`` are those that the model does not know.
        read_words: how many of them, the first ones, the model read (``task.read_words``).
        nats, ended: as in ``Found``.
        mean, min_count: as in ``Explanation``.
        no_senses: why there are no sememes, or None where there are.
    """

    decoder: str
    source: tuple[str, ...]
    unknown: tuple[str, ...]
    read_words: int
    words: tuple[WrittenWord, ...]
    nats: float
    ended: bool
    search: str
    mean: str | None = None
    min_count: int = MIN_COUNT
    no_senses: str | None


def explain_writing(
    run: Path | Run,
    text: str,
    *,
    top_sememes: int = TOP_SEMEMES,
    min_count: int = MIN_COUNT,
    mean: str = COUNTS,
    data: Path | None = None,
    apart: bool = False,
    lexicon: str | None = None,
    device: str = "auto",
    which: Which = "best",
    progress: Progress = silent,
) -> WritingExplanation:
    """Write a text for ``text`` and say for each word which sememes were expected and where the attention looked.

    Arguments as ``sememekit explain --help``; ``progress`` as in ``explain``.

    Raises:
        ConfigError: the run writes no texts, ``top_sememes`` is below 1, or a split is none.
        DataError: an empty text, or one that is too long; or the data of the split are absent.
    """
    check_numbers(top_sememes=top_sememes, min_count=min_count)
    writer = load_writer(run, which=which, device=device, apart=apart, lexicon=lexicon, command="explain")
    source, search = writer.read(text, "explain"), search_of(writer.task).model_copy(update={"num_best": 1})
    ids = writer.run.vocabulary.encode(source)
    with autocast(writer.run.device, writer.run.plan.run.dtype):
        best = writer.task.write([ids], search)[0][0]
        reread = writer.task.teacher_forced(ids, best.words)
    shown = hypothesis_words(writer.run.vocabulary, best, source, search)
    words, reader = [], None
    for place, (number, word) in enumerate(zip(best.words, shown, strict=True)):
        context = reread.contexts[place]
        with torch.no_grad():
            attribution = writer.task.decoder.sense_attribution(context, torch.tensor([number], device=context.device))
        found, senses = SememeViews(), tuple[SenseShare, ...]()
        if attribution is not None and writer.run.graph is not None:
            if reader is None:
                reader = SememeReader(writer.run, writer.task, torch.zeros_like(context), mean, data, partial(progress, "mean"))
            sememes = reader.read(context, attribution)
            found, senses = views(sememes, top_sememes), senses_of(writer.run.graph, attribution.word_senses[0], sememes)
        words.append(
            WrittenWord(
                **dict(found),
                word=word,
                read_as=writer.run.vocabulary.token(number),
                probability=float(reread.nats[place].double().neg().exp()),
                attention=tuple(reread.weights[place].double().tolist()),
                senses=senses,
            )
        )
    decoder = writer.run.plan.decoder.name if writer.run.plan.decoder else ""
    has_senses = any(word.sememes for word in words)
    return WritingExplanation(
        run=str(run),
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


def remarks(explanation: WritingExplanation) -> list[str]:
    """What a reader must know, a sentence each."""
    lines = []
    if explanation.unknown:
        lines.append(f"The model does not know {', '.join(explanation.unknown)}.")
    if explanation.read_words < len(explanation.source):
        of = f"{explanation.read_words:,} of {len(explanation.source):,} words"
        lines.append(f"The model read the first {of} (task.read_words).")
    replaced = [word.word for word in explanation.words if word.word != word.read_as]
    if replaced:
        lines.append(f"Words of the source in the place of unknown ones: {', '.join(replaced)}.")
    if not explanation.ended:
        lines.append("The text was cut at the greatest length.")
    if explanation.no_senses is not None:
        lines.append(f"No sememes: {explanation.no_senses}.")
    return lines
