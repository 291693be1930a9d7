"""Processes played by threads of this one, so that nothing is imported anew."""

from __future__ import annotations

import multiprocessing
import queue
import threading
from typing import Any

import pytest


class Worker(threading.Thread):
    """A thread with what a process has; it cannot be told to stop."""

    exitcode = None

    def terminate(self) -> None:
        """Nothing: see ``should_stop`` of what is tested."""


class Context:
    """What ``multiprocessing.get_context`` gives."""

    Queue = queue.Queue

    def Process(self, target: Any, args: Any, daemon: bool) -> Worker:
        return Worker(target=target, args=args, daemon=daemon)


def play_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let trainings side by side be threads; with one at a time torch's generator is that of the training."""
    monkeypatch.setattr(multiprocessing, "get_context", lambda kind: Context())
