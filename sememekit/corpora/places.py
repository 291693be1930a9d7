"""Files of a corpus by path: a file, a folder, a pattern with ``*``, or an fsspec URL of a file, folder or pattern."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import glob, has_magic
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from sememekit.corpora.sources import SPLITS, CorpusFile, splits_in_name
from sememekit.errors import ConfigError, DataError, SememekitError
from sememekit.files import PACKED, needed, packing_of, typed, unpacked_name, warn

ENDINGS = (".txt", ".jsonl", ".ndjson", ".parquet")  # suffixes of the files of a folder, compressed or not, in either case

_SHOWN = 5  # most names of a folder in a message


class RemoteFile(NamedTuple):
    """A file of fsspec with the attributes of a ``Path`` that corpus readers need; ``str`` is its URL."""

    url: str

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        return PurePosixPath(self.url).name

    def absolute(self) -> "RemoteFile":
        return self

    @contextmanager
    def open(self, mode: str = "rb") -> "Iterator[_Stream]":
        """Open the file as a stream. Raises DataError: the store does not deliver the file."""
        with _asking(self.url):
            opened = _file_system(self.url)[0].open(self.url, mode)
        with opened as stream:
            yield _Stream(stream, self.url)

    def stamp(self) -> str:
        """The store's stamp of the content, which changes with the content."""
        with _asking(self.url):
            return str(_file_system(self.url)[0].ukey(self.url))


class _Stream(NamedTuple):
    """An open file of a store."""

    stream: Any
    url: str

    def read(self, size: int = -1) -> bytes:
        with _asking(self.url):
            found: bytes = self.stream.read(size)
        return found


Source = Path | RemoteFile


def is_url(place: object) -> bool:
    """Return whether a place is a URL for fsspec."""
    return "://" in str(place)


def files_of_place(place: str) -> list[Source]:
    """Return the files of a place by name: in a folder the files with a suffix of ``ENDINGS``. If a text exists both compressed
    and plain, the plain file is taken, with a RunWarning.

    Raises DataError: there are none. Raises ConfigError: a URL that fsspec cannot read here."""
    found: list[Source] = []
    if is_url(place):
        with _asking(place):
            system, path = _file_system(place)
            if has_magic(place):
                names = system.glob(path)
            else:
                names = [path] if system.isfile(path) else [name for name in system.find(path, maxdepth=1) if _is_text(name)]
            found = [RemoteFile(system.unstrip_protocol(name)) for name in sorted(names)]
    elif Path(place).is_dir():
        found = [path for path in sorted(Path(place).iterdir()) if path.is_file() and _is_text(path.name)]
    elif has_magic(place) and not Path(place).exists():
        found = [Path(name) for name in sorted(glob(place, recursive=True)) if Path(name).is_file()]
    elif Path(place).is_file():
        found = [Path(place)]
    if not found:
        raise DataError(_without_text(place))
    return without_twins(found)


def without_twins(files: Sequence[Source]) -> list[Source]:
    """Leave out files that also exist uncompressed or in another compression; a RunWarning names them."""
    best: dict[str, Source] = {}
    for path in sorted(files, key=lambda path: ("", *PACKED).index(packing_of(path.name))):
        best.setdefault(unpacked_name(str(path)), path)
    kept = frozenset(best.values())
    if left_out := [path for path in files if path not in kept]:
        others = f" and {len(left_out) - 1} more" if len(left_out) > 1 else ""
        read = best[unpacked_name(str(left_out[0]))].name
        warn(f"{left_out[0]}{others}: left out, for {read} beside it is taken to be the same")
    return [path for path in files if path in kept]


def is_folder(place: str) -> bool:
    """Return whether a place that has files is a folder. Raises as ``files_of_place``."""
    if not is_url(place):
        return Path(place).is_dir()
    with _asking(place):
        system, path = _file_system(place)
        return not has_magic(place) and not system.isfile(path)


def splits_of_folder(folder: str, files: Sequence[Source], *, needs_train: bool) -> list[CorpusFile]:
    """The files of a folder that has a file for each split, found by parts of their names (``SPLIT_NAMES``); maybe none.

    If a split has several files, ``train.txt`` (or ``valid.txt``, ``test.txt``, compressed or not) is taken; without it, names
    that differ only in digits are parts of one split. Raises DataError: a file is ambiguous, a needed train is absent, or files
    belong to no split and no file has such an exact name."""
    named = {split: [path for path in files if split in splits_in_name(path.name)] for split in SPLITS}
    others = [path for path in files if not splits_in_name(path.name)]
    if len(others) == len(files):
        return []
    exact = {split: [path for path in named[split] if unpacked_name(path.name) == f"{split}.txt"] for split in SPLITS}
    remedy = (
        "name the files with --train FILE, --valid FILE and --test FILE; to divide all of them as one text give a pattern: "
        + typed(f"{folder.rstrip('/')}/*")
    )
    found = []
    for split in SPLITS:
        chosen = exact[split] or named[split]
        if len({re.sub(r"\d+", "0", path.name) for path in chosen}) > 1 or any(
            len(splits_in_name(path.name)) > 1 for path in chosen
        ):
            names = ", ".join(path.name for path in chosen[:5])
            raise DataError(f"{folder}: it is not clear which file is the split {split!r} ({names}); {remedy}")
        found += [CorpusFile(split, path) for path in chosen]
    if needs_train and not named["train"]:
        raise DataError(
            f"{folder}: {found[0].path.name} is the split {found[0].split!r}, and no file has 'train' in its name; {remedy}"
        )
    if others and not exact["train"] and (needs_train or not any(exact.values())):
        raise DataError(
            f"{folder}: {found[0].path.name} is the split {found[0].split!r}, and {len(others)} are of no split, such as "
            f"{others[0].name}; {remedy}"
        )
    return found


def _without_text(place: str) -> str:
    """Return the message for a place without a file; for a folder, its content and the expected names."""
    if place == "-" or (Path(place).exists() and not Path(place).is_dir()):
        return f"{place}: a pipe or a device, which is read but once, and this text is read several times; write it into a file"
    if not Path(place).is_dir():
        wanted = f"a file, a pattern such as 'part-*.txt', a URL, or a folder of {', '.join(ENDINGS)} files is needed"
        return f"{place}: no such file, and no file that fits; {wanted}"
    inside = sorted(Path(place).iterdir())
    names = [f"{path.name}/" if path.is_dir() else path.name for path in inside]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    has = f"it has {', '.join(names[:_SHOWN])}{more}" if names else "it is empty"
    below = next((path for path in inside if path.is_dir() and not path.name.startswith(".")), None)
    remedy = (
        f"give a folder inside it, such as {typed(below)}" if below else f"give a file itself: {typed(Path(place) / 'FILE')}"
    )
    return (
        f"{place}: no file of this folder is read as text ({has}); names must end in {', '.join(ENDINGS)} (compressed: and "
        f"{', '.join(PACKED)}), and train, valid or test in a name makes the file that split; rename the files, or {remedy}"
    )


def _is_text(name: str) -> bool:
    return unpacked_name(name).lower().endswith(ENDINGS)


def _file_system(url: str) -> tuple[Any, str]:
    found: tuple[Any, str] = needed("fsspec", f"{url}: reading URLs", "sememekit[remote]").core.url_to_fs(url)
    return found


@contextmanager
def _asking(url: str) -> Iterator[None]:
    """Turn the errors of a store inside the block into ours."""
    try:
        yield
    except SememekitError:
        raise
    except ImportError as error:  # fsspec says which package the protocol needs
        name = getattr(error.__cause__, "name", None) or getattr(error, "name", None) or "the package"
        raise ConfigError(f"{url}: {error}; run: pip install {name}") from None
    except FileNotFoundError:
        raise DataError(f"{url}: cannot be read: there is no such file") from None
    except Exception as error:  # stores raise classes of their own: no network, no key, no such bucket
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise DataError(
            f"{url}: cannot be read: {why:.300}; see that the store is reached from here and its keys are set, or fetch the "
            "files and name them by their paths"
        ) from None
