"""ROUGE: hand-counted cases, an independent package for characters, the rules of our own."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from rouge import Rouge
from rouge_score.rouge_scorer import RougeScorer

from sememekit.errors import ConfigError, DataError
from sememekit.measure.bleu import dialogue_bleu
from sememekit.measure.rouge import METRICS, PRESETS, RougeSettings, TextScores, digest_of, rouge, sees

CHARACTERS = PRESETS["lcsts-characters"]
WORDS = RougeSettings()


def values(report: TextScores) -> list[float]:
    return [report["rouge1"], report["rouge2"], report["rougeL"]]


def chinese(seed: int, count: int = 60) -> list[str]:
    source = random.Random(seed)
    return ["".join(source.choices("中国人民银行今天发布新的", k=source.randint(1, 20))) for _ in range(count)]


def test_characters_agree_with_an_independent_package() -> None:
    hypotheses, references = chinese(1), chinese(2)
    ours = rouge([" ".join(text) for text in hypotheses], [[text] for text in references], CHARACTERS)
    theirs = Rouge(exclusive=False).get_scores([" ".join(text) for text in hypotheses], [" ".join(text) for text in references])
    for metric, name in zip(METRICS, ("rouge-1", "rouge-2", "rouge-l"), strict=True):
        np.testing.assert_allclose(ours.per_example[metric], [scores[name]["f"] for scores in theirs], atol=1e-7)
    recall = rouge(hypotheses, [[text] for text in references], RougeSettings(unit="character", statistic="recall"))
    for metric, name in zip(METRICS, ("rouge-1", "rouge-2", "rouge-l"), strict=True):
        np.testing.assert_allclose(recall.per_example[metric], [scores[name]["r"] for scores in theirs], atol=1e-7)


def test_words_are_those_of_rouge_score() -> None:
    hypothesis, reference = "the cats were running #.# miles", "The cat, running 2.5 miles!"
    found = RougeScorer(list(METRICS), use_stemmer=True).score(reference, hypothesis)
    assert values(rouge([hypothesis], [[reference]], PRESETS["gigaword"])) == [found[name].fmeasure for name in METRICS]


def test_counted_by_hand() -> None:
    assert values(rouge(["a b c"], [["a c b d"]], WORDS)) == pytest.approx([2 * 3 / 7, 0, 2 * 2 / 7])
    assert values(rouge(["a b"], [["a b"]], WORDS)) == [1.0, 1.0, 1.0]
    assert values(rouge([""], [["a b"]], WORDS)) == [0.0, 0.0, 0.0]
    assert values(rouge(["新 华社"], [["新华 社。"]], CHARACTERS)) == pytest.approx([6 / 7, 4 / 5, 6 / 7])


@pytest.mark.parametrize(("rule", "expected"), [("best", 1.0), ("mean", 0.6), ("summed", 3 / 7)])
def test_several_references(rule: str, expected: float) -> None:
    settings = RougeSettings(statistic="recall", references=rule)
    assert rouge(["a b c"], [["a b", "c d e f g"]], settings)["rouge1"] == pytest.approx(expected)


def test_several_references_summed_by_f1() -> None:
    report = rouge(["a b c"], [["a b", "c d e f g"]], RougeSettings(references="summed"))
    assert report["rouge1"] == pytest.approx(2 * (3 / 7) * (3 / 6) / (3 / 7 + 3 / 6))
    assert rouge(["x"], [["a b", "c"]], RougeSettings(references="summed"))["rouge1"] == 0.0


def test_the_cap_counts_bytes_of_what_was_written() -> None:
    settings = RougeSettings(byte_cap=7, statistic="recall")
    assert rouge(["aaa bbb ccc"], [["ccc aaa bbb"]], settings)["rouge1"] == pytest.approx(2 / 3)
    assert rouge(["abc"], [["a"]], RougeSettings(unit="character", byte_cap=1, statistic="recall"))["rouge1"] == 1.0
    chars = RougeSettings(unit="character", byte_cap=7, statistic="recall")
    assert rouge(["一二三"], [["一二三"]], chars)["rouge1"] == pytest.approx(2 / 3), "a torn character is dropped"


@pytest.mark.parametrize("mask", ["<unk>", "UNK"])
def test_not_knowing_a_word_earns_nothing(mask: str) -> None:
    assert rouge([f"nec {mask} up"], [["nec UNK up"]], WORDS)["rouge1"] == pytest.approx(2 / 3)
    assert rouge([f"一 {mask} 二"], [["一UNK二"]], CHARACTERS)["rouge1"] == pytest.approx(2 * 2 / (3 + 5))
    assert rouge([f"一 {mask} 二"], [["一UNK二"]], PRESETS["lcsts-words"])["rouge1"] < 1.0


@pytest.mark.parametrize("mask", ["<unk>", "UNK"])
@pytest.mark.parametrize("settings", [WORDS, RougeSettings(tokenizer="white space"), CHARACTERS])
def test_not_knowing_a_word_earns_nothing_where_the_cap_cuts_it(mask: str, settings: RougeSettings) -> None:
    """The cap cuts at each place: one unit matches nothing, and what follows stays behind the cap."""
    parts = [mask[:size] for size in range(1, len(mask) + 1)]
    reference = " ".join(["x", *parts, "U.S.", "y", *(unit for part in parts for unit in part)])
    if settings.unit == "character":
        wanted = len("".join(reference.split()))
    else:
        wanted = len(reference.split() if settings.tokenizer == "white space" else re.findall("[a-z]+", reference.lower()))
    for size in range(len(mask) + 3):
        found = rouge([f"x {mask} y"], [[reference]], settings.model_copy(update={"byte_cap": 2 + size}))
        matched, units = (1, 1) if size == 0 else (1, 2) if size < len(mask) + 2 else (2, 3)
        assert found["rouge1"] == pytest.approx(2 * matched / (units + wanted)), size
    longer = rouge([f"{mask}NOWN"], [["UNK unk"]], RougeSettings(byte_cap=len(mask), statistic="recall"))
    assert longer["rouge1"] == 0, "what the cap makes a mark of"


def test_a_cap_changes_what_the_signature_says_of_unknown_words() -> None:
    assert "|unk:never/before-cap|" in rouge(["a"], [["a"]], PRESETS["duc"]).signature
    assert "|unk:never|" in rouge(["a"], [["a"]], PRESETS["gigaword"]).signature, "stored ones can be compared"


def test_words_by_jieba_do_not_depend_on_how_a_model_cuts() -> None:
    one = rouge(["中国 人民 银行"], [["中国人民银行"]], PRESETS["lcsts-words"])
    other = rouge(["中 国人 民银行"], [["中国人民银行"]], PRESETS["lcsts-words"])
    assert values(one) == values(other) == [1.0, one["rouge2"], 1.0]
    assert "tok:jieba-" in one.signature


def test_intervals_repeat_and_hold_the_mean() -> None:
    one, again = (rouge(chinese(3), [[text] for text in chinese(4)], CHARACTERS, seed=5) for _ in range(2))
    assert one.values["rouge1"] == again.values["rouge1"]
    assert one.values["rouge1"].low < one["rouge1"] < one.values["rouge1"].high
    assert one["rouge1"] == pytest.approx(one.per_example["rouge1"].mean())


def test_the_signature_names_everything() -> None:
    report = rouge(["a"], [["a", "b", "c", "d"]], PRESETS["duc"])
    for part in (
        "unit:word",
        "tok:rouge-score",
        "stem:porter",
        "cap:75b",
        "stat:recall",
        "refs:4/summed",
        "package:rouge-score-",
    ):
        assert part in report.signature.split("|") or report.signature.split("|")[-1].startswith(part)
    assert len({rouge(["a"], [["a"]], settings).signature for settings in PRESETS.values()}) == 4
    assert "refs:1-2/best" in rouge(["a", "b"], [["a"], ["a", "b"]], WORDS).signature


@pytest.mark.parametrize("score", [rouge, lambda texts, references: dialogue_bleu([[text] for text in texts], references)])
def test_the_signature_names_what_is_scored_against(score: Any) -> None:
    """The references count, each in its place; the texts of a system do not."""
    base = score(["a", "b"], [["a"], ["b", "c"]]).signature
    assert f"|references:{digest_of([('a',), ('b', 'c')])}|" in base
    assert score(["x", "y"], [["a"], ["b", "c"]]).signature == base
    others = {score(["a", "b"], own).signature for own in ([["b", "c"], ["a"]], [["a"], ["c", "b"]], [["a"], ["b", "d"]])}
    assert len({base, *others}) == 4


def test_what_cannot_be_scored() -> None:
    with pytest.raises(DataError, match="no texts"):
        rouge([], [])
    with pytest.raises(DataError, match="1 texts to score, but references for 2"):
        rouge(["a"], [["a"], ["b"]])
    with pytest.raises(DataError, match="text 2: no reference"):
        rouge(["a", "b"], [["a"], []])
    with pytest.raises(DataError, match="text 1: a string where a list"):
        rouge(["a"], ["a"])
    with pytest.raises(ConfigError, match="stemming"):
        rouge(["a"], [["a"]], RougeSettings(unit="character", stemming=True))


@pytest.mark.parametrize("text", ["中国 队 赢得 2008 年 金牌", "сборная выиграла 3 медали"])
def test_a_language_that_the_tokenizer_cannot_see_is_refused(text: str) -> None:
    """Digits alone would be compared: 0.00 for equal texts without any."""
    for preset in ("gigaword", "duc"):
        with pytest.raises(DataError, match=r"keeps ASCII letters and digits alone.*lcsts-characters"):
            rouge([text], [[text]], PRESETS[preset])
    assert rouge([text], [[text]], PRESETS["lcsts-characters"])["rouge1"] == 1.0
    assert rouge([text], [[text]], RougeSettings(tokenizer="white space"))["rouge1"] == 1.0
    assert not sees(RougeSettings(), [text])


def test_a_language_of_ascii_letters_with_some_others_is_seen() -> None:
    assert sees(RougeSettings(), ["l'équipe a gagné à Zürich", "北京 beijing won the medal"])
    assert sees(RougeSettings(), ["2008", "12 : 3"]), "there is no letter to lose"
