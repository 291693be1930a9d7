"""New words for a trained run without training."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from sememekit.analysis.evaluate_ppl import compare_ppl, evaluate_ppl
from sememekit.analysis.extended_words import _row, _spelling, compare_extended
from sememekit.commands._program import app
from sememekit.data.prepared import HELD_OUT, PreparedData
from sememekit.decoders import DECODERS
from sememekit.errors import CheckpointError, ConfigError, DataError, SememekitError
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs import extend as extending
from sememekit.runs.extend import extend, what_was_added
from sememekit.runs.run import Run
from sememekit.runs.start_from import table_of_run
from sememekit.runs.word_fit import WordFit
from sememekit.sememes.graph import SememeGraph, SenseEntry, WordEntry
from sememekit.tasks.language_model import LanguageModel
from sememekit.text.vocabulary import Vocabulary
from tests.small_run import Place

WORDS = "word\tsememes\tcount\n香蕉\t水果 植物\t1\n香蕉\t食品\t\n手机\t电脑\t\n"
CALIBRATED = {"class_hsm", "differentiated", "moc", "mos", "mos_sdlm", "sampled", "sdlm", "softmax"}
"""Layers with a number for each word or sense; ``adaptive`` has none, nor ``self_organized`` by default."""


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "new.tsv"
    path.write_text(WORDS, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Data whose text has ``<unk>``: two words are too many for the vocabulary."""
    return Place(tmp_path_factory.mktemp("unknown"), max_vocabulary=8)


def trained(some: Place, out: Path, decoder: str, **changes: object) -> Path:
    train(some.table(decoder, schedule__epochs=1, graph__path=str(some.graph), **changes), out)
    return out


@pytest.fixture(scope="module")
def sdlm_run(some: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(some, tmp_path_factory.mktemp("run") / "sdlm", "sdlm")


def probabilities(run: Run, text: list[str]) -> torch.Tensor:
    """(T, V) after each word of a text."""
    task = run.task
    assert isinstance(task, LanguageModel)
    ids = torch.from_numpy(run.vocabulary.encode(text))[:, None]
    hidden, _ = task.contexts(ids, task.encoder.start(1))
    return task.decoder.log_probs(hidden)[:, 0].exp().double().detach()


@pytest.mark.parametrize("decoder", sorted(set(DECODERS) - {"tree_hsm"}))
def test_every_layer_with_word_vectors_takes_new_words(some: Place, tmp_path: Path, words: Path, decoder: str) -> None:
    run = trained(some, tmp_path / "run", decoder)
    report = extend(run, words, tmp_path / "out")
    assert report.words == ("手机", "香蕉")
    assert report.calibrated == (decoder in CALIBRATED)
    assert (report.calibration_error or 0.0) <= 1e-4, "classes need more rounds than the others"
    assert (report.calibration_error is None) is (decoder not in CALIBRATED)
    before, after = Run.open(run), Run.open(tmp_path / "out")
    assert len(after.vocabulary) == len(before.vocabulary) + 2
    assert after.graph is not None
    assert after.graph.entry(after.vocabulary.id("香蕉")).sememes() == {"水果", "植物", "食品"}
    text = ["我", "吃", "苹果", "。"]
    then, now = probabilities(before, text), probabilities(after, text)
    assert torch.allclose(now.sum(dim=1), torch.ones(4, dtype=torch.float64), atol=1e-5)
    old = torch.from_numpy(after.vocabulary.encode(before.vocabulary.tokens))
    known = [number for number, word in enumerate(before.vocabulary.tokens) if word != "<unk>"]
    ratio = now[:, old][:, known] / then[:, known]  # old words keep their ratios to each other wherever one sum goes over all
    if decoder in {"softmax", "sampled", "sdlm", "differentiated"}:
        assert torch.allclose(ratio, ratio[:, :1].expand_as(ratio), rtol=1e-3)


def test_new_words_have_their_shares_of_the_unknown_word(some: Place, sdlm_run: Path, words: Path, tmp_path: Path) -> None:
    report = extend(sdlm_run, words, tmp_path / "out", prior=0.5)
    vocabulary = Run.open(sdlm_run).vocabulary
    assert report.counted
    of_unknown = vocabulary.counts[vocabulary.unknown_id]
    assert report.shares == pytest.approx([1 / of_unknown] * 2)  # the word without a count has the mean of the others
    decoders = [extending.predictor(Run.open(path).task, "test").decoder for path in (sdlm_run, tmp_path / "out")]
    contexts = extending._contexts(extending.predictor(Run.open(sdlm_run).task, "test"), some.data, lambda *_: None)
    before, after = (extending._mean_probabilities(decoder, contexts) for decoder in decoders)
    new = Run.open(tmp_path / "out").vocabulary
    had = before[vocabulary.id("<unk>")]
    assert after[new.encode(["香蕉", "手机"])].tolist() == pytest.approx([float(had) / of_unknown] * 2, rel=0.02)
    assert float(after[new.id("<unk>")]) == pytest.approx(float(had) * (1 - 2 / of_unknown), rel=0.02)


@pytest.mark.parametrize(
    ("of_unknown", "counts", "shares", "assumed"),
    [
        (40, {}, [0.25, 0.25], [10, 10]),
        (1, {}, [0.25, 0.25], [1, 1]),
        (40, {"a": 8}, [0.2, 0.2], [8, 8]),
        (40, {"a": 8, "b": 4}, [0.2, 0.1], [8, 4]),
        (40, {"a": 0, "b": 4}, [0.0125, 0.1], [0, 4]),
        (12, {"a": 8, "b": 4}, [8 / 13, 4 / 13], [8, 4]),
        (13, {"a": 8, "b": 4}, [8 / 13, 4 / 13], [8, 4]),
    ],
)
def test_shares_follow_the_counts_of_the_file(
    of_unknown: int, counts: dict[str, int], shares: list[float], assumed: list[int]
) -> None:
    """A word without a count has the mean of the others; without any count the words share ``prior``."""
    found, numbers = extending._shares(of_unknown, ["a", "b"], counts, 0.5)
    assert found == pytest.approx(shares)
    assert numbers == dict(zip("ab", assumed, strict=True))
    with pytest.raises(DataError, match="add up to 12, but <unk> occurs only 11 times"):
        extending._shares(11, ["a", "b"], {"a": 8, "b": 4}, 0.5)


def test_contexts_are_the_first_of_the_training_text(some: Place, sdlm_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task, told = extending.predictor(Run.open(sdlm_run).task, "test"), list[tuple[object, ...]]()
    whole = extending._contexts(task, some.data, lambda *args: told.append(args))
    assert len(whole) == len(some.data.tokens("train")) - 1
    assert told[-1] == ("contexts", len(whole), 2048)
    told.clear()
    monkeypatch.setattr(extending, "NUM_CONTEXTS", told_of := 30)
    part = extending._contexts(task, some.data, lambda *args: told.append(args))
    assert torch.equal(part, whole[:told_of])
    assert told[-1] == ("contexts", told_of, told_of)
    assert sum(args[1] == told_of for args in told) == 1, "no more text is read than is needed"
    first = next(iter(extending.predictions(task, some.data, "train")))
    monkeypatch.setattr(extending, "NUM_CONTEXTS", told_of := int(first.mask.sum()))
    told.clear()
    extending._contexts(task, some.data, lambda *args: told.append(args))
    assert told == [("contexts", told_of, told_of)], "one chunk has just as many"


def test_mean_probabilities_are_over_all_contexts(some: Place, sdlm_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = extending.predictor(Run.open(sdlm_run).task, "test")
    contexts = extending._contexts(task, some.data, lambda *_: None)
    expected = task.decoder.log_probs(contexts).double().exp().mean(dim=0)
    monkeypatch.setattr(extending, "_AT_ONCE", 7)
    torch.testing.assert_close(extending._mean_probabilities(task.decoder, contexts), expected, atol=1e-6, rtol=1e-5)


def test_a_regression_on_sememes_tells_new_words_apart() -> None:
    """Vectors that are sums of vectors of sememes are found again, however the words are spelled."""
    names = [f"s{number}" for number in range(14)]
    own = torch.randn(14, 4, generator=torch.Generator().manual_seed(1))
    sets = [(a, b) for a in range(14) for b in range(a + 1, 14)]
    entries = [WordEntry(f"{a}x{b}", "list", (SenseEntry((names[a], names[b]), ""),)) for a, b in sets]
    graph, known = SememeGraph(entries, "0" * 16), np.arange(91) % 5 != 0
    fit = WordFit(graph, np.full(91, 40), known)
    vectors = torch.stack([own[a] + own[b] for a, b in sets])
    found = fit.predict(vectors[torch.from_numpy(known)], fit.known_words, fit.new_words)
    new = vectors[torch.from_numpy(~known)]
    assert (found - new).square().sum() < 0.2 * (new - new.mean(dim=0)).square().sum()
    assert fit.vote(torch.tensor([a for a, _ in sets])[torch.from_numpy(known)], fit.known_words, fit.new_words).shape == (19,)
    senses = fit.predict(vectors[torch.from_numpy(known)], fit.known_senses, fit.new_senses, of_senses=True)
    assert torch.allclose(senses, found, atol=1e-5)  # each word has one sense


def test_words_without_sememes_are_predicted_from_a_regression_without_sememes() -> None:
    """Sememes of other words change nothing for them; words with sememes keep the regression on both."""
    words = [f"{first}{last}" for first in "abcd" for last in "efgh"]
    own = [WordEntry(word, "list", (SenseEntry((f"s{number % 3}",), ""),)) for number, word in enumerate(words)]
    none = [WordEntry(word, "list", (SenseEntry(("<unk>",), ""),)) for word in words]
    known, vectors = np.arange(16) % 5 != 0, torch.randn(16, 3, generator=torch.Generator().manual_seed(1))
    found = []
    for entries in (own, none, [*none[:6], *own[6:]], [*none[:1], *own[1:]]):
        fit = WordFit(SememeGraph(entries, "0" * 16), np.full(16, 40), known)
        found.append(fit.predict(vectors[torch.from_numpy(known)], fit.known_words, fit.new_words))
    with_sememes, bare, _, first_bare = found
    assert torch.allclose(first_bare[0], bare[0], atol=1e-5)
    assert torch.allclose(first_bare[1:], with_sememes[1:], atol=1e-5)
    assert (with_sememes - bare).abs().max() > 0.01


def test_characters_alone_are_a_control(sdlm_run: Path, some: Place, tmp_path: Path) -> None:
    """``bare:`` knows the words of a lexicon, and none of its sememes: as a list of the words that nobody annotated."""
    lexicon, listed, out = tmp_path / "lexicon.tsv", tmp_path / "words.txt", tmp_path / "out"
    lexicon.write_text("word\tsememes\n香蕉\t水果\n我\t人\n", encoding="utf-8")
    listed.write_text("香蕉\n", encoding="utf-8")
    softmax = trained(some, tmp_path / "softmax", "softmax")
    for run in (sdlm_run, softmax):
        bare = extend(run, listed, out / run.name, sources=[f"bare:table:{lexicon}"])
        assert bare.words == bare.unannotated == ("香蕉",)
        annotated = extend(run, listed, out / f"{run.name}-sememes", sources=[f"table:{lexicon}"])
        assert annotated.unannotated == ()
        one, other = (Run.open(each.written) for each in (bare, annotated))
        new = one.vocabulary.id("香蕉")
        vectors = [each.task.state_dict()["embedding.weight"][new] for each in (one, other)]
        assert not torch.equal(*vectors)


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("新 词", "words have no blank inside"),
        ("新\N{IDEOGRAPHIC SPACE}词", "words have no blank inside"),
        ("<eos>", "marks of the begin and the end of a sentence are taken out of text"),
        ("Apple", "the text of this run has 'apple' in its place"),
        ("12.5%", "the text of this run has 'N' in its place"),
    ],
)
def test_words_that_no_text_has_are_refused_with_their_line(tmp_path: Path, word: str, why: str) -> None:
    place = Place(tmp_path / "place", max_vocabulary=8, lower=True, numbers_to="N")
    run, path = trained(place, tmp_path / "run", "softmax"), tmp_path / "new.tsv"
    path.write_text(f"word\tsememes\n香蕉\t水果\n{word}\t水果\n", encoding="utf-8")
    with pytest.raises(DataError) as refused:
        extend(run, path, tmp_path / "out")
    assert f"{path}:3: no text has the word {word!r}, since {why}; correct the line, or take it out" in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_words_that_the_segmenter_cuts_are_named(tmp_path: Path) -> None:
    place = Place(tmp_path / "place", max_vocabulary=8, segmenter="characters")
    run, path = trained(place, tmp_path / "run", "softmax"), tmp_path / "new.txt"
    path.write_text("香蕉\n蕉\n", encoding="utf-8")
    shown = CliRunner().invoke(app, ["extend", str(run), "--words", str(path), "--out", str(tmp_path / "out")])
    assert shown.exit_code == 0
    assert "the run's segmenter cuts 1 of them apart where they stand alone: 香蕉" in shown.stderr
    assert what_was_added(Run.open(tmp_path / "out")).cut_apart == ("香蕉",)


def test_a_run_with_chunks_keeps_them(words: Path, tmp_path: Path) -> None:
    """The chunks have the ids of the larger vocabulary, so that the new run can be opened and scored."""
    place = Place(tmp_path / "place", end_of_sentence=True, max_vocabulary=8, chunks=6, chunk_length=2)
    run = trained(place, tmp_path / "run", "sdlm")
    extend(run, words, tmp_path / "out")
    before, after = (Run.open(path).chunks for path in (run, tmp_path / "out"))
    assert before is not None
    assert after is not None
    texts = [[chunks.text(id) for id in range(chunks.num_tokens, len(chunks))] for chunks in (before, after)]
    assert texts[0] == texts[1] != []
    assert after.counts.tolist() == before.counts.tolist()
    assert after.num_tokens == before.num_tokens + 2
    (tmp_path / "text.txt").write_text("我 吃 香蕉 。\n", encoding="utf-8")
    scored = CliRunner().invoke(app, ["score", str(tmp_path / "out"), str(tmp_path / "text.txt")])
    assert scored.exit_code == 0, scored.output


def test_a_run_that_cannot_be_opened_does_not_appear(sdlm_run: Path, tmp_path: Path) -> None:
    run, opened = Run.open(sdlm_run), list[Path]()

    def refuse(path: Path) -> None:
        opened.append(path)
        raise CheckpointError("cannot be opened")

    files = {**run.folder.kept(), "vocabulary.tsv": b"torn"}
    with pytest.raises(CheckpointError, match="cannot be opened"):
        run.folder.write_beside(tmp_path / "out", run.folder.plan, {}, files, run.snapshot, run.task, {}, check=refuse)
    assert [path.exists() for path in opened] == [False]
    assert list(tmp_path.iterdir()) == []


def test_the_new_run_is_whole(
    some: Place, sdlm_run: Path, words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = extend(sdlm_run, words, tmp_path / "out")
    run = Run.open(tmp_path / "out")
    assert what_was_added(run) == report
    before = Run.open(sdlm_run)
    assert (report.run, report.checkpoint, report.written) == (str(sdlm_run), before.snapshot, str(tmp_path / "out"))
    assert (report.of_vocabulary, report.unannotated, report.refused) == (before.vocabulary.fingerprint, (), {})
    counts, larger = (dict(zip(one.vocabulary.tokens, one.vocabulary.counts.tolist(), strict=True)) for one in (before, run))
    assert larger == {**counts, "香蕉": 0, "手机": 0}
    versions = run.folder.versions
    assert versions == {**before.folder.versions, "run": versions["run"]}
    assert versions["run"] != before.folder.versions["run"], "a run of its own"
    assert report.unknown_share == pytest.approx(1 - sum(report.shares))
    assert report.contexts == len(some.data.tokens("train")) - 1
    assert run.signature.vocabulary_size == before.signature.vocabulary_size + 2 == len(run.vocabulary)
    assert run.signature.vocabulary == run.vocabulary.fingerprint == report.vocabulary
    assert "extended.json" in (tmp_path / "out" / "manifest.json").read_text(encoding="utf-8")
    assert run.graph is not None
    assert "2 words of new.tsv" in run.graph.history[-1]
    with pytest.raises(DataError, match="give data of the same vocabulary"):
        run.data()
    text = tmp_path / "text"
    text.mkdir()
    for split in ("train", "valid", "test"):
        (text / f"{split}.txt").write_text("我 吃 香蕉 。\n人 买 手机 。\n" * 9, encoding="utf-8")
    preprocess("plain", text, tmp_path / "data", PreprocessSettings(vocabulary=tmp_path / "out"))
    data = run.data(tmp_path / "data")
    assert run.vocabulary.id("香蕉") in data.tokens("test")
    with pytest.raises(ConfigError, match="was not extended"):
        what_was_added(Run.open(sdlm_run))
    monkeypatch.setattr("sememekit.runs.extend.read_object", lambda file, refuse: {**report.model_dump(), "contexts": "many"})
    with pytest.raises(ConfigError, match=r"extended\.json is not what .* \(key 'contexts': .*\); extend the run again"):
        what_was_added(run)
    monkeypatch.undo()
    again = tmp_path / "more.txt"
    again.write_text("梨子\n", encoding="utf-8")
    more = extend(tmp_path / "out", again, tmp_path / "third", data=PreparedData.open(tmp_path / "data").folder)
    assert more.words == more.unannotated == ("梨子",)


def test_words_that_cannot_be_added_are_counted_by_cause(sdlm_run: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.tsv"
    path.write_text("word\tsememes\n苹果\t水果\n飞机\t飞行\n香蕉\t水果 黄\n", encoding="utf-8")
    report = extend(sdlm_run, path, tmp_path / "out")
    assert report.words == ("香蕉",)
    assert report.refused == {"in the vocabulary already": ("苹果",), "no sememe that the graph knows": ("飞机",)}
    assert report.dropped_sememes == ("飞行", "黄")
    path.write_text("word\tsememes\n苹果\t水果\n", encoding="utf-8")
    with pytest.raises(DataError, match="all 1 words are in the vocabulary already"):
        extend(sdlm_run, path, tmp_path / "out2")
    path.write_text("word\tsememes\n飞机\t水裹\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"near: 水果"):
        extend(sdlm_run, path, tmp_path / "out2")
    path.write_text("word\tsememes\tcount\n香蕉\t水果\tmany\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"new.tsv:2: the count 'many' is no whole number"):
        extend(sdlm_run, path, tmp_path / "out2")
    path.write_text("word\tsememes\tcount\n香蕉\t水果\t100000\n", encoding="utf-8")
    with pytest.raises(DataError, match="add up to 100,000, but <unk> occurs"):
        extend(sdlm_run, path, tmp_path / "out2")
    assert not (tmp_path / "out2").exists()


def test_words_of_which_a_lexicon_has_no_known_sememe_have_their_characters(sdlm_run: Path, tmp_path: Path) -> None:
    """The user did not write these sememes, so that a word of a list is not refused for them."""
    lexicon, words = tmp_path / "lexicon.tsv", tmp_path / "words.txt"
    lexicon.write_text("word\tsememes\n香蕉\t无此义原\n", encoding="utf-8")
    words.write_text("香蕉\n", encoding="utf-8")
    report = extend(sdlm_run, words, tmp_path / "more", sources=[f"table:{lexicon}"])
    assert report.words == report.unannotated == ("香蕉",)
    assert report.dropped_sememes == ("无此义原",)
    assert not report.refused


def test_held_out_words_are_a_file_for_extend(tmp_path: Path) -> None:
    """From text to the worth of held-out words: ``extend`` adds them with their counts, and the text has them again."""
    held, whole = Place(tmp_path / "held", hold_out=0.4), Place(tmp_path / "whole")
    file = held.folder / "data" / HELD_OUT
    header, *rows = [line.split("\t") for line in file.read_text("utf-8").splitlines()]
    counts = dict(zip(whole.data.vocabulary.tokens, whole.data.vocabulary.counts.tolist(), strict=True))
    assert header == ["word", "count"]
    assert len(rows) > 1
    assert {word: int(count) for word, count in rows} == {word: counts[word] for word, _ in rows}
    assert {*whole.data.vocabulary.tokens} - {*held.data.vocabulary.tokens} == {word for word, _ in rows}
    assert held.data.signature.options["hold_out"] == 0.4
    assert "hold_out" not in whole.data.signature.options
    run = trained(held, tmp_path / "run", "softmax")
    report = extend(run, file, tmp_path / "more")
    assert {*report.words} == {word for word, _ in rows}
    assert report.counted
    again = PreprocessSettings(segmenter="none", vocabulary=tmp_path / "more", end_of_sentence=False)
    preprocess("plain", held.text, tmp_path / "again", again)
    found = compare_extended(run, [tmp_path / "more"], tmp_path / "again", device="cpu")
    test = (held.text / "test.txt").read_text("utf-8").split()
    assert found.new_tokens == sum(word in report.words for word in test[1:])
    with pytest.raises(ConfigError, match="leave --min-count, --max-vocabulary, --hold-out and --chunks out"):
        preprocess("plain", held.text, tmp_path / "none", again.model_copy(update={"hold_out": 0.5}))


def test_runs_that_cannot_be_extended(some: Place, place: Place, words: Path, tmp_path: Path) -> None:
    tree = trained(some, tmp_path / "tree", "tree_hsm")
    with pytest.raises(ConfigError, match="'tree_hsm' has vectors of the nodes of its tree and none of words"):
        extend(tree, words, tmp_path / "out")
    with pytest.raises(CheckpointError, match="exists already"):
        extend(tree, words, tree)
    with pytest.raises(ConfigError, match="between 0 and 1"):
        extend(tree, words, tmp_path / "out", prior=1.0)
    assert not (tmp_path / "out").exists()


def test_a_stopped_extend_leaves_nothing_half_written(
    sdlm_run: Path, words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("sememekit.training.checkpoint.sync_to_disk", stop)
        with pytest.raises(KeyboardInterrupt):
            extend(sdlm_run, words, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    extend(sdlm_run, words, tmp_path / "out")  # what the other left goes first
    assert np.isfinite(probabilities(Run.open(tmp_path / "out"), ["我"]).numpy()).all()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_before_and_after_on_one_text(some: Place, sdlm_run: Path, words: Path, tmp_path: Path) -> None:
    extend(sdlm_run, words, tmp_path / "out")
    text = tmp_path / "text"
    text.mkdir()
    for split in ("train", "valid", "test"):
        (text / f"{split}.txt").write_text("我 吃 香蕉 。\n人 买 手机 。\n无此 。\n" * 9, encoding="utf-8")
    preprocess("plain", text, tmp_path / "data", PreprocessSettings(vocabulary=tmp_path / "out"))
    report = compare_extended(sdlm_run, [tmp_path / "out"], tmp_path / "data")
    assert (report.words, report.new_tokens) == (2, 18)
    equal, by_counts, spelled, after = report.rows
    assert equal.new == pytest.approx(by_counts.new)  # both have the count 1
    assert equal.others == pytest.approx(spelled.others)
    assert equal.reciprocal_rank_among_new == pytest.approx((1 + 1 / 2) / 2), "two equal words: the mean over both orders"
    before = Run.open(sdlm_run)
    task = before.task
    assert isinstance(task, LanguageModel)
    ids = before.vocabulary.encode(["我", "吃", "香蕉", "。", "人", "买", "手机", "。", "无此", "。"] * 9)
    chunks = list(task.score(ids))
    nats, targets = (torch.cat([getattr(one, name)[one.mask] for one in chunks]).double() for name in ("nats", "targets"))
    share = 1 / float(before.vocabulary.counts[before.vocabulary.unknown_id])
    unknown = targets == before.vocabulary.unknown_id
    lost = 18 * np.log(share) + 9 * np.log(1 - 2 * share)  # of 27 unknown words 18 are new ones
    assert int(unknown.sum()) == 27
    assert equal.perplexity == pytest.approx(np.exp((float(nats.sum()) - lost) / len(nats)))
    spelling = _spelling(before.vocabulary)
    uneven = sum(map(spelling, ("香蕉", "手机"))) / 2 - np.log(np.exp([*map(spelling, ("香蕉", "手机"))]).mean())
    assert spelled.new == pytest.approx(equal.new * np.exp(-uneven))
    later = Run.open(tmp_path / "out")
    new = later.vocabulary.encode(["香蕉", "手机"])
    assert isinstance(later.task, LanguageModel)
    seen = list(later.task.score(later.data(tmp_path / "data").tokens("test")))
    targets = torch.cat([one.targets[one.mask] for one in seen])
    is_new = torch.isin(targets, torch.from_numpy(new))
    with torch.no_grad():
        then, now = (
            model.decoder.log_probs(torch.cat([one.hidden[one.mask] for one in read])[is_new])
            for model, read in ((task, chunks), (later.task, seen))
        )
    own = then[:, [before.vocabulary.id("<unk>")]] + np.log(share)
    higher = (then > own).sum(dim=1)
    assert equal.reciprocal_rank == pytest.approx(float((1 / (higher + 1) + 1 / (higher + 2)).mean()) / 2)
    own = now.gather(1, targets[is_new][:, None])
    assert after.reciprocal_rank == pytest.approx(float((1 / ((now > own).sum(dim=1) + 1.0)).mean()))
    assert after.reciprocal_rank_among_new == pytest.approx(float((1 / ((now[:, new] > own).sum(dim=1) + 1.0)).mean()))
    assert after.perplexity is not None
    assert np.log(after.perplexity) * len(nats) == pytest.approx(
        np.log(after.new or 0) * 18 + np.log(after.others or 0) * (len(nats) - 18)
    )
    scored = evaluate_ppl(tmp_path / "out", data=tmp_path / "data")
    assert scored.perplexity == pytest.approx(after.perplexity, rel=1e-5)
    offer = (
        r"was trained on the vocabulary .* \(10 words\), but .* \(8 words\).* sememekit extend RUN --against .*out --data DATA"
    )
    with pytest.raises(DataError, match=offer):
        compare_ppl([before, Run.open(tmp_path / "out")])
    with pytest.raises(DataError, match="give the run that was extended"):
        compare_extended(tmp_path / "out", [tmp_path / "out"], tmp_path / "data")


def test_a_spelling_has_the_mean_over_its_characters_and_its_end() -> None:
    """Three orders, each smoothed with the one below as one more occurrence; the lowest with four kinds: a, b, end, any other.

    By hand: "aa" and "ab" have a three times, b once and an end twice; special tokens are no words."""
    log_probability = _spelling(Vocabulary(["<unk>", "ab", "aa"], [9, 5, 1]))
    first = ((3 + 1 / 4) / 7 + 2) / 3  # a begins a word
    first = (first + 2) / 3
    end = (((2 + 1 / 4) / 7 + 1) / 4 + 0) / 3  # after the a of a word of one character
    assert log_probability("a") == pytest.approx((np.log(first) + np.log(end)) / 2)
    second = (((1 + 1 / 4) / 7 + 1) / 4 + 1) / 3
    end = (((2 + 1 / 4) / 7 + 1) / 2 + 1) / 2
    assert log_probability("ab") == pytest.approx((np.log(first) + np.log(second) + np.log(end)) / 3)
    other, end = 1 / 4 / 7 / 3 / 3, (2 + 1 / 4) / 7
    assert log_probability("c") == pytest.approx((np.log(other) + np.log(end)) / 2)


def test_a_row_has_no_figure_of_words_that_do_not_occur() -> None:
    is_new, ranks = np.array([True, False, True]), np.array([1.0, 0.25])
    row = _row("both", np.log([2.0, 8.0, 4.0]), is_new, ranks, np.array([0.5, 0.5]))
    assert row.name == "both"
    assert (row.perplexity, row.new, row.others) == pytest.approx((4, 8**0.5, 8))
    assert (row.reciprocal_rank, row.reciprocal_rank_among_new) == (0.625, 0.5)
    row = _row("none", np.log([2.0]), np.array([False]), ranks[:0], ranks[:0])
    assert (row.new, row.others, row.reciprocal_rank, row.reciprocal_rank_among_new) == (None, pytest.approx(2), None, None)


def test_on_the_command_line(sdlm_run: Path, words: Path, tmp_path: Path) -> None:
    run = CliRunner().invoke
    out = str(tmp_path / "out")
    shown = run(app, ["extend", str(sdlm_run), "--words", str(words), "--out", out])
    assert shown.exit_code == 0
    assert re.search(r"met in the mean over \d+\s+contexts, within 0\.00\d+ %", " ".join(shown.stdout.split()))
    found = json.loads((tmp_path / "out" / "extended.json").read_text(encoding="utf-8"))
    assert found["words"] == ["手机", "香蕉"]
    assert run(app, ["extend", str(sdlm_run)]).exit_code == 2
    wrong = run(app, ["extend", str(sdlm_run), "--against", out, "--prior", "0.3", "--data", "x"])
    assert "--prior: this is for --words FILE" in " ".join(wrong.output.split())


@pytest.mark.parametrize(("decoder", "share"), [("softmax", 0.75), ("sdlm", 0.0)])
def test_layers_with_senses_have_no_share_of_the_vector_of_the_unknown_word(
    some: Place, words: Path, tmp_path: Path, decoder: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares, grow = list[object](), extending.Growth

    def seen(*given: Any) -> Any:
        shares.append(given[-1])
        return grow(*given)

    monkeypatch.setattr(extending, "Growth", seen)
    extend(trained(some, tmp_path / "run", decoder), words, tmp_path / "out")
    assert shares == [share]


@pytest.mark.parametrize("decoder", ["class_hsm", "adaptive"])
def test_an_extended_run_is_trained_on_with_its_words(some: Place, words: Path, tmp_path: Path, decoder: str) -> None:
    extend(trained(some, tmp_path / "run", decoder), words, tmp_path / "out")
    text = tmp_path / "text"
    text.mkdir()
    for split in ("train", "valid", "test"):
        (text / f"{split}.txt").write_text("我 吃 香蕉 。\n人 买 手机 。\n" * 20, encoding="utf-8")
    preprocess("plain", text, tmp_path / "data", PreprocessSettings(vocabulary=tmp_path / "out"))
    table = table_of_run(tmp_path / "out")
    train({**table, "data": {"path": str(tmp_path / "data")}}, tmp_path / "on")
    before, after = (evaluate_ppl(tmp_path / name, data=tmp_path / "data").perplexity for name in ("out", "on"))
    assert after is not None
    assert before is not None
    assert after < before
    with pytest.raises(SememekitError, match="begun with another train text"):
        train({"data": {"path": str(tmp_path / "data")}}, tmp_path / "out", resume=True)


def test_new_words_have_no_training_count(words: Path, tmp_path: Path) -> None:
    """The vocabulary comes from a larger text, so the run keeps the counts of its own."""
    whole = Place(tmp_path / "whole", max_vocabulary=8)
    part = tmp_path / "part.txt"
    part.write_text("".join((whole.text / "train.txt").read_text("utf-8").splitlines(True)[:40]), encoding="utf-8")
    files: dict[str, list[Path | str]] = {split: [part] for split in ("train", "valid", "test")}
    settings = PreprocessSettings(end_of_sentence=False, vocabulary=whole.folder / "data")
    preprocess("plain", None, tmp_path / "data", settings, files=files)
    run = Run.open(trained(whole, tmp_path / "run", "softmax", data__path=str(tmp_path / "data")))
    extend(run, words, tmp_path / "more")
    more = Run.open(tmp_path / "more")
    assert len(more.train_counts) == len(more.vocabulary) == len(run.vocabulary) + 2
    added = more.vocabulary.encode(["香蕉", "手机"])
    assert more.train_counts[added].tolist() == [0, 0]
    assert more.train_counts[more.vocabulary.encode(run.vocabulary.tokens)].tolist() == run.train_counts.tolist()
    assert run.train_counts.sum() < run.vocabulary.counts.sum()
