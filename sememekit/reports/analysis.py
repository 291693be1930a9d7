"""The page of ``sememekit analyze``: a table, the singular values as a chart, and the predictions that differ most."""

from typing import Final

from sememekit.analysis.analyze import Analysis, RunAnalysis
from sememekit.reports import pages
from sememekit.reports.charts import Curves, Line, chart


def analysis_page(analysis: Analysis) -> str:
    """A whole page for one analysis."""
    names = [_name(analysis.runs, number) for number in range(len(analysis.runs))]
    found = () if analysis.comparison is None else analysis.comparison.better
    better = [(names[winner], names[1 - winner], cases) for winner, cases in enumerate(found)]
    shown = {"remark": remark(analysis), "columns": COLUMNS, "rows": rows(analysis), "better": better}
    return pages.render("analysis", analysis=analysis, charts=[chart(one) for one in charts(analysis)], **shown)


def charts(analysis: Analysis) -> list[Curves]:
    """Cumulative share of normalised singular values over a logarithmic axis, one line a run."""
    lines = [Line(f"{_name(analysis.runs, number)}, rank {run.rank:,}", run.curve) for number, run in enumerate(analysis.runs)]
    title = f"Cumulative share of normalised singular values: {'; '.join(line.name for line in lines)}"
    x, y = "singular value, the largest = 1", "share that is at most as large"
    return [Curves(title, x, y, tuple(lines), scale="percent", x_scale="log", show=".1%", show_x=".1e", end_values=False)]


def remark(analysis: Analysis) -> str:
    """Which text, and how much of it, in a sentence."""
    if analysis.why_sampled is None:
        return f"All {analysis.contexts:,} contexts of the split {analysis.split}."
    return f"A sample of the split {analysis.split} (seed {analysis.seed}): {analysis.why_sampled}."


def rows(analysis: Analysis) -> list[tuple[str, ...]]:
    """A row of words and numbers for each run."""
    return [
        (
            run.run,
            run.decoder,
            f"{run.perplexity:,.2f}",
            f"{run.rank:,} of {run.full_rank:,}",
            f"{run.divergence:.3f}",
            f"{run.smallest / run.largest:.1e}",
            f"{run.round_off / run.largest:.1e}",
        )
        for run in analysis.runs
    ]


COLUMNS: Final = (
    "run",
    "output layer",
    "perplexity",
    "rank",
    "pairwise KL (nats)",
    "smallest / largest singular value",
    "round-off / largest",
)


def _name(runs: tuple[RunAnalysis, ...], number: int) -> str:
    names = [run.decoder for run in runs]
    return names[number] if names.count(names[number]) == 1 else runs[number].run
