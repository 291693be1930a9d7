"""Words that are printed as soon as they are drawn, and a server that stops like a finished command."""

from __future__ import annotations

import io
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from sememekit.commands._program import app
from sememekit.text.vocabulary import END, STOP


class Screen(io.StringIO):
    """A terminal that notes what stands on it whenever it is brought up to date."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        self.seen.append(self.getvalue())


def screened(words: list[Any], arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[Screen, list[tuple[Any, ...]]]:
    """Drawn words as a terminal shows them, and the arguments of the draw."""
    asked: list[tuple[Any, ...]] = []

    def stream_words(run: Any, prompt: str, **options: Any) -> Iterator[Any]:
        asked.append((prompt, options))
        yield from words

    monkeypatch.setattr("sememekit.runs.run.Run.open", lambda path, **options: SimpleNamespace(kinds={"words"}))
    monkeypatch.setattr("sememekit.runs.generation.stream_words", stream_words)
    monkeypatch.setattr("sys.stdin", Screen())
    screen = Screen()
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", screen)
        assert app(["generate", "r", *arguments], standalone_mode=False) == 0
    return screen, asked


def test_each_word_is_on_a_terminal_as_soon_as_it_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["今天", END, "中国", STOP, "好", SimpleNamespace(text="the report"), "never shown"]
    screen, asked = screened(words, ["我", "--num-samples", "2"], monkeypatch)
    lines = ["我 今天 ", "我 今天 \n", "我 今天 \n中国 ", "我 今天 \n中国 \n", "我 今天 \n中国 \n好 "]
    assert screen.seen[:5] == lines
    assert screen.getvalue() == 2 * f"{lines[-1]}\n"
    assert asked == [("我", {"seed": 1}), ("我", {"seed": 2})]


def test_without_a_prompt_a_terminal_shows_the_first_word_first(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, asked = screened(["今天"], ["--seed", "0"], monkeypatch)
    assert (screen.getvalue(), asked) == ("今天 \n", [("", {"seed": 0})])
