"""Hostile requests, foreign hosts and pages, and too much at once are refused; none of them harms others."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from sememekit.serve import app as app_module
from sememekit.serve.app import make_app
from sememekit.serve.gate import MOST_BYTES, Gate
from sememekit.serve.questions import LONGEST_TEXT, NextWordsQuestion
from sememekit.serve.runs import Bench
from sememekit.serve.worker import Worker

GOOD = {"run": "sdlm", "context": "我 吃"}
HEADERS = {"content-type": "application/json"}

HOSTILE: dict[str, tuple[str, Any]] = {
    "markup as a run": ("next-words", {**GOOD, "run": "<script>alert(1)</script>"}),
    "a path as a run": ("next-words", {**GOOD, "run": "../../etc/passwd"}),
    "a full path as a run": ("next-words", {**GOOD, "run": "/etc"}),
    "code as a run": ("next-words", {**GOOD, "run": "os:system"}),
    "an address as a run": ("next-words", {**GOOD, "run": "hf://owner/name"}),
    "an empty run": ("next-words", {**GOOD, "run": ""}),
    "no run": ("next-words", {"context": "我"}),
    "a number as a context": ("next-words", {**GOOD, "context": 7}),
    "a list as a context": ("next-words", {**GOOD, "context": ["我"]}),
    "an unknown key": ("next-words", {**GOOD, "trust_code": True}),
    "a file as an overlay": ("score", {"run": "sdlm", "text": "我 吃", "overlay": "/etc/passwd"}),
    "a negative number": ("next-words", {**GOOD, "top": -1}),
    "a huge number": ("next-words", {**GOOD, "top": 10**30}),
    "a fraction": ("next-words", {**GOOD, "top": 2.5}),
    "a number in words": ("next-words", {**GOOD, "top": "3"}),
    "an empty context": ("next-words", {**GOOD, "context": "  "}),
    "a NUL": ("next-words", {**GOOD, "context": "我\0"}),
    "an escape": ("next-words", {**GOOD, "context": "我 \x1b[2J"}),
    "unknown words alone": ("next-words", {**GOOD, "context": "xyzzy"}),
    "half a surrogate": ("next-words", b'{"run": "sdlm", "context": "\\ud800"}'),
    "half a surrogate as a key": ("next-words", b'{"run": "sdlm", "context": "a", "\\udfff": 1}'),
    "bytes that are no text": ("next-words", b'{"run": "sdlm", "context": "\xff\xfe"}'),
    "no JSON": ("next-words", b"run=sdlm"),
    "half of JSON": ("next-words", b'{"run": "sdlm"'),
    "deep JSON": ("next-words", b"[" * 100_000),
    "deep objects": ("next-words", b'{"a":' * 30_000),
    "NaN": ("generate", b'{"run": "sdlm", "temperature": NaN}'),
    "infinity": ("generate", b'{"run": "sdlm", "temperature": 1e999}'),
    "a null": ("next-words", b"null"),
    "an empty body": ("next-words", b""),
    "10 MB": ("next-words", b" " * 10_000_000),
    "a long text": ("score", {"run": "sdlm", "text": "我 " * LONGEST_TEXT}),
    "a change of nothing": ("explain", {"run": "sdlm", "text": "我 吃", "changes": [{"sense": "苹果#1"}]}),
    "a change of no word": ("explain", {"run": "sdlm", "text": "我 吃", "changes": [{"sense": "<b>", "add": ["水果"]}]}),
    "many changes": ("explain", {"run": "sdlm", "text": "我 吃", "changes": [{"sense": "苹果#1", "add": ["人"]}] * 51}),
    "a sense without sememes": ("save", {"run": "sdlm", "changes": [{"sense": "人", "remove": ["人"]}]}),
    "another kind of run": ("next-words", {**GOOD, "run": "lattice"}),
    "an unknown label": ("attack", {"run": "films-run", "texts": ["电影"], "label": "<img src=x onerror=alert(1)>"}),
    "too few texts": ("attack", {"run": "films-run", "texts": ["电影", "影片"]}),
    "a search that is none": ("attack", {"run": "films-run", "texts": ["电影"], "search": "os:system"}),
    "a colour of markup": ("pdf", {"width": 9, "height": 9, "shapes": [{"points": [1, 1], "colour": "#<svg/>"}]}),
    "a drawing without size": ("pdf", {"width": 0, "height": 9, "shapes": [{"points": [1, 1], "colour": "#000000"}]}),
    "half a point": ("pdf", {"width": 9, "height": 9, "shapes": [{"points": [1], "text": "x", "colour": "#000000"}]}),
    "more shapes than a drawing has": (
        "pdf",
        {"width": 9, "height": 9, "shapes": [{"points": [1, 1], "colour": "#000000"}] * 3_001},
    ),
    "a file name to save": ("save", {"run": "sdlm", "changes": [{"sense": "人", "add": ["水果"]}], "name": "../x"}),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_request_is_refused_in_words(client: TestClient, bench: Bench, kind: str) -> None:
    path, given = HOSTILE[kind]
    body = given if isinstance(given, bytes) else json.dumps(given).encode()
    answer = client.post(f"/v1/{path}", content=body, headers=HEADERS)
    assert 400 <= answer.status_code < 500, answer.text
    assert list(answer.json()) == ["error"]
    assert 0 < len(answer.json()["error"]) < 1500
    assert "Traceback" not in answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert client.post("/v1/next-words", json=GOOD).status_code == 200, "others are answered as before"


def test_the_status_says_what_to_change(client: TestClient) -> None:
    def status(path: str, **question: Any) -> int:
        return client.post(f"/v1/{path}", json=question).status_code

    assert status("score", run="sdlm", text="我 " * LONGEST_TEXT) == 422
    assert client.post("/v1/score", content=b" " * (MOST_BYTES + 1), headers=HEADERS).status_code == 413
    assert status("next-words", run="absent", context="我") == 404
    assert status("next-words", run="sdlm", context="") == 409
    told = client.post("/v1/next-words", json={"run": "sdlm", "contxt": "我"})
    assert (told.status_code, told.json()["error"].split("; ")[-1]) == (
        422,
        f"fields of this request: {', '.join(NextWordsQuestion.model_fields)}",
    )
    assert client.get("/v1/absent").status_code == 404
    assert client.get("/v1/next-words").status_code == 405
    assert client.delete("/v1/next-words").status_code == 405
    assert client.post("/v1/next-words", content=json.dumps(GOOD), headers={"content-type": "text/plain"}).status_code == 415


def test_no_name_of_a_request_is_opened(client: TestClient) -> None:
    for path in (
        "/../pyproject.toml",
        "/%2e%2e/app.py",
        "/..%2f..%2fapp.py",
        "/static/index.html",
        "//etc/passwd",
        "/main.js/",
    ):
        assert client.get(path, follow_redirects=False).status_code in (404, 307, 421), path
    assert client.get("/main.js").status_code == 200


def test_a_foreign_host_or_page_is_refused(client: TestClient) -> None:
    for host in ("evil.example", "evil.example:8700", "localhost.evil.example", "", "127.0.0.1.evil.example"):
        assert client.get("/v1/runs", headers={"host": host}).status_code == 421, host
    for host in ("localhost", "localhost:8700", "127.0.0.1:8700", "[::1]:8700"):
        assert client.get("/v1/runs", headers={"host": host}).status_code == 200, host
    assert client.get("/v1/runs", headers={"origin": "http://evil.example"}).status_code == 403
    answer = client.get("/v1/runs", headers={"origin": "http://localhost"})
    assert answer.status_code == 200
    assert not any(name.startswith("access-control") for name in answer.headers)
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_a_token_is_asked_for_where_there_is_one(bench: Bench) -> None:
    guarded = TestClient(make_app(bench, Worker(), "0.0.0.0", "geheim-é"), base_url="http://192.168.1.5:8700")
    assert guarded.get("/").status_code == 200, "the page has no data"
    assert guarded.get("/v1/runs").status_code == 401
    for wrong in ("Bearer", "Bearer x", "Basic geheim", "geheim"):
        assert guarded.get("/v1/runs", headers={"authorization": wrong}).status_code == 401
    assert guarded.post("/v1/next-words", json=GOOD).status_code == 401
    open_one = TestClient(make_app(bench, Worker(), "0.0.0.0", "geheim"), base_url="http://192.168.1.5:8700")
    assert open_one.get("/v1/runs", headers={"authorization": "Bearer geheim"}).status_code == 200
    assert open_one.get("/v1/runs", headers={"host": "evil.example"}).status_code == 421


def test_too_many_requests_and_late_answers_are_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, free = threading.Event(), threading.Event()

    def slow(bench: Bench, question: Any) -> Any:
        begun.set()
        free.wait(20)
        return app_module.answers.next_words(bench, question)

    slow.__annotations__ = app_module.answers.next_words.__annotations__
    monkeypatch.setitem(app_module.ANSWERS, "next-words", slow)
    late = TestClient(make_app(bench, Worker(seconds=0.2)), base_url="http://localhost")
    answer = late.post("/v1/next-words", json=GOOD)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    free.set()
    begun.clear()
    free.clear()
    busy = TestClient(make_app(bench, Worker(most=1)), base_url="http://localhost")
    with busy:
        statuses: list[int] = []
        first = threading.Thread(target=lambda: statuses.append(busy.post("/v1/next-words", json=GOOD).status_code))
        first.start()
        begun.wait(20)
        answer = busy.get("/v1/runs")
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
        free.set()
        first.join()
        assert statuses == [200]
        assert busy.get("/v1/runs").status_code == 200


def test_equal_requests_that_wait_at_once_are_computed_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, free, asked = threading.Event(), threading.Event(), list[str]()

    def slow(bench: Bench, question: Any) -> Any:
        asked.append(question.context)
        begun.set()
        free.wait(20)
        return app_module.answers.next_words(bench, question)

    slow.__annotations__ = app_module.answers.next_words.__annotations__
    monkeypatch.setitem(app_module.ANSWERS, "next-words", slow)
    questions = [GOOD, {**GOOD, "top": 10}, {**GOOD, "context": "人 买"}, GOOD, GOOD]  # the second says what the first means
    with TestClient(make_app(bench, Worker()), base_url="http://localhost") as client:
        found: dict[int, Any] = {}

        def ask(number: int) -> None:
            found[number] = client.post("/v1/next-words", json=questions[number]).json()["result"]

        threads = [threading.Thread(target=ask, args=[number]) for number in range(len(questions))]
        for thread in threads:
            thread.start()
            begun.wait(20)
        time.sleep(0.5)
        free.set()
        for thread in threads:
            thread.join()
    assert sorted(asked) == sorted(["我 吃", "我 吃", "人 买"])
    assert found[0] == found[1] == found[3] == found[4] != found[2]


def test_a_fault_of_ours_is_told_without_its_inside(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(bench: Bench, question: Any) -> Any:
        raise ZeroDivisionError("a secret")

    broken.__annotations__ = app_module.answers.next_words.__annotations__
    monkeypatch.setitem(app_module.ANSWERS, "next-words", broken)
    client = TestClient(make_app(bench, Worker()), base_url="http://localhost", raise_server_exceptions=False)
    answer = client.post("/v1/next-words", json=GOOD)
    assert answer.status_code == 500
    assert "secret" not in answer.text


def test_slow_clients_and_those_that_leave_harm_nobody(address: str) -> None:
    host, port = address.removeprefix("http://").split(":")
    head = (
        f"POST /v1/next-words HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\nContent-Length: 60\r\n\r\n"
    )
    slow = [socket.create_connection((host, int(port))) for _ in range(40)]
    for one in slow:
        one.sendall(head.encode() + b"{")
    for _ in range(20):  # asks, and leaves before the answer
        with socket.create_connection((host, int(port))) as one:
            body = json.dumps(GOOD).encode()
            one.sendall(head.replace("60", str(len(body))).encode() + body)
    import httpx2

    begin = time.perf_counter()
    with httpx2.Client(base_url=address) as client:
        assert client.post("/v1/next-words", json=GOOD).status_code == 200
    assert time.perf_counter() - begin < 10
    for one in slow:
        one.close()


def test_a_body_that_does_not_come_is_given_up(bench: Bench) -> None:
    import asyncio

    sent: list[dict[str, Any]] = []

    async def never(*_: Any) -> Any:
        await asyncio.sleep(60)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/v1/score", "headers": headers}
    asyncio.run(Gate(never, "127.0.0.1", None, seconds=0.05)(scope, never, send))
    assert sent[0]["status"] == 408


def test_a_stream_that_nobody_reads_to_its_end_is_left(bench: Bench) -> None:
    """A client that leaves a stream frees its place: more streams than may run at once, one after the other."""
    client = TestClient(make_app(bench, Worker()), base_url="http://localhost")
    for _ in range(20):
        with client.stream("POST", "/v1/generate", json={"run": "sdlm", "num_tokens": 200}) as answer:
            assert answer.status_code == 200
            next(answer.iter_lines())


def test_the_server_is_asked_by_its_names_alone(bench: Bench) -> None:
    machine = socket.gethostname().lower()
    lab = TestClient(make_app(bench, Worker(), "0.0.0.0", "x", ["hub.example"]), headers={"authorization": "Bearer x"})

    def status(client: TestClient, host: str, **headers: str) -> int:
        return client.get("/v1/runs", headers={"host": host, **headers}).status_code

    for host in (machine, f"{machine}:8700", "192.168.1.5:8700", "hub.example", "HUB.example:8700", "localhost"):
        assert status(lab, host) == 200, host
    refused = lab.get("/v1/runs", headers={"host": "lab-server:8700"})
    assert (refused.status_code, refused.json()["error"]) == (
        421,
        "the Host of the request, 'lab-server:8700', is not this server; if it is, add: --allow-host lab-server",
    )
    assert "add: --allow-host NAME" in lab.get("/v1/runs", headers={"host": "<b>" * 100}).json()["error"]
    named = TestClient(make_app(bench, Worker(), "lab-server", None))
    assert status(named, "lab-server:8700") == 200
    local = TestClient(make_app(bench, Worker()))
    own = "127.0.0.1:8700"
    for origin in (f"evil://{own}", f"https://{own}", "http://evil.example:8700", f"http://evil.example@{own}", "null", own):
        assert status(local, own, origin=origin) == 403, origin
    assert status(local, own, origin=f"http://{own}") == 200
    for origin in ("https://hub.example", "http://hub.example:8080"):
        assert status(lab, own, origin=origin) == status(lab, "hub.example", origin=origin) == 200
    assert status(lab, own, origin="https://other.example") == 403


def test_the_page_is_in_no_frame_of_another_page(client: TestClient) -> None:
    for path in ("/", "/v1/runs", "/v1/absent"):
        policy = client.get(path).headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "form-action 'none'" in policy


def test_json_is_json_in_capitals_and_a_long_key_is_cut(client: TestClient) -> None:
    given = {"content": json.dumps(GOOD).encode(), "headers": {"content-type": "APPLICATION/JSON; charset=UTF-8"}}
    assert client.post("/v1/next-words", **given).status_code == 200
    told = client.post("/v1/next-words", json={**GOOD, "x" * 200_000: 1}).json()["error"]
    assert told.startswith(f"{'x' * 60}…: Extra inputs")


def test_an_error_names_no_folder_of_the_server_and_nothing_of_its_inside(client: TestClient, folders: Path) -> None:
    asked = {
        "next-words": {"run": "lattice", "context": "我"},
        "predict": {"run": "sdlm", "examples": [["我"]]},
        "explain": {"run": "lattice", "text": "我", "top": 3},
        "tag": {"run": "softmax", "text": "我 吃"},
        "word": {"run": "sdlm", "word": "人", "changes": [{"sense": "苹果#1"}]},
    }
    told = {path: client.post(f"/v1/{path}", json=question).json()["error"] for path, question in asked.items()}
    assert told["next-words"] == (
        "next-words needs a model that predicts words, and lattice is another model; it answers: explain, segment"
    )
    assert told["word"] == "change 1: the change of 苹果#1 is empty; name a sememe to add or to remove"
    for message in told.values():
        assert str(folders) not in message
        assert "run." not in message


def test_what_is_not_in_a_text_is_refused_or_named(client: TestClient) -> None:
    def asked(path: str, **question: Any) -> Any:
        return client.post(f"/v1/{path}", json=question)

    absent = asked("tag", run="sdlm", text="我 吃", words=["电脑", " 人"])
    assert (absent.status_code, absent.json()["error"]) == (
        409,
        "tag: the text has none of the words 电脑 人; give words as they stand in the text, commas between",
    )
    some = asked("tag", run="sdlm", text="我 吃", words=[" 吃", "电脑"]).json()
    assert [row["token"] for row in some["result"]["tokens"]] == ["吃"]
    assert some["remarks"] == ["tag: the text does not have 电脑"]
    for path, run in (("tag", "sdlm"), ("segment", "lattice")):
        empty = asked(path, run=run, text=" \n")
        assert (empty.status_code, "no words are in the text" in empty.json()["error"]) == (409, True)
    assert asked("tag", run="sdlm", text="我 " * 1_001).status_code == 422
