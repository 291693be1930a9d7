"""``sememekit explain`` for models that write a text for a text: for each word the sememes and where the attention looked."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import torch

from sememekit.commands import page
from sememekit.commands.explain import SememeGate, SenseShare, gates_of, senses_of
from sememekit.commands.writing import Writer, describe_search, load_writer, search_of
from sememekit.config import Settings
from sememekit.errors import ConfigError
from sememekit.files import PAGE, write_output
from sememekit.tasks.writing import wording
from sememekit.training import autocast

TOP_SEMEMES = 5
"""Of Table 6, Gu et al. 2018."""


class WrittenWord(Settings):
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


class WritingExplanation(Settings):
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
    which: Literal["best", "last"] = "best",
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
        reread = writer.task.reread(ids, best.words)
    shown = wording(writer.run.vocabulary, best, source, search)
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
    evidence = writer.task.decoder.evidence(context, asked)
    at_rest = writer.task.decoder.evidence(torch.zeros_like(context), asked)
    if graph is None or evidence is None or at_rest is None:
        return (), (), ()
    gates = gates_of(graph, evidence, at_rest)
    strongest = sorted(gates, key=lambda item: (-item.gate, item.name))[:top_sememes]
    raised = sorted(gates, key=lambda item: (item.at_rest - item.gate, item.name))[:top_sememes]
    return tuple(strongest), tuple(raised), senses_of(graph, evidence.word_senses[0], gates)


def write_page(explanation: WritingExplanation, path: Path) -> None:
    """Write an explanation as a page that needs nothing else."""
    write_output(path, explanation_page(explanation).encode(), PAGE)


def explanation_page(explanation: WritingExplanation) -> str:
    """A whole page: the text, what was written for it, the attention as a picture, the sememes of each word."""
    title = " ".join(word.word for word in explanation.words) or "(nothing)"
    source = " ".join(page.word(word, "unknown" if word in explanation.unknown else "") for word in explanation.source)
    origin = f"Model <code>{page.text(explanation.run)}</code>, {page.text(explanation.checkpoint)}, output layer "
    origin += f"<code>{page.text(explanation.decoder)}</code>, search <code>{page.text(explanation.search)}</code>"
    parts = [f"<h1>{page.word(title)}</h1>", f'<p class="faint">{origin}</p>', f'<p class="context">{source}</p>']
    parts += [f'<p class="faint">{page.text(line)}</p>' for line in remarks(explanation)]
    if explanation.words:
        parts += ["<h2>Where the attention looked</h2>", attention_picture(explanation)]
        parts += ["<h2>Word by word</h2>", _table(explanation)]
    return page.document(title, "\n".join(parts))


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


_CELL, _ROW, _MARGIN, _GAP = 22, 24, 8, 6
_LETTER = 13
"""Sizes of the picture in its own units; a letter of Chinese is as wide as high."""


def attention_picture(explanation: WritingExplanation) -> str:
    """The weights as squares: a row a written word, a column a word of the source; the darker, the more weight.

    The darkest square is the largest weight, and a line says how large that is: weights of long sources are all small.
    Each square has its weight as a title, and the picture a description for those who cannot see it.
    """
    largest = max(max(item.attention) for item in explanation.words)
    left = _MARGIN + max(_width(word.word) for word in explanation.words) + _GAP
    top = _MARGIN + max(_width(word) for word in explanation.source) + _GAP
    width, height = left + _CELL * len(explanation.source) + _MARGIN, top + _ROW * len(explanation.words) + _MARGIN
    parts = []
    for column, word in enumerate(explanation.source):
        x = left + _CELL * column + _CELL / 2 + _LETTER / 3
        parts.append(f'<text transform="translate({x:.1f} {top - _GAP}) rotate(-90)">{page.text(word)}</text>')
    for row, item in enumerate(explanation.words):
        y = top + _ROW * row
        parts.append(f'<text x="{left - _GAP}" y="{y + 0.7 * _ROW:.1f}" text-anchor="end">{page.text(item.word)}</text>')
        for column, weight in enumerate(item.attention):
            place = f'x="{left + _CELL * column}" y="{y}" width="{_CELL - 1}" height="{_ROW - 1}"'
            title = f"<title>{page.text(item.word)} \u2192 {page.text(explanation.source[column])}: {weight:.2f}</title>"
            parts.append(f'<rect {place} fill="var(--first)" fill-opacity="{max(weight / largest, 0.02):.3f}">{title}</rect>')
    most = [f"{item.word}: {explanation.source[item.attention.index(max(item.attention))]}" for item in explanation.words]
    label = page.text(f"Weights of the attention; most for {'; '.join(most)}")
    size = f'viewBox="0 0 {width} {height}" style="max-width:{width}px"'
    caption = f'<figcaption class="faint">The darkest square is a weight of {largest:.2f}.</figcaption>'
    return f'<figure class="scroll"><svg {size} role="img" aria-label="{label}">{"".join(parts)}</svg>{caption}</figure>'


def _width(word: str) -> int:
    """About how wide a word is: narrow letters take half."""
    return round(sum(_LETTER if ord(letter) > 0x2E7F else 0.6 * _LETTER for letter in word))


def _table(explanation: WritingExplanation) -> str:
    rows = []
    for item in explanation.words:
        place = item.attention.index(max(item.attention))
        cells = [page.word(item.word), f'<span class="share">{page.bar(item.probability)} {item.probability:.1%}</span>']
        cells.append(f"{page.word(explanation.source[place])} {item.attention[place]:.2f}")
        if explanation.no_senses is None:
            cells += [page.chips([(gate.name, gate.gate) for gate in gates]) for gates in (item.sememes, item.raised)]
        rows.append(cells)
    columns = ["word", "probability", "looked at most"]
    if explanation.no_senses is None:
        columns += ["strongest sememes", "raised most above rest"]
    return page.table(columns, rows)
