"""recipes list, show, validate and doctor."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.commands import doctor as doctor_module
from sememekit.commands._program import app
from sememekit.commands.doctor import Check, doctor
from sememekit.config import apply_overrides, list_recipes, load_recipe, recipe_names
from sememekit.runs.plan import read_plan

runner = CliRunner()


def test_recipes_are_listed() -> None:
    result = runner.invoke(app, ["recipes", "list"])
    assert result.exit_code == 0
    assert all(name in result.stdout for name in recipe_names())
    listed = json.loads(runner.invoke(app, ["recipes", "list", "--json"]).stdout)["recipes"]
    assert [recipe["name"] for recipe in listed] == recipe_names()


def test_recipes_and_claims_are_listed_by_a_word() -> None:
    listed = json.loads(runner.invoke(app, ["recipes", "list", "Small/", "--json"]).stdout)["recipes"]
    assert [recipe["name"] for recipe in listed] == [name for name in recipe_names() if name.startswith("small/")]
    shown = runner.invoke(app, ["recipes", "list", "small/sdlm"]).stdout
    assert "small/sdlm" in shown
    assert "ours/pd-softmax" not in shown
    rows = json.loads(runner.invoke(app, ["recipes", "list", "gu, table 4", "--json"]).stdout)["recipes"]
    assert [recipe["name"] for recipe in rows] == ["sdlm/lcsts-sdlm", "sdlm/lcsts-softmax"], "not Buckman's language models"
    assert "15 epochs: 180 h CPU, 6.3 h GPU" in runner.invoke(app, ["recipes", "list", "gu, table 4"]).stdout
    claims = json.loads(runner.invoke(app, ["reproduce", "list", "headlines", "--json"]).stdout)["claims"]
    assert {"sdlm-headlines", "self-organized-headlines"} <= {claim["name"] for claim in claims}
    assert len(claims) < 20
    for command, what in (("recipes", "recipe"), ("reproduce", "claim")):
        done = runner.invoke(app, [command, "list", "zzz"])
        assert done.exit_code == 1
        assert f"no {what} has 'zzz' in its name" in done.stderr
        assert f"'sememekit {command} list' shows all" in done.stderr


def test_a_recipe_is_shown_merged_as_toml_and_json() -> None:
    shown = runner.invoke(app, ["recipes", "show", "ours/pd-softmax"]).stdout
    assert tomllib.loads(shown) == load_recipe("ours/pd-softmax")
    shown = runner.invoke(app, ["recipes", "show", "ours/pd-softmax", "--json"]).stdout
    assert json.loads(shown) == load_recipe("ours/pd-softmax")


def test_every_shipped_recipe_is_valid() -> None:
    result = runner.invoke(app, ["recipes", "validate", "--json"])
    report = json.loads(result.stdout)
    assert [check["problem"] for check in report["checks"] if not check["valid"]] == []
    assert [check["recipe"] for check in report["checks"]] == recipe_names()
    assert result.exit_code == 0


def test_a_wrong_recipe_is_named_and_exits_with_1(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[encoder]\nhiden_size = 3\n", encoding="utf-8")
    result = runner.invoke(app, ["recipes", "validate", str(wrong), "ours/pd-softmax"])
    assert result.exit_code == 1
    first, second = result.stdout.splitlines()
    assert first.startswith("fail ")
    assert "'hiden_size'" in first
    assert second == "ok   ours/pd-softmax"


def test_every_row_of_a_file_is_validated(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('base = "ours/pd-softmax"\n[row.a.encoder]\nhidden_size = 3\n[row.b.encoder]\nhiden_size = 3\n', "utf-8")
    result = runner.invoke(app, ["recipes", "validate", str(mine)])
    assert result.exit_code == 1
    first, second, third = result.stdout.splitlines()
    assert (first, second) == (f"ok   {mine}", f"ok   {mine}:a")
    assert third.startswith(f"fail {mine}:b: ")
    assert "'hiden_size'" in third
    result = runner.invoke(app, ["recipes", "validate", f"{mine}:a", str(tmp_path / "absent.toml")])
    assert [line[:4] for line in result.stdout.splitlines()] == ["ok  ", "fail"]


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["recipes", "show", "ours/pd-softmx"], "did you mean 'ours/pd-softmax'"),
        (["recipes", "show", "absent.toml"], "absent.toml"),
        (["recipes", "show", "."], "unknown recipe"),
    ],
)
def test_a_wrong_name_gives_one_clear_line(arguments: list[str], fragment: str) -> None:
    result = runner.invoke(app, arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert fragment in result.stderr


def test_json_has_characters_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    chinese = list_recipes()[0].model_copy(update={"summary": "词"})
    monkeypatch.setattr("sememekit.commands.recipes.list_recipes", lambda: [chinese])
    monkeypatch.setattr("sememekit.commands.recipes.load_recipe", lambda name: {"task": {"name": "词"}})
    for typed in (["recipes", "list", "--json"], ["recipes", "show", "any", "--json"]):
        assert '"词"' in runner.invoke(app, typed).stdout


def test_the_doctor_looks_at_everything(tmp_path: Path) -> None:
    report = doctor(tmp_path)
    names = {check.name for check in report.checks}
    assert {"python", "torch", "numpy", "device", "threads", "memory", "people's daily", "open lexicon", "folder"} <= names
    assert all(check.fix for check in report.checks if check.status != "ok"), "what is not ok names the command that fixes it"


def test_the_doctor_knows_every_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = {line.rpartition("extra == ")[2].strip("'") for line in requires("sememekit") or () if "extra == " in line}
    assert {*doctor_module.EXTRAS} == declared - {"dev", "docs", "quickstart", "openhownet"}
    found = {check.name: check for check in doctor_module._extras()}
    assert "transformers" in found["extra hf"].detail + found["extra hf"].fix
    monkeypatch.setattr(doctor_module, "EXTRAS", {"none": "nothing at all", "sweep": "settings"})
    lines = ["no-such-one>=3; extra == 'none'", "numpy>=2; extra == 'none'", "numpy>=2; extra == 'sweep'"]
    lines.append("no-such-two>=3; (python_version < '3.9') and extra == 'sweep'")
    monkeypatch.setattr(doctor_module, "requires", lambda name: lines)
    absent, present = doctor_module._extras()
    assert (absent.status, absent.detail) == ("warn", "no-such-one not installed; it is for nothing at all")
    assert absent.fix == 'pip install "sememekit[none]"'
    assert (present.status, present.detail.split()[0]) == ("ok", "numpy")


def test_the_doctor_says_where_the_documentation_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pages, versions = doctor_module._documents()
    assert (pages.status, versions.status) == ("ok", "ok")
    assert Path(pages.detail).with_name("perplexity.md").is_file()
    assert "torch==" in Path(versions.detail).read_text(encoding="utf-8")
    monkeypatch.setattr(doctor_module, "resources_folder", lambda: tmp_path / "resources")
    assert [check.status for check in doctor_module._documents()] == ["warn", "warn"]


def test_the_doctor_exits_with_1_only_when_something_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    good = Check(name="open lexicon", status="ok", detail="")
    monkeypatch.setattr(doctor_module, "_open_lexicon", lambda: good)
    result = runner.invoke(app, ["doctor", "--folder", str(tmp_path), "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["status"] in {"ok", "warn"}
    result = runner.invoke(app, ["doctor", "--folder", str(tmp_path / "absent")])
    assert result.exit_code == 1
    failed = [line for line in result.stdout.splitlines() if line.startswith("fail")]
    assert len(failed) == 1
    assert "fix: " in failed[0]


def test_a_package_that_is_missing_or_broken_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "brokenpackage.py").write_text("raise OSError('libfoo.so: cannot\\nopen')", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    broken = doctor_module._package("brokenpackage", "fail", "mend it")
    assert (broken.status, broken.fix) == ("fail", "mend it")
    assert "libfoo.so: cannot open" in broken.detail
    assert doctor_module._package("no_such_package", "warn", "").detail == "not installed"


def test_what_the_doctor_advises_can_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No remedy names a file that an installed sememekit lacks, and its training setting exists."""
    monkeypatch.setattr("os.sysconf", lambda name: 1024)
    memory = doctor_module._memory()
    override = re.search(r"--set (\S+)=8", memory.fix)
    assert override
    read_plan(apply_overrides({}, [f"{override[1]}=8"]), "test")
    source = inspect.getsource(doctor_module)
    assert "-c constraints.txt" not in source, "where it lies differs"
    checked = {check.name for check in doctor_module._required_packages()}
    assert checked >= {"torch", "rouge-score", "sacrebleu"}, "every package that an installation needs"
    assert not checked & {"pytest", "tensorboard"}, "and no extra"
    monkeypatch.setattr(doctor_module, "requires", lambda name: ["no-such-package>=3; python_version > '3'"])
    (missing,) = doctor_module._required_packages()
    assert (missing.name, missing.status, missing.detail) == ("no-such-package", "fail", "not installed")


def test_a_table_leads_to_its_claims_too() -> None:
    """Table 2 of Gu et al. is measured with the recipes of Table 1."""
    none = runner.invoke(app, ["recipes", "list", "Gu, Table 2"])
    assert none.exit_code == 1
    assert "3 claims have 'Gu, Table 2', too: sememekit reproduce list 'Gu, Table 2'" in none.stderr
    some = runner.invoke(app, ["recipes", "list", "Table 2"])
    assert "claims have 'Table 2', too: sememekit reproduce list 'Table 2'" in some.stdout


def test_show_names_the_corpora_of_a_claim() -> None:
    shown = runner.invoke(app, ["reproduce", "show", "sdlm-below-softmax", "--root", "CORPORA"]).stdout
    needed = [line for line in shown.splitlines() if line.startswith("# needs ")]
    assert [line.rpartition("/")[2] for line in needed][:4] == ["train.txt", "valid.txt", "test.txt", "glossary.dat"]
