"""Victims of an attack that are functions: what they may be, and Chinese texts on their way to them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from sememekit.attack.folder import compare_attacks as compare
from sememekit.commands._program import app
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.attack import attack
from tests.attack.toys import LABELS, TEXTS, predict
from tests.commands.attacks import VICTIM, run, table_of


def test_victims_that_cannot_be_used(files: dict[str, Path]) -> None:
    for victim, labels, problem in (
        ("tests.attack.toys:TEXTS", ("a", "b"), "is no function"),
        ("tests.attack.toys:predict", (), "--labels negative,positive"),
        (
            "tests.attack.nothing:predict",
            ("a", "b"),
            "no module named .* can be imported from here; it may lie in the working folder or be installed$",
        ),
        ("tests/attack/nothing.py:predict", ("a", "b"), "or be installed; write tests.attack.nothing:predict$"),
        ("tests.attack.toys:nothing", ("a", "b"), "has no"),
    ):
        with pytest.raises(ConfigError, match=problem):
            attack(victim, files["data"], files["out"], table=table_of(files), labels=labels)
    with pytest.raises(ConfigError, match="a victim and --data"):
        attack(VICTIM, None, files["out"])
    assert not files["out"].exists(), "nothing is written before everything can be used"


def test_a_run_that_is_no_classifier_is_told_before_a_lexicon_is_asked_for(files: dict[str, Path], sdlm: Path) -> None:
    with pytest.raises(
        ConfigError, match="attack needs a model that predicts labels, and this run has the task language_model"
    ):
        attack(str(sdlm), files["data"], files["out"])  # the usual candidates need a lexicon
    with pytest.raises(ConfigError, match="name a lexicon: --source"):
        attack(VICTIM, files["data"], files["out"], labels=LABELS)


def test_a_function_of_other_labels_is_told_how_to_name_those_of_the_data(files: dict[str, Path]) -> None:
    with pytest.raises(
        DataError, match=r"its labels are no, perhaps, yes, and the victim has none of them: negative, positive; .*--labels A,B"
    ):
        attack(VICTIM, files["data"], files["out"], table=table_of(files), labels=("negative", "positive"))
    assert not files["out"].exists(), "it can be typed again as it is"


def always_broken(texts: list[str]) -> Any:
    raise RuntimeError("no model here")


def test_a_victim_that_always_fails_is_no_result(files: dict[str, Path]) -> None:
    with pytest.raises(DataError, match="an error on every example: the victim raised RuntimeError: no model here"):
        attack(
            "tests.commands.test_attack_victims:always_broken",
            files["data"],
            files["out"],
            table=table_of(files),
            labels=("no", "yes"),
        )


def broken_on_fine(texts: list[str]) -> np.ndarray:
    if any("fine" in text for text in texts):
        raise RuntimeError("not fine")
    return predict(texts)


def test_a_victim_that_fails_on_a_part_is_a_warning_and_keeps_its_accuracy(files: dict[str, Path]) -> None:
    name = "tests.commands.test_attack_victims:broken_on_fine"
    files["data"].write_text("".join(f"{text}\t{label}\n" for text, label in TEXTS), encoding="utf-8")
    report = attack(name, files["data"], files["out"], table=table_of(files), labels=LABELS)
    whole = run(files, files["out"].with_name("whole"))
    assert report.rates.outcomes["error"] >= 2
    assert report.rates.accuracy == whole.rates.accuracy
    number = report.rates.outcomes["error"]
    assert report.warnings == (
        f"{number} of {len(TEXTS)} examples ended in an error (most frequent: the victim raised RuntimeError: not fine); "
        "rates are over the rest and may be biased",
    )
    assert report.rates.untried == number + report.rates.outcomes["no_candidates"]


def constant(texts: list[str]) -> np.ndarray:
    return np.array([[0.3, 0.7]] * len(texts))


def turned(texts: list[str]) -> Any:
    return predict(texts)[:, ::-1]


turned.labels = LABELS  # type: ignore[attr-defined]


def test_a_victim_that_calls_all_alike_or_has_its_labels_turned_is_a_warning(files: dict[str, Path]) -> None:
    lines = "".join(f"{text}\t{label}\n" for text, label in TEXTS)
    files["data"].write_text(lines, encoding="utf-8")
    assert run(files, files["out"]).warnings == ()
    victim = "tests.commands.test_attack_victims:constant"
    dull = attack(victim, files["data"], files["out"].with_name("b"), table=table_of(files), labels=LABELS)
    assert dull.warnings == (
        "the victim calls all 8 texts yes, and the data have 2 labels: one that gives the same answer to every text cannot be "
        "fooled, which is not robust",
    )
    turned = attack(VICTIM, files["data"], files["out"].with_name("c"), table=table_of(files), labels=("yes", "no"))
    assert turned.rates.accuracy.high < 0.5
    assert turned.warnings == (
        f"accuracy before the attack is {100 * turned.rates.accuracy.value:.1f} %, at most "
        f"{100 * turned.rates.accuracy.high:.1f} % by its interval, below the 50.0 % of guessing among 2 labels: labels in "
        "another order? --labels no,yes",
    )
    own = attack(
        "tests.commands.test_attack_victims:turned", files["data"], files["out"].with_name("own"), table=table_of(files)
    )
    assert own.warnings[0].endswith(
        "do the data mean the same by no, yes, and does the victim name its columns in their order?"
    ), "--labels that reorder its own names are refused, so they are not advised"
    unlike = compare(files["out"], files["out"].with_name("own")).unlike
    assert unlike["victim.probabilities"] == ("as stored", "other ones for 8 of 8 texts")
    assert not any("probabilities" in name for name in compare(files["out"], files["out"]).unlike)
    files["data"].write_text("a good film\tyes\ngood good film\tyes\n", encoding="utf-8")
    alike = attack(victim, files["data"], files["out"].with_name("d"), table=table_of(files), labels=LABELS)
    assert alike.warnings == (), "of data with one label nothing can be said"


MENDED = """
from pathlib import Path
from tests.attack.toys import predict as whole

def predict(texts):
    if not Path("mended").exists() and any(word in text for text in texts for word in ("fine", "bad")):
        raise RuntimeError("not yet")
    return whole(texts)

predict.labels = ("no", "yes")

def never(texts):
    if not Path("mended").exists():
        raise RuntimeError("not at all")
    return whole(texts)

never.labels = ("no", "yes")
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_examples_on_which_the_victim_failed_are_attacked_again(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mended_victim", raising=False)
    (tmp_path / "mended_victim.py").write_text(MENDED, encoding="utf-8")
    run(files, tmp_path / "whole")
    whole = (tmp_path / "whole" / "examples.jsonl").read_bytes()
    broken = attack("mended_victim:predict", files["data"], files["out"], table=table_of(files), workers=workers)
    assert broken.rates.outcomes["error"] > 3
    again = attack("mended_victim:predict", out=files["out"], resume=True)
    assert again.rates.outcomes == broken.rates.outcomes, "still broken"
    with pytest.raises(DataError, match="on every example") as told:
        attack("mended_victim:never", files["data"], tmp_path / "never", table=table_of(files))
    said = "repair the victim, then: sememekit attack mended_victim:never --out "
    assert f"; {said}{tmp_path / 'never'} --resume" in str(told.value)
    (tmp_path / "mended").touch()
    for name, out, processes in (("predict", files["out"], workers), ("never", tmp_path / "never", 1)):
        mended = attack(f"mended_victim:{name}", out=out, resume=True, workers=processes)
        assert mended.rates.outcomes["error"] == 1, "a label that the victim does not have stays one"
        assert (out / "examples.jsonl").read_bytes() == whole
    assert attack("mended_victim:predict", out=files["out"], resume=True).texts_asked == 0


TALKATIVE = """
from tests.attack import toys

print("loading")

def predict(texts):
    print("asked")
    return toys.predict(texts)
"""


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_what_a_victim_prints_is_no_result(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], workers: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "talkative_victim", raising=False)
    (tmp_path / "talkative_victim.py").write_text(TALKATIVE, encoding="utf-8")
    typed = ["attack", "talkative_victim:predict", "--data", str(files["data"]), "--labels", "no,yes", "--candidates", "table"]
    typed += ["--set", f"candidates.path={files['table']}", "--search", "greedy", "--workers", workers, "--out", "out"]
    with pytest.raises(SystemExit, match=r"^0$"):
        app([*typed, "--json"])
    printed = capfd.readouterr()
    assert json.loads(printed.out)["victim"] == "talkative_victim:predict"
    assert "loading\n" in printed.err
    assert "asked\n" in printed.err


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
    for segmenter, problem in (("english", "are characters, fmm, jieba"), ("", "add --segmenter fmm or jieba")):
        wrong = {**table, "attack": {"segmenter": segmenter, "lexicon": "open"}}
        with pytest.raises(ConfigError, match=problem):
            attack("chinese_victim:predict", chinese["data"], chinese["out"].with_name("x"), table=wrong)


def test_functions_of_the_wrong_kind(chinese: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "raises_when_read.py").write_text("1 / 0\n", encoding="utf-8")
    (tmp_path / "leaves_when_read.py").write_text("raise SystemExit(0)\n", encoding="utf-8")
    (tmp_path / "needs_more.py").write_text("import no_such_module_anywhere\n", encoding="utf-8")
    usual = {"candidates": {"name": "sememe", "sources": ["open"]}, "attack": {"segmenter": "jieba"}}
    for victim, problem in (
        (":", "write module:function"),
        ("chinese_victim:", "write module:function"),
        ("chinese_victim:nothing", "has no function 'nothing'"),
        ("chinese_victim:seen", "is no function"),
        ("chinese_victim:numbers", "its labels must be strings, and 0 is int"),
        ("raises_when_read:f", "failed with ZeroDivisionError"),
        ("leaves_when_read:f", "failed with SystemExit"),
        ("needs_more:f", "its module needs 'no_such_module_anywhere'"),
    ):
        with pytest.raises(ConfigError, match=problem):
            attack(victim, chinese["data"], chinese["out"], table=usual)
    table = {"candidates": {"name": "table", "path": str(chinese["table"])}, "attack": {"segmenter": "jieba"}}
    with pytest.raises(DataError, match="the victim raised SystemExit: 0"):
        attack("chinese_victim:exits", chinese["data"], chinese["out"], table=table)


LINE = """
import numpy as np

def predict(texts):
    good = np.array([0.9 if {"good", "fine"} & set(text.split()) else 0.2 for text in texts])
    return np.stack([1 - good, good], axis=1)

def three(texts):
    return np.full((len(texts), 3), 1 / 3)

def drops(texts):
    return predict(texts)[:-1]
"""


def test_the_line_of_the_start_page_runs_without_folder_and_labels(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The labels come from the data, in an order that the victim's accuracy supports."""
    (tmp_path / "plain_victim.py").write_text(LINE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    data, table = tmp_path / "t.tsv", tmp_path / "s.json"
    data.write_text("a good film\tpos\na bad film\tneg\na dull story\tneg\n", encoding="utf-8")
    table.write_text('{"good": ["decent"], "bad": ["poor"]}', encoding="utf-8")
    before = sorted(path.name for path in tmp_path.iterdir() if path.suffix)

    def line(name: str, data: Path = data) -> Any:
        words = ["attack", f"plain_victim:{name}", "--data", str(data), "--candidates", "table", "--constraints", "none"]
        return CliRunner().invoke(app, [*words, "--set", f"candidates.path={table}"])

    done = line("predict")
    assert done.exit_code == 0, done.stderr
    told = " ".join(done.stderr.split())
    assert (
        "labels of the columns: neg, pos, taken from the data and sorted; in this order the victim is right on 100.0 %" in told
    )
    assert "success 1" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix) == before
    turned = tmp_path / "turned.tsv"
    turned.write_text("a good film\tneg\na bad film\tpos\na dull story\tpos\n", encoding="utf-8")
    for name, file, message in (
        ("predict", turned, "in the order neg,pos of the data it is right on 0.0 % of 3 texts, and on 100.0 % in another"),
        ("predict", turned, "seems to be: --labels pos,neg"),
        ("three", data, "it gives 3 columns, and the data have 2 labels: neg, pos"),
        ("drops", data, "must give an array of shape (3, 2) for 3 texts, and gave (2, 2)"),
    ):
        done = line(name, file)
        assert done.exit_code == 1
        assert message in " ".join(done.stderr.split())
    done = CliRunner().invoke(app, ["attack", "plain_victim:predict", "--data", str(data)])
    assert "--source open (Chinese), or --source table:FILE" in " ".join(done.stderr.split())
