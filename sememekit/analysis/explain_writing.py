"""``sememekit explain`` for models that write a text for a text: for each word the sememes and where the attention looked."""

from __future__ import annotations

from pathlib import Path

import torch

from sememekit.analysis.explain import SememeGate, SenseShare, gates_of, senses_of
from sememekit.config import Record
from sememekit.errors import ConfigError
from sememekit.runs.run import Which
from sememekit.runs.writing import Writer, describe_search, load_writer, search_of
from sememekit.tasks.writing import hypothesis_words
from sememekit.training import autocast

TOP_SEMEMES = 5
"""Of Table 6, Gu et al. 2018."""


class WrittenWord(Record):
    """One word of the text that was written.

    Attributes:
        word: as it is shown; ``read_as`` is the word of the vocabulary where another stands in its place.
        probability: p(word | source, words before).
        attention: weight of each word of the source, in its order; they sum to one.
        sememes: the strongest gates of all sememes (Table 6, Gu et al. 2018); empty for models without senses.
        raised: the sememes whose gates the context raises most above their value at rest; likewise.
        senses: of the word, by falling share; likewise.
    """

    word: str
    read_as: str
    probability: float
    attention: tuple[float, ...]
    sememes: tuple[SememeGate, ...] = ()
    raised: tuple[SememeGate, ...] = ()
    senses: tuple[SenseShare, ...] = ()


class WritingExplanation(Record):
    """What a model wrote for a text, and why.

    Attributes:
        run, checkpoint: the run folder and its snapshot.
        decoder: the output layer.
        source: the words of the text; ``unknown`` are those that the model does not know.
        words: the text that was written.
        nats, ended: as in ``Found``.
        search: the settings of the search.
        no_senses: why there are no sememes, or None where there are.
    """

    run: str
    checkpoint: str
    decoder: str
    source: tuple[str, ...]
    unknown: tuple[str, ...]
    words: tuple[WrittenWord, ...]
    nats: float
    ended: bool
    search: str
    no_senses: str | None


def explain_writing(
    run: Path,
    text: str,
    *,
    top_sememes: int = TOP_SEMEMES,
    apart: bool = False,
    lexicon: str | None = None,
    device: str = "auto",
    which: Which = "best",
) -> WritingExplanation:
    """Write a text for ``text`` and say for each word which sememes were expected and where the attention looked.

    Args:
        run, device, which: as everywhere.
        text: the source.
        top_sememes: how many sememes for each word.
        apart, lexicon: as in ``load_writer``.

    Raises:
        CheckpointError: no run, or a torn one.
        ConfigError: the run writes no texts, or ``top_sememes`` below 1.
        DataError: an empty text, or one that is too long.
    """
    if top_sememes < 1:
        raise ConfigError(f"explain: the number of sememes must be 1 at least, given {top_sememes}")
    writer = load_writer(run, which=which, device=device, apart=apart, lexicon=lexicon, command="explain")
    source, search = writer.read(text, "explain"), search_of(writer.task).model_copy(update={"num_best": 1})
    ids = writer.run.vocabulary.encode(source)
    with autocast(writer.run.device, writer.run.plan.run.dtype):
        best = writer.task.write([ids], search)[0][0]
        reread = writer.task.teacher_forced(ids, best.words)
    shown = hypothesis_words(writer.run.vocabulary, best, source, search)
    words = []
    for place, (number, word) in enumerate(zip(best.words, shown, strict=True)):
        sememes, raised, senses = _why(writer, reread.contexts[place], number, top_sememes)
        words.append(
            WrittenWord(
                word=word,
                read_as=writer.run.vocabulary.token(number),
                probability=float(reread.nats[place].double().neg().exp()),
                attention=tuple(reread.weights[place].double().tolist()),
                sememes=sememes,
                raised=raised,
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
        words=tuple(words),
        nats=best.nats,
        ended=best.ended,
        search=describe_search(search),
        no_senses=None if has_senses else f"the output layer {decoder!r} knows of no senses or sememes",
    )


@torch.no_grad()
def _why(
    writer: Writer, context: torch.Tensor, word: int, top_sememes: int
) -> tuple[tuple[SememeGate, ...], tuple[SememeGate, ...], tuple[SenseShare, ...]]:
    """Strongest and most raised sememes of a context, and the senses of the word; nothing for an output layer that has none."""
    graph, asked = writer.run.graph, torch.tensor([word], device=context.device)
    attribution = writer.task.decoder.sense_attribution(context, asked)
    at_rest = writer.task.decoder.sense_attribution(torch.zeros_like(context), asked)
    if graph is None or attribution is None or at_rest is None:
        return (), (), ()
    gates = gates_of(graph, attribution, at_rest)
    strongest = sorted(gates, key=lambda item: (-item.gate, item.name))[:top_sememes]
    raised = sorted(gates, key=lambda item: (item.at_rest - item.gate, item.name))[:top_sememes]
    return tuple(strongest), tuple(raised), senses_of(graph, attribution.word_senses[0], gates)


def remarks(explanation: WritingExplanation) -> list[str]:
    """What a reader must know, a sentence each."""
    lines = []
    if explanation.unknown:
        lines.append(f"The model does not know {', '.join(explanation.unknown)}.")
    replaced = [word.word for word in explanation.words if word.word != word.read_as]
    if replaced:
        lines.append(f"Words of the source in the place of unknown ones: {', '.join(replaced)}.")
    if not explanation.ended:
        lines.append("The text was cut at the greatest length.")
    if explanation.no_senses is not None:
        lines.append(f"No sememes: {explanation.no_senses}.")
    return lines
