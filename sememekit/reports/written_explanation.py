"""The page of an explanation of a written text, with the attention as a picture."""

from __future__ import annotations

from pathlib import Path

from sememekit.analysis.explain_writing import WritingExplanation, remarks
from sememekit.files import PAGE, write_output
from sememekit.reports import page

_CELL, _ROW, _MARGIN, _GAP = 22, 24, 8, 6
_LETTER = 13
"""Sizes of the picture in its own units; a letter of Chinese is as wide as high."""


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
