"""The inputs, batches, counts and messages of tasks, to the number: no model is trained."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sememekit.data.batching import bucketed_batches, padded, sorted_batches
from sememekit.errors import ConfigError, DataError
from sememekit.runs.build import build_task, labels_of
from sememekit.runs.plan import read_plan
from sememekit.search import BeamSettings, Hypothesis
from sememekit.tasks import seq2seq
from sememekit.tasks.base import LabelPredictor, Task, WordPredictor, declares, require
from sememekit.tasks.classifier import TextClassifier
from sememekit.tasks.vectors import load_vectors, vector_coverage
from sememekit.tasks.writing import TextWriter, hypothesis_words, predictor
from sememekit.text.vocabulary import Vocabulary
from sememekit.training.divergence import uniform_perplexity
from tests.small_examples import ExamplePlace, write_vectors
from tests.small_pairs import PairPlace


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> ExamplePlace:
    return ExamplePlace(tmp_path_factory.mktemp("examples"))


def classifier(place: ExamplePlace, **changes: object) -> TextClassifier:
    plan = read_plan(place.table(**changes), "test")
    built = build_task(plan, place.pairs.vocabulary, None, labels=labels_of(place.pairs.signature))
    assert isinstance(built, TextClassifier)
    return built


def test_rows_are_padded_after_their_marks() -> None:
    rows = [np.array([5, 6]), np.array([], dtype=np.int64), np.array([7, 8, 9])]
    ids, lengths = padded(rows, begin=[1, 2], end=[3])
    assert ids.T.tolist() == [[1, 2, 5, 6, 3, 0], [1, 2, 3, 0, 0, 0], [1, 2, 7, 8, 9, 3]]
    assert lengths.tolist() == [5, 3, 6]
    assert padded([np.array([4])])[0].tolist() == [[4]]


def test_coverage_counts_running_and_different_words() -> None:
    counts, there = np.array([5, 0, 2, 1]), np.array([True, True, False, True])
    found = vector_coverage(counts, there, split="test", file="v.txt", outside="drop")
    assert (found.words, found.words_with_vector, found.tokens, found.tokens_with_vector) == (3, 2, 8, 6)
    assert found.sentence() == (
        "75.0 % of the 8 tokens of test (2 of 3 different ones) have one in v.txt; the others are left out of the texts"
    )
    nothing = vector_coverage(counts * 0, there, split="test", file="v.txt", outside="random")
    assert nothing.sentence().startswith("0.0 % of the 0 tokens")


def test_words_outside_the_file_keep_their_draw_as_wide_as_the_numbers_of_the_file(tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_counts({"a": 3, "b": 2, "c": 1, "<unk>": 1})
    file = tmp_path / "v.txt"
    file.write_text("b 1 3\nz 0 0\na 5 7\n", encoding="utf-8")  # standard deviation of 1, 3, 5, 7: the square root of 5
    embedding = nn.Embedding(len(vocabulary), 2)
    before = embedding.weight.detach().clone()
    known = load_vectors(str(file), vocabulary, embedding)
    assert {vocabulary.token(int(index)) for index in known.nonzero()} == {"a", "b"}
    assert embedding.weight[vocabulary.id("a")].tolist() == [5, 7]
    assert embedding.weight[vocabulary.id("b")].tolist() == [1, 3]
    for word in ("c", "<unk>"):
        row = vocabulary.id(word)
        torch.testing.assert_close(embedding.weight[row].detach(), before[row] * 5**0.5 / 0.1)
    wider = nn.Embedding(len(vocabulary), 2)
    drawn = wider.weight[vocabulary.id("c")].detach().clone()
    load_vectors(str(file), vocabulary, wider, deviation=0.5)
    torch.testing.assert_close(wider.weight[vocabulary.id("c")].detach(), drawn * 5**0.5 / 0.5)
    with pytest.raises(DataError, match=r"vectors of 2 numbers, where task\.embedding_size is 3"):
        load_vectors(str(file), vocabulary, nn.Embedding(len(vocabulary), 3))
    with pytest.raises(DataError, match="has none of the 1 words of the vocabulary"):
        load_vectors(str(file), Vocabulary.from_counts({"y": 1}), nn.Embedding(1, 2))


class Declared(nn.Module):
    kinds = frozenset({"texts", "labels"})


def test_what_a_task_cannot_do_is_said_with_what_it_can() -> None:
    task: Any = Declared()
    assert declares(task, LabelPredictor)
    assert declares(task, TextWriter)
    assert not declares(task, WordPredictor)
    assert require(task, LabelPredictor, "predict") is task
    assert predictor(task, "score") is task
    with pytest.raises(
        ConfigError,
        match=r"^score needs a model that predicts words, and this run has the task "
        rf"{__name__}:Declared; train one with 'sememekit train --task language_model', or see "
        r"'sememekit predict RUN', 'sememekit compare RUN RUN2', 'sememekit analyze RUN RUN2', "
        r"'sememekit generate RUN' and 'sememekit eval RUN' for this one$",
    ):
        require(task, WordPredictor, "score")
    assert (Task.left_to_right, Task.takes_decoder, LabelPredictor.takes_decoder, WordPredictor.left_to_right) == (
        False,
        True,
        False,
        True,
    )


def test_unknown_words_of_a_text_give_way_to_the_most_attended_of_the_source() -> None:
    vocabulary = Vocabulary.from_counts({"a": 3, "b": 2, "<unk>": 1})
    words = tuple(vocabulary.encode(["b", "?", "a", "?"]).tolist())
    found = Hypothesis(words, 1.0, -1.0, (0, 2, 1, 1), True)
    source = ["x", "y", "z"]
    assert hypothesis_words(vocabulary, found, source, BeamSettings()) == ("b", "<unk>", "a", "<unk>")
    assert hypothesis_words(vocabulary, found, source, BeamSettings(unknown="replace")) == ("b", "z", "a", "y")


# --- texts to texts


def test_batches_of_pairs_have_sources_of_similar_length(pairs: PairPlace) -> None:
    task = pairs.model(name="eight", task__batch_size=3)
    data, found = pairs.eight, pairs.eight.examples("train")
    lengths = found.lengths()
    assert lengths[:, 0].argsort(kind="stable").tolist() != lengths[:, 1].argsort(kind="stable").tolist()
    expected = bucketed_batches(lengths[:, 0], 3, 4)
    batches = list(task.batches(data, 4, 0))
    assert len(batches) == task.num_batches(data, 4) == 3
    assert [batch.source_lengths.tolist() for batch in batches] == [lengths[chosen, 0].tolist() for chosen in expected]
    assert [batch.source_lengths.tolist() for batch in task.batches(data, 4, 2)] == [lengths[expected[2], 0].tolist()]


def test_targets_are_read_after_their_begin_and_end_with_their_end(pairs: PairPlace) -> None:
    task = pairs.model(task__read_words=2)
    begin, end = task.vocabulary.id("<s>"), task.vocabulary.id("</s>")
    batch = task.batch_of([(np.array([3, 4, 5]), np.array([6])), (np.array([5]), np.array([7, 3]))])
    assert batch.source.T.tolist() == [[3, 4], [5, 0]]
    assert batch.source_lengths.tolist() == [2, 1]
    assert batch.before.T.tolist() == [[begin, 6, 0], [begin, 7, 3]]
    assert batch.real.tolist() == [0, 1, 2, 3, 5]
    assert batch.words.tolist() == [6, 7, end, 3, end]


def test_the_longest_source_is_read_and_one_more_word_is_not(pairs: PairPlace) -> None:
    longest = int(pairs.pairs.examples("train").lengths()[:, 0].max())
    task = pairs.model(task__longest_source=longest)
    task.check_source(longest, "here")
    assert task.num_batches(pairs.pairs, 0) == 8
    with pytest.raises(DataError, match=rf"^here: {longest + 1} words, where a source has {longest} at most"):
        task.check_source(longest + 1, "here")
    pairs.model(task__longest_source=longest, task__read_words=1).check_source(longest + 1, "here")
    short = pairs.model(name="eight", task__longest_source=9)
    lengths = pairs.eight.examples("train").lengths()[:, 0]
    with pytest.raises(DataError, match=rf"pair {int(lengths.argmax()) + 1} of train: {lengths.max()} words"):
        short.num_batches(pairs.eight, 0)


@pytest.mark.parametrize("at_once", [1, 3, 8, 1 << 16])
def test_targets_and_their_ends_are_counted(pairs: PairPlace, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(seq2seq, "_EXAMPLES_AT_ONCE", at_once)
    task, found = pairs.model(name="eight"), pairs.eight.examples("train")
    counted: Counter[int] = Counter({task.end: len(found)})
    for index in range(len(found)):
        counted.update(found.text(index, 1).tolist())
    expected = [counted[word] for word in range(len(task.vocabulary))]
    assert task.target_counts(pairs.eight, "train").tolist() == expected
    smoothed = np.array(expected) + 1.0
    nats = -np.log(smoothed / smoothed.sum()) @ np.array(expected)
    baseline = task.unigram_baseline(pairs.eight, "valid")["perplexity"]
    assert baseline == pytest.approx(np.exp(nats / sum(expected)))
    assert uniform_perplexity(task) == len(task.vocabulary)


def test_progress_of_scoring_and_writing_is_in_pairs(pairs: PairPlace) -> None:
    task, told = pairs.model(name="eight", task__evaluation_batch_size=3), []
    scored = list(task.score_pairs(pairs.eight, "valid", lambda *values: told.append(values)))
    assert told == [(3, 8), (6, 8), (8, 8)]
    found = pairs.eight.examples("valid")
    order = sorted_batches(found.lengths()[:, 0], 3)
    for chosen, part in zip(order, scored, strict=True):
        assert part.places is not None
        for (example, place), word in zip(part.places.tolist(), part.targets.tolist(), strict=True):
            assert example in chosen
            assert word == [*found.text(example, 1).tolist(), task.end][place]
    told.clear()
    sources = [found.text(index, 0) for index in range(7)]
    texts = task.write(sources, BeamSettings(beam_size=1, max_length=3), lambda *values: told.append(values))
    assert told == [(3, 7), (6, 7), (7, 7)]
    alone = task.write([sources[4]], BeamSettings(beam_size=1, max_length=3))
    assert texts[4][0].words == alone[0][0].words


# --- labels


def test_every_example_is_counted_once(examples: ExamplePlace) -> None:
    task, data = classifier(examples, task__evaluation_batch_size=7), examples.pairs
    figures = task.evaluate(data, "valid")
    labels = data.examples("valid").labels
    assert figures["examples"] == len(labels) == 20
    accuracy, _ = task.evaluate_labels(data, "valid")
    assert [one.support for one in accuracy.classes] == np.bincount(labels, minlength=3).tolist()
    usual = Counter(data.examples("train").labels.tolist()).most_common(1)[0][0]
    assert task.unigram_baseline(data, "valid")["accuracy"] == pytest.approx(float(np.mean(labels == usual)))


def test_layers_stand_between_features_and_labels(examples: ExamplePlace) -> None:
    for layers, sizes in ((0, []), (1, [(32, 6)]), (3, [(32, 6), (6, 6), (6, 6)])):
        task = classifier(examples, task__classifier_layers=layers)
        found = [(layer.in_features, layer.out_features) for layer in task.hidden if isinstance(layer, nn.Linear)]
        assert found == sizes
        assert (task.choice.in_features, task.choice.out_features) == (sizes[-1][1] if sizes else 32, 3)


def test_vectors_of_a_file_are_frozen_unless_they_are_tuned(examples: ExamplePlace, tmp_path: Path) -> None:
    file = str(write_vectors(tmp_path / "v.txt", ["man", "sleeps"]))
    assert not classifier(examples, task__vectors=file).embedding.weight.requires_grad
    assert classifier(examples, task__vectors=file, task__tune_vectors=True).embedding.weight.requires_grad
    assert classifier(examples).embedding.weight.requires_grad, "without a file they are always learned"


def test_the_maximum_is_over_real_words_and_the_rest_of_a_text_is_cut(examples: ExamplePlace) -> None:
    task = classifier(examples, task__pooling="max", task__max_length=2).eval()
    words = np.array([3, 4, 5])
    assert task.places_read(words).tolist() == [0, 1]
    task.read_as[3] = -1
    assert task.places_read(words).tolist() == [1, 2]
    assert task.word_read(3) == -1
    assert task.word_read(4) == 4
    task.read_as[4] = 7
    assert task._read(words).tolist() == [7, 5]
    alone, _ = task.padded([np.array([5])])
    together, lengths = task.padded([np.array([5]), np.array([5, 6, 7, 8])])
    assert lengths.tolist() == [3, 6]
    with torch.no_grad():
        torch.testing.assert_close(
            task.text_vectors(together, lengths)[0], task.text_vectors(alone, lengths[:1])[0], rtol=0, atol=1e-6
        )
