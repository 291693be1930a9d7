"""BLEU of answers: hand-counted cases, sacrebleu itself, the two sides."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from sacrebleu.metrics.bleu import BLEU

from sememekit.errors import DataError
from sememekit.measure.bleu import BleuSettings, dialogue_bleu


def test_one_word_of_two(caplog: pytest.LogCaptureFixture) -> None:
    report = dialogue_bleu([["yes sir"]], [["yes madam"]])
    assert report["precision1"] == pytest.approx(0.5)
    # BLEU-2: one bigram, none right, smoothed to half of one
    assert report["precision2"] == pytest.approx(math.sqrt(0.5 * 0.5))
    assert report["precision4"] == report["precision2"], "orders that do not fit are left out"
    assert not caplog.records, "sacrebleu has nothing to complain of"


def test_brevity() -> None:
    assert dialogue_bleu([["yes"]], [["yes indeed"]])["recall1"] == pytest.approx(math.exp(-1))


def test_every_order_is_that_of_sacrebleu() -> None:
    hypothesis, reference = "i think it is a very good idea too", "i think that it is a good idea , too"
    report = dialogue_bleu([[hypothesis]], [[reference]], BleuSettings(smoothing="add-k"))
    for order in (1, 2, 3, 4):
        metric = BLEU(tokenize="none", smooth_method="add-k", max_ngram_order=order, effective_order=True, force=True)
        assert report[f"precision{order}"] == pytest.approx(metric.sentence_score(hypothesis, [reference]).score / 100)


@pytest.mark.parametrize("smoothing", ["exp", "add-k", "floor"])
def test_orders_that_a_hypothesis_lacks_are_not_smoothed(smoothing: Any) -> None:
    """One word of two that are right: orders 2 to 4 have nothing to count, and say what order 1 says."""
    settings = BleuSettings(smoothing=smoothing)
    report = dialogue_bleu([["a b", "a"]], [["a x"]], settings)
    one, two = (dialogue_bleu([[text]], [["a x"]], settings) for text in ("a", "a b"))
    assert [one[f"precision{order}"] for order in (1, 2, 3, 4)] == pytest.approx([math.exp(-1)] * 4)
    assert two["precision4"] == two["precision2"]
    assert report["precision3"] == pytest.approx((one["precision1"] + two["precision2"]) / 2)
    with_a_wrong_word = dialogue_bleu([["b a"]], [["a x"]], settings)
    assert with_a_wrong_word["precision2"] < 1


def test_smoothing_agrees_with_an_independent_package() -> None:
    source, words = random.Random(3), ["a", "b", "c", "d", "e", "f"]
    for _ in range(30):
        hypothesis, reference = (source.choices(words, k=source.randint(4, 12)) for _ in range(2))
        report = dialogue_bleu([[" ".join(hypothesis)]], [[" ".join(reference)]], resamples=1)
        for order in (1, 2, 3, 4):
            theirs = sentence_bleu([reference], hypothesis, [1 / order] * order, SmoothingFunction().method3)
            assert report[f"precision{order}"] == pytest.approx(theirs)


def test_precision_and_recall_with_several_of_both() -> None:
    report = dialogue_bleu([["a b", "c d", "x y"]], [["a b", "c q"]])
    assert report["precision1"] == pytest.approx((1 + 0.5 + 0) / 3), "no right word, nothing to smooth"
    assert report["recall1"] == pytest.approx((1 + 0.5) / 2)


def test_only_the_first_count_and_both_sides_are_cut_alike() -> None:
    answers = ["i do n't know ."] * 5 + ["rubbish"]
    report = dialogue_bleu([answers], [["I don't know."]])
    assert [side.value for side in report.values.values()] == pytest.approx([1.0] * 8)
    assert "top:5|refs:1|" in report.signature
    assert "|refs:1-3|" in dialogue_bleu([["a"]] * 3, [["a"], ["a", "b", "c"], ["a", "b"]]).signature
    assert dialogue_bleu([["<unk>"]], [["<unk>"]])["precision1"] < 1, "not knowing earns nothing"
    assert dialogue_bleu([[""]], [["a"]])["precision1"] == 0


def test_what_cannot_be_scored() -> None:
    with pytest.raises(DataError, match="no answers"):
        dialogue_bleu([], [])
    with pytest.raises(DataError, match="1 lists of answers, but references for 2"):
        dialogue_bleu([["a"]], [["a"], ["b"]])
    with pytest.raises(DataError, match="example 1: no answer"):
        dialogue_bleu([[]], [["a"]])
    with pytest.raises(DataError, match="example 1: a string, not a list reference"):
        dialogue_bleu([["a"]], ["a"])
