"""Labels of texts: predict, eval of a classifier, and commands that such a run cannot serve."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from sememekit.analysis.evaluate import LabelMetrics, evaluate
from sememekit.analysis.predict import predict
from sememekit.analysis.scored_runs import label_signature
from sememekit.commands._program import app
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs.attacks.victims import open_victim
from sememekit.runs.classifier import Classifier, load_classifier
from tests.commands.refusals import refusal
from tests.small_examples import ExamplePlace, write_reviews
from tests.small_run import Place

runner = CliRunner()


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ExamplePlace]:
    place = ExamplePlace(tmp_path_factory.mktemp("predict"))
    train(place.table(), place.folder / "run")
    return place.folder / "run", place


@pytest.fixture(scope="module")
def classifier(pairs: tuple[Path, ExamplePlace]) -> Classifier:
    return load_classifier(pairs[0])


@pytest.mark.parametrize("text", ["a fine film", "a film of more words than the name of a file has letters " * 6])
def test_a_text_in_the_place_of_a_file_is_told_how_to_be_given(pairs: tuple[Path, ExamplePlace], text: str) -> None:
    found = runner.invoke(app, ["predict", str(pairs[0]), text])
    assert found.exit_code == 1
    told = f"no such file; a text itself is read from stdin: echo '{text}' | sememekit predict {pairs[0]}"
    assert told in " ".join(found.stderr.splitlines())


def test_texts_and_words_are_one(classifier: Classifier) -> None:
    raw = classifier.probabilities([("A man doesn't eat.", "It's nice outside!"), ("the girl runs", "two dogs xylophone")])
    cut = classifier.probabilities(
        [
            (["a", "man", "does", "n't", "eat", "."], ["it", "'s", "nice", "outside", "!"]),
            ("the girl runs", ["two", "dogs", "<unk>"]),
        ]
    )
    assert raw.shape == (2, 3)
    np.testing.assert_array_equal(raw, cut)
    assert classifier.labels == ("entailment", "neutral", "contradiction")
    assert classifier.texts == ("premise", "hypothesis")
    assert classifier.probabilities([]).shape == (0, 3)


def test_texts_that_recur_are_as_if_alone(classifier: Classifier) -> None:
    pairs = [
        ("a man runs", "two dogs sleeps"),
        ("a man runs", "a man runs"),
        ("two dogs sleeps", "a man runs"),
        ("a man runs", "xyz"),
    ]
    alone = np.concatenate([classifier.probabilities([pair]) for pair in pairs])
    np.testing.assert_allclose(classifier.probabilities([*pairs, *pairs]), np.concatenate([alone, alone]), atol=1e-6)
    assert len(np.unique(alone.round(6), axis=0)) == 4


def test_predictions_agree_with_eval(pairs: tuple[Path, ExamplePlace], classifier: Classifier) -> None:
    run, place = pairs
    examples, words = place.pairs.examples("test"), place.pairs.vocabulary
    texts = [[words.decode(examples.text(index, side)) for side in (0, 1)] for index in range(len(examples))]
    p = classifier.probabilities(texts)
    found = evaluate(run, device="cpu")
    assert isinstance(found, LabelMetrics)
    report = found.model_dump()
    assert "metrics" not in report
    assert LabelMetrics(**{**dict(found), "nats": math.inf}).nats == math.inf, "a model that diverged is reported, too"
    assert report["accuracy"] == np.mean(p.argmax(1) == examples.labels)
    assert np.array(report["confusion"]).sum() == report["examples"] == 20
    of_split = [place.pairs.examples(split).labels for split in ("train", "test")]
    usual = np.bincount(of_split[0]).argmax()
    assert report["majority"] == pytest.approx((of_split[1] == usual).mean())
    assert report["accuracy_low"] < report["accuracy"] < report["accuracy_high"]


@pytest.mark.parametrize(
    ("example", "pattern"),
    [
        (("a man", ""), "example 2: the hypothesis is empty"),
        (("a man", []), "example 2: the hypothesis is empty"),
        (("a man",), "example 2: 1 texts, where this model takes 2: premise, hypothesis"),
        ("a man", "example 2: 1 texts"),
    ],
)
def test_examples_that_are_none(classifier: Classifier, example: tuple[str, ...], pattern: str) -> None:
    with pytest.raises(DataError, match=pattern):
        classifier.probabilities([("a", "b"), example])


def test_the_command(pairs: tuple[Path, ExamplePlace]) -> None:
    run = str(pairs[0])
    lines = "A man sleeps.\tThe man runs.\n\nthe girl\tdogs\n"
    result = runner.invoke(app, ["predict", run, "--device", "cpu"], input=lines)
    assert result.exit_code == 0, result.output
    header, *rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert header == ["label", "entailment", "neutral", "contradiction"]
    assert len(rows) == 3
    assert rows.pop(1) == [""], "a blank line stays, so that the table can be pasted beside the file"
    for row in rows:
        assert sum(map(float, row[1:])) == pytest.approx(1, abs=1e-5)
        assert row[0] == header[1 + int(np.argmax([float(x) for x in row[1:]]))]
    result = runner.invoke(app, ["predict", run, "--device", "cpu", "--json"], input=lines)
    assert [row["line"] for row in json.loads(result.stdout)["predictions"]] == [1, 3]
    assert runner.invoke(app, ["predict", run, "-", "--device", "cpu", "--json"], input=lines).stdout == result.stdout
    result = runner.invoke(app, ["predict", run, "--device", "cpu"], input="\n\na\tb\n \n\n")
    assert [line.split("\t")[0] for line in result.stdout.split("\n")[:3]] == ["label", "", ""]
    assert result.stdout.endswith("\n\n\n")
    assert result.stdout.count("\n") == 6
    for more in ([], ["--json"]):
        assert refusal("predict", run, "--device", "cpu", *more, stdin="\n").endswith(
            "no text in stdin, so nothing is labelled; give a text a line\n"
        )
    told = refusal("predict", run, "--device", "cpu", stdin="xyz\tuvw\n")
    assert "stdin: the model knows none of the words, such as 'xyz uvw'; give text of the language of its data" in told


def test_the_lines_of_a_file_are_read_in_blocks(pairs: tuple[Path, ExamplePlace], tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("A man sleeps.\tThe man runs.\n" * 1030, encoding="utf-8")
    found = predict(pairs[0], file)
    rows = iter(found)
    assert (next(rows).line, found.lines, found.header) == (1, 1024, False)
    assert [row.line for row in rows] == [*range(2, 1031)]
    assert found.lines == 1030


def test_raw_texts_are_read_as_the_rows_of_a_file(tmp_path: Path) -> None:
    lines = "a fine<br /><br />film\tpositive\nwhat a bore\tnegative\n" * 20
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.tsv").write_text("text\tlabel\n" + lines, encoding="utf-8")
    preprocess("imdb", tmp_path, tmp_path / "data")
    table = ExamplePlace(tmp_path / "place").table("classification", schedule__epochs=1)
    train({**table, "data": {"path": str(tmp_path / "data")}}, tmp_path / "run")
    found = load_classifier(tmp_path / "run")
    assert found.words("a fine<br /><br />film") == ["a", "fine", "film"]


def test_a_test_set_alone_has_the_labels_of_its_model(tmp_path: Path) -> None:
    rows = {"train": "one two\tb\nthree\ta\nfour\tc c\n" * 9, "valid": "one\ta\n", "test": "one\ta\n"}
    for split, content in rows.items():
        (tmp_path / f"{split}.tsv").write_text("text\tlabel\n" + content, encoding="utf-8")
    preprocess("classification", tmp_path, tmp_path / "data")
    chosen = PreprocessSettings(vocabulary=tmp_path / "data")
    (tmp_path / "one.tsv").write_text("text\tlabel\nthree two\tb\n", encoding="utf-8")
    preprocess("classification", None, tmp_path / "one", chosen, files={"test": [tmp_path / "one.tsv"]})
    one = PreparedData.open(tmp_path / "one")
    assert (one.signature.examples.labels, one.examples("test").labels.tolist()) == (("a", "b", "c c"), [1])
    (tmp_path / "other.tsv").write_text("text\tlabel\nthree two\tzzz\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"other\.tsv:2: unknown label 'zzz'; allowed \(labels of .*data\): a, b, c c"):
        preprocess("classification", None, tmp_path / "two", chosen, files={"test": [tmp_path / "other.tsv"]})
    new = {split: [tmp_path / "other.tsv"] for split in ("train", "valid", "test")}
    preprocess("classification", None, tmp_path / "new", chosen, files=new)
    assert PreparedData.open(tmp_path / "new").signature.examples.labels == ("zzz",), "its own train says which there are"


def test_files_as_preprocess_reads_them(pairs: tuple[Path, ExamplePlace], tmp_path: Path) -> None:
    def predicted(name: str, content: str) -> list[str]:
        (tmp_path / name).write_text(content, encoding="utf-8")
        result = runner.invoke(app, ["predict", str(pairs[0]), str(tmp_path / name), "--device", "cpu"])
        assert result.exit_code == 0, result.output
        return result.stdout.splitlines()

    plain = predicted("a.txt", "A man sleeps.\tThe man runs.\nthe girl\tdogs\n")
    assert predicted("b.tsv", "A man sleeps.\tThe man runs.\t-\nthe girl\tdogs\tneutral\n") == plain
    header = predicted("c.tsv", "id\tHypothesis\tpremise\n7\tThe man runs.\tA man sleeps.\n\n8\tdogs\tthe girl\n\n")
    assert header == [*plain[:2], "", plain[2], ""], "line N of a table with a header is line N of the file"
    assert predicted("d.csv", 'premise,hypothesis\n"A man sleeps.","The man runs."\nthe girl,dogs\n') == plain
    rows = [{"sentence1": "A man sleeps.", "sentence2": "The man runs."}, {"sentence1": "the girl", "sentence2": "dogs"}]
    assert predicted("e.jsonl", "".join(json.dumps(row) + "\n" for row in rows)) == plain


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            "only one text\n",
            "stdin:1: 1 column with TAB between, 2 are needed (premise, hypothesis; or a first line that",
        ),
        ("a\tb\n c\t \n", "stdin:2: the hypothesis is empty"),
    ],
)
def test_lines_that_are_no_examples(pairs: tuple[Path, ExamplePlace], lines: str, message: str) -> None:
    result = runner.invoke(app, ["predict", str(pairs[0]), "--device", "cpu"], input=lines)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stdout == "", "no header before the first lines are known to be good"


def test_eval_prints_the_whole_table(pairs: tuple[Path, ExamplePlace]) -> None:
    result = runner.invoke(app, ["eval", str(pairs[0]), "--device", "cpu"])
    assert result.exit_code == 0, result.output
    for part in ("Wilson 95 %", "precision", "contradiction", "predicted label"):
        assert part in result.stdout
    report = json.loads(runner.invoke(app, ["eval", str(pairs[0]), "--json"]).stdout)
    assert {"accuracy", "accuracy_low", "interval", "confusion", "classes", "macro_f1", "nats"} <= set(report)
    assert f"signature: {report['signature']}" in result.stdout.replace("\n", " ")


def test_the_signature_of_an_accuracy_is_that_of_the_examples(tmp_path: Path) -> None:
    source = write_reviews(tmp_path / "sst2")
    preprocess("sst2", source, tmp_path / "whole")
    preprocess("sst2", source, tmp_path / "few", PreprocessSettings(max_vocabulary=8))
    test = (source / "test.tsv").read_text()
    (source / "test.tsv").write_text(test.replace("\t1", "\t2").replace("\t0", "\t1").replace("\t2", "\t0"))
    preprocess("sst2", source, tmp_path / "turned")
    (source / "test.tsv").write_text(test.replace("fine", "poor"))
    preprocess("sst2", source, tmp_path / "other")
    whole, few, turned, other = (PreparedData.open(tmp_path / name) for name in ("whole", "few", "turned", "other"))
    assert len(few.vocabulary) < len(whole.vocabulary)
    assert label_signature(whole, "test") == label_signature(few, "test"), "a smaller vocabulary labels the same texts"
    assert label_signature(whole, "test") != label_signature(turned, "test"), "other right labels"
    assert label_signature(whole, "test") != label_signature(other, "test"), "other words, as many"
    assert label_signature(whole, "valid") == label_signature(turned, "valid")


@pytest.mark.parametrize("command", [["score"], ["generate"], ["evaluate-ppl"]])
def test_commands_about_words_name_what_to_use(pairs: tuple[Path, ExamplePlace], command: list[str]) -> None:
    result = runner.invoke(app, [command[0], str(pairs[0]), *command[1:]], input="a man\n")
    assert result.exit_code == 1
    assert "'sememekit eval RUN'" in result.stderr
    assert "'sememekit predict RUN'" in result.stderr


def test_a_language_model_predicts_no_labels(tmp_path: Path) -> None:
    place = Place(tmp_path)
    train(place.table(schedule__epochs=1), tmp_path / "run")
    with pytest.raises(ConfigError, match=r"predict needs a model that predicts labels.*--task nli"):
        load_classifier(tmp_path / "run")
    told = runner.invoke(app, ["predict", str(tmp_path / "run"), "missing.txt"])
    assert (told.exit_code, "predict needs a model that predicts labels" in " ".join(told.stderr.split())) == (1, True)
    with pytest.raises(ConfigError, match=r"attack needs a model that predicts labels"):
        open_victim(str(tmp_path / "run"), device="cpu")


def test_training_a_classifier_counts_examples(pairs: tuple[Path, ExamplePlace], tmp_path: Path) -> None:
    table = pairs[1].table(schedule__epochs=1)
    overrides = [f"{slot}.{key}={json.dumps(value)}" for slot, keys in table.items() for key, value in keys.items()]
    arguments = [word for override in overrides for word in ("--set", override)]
    result = runner.invoke(app, ["train", *arguments, "--out", str(tmp_path / "run"), "--quiet"])
    assert result.exit_code == 0, result.output
    assert "examples per second" in result.stdout
    assert "tokens per second" not in result.stdout
