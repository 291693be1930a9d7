"""``sememekit serve`` as a person starts and stops it."""

from __future__ import annotations

import signal
import socket
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app
from tests.served import play_server, server

httpx2 = pytest.importorskip("httpx2")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_and_it_ends_well(folders: Path, number: signal.Signals) -> None:
    with server(folders / "sdlm") as (address, process):
        assert address.startswith("http://127.0.0.1:")
        assert httpx2.get(f"{address}v1/runs").json()["result"]["runs"][0]["name"] == "sdlm"
        process.send_signal(number)
        assert process.wait(timeout=30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_it_says_what_is_wrong_before_it_listens(folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    play_server(monkeypatch)

    def refused(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["serve", *arguments])
        assert result.exit_code == 1, result.output
        return result.stderr

    assert "in three minutes with: sememekit quickstart" in refused()
    assert "lies in the run" in refused(str(folders / "sdlm"), "--save", str(folders / "sdlm" / "mine"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        told = refused(str(folders / "sdlm"), "--port", str(taken.getsockname()[1]))
    assert "--port 0 takes a free port" in told


def test_off_loopback_the_link_has_a_token(folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked: list[str | None] = []

    def note(gate: Any, listening: socket.socket) -> None:
        asked.append(gate._token)
        delay = listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 0
        assert not delay, "a body of an answer would wait for the acknowledgement of its head, 40 ms"

    monkeypatch.setattr("sememekit.serve.server.run_server", note)
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    benches: list[Any] = []
    make = import_module("sememekit.serve.app").make_app
    monkeypatch.setattr("sememekit.serve.app.make_app", lambda bench, *given: benches.append(bench) or make(bench, *given))
    for options in ([], ["--token", "mine"], ["--host", "0.0.0.0"], ["--host", "0.0.0.0", "--token", ""]):
        result = CliRunner().invoke(app, ["serve", str(folders / "sdlm"), "--port", "0", *options])
        assert result.exit_code == 0, result.stderr
        assert result.stdout.strip() == opened[-1]
        assert result.stderr == "reading sdlm\nstop with Ctrl-C\n"
    assert {bench.sources for bench in benches} == {("open",)}
    assert asked[:2] == [None, "mine"]
    assert len(str(asked[2])) > 30
    assert len(str(asked[3])) > 30, "an empty token is none"
    assert [link.partition("#")[2] for link in opened] == ["", "token=mine", f"token={asked[2]}", f"token={asked[3]}"]
