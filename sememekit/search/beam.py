"""Beam search, batched over examples and hypotheses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from sememekit import config

State = tuple[Tensor, ...]
StepFunction = Callable[[Tensor, State, State, int], tuple[Tensor, Tensor, State, Tensor]]
"""(words (B, K), state, memory, C) -> log-probabilities (B K, C) of the C most probable next words, their ids (B K, C), the new
state, and (B K,) the position with the largest attention weight.

Every tensor of the state has B K rows, grouped by example; every tensor of the memory has B. A vocabulary with fewer than C
words is returned whole. Log-probabilities and ids are overwritten."""

SEARCH: Final = 2  # version of the stopping rule, for signatures (version 1 stopped at K finished hypotheses)


class BeamSettings(config.Settings):
    """Settings of the beam search."""

    beam_size: int = Field(default=5, ge=1, le=1000)
    """K, beam size for each text; 1 is greedy search."""
    num_best: int = Field(default=1, ge=1, le=1000)
    """Number of returned hypotheses, best first."""
    length_penalty: float = Field(default=1.0, ge=0.0, le=100.0)
    """a: hypotheses are ranked by log-probability / length^a, with a predicted end counted; 0 favours short ones."""
    min_length: int = Field(default=1, ge=0)
    """Minimum length in words."""
    max_length: int = Field(default=30, ge=1, le=100_000)
    """Maximum length in words; a text is cut there, without the probability of an end. An equal ``min_length`` gives exactly
    this length."""
    no_repeat: int = Field(default=0, ge=0)
    """n: no n words in a row occur twice in a text; 0 allows it."""
    unknown: Literal["keep", "replace", "never"] = "keep"
    """Keep ``<unk>`` in the text, replace it by the most attended source word, or never choose it."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.min_length > self.max_length:
            raise ValueError(f"min_length ({self.min_length}) is above max_length ({self.max_length})")
        if self.num_best > self.beam_size:
            raise ValueError(f"num_best ({self.num_best}) is above beam_size ({self.beam_size})")
        return self


@dataclass(frozen=True)
class Hypothesis:
    """A text that was found."""

    words: tuple[int, ...]  # ids, without begin and end
    nats: float  # summed negative log-probability, with the end where it was predicted
    score: float  # ranking score; higher is better
    attended: tuple[int, ...]  # for each word, the position of the source with the largest attention weight
    ended: bool  # true if the end was predicted; otherwise the text was cut


@torch.no_grad()
def beam_search(
    step: StepFunction, state: State, memory: State, *, begin: int, end: int, settings: BeamSettings, banned: Sequence[int] = ()
) -> list[list[Hypothesis]]:
    """The best texts of each of B examples, independent of the other examples.

    In each round one call of the model extends every hypothesis by its most probable words, as many as could matter. An
    extension by ``end`` among the K best of its example is finished; the K best other extensions continue. An example is done
    when no open hypothesis can beat the ``num_best`` best finished hypotheses: log-probabilities only fall, so the largest open
    log-probability divided by the maximum length^a is a bound. An example is also done when K hypotheses are finished and the
    present score of the best open hypothesis ranks behind the ``num_best``. (K finished hypotheses alone are not enough: before
    a long, confident text ends, K improbable ends may be finished.) Done examples leave the batch.

    ``state`` is the state before the first word and ``memory`` the constant input of the model, B rows each; ``begin`` and
    ``end`` are the words before the first and after the last; ``banned`` words and ``begin`` are never chosen. Returns for each
    example up to ``num_best`` hypotheses, best first; ties go to smaller ids. The choice among equally probable extensions is
    left to ``step`` and to torch's topk. There is at least one hypothesis, unless every text is forbidden."""
    beam, device, num_rows = settings.beam_size, state[0].device, len(state[0])
    finished: list[list[Hypothesis]] = [[] for _ in range(num_rows)]
    examples = list(range(num_rows))
    # B examples that are open, K hypotheses of each, N = B K rows of the state, C words that the model gives each of them.
    words_BK = torch.full((num_rows, 1), begin, device=device)
    scores_BK = torch.zeros((num_rows, 1), dtype=torch.float64, device=device)
    texts_BKT = looks_BKT = words_BK.new_zeros((num_rows, 1, 0))
    forbidden = torch.tensor(sorted({begin, *banned}), device=device)
    for length in range(settings.max_length):
        repeated = repetitions(texts_BKT.flatten(0, 1), settings.no_repeat)
        most_repeated = int(repeated[0].bincount().max()) if len(repeated[0]) else 0
        gains_NC, ids_NC, state, look_N = step(words_BK, state, memory, 2 * beam + len(forbidden) + 1 + most_repeated)
        gains_NC[(ids_NC.unsqueeze(2) == forbidden).any(dim=2) | _repeats(ids_NC, *repeated)] = -torch.inf
        if length < settings.min_length:
            gains_NC[ids_NC == end] = -torch.inf
        rows, size = scores_BK.shape
        gains_NC, order_NC = gains_NC.topk(each := min(2 * beam, gains_NC.shape[1]))
        ids = ids_NC.gather(1, order_NC).view(rows, size * each)  # (B, K C)
        totals = (scores_BK.unsqueeze(-1) + gains_NC.view(rows, size, each).double()).flatten(1)  # (B, K C)
        # The L best candidates of an example.
        totals_BL, place_BL = totals.topk(kept := min(2 * beam, size * each))
        words_BL, parent_BL = ids.gather(1, place_BL), place_BL // each
        ends_BL = words_BL == end
        texts_BLT = _select(texts_BKT, parent_BL)
        looks_BLT = torch.cat([_select(looks_BKT, parent_BL), look_N.view(rows, size).gather(1, parent_BL)[..., None]], dim=2)

        among_best_L = torch.arange(kept, device=device) < beam
        for row, column in (ends_BL & among_best_L & totals_BL.isfinite()).nonzero().tolist():
            text, looks, total = texts_BLT[row, column], looks_BLT[row, column, :-1], totals_BL[row, column]
            finished[examples[row]].append(_hypothesis(text, looks, total, settings, ended=True))
        # Of 2 K candidates at most K are ends, one a hypothesis; where there are fewer candidates each hypothesis has one.
        size_after = min(beam, kept - size)
        on_BK = ends_BL.int().argsort(dim=1, stable=True)[:, :size_after]
        scores_BK = totals_BL.gather(1, on_BK).masked_fill(ends_BL.gather(1, on_BK), -torch.inf)
        words_BK, parent_BK = words_BL.gather(1, on_BK), parent_BL.gather(1, on_BK)
        texts_BKT = torch.cat([_select(texts_BLT, on_BK), words_BK.unsqueeze(2)], dim=2)
        looks_BKT = _select(looks_BLT, on_BK)
        if length + 1 == settings.max_length or not size_after:
            break
        open_rows = _open_rows([finished[example] for example in examples], scores_BK[:, 0].tolist(), length + 1, settings)
        if not open_rows:
            break
        state_rows_BK = parent_BK + torch.arange(rows, device=device).unsqueeze(1) * size
        if len(open_rows) < rows:
            chosen = torch.tensor(open_rows, device=device)
            scores_BK, words_BK, state_rows_BK = scores_BK[chosen], words_BK[chosen], state_rows_BK[chosen]
            texts_BKT, looks_BKT = texts_BKT[chosen], looks_BKT[chosen]
            memory = tuple(part[chosen] for part in memory)
            examples = [examples[row] for row in open_rows]
        state = tuple(part.index_select(0, state_rows_BK.flatten()) for part in state)
    if texts_BKT.shape[2] == settings.max_length:
        for row, column in scores_BK.isfinite().nonzero().tolist():
            text, looks, total = texts_BKT[row, column], looks_BKT[row, column], scores_BK[row, column]
            finished[examples[row]].append(_hypothesis(text, looks, total, settings, ended=False))
    return [sorted(found, key=lambda item: (-item.score, item.words))[: settings.num_best] for found in finished]


def _open_rows(
    finished: Sequence[Sequence[Hypothesis]], best_open: Sequence[float], length: int, settings: BeamSettings
) -> list[int]:
    """The examples that are not done; ``best_open`` are the log-probabilities of their best open texts of ``length`` words."""
    rows = []
    for row, (found, score) in enumerate(zip(finished, best_open, strict=True)):
        ranked = sorted((item.score for item in found), reverse=True)[: settings.num_best]
        longest = length if len(found) >= settings.beam_size else settings.max_length
        beaten = len(ranked) == settings.num_best and ranked[-1] >= score / longest**settings.length_penalty
        if not beaten and score > -float("inf"):
            rows.append(row)
    return rows


def repetitions(texts: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return (rows, words) that would repeat an n-gram of ``size`` words in ``texts`` (N, T); none for ``size`` 0."""
    if not size or texts.shape[1] < size:
        empty = texts.new_zeros(0)
        return empty, empty
    windows = texts.unfold(1, size, 1)
    last = texts[:, texts.shape[1] - size + 1 :]
    rows, places = (windows[..., :-1] == last.unsqueeze(1)).all(dim=-1).nonzero(as_tuple=True)
    return rows, windows[rows, places, -1]


def _repeats(ids: Tensor, rows: Tensor, words: Tensor) -> Tensor:
    """Return a mask (N, C) of the ``ids`` that are forbidden; ``words`` (M,) are forbidden in ``rows`` (M,)."""
    hits = (ids[rows] == words.unsqueeze(1)).int()
    return torch.zeros_like(ids, dtype=torch.int32).index_add_(0, rows, hits) > 0


def _select(sequences_BKT: Tensor, hypotheses_BL: Tensor) -> Tensor:
    """(B, L, T) the sequences of some hypotheses."""
    return sequences_BKT.gather(1, hypotheses_BL.unsqueeze(2).expand(-1, -1, sequences_BKT.shape[2]))


def _hypothesis(text: Tensor, looks: Tensor, total: Tensor, settings: BeamSettings, *, ended: bool) -> Hypothesis:
    log_prob, length = float(total), len(text) + int(ended)
    words, attended, score = tuple(text.tolist()), tuple(looks.tolist()), log_prob / length**settings.length_penalty
    return Hypothesis(words=words, nats=-log_prob, score=score, attended=attended, ended=ended)
