"""Every figure of the tables in docs/results/senses.md is in the JSON that eval --senses wrote."""

from __future__ import annotations

import json
import re
from math import prod
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
PAGE = (RESULTS / "senses.md").read_text(encoding="utf-8")
RUNS = [f"sdlm-{seed}-{lexicon}" for lexicon in ("list", "own") for seed in (1, 2, 3)]
FOUND: dict[str, dict[str, Any]] = {
    name: json.loads((RESULTS / "senses" / f"{name}.json").read_text(encoding="utf-8")) for name in RUNS
}


def micro(run: str, method: str) -> str:
    return f"{100 * row(run, method)['micro']['value']:.1f}"


def row(run: str, method: str) -> dict[str, Any]:
    return next(one for one in FOUND[run]["rows"] if one["name"] == method)


def table(columns: str) -> dict[str, list[str]]:
    """Rows of the table whose head begins so, by their first cell."""
    lines = PAGE[PAGE.index(f"| {columns}") :].split("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]
    return {name: cells for name, *cells in rows}


def interval(found: dict[str, float]) -> str:
    value, low, high = (f"{100 * found[name]:.1f}" for name in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def test_the_first_table_is_that_of_seed_1() -> None:
    rows = FOUND["sdlm-1-list"]["rows"]
    assert table("method | micro") == {one["name"]: [interval(one["micro"]), interval(one["macro"])] for one in rows}


def test_the_second_table_has_all_seeds_and_lexicons() -> None:
    found = table("method | seed 1")
    assert len(found) == 6
    assert found == {method: [micro(run, method) for run in RUNS] for method in found}


def test_the_sentences_have_the_same_figures() -> None:
    first = PAGE[PAGE.index("1. The method") : PAGE.index("Per cent, with")]
    runs = RUNS[:3]
    elsewhere = [table("method | 13 other words")[method][0].split(" [")[0] for method in ("combined", "usual")]
    named = [*(micro(run, "combined") for run in runs), *elsewhere, *(micro(run, "share") for run in runs)]
    named += [micro(runs[0], method) for method in ("at random", "usual")]
    assert re.findall(r"\d+\.\d", first) == named


def test_the_counts_are_those_of_the_json() -> None:
    for found in FOUND.values():
        assert f"{found['targets']:,} targets" in PAGE
        assert [one["count"] for one in found["left_out"]] == [245, 55]
    assert "The lexicon lacks the sense of 245 targets, and 55 targets are outside the vocabulary" in " ".join(PAGE.split())


def test_the_table_of_the_cloze_model() -> None:
    values = []
    for name in ("cloze-1-list", "cloze-2-list", "cloze-1-own", "cloze-2-own", "sense-vectors-1-list"):
        run = json.loads((RESULTS / "senses" / f"{name}.json").read_text(encoding="utf-8"))
        values.append({row["name"]: f"{100 * row['micro']['value']:.1f}" for row in run["rows"]})
    found = table("method of the cloze model")
    assert found == {name: [value[name] for value in values] for name in ("combined", "substitution", "share", "lift")}


def test_the_table_of_neighbours() -> None:
    report = json.loads((RESULTS / "senses" / "neighbours.json").read_text(encoding="utf-8"))
    rows = {(row["span"], row["smoothing"], row["weight"], row["share"]): row["micro"] for row in report["rows"]}
    assert rows[1, 500, 0.0, 1] == [row(f"sdlm-{seed}-list", "combined")["micro"]["value"] for seed in (1, 2, 3)]
    expected = [rows[1, 500, 0.0, 1], rows[1, 500, 0.0, 0], rows[2, 2000, 0.5, 0], report["held_out"]]
    shown = [[f"{100 * value:.1f}" for value in values] for values in expected]
    assert [*table("parts | seed 1").values()] == shown
    tried = {setting: values for setting, values in rows.items() if setting[2]}
    assert (len(tried), [setting for setting, values in tried.items() if min(values) > 0.5]) == (54, [(2, 2000, 0.5, 0)])
    gains = [100 * (held - before) for held, before in zip(report["held_out"], rows[1, 500, 0.0, 0], strict=True)]
    assert 0.9 < gains[1] < 1.2
    assert max(gains[0], gains[2]) < 0.5


def test_the_sentence_on_small_size_has_the_means_of_the_claims() -> None:
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in (RESULTS / "claims").glob("sdlm-senses-small-*.json")]
    rows = [{one["name"]: one["micro"]["value"] for one in run["measured"]["rows"]} for run in runs]
    means = [
        f"{100 * prod(one[name] for one in rows) ** (1 / len(rows)):.1f}"
        for name in ("share", "sense prior of the model", "at random", "combined")
    ]
    assert len(runs) == 3
    words = " ".join(PAGE.split())
    assert f"is right for {means[0]} %. Whether it is above the sense prior of the model ({means[1]} %)" in words
    assert f"above chance ({means[2]} %) is inconclusive" in words
    assert f"is above the share ({means[3]} %)" in words
    assert f"{runs[0]['measured']['targets']:,} targets" in words
