"""Sampled training: a few sampled words estimate the normaliser of an output layer (Bengio and Senecal 2003).

An output layer with one normaliser has p(w | g) = exp s(w) / Z, where Z is the sum of exp s(v) over all words v. In training, Z
is replaced by exp s(t) + (1/S) sum over the draws v_i != t of exp s(v_i) / q(v_i), with the target t and S draws from q."""

from abc import abstractmethod
from collections.abc import Mapping
from math import log
from typing import ClassVar, Literal, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from sememekit import config
from sememekit.decoders.base import Resources, Scheduled
from sememekit.decoders.bias_start import begin_bias
from sememekit.layers import FixedTables, at_least_single, product_and_bias
from sememekit.ranks import Ranks
from sememekit.text.vocabulary import Vocabulary


class SamplingSettings(config.Settings):
    """Settings of output layers that can be trained with sampled words."""

    only_with: ClassVar[Mapping[str, config.OnlyWith]] = {
        "samples_power": config.OnlyWith("samples", other_than=(0,)),
        "samples_until": config.OnlyWith("samples", other_than=(0,)),
    }

    samples: int = Field(default=0, ge=0)
    """S, words drawn for each training batch to estimate the normaliser; 0 trains with the exact normaliser."""
    samples_power: float = Field(default=0.75, ge=0.0, le=1.0)
    """Exponent of the word counts in the distribution q of the draws: 1 is the unigram distribution, 0 is uniform."""
    samples_until: Literal["end", "first-cut"] = "end"
    """Sample until training ends, or until the first cut of the learning rate, after which training is exact."""


class Draw(NamedTuple):
    """The words whose scores a training batch needs."""

    words: Tensor  # (W,) distinct word ids, rising: every draw and every target
    # (W,) term added to a word's score in the normaliser: log(m / (S q)) for a word drawn m times, -inf for a target that was
    # not drawn
    correction: Tensor
    target: Tensor  # (N,) position of each target in ``words``


@final
class WordSampler(FixedTables):
    """Draw words for a batch from a power of the unigram distribution, with replacement.

    Draws come from torch's generator of the device, which a resumed run restores, or from ``draws`` of several processes.
    ``torch.multinomial`` draws the same words on a CPU, but sums all V probabilities each time. Finding the distinct words
    synchronises with the device once a batch. A count of 0 is taken as 1, so that every word can be drawn."""

    log_proposal: Tensor
    cumulative: Tensor
    exact: Tensor
    never_narrowed = ("cumulative",)

    def __init__(self, vocabulary: Vocabulary, settings: SamplingSettings) -> None:
        super().__init__()
        self.samples, self.until = settings.samples, settings.samples_until
        self.draws: torch.Generator | None = None
        counts = torch.from_numpy(vocabulary.counts.copy()).double().clamp(min=1.0)
        log_proposal = (settings.samples_power * counts.log()).log_softmax(dim=0)
        sums = log_proposal.exp().cumsum(dim=0)
        self.register_tables(log_proposal=log_proposal, cumulative=sums / sums[-1])
        # 0 or 1, and no boolean: what averages weights and buffers subtracts them.
        exact = torch.zeros((), dtype=torch.int64, device="cpu")
        # Part of a checkpoint only where it can change, so that the weights of other runs keep their names.
        if settings.samples > 0 and settings.samples_until == "first-cut":
            self.register_buffer("exact", exact)
            self.training_counters = ("exact",)
        else:
            self.register_tables(exact=exact)

    @property
    def active(self) -> bool:
        """True if training draws words at this point of the schedule."""
        return self.samples > 0 and not (self.until == "first-cut" and bool(self.exact))

    def draw(self, target: Tensor) -> Draw:
        """Draw S words for a batch with targets ``target`` (N,)."""
        place = torch.rand(self.samples, dtype=torch.float64, device=self.cumulative.device, generator=self.draws)
        return self.arrange(target, torch.searchsorted(self.cumulative, place))

    def arrange(self, target: Tensor, drawn: Tensor) -> Draw:
        """Return the ``Draw`` of targets (N,) and drawn words (S,), which may repeat."""
        words, place = torch.cat([drawn, target]).unique(return_inverse=True)
        times = torch.bincount(place[: len(drawn)], minlength=len(words))
        correction = times.to(self.log_proposal.dtype).log() - self.log_proposal[words] - log(len(drawn))
        return Draw(words, correction, place[len(drawn) :])


def estimated_nll(scores: Tensor, draw: Draw) -> Tensor:
    """The estimated loss (N,) of the targets from the scores (N, W) of the words of a draw.

    -log of exp s(t) / (exp s(t) + sum over the other words v of exp(s(v) + correction(v))). The sum is an unbiased estimate of
    the normaliser; a draw equal to the target is left out, since the target counts exactly."""
    scores, place = at_least_single(scores), draw.target[:, None]
    own = scores.gather(1, place)
    corrected = (scores + draw.correction.to(scores.dtype)).scatter(1, place, own)
    return corrected.logsumexp(dim=1) - own[:, 0]


class SampledDecoder(Scheduled):
    """An output layer that can be trained with words that ``sampler`` draws; its settings inherit ``SamplingSettings``.

    If it has both ``bias`` (V,) and ``bias_start``, the bias starts as ``bias_start`` says."""

    words: nn.Embedding | None
    """The word vectors of the layer, if they are one table."""

    def __init__(self, settings: SamplingSettings, resources: Resources) -> None:
        super().__init__(settings, resources)
        self.sampler = WordSampler(resources.vocabulary, settings)

    @property
    def estimates_in_training(self) -> bool:
        return self.sampler.active

    def begin_training(self, counts: NDArray[np.integer]) -> None:
        begin_bias(getattr(self, "bias", None), getattr(self, "bias_start", None), counts)

    def train_together(self, ranks: Ranks, draws: torch.Generator) -> None:
        self.sampler.draws = draws

    def look_up_sparsely(self, allowed: bool) -> None:
        if self.words is not None:
            self.words.sparse = allowed and self.sampler.active

    def after_rate_cut(self) -> None:
        self.sampler.exact.fill_(True)  # ends sampling with ``samples_until = "first-cut"``


class NormalisedScores(SampledDecoder):
    """An output layer that is a softmax over scores of words, and can be trained with sampled words.

    A subclass implements ``scores`` and calls ``super().__init__`` with settings that inherit ``SamplingSettings``. It may
    override ``sampled_nll`` and ``exact_nll`` with cheaper code."""

    @abstractmethod
    def scores(self, hidden: Tensor, words: Tensor | None = None) -> Tensor:
        """Return unnormalised natural-log scores, whose softmax over all words is the distribution.

        ``hidden``: (..., H) contexts; ``words``: (W,) distinct word ids, None for all V. Returns (..., W) or (..., V)."""

    def log_probs(self, hidden: Tensor) -> Tensor:
        return at_least_single(self.scores(hidden)).log_softmax(dim=-1)

    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the loss: exact in evaluation, an estimate while training samples words."""
        if self.training and self.sampler.active:
            draw = self.sampler.draw(target.reshape(-1))
            return self.sampled_nll(hidden, draw).reshape(target.shape)
        return self.exact_nll(hidden, target)

    def exact_nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the loss (...) with the exact normaliser."""
        scores = self.scores(hidden)
        flat = scores.reshape(-1, scores.shape[-1])
        return functional.cross_entropy(flat, target.reshape(-1), reduction="none").reshape(target.shape)

    def sampled_nll(self, hidden: Tensor, draw: Draw) -> Tensor:
        """Return the estimated loss (N,) of the N contexts ``hidden`` (..., H), given the draw."""
        scores = self.scores(hidden, draw.words)
        return estimated_nll(scores.reshape(-1, scores.shape[-1]), draw)


def linear_scores(
    contexts: Tensor, vectors: Tensor, bias: Tensor | None, words: Tensor | None, *, sparse: bool = False
) -> Tensor:
    """Compute contexts . x_w + b_w: (..., E) -> (..., W), with ``vectors`` (V, E), and ``bias`` (V,) if any, of distinct
    ``words`` (W,), or of all. With ``sparse`` the gradient of the vectors of given words is sparse."""
    if words is not None:
        vectors, bias = functional.embedding(words, vectors, sparse=sparse), None if bias is None else bias[words]
    return product_and_bias(contexts, vectors, bias)
