"""Attacks on runs of ours, and training on what fooled them."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sememekit.attack.folder import compare_attacks as compare
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.files import sealed
from sememekit.jobs.attack import attack
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs.attacks.victims import open_victim
from sememekit.runs.augment import FILE, augmented
from sememekit.runs.classifier import load_classifier
from sememekit.training import RunFolder
from tests.small_examples import ExamplePlace
from tests.small_run import Place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> ExamplePlace:
    place = ExamplePlace(tmp_path_factory.mktemp("attacked"))
    plan = place.table(optimizer__name="adam", optimizer__learning_rate=0.02, schedule__epochs=10, schedule__factor=1.0)
    train(plan, place.folder / "run")
    return place


@pytest.fixture(scope="module")
def attacked(place: ExamplePlace) -> Path:
    """An attack on training pairs with the words of the vocabulary as substitutes for each other."""
    data, words = place.pairs, place.pairs.vocabulary
    examples = data.examples("train")
    assert data.signature.examples is not None
    assert data.signature.examples.labels is not None
    rows = []
    for number in range(len(examples)):
        texts = [" ".join(words.decode(examples.text(number, side))) for side in (0, 1)]
        rows.append("\t".join([*texts, data.signature.examples.labels[examples.labels[number]]]))
    (place.folder / "train.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    usable = [word for word in words.tokens if word.isalpha()]
    table = {word: [other for other in usable if other != word][:12] for word in usable}
    (place.folder / "table.json").write_text(json.dumps(table), encoding="utf-8")
    plan = {
        "search": {"name": "random", "draws": 40},
        "candidates": {"name": "table", "path": str(place.folder / "table.json")},
        "constraints": {"positions": {"fields": ["hypothesis"]}},
    }
    report = attack(str(place.folder / "run"), place.folder / "train.tsv", place.folder / "attack", table=plan, device="cpu")
    assert report.rates.outcomes["success"] >= 3
    assert report.rates.outcomes["error"] == 0
    return place.folder / "attack" / "examples.jsonl"


def test_a_run_is_a_victim_with_its_own_words_and_labels(place: ExamplePlace, attacked: Path) -> None:
    classifier = load_classifier(place.folder / "run")
    lines = [json.loads(line) for line in attacked.read_text().splitlines()]
    won = [line for line in lines if line["outcome"] == "success"]
    for line in won:
        before, after = classifier.probabilities([tuple(line["fields"]), tuple(line["adversarial"])])
        assert classifier.labels[int(before.argmax())] == line["label"]
        assert classifier.labels[int(after.argmax())] == line["adversarial_prediction"] != line["label"]
        np.testing.assert_allclose(line["adversarial_probabilities"], after, atol=1e-6)
        assert line["adversarial"][0] == line["fields"][0], "the premise stays"
    usual = {"candidates": {"name": "sememe", "sources": ["open"]}}
    with pytest.raises(ConfigError, match="has its own labels"):
        attack(str(place.folder / "run"), place.folder / "train.tsv", place.folder / "x", labels=("a", "b"), table=usual)
    (place.folder / "single.tsv").write_text("a man\tneutral\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"single\.tsv:1: 2 columns with TAB between, 3 are needed"):
        attack(str(place.folder / "run"), place.folder / "single.tsv", place.folder / "x", table=usual)
    with pytest.raises(CheckpointError, match="does not exist"):
        attack(str(place.folder / "nothing"), place.folder / "train.tsv", place.folder / "x", table=usual)


def test_an_empty_hypothesis_is_an_error_of_its_own(place: ExamplePlace, attacked: Path, tmp_path: Path) -> None:
    rows = (place.folder / "train.tsv").read_text().splitlines()
    (tmp_path / "d.tsv").write_text("\n".join([*rows[:5], "a man\t\tneutral"]) + "\n", encoding="utf-8")
    table = {
        "search": {"name": "random", "draws": 5},
        "candidates": {"name": "table", "path": str(place.folder / "table.json")},
    }
    report = attack(str(place.folder / "run"), tmp_path / "d.tsv", tmp_path / "out", table=table, device="cpu")
    assert report.rates.outcomes["error"] == 1
    assert any("the hypothesis is empty" in reason for reason in report.reasons)


def test_successes_are_added_with_their_true_labels(place: ExamplePlace, attacked: Path) -> None:
    data = place.pairs
    won = [line for line in map(json.loads, attacked.read_text().splitlines()) if line["outcome"] == "success"]
    before, after = data.examples("train"), augmented(data, attacked, 1.0, seed=1).examples("train")
    assert len(after) == len(before) + len(won)
    assert data.signature.examples is not None
    assert data.signature.examples.labels is not None
    for offset, line in enumerate(won):
        number = len(before) + offset
        assert data.signature.examples.labels[after.labels[number]] == line["label"]
        assert [" ".join(data.vocabulary.decode(after.text(number, side))) for side in (0, 1)] == line["adversarial"]
    for number in range(len(before)):
        assert all((before.text(number, side) == after.text(number, side)).all() for side in (0, 1))
    few = augmented(data, attacked, 1.5 / len(before), seed=1).examples("train")
    assert len(few) == len(before) + 1
    assert len(augmented(data, attacked, 1.0, seed=1).examples("valid")) == len(data.examples("valid"))


def test_a_run_trains_on_them_and_goes_on_with_them(place: ExamplePlace, attacked: Path, tmp_path: Path) -> None:
    def table(**changes: Any) -> dict[str, Any]:
        found = place.table()
        return {**found, "data": {**found["data"], "augment": str(tmp_path / "a.jsonl"), "augment_share": 0.5}, **changes}

    (tmp_path / "a.jsonl").write_bytes(attacked.read_bytes())
    epochs = place.table()["schedule"]["epochs"]
    train(table(), tmp_path / "straight")
    train(table(schedule={**place.table()["schedule"], "epochs": epochs - 1}), tmp_path / "split")
    (tmp_path / "a.jsonl").unlink()
    train({"schedule": {"epochs": epochs}}, tmp_path / "split", resume=True)
    straight, split = (RunFolder.open(tmp_path / name) for name in ("straight", "split"))
    assert straight.file(FILE).read_bytes() == attacked.read_bytes()
    ours, theirs = (folder.load("last", with_trainer=False).weights for folder in (straight, split))
    assert all((ours[name] == theirs[name]).all() for name in ours)
    plain = RunFolder.open(place.folder / "run").load("last", with_trainer=False).weights
    assert any((ours[name] != plain[name]).any() for name in ours)


def test_augmenting_with_what_is_judged_on_is_refused(place: ExamplePlace, attacked: Path, tmp_path: Path) -> None:
    data, words = place.pairs, place.pairs.vocabulary
    test, seen = data.examples("test"), data.examples("train")
    known = {tuple(" ".join(words.decode(seen.text(n, side))) for side in (0, 1)) for n in range(len(seen))}
    every = [[" ".join(words.decode(test.text(n, side))) for side in (0, 1)] for n in range(len(test))]
    texts = next(texts for texts in every if tuple(texts) not in known)
    (tmp_path / "leak.tsv").write_text("\t".join([*texts, "neutral"]) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="in the validation or test split"):
        augmented(data, tmp_path / "leak.tsv", 0.1, seed=1)
    lines = attacked.read_text().splitlines(keepends=True)
    (tmp_path / "none.jsonl").write_text("".join(line for line in lines if '"outcome":"success"' not in line), encoding="utf-8")
    for name, content, problem in (
        ("none.jsonl", None, "it has no successful attack"),
        ("label.tsv", "a cat\ta dog\tperhaps\n", "label 'perhaps' is none"),
        ("one.tsv", "a cat\tneutral\n", "2 columns with TAB between, 3 are needed"),
        ("torn.jsonl", lines[0] + '{"outcome": "success"\n', "torn.jsonl:2: not JSON"),
        ("none.jsonl", lines[0] + '{"outcome": "success"}\n', "none.jsonl:2: no result of an attack"),
        ("absent.jsonl", None, "no such file"),
    ):
        if content is not None:
            (tmp_path / name).write_text(content, encoding="utf-8")
        with pytest.raises(DataError, match=problem):
            augmented(data, tmp_path / name, 0.1, seed=1)


CHINESE = (
    ("这部新上映的电影非常好看", "好"),
    ("昨天晚上看的电影特别难看", "差"),
    ("演员的表演精彩故事感人", "好"),
    ("剧情混乱导演水平太差", "差"),
)


def test_a_run_that_cuts_english_is_not_cut_by_another_segmenter(tmp_path: Path) -> None:
    (tmp_path / "e.tsv").write_text("a fine film\tgood\na dull film\tbad\n" * 20)
    files = {split: [tmp_path / "e.tsv"] for split in ("train", "valid", "test")}
    preprocess("classification", None, tmp_path / "data", PreprocessSettings(segmenter="english"), files=files)
    plan = {
        "task": {"name": "classification", "embedding_size": 4},
        "encoder": {"name": "lstm", "hidden_size": 4, "num_layers": 1},
        "data": {"path": str(tmp_path / "data")},
        "schedule": {"epochs": 1},
        "run": {"device": "cpu"},
    }
    train(plan, tmp_path / "run")
    (tmp_path / "t.json").write_text('{"fine": ["dull"]}')
    table = {
        "search": {"name": "greedy"},
        "candidates": {"name": "table", "path": str(tmp_path / "t.json")},
        "attack": {"segmenter": "jieba"},
    }
    with pytest.raises(ConfigError, match=r"--segmenter jieba: the run .* cuts texts by .*leave --segmenter out"):
        attack(str(tmp_path / "run"), tmp_path / "e.tsv", tmp_path / "x", table=table, device="cpu")


@pytest.mark.parametrize("segmenter", ["jieba", "fmm", "characters"])
def test_a_run_that_cuts_chinese_is_attacked_on_raw_lines_by_its_own_segmenter(tmp_path: Path, segmenter: str) -> None:
    rows = [f"{text}\t{label}\n" for text, label in CHINESE]
    (tmp_path / "c.tsv").write_text("".join(rows * 6), encoding="utf-8")
    files = {split: [tmp_path / "c.tsv"] for split in ("train", "valid", "test")}
    lexicon = {"lexicon": "open"} if segmenter == "fmm" else {}
    preprocess("classification", None, tmp_path / "data", PreprocessSettings(segmenter=segmenter, **lexicon), files=files)
    plan = {
        "task": {"name": "classification", "embedding_size": 16, "pooling": "max", "batch_size": 4},
        "encoder": {"name": "lstm", "hidden_size": 16, "num_layers": 1},
        "data": {"path": str(tmp_path / "data")},
        "optimizer": {"name": "adam", "learning_rate": 0.05},
        "schedule": {"epochs": 12, "factor": 1.0},
        "run": {"device": "cpu"},
    }
    train(plan, tmp_path / "run")
    words = {"电影": ["表演", "剧情"], "表演": ["导演", "混乱"], "导演": ["精彩"], "故事": ["水平"], "精彩": ["混乱"]}
    (tmp_path / "t.json").write_text(json.dumps(words, ensure_ascii=False), encoding="utf-8")
    (tmp_path / "raw.tsv").write_text("".join(rows), encoding="utf-8")
    table = {"search": {"name": "greedy"}, "candidates": {"name": "table", "path": str(tmp_path / "t.json")}}
    if segmenter == "characters":
        with pytest.raises(DataError, match="no word has a substitute"):  # no candidate is a single character
            attack(str(tmp_path / "run"), tmp_path / "raw.tsv", tmp_path / "alone", table=table, device="cpu")
        assert json.loads((tmp_path / "alone" / "report.json").read_bytes())["coverage"]["words"] > 25
        table["attack"] = {"segmenter": "jieba"}
    report = attack(str(tmp_path / "run"), tmp_path / "raw.tsv", tmp_path / "out", table=table, device="cpu")
    if segmenter == "characters":
        assert report.segmentation.startswith("jieba")
        assert any(note.startswith("known-words filter off") for note in report.notes)
        assert report.rates.attackable == 4, "words that the run reads as characters"
        return
    assert report.segmentation.startswith("the run's own segmenter: ")
    assert report.rates.accuracy.value == 1
    assert report.rates.attackable == 4, "raw lines were one word each"
    assert report.coverage.words > 12
    cut = {**table, "attack": {"segmenter": "characters"}}
    with pytest.raises(ConfigError, match=r"cuts texts by .*leave --segmenter out"):
        attack(str(tmp_path / "run"), tmp_path / "raw.tsv", tmp_path / "x", table=cut, device="cpu")


def test_words_behind_the_longest_text_of_a_run_are_not_attacked(place: ExamplePlace, attacked: Path, tmp_path: Path) -> None:
    """A run that reads three words was attacked on all: its coverage counted words that change nothing."""
    train(place.table(schedule__epochs=1, task__max_length=3), tmp_path / "run")
    named = open_victim(str(tmp_path / "run"), device="cpu")
    assert named.reads is not None
    rows = [line.split("\t")[:2] for line in (place.folder / "train.tsv").read_text(encoding="utf-8").splitlines()]
    for premise, hypothesis in rows[:9]:
        ends = named.reads((premise, hypothesis))
        assert [len(text[:end].split()) for text, end in zip((premise, hypothesis), ends, strict=True)] == [3, 3]
        cut = (" ".join(premise.split()[:3]), " ".join(hypothesis.split()[:3]) + " man man")
        assert np.array_equal(named.victim.alone((premise, hypothesis)), named.victim.alone(cut))
    assert named.reads(("a man", "sleeps")) == (5, 6)
    plan = json.loads((attacked.parent / "attack.json").read_text())["plan"]
    report = attack(str(tmp_path / "run"), place.folder / "train.tsv", tmp_path / "out", table=plan, device="cpu")
    long = [[len(text.split()) for text in row] for row in rows]
    assert report.words_cut == sum(max(length - 3, 0) for lengths in long for length in lengths)
    assert report.texts_cut == sum(max(lengths) > 3 for lengths in long)
    assert report.coverage.words <= 3 * report.coverage.examples, "the hypothesis alone may change"


def test_company_and_interruptions_change_no_bit_of_an_attack_on_a_run(
    place: ExamplePlace, attacked: Path, tmp_path: Path
) -> None:
    table = json.loads((attacked.parent / "attack.json").read_text())["plan"]
    run, data = str(place.folder / "run"), place.folder / "train.tsv"
    whole = attacked.read_bytes()
    for name, settings in (("one", {"together": 1}), ("four", {"together": 4, "batch_size": 7})):
        other = {**table, "attack": {**table["attack"], **settings}}
        attack(run, data, tmp_path / name, table=other, device="cpu")
        assert (tmp_path / name / "examples.jsonl").read_bytes() == whole
    lines = whole.splitlines(keepends=True)
    for keep in range(1, len(lines), max(1, len(lines) // 3)):
        (tmp_path / "one" / "report.json").unlink()
        (tmp_path / "one" / "examples.jsonl").write_bytes(b"".join(lines[:keep]) + lines[keep][:40])
        attack(out=tmp_path / "one", resume=True, device="cpu")
        assert (tmp_path / "one" / "examples.jsonl").read_bytes() == whole


def test_weights_tell_a_victim_and_a_language_model_from_others_of_the_same_name(
    place: ExamplePlace, attacked: Path, tmp_path: Path
) -> None:
    plan = json.loads((attacked.parent / "attack.json").read_text())["plan"]
    table, words = {**plan, "attack": {**plan["attack"], "limit": 3}}, Place(tmp_path)
    run, data, out = tmp_path / "run", place.folder / "train.tsv", tmp_path / "out"
    train(place.table(schedule__epochs=1), run)
    signatures = []
    for number, name in enumerate(("lstm", "transformer"), start=1):
        train(words.table(schedule__epochs=1, run__seed=number), tmp_path / name / "seed-1")
        found = attack(
            str(run), data, out / name, table=table, language_model=tmp_path / name / "seed-1", device="cpu", which="last"
        )
        signatures.append(found.signature)
    assert signatures[0] != signatures[1]
    unlike = compare(out / "lstm", out / "transformer").unlike
    assert unlike.keys() == {"language_model.run", "language_model.weights"}
    whole = (out / "lstm" / "examples.jsonl").read_bytes()
    (out / "lstm" / "report.json").unlink()
    (out / "lstm" / "examples.jsonl").write_bytes(whole.splitlines(keepends=True)[0])
    stored = json.loads((out / "lstm" / "attack.json").read_text())
    last = RunFolder.open(run).pointer()["last"]
    assert stored["victim"]["snapshot"] == last
    assert (
        stored["victim"]["weights"]
        == hashlib.sha256((run / "checkpoints" / last / "weights.safetensors").read_bytes()).hexdigest()
    )
    shutil.rmtree(run)
    train(place.table(schedule__epochs=1, run__seed=5), run)
    assert RunFolder.open(run).pointer()["last"] == last
    with pytest.raises(CheckpointError, match=r"was begun with victim\.weights = "):
        attack(out=out / "lstm", resume=True, device="cpu", which="last")
    del stored["victim"]["weights"], stored["language_model"]["weights"]
    del stored["sha256"]
    (out / "lstm" / "attack.json").write_bytes(sealed(stored))
    with pytest.raises(CheckpointError, match=r"was begun with .*\.weights = None"):
        attack(out=out / "lstm", resume=True, device="cpu", which="last")


CODE = """
from pathlib import Path
Path("executed").touch()
from sememekit.encoders.lstm import LSTM
from sememekit.encoders.bidirectional import BiLSTM
class Both(BiLSTM):
    pass
class One(LSTM):
    pass
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the working folder that leaves a trace when it is imported."""
    name = f"own_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(CODE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    return name


def test_runs_with_own_code_are_attacked_and_asked_where_they_are_trusted(
    place: ExamplePlace, attacked: Path, own: str, tmp_path: Path
) -> None:
    train(place.table(schedule__epochs=1, encoder__name=f"{own}:Both"), tmp_path / "run")
    words = Place(tmp_path / "words")
    train(words.table(schedule__epochs=1, encoder__name=f"{own}:One"), tmp_path / "lm")
    (tmp_path / "executed").unlink()
    del sys.modules[own]
    table = {
        "search": {"name": "random", "draws": 2},
        "candidates": {"name": "table", "path": str(place.folder / "table.json")},
        "attack": {"limit": 2},
    }
    data, models = place.folder / "train.tsv", {"run": str(tmp_path / "run"), "lm": tmp_path / "lm"}
    for victim, judge in ((models["run"], None), (str(place.folder / "run"), models["lm"])):
        with pytest.raises(ConfigError, match=r"plan\.json names code to be run, encoder\.name.*--trust-code"):
            attack(victim, data, tmp_path / "out", table=table, language_model=judge, device="cpu")
    assert not (tmp_path / "executed").exists()
    assert not (tmp_path / "out").exists()
    found = attack(
        models["run"], data, tmp_path / "out", table=table, language_model=models["lm"], device="cpu", trust_code=True
    )
    assert (tmp_path / "executed").exists()
    assert found.rates.examples == 2
    assert found.resume_command == f"sememekit attack --out {tmp_path / 'out'} --resume --trust-code"
    with pytest.raises(ConfigError, match="--trust-code"):
        attack(out=tmp_path / "out", resume=True, device="cpu")
    assert attack(out=tmp_path / "out", resume=True, device="cpu", trust_code=True).rates == found.rates
