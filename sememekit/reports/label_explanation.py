"""The page of an explanation of a label."""

from __future__ import annotations

from pathlib import Path

from sememekit.analysis.explain_label import HOW, LabelExplanation, ReadText, remarks
from sememekit.files import PAGE, write_output
from sememekit.reports import page


def write_page(explanation: LabelExplanation, path: Path) -> None:
    """Write an explanation as a page that needs nothing else."""
    write_output(path, explanation_page(explanation).encode(), PAGE)


def explanation_page(explanation: LabelExplanation) -> str:
    """A whole page: the labels, each text with its words, and the strongest sememes."""
    title = f"Why {explanation.label}"
    origin = f"Model <code>{page.text(explanation.run)}</code>, {page.text(explanation.checkpoint)}, encoder "
    origin += f"<code>{page.text(explanation.encoder)}</code>"
    parts = [f"<h1>{page.text(title)}</h1>", f'<p class="faint">{origin}</p>']
    parts += [f'<p class="faint">{page.text(line)}</p>' for line in remarks(explanation)]
    rows = [
        (page.text(name), f'<span class="share">{page.bar(value)} {value:.1%}</span>')
        for name, value in explanation.labels.items()
    ]
    parts.append(page.table(("label", "probability"), rows, compact=True))
    largest = max(
        (abs(word.effect) for text in explanation.texts for word in text.words if word.effect is not None), default=0.0
    )
    for text in explanation.texts:
        line = " ".join(page.word(word.word, "" if word.known else "unknown") for word in text.words)
        parts += [f'<h2>{page.text(text.name)}</h2><p class="context">{line}</p>', _table(explanation, text, largest)]
    if explanation.sememes:
        top = max(abs(item.effect) for item in explanation.sememes)
        strong = [
            (
                page.word(item.name),
                f'{page.word(item.word)} <span class="faint">({page.text(item.text)}, word {item.place})</span>',
                _signed(item.effect, top),
                f"{item.gradient:+.3f}",
            )
            for item in explanation.sememes
        ]
        parts.append("<h2>Sememes that moved it most</h2>")
        parts.append(page.table(("sememe", "of", "effect", "gradient"), strong, numbers=(3,), compact=True))
    parts.append(f'<p class="faint">{page.text(HOW)}</p>')
    return page.document(
        f"{title}: {' / '.join(' '.join(word.word for word in text.words) for text in explanation.texts)}", "\n".join(parts)
    )


def _table(explanation: LabelExplanation, text: ReadText, largest: float) -> str:
    columns = ["word", "effect", "gradient"]
    numbers = [2]
    if explanation.no_sememes is None:
        columns += ["without its sememes", "sememes with their effects"]
        numbers.append(3)
    rows = []
    for word in text.words:
        if word.effect is None:
            rows.append([page.word(word.word), "left out", *[""] * (len(columns) - 2)])
            continue
        cells = [page.word(word.word), _signed(word.effect, largest), f"{word.gradient:+.3f}"]
        if explanation.no_sememes is None:
            cells.append("–" if word.without_sememes is None else f"{word.without_sememes:+.3f}")
            cells.append(", ".join(f"{page.word(item.name)} {item.effect:+.3f}" for item in word.sememes) or "none")
        rows.append(cells)
    return page.table(columns, rows, numbers=numbers)


def _signed(value: float, largest: float) -> str:
    """A number with a bar as long as its size; those against the label are narrow and of the second colour."""
    share = abs(value) / largest if largest else 0.0
    return f'<span class="share">{page.bar(share, "" if value >= 0 else "narrow")} {value:+.3f}</span>'
