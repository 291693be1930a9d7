"""Processes played by threads of this one, so that nothing is imported anew."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest


def play_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let trainings side by side be threads; with one at a time torch's generator belongs to the training."""

    def submit(self: object, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future = Future[Any]()

        def call() -> None:
            try:
                future.set_result(work(*arguments))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=call, daemon=True).start()
        return future

    monkeypatch.setattr("sememekit.engines.local.Local.submit", submit)
