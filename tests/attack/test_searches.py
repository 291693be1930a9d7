"""Searches against a plain twin, against the exact worst case, and against each other's company."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sememekit.attack import Document, Example, ExampleResult
from sememekit.attack.searches import SEARCHES
from sememekit.attack.space import Space
from tests.attack.toys import EXAMPLES, TABLE, Counting, make_attack, predict

SMALL: dict[str, dict[str, Any]] = {
    "genetic": {"search__population": 8, "search__generations": 6},
    "pso": {"search__population": 8, "search__iterations": 6},
    "greedy": {},
    "beam": {"search__width": 3},
    "random": {"search__draws": 60, "search__at_once": 7},
    "exhaustive": {"search__at_once": 11},
}
SHARES = (0.2, 0.5, 1.0)


def outcomes(search: str, share: float = 1.0, examples: list[Example] | None = None, **tables: Any) -> dict[int, ExampleResult]:
    attack = make_attack(search, constraints={"share": {"most": share}}, **{**SMALL[search], **tables})
    return {result.index: result for result in attack.run(examples or EXAMPLES)}


def test_every_search_is_tested() -> None:
    assert set(SMALL) == set(SEARCHES)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("search", [*SMALL])
def test_no_search_succeeds_where_the_exact_worst_case_fails(search: str, share: float) -> None:
    exact = outcomes("exhaustive", share)
    assert {"success", "failed" if share < 1 else "no_candidates"} <= {result.outcome for result in exact.values()}
    proof = "no adversarial example exists in the searched space (exhaustive)"
    assert all(result.reason == proof for result in exact.values() if result.outcome == "failed")
    for index, result in outcomes(search, share).items():
        if exact[index].outcome != "success":
            assert result.outcome == exact[index].outcome
        if result.outcome == "success":
            assert result.words_changed >= exact[index].words_changed, "the full search looks at fewer changes first"
            assert result.words_changed <= share * result.num_words
            assert result.adversarial is not None
            found = predict([result.adversarial[0]])[0]
            assert result.adversarial_prediction == ("no", "yes")[int(found.argmax())] != result.label
            assert result.adversarial_probabilities == pytest.approx(tuple(found))


@pytest.mark.parametrize("search", [*SMALL])
@pytest.mark.parametrize("counting", ["distinct", "every"])
def test_queries_are_those_that_the_victim_saw(search: str, counting: str) -> None:
    for example in EXAMPLES:
        victim = Counting()
        result = next(make_attack(search, function=victim, attack__counting=counting, **SMALL[search]).run([example]))
        asked = victim.texts
        if result.outcome == "success":
            assert asked[-2:] == [example.fields[0], (result.adversarial or ())[0]], "both texts of a success, alone"
            asked = asked[:-2]
        assert len(set(asked)) == len(asked), "no text is asked twice"
        if counting == "distinct":
            assert result.queries == len(asked)
        else:
            assert result.queries >= len(asked)


@pytest.mark.parametrize("search", [*SMALL])
def test_company_does_not_matter(search: str) -> None:
    together = outcomes(search, 0.5)
    apart = {example.index: outcomes(search, 0.5, [example])[example.index] for example in reversed(EXAMPLES)}
    few = outcomes(search, 0.5, attack__together=2, attack__batch_size=3)
    assert together == apart == few


@pytest.mark.parametrize("search", ["genetic", "pso", "random"])
def test_the_seed_decides(search: str) -> None:
    assert outcomes(search) == outcomes(search)
    assert outcomes(search) != outcomes(search, attack__seed=2)


@pytest.mark.parametrize("search", [*SMALL])
@pytest.mark.parametrize("budget", [1, 2, 9])
def test_a_budget_is_kept(search: str, budget: int) -> None:
    for index, result in outcomes(search, attack__query_budget=budget).items():
        assert result.queries <= budget
        if result.queries == budget and result.outcome == "failed" and result.best_score is not None:
            free = outcomes(search)[index]
            assert free.queries >= result.queries
            assert "budget" in result.reason or free.queries == budget


def plain_genetic(example: Example, settings: Any, seed: int, share: float) -> tuple[str | None, list[str]]:
    """The genetic search on one example, written out: loops, lists of words, no memory.

    Returns the first population's winner or None, and every text in the order of asking.
    """
    generator = np.random.default_rng([seed, example.index])
    words, asked = example.fields[0].split(), []
    target = 1 - ("no", "yes").index(example.label)
    places = [place for place, word in enumerate(words) if word in TABLE]
    choices = {place: TABLE[words[place]] for place in places}
    most = int(share * len(words) + 1e-9)

    def ask(texts: list[list[str]]) -> tuple[list[float], list[str]]:
        lines = [" ".join(text) for text in texts]
        asked.extend(lines)
        found = predict(lines)
        return [float(row[target]) for row in found], [
            line for line, row in zip(lines, found, strict=True) if row.argmax() == target
        ]

    def changed(text: list[str]) -> list[int]:
        return [place for place in places if text[place] != words[place]]

    def mutate(texts: list[list[str]]) -> tuple[list[list[str]], list[str]]:
        draws = generator.random(len(texts))
        drawn = []
        for text, draw in zip(texts, draws, strict=True):
            at_limit = len(changed(text)) >= min(most, len(places))
            allowed = [p for p in places if (p in changed(text)) == at_limit] if not settings.revisit else places
            mass, point = 0.0, draw * sum(len(choices[p]) for p in allowed)
            for place in allowed:
                mass += len(choices[place])
                if point < mass:
                    break
            drawn.append(place)
        trials = [
            [*text[:place], other, *text[place + 1 :]]
            for text, place in zip(texts, drawn, strict=True)
            for other in choices[place]
        ]
        scores, won = ask([*texts, *trials])
        if won:
            return [], won
        after, begin = [], len(texts)
        for index, (text, place) in enumerate(zip(texts, drawn, strict=True)):
            here = scores[begin : begin + len(choices[place])]
            begin += len(choices[place])
            best = next(i for i, score in enumerate(here) if score >= max(here) - 1e-6)
            after.append(
                [*text[:place], choices[place][best], *text[place + 1 :]] if here[best] > scores[index] + 1e-6 else text
            )
        return after, []

    members, won = mutate([words] * settings.population)
    for generation in range(settings.generations):
        if won:
            return won[0], asked
        scores, won = ask(members)
        if won or generation == settings.generations - 1:
            return (won[0] if won else None), asked
        powers = np.exp((np.array(scores) - max(scores)) / settings.temperature)
        parents = [generator.choice(len(members), size=len(members) - 1, p=powers / powers.sum()) for _ in range(2)]
        coins = generator.random((len(members) - 1, len(places)))
        children = []
        for number in range(len(members) - 1):
            child = list(members[parents[0][number]])
            for coin, place in zip(coins[number], places, strict=True):
                if coin < settings.crossover:
                    child[place] = members[parents[1][number]][place]
            children.append(child)
        for child in children:
            if len(changed(child)) > most:
                for position in generator.permutation(np.array([places.index(p) for p in changed(child)]))[most:]:
                    child[places[position]] = words[places[position]]
        elite = members[next(i for i, score in enumerate(scores) if score >= max(scores) - 1e-6)]
        children, won = mutate(children)
        members = [elite, *children]
    return None, asked


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_genetic_search_equals_its_plain_twin(seed: int, share: float) -> None:
    compared = 0
    for example in EXAMPLES:
        victim = Counting()
        attack = make_attack(
            "genetic", function=victim, constraints={"share": {"most": share}}, attack__seed=seed, **SMALL["genetic"]
        )
        result = next(attack.run([example]))
        if result.outcome == "skipped" or "substitute" in result.reason:
            continue
        won, asked = plain_genetic(example, attack.search.settings, seed, share)
        assert (result.outcome == "success") == (won is not None)
        assert set(victim.texts) == {example.fields[0], *asked}
        compared += 1
    assert compared >= 5


@pytest.mark.parametrize(("search", "more"), [("greedy", {}), ("greedy", {"search__rescan": False}), ("beam", {})])
def test_a_long_text_is_asked_in_blocks(search: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of a step is bounded; outcomes, and all that a failed example reports, are as at once."""
    whole = outcomes(search, 0.5, **more)
    monkeypatch.setattr("sememekit.attack.space.BLOCK", 8)
    in_blocks = outcomes(search, 0.5, **more)
    assert {index: result.outcome for index, result in whole.items()} == {
        index: result.outcome for index, result in in_blocks.items()
    }
    failed = [index for index, result in whole.items() if result.outcome == "failed"]
    assert failed
    assert all(whole[index] == in_blocks[index] for index in failed)
    space = Space.open(Document.read(("a good film of a good man",)), TABLE)
    blocks = list(space.single_changes(space.origin()[0]))
    assert len(blocks) > 1
    assert max(block.size for block in blocks) <= max(8, len(space.positions))


def test_a_beam_that_no_memory_holds_skips_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sememekit.attack.searches.BLOCK", 0)
    reasons = {result.reason for result in outcomes("beam").values() if result.outcome == "skipped"}
    assert any(reason.startswith("a beam of 3 rows of so long a text has ") for reason in reasons)


def test_a_space_counts_its_points() -> None:
    for example in EXAMPLES:
        space = Space.open(Document.read(example.fields), TABLE)
        for most in range(4):
            narrow = space.narrowed(max_changes=most)
            rows = list(make_attack("exhaustive").search._rows(narrow)) if narrow.most else []  # type: ignore[attr-defined]
            assert narrow.num_points() == len(rows) == len({tuple(row) for row in rows})
            assert all(0 < sum(choice > 0 for choice in row) <= most for row in rows)


def test_a_space_that_is_too_large_is_refused_with_its_size() -> None:
    results = outcomes("exhaustive", search__limit=5)
    refused = [result for result in results.values() if "more texts to try" in result.reason]
    assert refused
    assert all(result.outcome == "skipped" and "than search.limit 5 (" in result.reason for result in refused)
