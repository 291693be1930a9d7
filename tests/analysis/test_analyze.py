"""analyze: rank, divergence, and where two runs differ, on models of a few hundred numbers."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from sememekit.analysis.analyze import Analysis, _comparison, _rows, analyze
from sememekit.analysis.evaluate_ppl import evaluate_ppl
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.train import train
from sememekit.progress import silent
from sememekit.reports.analysis import analysis_page
from sememekit.reports.pages import write_page
from sememekit.runs.run import Run
from sememekit.tasks.language_model import LanguageModel
from sememekit.tasks.writing import TextWriter
from sememekit.text.vocabulary import Vocabulary
from tests.pages import check_page
from tests.small_pairs import PairPlace
from tests.small_run import Place


@pytest.fixture(scope="module")
def mos(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "mos"
    train(place.table("mos", schedule__epochs=1), run)
    return run


@pytest.fixture(scope="module")
def both(place: Place, softmax: Path, mos: Path) -> Analysis:
    return analyze(softmax, mos, cases=3, top=2)


def distributions(run: Path, place: Place) -> tuple[np.ndarray, np.ndarray]:
    """(n - 1, V) log-probabilities of the test split in three columns, and the words that came, in the order of the text."""
    task = Run.open(run, device="cpu").task
    assert isinstance(task, LanguageModel)
    tokens = place.data.tokens("test").astype(np.int64)
    length = -(-(len(tokens) - 1) // 3)
    rows = []
    for begin in range(0, len(tokens) - 1, length):
        part = torch.from_numpy(tokens[begin : begin + length][: len(tokens) - 1 - begin])[:, None]
        with torch.no_grad():
            hidden, _ = task.contexts(part, task.encoder.start(1))
            rows.append(task.decoder.log_probs(hidden)[:, 0].double().numpy())
    return np.concatenate(rows), tokens[1:]


def test_all_contexts_are_taken_where_they_fit(place: Place, softmax: Path, mos: Path, both: Analysis) -> None:
    words = len(place.data.vocabulary)
    assert (both.sampled, both.why_sampled, both.words) == (False, None, words)
    assert both.contexts == both.predictions == len(place.data.tokens("test")) - 1
    assert [run.decoder for run in both.runs] == ["softmax", "mos"]
    for path, run in zip((softmax, mos), both.runs, strict=True):
        report = evaluate_ppl(path, device="cpu")
        assert run.perplexity == pytest.approx(report.perplexity, rel=1e-6)
        assert both.signature == report.signature
        log_probs, _ = distributions(path, place)
        values = np.linalg.svd(log_probs, compute_uv=False)
        assert run.largest == pytest.approx(values[0], rel=1e-5)
        pairs = np.exp(log_probs) @ -log_probs.T + (np.exp(log_probs) * log_probs).sum(axis=1)[:, None]
        assert run.divergence == pytest.approx(pairs.sum() / (pairs.size - len(pairs)), rel=1e-4)
        assert run.full_rank == words
        assert 1 <= run.rank <= words
        assert run.curve[-1] == (1.0, 1.0)
        assert [share for _, share in run.curve] == sorted(share for _, share in run.curve)


def test_the_softmax_is_bound_by_its_contexts_and_the_mixture_is_not(place: Place, tmp_path: Path) -> None:
    ranks = {}
    for decoder in ("softmax", "mos"):
        table = place.table(decoder, schedule__epochs=1, task__embedding_size=3, encoder__output_size=3)
        train(table, tmp_path / decoder)
        ranks[decoder] = analyze(tmp_path / decoder).runs[0].rank
    assert ranks == {"softmax": 5, "mos": len(place.data.vocabulary)}, "three dimensions, the bias and the normaliser"


def test_cases_are_those_that_differ_most(place: Place, softmax: Path, mos: Path, both: Analysis) -> None:
    assert both.comparison is not None
    (ours, words), (theirs, _) = distributions(softmax, place), distributions(mos, place)
    gain = (ours - theirs)[np.arange(len(words)), words]
    assert both.comparison.wins == pytest.approx((gain > 0).mean(), abs=0.02)
    assert both.comparison.better[0]
    for sign, better, worse, cases in (
        (1, ours, theirs, both.comparison.better[0]),
        (-1, theirs, ours, both.comparison.better[1]),
    ):
        gains = [case.gain for case in cases]
        assert gains == sorted(gains, reverse=True)
        assert len({case.reference for case in cases}) == len(cases) <= 3
        for case in cases:
            row = case.position - 1
            assert place.data.vocabulary.token(int(words[row])) == case.reference
            assert case.gain == pytest.approx(sign * gain[row], abs=1e-4)
            assert case.reference in [word for word, _ in case.better.words]
            for prediction, log_probs in ((case.better, better), (case.worse, worse)):
                top = np.sort(np.exp(log_probs[row]))[::-1][:2]
                np.testing.assert_allclose([probability for _, probability in prediction.words], top, rtol=1e-4)
                assert prediction.reference == pytest.approx(math.exp(log_probs[row][words[row]]), rel=1e-4)


def test_each_word_is_shown_once_at_its_largest_gain(place: Place, softmax: Path, mos: Path) -> None:
    """Only where the better run has it among its first words, and never where it gains nothing."""
    (ours, words), (theirs, _) = distributions(softmax, place), distributions(mos, place)
    ranks = [(side > side[np.arange(len(words)), words][:, None]).sum(axis=1) for side in (ours, theirs)]
    gains = (ours - theirs)[np.arange(len(words)), words]
    for cases, top in ((1, 2), (2, 2), (3, 1), (99, 99)):
        found = analyze(softmax, mos, cases=cases, top=top).comparison
        assert found is not None
        for sign, rank, better in ((1, ranks[0], found.better[0]), (-1, ranks[1], found.better[1])):
            largest: dict[str, float] = {}
            for row in np.argsort(-sign * gains).tolist():
                if rank[row] < top and sign * gains[row] > 0:
                    largest.setdefault(place.data.vocabulary.token(int(words[row])), sign * gains[row])
            assert [case.reference for case in better] == list(largest)[:cases]
            assert [case.gain for case in better] == pytest.approx(list(largest.values())[:cases], abs=1e-4)


@pytest.mark.parametrize(("first", "most", "shown"), [(39, 100, ["w39"]), (40, 100, []), (0, 0, [])])
def test_forty_predictions_that_gain_are_looked_at_for_each_case(first: int, most: int, shown: list[str]) -> None:
    """Position p has the word p, which gains ``most`` - p, or nothing, and is the first of its run from ``first`` on."""
    size = 90
    vocabulary = Vocabulary([f"w{number:02}" for number in range(size)], [1] * size)
    hidden = torch.arange(size, dtype=torch.float64)[:, None]

    def log_probs(positions: torch.Tensor) -> torch.Tensor:
        best = torch.where(positions >= first, positions, (positions + 1) % size)
        return torch.log_softmax(-9.0 * (torch.arange(size) - best).abs(), dim=-1)

    words = np.arange(size)
    text: Any = SimpleNamespace(
        words=words,
        data=SimpleNamespace(vocabulary=vocabulary),
        read=lambda task, progress: iter([(words, np.zeros(size), hidden)]),
        context=lambda position: (),
    )
    task: Any = SimpleNamespace(
        decoder=SimpleNamespace(log_probs=log_probs),
        device="cpu",
        parameters=lambda: iter([hidden]),
        double=lambda: None,
        to=lambda dtype: None,
    )
    found = _comparison([task, task], [np.zeros(size), np.maximum(most - words, 0.0)], text, 1, 1, silent)
    assert [case.reference for case in found.better[0]] == shown
    assert (found.better[1], found.wins) == ((), float(most > 0))


def test_a_context_begins_with_the_sentence_before(ending: Path, sentences: Place, tmp_path: Path) -> None:
    train(sentences.table("mos", schedule__epochs=1), tmp_path / "mos")
    found = analyze(ending, tmp_path / "mos").comparison
    assert found is not None
    tokens = sentences.data.tokens("test")
    for case in (*found.better[0], *found.better[1]):
        length = len(case.context)
        words = sentences.data.vocabulary.decode(tokens[case.position - length : case.position].tolist())
        assert tuple(words) == case.context
        assert case.context[:-1].count("<eos>") <= 2
        begins = case.position - length
        assert begins == 0 or sentences.data.vocabulary.token(int(tokens[begins - 1])) == "<eos>"


def test_a_sample_is_taken_and_said_where_all_do_not_fit(place: Place, softmax: Path) -> None:
    words = len(place.data.vocabulary)
    few = analyze(softmax, memory=24.0 * words * 50 / 2**30)
    assert (few.contexts, few.sampled) == (50, True)
    assert few.why_sampled is not None
    assert "50 of" in few.why_sampled
    assert "--memory" in few.why_sampled
    asked = analyze(softmax, contexts=30, seed=1)
    assert asked.why_sampled is not None
    assert asked.why_sampled.endswith("contexts were asked for")
    assert asked == analyze(softmax, contexts=30, seed=1)
    other = analyze(softmax, contexts=30, seed=2).runs[0]
    assert other.largest != asked.runs[0].largest
    assert other.perplexity == asked.runs[0].perplexity, "of the whole split"


def test_the_page_needs_nothing_else(both: Analysis, tmp_path: Path) -> None:
    write_page(tmp_path / "page.html", analysis_page(both))
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert html == analysis_page(both)
    page = check_page(html)
    (chart,) = page.charts
    assert chart.startswith("Cumulative share of normalised singular values: ")
    assert page.marks == sum(len(run.curve) for run in both.runs)
    assert "All " in html
    assert both.comparison is not None
    assert both.comparison.better[0][0].reference in html


def test_what_cannot_be_analysed_is_said(softmax: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"not even two contexts of \d+ words fit.*--memory"):
        analyze(softmax, memory=1e-9)
    assert _rows(9, 10**6, None, 48e6 / 2**30)[0] == 2, "two contexts can be compared"
    with pytest.raises(DataError, match=r"compares two predictions or more with each other, given 1"):
        analyze(softmax, contexts=1)
    other = Place(tmp_path / "other", max_vocabulary=5)
    train(other.table(schedule__epochs=1), tmp_path / "run")
    with pytest.raises(DataError, match="only where both were trained on the same prepared data"):
        analyze(softmax, tmp_path / "run")


def test_all_contexts_by_blocks_are_all_contexts(place: Place, both: Analysis, softmax: Path, mos: Path) -> None:
    """The memory that blocks take is too little for the whole matrix where this has rows enough."""
    words = len(place.data.vocabulary)
    monkey = pytest.MonkeyPatch()
    for module in ("sememekit.analysis.analyze", "sememekit.measure.rank"):
        monkey.setattr(f"{module}.BLOCK_ROWS", 16)
    try:
        found = analyze(softmax, mos, cases=3, top=2, memory=8 * words * (2 * words + 3 * 16) / 2**30)
    finally:
        monkey.undo()
    assert (found.decomposition, both.decomposition) == ("blocks", "whole")
    assert (found.contexts, found.why_sampled) == (both.contexts, None)
    assert found.comparison == both.comparison
    for one, other in zip(found.runs, both.runs, strict=True):
        assert one.rank == other.rank
        assert one.divergence == pytest.approx(other.divergence, rel=1e-9)
        assert one.largest == pytest.approx(other.largest, rel=1e-12)


def test_models_of_headlines_are_analysed(tmp_path: Path, softmax: Path) -> None:
    """Every word of a target and its end is a prediction; positions are the positions in the text, whatever the batches."""
    pairs = PairPlace(tmp_path)
    for name, decoder, batch in (("one", "softmax", 7), ("two", "mos", 4)):
        table = pairs.table(decoder, schedule__epochs=2, task__evaluation_batch_size=batch)
        train(table, tmp_path / name)
    found = analyze(tmp_path / "one", tmp_path / "two", cases=2, top=20)
    examples = pairs.pairs.examples("test")
    targets = [examples.text(number, 1).tolist() for number in range(len(examples))]
    assert found.predictions == found.contexts == sum(len(target) + 1 for target in targets)
    report = evaluate_ppl(tmp_path / "one", device="cpu")
    assert found.runs[0].perplexity == pytest.approx(report.perplexity, rel=1e-6)
    assert found.signature == report.signature
    task = Run.open(tmp_path / "one", device="cpu").task
    assert isinstance(task, TextWriter)
    assert found.comparison is not None
    begins = np.cumsum([0, *(len(target) + 1 for target in targets)])
    for case in found.comparison.better[0]:
        number = int(np.searchsorted(begins, case.position - 1, side="right")) - 1
        words = [*targets[number], task.end]
        place = case.position - 1 - int(begins[number])
        assert pairs.pairs.vocabulary.token(words[place]) == case.reference
        nats = task.teacher_forced(examples.text(number, 0), words).nats[place].item()
        assert case.better.reference == pytest.approx(math.exp(-nats), rel=1e-4)
        arrow = case.context.index("->")
        assert case.context[arrow + 1 :] == tuple(pairs.pairs.vocabulary.decode(words[:place]))
    with pytest.raises(DataError, match="only where both were trained on the same prepared data"):
        analyze(tmp_path / "one", softmax)
