"""The texts of the quickstart: own ones, raw and cut, too small ones, and the characters of the lattice model."""

from __future__ import annotations

import random
import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from sememekit.config import apply_overrides, load_recipe
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError, GraphError
from sememekit.files import RunWarning
from sememekit.jobs import quickstart_text as texts
from sememekit.jobs.quickstart import (
    CONTEXTS,
    MOST_EPOCHS,
    RAW,
    _graph,
    _lattice,
    _table,
    contexts_of,
    quickstart,
    schedule_for,
    text_summary,
)
from sememekit.jobs.train import Position, TrainReport, train
from sememekit.jobs.trainings import Trained, read_message, train_all, train_there, write_message
from sememekit.reports.quickstart import QuickstartReport, TextSummary, parts, report_page
from sememekit.training import EpochReport, Report, RunFolder
from tests.commands.processes import play_processes
from tests.commands.test_quickstart import row
from tests.pages import check_page
from tests.small_run import Place

WORDS = (
    "去年",
    "美国",
    "贸易",
    "中国",
    "政府",
    "坚持",
    "改革",
    "开放",
    "的",
    "他",
    "每天",
    "学习",
    "估计",
    "经济",
    "今天",
    "在",
)
OPEN = ("open",)


def lines(count: int, blank: str, words: tuple[str, ...] = WORDS, length: int = 12) -> str:
    draw = random.Random(1)
    return "".join(blank.join(draw.choices(words, k=length)) + "\n" for _ in range(count))


def own(tmp_path: Path, text: str, share: float = 1.0) -> tuple[Path, texts.Drawn]:
    """An output folder and the text as it is drawn for it."""
    file, out = tmp_path / "mine.txt", tmp_path / "out"
    out.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return out, texts.draw(file, None, share, 1)


def prepared(out: Path, text: texts.Drawn, segmenter: str | None = None) -> PreparedData:
    return texts.prepare_words(out, text, OPEN, segmenter, 1)


@pytest.mark.parametrize(("blank", "segmenter"), [(" ", "white space"), ("", "forward maximum matching")])
def test_raw_chinese_is_cut_by_the_lexicon_and_other_text_at_its_blanks(tmp_path: Path, blank: str, segmenter: str) -> None:
    out, text = own(tmp_path, lines(200, blank))
    data = prepared(out, text)
    assert data.signature.segmenter.startswith(segmenter)
    assert {"美国", "贸易", "政府"} <= {data.vocabulary.token(index) for index in range(len(data.vocabulary))}
    summary = text_summary(text, data, _graph(out, data, OPEN))
    assert (summary.paragraphs, summary.month) == (200, "mine.txt")
    assert (summary.segmenter, summary.paragraphs_of_month) == (data.signature.segmenter, 200)
    assert summary.annotated == 1.0
    other = prepared(*own(tmp_path / "other", lines(200, " ", tuple("天地人你我好"))))
    with pytest.raises(GraphError, match="vocabulary"):
        _graph(out, other, OPEN)


@pytest.mark.parametrize(("dataset", "segmenter"), [("plain", "white space"), ("peoples-daily", "")])
def test_a_summary_has_shares_of_all_tokens(dataset: str, segmenter: str) -> None:
    """Unknown words are counted in all splits, annotated ones in the counts of the vocabulary."""
    splits = {"train": SimpleNamespace(tokens=30, unknown=3), "test": SimpleNamespace(tokens=10, unknown=5)}
    data: Any = SimpleNamespace(
        signature=SimpleNamespace(splits=splits, segmenter="white space"), vocabulary=SimpleVocabulary(np.array([1, 6, 3, 0]))
    )
    graph: Any = SimpleNamespace(annotated=np.array([False, True, False, True]))
    drawn = texts.Drawn(dataset, Path("folder") / "mine.txt", 0.5, ["a", "b"], 5)
    assert text_summary(drawn, data, graph) == TextSummary(
        month="mine.txt",
        paragraphs=2,
        paragraphs_of_month=5,
        tokens={"train": 30, "test": 10},
        vocabulary=4,
        unknown_rate=0.2,
        annotated=0.6,
        segmenter=segmenter,
    )


class SimpleVocabulary(NamedTuple):
    """The part of a vocabulary that a summary reads."""

    counts: Any

    def __len__(self) -> int:
        return len(self.counts)


def test_what_was_asked_for_cuts_the_text(tmp_path: Path) -> None:
    out, text = own(tmp_path, lines(200, ""))
    assert prepared(out, text, "characters").signature.segmenter == "characters"


def test_a_text_that_was_made_longer_is_prepared_anew_until_models_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, out = tmp_path / "mine.txt", tmp_path / "out"
    monkeypatch.setattr("sememekit.jobs.quickstart.train_all", lambda *rest, **more: 1 / 0)
    for count, tokens in ((100, 1170), (300, 3510)):
        file.write_text(lines(count, " "), encoding="utf-8")
        with pytest.raises(ZeroDivisionError):
            quickstart(out, text=file)
        assert PreparedData.open(out / "data").signature.splits["train"].tokens == pytest.approx(tokens, rel=0.05)
    (out / "sdlm").mkdir()
    with pytest.raises(ZeroDivisionError):
        quickstart(out, text=file)  # as it was
    file.write_text(lines(301, " "), encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"another text than .*mine\.txt has now; .*start over: sememekit quickstart .*--fresh$"
    ):
        quickstart(out, text=file)
    assert len((out / "text" / "lines.txt").read_text(encoding="utf-8").splitlines()) == 300


def test_a_text_that_is_too_small_is_told_the_least(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"59 of its 59 lines are used, and 60 at least .* use a longer text$"):
        own(tmp_path, lines(59, " "))
    assert len(own(tmp_path, lines(60, " "))[1].lines) == 60
    (tmp_path / "month.txt").write_text("今天/t 在/p\n", encoding="utf-8")
    assert texts.draw(None, tmp_path / "month.txt", 1.0, 1).lines == ["今天/t 在/p"], "one line of the newspaper is enough"
    out, text = own(tmp_path, lines(128, " "), 0.5)
    with pytest.raises(DataError, match=r"gives 7\d\d training words, and 1,000 at least .* than --share 0\.5$"):
        prepared(out, text)


def test_a_text_in_another_encoding_and_one_that_is_not_there_are_errors(tmp_path: Path) -> None:
    (tmp_path / "gbk.txt").write_bytes(lines(99, " ").encode("gbk"))
    with pytest.raises(DataError, match=r"gbk\.txt:1: not UTF-8 .*; it may be GB18030; type: iconv -f GB18030 "):
        quickstart(tmp_path / "out", text=tmp_path / "gbk.txt")
    (tmp_path / "latin.txt").write_bytes("\nnaïve café\n".encode("latin-1") * 99)
    with pytest.raises(DataError, match=r"latin\.txt:2: not UTF-8 .*; convert the file to UTF-8$"):
        quickstart(tmp_path / "out", text=tmp_path / "latin.txt")
    with pytest.raises(DataError, match=r"--text .*no such file"):
        quickstart(tmp_path / "other", text=tmp_path / "absent.txt")
    with pytest.raises(ConfigError, match="--text FILE"):
        quickstart(tmp_path / "third", segmenter="jieba")
    assert not (tmp_path / "third").exists()


def test_the_share_of_a_large_text_keeps_the_time(tmp_path: Path) -> None:
    """A larger text takes the time of two megabytes."""
    file, line = tmp_path / "mine.txt", "word" * 2499 + "end\n"
    file.write_text(line * 200, encoding="utf-8")
    assert texts.draw(file, None, None, 1).share == 1.0
    file.write_text(line * 250, encoding="utf-8")
    found = texts.draw(file, None, None, 1)
    assert found.share == pytest.approx(0.8, abs=0.001)
    assert 160 < len(found.lines) < found.of == 250


@pytest.mark.parametrize(
    ("largest", "share"), [(9, 1.0), (12, 1.0), (6, 0.5), (0.00361, 0.0003), (0.000001, 0.0001)], ids=lambda value: f"{value:g}"
)
def test_the_share_of_a_text_is_that_of_the_largest_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest: float, share: float
) -> None:
    (tmp_path / "mine.txt").write_text("x\n" * (9 if largest == 9 else 6), encoding="utf-8")
    monkeypatch.setattr(texts, "LARGEST_FILE", 18 if largest == 9 else largest)
    monkeypatch.setattr(texts, "LEAST_LINES", 0)
    assert texts.draw(tmp_path / "mine.txt", None, None, 1).share == share


def test_the_same_seed_draws_the_same_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "LEAST_LINES", 3)
    file = tmp_path / "mine.txt"
    file.write_text("".join(f"\ufeff{number} \n \n" for number in range(12)), encoding="utf-8")
    drawn = [texts.draw(file, None, 0.5, seed) for seed in (1, 2)]
    assert [" ".join(one.lines) for one in drawn] == ["2 4 5 7 9", "0 1 3 6 7 8 11"]
    assert {(one.dataset, one.source, one.share, one.of) for one in drawn} == {("plain", file, 0.5, 12)}


@pytest.mark.parametrize(
    ("dataset", "text", "segmenter", "settings"),
    [
        ("peoples-daily", "今天学习", None, {"lexicon": OPEN}),
        ("plain", "今天学习", None, {"lexicon": OPEN, "segmenter": "fmm"}),
        ("plain", "今天学习", "jieba", {"segmenter": "jieba"}),
        ("plain", "今天 学习", None, {"segmenter": "none"}),
        ("plain", "今天 学习\n今天学习", None, {"segmenter": "none"}),
        ("plain", "今天 学习\n今天学习\n今天学习", None, {"lexicon": OPEN, "segmenter": "fmm"}),
    ],
)
def test_words_are_prepared_with_settings_for_a_short_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dataset: str, text: str, segmenter: str | None, settings: dict[str, Any]
) -> None:
    """The newspaper is cut already; another text is cut by the lexicon if most of its lines have no blanks."""
    calls: list[tuple[Any, ...]] = []
    split = SimpleNamespace(tokens=texts.LEAST_WORDS)

    def prepare(*given: Any) -> Any:
        calls.append(given)
        return SimpleNamespace(signature=SimpleNamespace(splits={"train": split}))

    monkeypatch.setattr(texts, "_prepared", prepare)
    drawn = texts.Drawn(dataset, tmp_path / "mine.txt", 1.0, text.splitlines(), 9)
    texts.prepare_words(tmp_path, drawn, OPEN, segmenter, 7)
    ((folder, name, file, chosen),) = calls
    assert (folder, name, file.read_text(encoding="utf-8")) == (tmp_path / "data", dataset, f"{text}\n")
    assert file == tmp_path / "text" / ("lines.txt" if dataset == "plain" else "month.txt")
    own = {"max_vocabulary": 10_000} if dataset == "plain" else {}
    least = 2 if dataset == "plain" else type(chosen)().min_count
    assert chosen.model_dump(exclude_defaults=True) | {"min_count": chosen.min_count} == {
        "seed": 7,
        "force": True,
        "min_count": least,
        **own,
        **settings,
    }
    split.tokens -= 1
    with pytest.raises(DataError, match="gives 999 training words, and 1,000 at least are needed"):
        texts.prepare_words(tmp_path, drawn, OPEN, segmenter, 7)


def numbered(tmp_path: Path, count: int, words: str = "{} 好") -> texts.Drawn:
    """A text whose sentences differ in their first character, for an output folder with ``text``."""
    (tmp_path / "text").mkdir(exist_ok=True)
    return texts.Drawn("plain", tmp_path, 1.0, [words.format(chr(0x4E00 + number)) for number in range(count)], count)


@pytest.mark.parametrize(("segmenter", "blank"), [("white space", " "), ("characters", "")])
def test_each_tenth_sentence_is_held_out_until_there_are_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, segmenter: str, blank: str
) -> None:
    """Half of them for validation, half to segment. Sentences that are too long are in neither."""
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(texts, "_prepared", lambda *given: calls.append(given))
    for name, value in {"_LONGEST_SENTENCE": 3, "_HELD_OUT": 5, "LEAST_CHARACTERS": 112, "MOST_CHARACTERS": 112}.items():
        monkeypatch.setattr(texts, name, value)
    drawn = numbered(tmp_path, 90)
    drawn.lines[1:4] = ["长 长 长 长", "三 三 三", "一"]
    assert texts.prepare_characters(tmp_path, drawn, segmenter)[1] == ""
    ((folder, dataset, source, chosen),) = calls
    assert (folder, dataset, source) == (tmp_path / "characters", "plain", tmp_path / "text" / "characters")
    assert chosen.model_dump(exclude_defaults=True) == {
        "segmenter": "characters",
        "min_count": 3,
        "chunks": 8000,
        "chunk_length": 4,
        "force": True,
    }
    train, valid = ((source / f"{split}.txt").read_text(encoding="utf-8").split() for split in ("train", "valid"))
    held_out = [9, 19, 29, 39, 49]
    assert train == ["一好", "三三三", "一", *(f"{chr(0x4E00 + i)}好" for i in range(4, 62) if i not in held_out)][: len(train)]
    assert sum(map(len, train)) == 112
    assert valid == [f"{chr(0x4E00 + number)}好" for number in (9, 29, 49)]
    gold = (tmp_path / "text" / "gold.txt").read_text(encoding="utf-8")
    assert gold == "".join(f"{chr(0x4E00 + number)}{blank}好\n" for number in (19, 39))
    monkeypatch.setattr(texts, "LEAST_CHARACTERS", 113)
    few = "sentences of at most 3 characters have 112 of them, fewer than 113"
    assert texts.prepare_characters(tmp_path, drawn, segmenter) == (None, few)


@pytest.mark.parametrize(("words", "chinese"), [("{}a", True), ("{}ab", False)])
def test_a_text_is_chinese_if_half_of_its_characters_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, chinese: bool
) -> None:
    monkeypatch.setattr(texts, "_prepared", lambda *given: given)
    monkeypatch.setattr(texts, "LEAST_CHARACTERS", 30)
    data, why = texts.prepare_characters(tmp_path, numbered(tmp_path, 60, words), "characters")
    assert (data is not None, why) == (chinese, "" if chinese else "the text is not Chinese")


def test_a_lexicon_that_knows_no_word_is_an_error(tmp_path: Path) -> None:
    out, text = own(tmp_path, lines(200, " ", ("the", "cat", "sat", "on", "mats", ",")))
    data = prepared(out, text)
    with (
        pytest.warns(RunWarning, match=r"17\.1 % of the tokens are in open"),  # the commas
        pytest.raises(ConfigError, match="--source open knows no word of the text"),
    ):
        _graph(out, data, OPEN)
    assert texts.prepare_characters(out, text, data.signature.segmenter)[1] == "the text is not Chinese"


def test_the_command_that_goes_on_names_what_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my novel.txt").write_text(lines(80, " "), encoding="utf-8")
    monkeypatch.setattr("sememekit.jobs.quickstart._go_on", lambda *rest: signal.raise_signal(signal.SIGTERM))
    report = quickstart(
        Path("tour"),
        text=Path("my novel.txt"),
        sources=["list:a.txt", "open"],
        segmenter="jieba",
        share=1.0,
        seed=2,
        overrides=["encoder.dropout=0.1"],
    )
    (again,) = report.next_commands
    assert again == (
        "sememekit quickstart --out tour --text 'my novel.txt' --source list:a.txt --source open --segmenter jieba "
        "--share 1.0 --seed 2 --set encoder.dropout=0.1"
    )


def test_the_explained_contexts_of_an_own_text_are_of_its_test_split(tmp_path: Path) -> None:
    out, text = own(tmp_path, lines(200, " "))
    data = prepared(out, text)
    held_out = " ".join(data.vocabulary.decode(data.tokens("test")))
    contexts = contexts_of(data, own=True)
    assert len(contexts) == 3
    assert all(len(context.split()) == 6 and context in held_out for context in contexts)


def test_a_sentence_that_a_context_would_hold_whole_is_not_explained(tmp_path: Path) -> None:
    out, text = own(tmp_path, lines(200, " ", length=6))
    assert contexts_of(prepared(out, text), own=True) == ()
    out, text = own(tmp_path / "longer", lines(200, " ", length=7))
    assert len(contexts_of(prepared(out, text), own=True)) == 3


def test_characters_are_read_without_blanks_and_held_out_sentences_keep_their_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, text = own(tmp_path, lines(400, " "))
    data = prepared(out, text)
    none, why = texts.prepare_characters(out, text, data.signature.segmenter)
    assert none is None
    assert "fewer than 30,000" in why
    monkeypatch.setattr(texts, "LEAST_CHARACTERS", 3000)
    characters, why = texts.prepare_characters(out, text, data.signature.segmenter)
    assert why == ""
    assert characters is not None
    assert characters.signature.segmenter == "characters"
    assert characters.signature.chunks is not None
    train = (out / "text" / "characters" / "train.txt").read_text(encoding="utf-8").split()
    gold = (out / "text" / "gold.txt").read_text(encoding="utf-8").splitlines()
    assert all(len(line.split()) == 12 for line in gold)
    assert not {"".join(line.split()) for line in gold} & set(train)


def test_contexts_are_the_first_six_words_of_sentences_from_all_of_the_test_split() -> None:
    def data(*sentences: str) -> Any:
        words = [*" 。 ".join(sentences).split(), "。"]
        return SimpleNamespace(tokens=lambda split: split, vocabulary=SimpleNamespace(decode=lambda split: words))

    long = [f"{number} b c d e f {'<unk>' if number % 2 else 'g'} h" for number in range(10)]
    first = [f"{number} b c d e f" for number in range(10)]
    assert contexts_of(data("a b c d e f", "a b c d e <unk> g", *long), own=True) == (first[0], first[3], first[6])
    assert contexts_of(data(*long[:2]), own=True) == (first[0], first[1])
    known: Any = SimpleNamespace(vocabulary={"美国", "国家"})
    assert contexts_of(known, own=False) == (CONTEXTS[0], CONTEXTS[2])


def test_what_the_lattice_model_found_is_measured_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipe at toy size, from the text to the page."""
    monkeypatch.setattr(texts, "LEAST_CHARACTERS", 2000)
    out, text = own(tmp_path, lines(200, " "))
    data = prepared(out, text)
    characters, why = texts.prepare_characters(out, text, data.signature.segmenter)
    assert characters is not None, why
    sizes = ("embedding_size=6", "sub_size=4", "batch_size=8", "num_chunks=40")
    table = load_recipe("quickstart/lattice")
    table["data"] = {**table["data"], "path": str(out / "characters")}
    table = apply_overrides(table, [*(f"task.{size}" for size in sizes), "encoder.hidden_size=6", "run.device=cpu"])
    trained = Trained(train(table, out / "lattice"), 1.0)
    stages: list[str] = []
    found = _lattice(out, trained, own=True, device="cpu", progress=lambda stage, *rest: stages.append(stage))
    gold = [line.replace(" ", "") for line in (out / "text" / "gold.txt").read_text(encoding="utf-8").splitlines()]
    cut = ["".join(sentence.viterbi) for sentence in found.sentences]
    assert cut == [gold[number][:16] for number in (0, 3, 6)]
    assert found.rows[0].sentences == len(gold) == 10
    assert (found.run, found.epochs) == (str(out / "lattice"), trained.report.epochs)
    assert found.training_seconds == sum(epoch["seconds"] for epoch in RunFolder.open(out / "lattice").epochs())
    assert set(stages) == {"test lattice"}
    assert found.characters == characters.signature.splits["train"].characters
    report = QuickstartReport(out="x", models=(row("softmax", 100.0), row("sdlm", 90.0)), seconds=1.0, lattice=found)
    said = [part.strip() for part in parts(report) if str(part).startswith("  ")]
    assert said[:3] == [" ".join(sentence.viterbi) for sentence in found.sentences]
    assert f"in {len(gold)} held-out sentences; " in said[3]
    page = check_page(report_page(report))
    assert all(part in page.text for part in ("Words found in raw characters", said[3], found.sentences[0].viterbi[0]))
    (out / "text" / "gold.txt").write_text(f"{gold[1]}\n{gold[2]}\n", encoding="utf-8")
    for own_text, shown in ((True, gold[1:3]), (False, RAW)):
        without = _lattice(out, trained, own=own_text, device="cpu", progress=lambda *told: None)
        assert ["".join(sentence.viterbi) for sentence in without.sentences] == [line[:16] for line in shown]
        assert without.rows == (), "no words are known"


@pytest.mark.parametrize(("tokens", "times"), [(640_000, 1), (320_000, 1), (160_000, 2), (2_000, None)])
def test_a_small_text_is_read_more_often_and_ends_at_the_same_rate(tmp_path: Path, tokens: int, times: int | None) -> None:
    usual = load_recipe("quickstart/sdlm")["schedule"]
    schedule = _table(tmp_path, 1, "cpu", (), "sdlm", tokens)["schedule"]
    assert schedule["epochs"] == (MOST_EPOCHS if times is None else times * usual["epochs"])
    assert (schedule_for(tokens) == []) == (times == 1)
    last = usual["decay"] ** (usual["epochs"] - 1)
    assert schedule["decay"] == pytest.approx(last ** (1 / (schedule["epochs"] - 1)), abs=0.5e-4 if times != 1 else 1e-12)
    assert schedule["decay"] == round(schedule["decay"], 4)
    given = ("schedule.epochs=7", "schedule.decay=0.5", "run.stall_epochs=9")
    table = _table(tmp_path, 1, "cpu", given, "sdlm", tokens)
    assert (table["schedule"]["epochs"], table["schedule"]["decay"], table["run"]["stall_epochs"]) == (7, 0.5, 9)


def test_the_third_model_begins_when_one_of_the_first_two_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are played by threads of this one, which say when they begin."""
    begun: list[str] = []
    released = threading.Event()
    done = Trained(TrainReport.model_construct(stopped=False, run="x"), 1.0)

    def train_there(table: Any, run: Path, *rest: object) -> Trained:
        begun.append(run.name)
        if run.name != "first":
            released.wait(60)
        if run.name == "third":
            assert begun == ["first", "second", "third"]
        return done

    play_processes(monkeypatch)
    monkeypatch.setattr("sememekit.jobs.trainings.train_there", train_there)
    monkeypatch.setattr("sememekit.jobs.trainings._at_once", lambda: 2)
    stages: list[str] = []

    def progress(stage: str, *rest: object) -> None:
        stages.append(stage)
        if stage == "train first":
            assert begun == ["first", "second"]
            threading.Timer(0.5, released.set).start()

    reports: list[Report] = []
    tables: dict[str, dict[str, Any]] = {name: {} for name in ("first", "second", "third")}
    trained = train_all(tmp_path, tables, "again", progress, lambda name, report: reports.append(report), lambda: False)
    assert list(trained) == begun == ["first", "second", "third"]
    assert stages[0] == "train first"
    stopped = train_all(tmp_path, tables, "again", progress, lambda name, report: None, lambda: True)
    assert all(one.report.stopped for one in stopped.values())
    assert begun == ["first", "second", "third"]


def test_a_remark_of_several_trainings_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play_processes(monkeypatch)
    done = Trained(TrainReport.model_construct(stopped=False, run="x"), 1.0)

    def train_there(table: Any, run: Path, messages: Path, *rest: object) -> Trained:
        for remark in ("of all", f"of {run.name}", "of all"):
            write_message(messages, remark)
        return done

    monkeypatch.setattr("sememekit.jobs.trainings.train_there", train_there)
    remarks: list[str] = []
    tables: dict[str, dict[str, Any]] = {name: {} for name in ("one", "two")}
    train_all(tmp_path, tables, "", lambda *told: None, lambda *told: None, lambda: False, on_remark=remarks.append)
    assert sorted(remarks) == ["of all", "of one", "of two"]


@pytest.mark.parametrize(("every", "told"), [(0.0, 62), (3600.0, 1)])
def test_the_position_of_a_training_is_told_now_and_then(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: float, told: int
) -> None:
    """The position comes at each of 60 steps and when an epoch ends, or once."""
    monkeypatch.setattr("sememekit.jobs.trainings._TELL_EVERY", every)
    messages = tmp_path / "messages"
    messages.mkdir()
    arguments = (place.table(), tmp_path / "run", messages, None, str(Path.cwd()), False)
    process = threading.Thread(target=train_there, args=arguments)
    process.start()
    process.join()
    found = [read_message(path) for path in sorted(messages.glob("*.message"))]
    assert len([one for one in found if isinstance(one, Position) and one.num_batches]) == told
    assert [one.epoch for one in found if isinstance(one, EpochReport)] == [1, 2]
