"""What mixtures share: several contexts for each position, and how much each counts."""

from __future__ import annotations

from typing import final

import torch
from pydantic import Field
from torch import Tensor, nn

from sememekit import config
from sememekit.decoders.base import Resources, word_vectors
from sememekit.decoders.bias_start import BiasStart
from sememekit.layers import Linear, shared_dropout


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
    """Where the bias of a word starts: "log_frequency", or "zero" as in the public code. From zero all frequencies have to be
    learned through the tanh of the contexts; under Adam it saturates, and the mixture stays a unigram model."""
    tied: bool = True
    """Share the word vectors with the input embedding. The contexts take its size, so no width has to fit."""
    context_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Rate on all K x E coordinates of the contexts, one mask a sequence (``dropoutl`` of the public code)."""


@final
class MixtureContexts(nn.Module):
    """Weights pi = softmax(W_pi g) and contexts h_k = tanh(W_k g + b_k), Sec. 2.4 of Yang et al. 2018.

    Args:
        settings: of the mixture.
        width: H, size of g.
        size: E, size of each h_k.
    """

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


def mixture_parts(
    settings: MixtureSettings, resources: Resources, name: str
) -> tuple[nn.Embedding, MixtureContexts, nn.Parameter | None]:
    """Word vectors, contexts as wide as these, and word biases if there are to be any, for the decoder ``name``."""
    words = word_vectors(resources, name, tied=settings.tied, any_size=True)
    mixture = MixtureContexts(settings, resources.width, words.embedding_dim)
    return words, mixture, nn.Parameter(torch.zeros(len(resources.vocabulary))) if settings.word_bias else None
