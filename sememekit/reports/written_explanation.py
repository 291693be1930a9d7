"""The page of an explanation of a written text, with the attention as a chart."""

from sememekit.analysis.explanations.written_text import OverlayWriting, WritingExplanation, remarks
from sememekit.reports import explanation as of_words
from sememekit.reports import pages
from sememekit.reports.charts import Heatmap, chart


def explanation_page(explanation: WritingExplanation) -> str:
    """A whole page: the text, what was written for it, the attention as a chart, the sememes of each word."""
    shown = [chart(one) for one in charts(explanation)]
    tables = compared(explanation) if isinstance(explanation, OverlayWriting) else []
    return pages.render(
        "written_explanation", explanation=explanation, remarks=remarks(explanation), charts=shown, tables=tables
    )


def compared(explanation: OverlayWriting) -> list[of_words.Compared]:
    """The text as trained under both models, and the changed words at its places; the largest changes first."""
    figure = of_words.probability
    text = [(one.word, figure(one.probability_before), figure(one.probability_after)) for one in explanation.text]
    words = [
        (
            one.word,
            f"{one.place}. {one.written}",
            figure(one.probability_before),
            figure(one.probability_after),
            f"{one.rank_before:,}",
            f"{one.rank_after:,}",
        )
        for one in explanation.changed_words
    ]
    sides = ("as trained", "with overlay")
    ranks = ("rank as trained", "rank with overlay")
    found = []
    if text:
        title = "Its words"
        found.append(of_words.Compared(title, ("word", *sides), text, 2, 0))
        shown, left = words[: of_words.SHOWN], max(0, len(words) - of_words.SHOWN)
        title = "Changed words in their places"
        found.append(of_words.Compared(title, ("changed word", "in the place of", *sides, *ranks), shown, 4, left))
    return found


def charts(explanation: WritingExplanation) -> list[Heatmap]:
    """The weights of the attention: a row a written word, a column a word of the source; none where nothing was written."""
    if not explanation.words:
        return []
    most = [f"{item.word}: {explanation.source[item.attention.index(max(item.attention))]}" for item in explanation.words]
    title = f"Weights of the attention; most for {'; '.join(most)}"
    weights = tuple(tuple(item.attention) for item in explanation.words)
    return [Heatmap(title, tuple(explanation.source), tuple(item.word for item in explanation.words), weights)]
