"""Names of variants: our own, classes of a user's own, and everything that is neither; code that folders name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sememekit.config import check_code, installed_variants, load_variant, trusting_code
from sememekit.corpora.opening import open_corpus
from sememekit.data.prepared import PreparedData
from sememekit.decoders.softmax import Softmax
from sememekit.errors import ConfigError
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs.plan import read_plan, variant
from sememekit.runs.slots import settings_table, slot_info
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
        ("no_such_module_x:Mine", "no module named 'no_such_module_x'.* or be installed$"),
        ("no_such_module_x.py:Mine", "or be installed; write no_such_module_x:Mine$"),
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


def install(place: Path, name: str, group: str, points: dict[str, str]) -> None:
    """Write the files that an installed package leaves for ``importlib.metadata``."""
    info = place / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"[{group}]", *(f"{key} = {value}" for key, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def test_an_installed_package_adds_a_variant_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "lab_one", "sememekit.decoder", {"heated": "lab_installed_one:Heated", "softmax": "lab_installed_one:No"})
    install(tmp_path, "lab_two", "sememekit.data_set", {"letters": "lab_installed_one:Letters"})
    (tmp_path / "lab_installed_one.py").write_text(
        "from sememekit.corpora.plain import Plain\nfrom sememekit.decoders.softmax import Softmax\n"
        "class Heated(Softmax):\n    pass\nclass Letters:\n    pass\n"
    )
    assert installed_variants("decoder")["heated"] == "lab_installed_one:Heated"
    assert variant("decoder", "heated").__name__ == "Heated"
    assert variant("decoder", "softmax") is Softmax, "names of ours cannot be taken"
    assert read_plan({"decoder": {"name": "heated", "tied": False}}, "a plan").table()["decoder"]["tied"] is False
    check_code({"decoder.name": "heated"}, "run/plan.json")  # who installs a package trusts it
    with pytest.raises(ConfigError, match=r"did you mean 'heated'\?.*allowed:.*heated.*softmax"):
        variant("decoder", "haeted")
    with pytest.raises(ConfigError, match=r"data set 'letters': this is the class Letters, and no data set"):
        open_corpus("letters", None, {})
    assert "heated" in slot_info("decoder").variants
    assert [setting.key for setting in settings_table("decoder", "heated").settings][-2:] == ["tied", "bias"]


def test_two_packages_with_one_name_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "lab_three", "sememekit.decoder", {"cooled": "one:Cooled"})
    install(tmp_path, "lab_four", "sememekit.decoder", {"cooled": "two:Cooled"})
    with pytest.raises(ConfigError, match=r"two installed packages declare the decoder 'cooled'.*one:Cooled|two:Cooled"):
        variant("decoder", "cooled")


def test_an_installed_segmenter_is_allowed_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "lab_five", "sememekit.segmenter", {"halves": "lab_installed_two:Halves"})
    (tmp_path / "lab_installed_two.py").write_text(
        "class Halves:\n    description = 'halves 1'\n    def segment(self, text):\n"
        "        text = text.strip()\n        return [text[:len(text) // 2], text[len(text) // 2:]]\n"
    )
    (tmp_path / "text.txt").write_text("abcd\n" * 40)
    report = preprocess("plain", tmp_path / "text.txt", tmp_path / "data", PreprocessSettings(segmenter="halves"))
    assert report.signature.segmenter == "halves 1"
    assert PreparedData.open(tmp_path / "data").vocabulary.tokens[:3] == ("<eos>", "ab", "cd")
