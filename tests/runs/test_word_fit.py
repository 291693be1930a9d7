"""New words of a model: the features, solution and vote of the regression, how tables grow by it, and biases after it."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sememekit.errors import ConfigError
from sememekit.runs import extend as extending
from sememekit.runs import word_fit
from sememekit.runs.word_fit import Growth, WordFit, _parts
from sememekit.sememes.graph import SememeGraph, SenseEntry, Source, WordEntry
from sememekit.text.vocabulary import Vocabulary

KNOWN = np.array([True, True, False, False])
LN3 = log(3.0)


def word(name: str, *senses: str, source: str = "list") -> WordEntry:
    """A word with a sense for each text of sememes."""
    return WordEntry(name, source, tuple(SenseEntry(tuple(sense.split()), sense) for sense in senses))


def graph(*entries: WordEntry) -> SememeGraph:
    return SememeGraph(entries, "0" * 16)


@pytest.fixture(scope="module")
def small() -> WordFit:
    """Columns: constant, two of the count, the sememes s, t and u, and the parts ``b``, ``b$`` and ``length 2``."""
    entries = word("ab", "s t", "u"), word("cb", "s"), word("<b", "s", "t v"), word("bxy", "v")
    return WordFit(graph(*entries), np.array([8, 80, 2, 26]), KNOWN)


def test_features_are_senses_characters_and_counts(small: WordFit) -> None:
    three, one = 0.7 / sqrt(3), sqrt(0.5)
    assert small.num_features == 9
    expected = [
        [10, -2 * LN3, LN3**2 / 2, 0.5, 0.5, one, three, three, three],
        [10, 2 * LN3, LN3**2 / 2, 1, 0, 0, three, three, three],
        [10, -4 * LN3, 2 * LN3**2, one, one, 0, three, three, three],  # v is no sememe of a known word
        [10, 0, 0, 0, 0, 0, 0.7, 0, 0],
    ]
    torch.testing.assert_close(small._features(np.arange(4)), torch.tensor(expected), atol=1e-5, rtol=0)
    senses = [[one, one, 0], [0, 0, 1], [1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0]]
    found = small._features(np.arange(6), of_senses=True)
    torch.testing.assert_close(found[:, 3:6], torch.tensor(senses), atol=1e-6, rtol=0)
    torch.testing.assert_close(found[:, [0, 1, 2, 6, 7, 8]], torch.tensor(expected)[[0, 0, 1, 2, 2, 3]][:, [0, 1, 2, 6, 7, 8]])
    assert [rows.tolist() for rows in (small.known_words, small.new_words)] == [[0, 1], [2, 3]]
    assert [rows.tolist() for rows in (small.known_senses, small.new_senses)] == [[0, 1, 2], [3, 4, 5]]


def test_words_have_parts_and_special_tokens_have_none() -> None:
    assert _parts("klmno") == {*"klmno", "^k", "o$", "length 4"}
    assert _parts("我") == {"我", "^我", "我$", "length 1"}
    assert _parts("<unk>") == set()
    assert _parts("a>") == {"a", ">", "^a", ">$", "length 2"}


def test_sememes_of_words_without_annotation_are_no_features() -> None:
    fit = WordFit(graph(word("ab", "s"), word("cd", "<unk>", source=Source.NONE)), np.array([1, 1]), np.array([True, True]))
    assert fit.num_features == 3 + 1 + 1  # the sememe s and the length


def many(size: int = 12) -> tuple[WordFit, Tensor]:
    """Words whose sememes and counts differ, three of them new, and vectors of the known words. No known word has the sememes
    of the last new word."""
    names = [f"{first}{second}" for first in "abcd" for second in "xyz"][:size]
    sememes = [(f"s{number % 5}", f"t{number % 3}") if number != 9 else ("u", "v") for number in range(size)]
    entries = [word(name, *of_word) for name, of_word in zip(names, sememes, strict=True)]
    counts = np.array([(7 * number) % 31 for number in range(size)])
    values = torch.randn(size - 3, 2, 3, generator=torch.Generator().manual_seed(5))
    return WordFit(graph(*entries), counts, np.arange(size) % 4 != 1), values


@pytest.mark.parametrize("at_once", [4096, 4])
@pytest.mark.parametrize("of_senses", [False, True])
def test_predictions_are_of_the_weighted_ridge_regression(
    at_once: int, of_senses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prediction is the least squares of rows that weigh sqrt(c / (c + 10)), and of a row sqrt(RIDGE) for each feature.
    A word without a known sememe is predicted without the features of the 8 sememes."""
    monkeypatch.setattr(word_fit, "_AT_ONCE", at_once)
    fit, values = many()
    counts, rows, new = np.array([(7 * number) % 31 for number in range(12)]), fit.known_words, fit.new_words
    if of_senses:
        counts, rows, new, values = counts.repeat(2), fit.known_senses, fit.new_senses, values.repeat_interleave(2, dim=0)
        values[::2] += 1.0
    features = fit._features(np.arange(len(counts)), of_senses=of_senses).double().numpy()
    root = np.sqrt(counts[rows] / (counts[rows] + 10))[:, None]
    found = fit.predict(values, rows, new, of_senses=of_senses).reshape(len(new), 6)
    bare = ~features[new, 3:11].any(axis=1)
    assert bare.tolist() == ([False] * 4 + [True] * 2 if of_senses else [False, False, True])
    for of_kind, kept in ((~bare, features), (bare, np.delete(features, range(3, 11), axis=1))):
        size = kept.shape[1]
        left = np.concatenate([root * kept[rows], sqrt(word_fit.RIDGE) * np.eye(size)])
        right = np.concatenate([root * values.double().reshape(len(rows), 6).numpy(), np.zeros((size, 6))])
        solved = np.linalg.lstsq(left, right, rcond=None)[0]
        np.testing.assert_allclose(found[of_kind].numpy(), kept[new][of_kind] @ solved, atol=1e-4)


def voters(clusters: Sequence[int], senses: Sequence[str], new: str) -> int:
    """The vote for one new word; the words are special tokens, so that sememes alone make them similar."""
    entries = [word(f"<{number}>", sense) for number, sense in enumerate(senses)]
    known = np.arange(len(senses) + 1) < len(senses)
    fit = WordFit(graph(*entries, word("<new>", new)), np.ones(len(known), dtype=np.int64), known)
    found = fit.vote(torch.tensor(clusters), fit.known_words, fit.new_words)
    assert found.shape == (1,)
    assert found.dtype == torch.int64
    return int(found)


@pytest.mark.parametrize("at_once", [4096, 3])
def test_the_ten_most_similar_words_vote_by_similarity(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_fit, "_AT_ONCE", at_once)
    assert voters([0, 2, 2, 2, 0], ["s", "s t", "s u", "s v", "s"], "s") == 2  # 3 / sqrt(2) against 2
    assert voters([0, 3, 3, 0], ["s", "s t u v", "s u v t w", "s"], "s") == 0  # two against one
    equal, half = ["s"] * 10, ["s t u v"] * 9
    assert voters([*[2] * 6, *[1] * 13], [*equal, *half], "s") == 2, "the eleventh word has no vote"
    assert voters([*[1] * 9, *[2] * 10], [*half, *equal], "s") == 2, "nor has it by its place"


WORDS = {"<unk>": 9, "ab": 8, "cb": 7, "ca": 6}
NEW = {"cd": 3, "ad": 12}


def growth(of_unknown: float, words: dict[str, int] | None = None) -> Growth:
    """Two new words; ``ab`` and ``ad`` have two senses."""
    words = WORDS if words is None else words
    old, larger = Vocabulary.from_counts(words), Vocabulary.from_counts({**words, **dict.fromkeys(NEW, 0)})
    senses = {"ab": ("s", "t"), "ad": ("s", "u"), "cb": ("s u",), "ca": ("t",), "cd": ("u",)}
    entries = [
        word(name, *senses[name]) if name in senses else word(name, "<unk>", source=Source.SPECIAL) for name in larger.tokens
    ]
    return Growth(old, larger, graph(*entries), NEW, of_unknown)


def table(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


def plain(grown: Growth, old: Tensor, rows: NDArray[np.int64] | None = None, asked: NDArray[np.int64] | None = None) -> Tensor:
    """Predictions of the regression alone."""
    fit = grown.fit
    rows, asked = fit.known_words if rows is None else rows, fit.new_words if asked is None else asked
    return fit.predict(old, rows, asked)


@pytest.mark.parametrize(("share", "mean_of"), [(1.0, "known"), (0.5, "new"), (0.0, "new")])
def test_a_new_vector_has_its_share_of_the_unknown_word(share: float, mean_of: str) -> None:
    grown, old = growth(share), table(4, 3)
    assert (grown.fit.known_words.tolist(), grown.fit.new_words.tolist()) == ([0, 1, 2, 3], [4, 5])
    predicted = plain(grown, old)
    mean = (plain(grown, old, asked=grown.fit.known_words) if mean_of == "known" else predicted).mean(dim=0)
    found = grown.grown("table", old, torch.full((6, 3), 9.0))
    torch.testing.assert_close(found[:4], old)
    torch.testing.assert_close(found[4:], predicted + share * (old[0] - mean))


def test_counts_of_new_words_are_read_by_word() -> None:
    """The ids of new words follow the spelling: ``ad`` before ``cd``."""
    fit = growth(0.5).fit
    logs = fit._features(fit.new_words)[:, 1] / 2 + np.log(np.array([10.0, 9.0, 8.0, 7.0])).mean()
    torch.testing.assert_close(logs.double(), torch.tensor([log(13), log(4)], dtype=torch.float64), atol=1e-5, rtol=0)


def test_biases_and_clusters_have_no_share_of_the_unknown_word() -> None:
    grown, bias, clusters = growth(0.5), table(4), torch.tensor([1, 0, 2, 2])
    torch.testing.assert_close(grown.grown("bias", bias, torch.zeros(6))[4:], plain(grown, bias))
    found = grown.grown("clusters", clusters, torch.zeros(6, dtype=torch.int64))
    assert found[:4].tolist() == clusters.tolist()
    assert found[4:].tolist() == grown.fit.vote(clusters, grown.fit.known_words, grown.fit.new_words).tolist()


def test_a_vocabulary_without_an_unknown_word_has_no_share_of_it() -> None:
    grown, old = growth(0.5, {"ab": 8, "cb": 7, "ca": 6}), table(3, 3)
    torch.testing.assert_close(grown.grown("table", old, torch.zeros(5, 3))[3:], plain(grown, old))


def test_tables_of_senses_and_of_the_last_words_grow() -> None:
    """A table may leave out the first words, as the tail of an adaptive softmax does."""
    grown, senses, last = growth(0.5), table(5, 3), table(2, 3)
    rows, asked = grown.fit.known_senses, grown.fit.new_senses
    assert (rows.tolist(), asked.tolist()) == ([0, 1, 2, 3, 4], [5, 6, 7])
    grown.of_unknown = 0.0
    found = grown.grown("senses", senses, torch.zeros(8, 3))
    torch.testing.assert_close(found[:5], senses)
    torch.testing.assert_close(found[5:], grown.fit.predict(senses, rows, asked, of_senses=True))
    found = grown.grown("last", last, torch.zeros(4, 3))
    torch.testing.assert_close(found[:2], last)
    torch.testing.assert_close(found[2:], plain(grown, last, rows=np.array([2, 3])))
    behind, one = growth(0.0, {**WORDS, "zz": 0}), table(1, 3)
    found = behind.grown("last", one, torch.zeros(3, 3))
    torch.testing.assert_close(found, torch.cat([plain(behind, one, rows=np.array([6])), one]))


@pytest.mark.parametrize(("old", "new"), [((4, 3), (6, 2)), ((3, 3), (6, 3)), ((0, 3), (1, 3))])
def test_tables_whose_rows_are_no_words_are_refused(old: tuple[int, int], new: tuple[int, int]) -> None:
    said = (
        rf"t has the shape \[{old[0]}, 3\], and \[{new[0]}, {new[1]}\] with the new words, so its rows do not belong to words"
    )
    with pytest.raises(ConfigError, match=said):
        growth(0.5).grown("t", table(*old), torch.zeros(new))


def test_a_tied_table_grows_once_and_other_weights_stay() -> None:
    grown, tied, same = growth(0.5), table(4, 3), table(2, 2)
    old = {"embedding": tied, "other": same, "output": tied, "more": tied.clone()}
    new = {"embedding": torch.zeros(6, 3), "other": torch.zeros(2, 2), "output": torch.zeros(6, 3), "more": torch.zeros(6, 3)}
    weights, names = grown.weights(old, new)
    assert names == ("embedding", "output", "more")
    assert weights["output"] is weights["embedding"] is not weights["more"]
    assert weights["other"] is same
    torch.testing.assert_close(weights["more"], grown.grown("embedding", tied, torch.zeros(6, 3)))


class Biased(nn.Module):
    """Probabilities of the words, from a bias alone; ``word_of_row`` sums rows of senses."""

    def __init__(self, bias: list[float], word_of_row: Sequence[int]) -> None:
        super().__init__()
        self.weight, self.other = nn.Parameter(torch.zeros(6, 3)), nn.Parameter(torch.zeros(3))
        self.bias, self.word_of_row = nn.Parameter(torch.tensor(bias, dtype=torch.float64)), torch.tensor(word_of_row)

    def log_probs(self, contexts: Tensor) -> Tensor:
        found = torch.zeros(6, dtype=torch.float64).index_add(0, self.word_of_row, self.bias.exp())
        return (found / found.sum()).log().expand(len(contexts), -1)


@pytest.mark.parametrize("of_senses", [False, True])
def test_biases_are_set_so_that_new_words_have_their_probabilities(of_senses: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round changes a bias by 3 at most; other words keep theirs. The largest relative error that is left is returned."""
    grown = growth(0.5, {"ab": 9, "<unk>": 8, "cb": 7, "ca": 6})
    assert grown.larger.tokens == ("ab", "<unk>", "cb", "ca", "ad", "cd")
    rows = grown.graph.word_of_sense.tolist() if of_senses else list(range(6))
    start = [-12.0 if word == 4 else 0.0 for word in rows]
    given: Any = Biased(start, rows)
    before = given.log_probs(torch.zeros(1, 3))[0].tolist()
    target, contexts = torch.tensor([0.0, 0.1, 0.3], dtype=torch.float64), torch.zeros(5, 3)
    monkeypatch.setattr(extending, "_ROUNDS", 1)
    error = extending._calibrate(given, grown, ["cd", "ad"], contexts, target)
    left = given.log_probs(contexts).detach()[0].exp()[[5, 4, 1]] / target.clamp(min=1e-12) - 1.0
    assert error == pytest.approx(float(left.abs().max()))
    changes = {5: -3.0, 4: 3.0, 1: log(0.3) - before[1]}
    expected = [bias + changes.get(word, 0.0) for bias, word in zip(start, rows, strict=True)]
    assert given.bias.tolist() == pytest.approx(expected)
    assert not given.weight.any()
    assert not given.other.any()
    monkeypatch.setattr(extending, "_ROUNDS", 30)
    target = torch.tensor([0.05, 0.1, 0.3], dtype=torch.float64)
    error = extending._calibrate(given, grown, ["cd", "ad"], contexts, target)
    assert error is not None
    assert error <= 1e-4
    found = given.log_probs(contexts)[0].exp()
    assert found[[5, 4, 1]].tolist() == pytest.approx([0.05, 0.1, 0.3], rel=1e-3)


def test_a_layer_without_a_bias_is_not_calibrated() -> None:
    given: Any = Biased([0.0] * 5, [0] * 5)
    assert extending._calibrate(given, growth(0.5), ["cd", "ad"], torch.zeros(1, 3), torch.ones(3) / 3) is None
    assert given.bias.tolist() == [0.0] * 5
