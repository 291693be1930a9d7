"""Bars, types on help pages, and texts from files and from stdin."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.progress import Progress
from rich.text import Text

from sememekit.commands._help import _type_name, _typed_help
from sememekit.commands._input import input_name, input_stream, lines_of, remark_file_name, some
from sememekit.commands._printing import shown
from sememekit.commands._progress import progress_bars
from sememekit.errors import DataError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_has_the_share_the_rate_and_the_note_of_its_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Noted(Progress):
        def __init__(self, *columns: Any, **options: Any) -> None:
            made.append((columns, options))
            super().__init__(*columns, **options)

        def add_task(self, *given: Any, **options: Any) -> Any:
            made.append(("add", given, options))
            return super().add_task(*given, **options)

        def update(self, *given: Any, **options: Any) -> None:
            made.append(("update", given, options))
            super().update(*given, **options)

    monkeypatch.setattr("rich.progress.Progress", Noted)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal := Terminal())
        with progress_bars(quiet=False) as show:
            show("reading", 1, None)
            show("reading", 2, 8, "a note")
            show("writing", 3, 4)
    (columns, options), *calls = made
    assert calls == [
        ("add", ("reading",), {"total": None, "more": ""}),
        ("update", (0,), {"completed": 1, "total": None, "more": ""}),
        ("update", (0,), {"completed": 2, "total": 8, "more": "a note"}),
        ("add", ("writing",), {"total": 4, "more": ""}),
        ("update", (1,), {"completed": 3, "total": 4, "more": ""}),
    ]
    assert (options["transient"], options["speed_estimate_period"], options["console"].stderr) == (False, 3600.0, True)
    rate = next(column for column in columns if type(column).__name__ == "Rate")
    speeds = [(None, None), (None, 1234.6), (20.0, 3.0)]
    shown = [str(rate.render(SimpleNamespace(finished_speed=done, speed=now))) for done, now in speeds]
    assert shown == ["", "1,235/s", "20/s"]
    assert [word in terminal.getvalue() for word in ("reading", " 25 %", "a note", "writing", " 75 %")] == [True] * 5


@pytest.mark.parametrize(
    ("shown", "named"),
    [
        ("<path>", "PATH"),
        ("<str>", "TEXT"),
        ("<int>", "N"),
        ("<int range> [x>=1]", "N >= 1"),
        ("<int range> [1<=x<=20]", "1 <= N <= 20"),
        ("<int range> [0<=x<=999999999]", "0 <= N <= 999999999"),
        ("<int range> [0<=x<=1000000000]", "N >= 0"),
        ("<float range>  [x>0.5]", "X > 0.5"),
        ("<list[str]>", "TEXT"),
        ("<bool>", ""),
        ("<date>", "date"),
        (" NAME|FILE ", "NAME|FILE"),
        ("[a|b]", "[a|b]"),
    ],
)
def test_a_type_is_named_as_people_call_it(shown: str, named: str) -> None:
    assert _type_name(shown) == named


def test_an_option_has_its_help_and_then_its_type() -> None:
    from rich.columns import Columns

    told = Columns([Text("Size."), Text("[default: (as the run)]"), "no text"])
    assert str(_typed_help(Text("<int>"), told)) == "Size. [N] [default: as the run]"
    assert str(_typed_help(Text("<bool>"), told)) == "Size. [default: as the run]"
    assert str(_typed_help("", Columns([Text("Size."), Text("[default: 3]")]))) == "Size. [default: 3]"
    assert str(_typed_help(Text("<int>"), "nothing")) == " [N]"


def test_a_file_name_that_was_read_as_a_text_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").touch()
    Path("folder").mkdir()
    for text in ("no", "folder", "x" * 300, "a\0b"):
        remark_file_name(text, "type this")
    remark_file_name("text", "type this", quiet=True)
    assert capsys.readouterr().err == ""
    remark_file_name("text", "type this")
    assert capsys.readouterr().err == "text is a file, and its name was read as the text; type this\n"


def test_lines_come_from_a_file_or_from_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("a\nb\n", encoding="utf-8")
    assert [*lines_of(Path("text"), "strict")] == ["a", "b"]
    for dash in (None, Path("-")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"c\n")))
        assert ([*lines_of(dash, "strict")], input_name(dash)) == (["c"], "stdin")
    assert input_name(Path("text")) == "text"


@pytest.mark.parametrize(
    ("name", "there", "told"),
    [
        ("a.JSONL", True, "a.JSONL: holds JSON records, and this command reads lines of text; extract the text first"),
        ("a.parquet", True, "a.parquet: holds JSON records, and this command reads lines of text; extract the text first"),
        ("a.jsonl", False, "; a text itself is read from stdin: echo TEXT | sememekit ..."),
        ("a.txt", False, "; a text itself is read from stdin: echo TEXT | sememekit ..."),
    ],
)
def test_what_holds_no_lines_is_refused(
    name: str, there: bool, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if there:
        Path(name).touch()
    with pytest.raises(DataError) as caught, input_stream(Path(name)):
        pass
    assert told in str(caught.value)
    assert there == str(caught.value).startswith(f"{name}: holds")


def test_a_folder_is_no_text_and_no_stdin_is_advised(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught, input_stream(tmp_path):
        pass
    assert "stdin" not in str(caught.value)


def test_rows_begin_once_the_first_is_known() -> None:
    rows = iter([1, 2])
    assert [*some(rows, "nothing")] == [1, 2]
    with pytest.raises(DataError, match=r"^nothing$"):
        some([], "nothing")


def test_each_control_character_is_a_sign_and_its_neighbours_stay() -> None:
    text = "\x00\x08\t\n\x0b\x1f ~\x7f\x80\x9f\xa0\u2029\u202a\u202e\u202f\u2065\u2066\u2069\u206a"
    signs = "\u2400\u2408\t\n\u240b\u241f ~\u2421\ufffd\ufffd\xa0\u2029\ufffd\ufffd\u202f\u2065\ufffd\ufffd\u206a"
    assert shown(text) == signs
