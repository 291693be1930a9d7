"""An explanation of ``sememekit explain`` as a page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sememekit.analysis.explain import BLANKS, Explanation, SememeGate, SenseShare
from sememekit.files import PAGE, write_output
from sememekit.reports import page


def write_page(explanation: Explanation, path: Path) -> None:
    """Write an explanation as a page that needs nothing else."""
    write_output(path, explanation_page(explanation).encode(), PAGE)


def explanation_page(explanation: Explanation) -> str:
    """A whole page for one explanation."""
    title = "What comes next, and why"
    origin = f"Model <code>{page.text(explanation.run)}</code>, {page.text(explanation.checkpoint)}, output layer "
    origin += f"<code>{page.text(explanation.decoder)}</code>"
    body = f'<h1>{title}</h1>\n<p class="faint">{origin}</p>\n{explanation_section(explanation)}'
    return page.document(f"{title}: {' '.join(word.word for word in explanation.context)}", body)


def explanation_section(explanation: Explanation, level: int = 2) -> str:
    """An explanation as a section of a page, with headings of ``level`` and the one below."""
    read = " ".join(page.word(word.word, "" if word.known else "unknown") for word in explanation.context)
    parts = [f'<section><h{level} class="context">{read} …</h{level}>']
    parts += [f'<p class="faint">{page.text(line)}</p>' for line in remarks(explanation)]
    if explanation.no_senses is None:
        parts.append(_table_with_senses(explanation))
        lists = (("Strongest sememes", explanation.sememes), ("Sememes that this context raises most", explanation.raised))
        tables = [f"<div><h{level + 1}>{name}</h{level + 1}>{_table_of_gates(items)}</div>" for name, items in lists]
        parts.append(f'<div class="beside">{"".join(tables)}</div>')
        parts.append('<p class="faint">A gate of 0 is shut, one of 1 is open; at rest is its value for an empty context.</p>')
    else:
        likeliest = [(page.word(word.word), _probability(word.probability)) for word in explanation.words]
        parts.append(page.table(("next word", "probability"), likeliest, compact=True))
    return "\n".join([*parts, "</section>"])


def remarks(explanation: Explanation) -> list[str]:
    """What a reader must know about how the context was read, a sentence each."""
    lines = []
    if explanation.segmentation != BLANKS:
        lines.append(f"Cut into words by {explanation.segmentation}.")
    changed = [f"{word.word} as {word.read_as}" for word in explanation.context if word.known and word.word != word.read_as]
    if changed:
        lines.append(f"Read {', '.join(dict.fromkeys(changed))}.")
    if explanation.unknown:
        unknown = next(word.read_as for word in explanation.context if not word.known)
        lines.append(f"The model does not know {', '.join(explanation.unknown)} and read {unknown} instead.")
    if explanation.no_senses is not None:
        lines.append(f"No senses: {explanation.no_senses}.")
    return lines


def _table_with_senses(explanation: Explanation) -> str:
    rows = []
    for word in explanation.words:
        senses = "".join(_sense(sense) for sense in word.senses)
        if not word.annotated:
            senses = f'<p class="faint">no annotation</p>{senses}'
        rows.append((page.word(word.word), _probability(word.probability), senses))
    return page.table(("next word", "probability", "senses: share of the word, sememes with their gates"), rows)


def _table_of_gates(sememes: Iterable[SememeGate]) -> str:
    rows = [(page.word(item.name), _gate(item.gate), f"{item.at_rest:.2f}") for item in sememes]
    return page.table(("sememe", "gate", "at rest"), rows, numbers=(2,), compact=True)


def _sense(sense: SenseShare) -> str:
    label = f" {page.word(sense.title)}" if sense.title else ""
    share = f'<span class="share">{page.bar(sense.share, "narrow")} {sense.share:.0%}</span>'
    return f'<div class="sense">{share}{label} {page.chips([(item.name, item.gate) for item in sense.sememes])}</div>'


def _gate(value: float) -> str:
    return f'<span class="share">{page.bar(value)} {value:.2f}</span>'


def _probability(value: float) -> str:
    return f'<span class="share">{page.bar(value)} {value:.1%}</span>'
