"""Gold senses, the parts of a tagger against a plain computation, and eval --senses."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from sememekit.analysis.explanations.words import explain
from sememekit.analysis.senses.evaluation import FIRST, ORACLE, RANDOM, evaluate_senses
from sememekit.analysis.senses.gold import GoldTarget, matching_senses, read_gold
from sememekit.analysis.senses.inventory import SMOOTHING, SenseInventory, inventory_of
from sememekit.analysis.senses.tagger import FOLLOWING, LineReader, SenseTagger
from sememekit.analysis.senses.tagging import FILE, Measurement, header_of
from sememekit.commands._program import app
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.jobs.train import train
from sememekit.runs.run import Run
from sememekit.sememes import Sense, build_graph
from sememekit.text.form import TextForm
from sememekit.text.vocabulary import Vocabulary
from tests.small import lexicon_of_senses
from tests.small_run import Place

runner = CliRunner()
TABLE = "sentence\tword\tposition\tsense\n我 吃 苹果 。\t苹果\t3\t水果 植物\n我 买 苹果 。\t苹果\t3\t2\n"
LINES = (
    "{'context': ['我', '吃', '<target>', '。'], 'part-of-speech': ['r'], 'target_word': '苹果', 'target_position': 2, "
    "'target_word_pos': 'n', 'sense': {'水果', '植物', '?'}}\n"
)
CONLLU = (
    "# text = 我吃苹果\n1\t我\t_\t_\t_\t_\t_\t_\t_\t_\n2-3\t吃苹果\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "2\t吃\t_\t_\t_\t_\t_\t_\t_\tSense=2\n"
    "3\t苹果\t_\t_\t_\t_\t_\t_\t_\tSense=3|Sememes=水果,植物|SpaceAfter=No\n\n"
)
FRUIT = frozenset({"水果", "植物"})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Runs ``sdlm`` and ``softmax`` without ends of sentences, and ``ends`` with them in a place of its own."""
    place = Place(tmp_path_factory.mktemp("senses"))
    for decoder in ("sdlm", "softmax"):
        train(place.table(decoder), place.folder / decoder)
    other = Place(place.folder / "other", end_of_sentence=True)
    train(other.table("sdlm"), place.folder / "ends")
    return place


def gold_file(folder: Path, text: str = TABLE) -> Path:
    file = folder / "gold.txt"
    file.write_text(text, encoding="utf-8")
    return file


APPLE = ("我", "吃", "苹果", "。")
BARE = "{{'context': ['我', '<target>'], 'target_word': '吃', 'target_position': {place}, 'sense': {{'受'}}}}\n"
FORMATS = {
    "table": (TABLE, [GoldTarget(2, APPLE, 2, "苹果", FRUIT), GoldTarget(3, ("我", "买", "苹果", "。"), 2, "苹果", 2)]),
    "sememewsd": (
        LINES + "\n" + "".join(BARE.format(place=place) for place in (1, 2, -1)) + BARE.replace("'我', ", "").format(place=0),
        [
            GoldTarget(1, APPLE, 2, "苹果", FRUIT),
            GoldTarget(3, ("我", "吃"), 1, "吃", frozenset({"受"})),
            GoldTarget(4, ("我", "<target>"), 2, "吃", frozenset({"受"})),
            GoldTarget(5, ("我", "<target>"), -1, "吃", frozenset({"受"})),
            GoldTarget(6, ("吃",), 0, "吃", frozenset({"受"})),
        ],
    ),
    "conllu": (
        CONLLU + "1\t梨" + "\t_" * 7 + "\tSense=1",
        [GoldTarget(4, APPLE[:3], 1, "吃", 2), GoldTarget(5, APPLE[:3], 2, "苹果", FRUIT), GoldTarget(7, ("梨",), 0, "梨", 1)],
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_read_whole(tmp_path: Path, name: str) -> None:
    """Lines from 1; positions from 0, also those that a sentence does not have; senses as sememes or numbers."""
    text, expected = FORMATS[name]
    assert read_gold(gold_file(tmp_path, text)) == expected


def test_a_circled_digit_is_a_sememe_and_no_number_of_a_sense(tmp_path: Path) -> None:
    assert [target.sense for target in read_gold(gold_file(tmp_path, TABLE.replace("\t2\n", "\t②\n")))][1] == {"②"}


def test_the_examples_of_a_lexicon_are_gold(tmp_path: Path) -> None:
    (tmp_path / "inventory.tsv").write_text("fruit|水果\tx\neat|吃\tx\n", encoding="utf-8")
    words = "吃\tv\teat\teat|吃\n苹果\tn\tapple\tfruit|水果\t苹果\t我 吃 苹果\n"
    (tmp_path / "words.tsv").write_text(words, encoding="utf-8")
    expected = GoldTarget(1, ("我", "吃", "苹果"), 2, "苹果", frozenset({"fruit|水果"}))
    assert read_gold(Path(f"examples:open:{tmp_path}")) == [expected]
    (tmp_path / "words.tsv").write_text(words.splitlines()[0], encoding="utf-8")
    with pytest.raises(DataError, match="no sense of this lexicon has an example"):
        read_gold(Path(f"examples:open:{tmp_path}"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the file is empty"),
        ("我 吃 苹果\n", "the first line is '我 吃 苹果'"),
        (LINES + "{'context': 3}\n", "line 2: is no Python literal"),
        (LINES + "{'context': []}\n", "line 2: has no 'target_position'"),
        (TABLE + "我\t我\tx\t1\n", "line 4: the position 'x' is no number"),
        (TABLE + "我\t我\t²\t1\n", "line 4: the position '²' is no number"),
        (TABLE + "我\t我\t--2\t1\n", "line 4: the position '--2' is no number"),
        (TABLE.splitlines()[0] + "\n", "the table has a header and no row, so there is nothing to compare with"),
        (TABLE + "我\t我\n", "line 4: has 2 of 4 columns"),
        ("# a\n1\t我\n", "line 2: has 2 columns, and CoNLL-U has 10"),
        ("1" + "\t_" * 9 + "\n", "no token has Sense= or Sememes="),
    ],
)
def test_damaged_gold_names_the_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        read_gold(gold_file(tmp_path, text))


def test_the_rule_of_matching() -> None:
    fine = [frozenset("ab"), frozenset("abc"), frozenset("abd"), frozenset("e")]
    assert matching_senses(frozenset("ab"), fine) == {0}
    assert matching_senses(frozenset("ab"), fine[1:]) == {0, 1}, "finer senses stand for the gold one"
    assert matching_senses(frozenset("ef"), fine) == frozenset(), "a coarser one never does"
    assert matching_senses(2, fine) == {1}
    assert matching_senses(0, fine) == matching_senses(5, fine) == matching_senses(frozenset(), fine) == frozenset()


def test_words_that_the_vocabulary_lacks_are_cut_or_left_out() -> None:
    run = SimpleNamespace(form=TextForm, vocabulary=Vocabulary.from_counts({"天": 3, "今": 2, "好": 2}))
    line = LineReader(run).read(["今天", "坏", "x", "好"])
    assert [run.vocabulary.token(word) for word in line.ids] == ["今", "天", "好"]
    assert (line.place, line.known) == ((0, 2, 2, 2), (False, False, False, True))


def compounds() -> SenseInventory:
    """进 "enter" or "eat"; 进入 means enter, 吃 and 用餐 eat."""
    counts = {"<unk>": 1, "进": 20, "进入": 7, "用餐": 50, "到": 3}
    lines = map(str.split, ["进 enter", "进 eat food", "进入 enter", "用餐 eat food v", "到 enter x"])
    lexicon = lexicon_of_senses("list:x", [Sense(word, tuple(sememes)) for word, *sememes in lines])
    words = Vocabulary.from_counts(counts)
    return SenseInventory(build_graph(words, [lexicon]), words.counts)


def test_substitutes_have_overlapping_sememes() -> None:
    inventory = compounds()
    words = inventory.graph.words
    enter, eat = (inventory.substitutes(sense) for sense in inventory.senses(words.index("进")))
    assert [words[word] for word in enter.words] == ["进入", "到"]
    np.testing.assert_allclose(enter.weights, [1.0, 0.25])
    assert [words[word] for word in eat.words] == ["用餐"]
    np.testing.assert_allclose(eat.weights, [4 / 9])


def test_the_usual_sense_is_that_of_the_compounds() -> None:
    inventory = compounds()
    found = np.exp(inventory.usual(inventory.graph.words.index("进")))
    np.testing.assert_allclose(found, [(SMOOTHING + 7) / (2 * SMOOTHING + 7), SMOOTHING / (2 * SMOOTHING + 7)])


@pytest.mark.parametrize("name", ["sdlm", "ends"])
def test_shares_are_those_of_explain(place: Place, name: str) -> None:
    run = Run.open(place.folder / name)
    line = LineReader(run).read(["人", "吃", "苹果"])
    [[word]] = SenseTagger(run, inventory_of(run)).tag([line.ids], [[2]])
    context = "<eos> 人 吃" if name == "ends" else "人 吃"
    shown = next(one for one in explain(run, context, top=20).words if one.word == "苹果")
    of_sense = {frozenset(item.name for item in sense.sememes): sense.share for sense in shown.senses}
    names = inventory_of(run).names(run.vocabulary.id("苹果"))
    np.testing.assert_allclose(np.exp(word.parts["share"]), [of_sense[one] for one in names], rtol=1e-4)


@pytest.mark.parametrize("name", ["sdlm", "ends", "softmax"])
def test_substitution_is_the_mean_lift_in_the_whole_sentence(place: Place, name: str) -> None:
    """Each sentence with a substitute in it is scored alone."""
    run = Run.open(place.folder / name)
    inventory = inventory_of(Run.open(place.folder / ("sdlm" if name == "softmax" else name)))
    lines = [["我", "买", "苹果", "。", "人", "吃", "梨", "。"], ["苹果"], ["人", "吃", "苹果"]]
    reader, target = LineReader(run), run.vocabulary.id("苹果")
    read = [reader.read(line).ids for line in lines]
    places = [[2], [0], [2]]
    found = [word.parts["substitution"] for [word] in SenseTagger(run, inventory).tag(read, places)]
    for ids, (at,), logs in zip(read, places, found, strict=True):
        expected = []
        for sense in inventory.senses(target):
            words, weights = inventory.substitutes(sense)
            lifts = [math.exp(log_probability(run, ids, at, word) - inventory.log_frequency[word]) for word in words.tolist()]
            expected.append(np.average(lifts, weights=weights) if len(words) else math.exp(following(run, ids, at, target)))
        raw = np.log(expected)
        np.testing.assert_allclose(logs, raw - np.logaddexp.reduce(raw), atol=1e-4)


def log_probability(run: Run, ids: tuple[int, ...], at: int, word: int) -> float:
    """Return log p(word | left) plus the log-probability of the words that follow."""
    start = [run.vocabulary.end_id] if run.signature.end_of_sentence else []
    return following(run, ids, at, word) + float(log_probs(run, [*start, *ids[:at]])[word])


def following(run: Run, ids: tuple[int, ...], at: int, word: int) -> float:
    start = [run.vocabulary.end_id] if run.signature.end_of_sentence else []
    left, right = [*start, *ids[:at], word], ids[at + 1 : at + 1 + FOLLOWING]
    return sum(float(log_probs(run, [*left, *right[:number]])[one]) for number, one in enumerate(right))


@torch.no_grad()
def log_probs(run: Run, before: list[int]) -> torch.Tensor:
    task = run.task
    if not before:
        return task.decoder.log_probs(torch.zeros(1, 6))[0].double()
    hidden, _ = task.contexts(torch.tensor(before)[:, None], task.encoder.start(1))
    return task.decoder.log_probs(hidden[-1])[0].double()


def test_nats_are_those_of_score(place: Place) -> None:
    from sememekit.analysis.score import score

    run = Run.open(place.folder / "ends")
    line = LineReader(run).read(["我", "吃", "梨"])
    words = next(iter(SenseTagger(run, inventory_of(run), ("usual",)).tag([line.ids], [[]], [range(len(line.ids))])))
    expected = [row.nats for row in score(run, ["我 吃 梨"])][:3]
    assert [word.nats for word in words] == pytest.approx(expected, abs=1e-5)


def test_scores_against_a_plain_count(place: Place, tmp_path: Path) -> None:
    text = TABLE + "我 买 苹果 。\t苹果\t3\t电脑 品牌\n人 吃 梨 。\t吃\t2\t受\n"
    seen: list[tuple[str, int, int]] = []
    report = evaluate_senses(place.folder / "sdlm", gold_file(tmp_path, text), progress=lambda *told: seen.append(told))
    assert seen == [("senses", done, 4) for done in (1, 2, 3, 4)]
    rows = {row.name: row for row in report.rows}
    assert report.targets == 4
    assert rows[RANDOM].micro.value == pytest.approx((1 / 3 * 3 + 1 / 2) / 4)
    assert rows[ORACLE].micro.value == pytest.approx(3 / 4)
    assert rows[ORACLE].macro.value == pytest.approx((2 / 3 + 1) / 2)
    run = Run.open(place.folder / "sdlm")
    tagger, reader, right = SenseTagger(run, inventory_of(run)), LineReader(run), 0
    for target in read_gold(gold_file(tmp_path, text)):
        line = reader.read(target.words)
        [[word]] = tagger.tag([line.ids], [[target.position]])
        names = inventory_of(run).names(line.ids[target.position])
        right += int(word.log_probabilities("combined").argmax()) in matching_senses(target.sense, names)
    assert rows["combined"].micro.value == pytest.approx(right / 4)
    assert [(word.word, word.senses, word.targets) for word in report.words] == [("苹果", 3, 3), ("吃", 2, 1)]
    for number, exact in ((0, {RANDOM: 1 / 3, FIRST: 1 / 3, ORACLE: 2 / 3}), (1, {RANDOM: 1 / 2, FIRST: 0.0, ORACLE: 1.0})):
        assert {name: report.words[number].accuracy[name] for name in exact} == pytest.approx(exact)
    for name, row in rows.items():
        first, second = (word.accuracy[name] for word in report.words)
        assert row.micro.value == pytest.approx((3 * first + second) / 4)
        assert row.macro.value == pytest.approx((first + second) / 2)
        assert row.above_random.value == pytest.approx(row.micro.value - rows[RANDOM].micro.value)


def test_what_cannot_be_scored_is_counted_by_cause(place: Place, tmp_path: Path) -> None:
    rows = {
        "我 吃 苹果\t苹果\t9\t食品": "position outside the sentence",
        "我 吃 苹果\t苹果\t1\t食品": "another word at the position",
        "我 吃 橘子\t橘子\t3\t食品": "word outside the vocabulary",
        "我 买 无名\t无名\t3\t食品": "word without annotation in the lexicon",
        "我 吃 梨\t梨\t3\t水果 植物": "word with one sense in the lexicon",
        "我 吃 苹果\t苹果\t3\t星星": "sense that the lexicon lacks",
    }
    report = evaluate_senses(place.folder / "sdlm", gold_file(tmp_path, TABLE + "".join(f"{row}\n" for row in rows)))
    assert {one.cause: one.count for one in report.left_out} == dict.fromkeys(rows.values(), 1)
    assert next(one.first for one in report.left_out if "lacks" in one.cause).endswith("line 9: 苹果 {星星}")
    with pytest.raises(DataError, match="no target can be scored") as caught:
        evaluate_senses(place.folder / "sdlm", gold_file(tmp_path, TABLE.splitlines()[0] + "\n" + "\n".join(rows)))
    assert "1 word outside the vocabulary" in str(caught.value)


def test_a_run_without_senses_needs_a_source(place: Place, tmp_path: Path) -> None:
    gold = gold_file(tmp_path)
    with pytest.raises(ConfigError, match="--source"):
        evaluate_senses(place.folder / "softmax", gold)
    lexicon = tmp_path / "lexicon.tsv"
    lexicon.write_text("word\tsememes\n苹果\t水果 植物\n苹果\t品牌 电脑\n梨\t水果 植物\n", encoding="utf-8")
    report = evaluate_senses(place.folder / "softmax", gold, sources=[f"table:{lexicon}"])
    assert [row.name for row in report.rows][:3] == ["combined", "substitution", "usual"]
    with pytest.raises(ConfigError, match="no share"):
        evaluate_senses(place.folder / "softmax", gold, method="share", sources=[f"table:{lexicon}"])
    with pytest.raises(ConfigError, match="no share"):
        SenseTagger(Run.open(place.folder / "softmax"), inventory_of(Run.open(place.folder / "sdlm")), ("share",))


def test_a_measurement_is_found_for_these_weights_and_this_method_alone(place: Place, tmp_path: Path) -> None:
    run = Path(shutil.copytree(place.folder / "sdlm", tmp_path / "run", ignore=shutil.ignore_patterns(FILE)))
    assert header_of(Run.open(run), "combined", ()).measured == ()
    gold = gold_file(tmp_path, TABLE + "人 吃 梨 。\t吃\t2\t受\n我 买 苹果 。\t苹果\t3\t3\n")
    for _ in range(2):
        report = evaluate_senses(run, gold)
        assert report.stored
    [found] = header_of(Run.open(run), "combined", ()).measured
    assert found == Measurement(
        weights=Run.open(run).weights_sha256,
        method="combined",
        sources=(),
        gold="gold.txt",
        gold_sha256=hashlib.sha256(gold.read_bytes()).hexdigest(),
        targets=4,
        micro=report.rows[0].micro,
        macro=report.rows[0].macro,
        baselines=found.baselines,
    )
    micro = {row.name: row.micro.value for row in report.rows}
    assert found.baselines == {name: micro[name] for name in ("at random", "usual")}
    assert report.rows[0].macro not in (report.rows[0].micro, report.rows[1].macro)
    own, macro = report.rows[0].micro.value, report.rows[0].macro.value
    beside = ", ".join(f"{name} {100 * value:.1f} %" for name, value in found.baselines.items())
    assert found.sentence == f"{100 * own:.1f} % micro, {100 * macro:.1f} % macro of 4 words in gold.txt (micro {beside})"
    assert header_of(Run.open(run), "share", ()).measured == header_of(Run.open(run), "combined", ("open",)).measured == ()
    (run / FILE).write_text("{}", encoding="utf-8")
    with pytest.raises(CheckpointError, match="eval RUN --senses"):
        header_of(Run.open(run), "combined", ())


def test_the_command_prints_tables_and_json(place: Place, tmp_path: Path) -> None:
    typed = ["eval", str(place.folder / "sdlm"), "--senses", str(gold_file(tmp_path))]
    shown = runner.invoke(app, typed)
    assert shown.exit_code == 0, shown.output
    for part in ("combined", "at random", "By word", "苹果"):
        assert part in shown.stdout
    found = json.loads(runner.invoke(app, [*typed, "--method", "share", "--json"]).stdout)
    assert (found["method"], found["rows"][0]["name"], found["targets"]) == ("share", "share", 2)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--method", "share"], "only together with --senses"),
        (["--top", "3"], "only together with --explanations"),
        (["--senses", "x", "--explanations"], "not together with --explanations"),
        (["--senses", "x", "--split", "valid"], "--split"),
    ],
)
def test_options_that_do_not_fit_are_refused(place: Place, options: list[str], told: str) -> None:
    found = runner.invoke(app, ["eval", str(place.folder / "sdlm"), *options])
    assert found.exit_code == 1
    assert told in found.stderr


def test_the_earlier_name_of_eval_explanations_goes_on_working(place: Place) -> None:
    run = str(place.folder / "sdlm")
    now, before = (
        runner.invoke(app, [*typed, "--json", "--top", "2"])
        for typed in (["eval", run, "--explanations"], ["evaluate-explanations", run])
    )
    assert now.exit_code == 0, now.output
    assert now.stdout == before.stdout
    assert "evaluate-explanations" not in runner.invoke(app, ["--help"]).stdout
