"""The resources of the package OpenHowNet 2.0: a folder, or the zip that its publisher offers."""

import hashlib
import lzma
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sememekit.errors import DataError
from sememekit.files.reading import at_home
from sememekit.sememes.formats.records import bag_of_definition
from sememekit.sememes.formats.restricted_pickle import load_plain_pickle
from sememekit.sememes.lexicon import Entry, Lexicon, LexiconReader, Sense, Side, lexicon_of
from sememekit.sememes.reading import read_lexicon_bytes

DICTIONARY = "HowNet_dict_complete"
"""The pickle that OpenHowNet 2.0 itself loads: number -> {No, ch_word, ch_grammar, en_word, en_grammar, Def}."""

MAX_BYTES = 512 << 20  # a larger dictionary is refused, since a small zip can expand without limit

_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, NotImplementedError, OSError, OverflowError, RuntimeError, ValueError),
)
"""Errors that zipfile and its streams raise for a damaged file."""

_KEYS = {"chinese": ("ch_word", "ch_grammar", "en_word"), "english": ("en_word", "en_grammar", "ch_word")}


class OpenHowNetReader(LexiconReader):
    """Reads the dictionary with a restricted unpickler; members of a zip are read by name and nothing is extracted."""

    format_name = "openhownet"
    default_path = "~/.openhownet/resources"

    class Settings(LexiconReader.Settings):
        """``side`` as for hownet. ``yes_download``: fetch the resources with OpenHowNet's downloader if they are absent."""

        side: Side = "chinese"
        yes_download: bool = False

    settings: Settings

    def read(self) -> Lexicon:
        notes: tuple[str, ...] = ()
        if self._is_absent():
            if not self.settings.yes_download:
                raise DataError(
                    f"openhownet {self.path}: no {DICTIONARY} there; give openhownet:FOLDER or openhownet:resources.zip, or "
                    "add --yes-download to fetch it, for research use, with the package OpenHowNet"
                )
            notes = (self._download(),)
        where, data = self._dictionary_bytes()
        records = load_plain_pickle(data, where)
        if not isinstance(records, dict) or not records:
            raise DataError(
                f"{where}: expected a dict of records, found {type(records).__name__} of another kind or an empty one"
            )
        entries = enumerate((self._entry(where, key, record) for key, record in records.items()), start=1)
        digest = hashlib.sha256(data).hexdigest()
        return lexicon_of(entries, Path(where), f"{self.format_name}:{self.path.name}", digest, notes)

    def _is_absent(self) -> bool:
        return not self.path.exists() or (self.path.is_dir() and not (self.path / DICTIONARY).is_file())

    def _dictionary_bytes(self) -> tuple[str, bytes]:
        if self.path.is_dir():
            path = self.path / DICTIONARY
            if path.stat().st_size > MAX_BYTES:
                raise DataError(f"{path}: has {path.stat().st_size} bytes, and at most {MAX_BYTES} are read")
            return str(path), read_lexicon_bytes(path)
        try:
            with zipfile.ZipFile(self.path) as archive:
                members = [info for info in archive.infolist() if Path(info.filename).name == DICTIONARY]
                if len(members) != 1:
                    raise DataError(f"{self.path}: holds {len(members)} members called {DICTIONARY}, and exactly one is needed")
                where = f"{self.path}!{members[0].filename}"
                with archive.open(members[0]) as member:
                    data = member.read(MAX_BYTES + 1)
        except _BROKEN as error:
            raise DataError(f"{self.path}: neither a folder nor an intact zip: {error}") from None
        if len(data) > MAX_BYTES:
            raise DataError(f"{where}: unpacks to more than {MAX_BYTES} bytes and was not read")
        return where, data

    def _entry(self, where: str, key: object, record: object) -> Entry:
        word_key, grammar_key, gloss_key = _KEYS[self.settings.side]
        if not isinstance(record, dict):
            raise DataError(f"{where}: record {key!r:.40} is no dict but {type(record).__name__}")
        word, grammar, gloss = (_field(record, name, where, key) for name in (word_key, grammar_key, gloss_key))
        definition = _field(record, "Def", where, key).partition("RMK=")[0].strip()
        if not word:
            return f"record without a word on the {self.settings.side} side"
        if not definition:
            return "record without a Def"
        return Sense(word, bag_of_definition(definition, self.settings.side), grammar, gloss, definition)

    def _download(self) -> str:
        """Fetch with OpenHowNet's own downloader; return a note with size and hash. Its errors become DataErrors."""
        if self.path != (usual := at_home(self.default_path)):
            raise DataError(f"openhownet {self.path}: --yes-download writes to {usual}; give 'openhownet' without a path")
        try:
            from OpenHowNet import Download
        except ImportError:
            raise DataError(
                "openhownet: the package that downloads is not installed; pip install 'sememekit[openhownet]'"
            ) from None
        url = Download.OPENHOWNET_DATA_URL
        try:
            Download.download()
        except (OSError, KeyError, ValueError, TypeError, zipfile.BadZipFile) as error:
            raise DataError(
                f"openhownet: the download of {url} failed: {type(error).__name__}: {error}; get resources.zip by other "
                "means and give openhownet:resources.zip"
            ) from None
        if self._is_absent():
            raise DataError(f"openhownet: {url} was fetched into {self.path}, but it holds no {DICTIONARY}")
        data = read_lexicon_bytes(self.path / DICTIONARY)
        return f"downloaded {url}: {DICTIONARY}, {len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}"


def _field(record: Mapping[Any, Any], name: str, where: str, key: object) -> str:
    value = record.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{where}: {name!r} of record {key!r:.40} is no text but {type(value).__name__}")
    return value.strip()
