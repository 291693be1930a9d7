"""The drawings of the page as PDF, drawn by matplotlib, which has the fonts."""

from base64 import b64encode

from sememekit.config import Record
from sememekit.reports.charts import figure_file
from sememekit.serve.questions import PdfQuestion
from sememekit.serve.runs import Bench


class PdfAnswer(Record):
    """A PDF in base64."""

    pdf: str


def pdf(bench: Bench, question: PdfQuestion) -> PdfAnswer:
    """A drawing of the page as PDF; its text stays text."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Polygon

    width, height = question.width, question.height

    def draw() -> Figure:
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        for one in question.shapes:
            points = [(x / width, 1 - y / height) for x, y in zip(one.points[::2], one.points[1::2], strict=False)]
            fill, stroke = one.fill or "none", one.stroke or "none"
            if one.text:
                figure.text(*points[0], one.text, color=fill, size=one.size, ha=one.anchor, parse_math=False)
                continue
            outline = Polygon(points, closed=one.fill is not None, alpha=one.opacity, transform=figure.transFigure)
            outline.set(facecolor=fill, edgecolor=stroke, linewidth=one.width)
            figure.add_artist(outline)
        return figure

    return PdfAnswer(pdf=b64encode(figure_file(draw, "pdf", "PDF")).decode())
