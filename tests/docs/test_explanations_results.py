"""The tables of docs/results/sdlm-explanations.md are equal to its record.

``python -m tests.docs.test_explanations_results REPORT`` makes the record of what ``eval RUN --explanations --json`` printed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "results" / "sdlm-explanations.md"
RECORD = PAGE.with_name("explanations") / "first150k.json"
NAMES = {
    "rise": "**gain m - n** (default of `explain`)",
    "mass": "mass m",
    "information": "m log(m / n)",
    "lift": "lift m / n",
    "gates": "raw gates (the earlier default)",
    "raised gates": "change of the gates",
    "frequency": "training frequency",
    "random": "at random",
}
SHORT = {"rise": "gain", "mass": "mass", "gates": "raw gates", "frequency": "training frequency"}


def record_of(report: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a report that the page shows, in six decimals."""

    def rounded(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: rounded(each) for key, each in value.items()}
        return round(value, 6) if isinstance(value, float) else value

    kept = {key: report[key] for key in ("decoder", "split", "positions", "left_out", "sentences", "num_sememes")}
    kept["rankings"] = [rounded(row) for row in report["rankings"] if row["top"] in (1, 5, 10)]
    for key in ("words", "sememes"):
        kept[key] = [
            {**band, "scores": [rounded(row) for row in band["scores"] if row["top"] == 5]}
            for band in report[key]
            if band["name"] != "never"
        ]
    return kept


def cell(score: dict[str, float]) -> str:
    value, low, high = (100 * score[key] for key in ("value", "low", "high"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


def tables(record: dict[str, Any]) -> dict[str, list[str]]:
    """The rows of each table of the page."""
    top = [row for row in record["rankings"] if row["top"] == 5]
    best = {key: max(row[key]["value"] for row in top) for key in ("any", "recall", "information")}

    def shown(row: dict[str, Any], key: str) -> str:
        value, interval = cell(row[key]).split(" ", 1)
        return f"{f'**{value}**' if row[key]['value'] == best[key] else value} {interval}"

    rows = {
        "ranking": [
            f"| {NAMES[row['ranking']]} | {' | '.join(shown(row, key) for key in best)} | {100 * row['overlap']:.1f} |"
            for row in top
        ]
    }
    for key, score, count in (("words", "recall", "positions"), ("sememes", "found", "pairs")):
        bands = record[key]
        first = "positions" if key == "words" else "pairs of position and sememe"
        rows[key] = [f"| {first} | {' | '.join(f'{band[count]:,}' for band in bands)} |"]
        for name, short in SHORT.items():
            found = [next(row for row in band["scores"] if row["ranking"] == name)[score] for band in bands]
            rows[key].append(f"| {short} | {' | '.join(map(cell, found))} |")
    return rows


@pytest.mark.parametrize("table", ["ranking", "words", "sememes"])
def test_the_tables_are_those_of_the_record(table: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    assert "\n".join(tables(record)[table]) in text
    assert f"{record['positions']:,} positions" in text


@pytest.mark.parametrize("number", [0, 1])
def test_the_rows_of_the_contexts_are_those_of_the_record(number: int) -> None:
    """The stored output of ``explain RUN CONTEXT --top 5 --top-sememes 5 --json``, for the run of the page."""
    shown = json.loads(RECORD.with_name("contexts.json").read_text(encoding="utf-8"))[number]

    def spelled(name: str) -> str:
        return f"`{name}`" if name.startswith("<") else name

    words = ", ".join(f"{spelled(word)} {100 * probability:.1f} %" for word, probability in shown["words"])
    gain = ", ".join(f"{spelled(name)} {100 * mass:.1f} % ({lift:.0f})" for name, mass, lift in shown["gain"])
    assert f"| 150k | {words} | {gain} | {', '.join(shown['gates'])} |" in PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    made = record_of(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps(made) + "\n", encoding="utf-8")
    for part in tables(made).values():
        print("\n".join(part), end="\n\n")
