"""Attacks on functions and objects of a notebook."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sememekit import attack_classifier
from sememekit.attack import Example, choose_examples
from sememekit.attack.folder import compare_attacks as compare
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.jobs.attack import attack as attack_command
from tests.attack.toys import LABELS, TEXTS, predict

WORDS = [text for text, _ in TEXTS]
GOLD = [label for _, label in TEXTS]


@pytest.fixture
def table(tmp_path: Path) -> dict[str, Any]:
    """The table of substitutes, as the settings of the candidates."""
    from tests.attack.toys import TABLE

    path = tmp_path / "table.json"
    path.write_text(json.dumps(TABLE), encoding="utf-8")
    return {"candidates": {"path": str(path)}}


class Model:
    """A classifier with the interface of scikit-learn."""

    def __init__(self) -> None:
        self.classes_ = np.array(LABELS)

    def predict_proba(self, texts: list[str]) -> np.ndarray:
        return predict(texts)


def test_a_function_is_attacked_as_by_the_command(table: dict[str, Any], tmp_path: Path) -> None:
    found = attack_classifier(predict, WORDS, GOLD, names=LABELS, candidates="table", settings=table, out=tmp_path / "mine")
    data = tmp_path / "data.tsv"
    data.write_text("".join(f"{text}\t{label}\n" for text, label in TEXTS), encoding="utf-8")
    plan = {"search": {"name": "greedy"}, "candidates": {"name": "table", **table["candidates"]}}
    report = attack_command("tests.attack.toys:predict", data, tmp_path / "theirs", table=plan, labels=LABELS)
    assert (found.report.rates, found.report.coverage, found.report.queries) == (report.rates, report.coverage, report.queries)
    lines = (tmp_path / "theirs" / "examples.jsonl").read_bytes()
    assert (tmp_path / "mine" / "examples.jsonl").read_bytes() == lines
    assert "success" in {row["outcome"] for row in found}
    assert (tmp_path / "mine" / "report.html").read_text(encoding="utf-8") == found.html
    parts = [[part for part in one.signature.split("|") if not part.startswith("data:")] for one in (found.report, report)]
    assert parts[0] == parts[1]
    assert found.report.signature != report.signature, "a list of texts has no file, whose hash the command takes"
    compared = compare(tmp_path / "mine", tmp_path / "theirs")
    assert (compared.common, compared.only_one) == (len(TEXTS), 0)
    for name, texts, gold, names, told in (
        ("order", WORDS[::-1], GOLD[::-1], LABELS, "attacked different data"),
        ("labels", WORDS, GOLD[::-1], LABELS, "same texts, other true labels"),
        ("names", WORDS, [str(LABELS.index(label)) for label in GOLD], ["0", "1"], "other label names: 0, 1 against no, yes"),
    ):
        attack_classifier(predict, texts, gold, names=names, candidates="table", settings=table, out=tmp_path / name)
        with pytest.raises(DataError, match=told):
            compare(tmp_path / name, tmp_path / "theirs")
    with pytest.raises(CheckpointError, match="exists already"):
        attack_classifier(predict, WORDS, GOLD, names=LABELS, candidates="table", settings=table, out=tmp_path / "mine")


@pytest.mark.parametrize("victim", [Model(), Model().predict_proba], ids=["object", "method"])
@pytest.mark.parametrize(
    "labels",
    [GOLD, [LABELS.index(label) for label in GOLD], np.array([LABELS.index(label) for label in GOLD])],
    ids=["names", "numbers", "array"],
)
def test_objects_know_the_names_of_their_columns(table: dict[str, Any], victim: Any, labels: Any) -> None:
    found = attack_classifier(victim, WORDS, labels, candidates="table", settings=table)
    expected = attack_classifier(predict, WORDS, GOLD, names=LABELS, candidates="table", settings=table)
    assert found.results == expected.results
    assert found.report.victim in ("Model", "Model.predict_proba")


def test_results_show_themselves(table: dict[str, Any]) -> None:
    found = attack_classifier(Model(), WORDS, GOLD, candidates="table", settings={**table, "attack": {"query_budget": 30}})
    assert found.report.query_budget == 30
    assert len(found) == len(WORDS)
    row = next(row for row in found if row["outcome"] == "success")
    assert " → " in row["changes"]
    assert row["became"] != row["label"]
    assert found._repr_html_().startswith("<iframe")
    told = repr(found)
    assert told.startswith("Attack on Model")
    assert "success rate" in told
    assert "note: constraints standard: stop_words, " in told


def test_wrong_calls_are_told(table: dict[str, Any], tmp_path: Path) -> None:
    given: dict[str, Any] = {"candidates": "table", "settings": table}
    with pytest.raises(ConfigError, match=r"in the order of its columns, as in names=\[...\]"):
        attack_classifier(predict, WORDS, GOLD, **given)
    with pytest.raises(DataError, match="8 texts and 7 labels"):
        attack_classifier(Model(), WORDS, GOLD[1:], **given)
    with pytest.raises(DataError, match=r"text 0 \(from 0\) has the label 'maybe'; the victim's labels are no, yes"):
        attack_classifier(Model(), WORDS, ["maybe", *GOLD[1:]], **given)
    with pytest.raises(ConfigError, match="given int"):
        attack_classifier(3, WORDS, GOLD, names=LABELS, **given)
    with pytest.raises(DataError, match="taken for one word"):
        attack_classifier(predict, ["我吃苹果我吃苹果"] * 2, ["no", "yes"], names=LABELS, **given)
    failing = lambda texts: np.zeros((len(texts), 2))  # noqa: E731
    with pytest.raises(DataError, match="an error on every example") as told:
        attack_classifier(failing, WORDS, GOLD, names=LABELS, **given)
    assert "; see" not in str(told.value)  # nothing is kept
    with pytest.raises(DataError, match=rf"an error on every example: .*; see {tmp_path / 'kept'}$"):
        attack_classifier(failing, WORDS, GOLD, names=LABELS, out=tmp_path / "kept", **given)
    assert (tmp_path / "kept" / "report.json").is_file()


def test_limit_and_sample_choose_the_texts(table: dict[str, Any]) -> None:
    settings = {**table, "attack": {"limit": 3, "sample": "random"}}
    found = attack_classifier(predict, WORDS, GOLD, names=LABELS, candidates="table", settings=settings)
    examples = [Example(index, (text,), label) for index, (text, label) in enumerate(zip(WORDS, GOLD, strict=True))]
    assert [result.index for result in found.results] == [one.index for one in choose_examples(examples, 3, "random", 1)]
    assert "examples:3-random-1" in found.report.signature


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ([0, 1, 2, 3, 1, 2, 3, 0], r"text 0 .* the label 0; the victim's labels are 1, 2, 3, 4; .* 0 to 3 with other names="),
        (["1", 2, "x", 3, 1, 2, 3, 4], r"text 2 \(from 0\) has the label 'x'"),
    ],
)
def test_numbers_are_all_names_or_all_columns(table: dict[str, Any], labels: list[Any], told: str) -> None:
    four = lambda texts: np.full((len(texts), 4), 0.25)  # noqa: E731
    with pytest.raises(DataError, match=told):
        attack_classifier(four, WORDS, labels, names=["1", "2", "3", "4"], candidates="table", settings=table)
    with pytest.raises(DataError, match=r"has the label 1; .* all labels by name, or all as columns 0 to 1"):
        attack_classifier(predict, WORDS, ["no", 1, *GOLD[2:]], names=LABELS, candidates="table", settings=table)


def test_own_names_in_another_order_are_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="its columns are no, yes in this order, given yes, no; leave names out"):
        attack_classifier(Model(), WORDS, GOLD, names=LABELS[::-1], candidates="table", settings=table)


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ([WORDS[0], float("nan")], r"text 1 \(from 0\) is nan \(float\); texts are strings, or tuples of strings"),
        ([None, WORDS[0]], r"text 0 \(from 0\) is None \(NoneType\)"),
        ([3, WORDS[0]], r"text 0 \(from 0\) is 3 \(int\)"),
        ([(WORDS[0], "b"), WORDS[0]], r"text 1 \(from 0\) has 1 strings, and text 0 has 2"),
        ([()], r"text 0 \(from 0\) is empty"),
        ([], "no texts; give at least one example"),
        ("a film", "texts must be a list with an item for each example, given str"),
    ],
)
def test_texts_that_are_none_are_told(table: dict[str, Any], texts: Any, told: str) -> None:
    with pytest.raises(DataError, match=told):
        attack_classifier(predict, texts, GOLD[:2], names=LABELS, candidates="table", settings=table)


def test_generators_are_taken(table: dict[str, Any]) -> None:
    found = attack_classifier(predict, iter(WORDS), iter(GOLD), names=LABELS, candidates="table", settings=table)
    assert found.results == attack_classifier(predict, WORDS, GOLD, names=LABELS, candidates="table", settings=table).results


def test_errors_name_arguments_in_place_of_options(table: dict[str, Any]) -> None:
    with pytest.raises(DataError, match='add segmenter="jieba", or segmenter="fmm" lexicon="FORMAT:PATH"; the victim'):
        attack_classifier(predict, ["我吃苹果我吃苹果"] * 2, ["no", "yes"], names=LABELS, candidates="table", settings=table)
    settings = {**table, "constraints": {"perplexity": {}}}
    with pytest.raises(ConfigError, match='language_model="RUN"'):
        attack_classifier(predict, WORDS, GOLD, names=LABELS, candidates="table", settings=settings)
    with pytest.raises(ConfigError, match=r'sources="open" \(Chinese\).*settings={"candidates": {"path": "synonyms.json"}}'):
        attack_classifier(predict, WORDS, GOLD, names=LABELS)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda n: np.full((n, 2), 0.495), "sum 0.99, least 0.495; they seem to be rounded: normalise them"),
        (lambda n: np.full((n, 2), [3.0, -1.0]), "sum 2, least -1; if these are logits, say so by the option logits"),
        (
            lambda n: np.full((n - (n > 1), 2), [0.2, 0.8]),
            r"an error on 3 of 8 examples .*array of shape \(\d, 2\), and gave \(\d, 2\)",
        ),
        (lambda n: [None] * n, r"must give an array \(1, 2\) of floating-point probabilities, and gave list"),
    ],
)
def test_what_is_wrong_with_the_answers_is_told_and_no_flag_of_the_command(
    table: dict[str, Any], answer: Any, told: str
) -> None:
    with pytest.raises(DataError, match=told) as caught:
        attack_classifier(lambda texts: answer(len(texts)), WORDS, GOLD, names=LABELS, candidates="table", settings=table)
    assert "--" not in str(caught.value)


def test_limit_and_sample_choose_examples_as_they_are_signed(table: dict[str, Any]) -> None:
    for sample in ("first", "random"):
        chosen = {"limit": 3, "sample": sample, "seed": 4}
        found = attack_classifier(predict, WORDS, GOLD, names=LABELS, candidates="table", settings={**table, "attack": chosen})
        expected = choose_examples([Example(index, (text,), "") for index, text in enumerate(WORDS)], 3, sample, 4)
        assert [result.index for result in found.results] == [example.index for example in expected]


def test_a_victim_whose_answers_depend_on_company_or_chance_is_refused(table: dict[str, Any]) -> None:
    given: dict[str, Any] = {"names": LABELS, "candidates": "table", "settings": table}

    def in_company(texts: list[str]) -> np.ndarray:
        answers = predict(texts)
        return answers if len(texts) == 1 else answers * 0.9 + 0.05

    with pytest.raises(DataError, match=r"gives '.*' other probabilities when it is asked again among other texts"):
        attack_classifier(in_company, WORDS, GOLD, **given)
    chance = np.random.default_rng(1)

    def noisy(texts: list[str]) -> np.ndarray:
        moved = np.clip(predict(texts)[:, 1] + chance.normal(0, 0.1, len(texts)), 0, 1)
        return np.stack([1 - moved, moved], axis=1)

    with pytest.raises(DataError, match=r"evaluation mode"):
        attack_classifier(noisy, WORDS, GOLD, **given)
    quiet = attack_classifier(predict, WORDS, GOLD, **given).report
    assert quiet.texts_asked <= quiet.queries + len(WORDS), "the questions before the attack are not counted"
