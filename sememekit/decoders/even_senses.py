"""Senses and sememes from a lexicon for any output layer that predicts words."""

from typing import final

from torch import Tensor, nn

from sememekit.decoders.base import Decoder, SenseAttribution, Sensed, SenseProbabilities
from sememekit.decoders.sense_structure import SenseStructure
from sememekit.sememes import SememeGraph


@final
class EvenSenses(Sensed):
    """Another output layer whose word probabilities are shared evenly by the senses of a graph.

    p(s) = p(w(s)) / n(w(s)), with n senses of a word. Nothing is learned about senses: only the word probabilities depend on
    the context. The gate of a sememe is its probability, the sum of p(s) over its senses.

    >>> seen = EvenSenses(run.task.decoder, graph)
    >>> seen.sense_probabilities(hidden_NH).log_senses_NS"""

    def __init__(self, layer: Decoder, graph: SememeGraph) -> None:
        nn.Module.__init__(self)
        self.layer, self.tables = layer, layer.tables
        self.structure = SenseStructure.from_graph(graph, symmetric=False)
        self.register_buffer("log_senses", self.structure.sense_offsets.diff().float().log(), persistent=False)

    log_senses: Tensor

    def log_probs(self, hidden: Tensor) -> Tensor:
        return self.layer.log_probs(hidden)

    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        return self.layer.nll(hidden, target)

    def topk_words(self, hidden: Tensor, count: int) -> tuple[Tensor, Tensor]:
        return self.layer.topk_words(hidden, count)

    def sense_probabilities(self, hidden: Tensor) -> SenseProbabilities:
        of_word_NV = self.layer.log_probs(hidden) - self.log_senses
        log_senses_NS = of_word_NV.index_select(-1, self.structure.word_of_sense)
        return SenseProbabilities(log_senses_NS, self.structure.onto_sememes(log_senses_NS.exp().T).T)

    def sense_attribution(self, hidden: Tensor, words: Tensor) -> SenseAttribution:
        offsets = self.structure.sense_offsets
        senses = [range(*offsets[word : word + 2].tolist()) for word in words.tolist()]
        gates_K = self.sense_probabilities(hidden.reshape(1, -1)).gates_NK[0]
        return SenseAttribution(tuple(tuple((sense, 1 / len(own)) for sense in own) for own in senses), tuple(gates_K.tolist()))
