"""The command ``serve`` in tests: one that answers a request and ends, and one in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def play_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """``sememekit serve`` lists its runs once and ends, and opens no browser."""
    from fastapi.testclient import TestClient

    from sememekit.serve.gate import Gate

    def answer_once(app: Gate, listening: socket.socket) -> None:
        listening.close()
        listed = TestClient(app, base_url="http://localhost").get("/v1/runs")
        assert listed.status_code == 200, listed.text
        print([run["name"] for run in listed.json()["result"]["runs"]])

    monkeypatch.setattr("sememekit.serve.server.run_server", answer_once)
    monkeypatch.setattr("webbrowser.open", lambda address: None)


@contextmanager
def server(*runs: Path, **environment: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server of runs in a process of its own: its address, and the process."""
    command = [sys.executable, "-m", "sememekit", "serve", *map(str, runs), "--port", "0", "--no-browser", "--quiet"]
    known = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=known) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.terminate()
