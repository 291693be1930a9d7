"""reproduce: from text to verdict on text of our own, resumed, stopped, and what it says of wrong input."""

from __future__ import annotations

import json
import lzma
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.claims import claims
from sememekit.claims.chain import Step, Trial
from sememekit.commands._program import app
from sememekit.jobs.trials import _copy, run_trial
from sememekit.signals import Stopped

runner = CliRunner()

FILE = """
paper = "A paper"
tiny = ["schedule.epochs=1"]
[data.text]
about = "a text"
files = { "train.txt" = "made/train.txt", "valid.txt" = "made/valid.txt", "test.txt" = "made/test.txt" }
lines = { "train.txt" = 300 }
prepare = "preprocess plain {text} --segmenter none --out {data}"
[arm.narrow]
data = "text"
recipe = "ours/ptb-lstm"
set = [
  "decoder.name=softmax",
  "task.embedding_size=4",
  "encoder.hidden_size=4",
  "schedule.epochs=1",
  "task.batch_size=4",
  "optimizer.name=adam",
  "optimizer.learning_rate=0.000001",
]
[arm.wide]
data = "text"
recipe = "ours/ptb-lstm"
set = [
  "decoder.name=softmax",
  "task.embedding_size=24",
  "encoder.hidden_size=24",
  "schedule.epochs=4",
  "task.batch_size=4",
  "optimizer.name=adam",
  "optimizer.learning_rate=0.02",
]
[claim.wide-below-narrow]
statement = "A wide model that learns has a lower perplexity than a narrow one that hardly does."
source = "Table 1"
published = [10.0, 9.9]
small = ["narrow", "wide"]
about = ["task.embedding_size", "task.spread", "encoder.hidden_size"]
also = ["schedule.epochs", "optimizer.learning_rate"]
seeds = 2
[claim.too-large]
statement = "Larger still."
source = "Table 2"
why_not = "too large for a test"
"""


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of texts in which each word says much about the next one, and a file of claims about it."""
    (tmp_path / "made").mkdir()
    drawn = random.Random(1)
    words = [f"w{index}" for index in range(40)]
    for name, lines in (("train", 400), ("valid", 60), ("test", 60)):
        text = []
        for _ in range(lines):
            place, line = drawn.randrange(40), []
            for _ in range(8):
                line.append(words[place])
                place = (3 * place + drawn.choice((1, 2))) % 40
            text.append(" ".join(line))
        (tmp_path / "made" / f"{name}.txt").write_text("\n".join(text) + "\n", encoding="utf-8")
    folder = tmp_path / "claims"
    folder.mkdir()
    (folder / "p.toml").write_text(FILE, encoding="utf-8")
    monkeypatch.setattr(claims, "claims_folder", lambda: folder)
    monkeypatch.setattr("sememekit.jobs.trials.TURNS", 1)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def reproduce(*words: str) -> tuple[int, str, str]:
    result = runner.invoke(app, ["reproduce", *words])
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.slow
def test_a_claim_goes_from_text_to_verdict_and_is_not_run_twice(corpus: Path) -> None:
    code, out, err = reproduce("run", "--root", ".", "--json")
    assert code == 0, err
    report = json.loads(out)
    (found,) = report["claims"]
    assert found["verdict"] == "holds"
    assert found["seeds"] == [2, 2]
    assert found["cpu_minutes"] > 0
    assert found["means"][1] < found["means"][0]
    assert sorted(path.name[:5] for path in Path("reproduced/results").iterdir()) == [
        "narro",
        "narro",
        "time-",
        "wide-",
        "wide-",
    ]
    times = json.loads(next(Path("reproduced/results").glob("time-narrow-wide-*")).read_text(encoding="utf-8"))
    assert (times["arms"], len(times["baseline"]), len(times["other"])) == (["narrow", "wide"], 1, 1)
    assert times["versions"]["processor"]
    assert found["cost"] == times["other"][0] / times["baseline"][0]
    # within the epoch of the narrow model the wide one finishes its first, or there is no such verdict
    assert (found["verdict_at_equal_time"] != "not run") is (found["cost"] <= 1.001)
    result = json.loads(next(Path("reproduced/results").glob("wide-*")).read_text(encoding="utf-8"))
    assert [point["epoch"] for point in result["curve"]] == [1, 2, 3, 4]
    assert result["plan"]["encoder"]["hidden_size"] == 24
    assert result["versions"]["commit"]
    before = {path: path.stat().st_mtime_ns for path in Path("reproduced").rglob("*") if path.is_file()}
    code, again, err = reproduce("run", "--root", ".", "--json")
    assert (code, json.loads(again)) == (0, report)
    assert "trial" not in err
    assert "interleaved" not in err
    assert {path: path.stat().st_mtime_ns for path in Path("reproduced").rglob("*") if path.is_file()} == before

    code, out, _ = reproduce("report", "--html", "ledger.html", "--markdown", "ledger.md")
    assert code == 0
    assert "holds: 1" in out
    assert "not run: 1" in out
    written = Path("ledger.md").read_text(encoding="utf-8")
    assert "`wide-below-narrow` | **holds** |" in written
    assert "too large for a test" in written
    assert "wide-below-narrow" in Path("ledger.html").read_text(encoding="utf-8")


def test_a_claim_names_all_in_which_its_models_differ(corpus: Path) -> None:
    code, out, err = reproduce("show", "wide-below-narrow")
    assert (code, out.splitlines()[0]) == (
        0,
        "# its models also differ in schedule.epochs 4 against 1, optimizer.learning_rate 0.02 against 1e-06",
    )
    Path("claims/p.toml").write_text(FILE.replace('also = ["schedule.epochs", ', "also = ["), encoding="utf-8")
    for line in (["show", "wide-below-narrow"], ["run", "wide-below-narrow", "--root", "."]):
        code, _, err = reproduce(*line)
        assert code == 1
        assert "[claim.wide-below-narrow]: its two models also differ in schedule.epochs (1 against 4); name" in " ".join(
            err.split()
        )


@pytest.mark.slow
def test_two_ways_of_measuring_share_a_training_side_by_side(corpus: Path) -> None:
    arm = FILE[FILE.index("[arm.wide]") : FILE.index("[claim.wide-below-narrow]")].replace("[arm.wide]", "[arm.cached]")
    arm += 'evaluate = "evaluate-ppl {run} --cache --batch-size 20"\n'
    claim = '[claim.cached]\nstatement = "s"\nsource = "t"\nsmall = ["wide", "cached"]\nseeds = 1\nabout = ["evaluate"]\n'
    Path("claims/p.toml").write_text(FILE + arm + claim, encoding="utf-8")
    code, out, err = reproduce("run", "wide-below-narrow", "cached", "--root", ".", "--seeds", "1", "--jobs", "2", "--json")
    assert code == 0, err
    assert [claim["seeds"] for claim in json.loads(out)["claims"]] == [[1, 1], [1, 1]]
    assert err.count("sememekit train") == 2 + 2, "two trainings, and a timing of a turn; none of one training measured twice"
    (timing,) = Path("reproduced/results").glob("time-*")
    assert timing.name.startswith("time-narrow-wide-")
    assert len(list(Path("reproduced/runs").glob("*/plan.json"))) == 2
    results = {path.name.split("-")[0]: json.loads(path.read_text()) for path in Path("reproduced/results").glob("*-small-1-*")}
    assert set(results) == {"narrow", "wide", "cached"}
    assert results["wide"]["curve"] == results["cached"]["curve"]
    assert results["wide"]["measured"]["perplexity"] != results["cached"]["measured"]["perplexity"]
    assert str(corpus) not in json.dumps(results)


@pytest.mark.slow
def test_a_signal_stops_it_and_the_same_command_goes_on(corpus: Path) -> None:
    script = (
        "from pathlib import Path; from sememekit.claims import claims; claims.claims_folder = lambda: Path('claims');"
        "from sememekit.commands._program import main; main()"
    )
    command = [sys.executable, "-c", script, "reproduce", "run", "--root", ".", "--tiny", "--json"]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "NO_COLOR": "1"}
    )
    deadline = time.monotonic() + 120
    while not any(Path("reproduced/runs").glob("*/plan.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=120)
    assert child.returncode == 75, err
    assert "type the same command" in err
    assert "Traceback" not in err
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["claims"][0]["tiny"] is True


def test_what_it_says_of_wrong_input(corpus: Path) -> None:
    for words, message in (
        (("run", "wide-below-narow", "--root", "."), "did you mean 'wide-below-narrow'?"),
        (("run", "too-large", "--root", "."), "has no small protocol: too large for a test"),
        (("run", "--root", "nowhere"), "no folder 'nowhere' of corpora; name the folder with --root DIR"),
    ):
        code, _, err = reproduce(*words)
        assert code == 1
        assert message in err
    Path("mine.md").write_text("# Mine\n", encoding="utf-8")
    code, _, err = reproduce("report", "--markdown", "mine.md")
    assert (code, Path("mine.md").read_text(encoding="utf-8")) == (1, "# Mine\n")
    assert "is there already and is not a ledger of claims" in err


def test_a_missing_text_is_named(corpus: Path) -> None:
    Path("made/valid.txt").unlink()
    code, _, err = reproduce("run", "--root", ".")
    assert code == 1
    assert "made/valid.txt is missing" in err
    assert not Path("reproduced/data").exists() or not any(Path("reproduced/data").rglob("text"))


def test_a_text_is_cut_at_either_end_and_unpacked(tmp_path: Path) -> None:
    lines = b"".join(b"line %d\n" % number for number in range(9))
    (tmp_path / "plain").write_bytes(lines)
    (tmp_path / "packed.xz").write_bytes(lzma.compress(lines))
    words = []
    for source, name, count in (
        ("plain", "first", 2),
        ("plain", "last", -3),
        ("packed.xz", "all", 0),
        ("packed.xz", "some", -1),
    ):
        words += [str(tmp_path / source), str(tmp_path / "text" / name), str(count)]
    step = Step("copy", tuple(words), tmp_path / "text")
    _copy(step)
    found = {path.name: path.read_bytes() for path in (tmp_path / "text").iterdir()}
    assert found == {"first": lines[:14], "last": lines[-21:], "all": lines, "some": b"line 8\n"}
    shutil.rmtree(tmp_path / "text")
    subprocess.run(["sh", "-e", "-c", step.shell()], check=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "text").iterdir()} == found, "typed it does the same"


def test_a_command_that_fails_is_shown_with_its_last_words(corpus: Path) -> None:
    Path("claims/p.toml").write_text(FILE.replace("--segmenter none", "--segmenter nonne"), encoding="utf-8")
    code, _, err = reproduce("run", "--root", ".")
    assert code == 1
    assert "exit code" in err
    assert "preprocess plain" in err


def test_the_list_and_the_script(corpus: Path) -> None:
    code, out, _ = reproduce("list")
    assert code == 0
    assert "wide-below-narrow" in out
    assert json.loads(reproduce("list", "--json")[1])["counts"]["not run"] == 2
    code, out, _ = reproduce("show", "wide-below-narrow", "--root", ".", "--seeds", "1")
    assert code == 0
    assert out.count("\nsememekit train") == 2
    assert out.count("\n  sememekit train") == 2, "in turns"
    head = out.partition("set -e\nmkdir -p")[0].splitlines()
    needed = [f"# needs {corpus.absolute()}/made/{name}.txt" for name in ("train", "valid", "test")]
    assert (head[0].startswith("# its models also differ in "), sorted(head[1:])) == (True, sorted(needed))


def test_what_a_stopped_measurement_left_is_removed_before_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attack refuses a folder that is taken: after a kill the claim would never go on."""
    step = Step("evaluate", ("attack", "run", "--out", str(tmp_path / "x.out"), "--json"), tmp_path / "x.json")
    trial = Trial("x", "arm", 1, False, (step,), (), tmp_path, tmp_path / "run", tmp_path / "result.json")
    (tmp_path / "x.out").mkdir()
    (tmp_path / "x.out" / "identity.json").touch()

    def call(*given: object, **more: object) -> str:
        assert not (tmp_path / "x.out").exists()
        raise Stopped

    monkeypatch.setattr("sememekit.jobs.trials.call", call)
    with pytest.raises(Stopped):
        run_trial(trial, lambda line: None, lambda: False, {})
