"""The folder of an attack: what may be resumed and compared, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from sememekit.attack.folder import AttackFolder
from sememekit.attack.folder import compare_attacks as compare
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.files import sealed
from sememekit.jobs.attack import attack
from tests.commands.attacks import VICTIM, run, table_of


def test_resuming_equals_never_stopping(files: dict[str, Path], tmp_path: Path) -> None:
    run(files, tmp_path / "straight")
    whole = (tmp_path / "straight" / "examples.jsonl").read_bytes()
    run(files, tmp_path / "again")
    lines = (tmp_path / "again" / "examples.jsonl").read_bytes().splitlines(keepends=True)
    for keep in range(0, len(lines), 3):
        (tmp_path / "again" / "report.json").unlink()
        torn = b"".join(lines[:keep]) + lines[keep][: len(lines[keep]) // 2]
        (tmp_path / "again" / "examples.jsonl").write_bytes(torn)
        report = attack(VICTIM, out=tmp_path / "again", resume=True)
        assert (tmp_path / "again" / "examples.jsonl").read_bytes() == whole
        assert report.rates.examples == len(lines)
    assert attack(VICTIM, out=tmp_path / "again", resume=True).texts_asked == 0
    other = run(files, tmp_path / "other", table=table_of(files, attack__together=100, attack__batch_size=1))
    assert (tmp_path / "other" / "examples.jsonl").read_bytes() == whole
    assert other.calls == other.texts_asked


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"candidates": {"name": "sememe"}}, r"\[candidates\] sememe: name a lexicon: --source open"),
        ({"candidates": {"name": "embedding"}}, r"embedding: name a file of word vectors with --vectors FILE"),
        ({"constraints": {"similarity": {}}}, r"\[constraints\.similarity\] needs word vectors: .*--vectors FILE"),
        ({"constraints": {"paraphrases": {}}}, r"\[constraints\.paraphrases\] needs a list .*--paraphrases FILE"),
        ({"constraints": {"perplexity": {}}}, r"\[constraints\.perplexity\] needs a language model: .*--lm RUN"),
        ({"constraints": {"language_model": {}}}, r"\[constraints\.language_model\] needs a language model: .*--lm RUN"),
    ],
)
def test_what_an_attack_lacks_is_told_before_the_victim_is_opened(tmp_path: Path, table: dict[str, Any], message: str) -> None:
    absent = str(tmp_path / "no-victim")
    table = {"candidates": {"name": "wordnet"}, **table}
    with pytest.raises(ConfigError, match=message):
        attack(absent, tmp_path / "no-data.tsv", tmp_path / "out", table=table)
    assert not (tmp_path / "out").exists()


def test_a_wrong_name_of_the_data_is_told_before_the_victim_is_opened(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no-data\.tsv: cannot be read: No such file"):
        attack(
            str(tmp_path / "no-victim"), tmp_path / "no-data.tsv", tmp_path / "out", table={"candidates": {"name": "wordnet"}}
        )


def test_a_folder_that_is_taken_is_told_before_the_victim_is_opened(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    with pytest.raises(CheckpointError, match="exists already; go on with --resume"):
        attack(str(tmp_path / "no-victim"), tmp_path / "no-data.tsv", tmp_path, table={"candidates": {"name": "wordnet"}})


def test_resuming_with_something_else_is_refused(files: dict[str, Path]) -> None:
    run(files, files["out"])
    with pytest.raises(CheckpointError, match=r"plan\.search\.population = 6, and now it is 7"):
        run(files, files["out"], resume=True, table=table_of(files, search__population=7))
    with pytest.raises(CheckpointError, match=r"begun with plan\.search\.name = 'genetic', and now it is 'pso'"):
        run(files, files["out"], resume=True, table={"search": {"name": "pso"}})
    run(files, files["out"], resume=True, table=table_of(files, attack__together=9))
    files["data"].write_text("good\tyes\n", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"data\.sha256"):
        attack(VICTIM, out=files["out"], resume=True)
    with pytest.raises(CheckpointError, match="exists already"):
        run(files, files["out"])
    (files["out"] / "report.json").unlink()
    (files["out"] / "examples.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"examples\.jsonl:1: no result"):
        AttackFolder.open(files["out"]).results()


@pytest.mark.parametrize("kind", ["lexicon", "lemmas", "opposites", "table"])
def test_resuming_with_files_of_other_content_is_refused(files: dict[str, Path], kind: str) -> None:
    """The path of a lexicon stays, its content does not: the rest would have other substitutes than the report."""
    folder = files["data"].parent
    written = {
        "lexicon": "good\tfine|好\nnice\tfine|好\nbad\tpoor|坏\nweak\tpoor|坏\n",
        "lemmas": "end\tends\n",
        "opposites": "good\tbad\n",
    }
    for name, text in written.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    sememe = {"name": "sememe", "sources": [f"table:{folder / 'lexicon.txt'}"], "lemmas": str(folder / "lemmas.txt")}
    candidates = sememe if kind in ("lexicon", "lemmas") else table_of(files)["candidates"]
    opposites = {"constraints": {"opposites": {"files": [str(folder / "opposites.txt")]}}}
    run(files, files["out"], table={**table_of(files), "candidates": candidates, **opposites})
    assert attack(VICTIM, out=files["out"], resume=True).texts_asked == 0
    path = files["table"] if kind == "table" else folder / f"{kind}.txt"
    more = path.read_text("utf-8")[:-1] + ', "slow": ["tall"]}' if kind == "table" else written[kind] + "slow\tweak\n"
    path.write_text(more, encoding="utf-8")
    part = "constraints" if kind == "opposites" else "candidates"
    with pytest.raises(CheckpointError, match=rf"begun with {part}\.\S*{path.name}.* = '.*', and now it is"):
        attack(VICTIM, out=files["out"], resume=True)


EDITED = """
import os
from tests.attack.toys import predict as before

def predict(texts):
    found = before(texts)
    shift = float(os.environ["SHIFT"])
    found[:, 0] -= shift
    found[:, 1] += shift
    return found

predict.labels = ("no", "yes")
"""


def test_resuming_with_an_edited_victim_is_refused(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "edited_victim", raising=False)
    (tmp_path / "edited_victim.py").write_text(EDITED, encoding="utf-8")
    monkeypatch.setenv("SHIFT", "0")
    attack("edited_victim:predict", files["data"], files["out"], table=table_of(files))
    path = files["out"] / "examples.jsonl"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    monkeypatch.setenv("SHIFT", "0.0003")
    attack("edited_victim:predict", out=files["out"], resume=True)  # nothing is left to do
    (files["out"] / "report.json").unlink()
    for kept in (lines[1:], lines[:-3], lines[2:3]):
        path.write_bytes(b"".join(kept))
        first = json.loads(kept[0])
        with pytest.raises(CheckpointError) as told:
            attack("edited_victim:predict", out=files["out"], resume=True)
        no, yes = first["probabilities"]
        assert f"gave example {first['index']} ({first['fields'][0][:40]!r}) {no:.4f}, {yes:.4f}, and now" in str(told.value)
        assert "restore the victim as it was, or start anew with another --out" in str(told.value)
        assert path.read_bytes() == b"".join(kept), "nothing was added"
    for shift in ("0.00005", "0"):
        path.with_name("report.json").unlink(missing_ok=True)
        path.write_bytes(b"".join(lines[1:]))
        monkeypatch.setenv("SHIFT", shift)
        attack("edited_victim:predict", out=files["out"], resume=True)
    assert path.read_bytes() == whole


def test_a_folder_cannot_name_code_to_run(files: dict[str, Path], tmp_path: Path) -> None:
    run(files, files["out"])
    path = files["out"] / "attack.json"
    identity = {key: value for key, value in json.loads(path.read_bytes()).items() if key != "sha256"}
    with pytest.raises(CheckpointError, match=r"names 'tests\.attack\.toys:predict' as its victim.*--trust-code, or repeat"):
        attack(out=files["out"], resume=True)
    assert attack(out=files["out"], resume=True, trust_code=True).texts_asked == 0
    mark = tmp_path / "touched"
    (tmp_path / "d.tsv").write_text(f"touch {mark}\ta\n", encoding="utf-8")
    places = (
        ("victim", {"victim": {"kind": "run", "name": "subprocess:getoutput", "labels": ["a", "b"]}}),
        ("search.name", {"plan": {**identity["plan"], "search": {"name": "subprocess:getoutput"}}}),
        ("constraints.os:system", {"plan": {**identity["plan"], "constraints": {"os:system": {}}}}),
        ("attack.segmenter", {"plan": {**identity["plan"], "attack": {"segmenter": "os:getcwd", "query_budget": 0}}}),
    )
    for place, change in places:
        path.write_bytes(sealed({**identity, "data": {"path": str(tmp_path / "d.tsv"), "sha256": ""}, **change}))
        with pytest.raises(CheckpointError, match=f"as its {place}, which would be imported"):
            attack(VICTIM if place != "victim" else None, out=files["out"], resume=True)
    assert not mark.exists()


def test_a_folder_without_an_attack_is_not_to_be_made_one(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"has no attack\.json; give a folder that 'sememekit attack --out' wrote$"):
        attack(VICTIM, out=tmp_path, resume=True)
    with pytest.raises(CheckpointError, match="does not exist; make one with: sememekit attack VICTIM"):
        attack(VICTIM, out=tmp_path / "absent", resume=True)


@pytest.mark.parametrize("file", ["attack.json", "examples.jsonl"])
def test_files_that_the_report_was_not_made_of_are_refused(files: dict[str, Path], file: str) -> None:
    """One digit of each decides rates: without the hashes in report.json, another success rate with exit code 0."""
    run(files, files["out"])
    path = files["out"] / file
    whole = path.read_bytes()
    other = {"attack.json": (b'"population": 6', b'"population": 7'), "examples.jsonl": (b'"success"', b'"skipped"')}[file]
    damages = [whole.replace(*other, 1), *([] if file == "attack.json" else [whole[whole.find(b"\n") + 1 :], whole[:-1], b""])]
    for damaged in damages:
        assert damaged != whole
        path.write_bytes(damaged)
        for act in (lambda: compare(files["out"], files["out"]), lambda: attack(VICTIM, out=files["out"], resume=True)):
            with pytest.raises(
                CheckpointError, match=f"{file} (does not match its own checksum|does not match report\\.json beside it)"
            ):
                act()
        assert path.read_bytes() == damaged, "nothing is written over it"


def test_lines_behind_those_of_the_report_of_a_stopped_attack_are_taken(files: dict[str, Path]) -> None:
    whole = run(files, files["out"])
    folder = AttackFolder.open(files["out"])
    lines = (files["out"] / "examples.jsonl").read_bytes().splitlines(keepends=True)
    (files["out"] / "examples.jsonl").write_bytes(b"".join(lines[:4]))
    folder.write_report(whole.model_copy(update={"stopped": True}))
    (files["out"] / "examples.jsonl").write_bytes(b"".join(lines[:6]) + lines[6][:9])
    assert attack(VICTIM, out=files["out"], resume=True).rates == whole.rates


def test_damaged_folders_are_refused_in_words(files: dict[str, Path]) -> None:
    run(files, files["out"])
    whole = {name: (files["out"] / name).read_bytes() for name in ("attack.json", "report.json")}
    good = {key: value for key, value in json.loads(whole["attack.json"]).items() if key != "sha256"}
    for content in (
        "[" * 100_000,
        "{",
        "[]",
        json.dumps({"format": 2}),
        json.dumps({**good, "plan": 3}),
    ):
        (files["out"] / "attack.json").write_text(content)
        with pytest.raises(CheckpointError, match=r"attack\.json"):
            attack(VICTIM, out=files["out"], resume=True)
    less = {**good["plan"], "attack": {**good["plan"]["attack"], "query_budget": 5}}
    (files["out"] / "attack.json").write_bytes(sealed({**good, "plan": less}))
    with pytest.raises(CheckpointError, match=r"attack\.json does not match report\.json beside it"):
        compare(files["out"], files["out"])
    (files["out"] / "attack.json").write_bytes(whole["attack.json"])
    for content in ("{}", "3", "{", "[" * 100_000):
        (files["out"] / "report.json").write_text(content)
        with pytest.raises(CheckpointError, match=r"report\.json .*delete it to write it anew, with: .*--resume"):
            compare(files["out"], files["out"])
