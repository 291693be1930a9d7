"""The command tag, and run.tag in Python."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sememekit import load_run
from sememekit.analysis.senses.evaluation import evaluate_senses
from sememekit.analysis.senses.gold import read_gold
from sememekit.analysis.senses.inventory import inventory_of
from sememekit.analysis.senses.tagger import LineReader, SenseTagger
from sememekit.analysis.senses.tagging import FILE
from sememekit.commands._program import app
from sememekit.jobs.build_sememe_graph import build_sememe_graph
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs.run import Run
from tests.small_run import Place

runner = CliRunner()
TEXT = "我 吃 苹果 。\n\n人 买 橘子\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose data were cut by the words of a lexicon."""
    folder = tmp_path_factory.mktemp("tag")
    (folder / "lex.txt").write_text("".join(f"{word}\n义\n" for word in ("苹果", "电脑", "无名")), encoding="utf-8")
    place = Place(folder, segmenter="fmm", lexicon=f"list:{folder / 'lex.txt'}")
    train(place.table("sdlm"), place.folder / "sdlm")
    return place.folder / "sdlm"


def tagged(run: Path, *options: str, text: str = TEXT) -> str:
    found = runner.invoke(app, ["tag", str(run), *options], input=text)
    assert found.exit_code == 0, found.output
    return found.stdout


def test_every_token_has_a_row_with_its_senses(run: Path) -> None:
    lines = tagged(run).splitlines()
    assert lines[1].startswith("# accuracy: not measured; sememekit eval ")
    columns = lines[2].split("\t")
    rows = [dict(zip(columns, line.split("\t"), strict=True)) for line in lines[3:]]
    assert [(row["sentence"], row["token"]) for row in rows] == [
        *(("1", word) for word in ["我", "吃", "苹果", "。"]),
        *(("3", word) for word in ["人", "买", "橘子"]),
    ]
    opened = Run.open(run)
    line = LineReader(opened).read(["我", "吃", "苹果", "。"])
    [[word]] = SenseTagger(opened, inventory_of(opened)).tag([line.ids], [[2]])
    logs = word.log_probabilities("combined")
    apple = rows[2]
    assert int(apple["sense"]) == int(logs.argmax()) + 1
    assert sum(float(part.split()[1]) for part in apple["senses"].split("; ")) == pytest.approx(1.0, abs=1e-3)
    assert (rows[0]["probability"], rows[0]["nats"]) == ("1.0000", ""), "one sense, and nothing before the word"
    assert rows[6]["sense"] == "", "a word outside the vocabulary has no senses"
    assert float(rows[6]["nats"]) > 0


def test_raw_text_is_cut_and_words_choose(run: Path) -> None:
    raw = tagged(run, "--words", "苹果,吃", text="我吃苹果。\n")
    assert raw == tagged(run, "--words", "苹果,吃", text="我 吃 苹果 。\n")
    assert [line.split("\t")[2] for line in raw.splitlines()[3:]] == ["吃", "苹果"]


def test_raw_text_is_refused_where_blanks_cut_the_data(tmp_path: Path) -> None:
    place = Place(tmp_path)
    train(place.table("sdlm", schedule__epochs=1), tmp_path / "blanks")
    found = runner.invoke(app, ["tag", str(tmp_path / "blanks")], input="我吃苹果。\n")
    assert found.exit_code == 1
    assert "cut it first: sememekit segment" in found.stderr


def test_json_lines_begin_with_the_header(run: Path) -> None:
    header, *rows = map(json.loads, tagged(run, "--format", "jsonl", "--method", "share").splitlines())
    assert (header["method"], header["measured"], len(rows)) == ("share", [], 7)
    assert [len(row["senses"]) for row in rows] == [1, 2, 3, 1, 1, 1, 0]


def test_conllu_is_gold_that_can_be_read_again(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "tagged.conllu"
    file.write_text(tagged(run, "--format", "conllu"), encoding="utf-8")
    found = {target.word: target for target in read_gold(file)}
    rows = [json.loads(line) for line in tagged(run, "--format", "jsonl").splitlines()[1:]]
    assert {row["token"]: frozenset(row["senses"][0]["sememes"]) for row in rows if row["senses"]} == {
        word: target.sense for word, target in found.items()
    }


def test_conllu_keeps_sentences_whole(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "tagged.conllu"
    file.write_text(tagged(run, "--words", "苹果", "--format", "conllu"), encoding="utf-8")
    [target] = read_gold(file)
    assert (target.words, target.position, target.word) == (("我", "吃", "苹果", "。"), 2, "苹果")


def test_the_header_has_the_accuracy_of_this_method_alone(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns(FILE)))
    gold = tmp_path / "gold.tsv"
    gold.write_text("sentence\tword\tposition\tsense\n我 吃 苹果\t苹果\t3\t1\n", encoding="utf-8")
    assert runner.invoke(app, ["eval", str(copy), "--senses", str(gold)]).exit_code == 0
    assert "% micro, " in tagged(copy).splitlines()[1]
    assert "of 1 words in gold.tsv" in tagged(copy).splitlines()[1]
    assert "not measured" in tagged(copy, "--method", "usual").splitlines()[1]


@pytest.mark.parametrize(("options", "told"), [(["--source", "table:absent"], "absent"), (["--method", "x"], "x")])
def test_nothing_is_written_where_it_cannot_tag(run: Path, options: list[str], told: str) -> None:
    found = runner.invoke(app, ["tag", str(run), *options], input=TEXT)
    assert found.exit_code in (1, 2)
    assert told in found.stderr
    assert found.stdout == ""


def test_in_python(run: Path) -> None:
    table = load_run(run).tag("我 吃 苹果 。", words=["苹果"])
    assert table.column("word") == ["苹果"]
    assert "not measured" in table.title
    everything = load_run(run).tag(["我吃苹果。"])
    assert everything.column("word") == ["我", "吃", "苹果", "。"]
    assert all(0 < value <= 1 for value in everything.column("probability"))


SENTENCES = ("the bank lends money .", "I sat on the bank of the river .")


def english(folder: Path, lines: Sequence[str], **options: Any) -> Path:
    """A run on English lines, with two senses of bank."""
    (folder / "text.txt").write_text("\n".join([*lines] * 40) + "\n", encoding="utf-8")
    senses = ["bank\tn\tinstitution|机构 money|钱", "bank\tn\tland|地 side|边", "river\tn\tland|地 water|水"]
    (folder / "lexicon.tsv").write_text("\n".join(["word\tpos\tsememes", *senses, ""]), encoding="utf-8")
    preprocess("plain", folder / "text.txt", folder / "data", PreprocessSettings(segmenter="none", **options))
    build_sememe_graph([f"table:{folder / 'lexicon.tsv'}"], folder / "data", folder / "graph")
    plan = {"data": {"path": str(folder / "data")}, "graph": {"path": str(folder / "graph")}, "decoder": {"name": "sdlm"}}
    small = {"task": {"embedding_size": 6, "batch_size": 4}, "encoder": {"hidden_size": 6}, "optimizer": {"learning_rate": 1.0}}
    train({**plan, **small, "run": {"threads": 1, "stall_epochs": 0}, "schedule": {"epochs": 1}}, folder / "run")
    return folder / "run"


def test_english_with_names_of_two_languages(tmp_path: Path) -> None:
    """Names such as ``money|钱`` hold the mark that parts entries of MISC."""
    run = english(tmp_path, SENTENCES)
    gold = tmp_path / "gold.conllu"
    gold.write_text(tagged(run, "--words", "bank", "--format", "conllu", text="\n".join(SENTENCES)), encoding="utf-8")
    assert "Sememes=" in gold.read_text(encoding="utf-8")
    names = {frozenset({"institution|机构", "money|钱"}), frozenset({"land|地", "side|边"})}
    assert {target.sense for target in read_gold(gold)} <= names
    rows = "".join(f"{line}\tbank\t{line.split().index('bank') + 1}\t1\n" for line in SENTENCES)
    gold.write_text("sentence\tword\tposition\tsense\n" + rows, encoding="utf-8")
    report = evaluate_senses(run, gold)
    assert (report.targets, report.left_out) == (2, ())


@pytest.mark.filterwarnings("ignore:only 18.8 %")
def test_tag_and_eval_read_words_alike(tmp_path: Path) -> None:
    """Gold that ``tag`` wrote has a number and a capital, which the run reads as other words."""
    run = english(tmp_path, [f"{line} 30" for line in SENTENCES], lower=True, numbers_to="<N>")
    text = "The BANK lends 4.5 .\n"
    gold = tmp_path / "gold.conllu"
    gold.write_text(tagged(run, "--format", "conllu", "--method", "share", text=text), encoding="utf-8")
    assert {target.word for target in read_gold(gold)} == {"BANK", "4.5", "."}
    report = evaluate_senses(run, gold, method="share")
    assert (report.targets, report.rows[0].micro.value) == (1, 1.0)
    assert [(one.cause, one.count) for one in report.left_out] == [("word with one sense in the lexicon", 2)]
    chosen = tagged(run, "--words", "bank, 4.5", text="The BANK lends 4.5 or 7 .\n")
    assert [line.split("\t")[2] for line in chosen.splitlines()[3:]] == ["BANK", "4.5"], "7 is read as <N> as well"


@pytest.mark.parametrize("words", ["苹果, 吃", " 苹果 ，吃 ", "吃,苹果,梨"])
def test_words_are_found_with_blanks_around_and_absent_ones_are_named(run: Path, words: str) -> None:
    found = runner.invoke(app, ["tag", str(run), "--words", words], input=TEXT)
    assert [line.split("\t")[2] for line in found.stdout.splitlines()[3:]] == ["吃", "苹果"]
    assert ("the text does not have 梨" in found.stderr) == ("梨" in words)


@pytest.mark.parametrize("form", ["tsv", "conllu"])
def test_a_text_without_the_words_is_refused(run: Path, form: str) -> None:
    found = runner.invoke(app, ["tag", str(run), "--words", "梨, 电脑", "--format", form], input=TEXT)
    assert (found.exit_code, "the text has none of the words 梨 电脑" in found.stderr) == (1, True)


def test_lines_without_blanks_among_others_are_counted(run: Path) -> None:
    found = runner.invoke(
        app, ["tag", str(run), "--no-surprisal"], input="我 吃 苹果 。\n" * 9 + "我吃苹果买电脑\n人买电脑买苹果\n"
    )
    assert found.exit_code == 0
    assert "read as one <unk> in 2 lines, such as line 10 ('我吃苹果买电脑'); cut it first" in found.stderr
    assert "line" not in runner.invoke(app, ["tag", str(run), "--no-surprisal"], input=TEXT).stderr


def test_without_surprisal_the_senses_stay(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sememekit.analysis.senses.tagging import tag
    from sememekit.decoders.sdlm import SDLM

    lines = ["我 吃 苹果 。", "我 买 苹果 。"]
    whole = [*tag(run, lines, method="share")]
    asked: list[int] = []
    usual = SDLM.nll
    monkeypatch.setattr(SDLM, "nll", lambda self, hidden, target: asked.append(target.numel()) or usual(self, hidden, target))
    assert [*tag(run, lines, method="share", surprisal=False)] == [one.model_copy(update={"nats": None}) for one in whole]
    assert asked == []
    some = [*tag(run, lines, method="share", words=["苹果"])]
    assert asked == [2]
    expected = [one for one in whole if one.token == "苹果"]
    assert [one.nats for one in some] == pytest.approx([one.nats for one in expected], abs=1e-6)
    assert [one.senses for one in some] == [one.senses for one in expected]
    assert "\t\t1\t" in tagged(run, "--no-surprisal", "--words", "苹果")
