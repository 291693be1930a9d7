"""Names of variants: our own, classes of a user's own, and everything that is neither; code that folders name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sememekit.commands.preprocess import preprocess
from sememekit.config import check_code, load_variant, trusting_code
from sememekit.decoders.softmax import Softmax
from sememekit.errors import ConfigError
from sememekit.runs.plan import variant
from sememekit.text.segmenters import open_segmenter


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("os:system", "this is a builtin_function_or_method, and no decoder"),
        ("pathlib:Path", "this is the class Path, and no decoder"),
        ("sememekit.encoders.lstm:LSTM", "no decoder|has no class"),
        (":", "expected package.module:Class"),
        ("os:", "expected package.module:Class"),
        (":system", "expected package.module:Class"),
        ("os..path:join", "expected package.module:Class"),
        ("a b:c", "expected package.module:Class"),
        ("no_such_module_x:Mine", "no module named 'no_such_module_x'"),
        ("os:Nothing", "has no class 'Nothing'"),
        ("sofmax", "did you mean 'softmax'"),
    ],
)
def test_what_is_no_decoder_is_told_in_a_sentence(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        variant("decoder", name)


@pytest.mark.parametrize("name", ["sys:exit", "os:system", "pathlib:Path", "io:StringIO"])
def test_what_is_no_segmenter_is_refused_and_not_called(name: str) -> None:
    with pytest.raises(ConfigError, match="no segmenter"):
        open_segmenter(name)


def test_what_is_no_data_set_is_refused(tmp_path: Path) -> None:
    for name in ("os:system", "pathlib:Path"):
        with pytest.raises(ConfigError, match="no data set"):
            preprocess(name, tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_module_that_fails_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    Path("lab_broken_a.py").write_text("1 / 0\n")
    Path("lab_broken_b.py").write_text("import no_such_thing_at_all\n")
    Path("lab_broken_c.py").write_text("def (\n")
    for name, message in (("a", "ZeroDivisionError"), ("b", "needs 'no_such_thing_at_all'"), ("c", "SyntaxError")):
        with pytest.raises(ConfigError, match=message):
            load_variant("decoder", f"lab_broken_{name}:Mine", {})


def test_a_class_of_the_working_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    package = tmp_path / "lab_found_here"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "layers.py").write_text("from sememekit.decoders.softmax import Softmax\nclass Mine(Softmax):\n    pass\n")
    assert issubclass(variant("decoder", "lab_found_here.layers:Mine"), Softmax)
    assert sys.path[-1] == str(tmp_path), "behind what is installed, so that nothing there is hidden"


def test_code_out_of_a_folder_is_trusted_by_name_or_in_all() -> None:
    names = {"decoder.name": "my_lab:Mine", "encoder.name": "lstm", "task.name": None}
    with pytest.raises(ConfigError, match=r"run/plan\.json names code.*decoder\.name = 'my_lab:Mine'"):
        check_code(names, "run/plan.json")
    with trusting_code({"other:Mine"}), pytest.raises(ConfigError):
        check_code(names, "run/plan.json")
    with trusting_code(False), pytest.raises(ConfigError):
        check_code(names, "run/plan.json")
    with trusting_code({"my_lab:Mine"}):
        check_code(names, "run/plan.json")
    with trusting_code(), trusting_code(False):
        check_code(names, "run/plan.json")
    with pytest.raises(ConfigError):
        check_code(names, "run/plan.json")
