"""What people and scripts read: TOML that reads back, bars on a terminal alone, numbers."""

from __future__ import annotations

import io
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sememekit.cli.render import format_value, hint, progress_bars, remark, toml_text, training_progress
from sememekit.config import load_recipe, recipe_names
from sememekit.training import EpochReport, StepReport, StopReport

KEYS = st.text("abc_", min_size=1, max_size=4)
VALUES = st.one_of(
    st.integers(-(2**60), 2**60),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=6),
    st.lists(st.integers(-5, 5), max_size=3),
)
TABLES = st.dictionaries(KEYS, st.one_of(VALUES, st.dictionaries(KEYS, VALUES, max_size=3)), max_size=4)


@given(st.dictionaries(KEYS, TABLES, max_size=4))
def test_a_table_printed_as_toml_reads_back(table: dict) -> None:
    assert tomllib.loads(toml_text(table)) == table


def test_every_recipe_printed_as_toml_reads_back() -> None:
    for name in recipe_names():
        assert tomllib.loads(toml_text(load_recipe(name))) == load_recipe(name)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


STEP = StepReport(epoch=1, batch=5, num_batches=10, step=5, nats=6.5, rate=20.0, tokens_per_second=4321.0)
EPOCH = EpochReport(
    epoch=1,
    step=10,
    train_nats=6.25,
    valid={"perplexity": 345.678},
    rate=20.0,
    best=True,
    rate_cut=False,
    finished="",
    seconds=2.0,
    tokens_per_second=4321.0,
)


def show_everything(quiet: bool) -> None:
    with progress_bars(quiet) as show:
        show("reading", 1, None)
        show("reading", 2, 10)
        show("reading", 10, 10)
    with training_progress(quiet) as report:
        report(STEP)
        report(EPOCH)
        report(StopReport(epoch=2, step=11, checkpoint="last"))


def test_progress_is_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    stderr = Terminal()
    monkeypatch.setattr("sys.stderr", stderr)
    show_everything(quiet=False)
    hint("next: this", quiet=False)
    shown = stderr.getvalue()
    for text in (
        "reading",
        "100%",
        "epoch 1",
        "valid perplexity 345.68",
        "4,321 tokens a second",
        "best so far",
        "next: this",
    ):
        assert text in shown


@pytest.mark.parametrize(("stderr", "quiet"), [(io.StringIO(), False), (Terminal(), True)])
def test_without_a_terminal_or_when_quiet_nothing_is_drawn(
    monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO, quiet: bool
) -> None:
    monkeypatch.setattr("sys.stderr", stderr)
    show_everything(quiet)
    hint("next: this", quiet)
    assert stderr.getvalue() == ""
    remark("a remark", quiet)
    assert stderr.getvalue() == ("" if quiet else "a remark\n")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567, "1,234,567"),
        (0.123456, "0.1235"),
        (1234.5678, "1,234.57"),
        (True, "yes"),
        (None, "–"),
        ({"a": 1000, "b": 0.5}, "a 1,000, b 0.5"),
        (("x", 2), "x, 2"),
    ],
)
def test_values_as_people_read_them(value: object, text: str) -> None:
    assert format_value(value) == text
