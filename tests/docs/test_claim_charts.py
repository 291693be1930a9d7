"""Charts of claims on the pages of results: the gain over a baseline with its interval, and the gain in the paper.

Write them anew after a claim was run, and read the difference:

    python -m tests.docs.test_claim_charts
"""

from __future__ import annotations

import re
from html import escape
from itertools import pairwise
from pathlib import Path

from sememekit.claims.claims import load_claims
from sememekit.jobs.reproduce import judged

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
CHARTS: dict[str, tuple[str, dict[str, str]]] = {
    "sdlm": (
        "Lower test perplexity than the softmax",
        {
            "sdlm-exact-below-softmax": "SDLM, exact",
            "sdlm-until-first-cut-below-softmax": "SDLM, exact from first cut",
            "sdlm-below-softmax": "SDLM, 1,000 sampled words",
            "sdlm-random-below-softmax": "random labels for sememes",
            "sdlm-single-below-softmax": "one sememe for each word",
            "mos-below-softmax-tied": "mixture of softmaxes",
            "class-above-softmax": "classes by frequency",
            "sdlm-below-softmax-english": "SDLM, in English",
            "sdlm-below-softmax-transformer": "SDLM, on a transformer",
        },
    ),
    "self-organized": (
        "Lower test perplexity than the full softmax",
        {
            "sampling-above-softmax": "softmax, sampled words",
            "self-organized-equals-softmax": "learned clusters",
            "differentiated-above-softmax": "differentiated softmax",
            "class-above-full-softmax": "clusters by frequency",
            "adaptive-above-softmax": "adaptive softmax",
        },
    ),
    "mixtures": (
        "Lower test perplexity than one softmax",
        {
            "mos-below-softmax": "Penn Treebank, softmaxes",
            "moc-below-softmax": "Penn Treebank, contexts",
            "mos-below-softmax-dynamic": "the same, dynamic evaluation",
            "mos-below-softmax-wikitext2": "WikiText-2, softmaxes",
            "mos-switchboard": "Switchboard, softmaxes",
            "moc-switchboard": "Switchboard, contexts",
        },
    ),
    "sememe-rnn": (
        "Lower perplexity, higher accuracy than without sememes",
        {
            "lstm-concat-below-lstm": "LSTM, concat: perplexity",
            "lstm-gate-below-lstm": "LSTM, gate",
            "lstm-cell-below-lstm": "LSTM, cell",
            "gru-concat-below-gru": "GRU, concat",
            "gru-gate-below-gru": "GRU, gate",
            "gru-cell-below-gru": "GRU, cell",
            "snli-concat-above-bilstm": "BiLSTM, concat: accuracy",
            "snli-gate-above-bilstm": "BiLSTM, gate",
            "snli-cell-above-bilstm": "BiLSTM, cell",
            "nli-concat-above-labels": "concat against random labels",
            "nli-gate-above-labels": "gate against random labels",
            "nli-cell-above-labels": "cell against random labels",
        },
    ),
    "attacks": (
        "Lower success rate than against the BiLSTM",
        {
            "cell-harder-to-attack-nli": "cell: inference, same sememes",
            "cell-harder-to-attack-neighbours": "cell: inference, neighbours",
            "cell-harder-to-attack": "cell: sentiment, same sememes",
            "adversarial-training": "trained again: same sememes",
            "adversarial-training-neighbours": "trained again: neighbours",
        },
    ),
    "lattice": (
        "Lower test perplexity than the plain LSTM",
        {
            "lattice-chinese-l2": "Chinese, chunks of two",
            "lattice-chinese-e2": "Chinese, two small embeddings",
            "lattice-l1-below-baseline": "English, one path",
            "lattice-l2-below-baseline": "English, chunks of two",
            "lattice-e2-half-below-baseline": "English, two small embeddings",
            "lattice-e2-below-baseline": "English, two embeddings",
            "lattice-e3-below-baseline": "English, three embeddings",
        },
    ),
    "headlines": (
        "Higher ROUGE, lower perplexity than the softmax",
        {
            "self-organized-headlines": "Gigaword, clusters: ROUGE-1",
            "self-organized-headlines-rouge-2": "Gigaword, clusters: ROUGE-2",
            "self-organized-headlines-rouge-l": "Gigaword, clusters: ROUGE-L",
            "sdlm-headlines": "People's Daily, SDLM: ROUGE-1",
            "sdlm-headlines-rouge-2": "People's Daily, SDLM: ROUGE-2",
            "sdlm-headlines-rouge-l": "People's Daily, SDLM: ROUGE-L",
            "mos-switchboard": "Switchboard, MoS: perplexity",
        },
    ),
}
"""A page of results -> the title of its chart, and claim -> label of a row."""
LEFT, WIDTH, ROW, TOP = 250, 690, 27, 64
SMALL = 'font-size="12" fill="#52606d"'
BETTER, WORSE, OPEN = "#2b8a3e", "#b3541e", "#697586"


def gains(name: str) -> list[tuple[str, tuple[float, float, float], float | None]]:
    """Label, gain with its interval and gain in the paper of each row, in per cent; above 0 is better."""
    labels = CHARTS[name][1]
    claims = judged(Path("nowhere"), list(labels), False, ROOT / "docs" / "results" / "claims")
    found = []
    for claim in claims:
        assert claim.effect is not None, claim.name
        value, low, high = (100 * float(one) for one in claim.effect if one is not None)
        sign = -1 if re.search("perplexity|success rate", claim.metric) else 1
        paper = None if claim.published is None else sign * 100 * claim.published
        low, high = sorted((sign * low, sign * high))
        found.append((labels[claim.name], (sign * value, low, high), paper))
    return found


def chart(name: str) -> str:
    """A chart as SVG: a bar for each interval, a dot for the gain, a diamond for the paper's."""
    rows = gains(name)
    ends = [edge for _label, gain, paper in rows for edge in (*gain, *([] if paper is None else [paper]))]
    step = next(step for step in (1, 2, 5, 10, 20) if (max(ends) - min(ends)) / step <= 9)
    first, last = int(min(*ends, 0) // step), -int(-max(*ends, 0) // step)
    height = TOP + ROW * len(rows) + 34

    def x(value: float) -> str:
        return f"{LEFT + (value - first * step) / ((last - first) * step) * (WIDTH - LEFT - 24):.1f}"

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" font-family="system-ui, sans-serif"'
        ' font-size="14">',
        f"  <title>{escape(CHARTS[name][0])}, in per cent</title>",
        f'  <rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
        f'  <text x="16" y="26" font-weight="600" fill="#1f2933">{escape(CHARTS[name][0])}, %</text>',
        f'  <text x="16" y="45" {SMALL}>bar: 95 % interval over seeds; diamond: the paper; right of 0 is better</text>',
    ]
    for tick in range(first, last + 1):
        shade = "#52606d" if tick == 0 else "#dde3ea"
        bottom = height - 30
        lines += [
            f'  <path d="M{x(tick * step)} {TOP - 8}V{bottom}" stroke="{shade}"/>',
            f'  <text x="{x(tick * step)}" y="{bottom + 17}" text-anchor="middle" {SMALL}>{tick * step}</text>',
        ]
    for place, (label, (value, low, high), paper) in enumerate(rows):
        y = TOP + ROW * place + 8
        colour = BETTER if low > 0 else WORSE if high < 0 else OPEN
        lines += [
            f'  <text x="{LEFT - 14}" y="{y + 5}" text-anchor="end" fill="#1f2933">{escape(label)}</text>',
            f'  <path d="M{x(low)} {y}H{x(high)}" stroke="{colour}" stroke-width="7" stroke-opacity="0.45"/>',
            f'  <circle cx="{x(value)}" cy="{y}" r="5" fill="{colour}"/>',
        ]
        if paper is not None:
            diamond = f"M{x(paper)} {y - 6}l6 6l-6 6l-6 -6z"
            lines.append(f'  <path d="{diamond}" fill="#ffffff" fill-opacity="0.6" stroke="#1f2933" stroke-width="1.5"/>')
    return "\n".join([*lines, "</svg>", ""])


def path_of(name: str) -> Path:
    return PICTURES / f"claims-{name}.svg"


def test_the_charts_show_the_claims_of_today() -> None:
    old = [name for name in CHARTS if path_of(name).read_text(encoding="utf-8") != chart(name)]
    assert not old, f"python -m tests.docs.test_claim_charts: {old}"


def test_each_chart_stands_on_its_page() -> None:
    for name, (title, _labels) in CHARTS.items():
        page = (ROOT / "docs" / "results" / f"{name}.md").read_text(encoding="utf-8")
        assert f"![{title}, in per cent" in page, name


def test_every_label_is_of_one_claim_and_fits() -> None:
    for _title, labels in CHARTS.values():
        assert set(labels) <= set(load_claims())
        assert all(len(label) <= 30 for label in labels.values())
        assert all(one != other for one, other in pairwise(sorted(labels.values())))


if __name__ == "__main__":
    for each in CHARTS:
        path_of(each).write_text(chart(each), encoding="utf-8")
