"""A run on disk: what was asked for, and snapshots of where it stands.

    RUN/
      plan.json            the resolved plan, every setting spelled out
      versions.json        of sememekit, Python, torch, numpy; the machine; the format of this folder
      vocabulary.tsv       the words
      graph.json           the sememe graph, where the run has one
      data.json            the signature of the prepared data
      metrics.jsonl        one line a report
      checkpoints/
        pointer.json       which snapshot is the last and which the best
        step-00000123/     weights.safetensors, trainer.safetensors, trainer.json, manifest.json

A snapshot appears by one rename and the pointer moves by another, so a run killed at any moment still has its last whole one.
Nothing is pickled: tensors are safetensors, the rest is JSON, and every file is checked against its SHA-256 on loading.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

import safetensors
import safetensors.torch
from torch import Tensor, nn

from sememekit.errors import CheckpointError
from sememekit.text import Signature
from sememekit.training.files import replace_file, to_json, write_bytes, write_folder
from sememekit.training.state_tree import flatten, unflatten

FORMAT = 1
_SNAPSHOT = re.compile(r"step-\d{8}")
_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Snapshot:
    """Where a run stood.

    Attributes:
        name: such as "step-00000123".
        weights: parameters and persistent buffers by name; shared ones under each of their names.
        trainer: everything else that resuming needs, as ``Trainer.state`` gave it; empty when only weights were asked for.
    """

    name: str
    weights: dict[str, Tensor]
    trainer: dict[str, Any]


@final
class RunFolder:
    """The folder of one run. ``create`` for a new one, ``open`` for one that is there."""

    def __init__(self, path: Path, plan: dict[str, Any], versions: dict[str, Any]) -> None:
        self.path = path
        self.plan = plan
        self.versions = versions

    @classmethod
    def create(cls, path: Path, plan: Mapping[str, Any], versions: Mapping[str, Any], files: Mapping[str, bytes]) -> RunFolder:
        """Start a run folder.

        Args:
            path: must not exist, or be a folder that is empty or that a process killed in here left behind.
            plan: the resolved plan.
            versions: of the software; the format of the folder is added.
            files: further files that never change: vocabulary, graph, data signature.

        Raises:
            CheckpointError: when something is there already.
        """
        ours = {*files, "versions.json", "checkpoints", ".plan.json.writing"}
        if path.exists() and (not path.is_dir() or any(entry.name not in ours for entry in path.iterdir())):
            raise CheckpointError(f"{path} exists already; continue it with --resume, choose another --out, or delete it first")
        path.mkdir(parents=True, exist_ok=True)
        stamped = {**versions, "format": FORMAT}
        for name, content in files.items():
            write_bytes(path / name, content)
        write_bytes(path / "versions.json", to_json(stamped))
        (path / "checkpoints").mkdir(exist_ok=True)
        # The plan comes last: a folder without one was never a run.
        replace_file(path / "plan.json", to_json(plan))
        return cls(path, dict(plan), stamped)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open the folder of a run.

        Raises:
            CheckpointError: when it is not one, or when a newer sememekit wrote it.
        """
        if not (path / "plan.json").is_file():
            what = "does not exist" if not path.exists() else "is no run folder (it has no plan.json)"
            raise CheckpointError(f"{path} {what}; 'sememekit train --out {path} ...' makes one")
        plan, versions = (_read_json(path / name) for name in ("plan.json", "versions.json"))
        written = versions.get("format")
        if written != FORMAT:
            raise CheckpointError(
                f"{path} has format {written!r} and this sememekit reads format {FORMAT}; use the version that wrote it "
                f"({versions.get('sememekit', 'unknown')})"
            )
        return cls(path, plan, versions)

    def file(self, name: str) -> Path:
        """One of the files that never change."""
        return self.path / name

    def data_signature(self) -> Signature:
        """How the data of the run were made.

        Raises:
            CheckpointError: when the copy in the run folder cannot be read.
        """
        path = self.file("data.json")
        try:
            return Signature.model_validate_json(path.read_bytes())
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise CheckpointError(f"{path} cannot be read ({reason}); the run folder is torn") from None

    def replace_plan(self, plan: Mapping[str, Any]) -> None:
        """Record what a resumed run may change: how long it goes on, where it computes."""
        if dict(plan) != self.plan:
            replace_file(self.path / "plan.json", to_json(plan))
            self.plan = dict(plan)

    @property
    def _checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def pointer(self) -> dict[str, str]:
        """The names of the snapshots "last" and "best"; a key is missing as long as there is none."""
        path = self._checkpoints / "pointer.json"
        names = _read_json(path) if path.exists() else {}
        if not all(isinstance(name, str) and _SNAPSHOT.match(name) and "/" not in name for name in names.values()):
            raise CheckpointError(f"{path} names no checkpoints; it was changed after writing")
        return names

    def save(self, step: int, model: nn.Module, trainer: Mapping[str, Any], *, best: bool) -> str:
        """Write a snapshot, point to it, and remove snapshots that nothing points to any more.

        Args:
            step: optimiser steps so far; it names the snapshot.
            model: its state dict is stored, each shared tensor once.
            trainer: a tree as ``flatten`` takes it.
            best: whether it is the best so far, too.

        Returns:
            the name of the snapshot.
        """
        name = self._write(step, model, trainer)
        pointer = {**self.pointer(), "last": name}
        if best:
            pointer["best"] = name
        self._point(pointer)
        return name

    def revise(self, name: str, model: nn.Module, trainer: Mapping[str, Any] | None = None) -> str:
        """Put another model in the place of the one in a snapshot; its state of training stays, unless another is given.

        A new snapshot is written, and one rename lets every pointer to the old one point to it: at no moment is there none.

        Args:
            name: a snapshot that "last" or "best" points to.
            model: what to store.
            trainer: the state of training in the place of the one that the snapshot has; None keeps it.

        Returns:
            the name of the new snapshot.
        """
        pointer = self.pointer()
        which: Literal["last", "best"] = "last" if pointer.get("last") == name else "best"
        state = self.load(which, with_trainer=True).trainer if trainer is None else trainer
        new = self._write(step_of(name), model, state)
        self._point({key: new if value == name else value for key, value in pointer.items()})
        return new

    def _point(self, pointer: Mapping[str, str]) -> None:
        replace_file(self._checkpoints / "pointer.json", to_json(pointer))
        self._sweep(set(pointer.values()))

    def _write(self, step: int, model: nn.Module, trainer: Mapping[str, Any]) -> str:
        """Write a snapshot that nothing points to yet."""
        name = f"step-{step:08d}"
        weights, aliases = _split_shared(model.state_dict())
        tensors: dict[str, Tensor] = {}
        plain = flatten(dict(trainer), tensors, "trainer")
        contents = {
            "weights.safetensors": safetensors.torch.save(weights, metadata={"format": "pt"}),
            "trainer.safetensors": safetensors.torch.save(tensors, metadata={"format": "pt"}),
            "trainer.json": to_json({"aliases": aliases, "state": plain}),
        }
        target = self._checkpoints / name
        if target.exists():
            # The same step again (a signal right after the end of an epoch): replace it under a fresh name.
            number = 1
            while (self._checkpoints / f"{name}.{number}").exists():
                number += 1
            name = f"{name}.{number}"
            target = self._checkpoints / name
        write_folder(target, contents, _MANIFEST)
        return name

    def _sweep(self, wanted: set[str]) -> None:
        for folder in self._checkpoints.iterdir():
            stale = _SNAPSHOT.match(folder.name) or ".writing-" in folder.name
            if folder.is_dir() and stale and folder.name not in wanted:
                shutil.rmtree(folder)

    def load(self, which: Literal["last", "best"], *, with_trainer: bool) -> Snapshot:
        """Read a snapshot and check every file against the manifest.

        Raises:
            CheckpointError: when there is none, or when it is torn.
        """
        name = self.pointer().get(which)
        if name is None:
            raise CheckpointError(
                f"{self.path} has no {which} checkpoint yet; let 'sememekit train --out {self.path} --resume' finish an epoch"
            )
        folder = self._checkpoints / name
        manifest = _read_json(folder / _MANIFEST)
        contents = {}
        for file, expected in manifest.items():
            if not with_trainer and file == "trainer.safetensors":
                continue
            try:
                contents[file] = (folder / file).read_bytes()
            except OSError as error:
                raise CheckpointError(f"{folder / file} cannot be read ({error.strerror}); the checkpoint is torn") from None
            if hashlib.sha256(contents[file]).hexdigest() != expected:
                raise CheckpointError(
                    f"{folder / file} does not match its checksum in {_MANIFEST}; it was changed or damaged after writing"
                )
        weights = _read_tensors(folder, "weights.safetensors", contents)
        tensors = _read_tensors(folder, "trainer.safetensors", contents) if with_trainer else {}
        try:
            document = json.loads(contents["trainer.json"])
            for alias, original in document["aliases"].items():
                weights[alias] = weights[original]
            trainer = unflatten(document["state"], tensors) if with_trainer else {}
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise CheckpointError(f"{folder / 'trainer.json'} is not what sememekit wrote ({error!r})") from None
        return Snapshot(name, weights, trainer)

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        """Add one line to metrics.jsonl."""
        with (self.path / "metrics.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record, ensure_ascii=False) + "\n")
            stream.flush()

    def metrics(self) -> list[dict[str, Any]]:
        """All lines of metrics.jsonl; a last line cut short by a kill is left out."""
        path = self.path / "metrics.jsonl"
        if not path.exists():
            return []
        lines = path.read_bytes().split(b"\n")[:-1]
        try:
            return [json.loads(line) for line in lines]
        except ValueError as error:
            raise CheckpointError(f"{path} is not lines of JSON ({error}); it was changed after writing") from None

    def forget_metrics_after(self, step: int) -> None:
        """Drop lines of steps that a resumed run will take again."""
        kept = [record for record in self.metrics() if record["step"] <= step]
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in kept)
        replace_file(self.path / "metrics.jsonl", text.encode())


def step_of(name: str) -> int:
    """The optimiser steps behind the snapshot ``name``."""
    return int(name.removeprefix("step-").split(".")[0])


def _split_shared(state: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors stored once, and alias -> name for further names of the same memory."""
    first: dict[tuple[int, tuple[int, ...]], str] = {}
    weights, aliases = {}, {}
    for name, tensor in state.items():
        key = (tensor.data_ptr(), tuple(tensor.shape))
        if tensor.numel() and key in first:
            aliases[name] = first[key]
        else:
            first[key] = name
            weights[name] = tensor.detach().cpu().contiguous()
    return weights, aliases


def _read_tensors(folder: Path, name: str, contents: Mapping[str, bytes]) -> dict[str, Tensor]:
    """Tensors of a safetensors file. Nothing in it is ever executed."""
    if name not in contents:
        raise CheckpointError(f"{folder / _MANIFEST} lists no {name}; the checkpoint is torn")
    try:
        return safetensors.torch.load(contents[name])
    except (KeyError, ValueError, safetensors.SafetensorError) as error:
        raise CheckpointError(f"{folder / name} holds no tensors in the safetensors format ({error})") from None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({os.strerror(error.errno or 0)}); the run folder is torn") from None
    except ValueError as error:
        raise CheckpointError(f"{path} is not JSON ({error}); the run folder is torn") from None
    if not isinstance(found, dict):
        raise CheckpointError(f"{path} holds no JSON object; the run folder is torn")
    return found
