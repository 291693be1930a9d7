"""OpenHowNet's pickles: plain data is read, anything else is refused before it can act."""

from __future__ import annotations

import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sememekit.errors import DataError
from sememekit.sememes import open_lexicon
from sememekit.sememes.formats.openhownet import DICTIONARY
from sememekit.sememes.formats.restricted_pickle import load_plain_pickle


def record(number: int, chinese: str, english: str, definition: str) -> dict[str, str]:
    return {
        "No": str(number),
        "ch_word": chinese,
        "ch_grammar": "noun",
        "en_word": english,
        "en_grammar": "N",
        "Def": definition,
    }


RECORDS = {
    "000": record(0, "苹果", "apple", "{fruit|水果}"),
    "001": record(1, "苹果", "Apple", "{computer|电脑:modifier={able|能}} RMK=a trade mark|商标"),
    "002": record(2, "", "nothing", "{x|义}"),
}

plain = st.recursive(
    st.integers() | st.text() | st.none() | st.booleans() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(), inner, max_size=4),
    max_leaves=20,
)


class CreatesFile:
    """Unpickled with the standard library, this makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, int]]:
        return os.open, (self.path, os.O_CREAT)


def as_folder(tmp_path: Path, data: bytes) -> Path:
    (tmp_path / DICTIONARY).write_bytes(data)
    return tmp_path


def as_zip(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "resources.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("resources/" + DICTIONARY, data)
        archive.writestr("../escape", "never extracted")
    return path


@pytest.mark.parametrize("packed", [as_folder, as_zip])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_folder_and_zip_in_every_protocol(tmp_path: Path, packed: Callable[[Path, bytes], Path], protocol: int) -> None:
    lexicon = open_lexicon(f"openhownet:{packed(tmp_path, pickle.dumps(RECORDS, protocol))}")
    assert [sense.sememes for sense in lexicon.senses("苹果")] == [("水果",), ("电脑", "能")]
    assert lexicon.report.skipped == {"record without a word on the chinese side": 1}
    assert len(list(tmp_path.parent.glob("escape"))) == 0


def test_english_side(tmp_path: Path) -> None:
    lexicon = open_lexicon(f"openhownet:{as_folder(tmp_path, pickle.dumps(RECORDS))}", side="english")
    assert list(lexicon.words) == ["apple", "Apple", "nothing"]
    assert lexicon.senses("Apple")[0].sememes == ("able|能", "computer|电脑")


@pytest.mark.parametrize("packed", [as_folder, as_zip])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_hostile_pickle_does_nothing(tmp_path: Path, packed: Callable[[Path, bytes], Path], protocol: int) -> None:
    target = tmp_path / "made"
    hostile = pickle.dumps({"000": CreatesFile(target)}, protocol)
    os.close(pickle.loads(hostile)["000"])
    assert target.exists(), "the attack itself must work, or this test shows nothing"
    target.unlink()
    with pytest.raises(DataError, match="nothing of it was run"):
        open_lexicon(f"openhownet:{packed(tmp_path, hostile)}")
    assert not target.exists()


@pytest.mark.parametrize("value", [(1,), {1}, frozenset(), 1j, b"bytes", len, DataError, object()])
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_other_objects_are_refused(value: object, protocol: int) -> None:
    with pytest.raises(DataError):
        load_plain_pickle(pickle.dumps([value], protocol), "file")


@given(plain, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_plain_data_comes_back(value: object, protocol: int) -> None:
    try:
        data = pickle.dumps(value, protocol)
    except UnicodeEncodeError:
        return
    assert load_plain_pickle(data, "file") == value


@given(st.binary(max_size=60), st.integers(0, 10_000))
def test_broken_pickles_give_our_error(noise: bytes, cut: int) -> None:
    whole = pickle.dumps(RECORDS)
    with pytest.raises(DataError, match="file"):
        load_plain_pickle(whole[: cut % len(whole)], "file")
    try:
        load_plain_pickle(noise, "file")
    except DataError as error:
        assert "file" in str(error)  # noqa: PT017 - an error is allowed here, not required


def test_a_memo_index_that_would_fill_the_memory() -> None:
    with pytest.raises(DataError, match="is not possible here"):
        load_plain_pickle(b"\x80\x02]r\xff\xff\xff\x7f.", "file")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1], "expected a dict"),
        ({}, "expected a dict"),
        ({"0": 1}, "record '0' is no dict"),
        ({"0": {"Def": 1}}, "is no text but int"),
    ],
)
def test_another_shape(tmp_path: Path, value: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_lexicon(f"openhownet:{as_folder(tmp_path, pickle.dumps(value))}")


def test_records_with_constants_are_read(tmp_path: Path) -> None:
    records = {"000": {**RECORDS["000"], "No": 7, "seen": True, "share": 0.5, "en_word": None}, "001": {"ch_word": None}}
    lexicon = open_lexicon(f"openhownet:{as_folder(tmp_path, pickle.dumps(records))}")
    assert [sense.gloss for sense in lexicon.senses("苹果")] == [""]
    assert lexicon.report.skipped == {"record without a word on the chinese side": 1}


def test_a_damaged_stream_in_a_zip(tmp_path: Path) -> None:
    many = {str(number): record(number, f"词{number}", "w", "{x|义}") for number in range(99)}
    path = tmp_path / "resources.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(DICTIONARY, pickle.dumps(many))
    whole = path.read_bytes()
    for place in range(60, 400, 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with pytest.raises(DataError, match=r"resources\.zip"):
            open_lexicon(f"openhownet:{path}")


def test_broken_zips(tmp_path: Path) -> None:
    path = as_zip(tmp_path, pickle.dumps(RECORDS))
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    with pytest.raises(DataError, match="neither a folder nor an intact zip"):
        open_lexicon(f"openhownet:{path}")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other", "x")
    with pytest.raises(DataError, match="holds 0 members called HowNet_dict_complete"):
        open_lexicon(f"openhownet:{path}")


def test_a_zip_that_unpacks_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sememekit.sememes.formats.openhownet.MAX_BYTES", 100)
    data = pickle.dumps(RECORDS)
    with pytest.raises(DataError, match="more than 100 bytes"):
        open_lexicon(f"openhownet:{as_zip(tmp_path, data)}")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="at most 100 are read"):
        open_lexicon(f"openhownet:{as_folder(tmp_path / 'folder', data)}")


def test_without_leave_nothing_is_downloaded(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="--yes-download"):
        open_lexicon(f"openhownet:{tmp_path}")


def test_download_by_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    download = pytest.importorskip("OpenHowNet.Download", reason="the package OpenHowNet is not installed")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(DataError, match="give 'openhownet' without a path"):
        open_lexicon(f"openhownet:{tmp_path / 'other'}", yes_download=True)

    def fail() -> None:
        raise OSError("Name or service not known")

    monkeypatch.setattr(download, "download", fail)
    with pytest.raises(DataError, match=r"the download of https://.* failed: OSError: Name or service not known"):
        open_lexicon("openhownet", yes_download=True)

    def succeed() -> None:
        folder = tmp_path / ".openhownet" / "resources"
        folder.mkdir(parents=True)
        as_folder(folder, pickle.dumps(RECORDS))

    monkeypatch.setattr(download, "download", succeed)
    lexicon = open_lexicon("openhownet", yes_download=True)
    assert len(lexicon) == 1
    assert f"{len(pickle.dumps(RECORDS))} bytes, SHA-256 {lexicon.sha256}" in lexicon.report.notes[0]
