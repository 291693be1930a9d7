"""Output layers as modules for any model: full, sampled, adaptive, hierarchical, mixed and sememe-driven softmaxes."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sememekit.decoders.adaptive import Adaptive
from sememekit.decoders.base import Decoder, Sensed, SenseProbabilities
from sememekit.decoders.class_hsm import ClassHSM
from sememekit.decoders.differentiated import Differentiated
from sememekit.decoders.mos import MoC, MoS
from sememekit.decoders.mos_sdlm import MoSSDLM
from sememekit.decoders.sdlm import SDLM
from sememekit.decoders.softmax import Sampled, Softmax
from sememekit.decoders.tree_hsm import TreeHSM
from sememekit.errors import ConfigError
from sememekit.layers import evaluating
from sememekit.nn.output_layer import OutputLayer, StructuredLayer
from sememekit.nn.senses import Nested, Senses
from sememekit.sememes import SememeGraph


@final
class FullSoftmax(OutputLayer):
    """p(w | h) = softmax over the V words of h . x_w + b_w; the baseline of all other layers.

    >>> layer = FullSoftmax(16, num_words, embedding=embedding)
    >>> output, loss = layer(hidden_TBH, target_TB)
    >>> layer.log_prob(hidden_TBH).shape == (5, 2, num_words)
    True

    Shared vectors (``embedding=``) as in Inan et al. 2017 and Press and Wolf 2017. Settings: ``bias``, ``bias_start``
    ("log_frequency": from counts), ``samples`` (``decoders.softmax``). Contexts (..., H), log-probabilities (..., V)."""

    decoder_class: ClassVar[type[Decoder]] = Softmax


@final
class SampledSoftmax(OutputLayer):
    """The full softmax whose normaliser is estimated in training from S sampled words (Bengio and Senecal 2003).

    >>> layer = SampledSoftmax(16, counts, samples=4)
    >>> estimate = layer(hidden_TBH, target_TB).loss
    >>> exact = layer.eval()(hidden_TBH, target_TB).loss

    Z = exp s(t) + (1/S) sum over draws v_i != t of exp s(v_i) / q(v_i), with q the counts to the power ``samples_power``: an
    unbiased estimate of Z. Draws come from torch's generator. Other layers with ``samples=`` work in the same way. Settings:
    ``samples`` (1000), ``samples_power``, ``samples_until``, ``bias`` (``decoders.sampling``)."""

    decoder_class: ClassVar[type[Decoder]] = Sampled


@final
class AdaptiveSoftmax(OutputLayer):
    """Rare words get smaller vectors and are computed only when needed (Grave et al. 2017).

    >>> layer = AdaptiveSoftmax(16, counts, cutoffs=(2,), shrink=2.0)
    >>> output, loss = layer(hidden_TBH, target_TB)
    >>> words_TB = layer.predict(hidden_TBH)

    This is torch's ``AdaptiveLogSoftmaxWithLoss`` for ids in any order: p(w) = p(tail of w) p(w | tail), with a context of H /
    shrink^i in tail i. Bands are by falling count; ``rank_of_word`` in the state dict has the rank of each word. If ``counts``
    is a number, ids are taken as ranks. Compiled and exported graphs compute the probabilities of all words, as their shapes
    must not depend on the targets. Settings: ``cutoffs``, ``shrink``, ``head_bias`` (``decoders.adaptive``)."""

    decoder_class: ClassVar[type[Decoder]] = Adaptive
    ordered: ClassVar[bool] = True
    static: ClassVar[bool] = False


@final
class DifferentiatedSoftmax(OutputLayer):
    """Frequent words use more coordinates of the context than rare ones, in one softmax over all words (Chen et al. 2015).

    >>> layer = DifferentiatedSoftmax(16, counts, cutoffs=(2,), widths=(12, 4))
    >>> output, loss = layer(hidden_TBH, target_TB)
    >>> layer.topk(hidden_TBH, 2)[1].shape
    torch.Size([5, 2, 2])

    p(w | h) = softmax of h[part(w)] . x_w + b_w. Bands are by falling count, as in ``AdaptiveSoftmax``. Settings: ``cutoffs``,
    ``widths``, ``bias``, ``samples`` (``decoders.differentiated``)."""

    decoder_class: ClassVar[type[Decoder]] = Differentiated
    ordered: ClassVar[bool] = True

    def _check_embedding(self, name: str, in_features: int, num_words: int, embedding: nn.Embedding | None) -> None:
        if embedding is not None:
            raise ConfigError(f"{name}: its vectors are sorted by falling count and cannot be shared; leave embedding= out")


@final
class ClassSoftmax(StructuredLayer):
    """First the class of the word, then the word within it (Goodman 2001).

    >>> layer = ClassSoftmax(16, counts, num_classes=2)
    >>> output, loss = layer(hidden_TBH, target_TB)
    >>> by_meaning = ClassSoftmax(16, counts, senses)

    p(w | h) = p(c(w) | h) p(w | c(w), h). Classes have equal total frequency, group words that share sememes (``senses``), or
    are given (``clusters``). The likelihood needs C classes and the words of one class; compiled for a CPU it needs all words,
    as the shapes of a graph must not depend on the targets. Settings: ``num_classes``, ``bias`` (``decoders.class_hsm``)."""

    decoder_class: ClassVar[type[Decoder]] = ClassHSM
    layer: ClassHSM
    by_senses: ClassVar[tuple[str, str] | tuple[()] | None] = ("classes", "sememes")
    by_clusters: ClassVar[tuple[str, str] | None] = ("classes", "file")

    def _structure(self, graph: SememeGraph | None) -> Iterable[NDArray[Any]]:
        return (self.layer.groups.group_of.numpy(),)

    def _static(self, hidden: Tensor) -> bool:
        return hidden.is_cuda and not self.layer.groups.lopsided


@final
class TreeSoftmax(StructuredLayer):
    """A word is a path of left and right turns through a binary tree (Morin and Bengio 2005).

    >>> layer = TreeSoftmax(16, counts)
    >>> output, loss = layer(hidden_TBH, target_TB)
    >>> by_meaning = TreeSoftmax(16, counts, senses)

    log p(w | h) = sum over the nodes on the path of log sigmoid(+-(h . n_j + b_j)); Huffman's tree over the counts, or a
    balanced one over words that share sememes (``senses``). Compiled, it scores all words. Settings: ``bias``
    (``decoders.tree_hsm``)."""

    decoder_class: ClassVar[type[Decoder]] = TreeHSM
    static: ClassVar[bool] = False
    layer: TreeHSM
    by_senses: ClassVar[tuple[str, str] | tuple[()] | None] = ("tree", "sememes")

    def _structure(self, graph: SememeGraph | None) -> Iterable[NDArray[Any]]:
        return self.layer.parent.numpy(), self.layer.sign.numpy()


@final
class MixtureOfSoftmaxes(OutputLayer):
    """p(w | h) = sum_k pi_k softmax_w(h_k . x + b), which raises the rank of the log-probabilities (Yang et al. 2018).

    >>> layer = MixtureOfSoftmaxes(16, counts, num_components=3)
    >>> output, loss = layer(hidden_TBH, target_TB)
    >>> words_TB = layer.predict(hidden_TBH)

    pi = softmax(W_pi h), h_k = tanh(W_k h + b_k), Sec. 2.4. With counts the word biases start at their logarithms. Settings of
    ``decoders.mos``: ``context_dropout``, ``word_bias``, ``bias_start``, ``samples``, ``log_shift``, 15 ``num_components``."""

    decoder_class: ClassVar[type[Decoder]] = MoS
    any_size: ClassVar[bool] = True


@final
class MixtureOfContexts(OutputLayer):
    """One softmax over the mean of K contexts, the control of the mixture of softmaxes (Eq. (2), Yang et al. 2018).

    >>> layer = MixtureOfContexts(16, counts, num_components=3)
    >>> output, loss = layer(hidden_TBH, target_TB)
    >>> words_TB = layer.predict(hidden_TBH)

    p(w | h) = softmax_w((sum_k pi_k h_k) . x + b). Settings as ``MixtureOfSoftmaxes`` (``decoders.mos``)."""

    decoder_class: ClassVar[type[Decoder]] = MoC
    any_size: ClassVar[bool] = True


class _SememeLayer(StructuredLayer):
    """An output layer in which a word is a sum of senses, and a sense a product of sememe experts."""

    by_senses: ClassVar[tuple[str, str] | tuple[()] | None] = ()
    layer: Sensed

    def __init__(self, in_features: int, senses: Senses | SememeGraph | Nested, counts: Any = None, **options: Any) -> None:
        """Build as ``OutputLayer``, but ``counts`` come after ``senses`` and are needed only for ``samples`` and
        ``bias_start``. A compiled graph draws no ``samples``: its loss is exact. Raises ConfigError: as ``OutputLayer``, no
        senses, or needed counts are missing."""
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
        """Return (..., S) log-probabilities of all senses, in the order of the words; p(w) is the sum over the senses of w."""
        found = self._of_senses(hidden).log_senses_NS
        return found.reshape(*hidden.shape[:-1], found.shape[-1])

    def sememe_gates(self, hidden: Tensor) -> Tensor:
        """Return (..., K) the probability of each sememe being expressed, in the order of ``sememes``."""
        found = self._of_senses(hidden).gates_NK
        return found.reshape(*hidden.shape[:-1], found.shape[-1])

    def _of_senses(self, hidden: Tensor) -> SenseProbabilities:
        self._check(hidden)
        return self.layer.sense_probabilities(hidden.reshape(-1, self.in_features))

    def _static(self, hidden: Tensor) -> bool:
        """True without sampled words. A compiled graph cannot know the senses of sampled words, and uses the exact loss."""
        return not (self.training and self.layer.estimates_in_training)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        moved = super()._apply(fn, recurse)
        self._warm_up()
        return moved

    @torch.no_grad()
    def _warm_up(self) -> None:
        """Build the blocks of senses for the present device and dtype, which a compiler could not trace."""
        parameter = next(self.layer.parameters())
        if parameter.is_meta:
            return
        with evaluating(self.layer):
            self.layer.nll(parameter.new_zeros(1, self.in_features), torch.zeros(1, dtype=torch.int64, device=parameter.device))


@final
class SememeSoftmax(_SememeLayer):
    """SDLM: the context sets a gate for each sememe, sememes score their senses, and senses add up to words.

    >>> layer = SememeSoftmax(16, senses, num_bases=2)
    >>> output, loss = layer(hidden_TBH, target_TB)
    >>> gates_TBK = layer.sememe_gates(hidden_TBH)

    With gates q_k = sigmoid(W_k . h + b_k) (Eq. 4, Gu et al. 2018), bases alpha[k, r] (Eq. 10) and the vector x_w of a word:
    logit(s) = sum over sememes k of s of C[k, s] q_k sum_r alpha[k, r] (h Q_r) . x_w(s) + b_s; p(s) = softmax over the senses
    of all words; p(w) = sum over its senses. Settings: ``preset``, ``num_bases`` (5), ``normalisation``, ``sense_bias``,
    ``vector_dropout``, ``context_dropout``, ``samples`` and more (``decoders.sdlm``). A shared embedding is (V, H).

    Shapes: contexts (..., H), log-probabilities (..., V), S senses, K sememes."""

    decoder_class: ClassVar[type[Decoder]] = SDLM


@final
class MixtureOfSememeSoftmaxes(_SememeLayer):
    """p(w | h) = sum_k pi_k p_sdlm(w | h_k): contexts of Yang et al. 2018 through one sememe-driven layer.

    >>> layer = MixtureOfSememeSoftmaxes(16, senses, num_components=2, num_bases=2)
    >>> output, loss = layer(hidden_TBH, target_TB)
    >>> words_TB = layer.predict(hidden_TBH)

    Settings: all of ``SememeSoftmax``, ``num_components`` (3), ``mixture_dropout``, ``bias_start`` (``decoders.mos_sdlm``)."""

    decoder_class: ClassVar[type[Decoder]] = MoSSDLM
    any_size: ClassVar[bool] = True
