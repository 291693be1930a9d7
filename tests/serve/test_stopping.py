"""A server that is stopped, clients that leave, and clients that say nothing."""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from sememekit.serve import app as app_module
from sememekit.serve.app import make_app
from sememekit.serve.runs import Bench
from sememekit.serve.worker import Worker, check_wanted
from tests.serve.conftest import serving
from tests.served import server

httpx2 = pytest.importorskip("httpx2")

LONG = {"run": "sdlm", "text": "苹果 吃 " * 330}
"""A text that takes longer than a test may wait on a busy machine."""


def connected(address: str, sent: bytes = b"") -> socket.socket:
    host, port = address.removeprefix("http://").strip("/").split(":")
    one = socket.create_connection((host, int(port)), timeout=60)
    one.sendall(sent)
    return one


def posted(path: str, question: Any, host: str = "localhost") -> bytes:
    body = json.dumps(question).encode()
    head = f"POST /v1/{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def all_of(one: socket.socket) -> str:
    parts = []
    with one, suppress(ConnectionResetError):
        while part := one.recv(65536):
            parts.append(part)
    return b"".join(parts).decode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_answers_what_is_in_progress_and_ends_the_work(folders: Path, number: signal.Signals) -> None:
    with server(folders / "sdlm") as (address, process):
        stream = connected(address, posted("generate", {"run": "sdlm", "num_tokens": 500}))
        begun = stream.recv(65536)
        assert b"200 OK" in begun
        computed = connected(address, posted("tag", LONG))
        half_body, half_head = connected(address, posted("tag", LONG)[:300]), connected(address, b"POST /v1/tag HTTP/1.1\r\n")
        time.sleep(0.5)
        sent = time.monotonic()
        process.send_signal(number)
        answers = [all_of(one) for one in (computed, half_body, half_head, stream)]
        assert process.wait(timeout=60) == 0
        assert time.monotonic() - sent < 20, "the work was not finished first"
        assert process.stderr is not None
        assert process.stderr.read() == ""
    for answer in answers[:2]:
        assert answer.startswith("HTTP/1.1 503 ")
        assert json.loads(answer.partition("\r\n\r\n")[2]) == {
            "error": "the server stops; start it again with: sememekit serve"
        }
    assert answers[2] == ""
    assert '{"error": "the server stops; start it again with: sememekit serve"}\n' in answers[3]
    assert answers[3].endswith("0\r\n\r\n"), "the last chunk"


def test_work_whose_client_left_is_not_finished(bench: Bench, address: str) -> None:
    leaving = connected(address, posted("tag", LONG))
    time.sleep(1.0)  # its work begins
    leaving.close()
    begun = time.monotonic()
    with httpx2.Client(base_url=address, timeout=60) as client:
        assert client.post("/v1/next-words", json={"run": "sdlm", "context": "我 吃"}).status_code == 200
        others = time.monotonic() - begun
        whole = client.post("/v1/tag", json=LONG)
    assert whole.status_code in (200, 503), whole.text
    assert others < (time.monotonic() - begun - others) / 2


ANNOTATIONS = app_module.answers.next_words.__annotations__  # by which the app reads a question


def test_a_late_request_is_not_computed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, free = list[str](), threading.Event()

    def answer(bench: Bench, question: Any) -> Any:
        asked.append(question.context)
        free.wait(20)
        return app_module.answers.next_words(bench, question)

    answer.__annotations__ = ANNOTATIONS
    monkeypatch.setitem(app_module.ANSWERS, "next-words", answer)
    with TestClient(make_app(bench, Worker(seconds=0.5)), base_url="http://localhost") as client:
        answers = [client.post("/v1/next-words", json={"run": "sdlm", "context": text}) for text in ("我", "我 吃", "我 买")]
        assert [one.status_code for one in answers] == [503] * 3
        free.set()
        while client.get("/v1/runs").status_code != 200:  # it stands behind them
            pass
    assert asked == ["我"]


def test_the_generator_of_a_stream_that_is_left_is_closed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = threading.Event()

    def answer(bench: Bench, question: Any) -> Iterator[app_module.answers.GeneratedPart]:
        try:
            while True:
                yield app_module.answers.GeneratedPart(word="我")
        finally:
            closed.set()

    answer.__annotations__ = app_module.answers.generated.__annotations__
    monkeypatch.setitem(app_module.STREAMS, "generate", answer)
    with serving(bench) as address:
        one = connected(address, posted("generate", {"run": "sdlm"}))
        assert one.recv(1000)
        one.close()
        assert closed.wait(20)


def test_a_step_that_runs_is_told_that_its_client_left(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()

    def answer(bench: Bench, question: Any) -> Any:
        begun.set()
        try:
            while True:
                check_wanted()
                time.sleep(0.01)
        finally:
            ended.set()

    answer.__annotations__ = ANNOTATIONS
    monkeypatch.setitem(app_module.ANSWERS, "next-words", answer)
    with serving(bench) as address:
        one = connected(address, posted("next-words", {"run": "sdlm", "context": "我"}))
        assert begun.wait(20)
        one.close()
        assert ended.wait(20)


def test_a_head_that_does_not_come_is_given_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sememekit.serve.server.LONGEST_HEAD", 0.5)
    with serving(bench) as address:
        for sent in (b"", b"POST /v1/tag HTTP/1.1\r\nHost: local"):
            assert all_of(connected(address, sent)) == ""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of open files")
def test_silent_connections_leave_room_for_others(folders: Path) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, before[1]))  # the server inherits it
    try:
        started = server(folders / "sdlm")
        address, process = started.__enter__()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    try:
        silent = [connected(address, b"POST /v1/tag HTTP/1.1\r\nHost: local") for _ in range(160)]
        assert httpx2.get(f"{address}v1/runs", timeout=60).status_code == 200
        for one in silent:
            one.close()
    finally:
        process.terminate()
        assert process.stderr is not None
        assert process.stderr.read() == ""
        started.__exit__(None, None, None)


def test_a_killed_server_leaves_no_folder(folders: Path, tmp_path: Path) -> None:
    with server(folders / "sdlm", TMPDIR=str(tmp_path)) as (address, process):
        change = {"sense": "苹果#2", "add": ["机器"]}
        question = {"run": "sdlm", "context": "我 吃", "changes": [change]}
        assert httpx2.post(f"{address}v1/next-words", json=question, timeout=60).status_code == 200
        process.kill()
        process.wait()
    assert list(tmp_path.iterdir()) == []


def test_the_token_of_the_environment_is_asked_for(folders: Path) -> None:
    with server(folders / "sdlm", SEMEMEKIT_TOKEN="geheim") as (address, _):
        assert address.endswith("#token=geheim")
        root = address.partition("#")[0]
        assert httpx2.get(f"{root}v1/runs").status_code == 401
        assert httpx2.get(f"{root}v1/runs", headers={"authorization": "Bearer geheim"}).status_code == 200
