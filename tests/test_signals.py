"""Signals: what a first, a second and a held one do, and that everything is put back."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import Any

import pytest

from sememekit import signals
from sememekit.signals import Stopped, StopRequest, held_signals, release_signals, stop_signals


def test_handlers_are_put_back_and_a_second_signal_acts_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {number: signal.getsignal(number) for number in signals.STOPPING}
    monkeypatch.setattr(signals, "SAME_SIGNAL", 1e9)  # however busy the machine is
    with stop_signals() as asked:
        assert not asked()
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)  # at once: "timeout" and Slurm send each signal twice
        assert asked()
        monkeypatch.setattr(signals, "SAME_SIGNAL", -1.0)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert {number: signal.getsignal(number) for number in before} == before


@pytest.mark.parametrize("number", signals.STOPPING)
def test_a_patient_command_takes_any_number_of_signals_for_one(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(signals, "SAME_SIGNAL", -1.0)
    with stop_signals(patient=True) as asked:
        for _ in range(3):
            signal.raise_signal(number)
        assert asked()
        with pytest.raises(Stopped), asked.at_once():
            pytest.fail("a signal that came before is obeyed at once")
    with stop_signals(patient=True) as asked:
        with pytest.raises(Stopped), asked.at_once():
            signal.raise_signal(number)
        signal.raise_signal(number)


def test_nohup_is_obeyed() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_signals() as asked:
            signal.raise_signal(signal.SIGHUP)
            assert not asked()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_outside_of_the_main_thread_nothing_is_watched() -> None:
    before = {number: signal.getsignal(number) for number in signals.STOPPING}
    found = []

    def watch() -> None:
        with stop_signals() as asked:
            found.append((asked(), {number: signal.getsignal(number) for number in signals.STOPPING} == before))

    thread = threading.Thread(target=watch)
    thread.start()
    thread.join()
    assert found == [(False, True)]


def test_for_what_a_process_does_last_signals_are_ignored_once_one_came() -> None:
    before = {number: signal.getsignal(number) for number in signals.STOPPING}
    try:
        with stop_signals(lasting=True):
            pass
        assert {number: signal.getsignal(number) for number in before} == before, "none came"
        with stop_signals(lasting=True):
            signal.raise_signal(signal.SIGTERM)
        assert {signal.getsignal(number) for number in before} == {signal.SIG_IGN}
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_patience_inside_what_ends_at_once() -> None:
    """Work that polls is not interrupted, and what comes after it is."""
    with stop_signals(patient=True) as asked, asked.at_once():
        with asked.patiently():
            signal.raise_signal(signal.SIGTERM)
        assert asked()
    with stop_signals(patient=True) as asked, asked.at_once():
        with asked.patiently():
            pass
        with pytest.raises(Stopped):
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="no signal can be held")
def test_held_signals_arrive_when_they_are_released() -> None:
    with stop_signals(patient=True) as asked:
        with held_signals():
            signal.raise_signal(signal.SIGTERM)
            assert not asked()
        assert asked(), "afterwards, at once"
    with stop_signals(patient=True) as asked, held_signals():
        signal.raise_signal(signal.SIGTERM)
        assert not asked()
        release_signals()
        assert asked(), "in a process that was begun inside"


@pytest.mark.parametrize("place", range(12))
def test_a_signal_that_comes_while_one_is_being_noted_waits_for_nothing(place: int) -> None:
    """Python runs the handler of a second signal between two lines of the first, or of what that calls: no lock may be held."""
    asked, lines = StopRequest(), 0

    def interrupt(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        if event == "line":
            lines += 1
            if lines == place + 1:
                sys.settrace(None)
                asked.note()
        return interrupt

    def note() -> None:
        sys.settrace(interrupt)
        asked.note()
        sys.settrace(None)

    thread = threading.Thread(target=note, daemon=True)
    thread.start()
    thread.join(10.0)
    assert not thread.is_alive(), f"the second signal waits for the first, at line {place + 1}"
    assert asked()
