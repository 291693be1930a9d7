"""The sememe-driven output layer (Gu et al. 2018) as a module for any model."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sememekit.decoders.base import Decoder, SenseProbabilities
from sememekit.decoders.mos_sdlm import MoSSDLM
from sememekit.decoders.sdlm import SDLM
from sememekit.errors import ConfigError
from sememekit.layers import evaluating
from sememekit.nn.output_layer import StructuredLayer
from sememekit.nn.senses import Nested, Senses
from sememekit.sememes import SememeGraph


class _SememeLayer(StructuredLayer):
    """An output layer whose words are sums of senses, and senses products of sememes."""

    by_senses: ClassVar[tuple[str, str] | tuple[()] | None] = ()

    def __init__(self, in_features: int, senses: Senses | SememeGraph | Nested, counts: Any = None, **options: Any) -> None:
        """As ``OutputLayer``, but that ``counts`` come behind ``senses`` and may be left out: ``samples`` and ``bias_start``
        ask for them. A compiled graph draws no ``samples``: its loss is exact.

        Raises:
            ConfigError: as ``OutputLayer``, no senses, or no counts where they are asked for.
        """
        if senses is None or isinstance(senses, str):
            raise ConfigError(
                f"{type(self).__name__}: senses must be lists for each of V words, Senses or a SememeGraph, given {senses!r}; "
                "look the words of a tokenizer up with Senses.of_words(tokens, 'open'), or nest lists as "
                "[[['human', 'thing'], ['tool']], [['human']], []]"
            )
        if counts is None and (options.get("samples") or options.get("bias_start") == "log_frequency"):
            asked = "samples" if options.get("samples") else 'bias_start="log_frequency"'
            raise ConfigError(
                f"{type(self).__name__}: {asked} needs counts; give counts= (V,) of the words in the training text, or the "
                "number of words for equal ones"
            )
        super().__init__(in_features, counts, senses, **options)
        self._warm_up()

    def _structure(self, graph: SememeGraph | None) -> Iterable[NDArray[Any]]:
        assert graph is not None
        structure = np.frombuffer(graph.structure_fingerprint.encode(), dtype=np.uint8)
        return graph.sense_offsets, graph.sense_set, graph.set_offsets, graph.set_sememes, structure

    def sense_log_prob(self, hidden: Tensor) -> Tensor:
        """(..., S) log-probabilities of all senses, in the order of the words; p(w) is the sum over the senses of w."""
        found = self._of_senses(hidden).log_senses_NS
        return found.reshape(*hidden.shape[:-1], found.shape[-1])

    def sememe_gates(self, hidden: Tensor) -> Tensor:
        """(..., K) the probability of each sememe being expressed, in the order of ``sememes``."""
        found = self._of_senses(hidden).gates_NK
        return found.reshape(*hidden.shape[:-1], found.shape[-1])

    def _of_senses(self, hidden: Tensor) -> SenseProbabilities:
        self._check(hidden)
        found = self.layer.sense_probabilities(hidden.reshape(-1, self.in_features))
        assert found is not None
        return found

    def _static(self, hidden: Tensor) -> bool:
        """Which senses sampled words have is not known beforehand: a compiled graph takes the exact loss."""
        return not (self.training and self.layer.estimates_in_training)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        moved = super()._apply(fn, recurse)
        self._warm_up()
        return moved

    @torch.no_grad()
    def _warm_up(self) -> None:
        """Let the layer lay out its senses for the device and dtype that it is on, which a compiler could not trace."""
        parameter = next(self.layer.parameters())
        if parameter.is_meta:
            return
        with evaluating(self.layer):
            self.layer.nll(parameter.new_zeros(1, self.in_features), torch.zeros(1, dtype=torch.int64, device=parameter.device))


@final
class SememeSoftmax(_SememeLayer):
    """SDLM: the context sets a gate for each sememe, sememes score the senses that have them, senses add up to words.

    >>> layer = SememeSoftmax(16, senses, num_bases=2)
    >>> output, loss = layer(hidden_TBH, target_TB)
    >>> gates_TBK = layer.sememe_gates(hidden_TBH)

    With gates q_k = sigmoid(W_k . h + b_k) (Eq. 4, Gu et al. 2018), bases alpha[k, r] (Eq. 10) and the vector x_w of a word:
    logit(s) = sum over sememes k of s of C[k, s] q_k sum_r alpha[k, r] (h Q_r) . x_w(s) + b_s; p(s) = softmax over the senses
    of all words; p(w) = sum over its senses. Settings: ``preset``, ``num_bases`` (5), ``normalisation``, ``sense_bias``,
    ``vector_dropout``, ``context_dropout``, ``samples`` and more (``decoders.sdlm``). A shared embedding is (V, H).

    Shapes: contexts (..., H), log-probabilities (..., V), S senses, K sememes.
    """

    decoder_class: ClassVar[type[Decoder]] = SDLM


@final
class MixtureOfSememeSoftmaxes(_SememeLayer):
    """p(w | h) = sum_k pi_k p_sdlm(w | h_k): contexts of Yang et al. 2018 through one sememe-driven layer.

    >>> layer = MixtureOfSememeSoftmaxes(16, senses, num_components=2, num_bases=2)
    >>> output, loss = layer(hidden_TBH, target_TB)
    >>> words_TB = layer.predict(hidden_TBH)

    Settings: those of ``SememeSoftmax``, ``num_components`` (3), ``mixture_dropout``, ``bias_start`` (``decoders.mos_sdlm``).
    """

    decoder_class: ClassVar[type[Decoder]] = MoSSDLM
    any_size: ClassVar[bool] = True
