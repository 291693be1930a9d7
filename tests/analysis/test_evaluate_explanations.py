"""evaluate-explanations: every figure against a plain loop over positions, and what a person sees of it."""

from __future__ import annotations

import json
import math
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from sememekit.analysis.contexts import PredictedText
from sememekit.analysis.explanations.evaluation import drawn_sentences, evaluate_explanations, units_of
from sememekit.analysis.explanations.scores import Gold, expected_of_random, gold_by_band, score_rankings
from sememekit.analysis.explanations.sememe_mass import (
    SememeMasses,
    contexts_of,
    mean_by_counts,
    mean_over_text,
    rankings,
)
from sememekit.analysis.explanations.sememes import SememeReader
from sememekit.commands._program import app
from sememekit.errors import ConfigError
from sememekit.jobs.train import train
from sememekit.measure.intervals import from_draws, ratio_interval, resampled_ratios
from sememekit.reports.metrics import scores_page
from sememekit.runs.run import Run
from sememekit.sememes import SememeGraph
from sememekit.sememes.statistics import sememe_counts, word_sememes
from sememekit.sememes.word_entry import SenseEntry, WordEntry
from sememekit.tasks.writing import predictor
from tests.pages import check_page
from tests.small import small_graph
from tests.small_pairs import PairPlace
from tests.small_run import Place

runner = CliRunner()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Runs ``sdlm`` and ``softmax``."""
    place = Place(tmp_path_factory.mktemp("explanations"))
    for decoder in ("sdlm", "softmax"):
        train(place.table(decoder, schedule__epochs=2), place.folder / decoder)
    return place


def held_by(graph: object = None) -> list[set[int]]:
    """The sememes of each word, by going through the entries."""
    graph = graph or small_graph()
    number = {name: index for index, name in enumerate(graph.sememes)}
    return [{number[name] for name in entry.sememes()} for entry in graph.entries()]


def test_pairs_of_words_and_sememes_are_those_of_the_entries() -> None:
    words, sememes = word_sememes(small_graph())
    pairs = list(zip(words.tolist(), sememes.tolist(), strict=True))
    assert pairs == sorted({(word, sememe) for word, own in enumerate(held_by()) for sememe in own})
    counts = np.arange(3, 3 + small_graph().num_words)
    expected = [sum(counts[word] for word, own in enumerate(held_by()) if k in own) for k in range(small_graph().num_sememes)]
    assert sememe_counts(small_graph(), counts).tolist() == expected


def test_a_sememe_of_two_senses_counts_once() -> None:
    senses = (SenseEntry(("x", "y"), "one"), SenseEntry(("x", "z"), "two"))
    graph = SememeGraph([WordEntry("甲", "own", senses), WordEntry("乙", "own", senses[1:])], "none")
    words, sememes = word_sememes(graph)
    assert (words.tolist(), sememes.tolist()) == ([0, 0, 0, 1, 1], [0, 1, 2, 0, 2])
    assert sememe_counts(graph, np.array([7, 2])).tolist() == [9, 7, 9]


@torch.no_grad()
def test_masses_and_means_agree_with_loops_over_senses(place: Place) -> None:
    run = Run.open(place.folder / "sdlm", device="cpu")
    task, graph = predictor(run.task, "test"), run.graph
    assert graph is not None
    masses, hidden = SememeMasses(graph, task.device), torch.randn(4, 6)
    given = task.decoder.sense_probabilities(hidden)
    assert given is not None
    found, senses = masses(given.log_senses_NS), given.log_senses_NS.exp()
    members = [set(graph.set_sememes[graph.set_offsets[u] : graph.set_offsets[u + 1]].tolist()) for u in graph.sense_set]
    for k in range(graph.num_sememes):
        total = sum(senses[:, s] for s, own in enumerate(members) if k in own)
        torch.testing.assert_close(found[:, k], total)
    # the mean over the counts: every word by its count, divided by its senses as the model does without a context
    empty = torch.zeros(1, 6)
    alone = task.decoder.sense_probabilities(empty)
    assert alone is not None
    prior, counts = alone.log_senses_NS[0].exp(), run.vocabulary.counts
    assert counts.min() == 0, "a word that is never predicted has no part in it"
    mean = torch.zeros(graph.num_sememes)
    for s, own in enumerate(members):
        word = int(graph.word_of_sense[s])
        share = prior[s] / sum(prior[o] for o in range(len(members)) if graph.word_of_sense[o] == word)
        for k in own:
            mean[k] += share * float(counts[word] / counts.sum())
    torch.testing.assert_close(mean_by_counts(task.decoder, masses, run.vocabulary.counts, empty), mean)


@torch.no_grad()
def test_contexts_are_those_that_the_text_is_scored_from(place: Place) -> None:
    run = Run.open(place.folder / "sdlm", device="cpu")
    task, data = predictor(run.task, "test"), run.data()
    text = PredictedText(task, data, "test")
    one, other = (torch.full((len(text.words), 6), math.nan) for _ in range(2))
    for position, _, hidden in text.read(task, lambda done, total: None):
        one[position] = hidden
    for position, hidden in contexts_of(task, text, "test"):
        other[position] = hidden
    torch.testing.assert_close(other, one)
    assert run.graph is not None
    masses = SememeMasses(run.graph, task.device)
    given = task.decoder.sense_probabilities(one)
    assert given is not None
    torch.testing.assert_close(mean_over_text(task, data, "test", masses), masses(given.log_senses_NS).mean(dim=0))


@torch.no_grad()
def test_every_figure_agrees_with_a_loop_over_positions(place: Place) -> None:
    run = Run.open(place.folder / "sdlm", device="cpu")
    task, graph = predictor(run.task, "test"), run.graph
    assert graph is not None
    report = evaluate_explanations(place.folder / "sdlm", tops=(3, 1))
    text, own, counts = PredictedText(task, run.data(), "test"), held_by(graph), run.vocabulary.counts
    masses, empty = SememeMasses(graph, task.device), torch.zeros(1, 6)
    mean, rest = mean_by_counts(task.decoder, masses, counts, empty), task.decoder.sense_probabilities(empty)
    assert rest is not None
    from_lexicon = [entry.is_from_lexicon for entry in graph.entries()]
    running = sememe_counts(graph, counts * np.array(from_lexicon))
    nats = -np.log(np.maximum(running, 1) / counts.sum())
    possible = set().union(*(has for has, can in zip(own, from_lexicon, strict=True) if can))
    never = [k for k in range(graph.num_sememes) if k not in possible]
    assert never, "a sememe that special words alone have"
    sums: dict[tuple[str, int], list[float]] = {}
    shown: dict[tuple[str, int], list[list[int]]] = {}
    order = np.argsort(np.concatenate([position for position, _ in contexts_of(task, text, "test")]))
    hidden = torch.cat([hidden for _, hidden in contexts_of(task, text, "test")])[order]
    for position, word in enumerate(text.words.tolist()):
        if not from_lexicon[word]:
            continue
        given = task.decoder.sense_probabilities(hidden[position : position + 1])
        assert given is not None
        mass = masses(given.log_senses_NS)[0]
        scores = {
            "rise": mass - mean,
            "mass": mass.clone(),
            "information": mass * (mass / mean).log(),
            "lift": mass / mean,
            "gates": given.gates_NK[0].clone(),
            "raised gates": given.gates_NK[0] - rest.gates_NK[0],
            "frequency": torch.tensor(running).double(),
        }
        for name, score in scores.items():
            score[never] = -math.inf
            for top in (1, 3):
                listed = score.argsort(descending=True, stable=True)[:top].tolist()
                hit = own[word] & set(listed)
                row = sums.setdefault((name, top), [0.0] * 5)
                row[0] += bool(hit)
                row[1] += len(hit) / min(top, len(own[word]))
                row[2] += sum(nats[k] for k in hit)
                row[3] += sum(nats[k] for k in own[word])
                row[4] += 1
                shown.setdefault((name, top), []).append(listed)
    assert {(score.ranking, score.top) for score in report.rankings} == {*sums, ("random", 1), ("random", 3)}
    for score in report.rankings:
        assert (score.above_frequency is None) is (score.ranking == "frequency")
        if score.ranking == "random":
            continue
        found, whole, weight, all_weight, positions = sums[score.ranking, score.top]
        assert report.positions == positions
        assert score.any.value == pytest.approx(found / positions)
        assert score.recall.value == pytest.approx(whole / positions)
        assert score.information.value == pytest.approx(weight / all_weight)
        lists = shown[score.ranking, score.top]
        half = len(lists) // 2
        common = [len(set(lists[i]) & set(lists[i + half])) / score.top for i in range(half)]
        assert score.overlap == pytest.approx(sum(common) / half)
        below = sums["frequency", score.top]
        if score.above_frequency is not None:
            assert score.above_frequency.value == pytest.approx(weight / all_weight - below[2] / below[3])
    left = [word for word in text.words.tolist() if not from_lexicon[word]]
    assert report.left_out.by_rule == sum(bool(graph.annotated[word]) for word in left) > 0
    assert report.left_out.not_annotated == sum(not graph.annotated[word] for word in left) > 0


def test_bands_add_up_to_the_whole() -> None:
    graph, generator = small_graph(), np.random.default_rng(3)
    counts = np.array([5, 5000, 50, 500, 5, 20000, 50, 500, 5, 5])
    lexicon = [number for number, entry in enumerate(graph.entries()) if entry.is_from_lexicon]
    words = generator.choice(lexicon, size=400)
    ranked = {"mine": np.stack([generator.permutation(graph.num_sememes)[:4] for _ in words])}
    gold = Gold.of(graph, counts)
    found = score_rankings(gold, words, counts, np.arange(400) // 5, ranked, (2, 4))
    assert [band.name for band in found.words] == [
        "never",
        "1 to 9",
        "10 to 99",
        "100 to 999",
        "1,000 to 9,999",
        "10,000 or more",
    ]
    own = held_by()
    for place, top in enumerate((2, 4)):
        hits = [len(own[word] & set(row[:top].tolist())) for word, row in zip(words, ranked["mine"], strict=True)]
        recall = np.array(hits) / [min(top, len(own[word])) for word in words]
        for number, band in enumerate(found.words):
            inside = np.digitize(counts[words], (1, 10, 100, 1000, 10000)) == number
            assert band.positions == inside.sum()
            if inside.any():
                assert band.scores[place].recall.value == pytest.approx(recall[inside].mean())
            else:
                assert band.scores[place].recall.value is None
        running = sememe_counts(graph, counts)
        for number, group in enumerate(found.sememes):
            inside_k = {k for k in range(graph.num_sememes) if np.digitize(running[k], (1, 10, 100, 1000, 10000)) == number}
            pairs = sum(len(own[word] & inside_k) for word in words)
            assert group.pairs == pairs
            if pairs:
                hit = sum(len(own[w] & inside_k & set(r[:top].tolist())) for w, r in zip(words, ranked["mine"], strict=True))
                assert group.scores[place].found.value == pytest.approx(hit / pairs)


@pytest.mark.parametrize("top", [1, 3, 50])
def test_random_is_the_mean_over_every_draw(top: int) -> None:
    graph = small_graph()
    gold = Gold.of(graph, np.full(graph.num_words, 7))
    possible = np.flatnonzero(gold.possible_K).tolist()
    assert len(possible) < graph.num_sememes
    words = np.array([word for word, entry in enumerate(graph.entries()) if entry.is_from_lexicon])
    found = expected_of_random(gold, words, top, gold_by_band(gold, words))
    draws = [set(draw) for draw in combinations(possible, min(top, len(possible)))]
    for word, own in enumerate(held_by()[place] for place in words):
        hits = [len(own & draw) for draw in draws]
        assert found.number_P[word] == pytest.approx(sum(hits) / len(draws))
        assert found.any_P[word] == pytest.approx(sum(hit > 0 for hit in hits) / len(draws))
        nats = [sum(gold.nats_K[k] for k in own & draw) for draw in draws]
        assert found.nats_P[word] == pytest.approx(sum(nats) / len(draws))


def test_no_more_sememes_are_in_common_than_there_are() -> None:
    graph = small_graph()
    words = np.arange(graph.num_words)
    every = np.tile(np.arange(graph.num_sememes), (len(words), 1))
    possible = set().union(*(entry.sememes() for entry in graph.entries() if entry.is_from_lexicon))
    counts, tops = np.full(graph.num_words, 7), (7, 50)
    found = score_rankings(Gold.of(graph, counts), words, counts, words, {"all": every}, tops, seed=1)
    overlaps = {(score.ranking, score.top): score.overlap for score in found.rankings}
    assert overlaps == {("all", 7): 1.0, ("all", 50): 1.0, ("random", 7): 7 / len(possible), ("random", 50): 1.0}


def test_common_draws_are_those_of_single_ratios() -> None:
    generator = np.random.default_rng(5)
    tops, bottoms = generator.random((30, 3)), generator.random((30, 3)) + 1
    values, draws = resampled_ratios(tops, bottoms, seed=4)
    for column in range(3):
        alone = ratio_interval(tops[:, column], bottoms[:, column], seed=4)
        assert from_draws(float(values[column]), draws[:, column]).low == pytest.approx(alone.low)
        assert (values[column], alone.high) == pytest.approx((alone.value, from_draws(0.0, draws[:, column]).high))


def test_sentences_end_where_the_text_says(place: Place, tmp_path: Path) -> None:
    run = Run.open(place.folder / "sdlm", device="cpu")
    task = predictor(run.task, "test")
    text = PredictedText(task, run.data(), "test")
    units, unit = units_of(task, text, "test")
    assert unit == "sentences, which end with 。"
    words = run.vocabulary.decode(text.words)
    assert units[0] == 0
    assert [later - before for before, later in pairwise(units)] == [word == "。" for word in words[:-1]]
    chosen = drawn_sentences(units, 18, seed=2)
    assert 14 < chosen.sum() <= 18
    assert all(chosen[units == unit].all() or not chosen[units == unit].any() for unit in range(int(units.max()) + 1))
    assert (drawn_sentences(units, 18, seed=3) != chosen).any()
    report = evaluate_explanations(place.folder / "sdlm", contexts=18, seed=2)
    assert report.positions < 18
    assert report.sampled == f"{len(np.unique(units[chosen]))} of {int(units.max()) + 1}, seed 2"
    ends = Place(tmp_path, end_of_sentence=True)
    train(ends.table("sdlm", schedule__epochs=1), tmp_path / "run")
    assert evaluate_explanations(tmp_path / "run", tops=(1,)).unit == "sentences, each with its <eos>"


def test_progress_counts_contexts_and_blocks_change_no_figure(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are larger than this text unless they are made small."""
    given = {"run": place.folder / "sdlm", "tops": (1, 2), "mean": "valid", "contexts": 18}
    whole = evaluate_explanations(**given)
    for name in ("sememe_mass._ROWS_AT_ONCE", "sememe_mass.CONTEXTS_AT_ONCE", "evaluation.CONTEXTS_AT_ONCE"):
        monkeypatch.setattr(f"sememekit.analysis.explanations.{name}", 5)
    seen: list[tuple[str, int, int]] = []
    assert evaluate_explanations(**given, progress=lambda *told: seen.append(told)) == whole
    run = Run.open(place.folder / "sdlm", device="cpu")
    expected = []
    for stage, split in (("mean", "valid"), ("contexts", "test")):
        words = len(run.data().tokens(split)) - 1
        rows = -(-words // 3)  # of three columns, the last of which is shorter
        ends = [min(5 * block, rows) for block in range(1, -(-rows // 5) + 1)]
        expected += [(stage, sum(min(end, max(0, words - column * rows)) for column in range(3)), words) for end in ends]
    assert seen == expected


def test_texts_for_texts_have_scores_too(tmp_path: Path) -> None:
    pairs = PairPlace(tmp_path)
    train(pairs.table("mos_sdlm", schedule__epochs=1), tmp_path / "run")
    task = predictor(Run.open(tmp_path / "run", device="cpu").task, "test")
    units, _ = units_of(task, PredictedText(task, pairs.pairs, "test"), "test")
    examples = pairs.pairs.examples("test")
    assert np.bincount(units).tolist() == [len(examples.text(number, 1)) + 1 for number in range(15)]
    report = evaluate_explanations(tmp_path / "run", tops=(2,), mean="valid")
    assert (report.unit, report.sentences, report.mean) == ("pairs", 15, "over the 45 predictions of valid")


def test_words_that_are_never_predicted_have_no_part_in_the_mean(tmp_path: Path) -> None:
    """No headline has 我 or 人, which all sources have, so that only such words have the sememe 第一人称."""
    pairs = PairPlace(tmp_path)
    train(pairs.table("mos_sdlm", schedule__epochs=1), tmp_path / "run")
    run = Run.open(tmp_path / "run", device="cpu")
    task, graph, counts = predictor(run.task, "explain"), run.graph, run.vocabulary.counts
    assert graph is not None
    empty = torch.zeros(1, 6)
    with torch.no_grad():
        mean = mean_by_counts(task.decoder, masses := SememeMasses(graph, task.device), counts, empty)
        given = task.decoder.sense_probabilities(empty)
    assert given is not None
    unseen = graph.sememes.index("第一人称")
    assert mean[unseen] == 0
    reader = SememeReader(run, task, empty[0], "counts", None)
    with torch.no_grad():
        attribution = task.decoder.sense_attribution(empty[0], torch.zeros(1, dtype=torch.long))
    assert attribution is not None
    shown = reader.read(empty[0], attribution)[unseen]
    assert (shown.mass, shown.lift, shown.count) == (shown.rise, None, 0)
    assert shown.mass
    ranked = rankings(masses(given.log_senses_NS), mean, given.gates_NK, given.gates_NK[0])
    assert not any(values.isnan().any() or values.isposinf().any() for values in ranked.values())
    none = int((mean == 0).sum())
    for name in ("lift", "information"):
        assert unseen in ranked[name][0].argsort()[:none].tolist()


@pytest.mark.parametrize(("rank", "told"), [(3, "worse"), (0, "better"), (1, "no better")])
def test_the_sentence_says_which_list_is_better(place: Place, rank: int, told: str) -> None:
    """Four sememes, of which the first is gold, at 40 positions. The frequent list has it first at half of them."""
    graph, counts = small_graph(), np.full(small_graph().num_words, 7)
    word = next(number for number, entry in enumerate(graph.entries()) if entry.is_from_lexicon)
    own, others = min(held_by()[word]), sorted(set(range(graph.num_sememes)) - held_by()[word])[:2]
    half = np.array([[own] if position % 2 else [others[0]] for position in range(40)])
    mine = {3: np.full((40, 1), others[0]), 0: np.full((40, 1), own), 1: half[::-1]}[rank]
    found = score_rankings(
        Gold.of(graph, counts), np.full(40, word), counts, np.arange(40), {"rise": mine, "frequency": half}, (1,)
    )
    report = evaluate_explanations(place.folder / "sdlm", tops=(1,)).model_copy(update=dict(found) | {"positions": 40})
    share = {3: "0.0 %", 0: "100.0 %", 1: "50.0 %"}[rank]
    assert (
        f"Explanations are {told} than a list of the 1 most frequent sememes: one of the 1 sememes that an explanation lists "
        f"first belongs to the next word in {share} of 40 positions, one of the most frequent in 50.0 %"
    ) in scores_page(report)


def test_what_a_person_sees(place: Place, tmp_path: Path) -> None:
    run, page = str(place.folder / "sdlm"), tmp_path / "scores.html"
    shown = runner.invoke(app, ["evaluate-explanations", run, "--html", str(page), "--figure", str(tmp_path / "scores.svg")])
    assert shown.exit_code == 0, shown.stderr
    assert "gain (probability minus mean)" in shown.stdout
    assert "training frequency" in shown.stdout
    table = json.loads(runner.invoke(app, ["evaluate-explanations", run, "--top", "2", "--json"]).stdout)
    assert {score["top"] for score in table["rankings"]} == {2}
    report = evaluate_explanations(place.folder / "sdlm")
    assert page.read_text(encoding="utf-8") == scores_page(report)
    assert " than a list of the 5 most frequent sememes: " in " ".join(scores_page(report).split())
    assert check_page(scores_page(report)).charts[0].startswith("Information on the gold sememes")
    refused = runner.invoke(app, ["evaluate-explanations", str(place.folder / "softmax")])
    assert refused.exit_code == 1
    assert "'softmax'" in refused.stderr
    assert "--decoder sdlm" in refused.stderr
    with pytest.raises(ConfigError, match="must be 1 at least"):
        evaluate_explanations(place.folder / "sdlm", tops=(0,))
