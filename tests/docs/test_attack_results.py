"""The tables of docs/results/attacks.md on presets, TextAttack and parts of speech are those that benchmarks wrote as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
PAGE = (RESULTS / "attacks.md").read_text(encoding="utf-8")
WORDS = " ".join(PAGE.split())
PRESETS, TEXTATTACK, PARTS = (
    {cell: seeds["1"] for cell, seeds in json.loads((RESULTS / "attacks" / f"{name}.json").read_text(encoding="utf-8")).items()}
    for name in ("presets", "textattack", "part-of-speech")
)


def table(heading: str, columns: str) -> list[list[str]]:
    """The rows of the table below a heading whose head begins with ``columns``; marks of code and bold are left out."""
    text = PAGE[PAGE.index(f"## {heading}\n") :]
    lines = text[text.index(f"| {columns} |") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip().replace("`", "").replace("*", "") for cell in line.strip("|").split("|")] for line in lines]


def per_cent(found: dict[str, float]) -> str:
    value, low, high = (f"{100 * found[end]:.1f}" for end in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def proxy(row: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in row["proxies"] if one["name"] == name)


def preset_row(name: str, row: dict[str, Any]) -> list[str]:
    rates, coverage = row["rates"], row["coverage"]
    return [
        name,
        f"{rates['outcomes']['success']} of {rates['attackable']}",
        per_cent(rates["success_rate"]),
        f"{100 * coverage['share_changeable']:.1f} %",
        f"{coverage['mean_substitutes']:.1f}",
        f"{rates['median_queries']:.0f}",
        per_cent(proxy(row, "label")["after"]),
        f"{proxy(row, 'perplexity ratio')['after']['value']:.2f}",
    ]


def preset_rows(texts: str) -> list[list[str]]:
    wanted = ("none", "loose", "loose and", "standard", "standard and")
    names = [name.removeprefix(f"{texts} ") for name in PRESETS if name.startswith(f"{texts} ") and "similarity" not in name]
    names.sort(key=lambda name: (wanted.index(re.match(r"\w+( and)?", name)[0]), name))  # type: ignore[index]
    return [preset_row(name, PRESETS[f"{texts} {name}"]) for name in names]


@pytest.mark.parametrize("texts", ["sst2", "headlines"])
def test_the_tables_of_presets(texts: str) -> None:
    assert len(preset_rows(texts)) == 10
    columns = "preset" if texts == "sst2" else "preset, headlines"
    assert table("What the presets cost", columns) == preset_rows(texts)


def test_the_sentences_on_presets() -> None:
    loose, standard = PRESETS["sst2 loose"], PRESETS["sst2 standard"]
    rates = [f"{100 * one['rates']['success_rate']['value']:.1f}" for one in (loose, standard)]
    assert f"from {rates[0]} % to {rates[1]} %" in WORDS
    assert f"refuse {loose['refused_by_any']} of the {loose['rates']['outcomes']['success']} successes of `loose`" in WORDS
    refused = loose["refused_by_standard"]
    assert f"`first_senses` refuses {refused['first_senses']} successes of `loose`" in WORDS
    assert f"`common_words` {refused['common_words']}, `names` {refused['names']}" in WORDS
    kept = [per_cent(proxy(one, "label")["after"]).split()[0] for one in (loose, standard)]
    originals = per_cent(proxy(standard, "label")["before"]).split()[0]
    assert f"{kept[0]} % of the changed texts of `loose` and {kept[1]} % of the changed texts of `standard`" in WORDS
    assert f"{originals} % of the originals" in WORDS
    with_model = PRESETS["sst2 loose and language_model"]
    share, cost = (proxy(with_model, "label")["after"]["value"], with_model["rates"]["success_rate"]["value"])
    lost = 100 * (loose["rates"]["success_rate"]["value"] - cost)
    assert f"Under `loose` a language model raises that share to {100 * share:.1f} %, and costs {lost:.1f} points" in WORDS


def bound_rows() -> list[list[str]]:
    """A row for each pair of bounds, without bounds first."""
    found = [["off", "off", "sst2 loose"]]
    for name in PRESETS:
        if bounds := re.fullmatch(r"sst2 loose and similarity ([\d.]+)(?:, each ([\d.]+))?", name):
            found.append([bounds[1], bounds[2] or "off", name])
    rows = [[least, each, *preset_row(name, PRESETS[name])[1:5]] for least, each, name in found]
    return sorted(rows, key=lambda row: (row[1] != "off", row[0] != "off", row[:2]))


def test_the_bounds_of_similarity() -> None:
    assert len(bound_rows()) == 13
    assert table("Bounds of `similarity`", "`least`") == bound_rows()


def test_the_sentences_on_headlines() -> None:
    loose = PRESETS["headlines loose"]
    refused, won = loose["refused_by_standard"], loose["rates"]["outcomes"]["success"]
    sentence = f"it would refuse {loose['refused_by_any']} of the {won} successes of `loose`: "
    assert f"{sentence}`first_senses` {refused['first_senses']}, `names` {refused['names']}." in WORDS
    shares = [proxy(row, "label")["after"]["value"] for name, row in PRESETS.items() if name.startswith("headlines ")]
    assert max(shares) - min(shares) < 0.06


def test_the_table_of_textattack() -> None:
    rows = []
    for name, row in TEXTATTACK.items():
        counted = f"{row['counted_by_textattack']:.0f}" if "counted_by_textattack" in row else "–"
        success = f"{row['outcomes']['success']} of {row['attackable']}"
        queries = [f"{row['mean_queries']['value']:.0f}", f"{row['median_queries']:.0f}"]
        rows.append([name, success, per_cent(row["success_rate"]), *queries, counted, f"{100 * row['words_changed']:.1f} %"])
    found = table("Beside TextAttack", "program and search")
    assert sorted(found) == sorted(rows)


def test_the_table_of_parts_of_speech() -> None:
    shown = [
        [texts, *(f"{pair}: {100 * value:.0f} %" for pair, value in sorted(PARTS[texts]["balanced_accuracy"].items()))]
        for texts in ("sst2", "headlines")
    ]
    assert [row[:1] + row[1].split(", ") for row in table("Part of speech in context", "texts")] == shown
