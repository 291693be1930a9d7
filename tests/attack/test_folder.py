"""The folder of an attack: what may change when it goes on, what is dropped, and what it never imports unasked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sememekit.attack.folder import AttackFolder, code_names
from sememekit.attack.report import AttackReport
from sememekit.errors import CheckpointError, DataError
from sememekit.files import replace_file, sealed
from sememekit.measure.attack_rates import attack_rates, coverage_of
from tests.attack.toys import EXAMPLES, make_attack

IDENTITY: dict[str, Any] = {
    "plan": {
        "goal": {"name": "untargeted"},
        "search": {"name": "beam", "width": 8},
        "candidates": {"name": "wordnet"},
        "constraints": {"share": {"most": 0.2}},
        "attack": {"together": 256, "batch_size": 512, "seed": 1, "query_budget": 7, "segmenter": ""},
    },
    "victim": {"kind": "function", "name": "lab:victim", "labels": ["no", "yes"]},
    "data": {"path": "test.tsv", "sha256": "0" * 64},
    "candidates": {},
    "language_model": {},
}


REPORT: dict[str, Any] = {
    **dict.fromkeys(("folder", "victim", "data", "preset", "goal", "search", "candidates", "counting", "segmentation"), "x"),
    **dict.fromkeys(("query_budget", "queries", "texts_asked", "calls"), 0),
    "notes": (),
    "warnings": (),
    "perplexity_before": None,
    "perplexity_after": None,
    "reasons": {},
    "seconds": 0.5,
    "resume_command": "r",
    "signature": "s",
}


def changed(path: str, value: Any) -> dict[str, Any]:
    found = json.loads(json.dumps(IDENTITY))
    table = found
    *tables, key = path.split(".")
    for name in tables:
        table = table[name]
    table[key] = value
    return found


@pytest.fixture
def folder(tmp_path: Path) -> AttackFolder:
    AttackFolder.create(tmp_path / "attack", IDENTITY)
    return AttackFolder.open(tmp_path / "attack")


def test_a_file_that_may_not_be_read_is_not_called_absent(folder: AttackFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", refuse)
        with pytest.raises(CheckpointError, match=r"attack\.json: cannot be read: Permission denied"):
            AttackFolder.open(folder.path)
    (folder.path / "attack.json").unlink()
    with pytest.raises(CheckpointError, match=r"has no attack\.json"):
        AttackFolder.open(folder.path)
    with pytest.raises(CheckpointError, match="does not exist; make one with"):
        AttackFolder.open(folder.path / "other")


def test_what_decides_speed_alone_may_change(folder: AttackFolder) -> None:
    folder.check(IDENTITY)
    folder.check(changed("plan.attack.together", 2))
    folder.check(changed("plan.attack.batch_size", 3))
    for path, value in (
        ("plan.attack.seed", 2),
        ("plan.search.width", 9),
        ("plan.search.batch_size", 3),
        ("plan.constraints", {}),
        ("victim.labels", ["yes", "no"]),
        ("data.sha256", "1" * 64),
    ):
        with pytest.raises(CheckpointError, match=rf"{path}.* = .*, and now it is"):
            folder.check(changed(path, value))


def test_another_training_of_the_same_name_is_noticed(tmp_path: Path) -> None:
    old = {**IDENTITY, "language_model": {"run": "lm/seed-1", "snapshot": "step-00000500"}, "constraints": {"x.txt": "2" * 64}}
    new = {
        **old,
        "victim": {**old["victim"], "weights": "3" * 64},
        "language_model": {**old["language_model"], "weights": "4" * 64},
        "constraints": {"x.txt": "2" * 64, "x.txt (2)": "5" * 64},
    }
    stored = AttackFolder(tmp_path, new)
    stored.check(new)
    for part, name in (("victim", "weights"), ("language_model", "weights"), ("constraints", "x.txt (2)")):
        other = {**new, part: {**new[part], name: "6" * 64}}
        with pytest.raises(CheckpointError, match=rf"begun with {re.escape(f'{part}.{name}')} = "):
            stored.check(other)
        assert (AttackFolder(tmp_path, other).signature == stored.signature) is (part == "victim")


def signature_of(tmp_path: Path, path: str, value: Any) -> str:
    return AttackFolder(tmp_path, changed(path, value)).signature


def test_the_signature_is_of_all_but_the_victim_and_where_files_lie(tmp_path: Path) -> None:
    """Rates of two victims compare; those on other data or with other settings do not."""
    signature = AttackFolder(tmp_path, IDENTITY).signature
    assert signature.startswith("metric:attack-success-rate|data:00000000|examples:all-first-1|budget:7|settings:")
    for path, value in (
        ("victim.name", "lab:other"),
        ("data.path", "elsewhere/test.tsv"),
        ("plan.attack.together", 2),
        ("plan.attack.batch_size", 3),
    ):
        assert signature_of(tmp_path, path, value) == signature, path
    for path, value in (
        ("data.sha256", "1" * 64),
        ("plan.attack.seed", 2),
        ("plan.attack.query_budget", 8),
        ("plan.search.width", 9),
        ("plan.constraints.share.most", 0.3),
        ("candidates.x", "2" * 64),
    ):
        assert signature_of(tmp_path, path, value) != signature, path
    off = signature_of(tmp_path, "victim.words", "none")
    assert off == f"{signature}|known_words:off", "substitutes that the victim does not know are tried, too"
    without = changed("victim.words", "none")
    without["plan"]["attack"]["known_words"] = False
    assert "known_words" not in AttackFolder(tmp_path, without).signature, "then they are for every victim"
    one, two, other = (
        signature_of(tmp_path, "plan.candidates.sources", [source])
        for source in ("table:/here/x.tsv", "table:there/x.tsv", "table:here/y.tsv")
    )
    assert one == two != other


def test_a_folder_is_made_once_and_a_leftover_is_no_folder(tmp_path: Path) -> None:
    path = tmp_path / "attack"
    path.mkdir()
    (path / ".attack.json.writing").write_text("{", encoding="utf-8")
    assert AttackFolder.create(path, IDENTITY).identity["format"] == 4
    assert AttackFolder.create(tmp_path / "of" / "today", IDENTITY).path.is_dir(), "folders above it are made"
    with pytest.raises(CheckpointError, match="exists already; go on with --resume"):
        AttackFolder.create(path, IDENTITY)
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(CheckpointError, match="exists already"):
        AttackFolder.create(tmp_path / "file", IDENTITY)


def test_a_changed_attack_is_refused(folder: AttackFolder) -> None:
    file = folder.path / "attack.json"
    whole = json.loads(file.read_bytes())
    for content in ({**whole, "plan": []}, {key: value for key, value in whole.items() if key != "sha256"}):
        file.write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(
            CheckpointError, match=r"attack\.json does not match its own checksum.*; take the folder from a copy"
        ):
            AttackFolder.open(folder.path)


def test_a_folder_of_another_format_is_refused(folder: AttackFolder) -> None:
    replace_file(folder.path / "attack.json", sealed({**IDENTITY, "format": 3}))
    with pytest.raises(CheckpointError, match="is not of format 4"):
        AttackFolder.open(folder.path)


def test_a_torn_line_goes_and_the_rest_comes_into_the_order_of_the_data(folder: AttackFolder) -> None:
    assert folder.results() == {}
    folder.drop_torn_line()
    results = {result.index: result for result in make_attack("greedy").run(EXAMPLES)}
    for index in (5, 1, 3):
        folder.append(results[index])
    path = folder.path / "examples.jsonl"
    whole = path.read_bytes()
    folder.drop_torn_line()
    assert path.read_bytes() == whole, "nothing is torn"
    path.write_bytes(whole + b'{"index": 7')
    assert set(folder.results()) == {1, 3, 5}
    folder.drop_torn_line()
    assert path.read_bytes() == whole
    folder.finish()
    lines = path.read_bytes().splitlines()
    assert [json.loads(line)["index"] for line in lines] == [1, 3, 5]
    assert folder.results() == {index: results[index] for index in (1, 3, 5)}
    path.write_bytes(lines[0] + b"\n{}\n" + lines[1] + b"\n")
    with pytest.raises(DataError, match=r"examples\.jsonl:2: no result"):
        folder.results()


def test_a_report_says_whether_the_attack_is_finished(folder: AttackFolder) -> None:
    with pytest.raises(CheckpointError, match="is unfinished"):
        folder.report()
    results = list(make_attack("greedy").run(EXAMPLES))
    for result in results:
        folder.append(result)
    for stopped in (True, False):
        written = AttackReport(**REPORT, rates=attack_rates(results), coverage=coverage_of(()), stopped=stopped)
        folder.write_report(written)
        if stopped:
            with pytest.raises(CheckpointError, match="is unfinished"):
                folder.report()
    assert folder.report() == written
    whole = (folder.path / "report.json").read_bytes()
    replace_file(folder.path / "report.json", whole.replace(b'"attackable": 7', b'"attackable": 8'))
    with pytest.raises(CheckpointError, match=r"does not match its own checksum.*; delete it to write it anew"):
        folder.report()
    for content in (b"[]", b'{"stopped": false}', b'{"stopped": false, "written": [1, 2, 3]}', b'{"written": ["", 0, ""]}'):
        replace_file(folder.path / "report.json", content)
        with pytest.raises(CheckpointError, match=r"report\.json .*delete it to write it anew"):
            folder.report()
    typed = {key: value for key, value in json.loads(whole).items() if key != "sha256"} | {"queries": "many"}
    replace_file(folder.path / "report.json", sealed(typed))
    with pytest.raises(CheckpointError, match=r"report\.json is not what .* \(key 'queries': .*\); delete it.*--resume"):
        folder.report()


def test_the_budget_is_that_of_the_plan(folder: AttackFolder) -> None:
    assert folder.query_budget == 7


def test_code_is_what_has_a_colon_and_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = changed("plan.attack.segmenter", "lab:cut")
    identity["plan"]["search"]["name"] = "lab:Search"
    identity["plan"]["constraints"] = {"share": {}, "lab:Own": {}}
    expected = {"victim": "lab:victim", "search.name": "lab:Search"}
    expected |= {"attack.segmenter": "lab:cut", "constraints.lab:Own": "lab:Own"}
    assert code_names(identity) == expected
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab:victim").mkdir()
    assert code_names(identity) == {place: name for place, name in expected.items() if place != "victim"}


def test_code_is_named_again_or_trusted(folder: AttackFolder) -> None:
    folder.refuse_code((), trust=True)
    folder.refuse_code(["lab:victim"], trust=False)
    with pytest.raises(CheckpointError, match="names 'lab:victim' as its victim"):
        folder.refuse_code(["lab:other"], trust=False)
    assert folder.resume_command == f"sememekit attack lab:victim --out {folder.path} --resume"
    more = AttackFolder(folder.path, changed("plan.search.name", "lab:Search"))
    assert more.resume_command == f"sememekit attack lab:victim --out {folder.path} --resume --trust-code"
    plain = AttackFolder(folder.path, changed("victim.name", "runs/one"))
    assert plain.resume_command == f"sememekit attack --out {folder.path} --resume"
