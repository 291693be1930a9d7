"""evaluate-ppl and eval: the number, what it can be compared with, and the paper's Tables 2 and 3."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from sememekit.analysis.evaluate import evaluate
from sememekit.analysis.evaluate_ppl import PerplexityReport, compare_ppl, evaluate_ppl
from sememekit.analysis.groupings import Grouping
from sememekit.analysis.scored_runs import TextReading, TextSums
from sememekit.analysis.word_groups import word_kinds
from sememekit.commands._program import app
from sememekit.errors import CheckpointError, ConfigError, DataError, GraphError
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.measure import Tally
from sememekit.prepare.settings import PreprocessSettings
from sememekit.protocols.adaptation import Adaptation
from sememekit.protocols.cache import CACHE_PRESETS, CacheSettings
from sememekit.protocols.dynamic import DYNAMIC_PRESETS, DynamicSettings
from sememekit.runs.run import Run
from sememekit.sememes import SememeGraph
from sememekit.sememes.word_entry import SenseEntry, WordEntry
from sememekit.tasks.scoring import UnitScores
from sememekit.training import RunFolder
from sememekit.training.manifest import write_run_manifest
from tests.small import lexicon_of_senses, small_graph
from tests.small_pairs import PairPlace
from tests.small_run import Place


def test_the_number_is_that_of_the_protocol(place: Place, sdlm: Path) -> None:
    report = evaluate_ppl(sdlm, device="cpu")
    predicted = len(place.data.tokens("test")) - 1
    assert report.tokens == predicted
    assert report.perplexity == pytest.approx(math.exp(report.nats / predicted))
    size = place.data.signature.splits["test"]
    assert report.per_character == pytest.approx(math.exp(report.nats / size.characters))
    assert report.bits_per_byte == pytest.approx(report.nats / math.log(2) / size.bytes)
    assert report.size_of == place.data.signature.size_of
    assert report.graph == SememeGraph.load(place.graph).fingerprint
    assert report.checkpoint == RunFolder.open(sdlm).pointer()["best"]
    train, test = (place.data.tokens(split) for split in ("train", "test"))
    share = (np.bincount(train, minlength=len(place.data.vocabulary)) + 1) / (len(train) + len(place.data.vocabulary))
    assert report.unigram == pytest.approx(float(np.exp(-np.log(share[test[1:]]).mean())))
    assert report.groups is None
    assert report.dtype == "float32"


def test_it_is_the_number_that_training_saw(sdlm: Path) -> None:
    best = min(record["valid"]["perplexity"] for record in RunFolder.open(sdlm).metrics() if record["kind"] == "EpochReport")
    assert evaluate_ppl(sdlm, split="valid", device="cpu").perplexity == pytest.approx(best, rel=1e-9)
    assert evaluate(sdlm, split="valid", device="cpu").model_dump()["perplexity"] == pytest.approx(best, rel=1e-9)


def test_metrics_have_their_usual_names(softmax: Path) -> None:
    report = json.loads(evaluate(softmax, device="cpu").model_dump_json())
    assert set(report) == {"run", "checkpoint", "split", "perplexity", "nats", "tokens", "unigram"}


def test_the_last_weights_are_scored_when_asked_for(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sememekit.jobs.train import train

    monkeypatch.setattr("sememekit.training.divergence.uniform_perplexity", lambda task: None)  # a run that diverges is wanted
    train(place.table(schedule__epochs=3, optimizer__learning_rate=200.0, optimizer__clip=9.0), tmp_path / "run")
    best, last = (evaluate_ppl(tmp_path / "run", which=which, device="cpu") for which in ("best", "last"))
    pointer = RunFolder.open(tmp_path / "run").pointer()
    assert (best.checkpoint, last.checkpoint) == (pointer["best"], pointer["last"])


def test_the_batch_size_stands_in_the_signature_and_changes_little(sdlm: Path) -> None:
    three, one = evaluate_ppl(sdlm, device="cpu"), evaluate_ppl(sdlm, batch_size=1, device="cpu")
    assert "|columns:3|" in three.signature
    assert one.signature == three.signature.replace("columns:3", "columns:1")
    assert one.tokens == three.tokens
    assert one.perplexity == pytest.approx(three.perplexity, rel=0.05)
    huge = evaluate_ppl(sdlm, batch_size=10**6, device="cpu")
    assert f"|columns:{huge.tokens}|" in huge.signature, "never more columns than predictions"


def test_the_signature_names_all_that_must_agree(place: Place, sdlm: Path, ending: Path) -> None:
    signature = evaluate_ppl(sdlm, device="cpu").signature
    fields = dict(part.split(":", 1) for part in signature.split("|"))
    assert fields == {
        "protocol": "1",
        "data": "plain",
        "split": "test",
        "text": place.data.signature.splits["test"].sha256[:12],
        "tokens": str(len(place.data.tokens("test")) - 1),
        "vocabulary": f"{place.data.vocabulary.fingerprint}/{len(place.data.vocabulary)}",
        "unk": "0.0000",
        "segmenter": "white space",
        "lexicon": "none",
        "eos": "none",
        "columns": "3",
        "state": "carried",
        "chunk": "any",
        "log_shift": "none",
    }
    assert "\n" not in signature
    assert "|eos:predicted|" in evaluate_ppl(ending, device="cpu").signature


@pytest.mark.parametrize("by", [by for by in Grouping if by != Grouping.labels])
def test_groups_share_out_the_whole(sdlm: Path, by: str) -> None:
    report = evaluate_ppl(sdlm, by=[by], device="cpu")
    assert report.groups is not None
    assert list(report.groups) == [by]
    groups = report.groups[by]
    parts = [group for group in groups if not group.of_which]
    assert sum(group.tokens for group in parts) == report.tokens
    assert sum(group.nats for group in parts) == pytest.approx(report.nats)
    assert sum(group.share for group in parts) == pytest.approx(1.0)
    for group in groups:
        if group.tokens:
            assert group.perplexity == pytest.approx(math.exp(group.nats / group.tokens))
        else:
            assert group.perplexity is None
    assert PerplexityReport.model_validate_json(report.model_dump_json()) == report


@pytest.mark.parametrize("most", [13, 14])
def test_bins_of_sememes_begin_with_their_lower_bound(most: int) -> None:
    """The word of the number n has one sense of n sememes; the last one has two, of 1 and 2. The first bins are from Gu
    et al. 2018, and a row for all above is there if a word is."""
    entries = [WordEntry(str(size), "own", (SenseEntry(tuple(map(str, range(size))), ""),)) for size in range(1, most + 1)]
    entries.append(WordEntry("two", "own", (SenseEntry(("0",), "a"), SenseEntry(("0", "1"), "b"))))
    graph = SememeGraph(entries, "none")
    kinds = word_kinds("sememes", np.ones(len(entries), dtype=np.int64), graph)
    found = {kind.name: [word for word, own in zip(graph.words, kind.words, strict=True) if own] for kind in kinds}
    assert found == {
        "[1, 2) sememes": ["1", "two"],
        "[2, 4) sememes": ["2", "3"],
        "[4, 7) sememes": ["4", "5", "6"],
        "[7, 14) sememes": ["7", "8", "9", "10", "11", "12", "13"],
        **({"14 sememes or more": ["14"]} if most == 14 else {}),
        "no annotation": [],
        "special tokens and punctuation by rule (counted above)": [],
    }


def test_the_two_tables_sort_words_as_the_paper_does() -> None:
    """The words of tests/small.py: 苹果 has three senses of 2, 2 and 1 sememes, 吃 two of 1, 我 one of 2, 无名 is unknown."""
    graph = small_graph()
    words = {word: index for index, word in enumerate(graph.words)}
    numbers = {"苹果": 4, "吃": 3, "我": 2, "人": 1, "无名": 5, "<unk>": 6, "。": 7}
    targets = np.repeat([words[word] for word in numbers], list(numbers.values()))
    ones = np.ones(len(targets), dtype=np.int64)
    found = TextSums(1, graph.num_words)
    found.add(UnitScores(0 * ones, 10.0 * ones, ones, targets))

    def rows(by: str) -> dict[str, Tally]:
        return {kind.name: found.of(kind.words) for kind in word_kinds(by, np.zeros(graph.num_words, dtype=np.int64), graph)}

    senses = rows("senses")
    assert {name: tally.count for name, tally in senses.items()} == {
        "one sense": 2 + 1 + 6 + 7,
        "several senses": 4 + 3,
        "no annotation": 5,
        "special tokens and punctuation by rule (counted above)": 6 + 7,
    }
    assert all(tally.perplexity == pytest.approx(math.exp(10)) for tally in senses.values())
    sememes = rows("sememes")
    assert {name: tally.count for name, tally in sememes.items()} == {
        "[1, 2) sememes": 4 + 3 + 1 + 6 + 7,  # 苹果 has 5 / 3 on average
        "[2, 4) sememes": 2,
        "[4, 7) sememes": 0,
        "[7, 14) sememes": 0,
        "no annotation": 5,
        "special tokens and punctuation by rule (counted above)": 6 + 7,
    }


def test_a_word_with_very_many_sememes_has_a_row_of_its_own(place: Place) -> None:
    from sememekit.sememes import Sense, build_graph

    rich = lexicon_of_senses("list:rich", [Sense("吃", tuple(f"s{number}" for number in range(20)))])
    graph = build_graph(place.data.vocabulary, [rich])
    kinds = list(word_kinds("sememes", np.ones(graph.num_words, dtype=np.int64), graph))
    assert [kind.words.sum() for kind in kinds if kind.name == "14 sememes or more"] == [1]
    assert sum(kind.words.sum() for kind in kinds if not kind.of_which) == graph.num_words


def test_words_of_like_counts_are_sorted_by_sememes_among_themselves() -> None:
    """苹果 (5 / 3 sememes a sense), 吃 (1) and 我 (2) are of one band, 人 (1) is rare: 我 has a row of its own."""
    graph = small_graph()
    words = {word: index for index, word in enumerate(graph.words)}
    trained = np.full(graph.num_words, 10_000)
    for word, count in (("苹果", 100), ("吃", 999), ("我", 500), ("人", 9)):
        trained[words[word]] = count

    def kinds(by: str) -> dict[str, set[str]]:
        return {kind.name: {graph.words[i] for i in np.flatnonzero(kind.words)} for kind in word_kinds(by, trained, graph)}

    frequency = kinds("frequency")
    assert list(frequency) == ["1 to 9", "100 to 999", "10,000 or more"], "no band that is empty"
    assert frequency["1 to 9"] == {"人"}
    assert frequency["100 to 999"] == {"苹果", "吃", "我"}
    both = kinds("sememes-at-frequency")
    assert both["1 to 9: [1, 2) sememes"] == {"人"}
    assert both["100 to 999: [1, 2) sememes"] == {"苹果", "吃"}
    assert both["100 to 999: [2, 4) sememes"] == {"我"}
    assert "无名" in both["10,000 or more: no annotation"]
    assert sum(map(len, both.values())) == graph.num_words, "each word once"
    assert [kind.words.sum() for kind in word_kinds("frequency", trained, None)] == [1, 3, graph.num_words - 4]


def test_words_are_sorted_by_count_without_a_graph(softmax: Path) -> None:
    groups = evaluate_ppl(softmax, by=["frequency"], device="cpu").groups
    assert groups is not None
    assert list(groups) == ["frequency"]
    with pytest.raises(GraphError, match=r"--by sememes-at-frequency needs a sememe graph.*--graph FILE"):
        evaluate_ppl(softmax, by=["frequency", "sememes-at-frequency"], device="cpu")


def test_bands_are_by_the_counts_of_the_training_text(tmp_path: Path) -> None:
    (tmp_path / "whole.txt").write_text("a b c d\n" * 30 + "rare b\n" * 12, encoding="utf-8")
    (tmp_path / "part.txt").write_text("a b c d\n" * 20 + "rare b\n", encoding="utf-8")
    for name, given in (("whole", None), ("part", tmp_path / "data-whole")):
        files: dict[str, list[Path | str]] = {"train": [tmp_path / f"{name}.txt"], "valid": [tmp_path / "whole.txt"]}
        preprocess(
            "plain", None, tmp_path / f"data-{name}", PreprocessSettings(segmenter="none", vocabulary=given), files=files
        )
        table = {"data": {"path": str(tmp_path / f"data-{name}")}, "decoder": {"name": "softmax"}, "schedule": {"epochs": 1}}
        train({**table, "task": {"embedding_size": 4}, "encoder": {"hidden_size": 4}}, tmp_path / name)
    whole, part = (Run.open(tmp_path / name) for name in ("whole", "part"))
    assert not whole.folder.file("train-counts.txt").exists()
    words = part.vocabulary
    assert [int(part.train_counts[words.id(word)]) for word in ("a", "b", "rare")] == [20, 21, 1]
    assert [int(whole.train_counts[words.id(word)]) for word in ("a", "b", "rare")] == [30, 42, 12]
    groups = evaluate_ppl(tmp_path / "part", split="valid", by=["frequency"], device="cpu").groups
    assert groups is not None
    assert {group.name: group.tokens for group in groups["frequency"] if group.tokens} == {
        "1 to 9": 12,
        "10 to 99": 30 * 5 + 12 * 2 - 1,
    }
    with pytest.raises(ConfigError, match=r"--by frequency: .* trained on texts with other counts of words"):
        compare_ppl([whole, part], TextReading("valid"), by=["frequency"])
    part.folder.file("train-counts.txt").write_text("1\n2\n", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"train-counts.txt .*(changed|SHA)"):
        Run.open(tmp_path / "part")


def test_a_softmax_is_grouped_by_a_graph_that_is_given(place: Place, softmax: Path, sdlm: Path) -> None:
    with pytest.raises(GraphError, match=r"--by senses needs a sememe graph.*--graph FILE"):
        evaluate_ppl(softmax, by=["senses"], device="cpu")
    ours = evaluate_ppl(softmax, by=["senses"], graph=place.graph, device="cpu")
    theirs = evaluate_ppl(sdlm, by=["senses"], device="cpu")
    assert [(group.name, group.tokens) for group in ours.groups["senses"]] == [
        (group.name, group.tokens) for group in theirs.groups["senses"]
    ]
    assert ours.signature == theirs.signature, "the two can stand in one table"


def test_a_graph_of_other_words_is_refused(softmax: Path, tmp_path: Path) -> None:
    small_graph().save(tmp_path / "other.graph")
    with pytest.raises(GraphError, match="was built for the vocabulary"):
        evaluate_ppl(softmax, by=["senses"], graph=tmp_path / "other.graph", device="cpu")


def test_other_data_must_have_the_same_words(softmax: Path, place: Place, tmp_path: Path) -> None:
    other = Place(tmp_path / "other", max_vocabulary=5)
    for command in (evaluate_ppl, evaluate):
        with pytest.raises(DataError, match=rf"vocabulary {place.data.vocabulary.fingerprint}.*--data DIR"):
            command(softmax, data=other.data.folder, device="cpu")
    shutil.copytree(place.data.folder, tmp_path / "moved")
    assert evaluate_ppl(softmax, data=tmp_path / "moved", device="cpu").data == str(tmp_path / "moved")


def test_data_that_went_away_are_asked_for(softmax: Path, tmp_path: Path) -> None:
    shutil.copytree(softmax, tmp_path / "run")
    plan = json.loads((tmp_path / "run" / "plan.json").read_text(encoding="utf-8"))
    plan["data"]["path"] = str(tmp_path / "gone")
    (tmp_path / "run" / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    write_run_manifest(tmp_path / "run")
    with pytest.raises(DataError, match=r"gone, which is not there; say where it is with --data DIR"):
        evaluate_ppl(tmp_path / "run", device="cpu")


def test_relative_data_are_found_above_a_run_that_is_opened_from_another_folder(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, elsewhere = tmp_path / "study", tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copytree(place.data.folder, study / "data")
    monkeypatch.chdir(study)
    train(place.table(data__path="data", schedule__epochs=1), Path("runs/one"))
    monkeypatch.chdir(elsewhere)
    found = evaluate_ppl(Path("../study/runs/one"), device="cpu")
    assert Path(found.data).samefile(study / "data")
    (study / "data").rename(study / "renamed")
    with pytest.raises(DataError, match=r"was trained on data, which is not there"):
        evaluate_ppl(Path("../study/runs/one"), device="cpu")


def test_what_cannot_be_asked_is_said(softmax: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no split 'dev'; name another one \(--split\): train, valid, test"):
        evaluate_ppl(softmax, split="dev", device="cpu")
    with pytest.raises(CheckpointError, match="is no run folder"):
        evaluate_ppl(tmp_path)


def test_a_task_that_predicts_no_words_is_refused() -> None:
    from sememekit.tasks.base import Task, WordPredictor, require

    task = Task.__new__(type("Task", (Task,), dict.fromkeys(Task.__abstractmethods__)))
    with pytest.raises(ConfigError, match=r"evaluate-ppl needs a model that predicts words.*Task"):
        require(task, WordPredictor, "evaluate-ppl")


def test_dtype_can_be_chosen(softmax: Path) -> None:
    exact, lowered = (evaluate_ppl(softmax, dtype=dtype, device="cpu") for dtype in (None, "bfloat16"))
    assert (exact.dtype, lowered.dtype) == ("float32", "bfloat16")
    assert lowered.perplexity == pytest.approx(exact.perplexity, rel=0.05)
    assert lowered.perplexity != exact.perplexity


def test_progress_is_told(softmax: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    report = evaluate_ppl(softmax, device="cpu", progress=lambda *step: seen.append(step))
    assert seen[-1] == ("tokens", report.tokens, report.tokens)


def test_evaluating_changes_no_byte_of_the_run(softmax: Path) -> None:
    before = {path: path.read_bytes() for path in softmax.rglob("*") if path.is_file()}
    evaluate_ppl(softmax, device="cpu")
    Run.open(softmax, device="cpu").load()
    assert {path: path.read_bytes() for path in softmax.rglob("*") if path.is_file()} == before


def test_both_tables_come_from_one_call(sdlm: Path) -> None:
    one, other = (evaluate_ppl(sdlm, by=[by], device="cpu").groups for by in ("sememes", "senses"))
    both = evaluate_ppl(sdlm, by=["sememes", "senses"], device="cpu").groups
    assert one is not None
    assert other is not None
    assert both == {**one, **other}
    result = CliRunner().invoke(app, ["evaluate-ppl", str(sdlm), "--by", "senses", "--by", "sememes", "--device", "cpu", "-q"])
    assert "By senses of the word" in result.stdout
    assert "By sememes of the word" in result.stdout


def test_the_help_names_every_published_preset() -> None:
    """The names stand in the help as text, since asking for them would import torch."""
    (settings,) = (option for option in get_command(app).commands["evaluate-ppl"].params if option.name == "overrides")
    assert f"cache.preset ({', '.join(CACHE_PRESETS)})" in settings.help
    assert f"dynamic.preset ({', '.join(DYNAMIC_PRESETS)})" in settings.help
    keys = {*CacheSettings.model_fields, *DynamicSettings.model_fields}
    assert [key for key in keys if key not in settings.help] == [], "the help names every setting"


def test_headlines_have_the_perplexity_of_their_targets(tmp_path: Path) -> None:
    """The perplexity is eval's, by group and by cluster, too; a method that learns from a stream is refused."""
    pairs = PairPlace(tmp_path)
    for decoder in ("softmax", "self_organized"):
        train(pairs.table(decoder, schedule__epochs=1), tmp_path / decoder)
        run = tmp_path / decoder
        report = evaluate_ppl(run, by=["senses"], graph=tmp_path / "pairs.graph", device="cpu")
        metrics = evaluate(run).model_dump()
        assert report.perplexity == pytest.approx(metrics["perplexity"], rel=1e-9)
        assert report.signature == metrics["perplexity_signature"]
        assert (report.per_character, report.bits_per_byte) == (None, None)
        assert report.groups is not None
        assert sum(group.tokens for group in report.groups["senses"] if not group.of_which) == report.tokens
        for options in ({"batch_size": 1}, {"adaptation": Adaptation(cache=CacheSettings())}):
            with pytest.raises(
                ConfigError, match=r"reads pairs, not a running text; leave out --cache, --dynamic, --batch-size"
            ):
                evaluate_ppl(run, device="cpu", **options)
    assert report.parts is not None
    assert report.perplexity == pytest.approx(report.parts["cluster"] * report.parts["in_cluster"], rel=1e-6)
