"""``sememekit analyze``: in how many directions predictions vary, and where two models differ."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sememekit.build import LoadedRun, load_run, prepare_torch
from sememekit.commands.evaluate import data_of_run, perplexity_signature
from sememekit.config import Settings
from sememekit.errors import ConfigError, DataError
from sememekit.measure import Tally, mean_pairwise_divergence, rows_that_fit, spectrum_of
from sememekit.tasks.base import WordPredictor, word_predictor
from sememekit.text import PreparedData

Progress = Callable[[str, int, int | None], None]

CURVE_POINTS: Final = 121
"""Points of the cumulative curve, even on a logarithmic axis from 1e-12 to 1."""
CANDIDATES: Final = 40
"""Predictions that are looked at for each row of the comparison, those first in which the runs differ most."""
CONTEXT_WORDS: Final = 40
"""Words of a context that are shown where the text has no end of sentence."""


class RunAnalysis(Settings):
    """What the predictions of one run look like.

    Attributes:
        run, checkpoint, decoder: which model.
        perplexity: of the whole split.
        rank: singular values of the N x V matrix of log-probabilities that are above ``round_off``.
        full_rank: the most it could be, min(N, V).
        round_off: 1/2 sqrt(N + V + 1) eps times the largest singular value, in float64.
        largest, smallest: singular values.
        curve: (x, share of singular values that are at most x times the largest).
        divergence: mean KL in nats over all pairs of different contexts.
    """

    run: str
    checkpoint: str
    decoder: str
    perplexity: float
    rank: int
    full_rank: int
    round_off: float
    largest: float
    smallest: float
    curve: tuple[tuple[float, float], ...]
    divergence: float


class Prediction(Settings):
    """What one run expected: its likeliest words with their probabilities, and that of the word that came."""

    words: tuple[tuple[str, float], ...]
    reference: float


class Case(Settings):
    """One prediction of two runs.

    Attributes:
        position: of the predicted word in the split.
        context: the sentence before and this one up to the word, or the last words.
        reference: the word that came.
        better, worse: of the run that gave it more probability and of the other.
        gain: nats between the two.
    """

    position: int
    context: tuple[str, ...]
    reference: str
    better: Prediction
    worse: Prediction
    gain: float


class Comparison(Settings):
    """Where two runs differ most about the word that came, in the manner of Table 6, Yang et al. 2018.

    Attributes:
        better: cases in which the first run did better, then those in which the second did.
        wins: share of all predictions in which the first run gave the word more probability.
    """

    better: tuple[tuple[Case, ...], tuple[Case, ...]]
    wins: float


class Analysis(Settings):
    """What ``analyze`` found.

    Attributes:
        split, words: text and vocabulary.
        contexts: N, rows of the matrix.
        predictions: of the split, n - 1.
        sampled: whether the rows are a sample, and not the whole split.
        why_sampled: in words, or None.
        seed: of the sample.
        signature: of the perplexities.
        runs: one or two.
        comparison: of two.
    """

    split: str
    words: int
    contexts: int
    predictions: int
    sampled: bool
    why_sampled: str | None
    seed: int
    signature: str
    runs: tuple[RunAnalysis, ...]
    comparison: Comparison | None


@dataclass(frozen=True)
class _Model:
    """A loaded run that predicts words."""

    loaded: LoadedRun
    task: WordPredictor
    path: Path


def analyze(
    run: Path,
    other: Path | None = None,
    *,
    split: str = "test",
    data: Path | None = None,
    contexts: int | None = None,
    memory: float = 1.0,
    cases: int = 6,
    top: int = 4,
    seed: int = 1,
    device: str = "auto",
    which: Literal["best", "last"] = "best",
    progress: Progress | None = None,
) -> Analysis:
    """Rank and spread of a model's predictions, and the predictions in which two models differ most.

    The matrix has a row of log-probabilities over the vocabulary for each context. Its rows are computed in float64 from
    contexts that are computed as in evaluation. Where the whole split does not fit, they are a sample drawn without
    replacement, the same for both runs.

    Args:
        run: a run folder.
        other: another one, of the same vocabulary, to compare with.
        split: of the prepared data.
        data: prepared data in place of that of the first run's training.
        contexts: how many rows; None for as many as fit.
        memory: GiB that the matrix and its decomposition may take.
        cases: predictions that are shown for each of two runs.
        top: likeliest words that are shown of each.
        seed: of the sample.
        device: ``auto``, ``cpu`` or ``cuda``; the decomposition is on the CPU.
        which: the best weights by validation, or the last.
        progress: called with (stage, done, total).

    Raises:
        CheckpointError: no run, or a torn one.
        ConfigError: the task predicts no words, or not even two contexts fit into ``memory``.
        DataError: the data are absent, lack the split, or one of the runs has another vocabulary.
    """
    show = progress or (lambda stage, done, total: None)
    models = [_load(path, which, device) for path in (run, *([] if other is None else [other]))]
    prepared = data_of_run(models[0].loaded, data)
    _check_vocabularies(models)
    tokens = prepared.tokens(split)
    predictions, num_words = len(tokens) - 1, len(prepared.vocabulary)
    rows, reason = _rows(predictions, num_words, contexts, memory)
    generator = np.random.default_rng(seed)
    chosen = np.sort(generator.choice(predictions, rows, replace=False)) if rows < predictions else np.arange(predictions)
    columns = min(models[0].task.evaluation_batch_size, predictions)
    nats, analyses = [], []
    for number, model in enumerate(models, start=1):
        each, hidden = _read(model.task, tokens, columns, chosen, partial(show, f"reading with run {number}"))
        show(f"decomposing run {number}", 0, None)
        analyses.append(_analysis(model, each, _log_probs(model.task, hidden)))
        nats.append(each)
    comparison = None
    if len(models) == 2:
        comparison = _comparison(models, nats, tokens, columns, prepared, cases, top, show)
    return Analysis(
        split=split,
        words=num_words,
        contexts=rows,
        predictions=predictions,
        sampled=rows < predictions,
        why_sampled=reason,
        seed=seed,
        signature=perplexity_signature(prepared, split, predictions, columns),
        runs=tuple(analyses),
        comparison=comparison,
    )


def _load(path: Path, which: Literal["best", "last"], device: str) -> _Model:
    loaded = load_run(path, which=which, device=device)
    prepare_torch(loaded.plan.run.model_copy(update={"device": device}))
    return _Model(loaded, word_predictor(loaded.task, "analyze"), path)


def _check_vocabularies(models: list[_Model]) -> None:
    prints = [model.loaded.vocabulary.fingerprint for model in models]
    if len(set(prints)) > 1:
        raise DataError(
            f"{models[0].path} has the vocabulary {prints[0]} and {models[1].path} has {prints[1]}; "
            f"two runs can be compared word by word only where both were trained on the same prepared data"
        )


def _rows(predictions: int, num_words: int, wanted: int | None, memory: float) -> tuple[int, str | None]:
    """How many contexts the matrix has, and why not all."""
    fitting = rows_that_fit(num_words, memory * 2**30)
    if fitting < 2:
        raise ConfigError(
            f"--memory {memory:g}: not even two contexts of {num_words:,} words fit; give more GiB, such as --memory 1"
        )
    rows = min(predictions, fitting, wanted or predictions)
    if rows == predictions:
        return rows, None
    if wanted is not None and rows == wanted:
        return rows, f"{rows:,} of {predictions:,} contexts were asked for"
    return rows, f"{rows:,} of {predictions:,} contexts of {num_words:,} words fit into {memory:g} GiB (--memory)"


def _read(
    task: WordPredictor, tokens: np.ndarray, columns: int, chosen: npt.NDArray[np.int64], progress: Callable[[int, int], None]
) -> tuple[npt.NDArray[np.float64], Tensor]:
    """Nats (n - 1,) of every prediction of a text in its order, and the contexts (N, H) of the ``chosen`` ones."""
    predictions = len(tokens) - 1
    length = -(-predictions // columns)
    nats = np.zeros(predictions)
    wanted = torch.full((predictions,), -1, dtype=torch.long)
    wanted[torch.from_numpy(chosen)] = torch.arange(len(chosen))
    kept: Tensor | None = None
    begin = 0
    for chunk in task.score(tokens, batch_size=columns, progress=progress):
        if chunk.hidden is None:
            raise ConfigError("analyze needs one context for each predicted word, and this task has none")
        mask = chunk.mask.cpu()
        rows = torch.arange(begin, begin + len(mask))[:, None] + torch.arange(columns) * length
        position = rows[mask]
        nats[position.numpy()] = chunk.nats.cpu()[mask].double().numpy()
        place = wanted[position]
        hidden = chunk.hidden.cpu()[mask][place >= 0]
        kept = hidden.new_empty(len(chosen), hidden.shape[-1]) if kept is None else kept
        kept[place[place >= 0]] = hidden
        begin += len(mask)
    assert kept is not None
    return nats, kept


def _log_probs(task: WordPredictor, hidden: Tensor, block: int = 64) -> npt.NDArray[np.float64]:
    """(N, V) log-probabilities in float64. The weights are those of the run, the arithmetic is double."""
    single = next(task.parameters()).dtype
    task.double()
    try:
        parts = []
        with torch.no_grad():
            for begin in range(0, len(hidden), block):
                part = hidden[begin : begin + block].to(task.device, torch.float64)
                parts.append(task.decoder.log_probs(part).cpu().numpy())
        return np.concatenate(parts)
    finally:
        task.to(single)


def _analysis(model: _Model, nats: npt.NDArray[np.float64], log_probs: npt.NDArray[np.float64]) -> RunAnalysis:
    spectrum = spectrum_of(log_probs)
    thresholds = np.logspace(-12, 0, CURVE_POINTS)
    slot = model.loaded.plan.decoder
    return RunAnalysis(
        run=str(model.path),
        checkpoint=model.loaded.snapshot,
        decoder=type(model.task.decoder).__name__.lower() if slot is None else slot.name,
        perplexity=Tally(float(nats.sum()), len(nats)).perplexity,
        rank=spectrum.rank,
        full_rank=min(spectrum.shape),
        round_off=spectrum.round_off,
        largest=float(spectrum.values[0]),
        smallest=float(spectrum.values[-1]),
        curve=tuple(zip(thresholds.tolist(), spectrum.cumulative(thresholds).tolist(), strict=True)),
        divergence=mean_pairwise_divergence(log_probs),
    )


def _comparison(
    models: list[_Model],
    nats: list[npt.NDArray[np.float64]],
    tokens: np.ndarray,
    columns: int,
    data: PreparedData,
    cases: int,
    top: int,
    show: Progress,
) -> Comparison:
    """The predictions that differ most, both ways round.

    Those count in which the better run has the word that came among its ``top`` likeliest, so that the difference is one of
    expecting it or not; each word is shown once, the unknown word never.
    """
    gain = nats[1] - nats[0]
    known = (
        tokens[1:] != data.vocabulary.unknown_id if data.vocabulary.unknown_id is not None else np.ones(len(gain), dtype=bool)
    )
    candidates = []
    for order in (np.argsort(-gain, kind="stable"), np.argsort(gain, kind="stable")):
        order = order[known[order]]
        candidates.append(order[: cases * CANDIDATES])
    looked_at = np.unique(np.concatenate(candidates))
    distributions = []
    for number, model in enumerate(models, start=1):
        _, hidden = _read(model.task, tokens, columns, looked_at, partial(show, f"comparing run {number}"))
        distributions.append(_log_probs(model.task, hidden))
    found = []
    for winner, order in enumerate(candidates):
        shown: dict[int, Case] = {}
        for position in order.tolist():
            row = int(np.searchsorted(looked_at, position))
            word = int(tokens[position + 1])
            difference = float(gain[position]) if winner == 0 else -float(gain[position])
            if len(shown) == cases or difference <= 0.0:
                break
            best = _prediction(distributions[winner][row], word, top, data)
            reference = data.vocabulary.token(word)
            if word in shown or reference not in [name for name, _ in best.words]:
                continue
            shown[word] = Case(
                position=position + 1,
                context=_context(tokens, position, data),
                reference=reference,
                better=best,
                worse=_prediction(distributions[1 - winner][row], word, top, data),
                gain=difference,
            )
        found.append(tuple(shown.values()))
    return Comparison(better=(found[0], found[1]), wins=float((gain > 0).mean()))


def _prediction(log_probs: npt.NDArray[np.float64], word: int, top: int, data: PreparedData) -> Prediction:
    likeliest = np.argsort(-log_probs, kind="stable")[:top]
    words = tuple((data.vocabulary.token(int(index)), math.exp(float(log_probs[index]))) for index in likeliest)
    return Prediction(words=words, reference=math.exp(float(log_probs[word])))


def _context(tokens: np.ndarray, position: int, data: PreparedData) -> tuple[str, ...]:
    """The sentence before and this one up to ``position`` included, or the last words of a text without ends of sentences."""
    begin = max(0, position + 1 - CONTEXT_WORDS)
    end = data.vocabulary.end_id if data.signature.end_of_sentence else None
    if end is not None:
        ends = np.flatnonzero(tokens[: position + 1] == end)
        begin = int(ends[-2]) + 1 if len(ends) > 1 else 0
    return tuple(data.vocabulary.token(int(index)) for index in tokens[begin : position + 1])
