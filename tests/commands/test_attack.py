"""The attack command: reports, resume, comparison, stops, pages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sememekit.commands.attack import attack, compare
from sememekit.commands.attack_folder import AttackFolder
from sememekit.commands.attack_page import comparison_page
from sememekit.errors import CheckpointError, ConfigError, DataError
from tests.attack import toys
from tests.attack.toys import TABLE, TEXTS

VICTIM = "tests.attack.toys:predict"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    data = tmp_path / "data.tsv"
    data.write_text("".join(f"{text}\t{label}\n" for text, label in TEXTS) + "good\t-\nbad\tperhaps\n", encoding="utf-8")
    table = tmp_path / "table.json"
    table.write_text(json.dumps(TABLE), encoding="utf-8")
    return {"data": data, "table": table, "out": tmp_path / "out"}


def table_of(files: dict[str, Path], **changes: Any) -> dict[str, Any]:
    table: dict[str, Any] = {
        "search": {"name": "genetic", "population": 6, "generations": 4},
        "candidates": {"name": "table", "path": str(files["table"])},
        "attack": {"together": 3},
    }
    for path, value in changes.items():
        slot, _, key = path.partition("__")
        table[slot] = {**table.get(slot, {}), key: value}
    return table


def run(files: dict[str, Path], out: Path, **options: Any) -> Any:
    table = options.pop("table", None) or table_of(files)
    return attack(VICTIM, files["data"], out, table=table, labels=toys.LABELS, **options)


def test_a_report_tells_outcomes_apart(files: dict[str, Path]) -> None:
    report = run(files, files["out"])
    outcomes = report.rates.outcomes
    assert sum(outcomes.values()) == len(TEXTS) + 2
    assert outcomes["error"] == 1
    assert report.reasons["error: unknown label 'perhaps'; the victim's labels: no, yes"] == 1
    assert report.reasons["skipped: no gold label"] == 1
    assert outcomes["success"] >= 3
    assert outcomes["failed"] >= 1
    assert report.queries == report.texts_asked
    lines = [json.loads(line) for line in (files["out"] / "examples.jsonl").read_text().splitlines()]
    assert [line["index"] for line in lines] == list(range(len(TEXTS) + 2))
    assert json.loads((files["out"] / "report.json").read_text())["rates"] == json.loads(report.rates.model_dump_json())
    page = (files["out"] / "report.html").read_text()
    won = next(line for line in lines if line["outcome"] == "success")
    assert f"<del>{won['changes'][0]['old']}</del> <ins>{won['changes'][0]['new']}</ins>" in page


def test_resuming_equals_never_stopping(files: dict[str, Path], tmp_path: Path) -> None:
    run(files, tmp_path / "straight")
    whole = (tmp_path / "straight" / "examples.jsonl").read_bytes()
    run(files, tmp_path / "again")
    lines = (tmp_path / "again" / "examples.jsonl").read_bytes().splitlines(keepends=True)
    for keep in range(len(lines)):
        torn = b"".join(lines[:keep]) + lines[keep][: len(lines[keep]) // 2]
        (tmp_path / "again" / "examples.jsonl").write_bytes(torn)
        report = attack(out=tmp_path / "again", resume=True)
        assert (tmp_path / "again" / "examples.jsonl").read_bytes() == whole
        assert report.rates.examples == len(lines)
    assert attack(out=tmp_path / "again", resume=True).texts_asked == 0
    other = run(files, tmp_path / "other", table=table_of(files, attack__together=100, attack__batch_size=1))
    assert (tmp_path / "other" / "examples.jsonl").read_bytes() == whole
    assert other.calls == other.texts_asked


def test_resuming_with_something_else_is_refused(files: dict[str, Path]) -> None:
    run(files, files["out"])
    with pytest.raises(CheckpointError, match=r"plan\.search\.population = 6, and now it is 7"):
        run(files, files["out"], resume=True, table=table_of(files, search__population=7))
    run(files, files["out"], resume=True, table=table_of(files, attack__together=9))
    files["data"].write_text("good\tyes\n", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"data\.sha256"):
        attack(out=files["out"], resume=True)
    with pytest.raises(CheckpointError, match="exists already"):
        run(files, files["out"])
    (files["out"] / "examples.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"examples\.jsonl:1: no result"):
        AttackFolder.open(files["out"]).results()


def test_comparison_of_two_attacks(files: dict[str, Path], tmp_path: Path) -> None:
    run(files, tmp_path / "a")
    run(files, tmp_path / "b", table=table_of(files) | {"search": {"name": "greedy"}})
    found = compare(tmp_path / "a", tmp_path / "b", html=tmp_path / "c.html")
    assert found.common == len(TEXTS) + 1
    assert found.only_one == 1
    assert found.unlike["plan.search.name"] == ("genetic", "greedy")
    assert [row.difference.value for row in found.rows if row.name == "accuracy"] == [0.0]
    assert (tmp_path / "c.html").read_text() == comparison_page(found)
    same = compare(tmp_path / "a", tmp_path / "a")
    assert same.unlike == {}
    assert all(row.difference.value == 0 and not row.excludes_zero for row in same.rows)
    (tmp_path / "x.tsv").write_text("good\tyes\n", encoding="utf-8")
    run({**files, "data": tmp_path / "x.tsv"}, tmp_path / "d")
    with pytest.raises(DataError, match="different data"):
        compare(tmp_path / "a", tmp_path / "d")
    with pytest.raises(CheckpointError, match=r"has no attack\.json"):
        compare(tmp_path / "a", tmp_path)


def test_victims_that_cannot_be_used(files: dict[str, Path]) -> None:
    for victim, labels, problem in (
        ("tests.attack.toys:TEXTS", ("a", "b"), "is no function"),
        ("tests.attack.toys:predict", (), "--labels negative,positive"),
        ("tests.attack.nothing:predict", ("a", "b"), "no module named"),
        ("tests.attack.toys:nothing", ("a", "b"), "has no"),
    ):
        with pytest.raises(ConfigError, match=problem):
            attack(victim, files["data"], files["out"], table=table_of(files), labels=labels)
    with pytest.raises(ConfigError, match="a victim and --data"):
        attack(VICTIM, None, files["out"])
    assert not files["out"].exists(), "nothing is written before everything can be used"


def always_broken(texts: list[str]) -> Any:
    raise RuntimeError("no model here")


def test_a_victim_that_always_fails_is_no_result(files: dict[str, Path]) -> None:
    with pytest.raises(DataError, match="an error on every example: the victim raised RuntimeError: no model here"):
        attack(
            "tests.commands.test_attack:always_broken", files["data"], files["out"], table=table_of(files), labels=("no", "yes")
        )


SLOW = """
import time
from tests.attack.toys import predict as fast

def predict(texts):
    time.sleep(0.05)
    return fast(texts)

predict.labels = ("no", "yes")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_signal_ends_with_75_and_resuming_finishes(files: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "slow_victim.py").write_text(SLOW, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-m", "sememekit", "attack", "slow_victim:predict", "--data", str(files["data"]), "--out", "out"]
    command += ["--candidates", "table", "--set", f"candidates.path={files['table']}", "--set", "attack.together=1"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        examples = tmp_path / "out" / "examples.jsonl"
        while process.poll() is None and not (examples.exists() and examples.stat().st_size):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 75, errors.decode()
    assert b"go on with: sememekit attack --out out --resume" in errors
    stopped = AttackFolder.open(tmp_path / "out").results()
    assert 0 < len(stopped) < len(TEXTS) + 2
    with pytest.raises(CheckpointError, match=r"unfinished.*--resume"):
        compare(tmp_path / "out", tmp_path / "out")
    command = [sys.executable, "-m", "sememekit", "attack", "--out", "out", "--resume", "--json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert json.loads(done.stdout)["rates"]["examples"] == len(TEXTS) + 2
