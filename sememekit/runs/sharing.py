"""Share a run as a folder, and read it back: a card, weights as safetensors, and the other files of the run (huggingface.md).

``model.safetensors`` has each shared tensor once, ``run.json`` their further names, format and snapshot, ``manifest.json`` the
SHA-256 of all files; the card may be changed."""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import safetensors.torch

from sememekit.config import Record
from sememekit.errors import CheckpointError, ConfigError
from sememekit.files import (
    needed,
    object_of,
    read_bytes,
    read_object,
    refuse_odd_files,
    remove_leftovers,
    replace_file,
    sync_to_disk,
    to_json,
    write_folder,
)
from sememekit.runs.build import build_task
from sememekit.runs.run import Run, Which, load_weights
from sememekit.training import RunFolder
from sememekit.training.checkpoint import PUSHED
from sememekit.training.manifest import KEPT
from sememekit.training.snapshots import NAME, split_shared, step_of

HUB: Final = "hf://"  # prefix of ``owner/name`` for a repository of the Hugging Face hub
CARD: Final = "README.md"
FORMAT: Final = 1
_MANIFEST: Final = "manifest.json"
_FOLDERS: Final = re.compile(r"""(?<![^\s'"=:])(?:~|\.\.?)?/(?:[^\s'"/]+/)*(?=[^\s'"/])""")
"""The folders of a path that is absolute or begins with ``~``, ``.`` or ``..``, in a text after a blank, = or FORMAT:."""
_WEIGHTS: Final = "model.safetensors"
_OWN: Final = (PUSHED, _WEIGHTS, "metrics.jsonl")
_AGAIN: Final = "fetch or copy the folder again, or ask who made it"


class ShareReport(Record):
    """The files that were pushed or pulled."""

    run: str
    target: str
    """run, target: the folder of the run, and the other place."""
    snapshot: str
    """The snapshot of the weights."""
    bytes: int
    """Size of all files."""
    remarks: tuple[str, ...] = ()
    """Points that the owner should check."""


def push_run(run: Run | Path | str, target: str, card: str, *, which: Which = "best", public: bool = False) -> ShareReport:
    """Write a run with its card to a new folder, or to a repository of the Hugging Face hub (``hf://owner/name``), which is
    created if absent, open to all with ``public``. Paths in the plan lose their folders. Raises ConfigError: ``target`` is
    taken, or the hub refuses. Raises CheckpointError: as ``Run.open``."""
    opened = Run.open(run, which=which, device="cpu")
    contents, snapshot = _contents(opened, which)
    files = {**contents, CARD: card.encode()}
    if target.startswith(HUB):
        _upload(target, files, public=public)
    else:
        folder = Path(target)
        if folder.exists():
            raise ConfigError(f"push: {folder} is there already; give another folder, or delete it first")
        write_folder(folder, files, _MANIFEST)
    size = sum(map(len, files.values()))
    return ShareReport(run=str(opened), target=target, snapshot=snapshot, bytes=size, remarks=tuple(_remarks(opened)))


def pull_run(source: str, out: Path) -> ShareReport:
    """Make a run folder from the output of ``push_run``: a folder or a hub repository (``hf://owner/name``).

    The run can be evaluated, explained, and used as a start (``train --from``), but not resumed, since the state of the
    optimiser is not shared. No code of the folder is executed. Raises ConfigError: ``out`` is taken, or the hub refuses. Raises
    CheckpointError: no such folder, or a torn one."""
    if out.exists():
        raise ConfigError(f"pull: {out} is there already; give another --out, or delete it first")
    folder = _fetched(source)
    if not folder.exists():
        raise CheckpointError(f"{source} does not exist; give a folder that 'sememekit push' wrote, or hf://owner/name")
    if not (folder / PUSHED).is_file():
        raise _torn(f"{source} was not written by 'sememekit push' (it has no {PUSHED})")
    files = _checked(folder)
    about = object_of(files[PUSHED], f"{source}/{PUSHED}", _torn)
    if about.get("format") != FORMAT:
        raise CheckpointError(f"{source}/{PUSHED} is not of the format {FORMAT}, which this sememekit reads; update sememekit")
    if not NAME.fullmatch(str(about.get("snapshot"))) or not isinstance(about.get("aliases"), dict):
        raise _torn(f"{source}/{PUSHED} names no snapshot")
    beside = out.with_name(f".{out.name}.pulling-{os.getpid()}")
    remove_leftovers(out.parent, f".{out.name}.pulling-", "")
    try:
        _unpack(files, about, beside, source)
        beside.rename(out)
        sync_to_disk(out.parent)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return ShareReport(run=str(out), target=source, snapshot=str(about["snapshot"]), bytes=sum(map(len, files.values())))


def _contents(run: Run, which: Which) -> tuple[dict[str, bytes], str]:
    """Return all files except the card, and the name of the snapshot."""
    snapshot = run.folder.load(which, with_trainer=False)
    weights, aliases = split_shared(snapshot.weights)
    about = {"format": FORMAT, "snapshot": snapshot.name, "which": which, "aliases": aliases}
    _ = run.parts  # files that do not belong together are not passed on
    lines = [record for record in run.folder.metrics() if record["kind"] != "StepReport"]
    return {
        **run.folder.kept(),
        "plan.json": to_json(without_folders(run.folder.plan)),
        "versions.json": to_json({key: value for key, value in run.folder.versions.items() if key != "format"}),
        "metrics.jsonl": "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in lines).encode(),
        PUSHED: to_json(about),
        _WEIGHTS: safetensors.torch.save(weights, metadata={"format": "pt"}),
    }, snapshot.name


def without_folders(value: Any) -> Any:
    """Return a plan whose paths are file names alone, also inside commands, so that folders and user names stay private."""
    if isinstance(value, Mapping):
        return {key: without_folders(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_folders(one) for one in value]
    return _FOLDERS.sub("", value) if isinstance(value, str) else value


def _remarks(run: Run) -> Iterator[str]:
    yield f"look through {CARD} and name a licence in it before others see it"
    yield f"vocabulary.tsv has every word of the text that the run learned from, with its count ({run.signature.dataset})"
    if run.stored_graph is not None:
        names = ", ".join(source.name for source in run.stored_graph.lexicons)
        yield f"graph.json has the senses and sememes of these words out of {names}; pass it on only if its licence allows that"


def _upload(target: str, files: Mapping[str, bytes], *, public: bool) -> None:
    name, remedy = _repository(target), "log in with 'hf auth login' and check owner and name, or push to a folder"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        write_folder(folder, files, _MANIFEST)
        with _hub(f"push {target}", remedy) as hub:
            hub.HfApi().create_repo(name, private=not public, exist_ok=True)
            hub.HfApi().upload_folder(repo_id=name, folder_path=folder, commit_message="A run of sememekit")


def _fetched(source: str) -> Path:
    """Return the folder of a source; a hub repository is in the cache of huggingface_hub."""
    if not source.startswith(HUB):
        return Path(source)
    name, remedy = _repository(source), "check owner and name, and log in with 'hf auth login' where the repository is private"
    with _hub(f"pull {source}", remedy) as hub:
        return Path(hub.snapshot_download(name))


@contextmanager
def _hub(use: str, remedy: str) -> Iterator[Any]:
    """Yield huggingface_hub, and turn its errors inside the block into ConfigError."""
    hub = needed("huggingface_hub", use)
    try:
        yield hub
    except Exception as error:
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        raise ConfigError(f"{use}: the hub refused ({type(error).__name__}: {first}); {remedy}") from error


def _repository(target: str) -> str:
    name = target.removeprefix(HUB)
    if name.count("/") != 1 or not all(name.split("/")):
        raise ConfigError(f"{target}: write hf://owner/name, or give a folder")
    return name


def _checked(folder: Path) -> dict[str, bytes]:
    """The files of a pushed folder, checked by its manifest; CheckpointError if a file is missing or was changed."""
    refuse_odd_files(folder, _torn)
    manifest = read_object(folder / _MANIFEST, _torn)
    wanted = {*_OWN, "plan.json", "versions.json", "vocabulary.tsv", "data.json"}
    if not wanted <= manifest.keys() <= {*wanted, *KEPT, CARD}:
        raise _torn(f"{folder / _MANIFEST} lists other files than 'sememekit push' writes")
    files = {}
    for name, expected in manifest.items():
        if name == CARD:
            continue
        files[name] = read_bytes(folder / name, _torn)
        if hashlib.sha256(files[name]).hexdigest() != expected:
            raise _torn(f"{folder / name} does not match its checksum in {_MANIFEST}; it was changed or damaged")
    return files


def _torn(why: str) -> CheckpointError:
    return CheckpointError(f"{why}; {_AGAIN}")


def _unpack(files: Mapping[str, bytes], about: Mapping[str, Any], out: Path, source: str) -> None:
    plan, versions = (object_of(files[name], f"{source}/{name}", _torn) for name in ("plan.json", "versions.json"))
    kept = {name: files[name] for name in KEPT if name in files}
    folder = RunFolder.create(out, plan, versions, kept)
    run = Run.open(out, device="cpu")
    task = build_task(run.plan, *run.parts)
    try:
        weights = safetensors.torch.load(files[_WEIGHTS])
        weights |= {alias: weights[name] for alias, name in about["aliases"].items()}
    except (safetensors.SafetensorError, KeyError, TypeError) as error:
        raise _torn(f"{source}/{_WEIGHTS} does not hold the weights of the run ({error})") from None
    load_weights(task, weights, Path(source), _AGAIN)
    replace_file(out / "metrics.jsonl", files["metrics.jsonl"])  # first, as the snapshot holds its hash
    folder.save(step_of(str(about["snapshot"])), task, {}, best=True)
