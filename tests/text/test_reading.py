from __future__ import annotations

import gzip
import subprocess
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sememekit.errors import ConfigError, DataError
from sememekit.text.reading import (
    FaultCounter,
    Piece,
    Span,
    clean_blocks,
    cut_spans,
    read_named,
    read_pieces,
    read_stream,
    refuse_other_encoding,
)

texts = st.text(st.sampled_from("ab 字。\n\u2028é𠀀"), max_size=120)


def whole(path: Path) -> Span:
    return Span(path, path.name, 0, path.stat().st_size)


def read(path: Path, content: bytes, errors: str = "strict", cap: int = 1 << 20) -> tuple[list[str], dict[str, int]]:
    path.write_bytes(content)
    faults = FaultCounter(errors)
    return [piece.text for piece in read_pieces(whole(path), faults, cap)], faults.counts


def lines_of(pieces: list[Piece]) -> list[str]:
    """Pieces put together to lines again."""
    lines, line = [], ""
    for piece in pieces:
        line += piece.text
        if piece.ends_line:
            lines.append(line)
            line = ""
    return [*lines, line] if line else lines


def naive_lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


@given(text=texts, cap=st.integers(8, 40))
def test_no_cap_loses_a_character(text: str, cap: int) -> None:
    faults = FaultCounter("strict")
    pieces = list(read_stream(BytesIO(text.encode()), str, faults, cap))
    assert lines_of(pieces) == naive_lines(text)
    assert all(len(piece.text.encode()) <= cap for piece in pieces)
    longest = max((len(line.encode()) for line in naive_lines(text)), default=0)
    assert (faults.counts.get("long_lines", 0) > 0) or longest <= cap


@given(text=texts, cap=st.integers(8, 40), target=st.integers(1, 60))
def test_spans_together_give_what_the_whole_file_gives(
    tmp_path_factory: pytest.TempPathFactory, text: str, cap: int, target: int
) -> None:
    path = tmp_path_factory.mktemp("spans") / "text"
    path.write_text(text, encoding="utf-8", newline="\n")
    size = path.stat().st_size
    spans = cut_spans(path, "text", 0, size, target, cap)
    assert [span.start for span in spans] == [0, *(span.end for span in spans[:-1])]
    assert spans[-1].end == size
    pieces = [piece for span in spans for piece in read_pieces(span, FaultCounter("strict"), cap)]
    assert lines_of(pieces) == naive_lines(text)


def test_a_last_line_without_an_end_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("a b c\n" * 4 + "x1 x2 x3 x4 x5", encoding="utf-8")
    size = path.stat().st_size
    for target in range(1, size + 1):
        assert cut_spans(path, "text", 0, size, target)[-1].start <= 24, "the line begins at byte 24"


def test_offsets_point_at_the_pieces() -> None:
    content = "甲乙 丙丁\n戊\n".encode()
    for piece in read_stream(BytesIO(content), str, FaultCounter("strict"), 8):
        assert content[piece.offset :].startswith(piece.text.encode())


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    lines, counts = read(tmp_path / "t", "a\u2028b\x85c\rd\n\x0ce\n".encode())
    assert lines == ["a\u2028b\x85c\rd", "\x0ce"]
    assert counts == {}


def test_marks_of_other_systems_are_taken_off_and_counted(tmp_path: Path) -> None:
    lines, counts = read(tmp_path / "t", b"\xef\xbb\xbfa\r\nb\r\n\xef\xbb\xbfc\n")
    assert lines == ["a", "b", "c"], "files were joined"
    assert counts == {"byte_order_marks": 2, "carriage_returns": 2}


@pytest.mark.parametrize("cap", [8, 16, 1 << 20])
def test_a_mark_within_a_line_stays_and_offsets_are_those_of_the_file(tmp_path: Path, cap: int) -> None:
    content = "\ufeffa\ufeff b\n\ufeffc d e f g h i j\n\ufeff\nk\n".encode()
    (tmp_path / "t").write_bytes(content)
    faults = FaultCounter("strict")
    pieces = [*read_pieces(Span(tmp_path / "t", "t", 0, len(content)), faults, cap)]
    assert "".join(piece.text + "\n" * piece.ends_line for piece in pieces) == "a\ufeff b\nc d e f g h i j\n\nk\n"
    assert all(content[piece.offset :].startswith(piece.text.encode()) for piece in pieces)
    assert faults.counts["byte_order_marks"] == 3
    begin = content.index(b"a")  # without the first mark, all of which would be no clean block
    for size in (4, 1 << 16):  # a line at a time, and all in one block
        blocks = [*clean_blocks(Span(tmp_path / "t", "t", begin, len(content)), size=size)]
        assert not any("\ufeff" in block[:1] or "\n\ufeff" in block for block in blocks if isinstance(block, str))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"fine\nb\xffd\n", r"t:2: not UTF-8 at byte 6 \(ff\)"),
        (b"fine\n\xe5\xad", r"t:2: not UTF-8 at byte 5 \(e5 ad\)"),
        (b"\xff\xfea\0\n\0", r"t:1: not UTF-8 at byte 0 \(ff\); the file begins like UTF-16"),
        (b"\xff\xfe\0\0a\0\0\0", r"the file begins like UTF-32; convert it: iconv -f UTF-32 -t UTF-8 t > OTHER"),
        (gzip.compress(b"fine", mtime=0), r"the file begins as packed ones do; unpack it: gzip -dc < t > OTHER"),
        (
            b"fine\n" + gzip.compress(b"fine", mtime=0),
            r"t:2: not UTF-8 at byte \d+ \(8b\); convert the file to UTF-8, or pass --errors",
        ),
        (b"PK\3\4\xb1", r"the file begins as packed ones do; unpack it: unzip -p t > OTHER"),
        (b"fine\nfine\na\0b\n", r"t:3: a NUL at byte 11"),
    ],
)
def test_strict_stops_at_the_place(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read(tmp_path / "t", content)
    assert ("--errors replace" in str(caught.value)) is ("begins" not in message), "which mends single bytes alone"


CHINESE = "".join(f"第{number}天，老师在学校里教中文。\n" for number in range(30))


@pytest.mark.parametrize("begin", ["", "an English line\n"])
def test_gb18030_is_told_with_the_command(tmp_path: Path, begin: str) -> None:
    path = tmp_path / "a b.txt"
    path.write_bytes((begin + CHINESE).encode("gb18030"))
    span = Span(path, str(path), 0, path.stat().st_size)
    with pytest.raises(DataError) as caught:
        list(read_pieces(span, FaultCounter("strict")))
    assert str(caught.value).startswith(f"{path}:{2 if begin else 1}: not UTF-8 at byte ")
    command = str(caught.value).partition("it may be GB18030; type: ")[2]
    subprocess.run(command, shell=True, check=True)
    assert (tmp_path / "a b.utf8.txt").read_text(encoding="utf-8") == begin + CHINESE
    with pytest.raises(DataError, match=r"x:\d: .*; it may be GB18030; send the plain text through: iconv -f GB18030"):
        list(read_named(BytesIO(path.read_bytes()), "x", FaultCounter("strict")))


@pytest.mark.parametrize(
    ("around", "line"),
    [
        (CHINESE, "老师在学校里教中文".encode() + b"\xb2\xe2"),  # two bytes of GB18030 in a line of UTF-8
        ("fine\n" * 30, "schöner düll".encode("latin-1")),
        (CHINESE, "老师在学校".encode("utf-16")),
    ],
)
def test_other_bytes_are_not_told_to_be_gb18030(tmp_path: Path, around: str, line: bytes) -> None:
    with pytest.raises(DataError, match=r"t:31: .*pass --errors replace"):
        read(tmp_path / "t", around.encode() + line + b"\n" + around.encode())


def test_replacing_most_of_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for rest, refused in ((14, False), (13, True)):
        path.write_bytes("".join(CHINESE.splitlines(keepends=True)[:14]).encode("gb18030") + b"fine\n" * rest)
        for policy in ("strict", "replace", "skip"):
            if not (refused and policy == "replace"):
                refuse_other_encoding(path, str(path), FaultCounter(policy))
    told = rf"{path}: 14 of 27 lines are not UTF-8, .*may be GB18030; type: iconv .*{path}"
    with pytest.raises(DataError, match=told):
        refuse_other_encoding(path, str(path), FaultCounter("replace"))
    with path.open("rb") as file, pytest.raises(DataError, match="14 of 27 lines"):
        list(read_named(file, "t", FaultCounter("replace")))
    path.write_bytes(CHINESE.encode())
    with path.open("rb") as file:
        assert len(list(read_named(file, "t", FaultCounter("replace")))) == 30
    path.write_bytes(b"\xff\n" * 19)
    refuse_other_encoding(path, "t", FaultCounter("replace"))
    path.write_bytes(b"\xff\n" * 20)
    with pytest.raises(DataError, match=r"t: 20 of 20 lines .*single bytes; convert the file to UTF-8$"):
        refuse_other_encoding(path, "t", FaultCounter("replace"))


def test_nothing_is_mended_in_a_packed_file(tmp_path: Path) -> None:
    """A packed file may seem to have few lines."""
    (tmp_path / "t").write_bytes(gzip.compress(b"fine", mtime=0))
    with pytest.raises(DataError, match=r"t: not UTF-8, and --errors replace is for single bytes; .*gzip -dc < t > OTHER$"):
        refuse_other_encoding(tmp_path / "t", "t", FaultCounter("replace"))
    with (tmp_path / "t").open("rb") as file, pytest.raises(DataError, match=r"gzip -dc < t > OTHER$"):
        list(read_named(file, "t", FaultCounter("replace")))


def test_the_line_of_a_named_stream() -> None:
    with pytest.raises(DataError, match="x:3: not UTF-8 at byte 6 "):
        list(read_named(BytesIO(b"a\nbcd\n\xff\n"), "x", FaultCounter("strict")))


def test_the_line_is_right_in_a_later_span(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"one\ntwo\nthree\nf\xffur\n")
    span = cut_spans(path, "t", 0, path.stat().st_size, 9)[-1]
    assert span.start > 0
    with pytest.raises(DataError, match="t:4: not UTF-8 at byte 15"):
        list(read_pieces(span, FaultCounter("strict")))


def test_replace_and_skip_count_what_they_do(tmp_path: Path) -> None:
    content = b"good\nb\xffad\nn\0l\nend"
    assert read(tmp_path / "t", content, "replace") == (["good", "b\ufffdad", "n\ufffdl", "end"], {"invalid_utf8": 1, "nul": 1})
    assert read(tmp_path / "t", content, "skip") == (["good", "end"], {"invalid_utf8": 1, "nul": 1, "skipped_lines": 2})


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"ab " * 5 + b"\xff\nnext\n", ["ab " * 4, "next"]),
        (b"ab ab \xff\xff ab ab ab\nnext\n", ["ab ab ab ab ", "next"]),
        (b"ab ab ab a\xff", ["ab ab "]),
        (b"ab ab ab\nnext\n", ["ab ab ab", "next"]),  # the line end alone is beyond the cap
        (b"abcdefgh\nnext\n", ["abcdefgh", "next"]),
        (b"\xff\xff \xff\xff \xff\xff \xff\nnext\n", ["next"]),
        (b"\xff\xff \xff\xff ab ab\nnext\n", ["ab ab", "next"]),
    ],
)
def test_a_long_line_whose_end_is_skipped_ends_all_the_same(content: bytes, lines: list[str]) -> None:
    pieces = list(read_stream(BytesIO(content), str, FaultCounter("skip"), 8))
    found = lines_of(pieces)
    assert [line.strip() for line in found] == [line.strip() for line in lines]
    assert pieces[-1].ends_line
    assert all(piece.text for piece in pieces), "preprocess writes no end for a piece without words"


def test_a_policy_that_is_not_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="allowed are strict, replace, skip"):
        FaultCounter("ignore")


@pytest.mark.parametrize(("unit", "cuts"), [("word ", 0), ("句子。", 0), ("字", 3), ("\U00020000", 3)])
def test_a_line_above_the_cap_is_cut_where_it_hurts_least(tmp_path: Path, unit: str, cuts: int) -> None:
    text = unit * (3000 // len(unit.encode()))
    lines, counts = read(tmp_path / "t", text.encode(), cap=800)
    assert "".join(lines) == text
    assert counts["long_lines"] == 1
    assert (counts.get("cut_words", 0) > 0) == (cuts > 0)
    assert all(piece.endswith(unit[-1]) for piece in lines)


def test_a_line_is_counted_once_although_spans_cut_it(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"a " * 1000 + b"\nshort\n")
    faults = FaultCounter("strict")
    spans = cut_spans(path, "t", 0, path.stat().st_size, 300, cap=100)
    assert len(spans) > 3
    for span in spans:
        list(read_pieces(span, faults, cap=100))
    assert faults.counts == {"long_lines": 1}


class Pipe(BytesIO):
    """Bytes that can be read but once."""

    def seekable(self) -> bool:
        return False


@pytest.mark.parametrize(("lines", "others", "read"), [(100, 60, 20), (100, 9, 100), (25, 13, 20), (19, 19, 19), (30, 0, 30)])
def test_a_pipe_in_another_encoding_is_refused_on_the_way_or_at_its_end(lines: int, others: int, read: int) -> None:
    text = [f"上海市{number}\n".encode("gb18030" if number < others else "utf-8") for number in range(lines)]
    found = []
    stream = read_named(Pipe(b"".join(text)), "stdin", FaultCounter("replace"))
    if read == lines:
        assert len(list(stream)) == lines
        return
    with pytest.raises(
        DataError, match=rf"stdin: {min(others, 20)} of the first {read} lines are not UTF-8, .*iconv -f GB18030"
    ):
        found.extend(stream)
    assert len(found) == 20


def test_a_pipe_whose_end_is_in_another_encoding_is_refused_at_its_end() -> None:
    text = ["上海市\n".encode("utf-8" if number < 20 else "gb18030") for number in range(75)]
    with pytest.raises(DataError, match="stdin: 55 of the first 75 lines are not UTF-8"):
        list(read_named(Pipe(b"".join(text)), "stdin", FaultCounter("replace")))


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
def test_clean_blocks_are_those_of_their_span(tmp_path: Path, size: int) -> None:
    path = tmp_path / "text"
    path.write_text("".join(f"line {number}\n" for number in range(12)), encoding="utf-8")
    spans = cut_spans(path, "text", 0, path.stat().st_size, 25)
    assert len(spans) > 2
    for span in spans:
        assert "".join(map(str, clean_blocks(span, size))) == path.read_text(encoding="utf-8")[span.start : span.end]


def test_a_text_without_faults_has_none_in_its_report() -> None:
    report = FaultCounter("replace").report().model_dump()
    assert report.pop("policy") == "replace"
    assert set(report.values()) == {0}
