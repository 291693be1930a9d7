"""The figures of docs/results/growing.md are equal to the reports beside it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from sememekit.claims.chain import result_names
from sememekit.claims.claims import load_claims
from sememekit.jobs.reproduce import judged
from sememekit.reports.ledger import effect_text

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


MODELS = {"softmax": "", "sdlm": "-sdlm", "transformer": "-transformer"}
"""Model -> the end of the names of its claims."""
WAYS = {
    "equal shares": ("", 0),
    "shares by counts": ("", 1),
    "shares by characters": ("", 2),
    "extended, random labels": ("-random", 3),
    "extended, sememes exchanged": ("-shuffled", 3),
    "extended, characters alone": ("-characters", 3),
    "extended": ("", 3),
    "trained with the words": ("-full", 4),
}
"""A row of a table -> the arm of the claims that measures it, and its row there."""


COVERED = ("extended", "extended, characters alone", "shares by counts")
Rows = list[dict[str, float]]


def held_out() -> dict[str, dict[int, Rows]]:
    """Arm -> seed -> the rows of ``extend --against``, from the results of the claims ``new-words-*``."""
    file, _ = load_claims()["new-words-below-counts"]
    names = {name for claim in file.claim.values() for name in result_names(file, claim, seeds=3)}
    found: dict[str, dict[int, Rows]] = {}
    for name in sorted(names):
        path = RESULTS / "claims" / name
        if path.exists():
            result = json.loads(path.read_text(encoding="utf-8"))
            measured = result["measured"]
            assert f"{measured['new_tokens']:,} of {measured['tokens']:,} tokens" in PAGE
            found.setdefault(result["arm"].removeprefix("held-"), {})[result["seed"]] = result["measured"]["rows"]
    return found


def number(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def covered(rows: Rows | None, place: int, first: float, last: float) -> str:
    """The share of the distance from ``first`` to ``last`` (perplexities) that a row covers, in nats and in perplexity.

    Empty for a control that was not run."""
    if rows is None:
        return ""
    nats = math.log(first / rows[place]["new"]) / math.log(first / last)
    return f"{number(nats)} ({number((first - rows[place]['new']) / (first - last))})"


def tables_of_new_words() -> tuple[list[list[str]], list[list[str]]]:
    """The rows of both tables: means of every way, and the share of the distance that each seed covers."""
    arms = held_out()
    means, shares = [], []
    for model in MODELS:
        for way, (control, place) in WAYS.items():
            if model + control not in arms:
                continue  # the control was not run with this model
            rows = [found[place] for found in arms[model + control].values()]

            def mean(key: str, rows: Rows = rows) -> float:
                return math.exp(sum(math.log(row[key]) for row in rows) / len(rows))

            figures = [f"{mean(key):,.1f}" for key in ("new", "others", "perplexity")]
            ranks = [f"{mean(key):.4f}" for key in ("reciprocal_rank", "reciprocal_rank_among_new")]
            means.append([model, way, *figures, *ranks])
        for seed in sorted(arms.get(f"{model}-full", ())):
            first, last = (arms[f"{model}-full"][seed][place]["new"] for place in (0, 4))
            ways = [covered(arms.get(model + WAYS[way][0], {}).get(seed), WAYS[way][1], first, last) for way in COVERED]
            shares.append([model, str(seed), *ways])
    return means, shares


def table_of_meaning() -> list[list[str]]:
    """Model, seeds, and the effects of sememes, random labels and exchanged sememes against characters alone."""
    rows = []
    for model, suffix in MODELS.items():
        names = [f"new-words-below-{control}{suffix}" for control in ("characters", "random", "shuffled")]
        found = judged(Path("nowhere"), [name for name in names if name in load_claims()], False, RESULTS / "claims")
        if found[0].effect is not None:
            alone = [effect_text(*one.control.effect) if one.control else "" for one in found[1:]]
            cells = [effect_text(*found[0].effect), *alone, *[""] * (2 - len(alone))]
            rows.append([model, " and ".join(map(str, sorted({*found[0].seeds}))), *cells])
    return rows


def test_perplexities_of_new_words() -> None:
    means, shares = tables_of_new_words()
    tables = ((["model", "way"], means), (["model", "seed"], shares), (["model", "seeds"], table_of_meaning()))
    for first, rows in tables:
        assert rows
        begin = next(place for place, row in enumerate(ROWS) if row[:2] == first)
        assert ROWS[begin + 1 : begin + 1 + len(rows)] == rows


def test_sentences_on_new_words() -> None:
    """No control of the table is better than characters alone; sememes are, with each model."""
    for row in table_of_meaning():
        assert row[2].startswith("-")
        assert all(cell.startswith("+") for cell in row[3:] if cell)
    (softmax,) = [row for row in table_of_meaning() if row[0] == "softmax"]
    below = softmax[2].removeprefix("-").split(" %")[0]
    assert f"is {below} % below the perplexity with characters alone" in " ".join(PAGE.split())
    shares, words = tables_of_new_words()[1], " ".join(PAGE.split())
    number = {model: len(held_out().get(model, ())) for model in MODELS}
    assert f"the perplexity with characters alone (number of seeds: {softmax[1]})" in words
    seeds = f"softmax with {number['softmax']} of 3 seeds, sdlm with {number['sdlm']}, transformer with {number['transformer']}"
    assert f"Measured with the present constants of `extend`: {seeds}." in words
    for model in MODELS:  # "in mean nats no model reaches it with every seed"
        nats = [int(row[2].split(" %")[0]) for row in shares if row[0] == model]
        assert not nats or min(nats) < 50
    readme = " ".join((RESULTS / "README.md").read_text(encoding="utf-8").split())
    of = {way: new for model, way, new, *_ in tables_of_new_words()[0] if model == "softmax"}
    said = f"with a perplexity of {of['extended']}. With characters alone it is {of['extended, characters alone']}"
    assert f"{said}, and with shares of `<unk>` {of['equal shares']}" in readme


def test_sentences_on_the_curve() -> None:
    words, rows = " ".join(PAGE.split()), rows_of_the_curve()
    rare = [-float(row[-1].split()[0]) for row in rows if row[2] == "1 to 9"]
    assert (
        f"SDLM is {min(rare):.0f} to {max(rare):.0f} % better than a softmax at every size, and most on the whole text" in words
    )
    assert max(rare) == rare[-1]
    whole = {int(row[0].replace(",", "")): list(map(figure, row[4:8])) for row in rows if row[2] == "any"}
    assert [size for size, (softmax, hownet, *_) in whole.items() if hownet < softmax] == [150_000, 300_000, 735_000]
    softmax, hownet, _, labels = whole[735_000]
    assert f"by {100 * (1 - hownet / softmax):.1f} % on the whole text" in words
    assert 0.5 < (softmax - labels) / (softmax - hownet) < 0.75  # "more than half of that gain"
    assert [size for size, (without, _, _, random) in whole.items() if random < without] == [150_000, 300_000, 735_000]
    assert all(figure(row[7]) < figure(row[4]) for row in rows if row[2] == "1 to 9"), "labels are a control there"
    best = [row for row in rows if row[2] == "1 to 9" and row[6] and figure(row[6]) == min(map(figure, row[4:8]))]
    assert len(best) == 4  # "at four of the six sizes"


def figure(cell: str) -> float:
    return float(cell.replace(",", ""))


def rows_of_the_curve() -> list[list[str]]:
    """The rows of the table by size and band of training counts."""
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
    return expected


def test_perplexities_by_the_size_of_the_text() -> None:
    expected = rows_of_the_curve()
    begin = next(place for place, row in enumerate(ROWS) if row[0] == "tokens")
    assert ROWS[begin + 1 : begin + 1 + len(expected)] == expected


def test_accuracies_with_words_that_training_never_had() -> None:
    found, expected = report("open-vocabulary"), []
    for cell, seeds in found.items():
        data, _, model = cell.partition(" ")
        for seed, ways in seeds.items():
            unknown, opened = (100 * ways[way]["accuracy"] for way in ("unknown", "open"))
            expected.append([data, model, seed, f"{unknown:.1f}", f"{opened:.1f}", f"{round(opened - unknown, 1) + 0.0:+.1f}"])
    begin = next(place for place, row in enumerate(ROWS) if row[0] == "data")
    assert ROWS[begin + 1 : begin + 1 + len(expected)] == sorted(expected, key=lambda row: (-ord(row[0][0]), *row[1:3]))


def test_accuracies_with_characters_alone() -> None:
    rows = []
    for cell, seeds in report("open-vocabulary-characters").items():
        for seed, ways in seeds.items():
            figures = [100 * ways[way]["accuracy"] for way in ("unknown", "characters", "open")]
            rows.append([cell.removeprefix("sst2 "), seed, *(f"{figure:.1f}" for figure in figures)])
            if cell == "sst2 sememes":
                assert f"by {figures[2] - figures[1]:.1f} points, with one seed" in PAGE
    assert all(row in ROWS for row in rows)
    assert len(rows) == 2


def test_rates_of_an_attack_with_an_open_vocabulary() -> None:
    for vocabulary, found in report("open-attack").items():
        rate = " to ".join(f"{100 * found['success_rate'][bound]:.1f}" for bound in ("low", "high"))
        success = f"{found['successes']} of {found['attacked']}"
        figures = [f"{100 * found['success_rate']['value']:.1f} ({rate})", f"{100 * found['share_changeable']:.1f} %"]
        assert [vocabulary, success, *figures, f"{found['mean_substitutes']:.1f}"] in ROWS
