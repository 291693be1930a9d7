"""preprocess, segment, build-sememe-graph and lookup as a person types them, on a text of a few lines."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app
from tests.commands.refusals import refusal

runner = CliRunner()
LEXICON = """中国\tN\tplace|地方,country|国家
贸易\tV\tbuy|买,sell|卖
贸易\tN\taffairs|事务,commercial|商
今天\tTIME\ttime|时间
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text, a lexicon, prepared data and a graph."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "text.txt").write_text("今天 中国 贸易\n中国 今天 好\n" * 20, encoding="utf-8")
    (folder / "lexicon.tsv").write_text(LEXICON, encoding="utf-8")
    source = f"hownet2000:{folder / 'lexicon.tsv'}"
    prepared = runner.invoke(app, ["preprocess", "plain", str(folder / "text.txt"), "--out", str(folder / "data"), "--json"])
    assert (prepared.exit_code, prepared.stderr) == (0, "")
    graph = ["build-sememe-graph", "--source", source, "--data", str(folder / "data"), "--out", str(folder / "graph"), "--json"]
    built = runner.invoke(app, graph)
    assert (built.exit_code, built.stderr) == (0, "")
    (folder / "prepared.json").write_text(prepared.stdout, encoding="utf-8")
    (folder / "built.json").write_text(built.stdout, encoding="utf-8")
    return folder


def test_json_reports_are_one_object_on_stdout(place: Path) -> None:
    splits = json.loads((place / "prepared.json").read_text(encoding="utf-8"))["signature"]["splits"]
    assert sum(split["sentences"] for split in splits.values()) == 40
    assert {"tokens", "types", "unknown_rate"} <= set(splits["train"])
    statistics = json.loads((place / "built.json").read_text(encoding="utf-8"))["statistics"]
    assert statistics["unannotated_words"] == 1
    assert "words_without_annotation" not in statistics, "thousands of words are no line to read"


def test_words_without_annotation_are_named_when_asked_for(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "open.tsv"
    source = ["--source", f"hownet2000:{place / 'lexicon.tsv'}", "--data", str(place / "data"), "--unannotated", str(file)]
    result = runner.invoke(app, ["build-sememe-graph", *source, "--out", str(tmp_path / "graph"), "--json"])
    assert json.loads(result.stdout)["statistics"]["words_without_annotation"] == ["好"]
    header, row = (line.split("\t") for line in file.read_text(encoding="utf-8").splitlines())
    assert header == ["word", "count", "sememes", "evidence", "context"]
    assert (row[0], row[1].isdigit()) == ("好", True)
    assert "好" in row[4].split()
    result = runner.invoke(app, ["build-sememe-graph", *source, "--out", ""])
    assert result.exit_code == 1
    assert "cannot write to '.': a folder; give the name of a file" in result.stderr


def test_prepared_data_are_replaced_only_with_force(place: Path, tmp_path: Path) -> None:
    call = ["preprocess", "plain", str(place / "text.txt"), "--out", str(tmp_path / "out"), "--json"]
    assert runner.invoke(app, call).exit_code == 0
    again = runner.invoke(app, call)
    assert (again.exit_code, again.stdout) == (1, "")
    assert "prepared data are there already; give another folder, or replace them with --force" in again.stderr
    assert runner.invoke(app, [*call, "--force"]).exit_code == 0


def test_the_rules_for_plain_text_reach_it(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("Ab 12 c\nd e f g\n" * 20, encoding="utf-8")
    call = ["preprocess", "plain", str(tmp_path / "text.txt"), "--out", str(tmp_path / "out"), "--lower", "--numbers-to", "N"]
    result = runner.invoke(app, [*call, "--max-length", "3"])
    assert result.exit_code == 0
    assert "left out: 20 sentences above --max-length" in result.stderr
    words = (tmp_path / "out" / "vocabulary.tsv").read_text(encoding="utf-8")
    assert sorted(line.split("\t")[0] for line in words.splitlines()) == ["<eos>", "<unk>", "N", "ab", "c"]


def test_an_interrupted_preprocess_says_how_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sememekit.jobs.preprocess.preprocess", stop)
    result = runner.invoke(app, ["preprocess", "plain", "text.txt", "--out", str(tmp_path / "out")])
    assert result.exit_code == 130
    assert "stopped; run the same command again to go on from the last finished part" in result.stderr


def test_two_lexicons_segment_together(place: Path, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("好事\n人\n", encoding="utf-8")
    call = ["segment", "--lexicon", f"hownet2000:{place / 'lexicon.tsv'}", "--lexicon", f"list:{tmp_path / 'more.txt'}"]
    result = runner.invoke(app, call, input="今天中国好事VCD")
    assert result.stdout.strip() == "今天 中国 好事 VCD"


def test_tables_go_to_stdout_and_remarks_to_stderr(place: Path) -> None:
    result = runner.invoke(app, ["preprocess", "plain", str(place / "text.txt"), "--out", str(place / "again")])
    assert (result.exit_code, result.stderr) == (0, "")
    assert all(word in result.stdout for word in ("train", "valid", "test", "<unk>"))
    graph = ["--data", str(place / "again"), "--out", str(place / "graph2"), "--drop-edges", "0.5", "--seed", "1"]
    result = runner.invoke(app, ["build-sememe-graph", "--source", f"hownet2000:{place / 'lexicon.tsv'}", *graph])
    assert result.exit_code == 0
    assert "senses" in result.stdout
    assert re.search(r"token coverage +\d+\.\d\d %", result.stdout), result.stdout
    assert "words without annotation: " in result.stderr
    quiet = ["build-sememe-graph", "--source", f"hownet2000:{place / 'lexicon.tsv'}", *graph, "--quiet"]
    assert runner.invoke(app, quiet).stderr == ""


def test_segment_reads_stdin_and_writes_stdout(place: Path) -> None:
    lexicon = ["--lexicon", f"hownet2000:{place / 'lexicon.tsv'}"]
    result = runner.invoke(app, ["segment", *lexicon], input="今天中国贸易好\n\n中国\n".encode())
    assert (result.exit_code, result.stderr, result.stdout) == (0, "", "今天 中国 贸易 好\n\n中国\n")
    result = runner.invoke(app, ["segment", *lexicon, "--errors", "replace"], input="中国".encode() + b"\xff\n")
    assert result.stdout == "中国 \ufffd\n"
    assert result.stderr == "faults in the text, handled by --errors replace: invalid_utf8 1\n"


def test_a_long_line_is_no_fault() -> None:
    """text8 is one line: it is read in pieces, whatever --errors says."""
    result = runner.invoke(app, ["segment", "--segmenter", "none"], input=b"a " * (1 << 19) + b"a\n")
    assert (result.exit_code, result.stderr) == (0, "lines above 1 MiB, read in pieces: 1\n")


def test_lookup_shows_a_tree(place: Path) -> None:
    source = ["--source", f"hownet2000:{place / 'lexicon.tsv'}"]
    result = runner.invoke(app, ["lookup", "贸易", *source])
    assert (result.exit_code, result.stderr) == (0, "")
    assert all(sememe in result.stdout for sememe in ("buy|买", "sell|卖", "affairs|事务", "commercial|商"))
    report = json.loads(runner.invoke(app, ["lookup", "贸易", *source, "--json"]).stdout)
    assert len(report["senses"]) == 2


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["preprocess", "plane", "{text}", "--out", "{out}"], ["'plane'", "did you mean 'plain'"]),
        (["preprocess", "plain", "{absent}", "--out", "{out}"], ["absent"]),
        (["preprocess", "plain", "{text}", "--out", "{out}", "--segmenter", "jiba"], ["jiba"]),
        (["preprocess", "plain", "--out", "{out}"], ["plain"]),
        (["build-sememe-graph", "--source", "opne", "--data", "{data}", "--out", "{out}"], ["opne", "did you mean 'open'"]),
        (["build-sememe-graph", "--source", "list:{absent}", "--data", "{data}", "--out", "{out}"], ["absent"]),
        (["build-sememe-graph", "--source", "list:{text}", "--data", "{absent}", "--out", "{out}"], ["absent"]),
        (["build-sememe-graph", "--source", "hownet2000:{text}", "--data", "{data}", "--out", "{out}"], ["text.txt"]),
        (["segment", "--segmenter", "fmmm"], ["fmmm", "did you mean 'fmm'"]),
        (["segment", "--lexicon", "hownet2000:{absent}"], ["absent"]),
        (["segment", "--segmenter", "sentencepiece"], ["sentencepiece"]),
        (["lookup", "无词", "--source", "hownet2000:{lexicon}"], ["'无词'"]),
        (["lookup", "中", "--source", "hownet2000:{lexicon}"], ["'中'", "similar words: 中国"]),
        (["lookup", "中国", "--source", "hownet2001:{lexicon}"], ["did you mean 'hownet2000'"]),
    ],
)
def test_a_wrong_thing_gives_one_clear_line(place: Path, tmp_path: Path, arguments: list[str], fragments: list[str]) -> None:
    names = {"absent": tmp_path / "absent", "out": tmp_path / "out", "text": place / "text.txt"}
    names |= {"data": place / "data", "lexicon": place / "lexicon.tsv"}
    told = refusal(*(argument.format(**names) for argument in arguments))
    assert all(fragment in told for fragment in fragments), told
    assert not (tmp_path / "out").exists()
