"""A run in a notebook answers what the commands answer, and says what it cannot be asked."""

from __future__ import annotations

import copy
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sememekit
from sememekit import Run, load_run
from sememekit.analysis.evaluate_ppl import evaluate_ppl
from sememekit.analysis.explanations.words import explain
from sememekit.analysis.score import OverlaidToken, score
from sememekit.commands._input import lines_of
from sememekit.errors import ConfigError, DataError
from sememekit.files import RunWarning
from sememekit.jobs.train import train
from sememekit.notebook.run import METHODS
from sememekit.reports.table import Shown, Table
from sememekit.runs.classifier import load_classifier
from sememekit.runs.generation import generate
from sememekit.runs.lattices import LONGEST, open_reader, segment_lines
from sememekit.sememes.overlay import HEADER
from sememekit.tasks.lattice.model import Lattice
from sememekit.training import RunFolder
from tests.analysis.test_lattices import trained
from tests.small_examples import ExamplePlace
from tests.small_pairs import PairPlace
from tests.small_run import Place

CONTEXT, TEXT = "我 吃", "我 吃 苹果 。\n人 买 电脑 。"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of each kind: words with senses and without, labels, texts, lattices."""
    folder = tmp_path_factory.mktemp("notebook")
    place = Place(folder / "words")
    train(place.table("sdlm"), folder / "sdlm")
    train(place.table(), folder / "softmax")
    train(ExamplePlace(folder / "examples").table("classification", "lstm"), folder / "reviews")
    train(PairPlace(folder / "pairs").table(), folder / "headlines")
    characters = folder / "characters"
    Place(characters, end_of_sentence=True, segmenter="characters", chunks=30, chunk_length=3)
    trained(characters, "lattice", longest_chunk=3)
    train({**place.table(), "data": {"path": str(characters / "data")}}, characters / "lm")
    return folder


@pytest.fixture
def run(folders: Path) -> Run:
    return load_run(str(folders / "sdlm"), device="cpu")


def test_the_perplexity_of_a_text_is_that_of_its_scored_words(run: Run, folders: Path) -> None:
    nats = [row.nats for row in score(folders / "sdlm", TEXT.splitlines()) if row.nats is not None]
    assert run.perplexity(TEXT) == pytest.approx(math.exp(sum(nats) / len(nats)))
    assert run.perplexity(TEXT.splitlines()) == run.perplexity(TEXT)
    table = run.score(TEXT)
    assert [value for value in table.column("nats") if value is not None] == pytest.approx(nats)
    assert table.column("word") == TEXT.split()
    with pytest.raises(DataError, match="give at least two words"):
        run.perplexity("我")


def test_a_score_offers_what_the_command_offers(run: Run, folders: Path, tmp_path: Path) -> None:
    overlay = tmp_path / "overlay.txt"
    overlay.write_text(f"{HEADER}\n苹果#2\t+机器 -品牌\n", encoding="utf-8")
    for options in ({}, {"carry": True}):
        rows = score(folders / "sdlm", TEXT.splitlines(), overlay=overlay, **options)
        expected = [row for row in rows if isinstance(row, OverlaidToken)]
        table = run.score(TEXT, overlay=str(overlay), **options)
        assert table.columns[-2:] == ("nats", "nats with overlay")
        assert [(row["nats"], row["nats with overlay"]) for row in table] == [(row.nats, row.nats_overlay) for row in expected]
        assert f"with {overlay} (" in table.title
    characters = load_run(folders / "characters" / "lm", device="cpu")
    assert characters.score("我吃", segment=True).column("word") == ["我", "吃", "<eos>"]
    with pytest.warns(RunWarning, match="the text: Chinese without blanks is cut as the data of the run were, by characters"):
        assert characters.score("我吃").column("word") == ["我", "吃", "<eos>"]


def test_chinese_without_blanks_is_not_taken_for_one_word(run: Run) -> None:
    with pytest.raises(DataError, match="'我吃苹果我吃苹果', which would be read as one <unk>; cut it first"):
        run.perplexity("我吃苹果我吃苹果")


def test_chinese_that_is_read_as_unknown_is_told_as_the_commands_tell_it(run: Run, folders: Path) -> None:
    """Python gives one warning, which the command line prints as a remark."""
    raw, told = "我吃苹果我吃苹果", "Chinese without blanks was read as one <unk>, such as '我吃苹果我吃苹果'; "
    writer = load_run(folders / "headlines", device="cpu")
    for asked, advice in (
        (lambda: run.generate(f"我 {raw}", num_tokens=2), "cut it first: sememekit segment"),
        (lambda: run.score("\n".join([*["我 。"] * 9, f"我 {raw}"]), segment=False), "cut the lines with: sememekit segment"),
        (lambda: writer.generate(f"我 {raw}"), "cut it first: sememekit segment"),
        (lambda: writer.explain(f"我 {raw}"), "cut it first: sememekit segment"),
    ):
        with pytest.warns(RunWarning, match=f"{told}{advice}"):
            asked()
    for pair in (f"{raw}\t我", f"我\t{raw}"):
        with pytest.raises(DataError, match="the text: Chinese without blanks, such as"):
            writer.score(pair, segment=False, carry=False)
    asks = (lambda: run.score(raw, segment=False), lambda: run.explain(f"我 {raw}"))
    for ask in (*asks, lambda: writer.generate(raw), lambda: writer.explain(raw)):
        with pytest.raises(DataError, match="cut it first: sememekit segment"):
            ask()
    with pytest.warns(
        RunWarning, match="words of the prompt that the model does not know, read as <unk>: 飞船; Chinese is cut"
    ):
        run.generate("我 飞船", num_tokens=2)


def test_next_words_are_those_of_explain(run: Run, folders: Path) -> None:
    table, found = run.next_words(CONTEXT, top=3), explain(folders / "sdlm", CONTEXT, top=3)
    assert [(row["word"], row["probability"]) for row in table] == [(word.word, word.probability) for word in found.words]
    assert table.columns == ("word", "probability", "sense", "sememes", "share")
    assert table[0]["sememes"] == " ".join(item.name for item in found.words[0].senses[0].sememes)
    assert load_run(folders / "softmax").next_words(CONTEXT).columns == ("word", "probability")


def test_weights_are_read_once_and_generators_stay(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    read, load = [], RunFolder.load

    def counted(self: RunFolder, *given: Any, **more: Any) -> Any:
        read.append(self.path)
        return load(self, *given, **more)

    monkeypatch.setattr(RunFolder, "load", counted)
    torch.manual_seed(5)
    state = torch.get_rng_state()
    run.next_words(CONTEXT)
    run.explain(CONTEXT)
    run.perplexity(TEXT)
    assert torch.equal(torch.get_rng_state(), state)
    assert len(read) == 1
    assert torch.initial_seed() == 5
    assert Run.open(run, device="cpu") is run
    assert Run.open(run, device="cpu", which="last") is not run


def test_an_explanation_shows_itself(run: Run, tmp_path: Path, folders: Path) -> None:
    shown = run.explain(CONTEXT, top=2)
    assert isinstance(shown, Shown)
    assert shown.words == shown.report.words
    assert len(shown.words) == 2
    assert "<!doctype html>" in shown.html.lower()
    assert shown._repr_html_().startswith('<iframe srcdoc="&lt;!')
    assert "<script" not in shown._repr_html_()
    shown.save(tmp_path / "why.html")
    assert (tmp_path / "why.html").read_text(encoding="utf-8") == shown.html
    assert sememekit.explain(folders / "sdlm", CONTEXT, top=2).words == shown.words
    with pytest.raises(ConfigError, match="takes one text, given 2"):
        run.explain(CONTEXT, "我")


def test_a_text_is_generated_as_by_the_command(run: Run, folders: Path) -> None:
    found, expected = run.generate("我", num_tokens=5, seed=2**40), generate(folders / "sdlm", "我", num_tokens=5, seed=2**40)
    assert (str(found), found.report) == (expected.text, expected)
    for other in (copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert (str(other), type(other), other.report) == (expected.text, type(found), expected)


def test_a_classifier(folders: Path) -> None:
    run = load_run(folders / "reviews", device="cpu")
    texts = ["a fine film", "what a bore"]
    expected = load_classifier(folders / "reviews").probabilities(texts)
    table = run.predict(texts)
    labels = run.labels
    assert [[row[label] for label in labels] for row in table] == expected.tolist()
    assert table.column("label") == [labels[int(values.argmax())] for values in expected]
    assert run.explain(texts[0]).label == table[0]["label"]


def test_a_writer(folders: Path) -> None:
    run = load_run(folders / "headlines", device="cpu")
    source = " ".join(run.vocabulary.tokens[-3:])
    written = run.generate(source)
    assert written == written.report.best.text
    assert run.explain(source).source
    assert run.perplexity(f"{source}\t{source}") > 1
    with pytest.raises(ConfigError, match="unknown key 'num_tokens'; allowed: apart, overrides"):
        run.generate(source, num_tokens=3)
    assert run.generate(source, apart=True, overrides=["task.search.beam_size=2"]).report.source_words == 3


def test_a_lattice(folders: Path) -> None:
    path = folders / "characters" / "lattice"
    run, reader = load_run(path, device="cpu"), open_reader(path, "test")
    texts = ["我吃苹果。", "人买电脑。"]
    assert run.segment(texts) == list(segment_lines(reader, texts))
    assert run.segment(texts[0]) == run.segment(texts)[0]
    assert run.segment(texts[0], "posterior") == next(segment_lines(reader, texts[:1], "posterior"))
    nats = sum(reading.nats for readings in reader.read(texts) for reading in readings)
    assert run.perplexity("\n".join(texts)) == pytest.approx(math.exp(nats / 12))  # 5 tokens and an end mark each
    assert "<svg" in run.explain(texts[0]).html


def test_a_long_line_is_one_sentence_to_the_perplexity_of_a_lattice(folders: Path) -> None:
    """``evaluate-ppl`` cuts no sentence, and gives the lines of its split the same value."""
    run = load_run(folders / "characters" / "lattice", device="cpu")
    task = run.task
    assert isinstance(task, Lattice)
    long = "我吃苹果。" * (LONGEST // 5 + 3)
    ids = np.append(run.vocabulary.encode(list(long)), task.end)
    assert run.perplexity(long) == pytest.approx(math.exp(-float(task.lattices([ids]).log_probabilities()) / len(ids)))
    lines = (folders / "characters" / "text" / "test.txt").read_text(encoding="utf-8")
    assert run.perplexity(lines) == pytest.approx(evaluate_ppl(run).perplexity, rel=1e-6)


def test_what_a_run_cannot_be_asked_is_told_before_weights_are_read(folders: Path) -> None:
    """Every method of every kind that it is not of, by the table that messages are made from."""
    asked = {
        "perplexity": ("我",),
        "score": ("我",),
        "next_words": ("我",),
        "segment": ("我",),
        "generate": (),
        "predict": (["我"],),
    }
    for name in ("sdlm", "reviews", "headlines", "characters/lattice"):
        run = load_run(folders / name, device="cpu")
        for method, arguments in asked.items():
            if not METHODS[method] & run.kinds:
                with pytest.raises(ConfigError, match=f"{method} needs a .*{name} is a .*; what it can be asked: "):
                    getattr(run, method)(*arguments)
        assert "_loaded" not in vars(run)
    assert repr(load_run(folders / "sdlm")).endswith("sdlm': a model that predicts words, 10 words)")


def test_what_is_no_text_is_told_with_what_is_taken(run: Run, folders: Path) -> None:
    """Python's own errors speak of something that is not iterable, or has no method of strings."""
    lattice = load_run(folders / "characters" / "lattice", device="cpu")
    for asked, told in (
        (lambda: run.score(5), r"run.score takes a string with a sentence a line, or a list of strings, given 5 \(int\)"),
        (lambda: run.score(["我", 5]), r"run.score takes .*, given 5 \(int\)"),
        (lambda: run.perplexity("我 吃".encode()), r"run.perplexity takes .* \(bytes\)"),
        (lambda: lattice.perplexity(Path("text.txt")), r"run.perplexity takes .*, given PosixPath\('text.txt'\)"),
        (lambda: lattice.segment(5), r"run.segment takes .*, given 5 \(int\)"),
        (lambda: run.next_words(["我"]), r"run.next_words takes a string, .*, given \['我'\] \(list\)"),
        (lambda: run.explain("我", 5), r"run.explain takes a string for each text, given 5 \(int\)"),
        (lambda: run.generate(5), r"run.generate takes a string, the prompt .*, given 5 \(int\)"),
        (lambda: load_run(folders / "reviews").predict("我 吃"), r"given a string; for one text: run.predict\(\['我 吃'\]\)"),
    ):
        with pytest.raises(TypeError, match=told):
            asked()


def test_arguments_are_checked_as_settings_are(run: Run, folders: Path) -> None:
    """Python's own errors compare a string with a number; an error for a wrong option lists this run's options."""
    reviews, writer = (load_run(folders / name, device="cpu") for name in ("reviews", "headlines"))
    lattice = load_run(folders / "characters" / "lattice", device="cpu")
    for asked, told in (
        (
            lambda: run.explain("我", top="five"),
            r"run.explain of .*sdlm, a model that predicts words: key 'top': .*integer.*'five'",
        ),
        (
            lambda: run.explain("我", tpo=5),
            r"unknown key 'tpo' \(did you mean 'top'\?\); allowed: data, mean, min_count,",
        ),
        (lambda: run.explain("我", overlay=5), r"key 'overlay': input is not a valid path.*given 5"),
        (lambda: run.next_words("我", top=2.5), r"run.next_words of .*: key 'top': .* given 2.5"),
        (lambda: run.next_words("我", top=0), "--top must be 1 at least, given 0"),
        (lambda: run.score("我 吃", carry="x"), r"run.score of .*: key 'carry': input should be a valid boolean.*given 'x'"),
        (lambda: run.generate("我", num_tokens="five"), r"run.generate of .*: key 'num_tokens'.*given 'five'"),
        (lambda: run.generate("我", temprature=1), r"unknown key 'temprature' \(did you mean 'temperature'\?\)"),
        (lambda: run.generate("我", seed=2**43), r"key 'seed': input should be less than or equal to 8796093022207"),
        (lambda: writer.generate("我", overrides="task.search.beam_size=3"), r"key 'overrides': .* not allowed as a Sequence"),
        (lambda: writer.explain("我", top=5), r"of headlines or dialogue: unknown key 'top' .*allowed: apart, data, "),
        (lambda: reviews.explain("a film", top_sememes="x"), r"a classifier: key 'top_sememes': .*given 'x'"),
        (lambda: lattice.explain("我", top=5), r"a lattice model: unknown key 'top'; allowed: embeddings"),
        (lambda: lattice.explain("我", embeddings="x"), r"key 'embeddings': input should be a valid boolean"),
        (lambda: lattice.explain("我", embeddings=True, split="valid"), r"has one embedding for each word"),
        (lambda: load_run(folders / "sdlm", wich="last"), r"load_run: unknown key 'wich' \(did you mean 'which'\?\)"),
        (lambda: load_run(folders / "sdlm", overlay=5), r"load_run: key 'overlay': "),
    ):
        with pytest.raises(ConfigError, match=told):
            asked()
    for texts in (5, [5], [("a film", 5)]):
        with pytest.raises(TypeError, match=r"run.predict takes a list with a string for each example.*given 5 \(int\)"):
            reviews.predict(texts)  # type: ignore[arg-type]
    assert run.explain("我", top="3").words == run.explain("我", top=3).words
    assert reviews.predict(np.array(["a fine film"])).rows == reviews.predict(["a fine film"]).rows


def test_tables_are_sequences_that_show_themselves() -> None:
    table = Table(("word", "p"), [("苹果", 0.5), ("a<b", None)], "next")
    assert list(table) == table.to_dicts() == [{"word": "苹果", "p": 0.5}, {"word": "a<b", "p": None}]
    assert (len(table), table[1]["word"], table[:1].to_dicts()) == (2, "a<b", [{"word": "苹果", "p": 0.5}])
    assert repr(table) == "next\nword    p\n苹果  0.5\na<b"
    head = '<thead><tr><th style="text-align:left">word</th><th style="text-align:right">p</th></tr></thead>'
    body = "".join(
        f'<tr><td style="text-align:left">{word}</td><td style="text-align:right">{p}</td></tr>'
        for word, p in (("苹果", "0.5"), ("a&lt;b", ""))
    )
    shown = f"{head}<tbody>{body}</tbody></table>"
    assert table._repr_html_() == f'<table><caption style="text-align:left">next</caption>{shown}'
    assert Table(table.columns, table.rows)._repr_html_() == f"<table>{shown}"
    with pytest.raises(KeyError, match="no column 'q'; there are word, p"):
        table.column("q")


def test_a_text_has_the_lines_that_a_file_has(run: Run, folders: Path, tmp_path: Path) -> None:
    """LF alone ends a line; a byte-order mark is no part of the first word."""
    odd = "\ufeff我 吃 苹果\u2028 。\r\n人\x0c 买\x85 电脑 。\n\n我 吃 梨 。"
    (tmp_path / "odd.txt").write_bytes(odd.encode())
    written = list(score(folders / "sdlm", lines_of(tmp_path / "odd.txt", "strict")))
    in_python = run.score(odd, segment=False)
    assert [(row["word"], row["nats"]) for row in in_python] == [(row.token, row.nats) for row in written]
    assert {row.sentence for row in written} == {1, 2, 4}
