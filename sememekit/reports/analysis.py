"""The page of ``sememekit analyze``: a table, the singular values as a chart, and the predictions that differ most."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sememekit.analysis.analyze import Analysis, Case, Prediction, RunAnalysis
from sememekit.files import PAGE, write_output
from sememekit.reports import page

_WIDTH, _HEIGHT = 720, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 24, 16, 46
_DECADES: Final = 12
_COLOURS: Final = ("var(--first)", "var(--second)")
_DASHES: Final = ("", "6 4")


def write_analysis_page(analysis: Analysis, path: Path) -> None:
    """Write an analysis as a page that needs nothing else."""
    write_output(path, analysis_page(analysis).encode(), PAGE)


def analysis_page(analysis: Analysis) -> str:
    """A whole page for one analysis."""
    title = "How rich the predictions are"
    parts = [f"<h1>{title}</h1>", f'<p class="faint">{page.text(remark(analysis))}</p>', _table(analysis)]
    parts += [
        "<h2>Singular values</h2>",
        f"<p>Share of the singular values of the {analysis.contexts:,} × {analysis.words:,} matrix of log-probabilities that "
        "are at most the value on the axis, the largest set to 1. The further to the right a curve rises, the more "
        "directions the predictions vary in.</p>",
        cumulative_chart(analysis.runs),
    ]
    if analysis.comparison is not None:
        for winner, cases in enumerate(analysis.comparison.better):
            parts.append(_cases(analysis, winner, cases))
    parts.append(f'<p class="faint">Signature of the perplexities: <code>{page.text(analysis.signature)}</code></p>')
    return page.document(title, "\n".join(parts))


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


def cumulative_chart(runs: tuple[RunAnalysis, ...]) -> str:
    """Cumulative share of normalised singular values over a logarithmic axis, one line a run."""

    def across(exponent: float) -> float:
        return _LEFT + (exponent + _DECADES) / _DECADES * (_WIDTH - _LEFT - _RIGHT)

    def down(share: float) -> float:
        return _TOP + (1.0 - share) * (_HEIGHT - _TOP - _BOTTOM)

    parts = []
    for percent in range(0, 101, 25):
        height = down(percent / 100)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>')
        parts.append(f'<text class="tick" x="{_LEFT - 8}" y="{height + 4:.1f}" text-anchor="end">{percent} %</text>')
    for exponent in range(-_DECADES, 1, 2):
        place = f'x="{across(exponent):.1f}" y="{_HEIGHT - _BOTTOM + 20}"'
        name = "1" if exponent == 0 else f"1e{exponent}"
        parts.append(f'<text class="tick" {place} text-anchor="middle">{name}</text>')
    for number, (run, colour, dash) in enumerate(zip(runs, _COLOURS, _DASHES, strict=False)):
        steps = len(run.curve) - 1
        exponents = (-_DECADES + _DECADES * index / steps for index in range(len(run.curve)))
        shares = (share for _, share in run.curve)
        points = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in zip(exponents, shares, strict=True))
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"{dashed}/>')
        # Both curves have risen by the right end, so the corner below them is free.
        place = f'x="{_WIDTH - _RIGHT - 12}" y="{_HEIGHT - _BOTTOM - 34 + 20 * number}" text-anchor="end"'
        parts.append(f'<text {place} style="fill:{colour}">{page.text(_name(runs, number))}, rank {run.rank:,}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{_HEIGHT - 6}" text-anchor="middle">singular value, the largest = 1</text>')
    label = "Cumulative share of normalised singular values: " + ", ".join(
        f"{_name(runs, number)} has rank {run.rank:,}" for number, run in enumerate(runs)
    )
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    return f'<figure><svg {size} role="img" aria-label="{page.text(label)}">{"".join(parts)}</svg></figure>'


def _name(runs: tuple[RunAnalysis, ...], number: int) -> str:
    """The output layer, or the run where two have the same."""
    names = [run.decoder for run in runs]
    return names[number] if names.count(names[number]) == 1 else runs[number].run


def _table(analysis: Analysis) -> str:
    cells = [(f"<code>{page.text(row[0])}</code>", *(page.text(cell) for cell in row[1:])) for row in rows(analysis)]
    return page.table(COLUMNS, cells, numbers=(2, 3, 4, 5, 6))


def _cases(analysis: Analysis, winner: int, cases: tuple[Case, ...]) -> str:
    better, worse = _name(analysis.runs, winner), _name(analysis.runs, 1 - winner)
    head = f"<h2>Where {page.text(better)} expected the word and {page.text(worse)} less</h2>"
    if not cases:
        return head + "<p>Nowhere among its likeliest words.</p>"
    blocks = []
    for case in cases:
        context = " ".join(page.word(word) for word in case.context)
        lines = [
            (page.text(name), _words(prediction, case.reference), f"{prediction.reference:.4f}")
            for name, prediction in ((better, case.better), (worse, case.worse))
        ]
        table = page.table(("model", "likeliest next words", "probability of the word that came"), lines, numbers=(2,))
        blocks.append(
            f'<section><p class="context">{context} <b>{page.word(case.reference)}</b> '
            f'<span class="faint">(word {case.position:,} of the split, {case.gain:.2f} nats)</span></p>{table}</section>'
        )
    return head + "\n".join(blocks)


def _words(prediction: Prediction, reference: str) -> str:
    parts = []
    for word, probability in prediction.words:
        shown = f"<b>{page.word(word)}</b>" if word == reference else page.word(word)
        parts.append(f"{shown} {probability:.2f}")
    return ", ".join(parts)
