"""Checksums of a folder made to fit its files again, as somebody does who changes a file on purpose."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from sememekit.files import to_json


def fit(folder: Path, but: Path | None = None) -> None:
    """Write every checksum below ``folder`` anew, the innermost first: of splits, metrics, snapshots, pointers, runs and pushed
    runs. Fingerprints inside a file (of a vocabulary, of chunks, of a graph) stay: they say which files belong together. A
    file that cannot be read any more stays as it is, and so does the file ``but`` if it lists checksums of others."""
    files = sorted(folder.rglob("*.json"), key=lambda path: (-len(path.parts), path.name != "trainer.json", path.as_posix()))
    for path in files:
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            tree = json.loads(path.read_bytes()) if path != but or path.name not in _FITTED else {}
            fitted = _FITTED.get(path.name, _seal)
            if (found := fitted(path, tree)) is not None:
                path.write_bytes(to_json(found))
    for path in folder.rglob("signature.sha256"):
        if path == but:
            continue
        path.write_text(f"{sha256(path.with_name('signature.json'))}  signature.json\n", encoding="ascii")


def sha256(*paths: Path) -> str:
    """Return the SHA-256 of the bytes of files, one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _trainer(path: Path, found: Any) -> Any:
    """The lines of metrics.jsonl that a snapshot was written beside: as many as before."""
    stated = found["run"]["metrics"]
    raw = (path.parents[2] / "metrics.jsonl").read_bytes()
    if hashlib.sha256(raw[: stated["bytes"]]).hexdigest() == stated["sha256"]:
        return None
    stated.update(bytes=len(raw), sha256=hashlib.sha256(raw).hexdigest())
    return found


def _manifest(path: Path, found: Any) -> Any:
    listed = found.get("files", found)
    for name in listed:
        with suppress(OSError):
            listed[name] = sha256(path.parent / name)
    return found


def _seal(path: Path, found: Any) -> Any:
    """Return ``found`` with its own checksum made anew, or None if it has none."""
    stated = found.pop("sha256", None)
    return None if stated is None else {**found, "sha256": hashlib.sha256(to_json(found)).hexdigest()}


def _signature(path: Path, found: Any) -> None:
    """A signature is written as it stands: its bytes have a form of their own."""
    text, kinds = path.read_bytes(), ("offsets", "labels", "texts")
    for split, summary in found["splits"].items():
        with suppress(OSError):
            text = text.replace(summary["sha256"].encode(), sha256(path.with_name(f"{split}.bin")).encode())
    for split, summary in ((found["examples"] or {}).get("splits") or {}).items():
        beside = [path.with_name(f"{split}.{kind}.{end}") for kind, end in zip(kinds, ("bin", "bin", "jsonl"), strict=True)]
        here = sha256(*(one for one in beside if one.is_file()))
        text = text.replace(summary["sha256"].encode(), here.encode())
    path.write_bytes(text)


_FITTED: dict[str, Callable[[Path, Any], Any]] = {
    "trainer.json": _trainer,
    "manifest.json": _manifest,
    "signature.json": _signature,
}


Place = tuple[str | int, ...]
"""Keys and numbers from the top of a JSON tree to a value."""


def places_in(tree: Any, kinds: tuple[type, ...], at: Place = ()) -> Iterator[Place]:
    """The places of all values of these kinds; of lists those that are empty."""
    if isinstance(tree, kinds) and (not isinstance(tree, list) or not tree):
        yield at
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inner:
        yield from places_in(value, kinds, (*at, key))


def shape_of(place: Place) -> str:
    """A place without numbers of lists and without keys that are no identifiers of ours."""
    return ".".join("*" if isinstance(part, int) or not part.replace(".", "").isidentifier() else part for part in place)


def value_at(tree: Any, place: Place) -> Any:
    for part in place:
        tree = tree[part]
    return tree


def with_value(tree: Any, place: Place, value: Any) -> Any:
    """A copy of a tree with another value at a place."""
    if not place:
        return value
    copy: Any = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[place[0]] = with_value(tree[place[0]], place[1:], value)
    return copy
