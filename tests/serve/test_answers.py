"""The endpoint answers what the commands answer, to the last digit."""

from __future__ import annotations

import base64
import csv
import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from sememekit import load_run
from sememekit.commands._program import app
from sememekit.errors import ConfigError
from sememekit.sememes.overlay import HEADER
from sememekit.serve.app import ANSWERS, STREAMS
from sememekit.serve.runs import Bench, quickstart_runs
from tests.small_pairs import LINES

CHANGE = {"sense": "苹果#2", "add": ["机器"], "remove": ["品牌"]}
TEXT = "我 吃 苹果 。\n人 买 电脑 。"


def asked(client: TestClient, path: str, **question: Any) -> Any:
    answer = client.post(f"/v1/{path}", json=question)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def printed(*arguments: str, text: str | None = None) -> Any:
    """The JSON that a command prints."""
    result = CliRunner().invoke(app, [*arguments, "--device", "cpu"], input=text)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def without_run(report: Any) -> Any:
    """A report without the names of run and overlay, which are a folder and a file for a command."""
    if not isinstance(report, dict):
        return report
    return {key: without_run(value) for key, value in report.items() if key not in ("run", "overlay")}


def test_runs_are_listed_by_name(client: TestClient, folders: Path) -> None:
    listed = client.get("/v1/runs").json()["result"]
    assert [run["name"] for run in listed["runs"]] == ["sdlm", "softmax", "lattice", "films-run", "run"]
    assert [run["overlays"] for run in listed["runs"]] == [True, False, False, False, False]
    assert listed["runs"][0]["start"] == "我 买 吃"
    assert listed["runs"][3]["labels"] == ["cinema", "other"]
    assert str(folders) not in json.dumps(listed)


def test_next_words_are_those_of_a_run(client: TestClient, folders: Path) -> None:
    table = load_run(folders / "sdlm", device="cpu").next_words("我 吃", top=5)
    found = asked(client, "next-words", run="sdlm", context="我 吃", top=5)
    assert [(row["word"], row["probability"]) for row in found["words"]] == [(row["word"], row["probability"]) for row in table]
    assert [row["senses"][0]["share"] for row in found["words"]] == [row["share"] for row in table]
    plain = asked(client, "next-words", run="softmax", context="我 吃", top=5)
    assert plain["words"][0]["senses"] == []


def test_scores_are_those_of_the_command(client: TestClient, folders: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    for carry in (False, True):
        options = ["--carry"] * carry
        expected = printed("score", str(folders / "sdlm"), str(tmp_path / "text.txt"), "--json", *options)
        found = asked(client, "score", run="sdlm", text=TEXT, carry=carry)
        assert found["tokens"] == expected["tokens"]
    overlay = tmp_path / "overlay.txt"
    overlay.write_text(f"{HEADER}\n苹果#2\t+机器 -品牌\n", encoding="utf-8")
    expected = printed("score", str(folders / "sdlm"), str(tmp_path / "text.txt"), "--json", "--overlay", str(overlay))
    found = asked(client, "score", run="sdlm", text=TEXT, changes=[CHANGE])
    assert found["tokens"] == expected["tokens"]
    run = load_run(folders / "sdlm", device="cpu")
    assert found["perplexity"] == run.perplexity(TEXT)
    assert found["perplexity_overlay"] == load_run(folders / "sdlm", device="cpu", overlay=overlay).perplexity(TEXT)
    assert found["perplexity"] != found["perplexity_overlay"]


@pytest.mark.parametrize(
    ("name", "text", "more", "options"),
    [
        ("sdlm", "我 吃", {}, []),
        ("sdlm", "我 吃", {"word": "苹果", "right": "。"}, ["--word", "苹果", "--right", "。"]),
        ("softmax", "我 吃", {"top": 3}, ["--top", "3"]),
        ("lattice", "我吃苹果。", {}, []),
        ("films-run", "今天 工人 喜欢 电影 。", {}, []),
        ("run", LINES[0], {}, []),
    ],
)
def test_explanations_are_those_of_the_command(
    client: TestClient, bench: Bench, name: str, text: str, more: dict[str, Any], options: list[str]
) -> None:
    folder = bench.runs[name].path
    expected = printed("explain", str(folder), text, "--json", *options)
    found = without_run(asked(client, "explain", run=name, text=text, **more))
    expected = without_run(expected)
    if found.get("asked"):  # it advises a command, with the folder
        del found["asked"]["accuracy"], expected["asked"]["accuracy"]
    assert found == expected


def test_explanations_with_changes_are_those_of_the_command(client: TestClient, folders: Path, tmp_path: Path) -> None:
    overlay = tmp_path / "overlay.txt"
    overlay.write_text(f"{HEADER}\n苹果#2\t+机器 -品牌\n", encoding="utf-8")
    expected = printed("explain", str(folders / "sdlm"), "我 吃", "--json", "--overlay", str(overlay))
    for _ in range(2):  # the second time its model is the one that was kept
        found = asked(client, "explain", run="sdlm", text="我 吃", changes=[CHANGE])
        assert without_run(found) == without_run(expected)


def test_what_no_context_moves_is_computed_once(client: TestClient, folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No context moves the means of sememes, nor the shares of senses without a context."""
    expected = {
        text: printed("explain", str(folders / "sdlm"), text, "--json", "--top", "4") for text in ("我 吃", "人 买 电脑")
    }
    asked(client, "explain", run="sdlm", text="我 吃", top=2)

    def never(*_: Any) -> Any:
        raise AssertionError("computed again")

    monkeypatch.setattr("sememekit.analysis.explanations.sememes.mean_mass", never)
    for text in expected:  # with words that were asked before, and with others
        assert without_run(asked(client, "explain", run="sdlm", text=text, top=4)) == without_run(expected[text])


def test_tags_are_those_of_the_command(client: TestClient, folders: Path) -> None:
    result = CliRunner().invoke(app, ["tag", str(folders / "sdlm"), "--format", "jsonl", "--device", "cpu"], input=TEXT)
    expected = [json.loads(line) for line in result.stdout.splitlines()[1:]]
    assert asked(client, "tag", run="sdlm", text=TEXT)["tokens"] == expected
    only = asked(client, "tag", run="sdlm", text=TEXT, words=["苹果"])["tokens"]
    assert [row["token"] for row in only] == ["苹果"]


def test_labels_and_words_are_those_of_the_commands(client: TestClient, bench: Bench) -> None:
    texts = ["今天 工人 喜欢 电影 。", "今天 学生 喜欢 影片 。"]
    expected = printed("predict", str(bench.runs["films-run"].path), "--json", text="\n".join(texts))
    found = asked(client, "predict", run="films-run", examples=[[text] for text in texts])
    assert without_run(found) == without_run(expected)
    result = CliRunner().invoke(app, ["segment", "--model", str(bench.runs["lattice"].path)], input="我吃苹果。\n")
    assert " ".join(asked(client, "segment", run="lattice", text="我吃苹果。")["lines"][0]) == result.stdout.strip()


def test_a_generated_text_comes_word_by_word_and_is_that_of_the_command(client: TestClient, folders: Path) -> None:
    expected = printed("generate", str(folders / "sdlm"), "我 吃", "--num-tokens", "6", "--seed", "3", "--json")
    with client.stream("POST", "/v1/generate", json={"run": "sdlm", "prompt": "我 吃", "num_tokens": 6, "seed": 3}) as answer:
        lines = [json.loads(line) for line in answer.iter_lines()]
    assert [line["word"] for line in lines[:-1]] == expected["tokens"]
    assert lines[-1]["report"] == expected
    narrow = {"run": "sdlm", "prompt": "我 吃", "top_p": 0.3, "stop": [expected["tokens"][0], "苹果"], "seed": 4}
    typed = ("--top-p", "0.3", "--stop", expected["tokens"][0], "--stop", "苹果", "--seed", "4", "--json")
    report = printed("generate", str(folders / "sdlm"), "我 吃", *typed)
    assert json.loads(client.post("/v1/generate", json=narrow).text.splitlines()[-1])["report"] == report


def test_a_written_text_is_that_of_the_command_also_with_alternatives(client: TestClient, headlines: Path) -> None:
    for most, options in ((1, ()), (3, ("--set", "task.search.num_best=3"))):
        expected = printed("generate", str(headlines), LINES[0], "--json", *options)
        answer = client.post("/v1/generate", json={"run": "run", "prompt": LINES[0], "num_best": most})
        assert json.loads(answer.text)["report"] == expected
        assert len(expected["others"]) == most - 1
    many = client.post("/v1/generate", json={"run": "run", "prompt": LINES[0], "num_best": 20})
    assert len(json.loads(many.text)["report"]["others"]) == 4, "as many as the beam"


def test_a_drawing_becomes_a_pdf(client: TestClient) -> None:
    outline = {"points": [0, 0, 90.5, 0, 90, 20, 0, 20], "colour": "#ffffff", "opacity": 0.5}
    label = {"points": [10, 12], "text": "p = $0.5 <b>", "size": 14, "anchor": "center", "colour": "#1c2024"}
    line = {"points": [0, 0, 9, 9], "colour": "#0b62c4", "size": 2}
    content = base64.b64decode(asked(client, "pdf", width=200, height=100, shapes=[outline, label, line]))
    assert content.startswith(b"%PDF-")
    assert b"/MediaBox [ 0 0 200 100 ]" in content
    assert content != base64.b64decode(asked(client, "pdf", width=200, height=100, shapes=[outline, label]))


def test_an_attack_is_told_step_by_step(client: TestClient) -> None:
    question = {"run": "films-run", "texts": ["今天 工人 喜欢 电影 。"]}
    with client.stream("POST", "/v1/attack", json=question) as answer:
        lines = [json.loads(line) for line in answer.iter_lines()]
    steps, result = [line["step"] for line in lines[:-1]], lines[-1]["result"]
    assert steps[0]["queries"] == 1
    assert steps[-1]["queries"] == result["queries"]
    assert steps[-1]["probability"] < 0.5 < steps[0]["probability"]
    shares = [step["probability"] for step in steps]
    assert shares == sorted(shares, reverse=True), "the best text so far"
    assert (result["outcome"], result["label"], result["adversarial_prediction"]) == ("success", "cinema", "other")
    changed = [piece for piece in steps[-1]["fields"][0] if piece.get("old") is not None]
    assert changed, "the step says which part was replaced"
    assert "".join(piece["text"] for piece in steps[-1]["fields"][0]) == result["adversarial"][0]


def test_a_sememe_has_its_words_and_a_word_its_annotation(client: TestClient) -> None:
    found = asked(client, "sememe", run="sdlm", sememe="水果")
    assert {one["word"] for one in found["words"]} == {"苹果", "梨"}
    assert found["neighbours"][0] == {"name": "植物", "shared": 2, "similarity": 1.0}
    word = asked(client, "word", run="sdlm", word="苹果", changes=[CHANGE])
    assert word["senses"][1]["sememes"] == ["机器", "电脑"]
    assert "水果" in client.get("/v1/runs").json()["result"]["runs"][0]["sememes"]


def test_words_without_annotation_are_listed_with_suggestions(client: TestClient) -> None:
    found = asked(client, "unannotated", run="sdlm")
    assert (found["total"], [one["word"] for one in found["words"]]) == (1, ["无名"])


@pytest.fixture
def own_folder(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of what is saved, which no other test has written into."""
    monkeypatch.setattr(bench, "save", tmp_path / "saved")
    return tmp_path / "saved"


def test_changes_are_saved_whole_and_commands_read_them(client: TestClient, own_folder: Path, folders: Path) -> None:
    before = {path: path.read_bytes() for path in sorted((folders / "sdlm").rglob("*")) if path.is_file()}
    first, second = (asked(client, "save", run="sdlm", changes=[CHANGE]) for _ in range(2))
    folder = Path(first["folder"])
    assert (folder.name, Path(second["folder"]).name) == ("sdlm-1", "sdlm-2"), "nothing that was saved is replaced"
    assert sorted(path.name for path in folder.iterdir()) == ["diff.tsv", "manifest.json", "overlay.txt", "table.tsv"]
    report = printed("explain", str(folders / "sdlm"), "我 吃", "--overlay", str(folder / "overlay.txt"), "--json")
    assert report["changes"][0]["after"] == ["机器", "电脑"]
    looked_up = CliRunner().invoke(app, ["lookup", "苹果", "--source", f"table:{folder / 'table.tsv'}", "--json"])
    assert ["机器", "电脑"] in [sense["sememes"] for sense in json.loads(looked_up.stdout)["senses"]]
    assert "苹果\t2\t品牌 电脑\t机器 电脑\t机器\t品牌" in (folder / "diff.tsv").read_text(encoding="utf-8")
    assert before == {path: path.read_bytes() for path in sorted((folders / "sdlm").rglob("*")) if path.is_file()}


def test_a_rating_is_kept_in_a_file(client: TestClient, own_folder: Path) -> None:
    rating = {"run": "films-run", "text": "看 电影", "changed": "看 =影片,\n", "old": "电影", "new": "=影片", "fluent": True}
    assert asked(client, "rate", **rating, same_meaning=False)["ratings"] == 1
    assert asked(client, "rate", **rating, same_meaning=True)["ratings"] == 1, "a further rating takes its place"
    asked(client, "rate", **{**rating, "new": "片"}, same_meaning=False)
    with (own_folder / "ratings.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["new"], row["same meaning"], row["fluent"]) for row in rows] == [("'=影片", "yes", "yes"), ("片", "no", "yes")]
    assert rows[0]["changed"] == "看 =影片,\n"


def test_nothing_is_saved_into_a_run(folders: Path) -> None:
    for inside in (folders / "sdlm", folders / "sdlm" / "mine"):
        with pytest.raises(ConfigError, match="lies in the run"):
            Bench([folders / "sdlm"], save=inside)


def test_without_a_run_those_of_the_quickstart_are_taken(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="in three minutes with: sememekit quickstart"):
        quickstart_runs(tmp_path)
    for name in ("lattice", "sdlm"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "plan.json").touch()
    assert quickstart_runs(tmp_path) == [tmp_path / "sdlm", tmp_path / "lattice"]


def test_two_runs_of_one_name_are_told_apart(folders: Path) -> None:
    assert list(Bench([folders / "sdlm", folders / "sdlm"]).runs) == ["sdlm", "sdlm-2"]


def test_the_description_names_every_path(client: TestClient) -> None:
    description = client.get("/v1/openapi.json").json()
    assert set(description["paths"]) == {f"/v1/{path}" for path in (*ANSWERS, *STREAMS, "runs")}
    for path in ANSWERS:
        schema = description["paths"][f"/v1/{path}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert schema["$ref"].endswith("Question"), path
    fields = description["components"]["schemas"]["ExplainQuestion"]["properties"]
    assert fields["run"]["description"] == "Name of a run, as /v1/runs lists it."


def test_remarks_on_how_a_text_was_read_come_along(client: TestClient) -> None:
    answer = client.post("/v1/generate", json={"run": "sdlm", "prompt": "陌生", "num_tokens": 1})
    assert answer.status_code in (200, 409)
    remarks = client.post("/v1/score", json={"run": "lattice", "text": "我"})
    assert remarks.status_code == 409
    assert "predict" in remarks.json()["error"]
