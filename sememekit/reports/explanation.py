"""An explanation of ``sememekit explain`` as a page."""

from __future__ import annotations

from pathlib import Path

from sememekit.analysis.explain import BLANKS, Explanation
from sememekit.reports import pages


def write_page(explanation: Explanation, path: Path) -> None:
    """Write an explanation as a page that needs nothing else."""
    pages.write_page(path, explanation_page(explanation))


def explanation_page(explanation: Explanation) -> str:
    """A whole page for one explanation."""
    return pages.render("explanation", explanation=explanation, remarks=remarks(explanation))


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
