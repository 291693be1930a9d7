"""explain and analyze of classifiers: what they find, print and refuse."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from sememekit.analysis.analyze_labels import AT_LEAST, _binned, _by_sememes, _largest, analyze_labels, sign_test
from sememekit.analysis.evaluate import evaluate
from sememekit.analysis.explanations.label import LabelExplanation, explain_label
from sememekit.commands._program import app
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.train import train
from sememekit.measure.intervals import wilson_interval
from sememekit.reports.analysis import label_page as analysis_page
from sememekit.reports.explanation import label_page
from sememekit.reports.pages import remarks
from sememekit.runs.classifier import load_classifier
from sememekit.runs.run import Run
from tests.analysis.test_influence import graph_of
from tests.pages import check_page
from tests.small_examples import ExamplePlace
from tests.small_run import Place

runner = CliRunner()
PREMISE, HYPOTHESIS = "The girl runs in the park, in the zeppelin.", "Two dogs eat!"


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> ExamplePlace:
    return ExamplePlace(tmp_path_factory.mktemp("explain_label"))


@pytest.fixture(scope="module")
def runs(examples: ExamplePlace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of pairs with sememes, one without, and one of single texts."""
    folder = tmp_path_factory.mktemp("runs")
    graph_of(examples).save(folder / "graph.json")
    own = {"optimizer__name": "adam", "optimizer__learning_rate": 0.02, "schedule__epochs": 4, "schedule__factor": 1.0}
    sememes = {"encoder__injection": "cell", "graph__path": str(folder / "graph.json")}
    train(examples.table("nli", "bilstm", **own, **sememes), folder / "cell")
    train(examples.table("nli", "bigru", **own), folder / "plain")
    train(examples.table("classification", "lstm", **own), folder / "reviews")
    return folder


@pytest.fixture(scope="module")
def explanation(runs: Path) -> LabelExplanation:
    return explain_label(runs / "cell", [PREMISE, HYPOTHESIS])


def test_labels_are_those_of_predict(runs: Path, explanation: LabelExplanation) -> None:
    p = load_classifier(runs / "cell").probabilities([(PREMISE, HYPOTHESIS)])[0]
    assert explanation.labels == pytest.approx(dict(zip(load_classifier(runs / "cell").labels, p.tolist(), strict=True)))
    assert list(explanation.labels.values()) == sorted(explanation.labels.values(), reverse=True)
    assert explanation.label == next(iter(explanation.labels))


def test_words_have_the_sememes_of_the_lexicon(explanation: LabelExplanation) -> None:
    assert [text.name for text in explanation.texts] == ["premise", "hypothesis"]
    girl = next(word for word in explanation.texts[0].words if word.word == "girl")
    assert {item.name for item in girl.sememes} == {"human", "female", "young"}
    assert girl.source == "list:own"
    sizes = [abs(item.effect) for item in girl.sememes]
    assert sizes == sorted(sizes, reverse=True)
    zeppelin = next(word for word in explanation.texts[0].words if word.word == "zeppelin")
    assert (zeppelin.known, zeppelin.read_as, zeppelin.effect) == (False, "<unk>", 0.0)
    assert remarks("label", explanation) == ["The model does not know zeppelin."]


def test_effects_are_differences_of_predictions(runs: Path, explanation: LabelExplanation) -> None:
    classifier = load_classifier(runs / "cell")
    words = [classifier.words(PREMISE), classifier.words(HYPOTHESIS)]
    before = math.log(explanation.labels[explanation.label])
    for number, text in enumerate(explanation.texts):
        for place, word in enumerate(text.words):
            changed = [list(one) for one in words]
            changed[number][place] = "<unk>"
            after = classifier.probabilities([changed])[0][classifier.labels.index(explanation.label)]
            assert word.effect == pytest.approx(before - math.log(after), abs=1e-5)


def test_the_strongest_sememes_are_in_order_and_any_label_can_be_asked_for(runs: Path) -> None:
    found = explain_label(runs / "cell", [PREMISE, HYPOTHESIS], label="neutral", top_sememes=4)
    assert found.label == "neutral"
    sizes = [abs(item.effect) for item in found.sememes]
    assert len(sizes) == 4
    assert sizes == sorted(sizes, reverse=True)
    for item in found.sememes:
        [text] = [text for text in found.texts if text.name == item.text]
        word = text.words[item.place - 1]
        assert word.word == item.word
        assert [own.effect for own in word.sememes if own.name == item.name] == [item.effect]
    everything = [abs(item.effect) for text in found.texts for word in text.words for item in word.sememes]
    assert sizes == pytest.approx(sorted(everything, reverse=True)[:4])


def test_a_model_without_sememes_says_so(runs: Path) -> None:
    found = explain_label(runs / "plain", [PREMISE, HYPOTHESIS])
    assert found.sememes == ()
    assert "reads words and no sememes" in remarks("label", found)[-1]
    assert "sememes with their effects" not in label_page(found)


def test_the_page_needs_nothing_else(explanation: LabelExplanation) -> None:
    parser = check_page(label_page(explanation))
    for part in (f"Why {explanation.label}", "girl", "female", "premise, word", "Effects do not add up"):
        assert part in parser.text


@pytest.mark.parametrize(
    ("run", "texts", "options", "error", "pattern"),
    [
        ("cell", [PREMISE], {}, DataError, r'1 texts, where this model takes 2: sememekit explain .*cell "PREMISE" "HYP'),
        ("reviews", [PREMISE, HYPOTHESIS], {}, DataError, r"2 texts, where this model takes 1"),
        ("cell", [PREMISE, "  "], {}, DataError, r"the hypothesis is empty or has no word that the model knows"),
        ("cell", [PREMISE, "zeppelin"], {}, DataError, r"the hypothesis is empty or has no word that the model knows"),
        (
            "cell",
            [PREMISE, HYPOTHESIS],
            {"label": "maybe"},
            ConfigError,
            r"--label 'maybe': the model has the labels .*neut",
        ),
        ("cell", [PREMISE, HYPOTHESIS], {"top_sememes": 0}, ConfigError, r"--top-sememes must be 1 at least"),
    ],
)
def test_what_cannot_be_explained(
    runs: Path, run: str, texts: list[str], options: dict[str, object], error: type[Exception], pattern: str
) -> None:
    with pytest.raises(error, match=pattern):
        explain_label(runs / run, texts, **options)


def test_the_command_line_of_explain(runs: Path, opened: list[Path], tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    result = runner.invoke(app, ["explain", str(runs / "cell"), PREMISE, HYPOTHESIS, "--html", str(page), "--quiet"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert opened == [runs / "cell"]
    for part in ("entailment", "girl", "female", "hypothesis, effects on", "sememes that moved it most"):
        assert part in result.stdout
    assert "female" in page.read_text(encoding="utf-8")
    result = runner.invoke(app, ["explain", str(runs / "reviews"), "a fine film", "--json"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert len(json.loads(result.stdout)["texts"][0]["words"]) == 3
    result = runner.invoke(app, ["explain", str(runs / "cell"), PREMISE, HYPOTHESIS, "--top", "3"])
    assert result.exit_code == 1
    assert "--top: explain takes it with a model that predicts words, and" in result.stderr


def test_other_runs_take_no_second_text_and_no_label(place: Place, softmax: Path) -> None:
    assert "labels" not in Run.open(softmax).kinds
    result = runner.invoke(app, ["explain", str(softmax), "我 吃", "苹果"])
    assert (result.exit_code, "TEXT2: explain takes it with a classifier, and" in result.stderr) == (1, True)
    result = runner.invoke(app, ["explain", str(softmax), "我 吃", "--label", "neutral"])
    assert (result.exit_code, "--label: explain takes it with a classifier, and" in result.stderr) == (1, True)
    result = runner.invoke(app, ["explain", str(place.folder), "我 吃"])
    assert (result.exit_code, "is no run folder" in result.stderr) == (1, True)


def test_analysis_agrees_with_eval(runs: Path, examples: ExamplePlace) -> None:
    seen: list[tuple[str, int, int | None]] = []
    found = analyze_labels(runs / "cell", contexts=9, progress=lambda *told: seen.append(told))
    assert seen == [("reading with run 1", 0, None), *(("taking words from cell", done, 9) for done in range(1, 10))]
    metrics = evaluate(runs / "cell", device="cpu")
    (run,) = found.runs
    assert (found.examples, found.looked_into) == (20, 9)
    assert run.accuracy.confusion == metrics.confusion
    assert run.accuracy.accuracy == metrics.accuracy
    for groups in (run.by_length, run.by_sememes):
        assert sum(group.examples for group in groups) == 20
        right = sum(group.examples * group.accuracy for group in groups)
        assert right == pytest.approx(20 * metrics.accuracy)
    lengths = [sum(pair) for pair in examples.pairs.examples("test").lengths().tolist()]
    names = ["1 to 10 words", "11 to 15 words", "16 to 20 words", "21 to 30 words", "31 to 50 words"]
    groups = Counter(names[sum(length >= begin for begin in (11, 16, 21, 31))] for length in lengths)
    assert {group.name: group.examples for group in run.by_length} == groups
    graph, test = Run.open(runs / "cell").graph, examples.pairs.examples("test")
    assert graph is not None
    has = np.array([entry.is_from_lexicon for entry in graph.entries()])
    quarters = ["0 % to under 25 %", "25 % to under 50 %", "50 % to under 75 %", "75 % to under 100 %"]
    names = [*(f"{quarter} of the words have sememes" for quarter in quarters), "all words have sememes"]
    shares = [has[np.concatenate([test.text(number, text) for text in (0, 1)])].mean() for number in range(20)]
    assert {group.name: group.examples for group in run.by_sememes} == Counter(names[int(4 * share)] for share in shares)


def test_means_are_those_of_single_explanations(runs: Path, examples: ExamplePlace) -> None:
    """The mean of a sememe over all examples is its mean over their single explanations."""
    found = analyze_labels(runs / "cell", contexts=20, top=100).runs[0]
    test = examples.pairs.examples("test")
    effects: dict[str, list[float]] = {}
    words: dict[str, list[float]] = {}
    for number in range(len(test)):
        texts = [" ".join(examples.pairs.vocabulary.decode(test.text(number, text).tolist())) for text in range(2)]
        for text in explain_label(runs / "cell", texts).texts:
            for word in text.words:
                words.setdefault(word.word, []).append(word.effect)
                for item in word.sememes:
                    effects.setdefault(item.name, []).append(item.effect)
    assert {item.name for item in found.sememes} == {name for name, values in effects.items() if len(values) >= AT_LEAST}
    for item in found.sememes:
        assert item.times == len(effects[item.name])
        assert item.effect == pytest.approx(np.mean(effects[item.name]), abs=1e-5)
        assert item.size == pytest.approx(np.mean(np.abs(effects[item.name])), abs=1e-5)
    assert found.rare_words == sum(len(values) < AT_LEAST for values in words.values())


def test_the_largest_mean_sizes_come_first_and_rare_names_are_counted() -> None:
    """Five occurrences are enough. Effects of both signs have a small mean and a large size; equal sizes go by name."""
    effects = {
        "five": [0.25] * 5,
        "both signs": [0.5, -0.5] * 3,
        "four": [9.0] * 4,
        "small": [-0.125] * 6,
        "equal": [0.25] * 7,
        "once": [9.0],
    }
    every = (("both signs", 6, 0.0, 0.5), ("equal", 7, 0.25, 0.25), ("five", 5, 0.25, 0.25), ("small", 6, -0.125, 0.125))
    for top in (1, 3, 9):
        found, rare = _largest(effects, top)
        assert tuple((item.name, item.times, item.effect, item.size) for item in found) == every[:top]
        assert rare == 2


def test_groups_begin_at_their_lower_bound_and_empty_ones_are_left_out() -> None:
    right = np.array([True, False, True, True])
    found = _binned(np.array([1, 4, 3, 9]), (1, 4, 6, 9), lambda begin, end: f"{begin} to {end}", right)
    assert [(group.name, group.examples, group.accuracy) for group in found] == [
        ("1 to 4", 2, 1.0),
        ("4 to 6", 1, 0.0),
        ("9 to None", 1, 1.0),
    ]
    assert [(group.low, group.high) for group in found] == [wilson_interval(2, 2), wilson_interval(0, 1), wilson_interval(1, 1)]


def test_words_without_sememes_count_in_the_share_of_each_example() -> None:
    """Word 1 has sememes, word 0 has none; an example is a pair, and may be empty."""
    pairs = [([1, 0], [0, 0]), ([0, 0, 1], [1]), ([], []), ([1], []), ([0], [1, 1, 1])]
    texts = [text for pair in pairs for text in pair]
    examples: Any = SimpleNamespace(
        tokens=[word for text in texts for word in text], offsets=np.cumsum([0, *map(len, texts)]), num_texts=2
    )
    run: Any = SimpleNamespace(graph=SimpleNamespace(pooled_sets=lambda: (np.array([1, 0]), np.array([0, 2, 2]), None)))
    found = _by_sememes(run, examples, np.ones(5, dtype=np.bool_))
    assert [(group.name.partition(" of ")[0], group.examples) for group in found] == [
        ("0 % to under 25 %", 1),
        ("25 % to under 50 %", 1),
        ("50 % to under 75 %", 1),
        ("75 % to under 100 %", 1),
        ("all words have sememes", 1),
    ]
    run.graph = None
    assert _by_sememes(run, examples, np.ones(5, dtype=np.bool_)) == ()


def test_two_runs_are_compared_example_by_example(runs: Path, examples: ExamplePlace) -> None:
    found = analyze_labels(runs / "cell", runs / "plain", contexts=3)
    assert found.comparison is not None
    counts = found.comparison
    test, decode = examples.pairs.examples("test"), examples.pairs.vocabulary.decode
    texts = [[decode(test.text(number, text).tolist()) for text in (0, 1)] for number in range(20)]
    first, second = (
        load_classifier(runs / name).probabilities(texts).argmax(axis=1) == test.labels for name in ("cell", "plain")
    )
    both, neither = int((first & second).sum()), int((~first & ~second).sum())
    assert (counts.both, counts.neither) == (both, neither)
    assert (counts.first, counts.second) == (int(first.sum()) - both, int(second.sum()) - both)
    assert counts.p == sign_test(counts.first, counts.second)
    assert counts.both + counts.first == round(20 * found.runs[0].accuracy.accuracy)
    assert counts.both + counts.second == round(20 * found.runs[1].accuracy.accuracy)
    assert found.runs[1].no_sememes is not None
    assert found.runs[1].by_sememes == ()
    check_page(analysis_page(found))
    with pytest.raises(DataError, match="same data"):
        analyze_labels(runs / "cell", runs / "reviews", contexts=3)


def test_the_sign_test_is_the_binomial_one() -> None:
    for one, other in ((0, 0), (5, 5), (1, 9), (0, 12), (700, 500)):
        total, few = one + other, min(one, other)
        exact = 2 * sum(math.comb(total, k) for k in range(few + 1)) / 2**total
        assert sign_test(one, other) == pytest.approx(min(1.0, exact), rel=1e-9)
    assert 0 < sign_test(3000, 4000) < 1e-30


def test_the_command_line_of_analyze(runs: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    arguments = ["analyze", str(runs / "cell"), str(runs / "plain"), "--contexts", "5", "--html", str(page), "--quiet"]
    result = runner.invoke(app, arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    for part in ("macro F1", "By length of the example", "Sememes that move", "McNemar", "words have sememes"):
        assert part in result.stdout
    assert "What moves the labels" in page.read_text(encoding="utf-8")
    result = runner.invoke(app, ["analyze", str(runs / "cell"), "--memory", "1"])
    assert (result.exit_code, "--memory: analyze takes it with a model that predicts words, and" in result.stderr) == (1, True)
