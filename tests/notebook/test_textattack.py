"""Parts for TextAttack: against objects of its shape, and against the package itself where it is installed."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from sememekit import attack_classifier
from sememekit.errors import ConfigError
from sememekit.notebook import textattack as ours
from tests.attack.toys import LABELS, TABLE, TEXTS, predict

SUCCEEDED, SEARCHING = "succeeded", "searching"


@dataclass(frozen=True)
class Text:
    """The part of an ``AttackedText`` that is used."""

    words: list[str]
    attack_attrs: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def replace_words_at_indices(self, indices: Sequence[int], words: Sequence[str]) -> Text:
        changed = list(self.words)
        for index, word in zip(indices, words, strict=True):
            changed[index] = word
        return Text(changed)

    def replace_word_at_index(self, index: int, word: str) -> Text:
        return self.replace_words_at_indices([index], [word])

    def all_words_diff(self, other: Text) -> set[int]:
        return {index for index, (one, two) in enumerate(zip(self.words, other.words, strict=False)) if one != two}


@dataclass(frozen=True)
class Result:
    attacked_text: Text
    score: float
    goal_status: str


class WordSwap:
    """A class that can be made as it is; a subclass has ``_get_replacement_words``."""

    def _get_transformations(self, text: Text, indices: Sequence[int]) -> list[Text]:
        return [text.replace_word_at_index(i, new) for i in indices for new in self._get_replacement_words(text.words[i])]


class SearchMethod:
    pass


class Harness:
    """The methods that ``textattack.Attack`` gives a search, for one text and the true label ``gold``."""

    def __init__(self, swap: Any, method: Any, gold: str, forbidden: str = "", budget: int = 10**6, most: int = 10**6) -> None:
        self.swap, self.method, self.gold, self.budget = swap, method, LABELS.index(gold), budget
        self.forbidden, self.most = forbidden, most
        self.asked: list[str] = []
        method.get_transformations = self.get_transformations
        method.filter_transformations = self.filter_transformations
        method.get_goal_results = self.get_goal_results

    def filter_transformations(self, texts: Sequence[Text], current: Text, original_text: Text) -> list[Text]:
        assert all("last_transformation" in text.attack_attrs for text in texts)
        fine = [text for text in texts if self.forbidden not in text.words]
        fine = [text for text in fine if len(original_text.all_words_diff(text)) <= self.most]
        return sorted(fine, key=lambda text: text.text)

    def get_transformations(self, text: Text, original_text: Text) -> list[Text]:
        found = self.swap._get_transformations(text, range(len(text.words)))
        for one in found:
            one.attack_attrs["last_transformation"] = self.swap
        return self.filter_transformations(found, text, original_text)

    def get_goal_results(self, texts: Sequence[Text]) -> tuple[list[Result], bool]:
        texts = texts[: self.budget - len(self.asked)]
        self.asked += [text.text for text in texts]
        rows = predict([text.text for text in texts]) if texts else np.zeros((0, len(LABELS)))
        results = [
            Result(text, 1 - row[self.gold], SUCCEEDED if row.argmax() != self.gold else SEARCHING)
            for text, row in zip(texts, rows, strict=True)
        ]
        return results, len(self.asked) == self.budget

    def run(self, text: str) -> Result:
        (initial,), _ = self.get_goal_results([Text(text.split())])
        result: Result = self.method.perform_search(initial)
        return result


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules of the names and shapes of TextAttack."""
    for name, members in {
        "textattack": {},
        "textattack.transformations": {"WordSwap": WordSwap},
        "textattack.search_methods": {"SearchMethod": SearchMethod},
        "textattack.goal_function_results": {"GoalFunctionResultStatus": type("Status", (), {"SUCCEEDED": SUCCEEDED})},
        "textattack.shared": {},
        "textattack.shared.utils": {"words_from_text": lambda text: text.replace("/", " ").split()},
        "textattack.shared.validators": {"transformation_consists_of_word_swaps": lambda swap: isinstance(swap, WordSwap)},
    }.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "table.json"
    path.write_text(json.dumps(TABLE), encoding="utf-8")
    return str(path)


def test_candidates_become_a_transformation(package: None, table: str) -> None:
    swap = ours.word_swap("table", settings={"path": table})
    word, substitutes = next(iter(TABLE.items()))
    assert swap._get_replacement_words(word) == [one for one in substitutes if one != word]
    assert swap._get_replacement_words(word.capitalize()) == [one.capitalize() for one in substitutes if one != word]
    assert swap._get_replacement_words("nothing-of-that") == []
    assert swap.candidates == "table"
    Path(table).write_text(json.dumps({"film": ["movie", "tv/film"]}), encoding="utf-8")
    split = ours.word_swap("table", settings={"path": table})
    assert split._get_replacement_words("film") == ["movie"], "TextAttack reads tv/film as two words"
    texts = swap._get_transformations(Text(["x", word]), [1])
    assert [text.words for text in texts] == [["x", one] for one in substitutes if one != word]


def test_lexicons_are_read_once_for_given_texts(package: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from sememekit.attack.candidates import SememeCandidates

    asked: list[list[str]] = []
    whole = SememeCandidates.table
    monkeypatch.setattr(SememeCandidates, "table", lambda self, words: asked.append(list(words)) or whole(self, words))
    swap = ours.word_swap(sources="open", texts=["今天 工人 看 电影 。"])
    before = len(asked)
    assert swap._get_replacement_words("工人")
    swap._get_transformations(Text(["今天", "工人"]), [0, 1])
    swap._get_transformations(Text(["你好吗", "工人"]), [1])  # a word that may not change is not looked up
    assert (before, len(asked)) == (1, 1)


@pytest.mark.parametrize("name", ["greedy", "beam", "exhaustive", "genetic", "pso", "random"])
def test_searches_find_what_ours_find(package: None, table: str, name: str) -> None:
    texts, gold = [text for text, _ in TEXTS], [label for _, label in TEXTS]
    settings = {"candidates": {"path": table}, "attack": {"constraints": "none"}}
    plain = attack_classifier(predict, texts, gold, names=LABELS, candidates="table", search=name, settings=settings)
    for row, text, label in zip(plain.results, texts, gold, strict=True):
        if row.outcome not in ("success", "failed"):
            continue
        harness = Harness(ours.word_swap("table", settings={"path": table}), ours.search_method(name), label)
        found = harness.run(text)
        if name in ("greedy", "beam", "exhaustive"):
            assert (found.goal_status == SUCCEEDED) == (row.outcome == "success")
            assert len(harness.asked) == row.queries
        assert len(set(harness.asked)) == len(harness.asked), "nothing is asked about twice"
        if found.goal_status == SUCCEEDED:
            assert predict([found.attacked_text.text])[0].argmax() != LABELS.index(label)
            again = Harness(ours.word_swap("table", settings={"path": table}), ours.search_method(name), label)
            assert again.run(text).attacked_text.text == found.attacked_text.text


def test_constraints_and_the_budget_hold(package: None, table: str) -> None:
    swap = ours.word_swap("table", settings={"path": table})
    for text, label in TEXTS:
        free = Harness(swap, ours.search_method("exhaustive"), label)
        result = free.run(text)
        if result.goal_status != SUCCEEDED or len(free.asked) < 3:
            continue
        new = next(iter(set(result.attacked_text.words) - set(text.split())))
        held = Harness(swap, ours.search_method("exhaustive"), label, forbidden=new)
        held.run(text)
        assert not any(new in asked.split() for asked in held.asked)
        short = Harness(swap, ours.search_method("exhaustive"), label, budget=2)
        assert short.run(text).goal_status in (SEARCHING, SUCCEEDED)
        assert len(short.asked) <= 2
        return
    pytest.fail("no example is fooled")


@pytest.mark.parametrize("name", ["exhaustive", "genetic"])
def test_texts_with_several_changes_are_under_the_constraints_too(package: None, table: str, name: str) -> None:
    swap, text, several = ours.word_swap("table", settings={"path": table}), "nothing good film good film", False
    words = Text(text.split())
    for most in (1, 9):
        harness = Harness(swap, ours.search_method(name), "yes", most=most)
        harness.get_goal_results = harness.method.get_goal_results = _never(harness.get_goal_results)
        harness.run(text)
        changed = [len(words.all_words_diff(Text(asked.split()))) for asked in harness.asked]
        assert max(changed) <= most
        several |= max(changed) > 1
    assert several, "without the limit several words change at once"


def _never(asked: Any) -> Any:
    """Goal results that never succeed, so that a search goes on."""

    def results(texts: Any) -> Any:
        found, over = asked(texts)
        return [Result(one.attacked_text, one.score, SEARCHING) for one in found], over

    return results


def test_a_text_that_the_search_refuses_is_warned_of(package: None, table: str) -> None:
    method = ours.search_method("exhaustive", settings={"limit": 1})
    harness = Harness(ours.word_swap("table", settings={"path": table}), method, "yes")
    for number in (1, 2):
        with pytest.warns(UserWarning, match=rf"search.limit 1 .* counts this text as failed .*\({number} so far\)"):
            harness.run("nothing good film good film")
    assert method.refused == 2


def test_texts_without_anything_to_change_come_back(package: None, table: str) -> None:
    harness = Harness(ours.word_swap("table", settings={"path": table}), ours.search_method(), LABELS[0])
    assert harness.run("qqq qqq").attacked_text.text == "qqq qqq"
    assert len(harness.asked) == 1


def test_what_is_no_part(package: None) -> None:
    method = ours.search_method("greedy", settings={"rescan": False})
    assert method.check_transformation_compatibility(WordSwap())
    assert not method.check_transformation_compatibility(object())
    with pytest.raises(ConfigError, match="unknown search 'greed'"):
        ours.search_method("greed")
    with pytest.raises(ConfigError, match="unknown key 'rescans'"):
        ours.search_method("greedy", settings={"rescans": False})
    with pytest.raises(ConfigError, match="name a lexicon"):
        ours.word_swap()


def test_without_the_package_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textattack.search_methods", None)
    monkeypatch.setitem(sys.modules, "textattack", None)
    with pytest.raises(ConfigError, match=r"pip install \"sememekit\[textattack\]\""):
        ours.search_method()


@pytest.mark.filterwarnings("ignore")
def test_with_the_package_itself(table: str) -> None:
    """Ours in its attack, its search and constraint with ours, and its wrapper as victim here."""
    pytest.importorskip("textattack")
    from textattack import Attack
    from textattack.attack_results import SuccessfulAttackResult
    from textattack.constraints.pre_transformation import RepeatModification
    from textattack.goal_functions import UntargetedClassification
    from textattack.models.wrappers import ModelWrapper
    from textattack.search_methods import GreedySearch

    class Wrapper(ModelWrapper):
        model = None

        def __call__(self, texts: list[str], **options: Any) -> np.ndarray:
            return predict(texts)

    settings = {"candidates": {"path": table}, "attack": {"constraints": "none"}}
    texts, gold = [text for text, _ in TEXTS], [label for _, label in TEXTS]
    plain = attack_classifier(Wrapper(), texts, gold, names=LABELS, candidates="table", search="exhaustive", settings=settings)
    for search in (ours.search_method("exhaustive"), ours.search_method("greedy"), GreedySearch()):
        swap = ours.word_swap("table", settings={"path": table})
        their = Attack(UntargetedClassification(Wrapper()), [RepeatModification()], swap, search)
        found = [
            isinstance(their.attack(text, LABELS.index(label)), SuccessfulAttackResult)
            for text, label, row in zip(texts, gold, plain.results, strict=True)
            if row.outcome in ("success", "failed")
        ]
        expected = [row.outcome == "success" for row in plain.results if row.outcome in ("success", "failed")]
        assert not any(one and not most for one, most in zip(found, expected, strict=True))
        assert any(found)
        if getattr(search, "search", "") == "exhaustive":
            assert found == expected
