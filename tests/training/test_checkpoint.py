"""The run folder: atomically, read only when it is whole, and never executed."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from sememekit.errors import CheckpointError
from sememekit.jobs.train import train
from sememekit.runs.run import Run
from sememekit.training import RunFolder
from sememekit.training.checkpoint import FORMAT
from sememekit.training.manifest import write_run_manifest
from tests.small_run import Place


class Tied(torch.nn.Module):
    """Two modules that share a matrix, and a buffer that is not stored."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.first = torch.nn.Embedding(4, 3)
        self.second = torch.nn.Linear(3, 4)
        self.second.weight = self.first.weight
        self.register_buffer("index", torch.arange(3), persistent=False)
        torch.nn.init.constant_(self.first.weight, value)


def trainer_state(number: int) -> dict[str, Any]:
    """A tree with all kinds of leaves."""
    return {
        "progress": {"epoch": number, "best": None, "finished": ""},
        "optimizer": {
            "state": {0: {"step": torch.tensor(float(number))}, 1: {}},
            "groups": [{"betas": (0.9, 0.99), "lr": 0.1}],
        },
        "carry": (torch.full((2, 3), float(number)), torch.arange(4)),
        "empty": (),
    }


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    run = RunFolder.create(tmp_path / "run", {"task": {"name": "x"}}, {"sememekit": "0"}, {"vocabulary.tsv": b"a\t1\n"})
    run.save(1, Tied(1.0), trainer_state(1), best=True)
    return run


@pytest.fixture(scope="module")
def trained(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("trained") / "run"
    train(place.table("sdlm", schedule__epochs=1), run)
    return run


@pytest.fixture
def copy(trained: Path, tmp_path: Path) -> Path:
    shutil.copytree(trained, tmp_path / "copy")
    return tmp_path / "copy"


def snapshot_of(run: Path) -> Path:
    return run / "checkpoints" / RunFolder.open(run).pointer()["best"]


def forge(path: Path, content: bytes) -> None:
    """Replace a file of a snapshot and put its checksum right, as somebody with intent would."""
    path.write_bytes(content)
    manifest = path.parent / "manifest.json"
    hashes = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**hashes, path.name: hashlib.sha256(content).hexdigest()}))


def test_what_is_saved_comes_back(folder: RunFolder) -> None:
    snapshot = RunFolder.open(folder.path).load("last", with_trainer=True)
    assert snapshot.name == "step-00000001"
    expected = trainer_state(1)
    assert snapshot.trainer["progress"] == expected["progress"]
    assert snapshot.trainer["optimizer"]["groups"] == [{"betas": (0.9, 0.99), "lr": 0.1}]
    assert snapshot.trainer["optimizer"]["state"][0]["step"].item() == 1.0
    assert snapshot.trainer["optimizer"]["state"][1] == {}
    assert torch.equal(snapshot.trainer["carry"][1], torch.arange(4))
    assert snapshot.trainer["empty"] == ()
    assert folder.load("last", with_trainer=False).trainer == {}


def test_a_shared_matrix_is_stored_once_and_is_shared_again(folder: RunFolder) -> None:
    import safetensors.torch

    stored = safetensors.torch.load_file(folder.path / "checkpoints" / "step-00000001" / "weights.safetensors")
    assert len(stored) == 2, "one matrix and one bias"
    model = Tied(0.0)
    model.load_state_dict(folder.load("last", with_trainer=False).weights)
    assert model.first.weight is model.second.weight
    assert torch.equal(model.first.weight, torch.ones(4, 3))


@pytest.mark.parametrize("decoder", ["softmax", "sdlm"])
def test_a_tied_model_stays_tied_after_loading(place: Place, tmp_path: Path, decoder: str) -> None:
    train(place.table(decoder, schedule__epochs=1), tmp_path / "run")
    task: Any = Run.open(tmp_path / "run", device="cpu").task
    assert task.embedding.weight is task.decoder.words.weight
    with torch.no_grad():
        task.embedding.weight.fill_(3.0)
    assert (task.decoder.words.weight == 3.0).all()


def test_old_checkpoints_go_and_the_best_stays(folder: RunFolder) -> None:
    for step in (2, 3, 4):
        folder.save(step, Tied(float(step)), trainer_state(step), best=step == 3)
    names = {path.name for path in (folder.path / "checkpoints").iterdir()}
    assert names == {"pointer.json", "step-00000003", "step-00000004"}
    assert folder.load("best", with_trainer=False).weights["first.weight"][0, 0] == 3.0
    assert folder.load("last", with_trainer=False).weights["first.weight"][0, 0] == 4.0


def test_the_same_step_twice_keeps_the_later_one(folder: RunFolder) -> None:
    folder.save(1, Tied(8.0), trainer_state(8), best=False)
    folder.save(1, Tied(9.0), trainer_state(9), best=False)
    reopened = RunFolder.open(folder.path)
    assert reopened.pointer()["last"].startswith("step-00000001.")
    assert reopened.load("last", with_trainer=False).weights["first.weight"][0, 0] == 9.0
    assert reopened.load("best", with_trainer=False).weights["first.weight"][0, 0] == 1.0


class PowerCutError(BaseException):
    """A power cut: nothing catches it, as nothing catches a kill."""


def cut_the_power(monkeypatch: pytest.MonkeyPatch, after: int) -> list[str]:
    """Let the system calls that writing makes fail from number ``after`` on; gives back the list of calls made."""
    calls: list[str] = []

    def wrap(name: str, call: Any) -> Any:
        def guarded(*arguments: Any, **options: Any) -> Any:
            calls.append(name)
            if len(calls) > after:
                raise PowerCutError(name)
            return call(*arguments, **options)

        return guarded

    for name in ("fsync", "replace", "rename"):
        monkeypatch.setattr(os, name, wrap(name, getattr(os, name)))
    original = Path.open

    def half_written(self: Path, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if mode == "wb":
            calls.append("open")
            if len(calls) > after:
                with original(self, "wb") as stream:
                    stream.write(b"{half")
                raise PowerCutError("open")
        return original(self, mode, *rest, **options)

    monkeypatch.setattr(Path, "open", half_written)
    monkeypatch.setattr(shutil, "rmtree", wrap("rmtree", shutil.rmtree))
    return calls


def test_a_kill_at_any_step_of_writing_leaves_a_whole_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[float] = set()
    for after in range(100):
        path = tmp_path / f"run{after}"
        run = RunFolder.create(path, {}, {}, {})
        run.save(1, Tied(1.0), trainer_state(1), best=True)
        with monkeypatch.context() as patch:
            calls = cut_the_power(patch, after)
            try:
                run.save(2, Tied(2.0), trainer_state(2), best=True)
                finished = True
            except PowerCutError:
                finished = False
        if not finished:
            assert len(calls) == after + 1
        reopened = RunFolder.open(path)
        for which in ("last", "best"):
            snapshot = reopened.load(which, with_trainer=True)
            value = float(snapshot.weights["first.weight"][0, 0])
            assert value == snapshot.trainer["progress"]["epoch"], "weights and trainer are of one moment"
            seen.add(value)
        # The run goes on in a process that may have the same number, and takes the same step again.
        reopened.save(2, Tied(3.0), trainer_state(3), best=False)
        assert float(reopened.load("last", with_trainer=True).weights["first.weight"][0, 0]) == 3.0
        left = {entry.name for entry in (path / "checkpoints").iterdir()} - {"pointer.json"}
        assert len(left) <= 2, "nothing of the killed writing stays behind"
        assert set(reopened.pointer().values()) == left
        if finished:
            break
    else:
        pytest.fail("saving never finished")
    assert after > 10
    assert seen == {1.0, 2.0}


def test_a_kill_at_any_step_of_creating_leaves_a_folder_to_create_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for after in range(100):
        path = tmp_path / f"run{after}"
        arguments = ({"task": {}}, {"sememekit": "0"}, {"vocabulary.tsv": b"a\t1\n", "data.json": b"{}"})
        with monkeypatch.context() as patch:
            cut_the_power(patch, after)
            try:
                RunFolder.create(path, *arguments)
                break
            except PowerCutError:
                pass
        if (path / "plan.json").exists():
            RunFolder.open(path)
        else:
            RunFolder.create(path, *arguments)
            assert RunFolder.open(path).plan == {"task": {}}
    assert after > 5


def test_metrics_lose_at_most_the_line_that_was_being_written(folder: RunFolder) -> None:
    folder.append_metrics({"kind": "a", "step": 1})
    folder.append_metrics({"kind": "b", "step": 2})
    with (folder.path / "metrics.jsonl").open("a") as stream:
        stream.write('{"kind": "c", "st')

    def kinds(**options: bool) -> list[str]:
        return [record["kind"] for record in folder.metrics(**options)]

    assert kinds(live=True) == ["a", "b"]
    assert kinds() == [], "no snapshot vouches for them"
    folder.forget_repeated_metrics()
    epoch = {"kind": "EpochReport", "epoch": 1, "step": 2, "train_nats": 1.0, "valid": {"perplexity": 2.0}, "rate": 1.0}
    ends = {"best": True, "rate_cut": False, "finished": "", "seconds": 1.0, "tokens_per_second": 1.0}
    folder.append_metrics({**epoch, **ends})
    assert kinds(live=True) == ["a", "b"], "an epoch counts with its snapshot"
    folder.save(3, Tied(3.0), trainer_state(3), best=False)
    assert kinds() == ["a", "b", "EpochReport"]
    folder.append_metrics({"kind": "StopReport", "step": 3})
    folder.append_metrics({**epoch, **ends})
    folder.append_metrics({"kind": "ClusterUpdate", "step": 3})
    assert kinds(live=True) == ["a", "b", "EpochReport", "StopReport"]
    folder.forget_repeated_metrics()
    assert kinds() == ["a", "b", "EpochReport"]
    assert kinds(live=True) == ["a", "b", "EpochReport", "StopReport"]
    (folder.path / "metrics.jsonl").write_bytes(b"\xff\xfe\n")
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl"):
        folder.metrics()


SNAPSHOT_FILES = ["weights.safetensors", "trainer.safetensors", "trainer.json"]


@pytest.mark.parametrize("name", SNAPSHOT_FILES)
@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "delete"])
def test_a_damaged_file_is_named(copy: Path, name: str, damage: str) -> None:
    file = snapshot_of(copy) / name
    content = file.read_bytes()
    if damage == "flip":
        file.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    elif damage == "delete":
        file.unlink()
    else:
        file.write_bytes(content[: len(content) // 2 if damage == "truncate" else 0])
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        RunFolder.open(copy).load("best", with_trainer=True)
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        train({"schedule": {"epochs": 2}}, copy, resume=True)


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"\xff" * 8 + b"{}", b"PK\x03\x04 a zip", b"{}" * 50])
@pytest.mark.parametrize("name", SNAPSHOT_FILES)
def test_a_foreign_file_with_a_right_checksum_is_refused(copy: Path, name: str, content: bytes) -> None:
    forge(snapshot_of(copy) / name, content)
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        RunFolder.open(copy).load("best", with_trainer=True)


class Hostile:
    """Unpickling this makes a folder."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.trace),)


@pytest.mark.parametrize("name", SNAPSHOT_FILES)
def test_a_hostile_pickle_is_never_opened_as_one(copy: Path, tmp_path: Path, name: str) -> None:
    trace = tmp_path / "executed"
    pickled = pickle.dumps(Hostile(trace))
    pickle.loads(pickled)
    assert trace.is_dir(), "the pickle does what it is meant to"
    trace.rmdir()
    torch.save({"weights": Hostile(trace)}, tmp_path / "torch.bin")
    for content in (pickled, (tmp_path / "torch.bin").read_bytes()):
        file = snapshot_of(copy) / name
        file.write_bytes(content)
        with pytest.raises(CheckpointError, match="checksum"):
            RunFolder.open(copy).load("best", with_trainer=True)
        forge(file, content)
        with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
            RunFolder.open(copy).load("best", with_trainer=True)
    assert not trace.exists()


@pytest.mark.parametrize("name", ["plan.json", "versions.json", "checkpoints/pointer.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null"])
def test_a_damaged_document_is_named(copy: Path, name: str, content: bytes) -> None:
    (copy / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        Run.open(copy, device="cpu").load()


@pytest.mark.parametrize("target", ["../../../etc", "step-00000001/../../..", 5, "latest"])
def test_a_pointer_leads_nowhere_else(copy: Path, target: object) -> None:
    (copy / "checkpoints" / "pointer.json").write_text(json.dumps({"best": target, "last": target}))
    with pytest.raises(CheckpointError, match=r"pointer\.json"):
        Run.open(copy, device="cpu").load()


def test_a_checkpoint_that_is_pointed_to_and_gone_is_named(copy: Path) -> None:
    shutil.rmtree(snapshot_of(copy))
    with pytest.raises(CheckpointError, match=r"manifest\.json is missing"):
        Run.open(copy, device="cpu").load()


def test_the_snapshot_of_another_model_does_not_fit(
    place: Place, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(place.table("sdlm", schedule__epochs=1, encoder__num_layers=1), tmp_path / "other")
    target = snapshot_of(copy)
    shutil.rmtree(target)
    shutil.copytree(snapshot_of(tmp_path / "other"), target)
    with pytest.raises(CheckpointError, match="is a snapshot of another run than"):
        Run.open(copy, device="cpu").load()
    own = (RunFolder.open(copy).versions["run"], 0, "")
    monkeypatch.setattr("sememekit.training.snapshots.run_of", lambda folder: own)
    with pytest.raises(CheckpointError, match=r"weights do not fit the plan.*encoder\.stack\.1"):
        Run.open(copy, device="cpu").load()


def test_a_newer_format_and_a_changed_plan_say_so(copy: Path) -> None:
    versions = json.loads((copy / "versions.json").read_text())
    assert versions["format"] == FORMAT
    assert {"sememekit", "python", "torch", "numpy", "platform"} <= set(versions)
    (copy / "versions.json").write_text(json.dumps({**versions, "format": FORMAT + 1, "sememekit": "9.9"}))
    with pytest.raises(CheckpointError, match=rf"format {FORMAT + 1}.*9\.9"):
        Run.open(copy, device="cpu").load()
    (copy / "versions.json").write_text(json.dumps(versions))
    plan = json.loads((copy / "plan.json").read_text())
    (copy / "plan.json").write_text(json.dumps({**plan, "encoder": {**plan["encoder"], "hiden_size": 3}}))
    with pytest.raises(CheckpointError, match=r"plan\.json does not match its checksum in manifest\.json.*write_run_manifest"):
        Run.open(copy, device="cpu").load()
    write_run_manifest(copy)
    with pytest.raises(CheckpointError, match=r"plan\.json.*hiden_size.*did you mean 'hidden_size'.*changed by hand"):
        Run.open(copy, device="cpu").load()


@pytest.mark.parametrize("name", ["vocabulary.tsv", "graph.json"])
def test_a_damaged_vocabulary_or_graph_is_named(copy: Path, name: str) -> None:
    from sememekit.errors import SememekitError

    (copy / name).write_bytes(b"\xff\x00 broken")
    with pytest.raises(SememekitError, match=name.replace(".", r"\.")):
        Run.open(copy, device="cpu").load()


def test_a_file_or_an_empty_folder_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CheckpointError, match="is no run folder"):
        Run.open(tmp_path / "file")
    with pytest.raises(CheckpointError, match="is no run folder"):
        Run.open(tmp_path)
    (tmp_path / "attack.json").touch()
    with pytest.raises(CheckpointError, match=r"is no run but an attack; its page is .*/report\.html; two are compared by"):
        Run.open(tmp_path)
    (tmp_path / "attack.json").unlink()
    with pytest.raises(CheckpointError, match="does not exist"):
        Run.open(tmp_path / "nowhere")
    (tmp_path / "signature.json").touch()
    told = rf"but prepared data \(an option of many commands: --data {tmp_path}\); give a folder"
    with pytest.raises(CheckpointError, match=told):
        Run.open(tmp_path)


def test_only_what_a_checkpoint_can_hold_is_taken(folder: RunFolder) -> None:
    with pytest.raises(TypeError, match=r"trainer\.bad: a set cannot be stored"):
        folder.save(2, Tied(2.0), {"bad": {1, 2}}, best=False)
    assert folder.pointer()["last"] == "step-00000001"


def test_a_folder_of_runs_names_them(tmp_path: Path) -> None:
    for name in ("softmax", "sdlm", "lattice", "another"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "plan.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"no run; name one of those in it: \S+another, \S+lattice, \S+sdlm and 1 more$"):
        Run.open(tmp_path)


def test_a_folder_of_seeds_names_the_runs_that_it_holds(tmp_path: Path) -> None:
    for name in ("seed-1", "seed-2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "plan.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"holds runs of 2 seeds; name one of them, such as \S+seed-1$"):
        Run.open(tmp_path)
