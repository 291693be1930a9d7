"""The page of an explanation of a label."""

from __future__ import annotations

from pathlib import Path

from sememekit.analysis.explanations.label import HOW, LabelExplanation, remarks
from sememekit.reports import pages


def write_page(explanation: LabelExplanation, path: Path) -> None:
    """Write an explanation as a page that needs nothing else."""
    pages.write_page(path, explanation_page(explanation))


def explanation_page(explanation: LabelExplanation) -> str:
    """A whole page: the labels, each text with its words, and the largest gates."""
    effects = [abs(word.effect) for text in explanation.texts for word in text.words if word.effect is not None]
    top = max((abs(item.effect) for item in explanation.sememes), default=0.0)
    shown = {"remarks": remarks(explanation), "largest": max(effects, default=0.0), "top": top, "how": HOW}
    return pages.render("label_explanation", explanation=explanation, **shown)
