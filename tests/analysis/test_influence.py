"""The influence of words and sememes on a classifier, each against the model's answer to the changed text."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from sememekit.analysis.explanations.influence import influence, sememes_of
from sememekit.encoders.sememe_sum import SememeSum, further_words
from sememekit.runs.build import build_task, labels_of
from sememekit.runs.plan import read_plan
from sememekit.sememes import SememeGraph, Sense, build_graph
from sememekit.tasks.classifier import TextClassifier
from tests.small import lexicon_of_senses
from tests.small_examples import ExamplePlace, write_vectors

SENSES = [
    Sense("man", ("human", "male")),
    Sense("girl", ("human", "female", "young")),
    Sense("dogs", ("animal",)),
    Sense("sleeps", ("sleep",)),
    Sense("runs", ("move", "fast")),
    Sense("rain", ("water", "fall")),
    Sense("park", ("place",)),
    Sense("park", ("stop", "vehicle")),
]


def graph_of(place: ExamplePlace, task: str = "nli") -> SememeGraph:
    lexicon = lexicon_of_senses("list:own", SENSES)
    return build_graph((place.pairs if task == "nli" else place.reviews).vocabulary, [lexicon])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> ExamplePlace:
    return ExamplePlace(tmp_path_factory.mktemp("influence"))


def model(place: ExamplePlace, encoder: str = "bilstm", injection: str = "cell", **changes: object) -> TextClassifier:
    plan = read_plan(place.table("nli", encoder, encoder__injection=injection, **changes), "test")
    graph = graph_of(place)
    task = build_task(plan, place.pairs.vocabulary, graph, labels=labels_of(place.pairs.signature))
    assert isinstance(task, TextClassifier)
    task.begin_training(place.pairs)
    with torch.no_grad():
        for parameter in task.parameters():
            parameter.mul_(3.0)  # far enough from zero that every word matters
    return task.double()


def texts_of(place: ExamplePlace, *texts: str) -> list[np.ndarray]:
    return [place.pairs.vocabulary.encode(text.split()) for text in texts]


PAIR = ("the girl runs in the park .", "two dogs eat in the rain")


@pytest.mark.parametrize("injection", ["concat", "gate", "cell"])
@pytest.mark.parametrize("encoder", ["lstm", "gru", "bilstm", "bigru"])
def test_a_sememe_that_is_taken_away_is_missing_in_the_sum_of_that_word(
    place: ExamplePlace, encoder: str, injection: str
) -> None:
    """The slow way: a model whose graph gives the one word fewer sememes. The word stands once, so places and words agree."""
    task = model(place, encoder, injection)
    texts, found = texts_of(place, *PAIR), influence(model(place, encoder, injection), texts_of(place, *PAIR))
    p = task.probabilities([texts])[0]
    np.testing.assert_allclose(np.exp(found.log_probs), p, rtol=1e-10)
    assert found.label == int(p.argmax())
    graph, checked = graph_of(place), 0
    for text, word_places in zip(texts, found.texts, strict=True):
        for word, here in zip(text.tolist(), word_places, strict=True):
            assert here is not None
            assert [item.sememe for item in here.sememes] == sememes_of(task, word)
            names = {graph.sememes[item.sememe] for item in here.sememes}
            entry = graph.entry(word)
            assert names == (entry.sememes() if entry.is_from_lexicon else set())
            for item in here.sememes:
                other = without(task, word, item.sememe)
                effect = math.log(p[found.label]) - math.log(other.probabilities([texts])[0][found.label])
                assert item.effect == pytest.approx(effect, abs=1e-9)
                checked += 1
            if len(here.sememes) == 1:
                assert here.without_sememes == pytest.approx(here.sememes[0].effect, abs=1e-12)
            if not here.sememes:
                assert here.without_sememes is None
    assert checked == 3 + 2 + 3 + 1 + 2


def without(task: TextClassifier, word: int, sememe: int) -> TextClassifier:
    """The model with another list for one word, made by hand in its buffers."""
    from copy import deepcopy

    other = deepcopy(task)
    for part in other.modules():
        if isinstance(part, SememeSum):
            row = part.lists[part.set_of_word[word]].clone()
            row[row == sememe] = len(part.vectors)
            part.register_tables(lists=torch.cat([part.lists, row[None]]))
            part.set_of_word[word] = len(part.lists) - 1
    return other


def test_a_word_that_is_taken_away_is_read_as_unknown(place: ExamplePlace) -> None:
    task, texts = model(place), texts_of(place, *PAIR)
    found = influence(task, texts)
    p = task.probabilities([texts])[0]
    for number, text in enumerate(texts):
        for position in range(len(text)):
            changed = [one.copy() for one in texts]
            changed[number][position] = place.pairs.vocabulary.unknown_id
            effect = math.log(p[found.label]) - math.log(task.probabilities([changed])[0][found.label])
            here = found.texts[number][position]
            assert here is not None
            assert here.effect == pytest.approx(effect, abs=1e-9)


@pytest.mark.parametrize("shared", [True, False])
def test_the_gradient_is_the_derivative_along_the_vector(place: ExamplePlace, shared: bool) -> None:
    """Finite differences agree: (log p with the vector scaled by 1 + e, minus log p with 1 - e) / 2 e, at one place alone."""
    task, texts = model(place, "bigru", "gate", encoder__shared_sememes=shared), texts_of(place, *PAIR)
    found, step = influence(task, texts), 1e-5
    girl = int(np.flatnonzero(texts[0] == place.pairs.vocabulary.id("girl"))[0])
    here = found.texts[0][girl]
    assert here is not None

    def log_p() -> float:
        return math.log(task.probabilities([texts])[0][found.label])

    def slope(vectors: list[torch.Tensor]) -> float:
        values = []
        with torch.no_grad():
            kept = [vector.clone() for vector in vectors]
            for sign in (1, -1):
                for vector, value in zip(vectors, kept, strict=True):
                    vector.copy_(value * (1 + sign * step))
                values.append(log_p())
            for vector, value in zip(vectors, kept, strict=True):
                vector.copy_(value)
        return (values[0] - values[1]) / (2 * step)

    assert here.gradient == pytest.approx(slope([task.embedding.weight[texts[0][girl]]]), rel=1e-5, abs=1e-8)
    female = next(item for item in here.sememes if graph_of(place).sememes[item.sememe] == "female")
    tables = {part.vectors for part in task.modules() if isinstance(part, SememeSum)}
    assert len(tables) == (1 if shared else 2)
    assert female.gradient == pytest.approx(slope([table[female.sememe] for table in tables]), rel=1e-5, abs=1e-8)


def test_a_model_without_sememes_tells_of_words_alone(place: ExamplePlace) -> None:
    found = influence(model(place, "lstm", "none"), texts_of(place, *PAIR))
    for text in found.texts:
        assert all(here is not None and here.sememes == () and here.without_sememes is None for here in text)
        assert any(here is not None and here.effect for here in text)


def test_words_that_are_not_read_have_no_influence(place: ExamplePlace, tmp_path: Path) -> None:
    file = write_vectors(tmp_path / "v.txt", ["girl", "runs", "dogs", "rain", "the"])
    task = model(place, task__vectors=str(file), task__outside="drop", task__max_length=3)
    found = influence(task, texts_of(place, *PAIR))
    assert [here is not None for here in found.texts[0]] == [True, True, True, False, False, False, False]
    assert [here is not None for here in found.texts[1]] == [False, True, False, False, True, True]


def test_any_label_can_be_asked_for(place: ExamplePlace) -> None:
    task, texts = model(place), texts_of(place, *PAIR)
    one = [influence(task, texts, label) for label in range(3)]
    assert [found.label for found in one] == [0, 1, 2]
    assert len({found.texts[0][1].effect for found in one}) == 3


def test_the_model_is_left_as_it_was(place: ExamplePlace) -> None:
    task, texts = model(place).train(), texts_of(place, *PAIR)
    sums = next(part for part in task.modules() if isinstance(part, SememeSum))
    before = sums.set_of_word, sums.lists, {name: value.clone() for name, value in task.state_dict().items()}
    influence(task, texts)
    assert task.training
    assert sums.set_of_word is before[0]
    assert sums.lists is before[1]
    assert all(torch.equal(value, before[2][name]) for name, value in task.state_dict().items())
    assert all(parameter.grad is None for parameter in task.parameters())
    with further_words(task, [[0]]) as first:
        assert first == len(before[0]) == len(sums.set_of_word) - 1
    assert sums.set_of_word is before[0]
