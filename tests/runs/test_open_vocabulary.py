"""Classifiers that read new words by their sememes: extend, predict and attack."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from sememekit.analysis.predict import predict
from sememekit.commands._program import app
from sememekit.encoders.sememe_sum import SememeSum
from sememekit.jobs.build_sememe_graph import build_sememe_graph
from sememekit.jobs.train import train
from sememekit.runs.classifier import load_classifier
from sememekit.runs.extend import extend, with_open_vocabulary
from sememekit.runs.run import Run
from sememekit.tasks.classifier import TextClassifier
from tests.small_examples import ExamplePlace, write_vectors

LEXICON = "word\tsememes\n10\tgood\nfine\tgood\nnice\tgood\nbad\tpoor\nbore\tdull\ntiresome\tdull\nfilm\tshow\nnews\tnews\n"


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A classifier with sememes inside its encoder, and the lexicon of its graph."""
    folder = tmp_path_factory.mktemp("reviews")
    place, lexicon = ExamplePlace(folder), folder / "lexicon.tsv"
    lexicon.write_text(LEXICON, encoding="utf-8")
    build_sememe_graph([f"table:{lexicon}"], place.reviews.folder, folder / "graph.json")
    made = {"graph__path": str(folder / "graph.json"), "encoder__injection": "cell", "schedule__epochs": 6}
    train(place.table("classification", **made), folder / "run")
    return folder / "run", lexicon


def test_a_classifier_reads_new_words_by_their_sememes(reviews: tuple[Path, Path], tmp_path: Path) -> None:
    run, lexicon = reviews
    (tmp_path / "words.txt").write_text("10\nnice\ntiresome\nfilm\nnews\nxyzzy\n", encoding="utf-8")
    report = extend(run, tmp_path / "words.txt", tmp_path / "out", sources=[f"table:{lexicon}"])
    assert (report.words, report.unannotated, report.shares) == (
        ("10", "news", "nice", "tiresome", "xyzzy"),
        ("news", "xyzzy"),
        (),
    )
    assert report.predicted == ("embedding.weight",)
    assert report.refused == {"in the vocabulary already": ("film",)}
    before, after = load_classifier(run), load_classifier(tmp_path / "out")
    old, new = ["fine film", "what a bore"], ["nice film", "tiresome"]
    assert np.array_equal(before.probabilities(old), after.probabilities(old))
    assert not np.allclose(before.probabilities(new), after.probabilities(new), atol=1e-4)
    words, task = after.run.vocabulary, after.task
    assert isinstance(task, TextClassifier)
    assert [task.word_read(number) for number in range(len(words))] == list(range(len(words)))  # also where ids have moved
    assert words.id("10") < words.id("<s>") != before.run.vocabulary.id("<s>")
    pi = next(part for part in after.task.modules() if isinstance(part, SememeSum))
    assert torch.equal(*(pi(torch.tensor([words.id(word)])).rows for word in ("nice", "fine")))
    opened = with_open_vocabulary(before.run, ["nice", "news", "xyzzy", "tiresome"], [f"table:{lexicon}"])
    assert {*opened.vocabulary.tokens} - {*before.run.vocabulary.tokens} == {"nice", "tiresome"}
    np.testing.assert_allclose(load_classifier(opened).probabilities(new), after.probabilities(new), atol=1e-6)
    assert with_open_vocabulary(before.run, ["xyzzy"], [f"table:{lexicon}"]) is before.run


def test_predict_says_which_words_it_read_by_their_sememes(reviews: tuple[Path, Path], tmp_path: Path) -> None:
    run, lexicon = reviews
    (tmp_path / "texts.txt").write_text("a nice film\n\nxyzzy bore\n", encoding="utf-8")
    typed = ["predict", str(run), str(tmp_path / "texts.txt")]
    plain, opened = (
        json.loads(CliRunner().invoke(app, [*typed, *more, "--json"]).stdout)
        for more in ([], ["--open-vocabulary", f"table:{lexicon}"])
    )
    assert (plain["added"], opened["added"]) == ([], ["nice"])
    first, second = zip(plain["predictions"], opened["predictions"], strict=True)
    assert first[0] != first[1]
    assert second[0] == second[1]
    found = CliRunner().invoke(app, [*typed, "--open-vocabulary", f"table:{lexicon}"])
    assert "1 words outside the vocabulary were read by their sememes: nice" in found.stderr


def test_a_label_depends_on_no_other_text_of_the_file(reviews: tuple[Path, Path], tmp_path: Path) -> None:
    run, lexicon = reviews
    texts = ["a nice film", "tiresome", "10 bore"]

    def labels(texts: list[str]) -> list[dict[str, float]]:
        (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        found = predict(run, tmp_path / "texts.txt", open_vocabulary=[f"table:{lexicon}"])
        return [row.probabilities for row in found]

    alone = [labels([text])[0] for text in texts]
    for one, together in zip(alone, labels(texts), strict=True):
        assert one == pytest.approx(together, abs=1e-6)


def test_an_attack_writes_words_that_the_run_reads_by_their_sememes(
    reviews: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, lexicon = reviews
    texts = tmp_path / "texts.tsv"
    before = load_classifier(run)
    right = before.labels[int(before.probabilities(["what a bore"]).argmax())]
    texts.write_text(f"a nicer film\tpositive\nwhat a bore\t{right}\n", encoding="utf-8")
    (tmp_path / "lemmas.txt").write_text("nice\tnicer\n", encoding="utf-8")
    lemmas, source = str(tmp_path / "lemmas.txt"), f"table:{lexicon}"
    typed = ["attack", str(run), "--data", str(texts), "--source", source, "--lemmas", lemmas]
    typed += ["--constraints", "none", "--quiet"]
    opening_it = ["--open-vocabulary", source]
    for name, more in (("closed", []), ("open", opening_it), ("both", [*opening_it, "--workers", "2"])):
        result = CliRunner().invoke(app, [*typed, "--out", str(tmp_path / name), *more])
        assert result.exit_code == (name == "closed"), result.stderr
        assert ("nothing to try" in result.stderr) == (name == "closed"), "all substitutes are new to the run"
    closed, opened, both = (
        [json.loads(line) for line in (tmp_path / name / "examples.jsonl").read_text("utf-8").splitlines()]
        for name in ("closed", "open", "both")
    )
    found = load_classifier(with_open_vocabulary(Run.open(run), ["nicer"], [source], lemmas=lemmas)).probabilities(
        ["a nicer film"]
    )
    assert opened[0]["probabilities"] == pytest.approx(found[0].tolist(), abs=1e-6)
    assert closed[0]["probabilities"] != pytest.approx(found[0].tolist(), abs=1e-6)
    assert closed[1]["space"] != opened[1]["space"]  # tiresome is a substitute of bore, and new to the run
    assert opened == both
    identity = json.loads((tmp_path / "open" / "attack.json").read_text("utf-8"))
    hashes = {sha256(path.read_bytes()).hexdigest() for path in (lexicon, tmp_path / "lemmas.txt")}
    assert {*identity["victim"]["open_vocabulary"].values()} == hashes
    (tmp_path / "mine.py").write_text("def predict(texts): return [[1.0, 0.0]] * len(texts)\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(
        app, ["attack", "mine:predict", "--labels", "negative,positive", *typed[2:], *opening_it, "--out", "x"]
    )
    assert "the victim mine:predict is no run" in result.stderr


def test_an_inflected_word_is_read_by_its_base_form(reviews: tuple[Path, Path], tmp_path: Path) -> None:
    run, lexicon = reviews
    (tmp_path / "lemmas.txt").write_text("nice\tnicer\n", encoding="utf-8")
    opened = with_open_vocabulary(Run.open(run), ["nicer"], [f"table:{lexicon}"], lemmas=str(tmp_path / "lemmas.txt"))
    assert opened.graph is not None
    assert opened.graph.entry(opened.vocabulary.id("nicer")).sememes() == {"good"}
    assert with_open_vocabulary(Run.open(run), ["nicer"], [f"table:{lexicon}"]).vocabulary == Run.open(run).vocabulary


@pytest.mark.parametrize("outside", ["unknown", "drop"])
def test_old_words_stay_as_they_were_read(reviews: tuple[Path, Path], tmp_path: Path, outside: str) -> None:
    """Words without a vector in the file are read as ``<unk>`` or left out, also where ids have moved."""
    place, lexicon = ExamplePlace(tmp_path), reviews[1]
    vectors = write_vectors(tmp_path / "vectors.txt", ["fine", "film", "bore"])
    train(place.table("classification", task__vectors=str(vectors), task__outside=outside), tmp_path / "run")
    before = Run.open(tmp_path / "run")
    after = with_open_vocabulary(before, ["10", "nice"], [f"table:{lexicon}"])
    assert isinstance(before.task, TextClassifier)
    assert isinstance(after.task, TextClassifier)

    def read(run: Run, word: str) -> str:
        assert isinstance(run.task, TextClassifier)
        number = run.task.word_read(run.vocabulary.id(word))
        return run.vocabulary.token(number) if number >= 0 else "left out"

    was = {word: read(before, word) for word in before.vocabulary.tokens}
    assert {was["film"], was["what"]} == {"film", "<unk>" if outside == "unknown" else "left out"}
    assert {word: read(after, word) for word in was} == was
    assert [read(after, word) for word in ("10", "nice")] == ["10", "nice"]
    assert after.task.has_vector.sum() == before.task.has_vector.sum() == 3


def test_what_a_classifier_cannot_be_asked(reviews: tuple[Path, Path], tmp_path: Path) -> None:
    run, lexicon = reviews
    (tmp_path / "words.txt").write_text("nice\n", encoding="utf-8")
    typed = ["extend", str(run), "--words", str(tmp_path / "words.txt"), "--source", f"table:{lexicon}"]
    found = CliRunner().invoke(app, [*typed, "--out", str(tmp_path / "out")])
    assert "shares of <unk>" not in found.stdout
    found = CliRunner().invoke(app, ["extend", str(run), "--against", str(tmp_path / "out"), "--data", str(tmp_path)])
    assert "extend --against needs a model that predicts words" in " ".join(found.stderr.split())
    found = CliRunner().invoke(app, ["predict", str(run), "--lemmas", "wordnet"])
    assert found.exit_code == 2
    assert "are for --open-vocabulary" in " ".join(found.stderr.split())
