"""The pages of ``explain`` for lattice models: a picture (Figures 1 and 3, Buckman and Neubig 2018), and Table 4."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

from sememekit.analysis.explain_lattice import (
    EmbeddingsReport,
    LatticeEdge,
    LatticeExplanation,
    LatticeSentence,
    WordEmbeddings,
)
from sememekit.files import PAGE, write_output
from sememekit.reports import page

_STEP, _SIDE, _ARC, _BELOW = 46, 28, 34, 78
_TOKEN: Final = 15
"""Pixels of a character of a token."""


def write_lattice_page(explanation: LatticeExplanation, path: Path) -> None:
    """Write an explanation as a page that needs nothing else."""
    title = "The lattice of a sentence"
    sections = "\n".join(_section(sentence) for sentence in explanation.sentences)
    body = f"<h1>{title}</h1>\n{_origin(explanation)}\n{_LEGEND}\n{sections}"
    write_output(path, page.document(title, body).encode(), PAGE)


def write_embeddings_page(report: EmbeddingsReport, path: Path) -> None:
    """Write what the embeddings of words are used for as a page that needs nothing else."""
    title = "What each embedding of a word is used for"
    origin = f'<p class="faint">Model <code>{page.text(report.run)}</code>, {page.text(report.checkpoint)}; occurrences in '
    origin += f"{page.text(report.split)}, evenly spaced over those where the embedding wins.</p>"
    body = "\n".join([f"<h1>{title}</h1>", origin, *map(_uses, report.words)])
    write_output(path, page.document(title, body).encode(), PAGE)


_LEGEND: Final = (
    '<p class="faint">An arc is a chunk; the wider and darker it is, the larger the share of the sentence\'s probability '
    "whose paths go over it, written at its top from 5% on. Orange arcs and boxes are the most probable path; dashed arcs are "
    "chunks outside the chunk vocabulary. Below each gap: the probability that a chunk ends there.</p>"
)


def _origin(explanation: LatticeExplanation) -> str:
    shape = f"chunks of at most {explanation.longest} tokens"
    if explanation.copies > 1:
        shape += f", at most {explanation.copies} embeddings each"
    return (
        f'<p class="faint">Model <code>{page.text(explanation.run)}</code>, {page.text(explanation.checkpoint)}: {shape}, '
        f"{page.text(explanation.marginal)}.</p>"
    )


def _section(sentence: LatticeSentence) -> str:
    words = " ".join(page.word(word) for word in sentence.viterbi)
    parts = [f'<section><h2 class="context">{words}</h2>', f'<div class="scroll">{lattice_picture(sentence)}</div>']
    if sentence.posterior != sentence.viterbi:
        parts.append(f"<p>Each place decided by itself: {' '.join(page.word(word) for word in sentence.posterior)}</p>")
    unknown = [token.text for token in sentence.tokens if not token.known]
    if unknown:
        parts.append(f'<p class="faint">Not in the vocabulary: {page.text(" ".join(dict.fromkeys(unknown)))}</p>')
    parts.append(f'<p class="faint">{sentence.nats:.2f} nats for the sentence and its end.</p>')
    rows = [
        (
            f"{edge.begin + 1}–{edge.end}",
            page.word(edge.text),
            str(edge.copy_number),
            f"{page.bar(edge.probability)} {edge.probability:.1%}",
        )
        for edge in sentence.edges
    ]
    table = page.table(("tokens", "chunk", "embedding", "posterior"), rows, numbers=(2,), compact=True)
    return "\n".join([*parts, f"<details><summary>All edges as a table</summary>{table}</details>", "</section>"])


def lattice_picture(sentence: LatticeSentence) -> str:
    """The lattice as an SVG: nodes on a line, an arc over it for each edge, tokens, words in boxes and boundaries below."""
    widest = max(len(token.text) for token in sentence.tokens)
    step = max(_STEP, widest * _TOKEN + 14)
    tallest = max(_height(edge) for edge in sentence.edges)
    line = tallest / 2 + 30
    width, height = 2 * _SIDE + step * len(sentence.tokens), line + _BELOW

    def node(place: int) -> float:
        return _SIDE + step * place

    parts = [f'<line class="grid" x1="{node(0)}" x2="{node(len(sentence.tokens))}" y1="{line:.0f}" y2="{line:.0f}"/>']
    for edge in sorted(sentence.edges, key=lambda edge: (edge.best, edge.probability)):
        colour = "var(--second)" if edge.best else "var(--first)"
        dashed = "" if edge.listed else ' stroke-dasharray="5 4"'
        left, right, peak = node(edge.begin), node(edge.end), line - _height(edge)
        curve = f"M {left} {line:.0f} Q {(left + right) / 2:.0f} {peak:.0f} {right} {line:.0f}"
        parts.append(
            f'<path d="{curve}" fill="none" stroke="{colour}" stroke-width="{1 + 4 * edge.probability:.2f}" '
            f'stroke-opacity="{0.15 + 0.85 * edge.probability:.2f}"{dashed}><title>{page.text(_name(edge))}</title></path>'
        )
    for edge in sentence.edges:
        if edge.probability >= 0.05:
            middle, top = (node(edge.begin) + node(edge.end)) / 2, line - _height(edge) / 2 - 5
            parts.append(f'<text x="{middle:.0f}" y="{top:.0f}" text-anchor="middle">{edge.probability:.0%}</text>')
    for edge in sentence.edges:
        if edge.best:
            corner, size = f'x="{node(edge.begin) + 3}" y="{line + 10:.0f}"', f'width="{step * (edge.end - edge.begin) - 6}"'
            parts.append(f'<rect {corner} {size} height="26" rx="5" fill="none" stroke="var(--second)"/>')
    for place, token in enumerate(sentence.tokens):
        middle = node(place) + step / 2
        style = "" if token.known else ' style="fill:var(--second)"'
        parts.append(f'<circle cx="{node(place)}" cy="{line:.0f}" r="3.5" fill="var(--ink)"/>')
        where = f'x="{middle:.0f}" y="{line + 28:.0f}" text-anchor="middle"{style}'
        parts.append(f'<text {where} lang="zh-Hans">{page.text(token.text)}</text>')
        if place + 1 < len(sentence.tokens):
            parts.append(
                f'<text class="tick" x="{node(place + 1)}" y="{line + 54:.0f}" text-anchor="middle">{token.boundary:.0%}</text>'
            )
    parts.append(f'<circle cx="{node(len(sentence.tokens))}" cy="{line:.0f}" r="3.5" fill="var(--ink)"/>')
    label = page.text("Lattice; most probable path: " + " | ".join(sentence.viterbi))
    return (
        f'<figure><svg viewBox="0 0 {width} {height:.0f}" style="width:{width}px;max-width:none" role="img" '
        f'aria-label="{label}">{"".join(parts)}</svg></figure>'
    )


def _height(edge: LatticeEdge) -> float:
    """Height of the control point of an arc: longer edges go higher, further embeddings above the first."""
    return _ARC * 2 * math.sqrt(edge.end - edge.begin) + _ARC * 1.4 * (edge.copy_number - 1)


def _name(edge: LatticeEdge) -> str:
    number = f", embedding {edge.copy_number}" if edge.copy_number > 1 else ""
    return f"{edge.text}{number}: {edge.probability:.1%}"


def _uses(word: WordEmbeddings) -> str:
    """One word: a column for each embedding, as in Table 4."""
    parts = [f'<section><h2>{page.word(word.word)} <span class="faint">{word.occurrences:,} times</span></h2>']
    columns = []
    for use in word.embeddings:
        lines = [
            f"<p>{page.word('… ' + context.before)} <b>{page.word(word.word)}</b> {page.word(context.after + ' …')} "
            f'<span class="faint">{context.probability:.0%}</span></p>'
            for context in use.contexts
        ]
        head = f"{page.word(word.word)}<sub>{use.number}</sub> wins {use.wins:,} times, mean {use.mean:.0%}"
        head += f' <span class="faint">{page.word(use.sense)}</span>' if use.sense else ""
        columns.append(f"<div><h3>{head}</h3>{''.join(lines) or '<p class=faint>nowhere</p>'}</div>")
    return "\n".join([*parts, f'<div class="beside">{"".join(columns)}</div>', "</section>"])
