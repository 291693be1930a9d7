"""The engine's report on an example; the same seed gives the same attack from one version to the next."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sememekit.attack import Example
from sememekit.attack.examples import words_of
from tests.attack.toys import EXAMPLES, make_attack, predict


def stubborn(texts: list[str]) -> np.ndarray:
    """Return probabilities that favour "yes", more or less surely: every search continues to its end."""
    yes = 0.5 + 0.4 * predict(texts)[:, 1]
    return np.stack([1.0 - yes, yes], axis=1)


def attacked(settings: str) -> str:
    search, *pairs = settings.split()
    tables = {f"search__{key}": json.loads(value) for key, _, value in (pair.partition("=") for pair in pairs)}
    attack = make_attack(search, function=stubborn, constraints={"share": {"most": 0.7}}, **tables)
    results = sorted(attack.run([*EXAMPLES, LONG]), key=lambda result: result.index)
    assert {result.outcome for result in results if result.queries > 1} == {"failed"}
    return " ".join(f"{result.queries}:{result.best_score:.4f}" for result in results if result.queries > 1)


LONG = Example(8, ("very good film in the end but a bad slow film in the end",), "yes")
FROZEN = {
    "genetic population=8 generations=6": "34:0.4385 68:0.4314 18:0.4245 74:0.4932",
    'genetic population=8 generations=6 replacement="random"': "25:0.4377 36:0.4043 17:0.4065 41:0.4827",
    "genetic population=6 generations=8 mutation=0.5 revisit=true": "20:0.4385 46:0.3018 14:0.4245 35:0.4912",
    "pso population=8 iterations=6": "36:0.4385 47:0.4314 18:0.4245 70:0.4926",
    "pso population=5 iterations=9 inertia=[0.9,0.1] moves=[0.7,0.4] speed=1.5": "27:0.4385 37:0.4314 12:0.4245 70:0.4949",
    "random draws=60 at_once=7": "46:0.4385 54:0.3822 21:0.4245 59:0.4803",
    "greedy": "22:0.4385 47:0.4314 12:0.4245 67:0.4926",
    "greedy rescan=false": "13:0.4385 20:0.4314 9:0.4245 26:0.4926",
    "beam width=3": "44:0.4385 101:0.4314 20:0.4245 200:0.4949",
    "exhaustive at_once=11": "108:0.4385 1224:0.4314 24:0.4245 11664:0.4949",
}


def test_a_change_says_where_it_stands_in_its_field() -> None:
    """The place counts the words of the field alone, the beginning its characters."""

    def all_but(texts: list[tuple[str, str]]) -> np.ndarray:
        return np.array([[0.9, 0.1] if text[1].endswith("movie") else [0.1, 0.9] for text in texts])

    result = next(make_attack("greedy", function=all_but).run([Example(4, ("a good start", "the old film"), "yes")]))
    assert result.outcome == "success"
    assert [(c.field, c.place, c.begin, c.old, c.new) for c in result.changes] == [(1, 2, 8, "film", "movie")]
    assert (result.words_changed, result.num_words, result.target) == (1, 6, None)
    assert result.space is not None
    sizes = (result.space.words, result.space.with_candidates, result.space.changeable, result.space.substitutes)
    assert sizes == (6, 2, 2, 5)
    assert result.space.texts_log10 == pytest.approx(np.log10(3 + 2 + 6), abs=1e-4)


def test_the_words_to_look_up_are_those_of_the_texts_and_their_lower_case() -> None:
    examples = [Example(0, ("Good good film", "Bad"), "yes"), Example(1, ("good bad",), "no")]
    assert words_of(examples) == ["good", "bad", "Bad", "Good", "film"]


def test_of_several_successes_the_one_with_the_fewest_changes_is_reported() -> None:
    """The full search asks for all texts with one change before any text with two."""

    def both_or_late(texts: list[str]) -> np.ndarray:
        return np.array([[0.6, 0.4] if "movie" in text or "okay" in text else [0.2, 0.8] for text in texts])

    result = next(
        make_attack("exhaustive", function=both_or_late, search__at_once=100).run([Example(0, ("good film",), "yes")])
    )
    assert result.adversarial == ("okay film",), "the first of equals"
    assert (result.words_changed, result.best_score) == (1, pytest.approx(0.6))


@pytest.mark.parametrize(("settings", "expected"), [*FROZEN.items()])
def test_the_same_seed_attacks_as_it_did_before(settings: str, expected: str) -> None:
    """Outcome, queries and changed words of every example: other figures make earlier attacks incomparable."""
    assert attacked(settings) == expected
