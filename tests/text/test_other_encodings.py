"""Files that are no text in UTF-8 by their bytes are refused with the command that makes text of them, and the command does."""

from __future__ import annotations

import io
import shlex
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sememekit.errors import DataError
from sememekit.files import by_its_beginning
from sememekit.text.reading import FaultCounter, Span, read_named, read_pieces, refuse_other_encoding
from tests.commands.refusals import refusal

ENGLISH = "the film was good .\nthe actor was bad .\n" * 40
CHINESE = "今天 老师 看 报纸 。\n一 天 学生 吃 苹果 。\n" * 40


def tar(text: str) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        member = tarfile.TarInfo("text.txt")
        member.size = len(text.encode())
        archive.addfile(member, io.BytesIO(text.encode()))
    return made.getvalue()


KINDS: dict[str, tuple[str, Callable[[str], bytes]]] = {
    "marked": ("iconv -f UTF-16 ", lambda text: text.encode("utf-16")),
    "tar": ("tar -xOf", tar),
}


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["english", "chinese"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("errors", ["strict", "replace"])
def test_the_command_in_the_message_gives_the_text(tmp_path: Path, text: str, kind: str, errors: str) -> None:
    command, make = KINDS[kind]
    path = tmp_path / "text.txt"
    path.write_bytes(make(text))
    told = refusal("preprocess", "plain", str(path), "--out", str(tmp_path / "out"), "--errors", errors)
    advice = told.partition(": ")[2].rpartition(": ")[2].strip()
    assert advice.startswith(command)
    done = subprocess.run(
        ["sh", "-c", advice.replace("OTHER", shlex.quote(str(tmp_path / "other.txt")))], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "other.txt").read_bytes() == text.encode()


def test_utf_8_and_binaries_are_not_taken_for_utf_16() -> None:
    assert by_its_beginning(ENGLISH.encode(), "t") == by_its_beginning(CHINESE.encode(), "t") == ""
    assert by_its_beginning(b"a\0b\n" * 100, "t") == by_its_beginning(bytes(range(256)) * 20, "t") == ""
    assert by_its_beginning(b"\0" * 600, "t") == ""
    assert "soffice --headless --convert-to csv t.xlsx" in by_its_beginning(b"PK\3\4", "t.xlsx")


def test_nul_in_most_lines_is_refused_under_replace(tmp_path: Path) -> None:
    path, faults = tmp_path / "t", FaultCounter("replace")
    path.write_bytes(b"fine\n" * 10 + b"\0\0\1a\0\n" * 30)
    with pytest.raises(DataError, match="30 of 40 lines are not UTF-8"):
        refuse_other_encoding(path, "t", faults)
    with path.open("rb") as file, pytest.raises(DataError, match="not UTF-8"):
        list(read_named(file, "t", faults))
    path.write_bytes(b"fine\n" * 30 + b"a\0b\n" * 10)
    refuse_other_encoding(path, "t", faults)
    assert [piece.text for piece in read_pieces(Span(path, "t", 0, path.stat().st_size), faults)][-1] == "a\ufffdb"


def test_gb18030_in_the_quickstart_names_the_command(tmp_path: Path) -> None:
    (tmp_path / "gb.txt").write_bytes(CHINESE.encode("gb18030"))
    told = refusal("quickstart", "--text", str(tmp_path / "gb.txt"), "--out", str(tmp_path / "out"))
    advice = told.rpartition("type: ")[2].strip()
    assert subprocess.run(["sh", "-c", advice], check=False).returncode == 0
    assert (tmp_path / "gb.utf8.txt").read_text(encoding="utf-8") == CHINESE


@pytest.mark.parametrize("encoding", ["utf-16", "gb18030"])
def test_json_lines_in_another_encoding_have_the_line_to_type(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"text": "今天老师看报纸"}\n'.encode(encoding))
    told = refusal("preprocess", "plain", str(path), "--out", str(tmp_path / "out"))
    assert f"iconv -f {encoding.upper()} -t UTF-8 {path} > " in told
    assert "--errors" not in told
