"""``sememekit analyze``: the rank of the matrix of log-probabilities, and where two models differ."""

import math
from functools import partial
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from torch import Tensor

from sememekit.analysis.contexts import PredictedText, log_prob_rows, read_contexts
from sememekit.analysis.scored_runs import perplexity_signature
from sememekit.config import Record
from sememekit.data.prepared import PreparedData
from sememekit.decoders.base import spelled
from sememekit.errors import ConfigError, DataError
from sememekit.measure import PairwiseDivergence, Tally
from sememekit.measure.rank import BLOCK_ROWS, TriangularFactor, bytes_by_blocks, rows_that_fit, spectrum_of
from sememekit.progress import OneStage, Progress, silent
from sememekit.runs.run import OfRun, Run
from sememekit.tasks.base import declares
from sememekit.tasks.scoring import PAIRS
from sememekit.tasks.writing import Predictor, TextWriter, predictor

CURVE_POINTS: Final = 121  # points of the cumulative curve, even on a logarithmic axis from 1e-12 to 1
CANDIDATES: Final = 40  # predictions that are examined for each row of the comparison, largest difference first


class RunAnalysis(OfRun):
    """The predictions of one run."""

    decoder: str
    perplexity: float
    """The perplexity of the whole split."""
    rank: int
    """Singular values of the N x V matrix of log-probabilities that are above ``round_off``."""
    full_rank: int
    """The largest possible rank, min(N, V)."""
    round_off: float
    """Bound of round-off: 1/2 sqrt(N + V + 1) eps times the largest singular value, in float64."""
    largest: float
    smallest: float
    curve: tuple[tuple[float, float], ...]
    """(x, share of singular values that are at most x times the largest)."""
    divergence: float
    """Mean KL in nats over all pairs of different contexts."""


class Prediction(Record):
    """The most probable words of one run with their probabilities, and the probability of the target word."""

    words: tuple[tuple[str, float], ...]
    reference: float


class Case(Record):
    """One prediction of two runs."""

    position: int
    """The position of the predicted word in the split."""
    context: tuple[str, ...]
    """The previous sentence and this one up to the word, or the last words."""
    reference: str
    better: Prediction
    worse: Prediction
    """better, worse: the predictions of both runs; the better run gave the target word more probability."""
    gain: float


class RunComparison(Record):
    """Predictions in which two runs differ most about the target word, as in Table 6, Yang et al. 2018."""

    better: tuple[tuple[Case, ...], tuple[Case, ...]]
    """Cases in which the first run did better, then cases in which the second run did."""
    wins: float
    """Share of all predictions in which the first run gave the word more probability."""


class Analysis(Record):
    """Rank, divergence and differences of the predictions of one or two runs."""

    split: str
    words: int
    contexts: int
    """N, rows of the matrix."""
    predictions: int
    """Number of predictions in the split: n - 1 for a stream, all target words and end marks for pairs."""
    sampled: bool
    """True if the rows are a sample of the predictions; ``why_sampled`` has the reason in words."""
    why_sampled: str | None
    decomposition: Literal["whole", "blocks"]
    """The source of the singular values: "whole", the matrix, or "blocks", the triangular factor of its rows."""
    seed: int
    signature: str
    runs: tuple[RunAnalysis, ...]
    comparison: RunComparison | None


def analyze(
    run: Path | Run,
    other: Path | Run | None = None,
    *,
    split: str = "test",
    data: Path | None = None,
    contexts: int | None = None,
    memory: float = 2.0,
    cases: int = 6,
    top: int = 4,
    seed: int = 1,
    progress: Progress = silent,
) -> Analysis:
    """Rank and divergence of a model's predictions, and the predictions in which two models differ most.

    The matrix has a row of log-probabilities over the vocabulary for each context, computed in float64. A matrix that does not
    fit into ``memory`` is decomposed by blocks of rows (``measure.rank.TriangularFactor``), which takes memory for V x V
    numbers. If V x V numbers do not fit either, the rows are a sample without replacement, the same for both runs. Headline and
    dialogue models: contexts of all target words and end marks. Arguments as ``sememekit analyze --help``; default data: the
    first run's. Raises ConfigError: the task predicts no words, or not even two contexts fit into ``memory``. Raises DataError:
    data absent or without the split, or another vocabulary."""
    opened = [Run.open(one) for one in (run, other) if one is not None]
    tasks = [predictor(loaded.task, "analyze") for loaded in opened]
    prepared = opened[0].data(data)
    prints = [run.vocabulary.fingerprint for run in opened]
    if len(set(prints)) > 1:
        raise DataError(
            f"{opened[0]} has the vocabulary {prints[0]} and {opened[1]} has {prints[1]}; "
            f"two runs can be compared word by word only where both were trained on the same prepared data"
        )
    if len({declares(task, TextWriter) for task in tasks}) > 1:
        raise ConfigError(
            f"{opened[0]} and {opened[1]}: one predicts running text and one predicts pairs; give two runs of one kind"
        )
    text = PredictedText(tasks[0], prepared, split)
    predictions, num_words = len(text.words), len(prepared.vocabulary)
    rows, by_blocks, reason = _rows(predictions, num_words, contexts, memory)
    chosen = np.sort(np.random.default_rng(seed).choice(predictions, rows, replace=False))
    nats, analyses = [], []
    for number, (loaded, task) in enumerate(zip(opened, tasks, strict=True), start=1):
        each, hidden = read_contexts(task, text, chosen, partial(progress, f"reading with run {number}"))
        show = partial(progress, f"decomposing run {number}")
        analyses.append(_analysis(loaded, task, each, hidden, by_blocks, show))
        nats.append(each)
    return Analysis(
        split=split,
        words=num_words,
        contexts=rows,
        predictions=predictions,
        sampled=rows < predictions,
        why_sampled=reason,
        decomposition="blocks" if by_blocks else "whole",
        seed=seed,
        signature=perplexity_signature(prepared, split, predictions, text.columns, PAIRS if text.is_pairs else None),
        runs=tuple(analyses),
        comparison=_comparison(tasks, nats, text, cases, top, progress) if len(tasks) == 2 else None,
    )


def _rows(predictions: int, num_words: int, wanted: int | None, memory: float) -> tuple[int, bool, str | None]:
    """Return the number of contexts in the matrix, whether it is decomposed by blocks, and why some are left out."""
    fitting, blocks = rows_that_fit(num_words, memory * 2**30), bytes_by_blocks(num_words) / 2**30
    asked = min(predictions, wanted or predictions)
    if asked < 2:
        raise DataError(f"analyze compares two predictions or more with each other, given {asked}; take a longer text")
    if asked <= fitting or blocks <= memory:
        reason = None if asked == predictions else f"{asked:,} of {predictions:,} contexts were asked for"
        return asked, asked > fitting, reason
    all_take = f"all take --memory {math.ceil(10 * blocks) / 10:g}"
    if fitting < 2:
        raise ConfigError(f"--memory {memory:g}: not even two contexts of {num_words:,} words fit; give more GiB: {all_take}")
    fit = f"{fitting:,} of {predictions:,} contexts of {num_words:,} words fit into {memory:g} GiB"
    return fitting, False, f"{fit} ({all_take})"


def _analysis(
    loaded: Run, task: Predictor, nats: npt.NDArray[np.float64], hidden: Tensor, by_blocks: bool, progress: OneStage
) -> RunAnalysis:
    size, rows = len(loaded.vocabulary), list[npt.NDArray[np.float64]]()
    divergence, factor = PairwiseDivergence(size), TriangularFactor(size if by_blocks else 0)
    done, waiting = 0, 0
    progress(0, len(hidden))
    for block in log_prob_rows(task, hidden):
        divergence.add(block)
        rows.append(block)
        done, waiting = done + len(block), waiting + len(block)
        if by_blocks and (waiting >= BLOCK_ROWS or done == len(hidden)):
            factor.add(np.concatenate(rows))
            rows, waiting = [], 0
        progress(done, len(hidden))
    spectrum = factor.spectrum() if by_blocks else spectrum_of(np.concatenate(rows))
    thresholds = np.logspace(-12, 0, CURVE_POINTS)
    slot = loaded.plan.decoder
    return RunAnalysis(
        **loaded.of_run,
        decoder=spelled(task.decoder) if slot is None else slot.name,
        perplexity=Tally(float(nats.sum()), len(nats)).perplexity,
        rank=spectrum.rank,
        full_rank=min(spectrum.shape),
        round_off=spectrum.round_off,
        largest=float(spectrum.values[0]),
        smallest=float(spectrum.values[-1]),
        curve=tuple(zip(thresholds.tolist(), spectrum.cumulative(thresholds).tolist(), strict=True)),
        divergence=divergence.mean(),
    )


def _comparison(
    tasks: list[Predictor], nats: list[npt.NDArray[np.float64]], text: PredictedText, cases: int, top: int, progress: Progress
) -> RunComparison:
    """Return the predictions that differ most, in favour of either run.

    A prediction counts only if the better run has the target among its ``top`` words, so that one run expected the target. Each
    word is shown once, and the unknown word is left out."""
    gain, data = nats[1] - nats[0], text.data
    known = text.words != (-1 if data.vocabulary.unknown_id is None else data.vocabulary.unknown_id)
    orders = (np.argsort(-gain, kind="stable"), np.argsort(gain, kind="stable"))
    candidates = [order[known[order]][: cases * CANDIDATES] for order in orders]
    looked_at = np.unique(np.concatenate(candidates))
    distributions = []
    for number, task in enumerate(tasks, start=1):
        _, hidden = read_contexts(task, text, looked_at, partial(progress, f"comparing run {number}"))
        distributions.append(np.concatenate([*log_prob_rows(task, hidden)]))
    found = []
    for winner, order in enumerate(candidates):
        shown: dict[int, Case] = {}
        for position in order.tolist():
            row, word = int(np.searchsorted(looked_at, position)), int(text.words[position])
            difference = float(gain[position]) if winner == 0 else -float(gain[position])
            if len(shown) == cases or difference <= 0.0:
                break
            best = _prediction(distributions[winner][row], word, top, data)
            reference = data.vocabulary.token(word)
            if word in shown or reference not in [name for name, _ in best.words]:
                continue
            both = {"better": best, "worse": _prediction(distributions[1 - winner][row], word, top, data)}
            context = text.context(position)
            shown[word] = Case(position=position + 1, context=context, reference=reference, **both, gain=difference)
        found.append(tuple(shown.values()))
    return RunComparison(better=(found[0], found[1]), wins=float((gain > 0).mean()))


def _prediction(log_probs: npt.NDArray[np.float64], word: int, top: int, data: PreparedData) -> Prediction:
    topk_words = np.argsort(-log_probs, kind="stable")[:top]
    words = tuple((data.vocabulary.token(int(index)), math.exp(float(log_probs[index]))) for index in topk_words)
    return Prediction(words=words, reference=math.exp(float(log_probs[word])))
