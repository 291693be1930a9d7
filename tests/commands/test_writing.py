"""Texts for texts on the command line: generate, eval and explain of a model that has learned a small set of headlines."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.analysis.evaluate import SEARCH_OF_DATASETS, evaluate
from sememekit.analysis.explanations.written_text import explain_writing
from sememekit.commands._program import app
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.measure.rouge import RougeSettings, digest_of, rouge
from sememekit.reports.pages import remarks
from sememekit.runs.run import Run
from sememekit.runs.writing import load_writer, search_of, write_texts
from sememekit.search import BeamSettings
from tests.small_pairs import LINES, WRITTEN, PairPlace, write_pairs
from tests.small_run import Place

runner = CliRunner()


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model."""
    place = Place(tmp_path_factory.mktemp("words"))
    train(place.table(schedule__epochs=1), place.folder / "run")
    return place.folder / "run"


def failure(*arguments: object) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert (result.exit_code, result.stdout) == (1, "")
    assert len(result.stderr.splitlines()) == 1
    return result.stderr


def test_eval_gives_scores_with_signature_and_interval(headlines: Path, pairs: PairPlace, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    report = evaluate(headlines, texts=tmp_path / "texts.jsonl", progress=lambda *told: seen.append(told)).model_dump()
    assert {(stage, total) for stage, _, total in seen} == {("texts", 15)}
    assert [done for _, done, _ in seen] == sorted({done for _, done, _ in seen})
    assert seen[-1][1] == 15
    assert report["rougeL"] == 1.0
    assert report["checkpoint_by"] == "rouge"
    (scores,) = report["scores"]
    assert [item["name"] for item in scores["values"]] == ["rouge1", "rouge2", "rougeL"]
    assert all(item["low"] <= item["value"] <= item["high"] for item in scores["values"])
    assert scores["signature"] == report["signature"]
    for part in ("unit:character", "examples:15", "split:test", "beam_size:5", "length_penalty:1.0", "search:2"):
        assert part in report["signature"].split("|")
    for part in ("tokens:45", "columns:pairs", "state:source", "eos:predicted"):
        assert part in report["perplexity_signature"].split("|")
    rows = [json.loads(line) for line in (tmp_path / "texts.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == report["examples"] == 15
    assert all(row["texts"] == row["references"] for row in rows)
    examples, decode = pairs.pairs.examples("test"), pairs.pairs.vocabulary.decode
    texts = [[" ".join(decode(examples.text(number, side).tolist())) for side in (0, 1)] for number in range(15)]
    assert [[row["source"], *row["texts"]] for row in rows] == texts
    assert (report["words"], report["unknown"]) == (sum(len(target.split()) for _, target in texts) / 15, 0.0)
    [baseline] = report["baseline_scores"]
    assert report["baseline"] == "first words of the source, as many as were written"
    leads = [" ".join(source.split()[: len(target.split())]) for source, target in texts]
    expected = rouge(leads, [row["references"] for row in rows], RougeSettings(unit="character"))
    assert [item["value"] for item in baseline["values"]] == pytest.approx([expected[name] for name in expected.values])
    assert baseline["signature"] == report["signature"]
    assert report["unigram"] > report["perplexity"]
    named = dict(part.split(":", 1) for part in report["signature"].split("|"))
    assert named["references"] == digest_of([row["references"] for row in rows])
    assert "text" not in named, "ids are of a vocabulary, and scores are not"
    narrow = evaluate(headlines, overrides=["task.search.beam_size=1", "task.search.max_length=1"]).model_dump()
    assert narrow["words"] == 1.0
    assert narrow["rougeL"] < 1.0
    assert narrow["perplexity"] == report["perplexity"]


def test_a_file_of_another_kind_is_refused_before_texts_are_searched(headlines: Path, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    (tmp_path / "notes.txt").write_text("mine\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"notes\.txt is there already and is not .*, so it is not replaced"):
        evaluate(headlines, texts=tmp_path / "notes.txt", progress=lambda *told: seen.append(told))
    assert seen == []
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine\n"


def test_dialogue_is_measured_by_the_best_five_of_ten(pairs: PairPlace, tmp_path: Path) -> None:
    train(pairs.table(task__name="dialogue", schedule__epochs=1), tmp_path / "run")
    report = evaluate(tmp_path / "run", texts=tmp_path / "texts.jsonl").model_dump()
    assert "beam_size:10|num_best:5" in report["signature"]
    assert "top:5" in report["signature"]
    assert {f"bleu{order}_{side}" for order in range(1, 5) for side in ("precision", "recall")} <= set(report)
    first = json.loads((tmp_path / "texts.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert len(first["texts"]) == 5


def test_generate_writes_a_line_for_a_line(headlines: Path, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    result = runner.invoke(app, ["generate", str(headlines), "--input", str(tmp_path / "lines.txt")])
    assert (result.exit_code, result.stdout.splitlines()) == (0, WRITTEN)
    assert runner.invoke(app, ["generate", str(headlines)], input="\n".join(LINES)).stdout.splitlines() == WRITTEN
    assert runner.invoke(app, ["generate", str(headlines), LINES[0]]).stdout == f"{WRITTEN[0]}\n"
    as_text = runner.invoke(app, ["generate", str(headlines), str(tmp_path / "lines.txt")])
    told = f"lines.txt is a file, and its name was read as the text; its lines: --input {tmp_path / 'lines.txt'}"
    assert (as_text.exit_code, told in as_text.stderr) == (1, True), "and none of its words is known"
    told = "lines.txt is a file, and its name was read as the text; explain takes one text"
    assert told in runner.invoke(app, ["explain", str(headlines), str(tmp_path / "lines.txt")]).stderr
    assert told not in runner.invoke(app, ["explain", str(headlines), str(tmp_path / "lines.txt"), "--quiet"]).stderr
    assert runner.invoke(app, ["generate", str(headlines), "我 words " * 100]).exit_code == 0, "no name of a file is so long"
    options = ["--json", "--set", "task.search.num_best=3"]
    rows = [
        json.loads(line)
        for line in runner.invoke(app, ["generate", str(headlines), *options], input="\n".join(LINES)).stdout.splitlines()
    ]
    assert [row["best"]["text"] for row in rows] == WRITTEN
    assert [row["line"] for row in rows] == [1, 2]
    for row in rows:
        scores = [row["best"]["score"], *(other["score"] for other in row["others"])]
        assert scores == sorted(scores, reverse=True)
        assert len(scores) == 3


def test_lines_come_from_stdin_where_a_dash_is_typed_and_none_is_told(headlines: Path, tmp_path: Path) -> None:
    dash = runner.invoke(app, ["generate", str(headlines), "--input", "-"], input="\n".join(LINES))
    assert (dash.exit_code, dash.stdout.splitlines()) == (0, WRITTEN)
    empty = runner.invoke(app, ["generate", str(headlines), "--input", "-"], input="")
    assert (empty.exit_code, empty.stdout) == (1, "")
    assert "no line in stdin, so nothing is written; give a text a line" in empty.stderr
    (tmp_path / "none.txt").touch()
    done = runner.invoke(app, ["generate", str(headlines), "--input", str(tmp_path / "none.txt")])
    assert f"no line in {tmp_path / 'none.txt'}, so nothing is written" in done.stderr
    blank = runner.invoke(app, ["generate", str(headlines), "--input", "-"], input=" \n")
    assert "stdin, line 1: the source is empty" in blank.stderr


def test_score_names_the_file_of_a_line_that_is_no_pair(headlines: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("我 吃\t吃\n我 吃 苹果\n", encoding="utf-8")
    done = runner.invoke(app, ["score", str(headlines), str(tmp_path / "pairs.txt")])
    assert (done.exit_code, f"{tmp_path / 'pairs.txt'}, line 2: 0 tabs" in done.stderr) == (1, True)
    assert "stdin, line 1: 0 tabs" in runner.invoke(app, ["score", str(headlines)], input="我 吃 苹果\n").stderr


def test_sources_that_are_cut_are_told(pairs: PairPlace, tmp_path: Path) -> None:
    train(pairs.table(task__read_words=3, schedule__epochs=1), tmp_path / "run")
    lines = "我 吃\n我 吃 苹果 。 人 吃 梨 。\n人 买 电脑 。\n"
    done = runner.invoke(app, ["generate", str(tmp_path / "run"), "--json"], input=lines)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["source_words"], row["read_words"]) for row in rows] == [(2, 2), (8, 3), (4, 3)]
    assert done.stderr == "2 of 3 sources were cut to their first 3 words (task.read_words)\n"
    one = runner.invoke(app, ["generate", str(tmp_path / "run"), "我 吃 苹果 。"])
    assert one.stderr == "1 of 1 source was cut to its first 3 words (task.read_words)\n"
    assert runner.invoke(app, ["generate", str(tmp_path / "run"), "我 吃 苹果"]).stderr == ""

    judged = runner.invoke(app, ["eval", str(tmp_path / "run"), "--json"])
    report, examples = json.loads(judged.stdout), pairs.pairs.examples("test")
    lengths = [len(examples.text(number, 0)) for number in range(len(examples))]
    assert (report["source_words"], report["read_words"]) == (sum(lengths), sum(min(length, 3) for length in lengths))
    assert report["cut_sources"] == sum(length > 3 for length in lengths) > 0
    told = f"{report['cut_sources']} of 15 sources were cut to their first 3 words (task.read_words)"
    assert told in judged.stderr.splitlines()
    assert told not in runner.invoke(app, ["eval", str(tmp_path / "run"), "--quiet"]).stderr

    run = tmp_path / "run"
    of_words = runner.invoke(app, ["evaluate-ppl", str(run), "--device", "cpu"])
    assert f"{report['cut_sources']} sources have more words than the model reads" in of_words.stderr
    assert json.loads(runner.invoke(app, ["evaluate-ppl", str(run), "--json"]).stdout)["cut_sources"] == report["cut_sources"]
    scored = runner.invoke(app, ["score", str(run)], input="我 吃\t吃\n我 吃 苹果 。\t吃\n我 吃 苹果 。 。\t吃\n")
    assert (
        scored.stderr
        == "sememekit: remark: stdin, line 2: the model reads the first 3 words of this source of 4 (task.read_words)\n"
    )
    explained = explain_writing(run, "我 吃 苹果 。 。")
    assert (len(explained.source), explained.read_words, len(explained.words[0].attention)) == (5, 3, 3)
    assert "The model read the first 3 of 5 words (task.read_words)." in remarks("text", explained)
    whole = explain_writing(run, "我 吃")
    assert whole.read_words == 2
    assert not any("task.read_words" in line for line in remarks("text", whole))


def test_company_changes_nothing(headlines: Path) -> None:
    writer = load_writer(headlines)
    search = BeamSettings(beam_size=4, num_best=2)
    together = [row.best.text for row in write_texts(writer, LINES * 3, search)]
    assert together == [next(iter(write_texts(writer, [line], search))).best.text for line in LINES * 3]


def test_words_in_angle_brackets_stay_whole(headlines: Path) -> None:
    """A turn of a dialogue is marked so; whatever the segmenter, marks of the vocabulary come through."""
    writer = load_writer(headlines)

    class Letters:
        description = "letters"

        def segment(self, text: str) -> list[str]:
            return list("".join(text.split()))

    lettered = writer._replace(segmenter=Letters())
    assert lettered.words("我吃<unk> <s>梨<other>！") == ["我", "吃", "<unk>", "<s>", "梨", *"<other>", "！"]
    assert writer._replace(segmenter=None).words("我吃 梨") == ["我吃", "梨"]


def test_unknown_words_give_way_to_the_source(pairs: PairPlace, tmp_path: Path) -> None:
    """A model that writes nothing but the unknown word shows where it looked."""
    train(pairs.table(schedule__epochs=1), tmp_path / "run")
    writer = load_writer(tmp_path / "run")
    writer.task.decoder.get_parameter("bias").data[writer.run.vocabulary.unknown_id] = 90.0
    kept, replaced = (
        next(iter(write_texts(writer, ["火星 飞船 吃"], BeamSettings(unknown=unknown, max_length=2))))
        for unknown in ("keep", "replace")
    )
    assert kept.best.words == ("<unk>", "<unk>")
    assert set(replaced.best.words) <= {"火星", "飞船", "吃"}
    assert replaced.unknown == ("火星", "飞船")


def test_eval_says_where_unknown_words_were_replaced(pairs: PairPlace, tmp_path: Path) -> None:
    """The model writes nothing but the unknown word: under either rule, the share counts the words that the search chose."""
    train(pairs.table(schedule__epochs=1), tmp_path / "run")
    loaded = Run.open(tmp_path / "run")
    loaded.task.decoder.get_parameter("bias").data[loaded.vocabulary.unknown_id] = 90.0
    loaded.folder.revise(loaded.snapshot, loaded.task, loaded.folder.load("best", with_trainer=True).trainer)
    options = ["--set", "task.search.max_length=2", "--set"]
    for rule, name in (("keep", "unknown"), ("replace", "unknown, replaced by words of the source")):
        shown = runner.invoke(app, ["eval", str(tmp_path / "run"), *options, f"task.search.unknown={rule}"])
        assert re.search(rf"^ *{name} +1(\.0*)?\s*$", shown.stdout, re.MULTILINE), shown.output


def test_a_length_against_the_rules_of_the_data_is_refused_until_both_are_typed(
    headlines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = Run.open(headlines).signature.dataset
    monkeypatch.setitem(SEARCH_OF_DATASETS, dataset, SEARCH_OF_DATASETS["duc"])  # type: ignore[index]
    for typed, proposed in (("max_length=20", "min_length=20"), ("min_length=31", "max_length=31")):
        told = failure("eval", headlines, "--set", f"task.search.{typed}")
        assert {"min_length", "max_length"} <= set(re.findall(r"\w+", told))
        both = [f"task.search.{typed}", f"task.search.{proposed}"]
        assert evaluate(headlines, overrides=both).model_dump()["words"] == float(typed.partition("=")[2])


def test_chinese_that_nothing_cut_is_told(headlines: Path, pairs: PairPlace, tmp_path: Path) -> None:
    """One message names the remedy: the data of one run were cut, the data of the other came with blanks."""
    text = "我吃苹果人吃梨我买电脑"
    rows = {split: [(text, "我吃梨"), ("人吃梨", "吃梨")] for split in ("train", "valid", "test")}
    preprocess("tests.small_pairs:CharacterPairs", write_pairs(tmp_path / "text", rows), tmp_path / "data")
    train(pairs.table(data__path=str(tmp_path / "data"), schedule__epochs=1), tmp_path / "run")
    told = "Chinese without blanks was read as one <unk>, such as '我吃苹果人吃梨我买电脑'; "
    for command in (["generate"], ["explain"]):
        cut = runner.invoke(app, [*command, str(tmp_path / "run"), text])
        assert (cut.exit_code, "remark" in cut.stderr) == (0, False)
        apart = runner.invoke(app, [*command, str(tmp_path / "run"), f"人 {text}", "--apart"])
        assert f"{told}leave out --apart" in " ".join(apart.stderr.split())
        for options in ([], ["--apart"]):
            blanks = runner.invoke(app, [*command, str(headlines), f"人 {text}", *options])
            assert f"{told}cut it first: sememekit segment" in " ".join(blanks.stderr.split())
        alone = runner.invoke(app, [*command, str(tmp_path / "run"), text, "--apart"])
        assert (alone.exit_code, "would be read as one <unk>; leave out --apart" in alone.stderr) == (1, True)
    several = runner.invoke(app, ["generate", str(tmp_path / "run"), "--apart"], input=f"人 {text}\n{text}\n")
    assert several.stderr.count("remark") == 1


def test_kinds_of_runs_are_told_apart(headlines: Path, words: Path) -> None:
    assert ["texts" in Run.open(path).kinds for path in (headlines, words)] == [True, False]
    assert "generate: " not in failure("generate", words, "--input", "nowhere.txt")
    assert "--input: generate takes it with a model of headlines or dialogue" in failure(
        "generate", words, "--input", "nowhere.txt"
    )
    assert "--apart" in failure("explain", words, "我", "--apart")
    assert "--texts: " in failure("eval", words, "--texts", "x.jsonl")
    assert "change the search with --set task.search" in failure("generate", headlines, "我", "--temperature", "0")
    told = failure("generate", headlines, "我", "--num-samples", "2")
    assert "--num-samples: generate takes it with a model that predicts words" in told
    assert "reads pairs" in failure("evaluate-ppl", headlines, "--batch-size", "1")
    assert "--carry: " in failure("score", headlines, "--carry")
    assert "predicts labels" in failure("predict", headlines)
    assert "only task.search.KEY can be changed" in failure("eval", headlines, "--set", "task.hidden_size=3")
    assert "did you mean 'beam_size'" in failure("eval", headlines, "--set", "task.search.beamsize=3")
    told = failure("generate", headlines, "我", "--set", "task.search.num_best=9")
    assert told.startswith("sememekit: error: --set task.search: num_best (9) is above beam_size (5)")
    assert "{" not in told


def test_lines_that_cannot_be_read(headlines: Path, tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("我 吃 梨 。\n\n", encoding="utf-8")
    assert f"{path}, line 2: the source is empty" in failure("generate", headlines, "--input", path, "--json")
    path.write_text("我 " * 10_000 + "\n", encoding="utf-8")
    assert f"{path}, line 1: 10,000 words, where a source has 1,000 at most" in failure("generate", headlines, "--input", path)
    assert "explain: the source is empty" in failure("explain", headlines, " ")
    with pytest.raises(DataError, match=r"no text satisfies the settings of the search"):
        list(write_texts(load_writer(headlines), ["我"], BeamSettings(min_length=20, max_length=20, no_repeat=1)))
    with pytest.raises(ConfigError, match=r"only task\.search"):
        search_of(load_writer(headlines).task, ["encoder.hidden_size=3"])


def test_data_without_references_are_refused(headlines: Path, pairs: PairPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    from sememekit.data.examples import Examples

    monkeypatch.setattr(Examples, "originals", None, raising=False)
    original = Examples.__init__
    monkeypatch.setattr(Examples, "__init__", lambda self, *parts: original(self, *parts[:4]))
    with pytest.raises(DataError, match=r"has no references"):
        evaluate(headlines)
