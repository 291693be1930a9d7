"""A run folder is read when its files belong together, loses no snapshot, has one writer, and runs no code of strangers."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sememekit.analysis.evaluate_ppl import evaluate_ppl
from sememekit.analysis.score import score
from sememekit.config import trusting_code
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.files import RunWarning
from sememekit.jobs.train import train
from sememekit.reports.run import report
from sememekit.runs.run import Run
from sememekit.runs.start_from import table_of_run
from sememekit.training import RunFolder, Snapshot, snapshots
from sememekit.training.manifest import FIXED, MANIFEST, replace_listed, write_run_manifest
from sememekit.training.snapshots import write_pointer
from tests.small_run import Place
from tests.training.test_checkpoint import Tied, trainer_state


@pytest.fixture(scope="module")
def trained(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("trained") / "run"
    train(place.table("sdlm", schedule__epochs=2), run)
    return run


@pytest.fixture
def copy(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "copy"))


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    run = RunFolder.create(tmp_path / "run", {"task": {"name": "x"}}, {"sememekit": "0"}, {"vocabulary.tsv": b"a\t1\n"})
    run.save(1, Tied(1.0), trainer_state(1), best=True)
    run.save(2, Tied(2.0), trainer_state(2), best=False)
    return run


@pytest.mark.parametrize("name", ["vocabulary.tsv", "graph.json", "data.json", "plan.json", "versions.json"])
def test_a_changed_file_is_refused_by_name(copy: Path, name: str) -> None:
    assert set(json.loads((copy / MANIFEST).read_text())["files"]) == {path.name for path in copy.iterdir()} & set(FIXED)
    content = (copy / name).read_bytes()
    for changed in (content + b" ", content + b"\n"):
        (copy / name).write_bytes(changed)
        with pytest.raises(CheckpointError, match=rf"{name} does not match its checksum in manifest\.json"):
            RunFolder.open(copy)
    (copy / name).unlink()
    with pytest.raises(CheckpointError, match=name):
        RunFolder.open(copy)


def test_a_graph_or_clusters_put_into_a_run_are_refused(copy: Path) -> None:
    (copy / "clusters.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"clusters\.json is no file of this run"):
        RunFolder.open(copy)


def test_a_lost_manifest_does_not_pass_and_can_be_written_anew(copy: Path, place: Place) -> None:
    right = evaluate_ppl(copy, device="cpu").perplexity
    (copy / MANIFEST).unlink()
    with pytest.raises(CheckpointError, match=r"manifest\.json is missing.*write_run_manifest"):
        Run.open(copy).load()
    write_run_manifest(copy)
    assert evaluate_ppl(copy, device="cpu").perplexity == right
    table = json.loads((copy / MANIFEST).read_bytes())
    table["files"]["x" * 5000] = "0" * 64
    (copy / MANIFEST).write_text(json.dumps(table))
    with pytest.raises(CheckpointError, match="cannot be read"):
        Run.open(copy).load()
    (copy / MANIFEST).write_bytes(b"[" * 100_000)
    with pytest.raises(CheckpointError, match=r"manifest\.json.*nested too deeply"):
        Run.open(copy).load()


def test_a_vocabulary_of_another_run_is_found_though_the_manifest_fits(copy: Path) -> None:
    words = (copy / "vocabulary.tsv").read_text(encoding="utf-8")
    (copy / "vocabulary.tsv").write_text(words.replace("苹果", "橘子"), encoding="utf-8")
    write_run_manifest(copy)
    with pytest.raises(CheckpointError, match=r"vocabulary\.tsv has the fingerprint.*data\.json"):
        list(score(copy, ["我 吃 苹果"]))


def test_resuming_may_change_the_plan_and_a_kill_in_between_leaves_a_run(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class KillError(BaseException):
        """A kill, which nothing catches."""

    real, seen = os.replace, []
    for after in range(4):
        run = Path(shutil.copytree(copy, copy.parent / f"kill{after}"))
        plan = RunFolder.open(run).plan
        calls = [0]

        def dying(source: Any, target: Any, calls: list[int] = calls, after: int = after) -> None:
            if calls[0] == after:
                raise KillError
            calls[0] += 1
            real(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", dying)
            with contextlib.suppress(KillError):
                RunFolder.open(run).replace_plan({**plan, "schedule": {**plan["schedule"], "epochs": 9}})
        seen.append(RunFolder.open(run).plan["schedule"]["epochs"])
    assert seen == [2, 2, 9, 9]


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:20])], ids=["lost", "torn"])
def test_without_a_pointer_nothing_is_lost_and_the_newest_whole_snapshot_is_offered(
    copy: Path, spoil: Callable[[Path], object]
) -> None:
    pointer = copy / "checkpoints" / "pointer.json"
    right, kept = evaluate_ppl(copy, device="cpu").perplexity, json.loads(pointer.read_text())
    spoil(pointer)
    metrics = (copy / "metrics.jsonl").read_bytes()
    before = {path: path.stat().st_mtime_ns for path in (copy / "checkpoints").rglob("step-*/*")}
    with pytest.raises(CheckpointError, match=rf"newest whole snapshot is {kept['last']}.*type: echo") as caught:
        train({}, copy, resume=True)
    with pytest.raises(CheckpointError, match="newest whole snapshot"):
        Run.open(copy).load()
    assert {path: path.stat().st_mtime_ns for path in (copy / "checkpoints").rglob("step-*/*")} == before
    assert (copy / "metrics.jsonl").read_bytes() == metrics
    assert os.system(str(caught.value).split("type: ")[1]) == 0
    assert evaluate_ppl(copy, device="cpu", which="last").perplexity == right


def test_resuming_looks_at_the_best_snapshot_too(copy: Path) -> None:
    """A torn last one is seen at once, a torn best one was seen when the training had ended."""
    folder = RunFolder.open(copy)
    best = folder.pointer()["best"]
    last = folder.save(99, Run.open(copy).task, folder.load("last", with_trainer=True).trainer, best=False)
    weights = copy / "checkpoints" / best / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=rf"{best}.*checksum.*newest whole snapshot is {last}.*type: echo"):
        train({}, copy, resume=True)


def test_an_offered_snapshot_is_whole(folder: RunFolder) -> None:
    (folder.path / "checkpoints" / "pointer.json").unlink()
    weights = folder.path / "checkpoints" / "step-00000002" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r'whole snapshot is step-00000001.*"best": "step-00000001"'):
        folder.pointer()
    shutil.rmtree(folder.path / "checkpoints")
    with pytest.raises(CheckpointError, match="the checkpoints of the run are lost"):
        folder.pointer()


def test_a_pointer_with_another_name_is_not_believed(folder: RunFolder) -> None:
    pointer = folder.path / "checkpoints" / "pointer.json"
    assert folder.pointer() == {"best": "step-00000001", "last": "step-00000002"}
    pointer.write_text(pointer.read_text().replace("step-00000001", "step-00000002"))
    with pytest.raises(CheckpointError, match="does not match its own checksum"):
        folder.load("best", with_trainer=False)


def test_copies_and_links_of_the_user_stay(folder: RunFolder, tmp_path: Path) -> None:
    checkpoints = folder.path / "checkpoints"
    for name in ("step-00000001-best-keep", "step-00000077", "step-00000001.bak"):
        shutil.copytree(checkpoints / "step-00000001", checkpoints / name)
    (tmp_path / "elsewhere").mkdir()
    (checkpoints / "step-00000003").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    for step in (3, 4, 5):
        folder.save(step, Tied(float(step)), trainer_state(step), best=step == 4)
    names = {path.name for path in checkpoints.iterdir()}
    assert names == {
        "pointer.json",
        "step-00000004",
        "step-00000005",
        "step-00000001-best-keep",
        "step-00000077",
        "step-00000001.bak",
        "step-00000003",
    }
    assert (tmp_path / "elsewhere").is_dir()


def test_a_finished_run_that_was_killed_at_its_very_end_is_tidied(copy: Path) -> None:
    checkpoints = copy / "checkpoints"
    before = {path.name for path in checkpoints.iterdir()}
    pointer = RunFolder.open(copy).pointer()
    shutil.copytree(checkpoints / pointer["last"], checkpoints / "step-00000001")
    shutil.copytree(checkpoints / pointer["last"], checkpoints / ".step-00000002.stale")
    write_pointer(copy / "checkpoints" / "pointer.json", pointer, stale=["step-00000001", "step-00000002"])
    (copy / "report.html").unlink()
    done = train({}, copy, resume=True)
    assert done.finished
    assert {path.name for path in checkpoints.iterdir()} == before
    assert set(json.loads((checkpoints / "pointer.json").read_text())) == {"last", "best", "sha256"}
    assert (copy / "report.html").stat().st_size > 1000


def test_a_second_writer_is_refused_and_named(copy: Path) -> None:
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    with RunFolder.open(copy).locked(), pytest.raises(CheckpointError, match=rf"written by another.*process {os.getpid()} on"):
        train({"schedule": {"epochs": 5}}, copy, resume=True)
    after = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    assert {path for path in after if after[path] != before.get(path)} <= {copy / ".lock"}
    train({"schedule": {"epochs": 3}}, copy, resume=True)


def save_for_ever(path: str, stop: Any) -> None:
    run, step = RunFolder.open(Path(path)), 2
    with run.locked():
        while not stop.is_set():
            step += 1
            run.save(step, Tied(float(step)), trainer_state(step), best=step % 3 == 0)


def test_a_reader_beside_a_writer_reads_whole_snapshots(folder: RunFolder) -> None:
    context = multiprocessing.get_context("fork")
    stop = context.Event()
    writer = context.Process(target=save_for_ever, args=(str(folder.path), stop))
    writer.start()
    try:
        seen: set[str] = set()
        reads, deadline = 0, time.monotonic() + 120
        while (reads < 100 or len(seen) <= 3) and time.monotonic() < deadline:
            reads += 1
            for which in ("last", "best"):
                snapshot = folder.load(which, with_trainer=True)  # type: ignore[arg-type]
                assert float(snapshot.weights["first.weight"][0, 0]) == snapshot.trainer["progress"]["epoch"]
                seen.add(snapshot.name)
    finally:
        stop.set()
        writer.join()
    assert len(seen) > 3, "the writer saved nothing within two minutes"
    assert writer.exitcode == 0


def test_a_pointer_that_moved_while_reading_is_followed(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    real = snapshots.read_snapshot
    moved = []

    def slow(path: Path, *, with_trainer: bool) -> Snapshot:
        if not moved:
            moved.append(path.name)
            RunFolder.open(folder.path).save(7, Tied(7.0), trainer_state(7), best=True)
        return real(path, with_trainer=with_trainer)

    monkeypatch.setattr(snapshots, "read_snapshot", slow)
    assert folder.load("last", with_trainer=False).name == "step-00000007"
    assert moved == ["step-00000002"]


def test_lost_and_damaged_metrics_are_told(copy: Path) -> None:
    metrics = copy / "metrics.jsonl"
    lines = metrics.read_bytes().splitlines(keepends=True)
    metrics.write_bytes(b"".join(lines) + b"\0" * 40 + b"\n")
    with pytest.warns(RunWarning, match="NUL bytes"):
        assert len(RunFolder.open(copy).metrics(live=True)) == len(lines)
    for bad in (b'{"kind": "EpochReport", "step": 3}', b"[1]", b"{" * 100_000, b'{"kind": "a"}', b"9" * 10_000, b"\xff"):
        metrics.write_bytes(b"".join(lines) + bad + b"\n")
        with pytest.raises(CheckpointError, match=rf"metrics\.jsonl:{len(lines) + 1}: not a report.*copy the file again"):
            report(copy)
    epoch = json.loads(next(line for line in lines if b"EpochReport" in line))
    for key, value in (("best", 1), ("train_nats", "low"), ("valid", {"perplexity": []}), ("epoch", True)):
        metrics.write_bytes(b"".join(lines) + json.dumps({**epoch, key: value}).encode() + b"\n")
        with pytest.raises(CheckpointError, match=f"EpochReport, key '{key}"):
            report(copy)


def test_epoch_reports_reach_the_disk(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    folder.append_metrics({"kind": "StepReport", "step": 1})
    assert synced == []
    folder.append_metrics({"kind": "EpochReport", "step": 1})
    assert len(synced) == 1


CODE = """
from pathlib import Path
Path("executed").write_text("by somebody else's plan")
from sememekit.decoders.softmax import Softmax
class Mine(Softmax):
    pass
class Cut:
    description = "mine"
    def segment(self, text):
        return text.split()
"""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the working folder that leaves a trace when it is imported."""
    name = f"lab_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    return name


def test_code_that_a_run_names_is_not_run_unless_it_is_trusted(copy: Path, lab: str, tmp_path: Path) -> None:
    plan = RunFolder.open(copy).plan
    RunFolder.open(copy).replace_plan({**plan, "decoder": {"name": f"{lab}:Mine"}})
    executed = tmp_path / "executed"
    for call in (
        lambda: Run.open(copy).load(),
        lambda: evaluate_ppl(copy),
        lambda: train({}, copy, resume=True),
        lambda: table_of_run(copy),
    ):
        with pytest.raises(ConfigError, match=rf"plan\.json names code.*decoder\.name = '{lab}:Mine'.*--trust-code"):
            call()
    assert not executed.exists()
    with pytest.raises(CheckpointError, match="the weights do not fit"):
        Run.open(copy, trust_code=True).load()
    assert executed.exists()


def test_code_as_a_segmenter_is_not_run_either(copy: Path, lab: str, tmp_path: Path) -> None:
    signature = json.loads((copy / "data.json").read_text())
    signature["options"]["segmenter"] = f"{lab}:Cut"
    signature["segmenter"] = "mine"
    replace_listed(copy, "data.json", json.dumps(signature).encode())
    with pytest.raises(ConfigError, match=r"data\.json names code.*options\.segmenter"):
        list(score(copy, ["我 吃 苹果"], segment=True))
    assert not (tmp_path / "executed").exists()
    with trusting_code({f"{lab}:Cut"}):
        assert [row.token for row in score(copy, ["我 吃 苹果"], segment=True)] == ["我", "吃", "苹果"]
    assert (tmp_path / "executed").exists()


def test_a_class_of_the_working_folder_is_trained_and_read_again(place: Place, lab: str, tmp_path: Path) -> None:
    table = place.table(schedule__epochs=1)
    table["decoder"] = {"name": f"{lab}:Mine"}
    train(table, tmp_path / "own")
    with trusting_code():
        right = evaluate_ppl(tmp_path / "own", device="cpu").perplexity
    assert right > 1.0
    train({"decoder": {"name": f"{lab}:Mine"}, "schedule": {"epochs": 2}}, tmp_path / "own", resume=True)
    (tmp_path / f"{lab}.py").unlink()
    del sys.modules[lab]
    with pytest.raises(ConfigError, match="no module named") as caught, trusting_code():
        Run.open(tmp_path / "own").load()
    assert "changed by hand" not in str(caught.value)


def test_a_flipped_id_is_refused_where_it_is_used(copy: Path, place: Place, tmp_path: Path) -> None:
    data = Path(shutil.copytree(place.folder / "data", tmp_path / "data"))
    ids = bytearray((data / "test.bin").read_bytes())
    ids[10] ^= 1
    (data / "test.bin").write_bytes(ids)
    with pytest.raises(DataError, match=r"test\.bin: changed or damaged"):
        evaluate_ppl(copy, data=data)
    assert evaluate_ppl(copy, data=data, split="valid").tokens > 10
    shutil.copyfile(data / "valid.bin", data / "train.bin")
    with pytest.raises(DataError, match=r"train\.bin"):
        train({"data": {"path": str(data)}, "schedule": {"epochs": 3}}, copy, resume=True)
