"""Figures on the pages of results are equal to the JSON files, and tables.md names each claim and recipe of a table."""

from __future__ import annotations

import json
import re
import statistics
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sememekit.claims.claims import load_claims
from sememekit.config.recipes import list_recipes
from sememekit.jobs.reproduce import judged
from tests.mutate import interval

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
EFFECT = re.compile(r"[-+]?\d+\.\d %\*{0,2} \([-+]?\d+\.\d to [-+]?\d+\.\d\)")


def page(name: str) -> str:
    return (RESULTS / f"{name}.md").read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    return text[text.index(f"## {heading}\n") :].split("\n## ")[0]


@cache
def effects() -> set[tuple[float, float, float]]:
    """The effect of every claim and of every control, with its interval, in per cent of one decimal."""
    claims = judged(Path("nowhere"), list(load_claims()), False, RESULTS / "claims")
    found = [claim.effect for claim in claims] + [claim.control.effect for claim in claims if claim.control is not None]
    whole = [one[:3] for one in found if one is not None and one[1] is not None]  # one seed has no interval
    return {tuple(round(100 * value, 1) for value in one) for one in whole}  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "part", "number"),
    [
        ("lattice", "In short", 7),
        ("mixtures", "In short", 5),
        ("mixtures", "Finetuning", 4),
        ("self-organized", "In short", 5),
        ("sememe-rnn", "In short", 6),
        ("attacks", "In short", 5),
        ("attacks", "On inference, three victims a side", 4),
    ],
)
def test_effects_of_tables_are_effects_of_claims(name: str, part: str, number: int) -> None:
    shown = EFFECT.findall("\n".join(line for line in section(page(name), part).splitlines() if line.startswith("|")))
    assert len(shown) >= number
    for one in shown:
        value, low, high = (float(figure) for figure in re.findall(r"[-+]?\d+\.\d", one))
        assert (value, low, high) in effects(), one


SENTENCES = [
    ("lattice", "lattice-more-chunks", "raise the perplexity by {} % ({} to {})"),
    ("sememe-rnn", "lstm-cell-below-large", "the cell is {} % above it ({} to {})"),
    ("sememe-rnn", "nli-cell-above-shuffled", "they are {} % ahead of the sememes of another word ({} to {})"),
    ("sememe-rnn", "nli-gate-above-shuffled", "the gate they are {} % ahead ({} to {})"),
    ("mixtures", "mos-below-softmax-finetuned", "After finetuning it is {} % below the softmax"),
    ("README", "mos-below-softmax-finetuned", "After finetuning the mixture is {} % below the softmax"),
    ("README", "lattice-chinese-l2", "Chunks of two characters lower perplexity by {} %"),
    ("README", "lattice-chinese-l3", "and chunks of up to three by {} %"),
    ("attacks", "cell-beats-adversarial-training-neighbours", "the retrained BiLSTM, by {} % ({} to {})"),
    (
        "attacks",
        "cell-harder-to-attack-than-labels",
        "attacks succeed {} % less often with sememes than with labels ({} to {})",
    ),
    ("headlines", "self-organized-duc", "is {} % below the softmax ({} to {})"),
    ("sdlm", "sdlm-left-below-symmetric", "perplexity is {} % lower ({} to {})"),
    ("README", "lattice-l2-below-baseline", "chunks of two words raise it by {} %"),
    ("README", "pku-segmentation-hownet2000", "with an F1 that is {} % below matching with a large lexicon"),
    ("appendix/attacks", "cell-beats-adversarial-training-neighbours", "the retrained BiLSTM, by {} % ({} to {})"),
    ("lattice", "pku-segmentation", "It is {} % above matching with the 5,307 words of the open lexicon ({} to {})"),
    ("lattice", "pku-segmentation-hownet2000", "is {} % below matching with the 53,335 words of HowNet 2000 ({} to {})"),
    ("lattice", "pku-segmentation-list", "It is {} % below matching with the 126,739 words of the list of HowNet ({} to {})"),
    ("output-layers", "tree-above-softmax", "Huffman's tree is {} % above the untied softmax ({} to {})"),
]
"""Page, claim, and the sentence with its effect and interval, without signs."""


@pytest.mark.parametrize(("name", "claim", "sentence"), SENTENCES, ids=[f"{one[0]}-{one[1]}" for one in SENTENCES])
def test_sentences_have_the_effects_of_claims(name: str, claim: str, sentence: str) -> None:
    [found] = judged(Path("nowhere"), [claim], False, RESULTS / "claims")
    assert found.effect is not None
    value, *bounds = (abs(100 * value) for value in found.effect if value is not None)
    figures = [f"{one:.1f}" for one in (value, *sorted(bounds))]
    assert sentence.format(*figures) in " ".join(page(name).replace("**", "").split())


@pytest.mark.parametrize(
    ("name", "claim"),
    [
        ("attacks", "cell-harder-to-attack-than-wordnet-neighbours"),
        ("attacks", "bigru-cell-harder-to-attack-neighbours"),
        ("attacks", "cell-beats-adversarial-training"),
        ("appendix/attacks", "cell-beats-adversarial-training"),
        ("attacks", "cell-harder-to-attack-than-labels-neighbours"),
        *(("headlines", f"{layer}-switchboard-bleu-{side}") for layer in ("moc", "mos") for side in ("precision", "recall")),
        ("sdlm", "sdlm-hownet-below-shuffled"),
        ("sememe-rnn", "wikitext2-lstm-cell-below-lstm"),
    ],
)
def test_pages_have_the_effects_of_claims_with_their_signs(name: str, claim: str) -> None:
    [found] = judged(Path("nowhere"), [claim], False, RESULTS / "claims")
    assert found.effect is not None
    value, low, high = (100 * one for one in found.effect if one is not None)
    assert f"{value:+.1f} % ({low:+.1f} to {high:+.1f})" in " ".join(page(name).split())


def measured(arm: str) -> list[dict[str, Any]]:
    """Return the measurements of the trials of an arm, seed after seed."""
    paths = sorted((RESULTS / "claims").glob(f"{arm}-small-[0-9]-*.json"))
    return [json.loads(path.read_text(encoding="utf-8"))["measured"] for path in paths]


def mean(arm: str) -> str:
    """The geometric mean of the perplexities of an arm, or the mean of its accuracies in per cent."""
    found = measured(arm)
    if "accuracy" in found[0]:
        return f"{100 * statistics.mean(one['accuracy'] for one in found):.2f}"
    return f"{statistics.geometric_mean(one['perplexity'] for one in found):.2f}"


@pytest.mark.parametrize("side", ["precision", "recall"])
def test_bleu_of_dialogue_is_the_mean_over_seeds(side: str) -> None:
    [row] = [line for line in page("headlines").splitlines() if line.startswith(f"| {side} |")]
    for cell, layer in zip(row.split("|")[2:], ("softmax", "moc", "mos"), strict=False):
        found = measured(f"switchboard-{layer}-answers")
        assert len(found) == 3
        mean = statistics.geometric_mean(one[f"bleu1_{side}"] for one in found)
        assert cell.split(",")[0].strip() == f"{100 * mean:.2f}", layer


def each(arm: str) -> str:
    """The perplexity, or the accuracy in per cent, of each seed."""
    found = measured(arm)
    values = (100 * one["accuracy"] if "accuracy" in one else one["perplexity"] for one in found)
    return ", ".join(f"{value:.2f}" for value in values)


TRIALS: dict[tuple[str, str, str], dict[int, str]] = {
    ("lattice", "In short", "Chinese characters, chunks of two (L = 2)"): {2: "chinese-baseline", 3: "chinese-l2"},
    ("lattice", "In short", "Chinese characters, two embeddings of half the size"): {3: "chinese-e2-half"},
    ("lattice", "In short", "Chinese characters, chunks of three (L = 3)"): {2: "chinese-baseline", 3: "chinese-l3"},
    ("lattice", "In short", "English words, chunks of three (L = 3)"): {2: "lattice-baseline", 3: "lattice-l3"},
    ("lattice", "In short", "English words, chunks of two (L = 2)"): {2: "lattice-baseline", 3: "lattice-l2"},
    ("lattice", "In short", "English words, two embeddings of half the size"): {3: "lattice-e2-half"},
    ("lattice", "In short", "English words, two embeddings of equal size"): {3: "lattice-e2"},
    ("mixtures", "In short", "Penn Treebank, 5,000 sentences"): {2: "ptb-softmax", 3: "ptb-mos", 5: "ptb-moc"},
    ("mixtures", "In short", "WikiText-2, 2,000 lines"): {2: "wikitext2-softmax", 3: "wikitext2-mos"},
    ("mixtures", "In short", "Switchboard, 60 dialogues"): {
        2: "switchboard-softmax",
        3: "switchboard-mos",
        5: "switchboard-moc",
    },
    ("sdlm", "Other sememes", "HowNet"): {2: "sdlm"},
    ("sdlm", "Other sememes", "the sememes of another word of like frequency (`shuffled:`)"): {2: "sdlm-shuffled"},
    ("mixtures", "Finetuning", "softmax"): {2: "ptb-softmax", 3: "ptb-softmax-finetuned"},
    ("mixtures", "Finetuning", "mixture of softmaxes"): {2: "ptb-mos", 3: "ptb-mos-finetuned"},
    ("self-organized", "In short", "full softmax"): {2: "words-softmax"},
    ("self-organized", "In short", "softmax trained with sampled words"): {2: "words-sampled"},
    ("self-organized", "In short", "learned clusters"): {2: "words-self-organized"},
    ("self-organized", "In short", "`differentiated`"): {2: "words-differentiated"},
    ("self-organized", "In short", "clusters by frequency"): {2: "words-class"},
    ("self-organized", "In short", "`adaptive`"): {2: "words-adaptive"},
    ("sememe-rnn", "In short", "LSTM"): {2: "lstm", 3: "lstm-concat", 4: "lstm-gate", 5: "lstm-cell"},
    ("sememe-rnn", "In short", "GRU"): {2: "gru", 3: "gru-concat", 4: "gru-gate", 5: "gru-cell"},
    ("sememe-rnn", "In short", "BiLSTM"): {2: "nli-bilstm", 3: "nli-concat", 4: "nli-gate", 5: "nli-cell"},
    ("sememe-rnn", "In short", "with the sememes of another word"): {
        3: "nli-concat-shuffled",
        4: "nli-gate-shuffled",
        5: "nli-cell-shuffled",
    },
    ("sememe-rnn", "In short", "BiGRU"): {2: "nli-bigru", 3: "nli-bigru-concat", 4: "nli-bigru-gate", 5: "nli-bigru-cell"},
    ("sdlm", "The first 150,000 tokens", "SDLM, 250 draws"): {5: "sdlm-250-draws"},
    ("sdlm", "The first 150,000 tokens", "SDLM, 1,000 draws"): {5: "sdlm"},
    ("sdlm", "The first 150,000 tokens", "SDLM, 2,000 draws"): {5: "sdlm-2000-draws"},
    ("sdlm", "The first 150,000 tokens", "SDLM, 1,000 draws until the first cut"): {5: "sdlm-until-first-cut"},
    ("sdlm", "The first 150,000 tokens", "SDLM, exact"): {5: "sdlm-exact"},
    ("sdlm", "The first 150,000 tokens", "HowNet"): {2: "sdlm"},
    ("sdlm", "The first 150,000 tokens", "as many random labels as each sense has sememes"): {2: "sdlm-random"},
    ("sdlm", "The first 150,000 tokens", "one sememe of its own for each word (`single:`)"): {2: "sdlm-single"},
    ("sdlm", "The first 150,000 tokens", "the open lexicon"): {2: "sdlm-open"},
    ("sdlm", "The first 150,000 tokens", "one sememe for all words"): {2: "sdlm-shared"},
}
"""(page, part, row) -> the arm whose mean over seeds stands in a cell."""
EACH: dict[tuple[str, str, str], dict[int, str]] = {
    ("sememe-rnn", "Inference", "+ concat"): {2: "nli-concat", 4: "nli-concat-labels"},
    ("sememe-rnn", "Inference", "+ gate"): {2: "nli-gate", 4: "nli-gate-labels"},
    ("sememe-rnn", "Inference", "+ cell"): {2: "nli-cell", 4: "nli-cell-labels"},
}
"""The same for the values of all seeds."""


def cells(name: str, part: str, row: str) -> list[str]:
    """The cells of the first row of a part that begins so, without bold."""
    line = next(line for line in section(page(name), part).splitlines() if line.startswith(f"| {row} |"))
    return [cell.strip().strip("*") for cell in line.split("|")]


@pytest.mark.parametrize("place", TRIALS, ids="/".join)
def test_means_over_seeds_are_those_of_the_trials(place: tuple[str, str, str]) -> None:
    shown = cells(*place)
    assert {cell: shown[cell] for cell in TRIALS[place]} == {cell: mean(arm) for cell, arm in TRIALS[place].items()}


@pytest.mark.parametrize("place", EACH, ids="/".join)
def test_values_of_seeds_are_those_of_the_trials(place: tuple[str, str, str]) -> None:
    shown = cells(*place)
    assert {cell: shown[cell] for cell in EACH[place]} == {cell: each(arm) for cell, arm in EACH[place].items()}


def effect_of(claim: str) -> tuple[Any, str]:
    """The judged claim, and its effect with its interval as tables have it."""
    [found] = judged(Path("nowhere"), [claim], False, RESULTS / "claims")
    assert found.effect is not None
    value, low, high = (100 * one for one in found.effect if one is not None)
    return found, f"{value:+.1f} % ({low:+.1f} to {high:+.1f})"


ATTACKS = [
    ("In short", "| inference, same sememes", "cell-harder-to-attack-nli"),
    ("In short", "| inference, neighbours", "cell-harder-to-attack-neighbours"),
    ("In short", "| sentiment, same sememes", "cell-harder-to-attack"),
    ("In short", "| same sememes |", "adversarial-training"),
    ("In short", "| neighbours in GloVe |", "adversarial-training-neighbours"),
    ("Adversarial training", "| same sememes |", "adversarial-training"),
    ("Adversarial training", "| neighbours in GloVe |", "adversarial-training-neighbours"),
    ("On inference, three victims a side", "| same sememes |", "cell-harder-to-attack-nli"),
    ("On inference, three victims a side", "| neighbours in GloVe |", "cell-harder-to-attack-neighbours"),
    ("On inference, three victims a side", "| beside the input", "concat-harder-to-attack-neighbours"),
    ("On inference, three victims a side", "| behind a gate", "gate-harder-to-attack-neighbours"),
]
"""Part of the page on attacks, beginning of a row, claim."""


@pytest.mark.parametrize(("part", "row", "claim"), ATTACKS, ids=[f"{part}-{claim}" for part, _, claim in ATTACKS])
def test_rows_on_attacks_have_the_effect_and_the_means_of_their_claim(part: str, row: str, claim: str) -> None:
    (line,) = [line for line in section(page("attacks"), part).splitlines() if line.startswith(row)]
    found, effect = effect_of(claim)
    assert effect in line.replace("**", "")
    assert found.verdict in line
    if part == "In short":
        assert [cell.strip() for cell in line.split("|")[2:4]] == [f"{100 * mean:.1f}" for mean in found.means]


def test_the_tree_costs_what_its_claim_measured() -> None:
    found, _ = effect_of("tree-above-softmax")
    text = " ".join(page("output-layers").split())
    assert f"An update takes {found.cost:.2f} of the time" in text
    assert f"at equal CPU time the tree is {100 * found.at_equal_time[0]:.1f} % above" in text
    assert f"The paper has {100 * found.published:.1f} %" in text


def test_the_words_of_the_pku_text_are_counted_as_the_claims_did() -> None:
    found = measured("pku-l2")
    text = section(page("lattice"), "The PKU test text, beside published segmental models")
    models = ", ".join(f"{100 * one['rows'][0]['f1']:.2f}" for one in found)
    assert f"| **{models}** |" in text
    for name, number in (
        ("5,307 words of lexicon open", 2),
        ("53,335 words of HowNet 2000", 3),
        ("126,739 words of the list", 4),
    ):
        (line,) = [line for line in text.splitlines() if line.startswith(f"| maximum matching, {name}")]
        row = found[0]["rows"][number]
        assert name.split()[0] in row["name"]
        figures = [f"{100 * row[key]:.2f}" for key in ("precision", "recall", "f1", "f1_low", "f1_high")]
        assert re.findall(r"\d\d\.\d\d", line) == figures


def test_shares_of_mutants_are_summed_from_their_rows() -> None:
    text = page("appendix/mutation")
    part = section(text, "Rooms that moved, by their own tests")
    rows = [line.split("|") for line in part.splitlines() if line.startswith("| `reports` | 1")]
    tried, caught = (sum(int(row[cell]) for row in rows) for cell in (3, 4))
    low, high = interval(caught, tried)
    share = f"({100 * caught / tried:.0f} %, {100 * low:.0f} to {100 * high:.0f} %)"
    assert f"`reports` {caught} of {tried} mutants were caught {share}" in " ".join(text.split())


def test_shares_of_mutants_are_those_of_the_record() -> None:
    record = [json.loads(line) for line in (RESULTS / "mutants.jsonl").read_text(encoding="utf-8").splitlines()]
    every, newest = [], {}
    for one in record:
        assert one["tried"] - one["caught"] == len(one["survivors"])
        low, high = interval(one["caught"], one["tried"])
        name, seed = f"| `{one['room']}` | {one['seed']} |", f"{one['tried']} | {one['caught']}"
        share = f"{100 * one['caught'] / one['tried']:.0f} % | {100 * low:.0f} to {100 * high:.0f} % |"
        every.append(f"{name} {seed} | {share} {one['commit']} |")
        newest[one["room"]] = f"{name} {one['mutants']:,} | {seed} | {share}"
    rows = section(page("appendix/mutation"), "All rooms, by all tests").splitlines()
    assert [row for row in rows if row.startswith("| `")] == every
    guide = section((RESULTS.parent / "testing.md").read_text(encoding="utf-8"), "Mutation testing").splitlines()
    assert [row for row in guide if row.startswith("| `") and "--" not in row] == [newest[room] for room in sorted(newest)]


def rates(arm: str) -> list[str]:
    """The success rates of an arm, seed after seed, in per cent."""
    return [f"{100 * one['rates']['success_rate']['value']:.1f}" for one in measured(arm)]


@pytest.mark.parametrize(
    ("row", "cell", "arm"),
    [
        ("| same sememes |", 2, "nli-bilstm-attacked"),
        ("| same sememes |", 3, "nli-cell-attacked"),
        ("| same sememes |", 4, "nli-cell-labels-attacked"),
        ("| neighbours in GloVe |", 4, "nli-cell-labels-attacked-neighbours"),
        ("| neighbours in GloVe |", 2, "nli-bilstm-attacked-neighbours"),
        ("| neighbours in GloVe |", 3, "nli-cell-attacked-neighbours"),
        ("| beside the input", 2, "nli-concat-attacked-neighbours"),
        ("| behind a gate", 2, "nli-gate-attacked-neighbours"),
    ],
)
def test_success_rates_on_inference(row: str, cell: int, arm: str) -> None:
    text = section(page("attacks"), "On inference, three victims a side")
    (line,) = [line for line in text.splitlines() if line.startswith(row)]
    assert line.split("|")[cell].strip().split(", ") == rates(arm)


def test_accuracies_under_attack_are_those_of_the_results() -> None:
    """Means over the seeds, in per cent: of two victims with sememes, of the BiLSTM, and of the one that was trained again."""

    def right(arm: str) -> str:
        return f"{100 * statistics.fmean(one['rates']['accuracy']['value'] for one in measured(arm)):.1f}"

    arms = ("nli-concat-attacked", "nli-gate-attacked", "nli-bilstm-attacked", "nli-bilstm-adversarial")
    concat, gate, plain, again = (right(f"{arm}-neighbours") for arm in arms)
    text = " ".join(page("attacks").split())
    assert f"({concat} and {gate} % of the 400 pairs against {plain} %)" in text
    assert f"| 63.9 to 65.9 | {plain}, {again} |" in text
    assert f"| 63.9 to 65.9 | {right('nli-bilstm-attacked')}, {right('nli-bilstm-adversarial')} |" in text


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


@pytest.mark.parametrize(
    ("paper", "tables"),
    [
        ("Gu", "1 2 3 4 5 6 7"),
        ("Shen", "1 2 3 4 5 6"),
        ("Yang", "1 2 3 4 5 6 7 8"),
        ("Qin", "I II III IV"),
        ("Buckman", "1 2 3 4 5 6"),
    ],
)
def test_every_table_of_a_paper_has_a_row(paper: str, tables: str) -> None:
    assert [table for table in tables.split() if not rows_of(paper, table)] == []


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


def test_costs_in_the_guide_are_those_of_the_recipes() -> None:
    page = (RESULTS.parent / "reproducing.md").read_text(encoding="utf-8")
    costs, shown = {info.name: str(info.cost) for info in list_recipes()}, re.findall(r"\| `(\w+/[\w-]+)` \| (.*) \|", page)
    assert len(shown) > 10
    assert shown == [(name, costs[name]) for name, _ in shown]
