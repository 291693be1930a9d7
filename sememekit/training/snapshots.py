"""Snapshots of a run: folders of weights and of the state of training, written atomically.

Nothing is pickled: the rest is JSON, and tensors are safetensors. Tensors are written and read one by one, so that a checkpoint
needs no second copy of them, unlike ``safetensors.torch.save``. Every file is checked against its SHA-256 on loading. The run
folder (``training/checkpoint.py``) knows which snapshot is the last and which the best."""

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import safetensors
import torch
from torch import Tensor, nn

from sememekit.errors import CheckpointError
from sememekit.files import fits_seal, read_object, replace_file, sealed, to_json, write_folder

NAME: Final = re.compile(r"step-\d{8,12}(\.\d{1,6})?")
_HIDDEN: Final = re.compile(r"\.step-\d{8,12}(\.\d{1,6})?\.(stale|writing-\d+)")
_MANIFEST: Final = "manifest.json"
_PARTS: Final = ("weights.safetensors", "trainer.safetensors", "trainer.json")
WITHOUT_TRAINER: Final = ("weights.safetensors", "trainer.json")
_AGAIN: Final = "copy it again from where it came from, or evaluate the other snapshot (--which best, --which last)"
_DAMAGED: Final = "; the run folder is damaged; copy it again from where it came from"


class Snapshot(NamedTuple):
    """The state of a run at one step."""

    name: str  # such as "step-00000123"
    weights: dict[str, Tensor]  # parameters and persistent buffers by name; shared tensors under each name
    trainer: dict[str, Any]  # the result of ``Trainer.state``; empty if only weights were read
    sha256: str  # of the weights file, since names repeat between runs


def step_of(name: str) -> int:
    """The optimiser steps of the snapshot ``name``."""
    return int(name.removeprefix("step-").split(".")[0])


def snapshots_in(checkpoints: Path) -> list[str]:
    """All snapshots in a folder, the oldest first."""
    there = [entry.name for entry in checkpoints.iterdir() if entry.is_dir() and NAME.fullmatch(entry.name)]
    return sorted(there, key=lambda name: (step_of(name), int(f"{name}.0".split(".")[1])))


def whole_snapshots(checkpoints: Path) -> list[str]:
    """Return the snapshots that can be read, the oldest first."""
    whole = []
    for name in snapshots_in(checkpoints):
        with suppress(CheckpointError):
            read_snapshot(checkpoints / name, with_trainer=True)
            whole.append(name)
    return whole


def free_name(checkpoints: Path, step: int) -> str:
    """Return a free name for a snapshot of ``step``; a signal right after an epoch makes a second snapshot of a step."""
    name, number = f"step-{step:08d}", 0
    while (checkpoints / (free := f"{name}.{number}" if number else name)).exists():
        number += 1
    return free


def write_snapshot(folder: Path, model: nn.Module, trainer: Mapping[str, Any], run: Mapping[str, Any] | None = None) -> None:
    """Write the state dict of ``model``, each shared tensor once, a tree as ``flatten`` takes it, and the record of its run."""
    weights, aliases = split_shared(model.state_dict())
    tensors: dict[str, Tensor] = {}
    document = {"aliases": aliases, "state": flatten(dict(trainer), tensors, "trainer"), "run": dict(run or {})}
    contents: dict[str, bytes | Iterable[bytes | memoryview]] = {
        "weights.safetensors": tensor_pieces(weights),
        "trainer.safetensors": tensor_pieces(tensors),
        "trainer.json": to_json(document),
    }
    write_folder(folder, contents, _MANIFEST)


def remove_snapshots(checkpoints: Path, names: Iterable[str]) -> None:
    """Remove snapshots, and leftovers of killed processes under hidden names. Links are left alone."""
    for name in names:
        folder = checkpoints / name
        if folder.is_dir() and not folder.is_symlink():
            hidden = folder.with_name(f".{name}.stale")
            if hidden.exists():
                shutil.rmtree(hidden)
            folder.rename(hidden)
    for entry in list(checkpoints.iterdir()):
        if _HIDDEN.fullmatch(entry.name) and entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)


def read_snapshot(folder: Path, *, with_trainer: bool) -> Snapshot:
    """Read a snapshot and compare every file with its manifest. Raises CheckpointError: it is torn."""
    weights_sha256 = check_snapshot(folder, _PARTS if with_trainer else WITHOUT_TRAINER)
    weights = _read_tensors(folder / "weights.safetensors")
    tensors = _read_tensors(folder / "trainer.safetensors") if with_trainer else {}
    with _reading(folder / "trainer.json"):
        text = (folder / "trainer.json").read_bytes()
    try:
        document = json.loads(text)
        for alias, original in document["aliases"].items():
            weights[alias] = weights[original]
        trainer = unflatten(document["state"], tensors) if with_trainer else {}
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{folder / 'trainer.json'} is not what sememekit wrote ({error!r:.200}); {_AGAIN}") from None
    return Snapshot(folder.name, weights, trainer, weights_sha256)


def document_of(folder: Path) -> dict[str, Any]:
    """Read the state of training of a snapshot, without tensors. Raises CheckpointError: its file is missing or torn."""
    check_snapshot(folder, ("trainer.json",))
    return read_json(folder / "trainer.json")


def run_of(folder: Path) -> tuple[str, int, str]:
    """Return the id of the run that wrote a snapshot, and size and SHA-256 of the lines of metrics.jsonl at that time. Raises
    CheckpointError: as ``document_of``."""
    match document_of(folder).get("run"):
        case {"id": str(run), "metrics": {"bytes": int(size), "sha256": str(sha256)}}:
            return run, size, sha256
    raise CheckpointError(
        f"{folder / 'trainer.json'} does not say to which run and lines of metrics.jsonl it belongs; {_AGAIN}"
    )


def check_snapshot(folder: Path, files: Collection[str] = _PARTS) -> str:
    """Compare files of a snapshot with its manifest; return the weights' SHA-256. Raises CheckpointError: it is torn."""
    manifest = read_json(folder / _MANIFEST)
    if set(manifest) != set(_PARTS) or not all(isinstance(expected, str) for expected in manifest.values()):
        raise CheckpointError(f"{folder / _MANIFEST} does not list {', '.join(_PARTS)}; the checkpoint is damaged; {_AGAIN}")
    for file, expected in manifest.items():
        if file not in files:
            continue
        with _reading(folder / file), (folder / file).open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != expected:
            raise CheckpointError(
                f"{folder / file} does not match its checksum in {_MANIFEST}; it was changed or damaged after writing; {_AGAIN}"
            )
    return str(manifest["weights.safetensors"])


def split_shared(state: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return tensors stored once, and alias -> name for further names of the same memory."""
    first: dict[tuple[int, tuple[int, ...]], str] = {}
    weights, aliases = {}, {}
    for name, tensor in state.items():
        key = (tensor.data_ptr(), tuple(tensor.shape))
        if tensor.numel() and key in first:
            aliases[name] = first[key]
        else:
            first[key] = name
            weights[name] = tensor
    return weights, aliases


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn errors of reading into CheckpointError inside the block."""
    try:
        yield
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing; the checkpoint is damaged; {_AGAIN}") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror or error}); {_AGAIN}") from None


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        with _reading(path):
            return read_tensors(path)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError, RuntimeError, safetensors.SafetensorError) as error:
        if "not valid UTF-8" in str(error):  # so the library says of the name of a file
            raise CheckpointError(
                f"{path} cannot be opened, as its name is not UTF-8; rename the folder (names of old Chinese archives: "
                "convmv -f gbk -t utf8 --notest NAME)"
            ) from None
        raise CheckpointError(f"{path} holds no tensors in the safetensors format ({error}); {_AGAIN}") from None


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object of a run folder. Raises CheckpointError: it is missing or torn."""
    if not path.exists():
        raise CheckpointError(f"{path} is missing{_DAMAGED}")
    return read_object(path, lambda why: CheckpointError(why if "cannot be read" in why else why + _DAMAGED))


def read_pointer(path: Path, offer: Callable[[], str]) -> tuple[dict[str, str], list[str]]:
    """Return the names in the pointer, and the snapshots that were being written or removed.

    ``offer`` returns the advice without the file ``path``, for messages. Raises CheckpointError: it is torn, or was changed."""
    table = read_object(path, lambda why: CheckpointError(why if "ermission" in why else f"{why}; {offer()}"))
    fits = fits_seal(table)
    others = [table.pop("next", None) or [], table.pop("stale", None) or []]
    names = [*table.values(), *(name for part in others if isinstance(part, list) for name in part)]
    good = set(table) <= {"last", "best"} and all(isinstance(part, list) for part in others)
    if not good or not all(isinstance(name, str) and NAME.fullmatch(name) for name in names):
        raise CheckpointError(f"{path} names no checkpoints; it was changed after writing; {offer()}")
    if not fits:
        raise CheckpointError(f"{path} does not match its own checksum; it was changed or damaged; {offer()}")
    return table, names[len(table) :]


def write_pointer(path: Path, pointer: Mapping[str, str], **others: Iterable[str]) -> None:
    """Replace the pointer; ``others`` are ``next`` and ``stale`` names."""
    table: dict[str, Any] = {**pointer, **{key: sorted(names) for key, names in others.items() if names}}
    replace_file(path, sealed(table))


_TENSOR = "__tensor__"
_TUPLE = "__tuple__"
_INTEGER_KEYS = "__integer_keys__"


def flatten(tree: Any, tensors: dict[str, Tensor], path: str) -> Any:
    """Replace every tensor of a tree by a reference, and add the tensors to ``tensors`` under their paths.

    A tree has dicts with str or int keys, lists, tuples, tensors, numbers, strings, booleans, None (otherwise TypeError)."""
    if isinstance(tree, Tensor):
        tensors[path] = tree
        return {_TENSOR: path}
    if isinstance(tree, dict):
        plain = {str(key): flatten(value, tensors, f"{path}.{key}") for key, value in tree.items()}
        if tree and all(isinstance(key, int) for key in tree):
            return {_INTEGER_KEYS: plain}
        return plain
    if isinstance(tree, list):
        return [flatten(value, tensors, f"{path}.{number}") for number, value in enumerate(tree)]
    if isinstance(tree, tuple):
        return {_TUPLE: flatten(list(tree), tensors, path)}
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    raise TypeError(
        f"{path}: a {type(tree).__name__} cannot be stored in a checkpoint; allowed are dicts with str or int keys, lists, "
        "tuples, tensors, numbers, strings, booleans and None"
    )


def unflatten(plain: Any, tensors: Mapping[str, Tensor]) -> Any:
    """The inverse of ``flatten``."""
    if isinstance(plain, dict):
        if set(plain) == {_TENSOR}:
            return tensors[plain[_TENSOR]]
        if set(plain) == {_TUPLE}:
            return tuple(unflatten(plain[_TUPLE], tensors))
        if set(plain) == {_INTEGER_KEYS}:
            return {int(key): unflatten(value, tensors) for key, value in plain[_INTEGER_KEYS].items()}
        return {key: unflatten(value, tensors) for key, value in plain.items()}
    if isinstance(plain, list):
        return [unflatten(value, tensors) for value in plain]
    return plain


_TYPES: Final = {
    torch.int64: "I64",
    torch.float64: "F64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""Names of the types, in the order in which the library writes tensors: types of many bytes first."""


def tensor_pieces(tensors: Mapping[str, Tensor]) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a file of tensors piece by piece, equal to those from ``safetensors.torch.save``."""
    order = list(_TYPES)
    names = sorted(tensors, key=lambda name: (order.index(tensors[name].dtype), name))
    yield _header({name: tensors[name] for name in names})
    for name in names:
        if tensors[name].numel():
            yield tensors[name].detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name.

    Tensors are copied one by one, so that the file is in memory only once. No code is executed. Raises OSError,
    SafetensorError, or another error of the library for a file of another format."""
    found = {}
    with safetensors.safe_open(path, framework="pt") as opened:
        names = list(opened.keys())
    for name in names:
        with safetensors.safe_open(path, framework="pt") as opened:  # its pages of the file leave memory with it
            found[name] = opened.get_tensor(name).clone()
    return found


def _header(tensors: Mapping[str, Tensor]) -> bytes:
    table: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        table[name] = {"dtype": _TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
