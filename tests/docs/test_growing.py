"""The figures of docs/results/growing.md are those of the reports beside it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
PAGE = (RESULTS / "growing.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]


def report(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / "growing" / f"{name}.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize(("name", "number"), [("suggest", "6,000"), ("suggest-vectors", "1,500")])
def test_scores_of_suggestions(name: str, number: str) -> None:
    found = report(name)
    lengths = {f"{size} character{'s' if size != '1' else ''}": scores for size, scores in found["by_length"].items()}
    ranks = {f"rank {band}": scores for band, scores in found["by_rank"].items()}
    groups = {"all": found["scores"], **lengths, **ranks}
    expected = {
        (kind, one["method"], f"{one['words']:,}"): [f"{one['map']:.4f}", f"{one['f1']:.4f}"]
        for kind, scores in groups.items()
        for one in scores
    }
    begin = next(place for place, row in enumerate(ROWS) if row[0] == "all" and row[2] == number)
    end = next((place for place, row in enumerate(ROWS) if place > begin and row[0] in ("words", "model", "tokens")), len(ROWS))
    shown = {tuple(row[:3]): row[3:] for row in ROWS[begin:end]}
    assert len(shown) >= 10
    assert shown == {key: expected[key] for key in shown}
    assert f"{found['num_words']:,} words and {found['num_sememes']:,} sememes" in PAGE


WAYS = (
    "equal shares",
    "shares by counts",
    "shares by characters",
    "extended",
    "extended, sememes exchanged",
    "trained with the words",
)
"""What the rows of a report are, in their order."""
RUNS = sorted(path.stem for path in (RESULTS / "growing").glob("*-[0-9].json"))


def share_of_the_way(rows: list[dict[str, float]]) -> float:
    """From equal shares to the model that was trained with the words, in the mean nats of the new words."""
    nats = [math.log(row["new"]) for row in rows]
    return (nats[0] - nats[3]) / (nats[0] - nats[5])


@pytest.mark.parametrize("name", RUNS)
def test_perplexities_of_new_words(name: str) -> None:
    found, (model, seed) = report(name), name.split("-")
    assert len(found["rows"]) == len(WAYS)
    for way, row in zip(WAYS, found["rows"], strict=True):
        figures = [f"{row[key]:,.1f}" for key in ("new", "others", "perplexity")]
        ranks = [f"{row[key]:.4f}" for key in ("reciprocal_rank", "reciprocal_rank_among_new")]
        assert [model, seed, way, *figures, *ranks] in ROWS
    assert f"{found['new_tokens']:,} of {found['tokens']:,} tokens" in PAGE
    assert [f"{model}, seed {seed}", f"{share_of_the_way(found['rows']):.0%}".replace("%", " %")] in [row[:2] for row in ROWS]


@pytest.mark.parametrize(("model", "trained"), [("softmax", "softmax-1"), ("sdlm", "sdlm-3")])
def test_random_labels(model: str, trained: str) -> None:
    rows, last = report(f"{model}-random")["rows"], report(trained)["rows"][5]
    way = share_of_the_way([*rows, rows[3], last])
    assert f"{rows[3]['new']:,.1f}, which is {way:.0%} of the way".replace("%", " %") in " ".join(PAGE.split())


def test_perplexities_by_the_size_of_the_text() -> None:
    found, models = report("curve"), ("softmax", "sdlm-hownet", "sdlm-open", "sdlm-random")
    expected = []
    for size in sorted({int(cell.split()[0]) for cell in found}):
        cells = [found.get(f"{size} {model}") for model in models]  # the open lexicon was not run at every size
        first = next(iter(found[f"{size} softmax"].values()))
        for band in ("any", *first["bands"]):

            def mean(cell: dict[str, Any], band: str = band) -> float:
                runs = [run if band == "any" else run["bands"][band] for run in cell.values()]
                return math.exp(sum(math.log(run["perplexity"]) for run in runs) / len(runs))

            means = [None if cell is None else mean(cell) for cell in cells]
            share = 1.0 if band == "any" else first["bands"][band]["tokens"] / first["tokens"]
            row = [f"{size:,}", str(len(cells[0] or ())), band, "100 %" if band == "any" else f"{share:.1%}".replace("%", " %")]
            effect = f"{(means[1] or 0) / (means[0] or 1) - 1:+.1%}".replace("%", " %")
            expected.append([*row, *("" if each is None else f"{each:,.1f}" for each in means), effect])
    begin = next(place for place, row in enumerate(ROWS) if row[0] == "tokens")
    assert ROWS[begin + 1 : begin + 1 + len(expected)] == expected


def test_accuracies_with_words_that_training_never_had() -> None:
    found, expected = report("open-vocabulary"), []
    for cell, seeds in found.items():
        data, _, model = cell.partition(" ")
        for seed, ways in seeds.items():
            unknown, opened = (100 * ways[way]["accuracy"] for way in ("unknown", "open"))
            expected.append([data, model, seed, f"{unknown:.1f}", f"{opened:.1f}", f"{opened - unknown:+.1f}"])
    begin = next(place for place, row in enumerate(ROWS) if row[0] == "data")
    assert ROWS[begin + 1 : begin + 1 + len(expected)] == sorted(expected, key=lambda row: (-ord(row[0][0]), *row[1:3]))
