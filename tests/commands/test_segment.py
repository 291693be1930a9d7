from __future__ import annotations

from functools import cache
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sememekit.commands.segment import segment_stream
from sememekit.data.segmenters import segmenter_for
from sememekit.errors import ConfigError, DataError
from sememekit.text.reading import FaultCounter
from sememekit.text.segmenters import Segmenter, WhiteSpace, open_segmenter


@cache
def matcher() -> Segmenter:
    return open_segmenter("fmm", words=frozenset(["天地", "人和"]))


def run(content: bytes, errors: str = "strict") -> str:
    return "".join(segment_stream(BytesIO(content), matcher(), FaultCounter(errors)))


def test_lines_in_lines_out() -> None:
    assert run("天地人和\n\n天 地人\r\n人和".encode()) == "天地 人和\n\n天 地 人\n人和\n"
    assert run(b"") == ""


@given(st.text(st.sampled_from("天地人和a \n"), max_size=50))
def test_no_character_is_lost(text: str) -> None:
    lines = run(text.encode()).split("\n")
    expected = text.split("\n")
    if not expected[-1]:
        assert lines.pop() == ""
        expected.pop()
    else:
        assert lines.pop() == ""
    assert ["".join(line.split()) for line in lines] == ["".join(line.split()) for line in expected]


def test_bad_bytes_follow_the_policy() -> None:
    with pytest.raises(DataError, match="stdin:2: not UTF-8 at byte 7"):
        run("天地\n".encode() + b"\xff\n")
    faults = FaultCounter("skip")
    out = "".join(segment_stream(BytesIO(b"a\n\xff\nb\n"), WhiteSpace(), faults))
    assert out == "a\nb\n"
    assert faults.report().skipped_lines == 1
    assert run(b"\xff\n", errors="replace") == "\ufffd\n"


def test_a_line_of_megabytes_stays_one_line() -> None:
    content = "天地人和。".encode() * 250_000
    pieces = list(segment_stream(BytesIO(content), matcher(), FaultCounter("strict")))
    assert len(pieces) > 3
    assert "".join(pieces) == "天地 人和 。 " * 249_999 + "天地 人和 。\n"


def test_segmenters_by_name() -> None:
    assert segmenter_for("none").segment("a b") == ["a", "b"]
    with pytest.raises(ConfigError, match="--model"):
        segmenter_for("sentencepiece")
