"""A run folder: settings, data, and snapshots of the training. docs/architecture.md (The run folder) lists its files.

A snapshot appears by one rename and the pointer moves by another, so a run killed at any moment keeps its last complete
snapshot. The pointer names each snapshot from before its writing until its removal; other folders are never removed."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Literal, Self, final

from torch import nn

from sememekit.data.signature import SIGNATURE, Signature
from sememekit.errors import CheckpointError
from sememekit.files import LOCK, refuse_odd_files, replace_file, sole_command, sync_to_disk, to_json, typed, write_bytes
from sememekit.training import metrics as metrics_file
from sememekit.training import snapshots
from sememekit.training.manifest import KEPT, MANIFEST, check_manifest, hashes, replace_listed, write_manifest

FORMAT = 1
PUSHED = "run.json"  # a file that marks the output of ``push``; a run folder does not have it


@final
class RunFolder:
    """The folder of one run. ``create`` for a new one, ``open`` for an existing one.

    folder = RunFolder.open(Path("runs/sdlm"))
    folder.plan["encoder"], folder.metrics()[-1]
    folder.load("best", with_trainer=False).weights"""

    def __init__(self, path: Path, plan: dict[str, Any], versions: dict[str, Any]) -> None:
        self.path, self.plan, self.versions = path, plan, versions
        self._checkpoints, self._pointer = path / "checkpoints", path / "checkpoints" / "pointer.json"

    @classmethod
    def create(cls, path: Path, plan: Mapping[str, Any], versions: Mapping[str, Any], files: Mapping[str, bytes]) -> Self:
        """Create a run folder; ``files`` are further fixed files: vocabulary, graph, data signature.

        ``path`` must be absent, empty, or left by a killed ``create``. Raises CheckpointError: something is there already."""
        ours = {*files, "versions.json", "checkpoints", ".plan.json.writing", MANIFEST, f".{MANIFEST}.writing", LOCK}
        taken = (
            f"{path} exists already; continue it with --resume ({typed('sememekit', 'train', '--out', path, '--resume')}), "
            "choose another --out, or delete it first"
        )
        if path.exists() and not path.is_dir():
            raise CheckpointError(f"{path} exists already and is a file, and a run is a folder; choose another --out")
        if path.exists() and (others := sorted(entry.name for entry in path.iterdir() if entry.name not in ours)):
            if "plan.json" in others:
                raise CheckpointError(taken)
            raise CheckpointError(
                f"{path} exists already and holds other files ({', '.join(others[:3])}{' and more' if others[3:] else ''}); "
                "choose another --out, or an empty folder"
            )
        path.mkdir(parents=True, exist_ok=True)
        fixed = hashes({**files, "plan.json": to_json(plan)})
        own = hashlib.sha256(to_json(fixed)).hexdigest()  # of a copy it is that of the run that was copied
        stamped = {"run": own, **versions, "format": FORMAT}
        with sole_command(path, "command", CheckpointError):
            if (path / "plan.json").exists():
                raise CheckpointError(taken)
            for name, content in files.items():
                write_bytes(path / name, content)
            write_bytes(path / "versions.json", to_json(stamped))
            (path / "checkpoints").mkdir(exist_ok=True)
            replace_file(path / "checkpoints" / "pointer.json", to_json({}))
            write_manifest(path, {**fixed, **hashes({"versions.json": to_json(stamped)})})
            # The plan comes last: a folder without one was never a run.
            replace_file(path / "plan.json", to_json(plan))
        return cls(path, dict(plan), stamped)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the folder of a run and check its fixed files against its manifest.

        Raises CheckpointError: it is not a run, a newer sememekit wrote it, or a file was changed."""
        path = Path(path)
        if os.path.lexists(path / "plan.json"):
            for folder in (path, *path.glob("checkpoints/"), *path.glob("checkpoints/*/")):
                with suppress(FileNotFoundError):  # a run that continues removes snapshots meanwhile
                    refuse_odd_files(folder, CheckpointError)
        if not (path / "plan.json").is_file():
            what = "does not exist" if not path.exists() else "is no run folder (it has no plan.json)"
            if seeds := seed_runs(path):
                raise CheckpointError(f"{path} holds runs of {len(seeds)} seeds; name one of them, such as {seeds[0]}")
            below = sorted(str(found.parent) for found in path.glob("*/plan.json"))
            if below:
                more = f" and {len(below) - 3} more" if len(below) > 3 else ""
                raise CheckpointError(f"{path} is no run; name one of those in it: {', '.join(below[:3])}{more}")
            if (path / SIGNATURE).is_file():
                what = f"is no run folder but prepared data (an option of many commands: {typed('--data', path)})"
            if (path / "attack.json").is_file():
                page = f"its page is {path / 'report.html'}"
                raise CheckpointError(f"{path} is no run but an attack; {page}; two are compared by attack --compare DIR DIR")
            raise CheckpointError(f"{path} {what}; give a folder that 'sememekit train --out' wrote")
        versions = snapshots.read_json(path / "versions.json")
        written = versions.get("format")
        if written is None and (path / PUSHED).is_file():
            raise CheckpointError(
                f"{path} is what 'sememekit push' wrote; make a run of it: {typed('sememekit', 'pull', path, '--out')} RUN"
            )
        if written != FORMAT:
            raise CheckpointError(
                f"{path} has format {written!r:.60} and this sememekit reads format {FORMAT}; open it with the version that "
                f"wrote it ({versions.get('sememekit', 'unknown')!s:.60})"
            )
        check_manifest(path)
        return cls(path, snapshots.read_json(path / "plan.json"), versions)

    def locked(self) -> AbstractContextManager[None]:
        """Hold the lock of this folder for writing. Raises CheckpointError: another process holds it."""
        return sole_command(self.path, "command", CheckpointError)

    def file(self, name: str) -> Path:
        return self.path / name

    def kept(self) -> dict[str, bytes]:
        """Return name -> content of the existing files of ``manifest.KEPT``. Raises CheckpointError: a file is a folder, or a
        link, which could lead to any file of the user."""
        present = [self.file(name) for name in KEPT if os.path.lexists(self.file(name))]
        for path in present:
            if path.is_symlink() or not path.is_file():
                raise CheckpointError(f"{path} is no regular file; put the file itself in its place")
        return {path.name: path.read_bytes() for path in present}

    def data_signature(self) -> Signature:
        """The signature of the run's data. Raises CheckpointError when the copy in the run folder cannot be read."""
        path = self.file("data.json")
        try:
            return Signature.model_validate_json(path.read_bytes())
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise CheckpointError(
                f"{path} cannot be read ({reason:.200}); the run folder is damaged; copy it again from where it came from"
            ) from None

    def replace_plan(self, plan: Mapping[str, Any]) -> None:
        """Record the settings that a resumed run may change."""
        if dict(plan) != self.plan:
            replace_listed(self.path, "plan.json", to_json(plan))
            self.plan = dict(plan)

    def pointer(self) -> dict[str, str]:
        """Return the snapshots "last" and "best", if any. CheckpointError, naming the newest whole one: torn or lost."""
        return self._read_pointer()[0]

    def _read_pointer(self) -> tuple[dict[str, str], list[str]]:
        path = self._pointer
        if not path.exists():
            if self._checkpoints.is_dir() and snapshots.snapshots_in(self._checkpoints):
                raise CheckpointError(f"{path} is missing; {self._offer()}")
            raise CheckpointError(
                f"{path} is missing, and no snapshot is beside it: the checkpoints of the run are lost; copy {self.path} "
                "again from where it came from, or begin anew with another --out"
            )
        return snapshots.read_pointer(path, self._offer)

    def _offer(self) -> str:
        """Return the advice for a folder without a pointer; no snapshot is chosen or removed automatically."""
        damaged = "the run folder is damaged, and nothing in it was changed"
        whole = snapshots.whole_snapshots(self._checkpoints)
        if not whole:
            return f"{damaged}; no snapshot in it is whole: copy the folder again from where it came from"
        names = json.dumps({"best": whole[-2] if len(whole) > 1 else whole[-1], "last": whole[-1]})
        path = self._pointer
        return f"{damaged}; its newest whole snapshot is {whole[-1]}: to use it, type: {typed('echo', names)} > {typed(path)}"

    def save(self, step: int, model: nn.Module, trainer: Mapping[str, Any], *, best: bool) -> str:
        """Write a snapshot after ``step`` steps, point to it, and remove snapshots without a pointer; returns its name.

        Each shared tensor of ``model`` is stored once; ``trainer`` is a tree as ``flatten`` takes it; ``best``: best so far."""
        pointer = self._tidy()
        name = self._write(step, model, trainer, pointer)
        self._point(pointer, {**pointer, "last": name, **({"best": name} if best else {})})
        return name

    def write_beside(
        self,
        out: Path,
        plan: Mapping[str, Any],
        versions: Mapping[str, Any],
        files: Mapping[str, bytes],
        snapshot: str,
        model: nn.Module,
        trainer: Mapping[str, Any],
        records: Iterable[Mapping[str, Any]] = (),
    ) -> str:
        """Write another run: the metrics of this run up to ``snapshot``, then ``records``, and one snapshot. Return its name.

        The new run is built in a hidden folder, without remains of a killed process, and appears, complete, by one rename."""
        hidden, step = out.with_name(f".{out.name}.partial"), snapshots.step_of(snapshot)
        if hidden.exists():
            shutil.rmtree(hidden)
        copy = RunFolder.create(hidden, plan, versions, files)
        for line in [*(line for line in self.metrics() if line["step"] <= step), *records]:
            copy.append_metrics(line)
        name = copy.save(step, model, trainer, best=True)
        sync_to_disk(hidden)
        hidden.replace(out)
        sync_to_disk(out.parent)
        return name

    def revise(self, name: str, model: nn.Module, trainer: Mapping[str, Any] | None = None) -> str:
        """Replace the model in the snapshot ``name`` ("last" or "best"); returns the name of the new snapshot.

        A new snapshot is written, and one rename moves every pointer to it. ``trainer``: its training state; None keeps it."""
        pointer = self._tidy()
        which: Literal["last", "best"] = "last" if pointer.get("last") == name else "best"
        state = self.load(which, with_trainer=True).trainer if trainer is None else trainer
        new = self._write(snapshots.step_of(name), model, state, pointer)
        self._point(pointer, {key: new if value == name else value for key, value in pointer.items()})
        return new

    def tidy(self) -> None:
        """Remove the remains of a killed process; only the process with the lock may call this."""
        pointer, others = self._read_pointer()
        self._tidy()
        if others:
            snapshots.write_pointer(self._pointer, pointer)

    def _tidy(self) -> dict[str, str]:
        pointer, others = self._read_pointer()
        snapshots.remove_snapshots(self._checkpoints, set(others) - set(pointer.values()))
        return pointer

    def _point(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Move the pointer, and remove the snapshots that only the old pointer named."""
        # Written twice: a process killed between leaves the names of what is still to be removed.
        stale = set(old.values()) - set(new.values())
        snapshots.write_pointer(self._pointer, new, stale=stale)
        if stale:
            snapshots.remove_snapshots(self._checkpoints, stale)
            snapshots.write_pointer(self._pointer, new)

    def _write(self, step: int, model: nn.Module, trainer: Mapping[str, Any], pointer: Mapping[str, str]) -> str:
        """Write a snapshot, which the pointer already names as the next snapshot."""
        name = snapshots.free_name(self._checkpoints, step)
        snapshots.write_pointer(self._pointer, pointer, next=[name])  # before the folder: what a kill leaves has a name
        metrics = metrics_file.digest(self.path / "metrics.jsonl")
        run = {"id": self.versions.get("run", ""), "metrics": metrics}
        snapshots.write_snapshot(self._checkpoints / name, model, trainer, run)
        return name

    def load(self, which: Literal["last", "best"], *, with_trainer: bool) -> snapshots.Snapshot:
        """Read a snapshot and check every file against the manifest. Raises CheckpointError: none, or a torn one."""
        while True:
            name = self.pointer().get(which)
            if name is None:
                raise CheckpointError(
                    f"{self.path} has no {which} checkpoint yet, as no epoch was finished; go on training: "
                    + typed("sememekit", "train", "--out", self.path, "--resume")
                )
            try:
                found = snapshots.read_snapshot(self._checkpoints / name, with_trainer=with_trainer)
                if snapshots.run_of(self._checkpoints / name).get("id", "") != self.versions.get("run", ""):
                    raise CheckpointError(
                        f"{self._checkpoints / name} is a snapshot of another run than {self.path}; copy the folder again from "
                        "where it came from"
                    )
                return found
            except CheckpointError:
                # A run that goes on may have moved the pointer and removed the snapshot while it was read.
                if self.pointer().get(which) == name:
                    raise

    def check_best(self) -> None:
        """Compare the best snapshot (if not the last) with its manifest. CheckpointError: it is torn; another is offered."""
        pointer = self.pointer()
        best = pointer.get("best")
        if best is None or best == pointer["last"]:
            return
        try:
            snapshots.check_snapshot(self._checkpoints / best, with_trainer=False)
        except CheckpointError as error:
            raise CheckpointError(f"{error}; {self._offer()}") from None

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        metrics_file.append(self.path / "metrics.jsonl", record)

    def metrics(self) -> list[dict[str, Any]]:
        """All lines of metrics.jsonl; a last line cut short by a kill is left out. CheckpointError: another line."""
        return metrics_file.read(self.path / "metrics.jsonl")

    def check_metrics(self) -> None:
        """Compare metrics.jsonl with the record in the last snapshot, since validation figures come from it. Raises
        CheckpointError: a line was changed or lost, or the file is of another run."""
        name = self.pointer().get("last")
        stated = snapshots.run_of(self._checkpoints / name).get("metrics") if name is not None else None
        if stated and not metrics_file.begins_with(self.path / "metrics.jsonl", stated):
            raise CheckpointError(
                f"{self.path / 'metrics.jsonl'} does not belong to the checkpoint {name}; it was changed, "
                "damaged or taken from another run; copy it again from where it was trained"
            )

    def epochs(self) -> list[dict[str, Any]]:
        """The lines of finished epochs in metrics.jsonl alone. Raises CheckpointError: as ``metrics``."""
        return metrics_file.epochs(self.path / "metrics.jsonl")

    def forget_metrics_after(self, step: int, epochs: int) -> list[dict[str, Any]]:
        """Drop the lines of steps and epochs that will be repeated by a run resumed at ``step`` after ``epochs`` epochs; return
        the other lines. A checkpoint at the last step of an epoch can be from before or after the end of the epoch."""
        before = [record for record in self.metrics() if record["step"] <= step]
        kept = [record for record in before if record["kind"] != "EpochReport" or record["epoch"] <= epochs]
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in kept)
        replace_file(self.path / "metrics.jsonl", lines.encode())
        return kept


def seed_runs(path: Path) -> list[Path]:
    """Return the runs in a folder of ``train --seeds``, by seed; empty for other folders."""
    numbered = {
        int(run.parent.name[5:]): run.parent for run in path.glob("seed-*/plan.json") if run.parent.name[5:].isdecimal()
    }
    return [numbered[seed] for seed in sorted(numbered)]
