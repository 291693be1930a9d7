"""The attack command: reports, comparison, stops, pages."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from markupsafe import escape
from typer.testing import CliRunner

from sememekit.attack.folder import AttackFolder
from sememekit.attack.folder import compare_attacks as compare
from sememekit.commands._program import app
from sememekit.errors import CheckpointError, DataError
from sememekit.jobs.attack import attack
from sememekit.measure.intervals import wilson_interval
from sememekit.reports.attack import _TITLES, charts, charts_of, comparison_page, comparison_rows, rate_rows
from sememekit.reports.table import shown_rate
from tests.attack.toys import TEXTS
from tests.commands.attacks import VICTIM, run, table_of
from tests.pages import check_page

ROOT = Path(__file__).resolve().parents[2]


def test_an_option_without_its_values_names_the_help_of_the_command() -> None:
    done = CliRunner().invoke(app, ["attack", "--compare", "a"])
    assert done.exit_code == 2
    assert "requires 2 arguments; see 'sememekit attack --help'" in done.stderr


@pytest.mark.parametrize(("option", "setting"), [("--limit", "attack.limit"), ("--query-budget", "attack.query_budget")])
def test_a_setting_that_is_typed_as_an_option_is_told(option: str, setting: str) -> None:
    done = CliRunner().invoke(app, ["attack", "mine:predict", option, "5"])
    assert done.exit_code == 2
    assert f"error: {option} is a setting: --set {setting}=VALUE; see 'sememekit attack --help'" in done.stderr


def test_a_report_tells_outcomes_apart(files: dict[str, Path], real_charts: None) -> None:
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
    told = check_page(page).charts
    assert [name.split(":")[0].removeprefix("Share of the examples that are fooled ") for name in told] == [
        "within so many queries",
        "with so many words changed at most",
    ]
    assert all(name.endswith(f"success rate {100 * report.rates.success_rate.value:.1f} %") for name in told)
    results = AttackFolder.open(files["out"]).results().values()
    by_queries, by_words = (chart.lines[0].points for chart in charts({"one": list(results)}))
    for line in (chart.lines[0] for chart in charts({"one": list(results)})):
        counts = [round(share * report.rates.attackable) for _, share in line.points]
        assert line.band == tuple(wilson_interval(count, report.rates.attackable) for count in counts)
    assert (by_queries[0], by_words[0]) == ((1.0, 0.0), (0.0, 0.0))
    assert by_queries[-1][1] == by_words[-1][1] == pytest.approx(report.rates.success_rate.value)
    for level, rate in report.rates.success_at.items():
        within = max((share for queries, share in by_queries if queries <= level), default=0.0)
        assert rate is None or within == pytest.approx(rate.value)
    for changed, share in by_words:
        enough = [one for one in results if one.outcome == "success" and one.words_changed <= changed]
        assert share == pytest.approx(len(enough) / report.rates.attackable)
    assert by_words[-1][0] == max(one.words_changed for one in results) > 1
    none = [one.model_copy(update={"outcome": "failed", "words_changed": 0}) for one in results if one.outcome == "success"]
    assert [chart.x for chart in charts({"one": none})] == ["queries"]
    assert charts({"one": [one for one in results if one.outcome == "skipped"]}) == []


def test_rows_of_the_page_can_be_sorted_and_filtered(files: dict[str, Path]) -> None:
    report = run(files, files["out"])
    page = (files["out"] / "report.html").read_text()
    rows = re.findall(r'<tr data-kind="(\w+)"><th scope="row" data-key="(\d+)">', page)
    assert Counter(kind for kind, _ in rows) == {kind: number for kind, number in report.rates.outcomes.items() if number}
    assert [kind for kind, _ in rows] == sorted((kind for kind, _ in rows), key=[*_TITLES].index), "successes first"
    keys = re.findall(r'<td class="number" data-key="(\d+)">', page)
    won = {one.index: one for one in AttackFolder.open(files["out"]).results().values()}
    assert [(int(queries), int(changed)) for queries, changed in zip(keys[::2], keys[1::2], strict=True)] == [
        (won[int(index)].queries, won[int(index)].words_changed) for _, index in rows
    ]
    told = f'<option value="success">Fooled: {report.rates.outcomes["success"]}</option>'
    assert told in page
    assert '<p class="filter" hidden>' in page, "shown by the script that makes it work"
    assert "bar.hidden = false" in check_page(page).scripts


def test_comparison_of_two_attacks(files: dict[str, Path], tmp_path: Path) -> None:
    run(files, tmp_path / "a")
    run(files, tmp_path / "b", table=table_of(files) | {"search": {"name": "greedy"}})
    found = compare(tmp_path / "a", tmp_path / "b")
    assert found.common == len(TEXTS) + 1
    assert found.only_one == 1
    assert found.unlike["plan.search.name"] == ("genetic", "greedy")
    assert [row.difference.value for row in found.rows if row.name == "accuracy"] == [0.0]
    outputs = ["--figure", str(tmp_path / "c.svg"), "--html", str(tmp_path / "c.html")]
    both = CliRunner().invoke(app, ["attack", "--compare", *map(str, (tmp_path / "a", tmp_path / "b")), *outputs])
    assert both.exit_code == 0, both.stderr
    drawn = charts_of({name: tmp_path / name for name in ("a", "b")})
    assert (tmp_path / "c.html").read_text() == comparison_page(found, drawn)
    assert '<figure class="chart' in (tmp_path / "c.html").read_text()
    drawn = (tmp_path / "c.svg").read_text(encoding="utf-8")
    rate = next(row for row in found.rows if row.name == "success rate")
    assert all(f">{name} {100 * value:.1f} %<" in drawn for name, value in (("a", rate.first.value), ("b", rate.second.value)))
    row = next(row for row in comparison_rows(found) if row[0] == "success rate")
    assert row[1:3] == (shown_rate(rate.first), shown_rate(rate.second))
    same = compare(tmp_path / "a", tmp_path / "a")
    assert same.unlike == {}
    assert all(row.difference.value == 0 and not row.excludes_zero for row in same.rows)
    printed = CliRunner().invoke(app, ["attack", "--compare", str(tmp_path / "a"), str(tmp_path / "a")]).stdout
    assert "both were made with the same settings" in printed
    assert "What differs" not in printed
    (tmp_path / "x.tsv").write_text("good\tyes\n", encoding="utf-8")
    run({**files, "data": tmp_path / "x.tsv"}, tmp_path / "d")
    with pytest.raises(DataError, match="different data"):
        compare(tmp_path / "a", tmp_path / "d")
    with pytest.raises(CheckpointError, match=r"has no attack\.json"):
        compare(tmp_path / "a", tmp_path)
    told = CliRunner().invoke(
        app, ["attack", "--compare", str(tmp_path / "a"), str(tmp_path), "--html", str(tmp_path / "x.tsv")]
    )
    assert "x.tsv is there already and is not a page" in told.stderr, "before the folders are read"


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


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no such signals")
def test_a_signal_ends_with_75_and_resuming_finishes(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    done = CliRunner().invoke(app, ["attack", "slow_victim:predict", "--out", "out", "--resume", "--json"])
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["rates"]["examples"] == len(TEXTS) + 2


def test_a_few_uncut_texts_are_a_warning(files: dict[str, Path]) -> None:
    with files["data"].open("a", encoding="utf-8") as stream:
        stream.write("这部新上映的电影很好看\tyes\n")
    report = run(files, files["out"])
    assert any("1 of 11 examples hold Chinese without blanks" in warning for warning in report.warnings)


def test_a_report_says_what_was_left_alone_and_warns_where_it_says_little(files: dict[str, Path]) -> None:
    report = run(files, files["out"])
    assert any(note.startswith("constraints standard: stop_words, protected, names, part_of_speech, ") for note in report.notes)
    assert "part of speech not checked: no lexicon was given; add --source FORMAT:PATH" in report.notes
    assert any(note.startswith("opposites left out: ") and "no antonym list was given" in note for note in report.notes)
    assert any(note.startswith("known-words filter off: the victim names no words") for note in report.notes)
    assert report.warnings == (
        "1 of 10 examples ended in an error (most frequent: unknown label 'perhaps'; the victim's labels: no, yes); rates are "
        "over the rest and may be biased",
    )
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
    assert rows[f"accuracy under attack, {untried} untried as surviving"] == shown_rate(little.rates.accuracy_at_most)
    assert rows[f"success rate, of all {little.rates.attacked} attacked"] == shown_rate(little.rates.success_of_attacked)


def test_with_a_target_the_line_is_not_called_accuracy(files: dict[str, Path], tmp_path: Path) -> None:
    """A text that moves the victim to a third label is no success, and the victim is wrong on it all the same."""
    aimed = run(files, tmp_path / "a", table=table_of(files, goal__name="targeted") | {"search": {"name": "greedy"}})
    free = run(files, tmp_path / "b", table=table_of(files) | {"search": {"name": "greedy"}})
    assert (aimed.targeted, free.targeted) == (True, False)
    line = f"right before and not turned to the target, {aimed.rates.untried} untried as "
    shown = {name: value for name, value in rate_rows(aimed) if "under attack" in name or name.startswith(line)}
    assert shown == {
        f"{line}surviving": shown_rate(aimed.rates.accuracy_at_most),
        f"{line}fooled": shown_rate(aimed.rates.accuracy_under_attack),
    }
    assert f"{line}surviving" in (tmp_path / "a" / "report.html").read_text(encoding="utf-8")
    assert aimed.rates == free.rates, "of two labels one is left"
    names = [row.name for row in compare(tmp_path / "a", tmp_path / "b").rows]
    assert names[1:3] == ["right before and not turned to the target", f"{line.partition(',')[0]}, untried as surviving"]
    assert [row.name for row in compare(tmp_path / "b", tmp_path / "b").rows][1] == "accuracy under attack"


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


def test_what_some_candidates_take_is_for_a_constraint_with_others(files: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("good 1 0\nfine 1 0.1\nfilm 0 1\nbad -1 0\npoor -1 0.1\nfinish 1 1\n", encoding="utf-8")
    (tmp_path / "l.tsv").write_text("word\tpos\tsememes\nend\tnoun\tx\nfinish\tverb\tx\n", encoding="utf-8")
    typed = [
        "attack",
        VICTIM,
        "--labels",
        "no,yes",
        "--data",
        str(files["data"]),
        "--search",
        "greedy",
        "--candidates",
        "table",
    ]
    typed += [
        "--set",
        f"candidates.path={files['table']}",
        "--source",
        f"table:{tmp_path}/l.tsv",
        "--vectors",
        f"{tmp_path}/v.txt",
    ]
    found = CliRunner().invoke(app, [*typed, "--out", str(files["out"]), "--json"])
    assert found.exit_code == 0, found.stderr
    notes = json.loads(found.stdout)["notes"]
    assert notes[0].startswith("constraints standard: stop_words, protected, names, part_of_speech, first_senses, agreement, ")
    assert notes[0].endswith(", similarity")
    assert "part of speech kept where known: table:l.tsv" in notes
    said = "similarity: cosine of the text before and after at least 0.98, of each word and its substitute at least 0.3"
    assert f"{said}, vectors v.txt" in notes
    changes = [change for result in AttackFolder.open(files["out"]).results().values() for change in result.changes]
    assert changes
    assert {change.new for change in changes} <= {"fine", "poor"}, "finish is a verb, the others have no vector"
    assert AttackFolder.open(files["out"]).identity["constraints"].keys() == {"table:l.tsv", "v.txt"}
    bare = CliRunner().invoke(app, [*typed[:12], "--constraints", "none", "--out", str(tmp_path / "bare"), "--json"])
    assert bare.exit_code == 0, bare.stderr
    told = json.loads(bare.stdout)["notes"]
    assert told[:2] == ["constraints none: everything may change", "stop words, marks, numbers and negations may change"]
    wrong = CliRunner().invoke(app, [*typed, "--constraints", "nothing", "--out", str(tmp_path / "x")])
    assert wrong.exit_code == 1
    assert "constraints" in wrong.stderr
    assert "none" in wrong.stderr
