"""evaluate-ppl of several runs: one table, differences from the first, and intervals over the sentences of the text."""

from __future__ import annotations

import json
import math
import shutil
import statistics
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from sememekit.analysis.evaluate import evaluate_seeds
from sememekit.analysis.evaluate_ppl import PerplexityComparison, compare_ppl, evaluate_ppl
from sememekit.analysis.scored_runs import TextReading, TextSums
from sememekit.analysis.word_groups import WordKind
from sememekit.commands._program import app
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.jobs.train import train
from sememekit.measure.intervals import ratio_difference_interval, ratio_difference_intervals
from sememekit.progress import silent
from sememekit.protocols.adaptation import Adaptation
from sememekit.protocols.cache import CacheSettings
from sememekit.runs.run import Run
from sememekit.sememes import Sense, build_graph
from sememekit.tasks.scoring import BLOCK, sentences_of
from tests.small import lexicon_of_senses
from tests.small_pairs import PairPlace
from tests.small_run import Place, in_chunks

runner = CliRunner()


def runs_of(*folders: Path, dtype: str | None = None) -> list[Run]:
    return [Run.open(folder, device="cpu", dtype=dtype) for folder in folders]


def test_both_models_are_as_they_are_alone(softmax: Path, sdlm: Path, place: Place) -> None:
    report = compare_ppl(runs_of(softmax, sdlm), by=["senses", "sememes"])
    alone = [evaluate_ppl(run, by=["senses", "sememes"], graph=place.graph, device="cpu") for run in (softmax, sdlm)]
    assert list(report.reports) == alone
    assert report.signature == alone[0].signature
    assert report.graph == alone[1].graph, "the graph of the one that has one groups both"
    whole, *rows = report.rows
    assert whole.perplexities == pytest.approx((alone[0].perplexity, alone[1].perplexity), rel=1e-12)
    groups = [[group for groups in (one.groups or {}).values() for group in groups] for one in alone]
    assert [(row.name, row.tokens, row.of_which) for row in rows] == [(one.name, one.tokens, one.of_which) for one in groups[0]]
    for row, *pair in zip(rows, *groups, strict=True):
        assert row.perplexities == tuple(
            None if one.perplexity is None else pytest.approx(one.perplexity, rel=1e-12) for one in pair
        )
    assert PerplexityComparison.model_validate_json(report.model_dump_json()) == report


@pytest.fixture(scope="module")
def seeds(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two seeds, as ``train --seeds`` lays the runs down."""
    folder = tmp_path_factory.mktemp("seeds")
    for seed in (10, 2):
        train(place.table("sdlm", run__seed=seed, schedule__epochs=1), folder / f"seed-{seed}")
    return folder


def test_a_folder_of_seeds_has_a_row_for_each_and_their_mean(seeds: Path) -> None:
    alone = [evaluate_ppl(seeds / f"seed-{seed}", by=["senses"], device="cpu") for seed in (2, 10)]
    values = [one.perplexity for one in alone]
    done = runner.invoke(app, ["evaluate-ppl", str(seeds), "--by", "senses", "--device", "cpu", "--json"])
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["seeds"], report["reports"]) == ([2, 10], [json.loads(one.model_dump_json()) for one in alone])
    figure = report["figures"]["perplexity"]
    assert figure["mean"] == pytest.approx(math.sqrt(values[0] * values[1]))
    assert figure["sd"] == pytest.approx(statistics.stdev(values))
    assert report["signature"] == alone[0].signature
    shown = runner.invoke(app, ["evaluate-ppl", str(seeds), "--by", "senses"]).stdout
    for part in ("geometric mean", f"{figure['mean']:,.4g}", "seed 10", f"signature: {report['signature']}"):
        assert part in shown

    tuned = runner.invoke(app, ["evaluate-ppl", str(seeds), "--cache", "--tune", "--set", "cache.window=5", "--json"])
    assert tuned.exit_code == 0, tuned.stderr
    cached = json.loads(tuned.stdout)
    assert all(one["adaptation"] is not None for one in cached["reports"])
    assert cached["figures"]["perplexity"]["mean"] != figure["mean"]


def test_one_seed_has_no_standard_deviation(seeds: Path, tmp_path: Path) -> None:
    shutil.copytree(seeds / "seed-2", tmp_path / "seed-2")
    report = evaluate_seeds(tmp_path)
    figure = report.figures["perplexity"]
    assert (report.seeds, figure.sd, len(figure.values)) == ((2,), None, 1)
    assert figure.mean == pytest.approx(figure.values[0])


def test_a_table_for_a_paper_has_names_a_caption_and_all_groupings(softmax: Path, sdlm: Path, tmp_path: Path) -> None:
    files = ["--csv", str(tmp_path / "words.csv"), "--latex", str(tmp_path / "words.tex")]
    both = ["evaluate-ppl", str(softmax), str(sdlm), "--by", "senses", "--names", "LSTM & co,SDLM", "--caption", "50 % more"]
    for _ in range(2):
        done = runner.invoke(app, [*both, *files])
        assert done.exit_code == 0, done.stderr
    assert "LSTM & co: " in done.stdout
    latex = (tmp_path / "words.tex").read_text(encoding="utf-8")
    assert latex.startswith(f"% sememekit evaluate-ppl {softmax} {sdlm} --split test --by senses\n")
    for part in (r"\caption{50 \% more}", r"LSTM \& co & SDLM & SDLM - LSTM \& co", r"\midrule", "several senses & "):
        assert part in latex
    numbers = (sum(one.numel() for one in run.task.parameters()) for run in runs_of(softmax, sdlm))
    assert "parameters &  &  & {:,} & {:,} & ".format(*numbers) in latex
    rows = (tmp_path / "words.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("words,tokens,share,LSTM & co,SDLM,SDLM - LSTM & co,in %,95 % from,to")
    found = compare_ppl(runs_of(softmax, sdlm), by=["senses"]).rows[0]
    assert rows[1].split(",")[3:5] == [repr(value) for value in found.perplexities]
    one = ["evaluate-ppl", str(sdlm), "--latex", str(tmp_path / "one.tex")]
    assert runner.invoke(app, [*one, "--by", "senses", "--by", "frequency"]).exit_code == 0
    assert (tmp_path / "one.tex").read_text(encoding="utf-8").count(r"\multicolumn{4}{l}{\emph{By ") == 2
    assert "one perplexity is no table" in runner.invoke(app, [one[0], "absent", *one[2:]]).stderr, "before a run is read"
    assert "add --latex, or leave it out" in runner.invoke(app, ["evaluate-ppl", "absent", "--caption", "a"]).stderr
    assert "give a name for each run" in runner.invoke(app, [*one, "--names", "a,b"]).stderr


def test_one_seed_has_no_deviation_and_other_models_are_for_compare(seeds: Path, softmax: Path, tmp_path: Path) -> None:
    shutil.copytree(seeds / "seed-2", tmp_path / "seed-2")
    assert evaluate_seeds(tmp_path).figures["perplexity"].sd is None
    done = runner.invoke(app, ["evaluate-ppl", str(softmax), str(seeds)])
    assert (done.exit_code, f"compared by: sememekit compare {softmax} {seeds}" in done.stderr) == (1, True)
    done = runner.invoke(app, ["evaluate-ppl", str(seeds), "--overlay", "none.txt"])
    assert (done.exit_code, f"--overlay takes one run, such as {seeds / 'seed-2'}" in done.stderr) == (1, True)
    with pytest.raises(CheckpointError, match="is no folder of runs seed-1, seed-2"):
        evaluate_seeds(tmp_path / "seed-2")


def test_a_difference_is_that_of_the_figures_with_its_interval(softmax: Path, sdlm: Path, ending: Path) -> None:
    report = compare_ppl(runs_of(softmax, sdlm, softmax))
    (whole,) = report.rows
    first, second, _ = whole.perplexities
    change, itself = whole.changes
    assert first is not None
    assert second is not None
    assert change.perplexity == pytest.approx(second - first)
    assert change.nats.value == pytest.approx(math.log(second / first))
    assert change.relative.value == pytest.approx(second / first - 1)
    assert change.relative.low is not None
    assert change.relative.high is not None
    assert change.relative.low < second / first - 1 < change.relative.high
    assert change.excludes_zero == (change.relative.low > 0 or change.relative.high < 0)
    assert (itself.nats.value, itself.nats.low, itself.nats.high, itself.excludes_zero) == (0, 0, 0, False)


def test_the_interval_is_over_sentences(softmax: Path, sdlm: Path, place: Place) -> None:
    """The same sums by hand: the text of tests/small_run.py has one 。 at the end of each sentence."""
    report = compare_ppl(runs_of(softmax, sdlm))
    tokens = np.asarray(place.data.tokens("test"))
    stop = place.data.vocabulary.id("。")
    assert report.units == int((tokens == stop).sum())
    assert report.unit == "sentences, which end with 。"
    sums = []
    for run in (sdlm, softmax):
        nats = np.zeros((2, report.units))
        position = -np.ones(len(tokens) - 1)
        chunks = list(in_chunks(Run.open(run, device="cpu").task, len(tokens)).score(tokens, batch_size=3))
        for column in range(3):
            length = -(-(len(tokens) - 1) // 3)
            own = chunks[0].nats[:, column][chunks[0].mask[:, column]].double().numpy()
            position[column * length : column * length + len(own)] = own
        sentence = 0
        for token, value in zip(tokens[1:], position, strict=True):
            nats[:, sentence] += (value, 1)
            sentence += token == stop
        sums.append((nats[0], nats[1]))
    expected = ratio_difference_interval(*sums, seed=0)
    found = report.rows[0].changes[0].nats
    assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high), rel=1e-9)


def test_what_a_sentence_is(place: Place, sentences: Place, tmp_path: Path) -> None:
    number, unit = sentences_of(sentences.data, "test")
    stream = np.asarray(sentences.data.tokens("test"))
    assert unit == "sentences, each with its <eos>"
    ends = np.flatnonzero(stream == sentences.data.vocabulary.end_id)
    assert [int((number == sentence).sum()) for sentence in range(3)] == [ends[0], ends[1] - ends[0], ends[2] - ends[1]]
    (tmp_path / "text").mkdir()
    for split in ("train", "valid", "test"):
        (tmp_path / "text" / f"{split}.txt").write_text("甲 乙 丙 丁 戊\n" * 20, encoding="utf-8")
    from sememekit.data.prepared import PreparedData
    from sememekit.jobs.preprocess import preprocess
    from sememekit.prepare.settings import PreprocessSettings

    settings = PreprocessSettings(min_count=1, end_of_sentence=False, segmenter="none")
    preprocess("plain", tmp_path / "text", tmp_path / "data", settings)
    number, unit = sentences_of(PreparedData.open(tmp_path / "data"), "test")
    assert "no ends of sentences" in unit
    assert np.bincount(number).tolist() == [BLOCK, BLOCK, 99 - 2 * BLOCK]


def test_the_order_of_the_columns_does_not_matter(softmax: Path, place: Place) -> None:
    """The nats of a word belong to its sentence, in however many columns the text is read."""
    every = WordKind("all", "every word", np.ones(len(place.data.vocabulary), dtype=np.bool_))
    counts = []
    for columns in (1, 3, 7):
        scoring = Run.open(softmax, device="cpu").task.scored(place.data, "test", columns)
        assert scoring is not None
        found = TextSums(scoring.num_units, len(place.data.vocabulary), [every])
        for scores in scoring.chunks(silent):
            found.add(scores)
        nats, number = found.units[1]
        assert nats.sum() == pytest.approx(found.total.nats)
        assert number.tolist() == found.units[0][1].tolist()
        counts.append(number.tolist())
    assert counts[0] == counts[1] == counts[2]
    assert sorted(set(counts[0][1:])) == [4], "four words a sentence; of the first one the first word is not predicted"


def test_labels_of_sentences_are_rows(softmax: Path, sdlm: Path, place: Place, tmp_path: Path) -> None:
    """The rows of the labels add up to the text, and a sentence counts for its own label alone."""
    scoring = Run.open(softmax, device="cpu").task.scored(place.data, "test", None)
    assert scoring is not None
    labels = ["news" if number % 3 else "prose" for number in range(scoring.num_units)]
    file = tmp_path / "labels.txt"
    file.write_text("".join(f"{label}\n" for label in labels), encoding="utf-8")
    alone = evaluate_ppl(softmax, by=("labels",), labels=file, device="cpu")
    assert alone.groups is not None
    rows = {row.name: row for row in alone.groups["labels"]}
    assert set(rows) == {"news", "prose"}
    assert sum(row.tokens for row in rows.values()) == alone.tokens
    assert sum(row.nats for row in rows.values()) == pytest.approx(alone.nats)
    report = compare_ppl([Run.open(softmax), Run.open(sdlm)], by=("labels",), labels=file)
    assert [(row.name, row.tokens) for row in report.rows[1:]] == [(name, rows[name].tokens) for name in ("prose", "news")]
    file.write_text("news\n", encoding="utf-8")
    with pytest.raises(DataError, match="labels, but the split has"):
        evaluate_ppl(softmax, by=("labels",), labels=file, device="cpu")
    file.write_text("".join(f"{label}\n" for label in ["", *labels[1:]]), encoding="utf-8")
    with pytest.raises(DataError, match="txt:1: the line is empty"):
        evaluate_ppl(softmax, by=("labels",), labels=file, device="cpu")
    with pytest.raises(DataError, match=r"--labels .*none\.txt: cannot be read"):
        evaluate_ppl(softmax, by=("labels",), labels=tmp_path / "none.txt", device="cpu")
    with pytest.raises(ConfigError, match=r"the data have no labels of sentences, .* add --labels FILE"):
        evaluate_ppl(softmax, by=("labels",), device="cpu")
    with pytest.raises(ConfigError, match="add --by labels"):
        evaluate_ppl(softmax, labels=file, device="cpu")


def test_several_ratios_are_drawn_as_one_is() -> None:
    numbers = np.random.default_rng(3)
    sides = [(numbers.random(50), numbers.integers(0, 3, 50)) for _ in range(4)]
    pairs = [(sides[0], sides[1]), (sides[2], sides[3])]
    for one, pair in zip(ratio_difference_intervals(pairs, seed=5), pairs, strict=True):
        alone = ratio_difference_interval(*pair, seed=5)
        assert (one.value, one.low, one.high) == pytest.approx((alone.value, alone.low, alone.high), rel=1e-12)
    draws = np.random.default_rng(5).multinomial(50, np.full(50, 0.02), size=2000)
    for one, ((top, bottom), (other_top, other_bottom)) in zip(ratio_difference_intervals(pairs, seed=5), pairs, strict=True):
        found = [(times @ top) / (times @ bottom) - (times @ other_top) / (times @ other_bottom) for times in draws]
        assert (one.low, one.high) == pytest.approx(tuple(np.quantile(found, [0.025, 0.975])), rel=1e-9)


def test_runs_that_cannot_stand_in_one_table_are_refused(
    softmax: Path, sdlm: Path, ending: Path, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(place.table(task__evaluation_batch_size=4, run__dtype="bfloat16", schedule__epochs=1), tmp_path / "other")
    with pytest.raises(ConfigError, match="two runs or more"):
        compare_ppl(runs_of(softmax))
    with monkeypatch.context() as patch:
        patch.setattr("sememekit.analysis.evaluate_ppl.score_texts", None)  # refused before anything is scored
        with pytest.raises(ConfigError, match=r"eos is none and predicted.*evaluate each alone"):
            compare_ppl(runs_of(softmax, ending))
        agree = "add --batch-size 3 --dtype float32"
        with pytest.raises(ConfigError, match=rf"columns is 3 and 4; dtype is float32 and bfloat16; {agree}"):
            compare_ppl(runs_of(softmax, tmp_path / "other"))
    assert compare_ppl(runs_of(softmax, tmp_path / "other", dtype="float32"), TextReading(batch_size=3)).rows[0].tokens > 0
    tiny = lexicon_of_senses("list:tiny", [Sense("吃", ("吃",))])
    build_graph(place.data.vocabulary, [tiny]).save(tmp_path / "tiny.graph")
    train(place.table("sdlm", graph__path=str(tmp_path / "tiny.graph"), schedule__epochs=1), tmp_path / "tiny")
    with pytest.raises(ConfigError, match=r"have different sememe graphs.*--graph .*sdlm/graph.json"):
        compare_ppl(runs_of(sdlm, tmp_path / "tiny"), by=["senses"])
    assert len(compare_ppl(runs_of(sdlm, tmp_path / "tiny"), by=["senses"], graph=place.graph).rows) == 5


def test_a_cache_is_compared_by_the_same_rule(softmax: Path, sdlm: Path) -> None:
    report = compare_ppl(runs_of(softmax, sdlm), TextReading(adaptation=Adaptation(cache=CacheSettings(window=20))))
    assert "|cache:" in report.signature
    assert report.rows[0].perplexities == pytest.approx(tuple(one.perplexity for one in report.reports), rel=1e-12)


def test_pairs_are_resampled_whole(tmp_path: Path) -> None:
    pairs = PairPlace(tmp_path)
    for number, decoder in enumerate(("softmax", "sdlm")):
        train(pairs.table(decoder, schedule__epochs=1), tmp_path / str(number))
    report = compare_ppl(runs_of(tmp_path / "0", tmp_path / "1"), by=["senses"])
    assert report.unit == "pairs"
    assert report.units == len(Run.open(tmp_path / "0").data().examples("test"))
    assert report.rows[0].perplexities == pytest.approx(tuple(one.perplexity for one in report.reports), rel=1e-12)


def test_one_table_is_printed(softmax: Path, sdlm: Path) -> None:
    typed = ["evaluate-ppl", str(softmax), str(sdlm), "--by", "senses", "--by", "sememes", "--device", "cpu", "-q"]
    shown = CliRunner().invoke(app, typed)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.count("no annotation") == 1, "rows that both groupings have are shown once"
    assert f"2: {sdlm}" in shown.stdout
    report = PerplexityComparison.model_validate(json.loads(CliRunner().invoke(app, [*typed, "--json"]).stdout))
    change = report.rows[0].changes[0].relative
    assert change.value is not None
    assert f"{100 * change.value:+.2f}" in shown.stdout
