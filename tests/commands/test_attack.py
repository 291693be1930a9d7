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
from markupsafe import escape
from typer.testing import CliRunner

from sememekit.attack.folder import AttackFolder
from sememekit.commands._program import app
from sememekit.commands.attack import attack, compare
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.reports.attack import charts, comparison_page, marked, percent, rate_rows
from tests.attack import toys
from tests.attack.toys import TABLE, TEXTS
from tests.pages import check_page

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
    assert outcomes["no_candidates"] == 1
    assert report.coverage.with_candidates > report.coverage.changeable > 0, "very is a stop word"
    assert report.queries == report.texts_asked
    lines = [json.loads(line) for line in (files["out"] / "examples.jsonl").read_text().splitlines()]
    assert [line["index"] for line in lines] == list(range(len(TEXTS) + 2))
    assert json.loads((files["out"] / "report.json").read_text())["rates"] == json.loads(report.rates.model_dump_json())
    page = (files["out"] / "report.html").read_text()
    won = next(line for line in lines if line["outcome"] == "success")
    assert f"<del>{won['changes'][0]['old']}</del> <ins>{won['changes'][0]['new']}</ins>" in page
    (told,) = check_page(page).charts
    assert told.endswith(f"success rate {report.rates.success_rate.value:.1%}")
    (chart,) = charts({"one": list(AttackFolder.open(files["out"]).results().values())})
    points = chart.lines[0].points
    assert points[0] == (1.0, 0.0)
    assert points[-1][1] == pytest.approx(report.rates.success_rate.value)
    for level, rate in report.rates.success_at.items():
        within = max((share for queries, share in points if queries <= level), default=0.0)
        assert rate is None or within == pytest.approx(rate.value)


def test_resuming_equals_never_stopping(files: dict[str, Path], tmp_path: Path) -> None:
    run(files, tmp_path / "straight")
    whole = (tmp_path / "straight" / "examples.jsonl").read_bytes()
    run(files, tmp_path / "again")
    lines = (tmp_path / "again" / "examples.jsonl").read_bytes().splitlines(keepends=True)
    for keep in range(len(lines)):
        torn = b"".join(lines[:keep]) + lines[keep][: len(lines[keep]) // 2]
        (tmp_path / "again" / "examples.jsonl").write_bytes(torn)
        report = attack(VICTIM, out=tmp_path / "again", resume=True)
        assert (tmp_path / "again" / "examples.jsonl").read_bytes() == whole
        assert report.rates.examples == len(lines)
    assert attack(VICTIM, out=tmp_path / "again", resume=True).texts_asked == 0
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
        attack(VICTIM, out=files["out"], resume=True)
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
    both = CliRunner().invoke(
        app, ["attack", "--compare", *map(str, (tmp_path / "a", tmp_path / "b")), "--figure", str(tmp_path / "c.svg")]
    )
    assert both.exit_code == 0, both.stderr
    drawn = (tmp_path / "c.svg").read_text(encoding="utf-8")
    rate = next(row for row in found.rows if row.name == "success rate")
    assert all(f">{name} {value:.1%}<" in drawn for name, value in (("a", rate.first), ("b", rate.second)))
    same = compare(tmp_path / "a", tmp_path / "a")
    assert same.unlike == {}
    assert all(row.difference.value == 0 and not row.excludes_zero for row in same.rows)
    (tmp_path / "x.tsv").write_text("good\tyes\n", encoding="utf-8")
    run({**files, "data": tmp_path / "x.tsv"}, tmp_path / "d")
    with pytest.raises(DataError, match="different data"):
        compare(tmp_path / "a", tmp_path / "d")
    with pytest.raises(CheckpointError, match=r"has no attack\.json"):
        compare(tmp_path / "a", tmp_path)
    with pytest.raises(ConfigError, match=r"x\.tsv is there already and is not a page"):  # before the folders are read
        compare(tmp_path / "a", tmp_path, html=tmp_path / "x.tsv")


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
from pathlib import Path
from tests.attack.toys import predict as fast

def predict(texts):
    while Path("out/examples.jsonl").exists() and not Path("go").exists():
        time.sleep(0.01)
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
        try:
            while process.poll() is None and not (examples.exists() and examples.stat().st_size):
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            (tmp_path / "go").touch()  # the victim waits for it once an example is finished
            _, errors = process.communicate()
        finally:
            process.kill()
    assert process.returncode == 75, errors.decode()
    assert b"go on with: sememekit attack slow_victim:predict --out out --resume" in errors
    stopped = AttackFolder.open(tmp_path / "out").results()
    assert 0 < len(stopped) < len(TEXTS) + 2
    with pytest.raises(CheckpointError, match=r"unfinished.*--resume"):
        compare(tmp_path / "out", tmp_path / "out")
    command = [sys.executable, "-m", "sememekit", "attack", "slow_victim:predict", "--out", "out", "--resume", "--json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert json.loads(done.stdout)["rates"]["examples"] == len(TEXTS) + 2


CHINESE = """
import numpy as np

seen = []

def predict(texts):
    seen.extend(texts)
    yes = np.array([0.9 if "很好看" in text else 0.2 for text in texts])
    return np.stack([1 - yes, yes], axis=1)

predict.labels = ("no", "yes")

def exits(texts):
    raise SystemExit(0)

exits.labels = ("no", "yes")
numbers = lambda texts: None
numbers.labels = (0, 1)
"""


@pytest.fixture
def chinese(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chinese_victim.py").write_text(CHINESE, encoding="utf-8")
    data, table = tmp_path / "c.tsv", tmp_path / "c.json"
    data.write_text("这部新上映的电影很好看。\tyes\n我昨天看的电影很难看。\tno\n", encoding="utf-8")
    words = {"好看": ["精彩", "优美"], "电影": ["影片"], "。": ["！"], "很": ["非常"]}
    table.write_text(json.dumps(words, ensure_ascii=False), encoding="utf-8")
    monkeypatch.delitem(sys.modules, "chinese_victim", raising=False)
    return {"data": data, "table": table, "out": tmp_path / "out"}


def test_chinese_text_is_cut_in_place_and_goes_to_the_victim_without_blanks(chinese: dict[str, Path]) -> None:
    table = {"search": {"name": "greedy"}, "candidates": {"name": "table", "path": str(chinese["table"])}}
    with pytest.raises(DataError, match=r"2 of 2 examples hold Chinese without blanks.*--segmenter jieba"):
        attack("chinese_victim:predict", chinese["data"], chinese["out"], table=table)
    assert not chinese["out"].exists()
    cut = {**table, "attack": {"segmenter": "jieba"}}
    report = attack("chinese_victim:predict", chinese["data"], chinese["out"], table=cut)
    assert report.rates.outcomes == {"success": 1, "failed": 1, "no_candidates": 0, "skipped": 0, "error": 0}
    assert report.segmentation.startswith("jieba")
    assert not any(" " in text for text in sys.modules["chinese_victim"].seen)
    won = json.loads((chinese["out"] / "examples.jsonl").read_text().splitlines()[0])
    assert won["adversarial"] == ["这部新上映的电影很精彩。"]
    assert won["changes"][0] | {"place": 0} == {"field": 0, "place": 0, "begin": 9, "old": "好看", "new": "精彩"}
    assert "电影很<del>好看</del> <ins>精彩</ins>。" in (chinese["out"] / "report.html").read_text()
    for segmenter, problem in (("english", "takes characters, fmm, jieba"), ("", "add --segmenter fmm or jieba")):
        wrong = {**table, "attack": {"segmenter": segmenter, "lexicon": "open"}}
        with pytest.raises(ConfigError, match=problem):
            attack("chinese_victim:predict", chinese["data"], chinese["out"].with_name("x"), table=wrong)


def test_a_few_uncut_texts_are_a_warning(files: dict[str, Path]) -> None:
    with files["data"].open("a", encoding="utf-8") as stream:
        stream.write("这部新上映的电影很好看\tyes\n")
    report = run(files, files["out"])
    assert any("1 of 11 examples hold Chinese without blanks" in warning for warning in report.warnings)


def test_a_report_says_what_was_left_alone_and_warns_where_it_says_little(files: dict[str, Path]) -> None:
    report = run(files, files["out"])
    assert "constraints: stop_words, protected, opposites (protect standard)" in report.notes
    assert any(note.startswith("opposites left out: ") and "no antonym list was given" in note for note in report.notes)
    assert any(note.startswith("known-words filter off: the function names no words") for note in report.notes)
    assert report.warnings == ()
    files["table"].write_text('{"slow": ["lame"], "very": ["quite"]}', encoding="utf-8")
    table = table_of(files)
    seen: list[tuple[str, int, int | None]] = []
    little = run(files, files["out"].with_name("b"), table=table, progress=lambda *values: seen.append(values))
    assert little.coverage.low
    assert any("of the words may change" in warning for warning in little.warnings)
    page = (files["out"].with_name("b") / "report.html").read_text()
    assert escape(little.warnings[0]) in page
    assert escape(little.notes[0]) in page
    assert "Nothing to try" in page
    bars = [(done, total) for stage, done, total in seen if stage == "substitutes"]
    assert bars[0] == (0, None)
    assert bars[-1][0] == bars[-1][1] > 0, "the bar of substitutes ends"
    rows = dict(rate_rows(little))
    untried = little.rates.untried
    assert rows[f"the same, if the {untried} right but untried survive"] == percent(little.rates.accuracy_at_most)
    assert f"success rate, of {little.rates.attacked} with and without" in rows


def test_neighbours_without_an_antonym_list_are_a_warning(files: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("good 1 0\nfine 1 0.1\nbad 1 0.2\nfilm 0 1\nmovie 0 1.1\n", encoding="utf-8")
    (tmp_path / "pairs.txt").write_text("en_good en_fine\n", encoding="utf-8")
    table = {"search": {"name": "greedy"}, "candidates": {"name": "embedding", "path": str(tmp_path / "v.txt")}}
    report = run(files, files["out"], table=table)
    assert any("add --opposites FILE" in warning for warning in report.warnings)
    listed = {**table, "constraints": {"opposites": {"files": [str(tmp_path / "pairs.txt")]}}}
    report = run(files, tmp_path / "listed", table=listed)
    assert not any("--opposites" in warning for warning in report.warnings)
    assert AttackFolder.open(tmp_path / "listed").identity["constraints"].keys() == {"pairs.txt"}
    (tmp_path / "pairs.txt").write_text("en_good en_film\n", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"constraints\.pairs\.txt"):
        attack(VICTIM, out=tmp_path / "listed", resume=True)


def test_a_folder_cannot_name_code_to_run(files: dict[str, Path], tmp_path: Path) -> None:
    run(files, files["out"])
    path = files["out"] / "attack.json"
    identity = json.loads(path.read_text())
    with pytest.raises(CheckpointError, match=r"names 'tests\.attack\.toys:predict' as its victim.*--trust-code, or repeat"):
        attack(out=files["out"], resume=True)
    assert attack(out=files["out"], resume=True, trust_code=True).texts_asked == 0
    mark = tmp_path / "touched"
    (tmp_path / "d.tsv").write_text(f"touch {mark}\ta\n", encoding="utf-8")
    places = (
        ("victim", {"victim": {"kind": "run", "name": "subprocess:getoutput", "labels": ["a", "b"]}}),
        ("search", {"plan": {**identity["plan"], "search": {"name": "subprocess:getoutput"}}}),
        ("constraint os:system", {"plan": {**identity["plan"], "constraints": {"os:system": {}}}}),
        ("segmenter", {"plan": {**identity["plan"], "attack": {"segmenter": "os:getcwd"}}}),
    )
    for place, change in places:
        path.write_text(json.dumps({**identity, "data": {"path": str(tmp_path / "d.tsv"), "sha256": ""}, **change}))
        with pytest.raises(CheckpointError, match=f"as its {place}, which would be imported"):
            attack(VICTIM if place != "victim" else None, out=files["out"], resume=True)
    assert not mark.exists()


def test_folders_of_the_first_format_can_be_compared_and_not_resumed(files: dict[str, Path], tmp_path: Path) -> None:
    run(files, tmp_path / "new")
    run(files, tmp_path / "old")
    path = tmp_path / "old" / "attack.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 1}))
    lines = [json.loads(line) for line in (tmp_path / "old" / "examples.jsonl").read_text().splitlines()]
    for line in lines:
        del line["space"]
        if line["outcome"] == "no_candidates":
            line |= {"outcome": "failed", "reason": "no word has a substitute"}
        for change in line["changes"]:
            del change["begin"]
    (tmp_path / "old" / "examples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = compare(tmp_path / "new", tmp_path / "old")
    assert all(row.difference.value == 0 for row in found.rows)
    old = AttackFolder.open(tmp_path / "old").results()
    assert [marked(result) for result in old.values()] == [
        marked(result) for result in AttackFolder.open(tmp_path / "new").results().values()
    ]
    with pytest.raises(CheckpointError, match=r"begun by an earlier version.*start anew: sememekit attack tests"):
        attack(VICTIM, out=tmp_path / "old", resume=True)


def test_damaged_folders_are_refused_in_words(files: dict[str, Path]) -> None:
    run(files, files["out"])
    whole = {name: (files["out"] / name).read_bytes() for name in ("attack.json", "report.json")}
    good = json.loads(whole["attack.json"])
    for content in (
        "[" * 100_000,
        "{",
        "[]",
        json.dumps({"format": 2}),
        json.dumps({**good, "plan": 3}),
        json.dumps({**good, "victim": []}),
        json.dumps({**good, "data": {"path": 1}}),
        json.dumps({**good, "plan": {**good["plan"], "search": [1]}}),
    ):
        (files["out"] / "attack.json").write_text(content)
        with pytest.raises(CheckpointError, match=r"attack\.json"):
            attack(VICTIM, out=files["out"], resume=True)
    (files["out"] / "attack.json").write_text(json.dumps({**good, "plan": {**good["plan"], "attack": {}}}))
    with pytest.raises(CheckpointError, match="no query budget"):
        compare(files["out"], files["out"])
    (files["out"] / "attack.json").write_bytes(whole["attack.json"])
    for content in ("{}", "3", "{", "[" * 100_000):
        (files["out"] / "report.json").write_text(content)
        with pytest.raises(CheckpointError, match=r"report\.json is no report of an attack.*--resume"):
            compare(files["out"], files["out"])


def test_half_a_surrogate_is_refused_at_reading(files: dict[str, Path]) -> None:
    data = files["data"].with_suffix(".jsonl")
    for line, problem in (
        ('{"text": "fine \\ud800", "label": "yes"}', r"data\.jsonl:2: half a surrogate pair"),
        ("[" * 100_000, r"data\.jsonl:2: not JSON"),
    ):
        data.write_text(f'{{"text": "good", "label": "yes"}}\n{line}\n', encoding="utf-8")
        with pytest.raises(DataError, match=problem):
            run({**files, "data": data}, files["out"])
    assert not files["out"].exists()


def test_functions_of_the_wrong_kind(chinese: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "raises_when_read.py").write_text("1 / 0\n", encoding="utf-8")
    (tmp_path / "leaves_when_read.py").write_text("raise SystemExit(0)\n", encoding="utf-8")
    (tmp_path / "needs_more.py").write_text("import no_such_module_anywhere\n", encoding="utf-8")
    for victim, problem in (
        (":", "write module:function"),
        ("chinese_victim:", "write module:function"),
        ("chinese_victim:nothing", "has no function 'nothing'"),
        ("chinese_victim:seen", "is no function"),
        ("chinese_victim:numbers", "its labels must be strings, and 0 is int"),
        ("raises_when_read:f", "raised ZeroDivisionError"),
        ("leaves_when_read:f", "raised SystemExit"),
        ("needs_more:f", "needs the module 'no_such_module_anywhere'"),
    ):
        with pytest.raises(ConfigError, match=problem):
            attack(victim, chinese["data"], chinese["out"], table={"attack": {"segmenter": "jieba"}})
    table = {"candidates": {"name": "table", "path": str(chinese["table"])}, "attack": {"segmenter": "jieba"}}
    with pytest.raises(DataError, match="the victim raised SystemExit: 0"):
        attack("chinese_victim:exits", chinese["data"], chinese["out"], table=table)
