"""An answer is of one state: of the loaded weights, of the changes that were asked, of a folder that one server writes."""

from __future__ import annotations

import csv
import gc
import json
import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from sememekit import load_run
from sememekit.commands._program import app
from sememekit.errors import GraphError
from sememekit.sememes.overlay import HEADER
from sememekit.serve.app import make_app
from sememekit.serve.runs import Bench, ServedRun
from sememekit.serve.worker import Worker

TEXT = "我 吃 苹果 。\n人 买 电脑 。"
CHANGE = {"sense": "苹果#2", "add": ["机器"], "remove": ["品牌"]}
RATING = {"run": "films-run", "text": "看 电影", "changed": "看 影片", "old": "电影", "new": "影片"}
RATING |= {"fluent": True, "same_meaning": True}


def client_of(*runs: Path, save: Path | None = None) -> TestClient:
    return TestClient(make_app(Bench(runs, save=save, device="cpu"), Worker()), base_url="http://localhost")


def train_on(run: Path) -> None:
    epochs = "--set=schedule.epochs=8"
    result = CliRunner().invoke(app, ["train", "--out", str(run), "--resume", "--quiet", epochs])
    assert result.exit_code == 0, result.stderr


def test_a_run_that_is_trained_on_is_answered_from_the_loaded_weights(folders: Path, tmp_path: Path) -> None:
    run, questions = shutil.copytree(folders / "sdlm", tmp_path / "sdlm"), dict[str, Any]()
    questions["score"] = {"run": "sdlm", "text": TEXT, "changes": [CHANGE]}
    questions["explain"] = {"run": "sdlm", "text": "我 吃", "changes": [CHANGE]}
    questions["next-words"] = {"run": "sdlm", "context": "我 吃", "changes": [CHANGE]}
    before, open_run = client_of(run), load_run(run, device="cpu")
    expected = {path: before.post(f"/v1/{path}", json=question).json() for path, question in questions.items()}
    asked_later = client_of(run)
    perplexity = open_run.perplexity(TEXT)
    train_on(run)
    assert load_run(run, device="cpu").perplexity(TEXT) != perplexity, "the training changed the folder"
    for path, question in questions.items():
        assert asked_later.post(f"/v1/{path}", json=question).json() == expected[path], path
    overlay = tmp_path / "overlay.txt"
    overlay.write_text(f"{HEADER}\n苹果#2\t+机器 -品牌\n", encoding="utf-8")
    columns = [open_run.score(TEXT, overlay=overlay).column(name) for name in ("nats", "nats with overlay")]
    tokens = expected["score"]["result"]["tokens"]
    assert columns == [[row[name] for row in tokens] for name in ("nats", "nats_overlay")], "so does the library"


def test_an_attack_is_on_the_weights_that_predict(folders: Path, tmp_path: Path) -> None:
    run = shutil.copytree(folders / "films-run", tmp_path / "films")
    client, text = client_of(run), "今天 工人 喜欢 电影 。"
    train_on(run)
    [label] = client.post("/v1/predict", json={"run": "films", "examples": [[text]]}).json()["result"]["predictions"]
    lines = client.post("/v1/attack", json={"run": "films", "texts": [text]}).text.splitlines()
    first = json.loads(lines[0])["step"]["probability"]
    assert first == pytest.approx(label["probabilities"]["cinema"], abs=1e-5)


KINDS = (
    *(("苹果#1", "add", "人"), ("苹果#1", "remove", "水果"), ("苹果#2", "remove", "品牌"), ("苹果#2", "add", "机器")),
    ("人", "add", "机器"),
)
CHANGES = st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True)


@settings(max_examples=4)
@given(asked=st.lists(CHANGES, min_size=4, max_size=6))
def test_two_lists_of_changes_never_share_a_model(client: TestClient, folders: Path, tmp_path_factory: Any, asked: Any) -> None:
    """More lists than models are kept, each asked again after the others: each answer belongs to its own overlay file."""
    known: dict[str, Any] = {}
    for changes in [*asked, *asked]:
        given_ = [{"sense": sense, kind: [name]} for sense, kind, name in changes]
        answer = client.post("/v1/score", json={"run": "sdlm", "text": TEXT, "changes": given_})
        if (key := json.dumps(given_)) not in known:
            overlay = tmp_path_factory.mktemp("overlay") / "overlay.txt"
            lines = [f"{sense}\t{'+' if kind == 'add' else '-'}{name}" for sense, kind, name in changes]
            overlay.write_text("\n".join([HEADER, *lines, ""]), encoding="utf-8")
            try:
                known[key] = load_run(folders / "sdlm", device="cpu", overlay=overlay).perplexity(TEXT)
            except GraphError:
                known[key] = None
        if known[key] is None:
            assert answer.status_code == 409, answer.text
        else:
            assert answer.json()["result"]["perplexity_overlay"] == known[key], changes


def test_at_most_three_changed_models_are_kept(folders: Path) -> None:
    client, kept = client_of(folders / "sdlm"), list[int]()
    others = {id(one) for one in gc.get_objects() if type(one) is ServedRun}
    for sense, kind, name in KINDS:
        question = {"run": "sdlm", "text": TEXT, "changes": [{"sense": sense, kind: [name]}]}
        assert client.post("/v1/score", json=question).status_code == 200
        gc.collect()
        kept.append(sum(type(one) is ServedRun and id(one) not in others for one in gc.get_objects()))
    assert kept == [1, 2, 3, 3, 3]


def test_two_servers_that_save_into_one_folder_lose_nothing(folders: Path, tmp_path: Path) -> None:
    save, statuses = tmp_path / "saved", list[int]()

    def ask(client: TestClient, number: int) -> None:
        for at in range(15):
            rating = {**RATING, "new": f"{number} {at}"}
            statuses.append(client.post("/v1/rate", json=rating).status_code)
        change = {"run": "sdlm", "changes": [CHANGE]}
        statuses.append(client.post("/v1/save", json=change).status_code)

    clients = [client_of(folders / "films-run", folders / "sdlm", save=save) for _ in range(2)]
    threads = [threading.Thread(target=ask, args=(client, number)) for number, client in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 32
    with (save / "ratings.csv").open(encoding="utf-8", newline="") as stream:
        assert len({row["new"] for row in csv.DictReader(stream)}) == 30
    assert sorted(path.name for path in save.iterdir()) == [".lock", "ratings.csv", "sdlm-1", "sdlm-2"]


def test_what_stands_in_the_place_of_a_saved_file_is_named_and_stays(folders: Path, tmp_path: Path) -> None:
    save = tmp_path / "saved"
    save.mkdir()
    client, file = client_of(folders / "films-run", save=save), save / "ratings.csv"

    def refused(status: int) -> str:
        answer = client.post("/v1/rate", json=RATING)
        assert answer.status_code == status, answer.text
        assert str(tmp_path) not in answer.text, "no folder of the server"
        assert client.get("/v1/runs").status_code == 200, "others are answered"
        return str(answer.json()["error"])

    foreign = b"name,score\nAda,1\n"
    file.write_bytes(foreign)
    assert "--save/ratings.csv was not written by the workbench; move it away" in refused(409)
    assert file.read_bytes() == foreign
    file.write_text("run,text,changed,old,new,same meaning,fluent\n" + "x" * 2_000_000, encoding="utf-8")
    assert "no CSV of the workbench (field larger than field limit" in refused(409)
    file.unlink()
    if hasattr(os, "mkfifo"):
        os.mkfifo(file)
        assert "is no regular file (a folder, pipe," in refused(409)
        file.unlink()
    (save / ".lock").unlink(missing_ok=True)
    (save / ".lock").mkdir()
    assert "--save/.lock: is no regular file, as a lock is" in refused(507)
    shutil.rmtree(save)
    save.write_text("a file")
    assert refused(507).startswith("--save: File exists")


def stored(folder: Path) -> dict[Path, bytes]:
    """The files below a folder with their bytes, without the lock."""
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file() and file.name != ".lock"}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of the size of files")
def test_a_disk_that_takes_no_more_is_named_and_loses_nothing(folders: Path, tmp_path: Path) -> None:
    import resource

    save, before = tmp_path / "saved", resource.getrlimit(resource.RLIMIT_FSIZE)
    client = client_of(folders / "films-run", folders / "sdlm", save=save)
    asked = {"rate": RATING, "save": {"run": "sdlm", "changes": [CHANGE]}}
    for path, question in asked.items():
        assert client.post(f"/v1/{path}", json=question).status_code == 200
    kept = stored(save)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (16, before[1]))
        refused = [
            client.post(f"/v1/{path}", json={**question, **other})
            for path, question, other in (("rate", RATING, {"new": "片子"}), ("save", asked["save"], {}))
        ]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    for answer in refused:
        assert answer.status_code == 507, answer.text
        assert answer.json()["error"].startswith("--save/")
        assert answer.json()["error"].endswith(": File too large; make room, or repair what stands there")
    assert stored(save) == kept
    for path, question in asked.items():
        assert client.post(f"/v1/{path}", json=question).status_code == 200


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t"])
def test_a_formula_in_a_rating_is_text_to_a_spreadsheet(folders: Path, tmp_path: Path, sign: str) -> None:
    client, rating = client_of(folders / "films-run", save=tmp_path), {**RATING, "new": f"{sign}cmd|' /C calc'!A0"}
    rating |= {"old": f"{sign}x", "text": f"{sign}a\r\nb\rc\nd"}
    for same in (False, False, True):
        answer = client.post("/v1/rate", json={**rating, "same_meaning": same})
        assert answer.json()["result"]["ratings"] == 1, "the rating that was there is replaced"
        if not same:  # also if it was written without the quotes of a spreadsheet
            file = tmp_path / "ratings.csv"
            file.write_bytes(file.read_bytes().replace(f"'{sign}x".encode(), f"{sign}x".encode()))
    with (tmp_path / "ratings.csv").open(encoding="utf-8", newline="") as stream:
        [row] = csv.DictReader(stream)
    assert (row["new"], row["same meaning"]) == (f"'{rating['new']}", "yes")
