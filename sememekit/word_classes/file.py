"""A readable file of word clusters, which models can share.

JSON with a cluster on each line, from ``write_clusters``:

::

    {"format": "sememekit word clusters", "version": 1,
    "fingerprint": "<of the vocabulary that it was written for>",
    "clusters": [
    ["苹果", "梨"],
    ["吃"]
    ]}

or text, for other clusters: ``word TAB cluster`` lines."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sememekit.errors import DataError
from sememekit.files import CLUSTERS, object_of, read_text, write_output
from sememekit.files.tables import table_rows
from sememekit.text.vocabulary import Vocabulary

FORMAT: Final = "sememekit word clusters"
VERSION: Final = 1
_SHOWN: Final = 5
_EXPECTED: Final = "expected 'word TAB cluster' lines, or JSON with \"clusters\": [[word, ...], ...]"

Placement = tuple[str, int, str]  # a word, its cluster, and its place in the file (for messages)


def write_clusters(path: Path | str, vocabulary: Vocabulary, ids: Sequence[int] | NDArray[np.integer]) -> None:
    """Write the cluster of every word, ``ids`` (V,), 0 and more, as JSON, atomically; the same clusters give the same bytes.

    Unused numbers become empty clusters. Raises DataError: not V numbers, or a negative number. Raises ConfigError and OSError
    as ``write_output``."""
    path, numbers = Path(path), np.asarray(ids, dtype=np.int64)
    if numbers.shape != (len(vocabulary),) or int(numbers.min()) < 0:
        raise DataError(
            f"word clusters {path}: {len(vocabulary)} words need as many cluster numbers, none below 0; given shape "
            f"{list(numbers.shape)}"
        )
    members: list[list[str]] = [[] for _ in range(int(numbers.max()) + 1)]
    for word, number in zip(vocabulary.tokens, numbers.tolist(), strict=True):
        members[number].append(word)
    lines = ",\n".join(json.dumps(words, ensure_ascii=False) for words in members)
    text = (
        f'{{"format": {json.dumps(FORMAT)}, "version": {VERSION},\n"fingerprint": {json.dumps(vocabulary.fingerprint)},\n'
        f'"clusters": [\n{lines}\n]}}\n'
    )
    write_output(path, text.encode(), CLUSTERS)


def read_clusters(path: Path | str, vocabulary: Vocabulary) -> NDArray[np.int64]:
    """The cluster of every word of a vocabulary, (V,) int64.

    JSON clusters are numbered in the order of the file. Clusters of a text file keep their numbers if all names are numbers
    below V; otherwise they are numbered by first occurrence. Words outside the vocabulary are ignored. Raises DataError: a file
    that cannot be read or is of another kind, a word in two clusters, a word of the vocabulary in none."""
    path = Path(path)
    text = read_text(path, lambda why: DataError(f"word clusters {why}"))
    is_json = text.lstrip()[:1] == "{" and "\t" not in text.split("\n", 1)[0]
    fingerprint, placements = _from_json(path, text) if is_json else ("", _from_lines(path, text, len(vocabulary)))
    ids = np.full(len(vocabulary), -1, dtype=np.int64)
    places: dict[str, str] = {}
    doubled = []
    for word, cluster, place in placements:
        if word in places:
            doubled.append(f"{word!r} ({places[word]} and {place})")
        places[word] = place
        if word in vocabulary:
            ids[vocabulary.id(word)] = cluster
    if doubled:
        raise DataError(f"word clusters {path}: a word belongs to one cluster; in two places: {_shorten(doubled)}")
    missing = [repr(vocabulary.token(number)) for number in np.flatnonzero(ids < 0).tolist()]
    if missing:
        other = fingerprint and fingerprint != vocabulary.fingerprint
        why = f"written for vocabulary {fingerprint}, this is {vocabulary.fingerprint}" if other else "add them to the file"
        raise DataError(
            f"word clusters {path}: {len(missing)} of the {len(vocabulary)} words of the vocabulary are in no cluster: "
            f"{_shorten(missing)}; {why}"
        )
    return ids


def _from_json(path: Path, text: str) -> tuple[str, Iterator[Placement]]:
    document = object_of(text.encode(), path, lambda why: DataError(f"word clusters {why}; {_EXPECTED}"))
    clusters = document.get("clusters")
    strings = isinstance(clusters, list) and all(
        isinstance(words, list) and all(isinstance(word, str) for word in words) for words in clusters
    )
    if not strings:
        raise DataError(f"word clusters {path}: another kind of JSON file; {_EXPECTED}")
    version = document.get("version", VERSION)
    if document.get("format", FORMAT) != FORMAT or version != VERSION:
        raise DataError(
            f'word clusters {path}: has "format" {document.get("format", FORMAT)!r}, version {version!r}; this program reads '
            f"{FORMAT!r}, version {VERSION}"
        )
    placements = ((word, number, f"cluster {number}") for number, words in enumerate(document["clusters"]) for word in words)
    return str(document.get("fingerprint", "")), placements


def _from_lines(path: Path, text: str, size: int) -> Iterator[Placement]:
    rows = []
    for number, line, cells in table_rows(text, path):
        if len(cells) != 2 or not all(cells):
            raise DataError(f"word clusters {path}:{number}: {_EXPECTED}, found {line[:80]!r}")
        rows.append((*cells, f"line {number}"))
    names = dict.fromkeys(name for _, name, _ in rows)
    allowed = {str(number) for number in range(size)}
    plain = all(name in allowed for name in names)
    numbers = {name: int(name) if plain else number for number, name in enumerate(names)}
    return ((word, numbers[name], place) for word, name, place in rows)


def _shorten(items: Sequence[str]) -> str:
    rest = len(items) - _SHOWN
    return ", ".join(items[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
