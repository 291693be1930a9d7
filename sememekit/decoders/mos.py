"""Mixture of softmaxes and its control, the mixture of contexts (Yang et al. 2018); both weight several contexts."""

from typing import final

import torch
from pydantic import Field
from torch import Tensor, nn

from sememekit import config
from sememekit.decoders.base import Resources, spelled, word_vectors
from sememekit.decoders.bias_start import BiasStart
from sememekit.decoders.sampling import Draw, NormalisedScores, SampledDecoder, SamplingSettings, estimated_nll, linear_scores
from sememekit.layers import Linear, at_least_single, linear_cross_entropy, product_and_bias, shared_dropout


class MixtureSettings(config.Settings):
    """Settings of a mixture."""

    num_components: int = Field(default=15, ge=1)
    """K, the number of contexts; 15 in all language models of the paper."""
    context_bias: bool = True
    """A bias under the tanh: in the public code, not in the paper."""
    prior_bias: bool = False
    """A bias in the weights of the components."""
    word_bias: bool = True
    """One bias for each word, the same for all components: in the public code, not in the paper."""
    bias_start: BiasStart = "log_frequency"
    """Start of the word biases: "log_frequency", or "zero" as in the public code. From zero, frequencies are learned through
    the tanh of the contexts. Under Adam this tanh saturates, and the mixture stays a unigram model."""
    tied: bool = True
    """Share the word vectors with the input embedding; contexts take its size."""
    context_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Rate on all K x E coordinates of the contexts, one mask a sequence (``dropoutl`` of the public code)."""


@final
class MixtureContexts(nn.Module):
    """Weights pi = softmax(W_pi g) and contexts h_k = tanh(W_k g + b_k), Sec. 2.4 of Yang et al. 2018; ``width`` is the size of
    g, ``size`` of each h_k."""

    def __init__(self, settings: MixtureSettings, width: int, size: int) -> None:
        super().__init__()
        self.num_components, self.size, self.dropout = settings.num_components, size, settings.context_dropout
        self.prior = Linear(width, settings.num_components, bias=settings.prior_bias)
        self.projection = nn.Linear(width, settings.num_components * size, bias=settings.context_bias)

    def forward(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """``hidden`` (..., H) -> log weights (..., K), contexts (..., K, E)."""
        contexts = self.projection(hidden).tanh()
        contexts = shared_dropout(contexts, self.dropout, self.training, (0,) if hidden.ndim == 3 else ())
        return self.prior(hidden).log_softmax(dim=-1), contexts.unflatten(-1, (self.num_components, self.size))


class _Mixture(SampledDecoder):
    """Word vectors, contexts of their size, and optional word biases."""

    words: nn.Embedding

    class Settings(MixtureSettings, SamplingSettings):
        """Settings of a mixture that can be trained with sampled words."""

    def __init__(self, settings: Settings, resources: Resources) -> None:
        super().__init__(settings, resources)
        self.words = word_vectors(resources, spelled(self), tied=settings.tied, any_size=True)
        self.mixture = MixtureContexts(settings, resources.width, self.words.embedding_dim)
        self.bias = nn.Parameter(torch.zeros(len(resources.vocabulary))) if settings.word_bias else None
        self.bias_start = settings.bias_start


@final
class MoS(_Mixture):
    """Probability of a word: the weighted sum of K softmaxes over the vocabulary, which raises the rank of log p.

    p(w | g) = sum_k pi_k softmax_w(h_k . x + b), Sec. 2.4 of Yang et al. 2018, with pi, h_k of ``MixtureContexts``. Exact, in
    log space: the likelihood of a word is the log-sum-exp over k of log pi_k minus the k-th cross entropy, so that
    no tensor of K x V probabilities exists. The public code adds 1e-8 inside the logarithm; ``log_shift`` does so in training.

    With ``samples`` the K normalisers are estimated from the same sampled words in training. Let w_k be the posterior of
    component k, and C the covariance of the relative errors of the normalisers. To second order the bias of the estimate is
    -sum_k w_k C_kk + (1/2) w^T C w, between -1/2 (as for a softmax) and -1 times the mean of C_kk under w."""

    class Settings(_Mixture.Settings):
        log_shift: float = Field(default=0.0, ge=0.0)
        """Added to a probability before the logarithm in training, as in the public code (1e-8); evaluation is exact."""

    def __init__(self, settings: Settings, resources: Resources) -> None:
        super().__init__(settings, resources)
        self.log_shift, self.tables = settings.log_shift, settings.num_components

    def log_probs(self, hidden: Tensor) -> Tensor:
        log_weights, contexts = self.mixture(hidden)
        logits = product_and_bias(contexts, self.words.weight, self.bias)
        return (at_least_single(logits).log_softmax(dim=-1) + log_weights.unsqueeze(-1)).logsumexp(dim=-2)

    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        if self.training and self.sampler.active:
            return self.sampled_nll(hidden, self.sampler.draw(target.reshape(-1))).view(target.shape)
        log_weights, contexts = self.mixture(hidden)
        rows = contexts.reshape(-1, contexts.shape[-1])
        repeated = target.unsqueeze(-1).expand(log_weights.shape).reshape(-1)
        entropies = linear_cross_entropy(rows, self.words.weight, self.bias, repeated).view(log_weights.shape)
        return -self._shifted((log_weights - entropies).logsumexp(dim=-1))

    def sampled_nll(self, hidden: Tensor, draw: Draw) -> Tensor:
        """The estimated loss (N,) of the N contexts ``hidden`` (..., H), given the draw, which all components share."""
        log_weights, contexts = self.mixture(hidden)
        scores = linear_scores(
            contexts.reshape(-1, contexts.shape[-1]), self.words.weight, self.bias, draw.words, sparse=self.words.sparse
        )
        entropies = estimated_nll(scores, draw._replace(target=draw.target.repeat_interleave(self.tables)))
        return -self._shifted((log_weights - entropies.view(log_weights.shape)).logsumexp(dim=-1)).view(-1)

    def _shifted(self, log_probs: Tensor) -> Tensor:
        return (log_probs.exp() + self.log_shift).log() if self.training and self.log_shift else log_probs


@final
class MoC(_Mixture, NormalisedScores):
    """One softmax over the mean of K contexts: p(w | g) = softmax_w((sum_k pi_k h_k) . x + b), Eq. (2) of Yang et al. 2018.

    It has the same parameters as the mixture of softmaxes, but E bounds the rank of its log-probabilities."""

    def scores(self, hidden: Tensor, words: Tensor | None = None) -> Tensor:
        log_weights, contexts = self.mixture(hidden)
        mean = (log_weights.exp().unsqueeze(-1) * contexts).sum(dim=-2)
        return linear_scores(mean, self.words.weight, self.bias, words, sparse=self.words.sparse)
