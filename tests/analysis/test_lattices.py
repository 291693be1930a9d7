"""segment, eval --segmentation and explain with lattice models of a few hundred numbers."""

from __future__ import annotations

import json
import re
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from sememekit.analysis import segmentation
from sememekit.analysis.compare_runs import compare
from sememekit.analysis.evaluate import evaluate
from sememekit.analysis.evaluate_ppl import compare_ppl, evaluate_ppl
from sememekit.analysis.explanations.lattice import _edges, explain_embeddings, explain_lattice
from sememekit.analysis.scored_runs import TextReading
from sememekit.analysis.segmentation import evaluate_segmentation, read_words
from sememekit.commands._program import app
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.measure.intervals import ratio_difference_interval
from sememekit.notebook.run import load_run
from sememekit.prepare.settings import PreprocessSettings
from sememekit.reports.explanation import shown as page_of
from sememekit.reports.pages import write_page
from sememekit.runs.lattices import LONGEST, LatticeReader, Reading, open_reader, segment_lines, segment_raw
from sememekit.runs.run import Run
from sememekit.tasks.lattice.model import Lattice
from sememekit.tasks.lattice.scoring import Segment
from sememekit.text.reading import FaultCounter
from tests.small_run import Place


@pytest.fixture(scope="module")
def characters(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("characters")
    return Place(folder, end_of_sentence=True, segmenter="characters", chunks=30, chunk_length=3)


def trained(folder: Path, name: str, graph: Path | None = None, **task: object) -> Path:
    """A run on ``folder/data``."""
    table: dict[str, Any] = {
        "data": {"path": str(folder / "data")},
        "task": {"name": "lattice", "embedding_size": 8, "sub_size": 6, "batch_size": 10, **task},
        "encoder": {"name": "lattice_lstm", "hidden_size": 10},
        "optimizer": {"name": "adam", "learning_rate": 0.03, "clip": 1.0},
        "schedule": {"epochs": 2},
        "run": {"threads": 1},
    }
    if graph is not None:
        table["graph"] = {"path": str(graph)}
    train(table, folder / name)
    return folder / name


@pytest.fixture(scope="module")
def run(characters: Place) -> Path:
    return trained(characters.folder, "lattice", longest_chunk=3)


@pytest.fixture(scope="module")
def copies(characters: Place) -> Path:
    return trained(characters.folder, "copies", longest_chunk=2, copies=2, sub_model=False, composition_size=0)


@pytest.fixture(scope="module")
def reader(run: Path) -> LatticeReader:
    return open_reader(run, "test")


def test_lattices_are_compared_sentence_by_sentence(run: Path, copies: Path) -> None:
    """Both ways of merging paths are of one text; the change and its interval are computed from the nats of its sentences."""
    report = compare_ppl([Run.open(one, device="cpu") for one in (run, copies)], TextReading("train"))
    alone = [evaluate_ppl(one, split="train", device="cpu") for one in (run, copies)]
    assert list(report.reports) == alone
    assert "marginal" in alone[0].signature
    assert "marginal" not in report.signature
    (whole,) = report.rows
    assert whole.perplexities == pytest.approx([one.perplexity for one in alone])
    sides = []
    for one in (run, copies):
        opened = Run.open(one, device="cpu")
        task, data = opened.task, opened.data()
        assert isinstance(task, Lattice)
        tokens, bounds = task.sentences(data, "train")
        nats = [-float(task.lattices([tokens[begin:end]]).log_probabilities()) for begin, end in pairwise(bounds)]
        sides.append((np.array(nats), np.diff(bounds)))
    change = whole.changes[0].nats
    expected = ratio_difference_interval(sides[1], sides[0])
    assert (change.value, change.low, change.high) == pytest.approx((expected.value, expected.low, expected.high), rel=1e-4)
    assert report.units == len(sides[0][0])
    first, second = compare([str(run), str(copies)], split="train", device="cpu").sides
    assert (first.measures[0].mean, second.measures[0].mean) == pytest.approx([one.perplexity for one in alone])


def test_counts_of_eval_are_whole_numbers(run: Path, characters: Place) -> None:
    tokens = len(characters.data.tokens("test"))
    shown = CliRunner().invoke(app, ["eval", str(run), "--device", "cpu"]).stdout
    assert re.search(rf"^ tokens +{tokens:,} *$", shown, re.MULTILINE)
    assert json.loads(evaluate(run, device="cpu").model_dump_json())["tokens"] == tokens


def test_a_lattice_is_not_compared_with_a_model_that_carries_its_state(run: Path, characters: Place) -> None:
    train(characters.table(), characters.folder / "carried")
    pair = [Run.open(one, device="cpu") for one in (run, characters.folder / "carried")]
    for sides in (pair, pair[::-1]):
        with pytest.raises(ConfigError, match=r"state is .*a plain LSTM over sentences: --task lattice"):
            compare_ppl(sides)
    for refused in ({"by": ["frequency"]}, {"text": TextReading(batch_size=2)}):
        with pytest.raises(ConfigError, match="whole sentences"):
            compare_ppl(pair[:1] * 2, **refused)


def test_readings_agree_with_the_lattices_of_the_task(reader: LatticeReader) -> None:
    (reading,) = reader.read(["我吃梨。"])[0]
    ids = np.append(reader.run.vocabulary.encode("我吃梨。"), reader.task.end)
    alone = reader.task.lattices([ids])
    np.testing.assert_allclose(reading.posteriors, alone.posteriors()[0].numpy(), atol=1e-6)
    assert reading.nats == pytest.approx(-float(alone.log_probabilities()), rel=1e-6)
    crossing = [
        sum(reading.posteriors[last, less].sum() for last in range(5) for less in range(3) if last - less <= place <= last)
        for place in range(5)
    ]
    np.testing.assert_allclose(crossing, 1.0, atol=1e-5)
    assert reading.boundaries[-1] == 1.0


def test_a_batch_reads_every_line_as_alone(reader: LatticeReader) -> None:
    lines = ["我吃梨。", "", "人买电脑。人买电脑。", "  ", "龘"]
    together = list(segment_lines(reader, lines))
    assert together == [next(segment_lines(reader, [line])) for line in lines]
    assert ["".join(words) for words in together] == ["我吃梨。", "", "人买电脑。人买电脑。", "", "龘"]
    assert together[1] == []


def test_the_posterior_rule_cuts_where_a_chunk_ends_with_one_half_or_more(reader: LatticeReader) -> None:
    for text in ("我吃梨。人买电脑。", "电脑"):
        (reading,) = reader.read([text])[0]
        ends = [end for _, end in reading.chunks("posterior")]
        assert ends == [place + 1 for place, value in enumerate(reading.boundaries) if value >= 0.5]
        best = [(segment.begin, min(segment.end, len(text))) for segment in reading.best if segment.begin < len(text)]
        assert reading.chunks("viterbi") == best


def test_blanks_end_words_and_long_lines_are_cut(reader: LatticeReader) -> None:
    (words,) = segment_lines(reader, ["我 吃梨 。"])
    assert words[0] == "我"
    assert "".join(words) == "我吃梨。"
    long = "我吃梨。" * (LONGEST // 4 + 5)
    readings = reader.read([long])[0]
    assert [len(reading.tokens) for reading in readings] == [LONGEST, 20]
    assert "".join(token for reading in readings for token in reading.tokens) == long
    assert [len(reading.tokens) for reading in reader.read(["吃" * 401 + "。"])[0]] == [LONGEST, 2]


def test_streams_keep_their_lines(reader: LatticeReader) -> None:
    content = "我吃梨。\n\n人买 电脑".encode()
    out = "".join(segment_raw(reader, BytesIO(content), faults=FaultCounter("strict")))
    assert out.count("\n") == 3
    assert out.replace(" ", "") == "我吃梨。\n\n人买电脑\n"
    with pytest.raises(DataError):
        list(segment_raw(reader, BytesIO(b"\xff\n"), faults=FaultCounter("strict")))


def test_pieces_are_written_as_in_the_text_and_words_cannot_be_judged(characters: Place, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    for split in ("train", "valid", "test"):
        text = (characters.text / f"{split}.txt").read_text(encoding="utf-8").replace(" ", "")
        (raw / f"{split}.txt").write_text(text, encoding="utf-8")
    preprocess(
        "plain", raw, tmp_path / "data", PreprocessSettings(segmenter="sentencepiece", pieces=20, chunks=10, chunk_length=2)
    )
    run = trained(tmp_path, "pieces", longest_chunk=2)
    reader = open_reader(run, "test")
    (words,) = segment_lines(reader, ["我吃 梨　Ａ！龘。"])
    assert "".join(words) == "我吃梨Ａ！龘。"
    assert not any(cut in "_".join(words) for cut in ("吃梨", "梨Ａ"))
    assert evaluate_segmentation(run, characters.text / "test.txt").rows[0].gold_words > 0
    preprocess("plain", characters.text, tmp_path / "words" / "data", PreprocessSettings(chunks=10, chunk_length=2))
    whole = trained(tmp_path / "words", "whole", longest_chunk=2)
    assert "_" in " ".join(next(segment_lines(open_reader(whole, "test"), ["我 吃 梨 。 人 买 电脑 。"])))
    with pytest.raises(ConfigError, match=r"trained on text cut into words \(by white space\)"):
        evaluate_segmentation(whole, characters.text / "test.txt")


def test_evaluation_has_the_baselines_and_never_reads_the_blanks(run: Path, characters: Place, tmp_path: Path) -> None:
    gold, words = characters.text / "test.txt", characters.text / "train.txt"
    listed = tmp_path / "words.txt"
    listed.write_text("电脑\nmachine\n", encoding="utf-8")
    lexicons = ("open", f"list:{listed}")
    report = evaluate_segmentation(run, gold, words=words, lexicons=lexicons, decoding="posterior")
    names = [row.name.partition(",")[0] for row in report.rows]
    assert names == ["model", *["maximum matching"] * 4, "random", "every character a word"]
    assert [row.name.endswith(f"of lexicon {name}") for row, name in zip(report.rows[3:5], lexicons, strict=True)] == [True] * 2
    assert report.rows[4].name == f"maximum matching, 1 words of lexicon list:{listed}"
    assert report.rows[0].difference is None
    assert all(row.difference == pytest.approx(report.rows[0].f1 - row.f1) for row in report.rows[1:])
    assert report.rows[2].f1 == 1.0, "the words of this little text are all in the training text"
    assert report.rows[0].new_words == 0
    joined = tmp_path / "joined.txt"
    joined.write_text(gold.read_text(encoding="utf-8").replace(" ", ""), encoding="utf-8")
    again = evaluate_segmentation(run, joined, decoding="posterior")
    assert again.rows[0].words == report.rows[0].words
    assert again.rows[0].gold_words == len(read_words(gold))


def test_marks_that_are_given_are_words_of_every_segmentation(run: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold.txt"
    gold.write_text("我 吃 １９９８ 。 ——\n买 ＷＴＯ 苹果 。\n", encoding="utf-8")
    found, given = (evaluate_segmentation(run, gold, marks=name) for name in ("found", "given"))
    assert (found.marks, given.marks) == ("found", "given")
    assert found.rows[-1].words == 16, "every character"
    assert given.rows[-1].words == 10, "１９９８, ＷＴＯ and —— are one word each"
    assert given.rows[-1].right == 8
    assert all(row.right >= 5 for row in given.rows), "the marks at least"
    assert given.rows[0].f1 >= found.rows[0].f1


def test_only_given_marks_stand_apart_in_the_text_that_is_cut(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model here cuts at blanks alone, so each word of it is a blank that it was given."""
    gold = tmp_path / "gold.txt"
    gold.write_text("我 吃 １９９８ 。 ——\n买 ＷＴＯ 苹果 。\n", encoding="utf-8")
    monkeypatch.setattr(segmentation, "segment_lines", lambda reader, lines, decoding: [line.split() for line in lines])
    seen: list[tuple[str, int, int]] = []
    found, given = (
        evaluate_segmentation(run, gold, marks=name, progress=lambda *told: seen.append(told)).rows[0]
        for name in ("found", "given")
    )
    assert (found.sentences, found.gold_words, found.words, found.right) == (2, 9, 2, 0)
    assert (given.sentences, given.gold_words, given.words, given.right) == (2, 9, 8, 7)
    assert seen == [("sentences", 1, 2), ("sentences", 2, 2)] * 2


def test_what_cannot_be_judged_is_refused(run: Path, softmax: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n", encoding="utf-8")
    with pytest.raises(DataError, match="no words"):
        evaluate_segmentation(run, empty)
    with pytest.raises(DataError, match="cannot be read"):
        evaluate_segmentation(run, tmp_path / "absent.txt")
    with pytest.raises(ConfigError, match="needs a lattice model, and this run has the task language_model"):
        open_reader(softmax, "segment --model")
    assert "lattices" in Run.open(run).kinds
    assert "lattices" not in Run.open(softmax).kinds


def test_a_text_that_nobody_cut_is_no_gold_text(tmp_path: Path) -> None:
    """A list of words, one a line, has no blank either."""
    uncut, listed = tmp_path / "uncut.txt", tmp_path / "list.txt"
    uncut.write_text("今天中国和美国的贸易很好。\n今天上海的天气不好。\n", encoding="utf-8")
    with pytest.raises(
        DataError, match=r"uncut\.txt: no line has a blank, so the text is not cut into words; give a text with"
    ):
        read_words(uncut)
    listed.write_text("今天\n中华人民共和国\n", encoding="utf-8")
    assert read_words(listed) == [["今天"], ["中华人民共和国"]]


def test_a_decoding_that_is_none_is_refused(run: Path) -> None:
    with pytest.raises(ConfigError, match="decoding 'greedy': allowed are viterbi and posterior"):
        load_run(run).segment("今天中国", "greedy")  # type: ignore[arg-type]


def test_an_explanation_adds_up_and_its_page_is_whole(run: Path, tmp_path: Path) -> None:
    explanation = explain_lattice(run, "我吃苹果<。")
    (sentence,) = explanation.sentences
    assert [token.text for token in sentence.tokens] == list("我吃苹果<。")
    assert [token.known for token in sentence.tokens] == [True] * 4 + [False, True]
    for place in range(6):
        crossing = sum(edge.probability for edge in sentence.edges if edge.begin <= place < edge.end)
        assert crossing == pytest.approx(1.0, abs=0.1), "all but the edges below 0.005"
    assert [edge.text for edge in sentence.edges if edge.best] == list(sentence.viterbi)
    write_page(tmp_path / "page.html", page_of(explanation).html)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<path") == len(sentence.edges)
    assert page.count("<rect") == len(sentence.viterbi)
    assert "&lt;" in page
    with pytest.raises(DataError, match="the text is empty"):
        explain_lattice(run, " ")


@pytest.mark.parametrize("typed", [["我吃苹果。"], ["吃", "--embeddings", "--split", "test"]])
def test_explain_opens_its_run_once(copies: Path, opened: list[Path], typed: list[str]) -> None:
    result = CliRunner().invoke(app, ["explain", str(copies), *typed, "--quiet"])
    assert (result.exit_code, result.stderr, opened) == (0, "", [copies])


def test_every_edge_of_a_half_percent_or_more_is_shown(run: Path, reader: LatticeReader) -> None:
    """Edges that take the end mark along are shown without it, and are left out here."""
    rare = 0
    for text in ("我吃苹果。", "苹果我吃梨。", "。人人买电脑我", "果苹吃我。买梨", "电我脑买人吃。果"):
        (reading,) = reader.read([text])[0]
        likely = {
            (last - less, last + 1, copy)
            for last, less, copy in np.argwhere(reading.posteriors >= 0.005).tolist()
            if last < len(text)
        }
        (sentence,) = explain_lattice(run, text).sentences
        edges = {(edge.begin, edge.end, edge.copy_number - 1): edge for edge in sentence.edges}
        assert likely <= set(edges)
        assert all(edge.probability >= 0.005 or edge.best for edge in sentence.edges)
        rare += sum(edges[place].probability < 0.1 and not edges[place].best for place in likely)
    assert rare, "no edge is rare enough to test anything"


def test_an_edge_that_is_rare_with_and_without_the_end_mark_counts_both_together() -> None:
    posteriors = np.zeros((3, 3, 1))
    posteriors[1, 1], posteriors[2, 2] = 0.004, 0.004  # "ab", and "ab" with the end mark
    posteriors[0, 0], posteriors[1, 0], posteriors[2, 0] = 0.996, 0.004, 0.996
    path = (Segment(0, 1, 0),)
    reading = Reading(("a", "b"), ("a", "b"), (False, False), posteriors, np.ones((3, 3), dtype=np.bool_), path, 1.0)
    found = {edge.text: edge.probability for edge in _edges(SimpleNamespace(word="".join), reading)}  # type: ignore[arg-type]
    assert found == pytest.approx({"a": 0.996, "ab": 0.008}), "'b' has 0.004 in all"


def test_uses_of_an_embedding_are_those_of_each_sentence_alone(copies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = open_reader(copies, "test").task
    opened = Run.open(copies)
    tokens, bounds = task.sentences(opened.data(), "test")
    texts = [opened.vocabulary.decode(tokens[begin:end]) for begin, end in pairwise(bounds)]
    for around in (1, 2, 6):
        monkeypatch.setattr("sememekit.analysis.explanations.lattice._AROUND", around)
        [report] = explain_embeddings(copies, ["吃"], split="test", contexts=99).words
        wins: list[list[tuple[str, str, float]]] = [[], []]
        shares = []
        for text in texts:
            for place in (place for place, word in enumerate(text) if word == "吃"):
                alone = task.lattices([opened.vocabulary.encode(text)]).posteriors()[0, place, 0].double().numpy()
                shares.append(alone / alone.sum())
                winner = int(shares[-1].argmax())
                before, after = text[max(0, place - around) : place], text[place + 1 : -1][:around]
                wins[winner].append(("".join(before), "".join(after), float(shares[-1][winner])))
        assert (report.word, report.occurrences) == ("吃", len(shares))
        for number, use in enumerate(report.embeddings):
            assert (use.number, use.sense, use.wins) == (number + 1, None, len(wins[number]))
            assert use.mean == pytest.approx(np.mean(shares, axis=0)[number], abs=1e-6)
            assert [(one.before, one.after) for one in use.contexts] == [own[:2] for own in wins[number]]
            assert [one.probability for one in use.contexts] == pytest.approx([own[2] for own in wins[number]], abs=1e-6)
    whole = report.embeddings
    for few, use in zip(explain_embeddings(copies, ["吃"], split="test", contexts=3).words[0].embeddings, whole, strict=True):
        last = use.wins - 1
        assert few.contexts == tuple(use.contexts[place] for place in sorted({0, round(last / 2), last}) if use.wins)


def test_embeddings_of_senses_have_the_labels_of_their_senses(characters: Place) -> None:
    run = trained(characters.folder, "senses", characters.graph, senses=True, copies=2, longest_chunk=1)
    opened = Run.open(run)
    assert opened.graph is not None
    eats, pear, half = explain_embeddings(run, ["吃", "梨", "电"], split="test").words
    for found, number in ((eats, 2), (pear, 1)):
        senses = opened.graph.entry(opened.vocabulary.id(found.word)).senses
        assert [use.sense for use in found.embeddings] == [sense.label for sense in senses]
        assert len(senses) == number
    assert [use.sense for use in half.embeddings] == [None], "no lexicon has half a word"


def test_six_tokens_are_shown_on_each_side_and_a_word_may_occur_nowhere(copies: Path, tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.txt").write_text("我人我人我人我人吃梨果梨果梨果梨果。\n" * 2, encoding="utf-8")
    preprocess("plain", tmp_path, tmp_path / "data", PreprocessSettings(vocabulary=copies))
    eats, absent = explain_embeddings(copies, ["吃", "电"], data=tmp_path / "data").words
    shown = [context for use in eats.embeddings for context in use.contexts]
    assert [(one.before, one.after) for one in shown] == [("我人我人我人", "梨果梨果梨果")] * 2
    assert absent.occurrences == 0
    assert [(use.wins, use.mean, use.contexts) for use in absent.embeddings] == [(0, 0.0, ())] * 2


def test_embeddings_win_in_contexts_that_hold_the_word(copies: Path, run: Path, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    report = explain_embeddings(copies, ["吃", "无"], split="test", contexts=3, progress=lambda *told: seen.append(told))
    assert [done for _, done, _ in seen] == sorted({done for _, done, _ in seen})
    assert seen[-1][1] == seen[-1][2]
    assert {(stage, total) for stage, _, total in seen} == {("sentences", seen[-1][2])}
    eats = report.words[0]
    assert eats.occurrences == sum(use.wins for use in eats.embeddings) > 0
    assert sum(use.mean for use in eats.embeddings) == pytest.approx(1.0)
    shown = [context for use in eats.embeddings for context in use.contexts]
    assert all(context.probability >= 0.5 and context.before in {"我", "人"} for context in shown)
    write_page(tmp_path / "page.html", page_of(report).html)
    assert (tmp_path / "page.html").read_text(encoding="utf-8").count("<h3>") == 4
    with pytest.raises(DataError, match="'龘' is no word"):
        explain_embeddings(copies, ["龘"])
    with pytest.raises(ConfigError, match="one embedding for each word"):
        explain_embeddings(run, ["吃"])
