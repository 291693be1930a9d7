"""The page of an explanation of a written text, with the attention as a chart."""

from __future__ import annotations

from pathlib import Path

from sememekit.analysis.explain_writing import WritingExplanation, remarks
from sememekit.reports import pages
from sememekit.reports.charts import Heatmap, chart


def write_page(explanation: WritingExplanation, path: Path) -> None:
    """Write an explanation as a page that needs nothing else."""
    pages.write_page(path, explanation_page(explanation))


def explanation_page(explanation: WritingExplanation) -> str:
    """A whole page: the text, what was written for it, the attention as a chart, the sememes of each word."""
    shown = [chart(one) for one in charts(explanation)]
    return pages.render("written_explanation", explanation=explanation, remarks=remarks(explanation), charts=shown)


def charts(explanation: WritingExplanation) -> list[Heatmap]:
    """The weights of the attention: a row a written word, a column a word of the source; none where nothing was written."""
    if not explanation.words:
        return []
    most = [f"{item.word}: {explanation.source[item.attention.index(max(item.attention))]}" for item in explanation.words]
    title = f"Weights of the attention; most for {'; '.join(most)}"
    weights = tuple(tuple(item.attention) for item in explanation.words)
    return [Heatmap(title, tuple(explanation.source), tuple(item.word for item in explanation.words), weights)]
