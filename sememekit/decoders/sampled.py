"""A softmax trained by importance sampling: a few sampled words stand for all others (Bengio and Senecal 2003)."""

from __future__ import annotations

from math import log
from typing import ClassVar, final

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from sememekit import config
from sememekit.decoders.base import Decoder, Resources, word_vectors


@final
class Sampled(Decoder):
    """The plain softmax in evaluation; in training, its normaliser is estimated from S words drawn from a fixed q.

    With scores s(w) = g . x_w + b_w and the target t:

    - exact: -log p(t | g) = log(exp s(t) + sum over w != t of exp s(w)) - s(t);
    - in training the sum over the others is replaced by (1/S) sum over the draws v_i != t of exp s(v_i) / q(v_i), that is, each
      score is corrected by -log(S q), the logarithm of how often its word is expected among the draws (Bengio and Senecal
      2003; Jean et al. 2015). Draws that hit the target are masked. The estimate of the sum is unbiased; its
      logarithm, and so the loss in training mode, is a random estimate that lies a little too low on average, and reaches the
      exact loss as S grows. Training perplexities of such a run are estimates, too; those of validation and test are exact.

    q is the unigram distribution raised to ``power`` (0.75 as in Mikolov et al. 2013; 1 the unigram, 0 uniform). The S draws,
    with replacement, are shared by all tokens of a batch and come from torch's generator, so that a resumed run repeats them.

    Shapes: contexts (..., H), log-probabilities (..., V).
    """

    by_frequency: ClassVar[bool] = True
    estimates_in_training: ClassVar[bool] = True

    class Settings(config.Settings):
        """Settings of the sampled softmax."""

        num_samples: int = Field(default=1000, ge=1)
        """S, words drawn for each batch."""
        power: float = Field(default=0.75, ge=0.0, le=1.0)
        """Exponent of the unigram counts in q."""
        tied: bool = True
        """Share the word vectors with the input embedding; needs an embedding as wide as the contexts."""
        bias: bool = True
        """One free number for each word."""

    log_proposal: Tensor

    def __init__(self, settings: Settings, resources: Resources) -> None:
        super().__init__(settings, resources)
        self.num_samples = settings.num_samples
        self.words = word_vectors(resources, "sampled", tied=settings.tied)
        self.bias = nn.Parameter(torch.zeros(len(resources.vocabulary))) if settings.bias else None
        counts = torch.from_numpy(resources.vocabulary.counts.copy()).double().clamp(min=1.0)
        log_proposal = (settings.power * counts.log()).log_softmax(dim=0)
        self.register_buffer("log_proposal", log_proposal, persistent=False)

    def _logits(self, hidden: Tensor) -> Tensor:
        return functional.linear(hidden, self.words.weight, self.bias)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """See ``Decoder.log_probs``: exact, in training, too."""
        return functional.log_softmax(self._logits(hidden), dim=-1)

    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        """See ``Decoder.nll``: exact in evaluation, an estimate in training."""
        rows, words = hidden.reshape(-1, hidden.shape[-1]), target.reshape(-1)
        if not self.training:
            return functional.cross_entropy(self._logits(rows), words, reduction="none").reshape(target.shape)
        drawn = torch.multinomial(self.log_proposal.exp(), self.num_samples, replacement=True)
        return self.estimate(rows, words, drawn).reshape(target.shape)

    def estimate(self, rows: Tensor, target: Tensor, drawn: Tensor) -> Tensor:
        """The estimated loss (N,) of ``target`` (N,) in contexts ``rows`` (N, H), given the draws ``drawn`` (S,)."""
        vectors = functional.embedding(torch.cat([drawn, target]), self.words.weight)
        own = (rows * vectors[len(drawn) :]).sum(dim=-1)
        others = functional.linear(rows, vectors[: len(drawn)])
        if self.bias is not None:
            own, others = own + self.bias[target], others + self.bias[drawn]
        expected = (self.log_proposal[drawn] + log(len(drawn))).to(others.dtype)
        others = (others - expected).masked_fill(drawn == target[:, None], -torch.inf)
        return torch.cat([own[:, None], others], dim=1).logsumexp(dim=1) - own
