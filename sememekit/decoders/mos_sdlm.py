"""A mixture of sememe-driven layers: Yang et al. 2018 with the layer of Gu et al. 2018 in place of each softmax."""

from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from sememekit.decoders.base import Resources, SenseAttribution, Sensed, SenseProbabilities
from sememekit.decoders.bias_start import BiasStart
from sememekit.decoders.mos import MixtureContexts, MixtureSettings
from sememekit.decoders.sdlm import SDLM


@final
class MoSSDLM(Sensed):
    """p(w | g) = sum_k pi_k p_sdlm(w | h_k): K contexts share one sememe-driven layer.

    pi and h_k come from Sec. 2.4 of Yang et al. 2018 (``MixtureContexts``), p_sdlm is Eq. (4) to (10) of Gu et al. 2018 with
    h_k as its context (``SDLM``). Neither paper has the combination. It is exact, in log space: the log-sum-exp over k of log
    pi_k plus the log-likelihood under context k. It costs K sememe-driven layers.

    It is a separate decoder, not a setting of ``mos``, since the two share only the contexts."""

    class Settings(SDLM.Settings):
        num_components: int = Field(default=3, ge=1)
        """K, the number of contexts."""
        bias_start: BiasStart = "log_frequency"
        """Start of the sense biases: "log_frequency" (of the word, shared evenly by its senses) or "zero"."""
        mixture_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate on all K x E coordinates of the contexts h_k, one mask a sequence; ``context_dropout`` acts on h_k Q_r."""

    @classmethod
    def needs(cls, settings: Settings) -> frozenset[str]:
        return SDLM.needs(settings)

    def __init__(self, settings: Settings, resources: Resources) -> None:
        super().__init__(settings, resources)
        shared = resources.embedding if settings.tied else None
        size = resources.width if shared is None else shared.embedding_dim
        mixture = MixtureSettings(num_components=settings.num_components, context_dropout=settings.mixture_dropout)
        self.mixture = MixtureContexts(mixture, resources.width, size)
        self.tables = settings.num_components
        self.senses = SDLM(settings, resources._replace(width=size))

    def begin_training(self, counts: NDArray[np.integer]) -> None:
        self.senses.begin_training(counts)

    def _contexts(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return log weights (..., K), and contexts (T, B K, E) for (T, B, H), else (N K, E): masks are locked in time."""
        log_weights, contexts = self.mixture(hidden)
        lead = (hidden.shape[0], hidden.shape[1] * self.tables) if hidden.ndim == 3 else (-1,)
        return log_weights, contexts.reshape(*lead, contexts.shape[-1])

    @property
    def estimates_in_training(self) -> bool:
        return self.senses.estimates_in_training

    def log_probs(self, hidden: Tensor) -> Tensor:
        log_weights, contexts = self._contexts(hidden)
        each = self.senses.log_probs(contexts)
        return (each.reshape(*log_weights.shape, each.shape[-1]) + log_weights.unsqueeze(-1)).logsumexp(dim=-2)

    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        log_weights, contexts = self._contexts(hidden)
        repeated = target.unsqueeze(-1).expand(log_weights.shape).reshape(contexts.shape[:-1])
        each = self.senses.nll(contexts, repeated).reshape(log_weights.shape)
        return -(log_weights - each).logsumexp(dim=-1)

    def sense_attribution(self, hidden: Tensor, words: Tensor) -> SenseAttribution:
        """Return shares and gates, averaged over the components by the word's posterior."""
        log_weights, contexts = self._contexts(hidden)
        joint = self.senses.log_probs(contexts)[:, words] + log_weights[:, None]
        posterior = joint.softmax(dim=0)
        parts = [self.senses.sense_attribution(context, words) for context in contexts]
        by_word = []
        for column in range(len(words)):
            shares: dict[int, float] = {}
            for weight, part in zip(posterior[:, column].tolist(), parts, strict=True):
                for sense, share in part.word_senses[column]:
                    shares[sense] = shares.get(sense, 0.0) + weight * share
            by_word.append(tuple(sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))))
        gates = log_weights.exp() @ torch.tensor([part.sememe_gates for part in parts]).to(log_weights)
        return SenseAttribution(word_senses=tuple(by_word), sememe_gates=tuple(gates.tolist()))

    def sense_probabilities(self, hidden: Tensor) -> SenseProbabilities:
        """Return the sense probabilities, averaged over the components by their weights."""
        log_weights_NC, contexts = self._contexts(hidden)
        each = self.senses.sense_probabilities(contexts)
        log_senses_NCS, gates_NCK = (
            part.reshape(*log_weights_NC.shape, part.shape[-1]) for part in (each.log_senses_NS, each.gates_NK)
        )
        log_senses_NCS = log_senses_NCS + log_weights_NC.unsqueeze(-1)
        return SenseProbabilities(log_senses_NCS.logsumexp(dim=1), (log_weights_NC.exp().unsqueeze(-1) * gates_NCK).sum(dim=1))
