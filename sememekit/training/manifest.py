"""The manifest of a run folder: the SHA-256 of every file that training does not change.

Snapshots have separate manifests. This manifest binds vocabulary, graph, clusters, chunks, plan and data signature together,
since a file of another run could silently change results."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sememekit.errors import CheckpointError
from sememekit.files import has_sha256, opening, read_object, replace_file, to_json

MANIFEST: Final = "manifest.json"
EXTENDED: Final = "extended.json"  # file with the words that were added to a run without training
KEPT: Final = (
    *("vocabulary.tsv", "train-counts.txt", "graph.json", "clusters.json", "chunks.tsv"),
    *("sentencepiece.model", "pieces.json", "encoder.json", "lexicon.txt", "augment.jsonl", "data.json", EXTENDED),
)
"""All fixed files of a run beside plan, versions, snapshots and metrics."""
_ABSENT: Final = "absent"  # placeholder of a SHA-256 while a file is being added
FIXED: Final = (*KEPT, "plan.json", "versions.json")


def hashes(contents: Mapping[str, bytes]) -> dict[str, str]:
    """Return name -> SHA-256 of the content."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}


def write_manifest(folder: Path, files: Mapping[str, str]) -> None:
    """Replace the manifest by one of ``files``, name -> SHA-256."""
    replace_file(folder / MANIFEST, to_json({"files": dict(files)}))


def read_manifest(folder: Path) -> dict[str, str]:
    """Return name -> SHA-256; for a file being replaced, two with a blank between. Raises CheckpointError: it is torn."""
    path = folder / MANIFEST
    found = read_object(path, lambda why: CheckpointError(f"{why}; {remedy(folder)}")).get("files")
    if not isinstance(found, dict) or not all(isinstance(one, str) and Path(name).name == name for name, one in found.items()):
        raise CheckpointError(f"{path} lists no files; it was changed after writing; {remedy(folder)}")
    return found


def check_manifest(folder: Path) -> None:
    """Compare every fixed file of a run with the manifest. CheckpointError: one is missing, was changed, or was added."""
    if not (folder / MANIFEST).is_file():
        raise CheckpointError(f"{folder / MANIFEST} is missing; {remedy(folder)}")
    listed = read_manifest(folder)
    for name, expected in listed.items():
        path = folder / name
        with opening(path, CheckpointError):
            if not path.is_file() and _ABSENT in expected.split():
                continue
            if not path.is_file():
                raise CheckpointError(f"{path} is missing, and {MANIFEST} lists it; {remedy(folder)}")
            good = any(has_sha256([path], one) for one in expected.split())
        if not good:
            raise CheckpointError(
                f"{path} does not match its checksum in {MANIFEST}; it was changed, damaged or taken from another run after "
                f"writing; {remedy(folder)}"
            )
    for name in FIXED:
        if name not in listed and (folder / name).exists():
            raise CheckpointError(
                f"{folder / name} is no file of this run: {MANIFEST} does not list it; put it aside: "
                f"mv {folder / name} {folder / name}.aside"
            )


def replace_listed(folder: Path, name: str, content: bytes) -> None:
    """Replace or add a fixed file and its line of the manifest; a kill leaves the folder in the old or the new state."""
    listed = read_manifest(folder)
    new = hashlib.sha256(content).hexdigest()
    write_manifest(folder, {**listed, name: " ".join(dict.fromkeys([*listed.get(name, _ABSENT).split(), new]))})
    replace_file(folder / name, content)
    write_manifest(folder, {**listed, name: new})


def write_run_manifest(folder: Path | str) -> None:
    """Write the manifest of a run from its files, after one of them was changed on purpose. Raises CheckpointError: ``folder``
    is no run folder, or its manifest is torn."""
    folder = Path(folder)
    if not (folder / "plan.json").is_file():
        raise CheckpointError(f"{folder} is no run folder (it has no plan.json); give one that 'sememekit train --out' wrote")
    names = {*FIXED, *(read_manifest(folder) if (folder / MANIFEST).exists() else ())}
    write_manifest(folder, hashes({name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}))


def remedy(folder: Path) -> str:
    """Return the advice for a run folder whose files do not belong together."""
    return (
        "copy the folder again from where it came from; or, if you changed it on purpose, write the manifest anew: "
        f"python -c \"from sememekit.training.manifest import write_run_manifest as w; w('{folder}')\""
    )
