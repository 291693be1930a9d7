"""The sememe-driven output layer: sememes as experts on the senses they belong to (Gu et al. 2018)."""

from typing import Any, Literal, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from sememekit.decoders.base import Resources, SenseAttribution, Sensed, SenseProbabilities, word_vectors
from sememekit.decoders.bias_start import BiasStartSettings, log_frequencies
from sememekit.decoders.sampling import Draw, NormalisedScores, SamplingSettings
from sememekit.decoders.sense_logits import SenseInputs, normaliser_and_score, sense_logits
from sememekit.decoders.sense_structure import SenseStructure
from sememekit.layers import segment_logsumexp, shared_dropout

PRESETS: dict[str, dict[str, Any]] = {
    "paper": {"sense_bias": False, "context_tanh": False, "gate_bias": True, "start": "published"},
    "release": {"sense_bias": True, "context_tanh": False, "gate_bias": True, "start": "published"},
    "release-awd": {"sense_bias": True, "context_tanh": True, "gate_bias": False, "start": "published", "num_bases": 10},
    "identity": {"sense_bias": True, "context_tanh": False, "gate_bias": True, "start": "identity"},
}
"""Preset -> its settings; a key given beside the preset overrides it."""


@final
class SDLM(NormalisedScores, Sensed):
    """Probability of a word: the sum over its senses of a sparse product of sememe experts, normalised over all senses.

    >>> layer = SDLM(SDLM.Settings(tied=False, num_bases=2), Resources(width=16, vocabulary=words, graph=graph))
    >>> nats_TB = layer.nll(hidden_TBH, target_TB)
    >>> senses = layer.sense_attribution(hidden_TBH[0, 0], target_TB[0]).word_senses

    With context g (H), sememe k, basis r, sense s of word w(s) with sememes E(s):

    - gate of a sememe: q_k = sigmoid(W_k . g + b_k) (Eq. (4), Gu et al. 2018);
    - mixing of bases: alpha[k, r] = softmax over r of free numbers, positive and summing to one (Eq. (10));
    - score of a sense in a basis: a[r, s] = (g Q_r) . x_w(s) (Eq. (5)), with the word vector x for all senses of a word;
    - logit of a sense: sum over k in E(s) of C[k, s] q_k sum_r alpha[k, r] a[r, s], plus the bias of the sense, where C is
      1 / |E(s)| (left) or 1 / sqrt(|E(s)| |D(k)|) (symmetric), D(k) being the senses of sememe k;
    - p(s) = softmax over the senses of all words (Eq. (8)); p(w) = sum of p(s) over the senses of w (Eq. (9)).

    Everything is in log space. The products are computed once for each word (``sense_logits``). The sense bias, tanh on g Q_r
    and the gate bias are switches, since paper and release differ in them. There are two dropout masks: on the coordinates of
    the output word vectors, one for the batch (``vector_dropout``), and on the coordinates of g Q_r, one for each sequence,
    shared over time and bases (``context_dropout``)."""

    words: nn.Embedding

    class Settings(SamplingSettings, BiasStartSettings):
        preset: Literal["paper", "release", "release-awd", "identity"] = "identity"
        """``paper`` (no sense bias), ``release`` (with it), ``release-awd`` (tanh, no gate bias, R 10), ``identity`` (2 I)."""
        num_bases: int = Field(default=5, ge=1)
        """R, the number of matrices that transform a context."""
        normalisation: Literal["left", "symmetric"] = "left"
        """C[k, s]: 1 / |E(s)|, or 1 / sqrt(|E(s)| |D(k)|). All the public code runs left."""
        sense_bias: bool = True
        """A bias for each sense. With "log_frequency" the frequency of the word is shared evenly by its senses."""
        context_tanh: bool = False
        """tanh on g Q_r, as the released AWD form has it."""
        gate_bias: bool = True
        """A bias in the sememe gates, starting at 0."""
        start: Literal["published", "identity"] = "identity"
        """Q_r uniform in +-0.05, or this noise plus 2 I: as gates begin near 1/2, an untrained layer then is a tied softmax."""
        tied: bool = True
        """Share the word vectors with the input embedding."""
        vector_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate on the coordinates of the output word vectors, one mask for a segment."""
        context_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate on the coordinates of g Q_r, one mask a sequence."""
        tokens_per_block: int = Field(default=0, ge=0)
        """Tokens that go through the senses at once; 0 picks 64 on CPU (the block stays in cache), else 512."""

        @model_validator(mode="before")
        @classmethod
        def _expand_preset(cls, table: Any) -> Any:
            preset = table.get("preset", cls.model_fields["preset"].default) if isinstance(table, dict) else None
            return {**PRESETS[preset], **table} if isinstance(preset, str) and preset in PRESETS else table

    @classmethod
    def needs(cls, settings: Settings) -> frozenset[str]:
        return frozenset({"graph"})

    def __init__(self, settings: Settings, resources: Resources) -> None:
        super().__init__(settings, resources)
        assert resources.graph is not None
        graph, width = resources.graph, resources.width
        graph.check_vocabulary(resources.vocabulary)
        self.settings = settings
        self.words = word_vectors(resources, "sdlm", tied=settings.tied)
        self.structure = SenseStructure.from_graph(graph, symmetric=settings.normalisation == "symmetric")
        self.gate = nn.Linear(width, graph.num_sememes, bias=settings.gate_bias)
        self.bases = nn.Parameter(torch.empty(settings.num_bases, width, width))
        self.mixing = nn.Parameter(torch.empty(graph.num_sememes, settings.num_bases))
        self.sense_bias = nn.Parameter(torch.zeros(graph.num_senses)) if settings.sense_bias else None
        nn.init.uniform_(self.gate.weight, -0.1, 0.1)
        if settings.gate_bias:
            nn.init.zeros_(self.gate.bias)
        nn.init.uniform_(self.bases, -0.05, 0.05)
        nn.init.uniform_(self.mixing, -0.1, 0.1)
        if settings.start == "identity":
            with torch.no_grad():
                self.bases.add_(2.0 * torch.eye(width))

    def begin_training(self, counts: NDArray[np.integer]) -> None:
        if self.sense_bias is not None and self.settings.bias_start == "log_frequency":
            per_word = log_frequencies(counts) - self.structure.sense_offsets.diff().double().log().cpu()
            with torch.no_grad():
                self.sense_bias.copy_(per_word[self.structure.word_of_sense.cpu()])

    def _inputs(self, hidden: Tensor, words: Tensor | None = None) -> SenseInputs:
        """Compute the inputs of the sense logits of some words (W,), or of all, for ``hidden`` (..., H)."""
        settings = self.settings
        flat_NH = hidden.reshape(-1, hidden.shape[-1])
        contexts = torch.bmm(flat_NH.expand(settings.num_bases, -1, -1), self.bases).view(settings.num_bases, *hidden.shape)
        if settings.context_tanh:
            contexts = contexts.tanh()
        contexts = shared_dropout(contexts, settings.context_dropout, self.training, (0, 1) if hidden.ndim == 3 else (0,))
        contexts = shared_dropout(contexts, settings.vector_dropout, self.training, tuple(range(contexts.ndim - 1)))
        structure, words_VE, bias_S = self._part(words)
        return SenseInputs(
            structure=structure,
            contexts_RNE=contexts.view(len(contexts), *flat_NH.shape),
            words_VE=words_VE,
            gates_KN=self._gates(flat_NH),
            mixing_RK=self.mixing.softmax(dim=-1).T,
            bias_S=bias_S,
        )

    def _gates(self, hidden_NH: Tensor) -> Tensor:
        """(K, N) the gates of all sememes."""
        scores_KN = (self.gate.weight @ hidden_NH.T).to(self.gate.weight.dtype)  # autocast lowers products
        return (scores_KN if self.gate.bias is None else scores_KN + self.gate.bias[:, None]).sigmoid()

    def scores(self, hidden: Tensor, words: Tensor | None = None) -> Tensor:
        inputs = self._inputs(hidden, words)
        structure = inputs.structure
        by_word_VN = segment_logsumexp(sense_logits(inputs), structure.word_of_sense, structure.num_words)
        return by_word_VN.T.reshape(*hidden.shape[:-1], structure.num_words)

    def _part(self, words: Tensor | None) -> tuple[SenseStructure, Tensor, Tensor | None]:
        """Return structure, word vectors and sense biases of some words (W,), or of all."""
        if words is None:
            return self.structure, self.words.weight, self.sense_bias
        structure, senses = self.structure.of_words(words)
        bias = None if self.sense_bias is None else self.sense_bias[senses]
        return structure, functional.embedding(words, self.words.weight, sparse=self.words.sparse), bias

    def exact_nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        return self._nll(hidden, target.reshape(-1)).reshape(target.shape)

    def sampled_nll(self, hidden: Tensor, draw: Draw) -> Tensor:
        return self._nll(hidden, draw.target, draw.words, draw.correction)

    def _nll(self, hidden: Tensor, target_N: Tensor, words: Tensor | None = None, correction_W: Tensor | None = None) -> Tensor:
        block = self.settings.tokens_per_block or (64 if hidden.device.type == "cpu" else 512)
        normaliser_N, score_N = normaliser_and_score(self._inputs(hidden, words), target_N, block, correction_W)
        return normaliser_N - score_N

    def sense_attribution(self, hidden: Tensor, words: Tensor) -> SenseAttribution:
        """Return shares p(s) / p(w) of senses, and gates q."""
        hidden_1H = hidden.reshape(1, -1)
        logits = sense_logits(self._inputs(hidden_1H))[:, 0]
        by_word = []
        for word in words.tolist():
            first, last = self.structure.sense_offsets[word : word + 2].tolist()
            shares = logits[first:last].softmax(dim=0).tolist()
            by_word.append(tuple(sorted(enumerate(shares, start=first), key=lambda pair: (-pair[1], pair[0]))))
        return SenseAttribution(word_senses=tuple(by_word), sememe_gates=tuple(self._gates(hidden_1H)[:, 0].tolist()))

    def sense_probabilities(self, hidden: Tensor) -> SenseProbabilities:
        return SenseProbabilities(sense_logits(self._inputs(hidden)).log_softmax(dim=0).T, self._gates(hidden).T)

    def sense_logs(self, hidden: Tensor, words: Tensor, senses: Tensor) -> Tensor:
        return sense_logits(self._inputs(hidden, words)).T
