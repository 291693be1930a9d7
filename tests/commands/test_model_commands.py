"""evaluate-ppl, eval, explain, score and generate as a person types them, on a model of a few hundred numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app
from tests.commands.refusals import refusal

runner = CliRunner()


def test_perplexity_is_reported_with_its_signature(models: Path) -> None:
    result = runner.invoke(app, ["evaluate-ppl", str(models / "sdlm"), "--split", "valid", "--json"])
    assert (result.exit_code, result.stderr) == (0, "")
    report = json.loads(result.stdout)
    assert {"perplexity", "nats", "tokens", "split", "signature"} <= set(report)
    assert report["perplexity"] == pytest.approx(math.exp(report["nats"] / report["tokens"]))
    assert report["split"] == "valid"
    shown = runner.invoke(app, ["evaluate-ppl", str(models / "sdlm"), "--by", "senses"]).stdout
    assert "several senses" in shown
    assert "signature: protocol:" in shown


def test_metrics_go_by_their_usual_names(models: Path) -> None:
    result = runner.invoke(app, ["eval", str(models / "softmax"), "--json"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout)["perplexity"] > 1
    assert "perplexity" in runner.invoke(app, ["eval", str(models / "softmax")]).stdout


def test_scores_are_rows_under_a_header(models: Path) -> None:
    result = runner.invoke(app, ["score", str(models / "sdlm")], input="今天 中国\n\n海豚 好\n".encode())
    assert (result.exit_code, result.stderr) == (0, "")
    header, *rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert header == ["sentence", "position", "token", "nats", "read_as"]
    assert [row[2] for row in rows] == ["今天", "中国", "<eos>", "海豚", "好", "<eos>"]
    assert [row[0] for row in rows] == ["1", "1", "1", "3", "3", "3"]
    assert all(float(row[3]) > 0 for row in rows)
    assert rows[3][4] == "<unk>"
    report = json.loads(runner.invoke(app, ["score", str(models / "sdlm"), "--json"], input="今天 中国\n\n海豚 好\n").stdout)
    assert (report["run"], report["checkpoint"].startswith("step-")) == (str(models / "sdlm"), True)
    assert [list(row) for row in report["tokens"]] == [["sentence", "position", "token", "read_as", "nats"]] * 6
    assert [[str(row[name]) for name in header if name != "nats"] for row in report["tokens"]] == [
        [*row[:3], row[4]] for row in rows
    ]
    assert [f"{row['nats']:.6f}" for row in report["tokens"]] == [row[3] for row in rows]


def test_text_without_words_that_are_known_is_refused(models: Path) -> None:
    for command in (["--carry"], ["--json"], []):
        told = refusal("score", str(models / "sdlm"), *command, stdin="\n  \n")
        assert "no words in stdin, so nothing is scored; give a sentence a line, words between blanks" in told
    for typed in (["score", str(models / "sdlm")], ["generate", str(models / "sdlm"), "xyz uvw"]):
        told = refusal(*typed, stdin="xyz uvw\n")
        assert "the model knows none of the words, such as 'xyz uvw'; give text of the language of its data" in told


def test_records_are_no_lines_of_text(models: Path, tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('{"text": "今天 中国"}\n', encoding="utf-8")
    absent = runner.invoke(app, ["score", str(models / "sdlm"), str(tmp_path / "absent.json")])
    assert "absent.json: cannot be read: No such file or directory" in absent.stderr
    for text in ("今天 中国", "今天 " * 90):
        absent = runner.invoke(app, ["score", str(models / "sdlm"), text])
        assert "; a text itself is read from stdin: echo TEXT | sememekit ..." in absent.stderr
    assert "stdin" not in runner.invoke(app, ["score", str(models / "sdlm"), str(tmp_path)]).stderr, "a folder is no text"
    for command in (["score", str(models / "sdlm"), str(path)], ["segment", str(path)]):
        result = runner.invoke(app, command)
        assert (result.exit_code, result.stdout) == (1, "")
        assert f"{path}: holds JSON records, and this command reads lines of text; extract the text first" in result.stderr


def test_words_of_a_prompt_that_are_unknown_are_told(models: Path) -> None:
    result = runner.invoke(app, ["generate", str(models / "sdlm"), "今天 海豚 中国 鲸", "--num-tokens", "2"])
    assert result.exit_code == 0
    told = "words of the prompt that the model does not know, read as <unk>: "
    assert result.stderr == f"sememekit: remark: {told}海豚 鲸; Chinese is cut first: sememekit segment\n"
    assert runner.invoke(app, ["generate", str(models / "sdlm"), "今天 whale"]).stderr == f"sememekit: remark: {told}whale\n"
    assert runner.invoke(app, ["generate", str(models / "sdlm"), "今天 中国", "--num-tokens", "2"]).stderr == ""


def test_a_first_word_without_context_has_no_nats_in_json(models: Path) -> None:
    result = runner.invoke(app, ["score", str(models / "softmax"), "--carry", "--json"], input="今天 中国\n")
    assert [row["nats"] is None for row in json.loads(result.stdout)["tokens"]] == [True, False, False]


def test_lines_are_read_apart_or_as_one_text(models: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("今天 中国 贸易\n中国 今天 好\n", encoding="utf-8")
    apart, carried = (runner.invoke(app, ["score", str(models / "softmax"), str(text), *flag]) for flag in ([], ["--carry"]))
    assert (apart.exit_code, carried.exit_code) == (0, 0)
    first, second = apart.stdout.splitlines()[1:], carried.stdout.splitlines()[1:]
    assert float(first[0].split("\t")[3]) > 0, "each line begins after an <eos>"
    assert second[0].split("\t")[3] == "", "nothing stands before a whole text"
    assert [row.split("\t")[:3] for row in first] == [row.split("\t")[:3] for row in second]
    assert first[4:] != second[4:]


def test_generation_repeats_with_its_seed(models: Path) -> None:
    generate = ["generate", str(models / "sdlm"), "中国", "--num-tokens", "8", "--seed"]
    first, second, other = (runner.invoke(app, [*generate, seed]) for seed in ("1", "1", "2"))
    assert (first.exit_code, first.stderr) == (0, "")
    assert first.stdout == second.stdout != other.stdout
    report = json.loads(runner.invoke(app, [*generate, "1", "--json"]).stdout)
    assert len(report["tokens"]) == 8
    assert report["text"] == first.stdout.rstrip("\n")


@pytest.mark.parametrize("command", [["eval"], ["analyze"], ["generate", "中国"], ["explain", "中国"]])
def test_a_command_that_depends_on_the_kind_of_run_reads_its_folder_once(
    models: Path, opened: list[Path], command: list[str]
) -> None:
    done = runner.invoke(app, [command[0], str(models / "sdlm"), *command[1:]])
    assert (done.exit_code, done.stderr) == (0, "")
    assert opened == [models / "sdlm"]


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["evaluate-ppl", "{absent}"], ["absent"]),
        (["evaluate-ppl", "{data}"], ["data"]),
        (["evaluate-ppl", "{softmax}", "--by", "senses"], ["--graph"]),
        (["evaluate-ppl", "{softmax}", "--split", "dev"], ["'dev'", "valid"]),
        (["evaluate-ppl", "{softmax}", "--data", "{absent}"], ["absent"]),
        (["eval", "{absent}"], ["absent"]),
        (["eval", "{softmax}", "--split", "dev"], ["'dev'"]),
        (["eval", "{data}"], ["data"]),
        (["explain", "{absent}", "今天"], ["absent"]),
        (["explain", "{softmax}", " "], ["empty"]),
        (["explain", "{softmax}", "海"], ["海"]),
        (["explain", "{softmax}", "今天", "--html", "{absent}/deep/page.html"], ["absent"]),
        (["score", "{absent}"], ["absent"]),
        (["score", "{softmax}", "{absent}"], ["absent"]),
        (["score", "{softmax}", "{data}"], ["data"]),
        (["generate", "{absent}"], ["absent"]),
        (["generate", "{data}"], ["data"]),
    ],
)
def test_a_wrong_thing_gives_one_clear_line(models: Path, tmp_path: Path, arguments: list[str], fragments: list[str]) -> None:
    names = {"absent": tmp_path / "absent", "data": models / "data", "softmax": models / "softmax"}
    told = refusal(*(argument.format(**names) for argument in arguments))
    assert all(fragment in told for fragment in fragments), told


def test_broken_text_is_refused_or_counted(models: Path) -> None:
    result = runner.invoke(app, ["score", str(models / "softmax")], input="好 ".encode() + b"\xff\n")
    assert result.exit_code == 1
    assert "byte 4" in result.stderr
    result = runner.invoke(app, ["score", str(models / "softmax"), "--errors", "replace"], input="好 ".encode() + b"\xff\n")
    assert result.exit_code == 0


def test_an_explanation_is_a_table_or_json_and_a_page(models: Path, tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    result = runner.invoke(app, ["explain", str(models / "sdlm"), "今天 海豚 中国", "--html", str(page), "--json"])
    assert (result.exit_code, result.stderr) == (0, f"page: {page}\n")
    assert {"context", "words", "sememes", "segmentation"} <= set(json.loads(result.stdout))
    html = page.read_text(encoding="utf-8")
    assert "今天" in html
    assert not any(text in html for text in ("<script src", "<link", "http:", "https:"))
    shown = runner.invoke(app, ["explain", str(models / "sdlm"), "今天 海豚 中国"]).stdout
    assert "does not know 海豚" in shown
    assert "largest gates" in shown
    assert "No senses" in runner.invoke(app, ["explain", str(models / "softmax"), "今天 [b]"]).stdout


def test_a_context_that_says_nothing_is_one_line(models: Path) -> None:
    result = runner.invoke(app, ["explain", str(models / "sdlm"), " "])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "the context is empty" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_cache_and_steps_as_a_person_types_them(models: Path) -> None:
    run = str(models / "softmax")
    cache = ["evaluate-ppl", run, "--cache", "--set", "cache.theta=0.5", "--set", "cache.window=30"]
    result = runner.invoke(app, [*cache, "--set", "cache.preset=ptb", "--json"])
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["adaptation"]["cache"] == {"theta": 0.5, "weight": 0.1, "window": 30, "start": "history"}
    tuned = runner.invoke(app, [*cache, "--tune", "--set", "tune.tokens=60"])
    assert tuned.exit_code == 0, tuned.stderr
    assert "the best 7 of" not in tuned.stdout
    assert "Cache: 7 settings on" in " ".join(tuned.stdout.split())
    assert "perplexity as trained" in tuned.stdout
    assert "the best value is at the edge of the grid" in tuned.stdout
    steps = ["evaluate-ppl", run, "--dynamic", "--set", "dynamic.statistics_tokens=220"]
    result = runner.invoke(app, [*steps, "--set", "dynamic.preset=mos-ptb", "--set", "dynamic.rate=0.01", "--json"])
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)["adaptation"]
    assert (report["dynamic"]["scaling"], report["dynamic"]["rate"], report["statistics_batches"]) == ("mos", 0.01, 1)
    assert "the same in krause scaling" in runner.invoke(app, [*steps, "--set", "dynamic.scaling=mos"]).stdout


@pytest.mark.parametrize(
    ("flags", "code", "fragments"),
    [
        (["--set", "cache.theta=0.3"], 1, ["--set cache.theta: of no use without --cache"]),
        (["--cache", "--set", "dynamic.rate=1"], 1, ["--set dynamic.rate: of no use without --dynamic"]),
        (["--tune"], 1, ["--tune: of no use without --cache, --dynamic or both"]),
        (["--cache", "--set", "tune.tokens=9"], 1, ["--set tune.tokens: of no use without --tune"]),
        (["--cache", "--set", "cache.weight=1"], 1, ["--set cache: key 'weight'", "less than 1", "given 1"]),
        (["--cache", "--set", "cache.window=few"], 1, ["--set cache: key 'window'", "given 'few'"]),
        (["--dynamic", "--set", "dynamic.rate=0"], 1, ["--set dynamic: key 'rate'", "greater than 0"]),
        (["--dynamic", "--set", "dynamic.epsilon=-1"], 1, ["--set dynamic: key 'epsilon'", "greater than 0"]),
        (["--cache", "--set", "cache.thetta=1"], 1, ["unknown key 'thetta'", "did you mean 'theta'", "preset"]),
        (["--cache", "--set", "cahce.theta=1"], 1, ["unknown slot 'cahce'", "did you mean 'cache'"]),
        (["--cache", "--set", "cache.preset=wt2"], 1, ["'wt2'", "ptb, wikitext-2"]),
        (["--dynamic", "--set", "dynamic.preset=wt2"], 1, ["'wt2'", "mos-wikitext-2"]),
        (["--dynamic", "--set", "dynamic.preset=mos-ptb", "--set", "dynamic.scaling=krause"], 1, ["'mos'", "'krause'"]),
    ],
)
def test_flags_that_make_no_sense_together_are_refused(models: Path, flags: list[str], code: int, fragments: list[str]) -> None:
    result = runner.invoke(app, ["evaluate-ppl", str(models / "softmax"), *flags])
    assert (result.exit_code, result.stdout) == (code, ""), result.stderr
    assert result.stderr.startswith("sememekit: error: ")
    assert all(fragment in result.stderr for fragment in fragments), result.stderr


def test_an_analysis_is_text_json_and_a_page(models: Path, tmp_path: Path) -> None:
    page = tmp_path / "analysis.html"
    two = ["analyze", str(models / "softmax"), str(models / "sdlm"), "--contexts", "9", "--html", str(page)]
    result = runner.invoke(app, two)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == f"page: {page}\n"
    assert "9 of 15 contexts were asked for" in result.stdout
    assert "signature: protocol:" in result.stdout
    assert "pairwise KL" in result.stdout
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    report = json.loads(runner.invoke(app, [*two, "--json", "-q"]).stdout)
    assert [run["decoder"] for run in report["runs"]] == ["softmax", "sdlm"]
    assert report["contexts"] == 9
    wrong = runner.invoke(app, ["analyze", str(models / "absent")])
    assert (wrong.exit_code, wrong.stderr.count("\n")) == (1, 1)
