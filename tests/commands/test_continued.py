"""Every command that continues a stored file compares it first: what was changed never becomes genuine by being continued."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sememekit.commands._program import app
from sememekit.jobs.train import train
from sememekit.prepare import shards
from sememekit.reports.run import report
from sememekit.training import RunFolder
from tests.commands.processes import play_processes
from tests.small_run import Place

Change = Callable[[bytes, bytes], bytes | None]
"""The content of a file and of the same file of another seed -> the changed content; None to remove it."""

CHANGES: Mapping[str, Change] = {
    "last byte off": lambda mine, other: mine[:-1],
    "last line off": lambda mine, other: mine[: mine.rstrip().rfind(b"\n") + 1],
    "emptied": lambda mine, other: b"",
    "absent": lambda mine, other: None,
    "typed, same length": lambda mine, other: re.sub(rb'("perplexity": )\d', rb"\g<1>1", mine),
    "typed, shorter": lambda mine, other: re.sub(rb'("perplexity": )[\d.]+', rb"\g<1>1.5", mine),
    "of another seed": lambda mine, other: other,
}


def change(path: Path, name: str, other: Path) -> bytes:
    mine = path.read_bytes()
    found = CHANGES[name](mine, other.read_bytes())
    assert found != mine
    if found is None:
        path.unlink()
    else:
        path.write_bytes(found)
    return found or b""


def typed(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def runs(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that the writers continue: runs, seeds, a sweep, and what was pulled."""
    folder = tmp_path_factory.mktemp("continued")
    for seed in (1, 2):
        train(
            place.table("self_organized", decoder__update_every=1000, schedule__epochs=2, run__seed=seed), folder / f"run{seed}"
        )
    (folder / "words.tsv").write_text("橘子\t水果\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        play_processes(patch)
        for words in (
            ["push", folder / "run1", folder / "pushed"],
            ["pull", folder / "pushed", "--out", folder / "pulled"],
            ["train", "--data", place.data.folder, "--out", folder / "seeds", "--seeds", "1", *SMALL],
            sweep_words(place, folder),
        ):
            done = typed(*words)
            assert done.exit_code == 0, done.stderr
    return folder


SMALL = tuple(
    word
    for setting in ("encoder.hidden_size=6", "task.embedding_size=6", "schedule.epochs=2", "optimizer.learning_rate=1")
    for word in ("--set", setting)
)


def sweep_words(place: Place, folder: Path) -> list[object]:
    over = ("--over", "optimizer.learning_rate=1,2", "--trials", "1", "--jobs", "1")
    return ["sweep", "--data", place.data.folder, "--out", folder / "sweep", *over, *SMALL]


Words = Callable[[Place, Path], list[object]]

WRITERS: Mapping[str, tuple[str, Words]] = {
    "train --resume": ("run1", lambda place, at: ["train", "--out", at / "run1", "--resume", "--set", "schedule.epochs=3"]),
    "train --resume, finished": ("run1", lambda place, at: ["train", "--out", at / "run1", "--resume"]),
    "train --seeds --resume": (
        "seeds/seed-1",
        lambda place, at: ["train", "--out", at / "seeds", "--seeds", "1", "--resume", "--set", "schedule.epochs=3"],
    ),
    "train --seeds --resume, another seed": (
        "seeds/seed-1",
        lambda place, at: ["train", "--out", at / "seeds", "--seeds", "2", "--resume"],
    ),
    "sweep": ("sweep/trial-0001", lambda place, at: [*sweep_words(place, at), "--trials", "2"]),
    "cluster-update": ("run1", lambda place, at: ["cluster-update", at / "run1"]),
    "cluster-update --out": ("run1", lambda place, at: ["cluster-update", at / "run1", "--out", at / "new"]),
    "push": ("run1", lambda place, at: ["push", at / "run1", at / "new"]),
    "push of what was pulled": ("pulled", lambda place, at: ["push", at / "pulled", at / "new"]),
    "push --card": ("run1", lambda place, at: ["push", at / "run1", "--card", at / "new"]),
    "report": ("run1", lambda place, at: ["report", at / "run1", "--html", at / "new"]),
    "pull": ("pushed", lambda place, at: ["pull", at / "pushed", "--out", at / "new"]),
}


PAIRS = [
    pytest.param(writer, name, marks=[] if writer == "train --resume" or name == quick else [pytest.mark.slow])
    for writer, quick in zip(WRITERS, itertools.cycle(CHANGES), strict=False)
    for name in CHANGES
]
"""All pairs; the quick ones are each change of a resumed training, and one change of each other writer."""


@pytest.mark.parametrize(("writer", "changed"), PAIRS)
def test_a_changed_file_of_figures_is_refused_by_name_before_anything_is_written(
    writer: str, changed: str, runs: Path, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if writer == "sweep":
        pytest.importorskip("optuna")
    play_processes(monkeypatch)
    at = Path(shutil.copytree(runs, tmp_path / "copy"))
    where, words = WRITERS[writer]
    change(at / where / "metrics.jsonl", changed, runs / "run2" / "metrics.jsonl")
    before = state(at)
    done = typed(*words(place, at))
    assert done.exit_code == 1, done.stdout
    assert "metrics.jsonl" in done.stderr, done.stderr
    assert re.search(r"copy (the file|it|the folder) again|fetch or copy", done.stderr.replace("\n", " ")), done.stderr
    after = state(at)
    kept = {path: text for path, text in after.items() if path in before or path.name in ("metrics.jsonl", "trainer.json")}
    assert kept == before
    assert not (at / "new").exists()


def state(folder: Path) -> dict[Path, bytes]:
    """The content of all files but databases, locks and pages."""
    passed = {".db", ".lock", ".html", ".toml"}
    files = [path for path in folder.rglob("*") if path.is_file() and not passed & {path.suffix, path.name}]
    return {path: path.read_bytes() for path in files if path.name not in ("sweep.json", "settings.json", "seeds.json")}


def test_lines_after_the_last_snapshot_are_no_figures(runs: Path, tmp_path: Path) -> None:
    """A line that was added is in no card, page or pushed run, and a resumed run drops it."""
    run = Path(shutil.copytree(runs / "run1", tmp_path / "run"))
    path = run / "metrics.jsonl"
    whole = path.read_bytes()
    added = re.sub(rb'("perplexity": )[\d.]+', rb"\g<1>1.5", whole.splitlines(keepends=True)[-1])
    assert b'"EpochReport"' in added
    path.write_bytes(whole + added)
    assert typed("push", run, tmp_path / "pushed").exit_code == 0
    assert b"1.5" not in re.sub(rb"1\.5\d+", b"", (tmp_path / "pushed" / "metrics.jsonl").read_bytes())
    assert report(run).epochs == 2
    train({}, run, resume=True)
    assert path.read_bytes() == whole


def test_the_state_of_a_snapshot_is_compared_before_its_word_on_metrics_is_taken(runs: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(runs / "run1", tmp_path / "run"))
    path = run / "checkpoints" / RunFolder.open(run).pointer()["last"] / "trainer.json"
    whole = path.read_bytes()
    for old in (b'"metrics"', b'"bytes"', b'"sha256"', b'"epoch": 2'):
        assert old in whole
        path.write_bytes(whole.replace(old, old[:-2] + b'z"'))
        for words in (["push", run, "--card", tmp_path / "new"], ["report", run], ["train", "--out", run, "--resume"]):
            done = typed(*words)
            assert done.exit_code == 1
            assert "trainer.json does not match its checksum" in done.stderr.replace("\n", " ")


def test_a_kill_between_line_and_snapshot_resumes_to_the_same_bits(place: Place, tmp_path: Path) -> None:
    """The line of the epoch is there and its snapshot is not: the epoch is trained again."""
    table = place.table("sdlm", schedule__epochs=3, task__input_dropout=0.2)
    train(table, tmp_path / "straight")
    train({**table, "schedule": {"epochs": 1}}, tmp_path / "killed")
    at_one = {path: path.read_bytes() for path in (tmp_path / "killed").rglob("*") if path.is_file()}
    train({"schedule": {"epochs": 2}}, tmp_path / "killed", resume=True)
    lines = (tmp_path / "killed" / "metrics.jsonl").read_bytes()
    shutil.rmtree(tmp_path / "killed")
    for path, content in at_one.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for cut in (len(lines), len(lines) - 7):  # the line is whole, or was being written
        run = Path(shutil.copytree(tmp_path / "killed", tmp_path / f"again{cut}"))
        (run / "metrics.jsonl").write_bytes(lines[:cut])
        train({"schedule": {"epochs": 3}}, run, resume=True)
        mine, straight = (RunFolder.open(folder).load("last", with_trainer=False) for folder in (run, tmp_path / "straight"))
        assert mine.sha256 == straight.sha256
        assert [one["valid"] for one in RunFolder.open(run).epochs()] == [
            one["valid"] for one in RunFolder.open(tmp_path / "straight").epochs()
        ]


def test_a_run_whose_lines_are_lost_gives_its_weights_to_a_new_one(runs: Path, tmp_path: Path) -> None:
    """The advice of the message works, and the new run counts the epochs of the old one."""
    run = Path(shutil.copytree(runs / "run1", tmp_path / "run"))
    (run / "metrics.jsonl").unlink()
    done = typed("train", "--from", run, "--out", tmp_path / "new", "--set", "schedule.epochs=1")
    assert done.exit_code == 0, done.stderr
    assert RunFolder.open(tmp_path / "new").plan["run"]["earlier_epochs"] == 2


ATTACK = ("--labels", "no,yes", "--candidates", "table", "--constraints", "none", "--search", "greedy")


@pytest.mark.parametrize("changed", CHANGES)
def test_an_interrupted_attack_takes_no_changed_result(
    changed: str, files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack was killed, so nothing but the lines themselves can tell: a lost line is attacked again, a typed one or one
    of another attack is refused."""
    words = [
        "attack",
        "tests.attack.toys:predict",
        "--data",
        files["data"],
        *ATTACK,
        "--set",
        f"candidates.path={files['table']}",
    ]
    for name, seed in (("one", 1), ("two", 2)):
        assert typed(*words, "--out", tmp_path / name, "--seed", seed).exit_code == 0
    whole = (tmp_path / "one" / "examples.jsonl").read_bytes()
    for name in ("report.json", "report.html"):
        (tmp_path / "one" / name).unlink()
    path = tmp_path / "one" / "examples.jsonl"
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:3]))
    if changed.startswith("typed"):
        found = rb'"queries":\d+' if changed.endswith("shorter") else rb'"queries":\d'
        path.write_bytes(re.sub(found, b'"queries":9', path.read_bytes()))
    else:
        change(path, changed, tmp_path / "two" / "examples.jsonl")
    done = typed("attack", "tests.attack.toys:predict", "--out", tmp_path / "one", "--resume")
    if changed.startswith("typed") or changed == "of another seed":
        assert done.exit_code == 1
        assert re.search(r"examples\.jsonl:\d.*not as this attack wrote it; delete the line", done.stderr.replace("\n", " "))
    else:
        assert done.exit_code == 0, done.stderr
        assert path.read_bytes() == whole


def test_a_typed_marker_of_preprocess_is_not_taken(tmp_path: Path) -> None:
    """Files that an interrupted call left are made again where their marker was changed."""
    (tmp_path / "a.txt").write_text("1 2", encoding="utf-8")
    shards.write_marker(tmp_path / "x.done", {"words": 3}, [tmp_path / "a.txt"])
    assert shards.read_marker(tmp_path / "x.done") is not None
    marker = json.loads((tmp_path / "x.done").read_bytes())
    (tmp_path / "x.done").write_text(json.dumps({**marker, "words": 4}), encoding="utf-8")
    assert shards.read_marker(tmp_path / "x.done") is None
    del marker["sha256"]
    (tmp_path / "x.done").write_text(json.dumps(marker), encoding="utf-8")
    assert shards.read_marker(tmp_path / "x.done") is None
