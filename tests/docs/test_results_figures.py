"""Figures on the pages of results are those of the JSON files, and tables.md names each claim and recipe of a table."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

from sememekit.claims.claims import load_claims
from sememekit.config.recipes import list_recipes
from sememekit.jobs.reproduce import judged

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
EFFECT = re.compile(r"[-+]?\d+\.\d %\*{0,2} \([-+]?\d+\.\d to [-+]?\d+\.\d\)")


def page(name: str) -> str:
    return (RESULTS / f"{name}.md").read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    return text[text.index(f"## {heading}\n") :].split("\n## ")[0]


@cache
def effects() -> set[tuple[float, float, float]]:
    """The effect of every claim with its interval, in per cent of one decimal."""
    found = [claim.effect for claim in judged(Path("nowhere"), list(load_claims()), False, RESULTS / "claims")]
    return {tuple(round(100 * value, 1) for value in one[:3]) for one in found if one is not None}  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "number"), [("lattice", 5), ("mixtures", 5), ("self-organized", 5), ("sememe-rnn", 6), ("attacks", 5)]
)
def test_effects_of_the_first_tables_are_effects_of_claims(name: str, number: int) -> None:
    shown = EFFECT.findall("\n".join(line for line in section(page(name), "In short").splitlines() if line.startswith("|")))
    assert len(shown) >= number
    for one in shown:
        value, low, high = (float(figure) for figure in re.findall(r"[-+]?\d+\.\d", one))
        assert (value, low, high) in effects(), one


def rates(arm: str) -> list[str]:
    """The success rates of an arm, seed after seed, in per cent."""
    paths = sorted((RESULTS / "claims").glob(f"{arm}-small-[0-9]-*.json"))
    found = [json.loads(path.read_text(encoding="utf-8"))["measured"]["rates"]["success_rate"]["value"] for path in paths]
    return [f"{100 * value:.1f}" for value in found]


@pytest.mark.parametrize(
    ("row", "cell", "arm"),
    [
        ("| same sememes |", 2, "nli-bilstm-attacked"),
        ("| same sememes |", 3, "nli-cell-attacked"),
        ("| neighbours in GloVe |", 2, "nli-bilstm-attacked-neighbours"),
        ("| neighbours in GloVe |", 3, "nli-cell-attacked-neighbours"),
    ],
)
def test_success_rates_on_inference(row: str, cell: int, arm: str) -> None:
    text = section(page("attacks"), "On inference, three victims a side")
    (line,) = [line for line in text.splitlines() if line.startswith(row)]
    assert line.split("|")[cell].strip().split(", ") == rates(arm)


@pytest.mark.parametrize(
    ("row", "arm"), [("| same sememes |", "nli-bilstm-adversarial"), ("| neighbours in", "nli-bilstm-adversarial-neighbours")]
)
def test_success_rates_after_adversarial_training(row: str, arm: str) -> None:
    (line,) = [line for line in section(page("attacks"), "Adversarial training").splitlines() if line.startswith(row)]
    assert line.split("|")[3].strip().split(", ") == rates(arm)


@pytest.mark.parametrize(
    ("row", "arm"), [("success rate, BiLSTM", "sst2-bilstm-attacked"), ("success rate, with the cell", "sst2-cell-attacked")]
)
def test_success_rates_on_sentiment(row: str, arm: str) -> None:
    (line,) = [line for line in page("attacks").splitlines() if line.startswith(f"| {row} |")]
    assert [cell.strip() for cell in line.split("|")[2:7]] == rates(arm)


def rows_of_tables() -> list[tuple[str, str]]:
    """The author of each part of tables.md, and a row of its table."""
    parts = page("tables").split("\n## ")[1:]
    return [(part.split()[0], line) for part in parts for line in part.splitlines() if line.startswith("| ")]


def rows_of(paper: str, table: str) -> str:
    """The rows of a paper that begin with a table or hold it among several."""
    named = re.compile(rf"\| Tables? (?:\w+ and )?{table}\b")
    return "\n".join(row for author, row in rows_of_tables() if paper.startswith(author) and named.match(row))


def test_every_claim_of_a_table_stands_in_its_row() -> None:
    missing = []
    for name, (file, claim) in load_claims().items():
        for table in re.findall(r"\bTable (\w+)", claim.source) if not claim.source.startswith("n") and not file.own else ():
            if f"`{name}`" not in rows_of(file.paper, table):
                missing.append(f"{name}: {file.paper}, Table {table}")
    assert not missing, "\n".join(missing)


def test_every_recipe_of_a_table_stands_in_its_row() -> None:
    missing = []
    for recipe in list_recipes():
        if recipe.claim is not None:
            patterns = re.findall(r"`([a-z_]+/[\w*-]+)`", rows_of(recipe.claim.paper, str(recipe.claim.table)))
            if not any(fnmatch(recipe.name, pattern) for pattern in patterns):
                missing.append(f"{recipe.name}: {recipe.claim.paper}, Table {recipe.claim.table}")
    assert not missing, "\n".join(missing)


def test_every_name_on_the_page_of_tables_is_one() -> None:
    claims, recipes = set(load_claims()), [recipe.name for recipe in list_recipes()]
    for _author, row in rows_of_tables():
        for name in re.findall(r"`([a-z_]+/[\w*-]+)`", row):
            assert any(fnmatch(recipe, name) for recipe in recipes), name
        for name in re.findall(r"`([a-z][\w-]+)`", row.split("|")[3]):
            assert name in claims or name.startswith("evaluate-explanations"), name
