"""The file of a sememe graph: one JSON document with a word on each line, so that grep and diff work.

::

    {"format": "sememekit sememe graph", "version": 1,
    "vocabulary": "<fingerprint>",
    "lexicons": [{"name": "open:lexicon", "sha256": "..."}],
    "history": [],
    "words": [
    {"word": "数", "source": "open:lexicon", "senses": [{"label": "n number", "sememes": ["number|数"]}]}
    ],
    "fingerprint": "<SHA-256 of all bytes before this line>",
    "structure": [
    {"word": "数", "senses": [[[0, "root"]]]}
    ],
    "structure_fingerprint": "<SHA-256 of all bytes between these two lines>"
    }

The part ``structure`` exists if a lexicon has definitions that are trees. For each sense of such words it has depth and role of
each sememe in the order above (``null`` if not found, ``[]`` for a sense without definition). The fingerprint does not cover
this part, so older versions still read the file."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sememekit.errors import GraphError
from sememekit.files import object_of, read_text, typed
from sememekit.sememes.definitions import Place
from sememekit.sememes.format_guess import likely_format
from sememekit.sememes.word_entry import LexiconSource, SenseEntry, WordEntry

FORMAT = "sememekit sememe graph"
VERSION = 1

Records = tuple[tuple[WordEntry, ...], str, tuple[LexiconSource, ...], tuple[str, ...]]
"""The content of a graph file as ``SememeGraph`` takes it: words, the fingerprint of the vocabulary, lexicons, history."""


def render_graph(
    entries: Sequence[WordEntry], vocabulary_fingerprint: str, lexicons: Sequence[LexiconSource], history: Sequence[str]
) -> str:
    """Return the text of the file before its fingerprint, which is the hash of this text."""
    senses = ([{"label": sense.label, "sememes": list(sense.sememes)} for sense in entry.senses] for entry in entries)
    words = ({"word": entry.word, "source": entry.source, "senses": own} for entry, own in zip(entries, senses, strict=True))
    lines = ",\n".join(map(_dump, words))
    return (
        f'{{"format": {_dump(FORMAT)}, "version": {VERSION},\n'
        f'"vocabulary": {_dump(vocabulary_fingerprint)},\n'
        f'"lexicons": {_dump([vars(lexicon) for lexicon in lexicons])},\n'
        f'"history": {_dump(list(history))},\n'
        f'"words": [\n{lines}\n],\n'
    )


def render_structure(entries: Iterable[WordEntry]) -> str:
    """Return the part of the file with the places of sememes in definitions; empty without any."""
    words = [
        _dump({"word": entry.word, "senses": [[place and list(place) for place in sense.places] for sense in entry.senses]})
        for entry in entries
        if any(sense.places for sense in entry.senses)
    ]
    return '"structure": [\n' + ",\n".join(words) + "\n]," if words else ""


def parse_graph(path: Path, data: str = "") -> tuple[Records, str, str]:
    """Return the content of the file, its fingerprint, and its structure's fingerprint ("" without one); messages name
    ``data``. Raises GraphError: absent, torn, newer than this program, or another kind of file."""
    again = f"build it again: {_build('FORMAT:PATH', data, path if data and not path.is_dir() else 'FILE')}"
    text = read_text(path, lambda why: GraphError(f"sememe graph {why}; {again}"))
    if text.strip() and not text.lstrip().startswith("{"):
        build = _build(f"{likely_format(path)}:{path}", data, path.with_suffix(".graph"))
        raise GraphError(
            f"sememe graph {path}: not a graph of build-sememe-graph; if it is a lexicon, build a graph from it: {build}"
        )
    document = object_of(text.encode(), path, lambda why: GraphError(f"sememe graph {why}; {again}"))
    if document.get("format") != FORMAT:
        raise GraphError(f'sememe graph {path}: another kind of JSON file, without "format": "{FORMAT}"; {again}')
    version = document.get("version")
    if version != VERSION:
        raise GraphError(
            f"sememe graph {path}: has format version {version!r}, and this program reads version {VERSION}; "
            f"use the sememekit that wrote it, or {again}"
        )
    try:
        places = {_text(one["word"]): _list(one["senses"]) for one in _list(document.get("structure", []))}
        records = (
            tuple(_entry_from_json(entry, places) for entry in _list(document["words"])),
            _text(document["vocabulary"]),
            tuple(LexiconSource(_text(one["name"]), _text(one["sha256"])) for one in _list(document["lexicons"])),
            tuple(_text(one) for one in _list(document["history"])),
        )
        return records, _text(document["fingerprint"]), _text(document.get("structure_fingerprint", ""))
    except (KeyError, TypeError, IndexError) as error:
        raise GraphError(f"sememe graph {path}: a part is missing or of the wrong kind: {error}; {again}") from None


def _build(source: str, data: str, out: Path | str) -> str:
    return typed("sememekit", "build-sememe-graph", "--source", source, "--data", data or "DATA", "--out", out)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _entry_from_json(value: Any, places: Mapping[str, list[Any]]) -> WordEntry:
    word, senses = _text(value["word"]), _list(value["senses"])
    known = places.get(word, [])
    entries = []
    for number, sense in enumerate(senses):
        sememes = tuple(_text(name) for name in _list(sense["sememes"]))
        at = _list(known[number]) if number < len(known) else []
        entries.append(SenseEntry(sememes, _text(sense["label"]), _places(at, len(sememes))))
    return WordEntry(word, _text(value["source"]), tuple(entries))


def _places(at: list[Any], count: int) -> tuple[Place | None, ...]:
    """Return the places of sememes; () unless each sememe has one, and the structure's fingerprint then refuses the file."""
    if len(at) != count:
        return ()
    return tuple(None if one is None else Place(_number(one[0]), _text(one[1])) for one in at)


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"expected a depth of 0 or more, found {value!r:.40}")
    return value


def _checked(kind: type, what: str, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"expected {what}, found {value!r:.40}")
    return value


_text, _list = partial(_checked, str, "a text"), partial(_checked, list, "a list")
